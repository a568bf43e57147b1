//! Calls of Telegram's Bot API.

use base::reach::Ask;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use bytes::Bytes;
use domain::ids::{ChannelId, Owner};
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::context::Cx;
use crate::error::Result;

/// The most of an answer that is read, in bytes: a hundred updates of 4,096 characters each, and what surrounds them.
const MAX_ANSWER: usize = 4 << 20;

/// A bot.
pub struct Bot<'a> {
    cx: &'a Cx,
    token: &'a str,
}

/// Why a call has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// `None` if Telegram was not reached.
    pub status: Option<u16>,
    pub why: String,
}

impl<'a> Bot<'a> {
    #[must_use]
    pub const fn new(cx: &'a Cx, token: &'a str) -> Self {
        Self { cx, token }
    }

    /// Calls a method, and returns its result.
    ///
    /// # Errors
    /// If Telegram is not reached, or refuses the call.
    pub async fn call(&self, method: &str, body: &Value) -> std::result::Result<Value, Failed> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let url = format!("{}/bot{}/{method}", self.cx.config.reach.telegram, self.token);
        let body = Some(Bytes::from(body.to_string()));
        let ask = Ask { method: Method::POST, url, headers, body };
        // The messages of errors show at most the host.
        let answer = self.cx.notifier().send_once(ask, MAX_ANSWER).await;
        let answer = answer.map_err(|error| Failed { status: None, why: error.to_string() })?;
        let status = answer.status.as_u16();
        let read: Option<Value> = serde_json::from_slice(&answer.body).ok();
        match read {
            Some(mut read) if answer.status.is_success() && read["ok"] == json!(true) => {
                Ok(read["result"].take())
            }
            Some(read) if read["description"].is_string() => {
                let why = read["description"].as_str().unwrap_or_default();
                Err(Failed { status: Some(status), why: format!("Telegram answers {status}: {why}") })
            }
            _ if answer.status.is_success() => Err(Failed {
                status: None,
                why: "the server answers something that is no answer of a Bot API".to_owned(),
            }),
            _ => Err(Failed { status: Some(status), why: format!("Telegram answers {status}") }),
        }
    }

    /// What Telegram sends with each update, so that nobody else can send one. It follows from the token of the bot, which is a secret.
    #[must_use]
    pub fn password(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(format!("replies\0{}", self.token)))
    }
}

/// What the address of a webhook has before its token.
const HOOK: &str = "/hooks/telegram/";

/// Who receives what is written to a bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    Nobody,
    /// This channel. `is_here`: at the present address of the platform.
    Channel {
        is_here: bool,
    },
    Other,
}

/// Who has the webhook of a bot. The address of a channel has another token each time, so the token is opened.
///
/// # Errors
/// If the master keys do not answer.
pub async fn receiver(
    cx: &Cx,
    owner: &Owner,
    channel: ChannelId,
    bot: &Bot<'_>,
) -> Result<std::result::Result<Receiver, Failed>> {
    let info = match bot.call("getWebhookInfo", &json!({})).await {
        Ok(info) => info,
        Err(failed) => return Ok(Err(failed)),
    };
    let url = info["url"].as_str().unwrap_or_default();
    if url.is_empty() {
        return Ok(Ok(Receiver::Nobody));
    }
    let Some((base, token)) = url.split_once(HOOK) else { return Ok(Ok(Receiver::Other)) };
    let is_ours = cx.provider_keys.replies_of_token(token).await? == Some((owner.clone(), channel));
    let is_here = base == cx.config.notices.site.api("");
    Ok(Ok(if is_ours { Receiver::Channel { is_here } } else { Receiver::Other }))
}

/// The address to which Telegram sends the replies of a channel. `None` if it can't reach the platform: then they are fetched.
///
/// # Errors
/// If the master keys do not answer.
pub async fn hook(cx: &Cx, owner: &Owner, channel: ChannelId) -> Result<Option<String>> {
    let site = &cx.config.notices.site;
    if !site.is_public() {
        return Ok(None);
    }
    let token = cx.provider_keys.token_of_replies(owner, channel).await?;
    Ok(Some(site.api(&format!("{HOOK}{token}"))))
}
