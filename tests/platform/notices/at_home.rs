//! ntfy and Gotify: servers that people have at home.

use domain::reach::Policy;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::config::ReachConfig;
use tests::model::{Says, ScriptedModel};
use tests::site::{Answers, Posted, Site};
use tests::stage::{Stage, noon};

const TOPIC: &str = "alerts-0123456789abcdef";
const TOKEN: &str = "tk_0123456789abcdefghijklmnop";

/// The two kinds, as a person adds them.
fn channels(site: &Site) -> [Value; 2] {
    [
        json!({"kind": "ntfy", "url": site.url(""), "topic": TOPIC, "token": TOKEN}),
        json!({"kind": "gotify", "url": site.url("/gotify/"), "token": TOKEN}),
    ]
}

async fn add(stage: &Stage, channel: &Value) -> String {
    let created = stage.h.post("/notifications/channels", channel.clone()).await.expect(201);
    assert_eq!(created["state"], "enabled", "{created:#}");
    format!("/notifications/channels/{}", created["channel_id"].as_str().unwrap())
}

async fn stage(site: &Site) -> Stage {
    Stage::of(PlatformConfig { reach: site.reach(), ..PlatformConfig::in_memory() }).await
}

/// Sends a test. Returns what became of it.
async fn tested(stage: &Stage, path: &str) -> Value {
    let delivery = stage.h.post(&format!("{path}/test"), json!({})).await.expect(202);
    stage.executors.work().await;
    let all = stage.h.get("/deliveries").await.expect(200);
    let id = &delivery["delivery_id"];
    all["data"].as_array().unwrap().iter().find(|one| one["delivery_id"] == *id).unwrap().clone()
}

#[tokio::test]
async fn results_and_failures_arrive_with_their_urgency_and_no_answer_shows_a_secret() {
    let ntfy = Site::start(Answers::Status(200)).await;
    let gotify = Site::start(Answers::Status(200)).await;
    let model = ScriptedModel::start(|_| Says::Text("Zwölf <b>Lampen</b>.\n\n".repeat(2_000))).await;
    let allowed_hosts =
        [&ntfy, &gotify].into_iter().flat_map(|site| site.reach().policy.allowed_hosts.clone());
    let policy = Policy { allowed_hosts: allowed_hosts.collect(), ..Policy::default() };
    let reach = ReachConfig { policy: policy.into(), ..ReachConfig::default() };
    let models = model.config("claude-haiku-4-5");
    let stage = Stage::of(PlatformConfig { models, reach, ..PlatformConfig::in_memory() }).await;
    let paths = [add(&stage, &channels(&ntfy)[0]).await, add(&stage, &channels(&gotify)[1]).await];
    let action = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    let run = stage.occurrences(action).await[0].run_id;

    let [to_ntfy] = &ntfy.posted()[..] else { panic!("{:#?}", ntfy.posted()) };
    assert_eq!(ntfy.asked()[0].0, "/");
    assert_eq!(to_ntfy.header("authorization"), format!("Bearer {TOKEN}"));
    let body = to_ntfy.json();
    let link = body["click"].as_str().unwrap();
    assert!(link.ends_with(&format!("/#/runs/{run}")), "{body:#}");
    assert_eq!((&body["topic"], &body["priority"]), (&json!(TOPIC), &json!(3)));
    assert_eq!(body["title"], "Report has succeeded");
    let message = body["message"].as_str().unwrap();
    assert!(message.starts_with("Report\nZwölf <b>Lampen</b>.\n") && message.len() <= 4_096, "{message}");
    assert!(message.contains("It goes on behind the link.") && message.ends_with(link), "{message}");

    let [to_gotify] = &gotify.posted()[..] else { panic!("{:#?}", gotify.posted()) };
    assert_eq!(gotify.asked()[0].0, "/gotify/message");
    assert_eq!(to_gotify.header("x-gotify-key"), TOKEN);
    let body = to_gotify.json();
    assert_eq!((&body["title"], &body["priority"]), (&json!("Report has succeeded"), &json!(5)));
    assert_eq!(body["extras"]["client::notification"]["click"]["url"], link);
    assert_eq!(body["extras"]["client::display"]["contentType"], "text/plain");
    assert!(body["message"].as_str().unwrap().ends_with(link));

    // A message that tries the channel out is no alarm.
    assert_eq!(tested(&stage, &paths[0]).await["state"], "delivered");
    assert_eq!(ntfy.posted()[1].json()["priority"], 3);

    let list = stage.h.get("/notifications/channels").await.expect(200);
    let targets: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|one| one["target"].as_str().unwrap()).collect();
    assert_eq!(
        targets,
        [
            format!("{}/…cdef with the token …mnop", ntfy.url("")),
            format!("{} with the token …mnop", gotify.url(""))
        ]
    );
    let stored = format!("{:?}", tests::everything::scanned(&stage.h.platform.cx, "local").await);
    assert!(!stored.contains(TOPIC) && !stored.contains(TOKEN), "they are stored encrypted");
    let told = stage.h.get(&format!("/runs/{run}")).await.expect(200)["told"].clone();
    assert!(!told.to_string().contains(TOPIC) && !told.to_string().contains(TOKEN), "{told:#}");
}

#[tokio::test]
async fn a_refused_token_switches_the_channel_off_and_the_others_are_patient() {
    for which in 0..2 {
        let site = Site::start(Answers::Status(429)).await;
        let stage = stage(&site).await;
        let path = add(&stage, &channels(&site)[which]).await;
        let state = async || {
            let list = stage.h.get("/notifications/channels").await.expect(200);
            list["data"][0].clone()
        };
        // What another server would get has a token. A redirect is not followed, and nothing is sent twice at once.
        let other = Site::start(Answers::Status(200)).await;
        for (answers, code, seconds) in [
            (Answers::RetryAfter(429, 90), 429, 90),
            (Answers::Status(404), 404, 5),
            (Answers::Status(500), 500, 5),
            (Answers::RedirectsTo(other.url("/")), 302, 5),
        ] {
            site.answers(answers);
            let before = site.posted().len();
            let delivery = tested(&stage, &path).await;
            assert_eq!(delivery["error"], format!("the receiver answered {code}"), "{delivery:#}");
            let next: Timestamp = delivery["next_at"].as_str().unwrap().parse().unwrap();
            assert_eq!(next.duration_since(noon()), SignedDuration::from_secs(seconds), "{delivery:#}");
            assert_eq!(site.posted().len(), before + 1);
            assert_eq!(state().await["state"], "enabled", "after {code}");
        }
        assert_eq!(other.posted().iter().map(Posted::json).collect::<Vec<_>>(), Vec::<Value>::new());
        site.answers(Answers::Status(401));
        let refused = tested(&stage, &path).await;
        let told = "the receiver answered 401: it takes no messages with this token, or without one";
        assert_eq!((&refused["state"], &refused["error"]), (&json!("undelivered"), &json!(told)));
        let off = state().await;
        assert_eq!((&off["state"], &off["why"]), (&json!("suspended"), &json!(told)), "{off:#}");
    }
}

/// A server in the network at home is reached only if the operator has allowed it, and the refusal says so.
#[tokio::test]
async fn a_private_server_needs_the_operator_and_the_refusal_names_the_variable() {
    let site = Site::start(Answers::Status(200)).await;
    let stage = stage(&site).await;
    let hint = "The operator may allow it with LAMPLIGHTER_ALLOWED_HOSTS, as host:port";
    for url in ["http://192.168.1.5", "https://192.168.1.5:8080", "http://127.0.0.1:1", "https://ntfy.lan"] {
        for mut channel in channels(&site) {
            channel["url"] = json!(url);
            let refused =
                stage.h.post("/notifications/channels", channel).await.refused(400, "invalid_input");
            assert!(refused["errors"].to_string().contains(hint), "{url}: {refused:#}");
        }
    }
    for channel in channels(&site) {
        assert_eq!(tested(&stage, &add(&stage, &channel).await).await["state"], "delivered");
    }
    for (channel, field) in [
        (json!({"kind": "ntfy"}), "topic"),
        (json!({"kind": "ntfy", "topic": TOPIC, "to": "me@example.com"}), "to"),
        (json!({"kind": "gotify", "url": site.url("")}), "token"),
        (json!({"kind": "gotify", "url": site.url(""), "token": TOKEN, "topic": TOPIC}), "topic"),
    ] {
        let refused =
            stage.h.post("/notifications/channels", channel.clone()).await.refused(400, "invalid_input");
        assert!(refused["errors"].to_string().contains(&format!("\"{field}\"")), "{channel}: {refused:#}");
    }
}
