//! Channels: what is accepted, what is shown, and what is never shown.

use serde_json::json;
use tests::Harness;

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
    for n in 0..10 {
        h.post("/notifications/channels", json!({"kind": "email", "to": format!("me{n}@example.com")}))
            .await
            .expect(201);
    }
    let one_more = json!({"kind": "email", "to": "me@example.com"});
    h.post("/notifications/channels", one_more).await.refused(409, "too_many_channels");
}
