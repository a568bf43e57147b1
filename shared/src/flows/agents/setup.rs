//! An agent with its first action: shown as one ticket, and created and approved with one request.
//!
//! The ticket has the hash of everything that the approval binds. The request that creates both sends it back, so a person approves
//! exactly what the ticket has shown.

use domain::actions::{
    Action, ApprovalContent, ApprovalRecord, Briefing, Command, DefineAction, ExpectedCost, transition,
};
use domain::agents::{Agent, AgentDraft, AgentMetrics, Need, NewAgent};
use domain::history::{Change, ChangedBy};
use domain::ids::{Owner, RunId};
use domain::notices::{Delivery, MAX_ACTIONS, NoticeKind, waits};
use domain::schedule::ScheduleInput;
use domain::validate::FieldErrors;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AgentView;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, ActionView};
use crate::flows::agents;
use crate::flows::notices::reach::{self, Reaches};
use crate::flows::schedules::{self, FireTimes, Preview};
use crate::request::caller::Actor;
use crate::store::agents::history::Ledger;
use crate::store::table::Write;
use crate::store::{Once, Store, Tries};

/// How many of the next times a ticket shows.
const TIMES: usize = 3;

/// An agent and its first action: the draft of a setup conversation, or fields that a person has changed.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"run_id": "run_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c"}))]
pub struct Setup {
    /// A turn of the setup conversation whose `agent_draft` has a `first_action`.
    #[serde(default)]
    pub run_id: Option<RunId>,
    /// The whole agent. Default: the one of the draft.
    #[serde(default)]
    pub agent: Option<NewAgent>,
    /// The action. What it leaves out is as in the draft.
    #[serde(default)]
    pub action: Option<DefineAction>,
    /// What the work needs outside of the platform. Default: what the draft says. The words of the work count, too.
    #[serde(default)]
    #[schema(max_items = 10)]
    pub needs: Option<Vec<Need>>,
}

/// What would be created, for a person.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SetupTicket {
    /// Send it to `POST /setup` to approve exactly this.
    pub approval_hash: String,
    /// What an approval would bind.
    pub current: ApprovalContent,
    /// The schedule as a sentence. Left out if there is none: then it runs when the person runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "At 07:00 on weekdays (Europe/Berlin).")]
    pub schedule_text: Option<String>,
    /// The next three times, fewer if the schedule ends.
    pub fire_times: Vec<Timestamp>,
    /// What it cannot do although its work seems to need it, in sentences.
    pub cannot: Vec<String>,
    /// Where its results are told.
    pub told: Reaches,
    /// What the runs of the next 30 days will probably cost. Left out without a schedule, or if they cost nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_cost: Option<ExpectedCost>,
}

/// An agent and its first action, to create.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "run_id": "run_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c",
    "approval_hash": "ef230b7a000f6ec5fb471589e86521621442b141770860073005dbe068183cb2",
    "tell": "at_once",
}))]
pub struct AcceptSetup {
    /// As in `POST /setup/preview`.
    #[serde(default)]
    pub run_id: Option<RunId>,
    /// As in `POST /setup/preview`.
    #[serde(default)]
    pub agent: Option<NewAgent>,
    /// As in `POST /setup/preview`.
    #[serde(default)]
    pub action: Option<DefineAction>,
    /// The `approval_hash` of the ticket that the person has seen. Without it, the action waits for an approval.
    #[serde(default)]
    pub approval_hash: Option<String>,
    /// How the person is told of its results. Left out: as the preferences say.
    #[serde(default)]
    pub tell: Option<Delivery>,
}

/// What was created.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CreatedSetup {
    pub agent: AgentView,
    pub action: ActionView,
}

/// Both, checked. Nothing is stored.
struct Checked {
    agent: Agent,
    action: Action,
}

impl Checked {
    async fn new(
        cx: &Cx,
        owner: &Owner,
        (run_id, agent, action): (Option<RunId>, Option<NewAgent>, Option<DefineAction>),
    ) -> Result<(Self, Vec<Need>)> {
        let drafted = match run_id {
            Some(run) => {
                let found = cx.store.run(owner, run).await?.and_then(|found| found.value.agent_draft);
                let told =
                    "must be a turn of a setup conversation that has an agent_draft with a first_action";
                let has_action = found.filter(|draft| draft.first_action.is_some());
                Some(has_action.ok_or_else(|| FieldErrors::one("run_id", told))?)
            }
            None => None,
        };
        let mut errors = FieldErrors::default();
        for (field, is_there) in [("agent", agent.is_some()), ("action", action.is_some())] {
            if drafted.is_none() && !is_there {
                errors.add(field, "is required without a run_id");
            }
        }
        let action = action.unwrap_or_default();
        if action.proposal_id.is_some() {
            errors.add("action.proposal_id", "a new agent has no proposals");
        }
        errors.into_result(())?;
        let (drafted, first, needs) = match drafted {
            Some(AgentDraft {
                name,
                goal,
                success_criteria,
                timeline,
                instructions,
                first_action,
                needs,
            }) => {
                let written =
                    NewAgent { name, goal, success_criteria, timeline, instructions, ..NewAgent::default() };
                (written, first_action.map(|first| *first), needs)
            }
            None => (NewAgent::default(), None, Vec::new()),
        };
        // What is wrong with the action is said only once the agent is right: it takes its budget and its zone from it.
        let agent = agents::checked(cx, owner, agent.unwrap_or(drafted)).await.map_err(within("agent"))?;
        let action = actions::checked(cx, owner, &agent, first, action).await.map_err(within("action"))?;
        Ok((Self { agent, action }, needs))
    }
}

/// The fields of an error, as those of a part of the request.
fn within(part: &'static str) -> impl FnOnce(Error) -> Error {
    move |error| match error {
        Error::Invalid(found) => {
            let mut errors = FieldErrors::default();
            errors.nest::<()>(part, Err(found));
            errors.into()
        }
        other => other,
    }
}

/// What would be created. Nothing is stored.
///
/// # Errors
/// 400 with every invalid field and its limit, as `agent.…` or `action.…`.
pub async fn preview(cx: &Cx, owner: &Owner, setup: Setup) -> Result<SetupTicket> {
    let Setup { run_id, agent, action, needs } = setup;
    let (Checked { agent, action }, drafted) = Checked::new(cx, owner, (run_id, agent, action)).await?;
    let needs = needs.unwrap_or(drafted);
    let times = match &action.schedule {
        Some(schedule) => {
            let schedule = ScheduleInput::from(schedule.clone());
            Some(schedules::preview(cx, owner, Preview { schedule, from: None, count: TIMES }).await?)
        }
        None => None,
    };
    let (schedule_text, fire_times) = match times {
        Some(FireTimes { fire_times, schedule_text }) => (Some(schedule_text), fire_times),
        None => (None, Vec::new()),
    };
    let content = ApprovalContent::now(&action, &agent);
    Ok(SetupTicket {
        approval_hash: content.hash(),
        cannot: actions::cannot(&content, &needs),
        current: content,
        schedule_text,
        fire_times,
        told: reach::of_results(cx, owner, None).await?,
        expected_cost: actions::expected_cost(cx, owner, &action).await?,
    })
}

/// Creates an agent with its first action in one transaction, and approves the action if the person has seen its ticket.
///
/// # Errors
/// As [`preview`]; 409 `approval_mismatch` if what would be created is not what the ticket has shown.
pub async fn accept(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    setup: AcceptSetup,
) -> Result<CreatedSetup> {
    let AcceptSetup { run_id, agent, action, approval_hash, tell } = setup;
    let (Checked { agent, action: defined }, _) = Checked::new(cx, owner, (run_id, agent, action)).await?;
    let briefing = Briefing::of(&defined, &agent);
    let content = ApprovalContent::of(&defined, &briefing);
    let now = defined.created_at;
    let action = match &approval_hash {
        None => defined.clone(),
        Some(shown) if *shown != content.hash() => {
            let told = "the ticket no longer shows what would be created: read it again";
            return Err(Error::conflict("approval_mismatch", told));
        }
        Some(hash) => transition(&defined, Command::Approve { hash, briefing: &briefing }, now)
            .map_err(|refused| Error::conflict(refused.code(), refused.to_string()))?,
    };
    let by = ChangedBy::from(by);
    let mut writes = Store::new_agent_writes(owner, &agent, &Change::created(&agent, by))?;
    writes.extend(Store::first_action_writes(owner, &action)?);
    let change = Change::defined_as(&defined, &action, by);
    writes.push(Store::change_write(owner, Ledger::Action(action.id), &change)?);
    writes.push(match &action.approval {
        Some(approval) => {
            let (hash, approved_at) = (approval.hash.clone(), approval.approved_at);
            Store::approval_write(owner, action.id, &ApprovalRecord { hash, approved_at, content })?
        }
        None => Store::waits_write(owner, waits::approval(&action), now)?,
    });
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let mut all = writes.clone();
        all.extend(telling(cx, owner, &action, tell).await?);
        if cx.store.commit(once, all).await?.done() {
            break;
        }
    }
    actions::dispatch_at(cx, owner, action.id, action.look_at(None)).await;
    Ok(CreatedSetup {
        action: ActionView::new(action, &agent),
        agent: AgentView { agent, metrics: AgentMetrics::default(), version: 1 },
    })
}

/// The write of how a person is told of the results of an action, if the preferences say something else and have room for it.
async fn telling(cx: &Cx, owner: &Owner, action: &Action, tell: Option<Delivery>) -> Result<Option<Write>> {
    let Some(tell) = tell else { return Ok(None) };
    let found = cx.store.preferences(owner).await?;
    let mut preferences = found.value;
    let is_said = preferences.delivery(NoticeKind::Succeeded, None) == tell;
    if is_said || preferences.actions.len() >= MAX_ACTIONS {
        return Ok(None);
    }
    preferences.actions.entry(action.id).or_default().insert(NoticeKind::Succeeded, tell);
    Ok(Some(Store::preferences_write(owner, &preferences, found.version)?))
}
