use jiff::Timestamp;
use serde_json::{Value, json};

use super::results::{MAX_RESULT, MAX_STORED, stored};
use super::*;
use crate::actions::conditions::Report;
use crate::models::{Block, Message, Role};

const CHAT: Policy = Policy {
    max_steps: 8,
    talks_at_last: true,
    max_repairs: 1,
    continues_cut_off: false,
    checked: None,
    has_conditions: false,
    until: Timestamp::MAX,
};

const RUN: Policy = Policy {
    max_steps: 24,
    talks_at_last: false,
    max_repairs: usize::MAX,
    continues_cut_off: true,
    checked: Some(Revisions(2)),
    has_conditions: false,
    until: Timestamp::MAX,
};

const TALK: Next = Next::CallModel { may_call_tools: true };

fn native(name: &str, input: Value) -> Call {
    Call { id: Some(format!("id-{name}")), name: name.into(), input, invalid: None, implied: false }
}

/// A reply that said something and made these calls, with the results that are there.
fn work(calls: Vec<Call>, results: Vec<CallResult>) -> Step {
    let mut blocks = vec![Block::text("words")];
    let uses = calls.iter().filter(|call| call.invalid.is_none());
    blocks.extend(uses.filter_map(|call| {
        let (id, name, input) = (call.id.clone()?, call.name.clone(), call.input.clone());
        Some(Block::ToolUse { id, name, input })
    }));
    Step { purpose: Purpose::Work, reply: Reply { blocks, calls, ..Reply::default() }, results }
}

fn said(stop: StopReason) -> Step {
    let reply = Reply { blocks: vec![Block::text("words")], stop, ..Reply::default() };
    Step { reply, ..Step::default() }
}

fn read(result: &str) -> Step {
    work(vec![native("query_assets", json!({}))], vec![CallResult::told(result)])
}

fn check(text: &str) -> Step {
    Step {
        purpose: Purpose::Check,
        reply: Reply { text: text.into(), ..Reply::default() },
        results: Vec::new(),
    }
}

fn of(steps: Vec<Step>, outputs: usize) -> Transcript {
    Transcript { steps, outputs }
}

fn then(steps: Vec<Step>, outputs: usize, policy: &Policy) -> Next {
    next(&of(steps, outputs), policy, Timestamp::UNIX_EPOCH)
}

fn failed(next: &Next) -> &'static str {
    match next {
        Next::Finish(Outcome::Failed { code, .. }) => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_turn_goes_on_while_there_is_something_to_tell() {
    let done = Next::Finish(Outcome::completed());
    let call = || native("query_assets", json!({}));
    let broken = || Call { invalid: Some("cut off".into()), ..native("generate_asset", Value::Null) };
    let delivered = || work(vec![native("generate_asset", json!({}))], vec![CallResult::rest("it waits")]);
    let repair = || work(vec![broken()], vec![CallResult::repair("cut off")]);
    let cut_off_with = |result: CallResult| {
        let mut step = work(vec![call()], vec![result]);
        step.reply.stop = StopReason::MaxTokens;
        step
    };
    for (what, steps, expected) in [
        ("nothing was said yet", vec![], TALK),
        ("it only talked", vec![said(StopReason::EndTurn)], done.clone()),
        ("it was cut off", vec![said(StopReason::MaxTokens)], done.clone()),
        ("it paused", vec![said(StopReason::Pause)], TALK),
        ("a call has no result yet", vec![work(vec![call()], vec![])], Next::Perform { from: 0 }),
        (
            "the second call has none",
            vec![work(vec![call(), call()], vec![CallResult::told("1")])],
            Next::Perform { from: 1 },
        ),
        ("it looked something up", vec![read("one")], TALK),
        ("it delivered", vec![delivered()], done.clone()),
        (
            "it delivered and looked something up",
            vec![work(
                vec![native("generate_asset", json!({})), call()],
                vec![CallResult::rest("it waits"), CallResult::told("1")],
            )],
            TALK,
        ),
        ("what it delivered was broken", vec![repair()], TALK),
        ("it was broken again", vec![repair(), repair()], done.clone()),
        ("it was repaired", vec![repair(), delivered()], done.clone()),
        ("it was cut off after a call", vec![cut_off_with(CallResult::told("1"))], done.clone()),
        ("it was cut off in a call", vec![cut_off_with(CallResult::repair("cut off"))], TALK),
    ] {
        assert_eq!(then(steps, 0, &CHAT), expected, "{what}");
    }
}

#[test]
fn the_last_step_of_a_turn_only_talks() {
    let steps = |n: usize| (0..n).map(|i| read(&format!("result {i}"))).collect::<Vec<_>>();
    assert_eq!(then(steps(6), 0, &CHAT), TALK);
    assert_eq!(then(steps(7), 0, &CHAT), Next::CallModel { may_call_tools: false });
    assert_eq!(then(steps(8), 0, &CHAT), Next::Finish(Outcome::completed()));
    assert_eq!(then(steps(23), 0, &RUN), TALK);
    assert_eq!(failed(&then(steps(24), 0, &RUN)), "too_many_steps");
    let late =
        next(&of(steps(1), 0), &Policy { until: Timestamp::UNIX_EPOCH, ..CHAT }, Timestamp::UNIX_EPOCH);
    assert_eq!(failed(&late), "run_too_long");
}

#[test]
fn conditions_are_checked_before_the_model_checks_and_revised_once() {
    let policy = Policy { has_conditions: true, ..RUN };
    let saved = || work(vec![native("save_output", json!({}))], vec![CallResult::told("saved")]);
    let end = || said(StopReason::EndTurn);
    let conditions = |unmet: &[&str]| {
        let report = Report { unmet: unmet.iter().map(|text| (*text).to_owned()).collect() };
        Step { purpose: Purpose::Conditions, ..check(&report.to_text()) }
    };
    let (met, unmet) = (|| conditions(&[]), || conditions(&["no output names the date", "no heading"]));
    let bad = || check(r#"{"score": 40, "meets": false, "missing": ["prices"]}"#);
    let good = || check(r#"{"score": 90, "meets": true}"#);
    let scored = Next::Finish(Outcome::Completed { score: Some(90), note: None });
    let not_met = |steps: Vec<Step>| match then(steps, 1, &policy) {
        Next::Finish(Outcome::Failed { code: "condition_not_met", detail }) => detail,
        other => panic!("{other:?}"),
    };
    assert_eq!(failed(&then(vec![end()], 0, &policy)), "empty_output");
    assert_eq!(then(vec![saved(), end()], 1, &policy), Next::CheckConditions);
    assert_eq!(then(vec![saved(), end(), met()], 1, &policy), Next::Check);
    assert_eq!(then(vec![saved(), end(), met(), good()], 1, &policy), scored);

    // The run is told once what is missing.
    let mut steps = vec![saved(), end(), unmet()];
    assert_eq!(then(steps.clone(), 1, &policy), TALK);
    let last = of(steps.clone(), 1).messages(true).pop().unwrap();
    let told = last.text();
    assert!(last.role == Role::User && told.contains("no output names the date; no heading"), "{told}");
    steps.extend([saved(), end()]);
    assert_eq!(then(steps.clone(), 1, &policy), Next::CheckConditions);
    let again = |more: Step| steps.iter().cloned().chain([more]).collect::<Vec<_>>();
    assert!(not_met(again(unmet())).ends_with("no output names the date; no heading"));
    assert_eq!(then(again(met()), 1, &policy), Next::Check);

    // A revision that the model's check asked for is checked, too. It does not count as the one of the conditions.
    let mut steps = vec![saved(), end(), met(), bad(), saved(), end()];
    assert_eq!(then(steps.clone(), 1, &policy), Next::CheckConditions);
    steps.push(unmet());
    assert_eq!(then(steps.clone(), 1, &policy), TALK);
    steps.extend([saved(), end(), unmet()]);
    not_met(steps);

    // What can't be read is not met.
    let unreadable = || Step { purpose: Purpose::Conditions, ..check("?") };
    assert_eq!(then(vec![saved(), end(), unreadable()], 1, &policy), TALK);
    not_met(vec![saved(), end(), unreadable(), end(), unreadable()]);
}

#[test]
fn a_run_saves_is_checked_and_revised() {
    let saved = || work(vec![native("save_output", json!({}))], vec![CallResult::told("saved")]);
    let end = || said(StopReason::EndTurn);
    let good = || check(r#"The verdict: {"score": 90, "meets": true}"#);
    let bad = || check(r#"{"score": 40, "meets": false, "missing": ["prices"]}"#);
    let vague = || check("It looks fine to me.");
    let scored = Next::Finish(Outcome::Completed { score: Some(90), note: None });
    assert_eq!(then(vec![saved()], 1, &RUN), TALK);
    assert_eq!(then(vec![said(StopReason::MaxTokens)], 0, &RUN), TALK);
    assert_eq!(failed(&then(vec![end()], 0, &RUN)), "empty_output");
    assert_eq!(then(vec![saved(), end()], 1, &RUN), Next::Check);
    assert_eq!(then(vec![saved(), end(), good()], 1, &RUN), scored);

    // What is not good enough is sent back twice, and never ends as a success.
    let mut steps = vec![saved(), end(), bad()];
    assert_eq!(then(steps.clone(), 1, &RUN), TALK);
    let last = of(steps.clone(), 1).messages(true).pop().unwrap();
    assert!(last.role == Role::User && last.text().contains("prices"), "{last:?}");
    steps.extend([saved(), end(), bad()]);
    assert_eq!(then(steps.clone(), 1, &RUN), TALK);
    let mut met = steps.clone();
    met.extend([saved(), end(), good()]);
    assert_eq!(then(met, 1, &RUN), scored);
    steps.extend([saved(), end(), bad()]);
    let rejected = then(steps, 1, &RUN);
    assert_eq!(failed(&rejected), "output_rejected");
    assert!(matches!(&rejected, Next::Finish(Outcome::Failed { detail, .. }) if detail.contains("prices")));

    // A verdict that can't be read is asked for once more.
    assert_eq!(then(vec![saved(), end(), vague()], 1, &RUN), Next::Check);
    assert_eq!(then(vec![saved(), end(), vague(), good()], 1, &RUN), scored);
    assert_eq!(failed(&then(vec![saved(), end(), vague(), vague()], 1, &RUN)), "check_unreadable");
    // After a revision it may be unreadable once again.
    let steps = vec![saved(), end(), vague(), bad(), saved(), end(), vague()];
    assert_eq!(then(steps, 1, &RUN), Next::Check);
}

#[test]
fn text_alone_is_the_output_of_a_run() {
    let implied = |result: Vec<CallResult>| {
        let mut step = work(vec![], result);
        step.reply.calls = vec![Call::implied_output("Report", "All is well.")];
        step
    };
    assert_eq!(then(vec![implied(vec![])], 0, &RUN), Next::Perform { from: 0 });
    let saved = implied(vec![CallResult::rest("saved")]);
    assert_eq!(then(vec![saved.clone()], 1, &RUN), Next::Check);
    assert_eq!(of(vec![saved], 1).messages(true).len(), 1);
    let refused = implied(vec![CallResult::repair("the title is too long")]);
    assert_eq!(then(vec![refused.clone()], 0, &RUN), TALK);
    assert_eq!(of(vec![refused], 0).messages(true).len(), 2);
}

#[test]
fn a_question_waits_until_it_was_answered() {
    let reason = || Reason::new(ReasonCode::Asked, "Which oil?");
    let asked = work(
        vec![native("ask_person", json!({}))],
        vec![CallResult::asked("the person is asked", false, reason())],
    );
    let waits = Next::Finish(Outcome::Waiting { reason: reason() });
    assert_eq!(then(vec![asked.clone()], 0, &RUN), waits);
    let answer = Step {
        purpose: Purpose::Person,
        reply: Reply { text: "The person answered: lamp oil".into(), ..Reply::default() },
        results: Vec::new(),
    };
    let steps = vec![asked, answer];
    assert_eq!(then(steps.clone(), 0, &RUN), TALK);
    assert_eq!(of(steps, 0).messages(true).last().unwrap().text(), "The person answered: lamp oil");
}

#[test]
fn what_repeats_is_warned_of_and_then_ended() {
    let a = || read("the same");
    let b =
        || work(vec![native("query_actions", json!({"limit": 1}))], vec![CallResult::told("also the same")]);
    let found = |steps: Vec<Step>| repeats::find(&of(steps, 0).steps);
    let times = |n: usize| (0..n).map(|_| a()).collect::<Vec<_>>();
    let pairs = |n: usize| (0..n).flat_map(|_| [a(), b()]).collect::<Vec<_>>();
    for (steps, expected) in [
        (times(2), None),
        (times(3), Some(Repeats::Same(3))),
        (times(5), Some(Repeats::Same(5))),
        (pairs(1), None),
        (pairs(2), Some(Repeats::Pairs(2))),
        (pairs(4), Some(Repeats::Pairs(4))),
        ([times(4), vec![b()]].concat(), None),
        ([pairs(2), vec![read("new")]].concat(), None),
        ((0..6).map(|i| read(&i.to_string())).collect(), None),
    ] {
        assert_eq!(found(steps.clone()), expected, "{steps:?}");
    }
    use repeats::Repeats;
    let warned = |steps: Vec<Step>| {
        let messages = of(steps, 0).messages(false);
        let Some(Block::ToolResult { content, .. }) = messages.last().and_then(|m| m.content.last()) else {
            panic!("{messages:?}");
        };
        content.contains("Do something else")
    };
    assert!(!warned(times(2)) && warned(times(3)) && warned(pairs(2)));
    for policy in [&CHAT, &RUN] {
        assert_eq!(then(times(4), 0, policy), TALK);
        assert_eq!(failed(&then(times(5), 0, policy)), "tool_loop");
        assert_eq!(then(pairs(3), 0, policy), TALK);
    }
    assert_eq!(failed(&then(pairs(4), 0, &RUN)), "tool_loop");
    // A reply with the same call many times counts once: the model could not be warned in between.
    let many = || {
        let calls = (0..6).map(|_| native("query_assets", json!({}))).collect();
        work(calls, (0..6).map(|_| CallResult::told("the same")).collect())
    };
    assert_eq!(found(vec![many()]), None);
    assert_eq!(found(vec![many(), many(), many()]), Some(Repeats::Same(3)));
    assert_eq!(failed(&then((0..5).map(|_| many()).collect(), 0, &RUN)), "tool_loop");
}

#[test]
fn steps_that_bring_nothing_new_are_warned_of_and_then_ended() {
    use repeats::Repeats;
    let page = |n: usize, result: &str| {
        work(vec![native("read_asset", json!({"from_byte": n}))], vec![CallResult::told(result)])
    };
    let three = || [page(1, "one"), page(2, "two"), page(3, "three")];
    // The pages that were read, again and again in this order.
    let again = |n: usize| three().into_iter().cycle().take(3 + n).collect::<Vec<_>>();
    let said = |text: &str, mut step: Step| {
        step.reply.text = text.into();
        step
    };
    let saves = |content: &str, result: CallResult| {
        work(vec![native("save_output", json!({"title": "Report", "content": content}))], vec![result])
    };
    let saved = |content: &str| saves(content, CallResult::told("saved \"Report\""));
    let refused = |content: &str| saves(content, CallResult::refused("the title is too long"));
    let answer = Step { purpose: Purpose::Person, ..Step::default() };
    let with = |more: Vec<Step>| [again(0), more].concat();
    for (what, steps, expected) in [
        ("every page is new", again(0), None),
        ("two were read before", again(2), None),
        ("three were read before", again(3), Some(Repeats::NoProgress(3))),
        ("four", again(4), Some(Repeats::NoProgress(4))),
        ("five", again(5), Some(Repeats::NoProgress(5))),
        ("then something new", [again(4), vec![page(4, "four")]].concat(), None),
        ("the same page has changed", [again(4), vec![page(2, "new")]].concat(), None),
        ("then the person said something", [again(4), vec![answer]].concat(), None),
        ("other pages with known texts", with(vec![page(7, "one"), page(8, "two"), page(9, "three")]), None),
        (
            "with new words each time",
            with(
                (0..4)
                    .map(|n| said(&format!("Page {n}."), page(n % 3 + 1, ["one", "two", "three"][n % 3])))
                    .collect(),
            ),
            None,
        ),
        (
            "with the same words each time",
            with((0..4).map(|n| said("Again.", page(n % 3 + 1, ["one", "two", "three"][n % 3]))).collect()),
            Some(Repeats::NoProgress(3)),
        ),
        ("new content is saved each time", with((0..6).map(|n| saved(&n.to_string())).collect()), None),
        (
            "the same contents are saved in turn",
            with(["a", "b", "c", "a", "b", "c"].map(saved).to_vec()),
            Some(Repeats::NoProgress(3)),
        ),
        (
            "something else is refused each time",
            with(["a", "b", "c", "d"].map(refused).to_vec()),
            Some(Repeats::NoProgress(3)),
        ),
        (
            "a call has no result yet",
            [again(4), vec![work(vec![native("read_asset", json!({}))], vec![])]].concat(),
            None,
        ),
    ] {
        assert_eq!(repeats::find(&of(steps, 0).steps), expected, "{what}");
    }
    let messages = of(again(3), 0).messages(false);
    let Some(Block::ToolResult { content, .. }) = messages.last().and_then(|m| m.content.last()) else {
        panic!("{messages:?}");
    };
    assert!(content.contains("Your last 3 steps brought nothing"), "{content}");
    for policy in [Policy { max_steps: 24, ..CHAT }, RUN] {
        assert_eq!(then(again(4), 0, &policy), TALK);
        assert_eq!(failed(&then(again(5), 0, &policy)), "no_progress");
    }
}

#[test]
fn the_same_steps_are_the_same_messages_and_more_steps_only_add_to_them() {
    let broken = Call { invalid: Some("cut off".into()), ..native("generate_asset", Value::Null) };
    let signal = Call { id: None, ..native("query_actions", json!({})) };
    let steps = vec![
        read("one"),
        work(vec![signal, broken], vec![CallResult::told("two"), CallResult::repair("cut off")]),
        read("one"),
        said(StopReason::EndTurn),
    ];
    let whole = of(steps.clone(), 0).messages(true);
    for n in 0..=steps.len() {
        let part = of(steps[..n].to_vec(), 0).messages(true);
        assert_eq!(part[..], whole[..part.len()], "{n} steps");
    }
    assert_eq!(
        whole[3].text(),
        "Result of query_actions:\ntwoWhat you tried to deliver could not be read: cut off. Deliver it again, complete and correct."
    );
}

#[test]
fn a_long_result_is_read_in_pages() {
    let whole: String = (0..MAX_RESULT + 70_007).map(|n| if n % 3 == 0 { 'é' } else { 'e' }).collect();
    let short = "é".repeat(MAX_RESULT);
    let transcript = of(vec![read(&short), read(&whole)], 0);
    assert!(transcript.has_long_result() && !of(vec![read(&short)], 0).has_long_result());
    let text = |messages: Vec<Message>| match &messages.last().unwrap().content[..] {
        [Block::ToolResult { content, .. }] => content.clone(),
        other => panic!("{other:?}"),
    };
    let cut = text(transcript.messages(true));
    let (first, note) = cut.split_once("\n… ").unwrap();
    assert_eq!(
        note,
        "[70007 more characters are stored; call read_result with call_id \"2.0\" and from_char 100000]"
    );
    assert!(text(transcript.history()).ends_with("[70007 more characters were left out]"));

    let (mut all, mut from) = (first.to_owned(), MAX_RESULT);
    while from < MAX_RESULT + 70_007 {
        let page = transcript.result_page(CallId::new(2, 0), from).unwrap();
        let (text, note) = page.split_once("\n… ").unwrap();
        all.push_str(text);
        from += text.chars().count();
        let end =
            if from < 170_007 { "the next page begins at from_char 150000]" } else { "this is the end]" };
        assert!(note.ends_with(end), "{note}");
    }
    assert!(all == whole, "nothing is missing and nothing comes twice");

    for (id, from) in
        [((0, 0), 0), ((1, 0), 0), ((2, 1), 0), ((3, 0), 0), ((u32::MAX, 0), 0), ((2, 0), 170_007)]
    {
        let refused = transcript.result_page(CallId::new(id.0, id.1), from).unwrap_err();
        assert!(
            refused.contains("there is no long result") || refused.contains("less than 170007"),
            "{refused}"
        );
    }
}

#[test]
fn a_result_beyond_what_is_stored_is_cut_and_says_so() {
    let whole = "é".repeat(MAX_STORED);
    assert!(stored(whole.clone()) == whole);
    let cut = stored(format!("{whole}1234567"));
    assert!(cut.starts_with(&whole));
    assert!(cut.ends_with("\n… [7 more characters were not stored; ask for a smaller part]"));
}

#[test]
fn a_signal_is_the_call_that_it_stands_for() {
    use crate::chats::signals::{Deliverable, Reply as Signals};
    use crate::tools::{
        LOOP, ToolCall,
        assets::{QUERY_ASSETS, QueryAssets},
        find,
    };
    let text = "Here it is.\nGENERATE_ASSET\n---\n{\"title\": \"Brief\", \"description\": \"d\", \"asset_type\": \"code\", \
                \"content\": \"let x = {\"}\nGENERATE_ACTIONS\n---\n{\"title\": \"Watch\", \"description\": \"d\", \"priority\": \
                \"high\", \"task_config\": {\"instructions\": \"i\", \"expected_output\": \"o\"}, \"schedule\": {\"every\": \"1h\"}}\n\
                USE_TOOL: query_assets\n{\"limit\": 3}\nGENERATE_ASSET\n---\nnonsense";
    let read = Signals::parse(text);
    assert_eq!(read.deliverables.len(), 4, "{read:?}");
    for deliverable in read.deliverables {
        let call = Call::of_signal(deliverable.clone());
        match deliverable {
            Deliverable::UseTool { .. } => {
                assert!(matches!(
                    ToolCall::parse(&QUERY_ASSETS, &call.input),
                    Ok(ToolCall::QueryAssets(QueryAssets { limit: Some(3), .. }))
                ));
            }
            Deliverable::Invalid { reason, .. } => {
                assert_eq!((call.name.as_str(), call.invalid), ("generate_asset", Some(reason)));
            }
            whole => {
                let tool = find(LOOP, &call.name).unwrap();
                assert_eq!(ToolCall::parse(tool, &call.input), Ok(ToolCall::Deliver(whole)));
            }
        }
    }
}

/// Ten runs share an executor's memory: a run whose steps hold too much ends, and takes no neighbour along.
#[test]
fn a_run_whose_steps_hold_too_much_ends() {
    let large = || read(&"x".repeat(MAX_RESULT));
    let fits = MAX_TRANSCRIPT / MAX_RESULT;
    for policy in [CHAT, RUN] {
        let policy = Policy { max_steps: 1_000, ..policy };
        // Different results: otherwise it would be a loop.
        let steps = |count: usize| {
            (0..count).map(|n| {
                let mut step = large();
                step.reply.calls[0].input = json!({"page": n});
                step
            })
        };
        assert_eq!(then(steps(fits - 2).collect(), 0, &policy), TALK);
        assert_eq!(failed(&then(steps(fits + 1).collect(), 0, &policy)), "conversation_too_large");
    }
    let mut called =
        work(vec![native("save_output", json!({"content": "x".repeat(MAX_TRANSCRIPT)}))], vec![]);
    assert!(of(vec![called.clone()], 0).is_full(), "inputs of calls count");
    called.reply.calls.clear();
    called.reply.blocks.clear();
    assert_eq!(of(vec![called], 0).bytes(), 0);
}
