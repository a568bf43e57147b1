//! Transactions.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::TransactWriteItem;
use futures::FutureExt;

use super::key::{Guard, Key};
use super::write::{Write, Written};
use super::{CONFLICT_TRIES, Store, StoreError, back_off, new_write_id, unavailable};

impl Store {
    /// Executes all of the writes or none. It does not mark the request's `Idempotency-Key`: the work of a request goes
    /// through [`Store::commit`].
    ///
    /// # Errors
    /// If the table does not answer, or if the transaction had too many conflicts.
    pub async fn write_all(&self, writes: Vec<Write>) -> Result<Written, StoreError> {
        let writes = match <[Write; 1]>::try_from(writes) {
            // A single item needs no transaction, which costs twice as much.
            Ok([Write::Create { key, item }]) => return self.create(&key, item).await,
            Ok([Write::Replace { key, version, item }]) => return self.replace(&key, version, item).await,
            Ok([other]) => vec![other],
            Err(writes) => writes,
        };
        let keys: Vec<Key> = writes.iter().map(|write| write.key().clone()).collect();
        self.forget(keys.iter());
        let written = self.transact(writes).boxed().await;
        self.forget_written(&written, keys.iter());
        written
    }

    async fn transact(&self, writes: Vec<Write>) -> Result<Written, StoreError> {
        let write = new_write_id();
        let guards: Vec<Guard> = writes.iter().map(Write::guard).collect();
        let items = writes.into_iter().map(|item| item.into_transact_item(&self.table, &write));
        let items: Vec<TransactWriteItem> = items
            .collect::<Result<_, _>>()
            .map_err(|error| StoreError::Invalid { cause: error.to_string() })?;
        for attempt in 0..CONFLICT_TRIES {
            let sent = self
                .client
                .transact_write_items()
                .set_transact_items(Some(items.clone()))
                .client_request_token(&write)
                .send()
                .await;
            let error = match sent {
                Ok(_) => return Ok(Written::Yes),
                Err(error) => error,
            };
            match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                    let codes =
                        || cancelled.cancellation_reasons().iter().map(|r| r.code().unwrap_or("None"));
                    if let Some(first) = codes().position(|code| code == "ConditionalCheckFailed") {
                        return Ok(Written::Refused(guards[first]));
                    }
                    if codes().any(|code| code == "ValidationError") {
                        return Err(StoreError::TooLarge);
                    }
                    back_off(attempt).await;
                }
                Some(TransactWriteItemsError::TransactionInProgressException(_)) => back_off(attempt).await,
                _ => return Err(unavailable(&error)),
            }
        }
        Err(StoreError::Contended)
    }
}
