//! Calls of an address outside the platform, which notices if they stop. Services such as healthchecks.io offer such addresses.

use std::time::Duration;

use base::reach::Ask;
use url::Url;

use crate::context::Cx;
use crate::error::Result;

/// The time limit of a call. A timer's work is done by then, and a call that is lost only makes the service ask a person too early.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Does a timer's work and then tells `address` how it ended: with `/fail` at the end of the path if it has failed. The result of the call
/// has no effect on that of the work.
///
/// # Errors
/// Those of the work.
pub async fn after<T>(cx: &Cx, address: Option<&str>, work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = work.await;
    if let Some(address) = address
        && let Err(cause) = call(cx, address, done.is_ok()).await
    {
        // Without the address, which may be a secret.
        tracing::warn!(cause, "the ping of a timer did not arrive");
    }
    done
}

async fn call(cx: &Cx, address: &str, has_succeeded: bool) -> std::result::Result<(), String> {
    let mut url = Url::parse(address).map_err(|error| error.to_string())?;
    if !has_succeeded && let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push("fail");
    }
    let sent = cx.notifier().send_once(Ask::get(url), 0);
    let sent = tokio::time::timeout(TIMEOUT, sent).await.map_err(|_| "no answer in time")?;
    let status = sent.map_err(|error| error.to_string())?.status;
    if status.is_success() { Ok(()) } else { Err(format!("the answer was {status}")) }
}
