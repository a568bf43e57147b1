//! Whether a condition is true for the stored settings, as far as the text says it.

use std::borrow::Cow;

use theme::scan::json::ValueKind;

use super::json::Json;
use super::schema::{Schema, Setting};

/// A longer condition is not decided.
const MAX_TERMS: usize = 48;

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Nil,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
}

impl Value<'_> {
    /// An empty text is not decided: it depends on the setting's type whether the platform gives a text or nothing.
    fn is_true(&self) -> Option<bool> {
        match self {
            Self::Nil => Some(false),
            Self::Bool(is) => Some(*is),
            Self::Text(text) if text.is_empty() => None,
            _ => Some(true),
        }
    }

    fn is_blank(&self) -> bool {
        match self {
            Self::Nil | Self::Bool(false) => true,
            Self::Text(text) => text.trim().is_empty(),
            _ => false,
        }
    }
}

/// A stored value. `None` for a value that only the shop knows.
pub fn stored<'a>(json: &Json<'a>, node: usize) -> Option<Value<'a>> {
    let word = json.word(node);
    match json.kind(node) {
        ValueKind::String if word.contains("{{") => None,
        ValueKind::String => Some(Value::Text(word)),
        ValueKind::Scalar => match &*word {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            "null" => Some(Value::Nil),
            number => number.parse().ok().map(Value::Number),
        },
        _ => None,
    }
}

/// The value of a setting for which nothing is stored.
pub fn default<'a>(schema: &Schema<'a>, setting: &Setting<'a>) -> Option<Value<'a>> {
    if let Some(node) = setting.default {
        return stored(&schema.json, node);
    }
    match &*setting.kind {
        "checkbox" => Some(Value::Bool(false)),
        "select" | "radio" => schema.options(setting).into_iter().next().map(|(value, _)| Value::Text(value)),
        "article" | "blog" | "collection" | "image_picker" | "link_list" | "page" | "product" | "url"
        | "video" | "video_url" | "metaobject" => Some(Value::Nil),
        "text" | "textarea" | "html" | "liquid" | "inline_richtext" | "richtext" => {
            Some(Value::Text("".into()))
        }
        _ => None,
    }
}

/// Whether a condition is true. `value` has the value of each path such as `section.settings.x`. `None` if it depends on something else.
pub fn is_true<'a>(condition: &str, value: &dyn Fn(&str) -> Option<Value<'a>>) -> Option<bool> {
    let terms = terms(condition)?;
    // Liquid reads `and` and `or` from the right, without precedence.
    let mut parts: Vec<&[&str]> = terms.split(|term| matches!(*term, "and" | "or")).collect();
    let mut words: Vec<&str> = terms.iter().copied().filter(|term| matches!(*term, "and" | "or")).collect();
    let mut result = comparison(parts.pop()?, value);
    while let (Some(part), Some(word)) = (parts.pop(), words.pop()) {
        let left = comparison(part, value);
        result = match (word, left, result) {
            ("and", Some(false), _) | ("and", _, Some(false)) => Some(false),
            ("and", Some(true), Some(true)) => Some(true),
            ("or", Some(true), _) | ("or", _, Some(true)) => Some(true),
            ("or", Some(false), Some(false)) => Some(false),
            _ => None,
        };
    }
    result
}

/// Whether `case` with this subject takes a branch with these values.
pub fn is_case<'a>(subject: &str, when: &str, value: &dyn Fn(&str) -> Option<Value<'a>>) -> Option<bool> {
    let subject = operand(subject.trim(), value)?;
    let terms = terms(when)?;
    let mut result = Some(false);
    for term in terms.into_iter().filter(|term| *term != "or") {
        match operand(term.trim_end_matches(','), value) {
            Some(other) if other == subject => return Some(true),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

/// Splits at blanks and operators, outside of quotes.
fn terms(condition: &str) -> Option<Vec<&str>> {
    let bytes = condition.as_bytes();
    let mut terms = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() || bytes[at] == b',' {
            at += 1;
            continue;
        }
        let start = at;
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at += 1 + memchr::memchr(quote, &bytes[at + 1..])? + 1;
            }
            b'=' | b'!' | b'<' | b'>' => {
                at += bytes[at..].iter().take_while(|b| matches!(b, b'=' | b'!' | b'<' | b'>')).count();
            }
            b'|' | b'(' | b'[' => return None,
            _ => {
                let is_part = |b: &&u8| {
                    !b.is_ascii_whitespace()
                        && !matches!(b, b'=' | b'!' | b'<' | b'>' | b'"' | b'\'' | b'|' | b'[' | b',')
                };
                at += bytes[at..].iter().take_while(is_part).count().max(1);
            }
        }
        terms.push(condition.get(start..at)?);
        if terms.len() > MAX_TERMS {
            return None;
        }
    }
    (!terms.is_empty()).then_some(terms)
}

fn operand<'a>(word: &str, value: &dyn Fn(&str) -> Option<Value<'a>>) -> Option<Value<'a>> {
    if let Some(text) = word.strip_prefix(['"', '\'']) {
        return Some(Value::Text(text[..text.len().saturating_sub(1)].to_owned().into()));
    }
    match word {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        "nil" | "null" => Some(Value::Nil),
        _ => word.parse().ok().map(Value::Number).or_else(|| value(word)),
    }
}

fn comparison<'a>(terms: &[&str], value: &dyn Fn(&str) -> Option<Value<'a>>) -> Option<bool> {
    match *terms {
        [one] => operand(one, value)?.is_true(),
        [left, operator @ ("==" | "!="), right] => {
            let left = operand(left, value)?;
            let is_equal = if matches!(right, "blank" | "empty") {
                left.is_blank()
            } else {
                left == operand(right, value)?
            };
            Some(is_equal == (operator == "=="))
        }
        [left, operator, right] => {
            let (left, right) = (operand(left, value)?, operand(right, value)?);
            match (left, operator, right) {
                (Value::Number(left), ">", Value::Number(right)) => Some(left > right),
                (Value::Number(left), "<", Value::Number(right)) => Some(left < right),
                (Value::Number(left), ">=", Value::Number(right)) => Some(left >= right),
                (Value::Number(left), "<=", Value::Number(right)) => Some(left <= right),
                (Value::Text(left), "contains", Value::Text(right)) => Some(left.contains(&*right)),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_decided_as_far_as_the_values_are_known() {
        let value = |path: &str| match path {
            "section.settings.on" => Some(Value::Bool(true)),
            "section.settings.off" => Some(Value::Bool(false)),
            "section.settings.size" => Some(Value::Number(3.0)),
            "section.settings.title" => Some(Value::Text("".into())),
            "section.settings.align" => Some(Value::Text("left".into())),
            "section.settings.image" => Some(Value::Nil),
            _ => None,
        };
        let check = |condition: &str, expected: Option<bool>| {
            assert_eq!(is_true(condition, &value), expected, "{condition}");
        };
        check("section.settings.on", Some(true));
        check("section.settings.off", Some(false));
        check("section.settings.image", Some(false));
        check("section.settings.title", None);
        check("section.settings.title != blank", Some(false));
        check("section.settings.title == blank", Some(true));
        check("section.settings.align == 'left'", Some(true));
        check("section.settings.align != \"left\"", Some(false));
        check("section.settings.size>2", Some(true));
        check("product.available", None);
        check("product.available and section.settings.off", Some(false));
        check("product.available or section.settings.on", Some(true));
        // From the right: on and (off or on).
        check("section.settings.on and section.settings.off or section.settings.on", Some(true));
        check("section.settings.off and section.settings.on or section.settings.on", Some(false));
        check("", None);
        check("section.settings.on | size", None);
        check("'unclosed", None);
        assert_eq!(is_case("section.settings.align", "'right', 'left'", &value), Some(true));
        assert_eq!(is_case("section.settings.align", "'right' or x", &value), None);
        assert_eq!(is_case("section.settings.align", "'right'", &value), Some(false));
    }
}
