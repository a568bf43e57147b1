//! Drives a rehearsal: like a run of the action, but nothing of it is stored except what the rehearsal shows.

use std::collections::BTreeMap;

use domain::actions::conditions::{self, Report};
use domain::actions::http_call::HttpCall;
use domain::actions::{Action, ApprovalContent};
use domain::agent_loop::{CallResult, Outcome, Reply};
use domain::agents::Agent;
use domain::assets::NewAsset;
use domain::chats::signals::Deliverable;
use domain::ids::Owner;
use domain::models::{Message, ProviderTool};
use domain::prompts::of_run::Found;
use domain::prompts::{self, of_run};
use domain::runs::rehearsal::{self, Rehearsed};
use domain::runs::{Run, RunError, RunState};
use domain::tools::notes::NothingNew;
use domain::tools::questions::AskPerson;
use domain::tools::{self, Setting, ToolCall};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tracing::Instrument;

use super::failure;
use super::kind::{MAX_CHECKED, MAX_OUTPUTS, found, imply_output, terms};
use crate::agent_loop::journal::Journal;
use crate::agent_loop::recorder::{self, Recorder};
use crate::agent_loop::{Driver, Kind, KindCx, Performed, Rest};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::tools::{self as lookups, Reach};
use crate::flows::{actions, existing, schedules, turn};
use crate::money::alerts;
use crate::store::table::Write;
use crate::store::{Store, Versioned};

/// A rehearsal of an action.
struct Rehearsing {
    agent: Agent,
    action: Action,
    /// What a run of the action would be told.
    content: ApprovalContent,
    zone: TimeZone,
    /// Every tool that a run could be granted.
    grants: Vec<String>,
    outputs: Vec<NewAsset>,
}

/// Begins or continues a rehearsal that no process has.
///
/// # Errors
/// If the table does not answer. Then the item is delivered again.
pub async fn rehearse(cx: &Cx, owner: &Owner, found: Versioned<Run>, deadline: Timestamp) -> Result<()> {
    let (id, stored) = (found.value.run_id, found.value.rehearsal.clone());
    let (Some(of), Some(action)) = (stored, found.value.action_id) else { return Ok(()) };
    let loaded = async {
        let action = actions::load(cx, owner, action).await?.value;
        let agent = existing::agent(cx, owner, action.agent_id).await?.value;
        Ok::<_, Error>((action, agent))
    };
    let error = match loaded.await {
        Ok((action, agent)) if hash(&action, &agent) == of.hash => {
            // As for runs of actions: one owner's rehearsals leave executors for the others. Without a place it stays due, and a
            // later sweep sends it again.
            let Ok(place) = cx.places.enter(cx, owner, true).await? else { return Ok(()) };
            let span = tracing::info_span!("rehearsal", run_id = %id);
            let went_on = go_on(cx, owner, (action, agent), found, deadline).instrument(span).await;
            place.leave(cx).await;
            return went_on;
        }
        Ok(_) => {
            failure("action_changed", "the action or its agent was changed during the rehearsal".to_owned())
        }
        Err(Error::NotFound(what)) => {
            failure("not_found", format!("the {what} of this rehearsal was deleted"))
        }
        Err(error) => return Err(error),
    };
    recorder::end_without_executor(cx, owner, found, RunState::Failed, Some(error)).await?;
    Ok(())
}

fn hash(action: &Action, agent: &Agent) -> String {
    ApprovalContent::now(action, agent).hash()
}

async fn go_on(
    cx: &Cx,
    owner: &Owner,
    (action, agent): (Action, Agent),
    found: Versioned<Run>,
    deadline: Timestamp,
) -> Result<()> {
    let provider_tools: BTreeMap<ProviderTool, u32> =
        found.value.rehearsal.as_ref().map(|of| of.provider_tools.clone()).unwrap_or_default();
    let (journal, steps) = Journal::load(cx, owner, found.value.run_id, found.value.fence + 1, None).await?;
    let is_complete = steps.last().is_none_or(|step| step.results.len() == step.reply.calls.len());
    let claimed = turn::claim(cx, owner, found, journal.last() + u32::from(is_complete)).await?;
    let Some(recorder) = claimed else { return Ok(()) };
    if let Some(call) = &action.call {
        return show_call(recorder, call, hash(&action, &agent)).await;
    }
    let content = ApprovalContent::now(&action, &agent);
    let zone = schedules::zone_of_run(cx, owner, &content).await?;
    let outside = cx.config.runs.outside.tools();
    let grants = tools::grantable().chain(outside.iter().map(|tool| tool.name)).map(str::to_owned).collect();
    let mut terms = terms(&content, agent.budget.per_month_micros);
    terms.rehearses = true;
    terms.needs_provider_tools = !provider_tools.is_empty();
    terms.provider_tools = provider_tools;
    let kind = Rehearsing { agent, action, content, zone, grants, outputs: rehearsal::outputs(&steps) };
    let steps = (journal, steps);
    let mut run = Driver::new(cx, cx.remembering(), (kind, terms), recorder, steps, deadline);
    let rest = run.drive().await;
    Box::pin(end(run, rest)).await
}

/// Shows the request that a run would send. Nothing is sent.
async fn show_call(mut recorder: Recorder, call: &HttpCall, approval_hash: String) -> Result<()> {
    let key = recorder.run().run_id.to_string();
    let shown = Rehearsed { approval_hash, ..Rehearsed::of_call(call, &key) };
    if let Some(of) = &mut recorder.run_mut().rehearsal {
        of.shown = Some(shown);
    }
    let report = call
        .expect_report_within_minutes
        .map_or_else(String::new, |minutes| format!(" and expect its report within {minutes} minutes"));
    recorder.run_mut().message = format!("A run would send {}{report}. Nothing was sent.", call.name());
    recorder.finish(RunState::Completed, None, Vec::new()).await?;
    Ok(())
}

/// Stores what the rehearsal has shown, or hands it on.
async fn end(run: Driver<Rehearsing>, rest: Rest) -> Result<()> {
    let Driver { cx, kind, mut recorder, transcript, .. } = run;
    let owner = recorder.owner().clone();
    let mut score = None;
    let (state, error) = match rest {
        Rest::Lost => return Ok(()),
        Rest::PutDown => return turn::put_down(&cx, recorder).await,
        Rest::Cancelled(cause) => (RunState::Cancelled, cause.error()),
        Rest::Failed(error) => (RunState::Failed, Some(error)),
        Rest::Waits { reason, .. } | Rest::Ended(Outcome::Waiting { reason }) => {
            (RunState::Failed, Some(failure("waiting", reason.text)))
        }
        Rest::Ended(Outcome::Completed { score: found, .. }) => {
            score = found;
            (RunState::Completed, None)
        }
        Rest::Ended(Outcome::NothingNew { .. }) => (RunState::Completed, None),
        Rest::Ended(Outcome::Failed { code, detail }) => {
            (RunState::Failed, Some(RunError { code: code.to_owned(), detail, retryable: false }))
        }
    };
    let outside = cx.config.runs.outside.tools();
    let outside: Vec<&str> = outside.iter().map(|tool| tool.name).collect();
    let usage = recorder.run().usage;
    let mut shown = Rehearsed::of(&transcript.steps, &kind.outputs, &usage, &outside);
    shown.score = score;
    let granted =
        Action { grants: shown.grants.clone(), max_uses: shown.max_uses.clone(), ..kind.action.clone() };
    shown.approval_hash = hash(&granted, &kind.agent);
    if let Some(of) = &mut recorder.run_mut().rehearsal {
        of.shown = Some(shown);
    }
    let cost = recorder.run().cost_micros;
    let kind_of_run = recorder.run().kind;
    let more: Vec<Write> = match cost > 0 {
        true => vec![Store::count(&owner, kind.agent.agent_id, vec![("cost_micros", cost)])],
        false => Vec::new(),
    };
    recorder.finish(state, error, more).await?;
    if cost > 0 {
        alerts::check(&cx, &owner, kind_of_run).await;
    }
    Ok(())
}

impl Kind for Rehearsing {
    type Change = NewAsset;

    fn setting(&self) -> Setting<'_> {
        Setting::Run { grants: &self.grants }
    }

    async fn history(&self, cx: KindCx<'_>) -> Result<Vec<Message>> {
        let began = cx.run.created_at;
        let now = prompts::by_hand(began, &self.zone);
        let (found, _) = found(cx, (&self.action, &self.content), began, &self.zone).await?;
        Ok(vec![of_run::message(&self.content, Found { now, ..found })])
    }

    async fn to_check(&self, _: KindCx<'_>) -> Result<String> {
        let outputs: String = self
            .outputs
            .iter()
            .map(|output| format!("## {}\n{}\n\n", output.title, output.content))
            .collect();
        let cut = outputs.floor_char_boundary(MAX_CHECKED);
        Ok(of_run::to_check(&self.content, &outputs[..cut]))
    }

    async fn check_conditions(&self, cx: KindCx<'_>) -> Result<Report> {
        let today = self.zone.to_datetime(cx.run.created_at).date();
        let (conditions, outputs) = (self.content.conditions.clone(), self.outputs.clone());
        // Long outputs take long to check, and other runs must go on meanwhile.
        let checked = tokio::task::spawn_blocking(move || {
            let mut check = conditions::Check::new(&conditions, today);
            for output in &outputs {
                check.output(&output.title, &output.content);
            }
            check.report()
        });
        checked.await.map_err(|error| Error::internal(error.to_string()))
    }

    fn complete(&self, _: &Run, reply: &mut Reply) {
        imply_output(&self.content, self.outputs.len(), reply);
    }

    fn apply(&mut self, output: NewAsset) {
        rehearsal::save(&mut self.outputs, output);
    }

    async fn perform(&self, cx: KindCx<'_>, call: ToolCall) -> Result<Performed<NewAsset>> {
        let recorded = "this is a rehearsal: it was recorded and not done";
        Ok(match call {
            ToolCall::SaveOutput(output) | ToolCall::Deliver(Deliverable::Asset(output)) => self.save(output),
            ToolCall::AskPerson(AskPerson { .. }) => CallResult::told(
                "this is a rehearsal: nobody answers. Go on with the answer that you think is most likely, and name it in the output",
            )
            .into(),
            ToolCall::NothingNew(NothingNew { reason }) if self.outputs.is_empty() => {
                CallResult::nothing_new(reason).into()
            }
            ToolCall::NothingNew(_) => {
                CallResult::refused("not ended: outputs are saved; end it with a sentence instead").into()
            }
            ToolCall::Note(_) | ToolCall::SyncDocumentation(_) | ToolCall::Deliver(Deliverable::Actions { .. }) => {
                CallResult::told(recorded).into()
            }
            look_up => {
                let reach = Reach::of_run(self.agent.agent_id, &self.content);
                CallResult::of(lookups::look_up(&cx, cx.owner, reach, look_up).await?).into()
            }
        })
    }

    fn outputs(&self) -> usize {
        self.outputs.len()
    }
}

impl Rehearsing {
    fn save(&self, output: NewAsset) -> Performed<NewAsset> {
        if let Err(errors) = output.validate() {
            return CallResult::repair(&errors.to_string()).into();
        }
        let output = NewAsset { title: output.title.trim().to_owned(), ..output };
        let is_known = self.outputs.iter().any(|known| known.title.eq_ignore_ascii_case(&output.title));
        if !is_known && self.outputs.len() >= MAX_OUTPUTS {
            return CallResult::refused(format!("a run saves at most {MAX_OUTPUTS} outputs")).into();
        }
        let mut performed = Performed::from(CallResult::told(format!("saved \"{}\"", output.title)));
        performed.staged.changes.push(output);
        performed
    }
}
