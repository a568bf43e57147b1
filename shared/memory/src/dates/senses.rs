//! Words about time, in many languages.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use words::{Language, Language as L, fold};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Day,
    Week,
    Weekend,
    Month,
    Year,
}

impl Unit {
    pub fn days(self) -> i32 {
        match self {
            Self::Day => 1,
            Self::Week | Self::Weekend => 7,
            Self::Month => 30,
            Self::Year => 365,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    Month(u8),
    /// A month whose name, or its short form, is also another word.
    WeakMonth(u8),
    /// Monday is 0.
    Weekday(u8),
    WeakWeekday(u8),
    /// A day, counted from today.
    Day(i8),
    Unit(Unit),
    /// Spring is 0.
    Season(u8),
    /// The one before (-1), this one (0), the next one (1).
    Relative(i8),
    /// After a count and a unit: so long ago.
    Ago,
    /// Before a count and a unit: so long ago.
    AgoBefore,
    /// Before a count and a unit: after that time. Also before a month or a year.
    In,
    Count(u16),
}

/// Twelve months in order. `|` separates forms, and `?` marks a form that is also another word.
const MONTHS: &[(Language, &str)] = &[
    (
        L::English,
        "january|jan? february|feb? march?|mar? april|apr? may? june|jun? july|jul? august|aug? september|sep?|sept? october|oct? november|nov? december|dec?",
    ),
    (
        L::German,
        "januar|jänner|jan? februar|feb? märz april|apr? mai? juni|jun? juli|jul? august|aug? september|sep?|sept? oktober|okt? november|nov? dezember|dez?",
    ),
    (L::French, "janvier février mars? avril mai? juin juillet août septembre octobre novembre décembre"),
    (
        L::Spanish,
        "enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre",
    ),
    (
        L::Italian,
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    ),
    (
        L::Portuguese,
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    ),
    (L::Dutch, "januari februari maart april mei? juni juli augustus september oktober november december"),
    (L::Swedish, "januari februari mars? april maj? juni juli augusti september oktober november december"),
    (L::Danish, "januar februar marts april maj? juni juli august september oktober november december"),
    (L::Norwegian, "januar februar mars? april mai? juni juli august september oktober november desember"),
    (
        L::Finnish,
        "tammikuu|tammikuussa helmikuu|helmikuussa maaliskuu|maaliskuussa huhtikuu|huhtikuussa toukokuu|toukokuussa kesäkuu|kesäkuussa heinäkuu|heinäkuussa elokuu|elokuussa syyskuu|syyskuussa lokakuu|lokakuussa marraskuu|marraskuussa joulukuu|joulukuussa",
    ),
    (
        L::Hungarian,
        "január|januárban február|februárban március|márciusban április|áprilisban május|májusban június|júniusban július|júliusban augusztus|augusztusban szeptember|szeptemberben október|októberben november|novemberben december|decemberben",
    ),
    (
        L::Romanian,
        "ianuarie februarie martie aprilie mai? iunie iulie august septembrie octombrie noiembrie decembrie",
    ),
    (L::Turkish, "ocak? şubat mart? nisan mayıs haziran temmuz ağustos eylül ekim? kasım aralık?"),
    (
        L::Russian,
        "января|январь|январе февраля|февраль|феврале марта|март|марте апреля|апрель|апреле мая|май|мае июня|июнь|июне июля|июль|июле августа|август|августе сентября|сентябрь|сентябре октября|октябрь|октябре ноября|ноябрь|ноябре декабря|декабрь|декабре",
    ),
    (
        L::Greek,
        "ιανουαρίου|ιανουάριο φεβρουαρίου|φεβρουάριο μαρτίου|μάρτιο απριλίου|απρίλιο μαΐου|μάιο ιουνίου|ιούνιο ιουλίου|ιούλιο αυγούστου|αύγουστο σεπτεμβρίου|σεπτέμβριο οκτωβρίου|οκτώβριο νοεμβρίου|νοέμβριο δεκεμβρίου|δεκέμβριο",
    ),
];

/// Seven days in order, from Monday.
const WEEKDAYS: &[(Language, &str)] = &[
    (
        L::English,
        "monday|mondays|mon? tuesday|tuesdays|tue? wednesday|wednesdays|wed? thursday|thursdays|thu? friday|fridays|fri? saturday|saturdays|sat? sunday|sundays|sun?",
    ),
    (L::German, "montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag"),
    (L::French, "lundi mardi mercredi jeudi vendredi samedi dimanche"),
    (L::Spanish, "lunes martes miércoles jueves viernes sábado domingo"),
    (L::Italian, "lunedì martedì mercoledì giovedì venerdì sabato domenica"),
    (L::Portuguese, "segunda? terça? quarta? quinta? sexta? sábado domingo"),
    (L::Dutch, "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"),
    (
        L::Swedish,
        "måndag|måndags tisdag|tisdags onsdag|onsdags torsdag|torsdags fredag|fredags lördag|lördags söndag|söndags",
    ),
    (L::Danish, "mandag tirsdag onsdag torsdag fredag lørdag søndag"),
    (L::Norwegian, "mandag tirsdag onsdag torsdag fredag lørdag søndag"),
    (L::Turkish, "pazartesi salı çarşamba perşembe cuma? cumartesi pazar?"),
    (L::Russian, "понедельник вторник среду|среда четверг пятницу|пятница субботу|суббота воскресенье"),
];

/// The other words of each language. The first sense of a word counts.
const OTHERS: &[(Language, &[(Sense, &str)])] = &[
    (
        L::English,
        &[
            (Sense::Day(-1), "yesterday"),
            (Sense::Day(0), "today tonight"),
            (Sense::Day(1), "tomorrow"),
            (Sense::Unit(Unit::Day), "day days"),
            (Sense::Unit(Unit::Week), "week weeks"),
            (Sense::Unit(Unit::Weekend), "weekend weekends"),
            (Sense::Unit(Unit::Month), "month months"),
            (Sense::Unit(Unit::Year), "year years"),
            (Sense::Season(0), "spring"),
            (Sense::Season(1), "summer"),
            (Sense::Season(2), "autumn"),
            (Sense::Season(3), "winter"),
            (Sense::Relative(-1), "last past previous"),
            (Sense::Relative(0), "this current"),
            (Sense::Relative(1), "next upcoming coming"),
            (Sense::Ago, "ago"),
            (Sense::In, "in within"),
            (Sense::Count(1), "a an one"),
            (Sense::Count(2), "two couple"),
            (Sense::Count(3), "three few several"),
            (Sense::Count(4), "four"),
            (Sense::Count(5), "five"),
            (Sense::Count(6), "six"),
            (Sense::Count(7), "seven"),
            (Sense::Count(8), "eight"),
            (Sense::Count(9), "nine"),
            (Sense::Count(10), "ten"),
            (Sense::Count(11), "eleven"),
            (Sense::Count(12), "twelve dozen"),
            (Sense::Count(15), "fifteen"),
            (Sense::Count(20), "twenty"),
            (Sense::Count(30), "thirty"),
            (Sense::Count(50), "fifty"),
            (Sense::Count(100), "hundred"),
        ],
    ),
    (
        L::German,
        &[
            (Sense::Day(-1), "gestern"),
            (Sense::Day(0), "heute"),
            (Sense::Day(1), "morgen"),
            (Sense::Day(-2), "vorgestern"),
            (Sense::Day(2), "übermorgen"),
            (Sense::Unit(Unit::Day), "tag tage tagen"),
            (Sense::Unit(Unit::Week), "woche wochen"),
            (Sense::Unit(Unit::Weekend), "wochenende wochenenden"),
            (Sense::Unit(Unit::Month), "monat monate monaten"),
            (Sense::Unit(Unit::Year), "jahr jahre jahren"),
            (Sense::Season(0), "frühling frühjahr"),
            (Sense::Season(1), "sommer"),
            (Sense::Season(2), "herbst"),
            (Sense::Season(3), "winter"),
            (
                Sense::Relative(-1),
                "letzte letzten letzter letztes letztem vorige vorigen voriges vergangene vergangenen",
            ),
            (Sense::Relative(0), "diese diesen dieser dieses diesem"),
            (Sense::Relative(1), "nächste nächsten nächster nächstes kommende kommenden"),
            (Sense::AgoBefore, "vor"),
            (Sense::In, "in im"),
            (Sense::Count(1), "ein eine einem einen einer"),
            (Sense::Count(2), "zwei"),
            (Sense::Count(3), "drei paar"),
            (Sense::Count(4), "vier"),
            (Sense::Count(5), "fünf"),
            (Sense::Count(6), "sechs"),
            (Sense::Count(7), "sieben"),
            (Sense::Count(8), "acht"),
            (Sense::Count(9), "neun"),
            (Sense::Count(10), "zehn"),
        ],
    ),
    (
        L::French,
        &[
            (Sense::Day(-1), "hier"),
            (Sense::Day(0), "aujourd"),
            (Sense::Day(1), "demain"),
            (Sense::Unit(Unit::Day), "jour jours"),
            (Sense::Unit(Unit::Week), "semaine semaines"),
            (Sense::Unit(Unit::Month), "mois"),
            (Sense::Unit(Unit::Year), "an ans année années"),
            (Sense::Season(0), "printemps"),
            (Sense::Season(2), "automne"),
            (Sense::Season(3), "hiver"),
            (Sense::Relative(-1), "dernier dernière passé passée"),
            (Sense::Relative(0), "ce cette"),
            (Sense::Relative(1), "prochain prochaine"),
            (Sense::AgoBefore, "a"),
            (Sense::In, "en dans"),
            (Sense::Count(1), "un une"),
            (Sense::Count(2), "deux"),
            (Sense::Count(3), "trois quelques"),
            (Sense::Count(4), "quatre"),
            (Sense::Count(5), "cinq"),
            (Sense::Count(6), "six"),
            (Sense::Count(10), "dix"),
        ],
    ),
    (
        L::Spanish,
        &[
            (Sense::Day(-1), "ayer"),
            (Sense::Day(0), "hoy"),
            (Sense::Day(1), "mañana"),
            (Sense::Day(-2), "anteayer"),
            (Sense::Unit(Unit::Day), "día días"),
            (Sense::Unit(Unit::Week), "semana semanas"),
            (Sense::Unit(Unit::Month), "mes meses"),
            (Sense::Unit(Unit::Year), "año años"),
            (Sense::Season(0), "primavera"),
            (Sense::Season(1), "verano"),
            (Sense::Season(2), "otoño"),
            (Sense::Season(3), "invierno"),
            (Sense::Relative(-1), "pasado pasada último última"),
            (Sense::Relative(0), "este esta"),
            (Sense::Relative(1), "próximo próxima"),
            (Sense::AgoBefore, "hace"),
            (Sense::In, "en"),
            (Sense::Count(1), "un una"),
            (Sense::Count(2), "dos"),
            (Sense::Count(3), "tres unos unas"),
            (Sense::Count(4), "cuatro"),
            (Sense::Count(5), "cinco"),
            (Sense::Count(6), "seis"),
            (Sense::Count(10), "diez"),
        ],
    ),
    (
        L::Italian,
        &[
            (Sense::Day(-1), "ieri"),
            (Sense::Day(0), "oggi"),
            (Sense::Day(1), "domani"),
            (Sense::Unit(Unit::Day), "giorno giorni"),
            (Sense::Unit(Unit::Week), "settimana settimane"),
            (Sense::Unit(Unit::Month), "mese mesi"),
            (Sense::Unit(Unit::Year), "anno anni"),
            (Sense::Season(0), "primavera"),
            (Sense::Season(1), "estate"),
            (Sense::Season(2), "autunno"),
            (Sense::Season(3), "inverno"),
            (Sense::Relative(-1), "scorso scorsa passato passata"),
            (Sense::Relative(0), "questo questa"),
            (Sense::Relative(1), "prossimo prossima"),
            (Sense::Ago, "fa"),
            (Sense::In, "in nel a tra fra"),
            (Sense::Count(1), "un una uno"),
            (Sense::Count(2), "due"),
            (Sense::Count(3), "tre qualche"),
            (Sense::Count(4), "quattro"),
            (Sense::Count(5), "cinque"),
        ],
    ),
    (
        L::Portuguese,
        &[
            (Sense::Day(-1), "ontem"),
            (Sense::Day(0), "hoje"),
            (Sense::Day(1), "amanhã"),
            (Sense::Day(-2), "anteontem"),
            (Sense::Unit(Unit::Day), "dia dias"),
            (Sense::Unit(Unit::Week), "semana semanas"),
            (Sense::Unit(Unit::Month), "mês meses"),
            (Sense::Unit(Unit::Year), "ano anos"),
            (Sense::Season(0), "primavera"),
            (Sense::Season(1), "verão"),
            (Sense::Season(2), "outono"),
            (Sense::Season(3), "inverno"),
            (Sense::Relative(-1), "passado passada último última"),
            (Sense::Relative(0), "este esta esse essa"),
            (Sense::Relative(1), "próximo próxima"),
            (Sense::AgoBefore, "há"),
            (Sense::In, "em"),
            (Sense::Count(1), "um uma"),
            (Sense::Count(2), "dois duas"),
            (Sense::Count(3), "três"),
            (Sense::Count(4), "quatro"),
            (Sense::Count(5), "cinco"),
        ],
    ),
    (
        L::Dutch,
        &[
            (Sense::Day(-1), "gisteren"),
            (Sense::Day(0), "vandaag"),
            (Sense::Day(1), "morgen"),
            (Sense::Day(-2), "eergisteren"),
            (Sense::Day(2), "overmorgen"),
            (Sense::Unit(Unit::Day), "dag dagen"),
            (Sense::Unit(Unit::Week), "week weken"),
            (Sense::Unit(Unit::Weekend), "weekend"),
            (Sense::Unit(Unit::Month), "maand maanden"),
            (Sense::Unit(Unit::Year), "jaar jaren"),
            (Sense::Season(1), "zomer"),
            (Sense::Season(2), "herfst"),
            (Sense::Relative(-1), "vorig vorige afgelopen"),
            (Sense::Relative(0), "deze dit"),
            (Sense::Relative(1), "volgend volgende komende"),
            (Sense::Ago, "geleden"),
            (Sense::In, "in over"),
            (Sense::Count(1), "een"),
            (Sense::Count(2), "twee"),
            (Sense::Count(3), "drie paar"),
            (Sense::Count(4), "vier"),
            (Sense::Count(5), "vijf"),
        ],
    ),
    (
        L::Swedish,
        &[
            (Sense::Day(-1), "igår"),
            (Sense::Day(0), "idag"),
            (Sense::Day(1), "imorgon"),
            (Sense::Unit(Unit::Day), "dag dagar"),
            (Sense::Unit(Unit::Week), "vecka veckan veckor"),
            (Sense::Unit(Unit::Month), "månad månaden månader"),
            (Sense::Unit(Unit::Year), "år året"),
            (Sense::Relative(-1), "förra"),
            (Sense::Relative(0), "denna detta"),
            (Sense::Relative(1), "nästa"),
            (Sense::Ago, "sedan"),
            (Sense::Count(1), "en ett"),
            (Sense::Count(2), "två"),
            (Sense::Count(3), "tre"),
        ],
    ),
    (
        L::Danish,
        &[
            (Sense::Day(-1), "igår"),
            (Sense::Day(1), "imorgen"),
            (Sense::Unit(Unit::Day), "dag dage"),
            (Sense::Unit(Unit::Week), "uge ugen uger"),
            (Sense::Unit(Unit::Month), "måned måneder"),
            (Sense::Unit(Unit::Year), "år"),
            (Sense::Relative(-1), "sidste"),
            (Sense::Relative(1), "næste"),
            (Sense::Ago, "siden"),
            (Sense::Count(1), "en et"),
            (Sense::Count(2), "to"),
            (Sense::Count(3), "tre"),
        ],
    ),
    (
        L::Norwegian,
        &[
            (Sense::Unit(Unit::Day), "dag dager"),
            (Sense::Unit(Unit::Week), "uke uken uker"),
            (Sense::Unit(Unit::Month), "måned måneder"),
            (Sense::Unit(Unit::Year), "år"),
            (Sense::Relative(-1), "forrige siste"),
            (Sense::Relative(1), "neste"),
            (Sense::Ago, "siden"),
            (Sense::Count(1), "en et"),
            (Sense::Count(2), "to"),
            (Sense::Count(3), "tre"),
        ],
    ),
    (
        L::Turkish,
        &[
            (Sense::Day(-1), "dün"),
            (Sense::Day(0), "bugün"),
            (Sense::Day(1), "yarın"),
            (Sense::Unit(Unit::Day), "gün"),
            (Sense::Unit(Unit::Week), "hafta"),
            (Sense::Unit(Unit::Month), "ay"),
            (Sense::Unit(Unit::Year), "yıl"),
            (Sense::Relative(-1), "geçen"),
            (Sense::Relative(0), "bu"),
            (Sense::Relative(1), "gelecek"),
            (Sense::Ago, "önce"),
            (Sense::Count(1), "bir"),
            (Sense::Count(2), "iki"),
            (Sense::Count(3), "üç"),
        ],
    ),
    (
        L::Russian,
        &[
            (Sense::Day(-1), "вчера"),
            (Sense::Day(0), "сегодня"),
            (Sense::Day(1), "завтра"),
            (Sense::Day(-2), "позавчера"),
            (Sense::Day(2), "послезавтра"),
            (Sense::Unit(Unit::Day), "день дня дней дни"),
            (Sense::Unit(Unit::Week), "неделя неделе неделю недели недель"),
            (Sense::Unit(Unit::Weekend), "выходные выходных"),
            (Sense::Unit(Unit::Month), "месяц месяца месяце месяцев"),
            (Sense::Unit(Unit::Year), "год года году лет"),
            (Sense::Season(1), "летом"),
            (Sense::Season(3), "зимой"),
            (Sense::Relative(-1), "прошлый прошлой прошлую прошлом прошлого"),
            (Sense::Relative(0), "эту этой этом этого"),
            (Sense::Relative(1), "следующий следующей следующую следующем"),
            (Sense::Ago, "назад"),
            (Sense::In, "в через"),
            (Sense::Count(1), "один одну"),
            (Sense::Count(2), "два две"),
            (Sense::Count(3), "три"),
            (Sense::Count(4), "четыре"),
            (Sense::Count(5), "пять"),
        ],
    ),
    (L::Greek, &[(Sense::Day(-1), "χθες χτες"), (Sense::Day(0), "σήμερα"), (Sense::Day(1), "αύριο")]),
    (L::Arabic, &[(Sense::Day(-1), "أمس"), (Sense::Day(0), "اليوم"), (Sense::Day(1), "غدا")]),
];

static SENSES: LazyLock<FxHashMap<String, Vec<(Language, Sense)>>> = LazyLock::new(|| {
    let mut map: FxHashMap<String, Vec<(Language, Sense)>> = FxHashMap::default();
    let mut add = |form: &str, language: Language, sense: Sense| {
        for form in [form.to_owned(), fold(form)] {
            let senses = map.entry(form).or_default();
            if senses.iter().all(|(known, _)| *known != language) {
                senses.push((language, sense));
            }
        }
    };
    let mut named = |tables: &[(Language, &str)], sure: fn(u8) -> Sense, weak: fn(u8) -> Sense, first: u8| {
        for (language, names) in tables {
            for (number, forms) in (first..).zip(names.split(' ')) {
                for form in forms.split('|') {
                    match form.strip_suffix('?') {
                        Some(form) => add(form, *language, weak(number)),
                        None => add(form, *language, sure(number)),
                    }
                }
            }
        }
    };
    named(MONTHS, Sense::Month, Sense::WeakMonth, 1);
    named(WEEKDAYS, Sense::Weekday, Sense::WeakWeekday, 0);
    for (language, senses) in OTHERS {
        for (sense, forms) in *senses {
            forms.split(' ').for_each(|form| add(form, *language, *sense));
        }
    }
    map
});

/// What a word says in a text of a language. Months and weekdays also count in other languages. `word` is in lower
/// case.
pub(super) fn sense(word: &str, language: Language) -> Option<Sense> {
    let senses = SENSES.get(word)?;
    let of =
        |language: Language| senses.iter().find(|(known, _)| *known == language).map(|(_, sense)| *sense);
    let is_name = |sense: &Sense| matches!(sense, Sense::Month(_) | Sense::Weekday(_));
    of(language).or_else(|| senses.iter().map(|(_, sense)| *sense).find(is_name))
}

#[derive(Clone, Copy)]
pub(super) enum InRun {
    Day(i8),
    Unit(Unit, i8),
}

/// Words in scripts without spaces. They are searched in the whole text.
pub(super) const IN_RUNS: &[(&str, InRun)] = &[
    ("前天", InRun::Day(-2)),
    ("昨天", InRun::Day(-1)),
    ("今天", InRun::Day(0)),
    ("明天", InRun::Day(1)),
    ("后天", InRun::Day(2)),
    ("一昨日", InRun::Day(-2)),
    ("昨日", InRun::Day(-1)),
    ("きのう", InRun::Day(-1)),
    ("今日", InRun::Day(0)),
    ("明日", InRun::Day(1)),
    ("明後日", InRun::Day(2)),
    ("그저께", InRun::Day(-2)),
    ("어제", InRun::Day(-1)),
    ("오늘", InRun::Day(0)),
    ("내일", InRun::Day(1)),
    ("모레", InRun::Day(2)),
    ("เมื่อวาน", InRun::Day(-1)),
    ("วันนี้", InRun::Day(0)),
    ("พรุ่งนี้", InRun::Day(1)),
    ("上周", InRun::Unit(Unit::Week, -1)),
    ("上星期", InRun::Unit(Unit::Week, -1)),
    ("这周", InRun::Unit(Unit::Week, 0)),
    ("本周", InRun::Unit(Unit::Week, 0)),
    ("下周", InRun::Unit(Unit::Week, 1)),
    ("下星期", InRun::Unit(Unit::Week, 1)),
    ("先週", InRun::Unit(Unit::Week, -1)),
    ("今週", InRun::Unit(Unit::Week, 0)),
    ("来週", InRun::Unit(Unit::Week, 1)),
    ("지난주", InRun::Unit(Unit::Week, -1)),
    ("지난 주", InRun::Unit(Unit::Week, -1)),
    ("이번 주", InRun::Unit(Unit::Week, 0)),
    ("다음 주", InRun::Unit(Unit::Week, 1)),
    ("다음주", InRun::Unit(Unit::Week, 1)),
    ("สัปดาห์ที่แล้ว", InRun::Unit(Unit::Week, -1)),
    ("上个月", InRun::Unit(Unit::Month, -1)),
    ("这个月", InRun::Unit(Unit::Month, 0)),
    ("下个月", InRun::Unit(Unit::Month, 1)),
    ("先月", InRun::Unit(Unit::Month, -1)),
    ("今月", InRun::Unit(Unit::Month, 0)),
    ("来月", InRun::Unit(Unit::Month, 1)),
    ("지난달", InRun::Unit(Unit::Month, -1)),
    ("이번 달", InRun::Unit(Unit::Month, 0)),
    ("다음 달", InRun::Unit(Unit::Month, 1)),
    ("去年", InRun::Unit(Unit::Year, -1)),
    ("今年", InRun::Unit(Unit::Year, 0)),
    ("明年", InRun::Unit(Unit::Year, 1)),
    ("昨年", InRun::Unit(Unit::Year, -1)),
    ("来年", InRun::Unit(Unit::Year, 1)),
    ("작년", InRun::Unit(Unit::Year, -1)),
    ("올해", InRun::Unit(Unit::Year, 0)),
    ("내년", InRun::Unit(Unit::Year, 1)),
];
