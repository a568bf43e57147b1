//! Values and their filters: what a file reads and prints.

use super::Walker;
use super::types::wrong_property;
use crate::check::Severity::{Error, Info, Warning};
use crate::check::expression::{Filter, Filtered, Parser, Step, Value};
use crate::check::facts::{ChainUse, KeyUse, RawText, SettingUse};
use crate::check::html::HtmlContext;
use crate::check::names::{NAMES, arity};

impl<'a> Walker<'a, '_> {
    /// Reads an output, which has a place in the markup, or an `echo`, which has none.
    pub(super) fn printed(&mut self, at: usize, mut parser: Parser<'a>, place: Option<HtmlContext>) {
        if parser.is_done() {
            let what = if place.is_some() { "an output" } else { "`echo`" };
            self.notes.add(at, Warning, "EmptyOutput", format!("{what} has no value"));
            return;
        }
        let filtered = parser.filtered();
        self.filtered(&filtered);
        if let Some(place) = place {
            self.raw_text(&filtered, place, at);
        }
    }

    pub(super) fn filtered(&mut self, filtered: &Filtered<'a>) {
        self.value(&filtered.value);
        for filter in &filtered.filters {
            self.filter(filter.name, filter.at);
            if filter.has_bare_colon {
                self.doubtful(filter.at, format!("the filter `{}` has a colon but no argument", filter.name));
            }
            let given = filter.arguments.len();
            if let Some((least, most)) = arity(filter.name)
                && !filter.is_odd
                && !(least..=most).contains(&given)
            {
                let needs = match (least, most) {
                    (0, 0) => "no argument".to_owned(),
                    (1, 1) => "one argument".to_owned(),
                    (least, most) if least == most => format!("{least} arguments"),
                    (least, most) => format!("{least} to {most} arguments"),
                };
                let message = format!("the filter `{}` takes {needs}, not {given}", filter.name);
                self.notes.add(filter.at, Error, "FilterArguments", message);
            }
            if filter.name == "image_url" && !filter.is_odd {
                self.image_url(filter);
            }
            for value in filter.arguments.iter().chain(filter.named.iter().map(|(_, value)| value)) {
                self.value(value);
            }
        }
        let Value::Text { text, at } = filtered.value else { return };
        match filtered.filters.first() {
            Some(first) if matches!(first.name, "t" | "translate") => {
                let named = first.named.iter().map(|(name, _)| (*name).to_owned()).collect();
                self.facts.keys.push(KeyUse { key: text.to_owned(), at, named });
            }
            Some(first) if matches!(first.name, "asset_url" | "inline_asset_content") => {
                self.facts.assets.push((text.to_owned(), at));
            }
            _ => {}
        }
    }

    fn image_url(&mut self, filter: &Filter<'a>) {
        const KNOWN: [&str; 6] = ["width", "height", "crop", "format", "pad_color", "quality"];
        for (name, value) in &filter.named {
            if !KNOWN.contains(name) {
                let message = format!("the filter `image_url` has no argument `{name}`");
                self.notes.add(filter.at, Warning, "FilterArguments", message);
            }
            if let (true, Value::Number { text }) = (matches!(*name, "width" | "height"), value)
                && text.parse::<f64>().is_ok_and(|size| !(1.0..=5760.0).contains(&size))
            {
                let message = format!("the {name} of `image_url` is 1 to 5760, not {text}");
                self.notes.add(filter.at, Error, "FilterArguments", message);
            }
        }
    }

    fn filter(&mut self, name: &'a str, at: usize) {
        if !NAMES.filters.contains(name) {
            self.notes.add(at, Error, "UnknownFilter", format!("there is no filter `{name}`"));
        } else if name == "script_tag" {
            let message = "the script of `script_tag` blocks rendering: use an element with `defer`";
            self.notes.add(at, Warning, "ParserBlockingScript", message);
        } else if NAMES.deprecated_filters.contains(name) {
            self.notes.add(at, Info, "DeprecatedFilter", format!("the filter `{name}` is deprecated"));
        }
    }

    /// Records everything that a value reads.
    pub(super) fn value(&mut self, value: &Value<'a>) {
        match value {
            Value::Path { root, at, steps } => self.path(root, *at, steps),
            Value::Range(ends) => {
                self.value(&ends.0);
                self.value(&ends.1);
            }
            Value::Text { text, .. } => {
                text.split_whitespace().for_each(|word| self.facts.literals.insert(word));
            }
            Value::Number { .. } | Value::Literal { .. } | Value::Missing => {}
        }
    }

    fn path(&mut self, root: &'a str, at: usize, steps: &[Step<'a>]) {
        // A loop hides the variable or the parameter with the name of its own variable.
        if !self.is_of_loop(root) {
            self.read.insert(root);
            self.facts.words.insert(root);
        }
        for step in steps {
            if let Step::Index(value) = step {
                self.value(value);
            }
        }
        let names: Vec<Option<&str>> = steps
            .iter()
            .map(|step| match step {
                Step::Name(name) => Some(*name),
                Step::Index(Value::Text { text, .. }) => Some(*text),
                Step::Index(_) => None,
            })
            .collect();
        let is_own = self.is_local(root);
        match (root, names.as_slice()) {
            ("settings", [Some(id), ..]) if !is_own => {
                self.facts.theme_settings.push(SettingUse { id: (*id).to_owned(), at, types: None });
                return;
            }
            ("section", [Some("settings"), Some(id), ..]) if !is_own => {
                self.facts.section_settings.push(SettingUse { id: (*id).to_owned(), at, types: None });
                return;
            }
            (_, [Some("settings"), Some(id), ..]) if self.type_of(root).0.name == "block" => {
                let types = self.stack.iter().rev().find_map(|open| open.block_types.clone());
                let is_loop =
                    self.stack.iter().any(|open| open.variable.is_some_and(|(word, _)| word == root));
                if is_loop || root == "block" {
                    self.facts.block_settings.push(SettingUse { id: (*id).to_owned(), at, types });
                }
                return;
            }
            _ => {}
        }
        let (kind, is_argument) = self.type_of(root);
        if !is_own && !NAMES.globals.contains_key(root) {
            self.facts.unknown_names.push((root.to_owned(), at));
            if !is_argument {
                return;
            }
        }
        let names: Vec<Option<String>> = names.iter().map(|name| name.map(str::to_owned)).collect();
        if names.is_empty() {
            return;
        }
        if is_argument {
            self.facts.chains.push(ChainUse { root: root.to_owned(), names, at });
        } else if let Some(message) = wrong_property(kind, &names) {
            self.notes.add(at, Warning, "UnknownProperty", message);
        }
    }

    /// Records outputs of settings whose text a merchant writes freely.
    fn raw_text(&mut self, filtered: &Filtered<'a>, place: HtmlContext, at: usize) {
        const KEEPS: [&str; 11] = [
            "upcase",
            "downcase",
            "capitalize",
            "strip",
            "truncate",
            "truncatewords",
            "append",
            "prepend",
            "default",
            "replace",
            "newline_to_br",
        ];
        if !matches!(place, HtmlContext::Text | HtmlContext::Value)
            || !filtered.filters.iter().all(|filter| KEEPS.contains(&filter.name))
        {
            return;
        }
        let Value::Path { root, steps, .. } = &filtered.value else { return };
        let [Step::Name("settings"), Step::Name(id)] = steps.as_slice() else {
            if place == HtmlContext::Value
                && filtered.filters.is_empty()
                && let Some(Step::Name(last @ ("title" | "alt" | "vendor"))) = steps.last()
                && matches!(self.type_of_value(&filtered.value).name, "string")
            {
                let message = format!("`{last}` is printed into an attribute without `escape`");
                self.notes.add(at, Warning, "UnescapedText", message);
            }
            return;
        };
        let is_block = self.type_of(root).0.name == "block";
        if *root == "section" || is_block {
            let types = self.stack.iter().rev().find_map(|open| open.block_types.clone());
            self.facts.raw_texts.push(RawText {
                id: (*id).to_owned(),
                at,
                is_block,
                types,
                in_value: place == HtmlContext::Value,
            });
        }
    }
}
