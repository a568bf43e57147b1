//! What people are told of runs: at once, with a count, in a digest, and once when it is right again.

use domain::reach::Policy;
use domain::runs::RunKind;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::config::ReachConfig;
use shared::flows::notices;
use shared::flows::watched::watchdog;
use shared::money::alerts;
use shared::store::Store;
use tests::made::{local, settle};
use tests::model::{Says, ScriptedModel};
use tests::site::{Answers, Posted, Site};
use tests::stage::Stage;

/// Its reports are too short for [`strict`] until three in the afternoon.
fn reports(messages: &[Value]) -> Says {
    let task = json!(messages).to_string();
    let works = task.contains("15:00") || task.contains("16:00");
    Says::Text(if works { "A long report." } else { "Short." }.into())
}

/// A stage with a webhook at this site.
async fn stage(site: &Site) -> (Stage, ScriptedModel) {
    stage_with(site, reports).await
}

async fn stage_with(site: &Site, script: fn(&[Value]) -> Says) -> (Stage, ScriptedModel) {
    let model = ScriptedModel::start(script).await;
    let models = model.config("claude-haiku-4-5");
    let config = PlatformConfig { models, reach: site.reach(), ..PlatformConfig::in_memory() };
    let stage = Stage::of(config).await;
    let hook = json!({"kind": "webhook", "url": site.url("/hook")});
    stage.h.post("/notifications/channels", hook).await.expect(201);
    (stage, model)
}

/// An action that needs longer reports.
fn strict() -> Value {
    json!({"schedule": {"every": "1h"}, "conditions": [{"kind": "min_words", "words": 3}]})
}

/// What the site was told: the type, the count, whether it is over.
fn said(site: &Site) -> Vec<String> {
    let told = |json: Value| {
        let data = &json["data"];
        let over = if data["is_over"] == json!(true) { " over" } else { "" };
        format!("{} {}{over}", json["type"].as_str().unwrap(), data["count"])
    };
    site.posted().iter().map(|posted| told(posted.json())).collect()
}

async fn preferences(stage: &Stage, preferences: Value) {
    stage
        .h
        .execute(stage.h.request(http::Method::PUT, "/notifications").json(&preferences).build().unwrap())
        .await
        .unwrap()
        .error_for_status()
        .unwrap();
}

#[tokio::test]
async fn a_failure_is_told_at_once_then_counted_and_its_end_is_told_once() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage(&site).await;
    let id = stage.approved(strict()).await;
    stage.happens_at(60).await;
    assert_eq!(said(&site), ["notice.failed 1"]);
    let posted = &site.posted()[0];
    let (body, run) = (posted.json(), stage.occurrences(id).await[0].run_id);
    assert_eq!(body["data"]["title"], "Report", "{body:#}");
    assert_eq!(body["data"]["cause"], "condition_not_met", "{body:#}");
    assert_eq!(body["data"]["url"], format!("{}/#/runs/{run}", stage.h.platform.url()), "{body:#}");
    assert_eq!(posted.header("webhook-id"), body["data"]["notice_id"].as_str().unwrap());
    assert!(posted.header("webhook-signature").starts_with("v1,"));

    // The second failure waits for the count.
    stage.happens_at(120).await;
    assert_eq!(said(&site).len(), 1);
    stage.happens_at(180).await;
    // The first success comes at once, too.
    assert_eq!(said(&site), ["notice.failed 1", "notice.failed 2 over", "notice.succeeded 1"]);
    // A later one is for the digest, and nothing is said twice.
    stage.happens_at(240).await;
    stage.happens_at(245).await;
    assert_eq!(said(&site).len(), 3);
    let list = stage.h.get("/deliveries?state=delivered").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 3, "{list:#}");
    assert!(list.to_string().contains("Report works again"), "{list:#}");

    // The digest of the next morning at eight has the runs that have succeeded.
    stage.happens_at(20 * 60).await;
    stage.happens_at(20 * 60 + 1).await;
    let digests: Vec<Value> = site
        .posted()
        .iter()
        .map(Posted::json)
        .filter(|json| json["type"] == json!("notice.digest"))
        .collect();
    assert_eq!(digests.len(), 1, "{digests:#?}");
    let lines = &digests[0]["data"]["lines"];
    assert_eq!(lines[0]["kind"], "succeeded", "{lines:#}");
    assert!(lines[0]["count"].as_u64().unwrap() >= 1, "{lines:#}");
    // Nobody swept for the hours in between, and the due times that were missed are a failure.
    assert!(said(&site)[3..].iter().any(|said| said.starts_with("notice.failed")), "{:?}", said(&site));
}

#[tokio::test]
async fn a_failure_that_goes_on_is_told_every_six_hours() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage_with(&site, |_| Says::Text("Short.".into())).await;
    let ids = [stage.approved(strict()).await, stage.approved(strict()).await];
    for hour in 1..=2 {
        stage.happens_at(hour * 60).await;
    }
    // Each action has a notice of its own.
    assert_eq!(said(&site), ["notice.failed 1", "notice.failed 1"]);
    // The third failure pauses the action, and its person is told so at once, once.
    stage.happens_at(180).await;
    for minute in [180, 300, 420, 421] {
        stage.happens_at(minute).await;
        assert_eq!(said(&site)[2..], ["notice.failed 2", "notice.failed 2"], "minute {minute}");
    }
    assert!(stage.action(ids[0]).await.paused_because.is_some());
    for posted in &site.posted()[2..] {
        let data = &posted.json()["data"];
        assert_eq!((&data["title"], &data["cause"]), (&json!("Report"), &json!("condition_not_met")));
        let reason = data["reason"].as_str().unwrap();
        assert!(reason.starts_with("It is paused after three failures with the same cause: "), "{data:#}");
        assert!(reason.ends_with("Mend the cause, and resume it."), "{data:#}");
    }
}

#[tokio::test]
async fn quiet_hours_delay_and_a_snooze_too() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage_with(&site, |_| Says::Text("Short.".into())).await;
    preferences(&stage, json!({"quiet_hours": {"from": "12:30", "to": "15:00"}})).await;
    stage.approved(strict()).await;
    stage.happens_at(60).await;
    stage.happens_at(120).await;
    assert_eq!(said(&site), Vec::<String>::new());
    stage.happens_at(179).await;
    assert_eq!(said(&site), Vec::<String>::new());
    stage.happens_at(180).await;
    // All are told when the quiet hours end. One more comes at that moment, and pauses the action.
    assert!(["notice.failed 2", "notice.failed 3"].contains(&said(&site)[0].as_str()), "{:?}", said(&site));
    let told = said(&site);
    assert!(told.len() == 1 || told[1..] == ["notice.failed 1"], "{told:?}");
    // Rules that have changed hold for what waits.
    preferences(&stage, json!({"kinds": {"failed": "off"}})).await;
    stage.executors.work().await;
    stage.happens_at(600).await;
    assert_eq!(said(&site), told);
}

#[tokio::test]
async fn without_a_channel_nothing_is_planned_and_a_run_stays_told() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage(&site).await;
    let channel = stage.h.get("/notifications/channels").await.expect(200);
    let channel = channel["data"][0]["channel_id"].as_str().unwrap().to_owned();
    stage.h.delete(&format!("/notifications/channels/{channel}")).await.expect(204);
    let id = stage.approved(strict()).await;
    stage.happens_at(60).await;
    let occurrence = stage.occurrences(id).await.remove(0);
    assert_eq!((occurrence.untold(), occurrence.told.as_deref()), (None, Some("failed")));
    assert!(stage.h.platform.cx.store.notice_states(&stage.owner).await.unwrap().is_empty());
    stage.happens_at(70).await;
    assert_eq!(said(&site), Vec::<String>::new());
}

/// The process dies between the end of a run and the notice: the run is written as if nobody had told of it.
#[tokio::test]
async fn a_run_whose_process_died_before_the_notice_is_told_of_by_the_next_sweep() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage(&site).await;
    let id = stage.approved(strict()).await;
    stage.happens_at(60).await;
    assert_eq!(said(&site).len(), 1);
    let cx = &stage.h.platform.cx;
    let run = stage.occurrences(id).await[0].run_id;
    let mut found = cx.store.occurrence(&stage.owner, id, run).await.unwrap().unwrap();
    found.value.told = None;
    let mut writes = vec![Store::replace_occurrence(&stage.owner, &found.value, found.version).unwrap()];
    writes.extend(Store::untold_write(&stage.owner, &found.value).unwrap());
    assert!(cx.store.write_all(writes).await.unwrap().done());
    stage.happens_at(61).await;
    let occurrence = stage.occurrences(id).await.remove(0);
    assert_eq!(occurrence.told.as_deref(), Some("failed"), "the sweep has found it");
    // Telling again changes nothing.
    notices::tell(cx, &stage.owner, &occurrence).await;
    assert_eq!(said(&site).len(), 1, "the second failure is counted, and told after six hours");
}

#[tokio::test]
async fn a_spending_alert_is_told_once_in_a_month() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage(&site).await;
    let (h, cx) = (&stage.h, &stage.h.platform.cx);
    h.patch("/account", json!({"alerts": [{"month_micros": 500_000}, {"month_micros": 5_000_000}]}))
        .await
        .expect(200);
    settle(cx, &local(), stage.clock.now(), 0, 700_000).await;
    for _ in 0..2 {
        alerts::check(cx, &local(), RunKind::Chat).await;
        stage.sweep().await;
        stage.executors.work().await;
    }
    assert_eq!(said(&site), ["notice.budget 1"]);
    let data = &site.posted()[0].json()["data"];
    assert_eq!(data["title"], "$0.50 of this month are spent", "{data:#}");
    assert!(data["url"].as_str().unwrap().ends_with("/#/account/usage"), "{data:#}");
}

#[tokio::test]
async fn the_watchdog_names_what_it_means_and_says_what_was_wrong() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage(&site).await;
    let name = "Backup <b>of</b> evil.com @all";
    let new = json!({"name": name, "schedule": {"every": "1h"}, "grace_minutes": 10});
    let made = stage.h.post("/watched", new).await.expect(201);
    let cx = &stage.h.platform.cx;
    let look = async |hour: i64| {
        let quarter_past: Timestamp = "2026-11-21T16:16:00Z".parse().unwrap();
        stage.clock.set(quarter_past + SignedDuration::from_hours(hour));
        watchdog::send(cx, cx.clock.now() + SignedDuration::from_mins(5)).await.unwrap();
        stage.executors.work().await;
    };
    look(0).await;
    assert_eq!(said(&site), Vec::<String>::new());
    look(2).await;
    let path = format!("/watched/{}/reports", made["watched_id"].as_str().unwrap());
    stage.h.post(&path, json!({})).await.expect(201);
    look(2).await;
    stage.clock.set("2026-11-21T20:01:00Z".parse().unwrap());
    stage.h.post(&path, json!({})).await.expect(201);
    look(4).await;
    look(4).await;
    assert_eq!(said(&site), ["notice.watchdog 1", "notice.watchdog 1 over"]);
    let told: Vec<Value> = site.posted().iter().map(Posted::json).collect();
    assert_eq!(told[0]["data"]["title"], format!("{name} is silent"));
    let reason = told[0]["data"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("No report came within 10 minutes after the due time. Check "), "{reason}");
    assert_eq!(
        (&told[1]["data"]["title"], &told[1]["data"]["reason"]),
        (&json!(name), &json!("It was silent."))
    );
    let list = stage.h.get("/deliveries").await.expect(200);
    let subjects: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|of| of["subject"].as_str().unwrap()).collect();
    assert_eq!(
        subjects,
        [
            "Backup <b>of</b> evil[.]com (at)all is right again",
            "Watchdog: Backup <b>of</b> evil[.]com (at)all is silent",
        ]
    );
}

#[tokio::test]
async fn a_reported_failure_is_told_at_once_and_so_is_the_success_after_it() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage(&site).await;
    let new = json!({"name": "Nightly backup", "schedule": {"cron": "0 3 * * *"}});
    let made = stage.h.post("/watched", new).await.expect(201);
    let path = format!("/watched/{}/reports", made["watched_id"].as_str().unwrap());
    let report = async |hours: i64, body: Value| {
        stage.at(hours * 60);
        stage.h.post(&path, body).await.expect(201);
        stage.executors.work().await;
    };
    let look = async |hours: i64| {
        stage.at(hours * 60 + 16);
        watchdog::send(&stage.h.platform.cx, stage.clock.now() + SignedDuration::from_mins(5)).await.unwrap();
        stage.executors.work().await;
    };
    // Noon, and the first due time is at three in the morning.
    report(0, json!({"exit_code": 3, "summary": "disk full"})).await;
    assert_eq!(said(&site), ["notice.watchdog 1"]);
    let told = site.posted()[0].json();
    assert_eq!(told["data"]["title"], "Nightly backup has failed");
    let reason = told["data"]["reason"].as_str().unwrap();
    assert_eq!(reason, "It reported a failure with exit code 3. Read the log of the program.");
    // The looks see the same, and say nothing more.
    for hours in [0, 2, 4] {
        look(hours).await;
    }
    assert_eq!(said(&site), ["notice.watchdog 1"]);
    // It fails again, and is said with a count after six hours.
    report(5, json!({"exit_code": 3})).await;
    assert_eq!(said(&site), ["notice.watchdog 1"]);
    report(7, json!({"exit_code": 3})).await;
    assert_eq!(said(&site), ["notice.watchdog 1", "notice.watchdog 2"]);
    report(8, json!({"exit_code": 0})).await;
    assert_eq!(said(&site).last().unwrap(), "notice.watchdog 3 over");
    let over = site.posted().last().unwrap().json();
    assert_eq!(
        (&over["data"]["title"], &over["data"]["reason"]),
        (&json!("Nightly backup"), &json!("It had failed."))
    );
    // Neither the looks nor another success say it again.
    look(8).await;
    report(9, json!({})).await;
    look(10).await;
    assert_eq!(said(&site).len(), 3, "{:?}", said(&site));
}

/// Each action may have channels of its own. A channel that is off or gone loses nothing.
#[tokio::test]
async fn an_action_is_told_at_the_channels_that_were_chosen_for_it() {
    let (first, second) = (Site::start(Answers::Status(204)).await, Site::start(Answers::Status(204)).await);
    let model = ScriptedModel::start(|_| Says::Text("Short.".into())).await;
    let allowed_hosts =
        [&first, &second].into_iter().flat_map(|site| site.reach().policy.allowed_hosts.clone()).collect();
    let policy = Policy { allowed_hosts, ..Policy::default() }.into();
    let reach = ReachConfig { policy, ..ReachConfig::default() };
    let models = model.config("claude-haiku-4-5");
    let stage = Stage::of(PlatformConfig { models, reach, ..PlatformConfig::in_memory() }).await;
    let mut channels = Vec::new();
    for site in [&first, &second] {
        let hook = json!({"kind": "webhook", "url": site.url("/hook")});
        let made = stage.h.post("/notifications/channels", hook).await.expect(201);
        channels.push(made["channel_id"].as_str().unwrap().to_owned());
    }
    let (here, everywhere) = (stage.approved(strict()).await, stage.approved(strict()).await);
    preferences(&stage, json!({"channels": {here.to_string(): [channels[1]]}})).await;
    let told = stage.h.get(&format!("/actions/{here}/approval")).await.expect(200)["told"].clone();
    assert_eq!(told["channels"].as_array().unwrap().len(), 1, "{told:#}");
    let titles = |site: &Site| {
        let about = |posted: &Posted| {
            let data = &posted.json()["data"];
            data["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
        };
        site.posted().iter().map(about).collect::<Vec<_>>()
    };
    stage.happens_at(60).await;
    let [of_here, of_everywhere] = [
        stage.occurrences(here).await[0].run_id.to_string(),
        stage.occurrences(everywhere).await[0].run_id.to_string(),
    ];
    assert_eq!(titles(&first), std::slice::from_ref(&of_everywhere));
    let mut both = titles(&second);
    both.sort();
    let mut expected = vec![of_here.clone(), of_everywhere.clone()];
    expected.sort();
    assert_eq!(both, expected);
    // The record of a run names the channels that it was sent to.
    let run = stage.h.get(&format!("/runs/{of_here}")).await.expect(200);
    assert_eq!(run["told"]["deliveries"].as_array().unwrap().len(), 1, "{run:#}");

    // A digest has other lines for each channel.
    let off = json!({"kinds": {"failed": "digest"}, "channels": {here.to_string(): [channels[1]]}});
    preferences(&stage, off).await;
    stage.happens_at(120).await;
    stage.happens_at(20 * 60).await;
    stage.happens_at(20 * 60 + 1).await;
    let lines = |site: &Site| {
        let digests = site
            .posted()
            .iter()
            .map(Posted::json)
            .filter(|json| json["type"] == "notice.digest")
            .collect::<Vec<_>>();
        digests.iter().map(|json| json["data"]["lines"].as_array().unwrap().len()).collect::<Vec<_>>()
    };
    assert_eq!((lines(&first), lines(&second)), (vec![1], vec![2]));

    // Names that do not exist are refused, and those that were deleted are forgotten.
    let put = async |body: Value| {
        let request = stage.h.request(http::Method::PUT, "/notifications");
        tests::send(request.json(&body)).await
    };
    let stranger = "chn_0190a6a8000070008000000000000001";
    let refused =
        put(json!({"channels": {here.to_string(): [stranger]}})).await.refused(400, "invalid_input");
    assert!(refused.to_string().contains("there is no channel"), "{refused:#}");
    stage.h.delete(&format!("/notifications/channels/{}", channels[1])).await.expect(204);
    let told = stage.h.get(&format!("/actions/{here}/approval")).await.expect(200)["told"].clone();
    assert_eq!(told["channels"].as_array().unwrap().len(), 1, "all that are on are told: {told:#}");
    let kept = json!({"channels": {here.to_string(): [channels[1]]}, "actions": {here.to_string(): {"failed": "off"}}});
    let stored = put(kept).await.expect(200);
    assert_eq!(
        (&stored["channels"], &stored["actions"][here.to_string()]["failed"]),
        (&Value::Null, &json!("off"))
    );
    stage.h.delete(&format!("/actions/{here}")).await.expect(204);
    let mut again = stored.clone();
    again.as_object_mut().unwrap().remove("version");
    let stored = put(again).await.expect(200);
    assert_eq!(stored["actions"], json!({}), "a rule about an action that was deleted stops nothing");
}
