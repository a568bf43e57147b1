//! A tolerant JSON reader: a flat tree with the position of every value.
//!
//! Comments and trailing commas are allowed, because the platform allows them. Of other errors the first is reported,
//! and all values that can still be recognised are kept.

use crate::text::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Object,
    Array,
    /// Its span is the text between the quotes, with escapes as written.
    String,
    /// A number, `true`, `false` or `null`.
    Scalar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The index of the object or array that contains the value. A root is its own parent.
    pub parent: u32,
    /// The key in an object; empty in an array.
    pub key: Span,
    pub kind: ValueKind,
    pub span: Span,
}

#[derive(Debug, Default)]
pub struct Tree {
    /// A parent comes before its children.
    pub nodes: Vec<Node>,
    /// The first position that is not valid JSON.
    pub invalid: Option<u32>,
}

impl Tree {
    /// Reads the part `within` of `text`.
    pub fn read(text: &str, within: Span) -> Self {
        let mut reader = Reader {
            bytes: text.as_bytes(),
            at: within.start as usize,
            end: within.end as usize,
            tree: Self::default(),
            open: Vec::new(),
        };
        reader.run();
        reader.tree
    }

    pub fn is_root(&self, index: usize) -> bool {
        self.nodes[index].parent as usize == index
    }

    /// The parent of `index`. `None` for a root.
    pub fn parent(&self, index: usize) -> Option<usize> {
        (!self.is_root(index)).then(|| self.nodes[index].parent as usize)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
    tree: Tree,
    /// Open objects and arrays.
    open: Vec<u32>,
}

impl Reader<'_> {
    fn run(&mut self) {
        let mut key = None;
        let mut pending: Option<Span> = None; // a string in an object that may become a key
        while self.at < self.end {
            let start = self.at;
            match self.bytes[start] {
                b'{' | b'[' => {
                    let kind = if self.bytes[start] == b'{' { ValueKind::Object } else { ValueKind::Array };
                    let node = self.push(kind, key.take(), Span::new(start, self.end));
                    self.open.push(node);
                    self.at += 1;
                }
                close @ (b'}' | b']') => {
                    self.flush(&mut pending);
                    self.close(close);
                    key = None;
                    self.at += 1;
                }
                b'"' => {
                    let string = self.string();
                    if self.in_object() && key.is_none() {
                        self.flush(&mut pending);
                        pending = Some(string);
                    } else {
                        self.push(ValueKind::String, key.take(), string);
                    }
                }
                b':' => {
                    match pending.take() {
                        Some(name) => key = Some(name),
                        None => self.invalid(start),
                    }
                    self.at += 1;
                }
                b',' => {
                    self.flush(&mut pending);
                    self.at += 1;
                }
                b'/' => self.comment(),
                b if b.is_ascii_whitespace() => self.at += 1,
                b if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+') => {
                    while self.at < self.end
                        && (self.bytes[self.at].is_ascii_alphanumeric()
                            || matches!(self.bytes[self.at], b'-' | b'+' | b'.' | b'_'))
                    {
                        self.at += 1;
                    }
                    if self.in_object() && key.is_none() {
                        self.invalid(start);
                    } else {
                        self.push(ValueKind::Scalar, key.take(), Span::new(start, self.at));
                    }
                }
                _ => {
                    self.invalid(start);
                    self.at += 1;
                }
            }
        }
        self.flush(&mut pending);
        if let Some(&open) = self.open.last() {
            let start = self.tree.nodes[open as usize].span.start as usize;
            self.invalid(start);
        }
    }

    fn in_object(&self) -> bool {
        self.open.last().is_some_and(|&node| self.tree.nodes[node as usize].kind == ValueKind::Object)
    }

    fn push(&mut self, kind: ValueKind, key: Option<Span>, span: Span) -> u32 {
        let index = self.tree.nodes.len() as u32;
        let parent = self.open.last().copied().unwrap_or(index);
        self.tree.nodes.push(Node { parent, key: key.unwrap_or_default(), kind, span });
        index
    }

    fn close(&mut self, close: u8) {
        let wanted = if close == b'}' { ValueKind::Object } else { ValueKind::Array };
        // A missing bracket is usually near. A deep search would take quadratic time on hostile input.
        let near = self.open.len().saturating_sub(64);
        let is_wanted = |&node: &u32| self.tree.nodes[node as usize].kind == wanted;
        let Some(depth) = self.open[near..].iter().rposition(is_wanted).map(|depth| depth + near) else {
            return self.invalid(self.at);
        };
        if depth + 1 != self.open.len() {
            self.invalid(self.at);
        }
        for node in self.open.drain(depth..) {
            self.tree.nodes[node as usize].span.end = self.at as u32 + 1;
        }
    }

    /// Handles a string in an object that is not followed by a colon.
    fn flush(&mut self, pending: &mut Option<Span>) {
        if let Some(string) = pending.take() {
            self.invalid(string.start as usize);
        }
    }

    /// A string ends at its closing quote, or at the end of its line if it has none.
    fn string(&mut self) -> Span {
        let start = self.at + 1;
        let mut at = start;
        while at < self.end {
            let Some(found) = memchr::memchr3(b'"', b'\\', b'\n', &self.bytes[at..self.end]) else {
                at = self.end;
                break;
            };
            at += found;
            match self.bytes[at] {
                b'\\' => at = (at + 2).min(self.end),
                b'"' => {
                    self.at = at + 1;
                    return Span::new(start, at);
                }
                _ => break,
            }
        }
        self.invalid(start - 1);
        self.at = at;
        // An escape may have moved the position into the middle of a character.
        let mut end = at;
        while end > start && end < self.bytes.len() && self.bytes[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        Span::new(start, end)
    }

    fn comment(&mut self) {
        let rest = &self.bytes[self.at..self.end];
        let length = if rest.starts_with(b"/*") {
            memchr::memmem::find(rest, b"*/").map(|at| at + 2)
        } else if rest.starts_with(b"//") {
            Some(memchr::memchr(b'\n', rest).unwrap_or(rest.len()))
        } else {
            None
        };
        match length {
            Some(length) => self.at += length,
            None => {
                self.invalid(self.at);
                // An unclosed comment takes the rest of the text, so that many of them still take linear time.
                self.at = if rest.starts_with(b"/*") { self.end } else { self.at + 1 };
            }
        }
    }

    fn invalid(&mut self, at: usize) {
        self.tree.invalid.get_or_insert(at as u32);
    }
}

/// Decodes the escapes of a string. Invalid escapes stay as they are.
pub fn unescape(raw: &str) -> String {
    if !raw.contains('\\') {
        return raw.to_owned();
    }
    serde_json::from_str(&format!("\"{raw}\"")).unwrap_or_else(|_| raw.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (String, Option<u32>) {
        let tree = Tree::read(text, Span::new(0, text.len()));
        let show = |node: &Node| {
            let value = if matches!(node.kind, ValueKind::Object | ValueKind::Array) {
                format!("{:?}", node.kind)
            } else {
                node.span.of(text).to_owned()
            };
            format!("{}^{}={value}", node.key.of(text), node.parent)
        };
        (tree.nodes.iter().map(show).collect::<Vec<_>>().join(" "), tree.invalid)
    }

    #[test]
    fn values_know_their_keys_and_parents() {
        let check = |text: &str, expected: &str, invalid: Option<u32>| {
            assert_eq!(shown(text), (expected.to_owned(), invalid), "{text:?}");
        };
        check("", "", None);
        check(r#"{"a": 1, "b": ["x", true]}"#, "^0=Object a^0=1 b^0=Array ^2=x ^2=true", None);
        check(r#"/* generated */ {"a": {"b": "c\"d"}, } // end"#, "^0=Object a^0=Object b^1=c\\\"d", None);
        check(r#"{"a": 1"#, "^0=Object a^0=1", Some(0));
        check(r#"{"a" 1, "b": 2}"#, "^0=Object b^0=2", Some(5));
        check(r#"{"a": [1}, "b": 2"#, "^0=Object a^0=Array ^1=1 ^3=b ^4=2", Some(8));
        check("{\"a\": \"open\n}", "^0=Object a^0=open", Some(6));
        check("]", "", Some(0));
        check("/* open", "", Some(0));
    }
}
