//! The schema of a section, a block or the theme.

use std::borrow::Cow;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use theme::path::FileKind;
use theme::scan::json::ValueKind;

use super::json::Json;
use super::liquid::Liquid;

pub struct Setting<'a> {
    pub node: usize,
    /// Empty for a header or paragraph.
    pub id: Cow<'a, str>,
    pub kind: Cow<'a, str>,
    pub line: u32,
    pub default: Option<usize>,
}

pub struct Block<'a> {
    pub node: usize,
    pub kind: Cow<'a, str>,
    pub line: u32,
    pub settings: Vec<Setting<'a>>,
}

/// A group of settings of the theme, or the section or block itself.
pub struct Schema<'a> {
    pub json: Json<'a>,
    pub root: usize,
    pub settings: Vec<Setting<'a>>,
    pub blocks: Vec<Block<'a>>,
    /// For settings of the theme: where each group begins in `settings`, and its node.
    pub groups: Vec<(usize, usize)>,
    /// The first setting with each id.
    by_id: FxHashMap<String, usize>,
}

fn settings<'a>(json: &Json<'a>, holder: usize, found: &mut Vec<Setting<'a>>) {
    let Some(list) = json.get(holder, "settings").filter(|&list| json.kind(list) == ValueKind::Array) else {
        return;
    };
    for node in json.children(list).filter(|&node| json.is_object(node)) {
        found.push(Setting {
            node,
            id: json.text_of(node, "id").unwrap_or_default(),
            kind: json.text_of(node, "type").unwrap_or_default(),
            line: json.line(node),
            default: json.get(node, "default"),
        });
    }
}

impl<'a> Schema<'a> {
    /// Reads the schema of a file. `None` if it has none.
    pub fn read(path: &str, text: &'a str) -> Option<Self> {
        match FileKind::of(path) {
            FileKind::SettingsSchema => {
                let json = Json::read(text);
                let root = json.root()?;
                let (mut found, mut groups) = (Vec::new(), Vec::new());
                for group in json.children(root).filter(|&group| json.is_object(group)) {
                    groups.push((found.len(), group));
                    settings(&json, group, &mut found);
                }
                Some(Self::new(json, root, found, Vec::new(), groups))
            }
            FileKind::Section | FileKind::Block => {
                let liquid = Liquid::read(text);
                Self::of(&liquid)
            }
            _ => None,
        }
    }

    pub fn of(liquid: &Liquid<'a>) -> Option<Self> {
        let json = Json::within(liquid.text, liquid.schema()?, Rc::clone(&liquid.lines));
        let root = json.root().filter(|&root| json.is_object(root))?;
        let (mut found, mut blocks) = (Vec::new(), Vec::new());
        settings(&json, root, &mut found);
        if let Some(list) = json.get(root, "blocks").filter(|&list| json.kind(list) == ValueKind::Array) {
            for node in json.children(list).filter(|&node| json.is_object(node)) {
                let mut own = Vec::new();
                settings(&json, node, &mut own);
                let kind = json.text_of(node, "type").unwrap_or_default();
                blocks.push(Block { node, kind, line: json.line(node), settings: own });
            }
        }
        Some(Self::new(json, root, found, blocks, Vec::new()))
    }

    fn new(
        json: Json<'a>,
        root: usize,
        settings: Vec<Setting<'a>>,
        blocks: Vec<Block<'a>>,
        groups: Vec<(usize, usize)>,
    ) -> Self {
        let mut by_id = FxHashMap::default();
        for (index, setting) in settings.iter().enumerate().filter(|(_, setting)| !setting.id.is_empty()) {
            by_id.entry(setting.id.to_string()).or_insert(index);
        }
        Self { json, root, settings, blocks, groups, by_id }
    }

    pub fn setting(&self, id: &str) -> Option<&Setting<'a>> {
        self.by_id.get(id).map(|&index| &self.settings[index])
    }

    /// The value and the label of each option.
    pub fn options(&self, setting: &Setting<'a>) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        let Some(list) = self.json.get(setting.node, "options") else { return Vec::new() };
        let option = |node| {
            let value = self.json.word_of(node, "value")?;
            Some((value, self.json.text_of(node, "label").unwrap_or_default()))
        };
        self.json.children(list).filter_map(option).collect()
    }

    pub fn number(&self, setting: &Setting<'a>, key: &str) -> Option<f64> {
        self.json.word_of(setting.node, key)?.parse().ok()
    }
}
