//! People are told that the next run will fail, while they can still mend it.

use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use tests::model::{Says, ScriptedModel};
use tests::site::{Answers, Posted, Site};
use tests::stage::Stage;

/// Minutes after noon: twelve hours and five minutes before the first due time, and the due time.
const EARLY: i64 = 12 * 60;
const SHORTLY: i64 = 24 * 60 - 5;
const DUE: i64 = 24 * 60;

fn writes(messages: &[Value]) -> Says {
    match messages.last().unwrap()["role"].as_str() {
        Some("tool") => Says::Text("It is done.".into()),
        _ => Says::Call("save_output", json!({"title": "Report", "content": "Lamp oil is dear."})),
    }
}

async fn stage(site: &Site) -> (Stage, ScriptedModel) {
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::of(PlatformConfig {
        models: model.config("scripted"),
        reach: site.reach(),
        ..PlatformConfig::in_memory()
    })
    .await;
    let hook = json!({"kind": "webhook", "url": site.url("/hook")});
    stage.h.post("/notifications/channels", hook).await.expect(201);
    stage.executors.work().await;
    (stage, model)
}

/// What the site was told of pre-flights: whether it is over, the title and the reason.
fn said(site: &Site) -> Vec<(bool, String, String)> {
    let of = |json: &Value, field: &str| json["data"][field].as_str().unwrap_or_default().to_owned();
    let posted = site.posted();
    let told = posted.iter().map(Posted::json);
    told.filter(|json| json["data"]["cause"] == "preflight")
        .map(|json| (json["data"]["is_over"] == true, of(&json, "title"), of(&json, "reason")))
        .collect()
}

#[tokio::test]
async fn a_run_that_will_fail_is_told_before_and_so_is_its_mending() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, model) = stage(&site).await;
    let id = stage.approved(json!({"title": "Prices", "schedule": {"every": "24h"}})).await;
    model.lists(401);
    stage.happens_at(EARLY - 1).await;
    assert!(said(&site).is_empty());
    for minute in [EARLY, EARLY + 1, EARLY + 60] {
        stage.happens_at(minute).await;
        let [(is_over, title, reason)] = &said(&site)[..] else { panic!("{:?}", said(&site)) };
        assert_eq!((*is_over, title.as_str()), (false, "the next run will fail: Prices"));
        assert!(reason.ends_with("does not accept the API key"), "{reason}");
    }
    let link = site.posted().last().unwrap().json()["data"]["url"].as_str().unwrap().to_owned();
    assert!(link.ends_with(&format!("/#/actions/{id}")), "{link}");
    // It still holds at the second check: nothing new.
    stage.happens_at(SHORTLY).await;
    assert_eq!(said(&site).len(), 1);
    // It is mended too late for another check. The run says so.
    model.lists(200);
    stage.happens_at(DUE).await;
    let told = said(&site);
    assert_eq!((told.len(), told[1].0), (2, true), "{told:?}");
    // The next due time has nothing to say.
    stage.happens_at(DUE + EARLY).await;
    assert_eq!(said(&site).len(), 2);
}

#[tokio::test]
async fn what_is_mended_before_the_second_check_is_said_there_once() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, model) = stage(&site).await;
    stage.approved(json!({"title": "Prices", "schedule": {"every": "24h"}})).await;
    model.lists(401);
    stage.happens_at(EARLY).await;
    model.lists(200);
    stage.happens_at(SHORTLY).await;
    stage.happens_at(DUE).await;
    let over: Vec<bool> = said(&site).into_iter().map(|(is_over, ..)| is_over).collect();
    assert_eq!(over, [false, true]);
}
