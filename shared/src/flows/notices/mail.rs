//! E-mails: sent through Amazon SES, or stored in the outbox.

use domain::ids::{DeliveryId, Owner};
use domain::notices::channels::Answer;
use domain::notices::render::Email;
use http::Method;
use serde_json::{Value, json};

use crate::aws::signed::Call;
use crate::config::MailConfig;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::store::notices::Mail;

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
                request: request(from, to, delivery, email),
            };
            cx.store.put_mail(owner, &mail).await?;
            Ok((Answer::Status { code: 200, retry_after: None }, String::new()))
        }
        MailConfig::Ses { from } => {
            let body = request(from, to, delivery, email);
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

/// The body of a request to `POST /v2/email/outbound-emails`. The tag names the delivery, so that events of SES can be told apart.
fn request(from: &str, to: &str, delivery: DeliveryId, email: &Email) -> Value {
    let text = |data: &str| json!({"Data": data, "Charset": "UTF-8"});
    let headers: Vec<Value> =
        email.headers.iter().map(|(name, value)| json!({"Name": name, "Value": value})).collect();
    json!({
        "FromEmailAddress": from,
        "Destination": {"ToAddresses": [to]},
        "Content": {"Simple": {
            "Subject": text(&email.subject),
            "Body": {"Text": text(&email.text), "Html": text(&email.html)},
            "Headers": headers,
        }},
        "EmailTags": [{"Name": "delivery", "Value": delivery.to_string()}],
    })
}
