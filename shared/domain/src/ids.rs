//! All kinds of id in one list, and the owner that every key begins with.
//!
//! An id is a UUIDv7 with a prefix (`agt_0192f…`). Ids sort by creation time, and an id of another kind never parses.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Why a text is not a valid id. The message follows "failed to read the id: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be `{prefix}` followed by 32 lower-case hexadecimal digits")]
pub struct InvalidId {
    pub prefix: &'static str,
}

macro_rules! ids {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident($parameter:literal) = $prefix:literal $(or $word:literal for $fixed:expr)?;
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            #[must_use]
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            #[must_use]
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                $(if text == $word {
                    return Ok($fixed);
                })?
                parse_uuid(text, $prefix).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .description(Some(concat!($($doc),*).trim()))
                    .pattern(Some(concat!("^", $prefix, "[0-9a-f]{32}$" $(, "|^", $word, "$")?)))
                    .examples([concat!($prefix, "01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")])
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}

        /// The id as a part of a path.
        impl utoipa::IntoParams for $name {
            fn into_params(
                _: impl Fn() -> Option<utoipa::openapi::path::ParameterIn>,
            ) -> Vec<utoipa::openapi::path::Parameter> {
                let parameter = utoipa::openapi::path::ParameterBuilder::new()
                    .name($parameter)
                    .parameter_in(utoipa::openapi::path::ParameterIn::Path)
                    .required(utoipa::openapi::Required::True)
                    .schema(Some(utoipa::openapi::Ref::from_schema_name(stringify!($name))));
                vec![parameter.build()]
            }
        }
    )*};
}

// The type, its parameter in paths, and its prefix.
ids! {
    /// An agent: its goal, its instructions, and what it delivers.
    AgentId("agent_id") = "agt_";
    /// An action: work that an agent does later.
    ActionId("action_id") = "act_";
    /// An asset: a finished deliverable.
    AssetId("asset_id") = "ast_";
    /// A conversation.
    ChatId("chat_id") = "cht_";
    /// One message of a conversation.
    MessageId("message_id") = "msg_";
    /// One turn of a model, or one occurrence of an action.
    RunId("run_id") = "run_";
    /// A deliverable that waits for a person's approval.
    ProposalId("proposal_id") = "prp_";
    /// Edits of a theme that wait to be applied.
    ChangeSetId("change_set_id") = "chs_";
    /// A fact that memory has learned, or a line that a person has written into it.
    FactId("fact_id") = "fct_";
    /// What one synchronisation has learned from one conversation.
    BlockId("block_id") = "blk_";
    /// A card about work that was delegated or scheduled.
    CardId("card_id") = "crd_";
    /// One weekly clean-up of memory.
    TidyId("tidy_id") = "tdy_";
    /// A practice: a habit that a person tracks.
    PracticeId("practice_id") = "prc_";
    /// An API key (not its secret).
    ApiKeyId("key_id") = "key_";
    /// A project: a theme and what is known about the work on it. The word `default` names the project that always
    /// exists.
    ProjectId("project_id") = "prj_" or "default" for Self::DEFAULT;
    /// An import of a theme or of logs from an archive.
    ImportId("import_id") = "imp_";
    /// An export of an account.
    ExportId("export_id") = "exp_";
    /// The receipt of the deletion of an account. Whoever knows it may read the receipt, so it is random.
    ReceiptId("receipt_id") = "rcp_";
    /// A background job: what is to be done about one thing at one due time.
    JobId("job_id") = "job_";
    /// A schedule that something else runs, and that is watched.
    WatchedId("watched_id") = "wch_";
    /// A report about a run of a watched schedule.
    ReportId("report_id") = "rpt_";
    /// A synchronisation of the documents of a project.
    SyncId("sync_id") = "syn_";
    /// A notice to a person. It is the same in every try to deliver it.
    NoticeId("notice_id") = "ntc_";
    /// Where a person wants to be told.
    ChannelId("channel_id") = "chn_";
    /// The delivery of a message through a channel.
    DeliveryId("delivery_id") = "dlv_";
}

fn parse_uuid(text: &str, prefix: &'static str) -> Result<Uuid, InvalidId> {
    let digits = text.strip_prefix(prefix).ok_or(InvalidId { prefix })?;
    let canonical = digits.len() == 32 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !canonical {
        return Err(InvalidId { prefix });
    }
    Uuid::try_parse(digits).map_err(|_| InvalidId { prefix })
}

/// The milliseconds in the first 48 bits of an id.
fn millis_of(id: Uuid) -> u64 {
    let mut millis = [0u8; 8];
    millis[2..].copy_from_slice(&id.as_bytes()[..6]);
    u64::from_be_bytes(millis)
}

/// The instant in the first 48 bits of an id, to the millisecond.
#[must_use]
pub fn instant_of(id: Uuid) -> Timestamp {
    let millis = i64::try_from(millis_of(id)).unwrap_or_default();
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The id with this time, in milliseconds, whose other bits are a hash.
fn derived(millis: u64, hash: &[u8]) -> Uuid {
    let mut bytes = [0u8; 16];
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&hash[..10]);
    // Version 8 (vendor-defined) and the RFC 9562 variant, because the other bits are not random.
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Uuid::from_bytes(bytes)
}

impl RunId {
    /// The id of the occurrence of `action` that is due at `due`. It is always the same, so two concurrent sweeps
    /// create one occurrence. The first 48 bits are the due time in milliseconds, as in a UUIDv7; the rest is a hash.
    #[must_use]
    pub fn for_occurrence(action: ActionId, due: Timestamp) -> Self {
        let millis = due.as_millisecond().max(0) as u64;
        let hash = Sha256::new()
            .chain_update(b"occurrence\0")
            .chain_update(action.uuid().as_bytes())
            .chain_update(millis.to_be_bytes())
            .finalize();
        Self(derived(millis, &hash))
    }

    /// The instant in the id's first 48 bits. For an occurrence this is its due time, to the millisecond.
    #[must_use]
    pub fn instant(self) -> Timestamp {
        instant_of(self.0)
    }
}

impl JobId {
    /// The id of the job of this kind about `subject` that is due at `due`. It is always the same, so a job that is repeated has
    /// one record. It sorts by its due time.
    #[must_use]
    pub fn of(kind: &str, subject: &str, due: Timestamp) -> Self {
        let millis = due.as_millisecond().max(0) as u64;
        let hash = Sha256::new()
            .chain_update(b"job\0")
            .chain_update((kind.len() as u64).to_be_bytes())
            .chain_update(kind)
            .chain_update(subject)
            .chain_update([0])
            .chain_update(millis.to_be_bytes())
            .finalize();
        Self(derived(millis, &hash))
    }
}

impl NoticeId {
    /// The id of the notice about `key` that is said at `at`. It is always the same, so a notice that is stored again is not sent
    /// again.
    #[must_use]
    pub fn of(key: &str, at: Timestamp) -> Self {
        let millis = at.as_millisecond().max(0) as u64;
        let hash = Sha256::new()
            .chain_update(b"notice\0")
            .chain_update(key)
            .chain_update([0])
            .chain_update(at.as_nanosecond().to_be_bytes())
            .finalize();
        Self(derived(millis, &hash))
    }
}

impl DeliveryId {
    /// The id of the delivery of a message through a channel. It is always the same, so a message that is stored again is delivered
    /// once. It sorts by the time of the message.
    #[must_use]
    pub fn of(message: NoticeId, channel: ChannelId) -> Self {
        let hash = Sha256::new()
            .chain_update(b"delivery\0")
            .chain_update(message.uuid().as_bytes())
            .chain_update(channel.uuid().as_bytes())
            .finalize();
        Self(derived(millis_of(message.uuid()), &hash))
    }

    /// The last id that a delivery of a message of this time can have.
    #[must_use]
    pub fn last_at(at: Timestamp) -> Self {
        Self(derived(at.as_millisecond().max(0) as u64, &[0xff; 10]))
    }
}

impl ProjectId {
    /// The project that every owner has from the beginning. Keys begin with the owner, so all owners share this id.
    pub const DEFAULT: Self = Self(Uuid::nil());
}

impl ImportId {
    /// No import: the generation of files that were written one by one.
    pub const NONE: Self = Self(Uuid::nil());
}

impl Default for ImportId {
    fn default() -> Self {
        Self::NONE
    }
}

impl CardId {
    /// The id of a card about work that ended at this time. `random` tells it from others of the same time.
    #[must_use]
    pub fn at(at: Timestamp, random: Uuid) -> Self {
        let millis = at.as_millisecond().max(0) as u64;
        let mut bytes = *random.as_bytes();
        bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
        Self(Uuid::from_bytes(bytes))
    }

    /// The id of the card about the runs of an action in an hour.
    #[must_use]
    pub fn for_hour(action: ActionId, at: Timestamp) -> Self {
        let hour = at.as_second().max(0) as u64 / 3_600 * 3_600_000;
        let hash = Sha256::new()
            .chain_update(b"card\0")
            .chain_update(action.uuid().as_bytes())
            .chain_update(hour.to_be_bytes())
            .finalize();
        Self(derived(hour, &hash))
    }
}

impl AssetId {
    /// The id of output number `n` of a run. It is the same after every resume of the run, so each output is created
    /// once. It sorts by the run's time.
    #[must_use]
    pub fn for_output(run: RunId, n: u32) -> Self {
        let hash = Sha256::new()
            .chain_update(b"output\0")
            .chain_update(run.uuid().as_bytes())
            .chain_update(n.to_be_bytes())
            .finalize();
        Self(derived(millis_of(run.uuid()), &hash))
    }
}

/// The id of a call within its run: `3.0` is the first call of step 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// From 1.
    pub step: u32,
    /// The place of the call in the reply, from 0.
    pub at: u32,
}

impl CallId {
    #[must_use]
    pub fn new(step: u32, at: usize) -> Self {
        Self { step, at: u32::try_from(at).unwrap_or(u32::MAX) }
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.step, self.at)
    }
}

/// The text is not the id of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be two numbers with a dot between them")]
pub struct InvalidCallId;

impl FromStr for CallId {
    type Err = InvalidCallId;
    fn from_str(text: &str) -> Result<Self, InvalidCallId> {
        let (step, at) = text.split_once('.').ok_or(InvalidCallId)?;
        let id = Self {
            step: step.parse().map_err(|_| InvalidCallId)?,
            at: at.parse().map_err(|_| InvalidCallId)?,
        };
        // One id has one text: no signs and no leading zeros.
        if id.to_string() == text { Ok(id) } else { Err(InvalidCallId) }
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The owner of data. Every key in the table and in the bucket begins with the owner, and keys can only be built from
/// it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Owner(String);

/// The text is not a valid owner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an owner is 1 to 128 of the characters A-Z a-z 0-9 . _ | : @ + = , ~ - with a letter or digit among them"
)]
pub struct InvalidOwner;

/// What the owner of a subject begins with that can't name an owner itself.
const HASHED: &str = "sha256:";

impl Owner {
    /// # Errors
    /// [`InvalidOwner`] if the text has a character that could be mistaken for a separator in a key or a path.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidOwner> {
        let text = text.into();
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._|:@+=,~-".contains(&b);
        let valid = (1..=128).contains(&text.len())
            && text.bytes().all(allowed)
            && text.bytes().any(|b| b.is_ascii_alphanumeric());
        if valid { Ok(Self(text)) } else { Err(InvalidOwner) }
    }

    /// The owner for any subject: the subject itself if it is a valid owner, otherwise its hash.
    ///
    /// A subject that looks like such a hash is hashed too. So no subject is taken for the hash of another one.
    #[must_use]
    pub fn from_subject(subject: &str) -> Self {
        match Self::new(subject) {
            Ok(owner) if !owner.is_hash() => owner,
            _ => Self(format!("{HASHED}{}", crate::hex(&Sha256::digest(subject.as_bytes())))),
        }
    }

    /// Whether it has the form of a subject's hash.
    fn is_hash(&self) -> bool {
        let digits = self.0.strip_prefix(HASHED);
        digits.is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({})", self.0)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_of_a_call_has_one_text() {
        for text in ["1.0", "12.34", "4294967295.0"] {
            assert_eq!(text.parse::<CallId>().unwrap().to_string(), text);
        }
        for text in ["", ".", "1", "1.", ".1", "01.0", "1.00", "+1.0", "1.-0", "1.0.0", "4294967296.0", "a.b"]
        {
            assert_eq!(text.parse::<CallId>(), Err(InvalidCallId), "{text}");
        }
    }

    #[test]
    fn ids_parse_only_their_own_canonical_form() {
        let id = AgentId::from_uuid(Uuid::from_u128(0x0193_8f2a_7c5e_7d3a_9b1f_4c6d_8e0a_2b4c));
        assert_eq!(id.to_string(), "agt_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c");
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in [
            "",
            "agt_",
            "act_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c",
            "agt_01938F2A7C5E7D3A9B1F4C6D8E0A2B4C",
            "agt_01938f2a-7c5e-7d3a-9b1f-4c6d8e0a2b4c",
            "agt_01938f2a7c5e7d3a9b1f4c6d8e0a2b4",
            "agt_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c0",
            "agt_{01938f2a7c5e7d3a9b1f4c6d8e0a2b}",
        ] {
            assert_eq!(wrong.parse::<AgentId>(), Err(InvalidId { prefix: "agt_" }), "{wrong}");
        }
    }

    #[test]
    fn the_default_project_has_a_word() {
        assert_eq!("default".parse(), Ok(ProjectId::DEFAULT));
        assert_eq!(ProjectId::DEFAULT.to_string().parse(), Ok(ProjectId::DEFAULT));
        assert_eq!(serde_json::from_str::<ProjectId>("\"default\"").unwrap(), ProjectId::DEFAULT);
        assert!("default".parse::<ImportId>().is_err());
    }

    #[test]
    fn an_owner_never_holds_a_separator() {
        for good in ["local", "auth0|65f0", "a@b.example", "sha256:00"] {
            assert!(Owner::new(good).is_ok(), "{good}");
        }
        for bad in ["", "..", "a#b", "a/b", "a b", "a\\b", "a%b", "é", "a\nb", &"a".repeat(129)] {
            assert_eq!(Owner::new(bad), Err(InvalidOwner), "{bad:?}");
        }
        assert!(Owner::from_subject("system/a#b").as_str().starts_with("sha256:"));
        assert_eq!(Owner::from_subject("me").as_str(), "me");
        assert_eq!(Owner::from_subject("sha256:me").as_str(), "sha256:me");
    }

    #[test]
    fn no_subject_is_the_hash_of_another() {
        let victim = Owner::from_subject("system/a#b");
        for posing in [victim.as_str().to_owned(), victim.as_str().to_uppercase().replace("SHA256", "sha256")]
        {
            let owner = Owner::from_subject(&posing);
            assert_ne!(owner, victim);
            assert_ne!(owner.as_str(), posing);
            assert!(owner.is_hash());
            assert_ne!(Owner::from_subject(owner.as_str()), owner, "nor the hash of a hash");
        }
    }

    proptest! {
        #[test]
        fn an_occurrence_id_holds_its_due_time(uuid: u128, millis in 0i64..253_402_207_200_000) {
            let due = Timestamp::from_millisecond(millis).unwrap();
            let action = ActionId::from_uuid(Uuid::from_u128(uuid));
            let run = RunId::for_occurrence(action, due);
            prop_assert_eq!(run.instant(), due);
            prop_assert_eq!(run, RunId::for_occurrence(action, due));
            prop_assert_eq!(run.to_string().parse::<RunId>().unwrap(), run);
        }

        #[test]
        fn ids_sort_as_their_text(a: u128, b: u128) {
            let (a, b) = (RunId::from_uuid(Uuid::from_u128(a)), RunId::from_uuid(Uuid::from_u128(b)));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }
    }
}
