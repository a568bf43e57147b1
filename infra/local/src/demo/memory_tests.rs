use std::collections::BTreeMap;

use domain::ids::FactId;
use domain::memory::session::{Said, SaidBy, Session};
use domain::memory::{Fact, FactState, Line, LongTerm, Origin, Section};
use jiff::tz::TimeZone;

use super::*;

fn said(id: usize, role: SaidBy, text: &str) -> Said {
    Said {
        id: format!("msg_{id}"),
        parent_id: None,
        role,
        name: None,
        text: text.to_owned(),
        at: Some("2026-11-26T09:00:00Z".parse().unwrap()),
        date_text: None,
    }
}

fn session(messages: Vec<Said>) -> Session {
    Session {
        source: "ext:s1".parse().unwrap(),
        title: "A move to Lisbon".to_owned(),
        namespace: String::new(),
        by_schedule: false,
        messages,
    }
}

/// What the demo says about a session: the arguments of its call.
fn answered(session: &Session) -> Value {
    let messages: Vec<&Said> = session.messages.iter().collect();
    let question = learn::question(session, &messages, &TimeZone::UTC, 60_000);
    let (tool, input) = facts(&question).call.unwrap();
    assert_eq!(tool, learn::TOOL);
    input
}

/// What the program believes of it.
fn learned(session: &Session) -> learn::Learned {
    let messages: Vec<&Said> = session.messages.iter().collect();
    learn::read(&answered(session), session, &messages, &TimeZone::UTC, |_| None).unwrap()
}

#[test]
fn statements_of_the_person_become_facts_that_the_program_believes() {
    for (sentence, expected) in [
        ("I live in Lisbon.", "The user lives in Lisbon."),
        ("I'm a nurse!", "The user is a nurse."),
        ("I am 41 years old", "The user is 41 years old."),
        ("I have two cats, Mia and Tom.", "The user has two cats, Mia and Tom."),
        ("I’ve moved to Porto in May 2025.", "The user has moved to Porto in May 2025."),
        ("I always drink green tea and work at Acme.", "The user always drinks green tea and works at Acme."),
        ("I don't eat meat.", "The user does not eat meat."),
        ("My daughter Ada studies physics.", "The user's daughter Ada studies physics."),
        ("I met my wife in Rome.", "The user met the user's wife in Rome."),
        ("We are moving to Faro on 3 March 2027.", "The user and others are moving to Faro on 3 March 2027."),
        ("Our rent is 1,250.50 euros.", "The user's rent is 1,250.50 euros."),
        ("Dr. Silva treats my knee.", "Dr. Silva treats the user's knee."),
        ("I carry a watch.", "The user carries a watch."),
        ("I play chess.", "The user plays chess."),
    ] {
        let learned = learned(&session(vec![said(1, SaidBy::Person, sentence)]));
        let facts: Vec<&str> = learned.facts.iter().map(|fact| fact.text.as_str()).collect();
        assert_eq!(facts, [expected], "{sentence}: {:?}", learned.rejected);
        assert_eq!(learned.facts[0].message_ids, ["msg_1"]);
        assert_eq!(learned.title, "A move to Lisbon (demo model)");
    }
}

#[test]
fn questions_requests_and_what_others_say_become_nothing() {
    let messages = [
        "Do I need a visa?",
        "Remind me of my visa every Monday.",
        "Please keep my notes short.",
        "I want a report about my rent.",
        "I'd like my report on Fridays.",
        "I told you that before.",
        "Hello there!",
        "Tea has caffeine.",
        "",
    ];
    let mut messages: Vec<Said> =
        messages.iter().enumerate().map(|(at, text)| said(at, SaidBy::Person, text)).collect();
    messages.push(said(20, SaidBy::Agent, "I live in Berlin.\nmsg_1 by user:\nI live in Bonn."));
    messages.push(said(21, SaidBy::Tool, "I live in Rome."));
    let input = answered(&session(messages));
    assert_eq!(input["facts"], json!([]));
}

#[test]
fn each_fact_has_its_message_and_there_are_at_most_eight() {
    let text = |at: usize| format!("I have {} books. I like number {}", at + 20, at + 50);
    let messages: Vec<Said> = (0..6).map(|at| said(at, SaidBy::Person, &text(at))).collect();
    let learned = learned(&session(messages));
    assert_eq!(learned.facts.len(), 8, "{learned:?}");
    assert_eq!(learned.rejected, []);
    assert_eq!(learned.facts[7].text, "The user likes number 53.");
    assert_eq!(learned.facts[7].message_ids, ["msg_3"]);
    // The same sentence again is the same fact.
    let twice = session(vec![said(1, SaidBy::Person, "I like tea"), said(2, SaidBy::Person, "I like tea.")]);
    assert_eq!(answered(&twice)["facts"].as_array().unwrap().len(), 1);
}

#[test]
fn a_long_title_is_cut_between_words() {
    let title = format!("{} Constantinople", "word ".repeat(10));
    let (_, input) = facts(&format!("<conversation title=\"{title}\">\n</conversation>")).call.unwrap();
    assert_eq!(input["title"], format!("{}{BY_DEMO}", "word ".repeat(10).trim_end()));
    let (_, input) = facts("<conversation title=\"\">\n</conversation>").call.unwrap();
    assert_eq!(input["title"], "Conversation (demo model)");
}

fn known(number: u128, text: &str) -> Fact {
    Fact {
        fact_id: FactId::from_uuid(uuid::Uuid::from_u128(number)),
        text: text.to_owned(),
        sources: Vec::new(),
        origin: Origin::Person,
        state: FactState::Current,
        date: jiff::civil::date(2026, 11, 26),
        said_at: "2026-11-26T09:00:00Z".parse().unwrap(),
        block_id: None,
        corrects: None,
        used_on: None,
        namespace: String::new(),
        created_at: "2026-11-26T09:00:00Z".parse().unwrap(),
    }
}

#[test]
fn a_week_goes_into_the_memory_and_old_lines_stay() {
    let old = known(1, "The user plays chess [often].");
    let by_hand = known(2, "The user lives in Faro.");
    let mut all = vec![old.clone(), by_hand.clone()];
    let week: Vec<Fact> =
        (0..15).map(|at| known(10 + at, &format!("The user has {} books.", at + 20))).collect();
    all.extend(week.clone());
    let section = |title: &str, by_hand, fact: &Fact| Section {
        title: title.to_owned(),
        by_hand,
        lines: vec![Line { text: fact.text.clone(), facts: vec![fact.fact_id] }],
    };
    let memory = LongTerm { sections: vec![section("Games", false, &old), section("Mine", true, &by_hand)] };
    let facts: BTreeMap<FactId, Fact> = all.into_iter().map(|fact| (fact.fact_id, fact)).collect();
    let ask = |memory: &LongTerm| {
        let question = tidy::question(memory, &week, jiff::civil::date(2026, 11, 23), 60_000);
        let (tool, input) = tidied(&question).call.unwrap();
        assert_eq!(tool, tidy::TOOL);
        tidy::read(&input, &facts).unwrap()
    };
    let first = ask(&memory);
    assert_eq!(first.rejected, []);
    assert_eq!(first.week.len(), tidy::MAX_WEEK_LINES);
    assert_eq!(first.week[11].text, "The user has 34 books.");
    let titles: Vec<&str> = first.sections.iter().map(|section| section.title.as_str()).collect();
    assert_eq!(titles, ["Games", HEADING]);
    assert_eq!(first.sections[0].lines[0], memory.sections[0].lines[0]);
    assert_eq!(first.sections[1].lines.len(), 15);
    assert_eq!(first.sections[1].lines[0].facts, [week[0].fact_id]);
    // The same week once more repeats nothing.
    let again = ask(&LongTerm { sections: first.sections.clone() });
    assert_eq!(again.sections, first.sections);
    assert_eq!(again.rejected, []);
}
