//! What the server of an action's call reports about a run.

use domain::actions::{Action, Occurrence, OccurrenceCommand};
use domain::ids::{Owner, RunId};
use domain::watched::witness::NewReport;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, OccurrenceView};
use crate::flows::background::due;
use crate::flows::executor::execute;
use crate::flows::memory::cards;
use crate::flows::{existing, notices};
use crate::store::{DueItem, Store, Tries, Versioned};

/// Stores a report, and ends the run if it waits for it. The first report of a run counts. A report that comes after the end of the run is
/// stored and changes nothing else. Reports are also taken while the account is stopped.
///
/// # Errors
/// 404 if the run does not exist; 400 with every invalid field; 409 if no report is expected of it.
pub async fn report(cx: &Cx, owner: &Owner, id: RunId, input: NewReport) -> Result<OccurrenceView> {
    let report = input.validate(cx.clock.now())?;
    let action_id = existing::run(cx, owner, id).await?.value.action_id.ok_or_else(not_expected)?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let (action, found) = tokio::try_join!(actions::load(cx, owner, action_id), async {
            Ok(cx.store.occurrence(owner, action_id, id).await?)
        })?;
        let found = found.filter(|found| expects_report(&action.value, &found.value));
        let Versioned { value: occurrence, version } = found.ok_or_else(not_expected)?;
        if occurrence.report.is_some() {
            return ended(cx, owner, occurrence).await;
        }
        let now = cx.clock.now();
        let reported = OccurrenceCommand::Reported { report: report.clone() };
        let next = occurrence.transition(reported, now).map_err(|_| not_expected())?;
        let ends = next.state.is_final() && !occurrence.state.is_final();
        let after = if ends { action.value.after(&next, now) } else { action.value.clone() };
        let writes = if ends {
            let mut writes = actions::run_writes(owner, (&action, &after), (&next, version), now)?;
            writes.extend(cards::of_run(cx, owner, &after, &next, &[]).await?);
            writes
        } else {
            vec![Store::replace_occurrence(owner, &next, version)?]
        };
        if cx.store.write_all(writes).await?.done() {
            tracing::info!(run_id = %id, ok = report.ok, ends, "the server of a call has reported");
            if ends {
                let item = DueItem::action(owner, action_id);
                due::dispatch_at(cx, &item, actions::wake_after(&after, &next, now)).await;
                actions::tell_pause(cx, owner, &action.value, &after).await;
                notices::tell(cx, owner, &next).await;
            }
            return ended(cx, owner, next).await;
        }
    }
}

/// Ends the record of a run whose occurrence has ended, also if the process that was to do it died.
async fn ended(cx: &Cx, owner: &Owner, occurrence: Occurrence) -> Result<OccurrenceView> {
    if occurrence.state.is_final() {
        execute::close(cx, owner, occurrence.run_id, &occurrence).await?;
    }
    Ok(occurrence.into())
}

/// Whether the call of this run expects a report. The action may have been changed since it was sent.
fn expects_report(action: &Action, occurrence: &Occurrence) -> bool {
    let expects = action.call.as_ref().is_some_and(|call| call.report_within().is_some());
    expects || occurrence.report_by.is_some()
}

fn not_expected() -> Error {
    Error::conflict("no_report_expected", "no report is expected of this run")
}
