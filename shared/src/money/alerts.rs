//! Spending alerts: thresholds of a month's costs.
//!
//! After each run that cost something, the month's costs are compared with the thresholds. A conditional write notes each
//! threshold once per month. If a process dies before this, the end of the next run makes up for it. The event on the
//! bus is published after the note, so it is lost if the process dies in between; `GET /account` always has the note, and
//! the notice to the person is stored together with it.

use domain::accounts::quota::Month;
use domain::ids::Owner;
use domain::runs::RunKind;

use crate::aws::bus::{Event, SpendingAlert};
use crate::context::Cx;
use crate::error::Result;
use crate::process::metrics;
use crate::store::accounts::alerts::ReachedAlert;

/// Notes and publishes the thresholds that the costs of this month have reached. A failure is only logged: the next run
/// tries again.
pub async fn check(cx: &Cx, owner: &Owner, kind: RunKind) {
    if let Err(error) = try_check(cx, owner, kind).await {
        tracing::warn!(cause = %error.causes(), "spending alerts could not be checked");
    }
}

async fn try_check(cx: &Cx, owner: &Owner, kind: RunKind) -> Result<()> {
    let account = cx.store.account(owner).await?.value;
    let Some(lowest) = account.alerts.first() else { return Ok(()) };
    let now = cx.clock.now();
    let month = Month::at(now);
    let spent_micros = cx.store.month_spend(owner, month).await?;
    if spent_micros < lowest.month_micros {
        return Ok(());
    }
    let mut events = Vec::new();
    let known = cx.store.reached_alerts(owner, month).await?;
    for alert in account.alerts.iter().filter(|alert| alert.month_micros <= spent_micros) {
        let month_micros = alert.month_micros;
        if known.iter().any(|known| known.month_micros == month_micros) {
            continue;
        }
        let reached = ReachedAlert { month_micros, spent_micros, reached_at: now };
        if !cx.store.reach_alert(owner, month, &reached).await?.done() {
            // Another process was faster, and tells.
            continue;
        }
        let alert = SpendingAlert::new(owner.clone(), month.to_string(), month_micros, spent_micros);
        // On a person's own machine nobody listens to the bus. There this line is the message.
        tracing::warn!(
            month_micros,
            spent_micros,
            "the costs of {} are ${} and have reached the spending alert at ${}",
            alert.month,
            alert.spent_dollars,
            alert.month_dollars,
        );
        let function = match kind {
            RunKind::Setup => "agents",
            RunKind::Chat => "agent-chat",
            RunKind::Action | RunKind::Rehearsal => "scheduled-executor",
            RunKind::Theme | RunKind::Helper => "theme-chat",
        };
        metrics::emit(function, now, &[("SpendingAlerts", "Count", 1)]);
        events.push(Event::SpendingAlert(alert));
    }
    if !events.is_empty() {
        cx.bus.publish(&events).await?;
    }
    Ok(())
}
