//! Loops and pages.

use super::Walker;
use crate::check::Severity::Error;
use crate::check::expression::{Parser, Step, Value};
use crate::check::facts::SettingUse;
use crate::check::names::Type;

impl<'a> Walker<'a, '_> {
    pub(super) fn cycle(&mut self, at: usize, mut parser: Parser<'a>) {
        if parser.is_done() {
            self.invalid(at, "`cycle` has no values");
        }
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
        match variable {
            None => self.invalid(at, format!("`{name}` has no variable")),
            Some(_) if !parser.take_word("in") => {
                self.invalid(at, format!("`{name}` lacks `in`: `{name} item in list`"));
            }
            Some(_) => {
                let here = parser.here();
                let value = parser.value();
                if matches!(value, Value::Missing) {
                    self.invalid(here, format!("`{name}` has nothing to loop over"));
                }
                self.value(&value);
                element = self.element_of(&value);
                if let Value::Path { root: "section", steps, .. } = &value
                    && let [Step::Name("blocks")] = steps.as_slice()
                {
                    element = Type { name: "block", is_array: false };
                }
                while !parser.is_done() {
                    if let Some((option, option_at)) = parser.name_with_colon() {
                        if !matches!(option, "limit" | "offset" | "cols" | "range") {
                            self.doubtful(option_at, format!("`{name}` has no option `{option}`"));
                        }
                        let value = parser.value();
                        if matches!(value, Value::Missing) {
                            self.doubtful(option_at, format!("the option `{option}` has no value"));
                            break;
                        }
                        // `offset: continue` goes on after the last loop.
                        if !matches!(value, Value::Path { root: "continue", .. }) {
                            self.value(&value);
                        }
                    } else if !parser.take_word("reversed") && !parser.take_mark(",") {
                        let here = parser.here();
                        if parser.problems.is_empty() {
                            let message = match parser.word() {
                                Some((word @ ("limit" | "offset" | "cols"), _)) => {
                                    format!("the option `{word}` lacks its colon")
                                }
                                Some((word, _)) => format!("`{name}` ignores `{word}`"),
                                None if parser.take_mark("|") => {
                                    format!("`{name}` ignores filters: assign the list first")
                                }
                                None => format!("`{name}` ignores the rest of its line"),
                            };
                            self.doubtful(here, message);
                        }
                        break;
                    }
                }
            }
        }
        self.problems(&mut parser);
        let word = variable.map(|(word, _)| (word, element));
        self.open(name, at).variable = word;
    }

    pub(super) fn paginate(&mut self, at: usize, mut parser: Parser<'a>, name: &'a str) {
        let list = parser.value();
        if matches!(list, Value::Missing) {
            self.invalid(at, "`paginate` has no list");
        } else if !parser.take_word("by") {
            self.invalid(at, "`paginate` lacks `by`");
        } else {
            let size_at = parser.here();
            match parser.value() {
                Value::Number { text } => {
                    let number: f64 = text.parse().unwrap_or(0.0);
                    if !(1.0..=250.0).contains(&number) {
                        let message = format!("a page holds 1 to 250 items, not {text}");
                        self.notes.add(size_at, Error, "PaginationSize", message);
                    }
                }
                Value::Missing => self.invalid(at, "`paginate` has no page size"),
                size => {
                    self.facts.page_sizes.extend(self.setting_of(&size, size_at));
                    self.value(&size);
                }
            }
        }
        self.value(&list);
        self.problems(&mut parser);
        self.open(name, at);
    }

    fn setting_of(&self, value: &Value<'a>, at: usize) -> Option<SettingUse> {
        let Value::Path { root: "section", steps, .. } = value else { return None };
        let [Step::Name("settings"), Step::Name(id)] = steps.as_slice() else { return None };
        Some(SettingUse { id: (*id).to_owned(), at, types: None })
    }
}
