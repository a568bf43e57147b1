//! JSON templates, section groups, stored settings and locales: what can be checked within one file.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Notes;
use super::Severity::{Error, Warning};
use super::json::{self, Node, Value};
use super::schema;
use super::settings::{self, Setting};
use crate::path::FileKind;

/// The most sections of a template or group.
const MAX_SECTIONS: usize = 25;
/// The most blocks of a section.
const MAX_BLOCKS: usize = schema::MAX_BLOCKS;
/// The most blocks of a template.
const MAX_TEMPLATE_BLOCKS: usize = 1250;
/// The deepest nesting of blocks.
const MAX_NESTING: usize = 8;

/// Checks a JSON template or a section group.
pub fn check_template(kind: FileKind, root: &Node, notes: &mut Notes) {
    let what = if kind == FileKind::SectionGroup { "a section group" } else { "a template" };
    if !root.is_object() {
        notes.add(root.at, Error, "ValidTemplate", format!("{what} must be an object, is {}", root.kind()));
        return;
    }
    if kind == FileKind::SectionGroup {
        match root.get("type") {
            None => notes.add(root.at, Error, "ValidTemplate", "a section group has no `type`"),
            Some(kind) => {
                let text = kind.text().unwrap_or_default();
                if !matches!(text, "header" | "footer" | "aside") && !text.starts_with("custom.") {
                    notes.add(
                        kind.at,
                        Error,
                        "ValidTemplate",
                        "the type of a section group is header, footer, aside or custom.<name>",
                    );
                }
            }
        }
        match root.get("name") {
            None => notes.add(root.at, Error, "ValidTemplate", "a section group has no `name`"),
            Some(name) if name.text().is_none() => {
                notes.add(name.at, Error, "ValidTemplate", "the `name` of a section group must be a string");
            }
            Some(_) => {}
        }
    }
    let known: &[&str] = if kind == FileKind::SectionGroup {
        &["type", "name", "sections", "order"]
    } else {
        &["layout", "wrapper", "sections", "order", "name"]
    };
    for member in root.members() {
        if !known.contains(&member.key.as_str()) {
            notes.add(
                member.key_at,
                Warning,
                "ValidTemplate",
                format!("{what} has no attribute `{}`", member.key),
            );
        }
    }
    if let Some(layout) = root.get("layout")
        && layout.text().is_none()
        && !matches!(layout.value, Value::Bool(false))
    {
        notes.add(layout.at, Error, "ValidTemplate", "`layout` must be a name or false");
    }
    if let Some(wrapper) = root.get("wrapper") {
        let text = wrapper.text().unwrap_or_default();
        let name = text.split(['#', '.', '[']).next().unwrap_or_default();
        if !matches!(name, "div" | "main" | "section") {
            notes.add(wrapper.at, Error, "ValidTemplate", "`wrapper` must be a div, main or section");
        }
    }
    let Some(sections) = root.get("sections") else {
        notes.add(root.at, Error, "ValidTemplate", format!("{what} has no `sections`"));
        return;
    };
    if !sections.is_object() {
        notes.add(
            sections.at,
            Error,
            "ValidTemplate",
            format!("`sections` must be an object, is {}", sections.kind()),
        );
        return;
    }
    if sections.members().len() > MAX_SECTIONS {
        let at = sections.members()[MAX_SECTIONS].key_at;
        notes.add(
            at,
            Error,
            "TooManySections",
            format!("{what} has at most {MAX_SECTIONS} sections, this one has {}", sections.members().len()),
        );
    }
    order(root, sections, what, notes);
    let mut total = 0;
    for member in sections.members() {
        let (id, section) = (&member.key, &member.node);
        if !section.is_object() {
            notes.add(
                section.at,
                Error,
                "ValidTemplate",
                format!("the section `{id}` must be an object, is {}", section.kind()),
            );
            continue;
        }
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
            notes.add(
                member.key_at,
                Error,
                "ValidTemplate",
                format!("the id of a section has letters, digits, `-` and `_`: `{id}`"),
            );
        }
        match section.get("type") {
            None => {
                notes.add(section.at, Error, "ValidTemplate", format!("the section `{id}` has no `type`"));
            }
            Some(kind) if kind.text().is_none_or(str::is_empty) => {
                notes.add(
                    kind.at,
                    Error,
                    "ValidTemplate",
                    format!("the type of the section `{id}` must be a string"),
                );
            }
            Some(_) => {}
        }
        for (key, is_right) in
            [("disabled", "true or false"), ("settings", "an object"), ("blocks", "an object")]
        {
            if let Some(value) = section.get(key) {
                let fits =
                    if key == "disabled" { matches!(value.value, Value::Bool(_)) } else { value.is_object() };
                if !fits {
                    notes.add(
                        value.at,
                        Error,
                        "ValidTemplate",
                        format!("`{key}` of the section `{id}` must be {is_right}, is {}", value.kind()),
                    );
                }
            }
        }
        const KEYS: [&str; 8] =
            ["type", "name", "disabled", "settings", "blocks", "block_order", "custom_css", "static"];
        for member in section.members() {
            if !KEYS.contains(&member.key.as_str()) {
                notes.add(
                    member.key_at,
                    Warning,
                    "ValidTemplate",
                    format!("a section has no attribute `{}`", member.key),
                );
            }
        }
        if section.get("blocks").is_some() && section.get("block_order").is_none() && is_all_local(section) {
            notes.add(
                section.get("blocks").map_or(section.at, |blocks| blocks.at),
                Warning,
                "JSONMissingBlock",
                format!("the section `{id}` has blocks and no `block_order`"),
            );
        }
        blocks(section, id, 1, &mut total, notes);
        let count = schema::children(section).len();
        if count > MAX_BLOCKS {
            let at = schema::children(section)[MAX_BLOCKS].0.at;
            notes.add(
                at,
                Error,
                "TooManyBlocks",
                format!("a section has at most {MAX_BLOCKS} blocks, `{id}` has {count}"),
            );
        }
    }
    if total > MAX_TEMPLATE_BLOCKS {
        notes.add(
            sections.at,
            Error,
            "TooManyBlocks",
            format!("{what} has at most {MAX_TEMPLATE_BLOCKS} blocks, this one has {total}"),
        );
    }
}

/// Whether no block is static. A static block needs no order.
fn is_all_local(section: &Node) -> bool {
    let blocks = schema::children(section);
    !blocks.is_empty() && blocks.iter().all(|(block, _)| block.get("static").is_none())
}

fn order(root: &Node, sections: &Node, what: &str, notes: &mut Notes) {
    let Some(order) = root.get("order") else {
        notes.add(root.at, Error, "ValidTemplate", format!("{what} has no `order`"));
        return;
    };
    if !order.is_array() {
        notes.add(order.at, Error, "ValidTemplate", format!("`order` must be an array, is {}", order.kind()));
        return;
    }
    let mut seen = FxHashSet::default();
    for node in order.items() {
        let id = node.text().unwrap_or_default();
        if sections.get(id).is_none() {
            notes.add(
                node.at,
                Error,
                "MissingSection",
                format!("`order` names the section `{id}`, which is not there"),
            );
        }
        if !seen.insert(id) {
            notes.add(node.at, Error, "MissingSection", format!("`order` names the section `{id}` twice"));
        }
    }
    for member in sections.members() {
        if !seen.contains(member.key.as_str()) {
            notes.add(
                member.key_at,
                Warning,
                "MissingSection",
                format!("the section `{}` is not in `order`, so it is not shown", member.key),
            );
        }
    }
}

fn blocks(holder: &Node, section: &str, depth: usize, total: &mut usize, notes: &mut Notes) {
    schema::orders(holder, notes);
    for (block, id) in schema::children(holder) {
        *total += 1;
        let id = id.unwrap_or_default();
        if !block.is_object() {
            notes.add(
                block.at,
                Error,
                "ValidTemplate",
                format!("the block `{id}` must be an object, is {}", block.kind()),
            );
            continue;
        }
        if block.text_of("type").is_none_or(str::is_empty) {
            notes.add(
                block.at,
                Error,
                "ValidTemplate",
                format!("the block `{id}` of `{section}` has no `type`"),
            );
        }
        if depth > MAX_NESTING {
            notes.add(
                block.at,
                Error,
                "TooManyBlocks",
                format!("blocks are nested deeper than {MAX_NESTING} levels"),
            );
            return;
        }
        blocks(block, section, depth + 1, total, notes);
    }
}

/// Reads and checks `config/settings_schema.json`.
pub fn settings_schema(root: &Node, notes: &mut Notes) -> Vec<Setting> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    if !root.is_array() {
        notes.add(
            root.at,
            Error,
            "ValidSettingsSchema",
            format!("the settings schema must be an array, is {}", root.kind()),
        );
        return found;
    }
    for group in root.items() {
        let Some(name) = group.get("name") else {
            notes.add(group.at, Error, "ValidSettingsSchema", "a group of settings has no `name`");
            continue;
        };
        if name.text() == Some("theme_info") {
            for key in ["theme_name", "theme_author", "theme_version", "theme_documentation_url"] {
                match group.get(key) {
                    None => notes.add(
                        group.at,
                        Error,
                        "ValidSettingsSchema",
                        format!("theme_info has no `{key}`"),
                    ),
                    Some(value) if value.text().is_none() => {
                        notes.add(
                            value.at,
                            Error,
                            "ValidSettingsSchema",
                            format!("`{key}` must be a string, is {}", value.kind()),
                        );
                    }
                    Some(_) => {}
                }
            }
            let contacts = ["theme_support_email", "theme_support_url"]
                .iter()
                .filter(|key| group.get(key).is_some())
                .count();
            if contacts == 0 {
                notes.add(
                    group.at,
                    Error,
                    "ValidSettingsSchema",
                    "theme_info has no `theme_support_email` or `theme_support_url`",
                );
            }
            continue;
        }
        match group.get("settings") {
            Some(list) => found.extend(settings::read(list, &mut seen, true, notes)),
            None => {
                notes.add(group.at, Error, "ValidSettingsSchema", "a group of settings has no `settings`");
            }
        }
    }
    found
}

/// Checks `config/settings_data.json` by itself.
pub fn settings_data(root: &Node, notes: &mut Notes) {
    let Some(current) = root.get("current") else {
        notes.add(root.at, Error, "ValidSettingsData", "the settings data has no `current`");
        return;
    };
    if let Some(name) = current.text() {
        let preset = root.get("presets").and_then(|presets| presets.get(name));
        if preset.is_none() {
            notes.add(
                current.at,
                Error,
                "ValidSettingsData",
                format!("`current` names the preset `{name}`, which is not there"),
            );
        }
    } else if !current.is_object() {
        notes.add(
            current.at,
            Error,
            "ValidSettingsData",
            format!("`current` must be an object or the name of a preset, is {}", current.kind()),
        );
    }
}

/// The settings that `current` and the presets store.
pub fn stored_settings(root: &Node) -> Vec<&Node> {
    let presets = root
        .get("presets")
        .into_iter()
        .flat_map(|presets| presets.members().iter().map(|member| &member.node));
    root.get("current").into_iter().filter(|current| current.is_object()).chain(presets).collect()
}

/// A text of a locale.
#[derive(Debug)]
pub struct Translation {
    pub text: String,
    pub at: usize,
    pub is_plural: bool,
}

/// The texts of a locale by their keys.
pub fn locale(root: &Node, notes: &mut Notes) -> FxHashMap<String, Translation> {
    let mut found = FxHashMap::default();
    if !root.is_object() {
        notes.add(root.at, Error, "ValidLocale", format!("a locale must be an object, is {}", root.kind()));
        return found;
    }
    flatten(root, String::new(), &mut found, notes);
    found
}

fn flatten(node: &Node, prefix: String, found: &mut FxHashMap<String, Translation>, notes: &mut Notes) {
    const PLURALS: [&str; 6] = ["zero", "one", "two", "few", "many", "other"];
    let is_plural = !node.members().is_empty()
        && node
            .members()
            .iter()
            .all(|member| PLURALS.contains(&member.key.as_str()) && member.node.text().is_some());
    if is_plural {
        for member in node.members() {
            unbalanced(member.node.text().unwrap_or_default(), &member.node, notes);
        }
        let text: Vec<&str> = node.members().iter().filter_map(|member| member.node.text()).collect();
        found.insert(prefix, Translation { text: text.join("\n"), at: node.at, is_plural: true });
        return;
    }
    for member in node.members() {
        let key = if prefix.is_empty() { member.key.clone() } else { format!("{prefix}.{}", member.key) };
        match &member.node.value {
            Value::String(text) => {
                unbalanced(text, &member.node, notes);
                found.insert(key, Translation { text: text.clone(), at: member.key_at, is_plural: false });
            }
            Value::Object(_) => flatten(&member.node, key, found, notes),
            Value::Null => {}
            _ => notes.add(
                member.node.at,
                Warning,
                "ValidLocale",
                format!("the text of `{key}` must be a string, is {}", member.node.kind()),
            ),
        }
    }
}

fn unbalanced(text: &str, node: &Node, notes: &mut Notes) {
    let (open, close) = (text.matches("{{").count(), text.matches("}}").count());
    if open != close {
        notes.add(node.at, Warning, "ValidLocale", "a placeholder in this text has no `{{` or `}}`");
    }
}

/// The names between `{{` and `}}`.
pub fn placeholders(text: &str) -> FxHashSet<&str> {
    let mut found = FxHashSet::default();
    for part in text.split("{{").skip(1) {
        if let Some((name, _)) = part.split_once("}}") {
            found.insert(name.trim().trim_matches('-').trim());
        }
    }
    found
}

/// Reports keys that are there twice.
pub fn duplicate_keys(root: &Node, notes: &mut Notes) {
    json::duplicates(root, &mut |member| {
        notes.add(
            member.key_at,
            Warning,
            "DuplicateKey",
            format!("the key \"{}\" is there twice", member.key),
        );
    });
}
