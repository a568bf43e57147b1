//! Tools about the context document of a workflow.

use serde::Deserialize;
use serde_json::json;

use super::Effect::{Read, Write};
use super::Surface::Mcp;
use super::ToolDef;
use super::output::{self, page};
use super::schema::{choice, integer, listing, object, optional, project, string, up_to, workflow};

pub static PARSE_MODE: ToolDef = ToolDef {
    title: Some("Parse mode"),
    replaces: true,
    ..ToolDef::new(
        "parse_mode",
        "Call this first with every prompt of the user. It returns the prompt's mode, the context document, and the \
         update_context call that you must make before you end. PLAN, and AUTO with a new task, start a new document; the old \
         one is kept as a version. A prompt without a mode changes nothing.",
        Write,
        &[Mcp],
        || {
            let properties = json!({
                "prompt": string("Word for word. Its first word may be PLAN, ACT, EVAL or AUTO."),
                "recommended_agent": optional(string("The agent that the plan recommended for ACT.")),
                "project": project(),
                "workflow": workflow(),
            });
            object(&properties, &["prompt"])
        },
    )
};

/// The arguments of [`PARSE_MODE`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParseMode {
    pub prompt: String,
    pub recommended_agent: Option<String>,
    pub project: Option<String>,
    pub workflow: Option<String>,
}

pub static UPDATE_CONTEXT: ToolDef = ToolDef {
    title: Some("Update context"),
    idempotent: true,
    output: Some(|| {
        output::object(&[
            ("success", "boolean"),
            ("message", "string"),
            ("contextFilePath", "string"),
            ("contextVersion", "integer"),
            ("section", "object"),
        ])
    }),
    ..ToolDef::new(
        "update_context",
        "Adds items to a mode's section of the context document. It removes nothing, and adds no item twice. At most 100 items \
         in one call.",
        Write,
        &[Mcp],
        || {
            let items = |description: &str| {
                optional(
                    json!({"type": "array", "items": {"type": "string", "maxLength": 2_000}, "description": description}),
                )
            };
            let confidence = json!({
                "type": "number", "minimum": 0, "maximum": 1,
                "description": "How sure you are of that agent.",
            });
            let properties = json!({
                "mode": choice(&["PLAN", "ACT", "EVAL", "AUTO"], "The section to update."),
                "title": optional(up_to("The document's title.", 200)),
                "task": optional(up_to(
                    "In PLAN and AUTO of the document, in ACT and EVAL of the section.",
                    2_000,
                )),
                "decisions": items("Each with its reason."),
                "notes": items("What else must not be forgotten."),
                "progress": items("What was done."),
                "findings": items("What was found."),
                "recommendations": items("What to do about the findings."),
                "recommendedActAgent": optional(up_to("The agent that should carry out the plan.", 100)),
                "recommendedActAgentConfidence": optional(confidence),
                "status": optional(up_to("in_progress, completed or blocked.", 100)),
                "project": project(),
                "workflow": workflow(),
            });
            object(&properties, &["mode"])
        },
    )
};

/// The arguments of [`UPDATE_CONTEXT`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UpdateContext {
    pub mode: String,
    pub title: Option<String>,
    pub task: Option<String>,
    pub decisions: Option<Vec<String>>,
    pub notes: Option<Vec<String>>,
    pub progress: Option<Vec<String>>,
    pub findings: Option<Vec<String>>,
    pub recommendations: Option<Vec<String>>,
    pub recommended_act_agent: Option<String>,
    pub recommended_act_agent_confidence: Option<f64>,
    pub status: Option<String>,
    pub project: Option<String>,
    pub workflow: Option<String>,
}

pub static READ_CONTEXT: ToolDef = ToolDef {
    title: Some("Read context"),
    ..ToolDef::new(
        "read_context",
        "Returns the context document: what was planned, done and found.",
        Read,
        &[Mcp],
        || {
            let properties = json!({
                "version": optional(integer("Default: the newest.", 0, None)),
                "project": project(),
                "workflow": workflow(),
            });
            object(&properties, &[])
        },
    )
};

/// The arguments of [`READ_CONTEXT`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadContext {
    pub version: Option<u64>,
    pub project: Option<String>,
    pub workflow: Option<String>,
}

pub static LIST_CONTEXT_VERSIONS: ToolDef = ToolDef {
    title: Some("List context versions"),
    output: Some(|| page(&[("version", "integer"), ("cause", "string"), ("written_at", "string")])),
    ..ToolDef::new(
        "list_context_versions",
        "Lists the versions of the context document, newest first, with the cause of each. read_context reads one.",
        Read,
        &[Mcp],
        || listing(json!({"project": project(), "workflow": workflow()}), &[]),
    )
};

/// The arguments of [`LIST_CONTEXT_VERSIONS`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListContextVersions {
    pub limit: Option<usize>,
    pub cursor: Option<String>,
    pub project: Option<String>,
    pub workflow: Option<String>,
}

pub static RESTORE_CONTEXT: ToolDef = ToolDef {
    title: Some("Restore context"),
    replaces: true,
    ..ToolDef::new(
        "restore_context",
        "Makes an older version of the context document the newest. The replaced one is kept as a version.",
        Write,
        &[Mcp],
        || {
            let properties = json!({
                "version": integer("From list_context_versions.", 0, None),
                "if_version": optional(integer(
                    "The contextVersion that you know. A document that has changed since then is left alone.",
                    0,
                    None,
                )),
                "project": project(),
                "workflow": workflow(),
            });
            object(&properties, &["version"])
        },
    )
};

/// The arguments of [`RESTORE_CONTEXT`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreContext {
    pub version: u64,
    pub if_version: Option<u64>,
    pub project: Option<String>,
    pub workflow: Option<String>,
}
