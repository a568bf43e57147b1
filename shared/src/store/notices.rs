//! Notices: what happened, what of it was said, the channels, and the deliveries.
//!
//! What happened is stored in the transaction of the change that it is about. It is due at once, or after a while if it waits for a person.
//! So an executor plans it even if the process that stored it dies.

use domain::actions::Occurrence;
use domain::ids::{ActionId, ChannelId, DeliveryId, NoticeId, Owner, RunId};
use domain::notices::channels::ChannelKind;
use domain::notices::deliveries::DeliveryRecord;
use domain::notices::plan::{Event, NoticeState};
use domain::notices::waits::PATIENCE;
use domain::notices::{NoticeKey, Preferences};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::keys;
use super::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

/// How long a state is kept after its newest event.
const STATE_KEPT: SignedDuration = SignedDuration::from_hours(35 * 24);

/// How long an e-mail of the outbox is kept.
const MAIL_KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Something that happened and is to be planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happened {
    pub happened_id: NoticeId,
    /// When it happened. Of something that waits: when a person is told, if it still waits.
    pub at: Timestamp,
    pub event: Event,
}

/// The mark that a person is to be told of a run that has come to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Untold {
    action_id: ActionId,
    run_id: RunId,
}

/// A message that told a person of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ToldOf {
    message: NoticeId,
    channels: Vec<ChannelId>,
}

/// The mark that a digest is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestDue {
    pub date: Date,
}

/// The mark that everything is to be planned again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Again {
    at: Timestamp,
}

/// An encrypted text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedText {
    pub text: String,
    /// The number of the master key that encrypted it.
    pub master: u32,
}

/// What a person wants to be told, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPreferences {
    pub preferences: Preferences,
}

/// Whether messages go to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelState {
    /// Nothing is sent there until its code was given back. Only of an e-mail address.
    Unconfirmed,
    Enabled,
    /// A person has switched it off.
    Disabled,
    /// Its receiver is gone or has refused to be written to, so the platform has switched it off.
    Suspended,
}

/// A stored channel. Its address and the secret with which its messages are signed are encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredChannel {
    pub channel_id: ChannelId,
    pub kind: ChannelKind,
    /// Where it goes, without what is secret.
    pub target: String,
    pub state: ChannelState,
    /// Why it is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub created_at: Timestamp,
    /// The encrypted channel.
    pub sealed: SealedText,
    /// The encrypted secret of a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SealedText>,
    /// The secret before it. It signs, too, until `old_until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_secret: Option<SealedText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_until: Option<Timestamp>,
    /// The code that confirms the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<SentCode>,
    /// Whether replies in its chat come back. Only of Telegram.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies: Option<Replies>,
}

/// Replies in a chat with a bot come back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replies {
    /// Why they do not come back at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How far the replies in a chat with a bot were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    pub channel_id: ChannelId,
    /// The number of the first update that was not read.
    pub next: i64,
    /// When they are read again.
    pub at: Timestamp,
}

/// A code that was sent to an e-mail address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentCode {
    /// The code, encrypted.
    pub sealed: SealedText,
    pub works_until: Timestamp,
    /// How many wrong guesses there were.
    pub wrong: u32,
}

/// The record that every creation of a channel and every code replaces. So of concurrent ones one succeeds, and the others count again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelGuard {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<ChannelId>,
    /// When codes were sent in the last 24 hours.
    #[serde(default)]
    pub codes: Vec<Timestamp>,
}

/// When codes were sent to an address in the last 24 hours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CodesTo {
    at: Vec<Timestamp>,
}

/// An e-mail that was not sent, because the platform has no sender: the request that would have been made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Mail {
    pub delivery_id: DeliveryId,
    /// When it would have been sent.
    pub at: Timestamp,
    /// The body of the request to `POST /v2/email/outbound-emails` of Amazon SES.
    pub request: Value,
}

impl Store {
    /// What a person wants to be told; the defaults with version 0 if the person has said nothing.
    pub async fn preferences(&self, owner: &Owner) -> Result<Versioned<Preferences>, StoreError> {
        let found = self.get::<StoredPreferences>(&keys::preferences(owner)).await?;
        let found = found.unwrap_or(Versioned { value: StoredPreferences::default(), version: 0 });
        Ok(found.map(|stored| stored.preferences))
    }

    /// Stores preferences that were read at `version` (0: there were none). Everything is planned again with them.
    pub async fn replace_preferences(
        &self,
        owner: &Owner,
        preferences: &Preferences,
        version: u64,
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        let write = Self::preferences_write(owner, preferences, version)?;
        self.write_all(vec![write, Self::plan_again_write(owner, now)?]).await
    }

    /// The write of preferences over those that were read at `version` (0: there were none).
    pub fn preferences_write(
        owner: &Owner,
        preferences: &Preferences,
        version: u64,
    ) -> Result<Write, StoreError> {
        let written = item(&StoredPreferences { preferences: preferences.clone() }, &Extras::default())?;
        Ok(Write::over(keys::preferences(owner), version, written))
    }

    /// The write after which everything is planned again: after a change of preferences, channels or the time zone.
    pub fn plan_again_write(owner: &Owner, now: Timestamp) -> Result<Write, StoreError> {
        let item = item(&Again { at: now }, &due_of(owner, now))?;
        Ok(Write::Put { key: keys::notices_again(owner), item })
    }

    /// The version of the mark that everything is to be planned again, if there is one.
    pub async fn plan_again(&self, owner: &Owner) -> Result<Option<u64>, StoreError> {
        Ok(self.get::<Again>(&keys::notices_again(owner)).await?.map(|found| found.version))
    }

    /// Everything was planned again since the mark was read.
    pub async fn planned_again(&self, owner: &Owner, version: u64) -> Result<(), StoreError> {
        let _ = self.write_all(vec![Write::Remove { key: keys::notices_again(owner), version }]).await?;
        Ok(())
    }

    /// The write that marks an occurrence of which a person is to be told, for the transaction that brings it to rest. None if there is
    /// nothing to tell.
    pub fn untold_write(owner: &Owner, occurrence: &Occurrence) -> Result<Option<Write>, StoreError> {
        if occurrence.untold().is_none() {
            return Ok(None);
        }
        let Occurrence { action_id, run_id, .. } = *occurrence;
        let due = Some((keys::shard(run_id.uuid()), occurrence.rests_since()));
        let item = item(&Untold { action_id, run_id }, &Extras { due, ..Extras::default() })?;
        Ok(Some(Write::Put { key: keys::untold(owner, action_id, run_id), item }))
    }

    /// The write that forgets such a mark.
    #[must_use]
    pub fn told_write(owner: &Owner, action: ActionId, run: RunId) -> Write {
        Write::Delete { key: keys::untold(owner, action, run), must_exist: false }
    }

    /// The write of something that happened, for the transaction of the change that it is about. The same `id` is one event.
    pub fn happened_write(
        owner: &Owner,
        id: NoticeId,
        event: Event,
        now: Timestamp,
    ) -> Result<Write, StoreError> {
        let happened = Happened { happened_id: id, at: now, event };
        Ok(Write::Put { key: keys::happened(owner, id), item: item(&happened, &due_of(owner, now))? })
    }

    /// The write of something that waits for a person, for the transaction that makes it wait. It is planned when it has waited for
    /// [`PATIENCE`]. If it waits again before that, the time begins again: each key has one record.
    pub fn waits_write(owner: &Owner, event: Event, now: Timestamp) -> Result<Write, StoreError> {
        let at = now.saturating_add(PATIENCE).unwrap_or(Timestamp::MAX);
        Self::happened_write(owner, waits_id(&event), event, at)
    }

    /// The write that forgets what [`Self::waits_write`] noted, for the transaction that answers it. It saves a look: whether something
    /// still waits is read again before anything is said.
    #[must_use]
    pub fn answered_write(owner: &Owner, event: &Event) -> Write {
        Write::Delete { key: keys::happened(owner, waits_id(event)), must_exist: false }
    }

    /// What happened and is not planned yet, oldest first.
    pub async fn all_happened(&self, owner: &Owner) -> Result<Vec<Versioned<Happened>>, StoreError> {
        self.all_of(&keys::all_happened(owner)).await
    }

    /// The write that forgets what was planned.
    #[must_use]
    pub fn planned_write(owner: &Owner, happened: &Versioned<Happened>) -> Write {
        Write::Remove { key: keys::happened(owner, happened.value.happened_id), version: happened.version }
    }

    /// What was said of an owner's things.
    pub async fn notice_states(&self, owner: &Owner) -> Result<Vec<Versioned<NoticeState>>, StoreError> {
        self.all_of(&keys::notice_states(owner)).await
    }

    /// What was said of one thing.
    pub async fn notice_state(
        &self,
        owner: &Owner,
        key: &NoticeKey,
    ) -> Result<Option<Versioned<NoticeState>>, StoreError> {
        self.get(&keys::notice_state(owner, key)).await
    }

    /// What was said of an action.
    pub async fn notice_states_of(
        &self,
        owner: &Owner,
        action: ActionId,
    ) -> Result<Vec<Versioned<NoticeState>>, StoreError> {
        let prefix = keys::notice_states_of(action);
        let range = keys::notice_states(owner);
        self.all_after(&range, Some(prefix.clone()), |sk| sk.starts_with(&prefix)).await
    }

    /// The write of a state over the one that was read at `version` (0: there was none). A state with nothing left to say is deleted.
    pub fn notice_state_write(
        owner: &Owner,
        state: &NoticeState,
        version: u64,
        now: Timestamp,
    ) -> Result<Option<Write>, StoreError> {
        let key = keys::notice_state(owner, &state.key);
        if state.is_idle(now) {
            return Ok((version > 0).then_some(Write::Remove { key, version }));
        }
        let due = state.wake_at.map(|at| (keys::shard_of_owner(owner), at));
        let expires = Some(state.last_at.max(now).saturating_add(STATE_KEPT).unwrap_or(Timestamp::MAX));
        Ok(Some(Write::over(key, version, item(state, &Extras { expires, due })?)))
    }

    /// The write of the mark that the digest of a date is to be sent at `at`.
    pub fn digest_write(owner: &Owner, date: Date, at: Timestamp) -> Result<Write, StoreError> {
        let item = item(&DigestDue { date }, &due_of(owner, at))?;
        Ok(Write::Put { key: keys::notice_digest(owner, date), item })
    }

    /// The digests that are to be sent, oldest first.
    pub async fn digests(&self, owner: &Owner) -> Result<Vec<Versioned<DigestDue>>, StoreError> {
        self.all_of(&keys::notice_digests(owner)).await
    }

    /// The write that forgets a digest that was sent.
    #[must_use]
    pub fn sent_digest_write(owner: &Owner, digest: &Versioned<DigestDue>) -> Write {
        Write::Remove { key: keys::notice_digest(owner, digest.value.date), version: digest.version }
    }

    pub async fn channel(
        &self,
        owner: &Owner,
        id: ChannelId,
    ) -> Result<Option<Versioned<StoredChannel>>, StoreError> {
        self.get(&keys::channel(owner, id)).await
    }

    /// Oldest first.
    pub async fn channels(&self, owner: &Owner) -> Result<Vec<Versioned<StoredChannel>>, StoreError> {
        self.all_of(&keys::channels(owner)).await
    }

    /// What guards the limits of an owner's channels. It is read before anything is counted.
    pub async fn channel_guard(&self, owner: &Owner) -> Result<Versioned<ChannelGuard>, StoreError> {
        let found = self.get(&keys::channel_guard(owner)).await?;
        Ok(found.unwrap_or(Versioned { value: ChannelGuard::default(), version: 0 }))
    }

    /// The write of the guard over the one that was read.
    pub fn channel_guard_write(owner: &Owner, guard: &Versioned<ChannelGuard>) -> Result<Write, StoreError> {
        let item = item(&guard.value, &Extras::default())?;
        Ok(Write::over(keys::channel_guard(owner), guard.version, item))
    }

    /// When codes were sent to an address, by any account.
    pub async fn codes_to(&self, address: &str) -> Result<Versioned<Vec<Timestamp>>, StoreError> {
        let found = self.get::<CodesTo>(&keys::codes_to(&address.to_lowercase())).await?;
        let found = found.unwrap_or(Versioned { value: CodesTo::default(), version: 0 });
        Ok(found.map(|codes| codes.at))
    }

    /// The write of these times over those that were read.
    pub fn codes_to_write(
        address: &str,
        codes: &Versioned<Vec<Timestamp>>,
        expires: Timestamp,
    ) -> Result<Write, StoreError> {
        let item = item(&CodesTo { at: codes.value.clone() }, &Extras::expiring(expires))?;
        Ok(Write::over(keys::codes_to(&address.to_lowercase()), codes.version, item))
    }

    /// The write of a new channel.
    pub fn new_channel_write(owner: &Owner, channel: &StoredChannel) -> Result<Write, StoreError> {
        let key = keys::channel(owner, channel.channel_id);
        Ok(Write::Create { key, item: item(channel, &Extras::default())? })
    }

    /// The write of a channel over the one that was read at `version`.
    pub fn channel_write(owner: &Owner, channel: &StoredChannel, version: u64) -> Result<Write, StoreError> {
        let key = keys::channel(owner, channel.channel_id);
        Ok(Write::Replace { key, version, item: item(channel, &Extras::default())? })
    }

    /// Deletes a channel. It is refused if there is none.
    pub async fn delete_channel(&self, owner: &Owner, id: ChannelId) -> Result<Written, StoreError> {
        let channel = Write::Delete { key: keys::channel(owner, id), must_exist: true };
        self.write_all(vec![channel, Self::not_listening_write(owner, id)]).await
    }

    /// How far the replies of a channel were read.
    pub async fn listening(
        &self,
        owner: &Owner,
        id: ChannelId,
    ) -> Result<Option<Versioned<Listening>>, StoreError> {
        self.get(&keys::listening(owner, id)).await
    }

    /// The write of how far the replies were read, over the record that was read at `version` (0: there was none).
    pub fn listening_write(owner: &Owner, of: &Listening, version: u64) -> Result<Write, StoreError> {
        let due = Some((keys::shard(of.channel_id.uuid()), of.at));
        let item = item(of, &Extras { due, ..Extras::default() })?;
        Ok(Write::over(keys::listening(owner, of.channel_id), version, item))
    }

    /// The write that ends reading the replies of a channel.
    #[must_use]
    pub fn not_listening_write(owner: &Owner, id: ChannelId) -> Write {
        Write::Delete { key: keys::listening(owner, id), must_exist: false }
    }

    pub async fn delivery(
        &self,
        owner: &Owner,
        id: DeliveryId,
    ) -> Result<Option<Versioned<DeliveryRecord>>, StoreError> {
        self.get(&keys::delivery(owner, id)).await
    }

    /// Newest first, before the id `after`.
    pub async fn deliveries(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<DeliveryRecord>, StoreError> {
        self.query(&keys::deliveries(owner), after, limit, Order::Newest).await
    }

    /// The write that notes with a run that a message tells of it, for the transaction that stores the message.
    pub fn run_told_write(
        owner: &Owner,
        run: RunId,
        message: NoticeId,
        channels: Vec<ChannelId>,
    ) -> Result<Write, StoreError> {
        let kept = Extras::expiring(run.instant() + super::runs::LIFETIME);
        Ok(Write::Put {
            key: keys::run_told(owner, run, message),
            item: item(&ToldOf { message, channels }, &kept)?,
        })
    }

    /// The deliveries of the messages that told of a run.
    pub async fn deliveries_of_run(
        &self,
        owner: &Owner,
        run: RunId,
    ) -> Result<Vec<DeliveryRecord>, StoreError> {
        let tellings: Vec<Versioned<ToldOf>> = self.all_of(&keys::run_tellings(owner, run)).await?;
        let of = |told: ToldOf| {
            let key = move |channel| keys::delivery(owner, DeliveryId::of(told.message, channel));
            told.channels.into_iter().map(key).collect::<Vec<_>>()
        };
        let keys: Vec<_> = tellings.into_iter().flat_map(|told| of(told.value)).collect();
        self.get_many(&keys).await
    }

    /// The write of a delivery over the one that was read at `version` (0: it is new).
    pub fn delivery_write(
        owner: &Owner,
        delivery: &DeliveryRecord,
        version: u64,
    ) -> Result<Write, StoreError> {
        let due = delivery.next_at.map(|at| (keys::shard(delivery.delivery_id.uuid()), at));
        let extras = Extras { expires: Some(delivery.kept_until()), due };
        Ok(Write::over(keys::delivery(owner, delivery.delivery_id), version, item(delivery, &extras)?))
    }

    /// Stores an e-mail in the outbox. The same delivery is one e-mail.
    pub async fn put_mail(&self, owner: &Owner, mail: &Mail) -> Result<(), StoreError> {
        let expires = mail.at.saturating_add(MAIL_KEPT).unwrap_or(Timestamp::MAX);
        let item = item(mail, &Extras::expiring(expires))?;
        self.put(&keys::mail(owner, mail.delivery_id), item).await
    }

    /// The e-mails of the outbox, newest first.
    pub async fn mails(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Mail>, StoreError> {
        self.query(&keys::mails(owner), after, limit, Order::Newest).await
    }
}

/// The place in the index of something of which an owner has one at a time.
fn due_of(owner: &Owner, at: Timestamp) -> Extras {
    Extras { due: Some((keys::shard_of_owner(owner), at)), ..Extras::default() }
}

/// The id of the one record that says that this waits.
fn waits_id(event: &Event) -> NoticeId {
    NoticeId::of(&event.key.to_string(), Timestamp::UNIX_EPOCH)
}
