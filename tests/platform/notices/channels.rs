//! Channels: what is accepted, what is shown, and what is never shown.

use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use tests::Harness;
use tests::stage::{Stage, noon};

/// Addresses that lead, or may lead, to this machine, its network, or the metadata of a cloud.
const HOSTILE: &[&str] = &[
    "http://example.com/",
    "https://127.0.0.1/",
    "https://localhost/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://①②⑦.⓪.⓪.①/",
    "https://%31%32%37.0.0.1/",
    "https://127。0。0。1/",
    "https:\\\\127.0.0.1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[fd00::1]/",
    "https://[fe80::1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://0.0.0.0/",
    "https://10.0.0.1/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://192.0.2.1/",
    "https://198.18.0.1/",
    "https://203.0.113.1/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://example.com:22/",
    "https://example.com:8443/",
    "https://user@example.com/",
    "https://user:pass@example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "javascript:alert(1)",
    "data:text/plain,x",
    "https://",
    "https:///",
    "//example.com/",
    "example.com",
    "",
    " ",
    "https://exa mple.com/",
    "https://example.com\r\nHost: evil/",
    "https://localhost.localdomain/",
    "https://metadata.google.internal/",
    "https://a.internal/",
    "https://a.local/",
    "https://x/",
];

#[tokio::test]
async fn hostile_addresses_are_refused_and_the_field_is_named() {
    let h = Harness::start().await;
    for url in HOSTILE {
        let answer = h.post("/notifications/channels", json!({"kind": "webhook", "url": url})).await;
        let refused = answer.refused(400, "invalid_input");
        let fields = refused["errors"].to_string();
        assert!(fields.contains("\"url\""), "{url}: {refused:#}");
    }
    for (channel, field) in [
        (json!({"kind": "slack", "url": "https://example.com/services/T/B/x"}), "url"),
        (json!({"kind": "discord", "url": "https://discord.com/api/webhooks/1/2?wait=true"}), "url"),
        (json!({"kind": "telegram", "token": "x", "chat_id": "1; rm"}), "token"),
        (json!({"kind": "email", "to": "a@example.com\r\nBcc: b@example.com"}), "to"),
        (json!({"kind": "email", "to": "a@example.com, b@example.com"}), "to"),
    ] {
        let refused = h.post("/notifications/channels", channel.clone()).await.refused(400, "invalid_input");
        assert!(refused["errors"].to_string().contains(&format!("\"{field}\"")), "{channel}: {refused:#}");
    }
    assert_eq!(h.get("/notifications/channels").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn a_secret_is_shown_once_and_an_address_never() {
    let h = Harness::start().await;
    let url = "https://hooks.example.com/secret-path-of-32-characters-abcd";
    let new = json!({"kind": "webhook", "url": url});
    let created = h.post_once("/notifications/channels", "one", new.clone()).await.expect(201);
    let secret = created["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"), "{created:#}");
    let again = h.post_once("/notifications/channels", "one", new).await.expect(201);
    assert_eq!((&again["channel_id"], again.get("secret")), (&created["channel_id"], None), "{again:#}");
    let list = h.get("/notifications/channels").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    assert_eq!(list["data"][0]["target"], "https://hooks.example.com/…abcd");
    let path = format!("/notifications/channels/{}", created["channel_id"].as_str().unwrap());
    let changed = h.patch(&path, json!({"new_secret": true})).await.expect(200);
    assert_ne!(changed["secret"].as_str().unwrap(), secret);
    assert!(changed["old_secret_until"].is_string(), "{changed:#}");
    for shown in [&created, &list, &again, &changed] {
        assert!(!shown.to_string().contains("secret-path"), "{shown:#}");
    }
    let stored = tests::everything::scanned(&h.platform.cx, "local").await;
    let stored = format!("{stored:?}");
    assert!(!stored.contains("secret-path") && !stored.contains(&secret), "it is stored encrypted");

    h.patch(&path, json!({"state": "disabled"})).await.expect(200);
    h.post(&format!("{path}/test"), json!({})).await.refused(409, "channel_off");
    h.delete(&path).await.expect(204);
    h.delete(&path).await.refused(404, "not_found");
}

#[tokio::test]
async fn an_account_has_ten_channels_even_if_they_are_added_at_once() {
    let h = Harness::start().await;
    let add = |n: usize| {
        h.post("/notifications/channels", json!({"kind": "email", "to": format!("me{n}@example.com")}))
    };
    let answers = futures::future::join_all((0..14).map(add)).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 10);
    for answer in answers {
        if answer.status != 201 {
            answer.refused(409, "too_many_channels");
        }
    }
    assert_eq!(h.get("/notifications/channels").await.expect(200)["data"].as_array().unwrap().len(), 10);
}

/// A stage whose e-mails go to the outbox, an address that is not confirmed, and the path of its channel.
async fn unconfirmed() -> (Stage, String) {
    let stage = Stage::of(PlatformConfig::in_memory()).await;
    let email = json!({"kind": "email", "to": "me@example.com"});
    let created = stage.h.post("/notifications/channels", email).await.expect(201);
    assert_eq!((&created["state"], created.get("secret")), (&json!("unconfirmed"), None), "{created:#}");
    assert_eq!(created["code_until"], "2026-11-21T13:00:00Z");
    let path = format!("/notifications/channels/{}", created["channel_id"].as_str().unwrap());
    (stage, path)
}

/// The texts of the e-mails in the outbox, newest first.
async fn mails(stage: &Stage) -> Vec<String> {
    stage.executors.work().await;
    let mails = stage.h.get("/outbox").await.expect(200);
    let text = |mail: &Value| {
        mail["request"]["Content"]["Simple"]["Body"]["Text"]["Data"].as_str().unwrap().to_owned()
    };
    mails["data"].as_array().unwrap().iter().map(text).collect()
}

/// The code in an e-mail, as a person copies it.
fn code_in(mail: &str) -> &str {
    mail.lines().find_map(|line| line.strip_prefix("If it is you, type this code within one hour: ")).unwrap()
}

#[tokio::test]
async fn an_address_gets_notices_only_after_its_reader_has_given_back_the_code() {
    let (stage, path) = unconfirmed().await;
    let h = &stage.h;
    h.post(&format!("{path}/test"), json!({})).await.refused(409, "channel_off");
    h.patch(&path, json!({"state": "enabled"})).await.refused(409, "channel_unconfirmed");
    h.patch(&path, json!({"state": "disabled"})).await.refused(409, "channel_unconfirmed");
    let mail = mails(&stage).await.remove(0);
    assert!(mail.contains("If it is not you, do nothing."), "{mail}");
    assert!(!mail.contains("http"), "whoever gets it may have no account: {mail}");
    let code = code_in(&mail);
    let stored = format!("{:?}", tests::everything::scanned(&h.platform.cx, "local").await);
    let digits = code.replace(' ', "");
    assert_eq!(stored.matches(&digits).count(), 0, "it is stored encrypted");

    let confirm = format!("{path}/confirm");
    for (wrong, told) in [("1", "must be the eight digits"), ("", "must be the eight digits")] {
        let refused = h.post(&confirm, json!({ "code": wrong })).await.refused(400, "invalid_input");
        assert!(refused["errors"].to_string().contains(told), "{refused:#}");
    }
    let other = if digits == "00000000" { "00000001" } else { "00000000" };
    let refused = h.post(&confirm, json!({ "code": other })).await.refused(400, "invalid_input");
    assert!(refused["errors"].to_string().contains("guesses left: 4"), "{refused:#}");
    let confirmed = h.post(&confirm, json!({ "code": code })).await.expect(200);
    assert_eq!(
        (&confirmed["state"], confirmed.get("code_until")),
        (&json!("enabled"), None),
        "{confirmed:#}"
    );
    h.post(&confirm, json!({ "code": code })).await.refused(409, "needs_no_code");
    h.post(&format!("{path}/code"), json!({})).await.refused(409, "needs_no_code");
    stage.clock.set(noon() + SignedDuration::from_mins(1));
    h.post(&format!("{path}/test"), json!({})).await.expect(202);
    assert!(mails(&stage).await[0].contains("test"));
}

#[tokio::test]
async fn a_code_ends_after_five_guesses_even_at_once_and_after_an_hour() {
    let (stage, path) = unconfirmed().await;
    let (h, confirm) = (&stage.h, format!("{path}/confirm"));
    let first = code_in(&mails(&stage).await[0]).to_owned();
    // Nearly all codes are wrong, and the right one is among these with a chance of one to ten million.
    let guess = |n: usize| h.post(&confirm, json!({"code": format!("{:08}", 90_000_000 + n)}));
    let answers = futures::future::join_all((0..10).map(guess)).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 400).count(), 5, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer.status == 409).count(), 5);
    h.post(&confirm, json!({ "code": first })).await.refused(409, "code_expired");

    stage.clock.set(noon() + SignedDuration::from_mins(1));
    h.post(&format!("{path}/code"), json!({})).await.expect(202);
    let second = code_in(&mails(&stage).await[0]).to_owned();
    assert_ne!(first, second);
    let refused = h.post(&confirm, json!({ "code": first })).await.refused(400, "invalid_input");
    assert!(refused["errors"].to_string().contains("guesses left: 4"), "{refused:#}");
    stage.clock.set(noon() + SignedDuration::from_mins(61));
    h.post(&confirm, json!({ "code": second })).await.refused(409, "code_expired");

    // Three codes go to an address in 24 hours, whichever channels ask for them.
    h.post(&format!("{path}/code"), json!({})).await.expect(202);
    let refused = h.post(&format!("{path}/code"), json!({})).await.refused(409, "too_many_codes");
    assert!(refused["detail"].as_str().unwrap().contains("2026-11-22T12:00:00Z"), "{refused:#}");
    h.delete(&path).await.expect(204);
    let same = json!({"kind": "email", "to": "ME@example.com"});
    h.post("/notifications/channels", same).await.refused(409, "too_many_codes");
    // An account asks for ten.
    for n in 0..7 {
        let new = json!({"kind": "email", "to": format!("me{n}@example.com")});
        h.post("/notifications/channels", new).await.expect(201);
    }
    let new = json!({"kind": "email", "to": "you@example.com"});
    h.post("/notifications/channels", new).await.refused(409, "too_many_codes");
}

/// The code is sent later than its hour, because the sender did not work: nobody gets a code that is of no use.
#[tokio::test]
async fn a_code_that_works_no_longer_is_not_sent() {
    let (stage, path) = unconfirmed().await;
    stage.clock.set(noon() + SignedDuration::from_hours(2));
    assert_eq!(mails(&stage).await, Vec::<String>::new());
    let deliveries = stage.h.get("/deliveries").await.expect(200);
    let delivery = &deliveries["data"][0];
    assert_eq!(
        (&delivery["state"], &delivery["error"], &delivery["subject"]),
        (&json!("undelivered"), &json!("the code no longer works"), &json!("Confirm this e-mail address"))
    );
    stage.h.delete(&path).await.expect(204);
}
