//! The theme of a project: which files and lines a request is about, and what is wrong with it.

use domain::ids::ProjectId;
use domain::tools::ToolDef;
use domain::tools::theme::{CheckTheme, FixTheme, LookupTheme};
use rmcp::model::JsonObject;
use serde_json::Value;
use shared::flows::existing;
use themes::answers::{self, Ask};
use themes::changes::{self, MadeBy, Place, Target};
use themes::check::{self, ChangedFile, CheckAsk};
use themes::fix::{self, FixAsk};
use themes::{index, tools};

use super::{Failure, ToolResult, to_json};
use crate::client::Client;

pub async fn lookup_theme(client: Client, arguments: LookupTheme) -> ToolResult {
    let LookupTheme { request, active_file, limit, project } = arguments;
    let (cx, owner, project) = (&client.cx, &client.owner, project.unwrap_or(client.place.project));
    changes::asked(Place { cx, owner, project }, MadeBy::from(client.by), &request);
    let ask = Ask { request, active_file, limit, ..Ask::default() };
    let found = answers::lookup(cx, owner, project, &ask).await?;
    if found.targets.is_empty() && index::status(cx, owner, project).await?.files == 0 {
        return Err(no_theme(&client, project));
    }
    to_json(found)
}

pub async fn check_theme(client: Client, arguments: CheckTheme) -> ToolResult {
    let CheckTheme { files, deleted, project } = arguments;
    let files =
        files.into_iter().flatten().map(|file| ChangedFile { path: file.path, content: file.content });
    let ask =
        CheckAsk { files: files.collect(), deleted: deleted.unwrap_or_default(), ..CheckAsk::default() };
    let (cx, owner, project) = (&client.cx, &client.owner, project.unwrap_or(client.place.project));
    let changes_something = !ask.files.is_empty();
    let found = check::check(cx, owner, project, ask).await?;
    if found.files == 0 && !changes_something {
        return Err(no_theme(&client, project));
    }
    to_json(found)
}

pub async fn preview_theme_fix(client: Client, arguments: FixTheme) -> ToolResult {
    let FixTheme { paths, as_meant, project } = arguments;
    let (paths, as_meant) = (paths.unwrap_or_default(), as_meant.unwrap_or_default());
    let ask = FixAsk { paths, as_meant, write: false };
    let (cx, owner, project) = (&client.cx, &client.owner, project.unwrap_or(client.place.project));
    to_json(fix::fix(cx, owner, project, ask).await?)
}

/// A tool of the set `theme`: it works on the newest open change set of this client.
pub async fn tool(client: Client, def: &'static ToolDef, arguments: JsonObject) -> ToolResult {
    let Client { cx, owner, once, by, place, .. } = &client;
    let place = Place { cx, owner, project: place.project };
    let by = MadeBy::from(*by);
    let told = tools::call(place, once, Target::Newest, by, def, Value::Object(arguments)).await?;
    told.map(Value::String).map_err(Failure)
}

/// Whether assistants may apply change sets in the project of the server's address.
pub async fn may_apply(client: &Client) -> bool {
    let project = existing::project(&client.cx, &client.owner, client.place.project).await;
    project.is_ok_and(|project| tools::may_apply(&project.value))
}

fn no_theme(client: &Client, project: ProjectId) -> Failure {
    Failure(format!(
        "The project {project} has no theme. Ask the user to import one: POST {} with a zip of the theme. list_projects \
         shows the other projects; name one of them as `project`.",
        client.path(&format!("/projects/{project}/import"))
    ))
}
