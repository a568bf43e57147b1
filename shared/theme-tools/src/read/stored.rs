//! The sections, blocks and settings that JSON templates, section groups and `settings_data.json` store.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};
use theme::scan::json::ValueKind;

use super::json::Json;

/// How deep blocks are read. The platform allows eight levels.
const MAX_DEPTH: usize = 12;

pub struct PlacedBlock<'a> {
    pub id: &'a str,
    pub kind: Cow<'a, str>,
    pub line: u32,
    /// The line of its `type`.
    pub type_line: u32,
    pub is_disabled: bool,
    /// Whether `block_order` has it, if there is a `block_order`.
    pub is_ordered: bool,
    pub settings: Option<usize>,
}

pub struct Placed<'a> {
    pub id: &'a str,
    pub kind: Cow<'a, str>,
    pub line: u32,
    /// The line of its `type`.
    pub type_line: u32,
    pub is_disabled: bool,
    /// Its place in `order`, from 0. `None` if it is not there.
    pub place: Option<usize>,
    pub blocks: Vec<PlacedBlock<'a>>,
    pub settings: Option<usize>,
}

/// The layout that a template asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    Default,
    None,
    Named(String),
}

pub struct Stored<'a> {
    pub json: Json<'a>,
    /// In the order of the file.
    pub sections: Vec<Placed<'a>>,
    /// How many sections `order` names.
    pub ordered: usize,
    pub order_line: Option<u32>,
    /// The names in `order` that `sections` lacks, with their lines.
    pub unknown: Vec<(String, u32)>,
    pub layout: Layout,
}

impl<'a> Stored<'a> {
    /// Reads a JSON template or a section group.
    pub fn template(text: &'a str) -> Self {
        let json = Json::read(text);
        let Some(root) = json.root().filter(|&root| json.is_object(root)) else {
            return Self::empty(json);
        };
        let layout = match json.get(root, "layout") {
            None => Layout::Default,
            Some(node) if json.kind(node) == ValueKind::String => Layout::Named(json.word(node).into_owned()),
            Some(_) => Layout::None,
        };
        let order = json.get(root, "order").filter(|&list| json.kind(list) == ValueKind::Array);
        let mut places: FxHashMap<Cow<'a, str>, usize> = FxHashMap::default();
        let mut ordered = 0;
        if let Some(list) = order {
            for name in json.children(list) {
                places.entry(json.word(name)).or_insert(ordered);
                ordered += 1;
            }
        }
        let sections = sections(&json, root, |id| places.get(id).copied());
        let known: FxHashSet<&str> = sections.iter().map(|section| section.id).collect();
        let mut unknown = Vec::new();
        if let Some(list) = order {
            for name in json.children(list) {
                let id = json.word(name);
                if !known.contains(&*id) {
                    unknown.push((id.into_owned(), json.line(name)));
                }
            }
        }
        let order_line = order.map(|list| json.line(list));
        Self { sections, ordered, order_line, unknown, layout, json }
    }

    fn empty(json: Json<'a>) -> Self {
        Self {
            json,
            sections: Vec::new(),
            ordered: 0,
            order_line: None,
            unknown: Vec::new(),
            layout: Layout::Default,
        }
    }
}

fn sections<'a>(json: &Json<'a>, root: usize, place: impl Fn(&str) -> Option<usize>) -> Vec<Placed<'a>> {
    let Some(list) = json.get(root, "sections").filter(|&list| json.is_object(list)) else {
        return Vec::new();
    };
    let section = |node: usize| {
        let mut placed = Vec::new();
        blocks(json, node, 0, &mut placed);
        Placed {
            id: json.key(node),
            kind: json.text_of(node, "type").unwrap_or_default(),
            line: json.line(node),
            type_line: json.get(node, "type").map_or(0, |kind| json.line(kind)),
            is_disabled: json.is_true(node, "disabled"),
            place: place(json.key(node)),
            blocks: placed,
            settings: json.get(node, "settings").filter(|&settings| json.is_object(settings)),
        }
    };
    json.children(list).filter(|&node| json.is_object(node)).map(section).collect()
}

fn blocks<'a>(json: &Json<'a>, holder: usize, depth: usize, found: &mut Vec<PlacedBlock<'a>>) {
    let Some(list) = json.get(holder, "blocks").filter(|&list| json.is_object(list)) else { return };
    let order = json.get(holder, "block_order");
    let names: FxHashSet<Cow<'a, str>> =
        order.map(|order| json.children(order).map(|name| json.word(name)).collect()).unwrap_or_default();
    for node in json.children(list).filter(|&node| json.is_object(node)) {
        let is_static = json.is_true(node, "static");
        found.push(PlacedBlock {
            id: json.key(node),
            kind: json.text_of(node, "type").unwrap_or_default(),
            line: json.line(node),
            type_line: json.get(node, "type").map_or(0, |kind| json.line(kind)),
            is_disabled: json.is_true(node, "disabled"),
            is_ordered: order.is_none() || is_static || names.contains(json.key(node)),
            settings: json.get(node, "settings").filter(|&settings| json.is_object(settings)),
        });
        if depth < MAX_DEPTH {
            blocks(json, node, depth + 1, found);
        }
    }
}

/// `config/settings_data.json`.
pub struct SettingsData<'a> {
    pub json: Json<'a>,
    /// The sections that layouts place themselves, by their type.
    pub sections: Vec<Placed<'a>>,
    values: FxHashMap<&'a str, usize>,
}

impl<'a> SettingsData<'a> {
    pub fn read(text: &'a str) -> Self {
        let json = Json::read(text);
        let root = json.root().filter(|&root| json.is_object(root));
        // `current` has the values, or names the preset that has them.
        let current = root.and_then(|root| {
            let current = json.get(root, "current")?;
            match json.kind(current) {
                ValueKind::Object => Some(current),
                ValueKind::String => {
                    let presets = json.get(root, "presets")?;
                    json.get(presets, &json.word(current)).filter(|&preset| json.is_object(preset))
                }
                _ => None,
            }
        });
        let sections = current.map(|current| sections(&json, current, |_| Some(0))).unwrap_or_default();
        let values = current
            .map(|current| json.children(current).map(|node| (json.key(node), node)).collect())
            .unwrap_or_default();
        Self { json, sections, values }
    }

    /// The current value of a setting of the theme.
    pub fn value(&self, id: &str) -> Option<usize> {
        self.values.get(id).copied()
    }
}
