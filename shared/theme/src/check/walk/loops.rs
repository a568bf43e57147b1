//! Loops and pages.

use super::Walker;
use crate::check::Severity::{Error, Warning};
use crate::check::expression::{Parser, Step, Value};
use crate::check::facts::SettingUse;
use crate::check::names::Type;

impl<'a> Walker<'a, '_> {
    pub(super) fn cycle(&mut self, mut parser: Parser<'a>) {
        while !parser.is_done() {
            let value = parser.value();
            self.value(&value);
            if !parser.take_mark(",") && !parser.take_mark(":") {
                break;
            }
        }
    }

    pub(super) fn for_loop(&mut self, at: usize, name: &'a str, mut parser: Parser<'a>) {
        let variable = parser.word();
        let mut element = Type::UNKNOWN;
        if variable.is_some() && parser.take_word("in") {
            let value = parser.value();
            self.value(&value);
            element = self.element_of(&value);
            if let Value::Path { root: "section", steps, .. } = &value
                && let [Step::Name("blocks")] = steps.as_slice()
            {
                element = Type { name: "block", is_array: false };
            }
            while !parser.is_done() {
                if parser.name_with_colon().is_some() {
                    let value = parser.value();
                    if matches!(value, Value::Missing) {
                        break;
                    }
                    // `offset: continue` goes on after the last loop.
                    if !matches!(value, Value::Path { root: "continue", .. }) {
                        self.value(&value);
                    }
                } else if !parser.take_word("reversed") && !parser.take_mark(",") {
                    break;
                }
            }
        }
        let word = variable.map(|(word, _)| (word, element));
        self.open(name, at).variable = word;
    }

    pub(super) fn paginate(&mut self, at: usize, mut parser: Parser<'a>, name: &'a str) {
        let list = parser.value();
        if parser.take_word("by") {
            let size_at = parser.here();
            match parser.value() {
                Value::Number { text } => {
                    let number: f64 = text.parse().unwrap_or(0.0);
                    if !(1.0..=250.0).contains(&number) {
                        let message = format!("a page holds 1 to 250 items, not {text}");
                        // Shops print lists by 1000, and their pages work.
                        let severity = if number > 250.0 { Warning } else { Error };
                        self.notes.add(size_at, severity, "PaginationSize", message);
                    }
                }
                size => {
                    self.facts.page_sizes.extend(self.setting_of(&size, size_at));
                    self.value(&size);
                }
            }
        }
        self.value(&list);
        self.open(name, at);
    }

    fn setting_of(&self, value: &Value<'a>, at: usize) -> Option<SettingUse> {
        let Value::Path { root: "section", steps, .. } = value else { return None };
        let [Step::Name("settings"), Step::Name(id)] = steps.as_slice() else { return None };
        Some(SettingUse { id: (*id).to_owned(), at, types: None })
    }
}
