//! The tools with which a turn of the theme agent gives parts of its work to other models.

use domain::agent_loop::Call;
use domain::ids::{CallId, RunId};
use domain::projects::turn::{Helper, ThemeTurn};
use domain::runs::{EventKind, Run, RunKind, RunState};
use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared::agent_loop::recorder::lease_from;
use shared::context::{AreaAnswer, AreaCall, ForHelpers};
use shared::error::Result;
use shared::flows::turn::helpers;
use theme::path::check_path;
use theme_turn::helpers::{Ended, Part, ceiling_of, parts, told};

/// How much of a helper's task its event shows, in characters.
const MAX_SHOWN: usize = 500;

/// Performs a call of one of these tools. The helpers are begun, or found, by ids that follow from the call: so a process that makes the
/// call again goes on with the same ones.
pub(crate) fn help(call: AreaCall) -> BoxFuture<'static, Result<AreaAnswer>> {
    async move {
        let AreaCall { cx, owner, helpers: Some(for_helpers), .. } = call else {
            return Ok(AreaAnswer::only(Err("not available here".to_owned())));
        };
        let ForHelpers { calls, is_first, deadline, tell, .. } = &*for_helpers;
        let Some((id, own)) = calls.first() else {
            return Ok(AreaAnswer::only(Err("the call is gone".to_owned())));
        };
        if let Err(why) = parts_of(own) {
            return Ok(AreaAnswer::only(Err(why)));
        }
        let mut all: Vec<(CallId, usize, Part)> = Vec::new();
        for (id, call) in calls {
            // What can't be read is told when it is this call's turn.
            let parts = parts_of(call).unwrap_or_default();
            all.extend(parts.into_iter().enumerate().map(|(at, part)| (*id, at, part)));
        }
        let count = all.len();
        let mut mine = Vec::new();
        for (of, at, part) in all {
            let run = run_of(&for_helpers, cx.clock.now(), (of, at), part, count);
            if of == *id {
                mine.push(run.run_id);
            }
            let event = (EventKind::HelperStarted, started(&run));
            // A process that has begun it may have died before anybody was told.
            if helpers::begin(&cx, &owner, run, *deadline).await? || *is_first {
                let _ = tell.send(event);
            }
        }
        let ended = mine.into_iter().map(|run| helpers::ended(&cx, &owner, run, *deadline));
        Ok(answer(&try_join_all(ended).await?))
    }
    .boxed()
}

/// What a call wants of helpers.
///
/// # Errors
/// Which argument is wrong, for the model.
fn parts_of(call: &Call) -> std::result::Result<Vec<Part>, String> {
    let parts = parts(call)?;
    for path in parts.iter().flat_map(|part| &part.files) {
        check_path(path).map_err(|error| format!("files: {error}"))?;
    }
    Ok(parts)
}

/// The run of a helper. `count` helpers begin at once.
fn run_of(
    of: &ForHelpers,
    now: jiff::Timestamp,
    (call_id, at): (CallId, usize),
    part: Part,
    count: usize,
) -> Run {
    let Part { role, task, files } = part;
    let turn = &of.turn;
    let spent = of.run.cost_micros.saturating_add(of.run.helpers_micros);
    let vendor = of.run.model.as_ref().map(|model| model.model.vendor);
    let helper = Helper {
        turn: of.run.run_id,
        call_id,
        role,
        task,
        files,
        ceiling_micros: ceiling_of(of.ceiling_micros, spent, count),
        until: of.until,
        other_than: vendor.filter(|_| role == domain::projects::turn::HelperRole::SecondOpinion),
        edited: Vec::new(),
    };
    let turn = ThemeTurn {
        tier: turn.tier_now(),
        strategy: turn.strategy_now(),
        why: Vec::new(),
        files: Vec::new(),
        estimate_micros: 0,
        escalations: Vec::new(),
        helper: Some(helper),
        ..turn.clone()
    };
    Run {
        theme: Some(Box::new(turn)),
        charge: of.run.charge,
        ..Run::begun(id_of(of.run.run_id, call_id, at), RunKind::Helper, now, lease_from(now))
    }
}

/// The id of the helper with this place in a call. It has the time of its turn, and expires with it.
fn id_of(turn: RunId, call: CallId, at: usize) -> RunId {
    let of = turn.uuid().into_bytes();
    let hash = Sha256::digest(format!("{turn}\0{call}\0{at}"));
    let mut bytes = of;
    // The first six bytes of a UUIDv7 are its time. Two more have its version and its variant.
    bytes[6..].copy_from_slice(&hash[..10]);
    bytes[6] = 0x70 | (bytes[6] & 0x0f);
    bytes[8] = 0x80 | (bytes[8] & 0x3f);
    RunId::from_uuid(uuid::Uuid::from_bytes(bytes))
}

fn started(run: &Run) -> Value {
    let Some(helper) = run.theme.as_ref().and_then(|turn| turn.helper.as_ref()) else { return json!({}) };
    let task: String = helper.task.chars().take(MAX_SHOWN).collect();
    json!({
        "run_id": run.run_id, "call_id": helper.call_id, "role": helper.role, "task": task, "files": helper.files,
        "ceiling_micros": helper.ceiling_micros,
    })
}

/// What the turn is told, and what its followers are.
fn answer(runs: &[Run]) -> AreaAnswer {
    let mut events = Vec::new();
    let mut ended = Vec::new();
    let models: Vec<Option<String>> =
        runs.iter().map(|run| run.model.as_ref().map(|model| model.model.to_string())).collect();
    let errors: Vec<Option<String>> = runs.iter().map(error_of).collect();
    for ((run, model), error) in runs.iter().zip(&models).zip(&errors) {
        let Some(helper) = run.theme.as_ref().and_then(|turn| turn.helper.as_ref()) else { continue };
        let report: String = run.message.chars().take(MAX_SHOWN).collect();
        let data = json!({
            "run_id": run.run_id, "role": helper.role, "state": run.state, "error": run.error,
            "edited": helper.edited, "model": model, "cost_micros": run.cost_micros, "report": report,
        });
        events.push((EventKind::HelperEnded, data));
        ended.push(Ended {
            role: helper.role,
            edited: &helper.edited,
            report: &run.message,
            model: model.as_deref(),
            error: error.as_deref(),
        });
    }
    let text = told(&ended);
    let told = if ended.iter().any(Ended::is_of_use) { Ok(text) } else { Err(text) };
    let helpers_micros = runs.iter().fold(0_i64, |sum, run| sum.saturating_add(run.cost_micros));
    AreaAnswer { events, helpers_micros, ..AreaAnswer::only(told) }
}

/// Why a helper did not end as it should.
fn error_of(run: &Run) -> Option<String> {
    match (&run.error, run.state) {
        (Some(error), _) => Some(error.detail.clone()),
        (None, RunState::Completed) if run.message.trim().is_empty() => Some("it said nothing".to_owned()),
        (None, RunState::Completed) => None,
        (None, _) => Some("it was cancelled".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_follows_from_its_call_and_has_the_time_of_its_turn() {
        let turn: RunId = "run_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c".parse().unwrap();
        let id = |call, at| id_of(turn, CallId::new(call, 0), at);
        assert_eq!(id(1, 0), id(1, 0));
        assert_ne!(id(1, 0), id(1, 1));
        assert_ne!(id(1, 0), id(2, 0));
        assert_eq!(id(1, 0).instant(), turn.instant());
        assert_eq!(id(1, 0).uuid().get_version_num(), 7);
        assert_eq!(id(1, 0).to_string().parse::<RunId>().unwrap(), id(1, 0));
    }
}
