//! What a program checks of the outputs of a run, without a model.
//!
//! The checks are deterministic: the same outputs and the same date give the same [`Report`]. They accept any text and never
//! panic, because a model has written the outputs, and strangers may have told it what to write.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::links::{self, Hosts};
use crate::text::json_schema::Schema;
use crate::validate::FieldErrors;
use crate::work::Condition;

/// How many conditions an action may have.
pub const MAX_CONDITIONS: usize = 10;

/// The largest JSON of all conditions of an action, in bytes. They are stored in the action's record.
pub const MAX_BYTES: usize = 32 * 1024;

/// The highest number of words that a condition may ask for.
pub const MAX_WORDS: u32 = 50_000;

/// How many headings, or hosts, a condition may name.
const MAX_NAMED: usize = 20;

/// The longest heading, in characters.
const MAX_HEADING: usize = 200;

/// The longest host name, in characters.
const MAX_HOST: usize = 253;

/// The largest JSON Schema, in bytes.
const MAX_SCHEMA: usize = 16 * 1024;

/// The largest output that is read as JSON, in bytes. Values need much more memory than their text.
pub const MAX_JSON: usize = 1024 * 1024;

/// Checks conditions that a person or a model has written. The errors name fields such as `conditions[2].words`.
pub fn check(errors: &mut FieldErrors, conditions: &[Condition]) {
    if conditions.len() > MAX_CONDITIONS {
        errors
            .add("conditions", format!("must have at most {MAX_CONDITIONS} items, has {}", conditions.len()));
        return;
    }
    for (at, condition) in conditions.iter().enumerate() {
        errors.nest(&format!("conditions[{at}]"), valid(condition));
    }
    let bytes = json!(conditions).to_string().len();
    if bytes > MAX_BYTES {
        errors.add("conditions", format!("must be at most {MAX_BYTES} bytes of JSON, is {bytes}"));
    }
}

fn valid(condition: &Condition) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    let listed = |errors: &mut FieldErrors, field: &str, list: &[String]| {
        if !(1..=MAX_NAMED).contains(&list.len()) {
            errors.add(field, format!("must have 1 to {MAX_NAMED} items, has {}", list.len()));
            return false;
        }
        true
    };
    match condition {
        Condition::MinWords { words } => {
            if !(1..=MAX_WORDS).contains(words) {
                errors.add("words", format!("must be 1 to {MAX_WORDS}, is {words}"));
            }
        }
        Condition::NamesToday => {}
        Condition::Headings { headings } => {
            if listed(&mut errors, "headings", headings) {
                for (at, heading) in headings.iter().enumerate() {
                    let field = format!("headings[{at}]");
                    errors.length(&field, heading, 1, MAX_HEADING);
                    let text = plain_heading(heading);
                    if !heading.trim().is_empty() && (text.is_empty() || text.contains(['\n', '\r'])) {
                        errors.add(field, "must be the text of a heading, on one line");
                    }
                }
            }
        }
        Condition::Json { schema } => {
            let bytes = schema.to_string().len();
            if bytes > MAX_SCHEMA {
                errors.add("schema", format!("must be at most {MAX_SCHEMA} bytes, is {bytes}"));
            } else {
                errors.nest("schema", Schema::new(schema.clone()).map(|_| ()));
            }
        }
        Condition::LinksOnlyTo { hosts } => {
            if listed(&mut errors, "hosts", hosts) {
                for (at, host) in hosts.iter().enumerate() {
                    let field = format!("hosts[{at}]");
                    errors.length(&field, host, 1, MAX_HOST);
                    if !host.trim().is_empty() && links::host(host).is_none() {
                        errors.add(
                            field,
                            "must be a host name such as example.com, without scheme, port, path and wildcards",
                        );
                    }
                }
            }
        }
    }
    errors.into_result(())
}

/// What a run is told about its conditions, as a list in Markdown. Empty if there are none.
#[must_use]
pub fn told(conditions: &[Condition]) -> String {
    conditions.iter().map(|condition| format!("- {}\n", in_words(condition))).collect()
}

/// A condition as a sentence.
fn in_words(condition: &Condition) -> String {
    match condition {
        Condition::MinWords { words } => format!("At least one output has at least {words} words."),
        Condition::NamesToday => {
            "At least one output names the date on which this run began, as YYYY-MM-DD or with the day, \
                                  the English name of the month and the year."
                .to_owned()
        }
        Condition::Headings { headings } => {
            format!("At least one output has all of these Markdown headings: {}.", quoted(headings))
        }
        Condition::Json { schema } => format!(
            "At least one output is JSON, without a code fence or other text around it, that matches this JSON Schema: {schema}"
        ),
        Condition::LinksOnlyTo { hosts } => format!(
            "In all outputs, all links and URLs lead to these hosts or their subdomains: {}. The text names no other host, with or \
             without https://. Links within an output are permitted. Scripts are not.",
            hosts.join(", ")
        ),
    }
}

fn quoted<T: AsRef<str>>(texts: &[T]) -> String {
    texts.iter().map(|text| format!("\"{}\"", text.as_ref())).collect::<Vec<_>>().join(", ")
}

/// What a check of all outputs has found. It is stored as a step of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What is missing for each condition that is not met, in words.
    #[serde(default)]
    pub unmet: Vec<String>,
}

impl Report {
    /// As a step stores it.
    #[must_use]
    pub fn to_text(&self) -> String {
        json!(self).to_string()
    }

    /// # Errors
    /// If the text is not a report.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// A check of the outputs of a run, one output after the other.
#[derive(Clone, Debug)]
pub struct Check {
    states: Vec<State>,
    today: Date,
}

#[derive(Clone, Debug)]
struct State {
    condition: Condition,
    met: bool,
    /// How near the nearest output has come. The lowest is the nearest.
    distance: usize,
    /// What is missing in the nearest output.
    missing: Option<String>,
}

impl Check {
    /// `today` is the date on which the run began.
    #[must_use]
    pub fn new(conditions: &[Condition], today: Date) -> Self {
        let state = |condition: &Condition| State {
            // Without outputs, no output has a foreign link.
            met: matches!(condition, Condition::LinksOnlyTo { .. }),
            condition: condition.clone(),
            distance: usize::MAX,
            missing: None,
        };
        Self { states: conditions.iter().map(state).collect(), today }
    }

    /// Looks at the next output.
    pub fn output(&mut self, title: &str, text: &str) {
        for state in &mut self.states {
            let of_all = matches!(state.condition, Condition::LinksOnlyTo { .. });
            if state.met != of_all {
                continue;
            }
            let Err(Missing { distance, what }) = look(&state.condition, text, self.today) else {
                state.met = true;
                continue;
            };
            state.met = false;
            if state.missing.is_none() || distance < state.distance {
                state.distance = distance;
                state.missing = Some(format!("\"{title}\" {what}"));
            }
        }
    }

    /// What is missing after all outputs.
    #[must_use]
    pub fn report(&self) -> Report {
        let unmet = self.states.iter().filter(|state| !state.met).map(|state| {
            let condition = match &state.condition {
                Condition::MinWords { words } => format!("no output has at least {words} words"),
                Condition::NamesToday => format!(
                    "no output names the date {} (write for example {0} or {})",
                    self.today,
                    self.today.strftime("%-d %B %Y")
                ),
                Condition::Headings { headings } => {
                    format!("no output has all of the headings {}", quoted(headings))
                }
                Condition::Json { .. } => "no output is JSON that matches the JSON Schema".to_owned(),
                Condition::LinksOnlyTo { hosts } => {
                    format!("links may lead only to {} and their subdomains", hosts.join(", "))
                }
            };
            match &state.missing {
                Some(missing) => format!("{condition}: {missing}"),
                None => condition,
            }
        });
        Report { unmet: unmet.collect() }
    }
}

/// What an output lacks.
struct Missing {
    distance: usize,
    /// Follows the title of the output.
    what: String,
}

fn look(condition: &Condition, text: &str, today: Date) -> Result<(), Missing> {
    let missing = |distance: usize, what: String| Err(Missing { distance, what });
    match condition {
        Condition::MinWords { words } => {
            let (least, has) = (*words as usize, words_of(text));
            if has >= least { Ok(()) } else { missing(least - has, format!("has {has}")) }
        }
        Condition::NamesToday => {
            if names(text, today) {
                Ok(())
            } else {
                missing(0, "does not name it".to_owned())
            }
        }
        Condition::Headings { headings } => {
            let has = headings_of(text);
            let lacks: Vec<&String> =
                headings.iter().filter(|name| !has.contains(&comparable(name))).collect();
            if lacks.is_empty() {
                return Ok(());
            }
            missing(lacks.len(), format!("lacks {}", quoted(&lacks)))
        }
        Condition::Json { schema } => matches_schema(schema, text).or_else(|what| missing(0, what)),
        Condition::LinksOnlyTo { hosts } => {
            let found = links::foreign(text, &Hosts::of(hosts));
            if found.is_empty() {
                return Ok(());
            }
            missing(0, format!("has {}", found.join(", ")))
        }
    }
}

/// The number of words: parts between white space that have a letter or a digit. Chinese and Japanese are written without
/// spaces, so each of their characters counts as a word.
fn words_of(text: &str) -> usize {
    let of_part = |part: &str| {
        let single = part.chars().filter(|char| is_word(*char)).count();
        let rest = part.chars().any(|char| char.is_alphanumeric() && !is_word(char));
        single + usize::from(rest)
    };
    text.split_whitespace().map(of_part).sum()
}

/// Whether a character is a word by itself.
fn is_word(char: char) -> bool {
    matches!(char, '\u{3041}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
        && char.is_alphanumeric()
}

/// Whether a text names a date in one of the accepted forms. Case does not matter, and white space may be longer.
fn names(text: &str, date: Date) -> bool {
    let mut simple = String::with_capacity(text.len());
    for char in text.chars() {
        if !char.is_whitespace() {
            simple.extend(char.to_lowercase());
        } else if !simple.ends_with(' ') {
            simple.push(' ');
        }
    }
    date_forms(date).iter().any(|form| {
        simple.match_indices(form.as_str()).any(|(at, _)| {
            let before = simple[..at].chars().next_back();
            let after = simple[at + form.len()..].chars().next();
            // A time may follow: 2026-11-25T09:00.
            !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(|char| char.is_ascii_digit())
        })
    })
}

/// The accepted forms of a date, in lower case.
fn date_forms(date: Date) -> Vec<String> {
    let (day, year) = (date.day(), date.year());
    let ordinal = match day {
        1 | 21 | 31 => "st",
        2 | 22 => "nd",
        3 | 23 => "rd",
        _ => "th",
    };
    let name = date.strftime("%B").to_string().to_lowercase();
    let short = &name[..3];
    let mut forms = vec![date.to_string()];
    let days = [format!("{day}"), format!("{day:02}"), format!("{day}{ordinal}")];
    let months = [name.clone(), short.to_owned(), format!("{short}.")];
    for day in &days {
        for month in &months {
            forms.push(format!("{day} {month} {year}"));
            forms.push(format!("{day} of {month} {year}"));
            forms.push(format!("{month} {day}, {year}"));
            forms.push(format!("{month} {day} {year}"));
        }
    }
    for day in &days[..2] {
        for month in [format!("{}", date.month()), format!("{:02}", date.month())] {
            forms.push(format!("{day}.{month}.{year}"));
            forms.push(format!("{day}/{month}/{year}"));
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

/// The text of a heading without `#` and white space around it.
fn plain_heading(heading: &str) -> &str {
    heading.trim().trim_start_matches('#').trim_end_matches('#').trim()
}

fn comparable(heading: &str) -> String {
    plain_heading(heading).to_lowercase()
}

/// The headings of a Markdown text, as [`comparable`] writes them. Lines in fenced code are no headings.
fn headings_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut above = "";
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let bare = line.trim();
        let line_above = std::mem::take(&mut above);
        if let Some((mark, length)) = fence_of(bare).filter(|_| indent < 4) {
            match fence {
                None => fence = Some((mark, length)),
                Some((open, least)) if open == mark && length >= least && bare.chars().all(|c| c == mark) => {
                    fence = None;
                }
                Some(_) => {}
            }
            continue;
        }
        if fence.is_some() || indent >= 4 || bare.is_empty() {
            continue;
        }
        let level = bare.len() - bare.trim_start_matches('#').len();
        if (1..=6).contains(&level) && bare[level..].chars().next().is_none_or(char::is_whitespace) {
            found.push(comparable(bare));
        } else if !line_above.is_empty() && (bare.chars().all(|c| c == '=') || bare.chars().all(|c| c == '-'))
        {
            found.push(comparable(line_above));
        } else {
            above = bare;
        }
    }
    found
}

/// The mark and the length of a fence of code that a line begins with.
fn fence_of(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|char| *char == mark).count();
    // Code in a line may begin with three backticks, too: then there are more of them later.
    let is_inline = mark == '`' && line[length..].contains('`');
    (length >= 3 && !is_inline).then_some((mark, length))
}

/// # Errors
/// Why a text is not JSON that matches the schema. The words follow the title of an output.
fn matches_schema(schema: &Value, text: &str) -> Result<(), String> {
    if text.len() > MAX_JSON {
        return Err(format!("has more than {MAX_JSON} bytes"));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| format!("is not valid JSON ({error})"))?;
    // The schema was checked when the action was defined. If a later version knows fewer keywords, nothing matches.
    let schema = Schema::new(schema.clone())
        .map_err(|errors| format!("has a schema that is not supported ({errors})"))?;
    schema.check(&value).map_err(|why| format!("does not match: {why}"))
}
