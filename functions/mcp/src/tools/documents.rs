//! Living documents of a project.

use domain::living::Commit;
use domain::living::commit::MAX_FILES;
use domain::tools::documents::{AddCommit, ReadProjectDocument, SyncProjectDocumentation};
use shared::flows::projects::living::commits::{self, NewCommits};
use shared::flows::projects::living::{self, sync};

use super::{ToolResult, project, to_json};
use crate::client::Client;

pub async fn read_document(client: Client, arguments: ReadProjectDocument) -> ToolResult {
    let project = project(&client, arguments.project)?;
    let Client { cx, owner, .. } = &client;
    match arguments.name {
        None => to_json(living::overview(cx, owner, project).await?),
        Some(name) => to_json(living::document(cx, owner, project, &living::name(&name)?, None).await?),
    }
}

pub async fn sync_documentation(client: Client, arguments: SyncProjectDocumentation) -> ToolResult {
    let project = project(&client, arguments.project)?;
    let Client { cx, owner, once, .. } = &client;
    to_json(sync::request(cx, owner, once, project).await?)
}

pub async fn add_commit(client: Client, arguments: AddCommit) -> ToolResult {
    let AddCommit { project: given, id, at, author, message, files } = arguments;
    let project = project(&client, given)?;
    let mut files = files.unwrap_or_default();
    let more_files = files.len().saturating_sub(MAX_FILES);
    files.truncate(MAX_FILES);
    let more_files = u32::try_from(more_files).unwrap_or(u32::MAX);
    let commit = Commit { id, at, author, message, files, more_files };
    let Client { cx, owner, once, .. } = &client;
    to_json(
        commits::add(cx, owner, once, project, NewCommits { commits: vec![commit], report: Vec::new() })
            .await?,
    )
}
