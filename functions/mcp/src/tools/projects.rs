//! Projects and the workflows in them: what a call may name as `project` and `workflow`.

use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::flows::documents::{self, DocumentView};
use shared::flows::projects;
use shared::page::PageQuery;

use super::{Failure, given, project};
use crate::server::Server;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListProjects {
    /// How many, 1 to 200. Default 50.
    limit: Option<usize>,
    /// next_cursor of the page before.
    cursor: Option<String>,
}

pub async fn list_projects(server: Server, arguments: ListProjects) -> Result<Value, Failure> {
    let page = PageQuery { limit: arguments.limit, cursor: arguments.cursor };
    given(projects::list(&server.cx, &server.owner, &page).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListWorkflows {
    /// The project's id. Without it, the one of the server's address.
    project: Option<String>,
    /// How many, 1 to 200. Default 50.
    limit: Option<usize>,
    /// next_cursor of the page before.
    cursor: Option<String>,
}

pub async fn list_workflows(server: Server, arguments: ListWorkflows) -> Result<Value, Failure> {
    let project = project(&server, arguments.project)?;
    let page = PageQuery { limit: arguments.limit, cursor: arguments.cursor };
    let found = documents::list(&server.cx, &server.owner, project, &page).await?;
    // Documents are long; read_context gives one.
    given(found.map(summary))
}

fn summary(DocumentView { workflow, document, version, .. }: DocumentView) -> Value {
    let modes: Vec<_> = document.sections.iter().map(|section| section.mode).collect();
    let mut summary = json!({
        "workflow": workflow, "contextVersion": version, "lastUpdatedAt": document.updated_at, "modes": modes,
    });
    for (name, text) in [("title", document.title), ("task", document.task)] {
        if let Some(text) = text {
            summary[name] = json!(text);
        }
    }
    summary
}
