//! `theme`: checks, mends, searches and maps the theme of a project, or of a folder without a server.

mod fixes;
mod folder;
mod listed;
mod project;
mod report;
mod shown;

use std::path::Path;

use serde_json::Value;

use self::report::{Place, Style};
use super::api::Api;
use super::screen::{Screen, print_json};
use super::values::Fields;
use crate::Failure;
use crate::args::{CheckFormat, FixFormat, Theme, ThemeCommand, ThemeOf};
use crate::output;
use crate::project::ProjectId;

/// Answers a question about a theme.
///
/// # Errors
/// If there is no such project or folder, the server does not answer, or the theme has errors or places to mend.
pub fn run(args: &Theme) -> Result<(), Failure> {
    let (ThemeCommand::Check { of, .. }
    | ThemeCommand::Fix { of, .. }
    | ThemeCommand::Lookup { of, .. }
    | ThemeCommand::Map { of, .. }
    | ThemeCommand::Graph { of, .. }) = &args.command;
    let Some(project) = project_of(of) else {
        let (answer, folder) = folder::ask(&of.theme, &args.command)?;
        return show(&args.command, Some(&folder), answer);
    };
    let api = Api::open()?;
    let answer = project::ask(&api, &project, &args.command)?;
    if is_for_people(&args.command)
        && finds_nothing(&args.command, &answer)
        && project::is_empty(&api, &project)?
    {
        return Ok(output::print(format!(
            "the project {project} has no files; import a theme as a zip on the page Themes of {}, or with POST /projects/{project}/import\n",
            api.settings.url
        ))?);
    }
    show(&args.command, None, answer)
}

/// Whether the answer has nothing of the theme, as that of a theme without files.
fn finds_nothing(command: &ThemeCommand, answer: &Value) -> bool {
    let are_empty = |lists: &[&str]| lists.iter().all(|list| answer.items(list).is_empty());
    match command {
        ThemeCommand::Check { .. } => answer.number("files") == Some(0),
        ThemeCommand::Fix { .. } => are_empty(&["files"]),
        ThemeCommand::Lookup { .. } => are_empty(&["targets"]),
        ThemeCommand::Map { .. } => answer.text("text").is_empty(),
        ThemeCommand::Graph { file: None, .. } => are_empty(&["probably_unused", "unresolved"]),
        ThemeCommand::Graph { file: Some(_), .. } => false,
    }
}

/// The project. `None` if it is a folder: `./default` is the folder of this name.
fn project_of(of: &ThemeOf) -> Option<ProjectId> {
    of.theme.to_str()?.parse().ok()
}

/// Whether the answer is text for people.
fn is_for_people(command: &ThemeCommand) -> bool {
    match command {
        ThemeCommand::Check { of, format, .. } => {
            !of.json.json && matches!(format, None | Some(CheckFormat::Text | CheckFormat::Github))
        }
        ThemeCommand::Fix { of, format, .. } => !of.json.json && *format != Some(FixFormat::Json),
        ThemeCommand::Lookup { of, .. } | ThemeCommand::Map { of, .. } | ThemeCommand::Graph { of, .. } => {
            !of.json.json
        }
    }
}

/// Prints the answer. `folder` is that of the theme, if it is none of a project.
fn show(command: &ThemeCommand, folder: Option<&Path>, answer: Value) -> Result<(), Failure> {
    let screen = Screen::look();
    let text = match command {
        ThemeCommand::Check { of, overlay, deleted, format, limit } => {
            let default = if of.json.json { CheckFormat::Json } else { CheckFormat::Text };
            let style = Style {
                format: format.unwrap_or(default),
                limit: *limit as usize,
                is_change: overlay.is_some() || !deleted.is_empty(),
            };
            let place = folder.map(|folder| Place::of_folder(folder, overlay.as_deref()));
            return report::print(style, &place.unwrap_or_default(), answer);
        }
        ThemeCommand::Fix { write, .. } => {
            return fixes::print(screen, &answer, *write, is_for_people(command));
        }
        _ if !is_for_people(command) => return print_json(&answer),
        ThemeCommand::Lookup { .. } => shown::targets(screen, &answer),
        ThemeCommand::Map { tokens, .. } => shown::outline(&answer, *tokens),
        ThemeCommand::Graph { file: Some(_), .. } => shown::neighbours(&answer),
        ThemeCommand::Graph { file: None, .. } => shown::unused(&answer),
    };
    output::print(text)?;
    if answer.is("truncated") {
        output::note("not all of it is listed");
    }
    Ok(())
}
