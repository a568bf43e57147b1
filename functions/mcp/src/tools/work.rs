//! Agents, assets and actions: list, read and propose. A proposal waits for a person: an agent is created paused, an asset or
//! an action is stored as a proposal of its agent.

use domain::actions::TaskConfig;
use domain::agents::NewAgent;
use domain::assets::NewAsset;
use domain::chats::signals::ActionDraft;
use domain::tools::actions::{ListActions, ProposeAction, ReadAction};
use domain::tools::agents::{ListAgents, ProposeAgent, ReadAgent};
use domain::tools::assets::{ListAssets, ProposeAsset, ReadAnyAsset};
use serde_json::{Value, json};
use shared::flows::actions::{self, proposals};
use shared::flows::agents::{self, assets};
use shared::flows::existing;
use shared::flows::page::PageQuery;

use super::{ToolResult, to_json};
use crate::client::Client;

/// The longest part of a content in one result, in bytes.
const MAX_PART: usize = 256 * 1024;

fn page(limit: Option<usize>, cursor: Option<String>) -> PageQuery {
    PageQuery { limit, cursor }
}

pub async fn list_agents(client: Client, arguments: ListAgents) -> ToolResult {
    let page = page(arguments.limit, arguments.cursor);
    to_json(agents::list(&client.cx, &client.owner, arguments.status, &page).await?)
}

pub async fn read_agent(client: Client, arguments: ReadAgent) -> ToolResult {
    to_json(agents::read(&client.cx, &client.owner, arguments.agent_id).await?)
}

pub async fn propose_agent(client: Client, arguments: ProposeAgent) -> ToolResult {
    let ProposeAgent { name, goal, success_criteria, timeline, instructions } = arguments;
    let new = NewAgent { name, goal, success_criteria, timeline, instructions, ..NewAgent::default() };
    to_json(agents::propose(&client.cx, &client.owner, &client.once, client.by, new).await?)
}

pub async fn list_assets(client: Client, arguments: ListAssets) -> ToolResult {
    let page = page(arguments.limit, arguments.cursor);
    let Client { cx, owner, .. } = &client;
    if let Some(agent) = arguments.agent_id {
        existing::agent(cx, owner, agent).await?;
    }
    to_json(assets::list(cx, owner, arguments.agent_id, arguments.asset_type, &page).await?)
}

pub async fn read_asset(client: Client, arguments: ReadAnyAsset) -> ToolResult {
    let ReadAnyAsset { asset_id, version, from_byte } = arguments;
    let content = assets::content(&client.cx, &client.owner, asset_id, version).await?;
    let part = content.excerpt(from_byte.unwrap_or(0), MAX_PART);
    let mut answer = json!({
        "asset_id": asset_id,
        "title": content.version.title,
        "asset_type": content.version.asset_type,
        "content_version": content.version.content_version,
        "content": part.text,
        "truncated_bytes": part.truncated_bytes,
    });
    if let Some(next_byte) = part.next_byte {
        answer["next_byte"] = json!(next_byte);
    }
    Ok(answer)
}

pub async fn propose_asset(client: Client, arguments: ProposeAsset) -> ToolResult {
    let ProposeAsset { agent_id, title, description, asset_type, content } = arguments;
    let asset = NewAsset { title, description, asset_type: asset_type.unwrap_or_default(), content };
    to_json(proposals::propose_asset(&client.cx, &client.owner, &client.once, agent_id, asset).await?)
}

pub async fn list_actions(client: Client, arguments: ListActions) -> ToolResult {
    let page = page(arguments.limit, arguments.cursor);
    to_json(actions::list(&client.cx, &client.owner, arguments.agent_id, arguments.state, &page).await?)
}

pub async fn read_action(client: Client, arguments: ReadAction) -> ToolResult {
    to_json(actions::read(&client.cx, &client.owner, arguments.action_id).await?)
}

pub async fn propose_action(client: Client, arguments: ProposeAction) -> ToolResult {
    let Client { cx, owner, once, .. } = &client;
    let draft = ActionDraft {
        title: arguments.title,
        description: arguments.description,
        priority: arguments.priority.unwrap_or_default(),
        task_config: TaskConfig {
            instructions: arguments.instructions,
            expected_output: arguments.expected_output,
        },
        schedule: arguments.schedule.map(Value::Object),
        conditions: Vec::new(),
    };
    to_json(proposals::propose_action(cx, owner, once, arguments.agent_id, draft).await?)
}
