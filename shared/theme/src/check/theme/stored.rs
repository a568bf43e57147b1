//! What templates, the settings data and locales store.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use rustc_hash::FxHashMap;

use super::Whole;
use crate::check::Severity::{Error, Info, Warning};
use crate::check::json::{Node, Value};
use crate::check::locale::{Locale, extra_placeholder};
use crate::check::schema::{self, Schema, check_values};
use crate::check::settings::{refused_liquid, wrong_value};
use crate::check::templates::stored_settings;
use crate::check::{BesideDefault, CheckedFile, Content, Notes};
use crate::path::{FileKind, handle};

impl<'a> Whole<'a> {
    pub(super) fn template(&self, path: &str, file: &CheckedFile, root: &Node, notes: &mut Notes) {
        if let Some(layout) = root.get("layout")
            && let Some(name) = layout.text()
            && !self.has(FileKind::Layout, name)
        {
            notes.add(layout.at, Error, "MissingLayout", format!("there is no layout `{name}`"));
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
    pub(super) fn stored(&self, path: &str, root: &Node, notes: &mut Notes) {
        let Some(settings) = self.settings else { return };
        if path != "config/settings_data.json" {
            return;
        }
        for values in stored_settings(root) {
            for member in values.members() {
                let Some(setting) = settings.iter().find(|setting| setting.id == member.key) else {
                    continue;
                };
                refused_liquid(setting, &member.node, notes);
                if let Some((severity, message)) = wrong_value(setting, &member.node, false) {
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

    pub(super) fn locale(&self, path: &str, file: &CheckedFile, texts: &Locale, notes: &mut Notes) {
        let (default, id) = match file.kind {
            FileKind::Locale => (self.texts, self.texts_id),
            _ => (self.schema_texts, self.schema_texts_id),
        };
        if let Some(default) = default.filter(|_| !is_default(path)) {
            notes.list.extend(beside(file, texts, default, id).notes.iter().cloned());
        }
    }

    /// Texts of the default locale that others lack. A text that was just added is one remark, not one for each language.
    pub(super) fn missing_texts(&mut self, kind: FileKind) {
        let (default, id) = match kind {
            FileKind::Locale => (self.texts, self.texts_id),
            _ => (self.schema_texts, self.schema_texts_id),
        };
        let Some(default) = default else { return };
        let mut lacking: Vec<(&str, Arc<BesideDefault>)> = Vec::new();
        let mut home = None;
        for (path, file) in self.theme.files.iter().filter(|(_, file)| file.kind == kind) {
            match &file.content {
                _ if file.id == id => home = Some(path),
                Content::Locale(texts) if !is_default(path) => {
                    lacking.push((path, beside(file, texts, default, id)));
                }
                _ => {}
            }
        }
        let text = |number: &u32| default.nth(*number as usize);
        if let [(path, only)] = lacking.as_slice() {
            for text in only.missing.iter().take(MOST_MISSING).filter_map(text) {
                self.add(path, 0, Info, CODE, format!("the text `{}` is missing", text.key));
            }
            return;
        }
        let mut places: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for (path, locale) in &lacking {
            let name = handle(path);
            for number in &locale.missing {
                places.entry(*number).or_default().push(name.strip_suffix(".schema").unwrap_or(name));
            }
        }
        let Some(home) = home else { return };
        for (number, locales) in places.into_iter().take(MOST_MISSING) {
            let Some(text) = text(&number) else { continue };
            let (shown, more) = locales.split_at(locales.len().min(3));
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            let message = format!("the text `{}` is missing in {}{more}", text.key, shown.join(", "));
            self.add(home, text.at, Info, CODE, message);
        }
    }
}

const CODE: &str = "MatchingTranslations";

/// The most missing texts that are listed.
const MOST_MISSING: usize = 50;

fn is_default(path: &str) -> bool {
    path.ends_with(".default.json") || path.ends_with(".default.schema.json")
}

/// A locale beside the default locale with this id.
fn beside(file: &CheckedFile, texts: &Locale, default: &Locale, id: u64) -> Arc<BesideDefault> {
    // Another thread that panicked meanwhile leaves a whole value.
    let mut known = file.beside_default.lock().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some((of, locale)) if *of == id => locale.clone(),
        _ => {
            let mut own = Notes::default();
            let missing = compare(texts, default, &mut own);
            let locale = Arc::new(BesideDefault { notes: own.list.into(), missing });
            *known = Some((id, locale.clone()));
            locale
        }
    }
}

/// Compares the texts of a locale with those of the default locale. Returns the numbers of those that it lacks.
fn compare(texts: &Locale, default: &Locale, notes: &mut Notes) -> Box<[u32]> {
    let mut missing = Vec::new();
    let mut originals = (0_u32..).zip(default.iter()).peekable();
    for text in texts.iter() {
        // Both are in the order of their keys.
        while let Some((number, _)) = originals.next_if(|(_, original)| original.key < text.key) {
            missing.push(number);
        }
        let key = text.key;
        match originals.next_if(|(_, original)| original.key == key) {
            None => {
                if !default.has_group(key) {
                    let message = format!("the default locale has no text `{key}`");
                    notes.add(text.at, Info, CODE, message);
                }
            }
            // Most texts have no placeholder.
            Some((_, original)) if !text.text.is_empty() => {
                if let Some(name) = extra_placeholder(text.text, original.text) {
                    notes.add(text.at, Warning, "TranslationPlaceholder", format!("the text `{key}` has the placeholder `{name}`, which the default locale does not have"));
                }
            }
            Some(_) => {}
        }
    }
    missing.extend(originals.map(|(number, _)| number));
    missing.into()
}
