//! Secrets in the calls of actions: who gets them, who never sees them, and what becomes of a run that can't use one.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::accounts::import::AccountImportState;
use domain::ids::{ActionId, Owner};
use domain::secrets::signature::{self, SigningSecret};
use jiff::Timestamp;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use shared::flows::executor::route;
use shared::store::{DueItem, keys};
use tests::archives::{exported, imported_at_once, zip};
use tests::golden::Golden;
use tests::site::{Answers, Site};
use tests::stage::Stage;
use tests::things::Caller;
use tests::{Answer, Harness, send};

/// This text is in the value of a secret, and nowhere else.
const MARK: &str = "quicksilver";
const TOKEN: &str = "ghp_quicksilver/0123456789+x9Qw";
const SIGNING: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

async fn stage(sites: &[&Site]) -> Stage {
    let mut reach = sites[0].reach();
    let mut policy = (*reach.policy).clone();
    policy.allowed_hosts = sites.iter().flat_map(|site| site.reach().policy.allowed_hosts.clone()).collect();
    reach.policy = policy.into();
    Stage::of(PlatformConfig { reach, ..PlatformConfig::in_memory() }).await
}

async fn put(h: &Harness, name: &str, body: Value) -> Answer {
    send(h.request(Method::PUT, &format!("/account/secrets/{name}")).json(&body)).await
}

/// Stores a secret for the machine of the sites.
async fn stored(stage: &Stage, name: &str, value: &str) -> Value {
    put(&stage.h, name, json!({"value": value, "hosts": ["127.0.0.1"]})).await.expect(200)
}

fn call(site: &Site) -> Value {
    json!({
        "url": site.url("/hook"), "body": {"ref": "main"},
        "secret_headers": {"Authorization": {"secret": "github", "prefix": "Bearer "}},
    })
}

fn signed(site: &Site) -> Value {
    json!({"url": site.url("/hook"), "body": {"ref": "main"}, "sign_with": "hook"})
}

fn work(call: &Value) -> Value {
    json!({"title": "Rebuild", "schedule": {"every": "1h"}, "call": call})
}

async fn define(stage: &Stage, call: &Value) -> Answer {
    stage.h.post(&format!("/agents/{}/actions", stage.agent), work(call)).await
}

async fn approved(stage: &Stage, call: &Value) -> ActionId {
    stage.approve(&define(stage, call).await.expect(201)).await
}

/// Everything that the table has, as text.
async fn table(h: &Harness) -> String {
    serde_json::to_string(&Golden::of(&h.platform.cx, Vec::new()).await.items).unwrap()
}

#[tokio::test]
async fn a_secret_is_stored_encrypted_listed_and_deleted() {
    let h = Harness::start().await;
    assert_eq!(h.get("/account/secrets").await.expect(200), json!({"data": []}));
    let view = put(&h, "github", json!({"value": TOKEN, "hosts": ["API.github.com"]})).await.expect(200);
    assert_eq!(
        (&view["name"], &view["hosts"], &view["signs"], &view["version"]),
        (&json!("github"), &json!(["api.github.com"]), &json!(false), &json!(1)),
        "{view:#}"
    );
    assert_eq!(view.as_object().unwrap().len(), 5, "{view:#}");
    assert_eq!(h.get("/account/secrets").await.expect(200), json!({"data": [view]}));
    let hook = put(&h, "a_hook-2", json!({"value": SIGNING, "hosts": ["a.com", "b.com"]})).await.expect(200);
    assert_eq!(hook["signs"], true, "{hook:#}");
    let items = table(&h).await;
    assert!(items.contains("#SECRET") && !items.contains(MARK) && !items.contains("MfKQ9r8GKY"));

    // Another value is another version, and all of the record is replaced.
    let other = json!({"value": "another", "hosts": ["c.com"]});
    let again = put(&h, "github", other.clone()).await.expect(200);
    assert_eq!((&again["version"], &again["hosts"]), (&json!(2), &json!(["c.com"])), "{again:#}");
    let both = futures::future::join_all([0; 8].map(|_| put(&h, "github", other.clone()))).await;
    let versions: BTreeSet<u64> =
        both.into_iter().map(|answer| answer.expect(200)["version"].as_u64().unwrap()).collect();
    assert_eq!(versions, (3..=10).collect(), "each value has a version of its own");

    h.delete("/account/secrets/github").await.expect(204);
    h.delete("/account/secrets/github").await.refused(404, "not_found");
    let left = h.get("/account/secrets").await.expect(200);
    assert_eq!(left["data"], json!([hook]), "{left:#}");
}

#[tokio::test]
async fn invalid_secrets_are_refused_without_being_repeated() {
    let h = Harness::start().await;
    let hosts = json!(["api.github.com"]);
    for (name, body, field, says) in [
        ("github", json!({"hosts": hosts}), "value", "is required (1 to 4096 bytes)"),
        ("github", json!({"value": format!("{MARK}\n"), "hosts": hosts}), "value", "printable ASCII"),
        ("github", json!({"value": MARK.repeat(400), "hosts": hosts}), "value", "1 to 4096 bytes, is 4400"),
        ("github", json!({"value": MARK}), "hosts", "1 to 10 hosts, has 0"),
        ("github", json!({"value": MARK, "hosts": ["*.github.com"]}), "hosts[0]", "not a valid name"),
        ("github", json!({"value": MARK, "hosts": ["a.com", "10.0.0.7"]}), "hosts[1]", "not an address"),
        ("github", json!({"value": MARK, "hosts": ["127.0.0.1"]}), "hosts[0]", "not an address"),
        ("Git%20hub", json!({"value": MARK, "hosts": hosts}), "name", "1 to 64 lower-case letters"),
    ] {
        let problem = put(&h, name, body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field, "{problem:#}");
        assert!(problem["errors"][0]["message"].as_str().unwrap().contains(says), "{problem:#}");
        assert!(!problem.to_string().contains(MARK), "{problem:#}");
    }
    for n in 0..50 {
        put(&h, &format!("s{n}"), json!({"value": "v", "hosts": hosts})).await.expect(200);
    }
    put(&h, "s50", json!({"value": "v", "hosts": hosts})).await.refused(409, "too_many_secrets");
    put(&h, "s49", json!({"value": "w", "hosts": hosts})).await.expect(200);
}

#[tokio::test]
async fn the_secret_arrives_and_a_new_value_needs_no_approval() {
    let site = Site::start(Answers::Status(500)).await;
    let stage = stage(&[&site]).await;
    stored(&stage, "github", TOKEN).await;
    let id = approved(&stage, &call(&site)).await;
    let approval = stage.h.get(&format!("/actions/{id}/approval")).await.expect(200);
    assert!(approval["warnings"][0].as_str().unwrap().contains("your secrets: `github`"), "{approval:#}");

    // A server that fails gets the new value at the next try.
    stage.happens_at(60).await;
    stored(&stage, "github", "ghp_second").await;
    site.answers(Answers::Status(204));
    stage.happens_at(70).await;
    assert_eq!(stage.became(id).await, ["60 succeeded"]);
    let posted = site.posted();
    let sent: Vec<&str> = posted.iter().map(|posted| posted.header("authorization")).collect();
    assert_eq!(sent, [&*format!("Bearer {TOKEN}"), "Bearer ghp_second"]);
    assert!(!posted[0].headers.contains_key("webhook-signature"));
    let now = stage.h.get(&format!("/actions/{id}/approval")).await.expect(200);
    assert_eq!((&now["holds"], &now["approval_hash"]), (&json!(true), &approval["approval_hash"]));

    // Another secret does, and so does another prefix.
    stored(&stage, "other", TOKEN).await;
    for header in [json!({"secret": "other", "prefix": "Bearer "}), json!({"secret": "github"})] {
        let changed = json!({"url": site.url("/hook"), "secret_headers": {"Authorization": header}});
        let changed = stage.h.patch(&format!("/actions/{id}"), json!({"call": changed})).await.expect(200);
        assert_eq!(changed["approval"], Value::Null, "{changed:#}");
        assert_ne!(changed["approval_hash"], approval["approval_hash"]);
    }
}

#[tokio::test]
async fn the_signature_is_that_of_standard_webhooks() {
    let site = Site::start(Answers::Status(503)).await;
    let stage = stage(&[&site]).await;
    stored(&stage, "hook", SIGNING).await;
    let id = approved(&stage, &signed(&site)).await;
    let mut get = signed(&site);
    get["method"] = json!("GET");
    get["body"] = Value::Null;
    let without_body = approved(&stage, &get).await;
    stage.happens_at(60).await;
    site.answers(Answers::Status(204));
    stage.happens_at(70).await;
    assert_eq!(stage.became(id).await, ["60 succeeded"]);
    assert_eq!(stage.became(without_body).await, ["60 succeeded"]);
    let secret = SigningSecret::parse(SIGNING).unwrap();
    let posted = site.posted();
    assert_eq!(posted.len(), 4);
    for posted in &posted {
        let seconds = posted.header("webhook-timestamp").parse().unwrap();
        let at = Timestamp::from_second(seconds).unwrap();
        let expected = signature::sign(&secret, posted.header("webhook-id"), at, &posted.body);
        assert_eq!(posted.header("webhook-signature"), expected);
    }
    let times: BTreeSet<&str> = posted.iter().map(|posted| posted.header("webhook-timestamp")).collect();
    assert_eq!(times.len(), 2, "each try has its time");

    // A value that can't sign.
    stored(&stage, "hook", TOKEN).await;
    let refused = define(&stage, &signed(&site)).await.refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["field"], "call.sign_with", "{refused:#}");
    assert!(refused["errors"][0]["message"].as_str().unwrap().contains("whsec_"), "{refused:#}");
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await[1], "120 failed error");
    let run = stage.newest_run(id).await;
    assert_eq!(run["error"]["code"], "secret_form", "{run:#}");
    assert_eq!(site.posted().len(), 4);
}

#[tokio::test]
async fn a_run_that_can_not_use_its_secret_sends_nothing() {
    let site = Site::start(Answers::Status(204)).await;
    let stage = stage(&[&site]).await;
    stored(&stage, "github", TOKEN).await;
    let id = approved(&stage, &call(&site)).await;

    // It is deleted after the approval.
    stage.h.delete("/account/secrets/github").await.expect(204);
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await, ["60 failed error"], "it is not tried again");
    let run = stage.newest_run(id).await;
    assert_eq!(
        (&run["state"], &run["error"]["code"]),
        (&json!("failed"), &json!("secret_missing")),
        "{run:#}"
    );
    let told = run["error"]["detail"].as_str().unwrap();
    assert!(told.contains("call.secret_headers.Authorization: there is no secret `github`"), "{told}");
    assert_eq!(run["call"]["tries"].as_array().unwrap().len(), 1, "{run:#}");
    let why = stage.h.get(&format!("/actions/{id}/why?at=2026-11-21T13:00:00Z")).await.expect(200);
    assert!(why["sentence"].as_str().unwrap().contains("no secret `github`"), "{why:#}");
    // It is said ahead.
    stage.happens_at(116).await;
    let action = stage.h.get(&format!("/actions/{id}")).await.expect(200);
    assert_eq!(action["preflight"]["problems"][0]["code"], "secret_refused", "{action:#}");

    // It is for other hosts.
    put(&stage.h, "github", json!({"value": TOKEN, "hosts": ["api.github.com"]})).await.expect(200);
    stage.happens_at(120).await;
    assert_eq!(stage.newest_run(id).await["error"]["code"], "secret_host");
    assert!(site.posted().is_empty());

    // It is stored again. The approval holds.
    stored(&stage, "github", TOKEN).await;
    stage.happens_at(180).await;
    assert_eq!(stage.became(id).await[2], "180 succeeded");
    assert_eq!(site.posted().len(), 1);
}

#[tokio::test]
async fn a_call_is_refused_with_the_secret_that_is_wrong() {
    let site = Site::start(Answers::Status(204)).await;
    let stage = stage(&[&site]).await;
    let refused = define(&stage, &call(&site)).await.refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["field"], "call.secret_headers.Authorization", "{refused:#}");
    assert_eq!(refused["errors"][0]["message"], "there is no secret `github`");
    stored(&stage, "github", TOKEN).await;
    let action = define(&stage, &call(&site)).await.expect(201);
    let path = format!("/actions/{}", action["action_id"].as_str().unwrap());

    // An edit can't send it to another host.
    let mut elsewhere = call(&site);
    elsewhere["url"] = json!("https://example.com/hook");
    let refused = stage.h.patch(&path, json!({"call": elsewhere})).await.refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["message"], "the secret `github` may not be sent to example.com");
    let mut open = call(&site);
    open["headers"] = json!({"Authorization": format!("Bearer {TOKEN}")});
    let refused = stage.h.patch(&path, json!({"call": open})).await.refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["field"], "call.headers.Authorization", "{refused:#}");

    // Nor does an approval hold for a secret that is gone.
    stage.h.delete("/account/secrets/github").await.expect(204);
    let hash = json!({"approval_hash": action["approval_hash"]});
    let refused = stage.h.post(&format!("{path}/approve"), hash).await.refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["field"], "call.secret_headers.Authorization", "{refused:#}");
}

/// The server repeats what it was sent. No answer of the platform does, no item, no archive.
#[tokio::test]
async fn a_value_is_nowhere_although_the_server_repeats_it() {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;

    let site = Site::start(Answers::Echoes).await;
    let stage = stage(&[&site]).await;
    stored(&stage, "github", TOKEN).await;
    stored(&stage, "hook", SIGNING).await;
    let mut call = call(&site);
    call["sign_with"] = json!("hook");
    let id = approved(&stage, &call).await;
    let rehearsal = stage.h.post(&format!("/actions/{id}/rehearse"), json!({})).await.expect(202);
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await, ["60 succeeded"]);
    let run = stage.newest_run(id).await;
    let answer = run["call"]["tries"][0]["answer"].as_str().unwrap();
    assert!(answer.contains("Bearer •••") && answer.contains("webhook-signature"), "{answer}");
    let key = run["run_id"].as_str().unwrap().to_owned();

    let base64 = BASE64_STANDARD.encode(format!("Basic {TOKEN}"));
    site.answers(Answers::Page(
        "text/plain",
        format!("{base64} {TOKEN}{} {SIGNING}", "x".repeat(3_000)),
        None,
    ));
    stage.happens_at(120).await;
    let answer = stage.newest_run(id).await["call"]["tries"][0]["answer"].as_str().unwrap().to_owned();
    assert_eq!(answer.matches("•••").count(), 2, "{answer}");
    site.answers(Answers::Status(401));
    stage.happens_at(180).await;

    let rehearsal = rehearsal["run_id"].as_str().unwrap();
    let mut all = table(&stage.h).await;
    for path in [
        "/account/secrets",
        "/account",
        "/actions",
        "/runs",
        "/inbox",
        "/day?date=2026-11-21",
        "/notifications",
        "/deliveries",
        &format!("/actions/{id}"),
        &format!("/actions/{id}/approval"),
        &format!("/actions/{id}/history"),
        &format!("/actions/{id}/runs"),
        &format!("/actions/{id}/why"),
        &format!("/runs/{key}"),
        &format!("/runs/{rehearsal}"),
    ] {
        all.push_str(&stage.h.get(path).await.expect(200).to_string());
    }
    for run in [&*key, rehearsal] {
        let events = stage.h.request(Method::GET, &format!("/runs/{run}/events")).send().await.unwrap();
        all.push_str(&events.text().await.unwrap());
    }
    for bytes in exported(&stage.h.platform.cx, &stage.owner).await.into_values() {
        all.push_str(&String::from_utf8_lossy(&bytes));
    }
    assert!(all.contains("Bearer •••") && all.contains("github"));
    for hidden in [MARK, "MfKQ9r8GKYqr", &BASE64_STANDARD.encode(TOKEN)[..20]] {
        assert!(!all.contains(hidden), "{hidden}");
    }
    let cx = &stage.h.platform.cx;
    assert!(!format!("{:?} {:?}", cx.provider_keys, cx.store.secrets(&stage.owner).await).contains(MARK));
}

#[tokio::test]
async fn a_redirect_never_carries_the_secret() {
    let (site, other) = (Site::start(Answers::Status(204)).await, Site::start(Answers::Status(204)).await);
    let stage = stage(&[&site, &other]).await;
    stored(&stage, "github", TOKEN).await;
    let id = approved(&stage, &call(&site)).await;
    site.answers(Answers::RedirectsTo(other.url("/steal")));
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await, ["60 failed error"]);
    assert_eq!((site.posted().len(), other.asked().len()), (1, 0));
}

/// Who can write to the table still can't have a secret sent elsewhere.
#[tokio::test]
async fn a_copied_ciphertext_opens_for_no_other_owner_name_or_host() {
    let site = Site::start(Answers::Status(204)).await;
    let stage = stage(&[&site]).await;
    put(&stage.h, "github", json!({"value": TOKEN, "hosts": ["api.github.com"]})).await.expect(200);
    let cx = &stage.h.platform.cx;
    let (table, name) = cx.store.raw();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let of = |owner: &Owner, name: &str| keys::secret(owner, &name.parse().unwrap());
    let from = of(&stage.owner, "github");
    let read = table.get_item().table_name(name).key("pk", text(&from.pk)).key("sk", text(&from.sk));
    let item = read.send().await.unwrap().item.unwrap();
    let you = Owner::new("you").unwrap();
    let hosts = AttributeValue::L(vec![text("127.0.0.1")]);
    for (owner, as_name, other_hosts) in
        [(&you, "github", false), (&stage.owner, "other", false), (&stage.owner, "github", true)]
    {
        let to = of(owner, as_name);
        let mut copied = item.clone();
        copied.extend([("pk".to_owned(), text(&to.pk)), ("sk".to_owned(), text(&to.sk))]);
        copied.insert("name".to_owned(), text(as_name));
        if other_hosts {
            let Some(AttributeValue::M(terms)) = copied.get_mut("terms") else { panic!("terms") };
            terms.insert("hosts".to_owned(), hosts.clone());
        }
        table.put_item().table_name(name).set_item(Some(copied)).send().await.unwrap();
        let found = cx.store.secret(owner, &as_name.parse().unwrap()).await.unwrap().unwrap().value;
        let refused = cx.provider_keys.open_secret(owner, &found).await.unwrap_err();
        assert!(refused.to_string().contains("cannot be decrypted"), "{refused}");
    }
    // A run says so, instead of being tried for ever.
    let id = approved(&stage, &call(&site)).await;
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await, ["60 failed error"]);
    assert_eq!(stage.newest_run(id).await["error"]["code"], "secret_unreadable");
    assert!(site.posted().is_empty());
}

#[tokio::test]
async fn nobody_else_sees_uses_or_deletes_a_secret() {
    let site = Site::start(Answers::Status(204)).await;
    let config =
        PlatformConfig { auth: AuthConfig::On(None), reach: site.reach(), ..PlatformConfig::in_memory() };
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    let path = "/account/secrets/github";
    let secret = json!({"value": TOKEN, "hosts": ["127.0.0.1"]});
    me.call(Method::PUT, path, secret).await.expect(200);
    assert_eq!(you.call(Method::GET, "/account/secrets", Value::Null).await.expect(200)["data"], json!([]));
    you.call(Method::DELETE, path, Value::Null).await.refused(404, "not_found");
    let agent = you.call(Method::POST, "/agents", json!({"name": "A", "goal": "G"})).await.expect(201);
    let actions = format!("/agents/{}/actions", agent["agent_id"].as_str().unwrap());
    let refused = you.call(Method::POST, &actions, work(&call(&site))).await.refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["message"], "there is no secret `github`", "{refused:#}");
    let list = me.call(Method::GET, "/account/secrets", Value::Null).await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list:#}");

    // Who may only write can't read the list, and can't store a value.
    let writer = h.key_with("me", json!({"name": "w", "scopes": ["write"]})).await;
    let writer = Caller { h: &h, key: Some(&writer) };
    writer.call(Method::GET, "/account/secrets", Value::Null).await.refused(403, "scope_missing");
    let secret = json!({"value": TOKEN, "hosts": ["a.com"]});
    writer.call(Method::PUT, path, secret).await.refused(403, "scope_missing");
}

#[tokio::test]
async fn a_secret_stays_when_its_account_moves_and_goes_when_it_is_deleted() {
    let site = Site::start(Answers::Status(204)).await;
    let stage = stage(&[&site]).await;
    stored(&stage, "github", TOKEN).await;
    let id = approved(&stage, &call(&site)).await;
    let cx = &stage.h.platform.cx;
    let mover = Owner::new("mover").unwrap();
    let import = imported_at_once(cx, &mover, &zip(&exported(cx, &stage.owner).await)).await;
    assert_eq!((import.state, import.error), (AccountImportState::Done, None));
    let moved = cx.store.action(&mover, id).await.unwrap().unwrap().value;
    assert_eq!((&moved.call, moved.approval), (&stage.action(id).await.call, None));
    assert!(cx.store.secrets(&mover).await.unwrap().is_empty());

    stage.h.delete("/account?confirm=local").await.expect(202);
    route::process(cx, &DueItem::deletion(&stage.owner), Timestamp::MAX).await.unwrap();
    assert!(cx.store.secrets(&stage.owner).await.unwrap().is_empty());
    stage.happens_at(60).await;
    assert!(site.posted().is_empty());
}
