//! `lamplighter context`: the context documents of a project, all agents' logs as files, and the section that teaches agent
//! templates to read them.

pub mod edit;
pub mod export;
pub mod init;
mod section;
pub mod show;
mod templates;

use crate::args::Document;
use crate::config::Settings;

/// The path of a document.
fn path(document: &Document, settings: &Settings) -> String {
    let project = document.project.as_ref().or(settings.project.as_ref()).cloned().unwrap_or_default();
    format!("/projects/{project}/context.md")
}
