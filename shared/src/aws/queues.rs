//! SQS: a message that failed becomes visible again soon, and dead letters can be counted and moved back.
//!
//! A queue's visibility timeout is six times the function's timeout, because a message must stay hidden while a function
//! works on it. If a function crashes, its messages come back after that time. If a function reports a failure, nobody
//! works on the message any more, so the function itself makes it visible again after a short pause.

use std::time::Duration;

use aws_lambda_events::event::sqs::SqsMessage;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;

use crate::aws::{self, Lazy};

/// The pause after the first failure is twice this. It doubles with each failure.
const PAUSE: Duration = Duration::from_secs(10);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(900);

/// How long the call may take. Without a bound it could use up the invocation's time; Lambda would then deliver the whole
/// batch again, including the messages that succeeded.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The queues from which functions receive messages.
#[derive(Clone, Debug)]
pub struct Queues {
    client: Lazy<Client>,
}

/// One delivery of a message: what SQS needs to change its visibility.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    queue_url: String,
    receipt: String,
    /// 1 for the first delivery.
    receives: u32,
}

impl Delivery {
    /// `None` if the message does not come from a queue, as in a call made by hand.
    pub(crate) fn of(message: &SqsMessage) -> Option<Self> {
        let receives = message.attributes.get("ApproximateReceiveCount");
        Some(Self {
            queue_url: queue_url(message.event_source_arn.as_deref()?)?,
            receipt: message.receipt_handle.clone().filter(|receipt| !receipt.is_empty())?,
            receives: receives.and_then(|count| count.parse().ok()).unwrap_or(1),
        })
    }
}

impl Queues {
    #[must_use]
    pub fn new(client: Lazy<Client>) -> Self {
        Self { client }
    }

    /// Makes a failed message visible again after [`pause`]. If the call fails, the message comes back after the queue's
    /// visibility timeout.
    pub(crate) async fn retry_soon(&self, delivery: Delivery) {
        let Delivery { queue_url, receipt, receives } = delivery;
        let pause = pause(receives);
        let change = self
            .client
            .get()
            .change_message_visibility()
            .queue_url(queue_url)
            .receipt_handle(receipt)
            .visibility_timeout(i32::try_from(pause.as_secs()).unwrap_or(i32::MAX));
        match in_time(async { change.send().await.map_err(|error| aws::cause(&error)) }).await {
            Ok(_) => tracing::info!(receives, pause_s = pause.as_secs(), "message is retried"),
            Err(cause) => {
                tracing::warn!(cause, "could not make a failed message visible; it comes back later");
            }
        }
    }
}

/// The messages that could not be handled.
impl Queues {
    /// How many there are in the queue with this ARN. `None` if nobody knows.
    pub(crate) async fn dead_letters(&self, arn: &str) -> Option<u64> {
        let read = async {
            let name = QueueAttributeName::ApproximateNumberOfMessages;
            let url = queue_url(arn).ok_or("the ARN of the dead letters is not one of a queue")?;
            let asked = self.client.get().get_queue_attributes().queue_url(url).attribute_names(name.clone());
            let answer = asked.send().await.map_err(|error| aws::cause(&error))?;
            let count = answer.attributes().and_then(|of| of.get(&name)).and_then(|count| count.parse().ok());
            count.ok_or_else(|| "the answer has no number".to_owned())
        };
        in_time(read)
            .await
            .inspect_err(|cause| tracing::warn!(cause, "the dead letters could not be counted"))
            .ok()
    }

    /// Has SQS move all of them back, each into the queue from which it came. SQS refuses it while it does so already.
    pub(crate) async fn redrive(&self, arn: &str) {
        let moved = async {
            let asked = self.client.get().start_message_move_task().source_arn(arn);
            asked.send().await.map(|_| ()).map_err(|error| aws::cause(&error))
        };
        match in_time(moved).await {
            Ok(()) => tracing::info!("the watchdog has the dead letters moved back"),
            Err(cause) => tracing::warn!(cause, "the dead letters could not be moved back"),
        }
    }
}

async fn in_time<T>(call: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::time::timeout(TIMEOUT, call).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
}

/// How long a message stays hidden after it failed: 20 s after the first receive, then twice as long after each, at most
/// 15 minutes.
#[must_use]
pub fn pause(receives: u32) -> Duration {
    PAUSE.saturating_mul(1_u32.checked_shl(receives.max(1)).unwrap_or(u32::MAX)).min(LONGEST_PAUSE)
}

/// The URL of a queue. An event names only the queue's ARN: `arn:aws:sqs:REGION:ACCOUNT:NAME`.
fn queue_url(arn: &str) -> Option<String> {
    let mut parts = arn.split(':');
    let ("arn", partition, "sqs") = (parts.next()?, parts.next()?, parts.next()?) else { return None };
    let (region, account, name) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || [region, account, name].iter().any(|part| part.is_empty()) {
        return None;
    }
    let domain = if partition == "aws-cn" { "amazonaws.com.cn" } else { "amazonaws.com" };
    Some(format!("https://sqs.{region}.{domain}/{account}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let seconds = [0, 1, 2, 3, 4, 5, 6, 7, 31, 32, u32::MAX].map(|receives| pause(receives).as_secs());
        assert_eq!(seconds, [20, 20, 40, 80, 160, 320, 640, 900, 900, 900, 900]);
    }

    #[test]
    fn a_queue_is_addressed_by_its_arn() {
        for (arn, expected) in [
            (
                "arn:aws:sqs:eu-central-1:123456789012:due",
                Some("https://sqs.eu-central-1.amazonaws.com/123456789012/due"),
            ),
            ("arn:aws-cn:sqs:cn-north-1:1:due", Some("https://sqs.cn-north-1.amazonaws.com.cn/1/due")),
            ("arn:aws:sqs:eu-central-1:1:", None),
            ("arn:aws:sqs:eu-central-1:1:due:more", None),
            ("arn:aws:sns:eu-central-1:1:due", None),
            ("due", None),
            ("", None),
        ] {
            assert_eq!(queue_url(arn).as_deref(), expected, "{arn}");
        }
    }

    #[test]
    fn only_a_delivery_of_a_queue_is_retried() {
        let mut message = SqsMessage::default();
        assert_eq!(Delivery::of(&message), None);
        message.event_source_arn = Some("arn:aws:sqs:us-east-1:1:due".to_owned());
        assert_eq!(Delivery::of(&message), None);
        message.receipt_handle = Some("r".to_owned());
        assert_eq!(Delivery::of(&message).unwrap().receives, 1);
        message.attributes.insert("ApproximateReceiveCount".to_owned(), "4".to_owned());
        assert_eq!(Delivery::of(&message).unwrap().receives, 4);
    }
}
