//! All tools, in the order in which they are listed.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::output::{document, object, page, section, with};
use super::{Callable, Effect, context, logs, projects, runs, schedules, theme, tool, work};

static ALL: LazyLock<Vec<Callable>> = LazyLock::new(|| {
    let all = [
        context_tools(),
        version_tools(),
        log_tools(),
        vec![theme_tool()],
        project_tools(),
        work_tools(),
        run_tools(),
        proposal_tools(),
    ];
    all.into_iter().flatten().collect()
});

pub fn all() -> impl Iterator<Item = &'static Callable> {
    ALL.iter()
}

pub fn find(name: &str) -> Option<&'static Callable> {
    all().find(|tool| tool.about.name == name)
}

fn context_tools() -> Vec<Callable> {
    vec![
        tool(
            "parse_mode",
            "Parse mode",
            "Call this first, with the user's prompt word for word. Says which mode the prompt is in, gives the context \
             document, and names the update you owe before you end. Only a prompt that begins with PLAN, or with AUTO and \
             another task than before, begins a new document; the one before stays as a version. A prompt without a mode \
             changes nothing.",
            Effect::Replaces,
            mode_answer(),
            context::parse_mode,
        ),
        tool(
            "update_context",
            "Update context",
            "Adds to the section of a mode in the context document. Items that are there already are not added twice; \
             nothing that is there is lost. One call may bring at most 100 items of at most 2,000 characters.",
            Effect::Merges,
            with(
                object(&[
                    ("success", "boolean"),
                    ("message", "string"),
                    ("contextFilePath", "string"),
                    ("contextVersion", "integer"),
                ]),
                "section",
                section(),
                true,
            ),
            context::update_context,
        ),
        tool(
            "read_context",
            "Read context",
            "Reads the context document: what was planned, done and found.",
            Effect::Reads,
            with(
                object(&[
                    ("exists", "boolean"),
                    ("contextFilePath", "string"),
                    ("contextVersion", "integer?"),
                    ("message", "string?"),
                ]),
                "contextDocument",
                document(),
                false,
            ),
            context::read_context,
        ),
    ]
}

fn version_tools() -> Vec<Callable> {
    vec![
        tool(
            "list_context_versions",
            "List context versions",
            "The versions of the context document, newest first, and why each was written. read_context reads one.",
            Effect::Reads,
            page(&[
                ("version", "integer"),
                ("cause", "string"),
                ("written_at", "string"),
                ("bytes", "integer"),
            ]),
            context::list_context_versions,
        ),
        tool(
            "restore_context",
            "Restore context",
            "Makes an older version of the context document the newest. The one that it replaces stays as a version.",
            Effect::Replaces,
            with(
                object(&[("contextFilePath", "string"), ("contextVersion", "integer")]),
                "contextDocument",
                document(),
                true,
            ),
            context::restore_context,
        ),
    ]
}

fn project_tools() -> Vec<Callable> {
    vec![
        tool(
            "list_projects",
            "List projects",
            "The user's projects, newest first. Other tools take a project's id as project.",
            Effect::Reads,
            page(&[("project_id", "string"), ("name", "string"), ("version", "integer")]),
            projects::list_projects,
        ),
        tool(
            "list_workflows",
            "List workflows",
            "The workflows of a project that have a context document, and what each is about.",
            Effect::Reads,
            page(&[
                ("workflow", "string"),
                ("contextVersion", "integer"),
                ("title", "string?"),
                ("task", "string?"),
                ("lastUpdatedAt", "string"),
                ("modes", "[]string"),
            ]),
            projects::list_workflows,
        ),
    ]
}

const RUN: &[(&str, &str)] = &[
    ("run_id", "string"),
    ("action_id", "string"),
    ("kind", "string"),
    ("due_at", "string"),
    ("state", "string"),
    ("reason", "string?"),
    ("started_at", "string?"),
    ("finished_at", "string?"),
    ("attempts", "integer"),
    ("cost_micros", "integer"),
    ("score", "integer?"),
];

fn run_tools() -> Vec<Callable> {
    vec![
        tool(
            "explain_action",
            "Explain action",
            "Why an action ran or did not run at a due time, in a sentence and as data.",
            Effect::Reads,
            object(&[
                ("code", "string"),
                ("sentence", "string"),
                ("at", "string"),
                ("action_state", "string"),
            ]),
            runs::explain_action,
        ),
        tool(
            "list_runs",
            "List runs",
            "An action's runs, newest first: one for each due time that has come, whatever became of it.",
            Effect::Reads,
            page(RUN),
            runs::list_runs,
        ),
        tool(
            "read_run",
            "Read run",
            "What became of one run of an action.",
            Effect::Reads,
            object(RUN),
            runs::read_run,
        ),
        tool(
            "list_run_outputs",
            "List run outputs",
            "The assets that a run has saved. read_asset gives the content of one.",
            Effect::Reads,
            page(&[("asset_id", "string"), ("title", "string"), ("bytes", "integer")]),
            runs::list_run_outputs,
        ),
        tool(
            "preview_schedule",
            "Preview schedule",
            "When a schedule would fire, and what it says in words. Nothing is scheduled.",
            Effect::Reads,
            object(&[("fire_times", "[]string"), ("schedule_text", "string")]),
            schedules::preview_schedule,
        ),
    ]
}

fn proposal_tools() -> Vec<Callable> {
    vec![
        tool(
            "list_proposals",
            "List proposals",
            "What waits for the user's yes at one agent, newest first, without contents.",
            Effect::Reads,
            page(PROPOSAL),
            runs::list_proposals,
        ),
        tool(
            "read_proposal",
            "Read proposal",
            "One proposal with all that it holds. Only the user accepts it or throws it away.",
            Effect::Reads,
            object(PROPOSAL),
            runs::read_proposal,
        ),
    ]
}

fn mode_answer() -> Value {
    let answer = object(&[
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
    let action = object(&[
        ("tool", "string"),
        ("arguments", "object"),
        ("requiredFields", "[]string"),
        ("description", "string"),
    ]);
    let agent = object(&[("agentName", "string"), ("reason", "string"), ("confidence", "number")]);
    let answer = with(answer, "mandatoryAction", action, true);
    let answer = with(answer, "contextDocument", document(), false);
    let answer = with(answer, "recommended_act_agent", agent, false);
    with(answer, "autoConfig", object(&[("maxIterations", "integer")]), false)
}

const ENTRY: &[(&str, &str)] = &[
    ("event", "string"),
    ("agent_type", "string"),
    ("agent_id", "string"),
    ("description", "string"),
    ("instruction", "string?"),
    ("output_summary", "string?"),
    ("session_id", "string"),
    ("timestamp", "string"),
    ("earlier_session", "boolean?"),
];

fn log_tools() -> Vec<Callable> {
    let entries = json!({ "type": "array", "items": object(ENTRY) });
    let tail = with(object(&[("text", "string?"), ("metadata", "object?")]), "entries", entries, false);
    vec![
        tool(
            "read_agent_log",
            "Read agent log",
            "The last entries of a sub-agent's context log, oldest first: what it was asked and what it answered. Without a \
             session, entries of earlier sessions come first and are marked. The log of an unknown agent is empty.",
            Effect::Reads,
            tail,
            logs::read_agent_log,
        ),
        tool(
            "append_agent_log",
            "Append to agent log",
            "Adds one entry to a sub-agent's context log. Entries of writers that meet are all kept.",
            Effect::Adds,
            object(ENTRY),
            logs::append_agent_log,
        ),
    ]
}

fn theme_tool() -> Callable {
    let targets = json!({
        "type": "array",
        "items": object(&[("path", "string"), ("score", "number"), ("ranges", "array"), ("reasons", "[]string")]),
    });
    let found = object(&[
        ("source", "string"),
        ("confident", "boolean"),
        ("related", "array"),
        ("edit_order", "[]string"),
        ("took_us", "integer"),
    ]);
    tool(
        "lookup_theme",
        "Look up in theme",
        "Which files and lines of the project's shop theme a request is about, best first, with what of the request was found \
         where. Says so when it is not sure, or when the project has no theme.",
        Effect::Reads,
        with(found, "targets", targets, true),
        theme::lookup_theme,
    )
}

const AGENT: &[(&str, &str)] = &[
    ("agent_id", "string"),
    ("name", "string"),
    ("goal", "string"),
    ("success_criteria", "string"),
    ("timeline", "string"),
    ("instructions", "string"),
    ("status", "string"),
    ("metrics", "object"),
    ("version", "integer"),
];
const ASSET: &[(&str, &str)] = &[
    ("asset_id", "string"),
    ("agent_id", "string"),
    ("title", "string"),
    ("description", "string"),
    ("asset_type", "string"),
    ("bytes", "integer"),
    ("version", "integer"),
];
const ACTION: &[(&str, &str)] = &[
    ("action_id", "string"),
    ("agent_id", "string"),
    ("title", "string"),
    ("description", "string"),
    ("priority", "string"),
    ("state", "string"),
    ("task_config", "object"),
    ("schedule_text", "string?"),
];
const PROPOSAL: &[(&str, &str)] = &[
    ("proposal_id", "string"),
    ("kind", "string"),
    ("agent_id", "string"),
    ("title", "string"),
    ("description", "string"),
    ("expires_at", "string"),
];

fn work_tools() -> Vec<Callable> {
    let content = object(&[
        ("asset_id", "string"),
        ("title", "string"),
        ("asset_type", "string"),
        ("content_version", "integer"),
        ("content", "string"),
        ("truncated_bytes", "integer"),
    ]);
    vec![
        tool(
            "list_agents",
            "List agents",
            "The user's agents, newest first: who could be given an asset or an action.",
            Effect::Reads,
            page(AGENT),
            work::list_agents,
        ),
        tool(
            "read_agent",
            "Read agent",
            "One agent, with what it has done so far.",
            Effect::Reads,
            object(AGENT),
            work::read_agent,
        ),
        tool(
            "propose_agent",
            "Propose agent",
            "Sets an agent up, paused: it does nothing until a person sets it active.",
            Effect::Adds,
            object(AGENT),
            work::propose_agent,
        ),
        tool(
            "list_assets",
            "List assets",
            "Finished deliverables, newest first, without their contents.",
            Effect::Reads,
            page(ASSET),
            work::list_assets,
        ),
        tool(
            "read_asset",
            "Read asset",
            "The content of an asset.",
            Effect::Reads,
            content,
            work::read_asset,
        ),
        tool(
            "propose_asset",
            "Propose asset",
            "Puts finished content before the user, who saves it or throws it away within 30 days.",
            Effect::Adds,
            object(PROPOSAL),
            work::propose_asset,
        ),
        tool(
            "list_actions",
            "List actions",
            "What agents are to do later, newest first.",
            Effect::Reads,
            page(ACTION),
            work::list_actions,
        ),
        tool(
            "read_action",
            "Read action",
            "One action, with its schedule in words and its state.",
            Effect::Reads,
            object(ACTION),
            work::read_action,
        ),
        tool(
            "propose_action",
            "Propose action",
            "Puts work for later before the user, who defines and approves it or throws it away within 30 days.",
            Effect::Adds,
            object(PROPOSAL),
            work::propose_action,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_says_what_it_takes_gives_and_changes() {
        let names: Vec<&str> = all().map(|tool| &*tool.about.name).collect();
        let unique: std::collections::BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len());
        for tool in all() {
            let about = &tool.about;
            let name = &about.name;
            assert_eq!(about.input_schema["type"], json!("object"), "{name}");
            assert_eq!(about.input_schema["additionalProperties"], json!(false), "{name}");
            assert_eq!(about.output_schema.as_ref().unwrap()["type"], json!("object"), "{name}");
            let hints = about.annotations.as_ref().unwrap();
            let reads = ["read_", "list_", "lookup_", "explain_", "preview_"]
                .iter()
                .any(|verb| name.starts_with(verb));
            assert_eq!(hints.read_only_hint, Some(reads), "{name}");
            assert_eq!(hints.open_world_hint, Some(false), "{name}");
            assert!(about.title.is_some() && about.description.is_some(), "{name}");
            // What takes the place of something says so, and nothing else does.
            let replaces = matches!(&**name, "parse_mode" | "restore_context");
            assert_eq!(hints.destructive_hint, (!reads).then_some(replaces), "{name}");
        }
    }

    #[test]
    fn a_schedule_has_three_shapes_with_examples() {
        for name in ["propose_action", "preview_schedule"] {
            let schema = &find(name).unwrap().about.input_schema["properties"]["schedule"];
            let shapes = schema["anyOf"].as_array().unwrap();
            for (shape, required) in shapes.iter().zip(["at", "every", "cron"]) {
                assert_eq!(shape["required"], json!([required]), "{name}");
                assert!(shape["properties"][required]["examples"].is_array(), "{shape}");
                assert!(shape["properties"]["timezone"]["description"].as_str().unwrap().contains("IANA"));
            }
            // What the examples show is taken.
            for example in schema["examples"].as_array().unwrap() {
                let input: domain::schedule::ScheduleInput = serde_json::from_value(example.clone()).unwrap();
                assert!(input.validate().is_ok(), "{example}");
            }
        }
    }
}
