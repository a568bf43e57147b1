//! The tools of a theme: for agents that have a theme, and for MCP clients that ask for this set of tools. The area of themes performs
//! them, and reads their arguments.

use serde_json::{Value, json};

use super::Effect::{self, Propose, Read, Write};
use super::Surface::{self, AboutAction, Chat, Helper, Mcp, Run, Theme};
use super::schema::{choice, integer, object, string, text};
use super::{Table, ToolDef};

/// The grant of the tools that edit.
pub const EDIT: &str = "edit_theme";

/// How the answer to an edit begins that has changed something.
pub const EDITED: &str = "edit ";

/// The grant of the tool that applies edits.
pub const APPLY: &str = "apply_theme_changes";

/// In the order in which models see them. A new tool goes to the end.
pub const TOOLS: Table = &[
    &LIST_FILES,
    &READ_FILE,
    &READ_LINES,
    &EXTRACT_REGION,
    &GREP_CONTENT,
    &SEARCH_FILES,
    &THEME_CHECK,
    &EDIT_LINES,
    &SEARCH_REPLACE,
    &WRITE_FILE,
    &EDIT_NODE,
    &CREATE_FILE,
    &DELETE_FILE,
    &RENAME_FILE,
    &UNDO_EDIT,
    &SHOW_CHANGES,
    &APPLY_CHANGES,
    &GET_DEPENDENCY_GRAPH,
    &FIND_REFERENCES,
    &TRACE_RENDERING_CHAIN,
    &GET_SCHEMA_SETTINGS,
    &CHECK_THEME_SETTING,
    &DIAGNOSE_VISIBILITY,
    &ANALYZE_VARIANTS,
    &CHECK_PERFORMANCE,
    &GENERATE_PLACEHOLDER,
    &RUN_COMMAND,
    &READ_PLAN,
    &UPDATE_PLAN,
];

/// What does the work of a tool that other agents of themes have under another name, or why nothing does.
const INSTEAD: &[(&str, &str)] = &[
    ("read_chunk", "read_lines does that, with `context`"),
    ("parallel_batch_read", "read_lines does that: give several `reads`"),
    ("get_file_info", "list_files does that, with the path as its `glob`"),
    ("glob_files", "list_files does that, with its `glob`"),
    ("semantic_search", "search_files does that; it compares words"),
    ("run_diagnostics", "theme_check does that"),
    ("check_lint", "theme_check does that, with the `path` of the file"),
    ("lint_file", "theme_check does that, with the `path` of the file"),
    ("validate_syntax", "theme_check does that, with the `path` of the file"),
    ("propose_code_edit", "write_file does that: nobody sees it before it is applied"),
    ("create_plan", "update_plan does that"),
    ("propose_plan", "update_plan does that: the person sees the plan beside the edits"),
    ("read_scratchpad", "read_plan does that: keep notes in the plan"),
    ("update_scratchpad", "update_plan does that: keep notes in the plan"),
    (
        "ask_clarification",
        "in a run, ask_person does that, with `choices`; in a conversation, ask in your reply",
    ),
    ("fetch_url", "not_configured: nothing outside the theme can be read here"),
    ("web_search", "not_configured: ask the person to allow the model's own search"),
    ("code_execution", "not_configured: there is no sandbox; run_command reads the theme"),
    ("generate_image", "not_configured: generate_placeholder makes an SVG"),
    (
        "push_to_shopify",
        "not_configured: no shop is connected; a person applies the edits, and takes the theme along",
    ),
    ("pull_from_shopify", "not_configured: no shop is connected; the theme is the copy that was imported"),
    ("list_themes", "not_configured: no shop is connected"),
    ("list_store_resources", "not_configured: no shop is connected"),
    ("get_product", "not_configured: no shop is connected"),
    ("get_shopify_asset", "not_configured: no shop is connected; read_file reads the imported copy"),
    ("inspect_element", "not_configured: there is no preview; diagnose_visibility names static causes"),
    (
        "get_page_snapshot",
        "not_configured: there is no preview; trace_rendering_chain shows what a page is made of",
    ),
    ("query_selector", "not_configured: there is no preview; find_references finds a class"),
    ("navigate_preview", "not_configured: there is no preview"),
    ("read_console_logs", "not_configured: there is no preview; theme_check reads the scripts"),
    ("inject_css", "not_configured: there is no preview"),
    ("inject_html", "not_configured: there is no preview"),
    ("screenshot_preview", "not_configured: there is no preview"),
    ("compare_screenshots", "not_configured: there is no preview"),
];

/// For a call of a tool that does not exist: what does its work, or why nothing does.
#[must_use]
pub fn instead(name: &str) -> Option<&'static str> {
    INSTEAD.iter().find(|(other, _)| *other == name).map(|(_, told)| *told)
}

const PLACES: &[Surface] = &[Chat, AboutAction, Theme, Run, Mcp, Helper];

/// What is left to the turn that a helper works for.
const NOT_OF_HELPERS: &[Surface] = &[Chat, AboutAction, Theme, Run, Mcp];

const fn tool(
    name: &'static str,
    description: &'static str,
    effect: Effect,
    granted_as: Option<&'static str>,
    input: fn() -> Value,
) -> ToolDef {
    ToolDef { granted_as, ..ToolDef::new(name, description, effect, PLACES, input) }
}

const fn reads(name: &'static str, description: &'static str, input: fn() -> Value) -> ToolDef {
    tool(name, description, Read, None, input)
}

const fn edits(name: &'static str, description: &'static str, input: fn() -> Value) -> ToolDef {
    tool(name, description, Propose, Some(EDIT), input)
}

fn path() -> Value {
    json!({"type": "string"})
}

/// The version that an edit refers to.
fn version() -> Value {
    string("As the last read or edit of the file said.")
}

fn shrink() -> Value {
    json!({
        "type": "array", "items": range(),
        "description": "Lines that shall go, if more than half goes.",
    })
}

fn range() -> Value {
    object(&json!({"start": {"type": "integer"}, "end": {"type": "integer"}}), &["start", "end"])
}

pub static LIST_FILES: ToolDef = reads("list_files", "Paths, sizes and kinds of the theme's files.", || {
    let properties = json!({
        "glob": string("Such as sections/*.liquid. Default: all."),
        "after": string("The last path of the part before."),
    });
    object(&properties, &[])
});

pub static READ_FILE: ToolDef = reads(
    "read_file",
    "A file with line numbers and its version. Of a long one: its outline, to read lines of.",
    || object(&json!({"path": path()}), &["path"]),
);

pub static READ_LINES: ToolDef =
    reads("read_lines", "Lines of one or several files, with numbers and versions.", || {
        let read = object(
            &json!({"path": path(), "start": {"type": "integer"}, "end": {"type": "integer"}}),
            &["path", "start", "end"],
        );
        let properties = json!({
            "reads": {"type": "array", "minItems": 1, "maxItems": 20, "items": read},
            "context": integer("Lines before and after each.", 0, Some(50)),
        });
        object(&properties, &["reads"])
    });

pub static EXTRACT_REGION: ToolDef = reads(
    "extract_region",
    "The lines of one named part of a file: a schema setting, a block, a rule, a function.",
    || {
        let properties = json!({"path": path(), "name": text("As the outline names it.", 200)});
        object(&properties, &["path", "name"])
    },
);

pub static GREP_CONTENT: ToolDef = reads("grep_content", "The lines that contain a text.", || {
    let properties = json!({
        "pattern": text("A text, or with regex a regular expression.", 1_000),
        "regex": {"type": "boolean"},
        "glob": string("Only in these files."),
    });
    object(&properties, &["pattern"])
});

pub static SEARCH_FILES: ToolDef = reads(
    "search_files",
    "The files and lines that a request is about, best match first. It compares words, not meanings.",
    || object(&json!({"request": text("In the person's words.", 10_000)}), &["request"]),
);

pub static THEME_CHECK: ToolDef = reads(
    "theme_check",
    "What is wrong with the theme as it is with your edits; what Shopify would refuse comes first.",
    || {
        let properties = json!({"path": string("Only of this file."), "new_only": {
            "type": "boolean", "description": "Only what your edits have added.",
        }});
        object(&properties, &[])
    },
);

pub static EDIT_LINES: ToolDef = edits(
    "edit_lines",
    "Replaces or inserts lines. Numbers are those of the version that you read; all edits are made, or none.",
    || {
        let edit = object(
            &json!({
                "start": integer("First line to replace.", 1, None),
                "end": integer("Last line to replace.", 1, None),
                "after": integer("Instead of start and end: insert behind this line; 0 is the beginning.", 0, None),
                "content": string("The new lines. Empty deletes."),
                "old": string("The text that the lines have; it is compared."),
            }),
            &["content"],
        );
        let properties = json!({
            "path": path(), "version": version(), "allow_shrink": shrink(),
            "edits": {"type": "array", "minItems": 1, "maxItems": 200, "items": edit},
        });
        object(&properties, &["path", "edits"])
    },
);

pub static SEARCH_REPLACE: ToolDef = edits(
    "search_replace",
    "Replaces texts. Each old text must stand in the file exactly once, or as often as expected_matches says.",
    || {
        let replacement = object(
            &json!({
                "old": text("Without line numbers.", 200_000),
                "new": string("Empty deletes."),
                "expected_matches": integer("All of them are replaced.", 1, None),
            }),
            &["old", "new"],
        );
        let properties = json!({
            "path": path(), "version": version(), "allow_shrink": shrink(),
            "replacements": {"type": "array", "minItems": 1, "maxItems": 200, "items": replacement},
        });
        object(&properties, &["path", "replacements"])
    },
);

pub static WRITE_FILE: ToolDef = edits("write_file", "Replaces the whole text of a file.", || {
    let properties = json!({
        "path": path(), "version": version(), "content": string("All of it."), "allow_shrink": shrink(),
    });
    object(&properties, &["path", "content"])
});

pub static EDIT_NODE: ToolDef =
    edits("edit_node", "Replaces one named part of a file, as the outline names it.", || {
        let node = object(&json!({"kind": string(""), "name": string("")}), &["kind", "name"]);
        let properties = json!({
            "path": path(), "version": version(), "node": node, "content": string("The whole new part."),
            "allow_shrink": shrink(),
        });
        object(&properties, &["path", "node", "content"])
    });

pub static CREATE_FILE: ToolDef = edits("create_file", "Makes a file. It never replaces one.", || {
    object(&json!({"path": path(), "content": string("")}), &["path", "content"])
});

pub static DELETE_FILE: ToolDef =
    edits("delete_file", "Deletes a file. One that others need only with force.", || {
        let properties = json!({"path": path(), "version": version(), "force": {"type": "boolean"}});
        object(&properties, &["path"])
    });

pub static RENAME_FILE: ToolDef = edits("rename_file", "Moves a file to a free path.", || {
    let properties = json!({
        "path": path(), "to": path(), "version": version(),
        "update_references": {"type": "boolean", "description": "Also in the files that name it."},
    });
    object(&properties, &["path", "to"])
});

pub static UNDO_EDIT: ToolDef =
    edits("undo_edit", "Takes back one edit, all edits of a file, or all. Give one argument.", || {
        let properties = json!({
            "edit": integer("The number that the edit's answer said.", 1, None),
            "path": path(), "all": {"type": "boolean"},
        });
        object(&properties, &[])
    });

pub static SHOW_CHANGES: ToolDef = reads(
    "show_changes",
    "Your edits so far, which nobody sees until they are applied: a unified diff, its hash, and what they would break.",
    || object(&json!({}), &[]),
);

pub static APPLY_CHANGES: ToolDef = ToolDef {
    idempotent: true,
    replaces: true,
    surfaces: NOT_OF_HELPERS,
    ..tool(
        "apply_changes",
        "Puts your edits into the theme, all or none. Refused if the theme changed underneath. Otherwise a person applies them.",
        Write,
        Some(APPLY),
        || object(&json!({"hash": text("As show_changes said.", 64)}), &["hash"]),
    )
};

/// Where the list of an answer begins. The answer before says the next one.
fn offset() -> Value {
    integer("As an answer says.", 0, None)
}

pub static GET_DEPENDENCY_GRAPH: ToolDef =
    reads("get_dependency_graph", "What a file uses, and what uses it, with lines.", || {
        let direction = json!({"type": "string", "enum": ["uses", "used_by", "both"]});
        let properties = json!({
            "path": path(), "direction": direction, "depth": integer("", 1, Some(5)), "offset": offset(),
        });
        object(&properties, &["path"])
    });

pub static FIND_REFERENCES: ToolDef = reads(
    "find_references",
    "Where a file or a symbol is defined and used. Give path or symbol.",
    || {
        let kinds = [
            "snippet",
            "section",
            "block",
            "setting",
            "css_class",
            "custom_element",
            "translation",
            "function",
        ];
        let properties = json!({
            "path": path(), "symbol": string("A name."), "kind": {"type": "string", "enum": kinds}, "offset": offset(),
        });
        object(&properties, &[])
    },
);

pub static TRACE_RENDERING_CHAIN: ToolDef = reads(
    "trace_rendering_chain",
    "All ways from the layouts and templates to a file, and what it renders itself.",
    || object(&json!({"path": path(), "offset": offset()}), &["path"]),
);

pub static GET_SCHEMA_SETTINGS: ToolDef = reads(
    "get_schema_settings",
    "Settings, blocks, presets and limits of a section, a block or config/settings_schema.json.",
    || {
        let properties =
            json!({"path": path(), "setting": string("Only the one with this id."), "offset": offset()});
        object(&properties, &["path"])
    },
);

pub static CHECK_THEME_SETTING: ToolDef = reads(
    "check_theme_setting",
    "Where a setting is declared, stored and read, and what is wrong with it.",
    || {
        let properties = json!({"id": string("x, settings.x, section.settings.x or block.settings.x."), "offset": offset()});
        object(&properties, &["id"])
    },
);

pub static DIAGNOSE_VISIBILITY: ToolDef = reads(
    "diagnose_visibility",
    "Static causes why something may not show. Nothing is rendered, so none is proven. Give path or section.",
    || {
        let properties = json!({
            "path": path(), "section": string("The type of a section."),
            "selector": string("Such as .price or #cart."), "offset": offset(),
        });
        object(&properties, &[])
    },
);

pub static ANALYZE_VARIANTS: ToolDef = reads(
    "analyze_variants",
    "How the theme handles product options and variants, and what looks wrong.",
    || object(&json!({"path": string("Default: the theme."), "offset": offset()}), &[]),
);

pub static CHECK_PERFORMANCE: ToolDef =
    reads("check_performance", "What makes pages slow: images, loops, scripts, large assets.", || {
        object(&json!({"path": string("Default: the theme."), "offset": offset()}), &[])
    });

pub static GENERATE_PLACEHOLDER: ToolDef = reads(
    "generate_placeholder",
    "The SVG of a placeholder image, to create a file of.",
    || {
        let side = || integer("", 1, Some(8_000));
        let properties = json!({
            "width": side(), "height": side(), "text": string("Default: the size."), "colour": string("#rrggbb"),
        });
        object(&properties, &["width", "height"])
    },
);

pub static RUN_COMMAND: ToolDef = reads(
    "run_command",
    "ls, cat, head, tail, wc, grep, find, diff or theme check on the theme. There is no shell.",
    || {
        object(
            &json!({"command": text("Such as head -20 sections/header.liquid.", 1_000), "offset": offset()}),
            &["command"],
        )
    },
);

pub static READ_PLAN: ToolDef =
    reads("read_plan", "The plan of your edits, and its version.", || object(&json!({}), &[]));

/// The most characters of a plan.
pub const MAX_PLAN: usize = 8_000;

pub static UPDATE_PLAN: ToolDef = ToolDef {
    surfaces: NOT_OF_HELPERS,
    ..edits(
        "update_plan",
        "Writes the plan of your edits: steps, what is done, notes. The person sees it beside them.",
        || {
            let properties = json!({
                "text": text("All of it, in Markdown.", MAX_PLAN),
                "version": integer("Of the plan that it replaces; 0 if there is none.", 0, None),
            });
            object(&properties, &["text", "version"])
        },
    )
};

/// The tools with which the theme agent gives parts of its work to other models, in the order in which models see them.
pub const HELPERS: Table = &[&RUN_SPECIALIST, &RUN_REVIEW, &GET_SECOND_OPINION, &SPAWN_WORKERS];

/// The most characters of what a helper is told.
pub const MAX_TASK: usize = 8_000;

/// The most files that a specialist may edit.
pub const MAX_LEASED: usize = 12;

/// The most workers of a call.
pub const MAX_WORKERS: usize = 4;

const fn helper(
    name: &'static str,
    description: &'static str,
    effect: Effect,
    input: fn() -> Value,
) -> ToolDef {
    ToolDef::new(name, description, effect, &[Theme], input)
}

fn task(description: &str) -> Value {
    text(description, MAX_TASK)
}

pub static RUN_SPECIALIST: ToolDef = helper(
    "run_specialist",
    "Another model does a part of the work in your change set, and says what it did. Specialists for different files, called in one reply, \
     work at the same time.",
    Write,
    || {
        let files = json!({
            "type": "array", "items": path(), "minItems": 1, "maxItems": MAX_LEASED,
            "description": "The only files that it may change or make.",
        });
        let properties = json!({
            "kind": choice(&["liquid", "css", "javascript", "json"], "What it is good at."),
            "task": task("It sees nothing but this: what to change, where, with names and lines, and what must stay."),
            "files": files,
        });
        object(&properties, &["kind", "task", "files"])
    },
);

pub static RUN_REVIEW: ToolDef =
    helper("run_review", "Another model looks at your edits so far and says what is wrong.", Read, || {
        object(&json!({"task": task("What the person asked for, and what to look at.")}), &["task"])
    });

pub static GET_SECOND_OPINION: ToolDef = helper(
    "get_second_opinion",
    "A model of another provider, or else of another size, answers a question. It reads the theme.",
    Read,
    || object(&json!({"question": task("With all that it must know, and the paths.")}), &["question"]),
);

pub static SPAWN_WORKERS: ToolDef =
    helper("spawn_workers", "Other models look things up in the theme at the same time.", Read, || {
        let tasks = json!({
            "type": "array", "items": task("What to find out, and what to answer."),
            "minItems": 1, "maxItems": MAX_WORKERS,
        });
        object(&json!({"tasks": tasks}), &["tasks"])
    });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_lead_to_tools_that_exist() {
        let exists = |word: &str| TOOLS.iter().any(|tool| tool.name == word) || word == "ask_person";
        for (name, told) in INSTEAD {
            assert!(!exists(name), "{name} exists");
            assert_eq!(instead(name), Some(*told));
            let words = told.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
            let tools: Vec<&str> =
                words.filter(|word| word.contains('_') && *word != "not_configured").collect();
            assert!(!tools.is_empty() || told.starts_with("not_configured: "), "{name}: {told}");
            assert!(tools.iter().all(|tool| exists(tool)), "{name}: {told}");
        }
        assert_eq!(instead("read_file"), None);
    }
}
