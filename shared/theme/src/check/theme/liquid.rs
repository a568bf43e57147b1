//! What a Liquid file refers to: other files, assets, texts, names.

use rustc_hash::FxHashSet;

use super::Whole;
use crate::check::Severity::{Error, Info, Warning};
use crate::check::facts::{Doc, Facts, Render, RenderKind};
use crate::check::locale::placeholders;
use crate::check::names::{NAMES, is_of_layout};
use crate::check::schema::Schema;
use crate::check::walk::wrong_property;
use crate::check::{CheckedFile, Content, LiquidFile, Notes};
use crate::path::{FileKind, handle};

impl<'a> Whole<'a> {
    pub(super) fn liquid_file(&self, path: &str, file: &CheckedFile, liquid: &LiquidFile, notes: &mut Notes) {
        let facts = &liquid.facts;
        self.renders(&file.text, facts, notes);
        for (asset, at) in &facts.assets {
            // `font.eot?#iefix`: the rest of an address is no part of the name.
            let asset = asset.split(['?', '#']).next().unwrap_or_default();
            let compiled = asset.strip_suffix(".css").is_some_and(|stem| self.assets.contains(stem));
            let prefix = format!("{asset}.");
            // `inline_asset_content` finds a file whose extension is left out.
            let has_extension = asset.rsplit('/').next().unwrap_or(asset).contains('.');
            let is_short = !has_extension && self.assets.iter().any(|known| known.starts_with(&prefix));
            // `icon-[name].svg`: a script completes the name.
            let is_name = has_extension && !asset.contains(['[', '{', '%']);
            if !self.assets.contains(asset) && !compiled && !is_short && is_name {
                let severity = if self.may_be_made(asset) { Warning } else { Error };
                notes.add(*at, severity, "MissingAsset", format!("there is no asset `{asset}`"));
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
                // What the layout of the checkpoint prints instead.
                let has_other = name == "content_for_layout"
                    && is_of_layout(path, "content_checkpoint")
                    && facts.words.contains("content_checkpoint");
                if facts.words.contains(name) || has_other || liquid.is_broken {
                    continue;
                }
                // Shopify takes a layout that only names it in a comment.
                let (severity, message) = if facts.commented.contains(name) {
                    (Warning, format!("the layout has `{name}` only in a comment, so it does not print it"))
                } else {
                    (Error, format!("the layout does not print `{name}`"))
                };
                notes.add(0, severity, "RequiredLayoutThemeObject", message);
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

    fn renders(&self, text: &str, facts: &Facts, notes: &mut Notes) {
        let mut names_error = None;
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
                let code =
                    if render.kind == RenderKind::Layout { "MissingLayout" } else { "MissingTemplate" };
                let is_expected = is_probe(text, render.at)
                    || *names_error.get_or_insert_with(|| compares_error(text))
                    // A tool makes snippets of pictures.
                    || self.theme.files.contains_key(&format!("icons/{name}.svg"));
                let severity = if is_expected { Warning } else { Error };
                notes.add(render.at, severity, code, format!("there is no {what} `{name}`"));
                continue;
            }
            if kind == FileKind::Block
                && let Some(block) = self.liquid_of(kind, name)
                && let Some(doc) = block.facts.doc.as_ref().filter(|_| !block.is_broken)
            {
                argument_types(render, name, doc, "ValidContentForArgumentTypes", notes);
                block_arguments(render, name, doc, &block.facts, notes);
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
            argument_types(render, name, doc, "ValidRenderSnippetArgumentTypes", notes);
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
                    let message = if texts.has_group(&used.key) {
                        format!("the key `{}` is a group of texts, not a text", used.key)
                    } else {
                        format!("the default locale has no text `{}`", used.key)
                    };
                    notes.add(used.at, Warning, "TranslationKeyExists", message);
                    continue;
                };
                let mut missing: Vec<&str> = placeholders(text.text)
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
                if !texts.has(key) {
                    let message = format!("the default schema locale has no text `{key}`");
                    notes.add(*at, Warning, "TranslationKeyExists", message);
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
            for (word, at) in facts.unknown_names.iter().filter(|(word, _)| !is_of_layout(path, word)) {
                // A comment may document an argument that nothing passes yet.
                let is_documented = file.kind == FileKind::Snippet && facts.commented.contains(word);
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

    /// Whether something else may make an asset: a merchant chooses a picture in the settings of an old theme, and a tool builds all
    /// scripts or all stylesheets.
    fn may_be_made(&self, asset: &str) -> bool {
        let is_chosen = || {
            self.settings
                .is_some_and(|settings| settings.iter().any(|set| set.kind == "image" && set.id == asset))
        };
        let is_built = || match asset.rsplit_once('.') {
            Some((_, "js")) => !self.has_scripts,
            Some((_, "css")) => !self.has_styles,
            _ => false,
        };
        // Such names are those of tools.
        let is_of_tool = [".min.", ".bundle.", ".chunk."].iter().any(|part| asset.contains(part));
        let has_source = || {
            let stem = asset.strip_suffix(".scss.css").or_else(|| asset.strip_suffix(".css"));
            let sources = stem.map(|stem| format!("styles/{stem}.scss"));
            let sources = sources.or_else(|| asset.ends_with(".js").then(|| format!("scripts/{asset}")));
            sources.is_some_and(|source| self.theme.files.contains_key(&source))
        };
        is_of_tool || is_chosen() || is_built() || has_source()
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

    /// Whether the theme has an input for the variant that names its form.
    fn has_outer_variant(&self) -> bool {
        self.theme.files.values().any(|file| match &file.content {
            Content::Liquid(liquid) => liquid.kept.has_outer_variant,
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
        // Only a form that can be sent needs the variant. An input elsewhere can belong to it.
        !body.contains("submit") || self.has_outer_variant()
    }
}

/// Arguments of `content_for 'block'` that the platform has or may get.
const BLOCK_ARGUMENTS: [&str; 4] = ["attributes", "class", "context", "style"];

/// Compares the arguments that a tag gives a static block with those that its `doc` names.
fn block_arguments(render: &Render, name: &str, doc: &Doc, facts: &Facts, notes: &mut Notes) {
    for (argument, _, at) in &render.arguments {
        let is_known = doc.params.is_empty()
            || doc.params.iter().any(|param| param.name == *argument)
            || facts.words.contains(argument)
            || BLOCK_ARGUMENTS.contains(&argument.as_str());
        if !is_known {
            let message = format!("the block `{name}` does not read the argument `{argument}`");
            notes.add(*at, Warning, "UnrecognizedContentForArguments", message);
        }
    }
    for param in doc.params.iter().filter(|param| param.is_required) {
        if !render.arguments.iter().any(|(argument, ..)| *argument == param.name) {
            let message = format!("the block `{name}` requires the argument `{}`", param.name);
            notes.add(render.at, Warning, "MissingContentForArguments", message);
        }
    }
}

/// Compares the values that a tag gives a file with the types that its `doc` names.
fn argument_types(render: &Render, name: &str, doc: &Doc, code: &'static str, notes: &mut Notes) {
    for written in &render.written {
        let param = doc.params.iter().find(|param| param.name == written.name);
        if let Some(kind) = param.and_then(|param| param.mismatch(written)) {
            let message = format!(
                "the argument `{}` of `{name}` must be a {kind}, is a {}",
                written.name, written.kind
            );
            notes.add(written.at, Warning, code, message);
        }
    }
}

/// Whether a file compares what it prints with the error that Liquid prints for a missing file.
fn compares_error(text: &str) -> bool {
    ["Liquid error", "Could not find asset"]
        .iter()
        .any(|error| memchr::memmem::find(text.as_bytes(), error.as_bytes()).is_some())
}

/// Whether the tag at a place stands first in a `capture`. So the code of apps looks whether a snippet is there.
fn is_probe(text: &str, at: usize) -> bool {
    let start = if text[at..].starts_with("{%") { Some(at) } else { text[..at].rfind("{%") };
    let Some(before) = start.map(|start| text[..start].trim_end()).filter(|before| before.ends_with("%}"))
    else {
        return false;
    };
    let tag = before.rfind("{%").map(|open| before[open + 2..].trim_start_matches(['-', ' ']));
    tag.is_some_and(|tag| tag.starts_with("capture "))
}

fn has_id_input(text: &str) -> bool {
    // A form of several products has `items[][id]`.
    text.contains("name=\"id\"")
        || text.contains("[id]\"")
        || text.contains("[id]'")
        || text.contains("name='id'")
        || text.contains("name=id")
        || text.contains("'id'") && text.contains("name:")
}
