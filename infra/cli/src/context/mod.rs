//! `lamplighter context`: the context documents of a project, all agents' logs as files, and the section that teaches agent
//! templates to read them.

pub mod edit;
pub mod export;
pub mod init;
mod section;
pub mod show;
mod templates;

use crate::Failure;
use crate::args::Document;
use crate::config::Settings;
use crate::url::segment;

/// The path of a document.
fn path(document: &Document, settings: &Settings) -> Result<String, Failure> {
    let project = document.project.as_ref().or(settings.project.as_ref());
    let project = project.ok_or_else(|| {
        Failure::Message(
            "which project? Give --project, set LAMPLIGHTER_PROJECT, or write `project = \"…\"` into lamplighter.toml"
                .to_owned(),
        )
    })?;
    Ok(format!("/projects/{}/context.md", segment(project)))
}
