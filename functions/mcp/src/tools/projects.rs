//! Projects and their workflows.

use domain::tools::projects::{ListProjects, ListWorkflows};
use serde_json::{Value, json};
use shared::flows::page::PageQuery;
use shared::flows::projects::documents::{self, DocumentView};
use themes::projects;

use super::{ToolResult, project, to_json};
use crate::client::Client;

pub async fn list_projects(client: Client, arguments: ListProjects) -> ToolResult {
    let page = PageQuery { limit: arguments.limit, cursor: arguments.cursor };
    to_json(projects::list(&client.cx, &client.owner, &page).await?)
}

pub async fn list_workflows(client: Client, arguments: ListWorkflows) -> ToolResult {
    let project = project(&client, arguments.project)?;
    let page = PageQuery { limit: arguments.limit, cursor: arguments.cursor };
    let found = documents::list(&client.cx, &client.owner, project, &page).await?;
    // Documents are long. read_context returns one.
    to_json(found.map(summary))
}

fn summary(DocumentView { workflow, document, version, .. }: DocumentView) -> Value {
    let modes: Vec<_> = document.sections.iter().map(|section| section.mode).collect();
    let mut summary = json!({
        "workflow": workflow, "version": version, "updated_at": document.updated_at, "modes": modes,
    });
    for (name, text) in [("title", document.title), ("task", document.task)] {
        if let Some(text) = text {
            summary[name] = json!(text);
        }
    }
    summary
}
