//! `check_theme_setting`: where a setting is declared, stored and read, and what is wrong with it.

use memchr::memmem;
use rustc_hash::{FxHashMap, FxHashSet};
use theme::ThemeIndex;
use theme::path::{FileKind, handle};
use theme::scan::json::ValueKind;
use theme::text::Span;

use super::schema::Shown;
use crate::answer::{Report, excerpt, short};
use crate::arguments::ThemeSetting;
use crate::needs::{Needs, paths};
use crate::read::json::Json;
use crate::read::labels::{Labels, is_labels};
use crate::read::liquid::{Liquid, Owner, settings};
use crate::read::schema::{Schema, Setting};
use crate::read::stored::{SettingsData, Stored};
use crate::text::line_of;
use crate::tree::{Tree, has_liquid};

fn is_stored(kind: FileKind) -> bool {
    matches!(kind, FileKind::JsonTemplate | FileKind::SectionGroup)
}

pub fn needs(index: &ThemeIndex) -> Needs {
    paths(index, |path, kind| {
        has_liquid(path, kind)
            || is_stored(kind)
            || matches!(kind, FileKind::SettingsSchema | FileKind::SettingsData)
            || is_labels(path, kind)
    })
}

/// Which values a setting can have.
struct Rule {
    kind: String,
    range: Option<[f64; 3]>,
    options: FxHashSet<String>,
}

impl Rule {
    fn of(schema: &Schema<'_>, setting: &Setting<'_>) -> Self {
        let number = |key| schema.number(setting, key);
        let range = match (number("min"), number("max")) {
            (Some(min), Some(max)) => Some([min, max, number("step").unwrap_or(1.0)]),
            _ => None,
        };
        let options = schema.options(setting).into_iter().map(|(value, _)| value.into_owned()).collect();
        Self { kind: setting.kind.to_string(), range, options }
    }

    /// What is wrong with a value.
    fn problem(&self, json: &Json<'_>, node: usize) -> Option<String> {
        let word = json.word(node);
        let is_text = json.kind(node) == ValueKind::String;
        if is_text && word.contains("{{") {
            return None;
        }
        match self.kind.as_str() {
            "range" => {
                let [min, max, step] = self.range?;
                let value: f64 = match word.parse() {
                    Ok(value) if !is_text => value,
                    _ => return Some("is not a number".to_owned()),
                };
                if value < min || value > max {
                    return Some(format!("is out of its range, {min} to {max}"));
                }
                let steps = (value - min) / step;
                (step > 0.0 && (steps - steps.round()).abs() > 1e-6)
                    .then(|| format!("is between two steps: from {min} by {step}"))
            }
            "select" | "radio" if !self.options.is_empty() => {
                (!is_text || !self.options.contains(&*word)).then(|| "is none of its options".to_owned())
            }
            "checkbox" => (is_text || !matches!(&*word, "true" | "false"))
                .then(|| "is neither true nor false".to_owned()),
            "number" => (!matches!(&*word, "null" | "") && word.parse::<f64>().is_err())
                .then(|| "is not a number".to_owned()),
            _ => None,
        }
    }
}

/// What the sections and blocks of the theme declare with this id.
#[derive(Default)]
struct Declared {
    theme: Option<Rule>,
    sections: FxHashMap<String, Rule>,
    /// By section and type of its own block.
    own_blocks: FxHashMap<(String, String), Rule>,
    blocks: FxHashMap<String, Rule>,
    /// The sections that have such a block.
    with_blocks: FxHashSet<String>,
}

struct Search<'r, 't, 'a> {
    id: &'t str,
    scope: Option<Owner>,
    tree: &'t Tree<'a>,
    report: &'r mut Report,
    declared: Declared,
    problems: Vec<String>,
    uses: usize,
    /// A file that reads settings by computed names.
    computed: Option<String>,
}

pub fn run(call: &ThemeSetting, tree: &Tree<'_>) -> String {
    let (scope, id) = if let Some(id) = call.id.strip_prefix("section.settings.") {
        (Some(Owner::Section), id)
    } else if let Some(id) = call.id.strip_prefix("block.settings.") {
        (Some(Owner::Block), id)
    } else if let Some(id) = call.id.strip_prefix("settings.") {
        (Some(Owner::Theme), id)
    } else {
        (None, call.id.as_str())
    };
    let mut report = Report::new(call.page(), "place", "places");
    let mut search = Search {
        id,
        scope,
        tree,
        report: &mut report,
        declared: Declared::default(),
        problems: Vec::new(),
        uses: 0,
        computed: None,
    };
    search.declarations();
    search.stored();
    search.uses();
    search.unused();
    let problems = std::mem::take(&mut search.problems);
    let computed = search.computed.take();
    report.head(match problems.len() {
        0 => format!("Setting `{}`: no problem found.", short(id, 100)),
        1 => format!("Setting `{}`: 1 problem.", short(id, 100)),
        many => format!("Setting `{}`: {many} problems.", short(id, 100)),
    });
    for problem in problems {
        report.head(format!("PROBLEM {problem}"));
    }
    if let Some(path) = computed {
        report.note(format!("{path} reads settings by computed names, which may be this one."));
    }
    report.finish()
}

impl Search<'_, '_, '_> {
    fn wants(&self, owner: Owner) -> bool {
        self.scope.is_none_or(|scope| scope == owner)
    }

    fn declarations(&mut self) {
        let finder = memmem::Finder::new(self.id.as_bytes());
        let labels = Labels::read(self.tree);
        let declares = |_: &str, kind: FileKind| {
            matches!(kind, FileKind::SettingsSchema | FileKind::Section | FileKind::Block)
        };
        for (path, kind, text) in self.tree.texts(declares) {
            if finder.find(text.as_bytes()).is_none() {
                continue;
            }
            let Some(schema) = Schema::read(path, text) else { continue };
            let shown = Shown { schema: &schema, labels: &labels };
            if let Some(setting) = schema.setting(self.id) {
                let rule = Rule::of(&schema, setting);
                let owner = match kind {
                    FileKind::SettingsSchema => Owner::Theme,
                    FileKind::Section => Owner::Section,
                    _ => Owner::Block,
                };
                if self.wants(owner) {
                    self.default(path, &schema, setting, &rule);
                    self.report.item(|| format!("{path}:{}", shown.setting(setting, 24)));
                }
                let name = handle(path).to_owned();
                match kind {
                    FileKind::SettingsSchema => self.declared.theme = Some(rule),
                    FileKind::Section => _ = self.declared.sections.insert(name, rule),
                    _ => _ = self.declared.blocks.insert(name, rule),
                }
            }
            for block in &schema.blocks {
                let id = self.id;
                for setting in block.settings.iter().filter(|setting| setting.id == id) {
                    let rule = Rule::of(&schema, setting);
                    if self.wants(Owner::Block) {
                        self.default(path, &schema, setting, &rule);
                        let kind = short(&block.kind, 60);
                        self.report
                            .item(|| format!("{path}:{}  in block {kind}", shown.setting(setting, 24)));
                    }
                    let key = (handle(path).to_owned(), block.kind.to_string());
                    self.declared.with_blocks.insert(key.0.clone());
                    self.declared.own_blocks.insert(key, rule);
                }
            }
        }
    }

    fn default(&mut self, path: &str, schema: &Schema<'_>, setting: &Setting<'_>, rule: &Rule) {
        if let Some(node) = setting.default
            && let Some(problem) = rule.problem(&schema.json, node)
        {
            let (line, value) = (schema.json.line(node), schema.json.shown(node));
            self.problems.push(format!("{path}:{line}  the default {value} {problem}"));
        }
    }

    fn value(
        &mut self,
        path: &str,
        json: &Json<'_>,
        node: usize,
        owner: &str,
        rule: Option<&Rule>,
    ) -> Option<String> {
        let (line, value) = (json.line(node), json.shown(node));
        self.report.item(|| format!("{path}:{line}: stored {value}{owner}"));
        match rule {
            None => Some(format!(
                "{path}:{line}  a value is stored{owner}, but the setting is not declared there"
            )),
            Some(rule) => rule
                .problem(json, node)
                .map(|problem| format!("{path}:{line}  the stored value {value}{owner} {problem}")),
        }
    }

    fn stored(&mut self) {
        let finder = memmem::Finder::new(self.id.as_bytes());
        let wanted = |_: &str, kind: FileKind| is_stored(kind) || kind == FileKind::SettingsData;
        for (path, kind, text) in self.tree.texts(wanted) {
            if finder.find(text.as_bytes()).is_none() {
                continue;
            }
            let (json, sections) = if kind == FileKind::SettingsData {
                let data = SettingsData::read(text);
                if self.wants(Owner::Theme)
                    && let Some(node) = data.value(self.id)
                {
                    let rule = self.declared.theme.take();
                    // Without the schema it is unknown what is declared.
                    let problem = self.value(path, &data.json, node, "", rule.as_ref());
                    let is_known =
                        self.tree.texts(|_, kind| kind == FileKind::SettingsSchema).next().is_some();
                    self.problems.extend(problem.filter(|_| is_known));
                    self.declared.theme = rule;
                }
                (data.json, data.sections)
            } else {
                let stored = Stored::template(text);
                (stored.json, stored.sections)
            };
            let mut declared = std::mem::take(&mut self.declared);
            for section in &sections {
                let name = short(section.id, 60);
                if self.wants(Owner::Section)
                    && let Some(node) = section.settings.and_then(|settings| json.get(settings, self.id))
                {
                    let is_known = self.tree.text(&format!("sections/{}.liquid", section.kind)).is_some();
                    let rule = declared.sections.get(&*section.kind);
                    let problem = self.value(path, &json, node, &format!(" in section {name}"), rule);
                    self.problems.extend(problem.filter(|_| is_known));
                }
                for block in &section.blocks {
                    if !self.wants(Owner::Block) {
                        break;
                    }
                    let Some(node) = block.settings.and_then(|settings| json.get(settings, self.id)) else {
                        continue;
                    };
                    let key = (section.kind.to_string(), block.kind.to_string());
                    let rule = declared.own_blocks.get(&key).or_else(|| declared.blocks.get(&*block.kind));
                    let is_known = !block.kind.contains('/')
                        && (self.tree.text(&format!("blocks/{}.liquid", block.kind)).is_some()
                            || self.tree.text(&format!("sections/{}.liquid", section.kind)).is_some());
                    let owner = format!(" in section {name}, block {}", short(block.id, 60));
                    let problem = self.value(path, &json, node, &owner, rule);
                    self.problems.extend(problem.filter(|_| is_known));
                }
            }
            std::mem::swap(&mut self.declared, &mut declared);
        }
    }

    fn uses(&mut self) {
        let finder = memmem::Finder::new(self.id.as_bytes());
        let has_schema = self.tree.texts(|_, kind| kind == FileKind::SettingsSchema).next().is_some();
        for (path, kind, text) in self.tree.texts(has_liquid) {
            if self.computed.is_none() && memmem::find(text.as_bytes(), b"settings[").is_some() {
                self.computed = Some(path.to_owned());
            }
            if finder.find(text.as_bytes()).is_none() {
                continue;
            }
            let liquid = Liquid::read(text);
            let mut last = None;
            for (owner, at) in reads(&liquid, self.id) {
                if !(self.wants(owner) || owner == Owner::Unknown) {
                    continue;
                }
                self.uses += 1;
                let line = line_of(&liquid.lines, at);
                if last == Some((line, owner)) {
                    continue;
                }
                last = Some((line, owner));
                self.report.item(|| {
                    format!(
                        "{path}:{line}: read as {}{}  {}",
                        owner.prefix(),
                        self.id,
                        excerpt(text, &liquid.lines, at)
                    )
                });
                let name = handle(path);
                let declared = &self.declared;
                let missing = match (owner, kind) {
                    (Owner::Theme, _) if has_schema && declared.theme.is_none() => {
                        Some("config/settings_schema.json")
                    }
                    (Owner::Section, FileKind::Section) if !declared.sections.contains_key(name) => {
                        Some("its schema")
                    }
                    (Owner::Block, FileKind::Block) if !declared.blocks.contains_key(name) => {
                        Some("its schema")
                    }
                    (Owner::Block, FileKind::Section)
                        if !declared.with_blocks.contains(name) && declared.blocks.is_empty() =>
                    {
                        Some("the blocks of its schema")
                    }
                    _ => None,
                };
                if let Some(place) = missing {
                    self.problems.push(format!(
                        "{path}:{line}  it is read as {}{}, but {place} does not declare it",
                        owner.prefix(),
                        short(self.id, 100)
                    ));
                }
            }
        }
    }

    fn unused(&mut self) {
        let declared = &self.declared;
        let is_declared = declared.theme.is_some()
            || !(declared.sections.is_empty()
                && declared.own_blocks.is_empty()
                && declared.blocks.is_empty());
        if self.report.total() == 0 {
            self.problems.push("nothing declares, stores or reads it".to_owned());
        } else if is_declared && self.uses == 0 {
            self.problems.push("it is declared, but nothing reads it by its name".to_owned());
        }
    }
}

/// Where the setting is read.
fn reads<'l>(liquid: &'l Liquid<'_>, id: &'l str) -> impl Iterator<Item = (Owner, u32)> + 'l {
    let of = move |markup: Span| {
        settings(liquid.text, markup)
            .filter(move |(_, found, _)| *found == id)
            .map(|(owner, _, at)| (owner, at))
    };
    liquid.markups().flat_map(of)
}
