//! The context document: the mode of a prompt, reading, updating and restoring.

use domain::context::{
    Document, MAX_ITERATIONS, Mode, NO_DOCUMENT, RecommendedAgent, Section, Update, mode, recommend,
};
use domain::tools::context::{ListContextVersions, ParseMode, ReadContext, RestoreContext, UpdateContext};
use serde::Serialize;
use serde_json::{Value, json};
use shared::edge::extract::IfMatch;
use shared::flows::page::PageQuery;
use shared::flows::projects::documents::{self, DocumentName, DocumentView};

use super::{Failure, ToolResult, place, to_json};
use crate::client::Client;
use crate::resources::project_name;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModeAnswer {
    mode: Mode,
    original_prompt: String,
    warnings: Vec<String>,
    agent: String,
    #[serde(rename = "delegates_to", skip_serializing_if = "Option::is_none")]
    delegates_to: Option<String>,
    context_file_path: String,
    context_exists: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_document: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_warning: Option<&'static str>,
    /// What happened to the previous document.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_note: Option<String>,
    mandatory_action: Value,
    #[serde(rename = "recommended_act_agent", skip_serializing_if = "Option::is_none")]
    recommended_act_agent: Option<Value>,
    #[serde(rename = "available_act_agents", skip_serializing_if = "Option::is_none")]
    available_act_agents: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auto_config: Option<Value>,
}

pub async fn parse_mode(client: Client, arguments: ParseMode) -> ToolResult {
    let place = place(&client, arguments.project, arguments.workflow)?;
    let request = mode::parse(&arguments.prompt);
    let mode = request.mode;
    let planned = (mode == Mode::Plan).then(|| recommend::recommend(&request.prompt));
    let recommended = planned
        .as_ref()
        .map(|found| RecommendedAgent { name: found.agent.to_owned(), confidence: Some(found.confidence) });
    let entered =
        documents::enter(&client.cx, &client.owner, &client.once, &place, &request, recommended).await?;
    let mut warnings: Vec<String> = request.warnings.iter().map(ToString::to_string).collect();
    if entered.task_cut {
        warnings.push(
            "The prompt has more than 2,000 characters, so the document contains only its beginning."
                .to_owned(),
        );
    }
    let context_note = match (entered.replaced, &entered.document) {
        (Some(version), _) => Some(format!(
            "A new context document was begun. The previous one is kept as version {version}; restore_context restores it."
        )),
        (None, Some(_)) if !request.is_explicit() => Some(
            "The prompt names no mode, so the context document is not changed. Begin a prompt with PLAN to start a new document."
                .to_owned(),
        ),
        _ => None,
    };
    let document = entered.document.as_ref().map(|view| &view.document);
    let delegates_to = (mode == Mode::Act)
        .then(|| arguments.recommended_agent.or_else(|| recommended_agent(document?)))
        .flatten();
    to_json(ModeAnswer {
        mode,
        original_prompt: request.prompt.clone(),
        warnings,
        agent: format!("{}-mode", mode.name().to_lowercase()),
        delegates_to,
        context_file_path: path(&client, &place),
        context_exists: document.is_some(),
        context_version: entered.document.as_ref().map(|view| view.version),
        context_document: document.map(shown),
        context_warning: document.is_none().then_some(NO_DOCUMENT),
        context_note,
        mandatory_action: mandatory_action(mode, document.is_some()),
        recommended_act_agent: planned.map(|found| {
            json!({ "agentName": found.agent, "reason": found.reason, "confidence": found.confidence })
        }),
        available_act_agents: (mode == Mode::Plan).then(|| recommend::agents().collect()),
        auto_config: (mode == Mode::Auto).then(|| json!({ "maxIterations": MAX_ITERATIONS })),
    })
}

fn recommended_agent(document: &Document) -> Option<String> {
    let newest_first = document.sections.iter().rev();
    newest_first
        .filter_map(|section| section.recommended_act_agent.as_ref())
        .map(|agent| agent.name.clone())
        .next()
}

/// What the assistant owes before it ends.
fn mandatory_action(mode: Mode, document: bool) -> Value {
    let (fields, what): (&[&str], _) = match mode {
        Mode::Plan => (&["decisions"], "what you decided, and the agent that should act"),
        Mode::Act => (&["progress"], "what you did"),
        Mode::Eval => (&["findings", "recommendations"], "what you found and what should be done about it"),
        Mode::Auto => (&["progress"], "what this round has decided, done and found"),
    };
    let first = if document {
        ""
    } else {
        "There is no document yet: begin one with a PLAN prompt. Then, before you end, "
    };
    let before = if document { "Before you end, " } else { "" };
    json!({
        "tool": "update_context",
        "arguments": { "mode": mode },
        "requiredFields": fields,
        "description": format!("{first}{before}call update_context with mode {mode} and record {what}."),
    })
}

pub async fn list_context_versions(client: Client, arguments: ListContextVersions) -> ToolResult {
    let place = place(&client, arguments.project, arguments.workflow)?;
    let page = PageQuery { limit: arguments.limit, cursor: arguments.cursor };
    to_json(documents::versions(&client.cx, &client.owner, &place, &page).await?)
}

pub async fn restore_context(client: Client, arguments: RestoreContext) -> ToolResult {
    let place = place(&client, arguments.project, arguments.workflow)?;
    let if_match = arguments.if_version.map(IfMatch);
    let view =
        documents::restore(&client.cx, &client.owner, &client.once, &place, arguments.version, if_match)
            .await?;
    Ok(json!({
        "contextFilePath": path(&client, &place),
        "contextVersion": view.version,
        "contextDocument": shown(&view.document),
    }))
}

pub async fn update_context(client: Client, arguments: UpdateContext) -> ToolResult {
    let mode: Mode = arguments.mode.parse().map_err(|error| Failure(format!("{error}")))?;
    let place = place(&client, arguments.project, arguments.workflow)?;
    let update = Update {
        title: arguments.title,
        task: arguments.task,
        decisions: arguments.decisions.unwrap_or_default(),
        progress: arguments.progress.unwrap_or_default(),
        findings: arguments.findings.unwrap_or_default(),
        recommendations: arguments.recommendations.unwrap_or_default(),
        notes: arguments.notes.unwrap_or_default(),
        recommended_act_agent: arguments.recommended_act_agent,
        recommended_act_agent_confidence: arguments.recommended_act_agent_confidence,
        status: arguments.status,
    };
    let view = documents::update(&client.cx, &client.owner, &client.once, &place, mode, &update).await?;
    let view = view.ok_or_else(|| Failure(NO_DOCUMENT.to_owned()))?;
    to_json(json!({
        "success": true,
        "message": format!("Context document updated: {mode} mode"),
        "contextFilePath": path(&client, &place),
        "contextVersion": view.version,
        "section": view.document.section(mode).map(shown_section),
    }))
}

pub async fn read_context(client: Client, arguments: ReadContext) -> ToolResult {
    let place = place(&client, arguments.project, arguments.workflow)?;
    let found = documents::find(&client.cx, &client.owner, &place).await?;
    let view: DocumentView = match (found, arguments.version) {
        (None, _) => {
            let answer =
                json!({ "exists": false, "contextFilePath": path(&client, &place), "message": NO_DOCUMENT });
            return Ok(answer);
        }
        (Some(view), None) => view,
        (Some(_), version) => documents::read(&client.cx, &client.owner, &place, version).await?,
    };
    Ok(json!({
        "exists": true,
        "contextFilePath": path(&client, &place),
        "contextVersion": view.version,
        "contextDocument": shown(&view.document),
    }))
}

/// Where the document can be read as Markdown over HTTP.
fn path(client: &Client, place: &DocumentName) -> String {
    let path = client.path(&format!("/projects/{}/context.md", project_name(place.project)));
    match place.workflow.as_str() {
        "default" => path,
        workflow => format!("{path}?workflow={workflow}"),
    }
}

fn shown(document: &Document) -> Value {
    let mut metadata = json!({ "createdAt": document.created_at, "lastUpdatedAt": document.updated_at });
    for (name, text) in [("title", &document.title), ("task", &document.task)] {
        if let Some(text) = text {
            metadata[name] = json!(text);
        }
    }
    let sections: Vec<Value> = document.sections.iter().map(shown_section).collect();
    json!({ "metadata": metadata, "sections": sections })
}

fn shown_section(section: &Section) -> Value {
    let mut shown = json!({ "mode": section.mode, "timestamp": section.updated_at });
    for (name, list) in section.lists() {
        shown[name] = json!(list);
    }
    let texts =
        [("status", &section.status), ("primaryAgent", &section.primary_agent), ("task", &section.task)];
    for (name, text) in texts {
        if let Some(text) = text {
            shown[name] = json!(text);
        }
    }
    if let Some(agent) = &section.recommended_act_agent {
        shown["recommendedActAgent"] = json!(agent.name);
        if let Some(confidence) = agent.confidence {
            shown["recommendedActAgentConfidence"] = json!(confidence);
        }
    }
    shown
}
