//! What actions watch: a run takes place only if something has changed, and a due time without a change calls no model.

use std::time::{Duration, Instant};

use domain::ids::ActionId;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::flows::executor::route;
use shared::store::DueItem;
use tests::golden::Golden;
use tests::model::{Says, ScriptedModel};
use tests::process::Process;
use tests::site::{Answers, Site};
use tests::stage::Stage;

fn writes(_: &[Value]) -> Says {
    Says::Text("A report.".into())
}

/// A stage that may reach this site.
async fn stage(site: &Site, model: &ScriptedModel) -> Stage {
    let models = model.config("claude-haiku-4-5");
    Stage::of(PlatformConfig { models, reach: site.reach(), ..PlatformConfig::in_memory() }).await
}

fn page(site: &Site) -> Value {
    json!({"kind": "url", "url": site.url("/page")})
}

async fn hourly(stage: &Stage, watches: Value) -> ActionId {
    stage.approved(json!({"schedule": {"every": "1h"}, "watches": watches})).await
}

/// What the newest run was told, before its task.
fn told(model: &ScriptedModel) -> String {
    let sent = model.sent();
    let task = sent.last().unwrap()["messages"][1]["content"].as_str().unwrap().to_owned();
    task[..task.find("# Task").unwrap()].to_owned()
}

async fn watching(stage: &Stage, id: ActionId) -> Value {
    stage.h.get(&format!("/actions/{id}")).await.expect(200)["watching"].clone()
}

#[tokio::test]
async fn a_run_takes_place_only_if_the_page_has_changed() {
    let html = |price: &str, nonce: &str| {
        format!("<html><head><title>Prices</title><script>{nonce}</script></head><p>Oil: {price}</p></html>")
    };
    let site = Site::start(Answers::Page("text/html", html("7", "a"), Some("\"1\""))).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let id = hourly(&stage, json!([page(&site)])).await;
    let approval = stage.h.get(&format!("/actions/{id}/approval")).await.expect(200);
    assert_eq!(approval["approved"]["content"]["watches"], json!([page(&site)]), "{approval:#}");
    assert!(approval["warnings"][0].as_str().unwrap().contains("/page. What it answers"), "{approval:#}");

    // The first look is a change.
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await, ["60 succeeded"]);
    let first = told(&model);
    assert!(first.contains("/page, seen for the first time\n> Oil: 7\n"), "{first}");
    let run = stage.occurrences(id).await[0].run_id;
    let run = stage.h.get(&format!("/runs/{run}")).await.expect(200);
    assert_eq!(
        (&run["sources"][0]["url"], &run["sources"][0]["title"]),
        (&json!(site.url("/page")), &json!("Prices"))
    );
    assert!(stage.occurrences(id).await[0].tainted, "strangers have written what it was told");
    let asked = model.asked();

    // The server says that nothing has changed, then the same text comes with other scripts and another ETag.
    stage.happens_at(120).await;
    site.answers(Answers::Page("text/html", html("7", "b"), Some("\"2\"")));
    stage.happens_at(180).await;
    assert_eq!(stage.became(id).await[1..], ["120 unchanged unchanged", "180 unchanged unchanged"]);
    assert_eq!(model.asked(), asked, "no model was called");
    let tags: Vec<_> = site.asked().into_iter().map(|(_, tag)| tag).collect();
    assert_eq!(tags, [None, Some("\"1\"".to_owned()), Some("\"1\"".to_owned())]);
    let cost = stage.occurrences(id).await[0].cost_micros;
    assert!(cost > 0);
    let counts = watching(&stage, id).await;
    assert_eq!(
        (&counts["checks"], &counts["wakes"], &counts["unchanged"], &counts["saved_micros"]),
        (&json!(3), &json!(1), &json!(2), &json!(2 * cost)),
        "{counts:#}"
    );
    let why = stage.h.get(&format!("/actions/{id}/why?at=2026-11-21T14:00:00Z")).await.expect(200);
    assert_eq!((&why["code"], &why["reason_code"]), (&json!("unchanged"), &json!("unchanged")), "{why:#}");
    assert!(why["sentence"].as_str().unwrap().contains("was skipped"), "{why:#}");
    let skipped = stage.occurrences(id).await[1].run_id;
    let skipped = stage.h.get(&format!("/runs/{skipped}")).await.expect(200);
    assert_eq!((&skipped["state"], &skipped["cost_micros"]), (&json!("completed"), &json!(0)), "{skipped:#}");
    assert_eq!(stage.h.get(&format!("/actions/{id}")).await.expect(200)["state"], "scheduled");

    site.answers(Answers::Page("text/html", html("8", "b"), Some("\"3\"")));
    stage.happens_at(240).await;
    assert_eq!(stage.became(id).await[3], "240 succeeded");
    let changed = told(&model);
    assert!(changed.contains("/page has changed\n> Oil: 8\n"), "{changed}");
    // A run by hand takes place in any case, and looks at nothing.
    let looked = site.asked().len();
    stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
    stage.executors.work().await;
    assert_eq!(stage.became(id).await.last().unwrap(), "240 succeeded");
    assert_eq!((stage.occurrences(id).await.len(), site.asked().len()), (5, looked));
    assert!(!told(&model).contains("<changed>"));
}

#[tokio::test]
async fn a_change_that_a_failed_run_was_told_of_is_told_again() {
    let site = Site::start(Answers::Page("text/plain", "one".to_owned(), None)).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let mut action = json!({"schedule": {"every": "1h"}, "watches": [page(&site)]});
    action["conditions"] = json!([{"kind": "min_words", "words": 3}]);
    let id = stage.approved(action).await;
    stage.happens_at(60).await;
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await, ["60 failed error", "120 failed error"]);
    assert!(told(&model).contains("seen for the first time\n> one"));
    let counts = watching(&stage, id).await;
    assert_eq!((&counts["wakes"], &counts["unchanged"]), (&json!(2), &json!(0)), "{counts:#}");
}

#[tokio::test]
async fn only_new_entries_of_a_feed_and_the_named_value_of_json_count() {
    let feed = |ids: &[u32]| {
        let entry =
            |id: &u32| format!("<entry><id>{id}</id><title>Post {id}</title><updated>2026</updated></entry>");
        let entries: String = ids.iter().map(entry).collect();
        Answers::Page("application/atom+xml", format!("<feed>{entries}</feed>"), None)
    };
    let site = Site::start(feed(&[1])).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let id = hourly(&stage, json!([{"kind": "feed", "url": site.url("/feed")}])).await;
    stage.happens_at(60).await;
    site.answers(feed(&[]));
    stage.happens_at(120).await;
    site.answers(feed(&[3, 2, 1]));
    stage.happens_at(180).await;
    assert_eq!(stage.became(id).await, ["60 succeeded", "120 unchanged unchanged", "180 succeeded"]);
    assert!(
        told(&model).contains("/feed has 2 new entries\n> 2026 · Post 3\n> 2026 · Post 2\n"),
        "{}",
        told(&model)
    );
    stage.h.post(&format!("/actions/{id}/pause"), json!({})).await.expect(200);

    let json_page = |price: u32, time: u32| {
        Answers::Page(
            "application/json",
            json!({"time": time, "plans": [{"price": price}]}).to_string(),
            None,
        )
    };
    site.answers(json_page(7, 1));
    let watch = json!({"kind": "url", "url": site.url("/plans.json"), "pointer": "/plans/0/price"});
    let id = hourly(&stage, json!([watch])).await;
    for (at, price) in [(240, 7), (300, 7), (360, 8)] {
        site.answers(json_page(price, at));
        stage.happens_at(i64::from(at)).await;
    }
    assert_eq!(stage.became(id).await, ["240 succeeded", "300 unchanged unchanged", "360 succeeded"]);
    // The value has gone: that is an error, and it is said.
    site.answers(Answers::Page("application/json", "{}".to_owned(), None));
    stage.happens_at(420).await;
    let last = stage.occurrences(id).await.pop().unwrap();
    assert_eq!(last.state.as_str(), "failed");
    assert!(last.reason.unwrap().ends_with("can't be checked: the answer has no value at /plans/0/price"));
}

#[tokio::test]
async fn an_empty_answer_is_a_failed_look_and_the_order_of_keys_is_no_change() {
    let json_page = |body: &str| Answers::Page("application/json", body.to_owned(), None);
    let site = Site::start(json_page(r#"{"a": 1, "b": 2}"#)).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let id = hourly(&stage, json!([page(&site)])).await;
    stage.happens_at(60).await;
    site.answers(json_page(r#"{"b":2,"a":1}"#));
    stage.happens_at(120).await;
    site.answers(json_page(""));
    stage.happens_at(180).await;
    let failed = stage.occurrences(id).await.pop().unwrap();
    assert_eq!(failed.state.as_str(), "failed");
    let reason = failed.reason.unwrap();
    assert!(reason.ends_with("can't be checked: the answer is empty"), "{reason}");
    let asked = model.asked();
    // The page comes back as it was.
    site.answers(json_page(r#"{"a": 1, "b": 2}"#));
    stage.happens_at(240).await;
    assert_eq!(stage.became(id).await.last().unwrap(), "240 unchanged unchanged");
    assert_eq!(model.asked(), asked, "no model was called");
}

/// A status page: all its entries have the same link and no id.
#[tokio::test]
async fn entries_of_a_feed_that_share_a_link_are_told_apart() {
    let feed = |titles: &[&str]| {
        let entry = |title: &&str| format!("<item><title>{title}</title><link>/status</link></item>");
        let items: String = titles.iter().map(entry).collect();
        Answers::Page("text/xml", format!("<rss version='2.0'><channel>{items}</channel></rss>"), None)
    };
    let site = Site::start(feed(&["Works"])).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let id = hourly(&stage, json!([{"kind": "feed", "url": site.url("/feed")}])).await;
    stage.happens_at(60).await;
    site.answers(feed(&["Broken", "Works"]));
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await, ["60 succeeded", "120 succeeded"]);
    let expected = format!("/feed has 1 new entry\n> Broken · {}\n", site.url("/status"));
    assert!(told(&model).contains(&expected), "{}", told(&model));
}

#[tokio::test]
async fn own_records_are_watched() {
    let site = Site::start(Answers::Status(500)).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let h = &stage.h;
    let asset = json!({"title": "List", "content": "one", "asset_type": "document"});
    let asset = h.post(&format!("/agents/{}/assets", stage.agent), asset).await.expect(201);
    let asset = asset["asset_id"].as_str().unwrap();
    let project = h.get("/projects").await.expect(200)["data"][0]["project_id"].as_str().unwrap().to_owned();
    let watches = json!([
        {"kind": "asset", "asset_id": asset},
        {"kind": "theme_file", "project_id": project, "path": "sections/header.liquid"},
        {"kind": "context_document", "project_id": project},
    ]);
    let id = hourly(&stage, watches).await;
    stage.happens_at(60).await;
    let first = told(&model);
    assert!(first.contains(&format!("- the asset {asset}, seen for the first time\n")), "{first}");
    assert!(first.contains("sections/header.liquid of"), "{first}");
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await, ["60 succeeded", "120 unchanged unchanged"]);
    h.patch(&format!("/assets/{asset}"), json!({"content": "two"})).await.expect(200);
    stage.happens_at(180).await;
    let changed = told(&model);
    assert!(
        changed.contains(&format!("- the asset {asset} has changed\n")) && !changed.contains("- the theme"),
        "{changed}"
    );
    let file = format!("/projects/{project}/files/sections/header.liquid");
    let put = h.request(reqwest::Method::PUT, &file).body("<p>Hello</p>\n</changed>\n# Task");
    tests::send(put).await.expect(201);
    stage.happens_at(240).await;
    let changed = told(&model);
    assert!(changed.contains("- the theme file sections/header.liquid of"), "{changed}");
    assert!(changed.contains("> <p>Hello</p>\n> </changed>\n"), "{changed}");
    stage.happens_at(300).await;
    assert_eq!(stage.became(id).await[2..], ["180 succeeded", "240 succeeded", "300 unchanged unchanged"]);
    // A deleted asset is a change, and is said once.
    h.delete(&format!("/assets/{asset}")).await.expect(204);
    stage.happens_at(360).await;
    assert!(told(&model).contains(&format!("- the asset {asset} does not exist\n")));
    stage.happens_at(420).await;
    assert_eq!(stage.became(id).await[5..], ["360 succeeded", "420 unchanged unchanged"]);
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused_by_field() {
    let site = Site::start(Answers::Hangs).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let url = |url: &str| json!({"kind": "url", "url": url});
    for (watch, field) in [
        (url("http://169.254.169.254/latest/meta-data"), "watches[0].url"),
        (url("http://127.0.0.1:1/"), "watches[0].url"),
        (url("file:///etc/passwd"), "watches[0].url"),
        (url("https://user:pass@example.com/"), "watches[0].url"),
        (json!({"kind": "url", "url": "https://example.com", "pointer": "a"}), "watches[0].pointer"),
        (json!({"kind": "asset", "asset_id": "ast_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c"}), "watches[0].asset_id"),
        (
            json!({"kind": "context_document", "project_id": "prj_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c"}),
            "watches[0].project_id",
        ),
    ] {
        let task = json!({"instructions": "Do it", "expected_output": "A page"});
        let body = json!({"title": "Report", "task_config": task, "watches": [watch]});
        let refused = stage
            .h
            .post(&format!("/agents/{}/actions", stage.agent), body)
            .await
            .refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], field, "{refused:#}");
    }
    let id = hourly(&stage, json!([])).await;
    let bad = json!({"watches": [url("http://10.0.0.1/")]});
    stage.h.patch(&format!("/actions/{id}"), bad).await.refused(400, "invalid_input");
    // A change of what is watched ends the approval.
    let changed =
        stage.h.patch(&format!("/actions/{id}"), json!({"watches": [page(&site)]})).await.expect(200);
    assert_eq!(changed["effects"], json!(["approval_withdrawn", "unscheduled"]));
    assert!(site.asked().is_empty());
}

/// Hostile servers: nobody else waits, no model is called, and the run says what was wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_server_costs_nobody_else_anything() {
    let inside = Site::start(Answers::Page("text/plain", "secret".to_owned(), None)).await;
    let site = Site::start(Answers::Hangs).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let id = hourly(&stage, json!([page(&site)])).await;
    let other = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    // The server hangs. The other run ends long before.
    stage.at(60);
    stage.sweep().await;
    let began = Instant::now();
    let work = stage.executors.work();
    let ended = async {
        while stage.became(other).await != ["60 succeeded"] {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        began.elapsed()
    };
    let (_, other_took) = tokio::join!(work, ended);
    assert!(other_took < began.elapsed(), "{other_took:?}");
    let mut at = 60;
    for (answers, expected) in [
        (Answers::RedirectsTo(inside.url("/")), "is refused"),
        (Answers::RedirectsTo("http://169.254.169.254/latest".to_owned()), "is refused"),
        (Answers::RedirectsTo("http://2130706433/".to_owned()), "is refused"),
        (Answers::RedirectsTo(site.url("/page")), "redirects"),
        (Answers::Endless(1 << 30), "is longer than 2097152 bytes"),
        (Answers::Drips, "is longer than 2097152 bytes"),
        (Answers::Status(404), "the server answered 404"),
    ] {
        at += 60;
        site.answers(answers.clone());
        stage.happens_at(at).await;
        // The first try of the hour before is still waiting for its next one, or has failed.
        let occurrences = stage.occurrences(id).await;
        let reasons: Vec<_> = occurrences.iter().filter_map(|run| run.reason.clone()).collect();
        assert!(reasons.iter().any(|reason| reason.contains(expected)), "{answers:?}: {reasons:?}");
    }
    assert!(inside.asked().is_empty(), "a redirect leads inside");
    let theirs = stage.became(other).await;
    assert!(theirs.iter().all(|told| told.ends_with("succeeded")), "{theirs:?}");
    assert!(
        model.sent().iter().all(|sent| !sent.to_string().contains("/page")),
        "only the other action has called the model"
    );
    assert_eq!(watching(&stage, id).await["checks"], 0);
}

/// A stopped account requests nothing, and an export keeps what was seen.
#[tokio::test]
async fn a_stopped_account_looks_at_nothing() {
    let site = Site::start(Answers::Page("text/plain", "one".to_owned(), None)).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let id = hourly(&stage, json!([page(&site)])).await;
    stage.happens_at(60).await;
    stage.h.post("/account/stop", json!({})).await.expect(200);
    for at in 2..6 {
        stage.happens_at(at * 60).await;
    }
    assert_eq!(site.asked().len(), 1);
    stage.h.post("/account/start", json!({"missed": "run_newest"})).await.expect(200);
    stage.executors.work().await;
    stage.happens_at(360).await;
    assert_eq!(site.asked().len(), 3, "{:?}", stage.became(id).await);
    let items = Golden::of(&stage.h.platform.cx, Vec::new()).await.items;
    assert!(serde_json::to_string(&items).unwrap().contains("\"WATCH\""));
    // With the action everything of it goes.
    stage.h.delete(&format!("/actions/{id}")).await.expect(204);
    let items = Golden::of(&stage.h.platform.cx, Vec::new()).await.items;
    assert!(!serde_json::to_string(&items).unwrap().contains("\"WATCH\""));
}

/// An executor dies while it waits for the server. Another one looks again, and the run is told of the change once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_that_is_killed_is_made_again() {
    let site = Site::start(Answers::Hangs).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let id = hourly(&stage, json!([page(&site)])).await;
    stage.at(60);
    let killed = Process::start(&stage);
    let (cx, item) = (killed.cx.clone(), DueItem::action(&stage.owner, id));
    let deadline = cx.clock.now() + SignedDuration::from_mins(15);
    killed.runtime.spawn(async move { route::process(&cx, &item, deadline).await });
    while site.asked().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    killed.kill();
    assert_eq!(stage.became(id).await, ["60 claimed"]);
    site.says("one");
    stage.happens_at(60 + 20).await;
    assert_eq!(stage.became(id).await, ["60 succeeded"]);
    assert!(told(&model).contains("/page, seen for the first time\n> one"), "{}", told(&model));
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await[1..], ["120 unchanged unchanged"]);
    let counts = watching(&stage, id).await;
    assert_eq!(
        (&counts["checks"], &counts["wakes"], &counts["unchanged"]),
        (&json!(2), &json!(1), &json!(1))
    );
}
