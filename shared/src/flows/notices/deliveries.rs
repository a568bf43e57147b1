//! Messages on their way to a channel: sent, tried again, listed.
//!
//! A delivery is at least once: if the process dies after the receiver has accepted a message, it is sent once more, with the same id.

use base::reach::Ask;
use bytes::Bytes;
use domain::ids::{ChannelId, DeliveryId, NoticeId, Owner};
use domain::notices::answer_link::{AnswerLink, asks as asks_something};
use domain::notices::channels::{self, Answer, Channel, ChannelKind, Next};
use domain::notices::deliveries::{DeliveryRecord, DeliveryState, Said};
use domain::notices::plan::Notice;
use domain::notices::render::{Links, Message, TEST, ToAnswer};
use domain::notices::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use domain::secrets::signature::{self, SigningSecret};
use futures::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use super::asks::{self, InMessage};
use super::channels::{code, code_to_send, load, opened, secrets, suspend};
use super::{mail, results, smtp};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::background::due;
use crate::flows::page::{self, Page, PageQuery};
use crate::process::metrics;
use crate::store::notices::{ChannelState, Mail, StoredChannel};
use crate::store::{DueItem, Once, Store, Tries};

/// A delivery as its person sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DeliveryView {
    pub delivery_id: DeliveryId,
    /// The id that the receiver sees: `webhook-id`. It is the same in every try.
    pub message_id: NoticeId,
    pub channel_id: ChannelId,
    pub kind: ChannelKind,
    /// Where it goes, without what is secret.
    pub target: String,
    /// The first line of the message.
    #[schema(example = "Failed: Morning report")]
    pub subject: String,
    pub state: DeliveryState,
    /// How many tries have begun.
    pub tries: u32,
    /// When the next try begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// Why the newest try failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub created_at: Timestamp,
    /// When it was delivered or given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

impl From<DeliveryRecord> for DeliveryView {
    fn from(delivery: DeliveryRecord) -> Self {
        let subject = delivery.said.render(|message| message.subject());
        let DeliveryRecord {
            delivery_id,
            message_id,
            channel_id,
            kind,
            target,
            state,
            tries,
            next_at,
            error,
            created_at,
            ended_at,
            ..
        } = delivery;
        Self {
            delivery_id,
            message_id,
            channel_id,
            kind,
            target,
            subject,
            state,
            tries,
            next_at,
            error,
            created_at,
            ended_at,
        }
    }
}

/// Newest first.
///
/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub async fn list(
    cx: &Cx,
    owner: &Owner,
    state: Option<DeliveryState>,
    query: &PageQuery,
) -> Result<Page<DeliveryView>> {
    let read = |after: Option<String>, limit| {
        async move { cx.store.deliveries(owner, after.as_deref(), limit).await }.boxed()
    };
    let keep = |delivery: &DeliveryRecord| state.is_none_or(|state| delivery.state == state);
    let found = page::filtered(owner, "deliveries", query, read, keep).await?;
    Ok(found.map(|delivery| delivery.value.into()))
}

/// # Errors
/// 404 if it does not exist.
pub async fn read(cx: &Cx, owner: &Owner, id: DeliveryId) -> Result<DeliveryView> {
    let found = cx.store.delivery(owner, id).await?.ok_or(Error::NotFound("delivery"))?;
    Ok(found.value.into())
}

/// Sends a message that says that it is a test. It is sent at once, whatever the preferences say.
///
/// # Errors
/// 404 if the channel does not exist; 409 if it is switched off.
pub async fn test_channel(cx: &Cx, owner: &Owner, once: &Once, id: ChannelId) -> Result<DeliveryView> {
    let channel = load(cx, owner, id).await?.value;
    if channel.state != ChannelState::Enabled {
        let told = "the channel is switched off or not confirmed: enable or confirm it first";
        return Err(Error::conflict("channel_off", told));
    }
    let now = cx.clock.now();
    let notice = Notice {
        notice_id: NoticeId::from_uuid(cx.clock.uuid()),
        key: NoticeKey { kind: NoticeKind::Succeeded, action_id: None, cause: Cause::new(TEST) },
        about: About::new("A test of this channel", "You are told here.", LeadsTo::Watch),
        count: 1,
        since: now,
        last_at: now,
        is_over: false,
        at: now,
        runs: Vec::new(),
    };
    let to = (channel.channel_id, channel.kind, channel.target.as_str());
    let delivery = DeliveryRecord::new(notice.notice_id, Said::Notice { notice }, to, now);
    if !cx.store.commit(once, vec![Store::delivery_write(owner, &delivery, 0)?]).await?.done() {
        return Err(Error::internal("a new id was taken"));
    }
    due::dispatch(cx, &DueItem::delivery(owner, delivery.delivery_id)).await;
    Ok(delivery.into())
}

/// Tries a delivery once more, with all retries.
///
/// # Errors
/// 404 if it does not exist; 409 if it is not undelivered.
pub async fn retry(cx: &Cx, owner: &Owner, once: &Once, id: DeliveryId) -> Result<DeliveryView> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let found = cx.store.delivery(owner, id).await?.ok_or(Error::NotFound("delivery"))?;
        let view = DeliveryView::from(found.value.clone());
        let Some(again) = found.value.again(cx.clock.now()) else {
            let told = "the delivery is not undelivered, so there is nothing to try again";
            return Err(Error::conflict_with("not_undelivered", told, &view));
        };
        let write = Store::delivery_write(owner, &again, found.version)?;
        if cx.store.commit(once, vec![write]).await?.done() {
            due::dispatch(cx, &DueItem::delivery(owner, id)).await;
            return Ok(again.into());
        }
    }
}

/// The e-mails of the outbox, newest first.
///
/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub async fn outbox(cx: &Cx, owner: &Owner, query: &PageQuery) -> Result<Page<Mail>> {
    let read = |after: Option<String>, limit| {
        async move { cx.store.mails(owner, after.as_deref(), limit).await }.boxed()
    };
    let found = page::filtered(owner, "outbox", query, read, |_| true).await?;
    Ok(found.map(|mail| mail.value))
}

/// Sends a message that is due. It may be called at any time: what is not due is not sent.
///
/// # Errors
/// If the table does not answer. Then it stays due.
pub(crate) async fn go_on(cx: &Cx, owner: &Owner, id: DeliveryId) -> Result<()> {
    let Some(found) = cx.store.delivery(owner, id).await? else { return Ok(()) };
    let Some(begun) = found.value.begin(cx.clock.now()) else { return Ok(()) };
    let Ok(place) = cx.places.enter_to_send(cx, owner).await? else {
        // Other messages of this owner keep as many executors busy as they may.
        let later = found.value.put_off(cx.clock.now());
        if cx.store.write_all(vec![Store::delivery_write(owner, &later, found.version)?]).await?.done() {
            due::dispatch_at(cx, &DueItem::delivery(owner, id), later.next_at).await;
        }
        return Ok(());
    };
    let tried = deliver(cx, owner, begun, found.version).await;
    place.leave(cx).await;
    tried
}

/// Makes a try that has begun. `version`: of the record before it.
async fn deliver(cx: &Cx, owner: &Owner, begun: DeliveryRecord, version: u64) -> Result<()> {
    let id = begun.delivery_id;
    // Of several executors, one has the try.
    if !cx.store.write_all(vec![Store::delivery_write(owner, &begun, version)?]).await?.done() {
        return Ok(());
    }
    let version = version + 1;
    let channel = cx.store.channel(owner, begun.channel_id).await?;
    let after = match channel {
        None => begun.dropped("the channel was deleted", cx.clock.now()),
        Some(channel)
            if begun.said == Said::Code && code_to_send(&channel.value, cx.clock.now()).is_none() =>
        {
            begun.dropped("the code no longer works", cx.clock.now())
        }
        Some(channel) if begun.said != Said::Code && channel.value.state != ChannelState::Enabled => {
            begun.dropped("the channel is switched off or not confirmed", cx.clock.now())
        }
        Some(channel) => {
            let (answer, why) = send(cx, owner, &channel.value, &begun).await?;
            let (after, next) = begun.end(answer, &why, cx.clock.now());
            if matches!(next, Next::Disable | Next::Suspend) {
                tracing::warn!(kind = ?channel.value.kind, "a channel was switched off: its receiver is gone");
                suspend(cx, owner, channel, &why).await?;
            }
            after
        }
    };
    // If somebody else has the next try already, this one took too long, and its result is forgotten.
    let stored = cx.store.write_all(vec![Store::delivery_write(owner, &after, version)?]).await?.done();
    if stored && after.state == DeliveryState::Undelivered {
        metrics::undelivered(cx.clock.now());
    }
    if let Some(at) = after.next_at {
        due::dispatch_at(cx, &DueItem::delivery(owner, id), Some(at)).await;
    }
    Ok(())
}

/// Sends one try. Returns the answer, and what went wrong, for a person.
async fn send(
    cx: &Cx,
    owner: &Owner,
    channel: &StoredChannel,
    delivery: &DeliveryRecord,
) -> Result<(Answer, String)> {
    let to = opened(cx, owner, channel).await?;
    let site = &cx.config.notices.site;
    let results = results::of(cx, owner, &delivery.said).await?;
    let now = cx.clock.now();
    let to_answer = to_answer(cx, owner, (channel, &to), &delivery.said).await?;
    let answer = to_answer.as_ref().map(|(page, shown)| ToAnswer {
        page,
        asked: &shown.text,
        // Nobody reads the replies to e-mails.
        reply: if channel.replies.is_some() { shown.reply } else { "" },
    });
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static("Lamplighter"));
    let (url, body) = match &to {
        Channel::Email { .. } | Channel::Smtp(_) => {
            let email = match (&delivery.said, &to) {
                (Said::Code, _) => match code(cx, owner, channel).await? {
                    Some(code) => Message::Code { code: Some(&code) }.email(site, &results, Links::default()),
                    None => return Ok((Answer::None, "the code no longer works".to_owned())),
                },
                // Whoever has a mail server of their own switches the channel off in the console.
                (said, Channel::Smtp(_)) => {
                    let links = Links { unsubscribe: None, answer };
                    said.render(|message| message.email(site, &results, links))
                }
                (said, _) => {
                    let token = cx.provider_keys.token_of_channel(owner, channel.channel_id).await?;
                    let unsubscribe = Url::parse(&site.api(&format!("/unsubscribe/{token}")));
                    let unsubscribe = unsubscribe.map_err(|error| Error::internal(error.to_string()))?;
                    let links = Links { unsubscribe: Some(&unsubscribe), answer };
                    said.render(|message| message.email(site, &results, links))
                }
            };
            return match &to {
                Channel::Smtp(server) => Ok(smtp::send(cx, delivery.delivery_id, server, &email).await),
                Channel::Email { to } => mail::send(cx, owner, delivery.delivery_id, to, &email).await,
                _ => Err(Error::internal("a channel without an address got an e-mail")),
            };
        }
        Channel::Webhook { url } => {
            (url.clone(), rendered(&delivery.said, |message| message.webhook(site, &results)))
        }
        Channel::Slack { url } => {
            (url.clone(), rendered(&delivery.said, |message| message.slack(site, &results)))
        }
        Channel::Discord { url } => {
            (url.clone(), rendered(&delivery.said, |message| message.discord(site, &results)))
        }
        Channel::Telegram { token, chat_id } => {
            let body =
                rendered(&delivery.said, |message| message.telegram(site, &results, (chat_id, answer)));
            (format!("{}/bot{token}/sendMessage", cx.config.reach.telegram), body)
        }
        Channel::Ntfy { url, topic, token } => {
            if let Some(token) = token {
                headers.insert(header::AUTHORIZATION, secret_header(&format!("Bearer {token}"))?);
            }
            (url.clone(), rendered(&delivery.said, |message| message.ntfy(site, &results, topic)))
        }
        Channel::Gotify { url, token } => {
            headers.insert(HeaderName::from_static("x-gotify-key"), secret_header(token)?);
            let url = format!("{}/message", url.trim_end_matches('/'));
            (url, rendered(&delivery.said, |message| message.gotify(site, &results)))
        }
    };
    if channel.kind == ChannelKind::Webhook {
        let secrets = secrets(cx, owner, channel, now).await?;
        let secrets: Vec<&SigningSecret> = secrets.iter().collect();
        let id = delivery.message_id.to_string();
        for (name, value) in signature::headers(&secrets, &id, now, body.as_bytes()) {
            let value = HeaderValue::try_from(value).map_err(|error| Error::internal(error.to_string()))?;
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    let ask = Ask { method: Method::POST, url, headers, body: Some(Bytes::from(body)) };
    // Nobody reads what a receiver says. Its status alone decides.
    Ok(match cx.notifier().send_once(ask, 0).await {
        Ok(answer) => {
            let wait = answer.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
            let retry_after = wait.and_then(|value| channels::retry_after(value, now));
            let code = answer.status.as_u16();
            (Answer::Status { code, retry_after }, channels::in_words(channel.kind, code))
        }
        // The messages show at most the host, which a person may know.
        Err(error) => (Answer::None, error.to_string()),
    })
}

/// The page on which the reader of a message answers, and what the message shows of what is asked.
async fn to_answer(
    cx: &Cx,
    owner: &Owner,
    (channel, to): (&StoredChannel, &Channel),
    said: &Said,
) -> Result<Option<(String, InMessage)>> {
    let Said::Notice { notice } = said else { return Ok(None) };
    let Some(mut link) = AnswerLink::of(notice, channel.channel_id, to, cx.clock.now()) else {
        return Ok(None);
    };
    let shown = if asks_something(notice) {
        asks::in_message(cx, owner, &link).await?
    } else {
        InMessage {
            reply: "Reply to this message with what should be different, or with: pause.",
            ..InMessage::default()
        }
    };
    link.shown = shown.shown;
    let token = cx.provider_keys.token_of_answer(owner, link).await?;
    Ok(Some((cx.config.notices.site.api(&format!("/answers/{token}")), shown)))
}

/// A header that no debug print shows.
fn secret_header(text: &str) -> Result<HeaderValue> {
    let mut value =
        HeaderValue::try_from(text).map_err(|_| Error::internal("a stored token can't be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn rendered(said: &Said, render: impl FnOnce(Message<'_>) -> Value) -> String {
    said.render(render).to_string()
}
