//! Provider keys: stored encrypted, never given back, and bound to their owner and provider.

use aws_sdk_dynamodb::types::AttributeValue;
use base::clock::{Clock, ManualClock};
use domain::accounts::KeyProvider;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use shared::store::keys;
use tests::golden::Golden;
use tests::made;
use tests::things::Caller;
use tests::{Answer, Harness, send};

const KEY: &str = "sk-ant-0123456789-quicksilver-x9Qw";

async fn put(h: &Harness, provider: &str, body: Value) -> Answer {
    send(h.request(Method::PUT, &format!("/account/provider-keys/{provider}")).json(&body)).await
}

#[tokio::test]
async fn a_key_is_stored_encrypted_and_never_given_back() {
    let h = Harness::start().await;
    assert_eq!(h.get("/account/provider-keys").await.expect(200), json!({"data": []}));
    let view = put(&h, "anthropic", json!({"key": format!(" {KEY}\n")})).await.expect(200);
    assert_eq!((&view["provider"], &view["last_characters"]), (&json!("anthropic"), &json!("x9Qw")));
    assert_eq!(view.as_object().unwrap().len(), 3, "{view:#}");
    assert_eq!(h.get("/account/provider-keys").await.expect(200), json!({"data": [view]}));

    let cx = &h.platform.cx;
    let get = async |provider| cx.provider_keys.get(&made::local(), provider).await.unwrap();
    let key = get(KeyProvider::Anthropic).await.unwrap();
    assert_eq!(secrecy::ExposeSecret::expose_secret(&key), KEY);
    assert!(get(KeyProvider::OpenAi).await.is_none());
    assert!(!format!("{key:?} {:?}", cx.provider_keys).contains("quicksilver"));
    let stored = serde_json::to_string(&Golden::of(cx, Vec::new()).await.items).unwrap();
    assert!(stored.contains("PROVIDERKEY") && !stored.contains("quicksilver"));

    // A new key replaces the old one at once in this process.
    put(&h, "anthropic", json!({"key": "sk-ant-9876543210-other"})).await.expect(200);
    let key = get(KeyProvider::Anthropic).await.unwrap();
    assert_eq!(secrecy::ExposeSecret::expose_secret(&key), "sk-ant-9876543210-other");
    assert_eq!(h.delete("/account/provider-keys/anthropic").await.status, 204);
    assert!(get(KeyProvider::Anthropic).await.is_none());
    h.delete("/account/provider-keys/anthropic").await.refused(404, "not_found");
}

#[tokio::test]
async fn invalid_keys_and_providers_are_refused_without_being_repeated() {
    let h = Harness::start().await;
    for (provider, body, field, says) in [
        ("anthropic", json!({}), "key", "16 to 512"),
        ("anthropic", json!({"key": "sk-quicksilver"}), "key", "must be 16 to 512 characters, is 14"),
        ("anthropic", json!({"key": "sk-quicksilver\u{0}0123456789"}), "key", "visible ASCII"),
        ("anthropic", json!({"key": format!("quicksilver{}", "x".repeat(512))}), "key", "is 523"),
        ("mistral", json!({"key": KEY}), "provider", "anthropic, google, openai, xai"),
    ] {
        let problem = put(&h, provider, body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field);
        assert!(problem["errors"][0]["message"].as_str().unwrap().contains(says), "{problem:#}");
        assert!(!problem.to_string().contains("quicksilver"), "{problem:#}");
    }
    h.delete("/account/provider-keys/mistral").await.refused(400, "invalid_input");
}

#[tokio::test]
async fn a_copied_ciphertext_opens_for_no_other_owner_or_provider() {
    let config = PlatformConfig { auth: AuthConfig::On(None), ..PlatformConfig::in_memory() };
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    let path = "/account/provider-keys/openai";
    me.call(Method::PUT, path, json!({"key": KEY})).await.expect(200);
    let list = you.call(Method::GET, "/account/provider-keys", Value::Null).await.expect(200);
    assert_eq!(list["data"], json!([]));
    you.call(Method::DELETE, path, Value::Null).await.refused(404, "not_found");

    let cx = &h.platform.cx;
    let [me, you] = ["me", "you"].map(|name| domain::ids::Owner::new(name).unwrap());
    let (table, name) = cx.store.raw();
    let from = keys::provider_key(&me, KeyProvider::OpenAi);
    let part = |text: &str| AttributeValue::S(text.to_owned());
    let read = table.get_item().table_name(name).key("pk", part(&from.pk)).key("sk", part(&from.sk));
    let item = read.send().await.unwrap().item.unwrap();
    for (owner, provider) in [(&you, KeyProvider::OpenAi), (&me, KeyProvider::Xai)] {
        let to = keys::provider_key(owner, provider);
        let mut copied = item.clone();
        copied.extend([("pk".to_owned(), part(&to.pk)), ("sk".to_owned(), part(&to.sk))]);
        table.put_item().table_name(name).set_item(Some(copied)).send().await.unwrap();
        let refused = cx.provider_keys.get(owner, provider).await.unwrap_err();
        assert!(refused.to_string().contains("cannot be decrypted"), "{refused}");
    }
    assert!(cx.provider_keys.get(&me, KeyProvider::OpenAi).await.unwrap().is_some());
}

#[tokio::test]
async fn a_process_uses_what_it_has_read_for_a_minute_at_most() {
    let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
    let manual = Clock::Manual(clock.clone());
    let h = Harness::with(PlatformConfig { clock: manual, ..PlatformConfig::in_memory() }).await;
    put(&h, "google", json!({"key": KEY})).await.expect(200);
    let (cx, owner) = (&h.platform.cx, made::local());
    let get = async || cx.provider_keys.get(&owner, KeyProvider::Google).await.unwrap();
    assert!(get().await.is_some());
    // Another process deletes it.
    assert!(cx.store.delete_provider_key(&owner, KeyProvider::Google).await.unwrap().done());
    clock.set(clock.now() + SignedDuration::from_secs(59));
    assert!(get().await.is_some());
    clock.set(clock.now() + SignedDuration::from_secs(1));
    assert!(get().await.is_none());
}

/// As after a restart of the server.
#[tokio::test]
async fn a_key_is_read_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let config = || PlatformConfig {
        data: lamplighter_local::engines::DataLocation::Folder(folder.path().to_owned()),
        ..PlatformConfig::in_memory()
    };
    let h = Harness::with(config()).await;
    put(&h, "xai", json!({"key": KEY})).await.expect(200);
    h.platform.stop().await;
    let h = Harness::with(config()).await;
    let key = h.platform.cx.provider_keys.get(&made::local(), KeyProvider::Xai).await.unwrap().unwrap();
    assert_eq!(secrecy::ExposeSecret::expose_secret(&key), KEY);
}
