use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::*;

/// Wednesday, 25 November 2026, 14:31 in Berlin.
fn now() -> ZonedDateTime {
    "2026-11-25T13:31:00Z"
        .parse::<Timestamp>()
        .unwrap()
        .to_zoned_datetime(TimeZone::get("Europe/Berlin").unwrap())
}

const MORNING: &str = "- act_1 \"Morning report\" scheduled, At 09:00 (Europe/Berlin). Next: Thursday, 26 November 2026, 09:00 \
                       (Europe/Berlin, UTC+01:00).";
const PRICES: &str = "- act_2 \"Oil \"spot\" prices\" paused, Every hour (UTC).";
const NEWS: &str = "- act_3 \"Weekly news\" defined, no schedule";
const GONE: &str = "- act_4 \"Old news\" dismissed, no schedule";

fn view(actions: &[&str]) -> String {
    format!("assets:\n- ast_1 \"Newsletter\" (3 bytes)\nactions:\n{}", actions.join("\n"))
}

const TOPIC: &str = "action: act_7 \"Morning report\"\nstate: scheduled\nschedule: At 09:00 (Europe/Berlin).\ninstructions:\nstate: paused\n\
                     action: act_8 \"Other\"\nlast runs:";

/// The tool and its arguments, or what is said.
fn told(said: &str, view: &str, place: Place) -> Result<(&'static str, Value), String> {
    match wish(said, None, view, place, Some(&now())) {
        Some(Wish::Propose { tool, arguments, words }) => {
            assert!(words.starts_with("I propose "), "{said}: {words}");
            Ok((tool, arguments))
        }
        Some(Wish::Say(told)) => Err(told),
        None => Err("-".to_owned()),
    }
}

/// No answer names an address, a method or a program.
fn is_plain(told: &str) -> bool {
    !["POST", "PATCH", "DELETE", "GET ", "/actions", "/agents", "act_", "http", "curl"]
        .iter()
        .any(|part| told.contains(part))
}

#[test]
fn with_one_action_it_is_the_one_that_is_meant() {
    let command = |command: &str| Ok(("command_action", json!({"action_id": "act_1", "command": command})));
    let at = |cron: &str| {
        let schedule = json!({"cron": cron, "timezone": "Europe/Berlin"});
        Ok(("change_action", json!({"action_id": "act_1", "schedule": schedule})))
    };
    let every = |every: &str| {
        let schedule = json!({"every": every, "timezone": "Europe/Berlin"});
        Ok(("change_action", json!({"action_id": "act_1", "schedule": schedule})))
    };
    let titled = |title: &str| Ok(("change_action", json!({"action_id": "act_1", "title": title})));
    for (said, expected) in [
        ("Every day at 8 instead", at("0 8 * * *")),
        ("every day at 8 instead, please", at("0 8 * * *")),
        ("Move it to 8 in the morning", at("0 8 * * *")),
        ("Could you move it to 8 in the morning?", at("0 8 * * *")),
        ("Move the morning report to 8 in the evening", at("0 20 * * *")),
        ("move it from 9 to 8", at("0 8 * * *")),
        ("change it to weekdays at 7:30", at("30 7 * * MON-FRI")),
        ("change it to weekdays", at("0 9 * * MON-FRI")),
        ("Change it to Fridays", at("0 9 * * FRI")),
        ("make it every two hours", every("2h")),
        ("Make it weekly on Friday at 10", at("0 10 * * FRI")),
        ("Run it every day at 7 from now on", at("0 7 * * *")),
        ("I want it every day at 8 instead", at("0 8 * * *")),
        ("Can it run at 10?", at("0 10 * * *")),
        ("It should run at half past 8", at("30 8 * * *")),
        ("reschedule it to 17:15", at("15 17 * * *")),
        ("Send it at noon", at("0 12 * * *")),
        ("pause it", command("pause")),
        ("Pause the morning report", command("pause")),
        ("Please turn it off", command("pause")),
        ("stop it", command("pause")),
        ("Stop", command("pause")),
        ("I don't want it any more", command("pause")),
        ("don't send it any more", command("pause")),
        ("cancel the report", command("pause")),
        ("resume", command("resume")),
        ("Turn it on again", command("resume")),
        ("run it now", command("run_now")),
        ("Run the morning report now, please", command("run_now")),
        ("Can you run it once?", command("run_now")),
        ("start it", command("run_now")),
        ("try it once", command("rehearse")),
        ("Rehearse it", command("rehearse")),
        ("do a dry run", command("rehearse")),
        ("dismiss it", command("dismiss")),
        ("Rename it to Daily brief.", titled("Daily brief")),
    ] {
        assert_eq!(told(said, &view(&[MORNING, GONE]), Place::Chat), expected, "{said}");
    }
}

#[test]
fn with_several_actions_their_titles_decide_or_a_question() {
    let all = view(&[MORNING, PRICES, NEWS, GONE]);
    let which = "Which one do you mean: “Morning report”, “Oil \"spot\" prices” or “Weekly news”?";
    let command =
        |id: &str, command: &str| Ok(("command_action", json!({"action_id": id, "command": command})));
    let asks = |told: &str| Err(told.to_owned());
    for (said, expected) in [
        ("pause it", asks(which)),
        ("stop it", asks(which)),
        ("Every day at 8 instead", asks(which)),
        ("Move it to 8 in the afternoon", asks(which)),
        ("run it now", asks(which)),
        ("pause the morning report", command("act_1", "pause")),
        ("Run the oil prices now", command("act_2", "run_now")),
        ("run the weekly news now", command("act_3", "run_now")),
        ("pause weekly news", command("act_3", "pause")),
        // Only one of them is paused.
        ("resume it", command("act_2", "resume")),
        ("start the prices", command("act_2", "resume")),
        (
            "change the price report to every 3 hours",
            Err("Which one do you mean: “Morning report” or “Oil \"spot\" prices”?".to_owned()),
        ),
        (
            "move the weekly news to Tuesday at 8",
            Ok(("change_action", json!({"action_id": "act_3", "schedule": {"at": "2026-12-01T08:00"}}))),
        ),
    ] {
        assert_eq!(told(said, &all, Place::Chat), expected, "{said}");
    }
    // The answer to the question.
    let answered = wish("the morning report", Some("run it now"), &all, Place::Chat, Some(&now()));
    let Some(Wish::Propose { arguments, .. }) = answered else { panic!("{answered:?}") };
    assert_eq!(arguments, json!({"action_id": "act_1", "command": "run_now"}));
    assert_eq!(wish("the morning report", Some("Hello"), &all, Place::Chat, None), None);
    let none = told("pause it", &view(&[GONE]), Place::Chat).unwrap_err();
    assert!(none.starts_with("There is no action yet"), "{none}");
}

#[test]
fn in_the_conversation_about_an_action_it_needs_no_name() {
    let command = |command: &str| Ok(("command_action", json!({ "command": command })));
    let at =
        |cron: &str| Ok(("change_action", json!({"schedule": {"cron": cron, "timezone": "Europe/Berlin"}})));
    for (said, expected) in [
        ("Move it to 8 in the morning", at("0 8 * * *")),
        ("every day at 8 instead", at("0 8 * * *")),
        ("change it to weekdays at 7:30", at("30 7 * * MON-FRI")),
        ("Stop", command("pause")),
        ("stop it", command("pause")),
        ("pause", command("pause")),
        ("Pause the other report", command("pause")),
        ("run it now", command("run_now")),
        ("try it once", command("rehearse")),
        ("make it shorter", Err("-".to_owned())),
        ("change the tone to formal", Err("-".to_owned())),
        ("Remove the part about prices in Berlin", Err("-".to_owned())),
        ("Write a summary every Monday at 9", Err("-".to_owned())),
        ("Why did it not run?", Err("-".to_owned())),
        ("When does it run next?", Err("-".to_owned())),
    ] {
        assert_eq!(told(said, TOPIC, Place::About), expected, "{said}");
    }
    for (said, part) in [
        ("Reschedule it", "What should be different about “Morning report”?"),
        ("every day at 25:00 instead", "I have proposed no change"),
        ("Move it to later", "is not a time that I can plan for"),
        ("Pause it until Monday", "I can't do that at a time"),
        ("delete it", "I can't delete anything"),
        ("approve it", "Only you can agree"),
        ("rename it", "What should “Morning report” be called?"),
        ("pause yourself", "the agent itself"),
    ] {
        let told = told(said, TOPIC, Place::About).unwrap_err();
        assert!(told.contains(part) && is_plain(&told), "{said}: {told}");
    }
}

#[test]
fn the_day_of_single_work_stays_and_an_interval_has_no_hour() {
    let once =
        TOPIC.replace("At 09:00 (Europe/Berlin).", "Once, on 2 December 2026 at 09:00 (Europe/Berlin).");
    let moved = told("Move it to 8", &once, Place::About).unwrap().1;
    assert_eq!(moved["schedule"]["at"], "2026-12-02T08:00");
    let hourly = TOPIC.replace("At 09:00 (Europe/Berlin).", "Every hour (Europe/Berlin).");
    let refused = told("Move it to 8", &hourly, Place::About).unwrap_err();
    assert!(refused.contains("An interval has no time of day") && is_plain(&refused), "{refused}");
    let without = TOPIC.replace("At 09:00 (Europe/Berlin).", "none");
    let asked = told("Move it to 18:00", &without, Place::About).unwrap_err();
    assert!(asked.starts_with("Say the whole time for “Morning report”"), "{asked}");
}

#[test]
fn other_sentences_are_no_commands() {
    for said in [
        "",
        "Write about how to delete files",
        "Remind me to cancel the gym",
        "Don't forget to write",
        "Do not forget me",
        "I don't know",
        "Never mind",
        "hello",
        "🦀",
        "Send me a report every Monday at 9",
        "Send me a report that names prices every Monday at 9",
        "Schedule a report on oil every Monday at 9",
        "Start a report every Monday",
        "Make a weekly report about lamps",
        "Update a list of prices every Friday at 8",
        "Try to write a poem",
        "What is scheduled?",
        "Is it paused?",
        "Every Monday at 9 write about lamps",
    ] {
        for actions in [&[MORNING][..], &[MORNING, PRICES]] {
            assert_eq!(wish(said, None, &view(actions), Place::Chat, Some(&now())), None, "{said}");
        }
    }
}

#[test]
fn what_was_proposed_and_is_defined_since_gets_another_time() {
    let moved = moved("every day at 8 instead", "morning REPORT", &view(&[MORNING, NEWS]), Some(&now()));
    let Some(Wish::Propose { tool, arguments, .. }) = moved else { panic!("{moved:?}") };
    assert_eq!((tool, &arguments["action_id"]), ("change_action", &json!("act_1")));
    assert_eq!(super::moved("every day at 8", "Other", &view(&[MORNING]), None), None);
}
