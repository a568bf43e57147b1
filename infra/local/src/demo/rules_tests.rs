use domain::chats::signals::{Deliverable, Reply};
use domain::tools::{LOOP, ToolCall, find};

use super::super::setup::QUESTIONS;
use super::*;

fn ask(scene: Scene, tools: &[&str], said: &[&str]) -> Ask {
    Ask {
        scene,
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        said: said.iter().map(|said| (*said).to_owned()).collect(),
        view: String::new(),
        now: None,
        spoken: said.len().saturating_sub(1),
        results: Vec::new(),
        turn: None,
    }
}

const SETUP: [&str; 4] = ["Hello", "A research agent that watches prices", "I get a report", "Ongoing"];

#[test]
fn the_setup_asks_three_questions_and_then_signals() {
    let turn = |said: &[&str], tools: &[&str]| answer(&ask(Scene::Setup, tools, said));
    assert_eq!(turn(&SETUP[..1], &[]).text, format!("{DEMO}{}", QUESTIONS[0]));
    assert_eq!(turn(&SETUP[..2], &[]).text, QUESTIONS[1]);
    assert_eq!(turn(&SETUP[..3], &[]).text, QUESTIONS[2]);
    // As a signal.
    let reply = Reply::parse(&turn(&SETUP, &[]).text);
    let [Deliverable::ReadyToCreate(by_signal)] = &reply.deliverables[..] else { panic!("{reply:?}") };
    assert_eq!(reply.text, "");
    assert_eq!(by_signal.name, "Research agent");
    assert_eq!(by_signal.goal, SETUP[1]);
    assert_eq!((by_signal.success_criteria.as_str(), by_signal.timeline.as_str()), (SETUP[2], SETUP[3]));
    // Through the tool, with the same result.
    let (name, input) = turn(&SETUP, &["ready_to_create"]).call.unwrap();
    assert_eq!(
        Deliverable::from_tool_call(&name, &input),
        Some(Deliverable::ReadyToCreate(by_signal.clone()))
    );
    let after =
        Ask { results: vec![("ready_to_create".into(), "ok".into())], ..ask(Scene::Setup, &[], &SETUP) };
    assert!(answer(&after).call.is_none());
    // A goal without the usual form gets it, and a blank answer still gives a draft.
    let reply = Reply::parse(&turn(&["Hi", "watch İstanbul prices", "r", " "], &[]).text);
    let [Deliverable::ReadyToCreate(draft)] = &reply.deliverables[..] else { panic!("{reply:?}") };
    assert_eq!(draft.goal, "An assistant agent that takes care of this: watch İstanbul prices");
    assert_eq!(draft.timeline, "Ongoing");
}

/// What the chat delivers for `said`. The tool and the signal give the same.
fn delivered(said: &str) -> Deliverable {
    let offered = ["generate_asset", "generate_actions"];
    let by_tool = answer(&ask(Scene::Chat, &offered, &["Hello", said]));
    let (name, input) = by_tool.call.expect(said);
    // The registry accepts the call.
    ToolCall::parse(find(LOOP, &name).unwrap(), &input).unwrap_or_else(|error| panic!("{said}: {error:?}"));
    let by_signal = Reply::parse(&answer(&ask(Scene::Chat, &[], &["Hello", said])).text);
    let deliverable = Deliverable::from_tool_call(&name, &input).unwrap();
    assert_eq!(by_signal.deliverables, std::slice::from_ref(&deliverable));
    assert_eq!(by_signal.text.trim(), by_tool.text);
    deliverable
}

#[test]
fn a_request_for_a_text_gives_an_asset() {
    for (said, asset_type, title, part) in [
        ("Write a report about lamps", AssetType::Document, "Report about lamps", "## Next steps"),
        (
            "Draft an email to Ann about lamps.",
            AssetType::Email,
            "Email to Ann about lamps",
            "Subject: Email to Ann",
        ),
        ("Create a prompt for reviews", AssetType::Prompt, "Prompt for reviews", "Rules:"),
        ("Write a script that says \"hi\"", AssetType::Code, "Script that says \"hi\"", "says \\\"hi\\\"\""),
    ] {
        let Deliverable::Asset(asset) = delivered(said) else { panic!("{said}") };
        assert_eq!((asset.asset_type, asset.title.as_str()), (asset_type, title));
        assert!(asset.content.contains(part), "{}", asset.content);
    }
}

#[test]
fn a_request_for_later_gives_an_action() {
    for (said, title, schedule) in [
        (
            "Write a report about lamps every day at 7",
            "Report about lamps every day at 7",
            Some(json!({"cron": "0 7 * * *"})),
        ),
        ("Remind me to water the plants", "Water the plants", None),
    ] {
        let Deliverable::Actions { actions } = delivered(said) else { panic!("{said}") };
        assert_eq!(actions.len(), 1);
        assert_eq!((actions[0].title.as_str(), &actions[0].schedule), (title, &schedule));
        assert_eq!(actions[0].task_config.instructions, said);
    }
}

#[test]
fn questions_about_existing_things_are_looked_up_and_summarised() {
    let question = ask(Scene::Chat, &["query_actions"], &["Hello", "What is scheduled?"]);
    assert_eq!(answer(&question).call, Some(("query_actions".into(), json!({}))));
    let signalled = Reply::parse(&answer(&ask(Scene::Chat, &[], &["What is scheduled?"])).text);
    assert!(
        matches!(&signalled.deliverables[..], [Deliverable::UseTool { name, .. }] if name == "query_actions")
    );
    let check = |result: &str, words: &str| {
        let after = Ask { results: vec![("query_actions".into(), result.into())], ..question.clone() };
        assert_eq!(answer(&after), text(words), "{result}");
    };
    check("[]", "Nothing is scheduled, and no action is defined.");
    check("broken", "Nothing is scheduled, and no action is defined.");
    check(
        r#"{"actions": [{"title": "Report", "state": "scheduled"}]}"#,
        "There is one action: Report (scheduled).",
    );
    check(
        r#"[{"title": "A"}, {"title": "B", "state": "paused"}]"#,
        "There are 2 actions:\n\n- A\n- B (paused)",
    );
}

#[test]
fn it_says_once_that_it_is_a_demo() {
    let first = answer(&ask(Scene::Chat, &[], &["Hello"]));
    assert!(first.text.starts_with("I am Lamplighter's demo model"), "{}", first.text);
    let second = answer(&ask(Scene::Chat, &["generate_actions"], &["Hello", "Schedule a report"]));
    assert!(!second.text.contains("demo") && !second.text.is_empty(), "{}", second.text);
}

#[test]
fn a_run_writes_what_was_asked_for_and_passes_its_own_check() {
    let check_of = |expected: &str, output: &str| {
        let said = format!(
            "# Expected output\n{expected}\n\n# Instructions that were given\nWrite, and sign.\n\n<output>\n{output}\n</output>"
        );
        serde_json::from_str::<Value>(&answer(&ask(Scene::Check, &[], &[&said])).text).unwrap()
    };
    let expected = "A summary, three risks and a recommendation";
    for task in [
        format!(
            "# Task: Lamps\nAbout lamps\n\n# Instructions\nWrite about lamps.\n\n# Expected output\n{expected}"
        ),
        format!("Instructions: Write about lamps.\n\nExpected output: {expected}"),
        format!("**Expected output**: {expected}\n**Instructions**: Write about lamps."),
    ] {
        let content = answer(&ask(Scene::Run, &[], &[&task])).text;
        let (name, input) = answer(&ask(Scene::Run, &["save_output"], &[&task])).call.unwrap();
        ToolCall::parse(find(LOOP, &name).unwrap(), &input).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!((name.as_str(), input["content"].as_str()), ("save_output", Some(content.as_str())));
        assert!(content.starts_with("# About lamps\n") && content.contains("## Three risks"), "{content}");
        // It is a frame, and says so.
        let frame = json!({"score": 50, "meets": true, "missing": ["the research itself: the output says that nothing was looked up"]});
        assert_eq!(check_of(expected, &content), frame);
    }
    let saved = Ask {
        results: vec![("save_output".into(), "ok".into())],
        ..ask(Scene::Run, &["save_output"], &["x"])
    };
    assert_eq!(answer(&saved), text("The output is saved."));
    assert_eq!(
        check_of(expected, " "),
        json!({"score": 0, "meets": false, "missing": ["the output is empty"]})
    );
    assert_eq!(
        check_of(expected, "A summary."),
        json!({"score": 60, "meets": false, "missing": ["three risks", "a recommendation"]})
    );
    let revised = ask(
        Scene::Run,
        &["save_output"],
        &["Write about lamps.", "A check of the saved output found: it is short."],
    );
    assert_eq!(answer(&revised).call.unwrap().1["title"], "About lamps");
    assert_eq!(
        check_of(expected, "A summary, three risks and a recommendation, from two sources."),
        json!({"score": 100, "meets": true, "missing": []})
    );
    assert_eq!(check_of("", "I looked nothing up.")["score"], 50);
    assert_eq!(check_of("", "Anything."), json!({"score": 90, "meets": true, "missing": []}));
}

const VIEW: &str = "action: act_1 \"Report\"\nstate: scheduled\ninstructions:\nCompare the prices\nexpected output:\nA page\n\
                    last runs:\n- due 2026-11-21T09:00:00Z: succeeded, score 90 of 100\n  saved ast_1 \"Prices\"\n<output>\n# Prices\n</output>\n\
                    - due 2026-11-20T09:00:00Z: failed";

/// What the conversation about an action proposes for `said`. The tool and the signal give the same.
fn proposed(said: &str) -> Value {
    let ask = |tools: &[&str]| Ask { view: VIEW.into(), ..ask(Scene::About, tools, &["Hello", said]) };
    let by_tool = answer(&ask(&["change_action"]));
    let (name, input) = by_tool.call.expect(said);
    ToolCall::parse(find(LOOP, &name).unwrap(), &input).unwrap_or_else(|error| panic!("{said}: {error:?}"));
    let by_signal = Reply::parse(&answer(&ask(&[])).text);
    assert_eq!(by_signal.deliverables, [Deliverable::UseTool { name, input: input.clone() }]);
    input
}

#[test]
fn a_message_about_an_action_is_a_question_or_a_change() {
    let longer = "Compare the prices\nMake it more detailed";
    assert_eq!(proposed("Make it more detailed"), json!({"task_config": {"instructions": longer}}));
    assert_eq!(proposed("Do it every Friday at 8"), json!({"schedule": {"cron": "0 8 * * FRI"}}));

    // A time of the content is no time of the schedule, and a sentence with both is asked about.
    let both = ask(Scene::About, &["change_action"], &["Hello", "Compare the prices every Friday at 8"]);
    let asked = answer(&Ask { view: VIEW.into(), ..both });
    assert!(asked.call.is_none() && asked.text.starts_with("I can't tell whether the time"), "{asked:?}");

    // What repeats goes on to repeat.
    let weekly = VIEW.replace(
        "\ninstructions:",
        "\nschedule: Every Monday at 09:00 (Europe/Berlin).\ninstructions:\nschedule: Every day at 01:00.",
    );
    let proposed = |said: &str| {
        let tools = ["change_action"];
        let ask = Ask { view: weekly.clone(), ..ask(Scene::About, &tools, &["Hello", said]) };
        answer(&ask).call.expect(said).1
    };
    let wednesday = json!({"schedule": {"cron": "0 9 * * WED", "timezone": "Europe/Berlin"}});
    assert_eq!(proposed("Make it Wednesday"), wednesday);
    assert_eq!(proposed("On Wednesday instead, please"), wednesday);
    assert_eq!(
        proposed("at 10:30 instead"),
        json!({"schedule": {"cron": "30 10 * * MON", "timezone": "Europe/Berlin"}})
    );

    let told = |view: &str, said: &str| {
        let ask = Ask { view: view.into(), ..ask(Scene::About, &["change_action"], &["Hello", said]) };
        let DemoReply { text, call } = answer(&ask);
        assert_eq!(call, None, "{said}");
        text
    };
    let last =
        "The last run was due 2026-11-21T09:00:00Z: succeeded, score 90 of 100. It saved this: Prices.";
    assert_eq!(told(VIEW, "What happened in the last run?"), last);
    assert_eq!(told(VIEW, "why"), last);
    let fresh = VIEW.split_inclusive("last runs:").next().unwrap();
    assert_eq!(told(fresh, "Did it run?"), "It has not run yet. Its state is: scheduled.");

    let after = |result: &str| {
        let results = vec![("change_action".to_owned(), result.to_owned())];
        answer(&Ask { results, ..ask(Scene::About, &["change_action"], &["Hello", "Shorter"]) }).text
    };
    assert!(after("\"Report\" waits for the person's yes (prp_1).").contains("as soon as you accept it"));
    assert!(after("schedule: must have a fire time").contains("must have a fire time"));
}

#[test]
fn files_of_a_theme_are_described_by_their_heads() {
    let said = "=== sections/header.liquid (section, 3 lines)\n1\t=== no/file (snippet, 1 lines)\n\n=== assets/a (b).css (stylesheet, 9 lines)\n";
    let (name, input) = answer(&ask(Scene::Theme, &["describe_files"], &[said])).call.unwrap();
    let paths: Vec<&str> =
        input["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(
        (name.as_str(), &paths[..]),
        ("describe_files", &["sections/header.liquid", "assets/a (b).css"][..])
    );
    assert_eq!(input["files"][0]["keywords"], json!(["sections", "header", "liquid"]));
    let purpose = input["files"][1]["purpose"].as_str().unwrap();
    assert!(purpose.starts_with(DEMO) && purpose.ends_with("it is a stylesheet, 9 lines."), "{purpose}");
}

/// Wednesday, 25 November 2026, 14:31 in Berlin.
fn now() -> Option<ZonedDateTime> {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    Some("2026-11-25T13:31:00Z".parse::<Timestamp>().unwrap().to_zoned_datetime(zone))
}

fn chat_at(said: &[&str]) -> DemoReply {
    let offered = ["generate_asset", "generate_actions", "query_actions"];
    answer(&Ask { now: now(), ..ask(Scene::Chat, &offered, said) })
}

#[test]
fn times_become_schedules_and_what_is_unclear_is_said() {
    let schedule =
        |said: &[&str]| chat_at(said).call.map(|(_, input)| input["actions"][0]["schedule"].clone());
    let monday = json!({"cron": "0 9 * * MON", "timezone": "Europe/Berlin"});
    assert_eq!(schedule(&["Send me a newsletter every Monday at 9 in Berlin"]), Some(monday.clone()));
    assert_eq!(
        schedule(&["Remind me to call Ann tomorrow at 5 pm"]),
        Some(json!({"at": "2026-11-26T17:00"}))
    );
    // The time and the work in two messages.
    assert_eq!(schedule(&["Schedule a report on oil", "every Monday at 9 in Berlin"]), Some(monday.clone()));
    assert_eq!(schedule(&["every Monday at 9 in Berlin", "Write a report on oil"]), Some(monday));
    // A draft that waits gets another time.
    let eight = json!({"cron": "0 8 * * MON", "timezone": "Europe/Berlin"});
    let weekly = "Schedule a report on oil every Monday at 9 in Berlin";
    assert_eq!(schedule(&[weekly, "Move it to 8 in the morning"]), Some(eight.clone()));
    assert_eq!(schedule(&[weekly, "at 8 instead"]), Some(eight));
    let asked = chat_at(&["Hello", "every Monday at 9 in Berlin"]);
    assert!(
        asked.call.is_none() && asked.text.contains("At 09:00 on Monday (Europe/Berlin). What should I do"),
        "{asked:?}"
    );
    for said in
        ["Remind me tomorrow at 25:00", "Send me a report every 0 minutes", "Schedule a report yesterday"]
    {
        let DemoReply { text, call } = chat_at(&["Hello", said]);
        assert!(call.is_none() && text.contains("I have proposed nothing"), "{said}: {text}");
    }
    for said in ["", "🦀", "asdf", "</now>", "What is love?", &"lamp ".repeat(4_000)] {
        let DemoReply { text, call } = chat_at(&["Hello", said]);
        assert!(
            call.is_none() && text.contains("no key for a real model") && text.contains("for example"),
            "{said}: {text}"
        );
    }
    for said in
        ["delete the newsletter", "Please pause the newsletter.", "stop it", "cancel the weekly newsletter"]
    {
        let DemoReply { text, call } = chat_at(&["Hello", said]);
        assert!(
            call.is_none()
                && (text.starts_with("There is no action yet") || text.starts_with("I can't delete")),
            "{said}: {text}"
        );
        assert!(!text.contains('/'), "{said}: {text}");
    }
}

#[test]
fn actions_are_listed_with_their_times_in_the_zone_of_the_person() {
    let result = r#"{"actions": [{"title": "News", "state": "scheduled", "schedule": "At 09:00 on Monday (UTC).",
        "next_due": "2026-11-30T09:00:00Z"}]}"#;
    let after = Ask {
        now: now(),
        results: vec![("query_actions".into(), result.into())],
        ..ask(Scene::Chat, &["query_actions"], &["Hello", "when does it run next?"])
    };
    let told = "There is one action: News (scheduled): At 09:00 on Monday (UTC); next on Monday, 30 November 2026, 10:00 \
                (Europe/Berlin, UTC+01:00).";
    assert_eq!(answer(&after), text(told));
    let view = format!(
        "action: act_1 \"News\"\nstate: scheduled\nschedule: Every hour (UTC).\nnext due: 2026-11-30T09:00:00Z\n{VIEW}"
    );
    let about = |said: &str| {
        let ask =
            Ask { view: view.clone(), now: now(), ..ask(Scene::About, &["change_action"], &["Hello", said]) };
        answer(&ask)
    };
    assert!(
        about("When does it run next?")
            .text
            .starts_with("It is next due on Monday, 30 November 2026, 10:00 (Europe/Berlin")
    );
    assert!(about("Delete it").text.contains("I can't delete anything: only you can"));
    for said in ["Thanks!", "every day at 25:00", "at 18:00"] {
        assert_eq!(about(said).call, None, "{said}");
    }
}

#[test]
fn a_complete_first_sentence_sets_an_agent_up() {
    let draft =
        |said: &[&str]| answer(&ask(Scene::Setup, &["ready_to_create"], said)).call.map(|(_, input)| input);
    let complete = draft(&[
        "An agent that writes a weekly newsletter about our shop, good if it has three items, ongoing",
    ])
    .unwrap();
    assert_eq!(complete["title"], "Weekly newsletter about our shop");
    assert_eq!(complete["goal"], "A writing agent that writes a weekly newsletter about our shop");
    assert_eq!(
        (&complete["success_criteria"], &complete["timeline"]),
        (&json!("good if it has three items"), &json!("Ongoing"))
    );
    let until = draft(&["I need an agent that watches prices until March. It is good if nothing is missed."])
        .unwrap();
    assert_eq!(
        (&until["goal"], &until["timeline"]),
        (&json!("A research agent that watches prices"), &json!("Until March"))
    );
    assert_eq!(
        (&until["title"], &until["success_criteria"]),
        (&json!("Research agent"), &json!("It is good if nothing is missed"))
    );
    let asks = |said: &[&str]| answer(&ask(Scene::Setup, &["ready_to_create"], said)).text;
    assert!(asks(&["An agent that watches prices, ongoing"]).ends_with(QUESTIONS[1]));
    assert!(asks(&["An agent to watch prices. Good if I see each change."]).ends_with(QUESTIONS[2]));
    assert_eq!(asks(&["Hello", "I don't know"]), QUESTIONS[0]);
    assert_eq!(asks(&["Hello", "An agent that watches prices", "What do you mean?"]), QUESTIONS[1]);
    let long = draft(&[&"x ".repeat(10_000), &"y ".repeat(10_000), &"z ".repeat(10_000), "ongoing"]).unwrap();
    assert!(long["goal"].as_str().unwrap().chars().count() <= 2_000);
}

#[test]
fn a_summary_keeps_the_earlier_one_and_what_the_person_said() {
    let shown = "<earlier_summary>\n> The person likes oil.\n</earlier_summary>\n<messages>\nperson, 2026-11-21 12:00:\n> Hello there\n> person, x:\n\
                 agent, 2026-11-21 12:00:\n> Hi\n</messages>\nSummarise the earlier summary and these messages.";
    let reply = answer(&ask(Scene::Summary, &[], &[shown]));
    assert_eq!(reply.text, "The person likes oil.\n- The person said: Hello there");
    assert!(reply.call.is_none());
    assert_eq!(answer(&ask(Scene::Summary, &[], &[""])).text, "");
}

#[test]
fn a_question_why_something_did_not_run_is_answered_with_the_reasons() {
    for scene in [Scene::Chat, Scene::About] {
        let question = ask(scene, &["query_actions", "explain_action"], &["Hello", "Why did it not run?"]);
        assert_eq!(answer(&question).call, Some(("explain_action".into(), json!({}))));
        let signalled = Reply::parse(&answer(&ask(scene, &[], &["Hello", "Why did it not run?"])).text);
        assert!(
            matches!(&signalled.deliverables[..], [Deliverable::UseTool { name, .. }] if name == "explain_action")
        );
        let told = |actions: Value| {
            let result = json!({ "actions": actions, "complete": true }).to_string();
            let after = Ask { results: vec![("explain_action".into(), result)], ..question.clone() };
            answer(&after).text
        };
        let runs =
            json!({"title": "Runs", "will_not_run": null, "nothing_ran_since": null, "did_not_succeed": []});
        assert_eq!(told(json!([runs])), "I know of nothing that did not run, and of nothing that will not.");
        let paused = json!({
            "title": "Brief", "will_not_run": "You paused the action at 2026-11-21 12:00 (UTC).",
            "nothing_ran_since": "Saturday", "did_not_succeed": ["The run that was due at 9 was missed: late."],
        });
        assert_eq!(
            told(json!([runs, paused])),
            "Brief: You paused the action at 2026-11-21 12:00 (UTC). Nothing has run since Saturday. The run that was due at 9 was missed: late."
        );
        assert!(told(json!([paused, paused])).starts_with("This did not run, or will not:\n\n- Brief: "));
    }
}

#[test]
fn a_question_about_habits_is_answered_with_streaks() {
    let question =
        ask(Scene::Chat, &["query_actions", "query_practice"], &["Hello", "How are my habits going?"]);
    assert_eq!(answer(&question).call, Some(("query_practice".into(), json!({}))));
    let signalled = Reply::parse(&answer(&ask(Scene::Chat, &[], &["How are my habits going?"])).text);
    assert!(
        matches!(&signalled.deliverables[..], [Deliverable::UseTool { name, .. }] if name == "query_practice")
    );
    let told = |practices: Value| {
        let result = json!({ "practices": practices }).to_string();
        let after = Ask { results: vec![("query_practice".into(), result)], ..question.clone() };
        answer(&after).text
    };
    let row = |name: &str, current: u64, longest: u64, unit: &str, due: bool, done: Value| {
        json!({
            "name": name, "target": "every day", "current_streak": current, "longest_streak": longest,
            "streak_unit": unit, "today": {"due": due, "done": done},
        })
    };
    assert_eq!(told(json!([])), "You track no habits yet. You can begin one on the page \"Practice\".");
    assert_eq!(
        told(json!([row("Read", 3, 10, "days", true, Value::Null)])),
        "You track one habit: Read (every day): 3 days in a row, and the longest was 10; due today."
    );
    assert_eq!(
        told(json!([
            row("Run", 1, 1, "weeks", true, json!(true)),
            row("Sing", 0, 2, "days", true, json!(false)),
            row("Swim", 0, 0, "days", false, Value::Null),
        ])),
        "You track 3 habits:\n\n- Run (every day): 1 week in a row, your longest streak; done today\n\
         - Sing (every day): no streak now, and the longest was 2 days; deliberately not done today\n\
         - Swim (every day): no streak yet; not due today"
    );
}
