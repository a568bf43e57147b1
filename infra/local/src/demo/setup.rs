//! The conversation that sets an agent up: three answers, in any order and in any number of messages.

use serde_json::{Value, json};

use super::ask::Ask;
use super::intent;
use super::reply::{DemoReply, introduced, shortened, text};

/// What the agent is created from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Goal,
    Criteria,
    Timeline,
}

/// In the order of [`Answer`].
pub const QUESTIONS: [&str; 3] = [
    "What should your agent do? For example: a research agent that watches the prices of three competitors.",
    "How will you know that it works? Name what you want to hold in your hands.",
    "Until when do you need it: a date, a range of dates, or Ongoing?",
];

/// How a part of a message begins that answers one of the questions. It begins a clause.
const BEGINNINGS: [(&str, Answer); 37] = [
    ("goal:", Answer::Goal),
    ("success criteria:", Answer::Criteria),
    ("success criteria are", Answer::Criteria),
    ("success:", Answer::Criteria),
    ("criteria:", Answer::Criteria),
    ("success is", Answer::Criteria),
    ("success means", Answer::Criteria),
    ("it is a success", Answer::Criteria),
    ("good if", Answer::Criteria),
    ("good when", Answer::Criteria),
    ("it is good", Answer::Criteria),
    ("it's good", Answer::Criteria),
    ("fine if", Answer::Criteria),
    ("it works if", Answer::Criteria),
    ("it works when", Answer::Criteria),
    ("done when", Answer::Criteria),
    ("successful if", Answer::Criteria),
    ("successful when", Answer::Criteria),
    ("it is successful", Answer::Criteria),
    ("i am happy if", Answer::Criteria),
    ("i'm happy if", Answer::Criteria),
    ("i know that it works", Answer::Criteria),
    ("timeline:", Answer::Timeline),
    ("ongoing", Answer::Timeline),
    ("it is ongoing", Answer::Timeline),
    ("forever", Answer::Timeline),
    ("indefinitely", Answer::Timeline),
    ("no end", Answer::Timeline),
    ("without an end", Answer::Timeline),
    ("without end", Answer::Timeline),
    ("until", Answer::Timeline),
    ("till", Answer::Timeline),
    ("for the next", Answer::Timeline),
    ("for one", Answer::Timeline),
    ("for a year", Answer::Timeline),
    ("for a month", Answer::Timeline),
    ("from now", Answer::Timeline),
];

/// The type of an agent by the first verb of its work.
const TYPES: [(&str, &[&str]); 4] = [
    (
        "writing",
        &["writes", "drafts", "composes", "creates", "prepares", "produces", "makes", "sends", "edits"],
    ),
    (
        "research",
        &[
            "watches",
            "follows",
            "tracks",
            "monitors",
            "researches",
            "compares",
            "finds",
            "reports",
            "looks",
            "checks",
            "collects",
        ],
    ),
    ("reminder", &["reminds"]),
    ("planning", &["plans", "schedules", "organises", "organizes"]),
];

const FORMS: [&str; 4] = ["agent that ", "agent which ", "agent who ", "agent to "];

/// The answers so far. An answer that is not there is empty.
#[derive(Debug, Default, Clone, PartialEq)]
struct Known {
    goal: String,
    criteria: String,
    timeline: String,
}

impl Known {
    fn slot(&mut self, answer: Answer) -> &mut String {
        match answer {
            Answer::Goal => &mut self.goal,
            Answer::Criteria => &mut self.criteria,
            Answer::Timeline => &mut self.timeline,
        }
    }

    fn missing(&self) -> Option<Answer> {
        let all = [
            (Answer::Goal, &self.goal),
            (Answer::Criteria, &self.criteria),
            (Answer::Timeline, &self.timeline),
        ];
        all.into_iter().find(|(_, text)| text.is_empty()).map(|(answer, _)| answer)
    }
}

pub fn setup(ask: &Ask) -> DemoReply {
    if !ask.results.is_empty() {
        return text("That is all I need. Read the draft, change what you like, and create the agent.");
    }
    let mut known = Known::default();
    let mut changed = true;
    for (place, said) in ask.said.iter().enumerate() {
        let before = known.clone();
        hear(&mut known, said, place == 0);
        changed = known != before;
    }
    if let Some(missing) = known.missing() {
        let question = QUESTIONS[missing as usize];
        return introduced(ask, text(question));
    }
    if !changed {
        return text(
            "I did not understand the change. Begin it with \"Goal:\", \"Success:\" or \"Timeline:\", for example \"Timeline: until \
             March\", or change the draft itself when you create the agent.",
        );
    }
    ready(ask, &known)
}

/// Adds what a message says.
fn hear(known: &mut Known, said: &str, is_first: bool) {
    let pending = known.missing();
    let said = said.trim();
    if said.is_empty() && pending == Some(Answer::Timeline) {
        known.timeline = "Ongoing".to_owned();
        return;
    }
    let (head, parts) = apart(said);
    let is_goal = form(head).is_some();
    let takes_head = match pending {
        // The first message may only open the conversation: "Hello", "I need help".
        Some(Answer::Goal) => is_goal || !is_first && !is_evasive(head),
        Some(_) if is_goal => true,
        Some(_) => parts.is_empty() && !is_evasive(head),
        None => is_goal,
    };
    if takes_head {
        let slot = if is_goal { Answer::Goal } else { pending.unwrap_or(Answer::Goal) };
        let value = if slot == Answer::Goal { goal(head) } else { head.to_owned() };
        *known.slot(slot) = value;
    }
    for (answer, part) in parts {
        let value = if answer == Answer::Goal { goal(part) } else { part.to_owned() };
        if !value.is_empty() {
            *known.slot(answer) = value;
        }
    }
}

/// Whether a message answers no question: "I don't know", "What do you mean?", "🦀".
fn is_evasive(said: &str) -> bool {
    const SHRUGS: [&str; 8] = [
        "i don't know",
        "i dont know",
        "don't know",
        "no idea",
        "i have no idea",
        "not sure",
        "i am not sure",
        "i'm not sure",
    ];
    let plain = said.trim_end_matches(['.', '!']).to_lowercase().replace('’', "'");
    !said.chars().any(char::is_alphanumeric)
        || said.ends_with('?')
        || SHRUGS.contains(&plain.as_str())
        || intent::greets(said)
}

/// Separates a message at the clauses that answer a question by their beginnings.
pub(super) fn apart(said: &str) -> (&str, Vec<(Answer, &str)>) {
    let mut cuts: Vec<(usize, usize, Answer)> = Vec::new();
    let mut begins_clause = true;
    for (at, word) in places_of_words(said) {
        let here = &said[at..];
        let found = BEGINNINGS.iter().find(|(begin, answer)| {
            let is_at_word = here.get(..begin.len()).is_some_and(|start| start.eq_ignore_ascii_case(begin))
                && !here[begin.len()..].starts_with(char::is_alphanumeric);
            // "Until March" needs no comma before it. "Ongoing work" is no timeline.
            let is_whole = !["ongoing", "forever", "indefinitely"].contains(begin)
                || here.get(begin.len()..).is_some_and(ends_clause);
            is_at_word && is_whole && (begins_clause || *begin == "until" && *answer == Answer::Timeline)
        });
        if let Some((begin, answer)) = found {
            // A label is not part of the answer.
            let skipped = if begin.ends_with(':') { begin.len() } else { 0 };
            cuts.push((at, at + skipped, *answer));
        }
        begins_clause = word.ends_with([',', ';', '.', '!', ':'])
            || begins_clause
                && found.is_none()
                && ["and", "it", "is", "it's"].contains(&word.to_lowercase().as_str());
    }
    let head = &said[..cuts.first().map_or(said.len(), |cut| cut.0)];
    let ends = cuts.iter().skip(1).map(|cut| cut.0).chain([said.len()]);
    let parts =
        cuts.iter().zip(ends).map(|((_, from, answer), to)| (*answer, plain(&said[*from..to]))).collect();
    (plain(head), parts)
}

/// Each word with its place.
fn places_of_words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace().map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

fn ends_clause(rest: &str) -> bool {
    rest.trim_start_matches([' ', '\t'])
        .chars()
        .next()
        .is_none_or(|c| [',', ';', '.', '!', '\n', '\r'].contains(&c))
}

/// A part of a message without the marks and the "and" around it.
fn plain(part: &str) -> &str {
    let mut part = part.trim_matches(|c: char| c.is_whitespace() || [',', ';', '.', ':'].contains(&c));
    for filler in [" and", " it is", " it's"] {
        part = part.strip_suffix(filler).unwrap_or(part).trim_end_matches([',', ' ']);
    }
    part
}

/// Where "agent that" is, in bytes, and its form.
fn form(said: &str) -> Option<(usize, &'static str)> {
    // Only ASCII letters are lower-cased, so that no byte moves.
    let lower = said.to_ascii_lowercase();
    FORMS.iter().filter_map(|form| Some((lower.find(form)?, *form))).min()
}

/// "A [type] agent that [does what]".
fn goal(said: &str) -> String {
    const ARTICLES: [&str; 4] = ["a", "an", "the", "my"];
    let Some((at, form)) = form(said) else {
        return format!("An assistant agent that takes care of this: {said}");
    };
    // "I need an agent that …" begins with its article.
    let before: Vec<&str> = said[..at].split_whitespace().collect();
    let article = before.iter().rposition(|word| ARTICLES.contains(&word.to_lowercase().as_str()));
    let named = before[article.map_or(before.len(), |article| article + 1)..].join(" ");
    let work = &said[at + form.len()..];
    let work = if form == "agent to " { third_person(work) } else { work.to_owned() };
    let verb = work.split_whitespace().next().unwrap_or_default().to_lowercase();
    let typed =
        TYPES.iter().find(|(_, verbs)| verbs.contains(&verb.as_str())).map_or("assistant", |(name, _)| name);
    let kind = if named.is_empty() { typed.to_owned() } else { named.clone() };
    let article = match article.map(|article| before[article].to_lowercase()) {
        Some(article) if article == "an" && !named.is_empty() => "An",
        Some(article) if article == "a" && !named.is_empty() => "A",
        _ if kind.starts_with(['a', 'e', 'i', 'o', 'A', 'E', 'I', 'O']) => "An",
        _ => "A",
    };
    format!("{article} {kind} agent that {work}")
}

/// "Watch prices" becomes "watches prices".
fn third_person(work: &str) -> String {
    let (verb, rest) = work.split_once(' ').unwrap_or((work, ""));
    let ending = if verb.ends_with(['s', 'x', 'z']) || verb.ends_with("ch") || verb.ends_with("sh") {
        "es"
    } else {
        "s"
    };
    format!("{verb}{ending} {rest}").trim_end().to_owned()
}

/// "A research agent that watches prices" is called "Research agent", and one that only writes is called like what it writes.
fn title(goal: &str) -> String {
    let Some((at, form)) = form(goal) else { return intent::subject(goal) };
    let work = &goal[at + form.len()..];
    let (verb, object) = work.split_once(' ').unwrap_or((work, ""));
    let is_writing = TYPES[0].1.contains(&verb.to_lowercase().as_str());
    let kind = intent::subject(&goal[..at + "agent".len()]);
    let is_plain = TYPES.iter().any(|(name, _)| kind.eq_ignore_ascii_case(&format!("{name} agent")));
    if is_writing && is_plain && !object.is_empty() { intent::subject(object) } else { kind }
}

fn ready(ask: &Ask, known: &Known) -> DemoReply {
    let goal = shortened(&known.goal, 2_000);
    let criteria = shortened(&known.criteria, 2_000);
    let timeline = capital(&shortened(&known.timeline, 2_000));
    let title = title(&goal);
    let instructions = format!("{goal}\nIt is a success when: {criteria}");
    let draft: Value = json!({
        "title": title, "goal": goal, "success_criteria": criteria, "timeline": timeline, "instructions": instructions,
    });
    if ask.offers("ready_to_create") {
        return introduced(
            ask,
            DemoReply { text: "I have what I need.".into(), call: Some(("ready_to_create".into(), draft)) },
        );
    }
    text(format!(
        "READY_TO_CREATE\n---\nTITLE: {title}\nGOAL: {goal}\nSUCCESS_CRITERIA: {criteria}\nTIMELINE: {timeline}\nINSTRUCTIONS: \
         {instructions}"
    ))
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
