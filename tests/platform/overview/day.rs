//! A day: what became of its due times, what ran by hand, and what is still due.

use domain::ids::ActionId;
use jiff::{SignedDuration, Timestamp};
use models::ModelsConfig;
use serde_json::{Value, json};
use tests::model::{Says, ScriptedModel};
use tests::stage::{Stage, noon};

fn writes(messages: &[Value]) -> Says {
    match messages.last().unwrap()["role"].as_str() {
        Some("tool") => Says::Text("It is done.".into()),
        _ => Says::Call("save_output", json!({"title": "Report", "content": "Lamp oil is dear."})),
    }
}

async fn read(stage: &Stage, query: &str) -> Value {
    let day = stage.h.get(&format!("/day{query}")).await.expect(200);
    let data = day["data"].as_array().unwrap();
    let times: Vec<Timestamp> =
        data.iter().map(|item| item["at"].as_str().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted(), "{day:#}");
    let (from, to): (Timestamp, Timestamp) =
        (day["from"].as_str().unwrap().parse().unwrap(), day["to"].as_str().unwrap().parse().unwrap());
    for (item, at) in data.iter().zip(&times) {
        let last: Timestamp = item["last_due_at"].as_str().map_or(*at, |last| last.parse().unwrap());
        assert!(*at < to && last >= from, "{item:#}");
    }
    day
}

/// The time of day in UTC and the state of each item.
fn told(day: &Value) -> Vec<String> {
    let told = |item: &Value| {
        let at = item["at"].as_str().unwrap();
        format!("{} {}", &at[11..16], item["state"].as_str().unwrap())
    };
    day["data"].as_array().unwrap().iter().map(told).collect()
}

#[tokio::test]
async fn a_day_has_what_was_due_what_ran_by_hand_and_what_is_to_come() {
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::with(model.config("gpt-5.1")).await;
    let id = stage.approved(json!({"title": "Often", "schedule": {"every": "3h"}})).await;
    let once = stage.approved(json!({"title": "By hand"})).await;
    stage.happens_at(3 * 60).await;
    model.has_context(10);
    stage.happens_at(6 * 60).await;
    model.has_context(10_000_000);
    stage.at(6 * 60 + 30);
    stage.h.post(&format!("/actions/{once}/run"), json!({})).await.expect(202);
    let day = read(&stage, "").await;
    assert_eq!(told(&day), ["15:00 succeeded", "18:00 failed", "18:30 due", "21:00 due"]);
    assert_eq!(day["live"], 1);
    stage.executors.work().await;
    let day = read(&stage, "?date=2026-11-21&timezone=UTC").await;
    assert_eq!(told(&day), ["15:00 succeeded", "18:00 failed", "18:30 succeeded", "21:00 due"]);
    for (field, is) in [
        ("date", json!("2026-11-21")),
        ("timezone", json!("UTC")),
        ("from", json!("2026-11-21T00:00:00Z")),
        ("to", json!("2026-11-22T00:00:00Z")),
        ("now", json!("2026-11-21T18:30:00Z")),
        ("complete", json!(true)),
        ("more", json!([])),
        ("not_running", json!([])),
        ("live", json!(0)),
    ] {
        assert_eq!(day[field], is, "{field}");
    }
    let (first, failed) = (&day["data"][0], &day["data"][1]);
    let occurrences = stage.occurrences(id).await;
    assert_eq!((&first["run_id"], &first["action_id"]), (&json!(occurrences[0].run_id), &json!(id)));
    assert_eq!((&first["action_title"], &first["agent_name"]), (&json!("Often"), &json!("Watch")));
    assert_eq!(first["cost_micros"], json!(occurrences[0].cost_micros));
    assert!(occurrences[0].cost_micros > 0 && first["score"].is_u64(), "{first:#}");
    assert_eq!(failed["reason"], json!(occurrences[1].reason));
    assert!(failed["text"].as_str().unwrap().starts_with("Failed: "), "{failed:#}");
    assert_eq!((&day["data"][2]["kind"], &day["data"][2]["action_id"]), (&json!("manual"), &json!(once)));
    assert_eq!(day["data"][3].get("run_id"), None);

    // The days around it.
    assert_eq!(told(&read(&stage, "?date=2026-11-20").await), [""; 0]);
    let next = read(&stage, "?date=2026-11-22").await;
    assert_eq!((told(&next).len(), &next["data"][0]["at"]), (8, &json!("2026-11-22T00:00:00Z")));
    // Another zone, another day. The account's zone is the default.
    let tokyo = read(&stage, "?timezone=Asia/Tokyo").await;
    assert_eq!(tokyo["date"], "2026-11-22");
    assert_eq!(told(&tokyo)[..2], ["15:00 succeeded", "18:00 failed"]);
    stage.h.patch("/account", json!({"timezone": "Asia/Tokyo"})).await.expect(200);
    assert_eq!(read(&stage, "").await, tokyo);
}

/// On the days on which the clock changes, every due time of the day is shown, and none of the next day.
#[tokio::test]
async fn days_when_the_clock_changes_have_23_and_25_hours() {
    for (from, date, hours, first, last) in [
        ("2026-03-28T21:00:00Z", "2026-03-29", 23, "2026-03-28T23:00:00Z", "2026-03-29T21:00:00Z"),
        ("2026-10-24T20:00:00Z", "2026-10-25", 25, "2026-10-24T22:00:00Z", "2026-10-25T22:00:00Z"),
    ] {
        let stage = Stage::with(ModelsConfig::default()).await;
        let from: Timestamp = from.parse().unwrap();
        stage.clock.set(from);
        let id =
            stage.approved(json!({"schedule": {"cron": "0 * * * *", "timezone": "Europe/Berlin"}})).await;
        let query = format!("?date={date}&timezone=Europe/Berlin");
        let ahead = read(&stage, &query).await;
        assert_eq!(ahead["data"].as_array().unwrap().len(), hours, "{ahead:#}");
        let ends = |day: &Value| (day["data"][0]["at"].clone(), day["data"][hours - 1]["at"].clone());
        assert_eq!(ends(&ahead), (json!(first), json!(last)));

        // Afterwards, the same due times have their results.
        for hour in 1..=28 {
            stage.clock.set(from + SignedDuration::from_hours(hour));
            stage.sweep().await;
            stage.executors.work().await;
        }
        let past = read(&stage, &query).await;
        let times = |day: &Value| -> Vec<Value> {
            day["data"].as_array().unwrap().iter().map(|item| item["at"].clone()).collect()
        };
        assert_eq!(times(&past), times(&ahead));
        assert!(told(&past).iter().all(|told| told.ends_with("succeeded")), "{past:#}");
        assert_eq!(stage.occurrences(id).await.len(), 28);
    }
}

#[tokio::test]
async fn what_will_not_run_is_left_out_and_says_why() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let daily = json!({"schedule": {"cron": "0 20 * * *"}});
    let (paused, other) = (stage.approved(daily.clone()).await, stage.approved(daily).await);
    stage.h.post(&format!("/actions/{paused}/pause"), json!({})).await.expect(200);
    let codes = |day: &Value| -> Vec<(Value, Value)> {
        let all = day["not_running"].as_array().unwrap().iter();
        all.map(|one| (one["action_id"].clone(), one["code"].clone())).collect()
    };
    let day = read(&stage, "").await;
    assert_eq!((told(&day).len(), codes(&day)), (1, vec![(json!(paused), json!("paused"))]));
    assert_eq!(day["not_running"][0]["next_at"], "2026-11-21T20:00:00Z");
    let agent = format!("/agents/{}", stage.agent);
    stage.h.patch(&agent, json!({"goal": "Sells oil"})).await.expect(200);
    let day = read(&stage, "").await;
    assert_eq!((told(&day).len(), &codes(&day)[0]), (0, &(json!(other), json!("drifted"))), "{day:#}");
    stage.h.patch(&agent, json!({"status": "paused"})).await.expect(200);
    assert_eq!(codes(&read(&stage, "").await)[0].1, "agent_paused");
    stage.h.post("/account/stop", json!({})).await.expect(200);
    let day = read(&stage, "").await;
    // That everything is stopped is said once, and each action keeps a reason of its own.
    assert_eq!((&codes(&day)[0].1, &day["stopped_at"]), (&json!("agent_paused"), &json!(noon())));
    stage
        .h
        .patch(&agent, json!({"status": "active", "goal": "A research agent that watches"}))
        .await
        .expect(200);
    assert_eq!(
        codes(&read(&stage, "").await),
        [(json!(other), json!("account_stopped")), (json!(paused), json!("paused"))]
    );
    // Tomorrow is a day, too; yesterday nothing is to come.
    assert_eq!(codes(&read(&stage, "?date=2026-11-22").await).len(), 2);
    assert_eq!(codes(&read(&stage, "?date=2026-11-20").await).len(), 0);
}

/// What a person paused, and what nobody has approved, is said with the reason, whenever it is due next.
#[tokio::test]
async fn what_is_paused_or_not_approved_does_not_vanish() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let daily = stage.approved(json!({"title": "Daily", "schedule": {"cron": "0 20 * * *"}})).await;
    let monday = json!({"cron": "0 9 * * 1"});
    let weekly = stage.approved(json!({"title": "Weekly", "schedule": monday})).await;
    let texts = |day: &Value, list: &str| -> Vec<String> {
        let row = |one: &Value| {
            let of = |field: &str| one[field].as_str().unwrap().to_owned();
            format!("{} {}: {} ({})", &of("next_at")[8..16], of("action_title"), of("text"), of("agent_name"))
        };
        day[list].as_array().unwrap().iter().map(row).collect()
    };
    let both = async |query: &str| {
        let day = read(&stage, query).await;
        assert_eq!(day["complete"], true);
        (texts(&day, "not_running"), texts(&day, "not_running_later"))
    };
    assert_eq!(both("").await, (vec![], vec![]));
    for id in [daily, weekly] {
        stage.h.post(&format!("/actions/{id}/pause"), json!({})).await.expect(200);
    }
    let draft = json!({
        "title": "Draft", "schedule": {"cron": "0 7 * * *"},
        "task_config": {"instructions": "Write", "expected_output": "A report"},
    });
    stage.h.post(&format!("/agents/{}/actions", stage.agent), draft).await.expect(201);
    let you = "You paused the action at 2026-11-21 12:00 (UTC). (Watch)";
    let draft = "Draft: The action is not approved yet. (Watch)";
    let today = [format!("21T20:00 Daily: {you}")];
    assert_eq!(
        both("").await,
        (today.to_vec(), vec![format!("22T07:00 {draft}"), format!("23T09:00 Weekly: {you}")])
    );
    // The due time passes: what became of it has the reason, and the next one is listed.
    stage.happens_at(9 * 60).await;
    let day = read(&stage, "").await;
    assert_eq!(told(&day), ["20:00 skipped"]);
    assert_eq!(day["data"][0]["text"], "Skipped: the action was paused.");
    assert_eq!(
        both("").await,
        (
            vec![],
            vec![
                format!("22T07:00 {draft}"),
                format!("22T20:00 Daily: {you}"),
                format!("23T09:00 Weekly: {you}")
            ]
        )
    );
    assert_eq!(
        both("?date=2026-11-23").await,
        (
            vec![
                format!("23T07:00 {draft}"),
                format!("23T09:00 Weekly: {you}"),
                format!("23T20:00 Daily: {you}")
            ],
            vec![]
        )
    );
    stage.h.post(&format!("/actions/{daily}/resume"), json!({})).await.expect(200);
    stage.h.post(&format!("/actions/{weekly}/resume"), json!({})).await.expect(200);
    assert_eq!(both("").await, (vec![], vec![format!("22T07:00 {draft}")]));
    stage.h.patch(&format!("/agents/{}", stage.agent), json!({"status": "archived"})).await.expect(200);
    let (_, later) = both("").await;
    assert!(later.contains(&"23T09:00 Weekly: The agent is archived. (Watch)".to_owned()), "{later:?}");
    assert!(!later.iter().any(|one| one.contains("Draft")), "{later:?}");
}

/// Minutes before the day's occurrences: they must not flood.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_of_every_minute_does_not_flood_the_day() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let often =
        stage.approved(json!({"title": "Often", "schedule": {"every": "1m", "catch_up": "none"}})).await;
    let daily = stage.approved(json!({"title": "Daily", "schedule": {"cron": "0 20 * * *"}})).await;
    // 300 due times pass while nothing works, and all have a record.
    stage.happens_at(300).await;
    while stage.action(often).await.next_due.unwrap() <= stage.clock.now() {
        stage.happens_at(300).await;
    }
    let day = read(&stage, "").await;
    let of = |id: ActionId| {
        day["data"].as_array().unwrap().iter().filter(|item| item["action_id"] == json!(id)).count()
    };
    assert_eq!((of(often), of(daily), &day["complete"]), (100, 1, &json!(false)));
    let occurrences = made_today(&stage, often).await;
    // 17:00 to midnight, without midnight.
    let coming = 7 * 60 - 1;
    assert_eq!(
        day["more"],
        json!([{"action_id": often, "count": occurrences + coming - 100}]),
        "{occurrences}"
    );
    // Half of them have passed, and they are the nearest to the present.
    let states = told(&day);
    assert_eq!(states.iter().filter(|state| state.ends_with(" due")).count(), 51, "{states:?}");
    assert!(
        states.iter().any(|state| state.starts_with("17:01"))
            && states.iter().any(|state| state.starts_with("16:30")),
        "{states:?}"
    );
    // A whole day of minutes ahead is counted, too.
    let next = read(&stage, "?date=2026-11-22").await;
    assert_eq!(next["more"], json!([{"action_id": often, "count": 1_440 - 100}]));
}

/// How many occurrences the action has.
async fn made_today(stage: &Stage, id: ActionId) -> usize {
    let (mut count, mut after) = (0, None::<String>);
    loop {
        let store = &stage.h.platform.cx.store;
        let found = store
            .occurrences(&stage.owner, id, after.as_deref(), 100, shared::store::table::Order::Oldest)
            .await
            .unwrap();
        count += found.items.len();
        after = found.last;
        if after.is_none() {
            return count;
        }
    }
}

/// Due times that are held share one record. It began before the day, and counts for it.
#[tokio::test]
async fn a_record_of_many_due_times_is_shown_on_each_of_their_days() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.h.patch(&format!("/agents/{}", stage.agent), json!({"goal": "Sells oil"})).await.expect(200);
    stage.happens_at(60).await;
    stage.happens_at(120).await;
    stage.happens_at(3 * 24 * 60).await;
    for date in ["2026-11-21", "2026-11-22", "2026-11-24"] {
        let day = read(&stage, &format!("?date={date}")).await;
        let held = day["data"].as_array().unwrap().iter().find(|item| item.get("due_times").is_some());
        let held = held.unwrap_or_else(|| panic!("{date}: {day:#}"));
        assert_eq!((&held["state"], &held["due_times"]), (&json!("held"), &json!(71)), "{held:#}");
        assert_eq!(held["at"], json!(noon() + SignedDuration::from_hours(2)));
    }
    assert_eq!(told(&read(&stage, "?date=2026-11-25").await), [""; 0]);
    let _ = id;
}

#[tokio::test]
async fn invalid_days_and_zones_are_refused_with_the_field() {
    let stage = Stage::with(ModelsConfig::default()).await;
    for (query, field) in [
        ("?date=2026-11-31", "date"),
        ("?date=tomorrow", "date"),
        ("?date=9999-12-31", "date"),
        ("?date=-009999-01-01", "date"),
        ("?date=2025-10-01", "date"),
        ("?date=", "date"),
        ("?timezone=Mars", "timezone"),
        ("?timezone=", "timezone"),
        ("?timezone=UTC%2B2", "timezone"),
        ("?zone=UTC", "zone"),
    ] {
        let refused = stage.h.get(&format!("/day{query}")).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], field, "{refused:#}");
    }
}
