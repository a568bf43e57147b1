//! Reads the links of HTML, as a browser does.

use std::convert::Infallible;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::names::{self, Place};
use super::target::{judge_link, judge_maybe};
use super::{Found, search, styles, wrong};

/// How HTML is read.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub depth: usize,
    /// Scripts are refused. In a text that may be Markdown, a script may stand in code.
    pub is_page: bool,
    /// Texts outside of tags are searched for hosts.
    pub has_texts: bool,
}

/// Elements whose content is a text for a browser, but not within SVG or MathML.
const RAW: [&[u8]; 10] = [
    b"script",
    b"style",
    b"textarea",
    b"title",
    b"iframe",
    b"noembed",
    b"noframes",
    b"noscript",
    b"plaintext",
    b"xmp",
];

/// The attributes that have a link, or whose names end so: `xlink:href`, `formaction`, `data-url`.
const LINKS: [&str; 18] = [
    "href",
    "src",
    "action",
    "background",
    "cite",
    "data",
    "poster",
    "url",
    "longdesc",
    "usemap",
    "codebase",
    "classid",
    "code",
    "manifest",
    "icon",
    "itemid",
    "object",
    "profile",
];

/// The attributes that have a list of links, or whose names end so.
const LISTS: [&str; 5] = ["srcset", "ping", "archive", "attributionsrc", "values"];

/// Adds the links of a page that are not permitted. What a browser reads within some elements depends on where they stand. So a page with
/// such elements is read twice: with their content as a text, and with their content as HTML.
pub(super) fn read(text: &str, reading: Reading, found: &mut Found) {
    let mut has_raw = false;
    for with_raw in [true, false] {
        let page = Page {
            found,
            reading,
            has_raw: &mut has_raw,
            element: Vec::new(),
            attribute: Vec::new(),
            style: None,
        };
        let mut emitter = CallbackEmitter::new(page);
        emitter.naively_switch_states(with_raw);
        let Ok(()) = Tokenizer::new_with_emitter(text, emitter).finish();
        if !has_raw {
            return;
        }
    }
}

struct Page<'a, 'b> {
    found: &'a mut Found<'b>,
    reading: Reading,
    has_raw: &'a mut bool,
    /// The name of the last element that began.
    element: Vec<u8>,
    /// The name of the last attribute.
    attribute: Vec<u8>,
    /// The style sheet that is open.
    style: Option<String>,
}

impl Callback<Infallible, ()> for Page<'_, '_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => self.start(name),
            CallbackEvent::AttributeName { name } => {
                self.attribute = name.to_ascii_lowercase();
                self.refuse_handler();
            }
            CallbackEvent::AttributeValue { value } => self.value(&String::from_utf8_lossy(value)),
            CallbackEvent::EndTag { name } => {
                self.attribute.clear();
                if local(name) == b"style" {
                    self.end_style();
                }
            }
            CallbackEvent::String { value } => {
                let text = String::from_utf8_lossy(value);
                if let Some(style) = &mut self.style {
                    style.push_str(&text);
                } else if self.reading.has_texts {
                    search::urls(&text, self.found);
                    names::search(&text, Place::Text, self.found);
                }
            }
            _ => {}
        }
        None
    }
}

impl Drop for Page<'_, '_> {
    /// A style sheet may stay open until the end.
    fn drop(&mut self) {
        self.end_style();
    }
}

/// A name without the prefix of its namespace.
fn local(name: &[u8]) -> &[u8] {
    name.rsplit(|byte| *byte == b':').next().unwrap_or(name)
}

impl Page<'_, '_> {
    fn start(&mut self, name: &[u8]) {
        self.element = local(name).to_ascii_lowercase();
        *self.has_raw |= RAW.contains(&self.element.as_slice());
        if self.element == b"style" {
            self.end_style();
            self.style = Some(String::new());
        }
        if self.element == b"script" && self.reading.is_page {
            self.found.add_again(wrong("<script>", "is a script, so its links are unknown"));
        }
    }

    fn end_style(&mut self) {
        if let Some(style) = self.style.take() {
            styles::read(&style, self.found);
        }
    }

    /// `onclick`. An element may have it with an empty value.
    fn refuse_handler(&mut self) {
        let is_handler =
            self.attribute.strip_prefix(b"on").is_some_and(|rest| rest.len() > 2 && rest.is_ascii());
        if is_handler && self.reading.is_page {
            let name = String::from_utf8_lossy(&self.attribute).into_owned();
            self.found.add_again(wrong(&name, "is a script, so its links are unknown"));
        }
    }

    fn value(&mut self, value: &str) {
        let (found, depth) = (&mut *self.found, self.reading.depth);
        let hosts = found.hosts;
        let name = String::from_utf8_lossy(local(&self.attribute)).into_owned();
        let ends_with = |known: &[&str]| known.iter().any(|known| name.ends_with(known));
        match name.as_str() {
            "style" => styles::read(value, found),
            "srcdoc" if depth == 0 => {
                read(value, Reading { depth: depth + 1, is_page: true, has_texts: true }, found);
            }
            "srcdoc" => found.add_again(wrong("srcdoc", "is a page in a text in another one")),
            "content" if is_refresh(value) => {
                // A browser follows what stands after the seconds, with or without `url=`.
                let link =
                    value.trim_start_matches(|char: char| char <= ' ' || ".,;0123456789".contains(char));
                found.add_again(judge_maybe(without_name(link), hosts));
            }
            _ if ends_with(&LISTS) => {
                for link in value.split([',', ' ', '\t', '\n', '\r', '\u{c}', ';']) {
                    found.add_again(judge_link(link, hosts));
                }
            }
            _ if ends_with(&LINKS) => found.add_again(judge_link(value, hosts)),
            _ => {
                found.add_again(judge_maybe(value, hosts));
                let ends = |char: char| char <= ' ' || ",;'\"(){}[]=".contains(char);
                for part in value.split(ends) {
                    found.add_again(judge_maybe(part, hosts));
                }
                // `fill="url(link)"`.
                if value.contains('(') {
                    styles::read(value, found);
                }
            }
        }
    }
}

/// Whether the value of `content` begins as that of a refresh does: with seconds, and a mark or white space after them.
fn is_refresh(value: &str) -> bool {
    let value = value.trim_start();
    let rest = value.trim_start_matches(|char: char| char.is_ascii_digit() || char == '.');
    rest.len() < value.len()
        && rest.starts_with(|char: char| char <= ' ' || char.is_whitespace() || matches!(char, ';' | ','))
}

/// Without `url=` and quotation marks.
fn without_name(link: &str) -> &str {
    let after = link.get(3..).filter(|_| link[..3].eq_ignore_ascii_case("url"));
    let link = after.and_then(|after| after.trim_start().strip_prefix('=')).unwrap_or(link);
    link.trim_start().trim_start_matches(['"', '\'']).trim_end_matches(['"', '\''])
}
