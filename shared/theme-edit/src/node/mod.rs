//! The named parts of a file: blocks of Liquid, settings and blocks of a schema, CSS rules, functions, elements.
//!
//! The scanners of the crate `theme` find them. Where it is not certain where a part ends, the part says so and can't be edited by name.

mod html;
mod liquid;
mod template;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use theme::path::FileKind;
use theme::scan::json::{Tree, ValueKind};
use theme::scan::{ScanResult, SymbolKind, css, schema, script};
use theme::text::{LineRange, Lines, Span};
use utoipa::ToSchema;

use crate::error::EditError;
use crate::kind::NodeKind;
use crate::text::Splice;

/// Names a part of a file in a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ThemeNodeRef)]
pub struct NodeRef {
    /// What it is.
    pub kind: NodeKind,
    /// Its name, as the outline shows it.
    pub name: String,
    /// The line where it begins, if several have the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// A named part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its name.
    pub name: String,
    /// Its lines.
    pub lines: LineRange,
    /// Its bytes.
    #[serde(skip)]
    pub(crate) span: Range<usize>,
    /// Why it is not certain where it ends.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub doubt: Option<String>,
}

/// Collects the parts of one file.
struct Finder<'a> {
    text: &'a str,
    lines: Lines,
    found: Vec<Node>,
}

impl Finder<'_> {
    fn add(&mut self, kind: NodeKind, name: &str, span: Range<usize>, doubt: Option<&String>) {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        if span.is_empty() || name.is_empty() {
            return;
        }
        let lines = self.lines.range_of(Span::new(span.start, span.end));
        self.found.push(Node { kind, name, lines, span, doubt: doubt.cloned() });
    }

    fn doubt_at(&self, found: &ScanResult, what: &str) -> Option<String> {
        let place = found.degraded.first()?;
        Some(format!("{what} (line {})", self.lines.line_of(place.offset)))
    }

    /// The rules of a stylesheet. `masked` is the file with blanks for Liquid.
    fn css(&mut self, masked: &str, within: Span) {
        let mut found = ScanResult::default();
        css::scan(masked, within, &mut found);
        let doubt = self.doubt_at(&found, "a brace, a string or a comment of the stylesheet has no end");
        for block in &found.blocks {
            let Some(name) = prelude(block.of(masked)) else { continue };
            self.add(NodeKind::CssRule, &name, block.start as usize..block.end as usize, doubt.as_ref());
        }
    }

    fn script(&mut self, masked: &str, within: Span) {
        let mut found = ScanResult::default();
        script::scan(masked, within, &mut found);
        let doubt = self.doubt_at(&found, "a bracket, a string or a comment of the script has no partner");
        for symbol in &found.symbols {
            let kind = match symbol.kind {
                SymbolKind::Function | SymbolKind::Method => NodeKind::JsFunction,
                SymbolKind::Class => NodeKind::JsClass,
                _ => continue,
            };
            let mut span = symbol.body.start as usize..symbol.body.end as usize;
            // The body of an arrow function without braces has no end that is certain.
            if !masked[span.clone()].ends_with('}') {
                continue;
            }
            let is_assigned = widen(masked, &mut span, within.start as usize);
            if is_assigned && masked[span.end..].starts_with(';') {
                span.end += 1;
            }
            self.add(kind, symbol.name.of(masked), span, doubt.as_ref());
        }
    }

    fn schema(&mut self, body: Span) {
        let mut found = ScanResult::default();
        schema::scan(self.text, body, &mut found);
        let invalid = Tree::read(self.text, body).invalid;
        let doubt =
            invalid.map(|at| format!("the schema is not valid JSON (line {})", self.lines.line_of(at)));
        for symbol in &found.symbols {
            let kind = match symbol.kind {
                SymbolKind::Setting => NodeKind::SchemaSetting,
                SymbolKind::BlockType => NodeKind::SchemaBlock,
                _ => continue,
            };
            let span = symbol.body.start as usize..symbol.body.end as usize;
            self.add(kind, symbol.name.of(self.text), span, doubt.as_ref());
        }
    }
}

/// Adds the words before a definition that belong to it, such as `async` and `const`. The result is whether it is assigned to a variable.
fn widen(text: &str, span: &mut Range<usize>, from: usize) -> bool {
    const WORDS: [&str; 10] =
        ["async", "static", "get", "set", "export", "default", "const", "let", "var", "function"];
    let mut is_assigned = false;
    for _ in 0..4 {
        let before = text[from..span.start].trim_end_matches([' ', '\t']);
        let start = before.rfind(|c: char| !c.is_ascii_alphabetic()).map_or(0, |at| at + 1);
        let word = &before[start..];
        let is_apart = before[..start].chars().next_back().is_none_or(|c| !matches!(c, '.' | '$' | '_'));
        if !is_apart || !WORDS.contains(&word) || from + before.len() == span.start {
            break;
        }
        is_assigned |= matches!(word, "const" | "let" | "var");
        span.start = from + start;
    }
    is_assigned
}

/// What stands before the brace that opens a rule, without comments.
fn prelude(rule: &str) -> Option<String> {
    let bytes = rule.as_bytes();
    let (mut at, mut name) = (0, String::new());
    let mut from = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                name.push_str(&rule[from..at]);
                at = rule[at + 2..].find("*/").map(|end| at + end + 4)?;
                from = at;
            }
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'#' if bytes.get(at + 1) == Some(&b'{') => at += rule[at..].find('}')? + 1,
            b'{' => {
                name.push_str(&rule[from..at]);
                return Some(name);
            }
            _ => at += 1,
        }
    }
    None
}

/// All named parts of a file, by the place where they begin. Of a file that is not code, there are none.
#[must_use]
pub fn nodes(path: &str, text: &str) -> Vec<Node> {
    let kind = FileKind::of(path);
    let whole = Span::new(0, text.len());
    let mut finder = Finder { text, lines: Lines::new(text), found: Vec::new() };
    match kind {
        FileKind::Layout | FileKind::Template | FileKind::Section | FileKind::Block | FileKind::Snippet => {
            template::read(&mut finder);
        }
        FileKind::Stylesheet | FileKind::Script => {
            let masked =
                if path.ends_with(".liquid") { liquid::blocks(&mut finder).masked } else { text.to_owned() };
            if kind == FileKind::Stylesheet {
                finder.css(&masked, whole);
            } else {
                finder.script(&masked, whole);
            }
        }
        FileKind::SettingsSchema => finder.schema(whole),
        _ => {}
    }
    finder.found.sort_by_key(|node| (node.span.start, std::cmp::Reverse(node.span.end)));
    finder.found
}

/// The one node of a file that a call means.
pub(crate) fn find(path: &str, text: &str, wanted: &NodeRef) -> Result<Node, EditError> {
    let all = nodes(path, text);
    let name = wanted.name.split_whitespace().collect::<Vec<_>>().join(" ");
    let (kind, path) = (wanted.kind, path.to_owned());
    let has_name = |node: &&Node| match kind {
        NodeKind::HtmlElement => html::is_selected(&node.name, &name),
        _ => node.name == name,
    };
    let of_kind: Vec<&Node> = all.iter().filter(|node| node.kind == kind).collect();
    let named: Vec<&Node> = of_kind
        .iter()
        .copied()
        .filter(has_name)
        .filter(|node| wanted.line.is_none_or(|line| node.lines.start == line))
        .collect();
    match named[..] {
        [] => {
            // Names that share a word are near.
            let words = |name: &str| -> Vec<String> {
                let parts = name.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2);
                parts.map(str::to_lowercase).collect()
            };
            let asked = words(&name);
            let near = of_kind
                .iter()
                .filter(|node| words(&node.name).iter().any(|word| asked.contains(word)))
                .map(|node| (node.name.clone(), node.lines.start));
            Err(EditError::NoSuchNode { path, kind, name, near: near.take(5).collect() })
        }
        [node] => match &node.doubt {
            None => Ok(node.clone()),
            Some(reason) => Err(EditError::UncertainNode { path, kind, name, reason: reason.clone() }),
        },
        _ => {
            let lines = named.iter().take(20).map(|node| node.lines).collect();
            Err(EditError::AmbiguousNode { path, kind, name, lines })
        }
    }
}

/// The splice that puts a new text in the place of a node.
pub(crate) fn replaced(path: &str, text: &str, node: &Node, content: &str) -> Result<Splice, EditError> {
    let bad = |reason: &str| EditError::BadNode { kind: node.kind, reason: reason.to_owned() };
    let content = content.trim_matches('\n');
    let line_start = text[..node.span.start].rfind('\n').map_or(0, |at| at + 1);
    let before = text[line_start..node.span.start].trim_start_matches('\u{feff}');
    let is_first = before.chars().all(|c| matches!(c, ' ' | '\t'));
    if content.trim().is_empty() {
        if node.kind.is_json() {
            return Err(bad("it is empty, and a comma would go with it: delete it with search_replace"));
        }
        let after = &text[node.span.end..];
        let blanks = after.len() - after.trim_start_matches([' ', '\t', '\r']).len();
        let mut range = node.span.clone();
        // Whole lines go with their ends.
        if is_first && after[blanks..].starts_with('\n') {
            range = node.span.start - before.len()..node.span.end + blanks + 1;
        }
        return Ok(Splice { range, new: Vec::new() });
    }
    balanced(path, node.kind, content).map_err(|reason| bad(&reason))?;
    let indent_of = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let own = &content[..indent_of(content)];
    let last = content.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    // A text that begins at the left margin, and ends there, was written without the indentation of the file.
    let shift = if is_first && own.is_empty() && indent_of(last) == 0 { before } else { "" };
    let mut new = String::with_capacity(content.len());
    for (index, line) in content[own.len()..].split('\n').enumerate() {
        if index > 0 {
            new.push('\n');
            if !line.trim().is_empty() {
                new.push_str(shift);
            }
        }
        new.push_str(line);
    }
    Ok(Splice { range: node.span.clone(), new: new.into_bytes() })
}

/// Whether a text can stand where a node of a kind stands: nothing of it is open at its end.
fn balanced(path: &str, kind: NodeKind, content: &str) -> Result<(), String> {
    let whole = Span::new(0, content.len());
    match kind {
        NodeKind::SchemaSetting | NodeKind::SchemaBlock => {
            let tree = Tree::read(content, whole);
            let roots: Vec<ValueKind> =
                (0..tree.nodes.len()).filter(|&at| tree.is_root(at)).map(|at| tree.nodes[at].kind).collect();
            if tree.invalid.is_some() || roots != [ValueKind::Object] {
                return Err("it must be one JSON object".to_owned());
            }
        }
        NodeKind::CssRule | NodeKind::JsFunction | NodeKind::JsClass => {
            let mut finder = Finder { text: content, lines: Lines::new(content), found: Vec::new() };
            let masked = if path.ends_with(".liquid") {
                liquid::blocks(&mut finder).masked
            } else {
                content.to_owned()
            };
            let mut found = ScanResult::default();
            if kind == NodeKind::CssRule {
                css::scan(&masked, whole, &mut found);
            } else {
                script::scan(&masked, whole, &mut found);
            }
            if let Some(place) = found.degraded.first() {
                return Err(format!(
                    "line {} opens or closes something alone",
                    finder.lines.line_of(place.offset)
                ));
            }
            if kind == NodeKind::CssRule && found.blocks.is_empty() {
                return Err("it has no rule".to_owned());
            }
        }
        NodeKind::LiquidBlock | NodeKind::HtmlElement => {
            let mut finder = Finder { text: content, lines: Lines::new(content), found: Vec::new() };
            template::read(&mut finder);
            let of_kind: Vec<&Node> = finder.found.iter().filter(|node| node.kind == kind).collect();
            if let Some(doubt) = finder.found.iter().find_map(|node| node.doubt.as_ref()) {
                return Err(doubt.clone());
            }
            if of_kind.is_empty() {
                return Err("it has none".to_owned());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, text: &str) -> Vec<String> {
        let show = |node: &Node| {
            let doubt = if node.doubt.is_some() { " ?" } else { "" };
            format!("{}-{} {} {}{doubt}", node.lines.start, node.lines.end, node.kind, node.name)
        };
        nodes(path, text).iter().map(show).collect()
    }

    #[test]
    fn the_parts_of_a_section_are_named() {
        let text = "<div id=\"pier\" class=\"card wide\">\n  {%- if a -%}\n    <p>x</p>\n  {%- endif -%}\n</div>\n\
            {% stylesheet %}\n.card,\n.wide { top: 0 }\n{% endstylesheet %}\n\
            {% javascript %}\nclass Pier { async moor(a) { b() } }\nconst f = () => { c() };\n{% endjavascript %}\n\
            {% schema %}\n{\"name\": \"Pier\", \"settings\": [{\"type\": \"text\", \"id\": \"title\"}],\n\
            \"blocks\": [{\"type\": \"boat\", \"name\": \"Boat\"}]}\n{% endschema %}\n";
        assert_eq!(
            shown("sections/pier.liquid", text),
            [
                "1-5 element div#pier.card.wide",
                "2-4 Liquid block if a",
                "3-3 element p",
                "6-9 Liquid block stylesheet",
                "7-8 CSS rule .card, .wide",
                "10-13 Liquid block javascript",
                "11-11 class Pier",
                "11-11 function moor",
                "12-12 function f",
                "14-17 Liquid block schema",
                "15-15 schema setting title",
                "16-16 schema block boat",
            ]
        );
    }

    #[test]
    fn what_has_no_certain_end_is_doubted() {
        assert_eq!(
            shown("snippets/a.liquid", "{% if a %}{% for b in c %}{% endif %}"),
            ["1-1 Liquid block if a ?"]
        );
        assert_eq!(
            shown("snippets/a.liquid", "{% if a %}<div>{% endif %}</div>"),
            ["1-1 Liquid block if a", "1-1 element div ?"]
        );
        assert_eq!(shown("assets/a.css", ".a { } .b {"), ["1-1 CSS rule .a ?"]);
        assert_eq!(shown("assets/a.js", "function a() {} f(]"), ["1-1 function a ?"]);
        assert_eq!(
            shown("snippets/a.liquid", "<ul><li>a<li>b</ul><br><input type=text>"),
            ["1-1 element ul", "1-1 element br", "1-1 element input"]
        );
    }

    fn edited(path: &str, text: &str, kind: NodeKind, name: &str, content: &str) -> Result<String, String> {
        let wanted = NodeRef { kind, name: name.to_owned(), line: None };
        let node = find(path, text, &wanted).map_err(|error| error.to_string())?;
        let splice = replaced(path, text, &node, content).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(crate::text::spliced(text.as_bytes(), &[splice])).unwrap())
    }

    #[test]
    fn a_part_is_replaced_with_the_indentation_of_the_file() {
        let css = "@media (a) {\n  .b { c: d }\n}\n";
        assert_eq!(
            edited("assets/a.css", css, NodeKind::CssRule, ".b", ".b {\n  c: e;\n}\n"),
            Ok("@media (a) {\n  .b {\n    c: e;\n  }\n}\n".to_owned())
        );
        assert_eq!(
            edited("assets/a.css", css, NodeKind::CssRule, ".b", ".b {\n    c: e;\n  }"),
            Ok("@media (a) {\n  .b {\n    c: e;\n  }\n}\n".to_owned())
        );
        assert_eq!(
            edited("assets/a.css", css, NodeKind::CssRule, ".b", ""),
            Ok("@media (a) {\n}\n".to_owned())
        );
        let refused = edited("assets/a.css", css, NodeKind::CssRule, ".b", ".b {");
        assert!(refused.unwrap_err().contains("opens or closes"));
        let js = "export const f = () => { a() };\nx.f = 1;\n";
        assert_eq!(
            edited("assets/a.js", js, NodeKind::JsFunction, "f", "export const f = () => { b() };"),
            Ok("export const f = () => { b() };\nx.f = 1;\n".to_owned())
        );
        assert_eq!(
            edited(
                "snippets/a.liquid",
                "<p class=\"a b\">x</p><p>y</p>",
                NodeKind::HtmlElement,
                ".b",
                "<p class=\"b\">z</p>"
            ),
            Ok("<p class=\"b\">z</p><p>y</p>".to_owned())
        );
    }
}
