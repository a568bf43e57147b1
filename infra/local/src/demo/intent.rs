//! Finds out what a sentence wants, by its words.

use domain::assets::AssetType;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// A result now.
    Create,
    /// Work for later.
    Schedule,
    /// A list of what exists.
    ListActions,
    Talk,
}

const CREATE: [&str; 9] =
    ["create", "write", "draft", "compose", "make", "prepare", "produce", "generate", "build"];
const SCHEDULE: [&str; 9] =
    ["schedule", "remind", "reminder", "plan", "daily", "weekly", "monthly", "hourly", "recurring"];
const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

pub fn intent(text: &str) -> Intent {
    let words = words(text);
    let has = |word: &str| words.iter().any(|w| w == word);
    let lists = ["what", "which", "list", "show"].iter().any(|word| has(word));
    let of_actions = has("actions") || has("scheduled") || has("planned");
    if lists && of_actions {
        return Intent::ListActions;
    }
    let first_verb = words.iter().find(|w| CREATE.contains(&w.as_str()) || SCHEDULE.contains(&w.as_str()));
    let creates = first_verb.is_some_and(|word| CREATE.contains(&word.as_str()));
    // "Write a plan" is writing; "write a report every week" is not.
    let recurs = has("every")
        || ["daily", "weekly", "monthly", "hourly", "recurring", "schedule", "remind"].iter().any(|w| has(w));
    match (creates, recurs || first_verb.is_some()) {
        (true, _) if !recurs => Intent::Create,
        (_, true) => Intent::Schedule,
        _ => Intent::Talk,
    }
}

/// Whether the sentence is a question that asks for no work.
pub fn asks(text: &str) -> bool {
    const ASKING: [&str; 11] =
        ["why", "what", "when", "how", "which", "who", "did", "does", "has", "is", "explain"];
    text.trim_end().ends_with('?')
        || words(text).first().is_some_and(|first| ASKING.contains(&first.as_str()))
}

/// Lower-case words without punctuation.
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != ':')
        .map(|word| word.trim_matches([':', '\'']).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

pub fn asset_type(text: &str) -> AssetType {
    let words = words(text);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(&["email", "e-mail", "mail", "newsletter"]) {
        AssetType::Email
    } else if has(&["prompt"]) {
        AssetType::Prompt
    } else if has(&["code", "script", "function", "program"]) {
        AssetType::Code
    } else {
        AssetType::Document
    }
}

/// The subject: the sentence without polite words, verbs and articles, beginning with a capital letter.
pub fn subject(text: &str) -> String {
    const SKIPPED: [&str; 23] = [
        "please", "can", "could", "would", "will", "you", "i", "we", "want", "need", "like", "to", "me",
        "us", "my", "our", "a", "an", "the", "some", "hello", "hi", "now",
    ];
    let sentence =
        text.trim().split(['\n', '.', '?', '!']).find(|part| !part.trim().is_empty()).unwrap_or("").trim();
    let skipped = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        word.is_empty()
            || SKIPPED.contains(&word.as_str())
            || CREATE.contains(&word.as_str())
            || word == "schedule"
            || word == "remind"
    };
    let rest: Vec<&str> = sentence.split_whitespace().skip_while(skipped).collect();
    let rest = if rest.is_empty() { sentence.to_owned() } else { rest.join(" ") };
    let mut short: String = rest.chars().take(80).collect();
    if short.len() < rest.len() {
        short.truncate(short.rfind(' ').unwrap_or(short.len()));
    }
    let mut characters = short.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => "What was asked for".to_owned(),
    }
}

/// The schedule that the words describe, as far as they do so without a calendar.
pub fn schedule(text: &str) -> Option<Value> {
    let words = words(text);
    let has = |word: &str| words.iter().any(|w| w == word);
    let (hour, minute) = time(&words).unwrap_or((9, 0));
    let cron = |days: &str| Some(json!({"cron": format!("{minute} {hour} {days}")}));
    if let Some(place) = words.iter().position(|word| word == "every")
        && let [count, unit, ..] = &words[place + 1..]
        && let Ok(count @ 1..=99) = count.parse::<u32>()
        && let Some(letter) =
            unit.chars().next().filter(|letter| "mhd".contains(*letter)).filter(|_| !unit.starts_with("mo"))
    {
        return Some(json!({"every": format!("{count}{letter}")}));
    }
    let day = DAYS.iter().position(|day| words.iter().any(|word| word.trim_end_matches('s') == *day));
    if let Some(day) = day {
        return cron(&format!("* * {}", DAYS[day][..3].to_uppercase()));
    }
    if words.iter().any(|word| word.starts_with("weekday")) {
        return cron("* * MON-FRI");
    }
    let every = |unit: &str| words.windows(2).any(|pair| pair[0] == "every" && pair[1] == unit);
    if has("hourly") || every("hour") {
        Some(json!({"every": "1h"}))
    } else if has("daily") || every("day") || every("morning") || every("evening") {
        let evening = every("evening") && time(&words).is_none();
        if evening { Some(json!({"cron": "0 18 * * *"})) } else { cron("* * *") }
    } else if has("weekly") || every("week") {
        cron("* * MON")
    } else if has("monthly") || every("month") {
        cron("1 * *")
    } else if every("minute") {
        Some(json!({"every": "1m"}))
    } else {
        None
    }
}

/// The time after "at": `9`, `9am`, `17:30`, `5 pm`.
fn time(words: &[String]) -> Option<(u32, u32)> {
    let place = words.iter().position(|word| word == "at")?;
    let word = words.get(place + 1)?;
    let digits = word.trim_end_matches(|c: char| c.is_alphabetic());
    let suffix = match &word[digits.len()..] {
        "" => words.get(place + 2).map_or("", String::as_str),
        suffix => suffix,
    };
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match suffix {
        "pm" if hour < 12 => hour + 12,
        "am" if hour == 12 => 0,
        _ => hour,
    };
    (hour < 24 && minute < 60).then_some((hour, minute))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_is_wanted() {
        for (text, expected) in [
            ("Create a specification document", Intent::Create),
            ("please draft an email to the team", Intent::Create),
            ("Write a plan for the launch", Intent::Create),
            ("Write a market report every week", Intent::Schedule),
            ("Schedule a weekly report", Intent::Schedule),
            ("Remind me to water the plants", Intent::Schedule),
            ("Plan the posts for next month", Intent::Schedule),
            ("Do this every day at 9", Intent::Schedule),
            ("What is scheduled?", Intent::ListActions),
            ("List my actions", Intent::ListActions),
            ("Hello there", Intent::Talk),
            ("What can you do?", Intent::Talk),
            ("", Intent::Talk),
        ] {
            assert_eq!(intent(text), expected, "{text}");
        }
    }

    #[test]
    fn words_say_when() {
        for (text, expected) in [
            ("every day at 9", Some(json!({"cron": "0 9 * * *"}))),
            ("every day at 17:30", Some(json!({"cron": "30 17 * * *"}))),
            ("daily at 5 pm", Some(json!({"cron": "0 17 * * *"}))),
            ("daily at 12am", Some(json!({"cron": "0 0 * * *"}))),
            ("every evening", Some(json!({"cron": "0 18 * * *"}))),
            ("a weekly report", Some(json!({"cron": "0 9 * * MON"}))),
            ("every Friday at 8", Some(json!({"cron": "0 8 * * FRI"}))),
            ("on weekdays", Some(json!({"cron": "0 9 * * MON-FRI"}))),
            ("every month", Some(json!({"cron": "0 9 1 * *"}))),
            ("every 15 minutes", Some(json!({"every": "15m"}))),
            ("every 2 hours", Some(json!({"every": "2h"}))),
            ("every 2 months", None),
            ("hourly", Some(json!({"every": "1h"}))),
            ("every day at 99", Some(json!({"cron": "0 9 * * *"}))),
            ("tomorrow", None),
            ("every", None),
        ] {
            assert_eq!(schedule(text), expected, "{text}");
        }
    }

    #[test]
    fn a_subject_is_what_remains() {
        for (text, expected) in [
            ("Please write a poem about lamps. Thanks!", "Poem about lamps"),
            ("Can you create the API specification?", "API specification"),
            ("write", "Write"),
            ("", "What was asked for"),
            ("é", "É"),
        ] {
            assert_eq!(subject(text), expected, "{text}");
        }
        assert!(subject(&"word ".repeat(100)).chars().count() <= 80);
    }

    #[test]
    fn a_type_is_found_by_its_word() {
        for (text, expected) in [
            ("Draft an email to Ann", AssetType::Email),
            ("Write a prompt for reviews", AssetType::Prompt),
            ("Write a Python script", AssetType::Code),
            ("Write a report", AssetType::Document),
        ] {
            assert_eq!(asset_type(text), expected, "{text}");
        }
    }
}
