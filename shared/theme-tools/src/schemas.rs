//! The tools as a model sees them.

use serde_json::{Value, json};

use crate::arguments::{
    DEFAULT_LIMIT, MAX_COMMAND, MAX_DEPTH, MAX_LIMIT, MAX_NAME, MAX_OFFSET, MAX_PLACEHOLDER_TEXT, MAX_SIDE,
};

/// A tool's name and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    pub name: &'static str,
    pub description: &'static str,
}

/// All tools of this crate.
pub const TOOLS: [Tool; 11] = [
    Tool {
        name: "get_dependency_graph",
        description: "Lists which files a file uses and which files use it, with the kind and the lines of each reference. References to files that the theme lacks are marked `missing`. Classes, translations and settings are followed for one step only.",
    },
    Tool {
        name: "find_references",
        description: "Lists where a file or a symbol is defined and used, with lines: a snippet, section or block type, setting id, CSS class, custom element, translation key, or a function of a script. A `mention` is the word in a place that has no known meaning.",
    },
    Tool {
        name: "trace_rendering_chain",
        description: "Lists all ways that lead to a file, from the layout through template, section group, section and block to the snippet, and what the file renders itself. Says which sections are disabled or not in `order`.",
    },
    Tool {
        name: "get_schema_settings",
        description: "Lists settings, blocks, presets and limits of a section, of a block or of config/settings_schema.json, with lines, defaults, options and the labels of the default language.",
    },
    Tool {
        name: "check_theme_setting",
        description: "Says where a setting is declared, with type and default, which values are stored, where it is read, and what is wrong: out of range, not an option, never read, read but not declared.",
    },
    Tool {
        name: "diagnose_visibility",
        description: "Lists static causes, with file and line, why a section, block, snippet or template may not show: disabled or missing in `order`, a condition that the stored settings make false, hiding CSS, the attribute hidden, no blocks. Nothing is rendered, so no cause is proven.",
    },
    Tool {
        name: "analyze_variants",
        description: "Lists how the theme handles product options and variants, with lines: the option loops, inputs and pickers, where the id of the chosen variant goes, the scripts that listen, and what looks wrong.",
    },
    Tool {
        name: "check_performance",
        description: "Lists what makes pages slow, with line and reason: images without size or lazy loading, a lazy first image, nested and unbounded loops, render in loops, scripts that block, large assets.",
    },
    Tool {
        name: "generate_placeholder",
        description: "Makes the SVG of a grey or coloured placeholder image with a text.",
    },
    Tool {
        name: "run_command",
        description: "Runs one of these on the theme, without a shell: ls, cat, head, tail, wc, grep, find, diff, theme check. No pipes, redirections or substitutions.",
    },
    Tool {
        name: "search_files",
        description: "Finds files by their names, also misspelt or shortened. It compares letters and knows no meanings.",
    },
];

/// The JSON Schema of a tool's arguments. `None` if there is no such tool.
#[must_use]
pub fn schema(tool: &str) -> Option<Value> {
    let path =
        |what: &str| json!({"type": "string", "minLength": 1, "maxLength": MAX_NAME, "description": what});
    let name = path;
    let (mut properties, required) = match tool {
        "get_dependency_graph" => (
            json!({
                "path": path("The file, for example snippets/price.liquid."),
                "direction": {"type": "string", "enum": ["uses", "used_by", "both"], "default": "both"},
                "depth": {"type": "integer", "minimum": 1, "maximum": MAX_DEPTH, "default": 1, "description": "How many steps to follow."},
            }),
            json!(["path"]),
        ),
        "find_references" => (
            json!({
                "path": path("A file. Give either path or symbol."),
                "symbol": name("A name. Give either path or symbol."),
                "kind": {
                    "type": "string",
                    "enum": ["snippet", "section", "block", "setting", "css_class", "custom_element", "translation", "function"],
                    "description": "What the symbol is. Without it, all kinds are looked for.",
                },
            }),
            json!([]),
        ),
        "trace_rendering_chain" => (json!({"path": path("The file.")}), json!(["path"])),
        "get_schema_settings" => (
            json!({
                "path": path("A file in sections/ or blocks/, or config/settings_schema.json."),
                "setting": name("Only the setting with this id, with all details."),
            }),
            json!(["path"]),
        ),
        "check_theme_setting" => (
            json!({"id": name("The id. settings.x is only a setting of the theme, section.settings.x only one of sections, block.settings.x only one of blocks, x any.")}),
            json!(["id"]),
        ),
        "diagnose_visibility" => (
            json!({
                "path": path("A section, block, snippet or template. Give either path or section."),
                "section": name("The type of a section. Give either path or section."),
                "selector": name("One class, id or element within it: .price, #cart, cart-drawer."),
            }),
            json!([]),
        ),
        "analyze_variants" | "check_performance" => {
            (json!({"path": path("Only this file. Without it, the whole theme.")}), json!([]))
        }
        "search_files" => (json!({"query": name("A part of a path, in any spelling.")}), json!(["query"])),
        "generate_placeholder" => (
            json!({
                "width": {"type": "integer", "minimum": 1, "maximum": MAX_SIDE},
                "height": {"type": "integer", "minimum": 1, "maximum": MAX_SIDE},
                "text": {"type": "string", "maxLength": MAX_PLACEHOLDER_TEXT, "description": "Without it, the size is shown."},
                "colour": {"type": "string", "pattern": "^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$", "description": "The background."},
            }),
            json!(["width", "height"]),
        ),
        "run_command" => (
            json!({"command": {"type": "string", "minLength": 1, "maxLength": MAX_COMMAND, "description": "For example: head -20 sections/header.liquid"}}),
            json!(["command"]),
        ),
        _ => return None,
    };
    if tool != "generate_placeholder" {
        properties["offset"] = json!({"type": "integer", "minimum": 0, "maximum": MAX_OFFSET, "default": 0, "description": "How many items to skip."});
        properties["limit"] =
            json!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT});
    }
    Some(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}
