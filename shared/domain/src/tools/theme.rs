//! Tools about the theme of a project.

use serde::Deserialize;
use serde_json::json;

use super::Effect::Read;
use super::Surface::Mcp;
use super::ToolDef;
use super::output::{self, with};
use super::schema::{integer, object, optional, project, string, text};
use crate::ids::ProjectId;

pub static LOOKUP_THEME: ToolDef = ToolDef {
    title: Some("Look up in theme"),
    output: Some(|| {
        let target = output::object(&[
            ("path", "string"),
            ("score", "number"),
            ("ranges", "array"),
            ("reasons", "[]string"),
        ]);
        let answer = output::object(&[
            ("source", "string"),
            ("confident", "boolean"),
            ("related", "array"),
            ("edit_order", "[]string"),
            ("took_us", "integer"),
        ]);
        with(answer, "targets", json!({"type": "array", "items": target}), true)
    }),
    ..ToolDef::new(
        "lookup_theme",
        "Finds the files and lines of the project's shop theme that a request is about, best match first, with the words of the \
         request that were found in each. The answer says if it is not sure, and if the project has no theme.",
        Read,
        &[Mcp],
        || {
            let properties = json!({
                "request": text("The request, in the user's words.", 10_000),
                "active_file": optional(string("The path of the file that the user has open.")),
                "limit": optional(integer("The maximum number of files, 1 to 100. Default 8.", 1, Some(100))),
                "project": project(),
            });
            object(&properties, &["request"])
        },
    )
};

/// The arguments of [`LOOKUP_THEME`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupTheme {
    pub request: String,
    pub active_file: Option<String>,
    pub limit: Option<usize>,
    pub project: Option<ProjectId>,
}
