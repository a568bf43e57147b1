//! The checks across files: references, settings, translations, stored values, scripts.

mod halves;
mod liquid;
mod scripts;
mod settings;
mod stored;

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use self::halves::Partners;
pub use self::scripts::SelectorPlaces;
use super::Severity::Error;
use super::facts::RenderKind;
use super::locale::Locale;
use super::names::Type;
use super::pairing::Half;
use super::schema::Schema;
use super::settings::Setting;
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
    /// Whether the theme has any script, and any stylesheet.
    has_scripts: bool,
    has_styles: bool,
    settings: Option<&'a [Setting]>,
    texts: Option<&'a Locale>,
    schema_texts: Option<&'a Locale>,
    /// The ids of the files with these texts.
    texts_id: u64,
    schema_texts_id: u64,
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
        has_scripts: false,
        has_styles: false,
        settings: None,
        texts: None,
        schema_texts: None,
        texts_id: 0,
        schema_texts_id: 0,
        arguments: FxHashMap::default(),
        included: FxHashSet::default(),
        rendered: FxHashSet::default(),
        has_open_render: false,
        notes: BTreeMap::new(),
    };
    whole.collect();
    whole.files();
    let partners = Partners::of(theme);
    for (path, file) in &theme.files {
        let mut notes = Notes::default();
        paths::check(path, &mut notes);
        match &file.content {
            Content::Liquid(liquid) => {
                whole.liquid_file(path, file, liquid, &mut notes);
                partners.report(path, &liquid.halves, &mut notes);
            }
            Content::Json(root) if matches!(file.kind, FileKind::JsonTemplate | FileKind::SectionGroup) => {
                whole.template(path, file, root, &mut notes);
            }
            Content::Json(root) => whole.stored(path, root, &mut notes),
            Content::Locale(texts) => whole.locale(path, file, texts, &mut notes),
            _ => {}
        }
        if !notes.list.is_empty() {
            whole.notes.entry(path.clone()).or_default().list.extend(notes.list);
        }
    }
    whole.missing_texts(FileKind::Locale);
    whole.missing_texts(FileKind::SchemaLocale);
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
                self.has_scripts |= file.kind == FileKind::Script;
                self.has_styles |= file.kind == FileKind::Stylesheet;
                self.assets.insert(asset);
                self.assets.insert(name);
            }
            match &file.content {
                Content::SettingsSchema(settings) => self.settings = Some(settings),
                Content::Locale(texts) if path.ends_with(".default.json") => {
                    (self.texts, self.texts_id) = (Some(texts), file.id);
                }
                Content::Locale(texts) if path.ends_with(".default.schema.json") => {
                    (self.schema_texts, self.schema_texts_id) = (Some(texts), file.id);
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
}
