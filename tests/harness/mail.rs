//! Codes of e-mail addresses, without waiting for the e-mail.

use domain::ids::Owner;
use secrecy::ExposeSecret;
use serde_json::json;
use shared::Cx;

use crate::Harness;

/// The code that was sent to the address of a channel.
///
/// # Panics
/// If the channel waits for none.
pub async fn code(cx: &Cx, owner: &Owner, channel: &str) -> String {
    let id = channel.parse().expect("a channel has an id");
    let channel = cx.store.channel(owner, id).await.expect("the table answers").expect("the channel exists");
    let sent = channel.value.code.expect("a code was sent");
    let text = cx.provider_keys.open_for_channel(owner, id, &sent.sealed).await.expect("it is decrypted");
    text.expose_secret().to_owned()
}

impl Harness {
    /// An e-mail channel of the only owner, with a confirmed address. Returns its path.
    ///
    /// # Panics
    /// If it is not created or not confirmed.
    pub async fn confirmed_email(&self, to: &str) -> String {
        let email = json!({"kind": "email", "to": to});
        let created = self.post("/notifications/channels", email).await.expect(201);
        assert_eq!(created["state"], "unconfirmed", "{created:#}");
        let id = created["channel_id"].as_str().expect("it has an id");
        let path = format!("/notifications/channels/{id}");
        let code = code(&self.platform.cx, &crate::made::local(), id).await;
        let confirmed = self.post(&format!("{path}/confirm"), json!({ "code": code })).await.expect(200);
        assert_eq!(confirmed["state"], "enabled", "{confirmed:#}");
        path
    }
}
