//! Where notices go: the channels that a person configures, and when a delivery is tried again.
//!
//! The addresses of webhooks, of Slack and of Discord, the topics of ntfy, and all tokens are secrets: whoever knows them can write or read
//! there. So they are stored encrypted, and [`Channel::shown`] gives only their last four characters.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use crate::reach::{self, Policy, Reason, check_server, is_name};
use crate::validate::FieldErrors;

/// The longest address of a channel, in bytes.
pub const MAX_URL: usize = 2_000;

/// The longest e-mail address, in bytes (RFC 5321).
pub const MAX_EMAIL: usize = 254;

/// The server of ntfy that everybody may use.
pub const NTFY: &str = "https://ntfy.sh";

/// The longest token of ntfy or Gotify, in bytes.
const MAX_TOKEN: usize = 200;

/// The longest topic of ntfy, in bytes.
const MAX_TOPIC: usize = 64;

/// The ports of mail servers that take mail from people. Other ports only at hosts that the operator allows.
pub const MAIL_PORTS: [u16; 2] = [465, 587];

/// The longest user and password of a mail server, in bytes.
const MAX_LOGIN: usize = 500;

/// How long a delivery waits for an answer.
pub const TIMEOUT: SignedDuration = SignedDuration::from_secs(15);

/// The times before each try: the first is at once. After the tenth, nothing is tried any more.
pub const RETRIES: [SignedDuration; 10] = [
    SignedDuration::ZERO,
    SignedDuration::from_secs(5),
    SignedDuration::from_mins(5),
    SignedDuration::from_mins(30),
    SignedDuration::from_hours(2),
    SignedDuration::from_hours(5),
    SignedDuration::from_hours(10),
    SignedDuration::from_hours(14),
    SignedDuration::from_hours(20),
    SignedDuration::from_hours(24),
];

/// The longest time that a server may ask us to wait.
pub const LONGEST_WAIT: SignedDuration = SignedDuration::from_hours(24);

/// Where a person wants to be told.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Channel {
    Email {
        /// One address without a name, at most 254 bytes.
        #[schema(max_length = 254, example = "me@example.com")]
        to: String,
    },
    /// A server that verifies Standard Webhooks.
    Webhook {
        /// An `https` address of a public host, at most 2,000 bytes.
        #[schema(max_length = 2_000, example = "https://example.com/hooks/lamplighter")]
        url: String,
    },
    Slack {
        /// The address of an incoming webhook: `https://hooks.slack.com/services/…`.
        #[schema(max_length = 2_000)]
        url: String,
    },
    Discord {
        /// The address of a webhook: `https://discord.com/api/webhooks/…`.
        #[schema(max_length = 2_000)]
        url: String,
    },
    Telegram {
        /// The token of a bot.
        token: String,
        /// A number, or the name of a channel with `@`.
        chat_id: String,
    },
    Ntfy {
        /// The address of the server, without a path.
        #[serde(default = "ntfy")]
        #[schema(max_length = 2_000, example = "https://ntfy.sh")]
        url: String,
        /// It is a secret: whoever knows it may read the topic, unless the server protects it.
        #[schema(max_length = 64)]
        topic: String,
        /// The access token of an account that may write to the topic.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
    Gotify {
        /// The address of the server. It may have a path.
        #[schema(max_length = 2_000, example = "https://gotify.example.com")]
        url: String,
        /// The token of an application.
        token: String,
    },
    Smtp(MailServer),
}

/// How the connection to a mail server is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Security {
    /// From the first byte. The usual port is 465.
    #[default]
    Tls,
    /// With the command `STARTTLS`. Without it, nothing is sent. The usual port is 587.
    Starttls,
    /// Not at all. Only to a host that the operator allows.
    None,
}

impl Security {
    #[must_use]
    pub const fn usual_port(self) -> u16 {
        match self {
            Self::Tls => 465,
            Self::Starttls => 587,
            Self::None => 25,
        }
    }
}

/// A mail server of a person, and the address to which it sends.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MailServer {
    /// A name or an address.
    #[schema(max_length = 253, example = "smtp.example.com")]
    pub host: String,
    /// 465 or 587. At a host that the operator allows, also another one.
    pub port: u16,
    pub security: Security,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The sender, which the server must accept.
    #[schema(max_length = 254)]
    pub from: String,
    #[schema(max_length = 254)]
    pub to: String,
}

impl MailServer {
    fn validate(&self, errors: &mut FieldErrors, policy: &Policy) {
        for (field, address) in [("from", &self.from), ("to", &self.to)] {
            if let Err(message) = check_email(address) {
                errors.add(field, message);
            }
        }
        match check_server(&self.host, self.port, &MAIL_PORTS, policy) {
            Ok(server) if self.security == Security::None && !server.is_allowed() => {
                let told = "cannot be `none` for this host: everybody on the way could read the mail. The operator may allow it with \
                            LAMPLIGHTER_ALLOWED_HOSTS, as host:port";
                errors.add("security", told);
            }
            Ok(_) => {}
            Err(reason @ Reason::Port(_)) => errors.add("port", format!("must be 465 or 587: {reason}")),
            Err(reason) => errors.add("host", format!("must be a public mail server: {reason}")),
        }
        for (field, other, text) in [("user", &self.secret, &self.user), ("secret", &self.user, &self.secret)]
        {
            match text {
                None if other.is_some() => {
                    errors.add(field, "is required, because the other of `user` and `secret` is given");
                }
                Some(text)
                    if text.is_empty() || text.len() > MAX_LOGIN || text.chars().any(char::is_control) =>
                {
                    errors.add(field, format!("must be 1 to {MAX_LOGIN} bytes without control characters"));
                }
                _ => {}
            }
        }
    }
}

fn ntfy() -> String {
    NTFY.to_owned()
}

/// A kind of channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    Email,
    Webhook,
    Slack,
    Discord,
    Telegram,
    Ntfy,
    Gotify,
    Smtp,
}

impl ChannelKind {
    /// As people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Email => "e-mail",
            Self::Webhook => "webhook",
            Self::Slack => "Slack",
            Self::Discord => "Discord",
            Self::Telegram => "Telegram",
            Self::Ntfy => "ntfy",
            Self::Gotify => "Gotify",
            Self::Smtp => "mail server",
        }
    }
}

/// A channel as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ShownChannel {
    pub kind: ChannelKind,
    /// Where it goes, without what is secret.
    #[schema(example = "https://hooks.slack.com/…k3Xz")]
    pub target: String,
}

/// Without its secrets.
impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShownChannel { kind, target } = self.shown();
        write!(f, "{kind:?}({target})")
    }
}

impl Channel {
    #[must_use]
    pub const fn kind(&self) -> ChannelKind {
        match self {
            Self::Email { .. } => ChannelKind::Email,
            Self::Webhook { .. } => ChannelKind::Webhook,
            Self::Slack { .. } => ChannelKind::Slack,
            Self::Discord { .. } => ChannelKind::Discord,
            Self::Telegram { .. } => ChannelKind::Telegram,
            Self::Ntfy { .. } => ChannelKind::Ntfy,
            Self::Gotify { .. } => ChannelKind::Gotify,
            Self::Smtp(_) => ChannelKind::Smtp,
        }
    }

    /// What of it is secret.
    #[must_use]
    pub fn secrets(&self) -> Vec<&str> {
        match self {
            Self::Email { .. } => Vec::new(),
            Self::Webhook { url } | Self::Slack { url } | Self::Discord { url } => vec![url],
            Self::Telegram { token, .. } | Self::Gotify { token, .. } => vec![token],
            Self::Ntfy { topic, token, .. } => {
                [Some(topic), token.as_ref()].into_iter().flatten().map(String::as_str).collect()
            }
            Self::Smtp(server) => server.secret.as_deref().into_iter().collect(),
        }
    }

    /// The e-mail address that must be confirmed, because anybody can type the address of somebody else.
    #[must_use]
    pub fn confirmed(&self) -> Option<&str> {
        match self {
            Self::Email { to } | Self::Smtp(MailServer { to, .. }) => Some(to),
            Self::Webhook { .. }
            | Self::Slack { .. }
            | Self::Discord { .. }
            | Self::Telegram { .. }
            | Self::Ntfy { .. }
            | Self::Gotify { .. } => None,
        }
    }

    /// Where it goes, with the last four characters of what is secret.
    #[must_use]
    pub fn shown(&self) -> ShownChannel {
        let target = match self {
            Self::Email { to } => to.clone(),
            Self::Webhook { url } | Self::Slack { url } | Self::Discord { url } => {
                // The path and the query are secret, and the server is not.
                let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
                let path = path.map_or("", |(_, path)| path);
                format!("{}/…{}", server(url), tail(path))
            }
            Self::Telegram { token, chat_id } => format!("{chat_id} by the bot …{}", tail(token)),
            // A token does not say that the server protects the topic from other readers.
            Self::Ntfy { url, topic, token: None } => format!("{}/…{}", server(url), tail(topic)),
            Self::Ntfy { url, topic, token: Some(token) } => {
                format!("{}/…{} with the token …{}", server(url), tail(topic), tail(token))
            }
            Self::Smtp(MailServer { to, host, .. }) => format!("{to} via {host}"),
            Self::Gotify { url, token } => format!("{} with the token …{}", server(url), tail(token)),
        };
        ShownChannel { kind: self.kind(), target }
    }

    /// Checks what a person has written.
    ///
    /// # Errors
    /// Every invalid field, with its limit. No error repeats a secret.
    pub fn validate(&self, policy: &Policy) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        match self {
            Self::Email { to } => {
                if let Err(message) = check_email(to) {
                    errors.add("to", message);
                }
            }
            Self::Webhook { url } => {
                let _ = checked(&mut errors, url, policy);
            }
            Self::Slack { url } => {
                let is_hook = |url: &Url| {
                    let parts = segments(url);
                    url.host_str() == Some("hooks.slack.com")
                        && matches!(parts.as_slice(), ["services", a, b, c] if [a, b, c].iter().all(|part| is_word(part)))
                };
                if checked(&mut errors, url, policy).is_some_and(|url| !is_hook(&url)) {
                    errors.add("url", "must be https://hooks.slack.com/services/ and three more parts");
                }
            }
            Self::Discord { url } => {
                let is_hook = |url: &Url| {
                    let parts = segments(url);
                    matches!(url.host_str(), Some("discord.com" | "discordapp.com"))
                        && matches!(parts.as_slice(), ["api", "webhooks", id, token]
                            if id.bytes().all(|byte| byte.is_ascii_digit()) && is_word(id) && is_word(token))
                };
                if checked(&mut errors, url, policy).is_some_and(|url| !is_hook(&url)) {
                    errors.add("url", "must be https://discord.com/api/webhooks/ and two more parts");
                }
            }
            Self::Telegram { token, chat_id } => {
                if !is_token(token) {
                    errors.add(
                        "token",
                        "must be the token of a bot: digits, a colon, and 30 to 50 letters and digits",
                    );
                }
                if !is_chat(chat_id) {
                    errors.add(
                        "chat_id",
                        "must be a number of at most 20 digits, or @ and 5 to 32 letters and digits",
                    );
                }
            }
            Self::Ntfy { url, topic, token } => {
                if checked(&mut errors, url, policy)
                    .is_some_and(|url| url.path() != "/" || url.query().is_some())
                {
                    errors.add(
                        "url",
                        "must be the address of the server alone: the topic is a field of its own",
                    );
                }
                if topic.len() > MAX_TOPIC || !is_word(topic) {
                    errors.add("topic", "must be 1 to 64 letters, digits, - and _");
                }
                if token.as_ref().is_some_and(|token| !is_key(token)) {
                    errors.add("token", KEY);
                }
            }
            Self::Gotify { url, token } => {
                if checked(&mut errors, url, policy).is_some_and(|url| url.query().is_some()) {
                    errors.add("url", "must be the address of the server, without a query");
                }
                if !is_key(token) {
                    errors.add("token", KEY);
                }
            }
            Self::Smtp(server) => server.validate(&mut errors, policy),
        }
        errors.into_result(())
    }
}

/// Scheme, host and port of an address.
fn server(url: &str) -> String {
    Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
}

/// The end of a secret. Of a short one, nothing: the end would be most of it.
fn tail(secret: &str) -> &str {
    if secret.chars().count() < 16 {
        return "";
    }
    secret.char_indices().rev().nth(3).map_or("", |(at, _)| &secret[at..])
}

fn checked(errors: &mut FieldErrors, text: &str, policy: &Policy) -> Option<Url> {
    if text.len() > MAX_URL {
        errors.add("url", format!("must be at most {MAX_URL} bytes, is {}", text.len()));
        return None;
    }
    match reach::check_https(text, policy) {
        Ok(checked) => Some(checked.url().clone()),
        Err(told) => {
            errors.add("url", told);
            None
        }
    }
}

/// The parts of a path. Nothing may follow it.
fn segments(url: &Url) -> Vec<&str> {
    let is_plain = url.query().is_none() && url.port().is_none() && url.scheme() == "https";
    url.path_segments().filter(|_| is_plain).map(Iterator::collect).unwrap_or_default()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

const KEY: &str = "must be 1 to 200 letters, digits, - . and _";

/// Whether it may be a token of ntfy or Gotify. It goes into a header.
fn is_key(token: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (1..=MAX_TOKEN).contains(&token.len()) && token.bytes().all(is_part)
}

fn is_token(token: &str) -> bool {
    token.split_once(':').is_some_and(|(bot, secret)| {
        (6..=12).contains(&bot.len())
            && bot.bytes().all(|byte| byte.is_ascii_digit())
            && (30..=50).contains(&secret.len())
            && is_word(secret)
    })
}

fn is_chat(chat_id: &str) -> bool {
    let number = chat_id.strip_prefix('-').unwrap_or(chat_id);
    let is_number = (1..=20).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = chat_id.strip_prefix('@').is_some_and(|name| {
        (5..=32).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    is_number || is_name
}

/// Checks an e-mail address: one address as almost everybody has it, with no name, no comment, no quotes, and no characters outside of
/// ASCII.
///
/// # Errors
/// What is wrong, as it follows the name of a field.
pub fn check_email(to: &str) -> Result<(), String> {
    const EXPECTED: &str = "must be one e-mail address such as me@example.com, without a name";
    if to.len() > MAX_EMAIL {
        return Err(format!("must be at most {MAX_EMAIL} bytes, is {}", to.len()));
    }
    let (local, domain) = to.split_once('@').ok_or(EXPECTED)?;
    let is_atom = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&b))
    };
    if local.len() > 64 {
        return Err(format!("must have at most 64 bytes before the @, has {}", local.len()));
    }
    let has_hyphens_inside = domain.split('.').all(|label| !label.starts_with('-') && !label.ends_with('-'));
    // An end of digits would be an address of a machine.
    let has_end =
        domain.rsplit_once('.').is_some_and(|(_, end)| end.bytes().any(|b| b.is_ascii_alphabetic()));
    let is_domain = is_name(domain) && has_end && has_hyphens_inside && !domain.contains('_');
    if local.split('.').all(is_atom) && is_domain { Ok(()) } else { Err(EXPECTED.to_owned()) }
}

/// What a channel answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A status, and how long the server asks us to wait.
    Status { code: u16, retry_after: Option<SignedDuration> },
    /// No connection, or no answer in time.
    None,
    /// An e-mail could not be delivered. `is_permanent`: there is no such recipient.
    Bounced { is_permanent: bool },
    /// The recipient has called it spam.
    Complained,
    /// The mail server does not accept the user and the password, or wants some.
    Refused,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Done,
    /// It is tried again at this time.
    Again(Timestamp),
    /// The receiver is gone: nothing is sent to this channel any more, until a person enables it.
    Disable,
    /// The recipient of e-mail must not be written to, until a person confirms it again.
    Suspend,
    /// All tries are used up. It is shown as undelivered.
    GiveUp,
}

/// Decides what follows an answer. `tries`: how many tries there were, with this one.
#[must_use]
pub fn after(kind: ChannelKind, tries: usize, answer: Answer, now: Timestamp) -> Next {
    let wait = match answer {
        Answer::Status { code: 200..=299, .. } => return Next::Done,
        Answer::Status { code: 410, .. } | Answer::Refused => return Next::Disable,
        // They answer so when the webhook was deleted, or when a person has blocked the bot.
        Answer::Status { code: 404, .. } if matches!(kind, ChannelKind::Slack | ChannelKind::Discord) => {
            return Next::Disable;
        }
        // The token is not accepted. A 404 of ntfy or Gotify may come from a proxy in front of a server that restarts.
        Answer::Status { code: 401 | 403, .. }
            if matches!(kind, ChannelKind::Telegram | ChannelKind::Ntfy | ChannelKind::Gotify) =>
        {
            return Next::Disable;
        }
        Answer::Bounced { is_permanent: true } | Answer::Complained => return Next::Suspend,
        Answer::Status { retry_after, .. } => {
            retry_after.map_or(SignedDuration::ZERO, |wait| wait.clamp(SignedDuration::ZERO, LONGEST_WAIT))
        }
        Answer::None | Answer::Bounced { is_permanent: false } => SignedDuration::ZERO,
    };
    match RETRIES.get(tries.max(1)) {
        Some(pause) => Next::Again(now.saturating_add(wait.max(*pause)).unwrap_or(Timestamp::MAX)),
        None => Next::GiveUp,
    }
}

/// What a status means, for a person.
#[must_use]
pub fn in_words(kind: ChannelKind, code: u16) -> String {
    let token = match (kind, code) {
        (ChannelKind::Ntfy | ChannelKind::Gotify, 401 | 403) => {
            ": it takes no messages with this token, or without one"
        }
        _ => "",
    };
    format!("the receiver answered {code}{token}")
}

/// The header `Retry-After`: seconds, or a date.
#[must_use]
pub fn retry_after(header: &str, now: Timestamp) -> Option<SignedDuration> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that does not fit is a long time.
        return Some(SignedDuration::from_secs(header.parse().unwrap_or(i64::MAX)));
    }
    let at = jiff::fmt::rfc2822::parse(header).ok()?.timestamp();
    Some(at.duration_since(now).max(SignedDuration::ZERO))
}

#[cfg(test)]
#[path = "channels_tests.rs"]
mod tests;
