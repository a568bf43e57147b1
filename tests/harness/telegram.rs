//! A server that behaves like Telegram's Bot API, as far as the platform speaks it.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use domain::reach::Policy;
use serde_json::{Value, json};
use shared::config::ReachConfig;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The bot that everybody uses.
pub const TOKEN: &str = "4839574812:AAFD39kkdpWt3ywyRZergyOLMaJhac60qcK";

/// The person with whom it speaks.
pub const PERSON: i64 = 4711;

#[derive(Default)]
struct Chat {
    /// What the bot has sent, oldest first. The place is the id of the message.
    sent: Vec<Value>,
    /// What it has not confirmed.
    updates: Vec<Value>,
    numbers: i64,
    /// The webhook: its address and its password.
    hook: Option<Value>,
    /// How often each method was called.
    calls: Vec<String>,
}

/// Runs until it is dropped.
pub struct Telegram {
    address: std::net::SocketAddr,
    chat: Arc<Mutex<Chat>>,
    server: JoinHandle<()>,
}

impl Telegram {
    /// # Panics
    /// If no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let chat = Arc::<Mutex<Chat>>::default();
        let app = Router::new().route("/{bot}/{method}", post(answer)).with_state(chat.clone());
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, chat, server }
    }

    /// What a platform may reach that speaks to this server.
    ///
    /// # Panics
    /// Never: the address is a host.
    #[must_use]
    pub fn reach(&self) -> ReachConfig {
        let allowed_hosts = vec![self.address.to_string().parse().unwrap()];
        let policy = Policy { allowed_hosts, ..Policy::default() }.into();
        ReachConfig { policy, telegram: format!("http://{}", self.address), ..ReachConfig::default() }
    }

    /// The texts that the bot has sent, oldest first.
    ///
    /// # Panics
    /// If a handler has panicked.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        self.with(|chat| chat.sent.iter().map(|sent| sent["text"].as_str().unwrap().to_owned()).collect())
    }

    /// An update with a message of the person. `to`: the place of the message of the bot to which it replies, if it is a reply.
    ///
    /// # Panics
    /// If the bot has sent no such message.
    pub fn message(&self, text: &str, to: Option<usize>) -> Value {
        self.with(|chat| {
            chat.numbers += 1;
            let person = json!({"id": PERSON, "is_bot": false, "first_name": "Ada"});
            let place = json!({"id": PERSON, "type": "private", "first_name": "Ada"});
            let mut message = json!({"message_id": 1_000 + chat.numbers, "date": 1_795_251_600, "chat": place, "from": person, "text": text});
            if let Some(to) = to {
                message["reply_to_message"] = json!({
                    "message_id": to, "date": 1_795_251_500, "chat": place, "text": chat.sent[to]["text"],
                    "from": {"id": 4_839_574_812_i64, "is_bot": true, "first_name": "Lamp"},
                });
            }
            json!({"update_id": 900 + chat.numbers, "message": message})
        })
    }

    /// The person writes to the bot.
    ///
    /// # Panics
    /// If the bot has sent no such message.
    pub fn writes(&self, text: &str, to: Option<usize>) {
        let update = self.message(text, to);
        self.arrives(update);
    }

    /// The bot gets this update.
    ///
    /// # Panics
    /// If a handler has panicked.
    pub fn arrives(&self, update: Value) {
        self.with(|chat| chat.updates.push(update));
    }

    /// The webhook, if there is one.
    ///
    /// # Panics
    /// If a handler has panicked.
    #[must_use]
    pub fn hook(&self) -> Option<Value> {
        self.with(|chat| chat.hook.clone())
    }

    /// Something else gives the bot a webhook.
    ///
    /// # Panics
    /// If a handler has panicked.
    pub fn is_hooked(&self, hook: Option<Value>) {
        self.with(|chat| chat.hook = hook);
    }

    /// How often a method was called.
    ///
    /// # Panics
    /// If a handler has panicked.
    #[must_use]
    pub fn calls(&self, method: &str) -> usize {
        self.with(|chat| chat.calls.iter().filter(|call| *call == method).count())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Chat) -> T) -> T {
        act(&mut self.chat.lock().unwrap())
    }
}

impl Drop for Telegram {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(
    State(chat): State<Arc<Mutex<Chat>>>,
    Path((bot, method)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let refused = |status: StatusCode, why: &str| {
        (status, Json(json!({"ok": false, "error_code": status.as_u16(), "description": why})))
    };
    if bot != format!("bot{TOKEN}") {
        return refused(StatusCode::UNAUTHORIZED, "Unauthorized");
    }
    let mut chat = chat.lock().unwrap();
    chat.calls.push(method.clone());
    let result = match method.as_str() {
        "sendMessage" => {
            chat.sent.push(body);
            json!({"message_id": chat.sent.len() - 1})
        }
        "getUpdates" if chat.hook.is_some() => {
            let why = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
            return refused(StatusCode::CONFLICT, why);
        }
        "getUpdates" => {
            let from = body["offset"].as_i64().unwrap_or_default();
            // Far ahead of the queue, an offset confirms nothing.
            let is_of = |update: &Value| update["update_id"].as_i64().unwrap();
            if chat.updates.iter().any(|update| is_of(update) + 100 > from) {
                chat.updates.retain(|update| is_of(update) >= from);
            }
            json!(chat.updates)
        }
        "getWebhookInfo" => match &chat.hook {
            Some(hook) => json!({"url": hook["url"], "pending_update_count": 0}),
            None => json!({"url": "", "pending_update_count": 0}),
        },
        "setWebhook" => {
            chat.hook = Some(body);
            json!(true)
        }
        "deleteWebhook" => {
            chat.hook = None;
            json!(true)
        }
        _ => return refused(StatusCode::NOT_FOUND, "Not Found"),
    };
    (StatusCode::OK, Json(json!({"ok": true, "result": result})))
}
