//! The channels of a person: created, confirmed, listed, switched on and off, tested, deleted. Their addresses are secrets and never
//! shown again.

use domain::ids::{ChannelId, NoticeId, Owner};
use domain::notices::MAX_CHANNELS;
use domain::notices::answer_link::is_chat_with_one_person;
use domain::notices::channels::{Channel, ChannelKind, MailServer, NTFY, Security};
use domain::notices::codes::{self, Code};
use domain::notices::deliveries::{DeliveryRecord, Said};
use domain::notices::of_channel::of_channel;
use domain::secrets::signature::SigningSecret;
use domain::text::quoting::short_line;
use domain::validate::FieldErrors;
use jiff::{SignedDuration, Timestamp};
use rand::Rng;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::telegram::{self, Bot, Receiver};
use crate::config::MailConfig;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::background::due;
use crate::store::notices::{
    ChannelGuard, ChannelState, Listening, Replies, SealedText, SentCode, StoredChannel,
};
use crate::store::table::Write;
use crate::store::{DueItem, Once, Store, Tries, Versioned};

/// How long the secret before the newest one signs, too.
const OLD_SECRET: SignedDuration = SignedDuration::from_hours(24);

/// The longest reason why a channel is off, in bytes.
pub(crate) const MAX_WHY: usize = 300;

/// The bytes of a new secret.
const SECRET_BYTES: usize = 32;

/// A channel as its person sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChannelView {
    pub channel_id: ChannelId,
    pub kind: ChannelKind,
    /// Where it goes, without what is secret.
    #[schema(example = "https://hooks.slack.com/…k3Xz")]
    pub target: String,
    pub state: ChannelState,
    /// Why the platform has switched it off. Only with the state `suspended`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub created_at: Timestamp,
    /// Until when the secret before the newest one signs, too. Only of a webhook whose secret was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_secret_until: Option<Timestamp>,
    /// Until when the code that was sent works. Only with the state `unconfirmed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_until: Option<Timestamp>,
    /// Whether replies in its chat come back. Left out if they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies: Option<RepliesView>,
}

/// Replies in the chat of a channel come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RepliesView {
    /// Why they do not come back at the moment. It is tried again every two minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl From<StoredChannel> for ChannelView {
    fn from(channel: StoredChannel) -> Self {
        let StoredChannel {
            channel_id, kind, target, state, why, created_at, old_until, code, replies, ..
        } = channel;
        Self {
            channel_id,
            kind,
            target,
            state,
            why,
            created_at,
            old_secret_until: old_until,
            code_until: code.map(|code| code.works_until),
            replies: replies.map(|replies| RepliesView { why: replies.why }),
        }
    }
}

/// All channels of a person.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChannelList {
    /// Oldest first.
    pub data: Vec<ChannelView>,
    /// What becomes of e-mails on this platform.
    pub emails: Emails,
}

/// What becomes of e-mails: `sent`, `stored` in the outbox (`GET /outbox`) and not sent, or `none`: there are no channels of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Emails {
    Sent,
    Stored,
    None,
}

impl From<&MailConfig> for Emails {
    fn from(mail: &MailConfig) -> Self {
        match mail {
            MailConfig::Off => Self::None,
            MailConfig::Outbox { .. } => Self::Stored,
            MailConfig::Ses { .. } => Self::Sent,
        }
    }
}

/// A channel whose secret was just made.
#[derive(Clone, Serialize, ToSchema)]
pub struct ChannelWithSecret {
    #[serde(flatten)]
    pub channel: ChannelView,
    /// The secret with which its messages are signed (Standard Webhooks). Only of a webhook, and only in this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub secret: Option<String>,
}

/// A channel to add. Each kind has its own fields.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"kind": "webhook", "url": "https://example.com/hooks/lamplighter"}))]
pub struct NewChannel {
    pub kind: ChannelKind,
    /// Of `email` and `smtp`: one address without a name, at most 254 bytes. It must be confirmed.
    #[serde(default)]
    #[schema(max_length = 254)]
    pub to: Option<String>,
    /// Of `webhook`, `slack`, `discord` and `gotify`: an `https` address of a public host, at most 2,000 bytes. Of `ntfy`: the address of the
    /// server without a path, by default `https://ntfy.sh`. The operator may allow other hosts.
    #[serde(default)]
    #[schema(max_length = 2_000)]
    pub url: Option<String>,
    /// Of `telegram`: the token of a bot. Of `gotify`: the token of an application. Of `ntfy`, optional: an access token.
    #[serde(default)]
    pub token: Option<String>,
    /// Of `telegram`: a number, or the name of a channel with `@`.
    #[serde(default)]
    pub chat_id: Option<String>,
    /// Of `telegram`, optional: whether replies to its messages come back. The chat must be with one person, and nothing else may receive
    /// what is written to the bot.
    #[serde(default)]
    pub replies: Option<bool>,
    /// Of `ntfy`: 1 to 64 letters, digits, `-` and `_`.
    #[serde(default)]
    #[schema(max_length = 64)]
    pub topic: Option<String>,
    /// Of `smtp`: a public mail server. The operator may allow other hosts.
    #[serde(default)]
    #[schema(max_length = 253, example = "smtp.example.com")]
    pub host: Option<String>,
    /// Of `smtp`, optional: 465 or 587, by default the usual one of `security`. At a host that the operator allows, also another one.
    #[serde(default)]
    pub port: Option<u16>,
    /// Of `smtp`, optional: `tls` (the default), `starttls`, or `none` at a host that the operator allows.
    #[serde(default)]
    pub security: Option<Security>,
    /// Of `smtp`, optional: with whom the platform logs in.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub user: Option<String>,
    /// Of `smtp`, required with `user`: the password.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub secret: Option<String>,
    /// Of `smtp`: the sender, one address without a name.
    #[serde(default)]
    #[schema(max_length = 254)]
    pub from: Option<String>,
}

impl NewChannel {
    fn into_channel(self) -> std::result::Result<Channel, FieldErrors> {
        let Self { kind, to, url, token, chat_id, replies, topic, host, port, security, user, secret, from } =
            self;
        let mut errors = FieldErrors::default();
        let (needs, may): (&[&str], &[&str]) = match kind {
            ChannelKind::Email => (&["to"], &[]),
            ChannelKind::Webhook | ChannelKind::Slack | ChannelKind::Discord => (&["url"], &[]),
            ChannelKind::Telegram => (&["token", "chat_id"], &["replies"]),
            ChannelKind::Ntfy => (&["topic"], &["url", "token"]),
            ChannelKind::Gotify => (&["url", "token"], &[]),
            ChannelKind::Smtp => (&["host", "from", "to"], &["port", "security", "user", "secret"]),
        };
        let given = [
            ("to", to.is_some()),
            ("url", url.is_some()),
            ("token", token.is_some()),
            ("chat_id", chat_id.is_some()),
            ("replies", replies.is_some()),
            ("topic", topic.is_some()),
            ("host", host.is_some()),
            ("port", port.is_some()),
            ("security", security.is_some()),
            ("user", user.is_some()),
            ("secret", secret.is_some()),
            ("from", from.is_some()),
        ];
        for (field, is_given) in given {
            if needs.contains(&field) && !is_given {
                errors.add(field, "is required for a channel of this kind");
            } else if is_given && !needs.contains(&field) && !may.contains(&field) {
                errors.add(field, "has no meaning for a channel of this kind");
            }
        }
        let text = Option::<String>::unwrap_or_default;
        errors.into_result(match kind {
            ChannelKind::Email => Channel::Email { to: text(to) },
            ChannelKind::Webhook => Channel::Webhook { url: text(url) },
            ChannelKind::Slack => Channel::Slack { url: text(url) },
            ChannelKind::Discord => Channel::Discord { url: text(url) },
            ChannelKind::Telegram => Channel::Telegram { token: text(token), chat_id: text(chat_id) },
            ChannelKind::Ntfy => {
                Channel::Ntfy { url: url.unwrap_or_else(|| NTFY.to_owned()), topic: text(topic), token }
            }
            ChannelKind::Gotify => Channel::Gotify { url: text(url), token: text(token) },
            ChannelKind::Smtp => {
                let security = security.unwrap_or_default();
                let port = port.unwrap_or_else(|| security.usual_port());
                let (host, from, to) = (text(host), text(from), text(to));
                Channel::Smtp(MailServer { host, port, security, user, secret, from, to })
            }
        })
    }
}

/// A change of a channel.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct ChannelPatch {
    /// `enabled` or `disabled`. A suspended channel may be enabled again.
    pub state: Option<WantedState>,
    /// Whether a webhook gets a new secret. The old one signs, too, for 24 hours.
    pub new_secret: bool,
    /// Whether replies in the chat of a bot of Telegram come back.
    pub replies: Option<bool>,
}

/// The states that a person may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WantedState {
    Enabled,
    Disabled,
}

/// The code that a person has got in an e-mail.
#[derive(Deserialize, ToSchema)]
pub struct GivenCode {
    /// Eight digits. Spaces and hyphens do not count.
    #[schema(example = "1234 5678", max_length = 20)]
    pub code: String,
}

/// An e-mail address has to be confirmed: its channel is `unconfirmed`, and a code is on its way there.
///
/// # Errors
/// 400 with every invalid field and its limit; 409 if the person has as many channels as the limit allows, or if too many codes were
/// sent.
pub async fn create(cx: &Cx, owner: &Owner, once: &Once, new: NewChannel) -> Result<ChannelWithSecret> {
    let wants_replies = new.replies.unwrap_or_default();
    let channel = new.into_channel()?;
    channel.validate(&cx.config.reach.policy)?;
    if channel.kind() == ChannelKind::Email && cx.config.notices.mail == MailConfig::Off {
        let told = "cannot be `email`: the operator has set no sender (LAMPLIGHTER_MAIL_FROM)";
        return Err(FieldErrors::one("kind", told).into());
    }
    let channel_id = ChannelId::from_uuid(cx.clock.uuid());
    let text = serde_json::to_string(&channel).map_err(|error| Error::internal(error.to_string()))?;
    let sealed = cx.provider_keys.seal_for_channel(owner, channel_id, &SecretString::from(text)).await?;
    let secret = match channel.kind() {
        ChannelKind::Webhook => Some(new_secret()?),
        _ => None,
    };
    let mut record = StoredChannel {
        channel_id,
        kind: channel.kind(),
        target: channel.shown().target,
        state: ChannelState::Enabled,
        why: None,
        created_at: cx.clock.now(),
        sealed,
        secret: seal_secret(cx, owner, channel_id, secret.as_ref()).await?,
        old_secret: None,
        old_until: None,
        code: None,
        replies: None,
    };
    let _lock = cx.locks.lock((owner, "channels")).await;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let mut guard = cx.store.channel_guard(owner).await?;
        let others = cx.store.channels(owner).await?;
        if others.len() >= MAX_CHANNELS {
            let told = format!("an account has at most {MAX_CHANNELS} channels: delete one first");
            return Err(Error::conflict("too_many_channels", told));
        }
        let now = cx.clock.now();
        guard.value.newest = Some(channel_id);
        let code = match channel.confirmed() {
            Some(to) => Some(send_code(cx, owner, &mut record, to, &mut guard.value, now).await?),
            None => None,
        };
        let mut writes = vec![
            Store::new_channel_write(owner, &record)?,
            Store::channel_guard_write(owner, &guard)?,
            Store::plan_again_write(owner, now)?,
        ];
        if wants_replies {
            check_replies(cx, owner, &channel, &others).await?;
            record.replies = Some(Replies::default());
            let listening = Listening { channel_id, next: 0, at: now };
            writes[0] = Store::new_channel_write(owner, &record)?;
            writes.push(Store::listening_write(owner, &listening, 0)?);
        }
        let item = match code {
            Some(code) => {
                writes.extend(code.writes);
                code.item
            }
            None => DueItem::notices(owner),
        };
        if cx.store.commit(once, writes).await?.done() {
            due::dispatch(cx, &item).await;
            if wants_replies {
                due::dispatch(cx, &DueItem::replies(owner, channel_id)).await;
            }
            return Ok(ChannelWithSecret {
                channel: record.into(),
                secret: secret.map(|secret| secret.reveal()),
            });
        }
    }
}

/// Whether replies in the chat of this channel can come back. `others`: the other channels.
async fn check_replies(
    cx: &Cx,
    owner: &Owner,
    channel: &Channel,
    others: &[Versioned<StoredChannel>],
) -> Result<()> {
    let refused = |told: &str| Err(FieldErrors::one("replies", told).into());
    let Channel::Telegram { token, chat_id } = channel else {
        return refused("only a channel of Telegram has replies");
    };
    if !is_chat_with_one_person(chat_id) {
        return refused("the chat must be with one person: `chat_id` must have digits only");
    }
    for other in others.iter().filter(|other| other.value.replies.is_some()) {
        if matches!(opened(cx, owner, &other.value).await?, Channel::Telegram { token: of, .. } if of == *token)
        {
            return refused("another channel receives the replies of this bot");
        }
    }
    Ok(())
}

/// Ends that Telegram sends replies here. If that fails, what it sends is refused. The webhook of another program stays.
async fn end_replies(cx: &Cx, owner: &Owner, channel: &StoredChannel) -> Result<()> {
    let id = channel.channel_id;
    if channel.replies.is_none() || !cx.config.notices.site.is_public() {
        return Ok(());
    }
    let Channel::Telegram { token, .. } = opened(cx, owner, channel).await? else { return Ok(()) };
    let bot = Bot::new(cx, &token);
    let ended = match telegram::receiver(cx, owner, id, &bot).await? {
        Ok(Receiver::Channel { .. }) => bot.call("deleteWebhook", &json!({})).await.map(drop),
        Ok(Receiver::Nobody | Receiver::Other) => Ok(()),
        Err(failed) => Err(failed),
    };
    if let Err(failed) = ended {
        tracing::warn!(why = failed.why, "the webhook of a bot was not deleted");
    }
    Ok(())
}

/// A code that is to be sent.
struct NewCode {
    writes: Vec<Write>,
    item: DueItem,
}

/// Gives the channel a new code and counts it. The writes send it and forbid that concurrent requests count the same.
async fn send_code(
    cx: &Cx,
    owner: &Owner,
    channel: &mut StoredChannel,
    to: &str,
    guard: &mut ChannelGuard,
    now: Timestamp,
) -> Result<NewCode> {
    let too_many = |of: &str, limit: usize, next: Timestamp| {
        let told =
            format!("{of} gets at most {limit} codes in 24 hours: the next one may be sent at {next:.0}");
        Error::conflict("too_many_codes", told)
    };
    guard.codes = codes::add(&guard.codes, codes::MAX_OF_ACCOUNT, now)
        .map_err(|next| too_many("an account", codes::MAX_OF_ACCOUNT, next))?;
    let mut sent = cx.store.codes_to(to).await?;
    sent.value = codes::add(&sent.value, codes::MAX_TO_ADDRESS, now)
        .map_err(|next| too_many("an address", codes::MAX_TO_ADDRESS, next))?;
    let code = Code::new(rand::rng().random_range(0..codes::CODES));
    let text = SecretString::from(code.as_str().to_owned());
    channel.state = ChannelState::Unconfirmed;
    channel.why = None;
    channel.code = Some(SentCode {
        sealed: cx.provider_keys.seal_for_channel(owner, channel.channel_id, &text).await?,
        works_until: now + codes::LIFETIME,
        wrong: 0,
    });
    let to_channel = (channel.channel_id, channel.kind, channel.target.as_str());
    let message = NoticeId::from_uuid(cx.clock.uuid());
    let delivery = DeliveryRecord::new(message, Said::Code, to_channel, now);
    let writes = vec![
        Store::codes_to_write(to, &sent, now + codes::WINDOW)?,
        Store::delivery_write(owner, &delivery, 0)?,
    ];
    Ok(NewCode { writes, item: DueItem::delivery(owner, delivery.delivery_id) })
}

/// Sends another code. The one before it no longer works.
///
/// # Errors
/// 404 if the channel does not exist; 409 if it needs no code, or if too many were sent.
pub async fn send_another_code(cx: &Cx, owner: &Owner, once: &Once, id: ChannelId) -> Result<ChannelView> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let mut guard = cx.store.channel_guard(owner).await?;
        let Versioned { value: mut channel, version } = load(cx, owner, id).await?;
        if channel.state != ChannelState::Unconfirmed {
            return Err(needs_no_code(channel));
        }
        let opened = opened(cx, owner, &channel).await?;
        let Some(to) = opened.confirmed() else { return Err(needs_no_code(channel)) };
        let code = send_code(cx, owner, &mut channel, to, &mut guard.value, cx.clock.now()).await?;
        let mut writes =
            vec![Store::channel_write(owner, &channel, version)?, Store::channel_guard_write(owner, &guard)?];
        writes.extend(code.writes);
        if cx.store.commit(once, writes).await?.done() {
            due::dispatch(cx, &code.item).await;
            return Ok(channel.into());
        }
    }
}

fn needs_no_code(channel: StoredChannel) -> Error {
    let told = "the channel needs no code: only an e-mail address that is not confirmed gets one";
    Error::conflict_with("needs_no_code", told, &ChannelView::from(channel))
}

/// Switches an e-mail channel on, with the code that was sent to its address. Each wrong code counts.
///
/// # Errors
/// 404 if the channel does not exist; 400 if the code is wrong; 409 if the channel needs none, or if the code no longer works.
pub async fn confirm(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    id: ChannelId,
    given: &GivenCode,
) -> Result<ChannelView> {
    let given = Code::parse(&given.code)
        .ok_or_else(|| FieldErrors::one("code", "must be the eight digits of the e-mail"))?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Versioned { value: mut channel, version } = load(cx, owner, id).await?;
        let Some(sent) = channel.code.take().filter(|_| channel.state == ChannelState::Unconfirmed) else {
            return Err(needs_no_code(channel));
        };
        let now = cx.clock.now();
        if sent.works_until <= now || sent.wrong >= codes::MAX_GUESSES {
            let told = "the code no longer works: let another one be sent";
            return Err(Error::conflict("code_expired", told));
        }
        let text = cx.provider_keys.open_for_channel(owner, id, &sent.sealed).await?;
        if Code::parse(text.expose_secret()) != Some(given.clone()) {
            let wrong = sent.wrong + 1;
            channel.code = Some(SentCode { wrong, ..sent });
            // A guess that is not counted must not be answered.
            if !cx.store.write_all(vec![Store::channel_write(owner, &channel, version)?]).await?.done() {
                continue;
            }
            let left = codes::MAX_GUESSES - wrong;
            let told = format!("is not the code that was sent; guesses left: {left}");
            return Err(FieldErrors::one("code", told).into());
        }
        channel.state = ChannelState::Enabled;
        let writes =
            vec![Store::channel_write(owner, &channel, version)?, Store::plan_again_write(owner, now)?];
        if cx.store.commit(once, writes).await?.done() {
            due::dispatch(cx, &DueItem::notices(owner)).await;
            return Ok(channel.into());
        }
    }
}

/// The code that is to be sent to a channel, if it still works.
pub(super) fn code_to_send(channel: &StoredChannel, now: Timestamp) -> Option<&SentCode> {
    let is_asked = channel.state == ChannelState::Unconfirmed;
    channel.code.as_ref().filter(|sent| is_asked && sent.works_until > now)
}

/// The same code, decrypted.
pub(super) async fn code(cx: &Cx, owner: &Owner, channel: &StoredChannel) -> Result<Option<Code>> {
    let Some(sent) = code_to_send(channel, cx.clock.now()) else { return Ok(None) };
    let text = cx.provider_keys.open_for_channel(owner, channel.channel_id, &sent.sealed).await?;
    Ok(Code::parse(text.expose_secret()))
}

fn new_secret() -> Result<SigningSecret> {
    let bytes = rand::rng().random::<[u8; SECRET_BYTES]>();
    SigningSecret::from_bytes(bytes.to_vec()).map_err(|error| Error::internal(error.to_string()))
}

async fn seal_secret(
    cx: &Cx,
    owner: &Owner,
    id: ChannelId,
    secret: Option<&SigningSecret>,
) -> Result<Option<SealedText>> {
    let Some(secret) = secret else { return Ok(None) };
    let text = SecretString::from(secret.reveal());
    Ok(Some(cx.provider_keys.seal_for_channel(owner, id, &text).await?))
}

/// # Errors
/// If the table does not answer.
pub async fn list(cx: &Cx, owner: &Owner) -> Result<ChannelList> {
    let found = cx.store.channels(owner).await?;
    let data = found.into_iter().map(|channel| channel.value.into()).collect();
    Ok(ChannelList { data, emails: Emails::from(&cx.config.notices.mail) })
}

/// # Errors
/// 404 if it does not exist; 400 if a channel without a secret is to get a new one; 409 if it is not confirmed.
pub async fn change(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    id: ChannelId,
    patch: ChannelPatch,
) -> Result<ChannelWithSecret> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Versioned { value: mut channel, version } = load(cx, owner, id).await?;
        let now = cx.clock.now();
        if channel.state == ChannelState::Unconfirmed && patch.state.is_some() {
            let told = "the address is not confirmed: give back the code that was sent there";
            return Err(Error::conflict_with("channel_unconfirmed", told, &ChannelView::from(channel)));
        }
        let was_off = channel.state == ChannelState::Suspended;
        match patch.state {
            Some(WantedState::Enabled) => (channel.state, channel.why) = (ChannelState::Enabled, None),
            Some(WantedState::Disabled) => (channel.state, channel.why) = (ChannelState::Disabled, None),
            None => {}
        }
        let mut secret = None;
        if patch.new_secret {
            if channel.kind != ChannelKind::Webhook {
                return Err(FieldErrors::one("new_secret", "only a webhook has a secret").into());
            }
            let new = new_secret()?;
            channel.old_secret = channel.secret.take();
            channel.old_until = Some(now + OLD_SECRET);
            channel.secret = seal_secret(cx, owner, id, Some(&new)).await?;
            secret = Some(new.reveal());
        }
        let mut replies = Vec::new();
        match patch.replies {
            Some(true) if channel.replies.is_none() => {
                let mut others = cx.store.channels(owner).await?;
                others.retain(|other| other.value.channel_id != id);
                check_replies(cx, owner, &opened(cx, owner, &channel).await?, &others).await?;
                channel.replies = Some(Replies::default());
                let listening = cx.store.listening(owner, id).await?.map_or(0, |found| found.version);
                let from = Listening { channel_id: id, next: 0, at: now };
                replies.push(Store::listening_write(owner, &from, listening)?);
            }
            Some(false) if channel.replies.is_some() => {
                end_replies(cx, owner, &channel).await?;
                channel.replies = None;
                replies.push(Store::not_listening_write(owner, id));
            }
            _ if channel.replies.is_some() && patch.state == Some(WantedState::Enabled) => {
                if let Some(listening) = cx.store.listening(owner, id).await? {
                    let at_once = Listening { at: now, ..listening.value };
                    replies.push(Store::listening_write(owner, &at_once, listening.version)?);
                }
            }
            _ => {}
        }
        let mut writes = vec![
            Store::channel_write(owner, &channel, version)?,
            // What waits for this channel is planned again.
            Store::plan_again_write(owner, now)?,
        ];
        writes.extend(replies);
        if was_off && channel.state == ChannelState::Enabled {
            let id = NoticeId::of(&format!("{id}/on"), now);
            writes.push(Store::happened_write(
                owner,
                id,
                of_channel(channel.channel_id, &channel.target, None),
                now,
            )?);
        }
        if cx.store.commit(once, writes).await?.done() {
            due::dispatch(cx, &DueItem::notices(owner)).await;
            if channel.replies.is_some() {
                due::dispatch(cx, &DueItem::replies(owner, id)).await;
            }
            return Ok(ChannelWithSecret { channel: channel.into(), secret });
        }
    }
}

/// What is under way to the channel is shown as undelivered.
///
/// # Errors
/// 404 if it does not exist.
pub async fn delete(cx: &Cx, owner: &Owner, id: ChannelId) -> Result<()> {
    let channel = load(cx, owner, id).await?.value;
    end_replies(cx, owner, &channel).await?;
    if !cx.store.delete_channel(owner, id).await?.done() {
        return Err(Error::NotFound("channel"));
    }
    Ok(())
}

/// The channel, decrypted.
pub(crate) async fn opened(cx: &Cx, owner: &Owner, channel: &StoredChannel) -> Result<Channel> {
    let text = cx.provider_keys.open_for_channel(owner, channel.channel_id, &channel.sealed).await?;
    serde_json::from_str(text.expose_secret()).map_err(|_| Error::internal("a stored channel can't be read"))
}

/// The secrets that sign now, the newest first.
pub(super) async fn secrets(
    cx: &Cx,
    owner: &Owner,
    channel: &StoredChannel,
    now: Timestamp,
) -> Result<Vec<SigningSecret>> {
    let old = channel.old_secret.as_ref().filter(|_| channel.old_until.is_some_and(|until| now < until));
    let mut secrets = Vec::new();
    for sealed in channel.secret.iter().chain(old) {
        let text = cx.provider_keys.open_for_channel(owner, channel.channel_id, sealed).await?;
        let secret = SigningSecret::parse(text.expose_secret());
        secrets.push(secret.map_err(|_| Error::internal("a stored secret can't be read"))?);
    }
    Ok(secrets)
}

/// The writes that switch a channel off, because its receiver is gone or wants nothing more. Its person is told through the others.
/// Only an enabled one is switched off: one that was never confirmed must not be switched on without its code.
pub(super) fn suspend_writes(
    owner: &Owner,
    found: Versioned<StoredChannel>,
    why: &str,
    now: Timestamp,
) -> Result<Vec<Write>> {
    if found.value.state != ChannelState::Enabled {
        return Ok(Vec::new());
    }
    let why = short_line(why, MAX_WHY);
    let event = of_channel(found.value.channel_id, &found.value.target, Some(&why));
    let channel = StoredChannel { state: ChannelState::Suspended, why: Some(why), ..found.value };
    let id = NoticeId::of(&format!("{}/off", channel.channel_id), now);
    Ok(vec![
        Store::channel_write(owner, &channel, found.version)?,
        Store::happened_write(owner, id, event, now)?,
    ])
}

/// Suspends the channel of an e-mail whose reader wants no more of them. It may be repeated.
///
/// # Errors
/// 404 if the platform has not made the token, or if the channel does not exist any more.
pub async fn unsubscribe(cx: &Cx, token: &str) -> Result<()> {
    let unknown = || Error::NotFound("token");
    let (owner, id) = cx.provider_keys.channel_of_token(token).await?.ok_or_else(unknown)?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let found = cx.store.channel(&owner, id).await?.ok_or_else(unknown)?;
        let writes =
            suspend_writes(&owner, found, "the reader of an e-mail has unsubscribed", cx.clock.now())?;
        if writes.is_empty() {
            return Ok(());
        }
        if cx.store.write_all(writes).await?.done() {
            due::dispatch(cx, &DueItem::notices(&owner)).await;
            return Ok(());
        }
    }
}

/// Switches a channel off. Whoever changes it at the same time wins.
pub(super) async fn suspend(
    cx: &Cx,
    owner: &Owner,
    found: Versioned<StoredChannel>,
    why: &str,
) -> Result<()> {
    let writes = suspend_writes(owner, found, why, cx.clock.now())?;
    if !writes.is_empty() && cx.store.write_all(writes).await?.done() {
        due::dispatch(cx, &DueItem::notices(owner)).await;
    }
    Ok(())
}

pub(super) async fn load(cx: &Cx, owner: &Owner, id: ChannelId) -> Result<Versioned<StoredChannel>> {
    cx.store.channel(owner, id).await?.ok_or(Error::NotFound("channel"))
}
