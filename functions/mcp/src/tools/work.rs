//! Agents, assets and actions: listed, read and proposed. What is proposed waits for a person: an agent paused, an
//! asset or an action among the agent's proposals.

use domain::actions::{ActionState, Priority, TaskConfig};
use domain::agents::{AgentStatus, NewAgent};
use domain::assets::{AssetType, NewAsset};
use domain::chats::signals::ActionDraft;
use domain::ids::{ActionId, AgentId, AssetId};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::flows::{actions, agents, assets, proposals};
use shared::page::PageQuery;

use super::{Failure, given};
use crate::server::Server;

/// The most of a content that a model is shown, in bytes.
const MAX_SHOWN: usize = 256 * 1024;

fn page(limit: Option<usize>, cursor: Option<String>) -> PageQuery {
    PageQuery { limit, cursor }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAgents {
    /// Only agents with this status.
    #[schemars(with = "Option<String>", extend("enum" = ["active", "paused", "archived", null]))]
    status: Option<AgentStatus>,
    /// How many, 1 to 200. Default 50.
    limit: Option<usize>,
    /// next_cursor of the page before.
    cursor: Option<String>,
}

pub async fn list_agents(server: Server, arguments: ListAgents) -> Result<Value, Failure> {
    let page = page(arguments.limit, arguments.cursor);
    given(agents::list(&server.cx, &server.owner, arguments.status, &page).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadAgent {
    #[schemars(with = "String")]
    agent_id: AgentId,
}

pub async fn read_agent(server: Server, arguments: ReadAgent) -> Result<Value, Failure> {
    given(agents::read(&server.cx, &server.owner, arguments.agent_id).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeAgent {
    #[schemars(length(min = 1, max = 200))]
    name: String,
    /// At its best "A \[type\] agent that \[does what\]".
    #[schemars(length(min = 1, max = 2000))]
    goal: String,
    #[serde(default)]
    success_criteria: String,
    /// A date, a range or "Ongoing".
    #[serde(default)]
    timeline: String,
    /// How it should work.
    #[serde(default)]
    #[schemars(length(max = 20000))]
    instructions: String,
}

pub async fn propose_agent(server: Server, arguments: ProposeAgent) -> Result<Value, Failure> {
    let ProposeAgent { name, goal, success_criteria, timeline, instructions } = arguments;
    let new = NewAgent { name, goal, success_criteria, timeline, instructions, ..NewAgent::default() };
    given(agents::propose(&server.cx, &server.owner, new).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAssets {
    /// Only those of this agent.
    #[schemars(with = "Option<String>")]
    agent_id: Option<AgentId>,
    #[schemars(with = "Option<String>", extend("enum" = ["document", "code", "prompt", "email", null]))]
    asset_type: Option<AssetType>,
    /// How many, 1 to 200. Default 50.
    limit: Option<usize>,
    /// next_cursor of the page before.
    cursor: Option<String>,
}

pub async fn list_assets(server: Server, arguments: ListAssets) -> Result<Value, Failure> {
    let page = page(arguments.limit, arguments.cursor);
    let Server { cx, owner, .. } = &server;
    if let Some(agent) = arguments.agent_id {
        agents::load(cx, owner, agent).await?;
    }
    given(assets::list(cx, owner, arguments.agent_id, arguments.asset_type, &page).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadAsset {
    #[schemars(with = "String")]
    asset_id: AssetId,
    /// An older version of the content. Without it, the newest.
    version: Option<u64>,
}

pub async fn read_asset(server: Server, arguments: ReadAsset) -> Result<Value, Failure> {
    let Server { cx, owner, .. } = &server;
    let content = assets::content(cx, owner, arguments.asset_id, arguments.version).await?;
    let mut end = content.text.len().min(MAX_SHOWN);
    while !content.text.is_char_boundary(end) {
        end -= 1;
    }
    Ok(json!({
        "asset_id": arguments.asset_id,
        "title": content.version.title,
        "asset_type": content.version.asset_type,
        "content_version": content.version.content_version,
        "content": content.text[..end],
        "truncated_bytes": content.text.len() - end,
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeAsset {
    /// The agent whose asset it would be.
    #[schemars(with = "String")]
    agent_id: AgentId,
    #[schemars(length(min = 1, max = 200))]
    title: String,
    #[serde(default)]
    #[schemars(length(max = 2000))]
    description: String,
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("enum" = ["document", "code", "prompt", "email", null]))]
    asset_type: Option<AssetType>,
    /// The whole content.
    content: String,
}

pub async fn propose_asset(server: Server, arguments: ProposeAsset) -> Result<Value, Failure> {
    let ProposeAsset { agent_id, title, description, asset_type, content } = arguments;
    let asset = NewAsset { title, description, asset_type: asset_type.unwrap_or_default(), content };
    given(proposals::propose_asset(&server.cx, &server.owner, agent_id, asset).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListActions {
    /// Only those of this agent.
    #[schemars(with = "Option<String>")]
    agent_id: Option<AgentId>,
    /// Only those in this state.
    #[schemars(with = "Option<String>", extend("enum" = [
        "defined", "scheduled", "paused", "in_progress", "completed", "failed", "needs_approval", "dismissed", null
    ]))]
    state: Option<ActionState>,
    /// How many, 1 to 200. Default 50.
    limit: Option<usize>,
    /// next_cursor of the page before.
    cursor: Option<String>,
}

pub async fn list_actions(server: Server, arguments: ListActions) -> Result<Value, Failure> {
    let page = page(arguments.limit, arguments.cursor);
    given(actions::list(&server.cx, &server.owner, arguments.agent_id, arguments.state, &page).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadAction {
    #[schemars(with = "String")]
    action_id: ActionId,
}

pub async fn read_action(server: Server, arguments: ReadAction) -> Result<Value, Failure> {
    given(actions::read(&server.cx, &server.owner, arguments.action_id).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeAction {
    /// The agent that would do it.
    #[schemars(with = "String")]
    agent_id: AgentId,
    #[schemars(length(min = 1, max = 200))]
    title: String,
    #[serde(default)]
    #[schemars(length(max = 2000))]
    description: String,
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("enum" = ["high", "medium", "low", null]))]
    priority: Option<Priority>,
    /// What the agent is to do, with all it has to know.
    #[schemars(length(min = 1, max = 20000))]
    instructions: String,
    /// What it is to bring.
    #[schemars(length(min = 1, max = 5000))]
    expected_output: String,
    /// When it would run: once (at), at a distance (every) or by the calendar (cron). preview_schedule shows the times. Without
    /// it, the user says when.
    #[schemars(schema_with = "super::schedules::shapes")]
    #[serde(default)]
    schedule: Option<serde_json::Map<String, Value>>,
}

pub async fn propose_action(server: Server, arguments: ProposeAction) -> Result<Value, Failure> {
    let Server { cx, owner, .. } = &server;
    let draft = ActionDraft {
        title: arguments.title,
        description: arguments.description,
        priority: arguments.priority.unwrap_or_default(),
        task_config: TaskConfig {
            instructions: arguments.instructions,
            expected_output: arguments.expected_output,
        },
        schedule: arguments.schedule.map(Value::Object),
    };
    given(proposals::propose_action(cx, owner, arguments.agent_id, draft).await?)
}
