//! What a person wants of an action that exists: another time, a pause, a run now. The demo proposes it with the tools of the chat. It
//! never guesses: if several actions may be meant, or if it does not understand a time, it asks.

use jiff::ZonedDateTime;
use serde_json::{Value, json};

use super::intent::words;
use super::when::{self, Reading, When};

/// What the demo does with such a sentence.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// It proposes something: its words, the tool, and the arguments.
    Propose { words: String, tool: &'static str, arguments: Value },
    /// It asks, or says why it can't do it.
    Say(String),
}

/// Where a sentence is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Chat,
    /// The conversation about one action.
    About,
}

/// An action in view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found<'a> {
    id: &'a str,
    title: &'a str,
    state: &'a str,
    /// Its schedule in words.
    schedule: &'a str,
    /// Whether the conversation is about it, so that no call needs to name it.
    is_topic: bool,
}

impl Found<'_> {
    /// The arguments of a call about this action.
    fn arguments(&self, mut fields: Value) -> Value {
        if !self.is_topic {
            fields["action_id"] = self.id.into();
        }
        fields
    }
}

/// What a verb asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// A command of the tool `command_action`.
    Command(&'static str),
    /// "Start": resumes a paused action, and runs another one.
    Start,
    /// "Don't send it any more": pauses it.
    Unwanted,
    Change,
    Rename,
    /// No tool does it. The sentence says who can.
    Nobody(&'static str),
}

/// The first words of a sentence that ask for something.
static VERBS: [(&[&str], Does); 10] = [
    (
        &[
            "pause",
            "suspend",
            "halt",
            "disable",
            "turn off",
            "switch off",
            "snooze",
            "stop",
            "cancel",
            "unschedule",
            "abort",
            "end",
            "unsubscribe",
            "quit",
        ],
        Does::Command("pause"),
    ),
    (
        &["resume", "continue", "unpause", "turn on", "switch on", "activate", "enable", "unsnooze"],
        Does::Command("resume"),
    ),
    (&["rehearse", "try", "test", "dry"], Does::Command("rehearse")),
    (&["run", "execute", "trigger"], Does::Command("run_now")),
    (&["start", "restart"], Does::Start),
    (&["dismiss", "retire"], Does::Command("dismiss")),
    (&["don't", "dont", "do not", "no more", "never"], Does::Unwanted),
    (&["rename", "retitle"], Does::Rename),
    (
        &["delete", "remove", "erase", "get rid", "drop", "clear"],
        Does::Nobody(
            "I can't delete anything: only you can, on its own page. I can propose to pause an action, or to dismiss it for good.",
        ),
    ),
    (
        &["approve", "accept", "confirm", "define"],
        Does::Nobody("Only you can agree to something: its card or its ticket has the button."),
    ),
];

/// Verbs that change what exists.
const CHANGES: [&str; 9] =
    ["change", "move", "edit", "reschedule", "postpone", "shift", "update", "switch", "adjust"];

/// Verbs that change something only together with a time: "make it Wednesday", "send it at 8".
const WITH_TIME: [&str; 9] = ["make", "set", "let", "do", "run", "send", "start", "have", "schedule"];

/// Words that say that something replaces what was so far.
const INSTEAD: [&str; 2] = ["instead", "rather"];

/// Words before the verb that ask politely.
const POLITE: [&str; 26] = [
    "please", "can", "could", "would", "will", "you", "i", "i'd", "we", "want", "wanna", "need", "like",
    "to", "now", "hey", "hi", "hello", "ok", "okay", "just", "should", "let's", "and", "then", "also",
];

/// Words that mean an action without naming it.
const MEANT: [&str; 7] = ["it", "this", "that", "its", "them", "action", "everything"];

/// Words of a changed time that say nothing else.
const SMALL: [&str; 46] = [
    "please", "and", "do", "run", "runs", "send", "it", "this", "that", "make", "ok", "okay", "yes", "no",
    "schedule", "i", "want", "mean", "would", "like", "then", "the", "in", "on", "at", "better", "instead",
    "rather", "set", "to", "move", "change", "let", "it's", "is", "not", "be", "my", "time", "from", "now",
    "you", "once", "only", "just", "again",
];

/// Whether the sentence names a time, and no work: "every Monday at 9, please".
pub fn is_only_time(reading: &Reading) -> bool {
    reading.when != When::Unsaid && others(reading, "").is_empty()
}

/// The words of a sentence that neither name a time nor the title of the action.
fn others<'a>(reading: &'a Reading, title: &str) -> Vec<&'a str> {
    let title = words(title);
    let is_other = |word: &&str| {
        !SMALL.contains(word)
            && !CHANGES.contains(word)
            && !WITH_TIME.contains(word)
            && !POLITE.contains(word)
            && !MEANT.contains(word)
            && !title.iter().any(|other| stem(other) == stem(word))
    };
    reading.rest.iter().map(String::as_str).filter(is_other).collect()
}

/// What a person wants of an action in view. `None`: the sentence is about something else. `before` is what the person has said before it.
pub fn wish(
    said: &str,
    before: Option<&str>,
    view: &str,
    place: Place,
    now: Option<&ZonedDateTime>,
) -> Option<Wish> {
    let found = in_view(view, place);
    let wish = wished(said, &found, place, now, None);
    // The answer to the question which action is meant.
    if wish.is_none()
        && let (Some(before), [one]) = (before, &best(&found, said)[..])
        && let Some(Wish::Say(asked)) = wished(before, &found, place, now, None)
        && asked.starts_with(WHICH)
    {
        return wished(before, &found, place, now, Some(*one));
    }
    wish
}

/// The action that was proposed under this title and is defined since, with another time.
pub fn moved(said: &str, title: &str, view: &str, now: Option<&ZonedDateTime>) -> Option<Wish> {
    let found = in_view(view, Place::Chat);
    let action = found.iter().find(|action| action.title.eq_ignore_ascii_case(title))?;
    Some(changed(said, *action, Place::Chat, now))
}

/// Another time for the action that the conversation is about.
pub fn moved_topic(said: &str, view: &str, now: Option<&ZonedDateTime>) -> Option<Wish> {
    let found = in_view(view, Place::About);
    Some(changed(said, *found.first()?, Place::About, now))
}

fn wished(
    said: &str,
    found: &[Found<'_>],
    place: Place,
    now: Option<&ZonedDateTime>,
    known: Option<Found<'_>>,
) -> Option<Wish> {
    let all = words(said);
    let asked: Vec<&str> = all.iter().map(String::as_str).skip_while(|word| POLITE.contains(word)).collect();
    let has = |names: &[&str]| all.iter().any(|word| names.contains(&word.as_str()));
    let named = best(found, said);
    let text = without_title(said, known.or_else(|| named.first().copied()).map_or("", |one| one.title));
    let reading = when::read_change(&text, "", now);
    let sentence = Sentence {
        asked: &asked,
        is_chat: place == Place::Chat,
        means: place == Place::About || known.is_some() || !named.is_empty() || has(&MEANT),
        has_title: !named.is_empty(),
        is_named: known.is_some() || text != said,
        names_time: reading.when != When::Unsaid,
        replaces: has(&INSTEAD) && others(&reading, "").is_empty(),
    };
    let does = sentence.does()?;
    if has(&["agent", "yourself"]) {
        let told = "I can't pause, change or delete the agent itself: only you can, in its settings. I can propose it for one of its actions.";
        return Some(Wish::Say(told.to_owned()));
    }
    if let Does::Nobody(told) = does {
        return Some(Wish::Say(told.to_owned()));
    }
    let action = match known.map_or_else(|| target(found, &named, does), Ok) {
        Ok(action) => action,
        Err(asks) => return Some(Wish::Say(asks)),
    };
    let is_for_a_time = sentence.names_time || has(&["until", "till"]);
    Some(match does {
        // The rest of the sentence changes what the action does.
        Does::Change
            if place == Place::About
                && !sentence.names_time
                && !others(&reading, action.title).is_empty() =>
        {
            return None;
        }
        Does::Change => changed(said, action, place, now),
        Does::Rename => renamed(said, action),
        Does::Command(_) | Does::Start | Does::Unwanted if is_for_a_time => Wish::Say(format!(
            "I can't do that at a time or until a time. I can propose to pause “{0}” now, and to resume it when you say so. For other times, say \
             for example \"move it to 8\".",
            action.title
        )),
        Does::Command(command) => command_wish(command, action),
        Does::Start if action.state == "paused" => command_wish("resume", action),
        Does::Start => command_wish("run_now", action),
        Does::Unwanted | Does::Nobody(_) => command_wish("pause", action),
    })
}

/// What the words of a sentence say about an action.
struct Sentence<'a> {
    /// Its words without polite ones at the beginning.
    asked: &'a [&'a str],
    is_chat: bool,
    /// Whether it has a word of a title.
    has_title: bool,
    /// Whether it may mean an existing action.
    means: bool,
    /// Whether it names one, as in "the price report".
    is_named: bool,
    /// Whether it names a time, beside the title.
    names_time: bool,
    /// Whether it says nothing but that a time replaces another one.
    replaces: bool,
}

impl Sentence<'_> {
    /// What the sentence asks for, if it is about an action that exists.
    fn does(&self) -> Option<Does> {
        let Self { asked, is_chat, has_title, means, is_named, names_time, replaces } = *self;
        let word = |at: usize| asked.get(at).copied().unwrap_or_default();
        let (first, next) = (word(0), word(1));
        let is_new = ["a", "an", "some", "another"].contains(&next);
        let refers = MEANT.contains(&next) || is_named;
        // "Could it run at 8?", "It should run at 8".
        let is_it = ["it", "this"].contains(&first)
            && asked.iter().any(|word| ["run", "go", "come", "start", "be", "every", "at"].contains(word));
        if replaces && names_time || names_time && (is_it || refers && WITH_TIME.contains(&first)) {
            return Some(Does::Change);
        }
        let switches = ["off", "on"].iter().any(|end| begins(asked, &format!("switch {end}")));
        if CHANGES.contains(&first)
            && !switches
            && (refers || is_chat && has_title && !is_new || next.is_empty())
        {
            return Some(Does::Change);
        }
        if asked.windows(2).any(|two| two == ["dry", "run"]) {
            return Some(Does::Command("rehearse"));
        }
        let (_, does) = VERBS.iter().find(|(verbs, _)| verbs.iter().any(|verb| begins(asked, verb)))?;
        let is_short = asked.len() <= 2;
        let is_about_it = match does {
            Does::Command("rehearse") => next != "to" && (means || is_short),
            // "Start a report every Monday" is new work.
            Does::Command("run_now") | Does::Start => !is_new && (refers || !names_time),
            // "Don't forget to write to Ann", "I don't know".
            Does::Unwanted => {
                let wants = ["run", "send", "want", "need", "do", "write", "continue", "bother", "more"];
                means && !asked.contains(&"forget") && asked.iter().any(|word| wants.contains(word))
            }
            // "Remove the part about prices" changes what it does.
            Does::Nobody(_) => {
                refers || is_short || is_chat && ["all", "the", "my"].contains(&next) && asked.len() <= 4
            }
            _ => !is_new,
        };
        is_about_it.then_some(*does)
    }
}

/// The words that begin the question which action is meant.
const WHICH: &str = "Which one do you mean";

/// The action that is meant, or a question.
fn target<'a>(found: &[Found<'a>], named: &[Found<'a>], does: Does) -> Result<Found<'a>, String> {
    let asks = |some: &[Found<'_>]| {
        const MOST: usize = 6;
        let mut titles: Vec<String> =
            some.iter().take(MOST).map(|action| format!("“{}”", action.title)).collect();
        if some.len() > MOST {
            titles.push("another one".to_owned());
        }
        let last = titles.pop().unwrap_or_default();
        format!("{WHICH}: {} or {last}?", titles.join(", "))
    };
    match (found, named) {
        ([], _) => Err("There is no action yet that I could change, run or pause. Say what I should do and when, for example \"Send me a \
                        report every Monday at 9\"."
            .to_owned()),
        (_, [one]) | ([one], _) => Ok(*one),
        (_, [_, ..]) => Err(asks(named)),
        (all, []) => {
            // Only what is paused can be resumed.
            let paused: Vec<Found<'a>> = all.iter().copied().filter(|action| action.state == "paused").collect();
            match (&paused[..], does) {
                ([one], Does::Command("resume")) => Ok(*one),
                _ => Err(asks(all)),
            }
        }
    }
}

fn command_wish(command: &str, action: Found<'_>) -> Wish {
    let title = action.title;
    let words = match command {
        "pause" => format!("I propose to pause “{title}”: it does not run until you resume it."),
        "resume" => format!("I propose to resume “{title}”: it runs again at its due times."),
        "run_now" => format!("I propose to run “{title}” now, once. Its due times stay."),
        "rehearse" => {
            format!("I propose to rehearse “{title}”: you see what it would do, and nothing is done.")
        }
        _ => format!("I propose to dismiss “{title}”: it never runs again."),
    };
    Wish::Propose {
        words,
        tool: "command_action",
        arguments: action.arguments(json!({ "command": command })),
    }
}

/// Another time for an action. What the sentence says beside the time is left out, and the demo says so.
fn changed(said: &str, action: Found<'_>, place: Place, now: Option<&ZonedDateTime>) -> Wish {
    let title = action.title;
    let text = without_title(said, title);
    let reading = when::read_change(&text, action.schedule, now);
    let others = others(&reading, title);
    let schedule = match &reading.when {
        When::Unclear(why) => {
            return Wish::Say(format!(
                "{why} I have proposed no change. Say it again with a time such as \"every Monday at 9\"."
            ));
        }
        When::At(schedule) if reading.is_certain => schedule,
        When::At(_) => {
            return Wish::Say(format!(
                "Say the whole time for “{title}”, such as \"every Monday at 8\" or \"tomorrow at 8\". I have proposed no change."
            ));
        }
        When::Unsaid if others.is_empty() => {
            return Wish::Say(format!(
                "What should be different about “{title}”? For another time, say for example \"move it to 8 in the morning\" or \"every Monday at \
                 9 instead\"."
            ));
        }
        When::Unsaid => {
            return Wish::Say(match place {
                Place::Chat => format!(
                    "Here I can change when “{title}” runs, and its title. What it does, I can change in the conversation about it: \"Talk about \
                     it\" on its page."
                ),
                Place::About => format!(
                    "I found no time in your words. For another time of “{title}”, say for example \"move it to 8 in the morning\". To change \
                     what it does, say it as an instruction, such as \"Name the sources, too\"."
                ),
            });
        }
    };
    let due = when::in_words(schedule, now).unwrap_or_default();
    let mut words = format!("I propose another time for “{title}”: {due}");
    if !others.is_empty() {
        words.push_str(" The rest of your words I have left out: say it in a sentence without a time.");
    }
    Wish::Propose {
        words,
        tool: "change_action",
        arguments: action.arguments(json!({ "schedule": schedule })),
    }
}

fn renamed(said: &str, action: Found<'_>) -> Wish {
    const MAX_TITLE: usize = 200;
    let lower = said.to_ascii_lowercase();
    let begin =
        [" to ", " as ", " into "].iter().filter_map(|word| lower.find(word).map(|at| at + word.len())).min();
    let is_quote = |c: char| c.is_whitespace() || matches!(c, '.' | '!' | '"' | '“' | '”' | '\'');
    let title = begin.map(|begin| said[begin..].trim_matches(is_quote)).unwrap_or_default();
    if title.is_empty() {
        return Wish::Say(format!(
            "What should “{}” be called? Say for example \"rename it to Daily brief\".",
            action.title
        ));
    }
    let title: String = title.chars().take(MAX_TITLE).collect();
    Wish::Propose {
        words: format!("I propose to call “{}” “{title}”.", action.title),
        tool: "change_action",
        arguments: action.arguments(json!({ "title": title })),
    }
}

/// Whether a sentence begins with a verb: "turn off it" and "turn it off" begin with "turn off".
fn begins(said: &[&str], verb: &str) -> bool {
    match verb.split_once(' ') {
        None => said.first() == Some(&verb),
        Some((first, second)) => {
            said.first() == Some(&first)
                && (said.get(1) == Some(&second)
                    || ["off", "on"].contains(&second) && said[1..].contains(&second))
        }
    }
}

/// The actions in view. Dismissed ones never run again, so nothing is wanted of them.
fn in_view(view: &str, place: Place) -> Vec<Found<'_>> {
    if place == Place::About {
        // The first line names the action. What follows is its content.
        let head = || view.lines().take_while(|line| *line != "instructions:");
        let line = |name: &str| head().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let action = line("action: ").split_once(" \"").map(|(id, title)| {
            let (state, schedule) = (line("state: "), line("schedule: "));
            Found { id, title: title.strip_suffix('"').unwrap_or(title), state, schedule, is_topic: true }
        });
        return action.into_iter().collect();
    }
    let lines = view.lines().skip_while(|line| *line != "actions:").skip(1);
    let action = |line| {
        let (id, rest) = str::strip_prefix(line, "- ")?.split_once(" \"")?;
        let (title, rest) = rest.rsplit_once("\" ")?;
        let (state, schedule) = rest.split_once(", ").unwrap_or((rest, ""));
        let schedule = schedule.split_once(" Next: ").map_or(schedule, |(schedule, _)| schedule);
        Some(Found { id, title, state, schedule, is_topic: false })
    };
    lines.filter_map(action).filter(|action| action.state != "dismissed").collect()
}

fn stem(word: &str) -> &str {
    word.trim_end_matches("'s").trim_end_matches('s')
}

/// The actions of whose titles a sentence names the most words.
fn best<'a>(found: &[Found<'a>], said: &str) -> Vec<Found<'a>> {
    let said = words(said);
    let score = |action: &Found<'_>| {
        let title = words(action.title);
        let long = title.iter().filter(|word| word.chars().count() > 3);
        long.filter(|word| said.iter().any(|other| stem(other) == stem(word))).count()
    };
    let most = found.iter().map(score).max().unwrap_or_default();
    found.iter().copied().filter(|action| most > 0 && score(action) == most).collect()
}

/// The sentence without the words that name the action, which may look like a time: "pause the daily report".
fn without_title(said: &str, title: &str) -> String {
    let title = words(title);
    if title.is_empty() {
        return said.to_owned();
    }
    let parts: Vec<&str> = said.split_whitespace().collect();
    let plain: Vec<String> = parts.iter().map(|part| words(part).concat()).collect();
    let is_of_title = |word: &str| title.iter().any(|other| stem(other) == stem(word));
    let mut kept = vec![true; parts.len()];
    for at in 0..parts.len() {
        let before = at.checked_sub(1).map_or("", |at| plain[at].as_str());
        let begins = ["the", "my", "our"].contains(&plain[at].as_str()) && before != "in";
        let whole =
            title.len() > 1 && plain[at..].len() >= title.len() && plain[at..at + title.len()] == title[..];
        let from = if begins { at + 1 } else { at };
        if begins || whole {
            let most = if whole { title.len() } else { parts.len() };
            let run = plain[from..].iter().take(most).take_while(|word| is_of_title(word)).count();
            kept[from..from + run].fill(false);
        }
    }
    let kept: Vec<&str> = parts.iter().zip(kept).filter(|(_, kept)| *kept).map(|(part, _)| *part).collect();
    kept.join(" ")
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod tests;
