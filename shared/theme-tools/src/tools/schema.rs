//! `get_schema_settings`: what the schema of a section, a block or the theme declares.

use theme::ThemeIndex;
use theme::path::FileKind;
use theme::scan::json::ValueKind;

use crate::answer::{Report, short};
use crate::arguments::SchemaSettings;
use crate::error::ToolError;
use crate::needs::{Needs, paths};
use crate::read::labels::{Labels, is_labels};
use crate::read::schema::{Schema, Setting};
use crate::tree::Tree;

/// The most options and texts that one line shows.
const MAX_OPTIONS: usize = 24;

pub fn needs(call: &SchemaSettings, index: &ThemeIndex) -> Needs {
    paths(index, |path, kind| path == call.path || is_labels(path, kind))
}

pub fn run(call: &SchemaSettings, tree: &Tree<'_>) -> Result<String, ToolError> {
    let text = tree.require_text(&call.path)?;
    let kind = FileKind::of(&call.path);
    if !matches!(kind, FileKind::Section | FileKind::Block | FileKind::SettingsSchema) {
        return Err(ToolError::WrongKind {
            path: call.path.clone(),
            kind: kind.as_str(),
            tool: "get_schema_settings",
            wanted: "sections, blocks and config/settings_schema.json",
        });
    }
    let mut report = Report::new(call.page(), "entry", "entries");
    let Some(schema) = Schema::read(&call.path, text) else {
        report.head(format!("{} has no schema that can be read.", call.path));
        return Ok(report.finish());
    };
    let labels = Labels::read(tree);
    let shown = Shown { schema: &schema, labels: &labels };
    if let Some(line) = schema.json.broken_line() {
        report.head(format!("Line {line} is not valid JSON, so this may lack something."));
    }
    match &call.setting {
        Some(id) => one(id, &shown, &mut report),
        None => all(&call.path, &shown, &mut report),
    }
    Ok(report.finish())
}

/// A schema with the texts of its labels.
pub struct Shown<'s, 'a> {
    pub schema: &'s Schema<'a>,
    pub labels: &'s Labels<'a>,
}

fn all(path: &str, shown: &Shown<'_, '_>, report: &mut Report) {
    let (schema, json) = (shown.schema, &shown.schema.json);
    if schema.groups.is_empty() {
        let mut head = path.to_owned();
        if let Some(name) = json.get(schema.root, "name") {
            head += &format!(": {}, line {}", shown.label(&json.word(name)), json.line(name));
        }
        for key in ["tag", "class", "limit", "max_blocks"] {
            if let Some(word) = json.word_of(schema.root, key) {
                head += &format!("; {key} {}", short(&word, 60));
            }
        }
        report.head(head);
        for key in ["enabled_on", "disabled_on"] {
            if let Some(node) = json.get(schema.root, key) {
                report.head(format!("{key}, line {}: {}", json.line(node), json.shown(node)));
            }
        }
    }
    let mut groups = schema.groups.iter().peekable();
    for (index, setting) in schema.settings.iter().enumerate() {
        while let Some((_, group)) = groups.next_if(|(from, _)| *from <= index) {
            report.item(|| shown.group(*group));
        }
        report.item(|| shown.setting(setting, MAX_OPTIONS));
    }
    for (_, group) in groups {
        report.item(|| shown.group(*group));
    }
    for block in &schema.blocks {
        report.item(|| {
            let name = json.text_of(block.node, "name").unwrap_or_default();
            let limit =
                json.word_of(block.node, "limit").map_or(String::new(), |limit| format!(", limit {limit}"));
            let name = if name.is_empty() { String::new() } else { format!(" {}", shown.label(&name)) };
            format!("{}: block {}{name}{limit}", block.line, short(&block.kind, 60))
        });
        for setting in &block.settings {
            report.item(|| format!("  {}", shown.setting(setting, MAX_OPTIONS)));
        }
    }
    let presets = json.get(schema.root, "presets").filter(|_| schema.groups.is_empty());
    for preset in presets.into_iter().flat_map(|list| json.children(list)) {
        report.item(|| {
            let name = json.text_of(preset, "name").unwrap_or_default();
            let blocks = json.get(preset, "blocks").map_or(0, |blocks| json.children(blocks).count());
            let values = json.get(preset, "settings").map_or(0, |values| json.children(values).count());
            let line = json.line(preset);
            format!("{line}: preset {}, blocks: {blocks}, settings: {values}", shown.label(&name))
        });
    }
    if schema.groups.is_empty() && presets.is_none() && path.starts_with("sections/") {
        report.note("It has no preset, so a merchant can't add it in the theme editor.");
    }
}

fn one(id: &str, shown: &Shown<'_, '_>, report: &mut Report) {
    let own = shown.schema.settings.iter().map(|setting| (None, setting));
    let blocks = shown.schema.blocks.iter();
    let all =
        own.chain(blocks.flat_map(|block| block.settings.iter().map(move |setting| (Some(block), setting))));
    for (block, setting) in all.filter(|(_, setting)| setting.id == id) {
        report.item(|| {
            let owner = block.map_or(String::new(), |block| format!("  in block {}", short(&block.kind, 60)));
            format!("{}{owner}", shown.setting(setting, usize::MAX))
        });
        let json = &shown.schema.json;
        for node in json.children(setting.node) {
            let key = json.key(node);
            if matches!(key, "id" | "type" | "label" | "default" | "options") {
                continue;
            }
            report.item(|| {
                let value = match json.kind(node) {
                    ValueKind::String => shown.label(&json.word(node)),
                    _ => json.shown(node),
                };
                format!("  {}: {key} {value}", json.line(node))
            });
        }
    }
    if report.total() == 0 {
        let ids: Vec<&str> =
            shown.schema.settings.iter().map(|setting| &*setting.id).filter(|id| !id.is_empty()).collect();
        let first = ids.iter().take(60).map(|id| short(id, 60)).collect::<Vec<_>>().join(", ");
        report.head(format!("The schema has no setting `{}`. Its own settings: {first}", short(id, 100)));
    }
}

impl Shown<'_, '_> {
    /// A label as the theme editor shows it. A key without a text is shown as it is.
    pub fn label(&self, label: &str) -> String {
        let text = short(self.labels.of(label), 120);
        if self.labels.is_missing(label) { format!("\"{text}\" (no text)") } else { format!("\"{text}\"") }
    }

    fn group(&self, group: usize) -> String {
        let json = &self.schema.json;
        let name = json.text_of(group, "name").unwrap_or_default();
        format!("{}: group {}", json.line(group), self.label(&name))
    }

    pub fn setting(&self, setting: &Setting<'_>, most: usize) -> String {
        let json = &self.schema.json;
        let mut line = format!("{}: {}", setting.line, short(&setting.kind, 40));
        if setting.id.is_empty() {
            let content = json.text_of(setting.node, "content").unwrap_or_default();
            return format!("{line} {}", self.label(&content));
        }
        line += &format!(" {}", short(&setting.id, 100));
        if let Some(label) = json.text_of(setting.node, "label") {
            line += &format!(" {}", self.label(&label));
        }
        if let Some(default) = setting.default {
            line += &format!(", default {}", json.shown(default));
        }
        let number = |key| json.word_of(setting.node, key);
        if let (Some(min), Some(max)) = (number("min"), number("max")) {
            let step = number("step").unwrap_or("1".into());
            let unit =
                number("unit").map_or(String::new(), |unit| format!(" {}", short(self.labels.of(&unit), 20)));
            line += &format!(", {min} to {max} step {step}{unit}");
        }
        if let Some(limit) = number("limit") {
            line += &format!(", limit {limit}");
        }
        let options = self.schema.options(setting);
        if !options.is_empty() {
            let one = |(value, label): &(std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
                format!("{} {}", short(value, 60), self.label(label))
            };
            let shown: Vec<String> = options.iter().take(most.min(200)).map(one).collect();
            let more = options.len() - shown.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            line += &format!(", options: {}{more}", shown.join(" | "));
        }
        line
    }
}
