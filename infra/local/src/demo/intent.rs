//! Finds out what a sentence wants, by its words.

use domain::assets::AssetType;

use super::when::{Reading, When};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// A result now.
    Create,
    /// Work for later.
    Schedule,
    /// A list of what exists.
    ListActions,
    /// Why something did not run.
    Explain,
    /// How the habits of the person are going.
    ListPractices,
    Talk,
}

const CREATE: [&str; 9] =
    ["create", "write", "draft", "compose", "make", "prepare", "produce", "generate", "build"];
const SCHEDULE: [&str; 4] = ["schedule", "remind", "reminder", "plan"];
/// The first words of a question that asks for no work.
const ASKING: [&str; 12] =
    ["why", "what", "when", "how", "which", "who", "did", "does", "has", "is", "are", "explain"];

/// What a sentence wants. `reading`: the times that it names.
pub fn intent(text: &str, reading: &Reading) -> Intent {
    let words = words(text);
    let has = |word: &str| words.iter().any(|w| w == word);
    let first = words.first().map_or("", String::as_str);
    let of_habits = ["habit", "habits", "streak", "streaks"].iter().any(|word| has(word))
        || has("my") && (has("practice") || has("practices"));
    let shows = ["show", "list", "tell"].contains(&first);
    let creates = words.iter().any(|word| CREATE.contains(&word.as_str()));
    if of_habits && (asks(text) || shows) && !reading.is_certain && !creates {
        return Intent::ListPractices;
    }
    if explains(&words) {
        return Intent::Explain;
    }
    let lists = ["what", "what's", "which", "list", "show", "is", "are", "have"].iter().any(|word| has(word));
    let of_actions = ["actions", "scheduled", "planned", "upcoming"].iter().any(|word| has(word));
    if lists && of_actions || first.starts_with("when") || has("run") && has("next") {
        return Intent::ListActions;
    }
    if ASKING.contains(&first) {
        return Intent::Talk;
    }
    let first_verb = words.iter().find(|w| CREATE.contains(&w.as_str()) || SCHEDULE.contains(&w.as_str()));
    let creates = first_verb.is_some_and(|word| CREATE.contains(&word.as_str()));
    // "Write a plan" is writing; "write a report every week" is not.
    let is_later =
        reading.is_certain || reading.leads || ["recurring", "schedule", "remind"].iter().any(|w| has(w));
    match (creates, first_verb.is_some(), &reading.when) {
        _ if is_later => Intent::Schedule,
        (true, ..) => Intent::Create,
        (_, true, _) | (_, _, When::At(_)) => Intent::Schedule,
        _ => Intent::Talk,
    }
}

/// Whether the sentence asks why something did not run: "Why did it not run?", "What was missed?", "Did anything fail?"
fn explains(words: &[String]) -> bool {
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let is_question = words.first().is_some_and(|first| ASKING.contains(&first.as_str()));
    let of_runs = has(&[
        "run", "ran", "runs", "running", "happen", "happened", "start", "started", "execute", "executed",
        "work", "sent",
    ]);
    let is_negative = has(&["not", "didn't", "doesn't", "won't", "isn't", "never", "nothing"]);
    let went_wrong = has(&["missed", "skipped", "held", "failed", "fail", "paused", "blocked"]);
    is_question && (went_wrong || of_runs && (has(&["why"]) || is_negative))
}

/// Whether the sentence only greets or thanks, or has no words.
pub fn greets(text: &str) -> bool {
    const GREETINGS: [&str; 16] = [
        "hello", "hi", "hey", "good", "morning", "evening", "day", "there", "thanks", "thank", "you", "ok",
        "okay", "please", "help", "bye",
    ];
    words(text).iter().all(|word| GREETINGS.contains(&word.as_str()))
}

/// Whether the sentence is a question that asks for no work.
pub fn asks(text: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::super::when;
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
            ("When does it run next?", Intent::ListActions),
            ("Why did it not run?", Intent::Explain),
            ("why didn't my report run this morning", Intent::Explain),
            ("What was missed?", Intent::Explain),
            ("Did anything fail?", Intent::Explain),
            ("Which actions are paused?", Intent::Explain),
            ("Why is the sky blue?", Intent::Talk),
            ("Write a report on why the run failed", Intent::Create),
            ("How are my habits going?", Intent::ListPractices),
            ("What's my reading streak?", Intent::ListPractices),
            ("Show my practices", Intent::ListPractices),
            ("Show me my habits.", Intent::ListPractices),
            ("How do I practice the piano?", Intent::Talk),
            ("Write a report about my habits", Intent::Create),
            ("Can you write a text about habits?", Intent::Create),
            ("Ask me every evening at 8: how are my habits?", Intent::Schedule),
            ("Are any actions planned?", Intent::ListActions),
            ("Send me the news every morning", Intent::Schedule),
            ("Call Ann tomorrow at 5 pm", Intent::Schedule),
            ("At 9 write a report", Intent::Schedule),
            ("Write an agenda for the meeting on Monday", Intent::Create),
            ("Write an agenda for the meeting at 9", Intent::Create),
            ("Write a note that names every price change", Intent::Create),
            ("Yesterday was nice", Intent::Talk),
            ("See you later", Intent::Talk),
            ("How do you work?", Intent::Talk),
            ("Hello there", Intent::Talk),
            ("What can you do?", Intent::Talk),
            ("", Intent::Talk),
        ] {
            assert_eq!(intent(text, &when::read(text, None)), expected, "{text}");
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
