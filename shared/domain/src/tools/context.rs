//! Tools about the context document of a workflow.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Effect::{Read, Write};
use super::Surface::Mcp;
use super::ToolDef;
use super::output::{self, document, page, section, with};
use super::schema::{choice, integer, listing, object, optional, project, string, up_to, workflow};

pub static PARSE_MODE: ToolDef = ToolDef {
    title: Some("Parse mode"),
    replaces: true,
    output: Some(mode),
    ..ToolDef::new(
        "parse_mode",
        "Call this first, with the user's prompt word for word. It returns the mode of the prompt, the context document, and \
         the update_context call that you must make before you end. A prompt that begins with PLAN starts a new document, \
         and so does AUTO with a new task; the old document is kept as a version. A prompt without a mode changes nothing.",
        Write,
        &[Mcp],
        || {
            let properties = json!({
                "prompt": string(
                    "The user's prompt, word for word. Its first word may be a mode: PLAN, ACT, EVAL or AUTO.",
                ),
                "recommended_agent": optional(string("The agent that the plan recommended for ACT, if you know it.")),
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

fn mode() -> Value {
    let answer = output::object(&[
        ("mode", "string"),
        ("originalPrompt", "string"),
        ("warnings", "[]string"),
        ("agent", "string"),
        ("delegates_to", "string?"),
        ("contextFilePath", "string"),
        ("contextExists", "boolean"),
        ("contextVersion", "integer?"),
        ("contextWarning", "string?"),
        ("contextNote", "string?"),
        ("available_act_agents", "[]string?"),
    ]);
    let action = output::object(&[
        ("tool", "string"),
        ("arguments", "object"),
        ("requiredFields", "[]string"),
        ("description", "string"),
    ]);
    let agent = output::object(&[("agentName", "string"), ("reason", "string"), ("confidence", "number")]);
    let answer = with(answer, "mandatoryAction", action, true);
    let answer = with(answer, "contextDocument", document(), false);
    let answer = with(answer, "recommended_act_agent", agent, false);
    with(answer, "autoConfig", output::object(&[("maxIterations", "integer")]), false)
}

pub static UPDATE_CONTEXT: ToolDef = ToolDef {
    title: Some("Update context"),
    idempotent: true,
    output: Some(|| {
        let answer = output::object(&[
            ("success", "boolean"),
            ("message", "string"),
            ("contextFilePath", "string"),
            ("contextVersion", "integer"),
        ]);
        with(answer, "section", section(), true)
    }),
    ..ToolDef::new(
        "update_context",
        "Adds items to the section of a mode in the context document. It never removes anything, and it does not add an \
         item twice. A call may have at most 100 items of at most 2,000 characters each.",
        Write,
        &[Mcp],
        || {
            let items = |description: &str| {
                let item = json!({"type": "string", "maxLength": 2_000});
                optional(json!({"type": "array", "items": item, "description": description}))
            };
            let confidence = json!({
                "type": "number", "minimum": 0, "maximum": 1,
                "description": "How sure you are of the recommended agent, from 0 to 1.",
            });
            let properties = json!({
                "mode": choice(&["PLAN", "ACT", "EVAL", "AUTO"], "The mode whose section is updated."),
                "title": optional(up_to("The title of the whole document.", 200)),
                "task": optional(up_to(
                    "What is to be done. In PLAN and AUTO it is the document's task, in ACT and EVAL the section's task.",
                    2_000,
                )),
                "decisions": items("Decisions, each with its reason."),
                "notes": items("Anything else that must not be forgotten."),
                "progress": items("What was done."),
                "findings": items("What was found."),
                "recommendations": items("What should be done about the findings."),
                "recommendedActAgent": optional(up_to("The agent that should carry out the plan.", 100)),
                "recommendedActAgentConfidence": optional(confidence),
                "status": optional(up_to("The section's status: in_progress, completed or blocked.", 100)),
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
    output: Some(|| {
        let answer = output::object(&[
            ("exists", "boolean"),
            ("contextFilePath", "string"),
            ("contextVersion", "integer?"),
            ("message", "string?"),
        ]);
        with(answer, "contextDocument", document(), false)
    }),
    ..ToolDef::new(
        "read_context",
        "Returns the context document: what was planned, done and found.",
        Read,
        &[Mcp],
        || {
            let properties = json!({
                "version": optional(integer("An older version. Default: the newest.", 0, None)),
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
    output: Some(|| {
        page(&[("version", "integer"), ("cause", "string"), ("written_at", "string"), ("bytes", "integer")])
    }),
    ..ToolDef::new(
        "list_context_versions",
        "Lists the versions of the context document, newest first, with the reason why each was written. Call read_context \
         to read one.",
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
    output: Some(|| {
        let answer = output::object(&[("contextFilePath", "string"), ("contextVersion", "integer")]);
        with(answer, "contextDocument", document(), true)
    }),
    ..ToolDef::new(
        "restore_context",
        "Makes an older version of the context document the newest. The replaced document is kept as a version.",
        Write,
        &[Mcp],
        || {
            let properties = json!({
                "version": integer("The version to restore.", 0, None),
                "if_version": optional(integer(
                    "The newest version that you know (contextVersion). If the document has changed since then, nothing is \
                     restored.",
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
