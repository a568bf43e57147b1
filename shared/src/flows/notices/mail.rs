//! E-mails: sent through Amazon SES, or stored in the outbox.

use domain::ids::{DeliveryId, Owner};
use domain::notices::channels::Answer;
use domain::notices::deliveries::DeliveryState;
use domain::notices::mail_events::{MailEvent, MailFate, tags};
use domain::notices::render::Email;
use http::Method;
use serde_json::{Value, json};

pub use domain::notices::mail_events::is_of_mail;

use super::channels::suspend_writes;

use crate::aws::signed::Call;
use crate::config::MailConfig;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::background::due;
use crate::process::metrics;
use crate::store::notices::Mail;
use crate::store::{DueItem, Store, Tries};

/// Sends an e-mail. Returns the answer, and what went wrong, for a person.
///
/// # Errors
/// If the table does not answer.
pub(super) async fn send(
    cx: &Cx,
    owner: &Owner,
    delivery: DeliveryId,
    to: &str,
    email: &Email,
) -> Result<(Answer, String)> {
    match &cx.config.notices.mail {
        MailConfig::Off => Ok((Answer::None, "the operator has set no sender".to_owned())),
        MailConfig::Outbox { from } => {
            let mail = Mail {
                delivery_id: delivery,
                at: cx.clock.now(),
                request: request(from, to, None, &tags(owner, delivery), email),
            };
            cx.store.put_mail(owner, &mail).await?;
            Ok((Answer::Status { code: 200, retry_after: None }, String::new()))
        }
        MailConfig::Ses { from, configuration_set } => {
            let body = request(from, to, configuration_set.as_deref(), &tags(owner, delivery), email);
            let url = cx.config.aws.ses_endpoint.clone().unwrap_or_else(|| cx.config.aws.endpoint("email"));
            let call = Call {
                method: Method::POST,
                service: "ses",
                url: &format!("{url}/v2/email/outbound-emails"),
                content_type: "application/json",
                headers: &[],
                body: body.to_string(),
            };
            let sent = cx.signed.send(call).await.map_err(|error| Error::internal(error.to_string()))?;
            Ok(match sent {
                Ok((status, _)) => {
                    let code = status.as_u16();
                    (Answer::Status { code, retry_after: None }, format!("Amazon SES answered {code}"))
                }
                Err(cause) => (Answer::None, format!("Amazon SES can't be reached: {cause}")),
            })
        }
    }
}

/// The body of a request to `POST /v2/email/outbound-emails`. What SES tells later of the e-mail, it tells with its tags, see [`take`].
fn request(
    from: &str,
    to: &str,
    configuration_set: Option<&str>,
    tags: &[(&'static str, String)],
    email: &Email,
) -> Value {
    let text = |data: &str| json!({"Data": data, "Charset": "UTF-8"});
    let headers: Vec<Value> =
        email.headers.iter().map(|(name, value)| json!({"Name": name, "Value": value})).collect();
    let tags: Vec<Value> = tags.iter().map(|(name, value)| json!({"Name": name, "Value": value})).collect();
    let mut request = json!({
        "FromEmailAddress": from,
        "Destination": {"ToAddresses": [to]},
        "Content": {"Simple": {
            "Subject": text(&email.subject),
            "Body": {"Text": text(&email.text), "Html": text(&email.html)},
            "Headers": headers,
        }},
        "EmailTags": tags,
    });
    if let Some(name) = configuration_set {
        request["ConfigurationSetName"] = json!(name);
    }
    request
}

/// Takes what SES tells of an e-mail after it has accepted it. An e-mail that came back is undelivered. If its address takes none, or if
/// its reader has complained, no more are sent there until the person switches the channel on again.
///
/// # Errors
/// If the table does not answer. Then the event comes again.
pub async fn take(cx: &Cx, message: &Value) -> Result<()> {
    // SES tells more than the platform needs, and maybe of e-mails that others have sent.
    let Some(MailEvent { owner, delivery_id, what }) = MailEvent::read(message) else { return Ok(()) };
    let (came_back, is_over, why) = match what {
        MailFate::Bounced { permanent, why } => (true, permanent, why),
        MailFate::Complained => (false, true, "the reader has marked an e-mail as spam".to_owned()),
    };
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let now = cx.clock.now();
        let Some(delivery) = cx.store.delivery(&owner, delivery_id).await? else { return Ok(()) };
        let channel = cx.store.channel(&owner, delivery.value.channel_id).await?;
        let mut writes = match channel {
            Some(channel) if is_over => suspend_writes(&owner, channel, &why, now)?,
            _ => Vec::new(),
        };
        let switched_off = !writes.is_empty();
        let is_new = came_back && delivery.value.state != DeliveryState::Undelivered;
        if is_new {
            let dropped = delivery.value.dropped(&why, now);
            writes.push(Store::delivery_write(&owner, &dropped, delivery.version)?);
        }
        if writes.is_empty() {
            return Ok(());
        }
        if cx.store.write_all(writes).await?.done() {
            tracing::warn!(%delivery_id, came_back, switched_off, "an e-mail came back, or its reader has complained");
            if is_new {
                metrics::undelivered(now);
            }
            if switched_off {
                due::dispatch(cx, &DueItem::notices(&owner)).await;
            }
            return Ok(());
        }
    }
}
