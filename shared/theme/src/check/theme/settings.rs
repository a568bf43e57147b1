//! The settings and blocks that the files use and that schemas and presets name.

use super::Whole;
use crate::check::Severity::{Error, Warning};
use crate::check::facts::{Facts, SettingUse};
use crate::check::schema::Schema;
use crate::check::{CheckedFile, LiquidFile, Notes};
use crate::path::FileKind;

impl<'a> Whole<'a> {
    pub(super) fn own_settings(&self, file: &CheckedFile, liquid: &'a LiquidFile, notes: &mut Notes) {
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
    pub(super) fn presets(&self, file: &CheckedFile, liquid: &'a LiquidFile, notes: &mut Notes) {
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
}
