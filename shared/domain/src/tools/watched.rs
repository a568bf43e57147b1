//! The tool with which a routine that something else runs reports.

use serde::Deserialize;
use serde_json::json;

use super::Effect::Write;
use super::Surface::Mcp;
use super::ToolDef;
use super::schema::{object, optional, text, up_to};
use crate::watched::witness::{MAX_LINK, MAX_NAME, MAX_SUMMARY};

pub static REPORT_RUN: ToolDef = ToolDef {
    title: Some("Report run"),
    ..ToolDef::new(
        "report_run",
        "Reports the end of a scheduled routine that the user watches here. Call it once, at the end of the routine.",
        Write,
        &[Mcp],
        || {
            let properties = json!({
                "watched": text("Name or id of the watched schedule.", MAX_NAME),
                "ok": {"type": "boolean", "description": "Whether it succeeded. Default: true."},
                "summary": up_to("What came of it.", MAX_SUMMARY),
                "link": optional(up_to("Where the result is: https.", MAX_LINK)),
            });
            object(&properties, &["watched"])
        },
    )
};

/// The arguments of [`REPORT_RUN`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportRun {
    pub watched: String,
    #[serde(default = "yes")]
    pub ok: bool,
    #[serde(default)]
    pub summary: String,
    pub link: Option<String>,
}

fn yes() -> bool {
    true
}
