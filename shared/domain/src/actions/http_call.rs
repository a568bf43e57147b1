//! An action without a model: at its due time, one HTTP request is sent.
//!
//! - [`HttpCall`] and [`HttpCall::check`]: what a person asks for, and its limits
//! - [`judge`]: what an answer means for the run
//! - [`Sent`]: what a run tells about its tries
//!
//! All functions are pure. `shared` sends the request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::reach::{self, Policy};
use crate::secrets::masks::Masks;
use crate::secrets::signature::InvalidSecret;
use crate::secrets::{SecretName, SecretTerms, is_printable};
use crate::validate::FieldErrors;

/// The longest address, in bytes.
pub const MAX_URL: usize = 2_000;

/// The longest body, in bytes.
pub const MAX_BODY: usize = 16 * 1024;

/// How many headers a call may have, with those that hold a secret.
pub const MAX_HEADERS: usize = 10;

/// The longest name and the longest value of a header, in bytes.
const MAX_HEADER_NAME: usize = 64;
const MAX_HEADER_VALUE: usize = 1_000;

/// The longest text before a secret, in bytes.
const MAX_PREFIX: usize = 64;

/// How much of an answer is kept, in bytes.
pub const MAX_ANSWER: usize = 2_048;

/// How many tries a run keeps.
const MAX_TRIES: usize = 10;

/// The longest wait that a server may ask for.
pub const LONGEST_WAIT: SignedDuration = SignedDuration::from_hours(1);

/// The longest time for a report, in minutes.
pub const MAX_REPORT_MINUTES: u16 = 1_440;

/// The header that names where to report. Only requests that expect a report have it.
pub const REPORT_TO: &str = "lamplighter-report-to";

/// Headers whose values are secret.
const SECRET_HEADERS: [&str; 2] = ["authorization", "cookie"];

/// Headers that the platform sets, or that belong to the connection.
const REFUSED_HEADERS: [&str; 21] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    REPORT_TO,
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

/// The request that an action sends at its due time. No model is asked, and no tokens are paid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpCall {
    /// An `https` address of a public host at port 443, at most 2,000 bytes, without a user name. Everybody who may read the action sees it.
    #[schema(max_length = 2_000, example = "https://example.com/hooks/report")]
    pub url: String,
    /// Default: `POST`.
    #[serde(default)]
    pub method: CallMethod,
    /// Text, at most 16,384 bytes, which is sent as it is. A JSON object or list is kept as its text. `GET` and `DELETE` have no body.
    #[serde(default, deserialize_with = "text_of_body", skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 16_384, example = "{\"report\":\"daily\"}")]
    pub body: Option<String>,
    /// At most 10 headers. They are not secret: everybody who may read the action sees them. Without `Content-Type`, a body that is JSON is
    /// sent as `application/json`, and another one as `text/plain; charset=utf-8`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(example = json!({"X-Team": "shop"}))]
    pub headers: BTreeMap<String, String>,
    /// Headers whose value is a secret of the account. With `headers`, at most 10. `Authorization` and `Cookie` are possible only here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(example = json!({"Authorization": {"secret": "github", "prefix": "Bearer "}}))]
    pub secret_headers: BTreeMap<String, SecretHeader>,
    /// The secret of the account that signs the request (Standard Webhooks), as `webhook-signature`. Its value is `whsec_` and the base64
    /// of 24 to 64 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "deploy-hook")]
    pub sign_with: Option<SecretName>,
    /// Within how many minutes after it has accepted the request the server must report, from 1 to 1,440, with `POST
    /// /runs/{run_id}/report`. Until then the run is `running`. Without a report it fails with `no_report`. Absent: no report is
    /// expected, and the run has succeeded when the server accepts the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_440, example = 30)]
    pub expect_report_within_minutes: Option<u16>,
}

/// A header whose value is a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretHeader {
    /// The name of the secret. Its value is read when the request is sent.
    #[schema(value_type = String, min_length = 1, max_length = 64, example = "github")]
    pub secret: SecretName,
    /// What comes before the secret, such as `Bearer ` with its space: at most 64 bytes of printable ASCII.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(max_length = 64, example = "Bearer ")]
    pub prefix: String,
}

/// The method of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum CallMethod {
    #[default]
    Post,
    Put,
    Patch,
    Get,
    Delete,
}

impl CallMethod {
    /// As in a request.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Get => "GET",
            Self::Delete => "DELETE",
        }
    }

    const fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// Text stays as it is. A JSON object or list becomes its text, so that what is stored is what is sent.
fn text_of_body<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    use serde::de::Error;
    match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(value @ (Value::Object(_) | Value::Array(_))) => Ok(Some(value.to_string())),
        Some(Value::Bool(_) | Value::Number(_)) => {
            Err(D::Error::custom("must be text, or a JSON object or list"))
        }
    }
}

impl HttpCall {
    /// Checks what a person has written. The errors name fields such as `url`. Whether the host may be reached is not known here.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if self.url.is_empty() {
            errors.add("url", "is required");
        } else if self.url.len() > MAX_URL {
            errors.add("url", format!("must be at most {MAX_URL} bytes, is {}", self.url.len()));
        } else if self.url.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
            errors.add("url", "must not have control characters or white space");
        }
        match &self.body {
            Some(_) if !self.method.has_body() => {
                errors.add("body", format!("a request with {} has no body", self.method.as_str()));
            }
            Some(body) if body.len() > MAX_BODY => {
                errors.add("body", format!("must be at most {MAX_BODY} bytes, is {}", body.len()));
            }
            _ => {}
        }
        self.check_headers(&mut errors);
        if let Some(minutes) = self.expect_report_within_minutes
            && !(1..=MAX_REPORT_MINUTES).contains(&minutes)
        {
            let told = format!("must be 1 to {MAX_REPORT_MINUTES}, is {minutes}");
            errors.add("expect_report_within_minutes", told);
        }
        errors.into_result(())
    }

    fn check_headers(&self, errors: &mut FieldErrors) {
        let found = self.headers.len() + self.secret_headers.len();
        if found > MAX_HEADERS {
            let and_secret = if self.secret_headers.is_empty() { "" } else { " with `secret_headers`" };
            errors
                .add("headers", format!("must have at most {MAX_HEADERS} headers{and_secret}, has {found}"));
            return;
        }
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in &self.headers {
            let wrong = if SECRET_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                Some("can't be set, because headers are not secret: use `secret_headers`".to_owned())
            } else {
                wrong_name(name, &seen).or_else(|| wrong_value(value))
            };
            wrong.into_iter().for_each(|told| errors.add(format!("headers.{}", shown(name)), told));
            seen.push(name.to_ascii_lowercase());
        }
        for (name, header) in &self.secret_headers {
            let wrong = wrong_name(name, &seen).or_else(|| wrong_prefix(&header.prefix));
            wrong.into_iter().for_each(|told| errors.add(secret_field(name), told));
            seen.push(name.to_ascii_lowercase());
        }
    }

    /// The secrets that it uses, each with the field that names it and what the field does with it.
    pub fn secrets(&self) -> impl Iterator<Item = (String, &SecretName, SecretUse)> {
        let of_headers = self.secret_headers.iter();
        let of_headers =
            of_headers.map(|(name, header)| (secret_field(name), &header.secret, SecretUse::Header));
        of_headers
            .chain(self.sign_with.iter().map(|name| ("sign_with".to_owned(), name, SecretUse::Signature)))
    }

    /// The names of the secrets that it uses, each once.
    #[must_use]
    pub fn secret_names(&self) -> BTreeSet<&SecretName> {
        self.secrets().map(|(_, name, _)| name).collect()
    }

    /// What is wrong with the secrets that it uses, each with its field. `known` gives the terms of a secret, or why there are none.
    pub fn refused_secrets<'a>(
        &self,
        known: impl Fn(&SecretName) -> Result<&'a SecretTerms, SecretProblem>,
    ) -> Vec<(String, RefusedSecret)> {
        let url = url::Url::parse(&self.url).ok();
        let host = url.as_ref().and_then(url::Url::host_str).unwrap_or_default();
        let refused = |name: &SecretName, use_| match known(name) {
            Err(problem) => Some(problem),
            Ok(terms) if !terms.hosts.contains(host) => Some(SecretProblem::Host),
            Ok(terms) if use_ == SecretUse::Signature && !terms.signs => Some(SecretProblem::Form),
            Ok(_) => None,
        };
        let all = self.secrets().filter_map(|(field, name, use_)| {
            let problem = refused(name, use_)?;
            Some((field, RefusedSecret { problem, secret: name.clone(), host: host.to_owned() }))
        });
        all.collect()
    }

    /// Checks that its address may be called: `https`, a public host, port 443. An address that the operator allows may be another one.
    ///
    /// # Errors
    /// What is wrong, as it follows `call.url`.
    pub fn check_address(&self, policy: &Policy) -> Result<(), String> {
        let checked = reach::check_https(&self.url, policy)?;
        if !checked.is_allowed() && checked.url().port_or_known_default() != Some(443) {
            return Err("must have the port 443".to_owned());
        }
        Ok(())
    }

    /// How long after it has accepted the request the server may take to report, if it must.
    #[must_use]
    pub fn report_within(&self) -> Option<SignedDuration> {
        self.expect_report_within_minutes.map(|minutes| SignedDuration::from_mins(i64::from(minutes)))
    }

    /// The headers that describe the body and those that a person has named, with names in lower case.
    #[must_use]
    pub fn own_headers(&self) -> Vec<(String, String)> {
        let mut headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
        if let Some(body) = &self.body
            && headers.iter().all(|(name, _)| name != "content-type")
        {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok();
            let kind = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
            headers.push(("content-type".to_owned(), kind.to_owned()));
        }
        headers
    }

    /// What is called, in a sentence: the method and the server. The path may be long, or known to few.
    #[must_use]
    pub fn name(&self) -> String {
        let server = url::Url::parse(&self.url).ok().and_then(|url| {
            let host = url.host_str()?;
            Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
        });
        format!("{} {}", self.method.as_str(), server.as_deref().unwrap_or("the address"))
    }
}

/// A name of a header as errors show it.
fn shown(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(MAX_HEADER_NAME).collect()
}

fn secret_field(name: &str) -> String {
    format!("secret_headers.{}", shown(name))
}

/// What is wrong with the name of a header. `seen` are the names before it, in lower case.
fn wrong_name(name: &str, seen: &[String]) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    if !is_token(name) {
        Some(format!("the name must be 1 to {MAX_HEADER_NAME} letters, digits or hyphens"))
    } else if REFUSED_HEADERS.contains(&lower.as_str()) {
        Some("can't be set: the platform or the connection sets it".to_owned())
    } else if seen.contains(&lower) {
        Some("is in the list twice".to_owned())
    } else {
        None
    }
}

fn wrong_value(value: &str) -> Option<String> {
    if value.len() > MAX_HEADER_VALUE {
        Some(format!("must be at most {MAX_HEADER_VALUE} bytes, is {}", value.len()))
    } else if value.trim() != value || !is_printable(value) {
        Some("must be printable ASCII, without spaces at its ends".to_owned())
    } else {
        None
    }
}

fn wrong_prefix(prefix: &str) -> Option<String> {
    if prefix.len() > MAX_PREFIX {
        Some(format!("`prefix` must be at most {MAX_PREFIX} bytes, is {}", prefix.len()))
    } else if prefix.starts_with(' ') || !is_printable(prefix) {
        Some("`prefix` must be printable ASCII, without a space at its beginning".to_owned())
    } else {
        None
    }
}

/// A name of a header that proxies and servers read alike.
fn is_token(name: &str) -> bool {
    (1..=MAX_HEADER_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// What a call does with a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretUse {
    Header,
    Signature,
}

/// A secret that a call can't use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedSecret {
    pub problem: SecretProblem,
    pub secret: SecretName,
    /// The host of the call.
    pub host: String,
}

/// Why a call can't use a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretProblem {
    Missing,
    /// The call goes to another host.
    Host,
    /// It can't sign.
    Form,
    /// It can't be decrypted.
    Unreadable,
}

impl SecretProblem {
    /// The code of a run that has failed because of it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Missing => "secret_missing",
            Self::Host => "secret_host",
            Self::Form => "secret_form",
            Self::Unreadable => "secret_unreadable",
        }
    }
}

/// As it follows the name of a field.
impl fmt::Display for RefusedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { problem, secret, host } = self;
        match problem {
            SecretProblem::Missing => write!(f, "there is no secret `{secret}`"),
            SecretProblem::Host => write!(f, "the secret `{secret}` may not be sent to {host}"),
            SecretProblem::Form => {
                write!(f, "the secret `{secret}` can't sign: its value {InvalidSecret}")
            }
            SecretProblem::Unreadable => {
                write!(f, "the secret `{secret}` can't be decrypted: store it again")
            }
        }
    }
}

/// What came back of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallAnswer {
    /// A status, and how long the server asks us to wait.
    Status { code: u16, retry_after: Option<SignedDuration> },
    /// No answer came: the network or the server failed.
    None,
    /// The request was refused before it was sent, or another try would end in the same way.
    Refused,
    /// It was not sent, because it can't use a secret.
    NoSecret(SecretProblem),
}

impl CallAnswer {
    /// The code of a run that fails because of this answer.
    #[must_use]
    pub const fn failure_code(self) -> &'static str {
        match self {
            Self::NoSecret(problem) => problem.code(),
            Self::Status { .. } | Self::None | Self::Refused => "call_failed",
        }
    }
}

/// What an answer means for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    Succeeded,
    /// Another try may succeed, not before this pause.
    Again(SignedDuration),
    Failed,
}

/// Judges an answer. The key of the call is the same in all tries, so a try whose result is unknown is repeated.
#[must_use]
pub fn judge(answer: CallAnswer) -> Judged {
    match answer {
        CallAnswer::Status { code: 200..=299, .. } => Judged::Succeeded,
        CallAnswer::Status { code: 408 | 425 | 429 | 500..=599, retry_after } => {
            let wait = retry_after.unwrap_or(SignedDuration::ZERO);
            Judged::Again(wait.clamp(SignedDuration::ZERO, LONGEST_WAIT))
        }
        CallAnswer::None => Judged::Again(SignedDuration::ZERO),
        CallAnswer::Status { .. } | CallAnswer::Refused | CallAnswer::NoSecret(_) => Judged::Failed,
    }
}

/// What a run of such an action has sent, and what came back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sent {
    /// The method and the server.
    #[schema(example = "POST example.com")]
    pub to: String,
    /// `Idempotency-Key` and `webhook-id` of the request: the same in all tries.
    pub key: String,
    /// How many tries have begun.
    pub attempts: u32,
    /// The newest 10 tries that have ended, oldest first.
    pub tries: Vec<Try>,
}

/// One try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Try {
    /// When it began.
    pub at: Timestamp,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// The status of the answer. Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 200)]
    pub status: Option<u16>,
    /// Why there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The first 2,048 bytes of the answer as text. The server has written it, so it may be false. `•••` stands for a secret of the request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub answer: String,
}

impl Sent {
    /// Adds a try that has ended.
    pub fn add(&mut self, tried: Try) {
        if self.tries.len() >= MAX_TRIES {
            self.tries.remove(0);
        }
        self.tries.push(tried);
    }
}

/// The beginning of an answer as text, without the secrets of the request.
#[must_use]
pub fn beginning(body: &[u8], secrets: &Masks) -> String {
    let mut text = String::from_utf8_lossy(&body[..body.len().min(MAX_ANSWER)]).into_owned();
    // Before secrets are searched: a control character within one would hide it from the search.
    text.retain(|letter| !letter.is_control() || matches!(letter, '\n' | '\t'));
    let mut text = secrets.hide(text);
    // A character that was cut is not shown, and a broken one may need more bytes than it had.
    text.truncate(text.floor_char_boundary(MAX_ANSWER));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(change: Value) -> HttpCall {
        let mut call = json!({"url": "https://example.com/hook"});
        call.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        serde_json::from_value(call).unwrap()
    }

    fn said(change: Value) -> String {
        call(change).check().map_or_else(|errors| errors.to_string(), |()| String::new())
    }

    #[test]
    fn refusals_name_the_field_and_its_limit() {
        let long = |n: usize| format!("https://a.com/{}", "a".repeat(n - 14));
        let eleven: BTreeMap<String, String> = (0..11).map(|n| (format!("x-{n}"), String::new())).collect();
        let ten: BTreeMap<&String, &String> = eleven.iter().take(10).collect();
        for (change, expected) in [
            (json!({}), ""),
            (json!({"url": long(2_000)}), ""),
            (json!({"url": ""}), "url: is required"),
            (json!({"url": long(2_001)}), "url: must be at most 2000 bytes, is 2001"),
            (json!({"url": "https://a.com/\n"}), "url: must not have control characters or white space"),
            (json!({"body": "é".repeat(8 * 1024)}), ""),
            (json!({"body": "a".repeat(16 * 1024 + 1)}), "body: must be at most 16384 bytes, is 16385"),
            (json!({"method": "GET", "body": ""}), "body: a request with GET has no body"),
            (json!({"method": "DELETE", "body": {}}), "body: a request with DELETE has no body"),
            (json!({"method": "PATCH", "body": [1], "headers": {"X-A": "1"}}), ""),
            (json!({"headers": eleven}), "headers: must have at most 10 headers, has 11"),
            (
                json!({"headers": {"a b": "1"}}),
                "headers.a b: the name must be 1 to 64 letters, digits or hyphens",
            ),
            (
                json!({"headers": {"AUTHORIZATION": "Bearer x"}}),
                "headers.AUTHORIZATION: can't be set, because headers are not secret: use `secret_headers`",
            ),
            (
                json!({"headers": {"Host": "b.com"}}),
                "headers.Host: can't be set: the platform or the connection sets it",
            ),
            (
                json!({"headers": {"X-A": "1\r\nX-B: 2"}}),
                "headers.X-A: must be printable ASCII, without spaces at its ends",
            ),
            (
                json!({"headers": {"X-A": "a".repeat(1_001)}}),
                "headers.X-A: must be at most 1000 bytes, is 1001",
            ),
            (json!({"headers": {"X-A": "1", "x-a": "2"}}), "headers.x-a: is in the list twice"),
            (
                json!({"headers": {"Lamplighter-Report-To": "https://b.com"}}),
                "headers.Lamplighter-Report-To: can't be set: the platform or the connection sets it",
            ),
            (json!({"secret_headers": {"Authorization": {"secret": "github", "prefix": "Bearer "}}}), ""),
            (json!({"secret_headers": {"cookie": {"secret": "a"}}, "sign_with": "b"}), ""),
            (
                json!({"headers": {"X-A": "1"}, "secret_headers": {"x-a": {"secret": "a"}}}),
                "secret_headers.x-a: is in the list twice",
            ),
            (
                json!({"secret_headers": {"Webhook-Signature": {"secret": "a"}}}),
                "secret_headers.Webhook-Signature: can't be set: the platform or the connection sets it",
            ),
            (
                json!({"secret_headers": {"X-A": {"secret": "a", "prefix": "b\r\nX-B: "}}}),
                "secret_headers.X-A: `prefix` must be printable ASCII, without a space at its beginning",
            ),
            (
                json!({"secret_headers": {"X-A": {"secret": "a", "prefix": "p".repeat(65)}}}),
                "secret_headers.X-A: `prefix` must be at most 64 bytes, is 65",
            ),
            (
                json!({"headers": ten, "secret_headers": {"Cookie": {"secret": "a"}}}),
                "headers: must have at most 10 headers with `secret_headers`, has 11",
            ),
            (json!({"expect_report_within_minutes": 1}), ""),
            (json!({"expect_report_within_minutes": 1_440}), ""),
            (
                json!({"expect_report_within_minutes": 0}),
                "expect_report_within_minutes: must be 1 to 1440, is 0",
            ),
            (
                json!({"expect_report_within_minutes": 1_441}),
                "expect_report_within_minutes: must be 1 to 1440, is 1441",
            ),
        ] {
            assert_eq!(said(change.clone()), expected, "{change}");
        }
        for wrong in [
            json!({"method": "TRACE"}),
            json!({"method": "post"}),
            json!({"body": 7}),
            json!({"secret": "x"}),
            json!({"sign_with": "Not a name"}),
            json!({"secret_headers": {"X-A": "text"}}),
            json!({"secret_headers": {"X-A": {"secret": "a", "value": "b"}}}),
        ] {
            let mut call = json!({"url": "https://a.com"});
            call.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
            assert!(serde_json::from_value::<HttpCall>(call).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_public_https_addresses_are_called() {
        let check = |url: &str| call(json!({"url": url})).check_address(&Policy::default());
        for good in ["https://example.com", "https://example.com:443/a?b=c", "https://1.1.1.1/"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "http://example.com",
            "http://example.com:443",
            "https://example.com:80",
            "https://example.com:8443",
            "https://user@example.com",
            "https://127.0.0.1",
            "https://2130706433",
            "https://0x7f.1",
            "https://127.1",
            "https://[::1]",
            "https://[::ffff:127.0.0.1]",
            "https://169.254.169.254/latest",
            "https://10.0.0.7",
            "https://localhost",
            "ftp://example.com",
            "javascript:alert(1)",
            "example.com",
            "",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        let policy = Policy { allowed_hosts: vec!["127.0.0.1:9".parse().unwrap()], ..Policy::default() };
        assert_eq!(call(json!({"url": "http://127.0.0.1:9/x"})).check_address(&policy), Ok(()));
        assert!(call(json!({"url": "http://127.0.0.1:8/x"})).check_address(&policy).is_err());
    }

    #[test]
    fn a_secret_goes_only_to_its_hosts() {
        let terms = |host: &str, signs| SecretTerms { hosts: [host.to_owned()].into(), signs };
        let (token, hook) = (terms("api.example.com", false), terms("api.example.com", true));
        let known = |name: &SecretName| match name.to_string().as_str() {
            "token" => Ok(&token),
            "hook" => Ok(&hook),
            _ => Err(SecretProblem::Missing),
        };
        let refused = |url: &str, secret: &str, sign_with: &str| {
            let header = json!({"Authorization": {"secret": secret}});
            let call = call(json!({"url": url, "secret_headers": header, "sign_with": sign_with}));
            let refused = call.refused_secrets(known);
            let told = |(field, refused): &(String, RefusedSecret)| {
                format!("{field}: {refused} ({})", refused.problem.code())
            };
            refused.iter().map(told).collect::<Vec<_>>()
        };
        assert_eq!(refused("https://API.example.com:443/x", "token", "hook"), [""; 0]);
        assert_eq!(refused("https://%61pi.example.com/x", "hook", "hook"), [""; 0]);
        for url in ["https://example.com/", "https://a.api.example.com/", "https://api.example.com.evil.com/"]
        {
            assert_eq!(refused(url, "token", "hook").len(), 2, "{url}");
        }
        assert_eq!(
            refused("https://example.com/", "token", "gone"),
            [
                "secret_headers.Authorization: the secret `token` may not be sent to example.com (secret_host)",
                "sign_with: there is no secret `gone` (secret_missing)",
            ]
        );
        assert_eq!(
            refused("https://api.example.com/", "token", "token"),
            [
                "sign_with: the secret `token` can't sign: its value must be `whsec_` and the base64 of 24 to 64 bytes (secret_form)"
            ]
        );
    }

    #[test]
    fn a_body_is_sent_as_it_is_stored() {
        let of = |change: Value| {
            let call = call(change);
            let kind = call.own_headers().into_iter().find(|(name, _)| name == "content-type");
            (call.body, kind.map(|(_, value)| value))
        };
        let json = Some("application/json".to_owned());
        let text = Some("text/plain; charset=utf-8".to_owned());
        assert_eq!(of(json!({})), (None, None));
        assert_eq!(of(json!({"body": null})), (None, None));
        assert_eq!(of(json!({"body": {"a": [1]}})), (Some("{\"a\":[1]}".to_owned()), json.clone()));
        assert_eq!(of(json!({"body": "{ \"a\": 1 }"})), (Some("{ \"a\": 1 }".to_owned()), json));
        assert_eq!(of(json!({"body": "hello"})), (Some("hello".to_owned()), text));
        assert_eq!(
            of(json!({"body": "<a/>", "headers": {"Content-Type": "text/xml"}})).1,
            Some("text/xml".to_owned())
        );
        let again: HttpCall = serde_json::from_value(json!(call(json!({"body": {"a": 1}})))).unwrap();
        assert_eq!(again, call(json!({"body": {"a": 1}})));
    }

    #[test]
    fn an_answer_decides() {
        let secs = SignedDuration::from_secs;
        let status = |code, retry_after| judge(CallAnswer::Status { code, retry_after });
        for code in [200, 202, 204, 299] {
            assert_eq!(status(code, None), Judged::Succeeded, "{code}");
        }
        for code in [408, 425, 429, 500, 502, 503, 599] {
            assert_eq!(status(code, None), Judged::Again(SignedDuration::ZERO), "{code}");
            assert_eq!(status(code, Some(secs(90))), Judged::Again(secs(90)), "{code}");
            assert_eq!(status(code, Some(secs(i64::MAX))), Judged::Again(LONGEST_WAIT), "{code}");
        }
        for code in [100, 199, 300, 301, 304, 307, 308, 400, 401, 403, 404, 409, 410, 422, 600, 999] {
            assert_eq!(status(code, Some(secs(1))), Judged::Failed, "{code}");
        }
        assert_eq!(judge(CallAnswer::None), Judged::Again(SignedDuration::ZERO));
        assert_eq!(judge(CallAnswer::Refused), Judged::Failed);
    }

    #[test]
    fn an_answer_is_kept_as_short_text() {
        let beginning = |body: &[u8]| beginning(body, &Masks::default());
        assert_eq!(beginning(b"ok\r\n\x00\x1b[1mbold"), "ok\n[1mbold");
        assert!(beginning("é".repeat(5_000).as_bytes()).len() <= MAX_ANSWER);
        assert!(beginning(&[0xff; 9_000]).len() <= MAX_ANSWER);
        let secrets = Masks::of(["quicksilver", "a"]);
        assert_eq!(super::beginning(b"quick\0silver!", &secrets), "•••!");
        let cut = ["b".repeat(MAX_ANSWER - 5), "quicksilver".to_owned()].concat();
        assert_eq!(
            super::beginning(cut.as_bytes(), &secrets),
            ["b".repeat(MAX_ANSWER - 5), "•".to_owned()].concat()
        );
        assert!(super::beginning(&[b'a'; 9_000], &secrets).len() <= MAX_ANSWER);
        let mut sent = Sent::default();
        for n in 0..30 {
            let (at, answer) = (Timestamp::UNIX_EPOCH, String::new());
            sent.add(Try { at, took_ms: n, status: Some(500), error: None, answer });
        }
        assert_eq!((sent.tries.len(), sent.tries[9].took_ms), (MAX_TRIES, 29));
    }
}
