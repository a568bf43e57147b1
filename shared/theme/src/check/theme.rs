//! The checks across files: references, settings, translations, stored values, scripts.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Severity::{Error, Info, Warning};
use super::facts::{Facts, RenderKind, SettingUse};
use super::json::{Node, Value};
use super::names::{NAMES, Type};
use super::schema::{self, Schema, check_values};
use super::settings::Setting;
use super::templates::{Translation, placeholders, stored_settings};
use super::walk::wrong_property;
use super::{CheckedFile, CheckedTheme, Content, LiquidFile, Note, Notes, Severity, paths};
use crate::path::{FileKind, handle};

/// The most files of a kind.
const MAX_FILES: [(FileKind, usize, &str); 3] = [
    (FileKind::JsonTemplate, 1000, "JSON templates"),
    (FileKind::SectionGroup, 20, "section groups"),
    (FileKind::Block, 300, "theme blocks"),
];

struct Whole<'a> {
    theme: &'a CheckedTheme,
    /// Files by kind and handle.
    liquid: FxHashMap<(FileKind, &'a str), &'a CheckedFile>,
    assets: FxHashSet<&'a str>,
    settings: Option<&'a [Setting]>,
    texts: Option<&'a FxHashMap<String, Translation>>,
    schema_texts: Option<&'a FxHashMap<String, Translation>>,
    /// The arguments that all callers give a snippet, with their types.
    arguments: FxHashMap<&'a str, FxHashMap<&'a str, Vec<Type>>>,
    included: FxHashSet<&'a str>,
    rendered: FxHashSet<&'a str>,
    has_open_render: bool,
    notes: BTreeMap<String, Notes>,
}

/// Everything that is wrong between files.
pub fn check(theme: &CheckedTheme) -> Vec<(String, Note)> {
    let mut whole = Whole {
        theme,
        liquid: FxHashMap::default(),
        assets: FxHashSet::default(),
        settings: None,
        texts: None,
        schema_texts: None,
        arguments: FxHashMap::default(),
        included: FxHashSet::default(),
        rendered: FxHashSet::default(),
        has_open_render: false,
        notes: BTreeMap::new(),
    };
    whole.collect();
    whole.files();
    for (path, file) in &theme.files {
        let mut notes = Notes::default();
        paths::check(path, &mut notes);
        match &file.content {
            Content::Liquid(liquid) => whole.liquid_file(path, file, liquid, &mut notes),
            Content::Json(root) if matches!(file.kind, FileKind::JsonTemplate | FileKind::SectionGroup) => {
                whole.template(path, file, root, &mut notes);
            }
            Content::Json(root) => whole.stored(path, root, &mut notes),
            Content::Locale(texts) => whole.locale(path, file, texts, &mut notes),
            _ => {}
        }
        whole.notes.entry(path.clone()).or_default().list.extend(notes.list);
    }
    whole.scripts();
    whole
        .notes
        .into_iter()
        .flat_map(|(path, notes)| notes.list.into_iter().map(move |note| (path.clone(), note)))
        .collect()
}

impl<'a> Whole<'a> {
    fn add(&mut self, path: &str, at: usize, severity: Severity, code: &'static str, message: String) {
        self.notes.entry(path.to_owned()).or_default().add(at, severity, code, message);
    }

    fn collect(&mut self) {
        let theme = self.theme;
        for (path, file) in &theme.files {
            let name = handle(path);
            self.liquid.insert((file.kind, name), file);
            if let Some(asset) = path.strip_prefix("assets/") {
                self.assets.insert(asset);
                self.assets.insert(name);
            }
            match &file.content {
                Content::SettingsSchema(settings) => self.settings = Some(settings),
                Content::Locale(texts) if path.ends_with(".default.json") => self.texts = Some(texts),
                Content::Locale(texts) if path.ends_with(".default.schema.json") => {
                    self.schema_texts = Some(texts);
                }
                Content::Liquid(liquid) => {
                    for render in &liquid.facts.renders {
                        self.has_open_render |= render.is_open && render.kind == RenderKind::Include;
                        let Some(name) = &render.name else { continue };
                        match render.kind {
                            RenderKind::Include => {
                                self.included.insert(name);
                                self.rendered.insert(name);
                            }
                            RenderKind::Render => {
                                self.rendered.insert(name);
                                let given = self.arguments.entry(name).or_default();
                                for (argument, kind, _) in &render.arguments {
                                    given.entry(argument).or_default().push(*kind);
                                }
                                if let Some((alias, kind)) = &render.alias {
                                    given.entry(alias).or_default().push(*kind);
                                }
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Files that must be there, and kinds of which there can be too many.
    fn files(&mut self) {
        let theme = self.theme;
        for (kind, most, what) in MAX_FILES {
            let mut paths = theme.files.iter().filter(|(_, file)| file.kind == kind).map(|(path, _)| path);
            if let Some(path) = paths.nth(most) {
                self.add(path, 0, Error, "TooManyFiles", format!("a theme has at most {most} {what}"));
            }
        }
        let defaults: Vec<&String> = theme
            .files
            .keys()
            .filter(|path| path.starts_with("locales/") && path.ends_with(".default.json"))
            .collect();
        if let [_, second, ..] = defaults.as_slice() {
            let second = (*second).clone();
            self.add(&second, 0, Error, "DefaultLocale", "there is another default locale".to_owned());
        }
        let has_folders =
            theme.files.keys().any(|path| path.starts_with("layout/") || path.starts_with("templates/"));
        if has_folders {
            if !theme.files.contains_key("layout/theme.liquid")
                && theme.files.len() > 1
                && theme.files.keys().any(|path| path.starts_with("layout/") || path.starts_with("sections/"))
            {
                let message = "a theme needs this file".to_owned();
                self.add("layout/theme.liquid", 0, Error, "MissingFile", message);
            }
            if defaults.is_empty() && theme.files.keys().any(|path| path.starts_with("locales/")) {
                let message = "the theme has no default locale".to_owned();
                self.add("locales/en.default.json", 0, Error, "DefaultLocale", message);
            }
        }
        let double: Vec<String> = theme
            .files
            .keys()
            .filter(|path| path.starts_with("templates/"))
            .filter(|path| {
                path.strip_suffix(".liquid")
                    .is_some_and(|stem| theme.files.contains_key(&format!("{stem}.json")))
            })
            .cloned()
            .collect();
        for path in double {
            self.add(&path, 0, Error, "DuplicateTemplate", "the template is also there as JSON".to_owned());
        }
    }

    fn liquid_of(&self, kind: FileKind, name: &str) -> Option<&'a LiquidFile> {
        match &self.liquid.get(&(kind, name))?.content {
            Content::Liquid(liquid) => Some(liquid),
            _ => None,
        }
    }

    fn has(&self, kind: FileKind, name: &str) -> bool {
        self.liquid.contains_key(&(kind, name))
    }

    fn liquid_file(&self, path: &str, file: &CheckedFile, liquid: &LiquidFile, notes: &mut Notes) {
        let facts = &liquid.facts;
        self.renders(facts, notes);
        for (asset, at) in &facts.assets {
            let compiled = asset.strip_suffix(".css").is_some_and(|stem| self.assets.contains(stem));
            let prefix = format!("{asset}.");
            // `inline_asset_content` finds a file whose extension is left out.
            let has_extension = asset.rsplit('/').next().unwrap_or(asset).contains('.');
            let is_short = !has_extension && self.assets.iter().any(|known| known.starts_with(&prefix));
            if !self.assets.contains(asset.as_str()) && !compiled && !is_short {
                notes.add(*at, Error, "MissingAsset", format!("there is no asset `{asset}`"));
            }
        }
        self.keys(facts, liquid.schema.as_ref(), notes);
        // A snippet may get its own `settings` as an argument.
        let is_argument =
            self.arguments.get(handle(path)).is_some_and(|given| given.contains_key("settings"));
        if let Some(settings) = self.settings.filter(|_| file.kind != FileKind::Snippet || !is_argument) {
            for used in &facts.theme_settings {
                if !settings.iter().any(|setting| setting.id == used.id) {
                    let message = format!("the theme has no setting `{}`", used.id);
                    notes.add(used.at, Warning, "UnknownSetting", message);
                }
            }
        }
        if !liquid.has_broken_schema {
            self.own_settings(file, liquid, notes);
            self.presets(file, liquid, notes);
        }
        self.names(path, file, liquid, notes);
        if file.kind == FileKind::Snippet {
            let name = handle(path);
            if !self.rendered.contains(name)
                && !self.has_open_render
                && !self.theme.files.is_empty()
                && self.theme.files.len() > 1
            {
                notes.add(0, Info, "OrphanedSnippet", "no file renders this snippet");
            }
        }
        for form in &facts.product_forms {
            if !liquid.is_broken && !self.gives_variant(file, liquid, *form) {
                let message = "the product form has no input with the name `id`";
                notes.add(*form, Error, "MissingVariantId", message);
            }
        }
        if file.kind == FileKind::Layout {
            for name in ["content_for_header", "content_for_layout"] {
                if !facts.words.contains(name) && !liquid.is_broken {
                    let message = format!("the layout does not print `{name}`");
                    notes.add(0, Error, "RequiredLayoutThemeObject", message);
                }
            }
        }
        for (name, at) in &facts.unused {
            notes.add(*at, Info, "UnusedAssign", format!("the variable `{name}` is never read"));
        }
        if let Some(doc) = &facts.doc
            && !facts.includes
        {
            for param in &doc.params {
                if !facts.words.contains(&param.name) && !param.name.contains('.') {
                    let message = format!("the parameter `{}` is never read", param.name);
                    notes.add(param.at, Warning, "UnusedDocParam", message);
                }
            }
        }
    }

    fn renders(&self, facts: &Facts, notes: &mut Notes) {
        for render in &facts.renders {
            let Some(name) = render.name.as_deref() else { continue };
            let (kind, what) = match render.kind {
                RenderKind::Render | RenderKind::Include => (FileKind::Snippet, "snippet"),
                RenderKind::Section => (FileKind::Section, "section"),
                RenderKind::Group => (FileKind::SectionGroup, "section group"),
                RenderKind::Block => (FileKind::Block, "theme block"),
                RenderKind::Layout => (FileKind::Layout, "layout"),
            };
            if render.kind == RenderKind::Layout && name == "none" {
                continue;
            }
            if !self.has(kind, name) {
                notes.add(render.at, Error, "MissingTemplate", format!("there is no {what} `{name}`"));
                continue;
            }
            if kind != FileKind::Snippet {
                continue;
            }
            let Some(snippet) = self.liquid_of(kind, name) else { continue };
            if snippet.is_broken || snippet.facts.includes || render.kind == RenderKind::Include {
                continue;
            }
            for (argument, _, at) in &render.arguments {
                let is_known = match &snippet.facts.doc {
                    Some(doc) if !doc.params.is_empty() => {
                        doc.params.iter().any(|param| param.name == *argument)
                            || snippet.facts.words.contains(argument)
                    }
                    _ => snippet.facts.words.contains(argument),
                };
                if !is_known {
                    let message = format!("the snippet `{name}` does not read the argument `{argument}`");
                    notes.add(*at, Warning, "UnrecognizedRenderSnippetArguments", message);
                }
            }
            let Some(doc) = &snippet.facts.doc else { continue };
            for param in doc.params.iter().filter(|param| param.is_required) {
                let is_given = render.arguments.iter().any(|(argument, ..)| *argument == param.name)
                    || render.alias.as_ref().is_some_and(|(alias, _)| *alias == param.name);
                if !is_given {
                    let message = format!("the snippet `{name}` requires the argument `{}`", param.name);
                    notes.add(render.at, Warning, "MissingRenderSnippetArguments", message);
                }
            }
        }
    }

    fn keys(&self, facts: &Facts, schema: Option<&Schema>, notes: &mut Notes) {
        let has_own = schema.is_some_and(|schema| schema.root.get("locales").is_some());
        if let Some(texts) = self.texts {
            for used in &facts.keys {
                if used.key.starts_with("shopify.")
                    || used.key.starts_with("customer_accounts.")
                    || has_own
                    || !used.key.contains('.')
                {
                    continue;
                }
                let Some(text) = texts.get(&used.key) else {
                    // A form of a plural.
                    let plural = used.key.rsplit_once('.').and_then(|(key, _)| texts.get(key));
                    if plural.is_some_and(|text| text.is_plural) {
                        continue;
                    }
                    let prefix = format!("{}.", used.key);
                    let message = if texts.keys().any(|key| key.starts_with(&prefix)) {
                        format!("the key `{}` is a group of texts, not a text", used.key)
                    } else {
                        format!("the default locale has no text `{}`", used.key)
                    };
                    notes.add(used.at, Warning, "TranslationKeyExists", message);
                    continue;
                };
                let mut missing: Vec<&str> = placeholders(&text.text)
                    .into_iter()
                    .filter(|name| !used.named.iter().any(|given| given == name))
                    .collect();
                missing.sort_unstable();
                if let Some(name) = missing.first() {
                    let message = format!("the text `{}` needs the argument `{name}`", used.key);
                    notes.add(used.at, Warning, "MissingTranslationArgument", message);
                } else if text.is_plural && !used.named.iter().any(|given| given == "count") {
                    let message = format!("the text `{}` has plurals and needs `count`", used.key);
                    notes.add(used.at, Warning, "MissingTranslationArgument", message);
                }
            }
        }
        if let (Some(texts), Some(schema)) = (self.schema_texts, schema) {
            for (key, at) in &schema.keys {
                if !texts.contains_key(key) {
                    let message = format!("the default schema locale has no text `{key}`");
                    notes.add(*at, Warning, "TranslationKeyExists", message);
                }
            }
        }
    }

    /// The settings of a block type, or `None` if they are not known.
    fn block_settings(&self, schema: &'a Schema, kind: &str) -> Option<&'a [Setting]> {
        if let Some(block) = schema.block(kind).filter(|block| block.is_local) {
            return Some(&block.settings);
        }
        if kind.starts_with('@') || kind.starts_with("shopify://") {
            return None;
        }
        self.liquid_of(FileKind::Block, kind)?.schema.as_ref().map(|schema| schema.settings.as_slice())
    }

    fn own_settings(&self, file: &CheckedFile, liquid: &'a LiquidFile, notes: &mut Notes) {
        let facts = &liquid.facts;
        let settings = liquid.schema.as_ref().map_or(&[][..], |schema| &schema.settings);
        match file.kind {
            FileKind::Section => {
                for used in &facts.section_settings {
                    if !settings.iter().any(|setting| setting.id == used.id) {
                        let message = format!("the schema of the section has no setting `{}`", used.id);
                        notes.add(used.at, Warning, "UnknownSetting", message);
                    }
                }
                if let Some(schema) = &liquid.schema {
                    self.section_blocks(facts, schema, notes);
                }
            }
            FileKind::Block => {
                for used in &facts.block_settings {
                    if !settings.iter().any(|setting| setting.id == used.id) && used.types.is_none() {
                        let message = format!("the schema of the block has no setting `{}`", used.id);
                        notes.add(used.at, Warning, "UnknownSetting", message);
                    }
                }
            }
            _ => {}
        }
        let Some(schema) = &liquid.schema else { return };
        for used in &facts.page_sizes {
            if let Some((_, max, _)) = schema.setting(&used.id).and_then(|setting| setting.range)
                && max > 250.0
            {
                let message = format!("the setting `{}` allows more than 250 items a page", used.id);
                notes.add(used.at, Error, "PaginationSize", message);
            }
        }
        for raw in &facts.raw_texts {
            let setting = if raw.is_block && file.kind == FileKind::Section {
                let blocks = schema
                    .blocks
                    .iter()
                    .filter(|block| raw.types.as_ref().is_none_or(|types| types.contains(&block.kind)));
                blocks.flat_map(|block| &block.settings).find(|setting| setting.id == raw.id)
            } else if raw.is_block == (file.kind == FileKind::Block) {
                schema.setting(&raw.id)
            } else {
                None
            };
            let Some(setting) = setting else { continue };
            let is_free = match setting.kind.as_str() {
                "text" | "textarea" => true,
                "inline_richtext" | "richtext" | "html" => raw.in_value,
                _ => false,
            };
            if is_free {
                let message = format!("the merchant's text `{}` is printed without `escape`", raw.id);
                notes.add(raw.at, Warning, "UnescapedText", message);
            }
        }
    }

    fn section_blocks(&self, facts: &Facts, schema: &'a Schema, notes: &mut Notes) {
        for (kind, at) in &facts.block_types {
            let is_known = schema.accepts(kind)
                || (kind == "@app" && schema.is_open())
                || self.has(FileKind::Block, kind) && schema.is_open();
            if !is_known && !facts.has_static_blocks {
                let message = format!("the schema has no block of the type `{kind}`");
                notes.add(*at, Warning, "UnknownBlockType", message);
            }
        }
        let is_known = |used: &SettingUse| {
            let mut has_unknown = false;
            for block in &schema.blocks {
                if used.types.as_ref().is_some_and(|types| !types.contains(&block.kind)) {
                    continue;
                }
                match self.block_settings(schema, &block.kind) {
                    Some(settings) if settings.iter().any(|setting| setting.id == used.id) => return true,
                    Some(_) => {}
                    None => has_unknown |= block.kind != "@app",
                }
            }
            // A type that the schema lacks is reported by itself.
            let names_unknown =
                used.types.as_ref().is_some_and(|types| types.iter().any(|kind| !schema.accepts(kind)));
            has_unknown || names_unknown
        };
        for used in &facts.block_settings {
            if !is_known(used) {
                let whose = match used.types.as_deref() {
                    Some([kind]) => format!("the block `{kind}` has"),
                    _ => "no block of the schema has".to_owned(),
                };
                let message = if whose.starts_with("no") {
                    format!("{whose} a setting `{}`", used.id)
                } else {
                    format!("{whose} no setting `{}`", used.id)
                };
                notes.add(used.at, Warning, "UnknownSetting", message);
            }
        }
    }

    /// Blocks of presets that files in `blocks/` define, and the blocks that a schema refers to.
    fn presets(&self, file: &CheckedFile, liquid: &'a LiquidFile, notes: &mut Notes) {
        let Some(schema) = &liquid.schema else { return };
        for block in schema.blocks.iter().filter(|block| !block.is_local && !block.kind.starts_with('@')) {
            if !self.has(FileKind::Block, &block.kind) && !block.kind.is_empty() {
                let message = format!("there is no theme block `{}`", block.kind);
                notes.add(block.at, Error, "ValidBlockTarget", message);
            }
        }
        let _ = file;
        for stored in &schema.stored {
            if schema.block(&stored.kind).is_some_and(|block| block.is_local)
                || stored.kind.starts_with("shopify://")
                || stored.kind.starts_with('@')
            {
                continue;
            }
            if let Some(parent) = &stored.parent
                && let Some(parent_schema) =
                    self.liquid_of(FileKind::Block, parent).and_then(|parent| parent.schema.as_ref())
                && !parent_schema.accepts(&stored.kind)
                && !self
                    .liquid_of(FileKind::Block, parent)
                    .is_some_and(|parent| parent.facts.has_static_blocks)
            {
                let message =
                    format!("the block `{parent}` does not allow blocks of the type `{}`", stored.kind);
                notes.add(stored.at, Error, "ValidBlockTarget", message);
            }
            if stored.parent.is_none() && !schema.accepts(&stored.kind) {
                continue; // reported with the schema
            }
            if !self.has(FileKind::Block, &stored.kind) {
                let message = format!("there is no theme block `{}`", stored.kind);
                notes.add(stored.at, Error, "ValidBlockTarget", message);
                continue;
            }
            if let Some(settings) = self.block_settings(schema, &stored.kind) {
                for (id, at) in &stored.settings {
                    if !settings.iter().any(|setting| setting.id == *id) {
                        notes.add(*at, Warning, "ValidSettingsKey", format!("there is no setting `{id}`"));
                    }
                }
            }
        }
    }

    fn names(&self, path: &str, file: &CheckedFile, liquid: &LiquidFile, notes: &mut Notes) {
        let facts = &liquid.facts;
        if liquid.is_broken {
            return;
        }
        let name = handle(path);
        let given = if file.kind == FileKind::Snippet { self.arguments.get(name) } else { None };
        let is_open = match file.kind {
            FileKind::Snippet => {
                self.included.contains(name) || !self.rendered.contains(name) || self.has_open_render
            }
            FileKind::Block => true,
            _ => facts.includes,
        };
        if !is_open {
            for (word, at) in &facts.unknown_names {
                // A comment may document an argument that nothing passes yet.
                let is_documented = file.kind == FileKind::Snippet && facts.commented.contains(word.as_str());
                if !is_documented && !given.is_some_and(|given| given.contains_key(word.as_str())) {
                    notes.add(*at, Warning, "UndefinedObject", format!("nothing defines `{word}`"));
                }
            }
        } else if file.kind == FileKind::Block && facts.doc.is_none() && !self.has_static(name) {
            for (word, at) in &facts.unknown_names {
                notes.add(*at, Warning, "UndefinedObject", format!("nothing defines `{word}`"));
            }
        }
        let mut no_one = false;
        if file.kind == FileKind::Snippet {
            no_one = is_open;
        }
        // A misspelt name in a snippet: nobody passes it, and only this place reads it.
        for chain in &facts.chains {
            let root = chain.root.as_str();
            let passed = given.and_then(|given| given.get(root));
            if passed.is_none() && !NAMES.globals.contains_key(root) {
                continue; // reported above
            }
            let kind = match passed {
                Some(kinds) => match kinds.split_first() {
                    Some((first, rest)) if rest.iter().all(|kind| kind == first) => *first,
                    _ => continue,
                },
                None if no_one => continue,
                None => NAMES.globals[root],
            };
            if let Some(message) = wrong_property(kind, &chain.names) {
                notes.add(chain.at, Warning, "UnknownProperty", message);
            }
        }
    }

    /// Whether some file renders the block statically, so that it may have arguments.
    fn has_static(&self, name: &str) -> bool {
        self.theme.files.values().any(|file| match &file.content {
            Content::Liquid(liquid) => liquid
                .facts
                .renders
                .iter()
                .any(|render| render.kind == RenderKind::Block && render.name.as_deref() == Some(name)),
            _ => false,
        })
    }

    /// Whether the form at `at`, or a snippet that is rendered within it, has an input for the variant.
    fn gives_variant(&self, file: &CheckedFile, liquid: &LiquidFile, at: usize) -> bool {
        let text = &file.text[at..];
        let body = &text[..text.find("endform").unwrap_or(text.len())];
        if has_id_input(body) || body.contains("content_for") {
            return true;
        }
        let mut seen = FxHashSet::default();
        let renders = liquid.facts.renders.iter();
        let mut open: Vec<&str> = renders
            .filter(|render| (at..at + body.len()).contains(&render.at))
            .filter_map(|render| render.name.as_deref())
            .collect();
        while let Some(name) = open.pop() {
            if !seen.insert(name) || seen.len() > 200 {
                continue;
            }
            let Some(snippet) = self.liquid.get(&(FileKind::Snippet, name)) else { return true };
            if has_id_input(&snippet.text) {
                return true;
            }
            if let Content::Liquid(liquid) = &snippet.content {
                open.extend(liquid.facts.renders.iter().filter_map(|render| render.name.as_deref()));
            }
        }
        // Only a form that can be sent needs the variant.
        !body.contains("submit")
    }

    fn template(&self, path: &str, file: &CheckedFile, root: &Node, notes: &mut Notes) {
        if let Some(layout) = root.get("layout")
            && let Some(name) = layout.text()
            && !self.has(FileKind::Layout, name)
        {
            notes.add(layout.at, Error, "MissingTemplate", format!("there is no layout `{name}`"));
        }
        let Some(sections) = root.get("sections") else { return };
        let (list, place) = if file.kind == FileKind::SectionGroup {
            ("groups", root.text_of("type").unwrap_or_default())
        } else {
            let name = handle(path);
            let stem = name.split('.').next().unwrap_or_default();
            ("templates", if stem.starts_with("metaobject/") { "metaobject" } else { stem })
        };
        let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
        for member in sections.members() {
            let section = &member.node;
            let Some(kind) = section.text_of("type") else { continue };
            let at = section.get("type").map_or(section.at, |node| node.at);
            if kind.starts_with("shopify://") || kind == "apps" || kind == "_blocks" {
                if kind == "apps" && !self.has(FileKind::Section, "apps") {
                    continue;
                }
                if kind != "apps" {
                    continue;
                }
            }
            if !self.has(FileKind::Section, kind) {
                notes.add(at, Error, "MissingTemplate", format!("there is no section `{kind}`"));
                continue;
            }
            let Some(liquid) = self.liquid_of(FileKind::Section, kind) else { continue };
            if liquid.has_broken_schema {
                continue;
            }
            let Some(schema) = &liquid.schema else { continue };
            if !schema.allows(list, place) {
                let message = format!("the section `{kind}` is not allowed in `{place}`");
                notes.add(at, Error, "SectionNotAllowed", message);
            }
            let count = counts.entry(kind).or_default();
            *count += 1;
            if let Some(limit) = schema.root.get("limit").and_then(Node::number)
                && *count as f64 > limit
            {
                let message = format!("the section `{kind}` is allowed at most {limit} times");
                notes.add(at, Error, "SectionLimit", message);
            }
            if let Some(values) = section.get("settings") {
                check_values(values, &schema.settings, "ValidSettingsKey", notes);
            }
            self.template_blocks(section, schema, liquid.facts.has_static_blocks, 1, notes);
            let total = schema::children(section).len();
            if total > schema.max_blocks && total <= schema::MAX_BLOCKS {
                notes.add(
                    section.get("blocks").map_or(at, |blocks| blocks.at),
                    Error,
                    "TooManyBlocks",
                    format!(
                        "the section `{kind}` has at most {} blocks, here are {total}",
                        schema.max_blocks
                    ),
                );
            }
        }
    }

    fn template_blocks(
        &self,
        holder: &Node,
        schema: &'a Schema,
        has_static: bool,
        depth: usize,
        notes: &mut Notes,
    ) {
        if depth > 10 {
            return;
        }
        let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
        for (block, _) in schema::children(holder) {
            let Some(kind) = block.text_of("type") else { continue };
            if kind.starts_with("shopify://") || kind == "@app" {
                continue;
            }
            let at = block.get("type").map_or(block.at, |node| node.at);
            let is_static =
                matches!(block.get("static").map(|node| &node.value), Some(Value::Bool(true))) && has_static;
            if !is_static && !schema.accepts(kind) {
                let message = format!("blocks of the type `{kind}` are not allowed here");
                notes.add(at, Error, "ValidBlockTarget", message);
                continue;
            }
            let local = schema.block(kind).filter(|def| def.is_local);
            if local.is_none() && !self.has(FileKind::Block, kind) {
                notes.add(at, Error, "ValidBlockTarget", format!("there is no theme block `{kind}`"));
                continue;
            }
            let count = counts.entry(kind).or_default();
            *count += 1;
            if let Some(limit) = schema.block(kind).and_then(|def| def.limit)
                && *count as f64 > limit
            {
                let message = format!("there are more than {limit} blocks of the type `{kind}`");
                notes.add(at, Error, "BlockLimit", message);
            }
            if let (Some(values), Some(settings)) = (block.get("settings"), self.block_settings(schema, kind))
            {
                check_values(values, settings, "ValidSettingsKey", notes);
            }
            if local.is_none()
                && let Some(inner) = self.liquid_of(FileKind::Block, kind)
                && let Some(inner_schema) = &inner.schema
            {
                self.template_blocks(block, inner_schema, inner.facts.has_static_blocks, depth + 1, notes);
            }
        }
    }

    /// Checks the stored values of the theme's settings.
    fn stored(&self, path: &str, root: &Node, notes: &mut Notes) {
        let Some(settings) = self.settings else { return };
        if path != "config/settings_data.json" {
            return;
        }
        for values in stored_settings(root) {
            for member in values.members() {
                if let Some(setting) = settings.iter().find(|setting| setting.id == member.key)
                    && let Some((severity, message)) =
                        super::settings::wrong_value(setting, &member.node, false)
                {
                    notes.add(member.node.at, severity, "ValidSettingValue", message);
                }
            }
            // Sections that the theme renders statically store their settings here.
            for member in values.get("sections").map_or(&[][..], Node::members) {
                let Some(kind) = member.node.text_of("type") else { continue };
                let Some(schema) =
                    self.liquid_of(FileKind::Section, kind).and_then(|liquid| liquid.schema.as_ref())
                else {
                    continue;
                };
                if let Some(values) = member.node.get("settings") {
                    check_values(values, &schema.settings, "ValidSettingsKey", notes);
                }
            }
        }
    }

    fn locale(
        &self,
        path: &str,
        file: &CheckedFile,
        texts: &FxHashMap<String, Translation>,
        notes: &mut Notes,
    ) {
        let default = if file.kind == FileKind::Locale { self.texts } else { self.schema_texts };
        let Some(default) = default else { return };
        if path.ends_with(".default.json") || path.ends_with(".default.schema.json") {
            return;
        }
        for (key, text) in texts {
            match default.get(key) {
                None => {
                    if !default.keys().any(|other| other.starts_with(&format!("{key}."))) {
                        let message = format!("the default locale has no text `{key}`");
                        notes.add(text.at, Info, "MatchingTranslations", message);
                    }
                }
                Some(original) => {
                    let (theirs, ours) = (placeholders(&original.text), placeholders(&text.text));
                    let mut extra: Vec<&&str> = ours.iter().filter(|name| !theirs.contains(*name)).collect();
                    extra.sort_unstable();
                    if let Some(name) = extra.first() {
                        notes.add(text.at, Warning, "TranslationPlaceholder", format!("the text `{key}` has the placeholder `{name}`, which the default locale does not have"));
                    }
                }
            }
        }
        let mut missing: Vec<&String> = default.keys().filter(|key| !texts.contains_key(*key)).collect();
        missing.sort_unstable();
        for key in missing.into_iter().take(50) {
            notes.add(0, Info, "MatchingTranslations", format!("the text `{key}` is missing"));
        }
    }

    /// Names and selectors of scripts.
    fn scripts(&mut self) {
        let theme = self.theme;
        let scripts = || {
            theme.files.iter().flat_map(|(path, file)| {
                let own: Vec<&super::ScriptFacts> = match &file.content {
                    Content::Script(facts) => vec![facts],
                    Content::Liquid(liquid) => liquid.scripts.iter().map(|(_, facts)| facts).collect(),
                    _ => Vec::new(),
                };
                own.into_iter().map(move |facts| (path, facts))
            })
        };
        let mut globals: FxHashSet<&str> = FxHashSet::default();
        let mut words: Option<Words> = None;
        // A script that was not read may define any name.
        let mut has_unread = false;
        for (_, facts) in scripts() {
            globals.extend(facts.globals.iter().map(String::as_str));
            has_unread |= facts.unread.is_some();
        }
        let mut found: Vec<(String, usize, Severity, &'static str, String)> = Vec::new();
        let mut selectors: FxHashMap<&str, usize> = FxHashMap::default();
        for (_, facts) in scripts() {
            for (selector, _) in &facts.selectors {
                *selectors.entry(&selector[1..]).or_default() += 1;
            }
        }
        let mut mentions: FxHashMap<&str, Option<usize>> = FxHashMap::default();
        for (path, facts) in scripts() {
            for (name, at) in &facts.unresolved {
                if !has_unread && !globals.contains(name.as_str()) {
                    found.push((
                        path.clone(),
                        *at,
                        Error,
                        "UndefinedName",
                        format!("nothing defines `{name}`"),
                    ));
                }
            }
            for (selector, at) in &facts.selectors {
                let name = &selector[1..];
                if name.starts_with("shopify") || name.starts_with("Shopify") {
                    continue;
                }
                let words = words.get_or_insert_with(|| Words::of(theme));
                if words.has(selector) {
                    continue;
                }
                // Scripts add classes and ids, too.
                let mentions = *mentions.entry(name).or_insert_with(|| words.mentions(name));
                if mentions
                    .is_some_and(|mentions| mentions <= selectors.get(name).copied().unwrap_or_default())
                {
                    found.push((
                        path.clone(),
                        *at,
                        Warning,
                        "UnknownSelector",
                        format!("no markup has `{selector}`"),
                    ));
                }
            }
        }
        for (path, at, severity, code, message) in found {
            self.add(&path, at, severity, code, message);
        }
    }
}

/// What scripts can find in the markup.
struct Words<'a> {
    /// Every word outside of scripts and schemas. A class may stand anywhere, for example in a capture.
    all: FxHashSet<&'a str>,
    ids: FxHashSet<&'a str>,
    /// Beginnings of ids and classes that end with an output, such as `Menu-{{ id }}`.
    prefixes: FxHashSet<&'a str>,
    scripts: Vec<&'a str>,
    /// The searches that are left, and the bytes that they may read. Each name that no markup has costs a search of all scripts.
    searches: usize,
    left: usize,
}

/// The most names that one check searches for in scripts.
const MAX_SEARCHES: usize = 300;
/// The most bytes of scripts that one check searches for names. That takes less than a second.
const MAX_SEARCHED: usize = 1024 * 1024 * 1024;
/// The longest beginning of a name that markup completes.
const MAX_PREFIX: usize = 100;

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
        .filter(|word| !word.is_empty())
}

impl<'a> Words<'a> {
    fn of(theme: &'a CheckedTheme) -> Self {
        let mut found = Words {
            all: FxHashSet::default(),
            ids: FxHashSet::default(),
            prefixes: FxHashSet::default(),
            scripts: Vec::new(),
            searches: MAX_SEARCHES,
            left: MAX_SEARCHED,
        };
        for file in theme.files.values() {
            let text = file.text.as_str();
            match &file.content {
                Content::Script(_) => found.scripts.push(text),
                Content::Json(_) => found.all.extend(words(text)),
                Content::Liquid(liquid) => {
                    let mut at = 0;
                    for (span, _) in &liquid.markup.scripts {
                        let (start, end) = (span.start as usize, span.end as usize);
                        found.all.extend(words(text.get(at..start).unwrap_or_default()));
                        found.scripts.push(span.of(text));
                        at = end;
                    }
                    let rest = text.get(at..).unwrap_or_default();
                    let end = liquid.schema.as_ref().and_then(|_| rest.find("schema")).unwrap_or(rest.len());
                    found.all.extend(words(&rest[..end]));
                    found.ids.extend(liquid.facts.literals.iter().map(String::as_str));
                    for element in &liquid.markup.elements {
                        found.ids.extend(element.value(text, "id").into_iter().flat_map(words));
                    }
                }
                _ => {}
            }
        }
        let is_prefix = |word: &&&str| word.ends_with(['-', '_']) && (2..=MAX_PREFIX).contains(&word.len());
        found.prefixes = found.all.iter().filter(is_prefix).copied().collect();
        found
    }

    fn has(&self, selector: &str) -> bool {
        let name = &selector[1..];
        let is_known =
            if selector.starts_with('#') { self.ids.contains(name) } else { self.all.contains(name) };
        let mut ends =
            name.match_indices(['-', '_']).map(|(at, _)| at + 1).take_while(|end| *end <= MAX_PREFIX);
        is_known || ends.any(|end| self.prefixes.contains(&name[..end]))
    }

    /// How often the scripts mention the name. `None` if too much was searched already.
    fn mentions(&mut self, name: &str) -> Option<usize> {
        self.searches = self.searches.checked_sub(1)?;
        self.left = self.left.checked_sub(self.scripts.iter().map(|script| script.len()).sum())?;
        let count = |script: &&str| memchr::memmem::find_iter(script.as_bytes(), name.as_bytes()).count();
        Some(self.scripts.iter().map(count).sum())
    }
}

fn has_id_input(text: &str) -> bool {
    text.contains("name=\"id\"")
        || text.contains("name='id'")
        || text.contains("name=id")
        || text.contains("'id'") && text.contains("name:")
}
