//! What Amazon SES tells of an e-mail after it has accepted it: it came back, or its reader has complained.
//!
//! SES publishes such an event on the default bus, as EventBridge describes it, and a rule sends it to the queue of the executors. The
//! tags of the e-mail name its owner and its delivery. Events are best effort: without one, nothing is known.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::ids::{DeliveryId, Owner};

/// The tags of an e-mail. SES accepts letters, digits, `_` and `-` in their values.
const OWNER: &str = "owner";
const DELIVERY: &str = "delivery";

/// What SES tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailEvent {
    pub owner: Owner,
    pub delivery_id: DeliveryId,
    pub what: MailFate,
}

/// What became of an e-mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailFate {
    /// It came back. `permanent`: the address takes no e-mails. `why`: what its server has said, for a person.
    Bounced { permanent: bool, why: String },
    /// Its reader has marked it as spam.
    Complained,
}

/// The tags with which an e-mail is sent, as names and values.
#[must_use]
pub fn tags(owner: &Owner, delivery: DeliveryId) -> [(&'static str, String); 2] {
    [(OWNER, URL_SAFE_NO_PAD.encode(owner.as_str())), (DELIVERY, delivery.to_string())]
}

/// Whether a message of the queue comes from SES.
#[must_use]
pub fn is_of_mail(message: &Value) -> bool {
    message["source"] == "aws.ses"
}

impl MailEvent {
    /// None if it is another kind of event, or about an e-mail that this platform has not sent.
    #[must_use]
    pub fn read(message: &Value) -> Option<Self> {
        let detail = &message["detail"];
        let tag = |name: &str| detail["mail"]["tags"][name][0].as_str();
        let owner = URL_SAFE_NO_PAD.decode(tag(OWNER)?).ok()?;
        let owner = Owner::new(String::from_utf8(owner).ok()?).ok()?;
        let delivery_id = tag(DELIVERY)?.parse().ok()?;
        let what = match detail["eventType"].as_str()? {
            "Bounce" => {
                let bounce = &detail["bounce"];
                let permanent = bounce["bounceType"] == "Permanent";
                let server = bounce["bouncedRecipients"][0]["diagnosticCode"].as_str();
                let of = if permanent { "the e-mail came back" } else { "the e-mail came back for now" };
                let why = server.map_or_else(|| of.to_owned(), |server| format!("{of}: {server}"));
                MailFate::Bounced { permanent, why }
            }
            "Complaint" => MailFate::Complained,
            _ => return None,
        };
        Some(Self { owner, delivery_id, what })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn event(kind: &str, more: Value, owner: &Owner, id: DeliveryId) -> Value {
        let tags: serde_json::Map<_, _> =
            tags(owner, id).into_iter().map(|(name, value)| (name.to_owned(), json!([value]))).collect();
        let mut detail = json!({"eventType": kind, "mail": {"messageId": "0100", "tags": tags}});
        detail.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"source": "aws.ses", "detail-type": "Email Bounced", "detail": detail})
    }

    #[test]
    fn an_event_names_its_e_mail_and_its_fate() {
        let owner = Owner::new("auth0|zoe+a=b~@example.com").unwrap();
        let id = DeliveryId::from_uuid(Uuid::from_u128(7));
        let bounce = |kind: &str| {
            json!({"bounce": {"bounceType": kind, "bouncedRecipients":
                [{"emailAddress": "a@b.example", "diagnosticCode": "smtp; 550 5.1.1 unknown"}]}})
        };
        let bounced = |permanent, why: &str| MailFate::Bounced { permanent, why: why.to_owned() };
        for (kind, more, expected) in [
            (
                "Bounce",
                bounce("Permanent"),
                Some(bounced(true, "the e-mail came back: smtp; 550 5.1.1 unknown")),
            ),
            (
                "Bounce",
                bounce("Transient"),
                Some(bounced(false, "the e-mail came back for now: smtp; 550 5.1.1 unknown")),
            ),
            (
                "Bounce",
                json!({"bounce": {"bounceType": "Undetermined"}}),
                Some(bounced(false, "the e-mail came back for now")),
            ),
            ("Bounce", json!({}), Some(bounced(false, "the e-mail came back for now"))),
            ("Complaint", json!({"complaint": {}}), Some(MailFate::Complained)),
            ("Delivery", json!({}), None),
        ] {
            let read = MailEvent::read(&event(kind, more, &owner, id));
            let expected = expected.map(|what| MailEvent { owner: owner.clone(), delivery_id: id, what });
            assert_eq!(read, expected, "{kind}");
        }
        for (_, value) in tags(&owner, id) {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            assert!(value.len() <= 256 && value.bytes().all(is_allowed), "{value}");
        }
    }

    #[test]
    fn what_is_not_ours_is_nothing() {
        let owner = Owner::new("me").unwrap();
        let good = event("Complaint", json!({}), &owner, DeliveryId::from_uuid(Uuid::from_u128(7)));
        assert!(is_of_mail(&good) && MailEvent::read(&good).is_some());
        for (name, value) in [
            ("owner", json!(["not base64!"])),
            ("owner", json!([])),
            ("owner", json!("bWU")),
            ("owner", json!([""])),
            ("delivery", json!(["dlv_7"])),
            ("delivery", json!(null)),
        ] {
            let mut event = good.clone();
            event["detail"]["mail"]["tags"][name] = value;
            assert_eq!(MailEvent::read(&event), None, "{event}");
        }
        for other in [json!(null), json!([]), json!({"source": "aws.s3"}), json!({"owner": "me"})] {
            assert!(!is_of_mail(&other) && MailEvent::read(&other).is_none(), "{other}");
        }
    }
}
