//! A theme: which files and lines a request is about.

use domain::ids::ProjectId;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;
use shared::flows::themes::answers::{self, Ask};
use shared::flows::themes::index;

use super::{Failure, given};
use crate::server::Server;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LookupTheme {
    /// What is asked for, in the user's words.
    #[schemars(length(min = 1, max = 10000))]
    request: String,
    /// The path of the file that the user has open.
    active_file: Option<String>,
    /// How many files at most, 1 to 100. Default 8.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// The project's id. Without it, the one of the server's address.
    #[schemars(with = "Option<String>")]
    project: Option<ProjectId>,
}

pub async fn lookup_theme(server: Server, arguments: LookupTheme) -> Result<Value, Failure> {
    let LookupTheme { request, active_file, limit, project } = arguments;
    let ask = Ask { request, active_file, limit };
    let (cx, owner, project) = (&server.cx, &server.owner, project.unwrap_or(server.place.project));
    let found = answers::lookup(cx, owner, project, &ask).await?;
    if found.targets.is_empty() && index::status(cx, owner, project).await?.files == 0 {
        return Err(Failure(format!(
            "The project {project} has no theme. Ask the user to import one: POST {} with a zip of the theme. list_projects \
             shows the other projects; name one of them as `project`.",
            server.path(&format!("/projects/{project}/import"))
        )));
    }
    given(found)
}
