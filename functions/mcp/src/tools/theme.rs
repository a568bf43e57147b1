//! The theme of a project: which files and lines a request is about.

use domain::tools::theme::LookupTheme;
use shared::flows::themes::answers::{self, Ask};
use shared::flows::themes::index;

use super::{Failure, ToolResult, to_json};
use crate::client::Client;

pub async fn lookup_theme(client: Client, arguments: LookupTheme) -> ToolResult {
    let LookupTheme { request, active_file, limit, project } = arguments;
    let ask = Ask { request, active_file, limit };
    let (cx, owner, project) = (&client.cx, &client.owner, project.unwrap_or(client.place.project));
    let found = answers::lookup(cx, owner, project, &ask).await?;
    if found.targets.is_empty() && index::status(cx, owner, project).await?.files == 0 {
        return Err(Failure(format!(
            "The project {project} has no theme. Ask the user to import one: POST {} with a zip of the theme. list_projects \
             shows the other projects; name one of them as `project`.",
            client.path(&format!("/projects/{project}/import"))
        )));
    }
    to_json(found)
}
