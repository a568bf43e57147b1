//! Tools about projects and their workflows.

use serde::Deserialize;
use serde_json::json;

use super::Effect::Read;
use super::Surface::Mcp;
use super::ToolDef;
use super::output::page;
use super::schema::{listing, project};

pub static LIST_PROJECTS: ToolDef = ToolDef {
    title: Some("List projects"),
    output: Some(|| page(&[("project_id", "string"), ("name", "string")])),
    ..ToolDef::new(
        "list_projects",
        "Lists the user's projects, newest first. A project_id is the argument project of other tools.",
        Read,
        &[Mcp],
        || listing(json!({}), &[]),
    )
};

/// The arguments of [`LIST_PROJECTS`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListProjects {
    pub limit: Option<usize>,
    pub cursor: Option<String>,
}

pub static LIST_WORKFLOWS: ToolDef = ToolDef {
    title: Some("List workflows"),
    output: Some(|| {
        page(&[
            ("workflow", "string"),
            ("version", "integer"),
            ("title", "string?"),
            ("task", "string?"),
            ("updated_at", "string"),
            ("modes", "[]string"),
        ])
    }),
    ..ToolDef::new(
        "list_workflows",
        "Lists a project's workflows, each with the title, task and version of its context document.",
        Read,
        &[Mcp],
        || listing(json!({"project": project()}), &[]),
    )
};

/// The arguments of [`LIST_WORKFLOWS`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListWorkflows {
    pub project: Option<String>,
    pub limit: Option<usize>,
    pub cursor: Option<String>,
}
