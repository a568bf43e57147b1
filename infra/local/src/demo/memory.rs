//! What the demo remembers, by plain rules: sentences in which the person speaks of themselves become facts, and the facts of a week
//! become lines of the long-term memory.

use domain::memory::{MAX_FACTS, learn, tidy};
use serde_json::{Value, json};

use super::intent;
use super::reply::{DemoReply, shortened};

/// What a title ends with, so that a person who reads it knows that no language model has chosen the facts.
const BY_DEMO: &str = " (demo model)";

/// The heading of what the demo has taken into the long-term memory.
const HEADING: &str = "Notes of the demo model";

/// The longest fact, in characters.
const LONGEST: usize = 300;

/// The longest part of a title that comes from the conversation, in characters.
const LONGEST_TITLE: usize = 60;

/// Words that begin a request.
const REQUESTS: [&str; 30] = [
    "add", "build", "can", "change", "check", "compose", "could", "create", "do", "draft", "explain", "find",
    "generate", "give", "help", "list", "look", "make", "please", "plan", "prepare", "produce", "remind",
    "schedule", "send", "show", "tell", "will", "would", "write",
];

/// Words after "I" that show a request, not a statement: "I want a report", "I need you to".
const WISHES: [&str; 3] = ["want", "need", "wish"];

/// Words that a first name or a street may have before a full stop.
const SHORT_FORMS: [&str; 8] = ["dr", "mr", "mrs", "ms", "prof", "st", "e.g", "i.e"];

/// Verbs that stay as they are after "the user".
const UNCHANGED: &str = "can could will would shall should may might must did had was went moved got made said told took came saw \
                         thought knew found began left felt became wrote ran paid lost won broke grew gave spent sold sent kept taught \
                         ate drank drove flew slept spoke chose forgot bought met built brought understood lived";

/// Verbs that may follow "and" in the same sentence: "I live in Porto and work at home".
const JOINED: &str =
    "live work study play teach run want need have prefer like love hate drink eat own speak";

/// Words between "I" and its verb.
const BETWEEN: &str = "always never often sometimes usually also just only really still now already currently mostly mainly both";

fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// The facts of a conversation, as the tool `save_facts` takes them.
pub fn facts(question: &str) -> DemoReply {
    let mut facts: Vec<Value> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    for (id, text) in said_by_person(question) {
        for sentence in sentences(&text) {
            if facts.len() == MAX_FACTS {
                break;
            }
            let Some(fact) = fact(sentence).filter(|fact| !known.contains(fact)) else { continue };
            facts.push(json!({"text": fact, "message_ids": [id]}));
            known.push(fact);
        }
    }
    let title = question.lines().next().and_then(|line| {
        line.strip_prefix("<conversation title=\"").and_then(|rest| rest.strip_suffix("\">"))
    });
    let whole = title.map_or("", str::trim);
    let mut title = shortened(whole, LONGEST_TITLE);
    if title.len() < whole.len() {
        // A name that is cut is another name, which nobody has said.
        title.truncate(title.rfind(' ').unwrap_or(0));
    }
    let title = if title.is_empty() { "Conversation" } else { title.trim_end() };
    call(learn::TOOL, json!({"title": format!("{title}{BY_DEMO}"), "facts": facts}))
}

/// The long-term memory with the facts of a week, as the tool `save_memory` takes them.
pub fn tidied(question: &str) -> DemoReply {
    let (memory, rest) = question.split_once("</memory>\n").unwrap_or(("", question));
    let mut sections: Vec<(String, Vec<Value>)> = Vec::new();
    let mut named: Vec<String> = Vec::new();
    for line in memory.lines().filter_map(|line| line.strip_prefix("> ")) {
        if let Some(title) = line.strip_prefix("## ") {
            sections.push((title.to_owned(), Vec::new()));
            continue;
        }
        // A line of the person has no ids, and stays by itself.
        let Some((text, ids)) = line.strip_prefix("- ").and_then(with_ids) else { continue };
        named.extend(ids.iter().map(|id| (*id).to_owned()));
        if sections.is_empty() {
            sections.push((String::new(), Vec::new()));
        }
        if let Some((_, lines)) = sections.last_mut() {
            lines.push(json!({"text": text, "facts": ids}));
        }
    }
    let of_week: Vec<(&str, &str)> = rest.lines().filter_map(of_fact).collect();
    let new = of_week.iter().filter(|(id, _)| !named.iter().any(|named| named == id));
    let new: Vec<Value> = new.map(|(id, text)| json!({"text": text, "facts": [id]})).collect();
    match sections.iter_mut().find(|(title, _)| title == HEADING) {
        Some((_, lines)) => lines.extend(new),
        None => sections.push((HEADING.to_owned(), new)),
    }
    let sections: Vec<Value> = sections
        .into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .map(|(title, lines)| json!({"title": title, "lines": lines}))
        .collect();
    let newest = of_week.len().saturating_sub(tidy::MAX_WEEK_LINES);
    let week: Vec<Value> =
        of_week[newest..].iter().map(|(id, text)| json!({"text": text, "facts": [id]})).collect();
    call(tidy::TOOL, json!({"sections": sections, "week": week}))
}

fn call(tool: &str, input: Value) -> DemoReply {
    DemoReply { text: String::new(), call: Some((tool.to_owned(), input)) }
}

/// The text and the ids of `text [fct_1, fct_2]`.
fn with_ids(line: &str) -> Option<(&str, Vec<&str>)> {
    let (text, ids) = line.strip_suffix(']')?.rsplit_once(" [")?;
    let ids: Vec<&str> = ids.split(", ").collect();
    ids.iter().all(|id| id.starts_with("fct_")).then_some((text, ids))
}

/// The id and the text of `> fct_1 (2026-11-26): text`.
fn of_fact(line: &str) -> Option<(&str, &str)> {
    let (head, text) = line.strip_prefix("> fct_")?.split_once("): ")?;
    let id = head.split_once(" (")?.0;
    Some((&line["> ".len().."> fct_".len() + id.len()], text))
}

/// The messages of the person that are shown: id and text.
fn said_by_person(question: &str) -> Vec<(String, String)> {
    let mut said: Vec<(String, String)> = Vec::new();
    let mut is_person = false;
    for line in question.lines() {
        if let Some(text) = line.strip_prefix("> ") {
            if let Some((_, whole)) = said.last_mut().filter(|_| is_person) {
                whole.push_str(text);
                whole.push('\n');
            }
            continue;
        }
        let by = line.strip_suffix(':').and_then(|head| head.split_once(" by "));
        let by = by.filter(|(_, by)| by.split([' ', ',']).next() == Some("user"));
        is_person = by.is_some();
        if let Some((id, _)) = by {
            said.push((id.to_owned(), String::new()));
        }
    }
    said
}

/// The sentences of a text, each with its last sign. A full stop inside a number or after a short form ends none.
fn sentences(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for line in text.lines() {
        let mut begin = 0;
        for (at, sign) in line.match_indices(['.', '!', '?']) {
            let (end, rest) = (at + sign.len(), &line[at + sign.len()..]);
            if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
                continue;
            }
            let last = line[begin..at].split_whitespace().next_back().unwrap_or_default().to_lowercase();
            if sign == "." && (SHORT_FORMS.contains(&last.as_str()) || goes_on(rest)) {
                continue;
            }
            all.push(line[begin..end].trim());
            begin = end;
        }
        all.push(line[begin..].trim());
    }
    all.retain(|sentence| !sentence.is_empty());
    all
}

/// Whether a text continues a sentence: it begins with a small letter. "i" begins one.
fn goes_on(rest: &str) -> bool {
    let next = rest.split_whitespace().next().unwrap_or_default();
    next.starts_with(char::is_lowercase) && !matches!(next, "i" | "i'm" | "i've" | "my")
}

/// What a sentence of the person says about them. `None` for questions, requests, what it says to the assistant, and what is not about
/// the person.
fn fact(sentence: &str) -> Option<String> {
    if sentence.ends_with('?') || intent::asks(sentence) || sentence.chars().count() > LONGEST {
        return None;
    }
    let sentence = sentence.trim_matches(|c: char| !c.is_alphanumeric()).replace('’', "'");
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let lower: Vec<String> = words.iter().map(|word| core(word).1.to_lowercase()).collect();
    let first = lower.first()?;
    let is_request = REQUESTS.contains(&first.as_str()) || lower.iter().any(|word| word == "please");
    let to_assistant = lower.iter().any(|word| matches!(word.as_str(), "you" | "your" | "you're" | "yours"));
    let wishes = |pair: &[String]| is_i(&pair[0]) && (WISHES.contains(&pair[1].as_str()) || pair[0] == "i'd");
    if is_request || to_assistant || lower.windows(2).any(wishes) {
        return None;
    }
    let is_about = |word: &String| {
        is_i(word) || matches!(word.as_str(), "my" | "we" | "we're" | "we've" | "we'll" | "our")
    };
    if !lower.iter().any(is_about) {
        return None;
    }
    let text = told(&words, &lower);
    let mut rest = text.chars();
    let begin: String = rest.next()?.to_uppercase().collect();
    let fact = format!("{begin}{}.", rest.as_str());
    (fact.chars().count() <= LONGEST).then_some(fact)
}

fn is_i(word: &str) -> bool {
    matches!(word, "i" | "i'm" | "i've" | "i'll" | "i'd" | "im" | "ive")
}

/// The signs before a word, the word, and the signs after it.
fn core(word: &str) -> (&str, &str, &str) {
    let is_inside = |c: char| c.is_alphanumeric();
    let Some(begin) = word.find(is_inside) else { return (word, "", "") };
    let end = word
        .rfind(is_inside)
        .map_or(word.len(), |at| at + word[at..].chars().next().map_or(1, char::len_utf8));
    (&word[..begin], &word[begin..end], &word[end..])
}

/// The verb that the sentence still needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaits {
    Nothing,
    /// The verb after "I".
    Verb,
    /// The verb after "I … and".
    Joined,
}

/// The sentence in the third person.
fn told(words: &[&str], lower: &[String]) -> String {
    let mut told: Vec<String> = Vec::new();
    let (mut awaits, mut of_person) = (Awaits::Nothing, false);
    for (word, plain) in words.iter().zip(lower) {
        let (before, own, after) = core(word);
        let awaited = std::mem::replace(&mut awaits, Awaits::Nothing);
        let new = match plain.as_str() {
            "i" => {
                (awaits, of_person) = (Awaits::Verb, true);
                "the user".to_owned()
            }
            "i'm" | "im" => "the user is".to_owned(),
            "i've" | "ive" => "the user has".to_owned(),
            "i'll" => "the user will".to_owned(),
            "my" => "the user's".to_owned(),
            "me" => "the user".to_owned(),
            "mine" => "the user's".to_owned(),
            "myself" => "themselves".to_owned(),
            "we" => {
                of_person = false;
                "the user and others".to_owned()
            }
            "we're" => "the user and others are".to_owned(),
            "we've" => "the user and others have".to_owned(),
            "we'll" => "the user and others will".to_owned(),
            "us" => "the user and others".to_owned(),
            "our" => "the user's".to_owned(),
            "and" | "or" | "but" if of_person => {
                awaits = Awaits::Joined;
                own.to_owned()
            }
            plain if awaited == Awaits::Verb && is_in(BETWEEN, plain) => {
                awaits = Awaits::Verb;
                own.to_owned()
            }
            _ if awaited == Awaits::Verb => third_person(own),
            plain if awaited == Awaits::Joined && is_in(JOINED, plain) => third_person(own),
            _ => own.to_owned(),
        };
        if after.contains([',', ';', ':']) {
            of_person = false;
        }
        told.push(format!("{before}{new}{after}"));
    }
    told.join(" ")
}

/// The form of a verb after "the user".
fn third_person(verb: &str) -> String {
    match verb.to_lowercase().as_str() {
        "am" => "is".to_owned(),
        "have" => "has".to_owned(),
        "do" => "does".to_owned(),
        "go" => "goes".to_owned(),
        "don't" => "does not".to_owned(),
        "haven't" => "has not".to_owned(),
        "were" => "was".to_owned(),
        lower if is_in(UNCHANGED, lower) || lower.ends_with("ed") || lower.contains('\'') => verb.to_owned(),
        lower
            if lower.ends_with("ss")
                || lower.ends_with("sh")
                || lower.ends_with("ch")
                || lower.ends_with('x') =>
        {
            format!("{verb}es")
        }
        lower
            if lower.ends_with('y')
                && !lower.ends_with("ay")
                && !lower.ends_with("ey")
                && !lower.ends_with("oy")
                && !lower.ends_with("uy") =>
        {
            format!("{}ies", &verb[..verb.len() - 1])
        }
        lower if lower.chars().all(char::is_alphabetic) && !lower.ends_with('s') => format!("{verb}s"),
        _ => verb.to_owned(),
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
