//! Approvals that are no longer valid: what has changed since, and approving again.
//!
//! An approval binds the text of the agent as well as that of the action. An edit of the agent writes nothing to its
//! actions. Instead, each time a run begins, the approval is compared with what the model would be told. So no edit is
//! missed. Until a person approves again, runs are held, and the schedules keep their place.

use domain::actions::cost::dollars;
use domain::actions::{Action, ApprovalContent, ApprovalRecord, Difference, ExpectedCost};
use domain::agents::{Agent, Need};
use domain::ceilings::{Ceiling, CeilingOf};
use domain::ids::{ActionId, AgentId, Owner, ProjectId};
use domain::living::MAX_SYNC_MICROS;
use domain::models::ProviderTool;
use domain::prompts::of_run;
use domain::text::quoting::one_line;
use domain::tools::theme_tools;
use domain::validate::FieldErrors;
use domain::watch::Watch;
use futures::FutureExt;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ActionView, approve, expected_cost, load, stored};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::existing;
use crate::flows::notices::reach::{self, Reaches};
use crate::flows::page::{self, Page, PageQuery};
use crate::flows::withdrawals::{MAX_APPROVALS, StaleApproval, describe, is_stale};
use crate::money::ceilings;
use crate::request::caller::Actor;
use crate::store::Once;
use crate::store::accounts::spend::Spender;

/// How many approvals are given at once.
const AT_ONCE: usize = 8;

/// What was approved, what is current, and the differences.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ApprovalView {
    /// Whether the current content of the action may run.
    pub holds: bool,
    /// What was last approved, even if that approval was withdrawn since. Absent if there never was an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<ApprovalRecord>,
    /// The hash of `current`. Send it to `approve`.
    pub approval_hash: String,
    /// The current state of everything that an approval binds.
    pub current: ApprovalContent,
    /// The differences between the two. Empty if nothing was ever approved.
    pub changes: Vec<Difference>,
    /// The notebook of the action. Its runs read and rewrite it, so an approval does not bind it. `GET /actions/{action_id}/notebook`
    /// returns the text.
    pub notebook: NotebookSize,
    /// What an approval permits and a person should know, in sentences.
    pub warnings: Vec<String>,
    /// What the runs of the next 30 days will probably cost, if there is a schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_cost: Option<ExpectedCost>,
    /// What it cannot do although its work seems to need it, in sentences.
    pub cannot: Vec<String>,
    /// Where its results are told.
    pub told: Reaches,
}

/// How much the notebook of an action holds.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct NotebookSize {
    /// 0: nothing was ever written.
    pub version: u64,
    /// The length of its text, 0 to 4,000.
    pub bytes: usize,
}

/// The approvals to give.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"approvals": [{
    "action_id": "act_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c",
    "approval_hash": "ef230b7a000f6ec5fb471589e86521621442b141770860073005dbe068183cb2",
}]}))]
pub struct ApproveMany {
    /// 1 to 100, each action once.
    #[schema(min_items = 1, max_items = 100)]
    pub approvals: Vec<ApproveOne>,
}

/// A person's approval of one action.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveOne {
    pub action_id: ActionId,
    /// The `approval_hash` that the person has seen.
    pub approval_hash: String,
}

/// The results, in the order of the request.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Approvals {
    pub data: Vec<Approved>,
}

/// The result for one of many approvals.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Approved {
    pub action_id: ActionId,
    pub approved: bool,
    /// The action after the approval, if it was approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionView>,
    /// Why it was not approved: the code that `POST /actions/{action_id}/approve` would return, such as
    /// `approval_mismatch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "approval_mismatch")]
    pub code: Option<String>,
    /// The reason as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The name of a project that an approval names, for people.
async fn name_of(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<String> {
    match existing::project(cx, owner, project).await {
        Ok(found) => Ok(format!("\"{}\"", one_line(&found.value.name))),
        Err(Error::NotFound(_)) => Ok(format!("{project}, which was deleted")),
        Err(error) => Err(error),
    }
}

/// What was approved of an action, and what has changed since.
///
/// # Errors
/// 404 if the action does not exist.
pub async fn approval(cx: &Cx, owner: &Owner, id: ActionId) -> Result<ApprovalView> {
    let action = load(cx, owner, id).await?.value;
    let agent = cx.store.agent(owner, action.agent_id).await?.ok_or(Error::NotFound("action"))?.value;
    let (approved, notes) = tokio::try_join!(cx.store.approval(owner, id), cx.store.notebook(owner, id))?;
    let notebook = NotebookSize { version: notes.version, bytes: notes.text.len() };
    let current = ApprovalContent::now(&action, &agent);
    let changes = approved.as_ref().map(|was| current.differences(&was.content)).unwrap_or_default();
    let approval_hash = current.hash();
    let holds = action.approval.as_ref().is_some_and(|approval| approval.hash == approval_hash);
    let mut warnings: Vec<String> =
        action.max_uses.iter().map(|(tool, most)| warning(*tool, *most)).collect();
    if let Some(project) = of_run::documents(&current).filter(|_| current.call.is_none()) {
        let name = name_of(cx, owner, project).await?;
        warnings.push(format!(
            "A run reads the documents of the project {name}, which repeat the messages of its commits and may be false. It may bring them up \
             to date, which costs up to {} each time, besides the cost of the run.",
            dollars(MAX_SYNC_MICROS)
        ));
    }
    if let Some(project) = of_run::theme(&current).filter(|_| current.call.is_none()) {
        let name = name_of(cx, owner, project).await?;
        let may = |grant: &str| action.grants.iter().any(|granted| granted == grant);
        let edits = match (may(theme_tools::EDIT), may(theme_tools::APPLY)) {
            (false, _) => "",
            (true, false) => {
                " It may edit them in a change set, which changes nothing until a person applies it."
            }
            (true, true) => {
                " It may edit them and apply its edits, if the project lets assistants apply changes. Each can be reverted."
            }
        };
        warnings
            .push(format!("A run reads the theme of the project {name}, whose texts may be false.{edits}"));
    }
    warnings.extend(action.watches.iter().filter_map(Watch::url).map(|url| {
        format!("Before each scheduled run, the platform requests {url}. What it answers is shown to the run, and may be false.")
    }));
    warnings.extend(action.call.iter().map(|call| {
        let method = call.method.as_str();
        let report = call.expect_report_within_minutes.map_or_else(String::new, |minutes| {
            format!(" The server must report within {minutes} minutes, or the run fails.")
        });
        let secrets: Vec<String> = call.secret_names().into_iter().map(|name| format!("`{name}`")).collect();
        let secrets = match secrets.is_empty() {
            true => String::new(),
            false => format!(" The request uses your secrets: {}.", secrets.join(", ")),
        };
        format!("Each run sends {method} to {}, and may send it more than once with the same key. No model is asked.{secrets}{report}", call.url)
    }));
    let expected_cost = expected_cost(cx, owner, &action).await?;
    if let Some(cost) = &expected_cost {
        warnings.extend(beyond_budget(cx, owner, (&action, &agent), cost).await?);
    }
    let cannot = match current.call {
        // It sends what it says.
        Some(_) => Vec::new(),
        None => cannot(&current, &[]),
    };
    let told = reach::of_results(cx, owner, Some(id)).await?;
    Ok(ApprovalView {
        holds,
        approved,
        approval_hash,
        current,
        changes,
        notebook,
        warnings,
        expected_cost,
        cannot,
        told,
    })
}

/// What a run with this content cannot do although its words, or `needs`, ask for it.
pub(crate) fn cannot(content: &ApprovalContent, needs: &[Need]) -> Vec<String> {
    let ApprovalContent { agent, title, task_config, watches, max_uses, .. } = content;
    let said = [&agent.goal, &agent.instructions, title, &task_config.instructions];
    let words = Need::of_words(&said.map(String::as_str).join("\n"));
    let has_web = !max_uses.is_empty() || watches.iter().any(|watch| watch.url().is_some());
    let is_needed = |need: &Need| needs.contains(need) || words.contains(need);
    let lacks = |need: &Need| is_needed(need) && !(*need == Need::Web && has_web);
    Need::ALL.into_iter().filter(lacks).map(|need| need.cannot().to_owned()).collect()
}

/// The ceilings of a month that would not pay for what the runs will probably cost.
async fn beyond_budget(
    cx: &Cx,
    owner: &Owner,
    (action, agent): (&Action, &Agent),
    cost: &ExpectedCost,
) -> Result<Vec<String>> {
    let account = cx.store.account(owner).await?.value;
    let (_, of_account) = ceilings::of_account(cx, &account);
    let spender = Spender { owner, agent: Some(agent.agent_id), action: Some(action.id) };
    let mut warnings = Vec::new();
    for (whose, of, micros) in [
        ("the action", CeilingOf::ActionMonth, action.budget.per_month_micros),
        ("the agent", CeilingOf::AgentMonth, agent.budget.per_month_micros),
        ("the account", CeilingOf::Month, of_account),
    ] {
        let Some(micros) = micros else { continue };
        let spend = cx.store.spend_of(spender, of, cx.clock.now()).await?;
        let ceiling = ceilings::raised(cx, Ceiling { of, micros }, spend.raised_micros);
        let left = ceiling.saturating_sub(spend.committed_micros).max(0);
        if cost.month_micros > left {
            warnings.push(format!(
                "The runs will cost {}. The ceiling of {whose} has {} left in this month.",
                cost.text,
                dollars(left)
            ));
        }
    }
    Ok(warnings)
}

/// What a grant of a provider's tool means.
fn warning(tool: ProviderTool, most: u32) -> String {
    match tool {
        ProviderTool::WebSearch => format!(
            "A run may search the web up to {most} times. What is searched for leaves the platform, and what is read may be false."
        ),
        ProviderTool::CodeExecution => format!(
            "A run may run code up to {most} times in a container of the model's provider. What the code works on leaves the platform."
        ),
    }
}

/// The approvals of an agent's actions that are no longer valid, newest action first.
///
/// # Errors
/// 404 if the agent does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn stale(cx: &Cx, owner: &Owner, id: AgentId, query: &PageQuery) -> Result<Page<StaleApproval>> {
    let agent = existing::agent(cx, owner, id).await?.value;
    let read = |after: Option<String>, limit| {
        async move { cx.store.agent_actions(owner, id, after.as_deref(), limit).await }.boxed()
    };
    let keep = |action: &Action| is_stale(action, &agent);
    let found = page::filtered(owner, &format!("approvals of {id}"), query, read, keep).await?;
    let Page { data, next_cursor, has_more } = found.map(|action| stored(action).value);
    let described = data.into_iter().map(|action| describe(cx, owner, action, &agent));
    Ok(Page { data: try_join_all(described).await?, next_cursor, has_more })
}

/// Approves many of one agent's actions. Each one succeeds or fails by itself.
///
/// # Errors
/// 404 if the agent does not exist; 400 if there are no approvals, more than 100, or two for the same action.
pub async fn approve_many(
    cx: &Cx,
    owner: &Owner,
    by: Actor,
    id: AgentId,
    input: ApproveMany,
) -> Result<Approvals> {
    let mut errors = FieldErrors::default();
    let count = input.approvals.len();
    if !(1..=MAX_APPROVALS).contains(&count) {
        errors.add("approvals", format!("must be 1 to {MAX_APPROVALS} approvals, is {count}"));
    }
    let mut ids: Vec<ActionId> = input.approvals.iter().map(|one| one.action_id).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() < count {
        errors.add("approvals", "must name each action once");
    }
    errors.into_result(())?;
    if cx.store.agent(owner, id).await?.is_none() {
        return Err(Error::NotFound("agent"));
    }
    // Each approval is a transaction of its own, and approving the same content twice changes nothing. So no approval
    // marks the request as done, and the next try of an interrupted request gives the rest.
    let once = Once::none();
    let given = input.approvals.into_iter().map(async |one| {
        let action_id = one.action_id;
        let approved = match load(cx, owner, action_id).await {
            Ok(action) if action.value.agent_id == id => {
                approve(cx, owner, &once, by, action_id, &one.approval_hash).await
            }
            Ok(_) => Err(Error::NotFound("action")),
            Err(error) => Err(error),
        };
        match approved {
            Ok(action) => {
                Approved { action_id, approved: true, action: Some(action), code: None, detail: None }
            }
            Err(error) => Approved {
                action_id,
                approved: false,
                action: None,
                code: Some(error.code().to_owned()),
                detail: Some(error.detail()),
            },
        }
    });
    let data = stream::iter(given).buffered(AT_ONCE).collect().await;
    Ok(Approvals { data })
}
