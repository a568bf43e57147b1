//! The queue from which executors take due items.
//!
//! Due items go to the queue directly, because an EventBridge rule can't delay. The message group is the owner. So SQS
//! delivers the messages of quiet owners before those of an owner with many messages in flight ("fair queues").

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;

use crate::aws::{self, Lazy};
use crate::store::DueItem;

/// The AWS limit of messages per call.
pub const MESSAGES: usize = 10;

/// An item, and how long the queue delays it, in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    pub item: DueItem,
    pub delay_seconds: u16,
}

/// The executors' queue of this installation.
#[derive(Clone, Debug)]
pub struct DueQueue {
    client: Lazy<Client>,
    url: String,
}

impl DueQueue {
    #[must_use]
    pub fn new(client: Lazy<Client>, url: String) -> Self {
        Self { client, url }
    }

    /// Sends up to [`MESSAGES`] items. Returns the indexes of those that the queue did not accept. The causes are
    /// logged.
    pub async fn send(&self, dispatches: &[Dispatch]) -> Vec<usize> {
        debug_assert!(dispatches.len() <= MESSAGES);
        if dispatches.is_empty() {
            return Vec::new();
        }
        let sent = self
            .client
            .get()
            .send_message_batch()
            .queue_url(&self.url)
            .set_entries(Some(dispatches.iter().enumerate().map(entry).collect()))
            .send()
            .await;
        match sent {
            Ok(output) => {
                let failed = output.failed();
                if let Some(first) = failed.first() {
                    tracing::warn!(
                        cause = first.code(),
                        items = failed.len(),
                        "the queue did not accept all items"
                    );
                }
                failed.iter().filter_map(|failed| failed.id().parse().ok()).collect()
            }
            Err(error) => {
                let cause = aws::cause(&error);
                tracing::warn!(cause, items = dispatches.len(), "the queue did not accept the items");
                (0..dispatches.len()).collect()
            }
        }
    }
}

fn entry((at, Dispatch { item, delay_seconds }): (usize, &Dispatch)) -> SendMessageBatchRequestEntry {
    SendMessageBatchRequestEntry::builder()
        .id(at.to_string())
        .message_body(serde_json::to_string(item).expect("a struct of strings is always JSON"))
        .delay_seconds(i32::from(*delay_seconds))
        // Every owner is a valid message group: up to 128 letters, digits and punctuation marks.
        .message_group_id(item.owner.as_str())
        .build()
        .expect("an entry with an id and a body is whole")
}
