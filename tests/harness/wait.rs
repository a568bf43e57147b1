//! Waits for what must happen.

use std::time::Duration;

/// Waits until `is_so` is true. There is no limit: how long it takes depends on how busy the machine is. Once a minute it prints what it
/// still waits for.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut pauses = 0_u32;
    while !is_so().await {
        tokio::time::sleep(PAUSE).await;
        pauses += 1;
        if pauses.is_multiple_of(3_000) {
            eprintln!("still waiting: {what}");
        }
    }
}
