//! The setup from one sentence: who, what and when, as a draft with its first action.
//!
//! A sentence that names an agent in the form "a research agent that …" and no time begins the long conversation instead, see
//! [`super::setup`].

use serde_json::{Value, json};

use super::ask::Ask;
use super::intent;
use super::reply::{DemoReply, introduced, shortened, text};
use super::setup::apart;
use super::when::{self, When};

/// What the demo asks if the work has no time.
pub const WHEN: &str = "When should I do this? For example: every weekday at 7. Or say \"when I ask\", and it runs when you run it.";

/// Verbs that ask for work as the first word of a sentence. Each with the third person and with the type of an agent that does it.
const VERBS: &[(&str, &str, &str)] = &[
    ("tell", "tells", "research"),
    ("send", "sends", "writing"),
    ("give", "gives", "research"),
    ("show", "shows", "research"),
    ("list", "lists", "research"),
    ("check", "checks", "research"),
    ("watch", "watches", "research"),
    ("follow", "follows", "research"),
    ("track", "tracks", "research"),
    ("monitor", "monitors", "research"),
    ("find", "finds", "research"),
    ("report", "reports", "research"),
    ("collect", "collects", "research"),
    ("compare", "compares", "research"),
    ("look", "looks", "research"),
    ("keep", "keeps", "research"),
    ("research", "researches", "research"),
    ("read", "reads", "research"),
    ("review", "reviews", "research"),
    ("summarize", "summarizes", "writing"),
    ("summarise", "summarises", "writing"),
    ("write", "writes", "writing"),
    ("draft", "drafts", "writing"),
    ("create", "creates", "writing"),
    ("make", "makes", "writing"),
    ("prepare", "prepares", "writing"),
    ("translate", "translates", "writing"),
    ("post", "posts", "writing"),
    ("email", "emails", "writing"),
    ("remind", "reminds", "reminder"),
    ("wake", "wakes", "reminder"),
    ("nudge", "nudges", "reminder"),
    ("ask", "asks", "reminder"),
    ("wish", "wishes", "reminder"),
    ("ping", "pings", "reminder"),
    ("plan", "plans", "planning"),
    ("schedule", "schedules", "planning"),
    ("suggest", "suggests", "planning"),
    ("teach", "teaches", "learning"),
    ("quiz", "quizzes", "learning"),
    ("motivate", "motivates", "coaching"),
    ("sag", "tells", "research"),
    ("schick", "sends", "writing"),
    ("erinnere", "reminds", "reminder"),
    ("schreib", "writes", "writing"),
    ("prüfe", "checks", "research"),
    ("zeig", "shows", "research"),
];

/// Words before the verb that ask politely.
const POLITE: &[&str] = &[
    "please",
    "bitte",
    "can",
    "could",
    "would",
    "will",
    "you",
    "i",
    "i'd",
    "we",
    "want",
    "need",
    "like",
    "to",
    "hey",
    "hi",
    "hello",
    "an",
    "agent",
    "that",
    "which",
    "who",
    "someone",
    "somebody",
    "something",
    "lamplighter",
];

/// What the conversation has said so far.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    /// The work without its times, as the person wrote it.
    work: String,
    /// `None`: nothing is said yet. `Some(None)`: it runs when the person runs it.
    schedule: Option<Option<Value>>,
}

/// The answer, if the person has asked for work rather than for an agent. `None` begins or continues the long conversation.
pub fn answer(ask: &Ask) -> Option<DemoReply> {
    if !ask.results.is_empty() {
        return None;
    }
    let now = ask.now.as_ref();
    let mut known: Option<Known> = None;
    let mut reply = None;
    for said in &ask.said {
        let reading = when::read(said, now);
        let Some(before) = &mut known else {
            let asked = asks_for_work(said, &reading);
            let work = when::without_times(said);
            match (asked, reading.when) {
                (false, _) => return None,
                (true, When::Unclear(why)) => {
                    known = Some(Known { work, schedule: None });
                    reply = Some(text(format!("{why} When should I do it instead?")));
                }
                (true, When::At(schedule)) => {
                    let draft = Known { work, schedule: Some(Some(schedule)) };
                    reply = Some(ready(ask, &draft));
                    known = Some(draft);
                }
                (true, When::Unsaid) => {
                    known = Some(Known { work, schedule: None });
                    reply = Some(text(WHEN));
                }
            }
            continue;
        };
        // Whoever describes an agent then, wants to talk it through.
        if before.schedule.is_none() && describes(said) {
            return None;
        }
        reply = Some(hear(ask, before, said));
    }
    reply.map(|reply| match reply.call {
        // A signal is the very first thing in a reply.
        None if reply.text.starts_with("READY_TO_CREATE") => reply,
        _ => introduced(ask, reply),
    })
}

/// Adds what a later message says.
fn hear(ask: &Ask, known: &mut Known, said: &str) -> DemoReply {
    let now = ask.now.as_ref();
    let words = intent::words(said);
    let has = |word: &str| words.iter().any(|other| other == word);
    let by_hand = has("ask") && has("i")
        || has("hand")
        || has("manually")
        || has("no") && (has("schedule") || has("time"));
    if by_hand {
        known.schedule = Some(None);
        return ready(ask, known);
    }
    let before = known.schedule.clone().flatten();
    let current = before.as_ref().and_then(|schedule| when::in_words(schedule, now)).unwrap_or_default();
    let reading = when::read_change(said, &current, now);
    match reading.when {
        When::At(mut schedule) => {
            // The words of a schedule name the zone of the person, also if nobody has.
            let named = when::read(said, now).when;
            let has_zone = |schedule: &Value| schedule.get("timezone").is_some();
            let is_named = matches!(named, When::At(named) if has_zone(&named))
                || before.is_some_and(|old| has_zone(&old));
            if let (false, Some(fields)) = (is_named, schedule.as_object_mut()) {
                fields.remove("timezone");
            }
            known.schedule = Some(Some(schedule));
        }
        When::Unclear(why) => return text(format!("{why} When should I do it instead?")),
        When::Unsaid if known.schedule.is_none() => {
            return text(format!("I found no time in that. {WHEN}"));
        }
        When::Unsaid if asks_for_work(said, &reading) => known.work = when::without_times(said),
        When::Unsaid => {
            return text(
                "I understood no change. Say another time, such as \"at 8 instead\", or the whole work again. Each part of the draft can be \
                 changed where it stands, too.",
            );
        }
    }
    ready(ask, known)
}

/// Whether a sentence asks for work, such as "tell me every weekday what has changed". A description of an agent asks for one only if
/// it names a time.
fn asks_for_work(said: &str, reading: &when::Reading) -> bool {
    let words = intent::words(said);
    let mut asked = words.iter().skip_while(|word| POLITE.contains(&word.as_str()));
    let (verb, object) = (asked.next(), asked.next());
    // "Make it nicer" is about something that was said before.
    let is_known = object.is_some_and(|word| ["it", "this", "that", "them"].contains(&word.as_str()));
    let is_work = verb.is_some_and(|word| verb_of(word).is_some()) && !is_known;
    let describes = words.iter().any(|word| word == "agent" || word == "assistant");
    let names_time = reading.when != When::Unsaid;
    let has_work = reading.rest.iter().any(|word| !POLITE.contains(&word.as_str()) && word.len() > 2);
    match (describes, is_work, names_time) {
        // Whoever says when it is good, or until when, talks it through.
        (true, _, _) => names_time && reading.is_certain && has_work && apart(said).1.is_empty(),
        (false, true, _) => has_work,
        // "Every weekday at 7: what changed at my competitors?"
        (false, false, _) => names_time && reading.is_certain && has_work,
    }
}

/// A verb in its base form or in the third person.
fn verb_of(word: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    VERBS.iter().find(|(base, third, _)| *base == word || *third == word)
}

/// The work as an order: "tell me what changed".
fn order(work: &str) -> &str {
    let lower = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '\'').to_lowercase();
    let mut rest = work.trim();
    loop {
        let (first, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_agent =
            lower(first) == "agent" || ["a", "an"].contains(&lower(first).as_str()) && describes(after);
        if after.is_empty() || !(POLITE.contains(&lower(first).as_str()) || is_agent) {
            return rest;
        }
        rest = after.trim_start();
    }
}

/// Whether the words go on with "… agent that".
fn describes(words: &str) -> bool {
    words.split_whitespace().take(5).any(|word| word.eq_ignore_ascii_case("agent"))
}

/// "Tells you what changed at your competitors."
fn third_person(order: &str) -> (String, &'static str) {
    let (first, rest) = order.split_once(' ').unwrap_or((order, ""));
    let plain = first.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let (verb, kind) = match verb_of(&plain) {
        Some((_, third, kind)) => (*third, *kind),
        None => return (format!("takes care of this: {order}"), "assistant"),
    };
    let yours = |word: &str| match word {
        "me" => "you".to_owned(),
        "my" => "your".to_owned(),
        "I" => "you".to_owned(),
        "our" => "your".to_owned(),
        "us" => "you".to_owned(),
        word => word.to_owned(),
    };
    let rest: Vec<String> = rest.split(' ').map(yours).collect();
    (format!("{verb} {}", rest.join(" ")).trim_end().to_owned(), kind)
}

/// A short title from what is done.
fn title(order: &str) -> String {
    const SMALL: [&str; 8] = ["me", "us", "about", "on", "the", "a", "an", "mir"];
    let mut words = order.split_whitespace().peekable();
    if words
        .peek()
        .is_some_and(|word| verb_of(&word.to_lowercase()).is_some_and(|(verb, _, _)| *verb != "remind"))
    {
        words.next();
    }
    let rest: Vec<&str> = words.skip_while(|word| SMALL.contains(&word.to_lowercase().as_str())).collect();
    shortened(&intent::subject(&rest.join(" ")), 60)
}

fn ready(ask: &Ask, known: &Known) -> DemoReply {
    let now = ask.now.as_ref();
    let order = order(&known.work);
    let (does, kind) = third_person(order);
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "An" } else { "A" };
    let schedule = known.schedule.clone().flatten();
    let due = schedule.as_ref().and_then(|schedule| when::in_words(schedule, now));
    let is_once = schedule.as_ref().is_some_and(|schedule| schedule.get("at").is_some());
    let title = title(order);
    let mut first = json!({
        "title": title,
        "description": "",
        "task_config": {
            "instructions": shortened(&sentence(order), 20_000),
            "expected_output": "Summary, main points and next steps",
        },
    });
    if let Some(schedule) = schedule {
        first["schedule"] = schedule;
    }
    let draft = json!({
        "title": title,
        "goal": shortened(&format!("{article} {kind} agent that {does}"), 2_000),
        "success_criteria": "Each result is complete and short, and it comes on time.",
        "timeline": if is_once { "Once" } else { "Ongoing" },
        "instructions": "Write briefly and plainly.",
        "first_action": first,
    });
    let words = match due {
        Some(due) => format!("This is the ticket: {title}. {due} Check it, and create it with one press."),
        None => format!(
            "This is the ticket: {title}. It runs when you run it. Check it, and create it with one press."
        ),
    };
    if ask.offers("ready_to_create") {
        return DemoReply { text: words, call: Some(("ready_to_create".into(), draft)) };
    }
    let line = |name: &str| draft[name].as_str().unwrap_or_default().to_owned();
    text(format!(
        "READY_TO_CREATE\n---\nTITLE: {}\nGOAL: {}\nSUCCESS_CRITERIA: {}\nTIMELINE: {}\nINSTRUCTIONS: {}\nFIRST_ACTION: {}",
        line("title"),
        line("goal"),
        line("success_criteria"),
        line("timeline"),
        line("instructions"),
        draft["first_action"],
    ))
}

/// With a capital letter and a full stop.
fn sentence(words: &str) -> String {
    let mut characters = words.trim().chars();
    let Some(first) = characters.next() else { return String::new() };
    let text: String = first.to_uppercase().chain(characters).collect();
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use domain::chats::signals::{Deliverable, Reply};
    use jiff::ZonedDateTime;

    use super::super::ask::Scene;
    use super::super::rules::answer as whole;
    use super::*;

    /// Wednesday, 25 November 2026, 14:31 in Berlin.
    fn now() -> ZonedDateTime {
        "2026-11-25T14:31:00+01:00[Europe/Berlin]".parse().unwrap()
    }

    fn ask(said: &[&str], tools: &[&str]) -> Ask {
        Ask {
            scene: Scene::Setup,
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            said: said.iter().map(|said| (*said).to_owned()).collect(),
            view: String::new(),
            now: Some(now()),
            spoken: said.len().saturating_sub(1),
            results: Vec::new(),
            turn: None,
        }
    }

    /// The title, the schedule and the instructions of the ticket, or what is asked.
    fn ticket(said: &[&str]) -> Result<(String, Value, String), String> {
        let reply = whole(&ask(said, &["ready_to_create"]));
        let Some((name, input)) = reply.call else { return Err(reply.text) };
        assert_eq!(name, "ready_to_create");
        let by_tool = Deliverable::from_tool_call(&name, &input).unwrap();
        let Deliverable::ReadyToCreate(draft) = &by_tool else { panic!("{said:?}: {by_tool:?}") };
        // A model without tools says the same.
        let by_signal = Reply::parse(&whole(&ask(said, &[])).text);
        assert_eq!(by_signal.deliverables, std::slice::from_ref(&by_tool), "{said:?}");
        let first = *draft.first_action.clone().expect("a first action");
        Ok((first.title, first.schedule.unwrap_or_default(), first.task_config.instructions))
    }

    /// Each sentence has a ticket with this schedule, or one question. Nothing is ignored.
    #[test]
    fn one_sentence_is_enough() {
        let cron = |text: &str| json!({"cron": text});
        let every = |text: &str| json!({"every": text});
        let at = |text: &str| json!({"at": text});
        for (said, title, schedule, instructions) in [
            (
                "Tell me every weekday at 7 what changed at my competitors",
                "What changed at my competitors",
                cron("0 7 * * MON-FRI"),
                "Tell me what changed at my competitors.",
            ),
            (
                "Every weekday at 7, tell me what changed at my competitors.",
                "What changed at my competitors",
                cron("0 7 * * MON-FRI"),
                "Tell me what changed at my competitors.",
            ),
            (
                "Write a market report every Monday at 9",
                "Market report",
                cron("0 9 * * MON"),
                "Write a market report.",
            ),
            (
                "Please send me a summary of the news every morning",
                "Summary of the news",
                cron("0 9 * * *"),
                "Send me a summary of the news.",
            ),
            (
                "Remind me to water the plants every Tuesday at 18:00",
                "Water the plants",
                cron("0 18 * * TUE"),
                "Remind me to water the plants.",
            ),
            (
                "Check the stock of lamp oil every 2 hours",
                "Stock of lamp oil",
                every("2h"),
                "Check the stock of lamp oil.",
            ),
            (
                "Can you draft a newsletter on the first of every month at 10?",
                "Newsletter",
                cron("0 10 1 * *"),
                "Draft a newsletter.",
            ),
            (
                "I want you to quiz me on Spanish words every day at 8 pm",
                "Spanish words",
                cron("0 20 * * *"),
                "Quiz me on Spanish words.",
            ),
            (
                "Remind me tomorrow at 5 pm to call Ann",
                "Call Ann",
                at("2026-11-26T17:00"),
                "Remind me to call Ann.",
            ),
            ("Summarise my week every Friday at 16:30", "Week", cron("30 16 * * FRI"), "Summarise my week."),
            (
                "Give me three ideas for dinner daily at 17:00",
                "Three ideas for dinner",
                cron("0 17 * * *"),
                "Give me three ideas for dinner.",
            ),
            ("Review the plan on weekdays at 8:15", "Plan", cron("15 8 * * MON-FRI"), "Review the plan."),
            (
                "Make a list of open questions every other day",
                "List of open questions",
                every("2d"),
                "Make a list of open questions.",
            ),
            ("List ideas for posts twice a week", "", Value::Null, ""),
            ("Schicke mir täglich um 7 Uhr einen Witz", "", cron("0 7 * * *"), ""),
            ("Sag mir stündlich eine Zahl", "Eine Zahl", every("1h"), "Sag mir eine Zahl."),
            ("Erinnere mich jeden Montag um 9 Uhr", "", cron("0 9 * * MON"), ""),
            (
                "An agent that writes a poem every evening at 9 pm",
                "Poem",
                cron("0 21 * * *"),
                "Writes a poem.",
            ),
            (
                "Every 30 minutes check if the lamp is lit",
                "If the lamp is lit",
                every("30m"),
                "Check if the lamp is lit.",
            ),
            (
                "Track my weight every Sunday at 8 in New York",
                "Weight",
                json!({"cron": "0 8 * * SUN", "timezone": "America/New_York"}),
                "Track my weight.",
            ),
            ("Wish my team a good weekend on Fridays at 15:00", "", cron("0 15 * * FRI"), ""),
            (
                "Hey, remind me in 20 minutes to stretch",
                "Stretch",
                at("2026-11-25T14:51:00+01:00"),
                "Remind me to stretch.",
            ),
            ("every weekday at 7: what is new in my garden", "", cron("0 7 * * MON-FRI"), ""),
        ] {
            let found = ticket(&[said]);
            if std::env::var_os("SHOW").is_some() {
                println!("{said:60} {found:?}");
                continue;
            }
            let Ok((found_title, found, found_instructions)) = found else {
                // "twice a week" names no days.
                assert_eq!(schedule, Value::Null, "{said}: {found:?}");
                continue;
            };
            assert_eq!(found, schedule, "{said}");
            if !title.is_empty() {
                assert_eq!(
                    (found_title.as_str(), found_instructions.as_str()),
                    (title, instructions),
                    "{said}"
                );
            }
        }
        for (said, asked) in [
            ("Tell me what changed at my competitors", WHEN),
            ("Send me a daily report at sunrise", "I can't plan \"sunrise\""),
            ("Remind me at sunset to close the shutters", "I can't plan \"sunset\""),
            ("Remind me later to call Ann", WHEN),
            ("Write a report every Monday at 25:00", "25:00"),
            ("Check the oil every other Friday", "every other"),
            ("Send the news every second", WHEN),
            ("Remind me yesterday at 5 to call Ann", "is in the past"),
            ("Hello", "What should your agent do?"),
            ("What can you do?", "What should your agent do?"),
            ("A research agent that watches prices", "How will you know that it works?"),
            ("I need an agent", "What should your agent do?"),
            ("Write a report every Monday at 9 and every Friday at 17:00", "several repetitions"),
            ("Send me the weather", WHEN),
            ("Post the numbers", WHEN),
            ("Summarise the news for my team", WHEN),
            ("🦀", "What should your agent do?"),
        ] {
            let found = ticket(&[said]);
            if std::env::var_os("SHOW").is_some() {
                println!("{said:60} {found:?}");
                continue;
            }
            let question = found.expect_err(said);
            assert!(question.contains(asked), "{said}: {question}");
        }
    }

    #[test]
    fn one_question_is_answered_and_a_ticket_is_changed() {
        let said = |said: &[&str]| ticket(said).map(|(title, schedule, _)| (title, schedule));
        let title = "What changed at my competitors".to_owned();
        let first = "Tell me what changed at my competitors";
        assert_eq!(
            said(&[first, "every weekday at 7"]),
            Ok((title.clone(), json!({"cron": "0 7 * * MON-FRI"})))
        );
        assert_eq!(said(&[first, "when I ask"]), Ok((title.clone(), Value::Null)));
        assert_eq!(said(&[first, "by hand"]), Ok((title.clone(), Value::Null)));
        assert!(said(&[first, "I don't know"]).unwrap_err().contains(WHEN));
        assert!(said(&[first, "at sunrise"]).unwrap_err().contains("I can't plan \"sunrise\""));
        // A change of the time keeps the work, and a change of the work keeps the time.
        let planned = "Tell me every weekday at 7 what changed at my competitors";
        assert_eq!(said(&[planned, "at 8 instead"]), Ok((title.clone(), json!({"cron": "0 8 * * MON-FRI"}))));
        assert_eq!(
            said(&[planned, "Every day at 8 instead"]),
            Ok((title.clone(), json!({"cron": "0 8 * * *"})))
        );
        assert_eq!(
            said(&[planned, "Tell me what changed at the port"]),
            Ok(("What changed at the port".into(), json!({"cron": "0 7 * * MON-FRI"})))
        );
        assert!(said(&[planned, "make it nicer"]).unwrap_err().contains("I understood no change"));
        assert_eq!(
            said(&[planned, "nonsense", "at 8 instead"]),
            Ok((title, json!({"cron": "0 8 * * MON-FRI"})))
        );
    }
}
