//! The timers of the platform: schedules of EventBridge Scheduler.

use http::{Method, StatusCode};
use serde::Deserialize;

use super::signed::{Call, SignedCalls};

/// Whether the schedule with this name is enabled. A schedule that does not exist is not. `None` if nobody knows.
pub async fn is_enabled(calls: &SignedCalls, name: &str) -> Option<bool> {
    #[derive(Deserialize)]
    struct Schedule {
        #[serde(rename = "State")]
        state: String,
    }
    let config = calls.config();
    let endpoint = config.scheduler_endpoint.clone().unwrap_or_else(|| config.endpoint("scheduler"));
    let call = Call {
        method: Method::GET,
        service: "scheduler",
        url: &format!("{endpoint}/schedules/{name}"),
        content_type: "application/json",
        headers: &[],
        body: String::new(),
    };
    let cause = match calls.send(call).await {
        Ok(Ok((StatusCode::OK, body))) => match serde_json::from_slice::<Schedule>(&body) {
            Ok(schedule) => return Some(schedule.state == "ENABLED"),
            Err(error) => format!("the answer cannot be read: {error}"),
        },
        Ok(Ok((StatusCode::NOT_FOUND, _))) => return Some(false),
        Ok(Ok((status, _))) => format!("EventBridge Scheduler answered {status}"),
        Ok(Err(cause)) => cause,
        Err(error) => error.to_string(),
    };
    tracing::warn!(timer = name, cause, "a timer could not be read");
    None
}
