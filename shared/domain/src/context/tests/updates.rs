//! When a document begins anew, how updates merge, and why updates are refused.

use super::{at, begun};
use crate::context::mode::parse;
use crate::context::update::{Update, begin, begins};
use crate::context::{Document, MAX_DOCUMENT, MAX_ITEM, Mode, RecommendedAgent};
use crate::validate::FieldErrors;

const NOW: &str = "2026-01-11T12:30:00Z";

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

fn decisions(items: &[&str]) -> Update {
    Update { decisions: texts(items), ..Update::default() }
}

fn updated(document: &Document, mode: Mode, update: &Update) -> Document {
    document.updated(mode, update, at(NOW)).unwrap()
}

#[test]
fn only_an_explicit_plan_and_the_first_round_of_a_task_begin_anew() {
    let plan = begun("x");
    let running = updated(&plan, Mode::Auto, &decisions(&["a"]));
    let done =
        updated(&running, Mode::Auto, &Update { status: Some("completed".into()), ..Update::default() });
    let restated = updated(
        &begin(Mode::Auto, "Build it", None, at(NOW)).0,
        Mode::Auto,
        &Update { task: Some("Login".into()), ..Update::default() },
    );
    let long = "é".repeat(5_000);
    let begun_long = begin(Mode::Auto, &long, None, at(NOW)).0;
    for (prompt, document, expected) in [
        ("PLAN y", None, true),
        ("PLAN y", Some(&plan), true),
        ("PLAN y", Some(&running), true),
        ("PLAN", Some(&plan), true),
        // Without a keyword, an existing document is kept.
        ("y", None, true),
        ("y", Some(&plan), false),
        ("y", Some(&running), false),
        ("y", Some(&done), false),
        ("please PLAN y", Some(&plan), false),
        ("", Some(&plan), false),
        ("ACT y", None, false),
        ("ACT y", Some(&plan), false),
        ("EVAL y", None, false),
        ("EVAL y", Some(&plan), false),
        // The first round of a task, and the next ones.
        ("AUTO y", None, true),
        ("AUTO x", Some(&plan), true),
        ("AUTO x", Some(&running), false),
        ("AUTO", Some(&running), false),
        ("AUTO continue", Some(&running), false),
        ("AUTO: Go on!", Some(&running), false),
        ("自动 继续", Some(&running), false),
        ("AUTO x", Some(&done), true),
        ("AUTO", Some(&done), true),
        // Another task, whose models did not report that the first task is finished.
        ("AUTO y", Some(&running), true),
        ("AUTO continue with y", Some(&running), true),
        ("AUTO Build it", Some(&restated), false),
        ("AUTO Login", Some(&restated), true),
        (&format!("AUTO {long}"), Some(&begun_long), false),
        (&format!("AUTO {long}!"), Some(&begun_long), true),
    ] {
        assert_eq!(begins(&parse(prompt), document), expected, "{prompt} {document:?}");
    }
}

#[test]
fn a_workflow_begins_with_its_task_and_an_empty_section() {
    let agent = RecommendedAgent { name: "backend-developer".into(), confidence: None };
    let (document, cut) = begin(Mode::Plan, " Log in \n", Some(agent.clone()), at("2026-01-11T10:00:00.75Z"));
    assert!(!cut);
    assert_eq!(document.task.as_deref(), Some("Log in"));
    assert_eq!(document.created_at, at("2026-01-11T10:00:00Z"));
    assert_eq!(document.sections.len(), 1);
    assert_eq!(document.section(Mode::Plan).unwrap().recommended_act_agent, Some(agent));
    assert_eq!(begin(Mode::Auto, " ", None, at(NOW)).0.task, None);

    let (long, cut) = begin(Mode::Plan, &"é".repeat(5_000), None, at(NOW));
    let task = long.task.clone().unwrap();
    assert!(cut && task.ends_with("… [3040 more characters]") && task.chars().count() <= MAX_ITEM, "{task}");
    assert!(long.validated().is_ok());
}

#[test]
fn updates_merge_into_the_one_section_of_their_mode() {
    let check = |updates: &[(Mode, &[&str])], expected: &[(Mode, &[&str])]| {
        let document =
            updates.iter().fold(begun("x"), |d, (mode, items)| updated(&d, *mode, &decisions(items)));
        let sections: Vec<(Mode, Vec<String>)> =
            document.sections.iter().map(|section| (section.mode, section.decisions.clone())).collect();
        let expected: Vec<_> = expected.iter().map(|(mode, items)| (*mode, texts(items))).collect();
        assert_eq!(sections, expected);
    };
    check(&[], &[(Mode::Plan, &[])]);
    check(&[(Mode::Plan, &["a"]), (Mode::Plan, &["b"])], &[(Mode::Plan, &["a", "b"])]);
    check(&[(Mode::Plan, &["a", "b", "a"]), (Mode::Plan, &["c", "a"])], &[(Mode::Plan, &["a", "b", "c"])]);
    check(&[(Mode::Plan, &["a", "A", "a "])], &[(Mode::Plan, &["a", "A", "a "])]);
    check(
        &[(Mode::Act, &["a"]), (Mode::Eval, &["b"]), (Mode::Act, &["c"]), (Mode::Plan, &["d"])],
        &[(Mode::Plan, &["d"]), (Mode::Act, &["a", "c"]), (Mode::Eval, &["b"])],
    );
    check(&[(Mode::Auto, &["a"]), (Mode::Auto, &["b"])], &[(Mode::Plan, &[]), (Mode::Auto, &["a", "b"])]);
}

#[test]
fn every_field_of_an_update_finds_its_place() {
    let update = Update {
        title: Some("Login".into()),
        task: Some("Implement".into()),
        decisions: texts(&["d"]),
        progress: texts(&["p"]),
        findings: texts(&["f"]),
        recommendations: texts(&["r"]),
        notes: texts(&["n"]),
        recommended_act_agent: Some("backend-developer".into()),
        recommended_act_agent_confidence: Some(0.9),
        status: Some("in_progress".into()),
    };
    let plan = updated(&begun("old"), Mode::Plan, &update);
    assert_eq!((plan.title.as_deref(), plan.task.as_deref()), (Some("Login"), Some("Implement")));
    assert_eq!((plan.created_at, plan.updated_at), (at("2026-01-11T10:00:00Z"), at(NOW)));
    let section = plan.section(Mode::Plan).unwrap();
    let lists: Vec<String> = section.lists().iter().flat_map(|(_, list)| list.iter().cloned()).collect();
    assert_eq!(lists, ["d", "p", "f", "r", "n"]);
    assert_eq!((section.status.as_deref(), section.task.as_deref()), (Some("in_progress"), None));
    assert_eq!(section.updated_at, at(NOW));
    let agent = section.recommended_act_agent.as_ref().unwrap();
    assert_eq!((agent.name.as_str(), agent.confidence.map(f64::from)), ("backend-developer", Some(0.9)));

    // The task of another mode is its own; the document keeps its task.
    let act = updated(&plan, Mode::Act, &Update { task: Some("A part of it".into()), ..Update::default() });
    assert_eq!(act.task.as_deref(), Some("Implement"));
    assert_eq!(act.section(Mode::Act).unwrap().task.as_deref(), Some("A part of it"));
    let same = updated(&plan, Mode::Act, &Update { task: Some("Implement".into()), ..Update::default() });
    assert_eq!(same.section(Mode::Act).unwrap().task, None);

    // A confidence without an agent applies to the agent that is already recommended.
    let surer = Update { recommended_act_agent_confidence: Some(1.0), ..Update::default() };
    let surer = updated(&plan, Mode::Plan, &surer);
    let agent = surer.section(Mode::Plan).unwrap().recommended_act_agent.clone().unwrap();
    assert_eq!((agent.name.as_str(), agent.confidence.map(f64::from)), ("backend-developer", Some(1.0)));
}

#[test]
fn an_update_without_new_content_changes_nothing() {
    let document = updated(&begun("x"), Mode::Plan, &decisions(&["a"]));
    let later = at("2026-02-01T00:00:00Z");
    assert_eq!(document.updated(Mode::Plan, &decisions(&["a"]), later).unwrap(), document);
    assert_eq!(document.updated(Mode::Plan, &Update::default(), later).unwrap(), document);
    assert_ne!(document.updated(Mode::Act, &Update::default(), later).unwrap(), document);
}

#[test]
fn a_refusal_names_the_field_and_the_limit() {
    let check = |update: Update, expected: &[&str]| {
        let FieldErrors(errors) = begun("x").updated(Mode::Act, &update, at(NOW)).unwrap_err();
        let lines: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect();
        assert_eq!(lines, expected);
    };
    let of = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
    let long = || "x".repeat(MAX_ITEM + 1);
    let none = Update::default;
    check(
        Update { progress: of(101), ..none() },
        &["items: one call may bring at most 100 items, this one brings 101"],
    );
    check(
        Update { progress: of(60), notes: of(60), ..none() },
        &["items: one call may bring at most 100 items, this one brings 120"],
    );
    check(
        Update { notes: vec!["ok".into(), long(), " \n".into()], ..none() },
        &[
            "notes[1]: must be 1 to 2000 characters, is 2001",
            "notes[2]: must not be blank (1 to 2000 characters)",
        ],
    );
    check(
        Update { title: Some("t".repeat(201)), task: Some(String::new()), ..none() },
        &["title: must be 1 to 200 characters, is 201", "task: is required (1 to 2000 characters)"],
    );
    for (confidence, shown) in [(1.5, "1.5"), (-0.1, "-0.1")] {
        let message = format!("recommendedActAgentConfidence: must be a number from 0 to 1, is {shown}");
        let agent = Some("a".to_owned());
        check(
            Update {
                recommended_act_agent: agent,
                recommended_act_agent_confidence: Some(confidence),
                ..none()
            },
            &[&message],
        );
    }
    check(
        Update { recommended_act_agent_confidence: Some(0.5), ..none() },
        &["recommendedActAgentConfidence: needs recommendedActAgent: no agent is recommended yet"],
    );
    check(
        Update { recommended_act_agent: Some("a (b)".into()), status: Some("a\nb".into()), ..none() },
        &[
            "recommendedActAgent: must not have parentheses",
            "status: must be one line, without blanks around it",
        ],
    );
    assert!(begun("x").updated(Mode::Act, &Update { progress: of(100), ..none() }, at(NOW)).is_ok());
    let exactly = Update { notes: vec!["é".repeat(MAX_ITEM)], ..none() };
    assert!(begun("x").updated(Mode::Act, &exactly, at(NOW)).is_ok());
}

#[test]
fn a_document_that_would_grow_too_large_stays_as_it_is() {
    let mut document = begun("x");
    let full = (0..).find_map(|round| {
        let items: Vec<String> = (0..60).map(|i| format!("{round} {i} {}", "x".repeat(1_900))).collect();
        match document.updated(Mode::Act, &Update { progress: items, ..Update::default() }, at(NOW)) {
            Ok(larger) => document = larger,
            Err(errors) => return Some(errors.to_string()),
        }
        None
    });
    let full = full.unwrap();
    let expected =
        "document: a context document has at most 262144 bytes of Markdown (256 KiB); this would have ";
    assert!(full.starts_with(expected), "{full}");
    assert!(crate::context::markdown::export(&document).len() <= MAX_DOCUMENT);
    assert_eq!(document.section(Mode::Act).unwrap().progress.len(), 120);
}

/// Comparing every item with every other item would take half a minute here.
#[test]
fn a_document_of_many_short_items_keeps_them_all() {
    let items: String = (0..30_000).map(|n| format!("- {n:05}\n")).collect();
    let text = format!("# Context Document\n\n## PLAN\n\n### Decisions\n{items}");
    let document = crate::context::import::import(&text, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(document.sections[0].decisions.len(), 30_000);
}
