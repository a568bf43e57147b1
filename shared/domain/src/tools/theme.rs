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
    ..ToolDef::new(
        "lookup_theme",
        "Finds the files and lines of the project's shop theme that a request is about, best match first. \
         confident is false if the answer is not sure.",
        Read,
        &[Mcp],
        || {
            let properties = json!({
                "request": text("In the user's words.", 10_000),
                "active_file": optional(string("Path of the file that the user has open.")),
                "limit": optional(integer("Most files. Default 8.", 1, Some(100))),
                "project": project(),
            });
            object(&properties, &["request"])
        },
    )
};

pub static CHECK_THEME: ToolDef = ToolDef {
    title: Some("Check theme"),
    output: Some(|| {
        let finding = output::object(&[
            ("path", "string"),
            ("line", "integer"),
            ("code", "string"),
            ("severity", "string"),
            ("message", "string"),
        ]);
        let answer = output::object(&[
            ("errors", "integer"),
            ("warnings", "integer"),
            ("infos", "integer"),
            ("has_more", "boolean"),
        ]);
        with(answer, "findings", json!({"type": "array", "items": finding}), true)
    }),
    ..ToolDef::new(
        "check_theme",
        "Checks the project's shop theme: what the shop's platform would refuse, what breaks a page or silently does not \
         work. With files or deleted, it reports only what that change would add, and saves nothing. Check a change before you \
         make it.",
        Read,
        &[Mcp],
        || {
            let file = object(
                &json!({
                    "path": string("For example snippets/price.liquid."),
                    "content": string("The whole new text."),
                }),
                &["path", "content"],
            );
            let properties = json!({
                "files": optional(json!({
                    "type": "array", "maxItems": 200, "items": file,
                    "description": "Added or replaced files.",
                })),
                "deleted": optional(json!({
                    "type": "array", "maxItems": 200, "items": {"type": "string"},
                    "description": "Deleted paths.",
                })),
                "project": project(),
            });
            object(&properties, &[])
        },
    )
};

pub static FIX_THEME: ToolDef = ToolDef {
    title: Some("Preview mends of theme"),
    output: Some(|| {
        let file = output::object(&[("path", "string"), ("diff", "string")]);
        let answer = output::object(&[("refused_before", "integer"), ("refused_after", "integer")]);
        with(answer, "files", json!({"type": "array", "items": file}), true)
    }),
    ..ToolDef::new(
        "preview_theme_fix",
        "Writes what Shopify's strict Liquid refuses in strict Liquid: for each file a diff with reasons, and what a person must \
         decide. Saves nothing: apply the diff.",
        Read,
        &[Mcp],
        || {
            let properties = json!({
                "paths": optional(json!({
                    "type": "array", "maxItems": 200, "items": {"type": "string"}, "description": "Default: all.",
                })),
                "as_meant": optional(json!({
                    "type": "boolean",
                    "description": "Change what the page shows to what was meant, where that is clear.",
                })),
                "project": project(),
            });
            object(&properties, &[])
        },
    )
};

/// The arguments of [`FIX_THEME`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixTheme {
    pub paths: Option<Vec<String>>,
    pub as_meant: Option<bool>,
    pub project: Option<ProjectId>,
}

/// The arguments of [`CHECK_THEME`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckTheme {
    pub files: Option<Vec<ChangedFile>>,
    pub deleted: Option<Vec<String>>,
    pub project: Option<ProjectId>,
}

/// A file of a change.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedFile {
    pub path: String,
    pub content: String,
}

/// The arguments of [`LOOKUP_THEME`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupTheme {
    pub request: String,
    pub active_file: Option<String>,
    pub limit: Option<usize>,
    pub project: Option<ProjectId>,
}
