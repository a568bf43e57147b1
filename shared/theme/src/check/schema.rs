//! The schema of a section or a theme block.

use rustc_hash::FxHashSet;

use super::Notes;
use super::Severity::{self, Error, Warning};
use super::json::{self, Node};
use super::settings::{self, Setting};
use crate::path::FileKind;
use crate::text::Span;

const CODE: &str = "ValidSchema";

/// The longest name, in characters, unless it is a translation key.
const MAX_NAME: usize = 25;

/// The most blocks of a section.
pub const MAX_BLOCKS: usize = 50;

#[derive(Debug)]
pub struct BlockDef {
    pub kind: String,
    pub at: usize,
    /// Whether the schema defines the block itself. Otherwise a file in `blocks/` does.
    pub is_local: bool,
    pub settings: Vec<Setting>,
    pub limit: Option<f64>,
}

#[derive(Debug)]
pub struct Schema {
    pub root: Node,
    pub settings: Vec<Setting>,
    pub blocks: Vec<BlockDef>,
    pub max_blocks: usize,
    /// Values that the schema stores: who, where, the settings.
    pub stored: Vec<StoredBlock>,
    /// `t:` keys that the schema reads.
    pub keys: Vec<(String, usize)>,
}

/// A block of a preset, with the type of the block around it.
#[derive(Debug)]
pub struct StoredBlock {
    pub kind: String,
    pub parent: Option<String>,
    pub at: usize,
    pub settings: Vec<(String, usize)>,
}

impl Schema {
    pub fn accepts(&self, kind: &str) -> bool {
        self.blocks.iter().any(|block| {
            block.kind == kind
                || (block.kind == "@theme"
                    && !kind.starts_with('_')
                    && !kind.starts_with('@')
                    && !kind.starts_with("shopify://"))
                || (block.kind == "@app" && (kind == "@app" || kind.starts_with("shopify://")))
        })
    }

    pub fn block(&self, kind: &str) -> Option<&BlockDef> {
        self.blocks.iter().find(|block| block.kind == kind)
    }

    /// Whether blocks come from files in `blocks/` or from apps, so that the schema does not know their settings.
    pub fn is_open(&self) -> bool {
        self.blocks.iter().any(|block| !block.is_local)
    }

    pub fn setting(&self, id: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.id == id)
    }

    /// `enabled_on` or `disabled_on`: whether the section may be used in this template or group.
    pub fn allows(&self, list: &str, name: &str) -> bool {
        let names = |toggle: &str| -> Option<Vec<&str>> {
            let toggle = self.root.get(toggle)?;
            Some(
                toggle
                    .get(list)
                    .map(|list| list.items().iter().filter_map(Node::text).collect())
                    .unwrap_or_default(),
            )
        };
        let matches = |names: &[&str]| names.iter().any(|known| *known == "*" || *known == name);
        if let Some(enabled) = names("enabled_on") {
            return matches(&enabled);
        }
        !names("disabled_on").is_some_and(|disabled| matches(&disabled))
    }
}

/// Reads and checks the schema in `body`. `None` if it is not valid JSON.
pub fn read(kind: FileKind, text: &str, body: Span, notes: &mut Notes) -> Option<Schema> {
    let root = match json::parse(text, body, false) {
        Ok(parsed) => {
            for doubt in parsed.doubts {
                notes.add(doubt.at, Warning, "ValidJSON", doubt.message);
            }
            parsed.root
        }
        Err(error) => {
            let message = format!("the schema is not valid JSON: {}", error.message);
            notes.add(error.at, Error, "ValidJSON", message);
            return None;
        }
    };
    json::duplicates(&root, &mut |member| {
        let message = format!("the key \"{}\" is there twice", member.key);
        notes.add(member.key_at, Warning, "DuplicateKey", message);
    });
    if !root.is_object() {
        notes.add(root.at, Error, CODE, format!("a schema must be an object, is {}", root.kind()));
        return None;
    }
    check_keys(kind, &root, notes);
    check_name(&root, notes);
    let mut schema = Schema {
        settings: root
            .get("settings")
            .map_or_else(Vec::new, |list| settings::read(list, &mut FxHashSet::default(), false, notes)),
        blocks: Vec::new(),
        max_blocks: MAX_BLOCKS,
        stored: Vec::new(),
        keys: Vec::new(),
        root,
    };
    blocks(kind, &mut schema, notes);
    toggles(&schema.root, notes);
    limits(&mut schema, notes);
    presets(&mut schema, notes);
    translation_keys(&schema.root, &mut schema.keys);
    Some(schema)
}

fn check_keys(kind: FileKind, root: &Node, notes: &mut Notes) {
    const SECTION: [&str; 14] = [
        "name",
        "tag",
        "class",
        "limit",
        "settings",
        "max_blocks",
        "blocks",
        "presets",
        "default",
        "locales",
        "enabled_on",
        "disabled_on",
        "templates",
        "visible_if",
    ];
    const BLOCK: [&str; 9] =
        ["name", "tag", "class", "settings", "blocks", "presets", "max_blocks", "limit", "enabled_on"];
    if let Some(tag) = root.get("tag")
        && kind == FileKind::Block
        && !matches!(tag.value, json::Value::Null)
        && !tag.text().is_some_and(is_tag)
    {
        let message = "`tag` must be the name of an element, of at most 50 characters, or null";
        notes.add(tag.at, Error, CODE, message);
    }
    let known: &[&str] = if kind == FileKind::Block { &BLOCK } else { &SECTION };
    for member in root.members() {
        if !known.contains(&member.key.as_str()) {
            notes.add(member.key_at, Warning, CODE, format!("a schema has no attribute `{}`", member.key));
        }
    }
    if let Some(tag) = root.get("tag")
        && kind != FileKind::Block
        && !matches!(tag.text(), Some("article" | "aside" | "div" | "footer" | "header" | "section"))
    {
        notes.add(tag.at, Error, CODE, "`tag` must be article, aside, div, footer, header or section");
    }
    if let Some(class) = root.get("class")
        && class.text().is_none()
    {
        notes.add(class.at, Error, CODE, format!("`class` must be a string, is {}", class.kind()));
    }
    if let Some(default) = root.get("default")
        && root.get("presets").is_some()
    {
        notes.add(default.at, Error, CODE, "a schema has either `presets` or `default`, not both");
    }
}

fn is_tag(name: &str) -> bool {
    name.len() <= 50
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn check_name(root: &Node, notes: &mut Notes) {
    match root.get("name") {
        None => {
            if root.get("presets").is_some() {
                notes.add(root.at, Error, CODE, "a schema with presets has no `name`");
            }
        }
        Some(name) => match name.text() {
            Some(text) => {
                let length = text.chars().count();
                if length > MAX_NAME && !text.starts_with("t:") {
                    let message = format!("the name has {length} characters; the most are {MAX_NAME}");
                    notes.add(name.at, Error, "ValidSchemaName", message);
                } else if text.trim().is_empty() && root.get("presets").is_some() {
                    notes.add(name.at, Error, "ValidSchemaName", "the name is empty");
                }
            }
            None if name.is_object() => {}
            None => notes.add(name.at, Error, CODE, format!("`name` must be a string, is {}", name.kind())),
        },
    }
}

fn blocks(kind: FileKind, schema: &mut Schema, notes: &mut Notes) {
    let Some(list) = schema.root.get("blocks") else { return };
    if !list.is_array() {
        notes.add(list.at, Error, CODE, format!("`blocks` must be an array, is {}", list.kind()));
        return;
    }
    let mut kinds: Vec<(bool, usize)> = Vec::new();
    for node in list.items() {
        let Some(type_node) = node.get("type") else {
            notes.add(node.at, Error, CODE, "a block has no `type`");
            continue;
        };
        let Some(name) = type_node.text() else {
            notes.add(type_node.at, Error, CODE, "the type of a block must be a string");
            continue;
        };
        if schema.blocks.iter().any(|block| block.kind == name) {
            notes.add(type_node.at, Error, CODE, format!("the block type `{name}` is there twice"));
        }
        let is_special = name.starts_with('@');
        let is_local = !is_special && node.members().len() > 1;
        if is_special && !matches!(name, "@app" | "@theme") {
            let message = format!("there is no block type `{name}`: only @app and @theme");
            notes.add(type_node.at, Error, CODE, message);
        }
        if is_local && kind == FileKind::Block {
            notes.add(node.at, Error, "ValidLocalBlocks", "a theme block can't define blocks of its own");
        }
        if is_local {
            match node.get("name") {
                None => notes.add(node.at, Error, CODE, format!("the block `{name}` has no `name`")),
                Some(label) if label.text().is_none() && !label.is_object() => {
                    let message = format!("the name of the block `{name}` must be a string");
                    notes.add(label.at, Error, CODE, message);
                }
                Some(label)
                    if label
                        .text()
                        .is_some_and(|text| !text.starts_with("t:") && text.chars().count() > MAX_NAME) =>
                {
                    let message =
                        format!("the name of the block `{name}` has more than {MAX_NAME} characters");
                    notes.add(label.at, Error, "ValidSchemaName", message);
                }
                Some(_) => {}
            }
        }
        if name != "@app" {
            kinds.push((is_local, type_node.at));
        }
        let limit = node.get("limit").map(|limit| {
            let number = limit.number();
            if !number.is_some_and(|number| number >= 1.0 && number.fract() == 0.0) {
                let message = format!("the limit of the block `{name}` must be a whole number from 1");
                notes.add(limit.at, Error, CODE, message);
            }
            number
        });
        let mut seen = FxHashSet::default();
        let settings =
            node.get("settings").map_or_else(Vec::new, |list| settings::read(list, &mut seen, false, notes));
        schema.blocks.push(BlockDef {
            kind: name.to_owned(),
            at: type_node.at,
            is_local,
            settings,
            limit: limit.flatten(),
        });
    }
    // The fewer ones are the wrong ones.
    let locals = kinds.iter().filter(|(is_local, _)| *is_local).count();
    if locals > 0 && locals < kinds.len() {
        let is_wrong = locals * 2 < kinds.len();
        let at = kinds.iter().find(|(is_local, _)| *is_local == is_wrong).map_or(list.at, |(_, at)| *at);
        notes.add(at, Error, "ValidLocalBlocks", "a section can't have blocks of its own and theme blocks");
    }
}

const TEMPLATES: [&str; 22] = [
    "*",
    "404",
    "article",
    "blog",
    "captcha",
    "cart",
    "collection",
    "customers/account",
    "customers/activate_account",
    "customers/addresses",
    "customers/login",
    "customers/order",
    "customers/register",
    "customers/reset_password",
    "gift_card",
    "index",
    "list-collections",
    "metaobject",
    "page",
    "password",
    "product",
    "search",
];

fn toggles(root: &Node, notes: &mut Notes) {
    let (enabled, disabled) = (root.get("enabled_on"), root.get("disabled_on"));
    if let (Some(_), Some(second)) = (enabled, disabled) {
        notes.add(second.at, Error, CODE, "a schema has either `enabled_on` or `disabled_on`, not both");
    }
    for toggle in [enabled, disabled].into_iter().flatten() {
        if !toggle.is_object() {
            let message = "`enabled_on` and `disabled_on` are objects with `templates` and `groups`";
            notes.add(toggle.at, Error, CODE, message);
        }
        for member in toggle.members() {
            match member.key.as_str() {
                "templates" => {
                    for name in member.node.items() {
                        let text = name.text().unwrap_or_default();
                        if !TEMPLATES.contains(&text) && text != "policy" && !text.starts_with("metaobject/")
                        {
                            notes.add(name.at, Error, CODE, format!("there is no template type `{text}`"));
                        }
                    }
                }
                "groups" => {
                    for name in member.node.items() {
                        let text = name.text().unwrap_or_default();
                        if !matches!(text, "*" | "header" | "footer" | "aside")
                            && !text.starts_with("custom.")
                        {
                            let message = format!("there is no section group type `{text}`");
                            notes.add(name.at, Error, CODE, message);
                        }
                    }
                }
                other => notes.add(
                    member.key_at,
                    Warning,
                    CODE,
                    format!("`{other}` is not `templates` or `groups`"),
                ),
            }
        }
    }
}

fn limits(schema: &mut Schema, notes: &mut Notes) {
    if let Some(limit) = schema.root.get("limit")
        && !limit.number().is_some_and(|limit| limit == 1.0 || limit == 2.0)
    {
        notes.add(limit.at, Error, CODE, "`limit` must be 1 or 2");
    }
    if let Some(most) = schema.root.get("max_blocks") {
        match most.number() {
            Some(number) if (1.0..=MAX_BLOCKS as f64).contains(&number) => {
                schema.max_blocks = number as usize;
            }
            Some(number) if number > MAX_BLOCKS as f64 => {
                let message = format!("`max_blocks` must be 1 to {MAX_BLOCKS}, is {number}");
                notes.add(most.at, Error, CODE, message);
            }
            _ => notes.add(most.at, Error, CODE, format!("`max_blocks` must be 1 to {MAX_BLOCKS}")),
        }
    }
}

fn presets(schema: &mut Schema, notes: &mut Notes) {
    let mut stored = Vec::new();
    let mut given: Vec<(&Node, bool)> = Vec::new();
    if let Some(list) = schema.root.get("presets") {
        if !list.is_array() {
            notes.add(list.at, Error, CODE, format!("`presets` must be an array, is {}", list.kind()));
        }
        given.extend(list.items().iter().map(|preset| (preset, true)));
    }
    given.extend(schema.root.get("default").map(|default| (default, false)));
    let mut names: Vec<&str> = Vec::new();
    for (preset, is_preset) in given {
        match preset.get("name") {
            None if is_preset => notes.add(preset.at, Error, CODE, "a preset has no `name`"),
            Some(name) => {
                let text = name.text().unwrap_or_default();
                if names.contains(&text) && !text.is_empty() {
                    notes.add(name.at, Warning, CODE, format!("the preset `{text}` is there twice"));
                }
                names.push(text);
            }
            None => {}
        }
        if is_preset {
            const KEYS: [&str; 5] = ["name", "category", "settings", "blocks", "block_order"];
            for member in preset.members().iter().filter(|member| !KEYS.contains(&member.key.as_str())) {
                let message = format!("a preset has no attribute `{}`", member.key);
                notes.add(member.key_at, Warning, CODE, message);
            }
        }
        if let Some(values) = preset.get("settings") {
            check_stored(values, &schema.settings, "ValidSettingsKey", Warning, notes);
        }
        let mut counts: Vec<(&str, f64)> = Vec::new();
        let mut total = 0;
        for (block, _) in children(preset) {
            total += 1;
            let Some(kind) = block.text_of("type") else {
                notes.add(block.at, Error, CODE, "a block of a preset has no `type`");
                continue;
            };
            match counts.iter_mut().find(|(name, _)| *name == kind) {
                Some((_, count)) => *count += 1.0,
                None => counts.push((kind, 1.0)),
            }
            let is_static =
                matches!(block.get("static").map(|node| &node.value), Some(json::Value::Bool(true)));
            let type_at = block.get("type").map_or(block.at, |node| node.at);
            if !is_static && !schema.accepts(kind) {
                let message =
                    format!("the preset has a block of the type `{kind}`, which the schema does not allow");
                notes.add(type_at, Error, "ValidBlockTarget", message);
            } else if let Some(def) = schema.block(kind).filter(|def| def.is_local) {
                if let Some(values) = block.get("settings") {
                    check_stored(values, &def.settings, "ValidSettingsKey", Warning, notes);
                }
                if let Some(limit) = def.limit
                    && counts.iter().any(|(name, count)| *name == kind && *count > limit)
                {
                    let message = format!("the preset has more than {limit} blocks of the type `{kind}`");
                    notes.add(type_at, Error, CODE, message);
                }
            }
            store(block, None, &mut stored, 1, notes);
        }
        if total > schema.max_blocks {
            let message = format!("the preset has {total} blocks; the most are {}", schema.max_blocks);
            notes.add(preset.at, Error, CODE, message);
        }
        orders(preset, notes);
    }
    schema.stored = stored;
}

/// The deepest nesting of blocks.
const MAX_NESTING: usize = 8;

fn store(block: &Node, parent: Option<&str>, stored: &mut Vec<StoredBlock>, depth: usize, notes: &mut Notes) {
    let Some(kind) = block.text_of("type") else { return };
    if depth > MAX_NESTING {
        notes.add(block.at, Error, CODE, format!("blocks are nested deeper than {MAX_NESTING} levels"));
        return;
    }
    let settings = block
        .get("settings")
        .map(|values| values.members().iter().map(|member| (member.key.clone(), member.key_at)).collect());
    stored.push(StoredBlock {
        kind: kind.to_owned(),
        parent: parent.map(str::to_owned),
        at: block.get("type").map_or(block.at, |node| node.at),
        settings: settings.unwrap_or_default(),
    });
    for (child, _) in children(block) {
        store(child, Some(kind), stored, depth + 1, notes);
    }
    if depth > 0 {
        orders(block, notes);
    }
}

/// The blocks of a preset, section or block: an array, or an object by id.
pub fn children(holder: &Node) -> Vec<(&Node, Option<&str>)> {
    let Some(blocks) = holder.get("blocks") else { return Vec::new() };
    let listed = blocks.items().iter().map(|block| (block, None));
    listed.chain(blocks.members().iter().map(|member| (&member.node, Some(member.key.as_str())))).collect()
}

/// Checks `block_order` against the blocks.
pub fn orders(holder: &Node, notes: &mut Notes) {
    let Some(order) = holder.get("block_order") else { return };
    if !order.is_array() {
        notes.add(order.at, Error, "JSONMissingBlock", "`block_order` must be an array");
        return;
    }
    let blocks = children(holder);
    let mut seen = FxHashSet::default();
    for id_node in order.items() {
        let id = id_node.text().unwrap_or_default();
        if !blocks.iter().any(|(_, name)| *name == Some(id)) {
            let message = format!("`block_order` names the block `{id}`, which is not there");
            notes.add(id_node.at, Error, "JSONMissingBlock", message);
        }
        if !seen.insert(id) {
            let message = format!("`block_order` names the block `{id}` twice");
            notes.add(id_node.at, Error, "JSONMissingBlock", message);
        }
    }
    for (block, id) in blocks {
        let is_static = matches!(block.get("static").map(|node| &node.value), Some(json::Value::Bool(true)));
        if let Some(id) = id
            && !is_static
            && !seen.contains(id)
        {
            let message = format!("the block `{id}` is not in `block_order`, so it is not shown");
            notes.add(block.at, Warning, "JSONMissingBlock", message);
        }
    }
}

/// Checks the values that a template stores against the settings.
pub fn check_values(values: &Node, settings: &[Setting], code: &'static str, notes: &mut Notes) {
    check_stored(values, settings, code, Error, notes);
}

/// Checks stored values against the settings. No finding is worse than `most`.
fn check_stored(values: &Node, settings: &[Setting], code: &'static str, most: Severity, notes: &mut Notes) {
    for member in values.members() {
        match settings.iter().find(|setting| setting.id == member.key) {
            None => notes.add(member.key_at, Warning, code, format!("there is no setting `{}`", member.key)),
            Some(setting) => {
                settings::refused_liquid(setting, &member.node, notes);
                if let Some((severity, message)) = settings::wrong_value(setting, &member.node, false) {
                    notes.add(member.node.at, severity.max(most), "ValidSettingValue", message);
                }
            }
        }
    }
}

/// Collects every string that begins with `t:`.
pub fn translation_keys(node: &Node, found: &mut Vec<(String, usize)>) {
    if let Some(key) = node.text().and_then(|text| text.strip_prefix("t:")) {
        found.push((key.to_owned(), node.at));
    }
    for member in node.members() {
        translation_keys(&member.node, found);
    }
    for item in node.items() {
        translation_keys(item, found);
    }
}
