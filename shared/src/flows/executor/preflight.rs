//! The pre-flight of an action: before its due time, everything is checked that costs nothing and would make its run fail.
//!
//! What can't be checked counts as good: a provider or a table that does not answer now may answer when the run is due. One write
//! notes the result in the action, on the condition that nobody has changed it meanwhile. So of several executors one tells of a problem. If
//! an executor dies before this write, a sweep finds the action again when its lease ends.

use std::time::Duration;

use domain::accounts::quota::Month;
use domain::actions::cost::dollars;
use domain::actions::{Action, Command, DueCheck, Preflight, PreflightCode, PreflightProblem, transition};
use domain::agents::{Agent, AgentStatus};
use domain::ceilings::{Ceiling, CeilingOf};
use domain::ids::{NoticeId, Owner, RunId};
use domain::models::routing::Ask;
use domain::models::{ModelError, Vendor};
use domain::notices::of_preflight::of_preflight;
use futures::future::join_all;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use models::Route;
use tokio::time::{Instant, timeout_at};

use crate::aws::bus::{ActionAlert, ActionAlertKind, Event};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, calls};
use crate::model_choice;
use crate::money::ceilings;
use crate::money::quota::Quota;
use crate::process::metrics;
use crate::provider_keys;
use crate::store::accounts::spend::Spender;
use crate::store::{DueItem, Store, Versioned};

/// The time for all checks of an action.
const LONGEST: Duration = Duration::from_secs(5);

/// Makes the check of an action whose moment has come, and stores what it has found. `action` is as it was just read.
///
/// # Errors
/// If the table does not answer. Then the message is delivered again.
pub(super) async fn check(cx: &Cx, owner: &Owner, action: Versioned<Action>, agent: &Agent) -> Result<()> {
    let now = cx.clock.now();
    let Some(check) = action.value.preflight_due(now) else { return Ok(()) };
    // Nothing of a paused agent runs.
    let is_made = !check.is_too_late && agent.status == AgentStatus::Active;
    let problems =
        if is_made { problems(cx, owner, &action.value, agent, check, now).await } else { Vec::new() };
    let found = Preflight { checked_at: now, due_at: check.due_at, problems };
    let command = Command::Preflighted { check, found: Some(&found) };
    let Ok(next) = transition(&action.value, command, cx.clock.now()) else { return Ok(()) };
    let mut writes = actions::action_writes(owner, &action, &next, None, now)?;
    let event = if is_made { of_preflight(&action.value, &found) } else { None };
    let tells = event.is_some();
    if let Some(event) = event {
        // A check that is repeated is the same event.
        let id = NoticeId::of(&format!("preflight/{}/{}", next.id, check.moment), check.due_at);
        writes.push(Store::happened_write(owner, id, event, now)?);
    }
    let stored = cx.store.write_all(writes).await?.done();
    // If somebody has changed the action, that write has set its place in the index, and the check comes again if it is still due.
    let wake_at = if stored { actions::wake_at(&next, None, now) } else { Some(now) };
    crate::flows::background::due::dispatch_at(cx, &DueItem::action(owner, next.id), wake_at).await;
    if stored {
        if tells {
            crate::flows::background::due::dispatch(cx, &DueItem::notices(owner)).await;
        }
        publish(cx, owner, &action.value, &found).await;
    }
    Ok(())
}

/// What would make the run fail, as far as it is certain.
async fn problems(
    cx: &Cx,
    owner: &Owner,
    action: &Action,
    agent: &Agent,
    check: DueCheck,
    now: Timestamp,
) -> Vec<PreflightProblem> {
    let mut problems = Vec::new();
    if !action.is_approved_with(agent) {
        let text = "the agent or a tool has changed since the action was approved, so a person must approve it again";
        problems.push(problem(PreflightCode::Drifted, text));
    }
    let until = Instant::now() + LONGEST;
    let (of_models, of_money) = tokio::join!(
        timeout_at(until, of_outside(cx, owner, action)),
        timeout_at(until, of_money(cx, owner, action, agent, check, now)),
    );
    match of_models {
        Ok(Ok(found)) => problems.extend(found),
        // Keeps what an earlier check has found about this due time.
        _ => problems
            .extend(earlier(action, check, |code| !is_about_money(code) && code != PreflightCode::Drifted)),
    }
    match of_money {
        Ok(Ok(found)) => problems.extend(found),
        _ => problems.extend(earlier(action, check, is_about_money)),
    }
    problems
}

fn problem(code: PreflightCode, text: impl Into<String>) -> PreflightProblem {
    PreflightProblem { code, text: text.into() }
}

const fn is_about_money(code: PreflightCode) -> bool {
    matches!(code, PreflightCode::CeilingReached | PreflightCode::QuotaExceeded)
}

fn earlier(action: &Action, check: DueCheck, keep: impl Fn(PreflightCode) -> bool) -> Vec<PreflightProblem> {
    let known = action.preflight.iter().filter(|preflight| preflight.due_at == check.due_at);
    known.flat_map(|preflight| &preflight.problems).filter(|problem| keep(problem.code)).cloned().collect()
}

/// Whether what the run needs is there: a model; or an address that it may call, and the secrets for it.
async fn of_outside(cx: &Cx, owner: &Owner, action: &Action) -> Result<Vec<PreflightProblem>> {
    let Some(call) = &action.call else { return of_models(cx, owner, action).await };
    if let Err(why) = call.check_address(&cx.config.reach.policy) {
        return Ok(vec![problem(PreflightCode::CallRefused, format!("call.url {why}"))]);
    }
    let refused = calls::refused_secrets(cx, owner, call).await?;
    let told = |(field, refused)| problem(PreflightCode::SecretRefused, format!("call.{field}: {refused}"));
    Ok(refused.into_iter().map(told).collect())
}

/// Whether there is a model for the run, with a key that its provider accepts.
async fn of_models(cx: &Cx, owner: &Owner, action: &Action) -> Result<Vec<PreflightProblem>> {
    let ask = Ask { tier: Some(action.model_tier), ..Ask::default() };
    let number = model_choice::number(RunId::from_uuid(cx.clock.uuid()));
    let mut route = match model_choice::route(cx, owner, &ask, number).await {
        Ok(Ok(route)) => route,
        Ok(Err(error)) => return Ok(vec![problem(PreflightCode::ModelNotConfigured, error.to_string())]),
        Err(error) if provider_keys::is_unreadable(&error) => {
            let text = "a stored key of a provider cannot be decrypted: store it again";
            return Ok(vec![problem(PreflightCode::KeyUnreadable, text)]);
        }
        Err(error) => return Err(error),
    };
    if !action.max_uses.is_empty()
        && let Err(why) = model_choice::with_provider_tools(&mut route)
    {
        return Ok(vec![problem(PreflightCode::ToolUnavailable, why)]);
    }
    key_refused(&route).await
}

/// Whether no provider of the route accepts its key.
///
/// # Errors
/// If that is unknown, because a provider did not answer.
async fn key_refused(route: &Route) -> Result<Vec<PreflightProblem>> {
    let mut of_endpoints: Vec<&models::Candidate> = Vec::new();
    for candidate in &route.candidates {
        if of_endpoints.iter().all(|known| !known.shares_endpoint(candidate)) {
            of_endpoints.push(candidate);
        }
    }
    let lists = of_endpoints.iter().map(async |candidate| match candidate.list() {
        Some(list) if candidate.model.vendor != Vendor::Demo => Some((candidate.model.vendor, list.await)),
        _ => None,
    });
    let lists = join_all(lists).await;
    let is_refused = |error: &ModelError| matches!(error, ModelError::Authentication);
    let mut refused = Vec::new();
    let mut is_known = true;
    for list in lists {
        match list {
            Some((vendor, Err(error))) if is_refused(&error) => refused.push(vendor.to_string()),
            // A server without such a list, or a provider without one, says nothing about the key.
            Some((_, Err(ModelError::NotFound | ModelError::Permission))) | None => return Ok(Vec::new()),
            Some((_, Err(_))) => is_known = false,
            Some((_, Ok(()))) => return Ok(Vec::new()),
        }
    }
    if !is_known {
        return Err(Error::internal("a provider did not say whether it accepts its key"));
    }
    let text = format!("{} does not accept the API key", refused.join(" and "));
    Ok(vec![problem(PreflightCode::ModelKeyRefused, text)])
}

/// Whether the ceilings and the plan have room for the run.
async fn of_money(
    cx: &Cx,
    owner: &Owner,
    action: &Action,
    agent: &Agent,
    DueCheck { due_at, .. }: DueCheck,
    now: Timestamp,
) -> Result<Vec<PreflightProblem>> {
    let mut problems = Vec::new();
    let day = |at: Timestamp| TimeZone::UTC.to_datetime(at).date();
    if Month::at(due_at) != Month::at(now) {
        // The run counts for a month that has not begun.
        return Ok(problems);
    }
    match Quota::of(cx, owner).await?.check(cx, owner).await {
        Ok(()) => {}
        Err(Error::QuotaExceeded(exceeded)) => {
            problems.push(problem(PreflightCode::QuotaExceeded, exceeded.to_string()));
        }
        Err(error) => return Err(error),
    }
    if actions::is_free(cx, owner, action).await? {
        return Ok(problems);
    }
    let needs = actions::expected_cost(cx, owner, action).await?.and_then(|cost| cost.run_micros);
    let (mut of_times, _) = ceilings::of_owner(cx, owner).await?;
    let of = |of, micros: Option<i64>| micros.map(|micros| Ceiling { of, micros });
    of_times.extend(of(CeilingOf::ActionMonth, action.budget.per_month_micros));
    of_times.extend(of(CeilingOf::AgentMonth, agent.budget.per_month_micros));
    let spender = Spender { owner, agent: Some(agent.agent_id), action: Some(action.id) };
    for ceiling in of_times {
        if ceiling.of == CeilingOf::Day && day(due_at) != day(now) {
            continue;
        }
        let spend = cx.store.spend_of(spender, ceiling.of, now).await?;
        // Reservations of calls that are under way are not counted, because they end before the run.
        let left = ceilings::raised(cx, ceiling, spend.raised_micros).saturating_sub(spend.spent_micros);
        if left <= 0 || needs.is_some_and(|needs| left < needs) {
            let costs =
                needs.map_or_else(String::new, |needs| format!(", and a run costs about {}", dollars(needs)));
            let text = format!("the ceiling of {} leaves {}{costs}", name(ceiling.of), dollars(left.max(0)));
            problems.push(problem(PreflightCode::CeilingReached, text));
        }
    }
    Ok(problems)
}

const fn name(of: CeilingOf) -> &'static str {
    match of {
        CeilingOf::Run => "the run",
        CeilingOf::Day => "the account's day",
        CeilingOf::Month => "the account's month",
        CeilingOf::AgentMonth => "the agent's month",
        CeilingOf::ActionMonth => "the action's month",
    }
}

/// Publishes the problems that no earlier check of this due time has found. If the process dies before this, the event is lost; the
/// action has the problems, and its person is told all the same.
async fn publish(cx: &Cx, owner: &Owner, before: &Action, found: &Preflight) {
    let codes: Vec<&str> =
        found.new_codes(before.preflight.as_ref()).into_iter().map(PreflightCode::as_str).collect();
    if codes.is_empty() {
        return;
    }
    let codes = codes.join(",");
    tracing::warn!(action_id = %before.id, due_at = %found.due_at, codes, "the next run of an action will fail");
    metrics::emit("scheduled-executor", cx.clock.now(), &[("PreflightProblems", "Count", 1)]);
    let alert = ActionAlert {
        owner: owner.clone(),
        agent_id: before.agent_id,
        action_id: before.id,
        alert: ActionAlertKind::Preflight,
        codes,
        due_at: Some(found.due_at),
    };
    if let Err(error) = cx.bus.publish(&[Event::ActionAlert(alert)]).await {
        tracing::warn!(cause = %error, "the event of a pre-flight was not published");
    }
}
