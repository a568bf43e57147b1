//! JSON templates, section groups, stored settings and locales: what can be checked within one file.

use rustc_hash::FxHashSet;

use super::Notes;
use super::Severity::{Error, Warning};
use super::json::{self, Member, Node, Value};
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
    let is_group = kind == FileKind::SectionGroup;
    let what = if is_group { "a section group" } else { "a template" };
    Template { what, blocks: 0, notes }.check(is_group, root);
}

/// Whether the file says what is different for a market or for B2B, as `templates/index.context.ca.json` does.
fn is_contextual(root: &Node) -> bool {
    root.text_of("parent").is_some() && root.get("context").is_some_and(Node::is_object)
}

/// A template or a section group that is being checked.
struct Template<'n> {
    /// What it is, for messages.
    what: &'static str,
    /// The blocks so far.
    blocks: usize,
    notes: &'n mut Notes,
}

impl Template<'_> {
    fn invalid(&mut self, at: usize, message: impl Into<String>) {
        self.notes.add(at, Error, "ValidTemplate", message);
    }

    /// Reports members that the platform ignores.
    fn known(&mut self, node: &Node, what: &str, known: &[&str]) {
        for member in node.members().iter().filter(|member| !known.contains(&member.key.as_str())) {
            let message = format!("{what} has no attribute `{}`", member.key);
            self.notes.add(member.key_at, Warning, "ValidTemplate", message);
        }
    }

    fn check(&mut self, is_group: bool, root: &Node) {
        let what = self.what;
        if !root.is_object() {
            return self.invalid(root.at, format!("{what} must be an object, is {}", root.kind()));
        }
        if is_contextual(root) {
            return self.contextual(root);
        }
        if is_group {
            self.group(root);
            self.known(root, what, &["type", "name", "sections", "order"]);
        } else {
            self.known(root, what, &["layout", "wrapper", "sections", "order", "name"]);
        }
        self.frame(root);
        let Some(sections) = root.get("sections") else {
            return self.invalid(root.at, format!("{what} has no `sections`"));
        };
        if !sections.is_object() {
            return self
                .invalid(sections.at, format!("`sections` must be an object, is {}", sections.kind()));
        }
        let members = sections.members();
        if let Some(first) = members.get(MAX_SECTIONS) {
            let count = members.len();
            let message = format!("{what} has at most {MAX_SECTIONS} sections, this one has {count}");
            self.notes.add(first.key_at, Error, "TooManySections", message);
        }
        self.order(root, sections);
        for member in members {
            self.section(member);
        }
        if self.blocks > MAX_TEMPLATE_BLOCKS {
            let count = self.blocks;
            let message = format!("{what} has at most {MAX_TEMPLATE_BLOCKS} blocks, this one has {count}");
            self.notes.add(sections.at, Error, "TooManyBlocks", message);
        }
    }

    /// A file of a market or of B2B: it has only what differs from its parent.
    fn contextual(&mut self, root: &Node) {
        self.known(
            root,
            self.what,
            &["context", "parent", "layout", "wrapper", "type", "name", "sections", "order"],
        );
        self.frame(root);
        if let Some(sections) = root.get("sections").filter(|sections| !sections.is_object()) {
            self.invalid(sections.at, format!("`sections` must be an object, is {}", sections.kind()));
        }
    }

    /// The type and the name of a section group.
    fn group(&mut self, root: &Node) {
        match root.get("type") {
            None => self.invalid(root.at, "a section group has no `type`"),
            Some(kind) => {
                let text = kind.text().unwrap_or_default();
                if !matches!(text, "header" | "footer" | "aside") && !text.starts_with("custom.") {
                    let message = "the type of a section group is header, footer, aside or custom.<name>";
                    self.invalid(kind.at, message);
                }
            }
        }
        match root.get("name") {
            None => self.invalid(root.at, "a section group has no `name`"),
            Some(name) if name.text().is_none() => {
                self.invalid(name.at, "the `name` of a section group must be a string");
            }
            Some(_) => {}
        }
    }

    /// The layout and the wrapper.
    fn frame(&mut self, root: &Node) {
        if let Some(layout) = root.get("layout")
            && layout.text().is_none()
            && !matches!(layout.value, Value::Bool(false))
        {
            self.invalid(layout.at, "`layout` must be a name or false");
        }
        if let Some(wrapper) = root.get("wrapper") {
            let text = wrapper.text().unwrap_or_default();
            let name = text.split(['#', '.', '[']).next().unwrap_or_default();
            if !matches!(name, "div" | "main" | "section") {
                self.invalid(wrapper.at, "`wrapper` must be a div, main or section");
            }
        }
    }

    fn section(&mut self, member: &Member) {
        const KEYS: [&str; 8] =
            ["type", "name", "disabled", "settings", "blocks", "block_order", "custom_css", "static"];
        let (id, section) = (&member.key, &member.node);
        if !section.is_object() {
            let message = format!("the section `{id}` must be an object, is {}", section.kind());
            return self.invalid(section.at, message);
        }
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
            let message = format!("the id of a section has letters, digits, `-` and `_`: `{id}`");
            self.invalid(member.key_at, message);
        }
        match section.get("type") {
            None => self.invalid(section.at, format!("the section `{id}` has no `type`")),
            Some(kind) if kind.text().is_none_or(str::is_empty) => {
                self.invalid(kind.at, format!("the type of the section `{id}` must be a string"));
            }
            Some(_) => {}
        }
        for (key, is_right) in
            [("disabled", "true or false"), ("settings", "an object"), ("blocks", "an object")]
        {
            let Some(value) = section.get(key) else { continue };
            let is_flag = matches!(value.value, Value::Bool(_));
            if !(if key == "disabled" { is_flag } else { value.is_object() }) {
                let message =
                    format!("`{key}` of the section `{id}` must be {is_right}, is {}", value.kind());
                self.invalid(value.at, message);
            }
        }
        self.known(section, "a section", &KEYS);
        if let Some(blocks) = section.get("blocks")
            && section.get("block_order").is_none()
            && is_all_local(section)
        {
            let message = format!("the section `{id}` has blocks and no `block_order`");
            self.notes.add(blocks.at, Warning, "JSONMissingBlock", message);
        }
        self.blocks(section, id, 1);
        let blocks = schema::children(section);
        if let Some((first, _)) = blocks.get(MAX_BLOCKS) {
            let message = format!("a section has at most {MAX_BLOCKS} blocks, `{id}` has {}", blocks.len());
            self.notes.add(first.at, Error, "TooManyBlocks", message);
        }
    }

    fn order(&mut self, root: &Node, sections: &Node) {
        let Some(order) = root.get("order") else {
            return self.invalid(root.at, format!("{} has no `order`", self.what));
        };
        if !order.is_array() {
            return self.invalid(order.at, format!("`order` must be an array, is {}", order.kind()));
        }
        let mut seen = FxHashSet::default();
        for node in order.items() {
            let id = node.text().unwrap_or_default();
            if sections.get(id).is_none() {
                let message = format!("`order` names the section `{id}`, which is not there");
                self.notes.add(node.at, Error, "MissingSection", message);
            }
            if !seen.insert(id) {
                let message = format!("`order` names the section `{id}` twice");
                self.notes.add(node.at, Error, "MissingSection", message);
            }
        }
        for member in sections.members().iter().filter(|member| !seen.contains(member.key.as_str())) {
            let message = format!("the section `{}` is not in `order`, so it is not shown", member.key);
            self.notes.add(member.key_at, Warning, "MissingSection", message);
        }
    }

    fn blocks(&mut self, holder: &Node, section: &str, depth: usize) {
        schema::orders(holder, self.notes);
        for (block, id) in schema::children(holder) {
            self.blocks += 1;
            let id = id.unwrap_or_default();
            if !block.is_object() {
                self.invalid(block.at, format!("the block `{id}` must be an object, is {}", block.kind()));
                continue;
            }
            if block.text_of("type").is_none_or(str::is_empty) {
                self.invalid(block.at, format!("the block `{id}` of `{section}` has no `type`"));
            }
            if depth > MAX_NESTING {
                let message = format!("blocks are nested deeper than {MAX_NESTING} levels");
                self.notes.add(block.at, Error, "TooManyBlocks", message);
                return;
            }
            self.blocks(block, section, depth + 1);
        }
    }
}

/// Whether no block is static. A static block needs no order.
fn is_all_local(section: &Node) -> bool {
    let blocks = schema::children(section);
    !blocks.is_empty() && blocks.iter().all(|(block, _)| block.get("static").is_none())
}

/// Reads and checks `config/settings_schema.json`.
pub fn settings_schema(root: &Node, notes: &mut Notes) -> Vec<Setting> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let invalid = |notes: &mut Notes, at, message: String| {
        notes.add(at, Error, "ValidSettingsSchema", message);
    };
    if !root.is_array() {
        invalid(notes, root.at, format!("the settings schema must be an array, is {}", root.kind()));
        return found;
    }
    for group in root.items() {
        match (group.get("name"), group.get("settings")) {
            (None, _) => invalid(notes, group.at, "a group of settings has no `name`".to_owned()),
            // Old themes show in settings who has made them.
            (Some(name), settings) if name.text() == Some("theme_info") && settings.is_none() => {
                theme_info(group, |at, message| {
                    invalid(notes, at, message);
                });
            }
            (_, Some(list)) => found.extend(settings::read(list, &mut seen, true, notes)),
            (_, None) => invalid(notes, group.at, "a group of settings has no `settings`".to_owned()),
        }
    }
    found
}

/// Checks what the settings schema says about the theme as a whole.
fn theme_info(group: &Node, mut invalid: impl FnMut(usize, String)) {
    for key in ["theme_name", "theme_author", "theme_version", "theme_documentation_url"] {
        match group.get(key) {
            None => invalid(group.at, format!("theme_info has no `{key}`")),
            Some(value) => match value.text() {
                None => invalid(value.at, format!("`{key}` must be a string, is {}", value.kind())),
                Some(text) if key == "theme_author" && text.chars().count() > 25 => {
                    invalid(value.at, "`theme_author` has at most 25 characters".to_owned());
                }
                Some(_) => {}
            },
        }
    }
    if ["theme_support_email", "theme_support_url"].iter().all(|key| group.get(key).is_none()) {
        invalid(group.at, "theme_info has no `theme_support_email` or `theme_support_url`".to_owned());
    }
}

/// Checks `config/settings_data.json` by itself.
pub fn settings_data(root: &Node, notes: &mut Notes) {
    let mut invalid = |at, message| notes.add(at, Error, "ValidSettingsData", message);
    let Some(current) = root.get("current") else {
        return invalid(root.at, "the settings data has no `current`".to_owned());
    };
    if let Some(name) = current.text() {
        if root.get("presets").and_then(|presets| presets.get(name)).is_none() {
            invalid(current.at, format!("`current` names the preset `{name}`, which is not there"));
        }
    } else if !current.is_object() {
        let kind = current.kind();
        invalid(current.at, format!("`current` must be an object or the name of a preset, is {kind}"));
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

/// Reports keys that are there twice.
pub fn duplicate_keys(root: &Node, notes: &mut Notes) {
    json::duplicates(root, &mut |member| {
        let message = format!("the key \"{}\" is there twice", member.key);
        notes.add(member.key_at, Warning, "DuplicateKey", message);
    });
}
