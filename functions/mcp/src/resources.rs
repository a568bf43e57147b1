//! Resources: the context documents and the living documents of a project and the memory, as Markdown, and the owner's assets.

use domain::assets::AssetType;
use domain::context::Workflow;
use domain::ids::{AssetId, ProjectId};
use domain::living::DocName;
use domain::practices::day_named;
use jiff::civil::Date;
use rmcp::ErrorData;
use rmcp::model::{ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use shared::Error;
use shared::flows::agents::assets;
use shared::flows::memory::shown;
use shared::flows::page::PageQuery;
use shared::flows::projects::documents::{self, DocumentName, DocumentView};
use shared::flows::projects::living::{self, DocumentRow};

use crate::client::{Client, message};

const SCHEME: &str = "lamplighter://";
const MEMORY: &str = "memory://";
const MARKDOWN: &str = "text/markdown";

/// The URI of a context document.
fn document_uri(place: &DocumentName) -> String {
    format!("{SCHEME}projects/{}/context/{}.md", project_name(place.project), place.workflow)
}

/// The name of a project in paths and URIs.
pub fn project_name(project: ProjectId) -> String {
    if project == ProjectId::DEFAULT { "default".to_owned() } else { project.to_string() }
}

fn mime(asset_type: AssetType) -> &'static str {
    match asset_type {
        AssetType::Document => MARKDOWN,
        AssetType::Code | AssetType::Prompt | AssetType::Email => "text/plain",
    }
}

pub fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{SCHEME}projects/{{project}}/context/{{workflow}}.md"), "context.md")
            .with_title("Context document")
            .with_description("What was planned, done and found in a workflow of a project. The default project and the default workflow are both named `default`.")
            .with_mime_type(MARKDOWN),
        ResourceTemplate::new(format!("{SCHEME}projects/{{project}}/docs/{{name}}"), "document")
            .with_title("Living document")
            .with_description("A document that describes a project, such as ARCHITECTURE.md, with how many commits it is behind.")
            .with_mime_type(MARKDOWN),
        ResourceTemplate::new(format!("{SCHEME}assets/{{asset_id}}"), "asset")
            .with_title("Asset")
            .with_description("The newest content of an asset."),
        ResourceTemplate::new(format!("{MEMORY}days/{{date}}"), "day.md")
            .with_title("Day of the memory")
            .with_description("What was learned on a day, such as 2026-11-26.")
            .with_mime_type(MARKDOWN),
    ]
}

/// Lists resources. The first page begins with the long-term memory and the documents of the project; then come the owner's assets,
/// newest first.
pub async fn list(client: &Client, cursor: Option<String>) -> Result<ListResourcesResult, ErrorData> {
    let mut resources = Vec::new();
    if cursor.is_none() {
        resources.push(
            Resource::new(format!("{MEMORY}long-term"), "long-term.md")
                .with_title("Long-term memory")
                .with_description("What is known about the user from earlier sessions.")
                .with_mime_type(MARKDOWN),
        );
        let page = PageQuery { limit: Some(shared::flows::page::MAX_LIMIT), cursor: None };
        let found = documents::list(&client.cx, &client.owner, client.place.project, &page).await;
        resources.extend(found.map_err(protocol_error)?.data.iter().map(document));
        let docs = living::overview(&client.cx, &client.owner, client.place.project).await;
        let docs = docs.map_err(protocol_error)?;
        resources.extend(docs.documents.iter().map(|document| living_document(docs.project_id, document)));
    }
    let page = PageQuery { limit: None, cursor };
    let found = assets::list(&client.cx, &client.owner, None, None, &page).await.map_err(protocol_error)?;
    resources.extend(found.data.into_iter().map(|view| {
        let asset = view.asset;
        Resource::new(format!("{SCHEME}assets/{}", asset.asset_id), asset.title.clone())
            .with_title(asset.title)
            .with_description(asset.description)
            .with_mime_type(mime(asset.asset_type))
            .with_size(asset.bytes)
    }));
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = found.next_cursor;
    Ok(result)
}

fn document(view: &DocumentView) -> Resource {
    let place = DocumentName { project: view.project_id, workflow: view.workflow.clone() };
    let title = view.document.title.clone().or_else(|| view.document.task.clone());
    Resource::new(document_uri(&place), "context.md")
        .with_title(title.unwrap_or_else(|| format!("Context of {}", view.workflow)))
        .with_description(format!(
            "Context document of the workflow `{}`, version {}",
            view.workflow, view.version
        ))
        .with_mime_type(MARKDOWN)
        .with_size(view.markdown().len() as u64)
}

fn living_document(project: ProjectId, document: &DocumentRow) -> Resource {
    let uri = format!("{SCHEME}projects/{}/docs/{}", project_name(project), document.name);
    Resource::new(uri, document.name.to_string())
        .with_title(document.name.to_string())
        .with_description(format!("Living document, version {}", document.version))
        .with_mime_type(MARKDOWN)
        .with_size(document.bytes)
}

/// Reads the resource with this URI.
///
/// # Errors
/// The protocol's "not found" if there is no such resource.
pub async fn read(client: &Client, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let (text, mime) = match parse(uri).ok_or_else(|| missing(uri))? {
        Target::Document(place) => {
            let found = documents::read(&client.cx, &client.owner, &place, None).await;
            (found.map_err(|error| not_found(error, uri))?.markdown(), MARKDOWN)
        }
        Target::Living(project, name) => {
            let found = living::document(&client.cx, &client.owner, project, &name, None).await;
            (found.map_err(|error| not_found(error, uri))?.content, MARKDOWN)
        }
        Target::Asset(id) => {
            let found = assets::content(&client.cx, &client.owner, id, None).await;
            let content = found.map_err(|error| not_found(error, uri))?;
            (content.text, mime(content.version.asset_type))
        }
        Target::LongTerm => {
            let found = shown::long_term(&client.cx, &client.owner).await;
            (found.map_err(protocol_error)?.markdown, MARKDOWN)
        }
        Target::Day(date) => {
            let found = shown::day_markdown(&client.cx, &client.owner, date).await;
            (found.map_err(|error| not_found(error, uri))?, MARKDOWN)
        }
    };
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(mime)]))
}

#[derive(Debug, PartialEq, Eq)]
enum Target {
    Document(DocumentName),
    Living(ProjectId, DocName),
    Asset(AssetId),
    LongTerm,
    Day(Date),
}

fn parse(uri: &str) -> Option<Target> {
    if let Some(path) = uri.strip_prefix(MEMORY) {
        let date = path.strip_prefix("days/");
        return match date {
            Some(date) => day_named(date).ok().map(Target::Day),
            None => (path == "long-term").then_some(Target::LongTerm),
        };
    }
    let path = uri.strip_prefix(SCHEME)?;
    if let Some(id) = path.strip_prefix("assets/") {
        return id.parse().ok().map(Target::Asset);
    }
    let (project, rest) = path.strip_prefix("projects/")?.split_once('/')?;
    if let Some(name) = rest.strip_prefix("docs/") {
        return Some(Target::Living(project.parse().ok()?, name.parse().ok()?));
    }
    let workflow: Workflow = rest.strip_prefix("context/")?.strip_suffix(".md")?.parse().ok()?;
    Some(Target::Document(DocumentName { project: project.parse().ok()?, workflow }))
}

fn not_found(error: Error, uri: &str) -> ErrorData {
    match error {
        Error::NotFound(_) => missing(uri),
        other => protocol_error(other),
    }
}

fn missing(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("there is no resource {uri}"), Some(json!({"uri": uri})))
}

fn protocol_error(error: Error) -> ErrorData {
    if error.status().is_server_error() {
        ErrorData::internal_error(message(error), None)
    } else {
        ErrorData::invalid_params(message(error), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_parsed_back_to_its_resource() {
        let project = "prj_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c".parse().unwrap();
        for (project, workflow, uri) in [
            (ProjectId::DEFAULT, "default", "lamplighter://projects/default/context/default.md"),
            (project, "v1.2", "lamplighter://projects/prj_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c/context/v1.2.md"),
        ] {
            let place = DocumentName { project, workflow: workflow.parse().unwrap() };
            assert_eq!(document_uri(&place), uri);
            assert_eq!(parse(uri), Some(Target::Document(place)));
        }
        let asset = "ast_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c";
        assert_eq!(
            parse(&format!("lamplighter://assets/{asset}")),
            Some(Target::Asset(asset.parse().unwrap()))
        );
        assert_eq!(parse("memory://long-term"), Some(Target::LongTerm));
        assert_eq!(parse("memory://days/2026-11-26"), Some(Target::Day(jiff::civil::date(2026, 11, 26))));
        for wrong in [
            "",
            "memory://",
            "memory://days/",
            "memory://days/today",
            "memory://days/2026-11-26/x",
            "memory://long-term/",
            "lamplighter://",
            "file:///etc/passwd",
            "lamplighter://assets/../../etc",
            "lamplighter://projects/default/context/../x.md",
            "lamplighter://projects/default/context/default",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
