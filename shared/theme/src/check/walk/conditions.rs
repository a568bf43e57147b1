//! The branches of conditions and cases.

use super::Walker;
use crate::check::expression::{Comparison, Parser, Step, Value};

impl<'a> Walker<'a, '_> {
    pub(super) fn condition(&mut self, at: usize, name: &'a str, parser: Parser<'a>) {
        let types = self.condition_types(parser).filter(|_| name == "if");
        self.open(name, at).block_types = types;
    }

    /// Reads a condition. Returns the block types for which it is true, if it says only that.
    fn condition_types(&mut self, mut parser: Parser<'a>) -> Option<Vec<String>> {
        let condition = parser.condition();
        self.comparisons(&condition);
        self.types_of(&condition)
    }

    pub(super) fn elsif(&mut self, at: usize, parser: Parser<'a>) {
        let types = self.condition_types(parser);
        match self.stack.last_mut() {
            Some(open) if matches!(open.name, "if" | "unless") => {
                open.block_types = types;
                if open.has_else {
                    self.doubtful(at, "`elsif` after `else` is never reached");
                }
            }
            _ => self.is_broken = true,
        }
    }

    pub(super) fn otherwise(&mut self, at: usize, mut parser: Parser<'a>) {
        let Some(open) =
            self.stack.last_mut().filter(|open| matches!(open.name, "if" | "unless" | "case" | "for"))
        else {
            self.is_broken = true;
            return;
        };
        open.block_types = None;
        let (owner, had_else) = (open.name, std::mem::replace(&mut open.has_else, true));
        // Of a `case`, strict Liquid refuses it.
        if owner != "case" {
            if parser.take_word("if") {
                self.doubtful(at, "`else if` ignores its condition: use `elsif`");
            } else if !parser.is_done() {
                self.doubtful(at, "`else` takes no condition: use `elsif`");
            }
        }
        if had_else {
            self.doubtful(at, "there is an `else` already");
        }
    }

    pub(super) fn case(&mut self, at: usize, mut parser: Parser<'a>) {
        let value = parser.value();
        self.value(&value);
        let is_type = self.is_block_type(&value);
        self.open("case", at).case_of_type = is_type;
    }

    pub(super) fn when(&mut self, at: usize, mut parser: Parser<'a>) {
        let mut types = Vec::new();
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
        match self.stack.last_mut() {
            Some(open) if open.name == "case" => {
                open.has_when = true;
                if open.has_else {
                    self.doubtful(at, "`when` after `else` may never be reached");
                } else if open.case_of_type {
                    open.block_types = Some(types.iter().map(|(name, _)| name.clone()).collect());
                    self.facts.block_types.extend(types);
                }
            }
            _ => self.is_broken = true,
        }
    }

    fn comparisons(&mut self, parts: &[Comparison<'a>]) {
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
    fn types_of(&self, parts: &[Comparison<'a>]) -> Option<Vec<String>> {
        let [Comparison { left, operator: Some("=="), right: Some(Value::Text { text, .. }) }] = parts else {
            return None;
        };
        self.is_block_type(left).then(|| vec![(*text).to_owned()])
    }

    fn is_block_type(&self, value: &Value<'a>) -> bool {
        let Value::Path { root, steps, .. } = value else { return false };
        matches!(steps.as_slice(), [Step::Name("type")]) && self.type_of(root).0.name == "block"
    }
}
