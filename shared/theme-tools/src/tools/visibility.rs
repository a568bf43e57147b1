//! `diagnose_visibility`: static causes why something may not show.

use rustc_hash::{FxHashMap, FxHashSet};
use theme::ThemeIndex;
use theme::path::{FileKind, handle};
use theme::scan::EdgeKind;
use theme::scan::liquid::TokenKind;
use theme::text::Span;

use crate::answer::{Report, short, short_of};
use crate::arguments::Visibility;
use crate::error::ToolError;
use crate::needs::{Needs, paths};
use crate::read::condition::{Value, default, is_case, is_true, stored};
use crate::read::css::{hides, hiding, is_about};
use crate::read::html::{self, Element};
use crate::read::json::Json;
use crate::read::liquid::{Frame, Liquid, first_string};
use crate::read::schema::{Schema, Setting};
use crate::read::stored::{Placed, PlacedBlock, SettingsData, Stored};
use crate::text::line_of;
use crate::tree::{Tree, is_liquid};

/// The most placements and blocks whose values decide conditions.
const MAX_CONTEXTS: usize = 24;
/// The most conditions that are read in one file.
const MAX_CONDITIONS: usize = 20_000;
/// The most files that render a snippet, and are read for the conditions around it.
const MAX_RENDERERS: usize = 20;
const MARK: &str = " [static; not proven]";

pub fn needs(index: &ThemeIndex) -> Needs {
    paths(index, |_, kind| {
        is_liquid(kind)
            || matches!(
                kind,
                FileKind::JsonTemplate
                    | FileKind::SectionGroup
                    | FileKind::SettingsData
                    | FileKind::SettingsSchema
                    | FileKind::Stylesheet
            )
    })
}

/// The values of a section or block where it is placed.
struct Context<'s, 'a> {
    /// Where it is, for the answer.
    name: String,
    json: &'s Json<'a>,
    section: FxHashMap<&'a str, usize>,
    block: Option<(&'s PlacedBlock<'a>, FxHashMap<&'a str, usize>)>,
}

/// What decides conditions.
struct Values<'s, 'a> {
    theme: Option<&'s SettingsData<'a>>,
    theme_schema: Option<&'s Schema<'a>>,
    /// The schema of the section or block that is read.
    own: Option<&'s Schema<'a>>,
    is_block_file: bool,
    blocks: FxHashMap<&'s str, FxHashMap<&'s str, &'s Setting<'a>>>,
}

fn keyed<'a>(json: &Json<'a>, settings: Option<usize>) -> FxHashMap<&'a str, usize> {
    settings
        .map(|settings| json.children(settings).map(|node| (json.key(node), node)).collect())
        .unwrap_or_default()
}

impl<'s, 'a> Values<'s, 'a> {
    fn new(
        theme: Option<&'s SettingsData<'a>>,
        theme_schema: Option<&'s Schema<'a>>,
        own: Option<&'s Schema<'a>>,
        is_block_file: bool,
    ) -> Self {
        let mut blocks: FxHashMap<&str, FxHashMap<&str, &Setting<'a>>> = FxHashMap::default();
        for block in own.into_iter().flat_map(|schema| &schema.blocks) {
            let settings = block.settings.iter().map(|setting| (&*setting.id, setting)).collect();
            blocks.insert(&*block.kind, settings);
        }
        Self { theme, theme_schema, own, is_block_file, blocks }
    }

    fn get(&self, path: &str, context: Option<&Context<'_, 'a>>) -> Option<Value<'a>> {
        if let Some(id) = path.strip_prefix("settings.") {
            let id = plain(id)?;
            if let Some(data) = self.theme
                && let Some(node) = data.value(id)
            {
                return stored(&data.json, node);
            }
            // Without the stored values nothing is known.
            self.theme?;
            let schema = self.theme_schema?;
            return default(schema, schema.setting(id)?);
        }
        let context = context?;
        if let Some(id) = path.strip_prefix("section.settings.") {
            let id = plain(id)?;
            if let Some(&node) = context.section.get(id) {
                return stored(context.json, node);
            }
            let schema = self.own.filter(|_| !self.is_block_file)?;
            // The platform gives nothing for a setting that is not declared.
            return schema.setting(id).map_or(Some(Value::Nil), |setting| default(schema, setting));
        }
        let (block, values) = context.block.as_ref()?;
        if path == "block.type" {
            return Some(Value::Text(block.kind.to_string().into()));
        }
        let id = plain(path.strip_prefix("block.settings.")?)?;
        if let Some(&node) = values.get(id) {
            return stored(context.json, node);
        }
        let schema = self.own?;
        if self.is_block_file {
            return schema.setting(id).map_or(Some(Value::Nil), |setting| default(schema, setting));
        }
        self.blocks.get(&*block.kind)?.get(id).map_or(Some(Value::Nil), |setting| default(schema, setting))
    }
}

/// An id, and not a property of its value.
fn plain(id: &str) -> Option<&str> {
    (!id.contains('.')).then_some(id)
}

/// The names of a file that styles can be about.
struct Names<'n> {
    path: &'n str,
    liquid: &'n Liquid<'n>,
    /// Classes, ids and elements with their marks, and where each is first.
    names: &'n FxHashMap<String, u32>,
    words: FxHashSet<&'n str>,
}

/// What is known of each frame: whether it is reached, and whether a frame around it is not.
struct States {
    state: Vec<Option<bool>>,
    is_dead: Vec<bool>,
}

impl States {
    fn of<'a>(liquid: &Liquid<'_>, value: &dyn Fn(&str) -> Option<Value<'a>>) -> Self {
        let frames = liquid.frames();
        let frames = &frames[..frames.len().min(MAX_CONDITIONS)];
        let mut all =
            Self { state: Vec::with_capacity(frames.len()), is_dead: Vec::with_capacity(frames.len()) };
        // Whether this branch or one before it is taken.
        let mut taken: Vec<Option<bool>> = Vec::with_capacity(frames.len());
        for frame in frames {
            let own = match frame.tag {
                "if" | "elsif" => is_true(frame.markup, value),
                "unless" => is_true(frame.markup, value).map(|is| !is),
                "when" => {
                    let mut first = frame.previous();
                    // The subject stands in the tag that opens the case. Its branches come one after the other.
                    let mut steps = 0;
                    while let Some(index) = first
                        && frames[index].tag != "case"
                        && steps < 32
                    {
                        first = frames[index].previous();
                        steps += 1;
                    }
                    first
                        .filter(|&index| frames[index].tag == "case")
                        .and_then(|case| is_case(frames[case].markup, frame.markup, value))
                }
                "else" => Some(true),
                _ => None,
            };
            // A `for` has an `else`, too, and a `case` is no branch itself.
            let before = match frame.previous() {
                Some(index) if frames[index].tag == "case" => Some(false),
                Some(index) => taken[index],
                None => Some(false),
            };
            let state = match (before, own) {
                (Some(true), _) | (_, Some(false)) => Some(false),
                (Some(false), own) => own,
                (None, _) => None,
            };
            taken.push(match (before, own) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            });
            let is_dead =
                frame.parent().is_some_and(|parent| all.is_dead[parent] || all.state[parent] == Some(false));
            all.state.push(state);
            all.is_dead.push(is_dead);
        }
        all
    }

    /// Whether the frame is not reached although all frames around it may be.
    fn is_off(&self, frame: usize) -> bool {
        self.state.get(frame) == Some(&Some(false)) && !self.is_dead[frame]
    }
}

struct Diagnosis<'r, 's, 'a> {
    tree: &'s Tree<'a>,
    report: &'r mut Report,
    theme: Option<&'s SettingsData<'a>>,
    theme_schema: Option<&'s Schema<'a>>,
    templates: &'s [(&'a str, FileKind, Stored<'a>)],
    selector: Option<&'s str>,
}

pub fn run(call: &Visibility, tree: &Tree<'_>) -> Result<String, ToolError> {
    let path = match (&call.path, &call.section) {
        (Some(path), _) => path.clone(),
        (_, section) => format!("sections/{}.liquid", section.as_deref().unwrap_or_default()),
    };
    let text = tree.require_text(&path)?;
    let kind = FileKind::of(&path);
    let templates: Vec<(&str, FileKind, Stored<'_>)> = tree
        .texts(|_, kind| matches!(kind, FileKind::JsonTemplate | FileKind::SectionGroup))
        .map(|(path, kind, text)| (path, kind, Stored::template(text)))
        .collect();
    let theme = tree
        .texts(|_, kind| kind == FileKind::SettingsData)
        .next()
        .map(|(.., text)| SettingsData::read(text));
    let schema = tree.texts(|_, kind| kind == FileKind::SettingsSchema).next();
    let theme_schema = schema.and_then(|(path, _, text)| Schema::read(path, text));
    let mut report = Report::new(call.page(), "possible cause", "possible causes");
    report.head(format!("Static causes why {path} may not show. Nothing was rendered: none is proven, and data of the shop can be another."));
    let mut diagnosis = Diagnosis {
        tree,
        report: &mut report,
        theme: theme.as_ref(),
        theme_schema: theme_schema.as_ref(),
        templates: &templates,
        selector: call.selector.as_deref(),
    };
    match kind {
        FileKind::Section => diagnosis.section(&path, text),
        FileKind::Block => diagnosis.block(&path, text),
        FileKind::Snippet => diagnosis.snippet(&path, text),
        FileKind::JsonTemplate | FileKind::SectionGroup => diagnosis.template(&path, kind),
        FileKind::Layout | FileKind::Template => diagnosis.code(&path, text, &[], None),
        other => {
            return Err(ToolError::WrongKind {
                path,
                kind: other.as_str(),
                tool: "diagnose_visibility",
                wanted: "sections, blocks, snippets, templates and layouts",
            });
        }
    }
    Ok(report.finish())
}

fn named(path: &str, section: &Placed<'_>) -> String {
    format!("{path}:{} section {}", section.line, short(section.id, 60))
}

impl<'s, 'a> Diagnosis<'_, 's, 'a> {
    fn cause(&mut self, path: &str, line: u32, what: impl FnOnce() -> String) {
        self.report.item(|| format!("{path}:{line}  {}{MARK}", what()));
    }

    /// What a JSON file says against one of its sections.
    fn placement(&mut self, path: &str, stored: &Stored<'_>, section: &Placed<'_>) {
        let id = short(section.id, 60);
        if section.is_disabled {
            self.cause(path, section.line, || format!("section {id} is disabled"));
        }
        if section.place.is_none() {
            let order = stored
                .order_line
                .map_or("there is no `order`".to_owned(), |line| format!("`order` (line {line}) lacks it"));
            self.cause(path, section.line, || format!("section {id} is not shown: {order}"));
        }
    }

    fn blocks(&mut self, path: &str, section: &Placed<'_>, wanted: impl Fn(&str) -> bool) {
        for block in section.blocks.iter().filter(|block| wanted(&block.kind)) {
            let id = short(block.id, 60);
            if block.is_disabled {
                self.cause(path, block.line, || format!("block {id} is disabled"));
            }
            if !block.is_ordered {
                self.cause(path, block.line, || format!("block {id} is not in `block_order`"));
            }
        }
    }

    fn template(&mut self, path: &str, kind: FileKind) {
        let templates = self.templates;
        let Some((_, _, stored)) = templates.iter().find(|(other, ..)| *other == path) else { return };
        if let Some(line) = stored.json.broken_line() {
            self.cause(path, line, || "this is not valid JSON".to_owned());
        }
        if kind == FileKind::SectionGroup {
            self.group(path);
        }
        for section in &stored.sections {
            self.placement(path, stored, section);
            if !self.tree.has(&format!("sections/{}.liquid", section.kind)) && !section.kind.contains('/') {
                let kind = short(&section.kind, 60);
                self.cause(path, section.line, || format!("the theme has no section {kind}"));
            }
            self.blocks(path, section, |_| true);
        }
        for (id, line) in &stored.unknown {
            self.cause(path, *line, || format!("`order` names {}, and `sections` lacks it", short(id, 60)));
        }
    }

    fn group(&mut self, path: &str) {
        let is_used = self.tree.index.needed_by(path).iter().any(|edge| edge.kind == EdgeKind::SectionGroup);
        if !is_used {
            self.cause(path, 1, || "no layout or section shows this group".to_owned());
        }
    }

    fn section(&mut self, path: &str, text: &'a str) {
        let kind = handle(path);
        let templates = self.templates;
        let mut placed: Vec<(&str, &Json<'a>, &Placed<'a>)> = Vec::new();
        let mut groups = FxHashSet::default();
        for (file, file_kind, stored) in templates {
            for section in stored.sections.iter().filter(|section| section.kind == kind) {
                self.placement(file, stored, section);
                self.blocks(file, section, |_| true);
                if *file_kind == FileKind::SectionGroup && groups.insert(*file) {
                    self.group(file);
                }
                placed.push((file, &stored.json, section));
            }
        }
        let is_static = self
            .tree
            .index
            .needed_by(path)
            .iter()
            .any(|edge| edge.kind == EdgeKind::Section && !edge.from.ends_with(".json"));
        if let Some(data) = self.theme
            && is_static
        {
            let own = data.sections.iter().filter(|section| section.kind == kind || section.id == kind);
            placed.extend(own.map(|section| ("config/settings_data.json", &data.json, section)));
        }
        if placed.is_empty() && !is_static {
            self.cause(path, 1, || "no template, section group or layout places this section".to_owned());
        }
        let liquid = Liquid::read(text);
        let schema = Schema::of(&liquid);
        if let Some(schema) = &schema {
            for key in ["enabled_on", "disabled_on"] {
                if let Some(node) = schema.json.get(schema.root, key) {
                    let (line, value) = (schema.json.line(node), schema.json.shown(node));
                    self.cause(path, line, || format!("`{key}` limits where it can be added: {value}"));
                }
            }
        }
        self.loops(path, &liquid, &placed);
        let mut contexts = Vec::new();
        for (file, json, section) in &placed {
            if contexts.len() >= MAX_CONTEXTS {
                break;
            }
            contexts.push(Context {
                name: named(file, section),
                json,
                section: keyed(json, section.settings),
                block: None,
            });
            for block in section.blocks.iter().filter(|block| !block.is_disabled) {
                if contexts.len() >= MAX_CONTEXTS {
                    break;
                }
                contexts.push(Context {
                    name: format!("{file}:{} block {}", block.line, short(block.id, 60)),
                    json,
                    section: keyed(json, section.settings),
                    block: Some((block, keyed(json, block.settings))),
                });
            }
        }
        self.code(path, text, &contexts, schema.as_ref());
    }

    /// Placements that have no blocks, if the section shows its blocks.
    fn loops(&mut self, path: &str, liquid: &Liquid<'_>, placed: &[(&str, &Json<'a>, &Placed<'a>)]) {
        let in_loop =
            liquid.frames().iter().find(|frame| frame.is_loop() && frame.markup.contains("section.blocks"));
        let tag = || {
            let mut tags = liquid.tags().filter(|(name, ..)| *name == "content_for");
            tags.find(|(_, markup, _)| first_string(markup.of(liquid.text)) == Some("blocks"))
                .map(|(.., token)| token.span.start)
        };
        let Some(at) = in_loop.map(|frame| frame.at).or_else(tag) else { return };
        let line = liquid.line(at);
        for (file, _, section) in placed {
            let shown = section.blocks.iter().filter(|block| !block.is_disabled && block.is_ordered).count();
            if shown == 0 {
                let name = named(file, section);
                self.cause(path, line, || {
                    format!("the section shows its blocks here, and {name} has none that shows")
                });
            }
        }
    }

    fn block(&mut self, path: &str, text: &'a str) {
        let kind = handle(path);
        let templates = self.templates;
        let mut contexts = Vec::new();
        let mut is_placed = false;
        for (file, _, stored) in templates {
            for section in &stored.sections {
                if !section.blocks.iter().any(|block| block.kind == kind) {
                    continue;
                }
                is_placed = true;
                self.placement(file, stored, section);
                self.blocks(file, section, |other| other == kind);
                for block in section.blocks.iter().filter(|block| block.kind == kind && !block.is_disabled) {
                    if contexts.len() < MAX_CONTEXTS {
                        contexts.push(Context {
                            name: format!("{file}:{} block {}", block.line, short(block.id, 60)),
                            json: &stored.json,
                            section: keyed(&stored.json, section.settings),
                            block: Some((block, keyed(&stored.json, block.settings))),
                        });
                    }
                }
            }
        }
        let is_static = self
            .tree
            .index
            .needed_by(path)
            .iter()
            .any(|edge| edge.kind == EdgeKind::Block && edge.from.ends_with(".liquid"));
        if !is_placed && !is_static {
            self.cause(path, 1, || "no template places this block, and no file names it".to_owned());
        } else if !is_placed {
            self.cause(path, 1, || "no template stores a block of this type".to_owned());
        }
        let schema = Schema::read(path, text);
        self.code(path, text, &contexts, schema.as_ref());
    }

    fn snippet(&mut self, path: &str, text: &'a str) {
        let users = self.tree.index.needed_by(path);
        let mut files: Vec<String> = users
            .into_iter()
            .filter(|edge| matches!(edge.kind, EdgeKind::Render | EdgeKind::Include))
            .map(|edge| edge.from)
            .collect();
        files.sort_unstable();
        files.dedup();
        if files.is_empty() {
            self.cause(path, 1, || "no file renders this snippet by its name".to_owned());
        }
        for file in files.iter().take(MAX_RENDERERS) {
            let Some(text) = self.tree.text(file) else { continue };
            self.around_renders(file, text, handle(path));
        }
        self.code(path, text, &[], None);
    }

    /// Conditions around the places where a file renders a snippet.
    fn around_renders(&mut self, file: &str, text: &'a str, name: &str) {
        let liquid = Liquid::read(text);
        let values = Values::new(self.theme, self.theme_schema, None, false);
        let off = States::of(&liquid, &|word| values.get(word, None));
        let mut told = FxHashSet::default();
        for (tag, markup, token) in liquid.tags() {
            if !matches!(tag, "render" | "include") || first_string(markup.of(text)) != Some(name) {
                continue;
            }
            let line = liquid.line(token.span.start);
            for frame in liquid
                .around(token.span.start)
                .filter(|frame| !matches!(frame.tag, "case" | "form" | "paginate" | "style" | "capture"))
            {
                let index = liquid.frames().partition_point(|other| other.at < frame.at);
                let is_off = off.is_off(index);
                let depends =
                    matches!(frame.tag, "if" | "unless" | "elsif" | "when" | "else") || frame.is_loop();
                if (is_off || depends) && told.insert((line, frame.at)) {
                    let condition = tag_text(frame);
                    let at = liquid.line(frame.at);
                    self.cause(file, at, || match is_off {
                        true => format!("{condition} is never true with the stored settings; it is around the render on line {line}"),
                        false => format!("the render on line {line} depends on {condition}"),
                    });
                }
            }
        }
    }

    /// Conditions, attributes and styles of a file.
    fn code(&mut self, path: &str, text: &'a str, contexts: &[Context<'_, 'a>], own: Option<&Schema<'a>>) {
        let liquid = Liquid::read(text);
        let (elements, styles, _) = html::read(&liquid.masked);
        let selector = self.selector;
        let matching: Vec<&Element> = elements
            .iter()
            .filter(|element| selector.is_none_or(|selector| is_selected(element, &liquid.masked, selector)))
            .collect();
        if let Some(selector) = selector
            && matching.is_empty()
        {
            self.cause(path, 1, || {
                format!(
                    "no element of this file is written with {selector}; a script or another file may make it"
                )
            });
        }
        self.conditions(path, &liquid, contexts, own, &elements, &matching);
        self.markup(path, text, &liquid, &matching);
        self.styles(path, text, &liquid, &matching, &styles);
    }

    fn conditions(
        &mut self,
        path: &str,
        liquid: &Liquid<'_>,
        contexts: &[Context<'_, 'a>],
        own: Option<&Schema<'a>>,
        elements: &[Element],
        matching: &[&Element],
    ) {
        // With a selector, only what is around its elements.
        let around: Option<FxHashSet<u32>> = self.selector.map(|_| {
            let places = matching.iter().take(MAX_CONTEXTS);
            places.flat_map(|element| liquid.around(element.name.start)).map(|frame| frame.at).collect()
        });
        let shown = shown_places(liquid);
        let mut off: FxHashMap<usize, Vec<&str>> = FxHashMap::default();
        let mut seen: FxHashMap<usize, usize> = FxHashMap::default();
        let values = Values::new(self.theme, self.theme_schema, own, path.starts_with("blocks/"));
        let is_about_blocks = |markup: &str| markup.contains("block.settings.");
        let states =
            |context: Option<&Context<'_, 'a>>| States::of(liquid, &|word| values.get(word, context));
        let read = liquid.frames().len().min(MAX_CONDITIONS);
        if read < liquid.frames().len() {
            self.report.note(format!(
                "{path} has more than {MAX_CONDITIONS} conditions and loops; the rest is not read."
            ));
        }
        for context in contexts {
            let states = states(Some(context));
            for (index, frame) in liquid.frames()[..read].iter().enumerate() {
                if frame.tag == "else"
                    || is_about_blocks(frame.markup) != context.block.is_some()
                        && !path.starts_with("blocks/")
                {
                    continue;
                }
                *seen.entry(index).or_default() += usize::from(!states.is_dead[index]);
                if states.is_off(index) && !is_type_test(liquid, index) {
                    off.entry(index).or_default().push(&context.name);
                }
            }
        }
        if contexts.is_empty() {
            let states = states(None);
            for (index, _) in liquid.frames()[..read]
                .iter()
                .enumerate()
                .filter(|(index, frame)| states.is_off(*index) && frame.tag != "else")
            {
                off.insert(index, Vec::new());
            }
        }
        for (index, frame) in liquid.frames()[..read].iter().enumerate() {
            if around.as_ref().is_some_and(|around| !around.contains(&frame.at)) {
                continue;
            }
            let first = shown.partition_point(|&place| place < frame.at);
            let is_empty = shown.get(first).is_none_or(|&place| place >= frame.end);
            // Within the tag of an element it only decides attributes.
            let before = elements.partition_point(|element| element.name.start <= frame.at);
            let is_attribute = before > 0 && frame.at < elements[before - 1].end;
            if is_empty || is_attribute {
                continue;
            }
            let condition = || tag_text(frame);
            let lines = [liquid.line(frame.at), liquid.line(frame.end)];
            if let Some(places) = off.get(&index) {
                let all = seen.get(&index).copied().unwrap_or_default();
                self.cause(path, lines[0], || {
                    let what = format!("{} hides lines {}–{}", condition(), lines[0], lines[1]);
                    match places.as_slice() {
                        [] => format!("{what}: never true with the stored settings"),
                        places if places.len() == all => {
                            format!("{what}: false for every placement: {}", listed(places))
                        }
                        places => format!(
                            "{what}: false for {} of {all} placements: {}",
                            places.len(),
                            listed(places)
                        ),
                    }
                });
            } else if frame.parent().is_none() && matches!(frame.tag, "if" | "unless" | "for" | "tablerow")
                || around.is_some() && matches!(frame.tag, "if" | "unless" | "elsif" | "when" | "for")
            {
                let decided = contexts.iter().next().is_some()
                    && frame.markup.contains("settings.")
                    && !is_about_blocks(frame.markup);
                if !decided && !frame.markup.contains("section.blocks") {
                    self.cause(path, lines[0], || {
                        format!("lines {}–{} depend on {}", lines[0], lines[1], condition())
                    });
                }
            }
        }
    }

    fn markup(&mut self, path: &str, text: &str, liquid: &Liquid<'_>, matching: &[&Element]) {
        for element in matching {
            let name = short_of(text, element.name, 40);
            let line = liquid.line(element.name.start);
            let is_hidden_input = element.is(text, "input") && element.get(text, "type") == Some("hidden");
            if is_hidden_input {
                continue;
            }
            if element.has(text, "hidden") {
                self.cause(path, line, || format!("<{name}> has the attribute hidden"));
            }
            if let Some(what) = element.get(&liquid.masked, "style").and_then(hides) {
                self.cause(path, line, || format!("<{name}> has the style {what}"));
            }
        }
    }

    fn styles(
        &mut self,
        path: &str,
        text: &str,
        liquid: &Liquid<'_>,
        matching: &[&Element],
        styles: &[Span],
    ) {
        // The classes and ids of the elements, and where each is first.
        let mut names: FxHashMap<String, u32> = FxHashMap::default();
        for element in matching {
            for (key, mark) in [("class", "."), ("id", "#")] {
                let value = element.get(&liquid.masked, key).unwrap_or_default();
                for word in value.split_whitespace() {
                    names.entry(format!("{mark}{word}")).or_insert(element.name.start);
                }
            }
            let name = element.name.of(text);
            if name.contains('-') {
                names.entry(name.to_owned()).or_insert(element.name.start);
            }
        }
        if let Some(selector) = self.selector {
            names.retain(|name, _| name == selector);
            names.entry(selector.to_owned()).or_insert(0);
        }
        let words =
            text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || !c.is_ascii()));
        let file = Names { path, liquid, names: &names, words: words.collect() };
        let sheets: Vec<(&str, &str)> = self
            .tree
            .texts(|_, kind| kind == FileKind::Stylesheet)
            .map(|(path, _, text)| (path, text))
            .collect();
        for (sheet, css) in sheets {
            self.sheet(sheet, css, Span::new(0, css.len()), &file);
        }
        for style in styles {
            self.sheet(path, &liquid.masked, *style, &file);
        }
        for token in &liquid.tokens {
            if let TokenKind::Style { body } = token.kind {
                self.sheet(path, text, body, &file);
            }
        }
    }

    fn sheet(&mut self, sheet: &str, css: &str, within: Span, file: &Names<'_>) {
        let found = hiding(css, within);
        if found.is_empty() {
            return;
        }
        let lines = theme::text::Lines::new(css);
        for rule in found {
            let selectors = rule.selector.of(css);
            let Some((name, &at)) =
                selectors.split(',').find_map(|selector| self.hidden(selector, file.names, &file.words))
            else {
                continue;
            };
            let condition = rule
                .condition
                .map_or(String::new(), |condition| format!(" within {}", short_of(css, condition, 100)));
            let line = line_of(&lines, rule.at);
            let used = file.liquid.line(at);
            let path = file.path;
            self.cause(sheet, line, || {
                format!(
                    "{} {{ {} }}{condition} hides {name} ({path}:{used})",
                    short(selectors, 140),
                    rule.what
                )
            });
        }
    }
}

impl Diagnosis<'_, '_, '_> {
    /// The name that a selector hides. Rules for generated content hide no element, and rules for a class that the file does not have
    /// are about other elements. With a selector they count: a script may add the class.
    fn hidden<'n>(
        &self,
        selector: &str,
        names: &'n FxHashMap<String, u32>,
        words: &FxHashSet<&str>,
    ) -> Option<(&'n String, &'n u32)> {
        let last = last_part(selector);
        if ["::", ":before", ":after"].iter().any(|pseudo| last.contains(pseudo)) {
            return None;
        }
        let parts = last_names(last);
        let found = parts
            .iter()
            .find_map(|name| names.get_key_value(*name))
            .filter(|(name, _)| is_about(last, name))?;
        let is_there = |name: &&str| words.contains(name.trim_start_matches(['.', '#']));
        (self.selector.is_some() || parts.iter().all(is_there)).then_some(found)
    }
}

/// Whether a condition only asks for the type of a block.
fn is_type_test(liquid: &Liquid<'_>, index: usize) -> bool {
    let frame = &liquid.frames()[index];
    frame.markup.contains("block.type") || frame.tag == "when"
}

/// A tag as it is written.
fn tag_text(frame: &Frame<'_>) -> String {
    let markup = short(frame.markup, 120);
    let blank = if markup.is_empty() { "" } else { " " };
    format!("{{% {}{blank}{markup} %}}", frame.tag)
}

/// The places of what a page shows: texts, elements, outputs and other files.
fn shown_places(liquid: &Liquid<'_>) -> Vec<u32> {
    let mut places = Vec::new();
    let mut from = 0;
    let end = Span::new(liquid.text.len(), liquid.text.len());
    let spans = liquid.tokens.iter().map(|token| (token.span, Some(token.kind)));
    for (span, kind) in spans.chain([(end, None)]) {
        let gap = liquid.masked.get(from as usize..span.start as usize).unwrap_or_default();
        let start = from as usize + gap.len() - gap.trim_start().len();
        let is_style =
            |at: u32| liquid.frame_at(at).is_some_and(|frame| liquid.frames()[frame].tag == "style");
        if !gap.trim().is_empty() && !is_style(start as u32) {
            places.push(start as u32);
        }
        let shows = match kind {
            Some(TokenKind::Output { .. }) => !is_style(span.start),
            Some(TokenKind::Tag { name, .. }) => {
                matches!(
                    name.of(liquid.text),
                    "render" | "include" | "content_for" | "section" | "sections" | "echo"
                )
            }
            _ => false,
        };
        if shows {
            places.push(span.start);
        }
        from = span.end;
    }
    places
}

fn listed(names: &[&str]) -> String {
    const MOST: usize = 4;
    let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
    format!("{}{more}", names[..names.len().min(MOST)].join(", "))
}

fn is_selected(element: &Element, masked: &str, selector: &str) -> bool {
    let word = |key: &str, wanted: &str| {
        element.get(masked, key).unwrap_or_default().split_whitespace().any(|word| word == wanted)
    };
    match selector.split_at_checked(1) {
        Some((".", class)) => word("class", class),
        Some(("#", id)) => word("id", id),
        _ => element.is(masked, selector),
    }
}

/// The part of a selector that names the element itself.
fn last_part(selector: &str) -> &str {
    selector.trim().rsplit([' ', '>', '+', '~', '\n', '\t']).next().unwrap_or_default()
}

/// The classes, ids and elements in a part of a selector, with their marks.
fn last_names(last: &str) -> Vec<&str> {
    // What stands in brackets is about attributes or other elements.
    let last = last.split(['[', '(', ':']).next().unwrap_or_default();
    let bytes = last.as_bytes();
    let (mut names, mut at) = (Vec::new(), 0);
    while at < bytes.len() && names.len() < 16 {
        let from = at;
        at += usize::from(matches!(bytes[at], b'.' | b'#'));
        at += bytes[at..].iter().take_while(|&&b| crate::text::is_word(b)).count();
        if at > from {
            names.extend(last.get(from..at));
        } else {
            at += 1;
        }
    }
    names
}
