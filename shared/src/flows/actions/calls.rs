//! The calls of actions that ask no model: what is sent, and what came back.

use std::collections::BTreeMap;

use base::reach::{Ask, FetchError};
use bytes::Bytes;
use domain::actions::Action;
use domain::actions::http_call::{
    self, CallAnswer, CallMethod, HttpCall, REPORT_TO, RefusedSecret, SecretProblem, Try,
};
use domain::ids::Owner;
use domain::notices::channels;
use domain::secrets::SecretName;
use domain::secrets::masks::Masks;
use domain::secrets::signature::{self, SigningSecret};
use domain::validate::FieldErrors;
use futures::future::try_join_all;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::provider_keys;
use crate::store::OwnSecret;

/// Refuses an address that may not be called, and secrets that may not be sent there.
///
/// # Errors
/// 400 that names `call.url`, or each field with such a secret.
pub async fn check(cx: &Cx, owner: &Owner, action: &Action) -> Result<()> {
    let Some(call) = &action.call else { return Ok(()) };
    let mut errors = FieldErrors::default();
    if let Err(refused) = call.check_address(&cx.config.reach.policy) {
        errors.add("call.url", refused);
    } else {
        for (field, refused) in refused_secrets(cx, owner, call).await? {
            errors.add(format!("call.{field}"), refused.to_string());
        }
    }
    Ok(errors.into_result(())?)
}

/// The secrets that the call can't use, each with its field. No value is decrypted.
///
/// # Errors
/// If the table does not answer.
pub async fn refused_secrets(
    cx: &Cx,
    owner: &Owner,
    call: &HttpCall,
) -> Result<Vec<(String, RefusedSecret)>> {
    let stored = stored(cx, owner, call).await?;
    Ok(refused(call, &stored))
}

/// The secrets that a call uses, as they are stored.
type Stored = BTreeMap<SecretName, OwnSecret>;

async fn stored(cx: &Cx, owner: &Owner, call: &HttpCall) -> Result<Stored> {
    let reads = call.secret_names().into_iter().map(|name| cx.store.secret(owner, name));
    let found = try_join_all(reads).await?;
    Ok(found.into_iter().flatten().map(|found| (found.value.name.clone(), found.value)).collect())
}

fn refused(call: &HttpCall, stored: &Stored) -> Vec<(String, RefusedSecret)> {
    call.refused_secrets(|name| stored.get(name).map(|secret| &secret.terms).ok_or(SecretProblem::Missing))
}

/// The values of the secrets that a call uses.
type Values = BTreeMap<SecretName, SecretString>;

/// Why a request is not sent.
type NotSent = (String, CallAnswer);

/// Decrypts the secrets of a call, or says why it is not sent.
///
/// # Errors
/// If the table or the master keys do not answer.
async fn values(cx: &Cx, owner: &Owner, call: &HttpCall) -> Result<std::result::Result<Values, NotSent>> {
    if let Err(refused) = call.check_address(&cx.config.reach.policy) {
        return Ok(Err((format!("call.url {refused}"), CallAnswer::Refused)));
    }
    let not_sent = |(field, refused): (String, RefusedSecret)| {
        (format!("call.{field}: {refused}"), CallAnswer::NoSecret(refused.problem))
    };
    let mut stored = stored(cx, owner, call).await?;
    if let Some(refused) = refused(call, &stored).into_iter().next() {
        return Ok(Err(not_sent(refused)));
    }
    let mut values = Values::new();
    for (name, secret) in &stored {
        match cx.provider_keys.open_secret(owner, secret).await {
            Ok(value) => _ = values.insert(name.clone(), value),
            Err(error) if provider_keys::is_unreadable(&error) => {}
            Err(error) => return Err(error),
        }
    }
    stored.retain(|name, _| values.contains_key(name));
    let unreadable = call.refused_secrets(|name| {
        stored.get(name).map(|secret| &secret.terms).ok_or(SecretProblem::Unreadable)
    });
    Ok(unreadable.into_iter().next().map_or(Ok(values), |refused| Err(not_sent(refused))))
}

/// Where the server of a call reports. The key of a call is the id of its run.
fn report_path(key: &str) -> String {
    format!("/runs/{key}/report")
}

/// The request, with a key that is the same in all tries. `secrets` has all that the call uses.
///
/// # Errors
/// If a stored header or secret is invalid, which is a bug.
fn request(cx: &Cx, call: &HttpCall, secrets: &Values, key: &str, now: Timestamp) -> Result<Ask> {
    let mut headers = HeaderMap::new();
    let value_of = |name: &SecretName| {
        let value = secrets.get(name).map(ExposeSecret::expose_secret);
        value.ok_or_else(|| Error::internal("a secret of a call was not read"))
    };
    let platform = [
        ("user-agent", "Lamplighter".to_owned()),
        ("idempotency-key", key.to_owned()),
        ("webhook-id", key.to_owned()),
        ("webhook-timestamp", now.as_second().to_string()),
    ];
    let report_to = call.report_within().map(|_| (REPORT_TO, cx.config.notices.site.api(&report_path(key))));
    let signed = match &call.sign_with {
        None => None,
        Some(name) => {
            let secret = SigningSecret::parse(value_of(name)?)
                .map_err(|_| Error::internal("a secret of a call can't sign"))?;
            let body = call.body.as_deref().unwrap_or_default();
            Some(("webhook-signature", signature::sign(&secret, key, now, body.as_bytes())))
        }
    };
    let platform = platform.into_iter().chain(report_to).chain(signed);
    let platform = platform.map(|(name, value)| (name.to_owned(), value));
    for (name, header) in &call.secret_headers {
        let value = [&header.prefix, value_of(&header.secret)?].concat();
        let mut value = HeaderValue::try_from(value).map_err(|_| Error::internal("a secret is no header"))?;
        value.set_sensitive(true);
        headers.insert(header_name(name)?, value);
    }
    // The platform's headers come last, so that no other ones replace them.
    for (name, value) in call.own_headers().into_iter().chain(platform) {
        let value = HeaderValue::try_from(value).map_err(|error| Error::internal(error.to_string()))?;
        headers.insert(header_name(&name)?, value);
    }
    let method = match call.method {
        CallMethod::Post => Method::POST,
        CallMethod::Put => Method::PUT,
        CallMethod::Patch => Method::PATCH,
        CallMethod::Get => Method::GET,
        CallMethod::Delete => Method::DELETE,
    };
    let body = call.body.clone().map(Bytes::from);
    Ok(Ask { method, url: call.url.clone(), headers, body })
}

fn header_name(name: &str) -> Result<HeaderName> {
    HeaderName::try_from(name).map_err(|error| Error::internal(error.to_string()))
}

/// Sends one try.
///
/// # Errors
/// If the table or the master keys do not answer, or if a stored header is invalid. Then nothing was sent.
pub async fn send(cx: &Cx, owner: &Owner, call: &HttpCall, key: &str) -> Result<(Try, CallAnswer)> {
    let (at, began) = (cx.clock.now(), Instant::now());
    let (sent, masks) = match values(cx, owner, call).await? {
        Err(not_sent) => (Err(not_sent), Masks::default()),
        Ok(secrets) => {
            let ask = request(cx, call, &secrets, key, at)?;
            let sent = cx.caller().send_once(ask, http_call::MAX_ANSWER).await.map_err(|error| {
                let answer = match &error {
                    FetchError::TimedOut { .. } | FetchError::Failed { .. } => CallAnswer::None,
                    _ => CallAnswer::Refused,
                };
                // The message shows at most scheme, host and port.
                (error.to_string(), answer)
            });
            (sent, Masks::of(secrets.values().map(ExposeSecret::expose_secret)))
        }
    };
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(match sent {
        Ok(answer) => {
            let wait = answer.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
            let retry_after = wait.and_then(|value| channels::retry_after(value, cx.clock.now()));
            let code = answer.status.as_u16();
            let text = http_call::beginning(&answer.body, &masks);
            let tried = Try { at, took_ms, status: Some(code), error: None, answer: text };
            (tried, CallAnswer::Status { code, retry_after })
        }
        Err((error, answer)) => {
            (Try { at, took_ms, status: None, error: Some(error), answer: String::new() }, answer)
        }
    })
}
