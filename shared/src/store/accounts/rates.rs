//! Counters of requests, one for each caller, class and minute. They expire by themselves.

use std::time::Duration;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::ReturnValue;
use domain::accounts::rates::{RouteClass, Window};
use jiff::SignedDuration;

use crate::store::keys;
use crate::store::table::{Store, StoreError, number};

/// How long a counter is kept after its window. Clocks of other processes may be behind.
const KEPT: SignedDuration = SignedDuration::from_mins(10);

/// How long a request waits for its counter.
const PATIENCE: Duration = Duration::from_secs(1);

impl Store {
    /// Counts a request of `caller`. Returns how many there are in the window with this one, or `None` if there are
    /// `limit` already. It is one write, which is not tried again: a second try could count the request twice.
    pub async fn count_request(
        &self,
        caller: &str,
        class: RouteClass,
        window: Window,
        limit: u32,
    ) -> Result<Option<u32>, StoreError> {
        let key = keys::requests(caller, class, window);
        let once = aws_sdk_dynamodb::Config::builder()
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::builder().operation_timeout(PATIENCE).build());
        let counted = self
            .client
            .update_item()
            .table_name(&*self.table)
            .set_key(Some(crate::store::table::key_of(&key)))
            .update_expression("ADD #n :one SET #ttl = :ttl")
            .condition_expression("attribute_not_exists(#n) OR #n < :limit")
            .expression_attribute_names("#n", "requests")
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":limit", number(limit))
            .expression_attribute_values(":ttl", number((window.end() + KEPT).as_second()))
            .return_values(ReturnValue::UpdatedNew)
            .customize()
            .config_override(once)
            .send()
            .await;
        match counted {
            Ok(output) => {
                let count = output.attributes.as_ref().and_then(|item| item.get("requests")?.as_n().ok());
                Ok(Some(count.and_then(|n| n.parse().ok()).unwrap_or(limit)))
            }
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(None),
                _ => Err(crate::store::table::unavailable(&error)),
            },
        }
    }
}
