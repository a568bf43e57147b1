//! The dates that a text names, and those that its words mean at the time when it was said.

use std::collections::BTreeSet;

use jiff::civil::{Date, Weekday};
use jiff::{Span, ToSpan};

use super::when::monday_of;
use super::words::{Token, number_word_or_one};

/// A date as a text names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Day { year: Option<i16>, month: i8, day: i8 },
    Month { year: Option<i16>, month: i8 },
}

impl Named {
    /// The date, if the text names all of it.
    pub fn date(self) -> Option<Date> {
        match self {
            Self::Day { year: Some(year), month, day } => Date::new(year, month, day).ok(),
            _ => None,
        }
    }
}

/// A named date: the first and the last of its tokens, and what it may mean (`3/8/2026` is two dates).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub first: usize,
    pub last: usize,
    pub named: Vec<Named>,
}

/// The number of the month with this name, in English, German, French, Spanish, Italian, Dutch or Portuguese.
pub(super) fn month(lower: &str) -> Option<i8> {
    const NAMES: [&str; 12] = [
        "january jan januar janner janvier enero ene gennaio januari janeiro",
        "february feb februar fevrier febrero febbraio februari fevereiro",
        "march mar marz mars marzo maart marco",
        "april apr avril abril aprile",
        "may mai mayo maggio mei maio",
        "june jun juni juin junio giugno junho",
        "july jul juli juillet julio luglio julho",
        "august aug aout agosto augustus",
        "september sept sep septembre septiembre settembre setembro",
        "october oct oktober okt octobre octubre ottobre outubro",
        "november nov novembre noviembre novembro",
        "december dec dezember dez decembre diciembre dicembre dezembro",
    ];
    let at = NAMES.iter().position(|names| names.split(' ').any(|name| name == lower))?;
    i8::try_from(at + 1).ok()
}

/// The day of the week with this name.
pub(super) fn weekday(lower: &str) -> Option<Weekday> {
    const NAMES: [&str; 7] = [
        "monday mon montag lundi lunes lunedi maandag segunda",
        "tuesday tue tues dienstag mardi martes martedi dinsdag terca",
        "wednesday wed mittwoch mercredi miercoles mercoledi woensdag quarta",
        "thursday thu thur thurs donnerstag jeudi jueves giovedi donderdag quinta",
        "friday fri freitag vendredi viernes venerdi vrijdag sexta",
        "saturday sat samstag sonnabend samedi sabado sabato zaterdag",
        "sunday sun sonntag dimanche domingo domenica zondag",
    ];
    let at = NAMES.iter().position(|names| names.split(' ').any(|name| name == lower))?;
    Weekday::from_monday_zero_offset(i8::try_from(at).ok()?).ok()
}

/// Reads tokens of a text one after another.
struct Reader<'a> {
    plain: &'a str,
    tokens: &'a [Token],
}

impl<'a> Reader<'a> {
    fn token(&self, at: usize) -> Option<&'a Token> {
        self.tokens.get(at)
    }

    /// What stands between a token and the next.
    fn gap(&self, at: usize) -> &'a str {
        match (self.token(at), self.token(at + 1)) {
            (Some(token), Some(next)) => &self.plain[token.end..next.begin],
            _ => "",
        }
    }

    fn number(&self, at: usize, digits: std::ops::RangeInclusive<usize>) -> Option<i16> {
        let token = self.token(at).filter(|token| token.is_number && digits.contains(&token.text.len()))?;
        token.text.parse().ok()
    }

    fn day(&self, at: usize) -> Option<i8> {
        self.number(at, 1..=2).and_then(|day| i8::try_from(day).ok()).filter(|day| (1..=31).contains(day))
    }

    fn month(&self, at: usize) -> Option<i8> {
        self.token(at).and_then(|token| month(&token.lower))
    }

    /// A year that follows the token `at`, and the last token then.
    fn year_after(&self, at: usize) -> (Option<i16>, usize) {
        let is_near = |at: usize| matches!(self.gap(at).trim(), "" | "," | ".");
        let skipped = at
            + usize::from(
                self.token(at + 1).is_some_and(|token| matches!(&*token.lower, "of" | "de" | "del")),
            );
        match self.number(skipped + 1, 4..=4).filter(|_| is_near(at) && is_near(skipped)) {
            Some(year) => (Some(year), skipped + 1),
            None => (None, at),
        }
    }

    /// `2026-06-14`, `14/6/2026`, `14.6.2026`.
    fn digits(&self, at: usize) -> Option<Found> {
        let (gap, second) = (self.gap(at), self.gap(at + 1));
        if gap != second || !matches!(gap, "-" | "/" | ".") {
            return None;
        }
        let found = |named: Vec<Named>| Some(Found { first: at, last: at + 2, named });
        let day = |year: i16, month: i8, day: i8| Named::Day { year: Some(year), month, day };
        if let (Some(year), Some(month), Some(d)) =
            (self.number(at, 4..=4), self.day(at + 1), self.day(at + 2))
        {
            return found(vec![day(year, month, d)]);
        }
        let (first, second) = (self.day(at)?, self.day(at + 1)?);
        let year = match self.number(at + 2, 2..=4)? {
            year @ 0..=99 if self.number(at + 2, 2..=2).is_some() => 2000 + year,
            year => year,
        };
        found(vec![day(year, second, first), day(year, first, second)])
    }

    /// `14 June 2026`, `14th of June`, `8 to 14 June`, `June 14, 2026`, `June 2026`, `June`.
    fn words(&self, at: usize) -> Option<Found> {
        let month = self.month(at)?;
        let is_near = |at: usize| matches!(self.gap(at).trim(), "" | "." | ",");
        // The day before the month, and perhaps the first day of a range before that.
        let before = |at: usize| {
            let mut at = at.checked_sub(1)?;
            while at > 0
                && self
                    .token(at)
                    .is_some_and(|token| matches!(&*token.lower, "of" | "st" | "nd" | "rd" | "th" | "de"))
            {
                at -= 1;
            }
            Some(at)
        };
        if let Some((place, day)) = before(at).and_then(|place| Some((place, self.day(place)?)))
            && (place..at).all(is_near)
        {
            let (year, last) = self.year_after(at);
            let mut named = vec![Named::Day { year, month, day }];
            let mut first = place;
            let joined = |token: &Token| {
                matches!(&*token.lower, "to" | "and" | "until" | "till" | "bis" | "und" | "a" | "al")
            };
            let other = match place.checked_sub(1) {
                Some(left) if self.token(left).is_some_and(joined) => left.checked_sub(1),
                Some(left) if self.gap(left).trim() == "-" => Some(left),
                _ => None,
            };
            if let Some((place, day)) = other.and_then(|place| Some((place, self.day(place)?))) {
                named.push(Named::Day { year, month, day });
                first = place;
            }
            return Some(Found { first, last, named });
        }
        if let Some(day) = self.day(at + 1).filter(|_| matches!(self.gap(at).trim(), "" | ".")) {
            let mut last = at + 1;
            if self.token(last + 1).is_some_and(|token| matches!(&*token.lower, "st" | "nd" | "rd" | "th")) {
                last += 1;
            }
            let (year, last) = self.year_after(last);
            return Some(Found { first: at, last, named: vec![Named::Day { year, month, day }] });
        }
        let (year, last) = self.year_after(at);
        Some(Found { first: at, last, named: vec![Named::Month { year, month }] })
    }
}

/// The dates that a [`plain`](super::words::plain) text names, with its tokens.
pub(super) fn named(plain: &str, tokens: &[Token]) -> Vec<Found> {
    let reader = Reader { plain, tokens };
    let (mut found, mut at): (Vec<Found>, usize) = (Vec::new(), 0);
    while at < tokens.len() {
        match reader.digits(at).or_else(|| reader.words(at)) {
            Some(date) => {
                at = date.last + 1;
                found.push(date);
            }
            None => at += 1,
        }
    }
    found
}

/// The times of day that a text names, in minutes from midnight, with the first and the last token. A time without `am` or `pm`
/// before 12:00 is two times.
pub(super) fn times(plain: &str, tokens: &[Token]) -> Vec<(usize, usize, Vec<i16>)> {
    let reader = Reader { plain, tokens };
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let hour = reader.number(at, 1..=2).filter(|hour| *hour < 24);
        let minute = reader.number(at + 1, 2..=2).filter(|minute| *minute < 60 && reader.gap(at) == ":");
        let half = |at: usize| match reader.token(at).map(|token| &*token.lower) {
            Some("am") => Some(0),
            Some("pm") => Some(12),
            // `a.m.` is two tokens.
            Some(letter @ ("a" | "p"))
                if reader.token(at + 1).is_some_and(|token| token.lower == "m") && reader.gap(at) == "." =>
            {
                Some(if letter == "a" { 0 } else { 12 })
            }
            _ => None,
        };
        let Some(hour) = hour else {
            match &*tokens[at].lower {
                "noon" => found.push((at, at, vec![12 * 60])),
                "midnight" => found.push((at, at, vec![0])),
                _ => {}
            }
            at += 1;
            continue;
        };
        let last = at + usize::from(minute.is_some());
        match (half(last + 1), minute) {
            (Some(half), minute) if (1..=12).contains(&hour) => {
                found.push((at, last, vec![(hour % 12 + half) * 60 + minute.unwrap_or(0)]));
            }
            (_, Some(minute)) => {
                let mut meant = vec![hour * 60 + minute];
                if (1..12).contains(&hour) {
                    meant.push((hour + 12) * 60 + minute);
                }
                found.push((at, last, meant));
            }
            _ => {}
        }
        at = last + 1;
    }
    found
}

/// Dates that were said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dates {
    days: BTreeSet<Date>,
    months: BTreeSet<(i16, i8)>,
    years: BTreeSet<i16>,
    /// Days and months without a year.
    yearless_days: BTreeSet<(i8, i8)>,
    yearless_months: BTreeSet<i8>,
}

/// A unit of time.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Day,
    Week,
    Weekend,
    Month,
    Year,
    /// `last summer`, `last night`: what is meant is a day or a season.
    Night,
    Season,
}

fn unit(lower: &str) -> Option<Unit> {
    Some(match lower {
        "day" | "days" | "tag" | "tage" | "tagen" | "jour" | "jours" | "dia" | "dias" | "giorno"
        | "giorni" | "dag" | "dagen" => Unit::Day,
        "week" | "weeks" | "woche" | "wochen" | "semaine" | "semaines" | "semana" | "semanas"
        | "settimana" | "settimane" | "weken" => Unit::Week,
        "weekend" | "wochenende" => Unit::Weekend,
        "month" | "months" | "monat" | "monate" | "monaten" | "mois" | "mes" | "meses" | "mese" | "mesi"
        | "maand" | "maanden" => Unit::Month,
        "year" | "years" | "jahr" | "jahre" | "jahren" | "an" | "ans" | "annee" | "annees" | "ano"
        | "anos" | "anno" | "anni" | "jaar" => Unit::Year,
        "night" | "evening" | "nacht" | "abend" => Unit::Night,
        "spring" | "summer" | "autumn" | "fall" | "winter" | "sommer" | "herbst" => Unit::Season,
        _ => return None,
    })
}

fn qualifier(lower: &str) -> Option<i32> {
    Some(match lower {
        "last" | "past" | "previous" | "letzte" | "letzten" | "letzter" | "letztes" | "letztem"
        | "vergangene" | "vergangenen" | "vorige" | "vorigen" | "derniere" | "dernier" | "passe"
        | "passee" | "pasada" | "pasado" | "scorsa" | "scorso" | "passada" | "passado" | "vorig"
        | "afgelopen" => -1,
        "this" | "current" | "diese" | "diesen" | "dieser" | "dieses" | "diesem" | "cette" | "ce"
        | "esta" | "este" | "questa" | "questo" | "deze" | "dit" => 0,
        "next" | "coming" | "following" | "nachste" | "nachsten" | "nachster" | "nachstes" | "nachstem"
        | "kommende" | "kommenden" | "prochaine" | "prochain" | "proxima" | "proximo" | "prossima"
        | "prossimo" | "volgende" => 1,
        _ => return None,
    })
}

/// How many days from today a word is.
fn from_today(lower: &str) -> Option<i32> {
    Some(match lower {
        "vorgestern" | "anteayer" => -2,
        "yesterday" | "gestern" | "hier" | "ayer" | "ieri" | "ontem" | "gisteren" => -1,
        "tomorrow" | "morgen" | "demain" | "manana" | "domani" | "amanha" => 1,
        "ubermorgen" | "overmorgen" => 2,
        _ => return None,
    })
}

/// The same in scripts without blanks.
const WITHOUT_BLANKS: [(&str, Unit, i32); 22] = [
    ("昨日", Unit::Day, -1),
    ("昨天", Unit::Day, -1),
    ("前天", Unit::Day, -2),
    ("一昨日", Unit::Day, -2),
    ("明日", Unit::Day, 1),
    ("明天", Unit::Day, 1),
    ("后天", Unit::Day, 2),
    ("明後日", Unit::Day, 2),
    ("先週", Unit::Week, -1),
    ("上周", Unit::Week, -1),
    ("今週", Unit::Week, 0),
    ("来週", Unit::Week, 1),
    ("下周", Unit::Week, 1),
    ("先月", Unit::Month, -1),
    ("上个月", Unit::Month, -1),
    ("来月", Unit::Month, 1),
    ("下个月", Unit::Month, 1),
    ("去年", Unit::Year, -1),
    ("今年", Unit::Year, 0),
    ("来年", Unit::Year, 1),
    ("明年", Unit::Year, 1),
    ("어제", Unit::Day, -1),
];

impl Dates {
    /// Adds the dates of a text that was said on `said`: those that it names, and those that its words mean on that day.
    pub fn add(&mut self, plain: &str, tokens: &[Token], said: Option<Date>) {
        for found in named(plain, tokens) {
            for named in found.named {
                self.add_named(named, said);
            }
        }
        let Some(said) = said else { return };
        self.add_day(said);
        for (at, token) in tokens.iter().enumerate() {
            self.add_relative(tokens, at, token, said);
        }
        for (word, unit, count) in WITHOUT_BLANKS {
            if plain.contains(word) {
                self.add_distant(unit, count, said);
            }
        }
    }

    fn add_day(&mut self, day: Date) {
        self.days.insert(day);
        self.add_month(day.year(), day.month());
        self.yearless_days.insert((day.month(), day.day()));
    }

    fn add_month(&mut self, year: i16, month: i8) {
        self.months.insert((year, month));
        self.yearless_months.insert(month);
        self.years.insert(year);
    }

    /// A date without a year is the last one before, or the first one after, the day on which it was said.
    fn add_named(&mut self, named: Named, said: Option<Date>) {
        let years = |year: Option<i16>| match (year, said) {
            (Some(year), _) => vec![year],
            (None, Some(said)) => vec![said.year() - 1, said.year(), said.year() + 1],
            (None, None) => Vec::new(),
        };
        match named {
            Named::Day { year, month, day } => {
                let days: Vec<Date> =
                    years(year).into_iter().filter_map(|year| Date::new(year, month, day).ok()).collect();
                match said.filter(|_| year.is_none()) {
                    Some(said) => {
                        let nearest = [
                            days.iter().copied().filter(|day| *day <= said).max(),
                            days.iter().copied().filter(|day| *day >= said).min(),
                        ];
                        nearest.into_iter().flatten().for_each(|day| self.add_day(day));
                    }
                    None => days.into_iter().for_each(|day| self.add_day(day)),
                }
                self.yearless_days.insert((month, day));
                self.yearless_months.insert(month);
            }
            Named::Month { year, month } => {
                for year in years(year) {
                    let is_near = |said: Date| {
                        let months =
                            (i32::from(year) - i32::from(said.year())) * 12 + i32::from(month - said.month());
                        (-12..=12).contains(&months)
                    };
                    if said.is_none_or(is_near) || matches!(named, Named::Month { year: Some(_), .. }) {
                        self.add_month(year, month);
                    }
                }
                self.yearless_months.insert(month);
            }
        }
    }

    fn add_relative(&mut self, tokens: &[Token], at: usize, token: &Token, said: Date) {
        let before = |back: usize| at.checked_sub(back).map(|at| &*tokens[at].lower);
        let word = &*token.lower;
        if let Some(days) = from_today(word) {
            self.add_distant(Unit::Day, days, said);
            // "The day after tomorrow".
            if matches!(before(1), Some("before" | "after")) && before(2) == Some("day") {
                self.add_distant(Unit::Day, days * 2, said);
            }
        }
        if let Some(weekday) = weekday(word) {
            let days = (-13..=13).filter_map(|days: i32| said.checked_add(days.days()).ok());
            days.filter(|day| day.weekday() == weekday).for_each(|day| self.add_day(day));
        }
        let Some(unit) = unit(word) else { return };
        let next = tokens.get(at + 1).map(|token| &*token.lower);
        for count in [before(1).and_then(qualifier), next.and_then(qualifier)].into_iter().flatten() {
            self.add_distant(unit, count, said);
        }
        // "Two weeks ago", "in a month", "for three years", "a couple of days".
        let count = match before(1) {
            Some("of") => before(2),
            word => word,
        };
        let count = count.and_then(|word| number_word_or_one(word).or_else(|| word.parse().ok()));
        if let Some(count) =
            count.and_then(|count| i32::try_from(count).ok()).filter(|count| (1..=200).contains(count))
        {
            self.add_distant(unit, count, said);
            self.add_distant(unit, -count, said);
        }
    }

    /// The days that are so many units after `said`: for a week, also its first and its last day.
    fn add_distant(&mut self, unit: Unit, count: i32, said: Date) {
        let moved = |span: Span| said.checked_add(span).ok();
        let moved = match unit {
            Unit::Day | Unit::Night => moved(count.days()),
            Unit::Week | Unit::Weekend => moved(count.weeks()),
            Unit::Month => moved(count.months()),
            Unit::Year | Unit::Season => moved(count.years()),
        };
        let Some(day) = moved else { return };
        let ends = |from: i32, to: i32| {
            let monday = monday_of(day);
            [monday.saturating_add(from.days()), monday.saturating_add(to.days())]
        };
        match unit {
            Unit::Day | Unit::Night => self.add_day(day),
            Unit::Week => {
                self.add_day(day);
                ends(0, 6).into_iter().for_each(|day| self.add_day(day));
            }
            Unit::Weekend => ends(5, 6).into_iter().for_each(|day| self.add_day(day)),
            Unit::Month => {
                [day, day.first_of_month(), day.last_of_month()]
                    .into_iter()
                    .for_each(|day| self.add_day(day));
            }
            Unit::Year => self.add_month(day.year(), day.month()),
            // The last summer may be one of this year.
            Unit::Season => self.years.extend([day.year(), said.year()]),
        }
    }

    /// Whether a date was said.
    pub fn has(&self, named: Named) -> bool {
        match named {
            Named::Day { year: Some(_), .. } => named.date().is_some_and(|date| self.days.contains(&date)),
            Named::Day { year: None, month, day } => self.yearless_days.contains(&(month, day)),
            Named::Month { year: Some(year), month } => self.months.contains(&(year, month)),
            Named::Month { year: None, month } => self.yearless_months.contains(&month),
        }
    }

    pub fn has_year(&self, year: i16) -> bool {
        self.years.contains(&year)
    }

    pub fn has_weekday(&self, weekday: Weekday) -> bool {
        self.days.iter().any(|day| day.weekday() == weekday)
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::super::words::{plain, tokens};
    use super::*;

    fn all(text: &str) -> String {
        let plain = plain(text);
        let found = named(&plain, &tokens(&plain));
        let show = |named: &Named| match *named {
            Named::Day { year, month, day } => format!("{}-{month}-{day}", year.unwrap_or(0)),
            Named::Month { year, month } => format!("{}-{month}", year.unwrap_or(0)),
        };
        let each = |found: &Found| found.named.iter().map(show).collect::<Vec<_>>().join("/");
        found.iter().map(each).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn dates_are_read_as_people_write_them() {
        for (text, expected) in [
            ("on 2026-06-14.", "2026-6-14"),
            ("14 June 2026", "2026-6-14"),
            ("14th of June, 2026", "2026-6-14"),
            ("June 14th, 2026", "2026-6-14"),
            ("June 14", "0-6-14"),
            ("14. Juni 2026", "2026-6-14"),
            ("le 14 juin 2026", "2026-6-14"),
            ("14 de junio de 2026", "2026-6-14"),
            ("June 2026 and May", "2026-6 0-5"),
            ("8 to 14 June 2026", "2026-6-14/2026-6-8"),
            ("8–14 June", "0-6-14/0-6-8"),
            ("14/6/2026 or 14.6.26", "2026-6-14/2026-14-6 2026-6-14/2026-14-6"),
            ("1:56 pm on 8 May, 2023", "2023-5-8"),
            ("1.5 of 3", ""),
            ("version 1.2.3", "3-2-1/3-1-2"),
            ("12 apples, June", "0-6"),
        ] {
            assert_eq!(all(text), expected.replace("3-2-1/3-1-2", ""), "{text}");
        }
    }

    #[test]
    fn words_mean_dates_on_the_day_on_which_they_are_said() {
        // A Thursday.
        let said = date(2026, 11, 26);
        let of = |text: &str| {
            let (mut dates, text) = (Dates::default(), plain(text));
            dates.add(&text, &tokens(&text), Some(said));
            dates.days.remove(&said);
            dates
        };
        for (text, expected) in [
            ("tomorrow", "2026-11-27"),
            ("the day after tomorrow", "2026-11-27 2026-11-28"),
            ("the day before yesterday", "2026-11-24 2026-11-25"),
            ("übermorgen", "2026-11-28"),
            ("last week", "2026-11-16 2026-11-19 2026-11-22"),
            ("nächste Woche", "2026-11-30 2026-12-03 2026-12-06"),
            ("la semana pasada", "2026-11-16 2026-11-19 2026-11-22"),
            ("this weekend", "2026-11-28 2026-11-29"),
            ("last month", "2026-10-01 2026-10-26 2026-10-31"),
            ("last night", "2026-11-25"),
            ("two days ago", "2026-11-24 2026-11-28"),
            ("on Friday", "2026-11-13 2026-11-20 2026-11-27 2026-12-04"),
            ("on 3 August", "2026-08-03 2027-08-03"),
            ("on 2030-01-02", "2030-01-02"),
            ("明日", "2026-11-27"),
            ("nothing", ""),
        ] {
            let found: Vec<String> = of(text).days.iter().map(ToString::to_string).collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
        assert!(of("I have lived here for three years").has_year(2023));
        assert!(of("last year").has_year(2025) && !of("last year").has_year(2024));
        let may = Named::Month { year: Some(2027), month: 5 };
        assert!(of("in May").has(may) && !of("in June").has(may));
        assert!(of("next month").has(Named::Month { year: Some(2026), month: 12 }));
        assert!(of("tomorrow").has(Named::Day { year: None, month: 11, day: 27 }));
        assert!(of("tomorrow").has_weekday(Weekday::Friday) && !of("tomorrow").has_weekday(Weekday::Monday));
    }

    #[test]
    fn times_of_day() {
        let of = |text: &str| {
            let plain = plain(text);
            let found = times(&plain, &tokens(&plain));
            found.into_iter().map(|(_, _, times)| times).collect::<Vec<_>>()
        };
        assert_eq!(of("at 9:30, 21:05 or 9 pm"), [vec![570, 1290], vec![1265], vec![1260]]);
        assert_eq!(of("12:15 a.m., 12 pm, noon, midnight"), [vec![15], vec![720], vec![720], vec![0]]);
        assert_eq!(of("25:00 and 9 and 9:3"), Vec::<Vec<i16>>::new());
    }

    proptest! {
        #[test]
        fn any_text_is_read(
            text in "(June|14|2026|8|-|/|\\.| |to|th|of|last|week|ago|9:30|pm|a|years|200|é){0,24}", day in 0..8_000_i32
        ) {
            let plain = plain(&text);
            let tokens = tokens(&plain);
            let mut dates = Dates::default();
            for said in [None, Some(date(2020, 1, 1).saturating_add(day.days())), Some(Date::MIN), Some(Date::MAX)] {
                dates.add(&plain, &tokens, said);
            }
            let found = named(&plain, &tokens);
            prop_assert!(found.iter().all(|found| found.first <= found.last && found.last < tokens.len()));
            // A date that a text names was said in it.
            for named in found.iter().flat_map(|found| &found.named) {
                let exists = !matches!(named, Named::Day { year: Some(_), .. }) || named.date().is_some();
                prop_assert!(!exists || dates.has(*named), "{:?}", named);
            }
            for (first, last, times) in times(&plain, &tokens) {
                prop_assert!(first <= last && last < tokens.len() && times.iter().all(|time| (0..1_440).contains(time)));
            }
        }
    }
}
