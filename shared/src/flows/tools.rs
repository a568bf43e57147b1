//! The tools that look something up. Their results are JSON for a model, with a limited size.
//!
//! An agent's tools can only read what belongs to this agent. For everything else, including other agents of the same owner, they
//! answer that it does not exist. The reason: a person who talks to one agent, or approves its action, decides only about that
//! agent. Only the person's practices belong to no agent, and every agent can read them.

use domain::actions::idle::Idle;
use domain::actions::{Action, ApprovalContent};
use domain::agents::Agent;
use domain::assets::Asset;
use domain::ids::{AgentId, Owner, ProjectId};
use domain::prompts::of_run;
use domain::schedule::{Schedule, moment_in_words};
use domain::text::quoting::short_line;
use domain::tools::actions::QueryActions;
use domain::tools::assets::{QueryAssets, ReadAsset};
use domain::tools::documents::ReadDocument;
use domain::tools::runs::ExplainOwnAction;
use domain::tools::{DEFAULT_LIMIT, ToolCall};
use jiff::Timestamp;
use serde_json::json;

use super::agents::assets;
use super::projects::living;
use super::{actions, practices};
use crate::context::Data;
use crate::error::{Error, Result};
use crate::store::Once;

/// What the tools of an agent may read.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Its own actions and assets.
    pub agent: AgentId,
    /// The project whose living documents it reads, and may bring up to date.
    pub documents: Option<ProjectId>,
}

impl Reach {
    /// In a run of this content.
    #[must_use]
    pub fn of_run(agent: AgentId, content: &ApprovalContent) -> Self {
        Self { agent, documents: of_run::documents(content) }
    }

    /// In a conversation with the agent. A run has the documents that were approved.
    #[must_use]
    pub const fn of(agent: &Agent) -> Self {
        Self { agent: agent.agent_id, documents: agent.docs_project_id }
    }
}

/// How much of an asset's content a model gets at once, in bytes.
const MAX_READ: usize = 48 * 1024;

/// The largest number of records that a query reads while it looks for matches.
const MAX_SCANNED: usize = 400;

/// An agent's actions, newest first.
///
/// # Errors
/// If the table does not answer.
pub async fn query_actions(
    data: &Data,
    owner: &Owner,
    agent: AgentId,
    QueryActions { state, limit }: QueryActions,
) -> Result<String> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let (mut rows, mut after, mut scanned) = (Vec::new(), None::<String>, 0);
    while rows.len() < limit && scanned < MAX_SCANNED {
        let found = data.store.agent_actions(owner, agent, after.as_deref(), 100).await?;
        scanned += 100;
        for (_, action) in found.items {
            if rows.len() < limit && state.is_none_or(|state| action.value.state == state) {
                rows.push(action_row(&action.value));
            }
        }
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    Ok(json!({ "actions": rows }).to_string())
}

fn action_row(action: &Action) -> serde_json::Value {
    let due = action.schedule.as_ref().zip(action.next_due);
    json!({
        "action_id": action.id,
        "title": action.title,
        "state": action.state,
        "schedule": action.schedule_text(),
        "next_due": due.map(|(schedule, due)| moment_in_words(due, schedule.time_zone())),
    })
}

/// How many actions of an agent are explained at once.
const MAX_EXPLAINED: usize = 20;

/// How many of the newest due times of an action are looked at, if it is one of many, and if it is asked about.
const NEWEST_OF_MANY: usize = 3;
const NEWEST_OF_ONE: usize = 20;

/// The longest explanation, in bytes. It may quote a server.
const MAX_EXPLANATION: usize = 500;

/// Why an agent's actions did not run, or will not: one of them, or the newest ones. `None`: this agent has no such action.
///
/// # Errors
/// If the table does not answer.
pub async fn explain_action(
    data: &Data,
    owner: &Owner,
    agent: AgentId,
    ExplainOwnAction { action_id, at }: ExplainOwnAction,
) -> Result<Option<String>> {
    let Some(agent) = data.store.agent(owner, agent).await?.map(|found| found.value) else { return Ok(None) };
    let stopped_at = data.store.account(owner).await?.value.stop.map(|stop| stop.at);
    let row = |action: Action, most: usize| explained(data, owner, (action, &agent), stopped_at, most);
    let Some(id) = action_id else {
        let found = data.store.agent_actions(owner, agent.agent_id, None, MAX_EXPLAINED).await?;
        let is_all = found.last.is_none();
        let mut rows = Vec::new();
        for (_, action) in found.items {
            rows.push(row(action.value, NEWEST_OF_MANY).await?);
        }
        return Ok(Some(json!({ "actions": rows, "complete": is_all }).to_string()));
    };
    let found = data.store.action(owner, id).await?.map(|found| found.value);
    let Some(action) = found.filter(|action| action.agent_id == agent.agent_id) else { return Ok(None) };
    let mut answer = json!({ "actions": [row(action, NEWEST_OF_ONE).await?], "complete": true });
    let why = actions::why(data, owner, id, at).await?;
    answer["actions"][0]["explanation"] = json!(short_line(&why.why.sentence, MAX_EXPLANATION));
    Ok(Some(answer.to_string()))
}

async fn explained(
    data: &Data,
    owner: &Owner,
    (action, agent): (Action, &Agent),
    stopped_at: Option<Timestamp>,
    most: usize,
) -> Result<serde_json::Value> {
    let now = data.clock.now();
    // Only of due times: without a schedule, nobody expects a run.
    let is_idle = Idle::of(&action, agent, stopped_at).is_some();
    let idle = is_idle.then(|| Idle::all(&action, agent, stopped_at));
    let words = |idle: Vec<Idle>| idle.into_iter().map(|one| one.text).collect::<Vec<_>>().join(" ");
    let zone = action.schedule.as_ref().map(Schedule::time_zone);
    let due = zone.zip(action.undecided(now, now)).map(|(zone, due)| moment_in_words(due, zone));
    // Due times that come while it is paused have no record.
    let since = zone.zip(action.next_due).filter(|(_, due)| is_idle && *due <= now);
    let not_run = actions::not_run(data, owner, (&action, agent), most).await?;
    let not_run = not_run.iter().map(|one| short_line(&one.sentence, MAX_EXPLANATION));
    Ok(json!({
        "action_id": action.id,
        "title": action.title,
        "state": action.state,
        "will_not_run": idle.map(|idle| short_line(&words(idle), MAX_EXPLANATION)),
        "nothing_ran_since": since.map(|(zone, due)| moment_in_words(due, zone)),
        "next_due": due,
        "did_not_succeed": not_run.collect::<Vec<_>>(),
    }))
}

/// An agent's assets, newest first.
///
/// # Errors
/// If the table does not answer.
pub async fn query_assets(
    data: &Data,
    owner: &Owner,
    agent: AgentId,
    QueryAssets { asset_type, query, limit }: QueryAssets,
) -> Result<String> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let query = query.map(|query| query.to_lowercase());
    let matches = |asset: &Asset| {
        asset_type.is_none_or(|wanted| asset.asset_type == wanted)
            && query.as_deref().is_none_or(|query| {
                asset.title.to_lowercase().contains(query) || asset.description.to_lowercase().contains(query)
            })
    };
    let (mut rows, mut after, mut scanned) = (Vec::new(), None::<String>, 0);
    while rows.len() < limit && scanned < MAX_SCANNED {
        let found = data.store.agent_assets(owner, agent, after.as_deref(), 100).await?;
        scanned += 100;
        for (_, asset) in found.items {
            if rows.len() < limit && matches(&asset.value) {
                let asset = asset.value;
                rows.push(json!({
                    "asset_id": asset.asset_id, "title": asset.title, "description": asset.description,
                    "asset_type": asset.asset_type, "bytes": asset.bytes, "updated_at": asset.updated_at,
                }));
            }
        }
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    Ok(json!({ "assets": rows }).to_string())
}

/// An asset with its content from a byte on, as much of it as a model is shown at once. `None`: this agent has no such
/// asset.
///
/// # Errors
/// If the table or the bucket does not answer.
pub async fn read_asset(
    data: &Data,
    owner: &Owner,
    agent: AgentId,
    ReadAsset { asset_id: id, from_byte }: ReadAsset,
) -> Result<Option<String>> {
    let found = data.store.asset(owner, id).await?;
    let Some(asset) = found.filter(|asset| asset.value.agent_id == agent) else { return Ok(None) };
    let content = assets::content(data, owner, id, None).await?;
    let part = content.excerpt(from_byte, MAX_READ);
    let mut row = json!({
        "asset_id": id, "title": asset.value.title, "asset_type": asset.value.asset_type,
        "content": part.text, "truncated_bytes": part.truncated_bytes,
    });
    if let Some(next_byte) = part.next_byte {
        row["next_byte"] = json!(next_byte);
    }
    Ok(Some(row.to_string()))
}

/// What an agent without documents is told.
const NO_DOCUMENTS: &str = "this agent uses no documents";

/// A document from a byte on, as much of it as a model is shown at once. The inner error is a sentence for the model.
async fn read_document(
    data: &Data,
    owner: &Owner,
    project: ProjectId,
    name: &str,
    from_byte: usize,
) -> Result<std::result::Result<String, String>> {
    let missing = format!("there is no document {name}");
    let Ok(known) = name.parse() else { return Ok(Err(missing)) };
    let document = match living::document(data, owner, project, &known, None).await {
        Err(Error::NotFound(_)) => return Ok(Err(missing)),
        document => document?,
    };
    let part = assets::excerpt(&document.content, from_byte, MAX_READ);
    let mut row = json!({
        "name": name, "version": document.document.version, "content": part.text,
        "truncated_bytes": part.truncated_bytes,
    });
    if let Some(next_byte) = part.next_byte {
        row["next_byte"] = json!(next_byte);
    }
    Ok(Ok(row.to_string()))
}

/// Begins a synchronisation of the documents that an agent uses. The inner error is a sentence for the model.
///
/// # Errors
/// If the table does not answer.
pub async fn sync_documentation(
    data: &Data,
    owner: &Owner,
    reach: Reach,
) -> Result<std::result::Result<String, String>> {
    let Some(project) = reach.documents else { return Ok(Err(NO_DOCUMENTS.to_owned())) };
    // It may be repeated: one that is under way is returned.
    match living::sync::store_request(data, owner, &Once::none(), project).await {
        Ok(sync) if sync.has_ended() => Ok(Ok("the documents know all commits".to_owned())),
        Ok(_) => {
            Ok(Ok("begun: the documents are new in some minutes, if the checks find no fault".to_owned()))
        }
        Err(error @ (Error::NotFound(_) | Error::Conflict { .. })) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Does a call that looks something up. The inner error is a sentence for the model.
///
/// # Errors
/// If the table or the bucket does not answer.
pub async fn look_up(
    data: &Data,
    owner: &Owner,
    Reach { agent, documents }: Reach,
    call: ToolCall,
) -> Result<Result<String, String>> {
    Ok(match call {
        ToolCall::QueryActions(query) => Ok(query_actions(data, owner, agent, query).await?),
        ToolCall::QueryAssets(query) => Ok(query_assets(data, owner, agent, query).await?),
        ToolCall::ReadAsset(asset) => {
            let missing = format!("there is no asset {}", asset.asset_id);
            read_asset(data, owner, agent, asset).await?.ok_or(missing)
        }
        // Practices belong to the person and to no agent.
        ToolCall::QueryPractice(query) => {
            practices::query(data, owner, query).await?.map(|answer| answer.to_string())
        }
        ToolCall::ExplainAction(asked) => {
            let missing = asked.action_id.map_or_else(
                || "this agent does not exist any more".to_owned(),
                |id| format!("there is no action {id}"),
            );
            explain_action(data, owner, agent, asked).await?.ok_or(missing)
        }
        ToolCall::ReadDocument(ReadDocument { name, from_byte }) => {
            let Some(project) = documents else { return Ok(Err(NO_DOCUMENTS.to_owned())) };
            read_document(data, owner, project, &name, from_byte).await?
        }
        ToolCall::SyncDocumentation(_)
        | ToolCall::OfArea(..)
        | ToolCall::Deliver(_)
        | ToolCall::SaveOutput(_)
        | ToolCall::AskPerson(_)
        | ToolCall::ReadResult(_)
        | ToolCall::ChangeAction(_)
        | ToolCall::CommandAction(_)
        | ToolCall::Note(_)
        | ToolCall::NothingNew(_)
        | ToolCall::ReadMessages(_) => Err("this tool does not look anything up".to_owned()),
    })
}
