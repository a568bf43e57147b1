//! `theme`: checks, searches and maps the theme of a project, or of a folder without a server.

mod folder;
mod project;
mod shown;

use serde_json::Value;

use super::api::Api;
use super::screen::{Screen, print_json};
use super::values::{Fields, counted};
use crate::Failure;
use crate::args::{Theme, ThemeCommand, ThemeOf};
use crate::output;
use crate::project::ProjectId;

/// Answers a question about a theme.
///
/// # Errors
/// If there is no such project or folder, the server does not answer, or the theme has errors.
pub fn run(args: &Theme) -> Result<(), Failure> {
    let (ThemeCommand::Check { of, .. }
    | ThemeCommand::Lookup { of, .. }
    | ThemeCommand::Map { of, .. }
    | ThemeCommand::Graph { of, .. }) = &args.command;
    let Some(project) = project_of(of) else {
        return show(&args.command, of.json.json, &folder::ask(&of.theme, &args.command)?);
    };
    let api = Api::open()?;
    let answer = project::ask(&api, &project, &args.command)?;
    if !of.json.json && finds_nothing(&args.command, &answer) && project::is_empty(&api, &project)? {
        return Ok(output::print(format!(
            "the project {project} has no files; import a theme as a zip on the page Themes of {}, or with POST /projects/{project}/import\n",
            api.settings.url
        ))?);
    }
    show(&args.command, of.json.json, &answer)
}

/// Whether the answer has nothing of the theme, as that of a theme without files.
fn finds_nothing(command: &ThemeCommand, answer: &Value) -> bool {
    let are_empty = |lists: &[&str]| lists.iter().all(|list| answer.items(list).is_empty());
    match command {
        ThemeCommand::Check { .. } => answer.number("files") == Some(0),
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

fn show(command: &ThemeCommand, as_json: bool, answer: &Value) -> Result<(), Failure> {
    if as_json {
        print_json(answer)?;
    } else {
        let screen = Screen::look();
        output::print(match command {
            ThemeCommand::Check { .. } => shown::findings(screen, answer),
            ThemeCommand::Lookup { .. } => shown::targets(screen, answer),
            ThemeCommand::Map { tokens, .. } => shown::outline(answer, *tokens),
            ThemeCommand::Graph { file: Some(_), .. } => shown::neighbours(answer),
            ThemeCommand::Graph { file: None, .. } => shown::unused(answer),
        })?;
        if answer.is("has_more") {
            output::note("only the worst findings are listed");
        }
        if answer.is("truncated") {
            output::note("not all of it is listed");
        }
    }
    match (command, answer.number("errors").unwrap_or(0)) {
        (ThemeCommand::Check { .. }, errors) if errors > 0 => {
            Err(Failure::Message(format!("the theme has {}", counted(errors, "error", "errors"))))
        }
        _ => Ok(()),
    }
}
