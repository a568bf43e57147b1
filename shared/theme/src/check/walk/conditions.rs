//! The branches of conditions and cases.

use super::{SYNTAX, Walker};
use crate::check::Severity::{Error, Warning};
use crate::check::expression::{Comparison, Parser, Step, Value};

impl<'a> Walker<'a, '_> {
    pub(super) fn when(&mut self, at: usize, mut parser: Parser<'a>) {
        let mut types = Vec::new();
        if parser.is_done() {
            self.notes.add(at, Error, SYNTAX, "`when` has no value");
        }
        while !parser.is_done() {
            let value = parser.value();
            if let Value::Text { text, at } = value {
                types.push((text.to_owned(), at));
            } else if matches!(value, Value::Missing) {
                break;
            }
            self.value(&value);
            if !parser.take_mark(",") && !parser.take_word("or") {
                break;
            }
        }
        if parser.problems.is_empty() {
            parser.finish("`when`");
        }
        self.problems(&mut parser);
        match self.stack.last_mut() {
            Some(open) if open.name == "case" => {
                open.has_when = true;
                if open.has_else {
                    self.notes.add(at, Warning, SYNTAX, "`when` after `else` may never be reached");
                } else if open.case_of_type {
                    open.block_types = Some(types.iter().map(|(name, _)| name.clone()).collect());
                    self.facts.block_types.extend(types);
                }
            }
            _ => self.misplaced(at, "when", "case"),
        }
    }

    pub(super) fn comparisons(&mut self, parts: &[Comparison<'a>]) {
        for part in parts {
            self.value(&part.left);
            if let Some(right) = &part.right {
                self.value(right);
            }
            if let (Some("==" | "!="), Some(Value::Text { text, at })) = (part.operator, &part.right)
                && self.is_block_type(&part.left)
            {
                self.facts.block_types.push(((*text).to_owned(), *at));
            }
        }
    }

    /// The block types for which a condition is true, if it says only that.
    pub(super) fn types_of(&self, parts: &[Comparison<'a>]) -> Option<Vec<String>> {
        let [Comparison { left, operator: Some("=="), right: Some(Value::Text { text, .. }) }] = parts else {
            return None;
        };
        self.is_block_type(left).then(|| vec![(*text).to_owned()])
    }

    pub(super) fn is_block_type(&self, value: &Value<'a>) -> bool {
        let Value::Path { root, steps, .. } = value else { return false };
        matches!(steps.as_slice(), [Step::Name("type")]) && self.type_of(root).0.name == "block"
    }
}
