//! What Shopify accepts and what has exactly one right mend, for those who ask for it by the name of the finding.

use super::MendedPlace;
use super::places::Edit;
use super::stored;
use crate::check::json::{JsonError, Member, Node, Parsed, Value};
use crate::text::{Lines, Span};

/// A finding that is mended on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Also {
    /// A key that an object has twice, with the same value.
    DuplicateKey,
    /// A comma before the end of an object or array. Shopify reads it, and other programs refuse it.
    ValidJson,
    /// An `include` whose snippet shows the same with `render`.
    DeprecatedTag,
}

impl Also {
    /// The names of the findings.
    pub const NAMES: [&str; 3] =
        [Self::DuplicateKey.name(), Self::ValidJson.name(), Self::DeprecatedTag.name()];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DuplicateKey => "DuplicateKey",
            Self::ValidJson => "ValidJSON",
            Self::DeprecatedTag => "DeprecatedTag",
        }
    }

    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        [Self::DuplicateKey, Self::ValidJson, Self::DeprecatedTag]
            .into_iter()
            .find(|also| also.name() == name)
    }
}

/// The mends of JSON, in the order of their places.
pub fn read(path: &str, text: &str, also: &[Also]) -> Vec<(Edit, MendedPlace)> {
    let Some(Parsed { root, doubts }) = stored::of_file(path, text).filter(|_| !also.is_empty()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if also.contains(&Also::DuplicateKey) {
        duplicates(text, &root, &mut found);
    }
    if also.contains(&Also::ValidJson) {
        found.extend(doubts.iter().filter_map(|doubt| comma(text, doubt)));
    }
    let lines = Lines::new(text);
    for (edit, change) in &mut found {
        change.line = lines.line_of(edit.span.start);
    }
    found.sort_by_key(|(edit, _)| edit.span.start);
    let mut end = 0;
    found.retain(|(edit, _)| {
        let is_free = edit.span.start >= end;
        end = end.max(edit.span.end);
        is_free
    });
    found
}

fn deleted(span: Span, text: &str, also: Also, kind: &'static str, reason: String) -> (Edit, MendedPlace) {
    let change = MendedPlace {
        line: 0,
        code: also.name(),
        kind,
        before: span.of(text).trim_end().to_owned(),
        after: String::new(),
        reason,
        output: None,
    };
    (Edit { span, new: String::new() }, change)
}

fn comma(text: &str, doubt: &JsonError) -> Option<(Edit, MendedPlace)> {
    let is_comma = text.as_bytes().get(doubt.at) == Some(&b',');
    is_comma.then(|| {
        let span = Span::new(doubt.at, doubt.at + 1);
        deleted(span, text, Also::ValidJson, "ExtraComma", doubt.message.clone())
    })
}

/// The members that have a later one with the same key and value in their object. Only the last one counts.
fn duplicates(text: &str, node: &Node, found: &mut Vec<(Edit, MendedPlace)>) {
    let members = node.members();
    let mut last: rustc_hash::FxHashMap<&str, &Member> = rustc_hash::FxHashMap::default();
    for (index, member) in members.iter().enumerate().rev() {
        if let Some(later) = last.get(member.key.as_str()) {
            // Up to the next key, with the comma between them. A comment there is a reason to leave it.
            let next = members.get(index + 1).map_or(member.key_at, |next| next.key_at);
            let span = Span::new(member.key_at, next);
            let has_comment = ["//", "/*"].iter().any(|sign| span.of(text).contains(sign));
            if !has_comment && is_same(&member.node, &later.node) {
                let reason = format!("the key \"{}\" is there again below, with the same value", member.key);
                found.push(deleted(span, text, Also::DuplicateKey, "SameValue", reason));
                continue;
            }
        } else {
            last.insert(&member.key, member);
        }
        duplicates(text, &member.node, found);
    }
    node.items().iter().for_each(|item| duplicates(text, item, found));
}

fn is_same(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Number(one), Value::Number(other)) => one.to_bits() == other.to_bits(),
        (Value::String(one), Value::String(other)) => one == other,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_pair =
                |(one, other): (&Member, &Member)| one.key == other.key && is_same(&one.node, &other.node);
            one.len() == other.len() && one.iter().zip(other).all(is_pair)
        }
        _ => false,
    }
}
