//! Replies to the messages of a Telegram bot come back. Where Telegram can reach the platform, it sends them. Elsewhere, such as on a machine
//! at home, they are fetched every few seconds.

use domain::ids::{ChannelId, Owner};
use domain::notices::channels::Channel;
use domain::notices::replies::{Update, Words};
use domain::text::quoting::short_line;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::answers::answer_links::{self, Done};
use crate::flows::background::due;
use crate::flows::notices::channels::{MAX_WHY, opened};
use crate::flows::notices::telegram::{self, Bot, Failed, Receiver, hook};
use crate::store::notices::{ChannelState, Replies, StoredChannel};
use crate::store::{DueItem, Once, Store, Versioned};

/// How often replies are fetched.
const EVERY: SignedDuration = SignedDuration::from_secs(5);

/// How long after a failure, and while the channel is off, it is tried again.
const AGAIN: SignedDuration = SignedDuration::from_mins(2);

/// How often it is checked that Telegram still sends replies to the platform.
const CHECK: SignedDuration = SignedDuration::from_hours(24);

/// How many updates are fetched at once.
const UPDATES: usize = 50;

/// What the bot says to a message that is no reply.
const NOT_A_REPLY: &str = "Please reply to one of my messages, so that I know which one you mean.";

/// A bot that hears replies.
struct Ears<'a> {
    cx: &'a Cx,
    owner: &'a Owner,
    channel: ChannelId,
    bot: Bot<'a>,
    chat_id: &'a str,
}

/// Fetches replies, or lets Telegram send them. It may be called at any time: what was heard is not heard again.
///
/// # Errors
/// If the table or the master keys do not answer. Then it stays due.
pub(crate) async fn listen(cx: &Cx, owner: &Owner, id: ChannelId) -> Result<()> {
    let Some(Versioned { value: mut listening, version }) = cx.store.listening(owner, id).await? else {
        return Ok(());
    };
    let now = cx.clock.now();
    if listening.at > now {
        return Ok(());
    }
    let Some(found) = cx.store.channel(owner, id).await?.filter(|found| found.value.replies.is_some()) else {
        let _ = cx.store.write_all(vec![Store::not_listening_write(owner, id)]).await?;
        return Ok(());
    };
    let heard = match found.value.state {
        ChannelState::Enabled => hear(cx, owner, &found.value, &mut listening.next).await?,
        _ => Ok(AGAIN),
    };
    let (after, why) = match heard {
        Ok(after) => (after, None),
        Err(Failed { why, .. }) => (AGAIN, Some(short_line(&why, MAX_WHY))),
    };
    listening.at = now.saturating_add(after).unwrap_or(Timestamp::MAX);
    let mut writes = vec![Store::listening_write(owner, &listening, version)?];
    if found.value.replies.as_ref().is_some_and(|replies| replies.why != why) {
        let channel = StoredChannel { replies: Some(Replies { why }), ..found.value };
        writes.push(Store::channel_write(owner, &channel, found.version)?);
    }
    // If somebody has changed the channel meanwhile, it stays due.
    if cx.store.write_all(writes).await?.done() {
        due::dispatch_at(cx, &DueItem::replies(owner, id), Some(listening.at)).await;
    }
    Ok(())
}

/// Returns after which time to listen again.
async fn hear(
    cx: &Cx,
    owner: &Owner,
    channel: &StoredChannel,
    next: &mut i64,
) -> Result<std::result::Result<SignedDuration, Failed>> {
    let Channel::Telegram { token, chat_id } = opened(cx, owner, channel).await? else {
        return Err(Error::internal("a channel without a bot listens"));
    };
    let ears = Ears { cx, owner, channel: channel.channel_id, bot: Bot::new(cx, &token), chat_id: &chat_id };
    if let Some(address) = hook(cx, owner, channel.channel_id).await? {
        match ears.be_called(&address).await? {
            // It can't call this address, so the replies are fetched.
            Err(Failed { status: Some(400), .. }) => {}
            called => return Ok(called),
        }
    }
    ears.fetch(next).await
}

impl Ears<'_> {
    /// Lets Telegram send the replies. A bot that something else has connected is left alone.
    async fn be_called(&self, address: &str) -> Result<std::result::Result<SignedDuration, Failed>> {
        match telegram::receiver(self.cx, self.owner, self.channel, &self.bot).await? {
            Ok(Receiver::Channel { is_here: true }) => return Ok(Ok(CHECK)),
            Ok(Receiver::Channel { is_here: false } | Receiver::Nobody) => {}
            Ok(Receiver::Other) => return Ok(Err(taken())),
            Err(failed) => return Ok(Err(failed)),
        }
        let password = self.bot.password();
        let hook = json!({"url": address, "secret_token": password, "allowed_updates": ["message"], "max_connections": 1});
        Ok(self.bot.call("setWebhook", &hook).await.map(|_| CHECK))
    }

    /// Fetches the replies. `next` is the first one that was not read.
    async fn fetch(&self, next: &mut i64) -> Result<std::result::Result<SignedDuration, Failed>> {
        let ask = json!({"offset": *next, "limit": UPDATES, "timeout": 0, "allowed_updates": ["message"]});
        let updates = match self.bot.call("getUpdates", &ask).await {
            Ok(Value::Array(updates)) => updates,
            Ok(_) => {
                let why = "the server answers something that is no answer of a Bot API".to_owned();
                return Ok(Err(Failed { status: None, why }));
            }
            Err(failed) if failed.status == Some(409) => return Ok(Err(taken())),
            Err(failed) => return Ok(Err(failed)),
        };
        for update in updates {
            let id = update["update_id"].as_i64();
            self.receive(update).await?;
            // After a quiet week, Telegram begins with other numbers, which may be lower.
            *next = id.map_or(*next, |id| id.saturating_add(1));
        }
        Ok(Ok(EVERY))
    }

    /// Does what a reply says, once, and answers in the chat. What is no message of the person is ignored.
    async fn receive(&self, update: Value) -> Result<()> {
        let Ok(Update { update_id, message: Some(message) }) = serde_json::from_value(update) else {
            return Ok(());
        };
        if !message.is_of(self.chat_id) {
            return Ok(());
        }
        let site = &self.cx.config.notices.site;
        let links = site.api("/answers/");
        let told = match (message.text(), message.token(&links)) {
            (None, _) => Some("I can only read text.".to_owned()),
            (Some(text), Some(token)) => self.answered(update_id, token, text).await?,
            (Some(_), None) if message.answers_a_bot() => {
                Some(format!("That message can't be answered here. Lamplighter is at {}", site.api("/")))
            }
            // Every bot gets /start.
            (Some(text), None) if text.starts_with('/') => None,
            (Some(_), None) => Some(NOT_A_REPLY.to_owned()),
        };
        let Some(told) = told else { return Ok(()) };
        let answer = json!({
            "chat_id": self.chat_id, "text": told,
            "reply_parameters": {"message_id": message.message_id, "allow_sending_without_reply": true},
        });
        // What was done is done, also if nobody is told.
        if let Err(failed) = self.bot.call("sendMessage", &answer).await {
            tracing::warn!(why = failed.why, "a reply was not answered");
        }
        Ok(())
    }

    /// What the bot says to a reply. None if it was heard before.
    async fn answered(&self, update_id: i64, token: &str, text: &str) -> Result<Option<String>> {
        let (cx, owner, channel) = (self.cx, self.owner, self.channel);
        let key = format!("telegram/{channel}/{update_id}");
        let act =
            |once: Once| async move { answer_links::reply(cx, token, (owner, channel), &once, text).await };
        // The same number is the same update, also if Telegram has cut its text.
        let done = answer_links::once(cx, owner, (&key, "reply"), act).await;
        Ok(Some(match done {
            Ok(None) => return Ok(None),
            // A word that is also a command was an answer here.
            Ok(Some(Done::Answered)) if Words::of(text) != Words::Other => {
                format!("“{}” was sent as your answer.", short_line(text, 40))
            }
            Ok(Some(done)) => done.text().to_owned(),
            Err(Error::NotFound(_)) => "That message can't be answered any more.".to_owned(),
            Err(error @ (Error::Conflict { .. } | Error::Invalid(_))) => {
                format!("Not done: {}.", answer_links::in_plain_words(&error))
            }
            // It stays due, or Telegram sends it again.
            Err(error @ (Error::Store(_) | Error::Storage(_) | Error::Blob(_) | Error::Busy { .. })) => {
                return Err(error);
            }
            Err(error) => {
                tracing::warn!(cause = %error.causes(), "a reply failed");
                format!("Not done: {}.", error.detail())
            }
        }))
    }
}

fn taken() -> Failed {
    let why = "another program receives the replies of this bot: use a bot of its own for Lamplighter, or end the other connection";
    Failed { status: None, why: why.to_owned() }
}

/// An update that Telegram has sent. `password`: the one of its header.
///
/// # Errors
/// 404 if the platform has not made the token, if the channel hears no replies, or if the password is wrong.
pub async fn received(cx: &Cx, token: &str, password: Option<&str>, update: Value) -> Result<()> {
    let unknown = || Error::NotFound("channel");
    let (owner, id) = cx.provider_keys.replies_of_token(token).await?.ok_or_else(unknown)?;
    let channel = cx.store.channel(&owner, id).await?.ok_or_else(unknown)?.value;
    let hears = channel.state == ChannelState::Enabled && channel.replies.is_some();
    if !hears || cx.deletions.of(&cx.store, &owner, cx.clock.now()).await?.is_some() {
        return Err(unknown());
    }
    let Channel::Telegram { token, chat_id } = opened(cx, &owner, &channel).await? else {
        return Err(unknown());
    };
    let bot = Bot::new(cx, &token);
    // Hashes are compared, so the time of the comparison tells nothing about the password.
    let is_theirs = |given: &str| Sha256::digest(given) == Sha256::digest(bot.password());
    if !password.is_some_and(is_theirs) {
        return Err(unknown());
    }
    Ears { cx, owner: &owner, channel: id, bot, chat_id: &chat_id }.receive(update).await
}
