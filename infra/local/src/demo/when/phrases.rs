//! The phrases that name times. Each function of [`PHRASES`] tries to read one phrase at a place in the sentence.

use domain::schedule::{MONTHS, timezone_named};

use super::super::places::zone_of;
use super::tokens::{Token, glued, number, ordinal, tokens};

pub const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// What the phrases of a sentence say.
#[derive(Debug, Default)]
pub struct Facts {
    pub repeats: Vec<Repeat>,
    pub times: Vec<Clock>,
    pub part: Option<&'static Part>,
    /// Each with whether it can only mean when the work is due.
    pub days: Vec<(Day, bool)>,
    /// The IANA name of a zone.
    pub zone: Option<String>,
    /// A time without a day, such as "later".
    pub vague: Option<String>,
    /// Whether a time of day, without a day, stands where it can hardly belong to the content: "at 9 write a report".
    pub leads: bool,
    /// The first thing that was not understood, as a sentence.
    pub wrong: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Repeat {
    /// An interval of minutes, hours or days: `m`, `h` or `d`. The weekdays are bits from Monday on; 0 is every day.
    Every {
        count: u64,
        unit: char,
        days: u8,
    },
    Daily,
    /// Weekdays as bits from Monday on. 0: the sentence names none.
    Weekly(u8),
    /// Days as bits. Bit 0 is the last day of the month. 0: the sentence names none.
    Monthly(u32),
    /// Each time after some months, on the days of [`Repeat::Monthly`].
    Months(u64, u32),
    /// Month and day.
    Yearly(Option<(i8, i8)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clock {
    pub hour: i8,
    pub minute: i8,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Day {
    /// Days after today.
    After(i64),
    /// 0 is Monday.
    Weekday(usize),
    OfMonth(i8),
    Date {
        year: Option<i16>,
        month: i8,
        day: i8,
    },
    In(u64, Unit),
    /// It is over, in the person's words.
    Past(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

const UNITS: [(&str, Unit); 19] = [
    ("s", Unit::Second),
    ("sec", Unit::Second),
    ("second", Unit::Second),
    ("m", Unit::Minute),
    ("min", Unit::Minute),
    ("minute", Unit::Minute),
    ("h", Unit::Hour),
    ("hr", Unit::Hour),
    ("hour", Unit::Hour),
    ("d", Unit::Day),
    ("day", Unit::Day),
    ("w", Unit::Week),
    ("week", Unit::Week),
    ("fortnight", Unit::Week),
    ("month", Unit::Month),
    ("quarter", Unit::Quarter),
    ("y", Unit::Year),
    ("yr", Unit::Year),
    ("year", Unit::Year),
];

fn unit(word: &str) -> Option<Unit> {
    let singular = if word.len() > 2 { word.strip_suffix('s').unwrap_or(word) } else { word };
    UNITS.iter().find(|(name, _)| *name == singular).map(|(_, unit)| *unit)
}

/// A part of the day, and its hour if no time is named.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    name: &'static str,
    pub hour: i8,
}

static PARTS: [Part; 4] = [
    Part { name: "morning", hour: 9 },
    Part { name: "afternoon", hour: 15 },
    Part { name: "evening", hour: 18 },
    Part { name: "night", hour: 21 },
];

fn part(word: &str) -> Option<&'static Part> {
    PARTS.iter().find(|part| word.strip_suffix('s').unwrap_or(word) == part.name)
}

/// Single words that repeat.
const ADVERBS: [(&str, Repeat); 19] = [
    ("stündlich", Repeat::Every { count: 1, unit: 'h', days: 0 }),
    ("täglich", Repeat::Daily),
    ("wöchentlich", Repeat::Weekly(0)),
    ("monatlich", Repeat::Monthly(0)),
    ("werktags", Repeat::Weekly(WORKDAYS)),
    ("hourly", Repeat::Every { count: 1, unit: 'h', days: 0 }),
    ("daily", Repeat::Daily),
    ("weekly", Repeat::Weekly(0)),
    ("fortnightly", Repeat::Every { count: 14, unit: 'd', days: 0 }),
    ("monthly", Repeat::Monthly(0)),
    ("quarterly", Repeat::Months(3, 0)),
    ("yearly", Repeat::Yearly(None)),
    ("annually", Repeat::Yearly(None)),
    ("weekdays", Repeat::Weekly(WORKDAYS)),
    ("workdays", Repeat::Weekly(WORKDAYS)),
    ("weekends", Repeat::Weekly(WEEKEND)),
    ("mornings", Repeat::Daily),
    ("afternoons", Repeat::Daily),
    ("evenings", Repeat::Daily),
];

/// What comes after "every" and "each".
const PERIODS: [(&str, Repeat); 17] = [
    ("minute", Repeat::Every { count: 1, unit: 'm', days: 0 }),
    ("hour", Repeat::Every { count: 1, unit: 'h', days: 0 }),
    ("day", Repeat::Daily),
    ("morning", Repeat::Daily),
    ("noon", Repeat::Daily),
    ("afternoon", Repeat::Daily),
    ("evening", Repeat::Daily),
    ("night", Repeat::Daily),
    ("midnight", Repeat::Daily),
    ("week", Repeat::Weekly(0)),
    ("fortnight", Repeat::Every { count: 14, unit: 'd', days: 0 }),
    ("month", Repeat::Monthly(0)),
    ("quarter", Repeat::Months(3, 0)),
    ("year", Repeat::Yearly(None)),
    ("weekday", Repeat::Weekly(WORKDAYS)),
    ("workday", Repeat::Weekly(WORKDAYS)),
    ("weekend", Repeat::Weekly(WEEKEND)),
];

const WORKDAYS: u8 = 0b001_1111;
const WEEKEND: u8 = 0b110_0000;

/// After these words, a day belongs to the content: "a summary of yesterday".
const OF_CONTENT: [&str; 13] = [
    "of",
    "about",
    "from",
    "since",
    "by",
    "until",
    "till",
    "before",
    "after",
    "between",
    "than",
    "starting",
    "beginning",
];

/// Words that limit a repetition, which a schedule of the demo can't express.
const LIMITS: [&str; 14] = [
    "until",
    "till",
    "except",
    "excluding",
    "starting",
    "beginning",
    "from",
    "between",
    "for",
    "since",
    "after",
    "before",
    "through",
    "thru",
];

/// What follows "during the", "without" and the like, if they limit a repetition.
const SEASONS: [&str; 14] = [
    "day", "week", "weekend", "weekends", "month", "year", "holiday", "holidays", "public", "vacation",
    "spring", "summer", "autumn", "winter",
];

/// Verbs whose "at" names no time: "look at 5 shops".
const AT_VERBS: [&str; 8] = ["look", "looks", "looking", "aim", "aims", "start", "laugh", "stop"];

/// Languages and formats, which also follow "in".
const NO_PLACES: [&str; 22] = [
    "english",
    "german",
    "french",
    "spanish",
    "italian",
    "dutch",
    "polish",
    "portuguese",
    "turkish",
    "russian",
    "ukrainian",
    "chinese",
    "japanese",
    "korean",
    "arabic",
    "hindi",
    "swedish",
    "markdown",
    "html",
    "pdf",
    "word",
    "excel",
];

const ZONE_LETTERS: [&str; 12] =
    ["cet", "cest", "est", "edt", "cst", "cdt", "mst", "mdt", "pst", "pdt", "bst", "ist"];

/// A place in the sentence, with what was found before it.
struct Cursor<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    /// Whether the word before belongs to a phrase of the same sentence.
    follows: bool,
}

type Phrase = fn(&Cursor, &mut Facts) -> usize;

/// In the order in which they are tried. Each returns how many words it has read; 0 if it is another phrase.
const PHRASES: [Phrase; 10] =
    [every, month_days, weekdays, adverb, date, relative_day, offset, clock, part_of_day, zone];

/// A sentence that changes a time, as one that names it: "move it from 9 to 8" as "move it at 8".
pub fn of_change(text: &str) -> String {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let plain = |at: usize| {
        parts
            .get(at)
            .map_or_else(String::new, |part| part.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
    };
    // What may follow an hour. "To 3 pages" is no time.
    const AFTER: [&str; 19] = [
        "", "am", "pm", "a.m", "p.m", "o'clock", "oclock", "h", "in", "on", "at", "to", "and", "every",
        "each", "please", "instead", "rather", "sharp",
    ];
    let is_clock = |at: usize| {
        let (word, next) = (plain(at), plain(at + 1));
        let is_part = ["noon", "midnight"].contains(&word.as_str())
            || ["half", "quarter"].contains(&word.as_str()) && next == "past";
        let is_hour = number(&word).is_some_and(|hour| hour < 24) && AFTER.contains(&next.as_str());
        is_clock_like(&word) || is_part || is_hour
    };
    let mut changed: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        let (word, next) = (plain(at), plain(at + 1));
        if word == "from" && next == "now" && plain(at + 2) == "on" {
            at += 3;
            continue;
        }
        // "From 9 am to 8 am".
        if word == "from" && is_clock(at + 1) {
            let to = (at + 2..parts.len().min(at + 5)).find(|to| plain(*to) == "to" && is_clock(to + 1));
            if let Some(to) = to {
                at = to;
                continue;
            }
        }
        changed.push(match word.as_str() {
            "to" if is_clock(at + 1) => "at",
            "for" if is_clock_like(&next) => "at",
            "to" if weekday(&next).is_some() && plain(at + 2) != "to" => "on",
            "to" if month(&plain(at + 2)).is_some() || month(&next).is_some() => "on",
            _ => parts[at],
        });
        at += 1;
    }
    changed.join(" ")
}

/// What the times in a text say, and its other words.
pub fn find(text: &str) -> (Facts, Vec<String>) {
    let tokens = tokens(text);
    let (facts, rest) = read(&tokens);
    (facts, rest.iter().map(|place| tokens[*place].word.clone()).collect())
}

/// The text without the phrases that name times, as it was written.
pub fn without_times(text: &str) -> String {
    let tokens = tokens(text);
    let (_, rest) = read(&tokens);
    // "In the morning": what led to a phrase that is gone leads nowhere.
    let leads = |place: usize| LEADING.contains(&tokens[place].word.as_str()) && !rest.contains(&(place + 1));
    let mut kept = String::new();
    for (at, place) in rest.iter().copied().enumerate() {
        if leads(place) {
            continue;
        }
        let ends = rest[..at].last().is_some_and(|before| (*before..place).any(|gone| tokens[gone].is_last));
        kept.push_str(if kept.is_empty() {
            ""
        } else if ends {
            ". "
        } else {
            " "
        });
        kept.push_str(tokens[place].raw);
    }
    kept
}

/// Words that only lead to a time.
const LEADING: [&str; 8] = ["at", "on", "in", "every", "each", "and", "from", "then"];

/// What happens at no time of the clock.
const NO_CLOCK: [&str; 8] =
    ["sunrise", "sunset", "dawn", "dusk", "sundown", "sunup", "sonnenaufgang", "sonnenuntergang"];

/// What the times say, and the places of the other words.
fn read(tokens: &[Token<'_>]) -> (Facts, Vec<usize>) {
    let mut facts = Facts::default();
    let mut rest = Vec::new();
    let mut spread = Spread::default();
    let (mut at, mut follows) = (0, false);
    while at < tokens.len() {
        let cursor = Cursor { tokens, at, follows };
        let known = (facts.repeats.len(), facts.times.len(), facts.part);
        let read = PHRASES.iter().map(|phrase| phrase(&cursor, &mut facts)).find(|read| *read > 0);
        match read {
            Some(read) => {
                spread.add(&cursor, &facts, known);
                if facts.times.len() > known.1 || facts.part != known.2 {
                    facts.leads |= cursor.leads(read);
                }
            }
            None => rest.push(at),
        }
        at = (at + read.unwrap_or(1)).min(tokens.len());
        // "Monday and at 9" is still one phrase, and so is "every hour on weekdays".
        let joins = follows && ["and", "on"].contains(&cursor.word(0));
        follows = (read.is_some() || joins) && !tokens[at - 1].is_last;
    }
    let has_no_clock = |place: usize| {
        let leads = ["at", "every", "each", "before", "after", "around", "by", "bei"];
        let before = place.checked_sub(1).map_or("", |before| tokens[before].word.as_str());
        NO_CLOCK.contains(&tokens[place].word.as_str()) && leads.contains(&before)
    };
    // "Every" may have been read as part of a phrase.
    if let Some(place) = (0..tokens.len()).find(|place| has_no_clock(*place)) {
        let named = tokens[place].raw;
        facts.wrong(format!(
            "I can't plan \"{named}\": a schedule needs a time of the clock, such as \"every day at 6:30\", or a length of time, such as \
             \"every 2 hours\"."
        ));
    }
    if facts.names_a_time() {
        for place in &rest {
            let follows = *place > 0 && !rest.contains(&(place - 1));
            let left = Cursor { tokens, at: *place, follows };
            if let Some(length) = left.limits() {
                let said = left.said(length);
                facts.wrong(format!("I did not understand \"{said}\"."));
            }
        }
    }
    if !facts.repeats.is_empty() {
        if let Some(vague) = facts.vague.clone() {
            facts.wrong(format!(
                "A repetition that I plan begins at once and has no end, so I can't plan \"{vague}\"."
            ));
        }
        if spread.repeats {
            facts.wrong("I understood several repetitions, and an action has one. Name one of them, such as \"every Monday at 9\".".to_owned());
        }
        if spread.times {
            facts.wrong(
                "I understood several times of day. Name them together, such as \"every day at 9 and 17\"."
                    .to_owned(),
            );
        }
    }
    (facts, rest)
}

/// What a sentence says in several places, so that one schedule would mix it up: "every Monday at 9 and every Friday at 17:00".
#[derive(Default)]
struct Spread {
    /// The repetitions so far, without those that "daily" and "a weekly report" name.
    named: Vec<Repeat>,
    /// Where the phrase of the last time of day is.
    clock: Option<usize>,
    repeats: bool,
    times: bool,
}

impl Spread {
    /// Adds the phrase at the cursor. `known`: what the phrases before it have found.
    fn add(&mut self, c: &Cursor, facts: &Facts, known: (usize, usize, Option<&Part>)) {
        for repeat in &facts.repeats[known.0..] {
            let is_named = match repeat {
                Repeat::Weekly(0) | Repeat::Monthly(0) | Repeat::Months(_, 0) | Repeat::Yearly(None) => false,
                Repeat::Daily | Repeat::Every { .. } => ["every", "each", "once"].contains(&c.word(0)),
                _ => true,
            };
            if !is_named {
                continue;
            }
            // "Every day at 9 on weekdays" is one repetition, "every Monday at 9 and every Friday" may be two.
            let names_days = |one: &Repeat| !matches!(one, Repeat::Daily | Repeat::Every { .. });
            let is_another = |one: &Repeat| {
                one != repeat && (!c.follows || self.clock.is_some() && names_days(one) && names_days(repeat))
            };
            self.repeats |= self.named.iter().any(is_another);
            self.named.push(repeat.clone());
        }
        let (before, new) = facts.times.split_at(known.1);
        if new.is_empty() {
            return;
        }
        let is_same_sentence = |clock: usize| !c.tokens[clock..c.at].iter().any(|token| token.is_last);
        let differs = new.iter().any(|time| !before.contains(time));
        self.times |= !c.follows && differs && self.clock.is_some_and(is_same_sentence);
        self.clock = Some(c.at);
    }
}

impl Facts {
    fn wrong(&mut self, why: String) {
        self.wrong.get_or_insert(why);
    }

    fn names_a_time(&self) -> bool {
        !self.repeats.is_empty() || !self.times.is_empty() || !self.days.is_empty() || self.part.is_some()
    }
}

impl Cursor<'_> {
    /// The word some words after this place, or nothing.
    fn word(&self, after: usize) -> &str {
        self.tokens.get(self.at + after).map_or("", |token| &token.word)
    }

    fn before(&self) -> &str {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or("", |token| &token.word)
    }

    fn has_word(&self, after: usize) -> bool {
        self.at + after < self.tokens.len()
    }

    fn is_capital(&self, after: usize) -> bool {
        self.tokens.get(self.at + after).is_some_and(|token| token.raw.starts_with(char::is_uppercase))
    }

    /// Some words as the person wrote them, shortened.
    fn said(&self, count: usize) -> String {
        let end = (self.at + count).min(self.tokens.len());
        let words: Vec<&str> = self.tokens[self.at..end].iter().map(|token| token.raw).collect();
        words.join(" ").chars().take(60).collect()
    }

    /// Whether a time of day begins its sentence, or ends the text and nothing before it names a content.
    fn leads(&self, read: usize) -> bool {
        let before = &self.tokens[..self.at];
        let from = before.iter().rposition(|token| token.is_last).map_or(0, |last| last + 1);
        let before = &before[from..];
        let is = |words: &[&str]| before.iter().any(|token| words.contains(&token.word.as_str()));
        before
            .iter()
            .all(|token| ["please", "and", "then", "so", "ok", "okay"].contains(&token.word.as_str()))
            || !self.has_word(read) && !is(&OF_CONTENT) && !is(&["for", "on", "that", "which", "who"])
    }

    /// How many words from here say a time that no phrase has read.
    fn limits(&self) -> Option<usize> {
        let (word, next) = (self.word(0), self.word(1));
        let is_number = number(next).is_some();
        let names_a_time = is_clock_like(next)
            || weekday(next).is_some()
            || month(next).is_some()
            || ["tomorrow", "today", "noon", "midnight", "next"].contains(&next)
            || is_number
                && (unit(self.word(2)).is_some() || ["am", "pm", "and", "to"].contains(&self.word(2)))
            || is_number && ["from", "until", "till", "between"].contains(&word);
        match word {
            "until" | "till" | "except" | "excluding" if self.has_word(1) => Some(2),
            "unless" if self.has_word(1) => Some(2),
            "but" if weekday(next).is_some() => Some(2),
            // "But not too long" is about the content.
            "but"
                if ["not", "never", "no", "only", "on"].contains(&next)
                    && (self.follows || self.word(2) == "on") =>
            {
                Some(2)
            }
            "not" | "never" if ["on", "at", "during"].contains(&next) => Some(2),
            "no" | "without" | "skip" | "skipping" | "besides" | "during"
                if weekday(next).is_some() || month(next).is_some() || SEASONS[2..].contains(&next) =>
            {
                Some(2)
            }
            "during" if next == "the" && SEASONS.contains(&self.word(2)) => Some(3),
            "other" | "apart" | "aside"
                if ["than", "from"].contains(&next)
                    && (weekday(self.word(2)).is_some() || SEASONS.contains(&self.word(2))) =>
            {
                Some(3)
            }
            "starting" | "beginning" if ["on", "in", "the"].contains(&next) => Some(3),
            "for" if self.follows && ["a", "an"].contains(&next) && unit(self.word(2)).is_some() => Some(3),
            "for" if next == "the" && ["next", "first", "coming"].contains(&self.word(2)) => Some(3),
            "this" | "coming" if self.follows && unit(next).is_some() => Some(2),
            "alternate" | "alternating" if weekday(next).is_some() => Some(2),
            "biweekly" | "bi-weekly" | "twice" => Some(1),
            // "Every Friday the 13th".
            day if day.starts_with(|c: char| c.is_ascii_digit()) && ordinal(day).is_some() => {
                let back = if self.before() == "the" { 2 } else { 1 };
                let named = self.at.checked_sub(back).and_then(|at| self.tokens.get(at));
                named.and_then(|token| weekday(&token.word)).map(|_| 1)
            }
            "times" if ["a", "per", "every", "each"].contains(&next) => Some(3),
            // "For Friday at 9" names the day itself.
            "for" if !is_number && next != "next" => None,
            _ if LIMITS.contains(&word) && names_a_time => Some(if is_number { 3 } else { 2 }),
            _ if is_clock_like(word) => Some(1),
            _ => None,
        }
    }
}

/// "25:00" and "13pm".
fn is_clock_like(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once(':').is_some_and(|(hour, minute)| digits(hour) && digits(minute))
        || glued(word).is_some_and(|(_, suffix)| ["am", "pm"].contains(&suffix))
}

/// 0 is Monday. Three letters are enough.
fn weekday(word: &str) -> Option<usize> {
    let short = |day: &str| ["tues", "thur", "thurs"].contains(&word) && day.starts_with(word);
    WEEKDAYS.iter().position(|day| {
        word == *day || word == &day[..3] || word.strip_suffix('s') == Some(day) || short(day)
    })
}

fn month(word: &str) -> Option<i8> {
    let is = |month: &str| word.eq_ignore_ascii_case(month) || word.eq_ignore_ascii_case(&month[..3]);
    MONTHS.iter().position(|month| is(month)).and_then(|month| i8::try_from(month + 1).ok())
}

/// "Every 2 hours", "each weekday", "once a month", "every Monday and Friday", "every 15th".
fn every(c: &Cursor, facts: &mut Facts) -> usize {
    let mut i = match (c.word(0), c.word(1)) {
        ("every" | "each", _) => 1,
        ("once", "a" | "an" | "per" | "every" | "each") => 2,
        _ => return 0,
    };
    if c.word(i) == "single" {
        i += 1;
    }
    let (word, next) = (c.word(i), c.word(i + 1));
    let mut repeat = |repeat: Repeat, read: usize| {
        facts.repeats.push(repeat);
        read
    };
    if ["other", "second"].contains(&word) {
        if weekday(next).is_some() || ["weekday", "weekend"].contains(&next) {
            facts.wrong(format!(
                "I can't plan \"{}\". I can plan every week, or an interval such as \"every 14 days\".",
                c.said(i + 2)
            ));
            return i + 2;
        }
        if let Some(unit) = unit(next) {
            return interval(c, facts, 2, unit, i + 2);
        }
    }
    if word == "half" {
        let read = if ["an", "a"].contains(&next) { i + 3 } else { i + 2 };
        return if c.word(read - 1) == "hour" {
            repeat(Repeat::Every { count: 30, unit: 'm', days: 0 }, read)
        } else {
            0
        };
    }
    if let (Some(count), Some(unit)) = (number(word), unit(next)) {
        let count = if next.starts_with("fortnight") { count.saturating_mul(2) } else { count };
        return interval(c, facts, count, unit, i + 2);
    }
    if let Some((count, suffix)) = glued(word)
        && let Some(unit) = unit(suffix)
    {
        return interval(c, facts, count, unit, i + 1);
    }
    if ["business", "working", "work"].contains(&word) && next == "day" {
        return repeat(Repeat::Weekly(WORKDAYS), i + 2);
    }
    if let Some((days, read, _)) = weekday_list(c, i) {
        return repeat(Repeat::Weekly(days), read);
    }
    if let Some((month, day, None, read)) = date_at(c, i) {
        return repeat(Repeat::Yearly(Some((month, day))), read);
    }
    if let Some((_, named)) = PERIODS.iter().find(|(name, _)| *name == word) {
        let read = repeat(named.clone(), i + 1);
        match word {
            "noon" => facts.times.push(Clock { hour: 12, minute: 0 }),
            "midnight" => facts.times.push(Clock { hour: 0, minute: 0 }),
            word => facts.part = part(word).or(facts.part),
        }
        return read;
    }
    days_of_month(c, facts, i, true)
}

fn interval(c: &Cursor, facts: &mut Facts, count: u64, unit: Unit, read: usize) -> usize {
    let every = |count, unit| Some(Repeat::Every { count, unit, days: 0 });
    let repeat = match (unit, count) {
        (_, 0) => None,
        (Unit::Second, _) if count.is_multiple_of(60) => every(count / 60, 'm'),
        (Unit::Minute, _) => every(count, 'm'),
        (Unit::Hour, _) => every(count, 'h'),
        (Unit::Day, 1) => Some(Repeat::Daily),
        (Unit::Day, _) => every(count, 'd'),
        (Unit::Week, 1) => Some(Repeat::Weekly(0)),
        (Unit::Week, _) => every(count.saturating_mul(7), 'd'),
        (Unit::Month, 1) => Some(Repeat::Monthly(0)),
        (Unit::Month, 2 | 3 | 4 | 6) => Some(Repeat::Months(count, 0)),
        (Unit::Quarter, 1 | 2) => Some(Repeat::Months(3 * count, 0)),
        (Unit::Month, 12) | (Unit::Quarter, 4) | (Unit::Year, 1) => Some(Repeat::Yearly(None)),
        _ => None,
    };
    match repeat {
        Some(repeat) => facts.repeats.push(repeat),
        None => facts.wrong(format!(
            "I can't plan \"{}\". An interval is at least one minute, and of months it is 1, 2, 3, 4, 6 or 12.",
            c.said(read)
        )),
    }
    read
}

/// Days of the week as bits, how many words they have from the cursor on, and whether they can only repeat: "Mondays",
/// "Monday to Friday".
fn weekday_list(c: &Cursor, from: usize) -> Option<(u8, usize, bool)> {
    let span =
        |first: usize, last: usize| (0..7).map(move |n| (first + n) % 7).take((last + 7 - first) % 7 + 1);
    let bits = |days: &mut dyn Iterator<Item = usize>| days.fold(0u8, |bits, day| bits | 1 << day);
    if let Some((first, last)) = c.word(from).split_once(['-', '–']) {
        let (first, last) = (weekday(first)?, weekday(last)?);
        return Some((bits(&mut span(first, last)), from + 1, true));
    }
    let first = weekday(c.word(from))?;
    if ["to", "through", "thru", "till", "until"].contains(&c.word(from + 1))
        && let Some(last) = weekday(c.word(from + 2))
    {
        return Some((bits(&mut span(first, last)), from + 3, true));
    }
    let is_plural = |word: &str| word.ends_with("days");
    let (mut days, mut i, mut repeats) = (1 << first, from + 1, is_plural(c.word(from)));
    loop {
        let joined = usize::from(["and", "or"].contains(&c.word(i)));
        let Some(day) = weekday(c.word(i + joined)) else { return Some((days, i, repeats)) };
        repeats |= is_plural(c.word(i + joined));
        days |= 1 << day;
        i += joined + 1;
    }
}

/// "On Monday", "next Friday", "Mondays", "Monday to Friday".
fn weekdays(c: &Cursor, facts: &mut Facts) -> usize {
    let lead = match (c.word(0), c.word(1)) {
        ("on", "next" | "this") | ("this", "coming") => 2,
        ("on" | "next" | "this" | "coming" | "from", _) => 1,
        ("last" | "previous", day)
            if weekday(day).is_some() && !OF_CONTENT.contains(&c.before()) && c.before() != "the" =>
        {
            facts.days.push((Day::Past(c.said(2)), false));
            return 2;
        }
        _ => 0,
    };
    let Some((days, read, repeats)) = weekday_list(c, lead) else { return 0 };
    let word = c.word(lead);
    let is_short = word.len() <= 5 && !word.contains(['-', '–']) && !repeats;
    if OF_CONTENT.contains(&c.before()) || lead == 0 && is_short {
        return 0;
    }
    let mut after = Facts::default();
    let has_time = clock(&Cursor { at: c.at + read, follows: true, ..*c }, &mut after) > 0;
    let leads = lead > 0 || c.follows || c.at == 0 || has_time;
    let is_repeated = facts.repeats.contains(&Repeat::Weekly(0));
    match (days.count_ones(), repeats) {
        _ if !leads || c.word(0) == "from" && !repeats => return 0,
        (_, true) => facts.repeats.push(Repeat::Weekly(days)),
        (1, false) => {
            let is_sure = ["next", "this", "coming"].contains(&c.word(0)) || has_time;
            facts.days.push((Day::Weekday(days.trailing_zeros() as usize), is_sure && !is_repeated));
        }
        (_, false) if is_repeated => facts.repeats.push(Repeat::Weekly(days)),
        (_, false) => facts.wrong(format!(
            "I understood several days. Say \"every {}\", or name one of them.",
            c.said(read).trim_start_matches("on ")
        )),
    }
    read
}

fn adverb(c: &Cursor, facts: &mut Facts) -> usize {
    let Some((word, repeat)) = ADVERBS.iter().find(|(name, _)| *name == c.word(0)) else { return 0 };
    facts.part = part(word).or(facts.part);
    facts.repeats.push(repeat.clone());
    1
}

/// "The first of every month", "on the 15th", "the last day of the month", "at the end of every month".
fn month_days(c: &Cursor, facts: &mut Facts) -> usize {
    let mut i = usize::from(["on", "at"].contains(&c.word(0)));
    i += usize::from(c.word(i) == "the");
    days_of_month(c, facts, i, false)
}

/// `i`: where the number of the day is expected. `is_every`: whether "every" is before it.
fn days_of_month(c: &Cursor, facts: &mut Facts, mut i: usize, is_every: bool) -> usize {
    let day = |word: &str| match word {
        "last" | "end" => Some(0),
        word => ordinal(word),
    };
    let (from, is_digit) = (i, c.word(i).starts_with(|c: char| c.is_ascii_digit()));
    let Some(first) = day(c.word(i)) else { return 0 };
    let mut days = 1u32 << first;
    i += 1;
    if weekday(c.word(i)).is_some() && (is_every || c.word(i + 1) == "of") {
        facts.wrong(format!(
            "I can't plan \"{}\". I can plan days of the month, such as \"the first of every month\".",
            c.said(i + 1)
        ));
        return i + 1;
    }
    while c.word(i) == "and" {
        let the = usize::from(c.word(i + 1) == "the");
        let Some(next) = day(c.word(i + 1 + the)) else { break };
        days |= 1 << next;
        i += 2 + the;
    }
    i += usize::from(c.word(i) == "day");
    if c.word(i) == "of" && ["every", "each", "the", "a"].contains(&c.word(i + 1)) && c.word(i + 2) == "month"
    {
        facts.repeats.push(Repeat::Monthly(days));
        return i + 3;
    }
    if c.word(i) == "of" && c.word(i + 1) == "month" {
        facts.repeats.push(Repeat::Monthly(days));
        return i + 2;
    }
    let is_monthly =
        facts.repeats.iter().any(|repeat| matches!(repeat, Repeat::Monthly(_) | Repeat::Months(..)));
    // "Every 15th", and "monthly on the first".
    if is_every && is_digit || is_monthly && from > 0 && first > 0 {
        facts.repeats.push(Repeat::Monthly(days));
        return i;
    }
    // "On the 15th", and not "the 15th edition" or "on the 1st of May".
    if c.word(0) == "on"
        && is_digit
        && days.count_ones() == 1
        && month(c.word(i)).is_none()
        && c.word(i) != "of"
    {
        facts.days.push((Day::OfMonth(first), false));
        return i;
    }
    0
}

/// "1 December 2026", "December 1st", "2026-12-01".
fn date(c: &Cursor, facts: &mut Facts) -> usize {
    if OF_CONTENT.contains(&c.before()) {
        return 0;
    }
    let mut lead = usize::from(c.word(0) == "on");
    lead += usize::from(c.word(lead) == "the");
    let word = c.word(lead);
    let is_certain = c.before() != "for";
    if let Ok(at) = word.to_uppercase().parse::<jiff::civil::DateTime>()
        && word.len() >= 10
    {
        facts.days.push((Day::Date { year: Some(at.year()), month: at.month(), day: at.day() }, is_certain));
        if word.contains('t') {
            facts.times.push(Clock { hour: at.hour(), minute: at.minute() });
        }
        return lead + 1;
    }
    let parts: Vec<&str> = word.split(['/', '.', '-']).collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() == 3 && parts.iter().all(digits) && (parts[0].len() == 4 || parts[2].len() == 4) {
        facts.wrong(format!("I can't tell which day \"{}\" is. Write it as 2026-12-31.", c.said(lead + 1)));
        return lead + 1;
    }
    let Some((month, day, year, read)) = date_at(c, lead) else { return 0 };
    // "March 5" may be a date, and "may 5" is one only if something else says so.
    if word == "may" && lead == 0 && year.is_none() && ordinal(c.word(1)).is_none() {
        return 0;
    }
    facts.days.push((Day::Date { year, month, day }, is_certain && (lead > 0 || c.follows || c.at == 0)));
    read
}

/// Month, day, year if it is named, and how many words they have from the cursor on.
fn date_at(c: &Cursor, i: usize) -> Option<(i8, i8, Option<i16>, usize)> {
    let day = |word: &str| {
        ordinal(word).or_else(|| number(word).and_then(|day| i8::try_from(day).ok())).filter(|day| *day > 0)
    };
    let of = usize::from(c.word(i + 1) == "of");
    let (month, day, end) = match (day(c.word(i)), month(c.word(i + 1 + of))) {
        (Some(day), Some(month)) => (month, day, i + 2 + of),
        _ => (month(c.word(i))?, day(c.word(i + 1))?, i + 2),
    };
    let year = number(c.word(end))
        .filter(|year| (1_000..=9_999).contains(year))
        .and_then(|year| i16::try_from(year).ok());
    Some((month, day, year, end + usize::from(year.is_some())))
}

/// "Tomorrow", "tonight", "this evening", "yesterday", "3 days ago", "next week".
fn relative_day(c: &Cursor, facts: &mut Facts) -> usize {
    if OF_CONTENT.contains(&c.before()) {
        return 0;
    }
    let is_certain = c.before() != "for";
    let (word, next) = (c.word(0), c.word(1));
    let the = usize::from(word == "the");
    let after = [c.word(the), c.word(the + 1), c.word(the + 2)];
    let (days, read) = match (word, next) {
        ("today", _) => (0, 1),
        ("tomorrow", _) => (1, 1),
        ("tonight", _) => {
            facts.part = part("night");
            (0, 1)
        }
        ("this", next) if part(next).is_some() => {
            facts.part = part(next);
            (0, 2)
        }
        _ if after == ["day", "after", "tomorrow"] => (2, the + 3),
        ("yesterday", _) => {
            facts.days.push((Day::Past(c.said(1)), false));
            return 1;
        }
        (count, length) if number(count).is_some() && unit(length).is_some() && c.word(2) == "ago" => {
            facts.days.push((Day::Past(c.said(3)), false));
            return 3;
        }
        ("next", "week" | "month" | "quarter" | "year") if is_certain => {
            facts.vague = Some(c.said(2));
            return 2;
        }
        ("later" | "soon" | "sometime" | "someday", _) if !c.has_word(1) => {
            facts.vague = Some(c.said(1));
            return 1;
        }
        _ => return 0,
    };
    facts.days.push((Day::After(days), is_certain));
    read
}

/// "In 2 hours", "in an hour", "3 days from now".
fn offset(c: &Cursor, facts: &mut Facts) -> usize {
    let count = |word: &str| if ["a", "an"].contains(&word) { Some(1) } else { number(word) };
    let found = match (c.word(0), c.word(1), c.word(2), c.word(3)) {
        ("in", "half", "an" | "a", "hour") => Some((30, Unit::Minute, 4)),
        ("in", n, u, _) if count(n).is_some() && unit(u).is_some() => {
            count(n).zip(unit(u)).map(|(n, u)| (n, u, 3))
        }
        ("in", glue, _, _) => glued(glue).and_then(|(n, u)| Some((n, unit(u)?, 2))),
        (n, u, "from", "now") => count(n).zip(unit(u)).map(|(n, u)| (n, u, 4)),
        _ => None,
    };
    let Some((count, unit, read)) = found else { return 0 };
    if count == 0 || unit == Unit::Second {
        facts.wrong(format!("I can't plan \"{}\": the shortest time is one minute.", c.said(read)));
        return read;
    }
    facts.days.push((Day::In(count, unit), matches!(unit, Unit::Minute | Unit::Hour)));
    read
}

/// "At 9", "8:30", "5 pm", "at noon", "at half past 8", and more of them after "and".
fn clock(c: &Cursor, facts: &mut Facts) -> usize {
    let is_led = c.word(0) == "at";
    if is_led && AT_VERBS.contains(&c.before()) || !is_led && OF_CONTENT.contains(&c.before()) {
        return 0;
    }
    let mut i = usize::from(is_led);
    if is_led && ["about", "around", "exactly"].contains(&c.word(i)) {
        i += 1;
    }
    match time_at(c, i, is_led) {
        Time::None => return 0,
        Time::Wrong(read) => {
            facts.wrong(format!(
                "I did not understand the time \"{}\". A day has the times 0:00 to 23:59.",
                c.said(read)
            ));
            return read;
        }
        Time::At(time, read) => {
            facts.times.push(time);
            i = read;
        }
    }
    loop {
        let joined = usize::from(c.word(i) == "and");
        let at = usize::from(c.word(i + joined) == "at");
        match time_at(c, i + joined + at, joined > 0) {
            Time::At(time, read) => {
                facts.times.push(time);
                i = read;
            }
            _ => return i,
        }
    }
}

enum Time {
    None,
    /// A time of day, and the number of words up to its end.
    At(Clock, usize),
    Wrong(usize),
}

/// `is_led`: whether a plain number is a time.
fn time_at(c: &Cursor, i: usize, is_led: bool) -> Time {
    let word = c.word(i);
    match word {
        "noon" | "midday" if is_led || c.follows => return Time::At(Clock { hour: 12, minute: 0 }, i + 1),
        "midnight" if is_led || c.follows => return Time::At(Clock { hour: 0, minute: 0 }, i + 1),
        "half" | "quarter" if c.word(i + 1) == "past" => {
            return past(c, i, if word == "half" { 30 } else { 15 });
        }
        _ => {}
    }
    let unit_of_day = |word: &str| match word.replace('.', "").as_str() {
        "am" => Some(0),
        "pm" => Some(12),
        _ => None,
    };
    let (digits, suffix) = match word.find(|c: char| c.is_alphabetic()) {
        Some(at) if at > 0 => (&word[..at], Some(&word[at..])),
        _ => (word, None),
    };
    let (hour, minute) = match digits.split_once([':', '.']) {
        Some((hour, minute)) if digits.contains(':') || is_led => (hour, Some(minute)),
        Some(_) => return Time::None,
        None => (digits, None),
    };
    let (Some(hour), Some(minute_number)) = (number(hour), number(minute.unwrap_or("0"))) else {
        return Time::None;
    };
    let (half, read) = match (suffix.map(unit_of_day), unit_of_day(c.word(i + 1)), c.word(i + 1)) {
        (Some(None), _, _) => return Time::None,
        (Some(Some(half)), _, _) => (Some(half), i + 1),
        (None, Some(half), _) => (Some(half), i + 2),
        (None, None, "o'clock" | "oclock" | "h") => (None, i + 2),
        (None, None, next) => {
            let is_content = minute.is_none() && is_of_things(next);
            if minute.is_none() && (!is_led || is_content) {
                return Time::None;
            }
            (None, i + 1)
        }
    };
    let hour = match half {
        None => Some(hour).filter(|hour| *hour < 24),
        Some(half) => Some(hour % 12 + half).filter(|_| (1..=12).contains(&hour)),
    };
    let is_minute = minute.is_none_or(|minute| minute.len() == 2) && minute_number < 60;
    match (hour.and_then(|hour| i8::try_from(hour).ok()), i8::try_from(minute_number)) {
        (Some(hour), Ok(minute)) if is_minute => Time::At(Clock { hour, minute }, read),
        // Without "at", it may be a score or a ratio.
        _ if is_led || half.is_some() || c.follows => Time::Wrong(read),
        _ => Time::None,
    }
}

/// "Half past 8".
fn past(c: &Cursor, i: usize, minute: i8) -> Time {
    match number(c.word(i + 2)).and_then(|hour| i8::try_from(hour).ok()) {
        Some(hour @ 0..=23) => {
            let (hour, read) = match c.word(i + 3) {
                "pm" => (hour % 12 + 12, i + 4),
                "am" => (hour % 12, i + 4),
                _ => (hour, i + 3),
            };
            Time::At(Clock { hour, minute }, read)
        }
        _ => Time::None,
    }
}

/// Whether a number before this word counts things: "at 5 shops", "at 20 percent".
fn is_of_things(word: &str) -> bool {
    let is_plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && weekday(word).is_none();
    is_plural && !ADVERBS.iter().any(|(name, _)| *name == word)
        || ["percent", "euro", "dollar"].contains(&word)
}

/// "In the morning", "at night", and "morning" after a day.
fn part_of_day(c: &Cursor, facts: &mut Facts) -> usize {
    let (named, read) = match (c.word(0), c.word(1)) {
        ("in", "the") => (part(c.word(2)), 3),
        ("at", "night") => (part("night"), 2),
        (word, _) if c.follows => (part(word), 1),
        _ => (None, 0),
    };
    let Some(named) = named else { return 0 };
    facts.part = Some(named);
    read
}

/// "In Berlin", "New York time", "Europe/Berlin", after a time or at the beginning.
fn zone(c: &Cursor, facts: &mut Facts) -> usize {
    let is_in = usize::from(["in", "at"].contains(&c.word(0)));
    let word = c.word(is_in);
    if ["my", "local", "our"].contains(&word)
        && ["time", "timezone"].contains(&c.word(is_in + 1))
        && c.follows
    {
        return is_in + 2;
    }
    let found = (1..=3).rev().find_map(|count| {
        let name: Vec<&str> = (is_in..is_in + count).map(|i| c.word(i)).collect();
        let zone = if count == 1 && word.contains('/') { timezone_named(word).ok() } else { None };
        Some((zone.or_else(|| zone_of(&name.join(" ")).map(str::to_owned))?, is_in + count))
    });
    let Some((zone, mut read)) = found else { return unknown_zone(c, facts, is_in) };
    let is_time = ["time", "timezone"].contains(&c.word(read));
    read += usize::from(is_time);
    let is_named = is_time || word.contains('/') || c.follows && (is_in > 0 || c.is_capital(0));
    // "In Berlin, every day at 9".
    let mut next = Facts::default();
    let mut begins = || c.at == 0 && is_in > 0 && every(&Cursor { at: read, ..*c }, &mut next) > 0;
    if !is_named && !begins() {
        return 0;
    }
    match &facts.zone {
        Some(other) if *other != zone => {
            facts.wrong("I understood two time zones. Name one of them.".to_owned());
        }
        _ => facts.zone = Some(zone),
    }
    read
}

/// What looks like a zone after a time, and is none.
fn unknown_zone(c: &Cursor, facts: &mut Facts, is_in: usize) -> usize {
    let word = c.word(is_in);
    let is_offset = ["utc", "gmt"]
        .iter()
        .any(|name| word.strip_prefix(name).is_some_and(|rest| rest.starts_with(['+', '-'])));
    let is_place = is_in > 0
        && c.word(0) == "in"
        && c.is_capital(is_in)
        && !NO_PLACES.contains(&word)
        && !word.starts_with(|c: char| c.is_ascii_digit());
    let is_path =
        word.split_once('/').is_some_and(|(area, _)| ["europe", "america", "asia", "africa"].contains(&area));
    if !c.follows || !(is_offset || is_place || is_path || ZONE_LETTERS.contains(&word)) {
        return 0;
    }
    let said = Cursor { at: c.at + is_in, ..*c }.said(1);
    facts.wrong(format!(
        "I don't know the time zone of \"{said}\". Name a large city or an IANA name, such as Europe/Berlin."
    ));
    is_in + 1
}
