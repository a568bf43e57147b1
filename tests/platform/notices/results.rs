//! A result comes to the person in words, and its run says whether it did.

use std::collections::BTreeSet;

use domain::reach::Policy;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::config::ReachConfig;
use tests::model::{Says, ScriptedModel};
use tests::site::{Answers, Posted, Site};
use tests::stage::Stage;

const REPORT: &str = "# Prices\n\nTwo *changed*:\n\n1. Lamp <b>12</b>\n2. Shade 7";

async fn stage() -> (Stage, ScriptedModel, Site) {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, model) = stage_with(&[&site]).await;
    (stage, model, site)
}

async fn stage_with(sites: &[&Site]) -> (Stage, ScriptedModel) {
    let model = ScriptedModel::start(|_| Says::Text(REPORT.into())).await;
    let models = model.config("claude-haiku-4-5");
    let allowed_hosts = sites.iter().flat_map(|site| site.reach().policy.allowed_hosts.clone()).collect();
    let reach = ReachConfig {
        policy: Policy { allowed_hosts, ..Policy::default() }.into(),
        ..ReachConfig::default()
    };
    let config = PlatformConfig { models, reach, ..PlatformConfig::in_memory() };
    (Stage::of(config).await, model)
}

async fn hook(stage: &Stage, site: &Site) -> String {
    let hook = json!({"kind": "webhook", "url": site.url("/hook")});
    let created = stage.h.post("/notifications/channels", hook).await.expect(201);
    created["channel_id"].as_str().unwrap().to_owned()
}

async fn wants(stage: &Stage, preferences: Value) {
    let request = stage.h.request(http::Method::PUT, "/notifications").header("accept", "application/json");
    tests::send(request.json(&preferences)).await.expect(200);
}

/// `at`: which run, 0 for the first. What the run, its record in the action's history and the explanation say about telling it. All three say the same.
async fn told(stage: &Stage, action: domain::ids::ActionId, at: usize) -> Value {
    let occurrence = stage.occurrences(action).await[at].clone();
    let run = stage.h.get(&format!("/runs/{}", occurrence.run_id)).await.expect(200)["told"].clone();
    let of_action = stage.h.get(&format!("/actions/{action}/runs/{}", occurrence.run_id)).await.expect(200);
    assert_eq!(of_action["told"], run);
    let why = stage.h.get(&format!("/actions/{action}/why?at={}", occurrence.due_at)).await.expect(200);
    assert_eq!(why["told"], run);
    run
}

#[tokio::test]
async fn the_first_result_comes_at_once_in_words_and_later_ones_in_the_digest() {
    let (stage, _model, site) = stage().await;
    hook(&stage, &site).await;
    let action = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    let posted: Vec<Value> = site.posted().iter().map(Posted::json).collect();
    assert_eq!(posted.len(), 1, "{posted:#?}");
    assert_eq!(posted[0]["type"], "notice.succeeded");
    let result = &posted[0]["data"]["results"][0];
    assert_eq!(result["outputs"][0]["text"], REPORT, "{result:#}");
    assert!(result["cost_micros"].as_i64().unwrap() > 0);
    let first = told(&stage, action, 0).await;
    assert_eq!(
        (&first["state"], &first["deliveries"][0]["state"]),
        (&json!("sent"), &json!("delivered")),
        "{first:#}"
    );
    let place = first["deliveries"][0]["target"].as_str().unwrap();
    assert_eq!(first["sentence"], format!("Told by webhook ({place})."));

    stage.happens_at(120).await;
    assert_eq!(site.posted().len(), 1);
    let second = told(&stage, action, 1).await;
    assert_eq!(second["sentence"], "It is a line of the digest of 2026-11-22.", "{second:#}");
    stage.happens_at(20 * 60).await;
    stage.happens_at(20 * 60 + 1).await;
    let digest =
        site.posted().iter().map(Posted::json).find(|body| body["type"] == json!("notice.digest")).unwrap();
    assert_eq!(
        digest["data"]["lines"][0]["excerpt"], "Two changed: 1. Lamp <b>12</b> 2. Shade 7",
        "{digest:#}"
    );
    let second = told(&stage, action, 1).await;
    assert_eq!(
        second["sentence"],
        format!("In the digest of 2026-11-22: Told by webhook ({place})."),
        "{second:#}"
    );
}

#[tokio::test]
async fn a_run_says_why_nobody_was_told() {
    let (stage, _model, site) = stage().await;
    let action = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    let none = told(&stage, action, 0).await;
    assert_eq!((&none["state"], &none["deliveries"]), (&json!("no_channel"), &json!([])), "{none:#}");

    hook(&stage, &site).await;
    wants(&stage, json!({"kinds": {"succeeded": "off"}})).await;
    stage.happens_at(120).await;
    assert_eq!(told(&stage, action, 1).await["state"], "off");

    wants(
        &stage,
        json!({"kinds": {"succeeded": "at_once"}, "quiet_hours": {"from": "14:30", "to": "15:30"}}),
    )
    .await;
    stage.happens_at(180).await;
    let later = told(&stage, action, 2).await;
    assert_eq!(
        (&later["state"], &later["at"]),
        (&json!("later"), &json!("2026-11-21T15:30:00Z")),
        "{later:#}"
    );
    assert_eq!(site.posted().len(), 0);
    stage.happens_at(211).await;
    let sent = told(&stage, action, 2).await;
    assert_eq!(
        (&sent["state"], &sent["deliveries"][0]["state"]),
        (&json!("sent"), &json!("delivered")),
        "{sent:#}"
    );
    assert_eq!(site.posted()[0].json()["data"]["results"][0]["outputs"][0]["text"], REPORT);
}

#[tokio::test]
async fn every_run_says_what_each_receiver_has_answered() {
    let good = Site::start(Answers::Status(204)).await;
    let broken = Site::start(Answers::Status(500)).await;
    let gone = Site::start(Answers::Status(410)).await;
    let elsewhere = Site::start(Answers::RedirectsTo(good.url("/elsewhere"))).await;
    let sites = [&good, &broken, &gone, &elsewhere];
    let (stage, _model) = stage_with(&sites).await;
    wants(&stage, json!({"kinds": {"succeeded": "at_once"}})).await;
    for site in sites {
        hook(&stage, site).await;
    }
    let action = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    for hour in 1..=3 {
        stage.happens_at(hour * 60).await;
    }
    for at in 0..3 {
        let told = told(&stage, action, at).await;
        let sentence = told["sentence"].as_str().unwrap();
        assert!(sentence.contains("Told by webhook"), "{told:#}");
        assert!(sentence.contains("the receiver answered 500"), "{told:#}");
        // After its first answer, the channel whose receiver is gone is switched off.
        let deliveries = told["deliveries"].as_array().unwrap();
        assert_eq!(deliveries.len(), if at == 0 { 4 } else { 3 }, "{told:#}");
        let ended = |state: &str| deliveries.iter().filter(|of| of["state"] == json!(state)).count();
        assert_eq!((ended("delivered"), ended("undelivered")), (1, usize::from(at == 0)), "{told:#}");
    }
    // Each result came once, and not to the address of the redirect.
    let results: Vec<Posted> = good
        .posted()
        .into_iter()
        .filter(|posted| posted.json()["type"] == json!("notice.succeeded"))
        .collect();
    let ids: BTreeSet<&str> = results.iter().map(|posted| posted.header("webhook-id")).collect();
    assert_eq!((results.len(), ids.len()), (3, 3));
    assert!(good.asked().iter().all(|(path, _)| !path.contains("/elsewhere")), "{:?}", good.asked());
}

#[tokio::test]
async fn an_output_that_was_deleted_is_not_sent_by_a_later_try() {
    let (stage, _model, site) = stage().await;
    site.answers(Answers::Status(500));
    hook(&stage, &site).await;
    let action = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    assert!(site.posted()[0].json()["data"]["results"][0]["outputs"][0]["text"].is_string());
    let run = stage.occurrences(action).await[0].run_id;
    let outputs = stage.h.get(&format!("/actions/{action}/runs/{run}/outputs")).await.expect(200);
    let asset = outputs["data"][0]["asset_id"].as_str().unwrap().to_owned();
    stage.h.delete(&format!("/assets/{asset}")).await.expect(204);
    site.answers(Answers::Status(204));
    stage.happens_at(75).await;
    let last = site.posted().last().unwrap().json();
    assert_eq!(last["data"]["results"][0]["outputs"], json!([]), "{last:#}");
    assert!(!last.to_string().contains("Lamp"));
}

const PRICE: &str = "snippets/price.liquid";
const TEXT: &str = "<p>{{ product.price | money }}</p>\n";

/// It edits the theme once, and says so.
fn edits_the_theme(messages: &[Value]) -> Says {
    use sha2::{Digest, Sha256};
    if json!(messages).to_string().contains("edit 1 of chs_") {
        return Says::Text("The price has its currency.".into());
    }
    let version = domain::hex(&Sha256::digest(TEXT))[..12].to_owned();
    let replacement = json!({"old": "| money }}", "new": "| money_with_currency }}"});
    Says::Call("search_replace", json!({"path": PRICE, "version": version, "replacements": [replacement]}))
}

#[tokio::test]
async fn scheduled_work_on_a_theme_is_told_with_its_diff() {
    let site = Site::start(Answers::Status(204)).await;
    let model = ScriptedModel::start(edits_the_theme).await;
    let reach = ReachConfig {
        policy: Policy { allowed_hosts: site.reach().policy.allowed_hosts.clone(), ..Policy::default() }
            .into(),
        ..ReachConfig::default()
    };
    let config = PlatformConfig { models: model.config("scripted"), reach, ..PlatformConfig::in_memory() };
    let stage = Stage::of(config).await;
    let h = &stage.h;
    tests::themes::put(h, PRICE, TEXT).await.expect(201);
    h.patch(&format!("/agents/{}", stage.agent), json!({"theme_project_id": "default"})).await.expect(200);
    hook(&stage, &site).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}, "grants": ["edit_theme"]})).await;
    stage.happens_at(60).await;
    let run = stage.newest_run(id).await;
    let changed = &run["changed"];
    assert_eq!(
        (&changed["is_applied"], &changed["files"]),
        (&json!(false), &json!([{"path": PRICE, "added": 1, "removed": 1}])),
        "{run:#}"
    );
    let set = format!("/projects/default/changes/{}", changed["change_set_id"].as_str().unwrap());
    assert_eq!(h.get(&set).await.expect(200)["diff"], changed["diff"]);
    // The message has the words of the run, and then what it would change.
    let posted = site.posted()[0].json();
    let outputs = &posted["data"]["results"][0]["outputs"];
    assert_eq!(outputs[0]["text"], "The price has its currency.", "{outputs:#}");
    assert_eq!(outputs[1]["title"], "Changes of the theme, not applied", "{outputs:#}");
    let text = outputs[1]["text"].as_str().unwrap();
    assert!(text.contains("+<p>{{ product.price | money_with_currency }}</p>"), "{text}");
    assert!(text.starts_with("- `snippets/price.liquid` +1 −1\n"), "{text}");
    let events = tests::process::followed(h, run["run_id"].as_str().unwrap().parse().unwrap()).await;
    assert_eq!(tests::events::names(&events).iter().rev().nth(1), Some(&"theme.changed"));
}
