//! Answers by the link of a message: the link alone does nothing, its page binds what was seen, and nobody else can use it.

use domain::ids::ActionId;
use domain::runs::RunKind;
use lamplighter_local::platform::PlatformConfig;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::model::{Says, ScriptedModel};
use tests::site::{Answers, Site};
use tests::stage::Stage;

/// A model that asks which week, and writes about the week of the answer.
fn asks(messages: &[Value]) -> Says {
    let last = messages.last().unwrap();
    if last["content"].as_str().is_some_and(|content| content.starts_with("saved")) {
        return Says::Text("It is done.".into());
    }
    let contents = messages.iter().filter_map(|message| message["content"].as_str());
    let answer = contents.filter_map(|content| content.split_once("The person answered: ")).next_back();
    match answer {
        None => Says::Call("ask_person", json!({"question": "Which week?<script>alert(1)</script>"})),
        Some((_, week)) => Says::Call("save_output", json!({"title": "Report", "content": week})),
    }
}

/// A stage with a confirmed e-mail address and a webhook.
async fn stage(site: &Site) -> (Stage, ScriptedModel, String) {
    let model = ScriptedModel::start(asks).await;
    let (models, reach) = (model.config("scripted"), site.reach());
    let stage = Stage::of(PlatformConfig { models, reach, ..PlatformConfig::in_memory() }).await;
    let channel = stage.h.confirmed_email("me@example.com").await;
    let hook = json!({"kind": "webhook", "url": site.url("/hook")});
    stage.h.post("/notifications/channels", hook).await.expect(201);
    stage.executors.work().await;
    (stage, model, channel)
}

/// The path of the link in the newest e-mail, if it has one.
async fn link(stage: &Stage) -> Option<String> {
    stage.executors.work().await;
    let mails = stage.h.get("/outbox").await.expect(200);
    let body = &mails["data"][0]["request"]["Content"]["Simple"]["Body"];
    let text = body["Text"]["Data"].as_str().unwrap();
    let begins = ["Answer it: ", "Pause or correct it: "];
    let link = text.lines().find_map(|line| begins.iter().find_map(|begin| line.strip_prefix(begin)))?;
    assert!(body["Html"]["Data"].as_str().unwrap().contains(link));
    Some(link[link.find("/answers/").expect("an answer")..].to_owned())
}

/// What a browser shows. It has no credentials.
async fn opened(stage: &Stage, path: &str) -> (StatusCode, String) {
    let answer = stage.h.request(http::Method::GET, path).send().await.unwrap();
    let headers = answer.headers().clone();
    let status = answer.status();
    let page = answer.text().await.unwrap();
    if status == 200 {
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_eq!(headers["cache-control"], "no-store");
    }
    (status, page)
}

/// Presses a button of the page.
async fn pressed(stage: &Stage, path: &str, fields: &[(&str, &str)]) -> (StatusCode, String) {
    // No value has another character that forms encode.
    let form: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", value.replace(' ', "+"))).collect();
    let request = stage.h.request(http::Method::POST, path);
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(form.join("&"));
    let answer = request.send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

/// The value of a hidden field.
fn hidden(page: &str, name: &str) -> String {
    let begin = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{name}: {page}"));
    rest.split_once('"').unwrap().0.to_owned()
}

async fn defined(stage: &Stage, title: &str) -> ActionId {
    let body = json!({
        "title": title,
        "task_config": {"instructions": "Compare the prices", "expected_output": "A report"},
        "schedule": {"every": "24h"},
    });
    let action = stage.h.post(&format!("/agents/{}/actions", stage.agent), body).await.expect(201);
    action["action_id"].as_str().unwrap().parse().unwrap()
}

async fn state(stage: &Stage, id: ActionId) -> Value {
    stage.h.get(&format!("/actions/{id}")).await.expect(200)["state"].clone()
}

#[tokio::test]
async fn an_approval_is_given_by_the_button_and_not_by_the_link() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model, channel) = stage(&site).await;
    let id = defined(&stage, "Prices <b>now</b>").await;
    stage.happens_at(15).await;
    let path = link(&stage).await.expect("a link");
    // Others may read what a webhook gets, so it has none.
    assert!(site.posted().iter().all(|posted| !posted.json().to_string().contains("/answers/")));

    let (status, page) = opened(&stage, &path).await;
    assert_eq!(status, 200);
    assert!(
        page.contains("Compare the prices") && page.contains("&lt;b&gt;now") && !page.contains("<b>now"),
        "{page}"
    );
    let hash = hidden(&page, "hash");
    // Mail programs look at links.
    opened(&stage, &path).await;
    assert_eq!(state(&stage, id).await, "defined");

    // What was not seen is not approved.
    stage.h.patch(&format!("/actions/{id}"), json!({"title": "Other"})).await.expect(200);
    let (status, _) = pressed(&stage, &path, &[("answer", "approve"), ("hash", &hash)]).await;
    assert_eq!((status.as_u16(), state(&stage, id).await), (409, json!("defined")));
    for wrong in [
        &[("answer", "approve")][..],
        &[("answer", "yes"), ("hash", &hash)],
        &[("answer", "words"), ("text", "approved"), ("seen", "1")],
        &[("answer", "allow"), ("call", "1.0"), ("hash", &hash)],
    ] {
        assert_eq!(pressed(&stage, &path, wrong).await.0, 400, "{wrong:?}");
    }
    let (_, page) = opened(&stage, &path).await;
    let fields = [("answer", "approve"), ("hash", &hidden(&page, "hash"))];
    let (status, told) = pressed(&stage, &path, &fields).await;
    assert!(status == 200 && told.contains("Approved. It runs at its times."), "{status} {told}");
    assert_eq!(state(&stage, id).await, "scheduled");
    let history = stage.h.get(&format!("/actions/{id}/history")).await.expect(200);
    let by = json!({"kind": "channel", "channel_id": channel.rsplit('/').next().unwrap()});
    assert_eq!((&history["data"][0]["command"], &history["data"][0]["by"]), (&json!("approve"), &by));
    // A second press changes nothing, and the page has nothing to ask.
    assert_eq!(pressed(&stage, &path, &fields).await.0, 200);
    assert_eq!(stage.h.get(&format!("/actions/{id}/history")).await.expect(200), history);
    assert!(opened(&stage, &path).await.1.contains("Nothing is asked now"));
}

#[tokio::test]
async fn a_question_is_answered_once_in_words() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model, _channel) = stage(&site).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await, ["60 waiting asked"]);
    let path = link(&stage).await.expect("a link");
    let (_, page) = opened(&stage, &path).await;
    assert!(page.contains("Which week?") && !page.contains("<script"), "{page}");
    let seen = hidden(&page, "seen");
    let words = |text: &'static str| [("answer", "words"), ("text", text), ("seen", seen.as_str())];
    assert_eq!(pressed(&stage, &path, &words(" ")).await.0, 400);
    let stale = [("answer", "words"), ("text", "Week 1"), ("seen", "99")];
    assert_eq!(pressed(&stage, &path, &stale).await.0, 409);
    assert_eq!(stage.became(id).await, ["60 waiting asked"]);

    // Of two answers at once, one counts.
    let (first, second) = (words("Week 47"), words("Week 47"));
    let both = tokio::join!(pressed(&stage, &path, &first), pressed(&stage, &path, &second));
    let mut statuses = [both.0.0.as_u16(), both.1.0.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["60 succeeded"]);
    let run = stage.occurrences(id).await[0].run_id;
    let store = &stage.h.platform.cx.store;
    assert_eq!(store.run(&stage.owner, run).await.unwrap().unwrap().value.kind, RunKind::Action);
    let output = &store.run_outputs(&stage.owner, run).await.unwrap()[0];
    let content = stage.h.get(&format!("/assets/{}/content", output.asset_id)).await.expect(200);
    assert_eq!(content, "Week 47");
    assert_eq!(pressed(&stage, &path, &words("Week 48")).await.0, 409);
    // The next question of the action is another one, with another link.
    stage.happens_at(120).await;
    assert!(opened(&stage, &path).await.1.contains("Nothing is asked now"));
    assert_ne!(link(&stage).await.expect("a link"), path);
}

#[tokio::test]
async fn a_link_is_of_one_channel_and_has_an_end() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model, channel) = stage(&site).await;
    let id = defined(&stage, "Prices").await;
    stage.happens_at(15).await;
    let path = link(&stage).await.expect("a link");
    let hash = hidden(&opened(&stage, &path).await.1, "hash");
    let approve = [("answer", "approve"), ("hash", hash.as_str())];
    // Forged ones, and tokens for something else.
    let unsubscribe = {
        let mails = stage.h.get("/outbox").await.expect(200);
        let headers = mails["data"][0]["request"]["Content"]["Simple"]["Headers"].clone();
        let header =
            headers.as_array().unwrap().iter().find(|one| one["Name"] == "List-Unsubscribe").unwrap();
        header["Value"].as_str().unwrap().trim_matches(['<', '>']).rsplit('/').next().unwrap().to_owned()
    };
    let mut cut = path.clone();
    cut.pop();
    for forged in
        ["/answers/1.AAAA".to_owned(), "/answers/x".to_owned(), format!("/answers/{unsubscribe}"), cut]
    {
        assert_eq!(opened(&stage, &forged).await.0, 404, "{forged}");
        assert_eq!(pressed(&stage, &forged, &approve).await.0, 404, "{forged}");
    }
    // A channel that is off takes its links with it.
    stage.h.patch(&channel, json!({"state": "disabled"})).await.expect(200);
    assert_eq!(pressed(&stage, &path, &approve).await.0, 404);
    stage.h.patch(&channel, json!({"state": "enabled"})).await.expect(200);
    assert_eq!(opened(&stage, &path).await.0, 200);
    stage.at(15 + 7 * 24 * 60);
    assert_eq!(opened(&stage, &path).await.0, 404);
    assert_eq!(pressed(&stage, &path, &approve).await.0, 404);
    assert_eq!(state(&stage, id).await, "defined");
    // The account is gone, and so is what it asked.
    stage.at(16);
    stage.h.delete("/account?confirm=local").await.expect(202);
    assert_eq!(pressed(&stage, &path, &approve).await.0, 404);
}

#[tokio::test]
async fn a_result_is_corrected_and_its_action_paused_by_its_page() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model, channel) = stage(&site).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    let path = link(&stage).await.expect("a link");
    let page = opened(&stage, &path).await.1;
    // It waits for an answer, so it can't be paused.
    assert!(!page.contains("Pause it") && page.contains("What should be different?"), "{page}");
    let words = [("answer", "words"), ("text", "Week 47"), ("seen", &hidden(&page, "seen"))];
    assert_eq!(pressed(&stage, &path, &words).await.0, 200);
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["60 succeeded"]);
    let path = link(&stage).await.expect("a link");
    let page = opened(&stage, &path).await.1;
    assert!(page.contains("Pause it") && !page.contains("Resume it"), "{page}");

    // The same page tells the agent once.
    let number = hidden(&page, "number");
    let correct = |text: &'static str| [("answer", "correct"), ("text", text), ("number", number.as_str())];
    assert_eq!(pressed(&stage, &path, &correct("")).await.0, 400);
    for _ in 0..2 {
        let (status, told) = pressed(&stage, &path, &correct("Without numbers")).await;
        assert!(status == 200 && told.contains("Sent to the agent."), "{status} {told}");
    }
    let messages = stage.h.get(&format!("/actions/{id}/messages")).await.expect(200);
    let said = messages["data"].as_array().unwrap().iter().filter(|one| one["content"] == "Without numbers");
    assert_eq!(said.count(), 1, "{messages:#}");
    stage.executors.work().await;

    let (status, told) = pressed(&stage, &path, &[("answer", "pause")]).await;
    assert!(status == 200 && told.contains("Nothing runs until you resume it"), "{status} {told}");
    assert_eq!(state(&stage, id).await, "paused");
    let by = json!({"kind": "channel", "channel_id": channel.rsplit('/').next().unwrap()});
    let history = stage.h.get(&format!("/actions/{id}/history")).await.expect(200);
    assert_eq!((&history["data"][0]["command"], &history["data"][0]["by"]), (&json!("pause"), &by));
    let page = opened(&stage, &path).await.1;
    assert!(
        page.contains("It is paused.") && page.contains("Resume it") && !page.contains("Pause it"),
        "{page}"
    );
    assert_eq!(pressed(&stage, &path, &[("answer", "resume")]).await.0, 200);
    assert_eq!(state(&stage, id).await, "scheduled");
    for wrong in [
        &[("answer", "correct"), ("text", "x")][..],
        &[("answer", "correct"), ("text", "x"), ("number", "1")],
    ] {
        assert_eq!(pressed(&stage, &path, wrong).await.0, 400, "{wrong:?}");
    }
}
