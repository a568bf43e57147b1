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

/// Whether an address of a webhook is one of this channel, and whether it still leads here.
///
/// # Errors
/// If the master keys do not answer.
pub async fn is_of(cx: &Cx, owner: &Owner, channel: ChannelId, url: &str) -> Result<(bool, bool)> {
    let Some((base, token)) = url.split_once(HOOK) else { return Ok((false, false)) };
    let is_ours = cx.provider_keys.replies_of_token(token).await? == Some((owner.clone(), channel));
    Ok((is_ours, base == cx.config.notices.site.api("")))
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
