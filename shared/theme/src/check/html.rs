//! A tolerant reader of the HTML between the Liquid of a file. It knows that only one branch of an `if` is printed.

use super::Notes;
use super::Severity::{Error, Info, Warning};
use super::items::Item;
use super::pairing::{Half, Pairing, VOID};
use crate::scan::liquid::{Token, TokenKind};
use crate::text::Span;

/// Where a piece of Liquid stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HtmlContext {
    Text,
    /// Inside a tag, outside of values.
    Head,
    /// Inside the value of an attribute.
    Value,
    Script,
    Style,
    Comment,
}

#[derive(Debug)]
pub struct Attribute {
    pub name: String,
    pub at: usize,
    pub value: Option<Span>,
}

#[derive(Debug)]
pub struct Element {
    pub name: String,
    pub at: usize,
    pub attributes: Vec<Attribute>,
    /// Whether Liquid outside of values may add attributes.
    pub has_liquid: bool,
    /// The branches around it: control and branch.
    pub branches: Vec<(u32, u32)>,
    /// The position of the innermost loop around it.
    pub in_loop: Option<usize>,
    /// Whether an `if`, or the `else` of a `case`, within that loop surrounds it.
    pub is_conditional_in_loop: bool,
    /// The values of the `when` around it.
    pub when: Option<String>,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name))
    }

    pub fn value<'a>(&self, text: &'a str, name: &str) -> Option<&'a str> {
        Some(self.attribute(name)?.value?.of(text))
    }
}

/// What the reader found.
#[derive(Debug, Default)]
pub struct Markup {
    pub elements: Vec<Element>,
    /// Bodies of scripts: their span, and the index of their element.
    pub scripts: Vec<(Span, Option<usize>)>,
    /// Bodies of `<style>` and `{% style %}`, in which Liquid works.
    pub styles: Vec<Span>,
    /// Bodies of `{% stylesheet %}`, in which Liquid does not work.
    pub stylesheets: Vec<Span>,
    /// Comments of HTML, without their first byte.
    pub comments: Vec<Span>,
    pub places: Vec<HtmlContext>,
    pub items: Vec<Item>,
    /// Whether something made the structure uncertain.
    pub is_odd: bool,
}

/// What the checks across files need of the markup. The elements themselves take several times as much memory as the text.
#[derive(Debug, Default)]
pub struct KeptMarkup {
    /// The values of the attribute `class`, each with the place of its element.
    pub classes: Box<[(Span, u32)]>,
    /// The addresses of scripts of other hosts, in elements.
    pub addresses: Box<[Span]>,
    /// Comments of HTML, without their first byte.
    pub comments: Box<[Span]>,
    /// Whether an input for the variant names its form.
    pub has_outer_variant: bool,
}

impl KeptMarkup {
    pub fn of(markup: Markup, text: &str) -> Self {
        let elements = || markup.elements.iter();
        let value =
            |element: &Element, name: &str| element.attribute(name).and_then(|attribute| attribute.value);
        let class = |element: &Element| Some((value(element, "class")?, element.at as u32));
        let scripts = elements().filter(|element| element.name == "script");
        let sources = scripts.filter_map(|element| value(element, "src"));
        let addresses = sources.filter(|source| source.of(text).contains("//")).collect();
        let has_outer_variant = elements()
            .any(|element| element.value(text, "name") == Some("id") && element.attribute("form").is_some());
        let classes = elements().filter_map(class).collect();
        Self { classes, addresses, comments: markup.comments.into(), has_outer_variant }
    }
}

struct Control {
    index: u32,
    branch: u32,
    is_loop: bool,
    at: usize,
    name: String,
    done: Vec<Vec<Item>>,
    has_else: bool,
    /// The values of the last `when`.
    when: String,
    /// What all conditions so far compare with values that are written out: `a` of `{% if a == 'x' %}`.
    compared: Option<String>,
}

/// What a condition compares with a text that is written out.
fn compared(condition: &str) -> Option<String> {
    let (left, right) = condition.split_once("==")?;
    let right = right.trim();
    let quote = right.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    // The next quote is the last sign, so nothing follows.
    (right[1..].find(quote)? + 2 == right.len()).then(|| left.trim().to_owned())
}

struct Reader<'a, 'n> {
    text: &'a str,
    bytes: &'a [u8],
    tokens: &'a [Token],
    next: usize,
    at: usize,
    markup: Markup,
    notes: &'n mut Notes,
    controls: Vec<Control>,
    count: u32,
    items: Vec<Vec<Item>>,
}

/// The deepest nesting of control tags for which elements are paired.
const MAX_NESTING: usize = 60;

pub fn read(text: &str, tokens: &[Token], notes: &mut Notes) -> Markup {
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        tokens,
        next: 0,
        at: 0,
        markup: Markup { places: vec![HtmlContext::Text; tokens.len()], ..Markup::default() },
        notes,
        controls: Vec::new(),
        count: 0,
        items: vec![Vec::new()],
    };
    reader.run();
    while let Some(control) = reader.controls.pop() {
        reader.markup.is_odd = true;
        reader.finish(control);
    }
    reader.markup.items = reader.items.pop().unwrap_or_default();
    reader.markup
}

/// Reports elements that are not paired, and returns those of which another file may have the other half.
pub fn pair(text: &str, markup: &Markup, is_snippet: bool, notes: &mut Notes) -> Vec<Half> {
    if markup.is_odd { Vec::new() } else { Pairing::new(text, notes, is_snippet).run(&markup.items) }
}

impl Reader<'_, '_> {
    fn item(&mut self, item: Item) {
        if let Some(items) = self.items.last_mut() {
            items.push(item);
        }
    }

    /// If Liquid stands here, moves past it and returns its token.
    fn liquid(&mut self, place: HtmlContext) -> Option<Option<Token>> {
        if self.bytes[self.at] != b'{' || !matches!(self.bytes.get(self.at + 1), Some(b'{' | b'%')) {
            return None;
        }
        while self.tokens.get(self.next).is_some_and(|token| (token.span.start as usize) < self.at) {
            self.next += 1;
        }
        if let Some(token) =
            self.tokens.get(self.next).copied().filter(|token| token.span.start as usize == self.at)
        {
            self.markup.places[self.next] = place;
            self.next += 1;
            self.at = (token.span.end as usize).max(self.at + 2);
            return Some(Some(token));
        }
        // `{% liquid %}`, whose lines are tokens of their own, or a piece without its end.
        let close = memchr::memmem::find(&self.bytes[self.at..], b"%}")
            .map_or(self.bytes.len(), |end| self.at + end + 2);
        while self.tokens.get(self.next).is_some_and(|token| (token.span.end as usize) <= close) {
            self.markup.places[self.next] = place;
            self.next += 1;
        }
        self.at = close;
        Some(None)
    }

    fn run(&mut self) {
        while self.at < self.bytes.len() {
            match self.liquid(HtmlContext::Text) {
                Some(Some(token)) => {
                    self.token(&token);
                    continue;
                }
                Some(None) => continue,
                None => {}
            }
            if self.bytes[self.at] == b'<' {
                self.angle();
            } else {
                let rest = &self.bytes[self.at + 1..];
                self.at += 1 + memchr::memchr2(b'<', b'{', rest).unwrap_or(rest.len());
            }
        }
    }

    fn token(&mut self, token: &Token) {
        let at = token.span.start as usize;
        match token.kind {
            TokenKind::Tag { name, markup } => match name.of(self.text) {
                word @ ("if" | "unless" | "case" | "for" | "tablerow" | "capture") => {
                    if self.controls.len() >= MAX_NESTING {
                        self.markup.is_odd = true;
                        return;
                    }
                    self.count += 1;
                    self.controls.push(Control {
                        index: self.count,
                        branch: 0,
                        is_loop: matches!(word, "for" | "tablerow"),
                        at,
                        name: word.to_owned(),
                        done: Vec::new(),
                        has_else: false,
                        when: String::new(),
                        compared: if word == "if" { compared(markup.of(self.text)) } else { None },
                    });
                    self.items.push(Vec::new());
                }
                word @ ("else" | "elsif" | "when") => {
                    let Some(control) = self.controls.last_mut() else { return };
                    control.branch += 1;
                    control.when =
                        if word == "when" { markup.of(self.text).to_owned() } else { String::new() };
                    control.has_else |= word == "else";
                    if word == "elsif" && control.compared != compared(markup.of(self.text)) {
                        control.compared = None;
                    }
                    let branch = std::mem::take(self.items.last_mut().expect("a control has items"));
                    // What stands before the first `when` is never printed.
                    if !(control.name == "case" && control.branch == 1) {
                        control.done.push(branch);
                    }
                }
                word @ ("endif" | "endunless" | "endcase" | "endfor" | "endtablerow" | "endcapture") => {
                    match self.controls.last() {
                        Some(control) if control.name == word[3..] => {
                            let control = self.controls.pop().expect("there is one");
                            self.finish(control);
                        }
                        _ => self.markup.is_odd = true,
                    }
                }
                "form" => self.item(Item::Open { name: "{% form %}".to_owned(), at }),
                "endform" => self.item(Item::Close { name: "{% form %}".to_owned(), at }),
                "style" => self.style(),
                _ => {}
            },
            TokenKind::Style { body } => self.markup.stylesheets.push(body),
            TokenKind::Script { body } => self.markup.scripts.push((body, None)),
            _ => {}
        }
    }

    fn finish(&mut self, control: Control) {
        let Control { at, is_loop, name, mut done, has_else, compared, .. } = control;
        done.push(self.items.pop().unwrap_or_default());
        if name == "capture" {
            // What is captured may be a part of an element.
            let opens = |item: &Item| matches!(item, Item::Open { .. });
            let closes = |item: &Item| matches!(item, Item::Close { .. });
            let items = done.iter().flatten();
            self.markup.is_odd |=
                items.clone().filter(|item| opens(item)).count() != items.filter(|item| closes(item)).count();
            return;
        }
        if is_loop {
            self.item(Item::Loop { body: done.swap_remove(0) });
        } else {
            // Conditions that compare one value with several texts name all of them, as a setting has a list of choices.
            let names_all = done.len() > 1 && (compared.is_some() || name == "case");
            if !has_else && !names_all {
                done.push(Vec::new());
            }
            self.item(Item::Branches { at, branches: done });
        }
    }

    /// The CSS of `{% style %}`.
    fn style(&mut self) {
        let start = self.at;
        while self.at < self.bytes.len() {
            let here = self.at;
            match self.liquid(HtmlContext::Style) {
                Some(Some(Token { kind: TokenKind::Tag { name, .. }, .. }))
                    if name.of(self.text) == "endstyle" =>
                {
                    self.markup.styles.push(Span::new(start, here));
                    return;
                }
                Some(_) => {}
                None => self.at += 1,
            }
        }
        self.markup.styles.push(Span::new(start, self.at));
    }

    fn angle(&mut self) {
        let start = self.at;
        let rest = &self.bytes[start..];
        if rest.starts_with(b"<!--") {
            self.comment();
            return;
        }
        match rest.get(1) {
            Some(b'/') => self.close_tag(),
            Some(b'!' | b'?') => {
                self.at += memchr::memchr(b'>', rest).map_or(rest.len(), |end| end + 1);
            }
            Some(byte) if byte.is_ascii_alphabetic() => self.open_tag(),
            Some(b'{') if matches!(rest.get(2), Some(b'{')) => self.open_tag(),
            Some(b'{') if matches!(rest.get(2), Some(b'%')) => {
                self.markup.is_odd = true; // a name that Liquid chooses
                self.at += 1;
            }
            _ => self.at += 1,
        }
    }

    fn comment(&mut self) {
        let start = self.at;
        self.at += 4;
        while self.at < self.bytes.len() {
            if self.bytes[self.at..].starts_with(b"-->") {
                self.markup.comments.push(Span::new(start + 1, self.at));
                self.at += 3;
                return;
            }
            // Liquid runs within comments, too.
            match self.liquid(HtmlContext::Comment) {
                Some(Some(Token { kind: TokenKind::Tag { .. }, .. })) => {}
                Some(_) => {}
                None => self.at += 1,
            }
        }
        self.notes.add(start, Error, "UnclosedElement", "an HTML comment has no `-->`");
    }

    /// The name of a tag, which Liquid may print.
    fn name(&mut self) -> String {
        let start = self.at;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b if b.is_ascii_whitespace() || matches!(b, b'>' | b'/' | b'<' | b'"' | b'\'' | b'=') => {
                    break;
                }
                b'{' => match self.liquid(HtmlContext::Head) {
                    Some(Some(Token { kind: TokenKind::Output { .. }, .. })) => {}
                    Some(_) => self.markup.is_odd = true,
                    None => self.at += 1,
                },
                _ => self.at += 1,
            }
        }
        let name = self.text.get(start..self.at).unwrap_or_default().to_ascii_lowercase();
        if name.contains("{{") {
            // `{{- tag }}` and `{{ tag -}}` print the same name.
            return name.replace("{{-", "{{").replace("-}}", "}}").replace(char::is_whitespace, "");
        }
        name
    }

    fn close_tag(&mut self) {
        let at = self.at;
        self.at += 2;
        let name = self.name();
        while self.at < self.bytes.len() && self.bytes[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'>') {
            self.at += 1;
        } else if name.contains("{%") {
            self.markup.is_odd = true; // a name that branches choose
        } else {
            let rest = &self.bytes[self.at..];
            let next = rest.iter().position(|byte| matches!(byte, b'<' | b'>' | b'{'));
            if let Some(end) = next.filter(|end| rest[*end] == b'>' && *end > 0) {
                let message = format!("`</{name}` has attributes, which browsers ignore");
                self.notes.add(at, Warning, "HtmlSyntax", message);
                self.at += end + 1;
            } else {
                self.notes.add(at, Error, "HtmlSyntax", format!("`</{name}` has no `>`"));
            }
        }
        if !name.is_empty() && !VOID.contains(&name.as_str()) {
            self.item(Item::Close { name, at });
        }
    }

    fn open_tag(&mut self) {
        let at = self.at;
        self.at += 1;
        let name = self.name();
        let mut element = Element {
            name: name.clone(),
            at,
            attributes: Vec::new(),
            has_liquid: false,
            branches: self.controls.iter().map(|control| (control.index, control.branch)).collect(),
            in_loop: self.controls.iter().rev().find(|control| control.is_loop).map(|control| control.at),
            is_conditional_in_loop: self
                .controls
                .iter()
                .rev()
                .take_while(|control| !control.is_loop)
                .any(|control| control.name != "case" || control.has_else),
            when: self
                .controls
                .iter()
                .rev()
                .find(|control| control.name == "case")
                .map(|control| control.when.clone()),
        };
        let is_self_closed = self.head(&mut element);
        let index = self.markup.elements.len();
        self.markup.elements.push(element);
        if is_self_closed || VOID.contains(&name.as_str()) {
            return;
        }
        if matches!(name.as_str(), "script" | "style" | "textarea" | "title") {
            self.raw(&name, index, at);
        } else {
            self.item(Item::Open { name, at });
        }
    }

    /// The attributes of a tag, and its end. Returns whether it closes itself.
    fn head(&mut self, element: &mut Element) -> bool {
        let mut last_value: Option<(usize, Span)> = None;
        let mut has_control = false;
        loop {
            let Some(&byte) = self.bytes.get(self.at) else {
                let at = last_value
                    .filter(|(_, value)| value.of(self.text).contains('<'))
                    .map_or(element.at, |(at, _)| at);
                self.notes.add(at, Error, "HtmlSyntax", format!("`<{}` has no `>`", element.name));
                self.markup.is_odd = true;
                return true;
            };
            if byte == b'{'
                && let Some(token) = self.liquid(HtmlContext::Head)
            {
                element.has_liquid = true;
                has_control |= !matches!(
                    token,
                    Some(Token { kind: TokenKind::Output { .. } | TokenKind::Comment { .. }, .. })
                );
                continue;
            }
            match byte {
                b if b.is_ascii_whitespace() => self.at += 1,
                b'>' => {
                    self.at += 1;
                    return false;
                }
                b'/' => {
                    self.at += 1;
                    if self.bytes.get(self.at) == Some(&b'>') {
                        self.at += 1;
                        return true;
                    }
                }
                b'"' | b'\'' => {
                    self.stray_quote(last_value, has_control);
                    self.at += 1;
                }
                b'<' => {
                    if has_control {
                        self.markup.is_odd = true;
                    } else {
                        let message = format!("`<{}` has no `>`", element.name);
                        self.notes.add(element.at, Error, "HtmlSyntax", message);
                    }
                    return false;
                }
                _ => {
                    let value = self.attribute(element, last_value, has_control);
                    last_value = value.or(last_value);
                }
            }
        }
    }

    fn stray_quote(&mut self, last: Option<(usize, Span)>, has_control: bool) {
        self.markup.is_odd = true;
        // With branches between quotes, a quote may close what another branch opened.
        if has_control {
            return;
        }
        // If the value before holds markup or another attribute, its own closing quote is missing.
        let wrong = last.filter(|(_, value)| {
            let text = value.of(self.text).trim_end();
            text.ends_with('=') || text.contains('<')
        });
        // A second quote behind a value is an attribute of its own for browsers, and takes nothing with it.
        let is_double = last.is_some_and(|(_, value)| value.end as usize + 1 == self.at)
            && self
                .bytes
                .get(self.at + 1)
                .is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/'));
        let severity = if is_double && wrong.is_none() { Warning } else { Error };
        let at = wrong.map_or(self.at, |(at, _)| at);
        self.notes.add(at, severity, "StrayQuote", "a quote in this tag has no partner");
    }

    fn attribute(
        &mut self,
        element: &mut Element,
        last: Option<(usize, Span)>,
        has_control: bool,
    ) -> Option<(usize, Span)> {
        let at = self.at;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b if b.is_ascii_whitespace() || matches!(b, b'=' | b'>' | b'/') => break,
                b'"' | b'\'' => {
                    self.stray_quote(last, has_control);
                    self.at += 1;
                }
                b'<' => break,
                b'{' => match self.liquid(HtmlContext::Head) {
                    Some(_) => {}
                    None => self.at += 1,
                },
                _ => self.at += 1,
            }
        }
        let name = self.text.get(at..self.at).unwrap_or_default().to_owned();
        let mut look = self.at;
        while self.bytes.get(look).is_some_and(u8::is_ascii_whitespace) {
            look += 1;
        }
        if self.bytes.get(look) != Some(&b'=') {
            if self.at == at {
                self.at += 1;
            } else {
                element.attributes.push(Attribute { name, at, value: None });
            }
            return None;
        }
        self.at = look + 1;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let value = match self.bytes.get(self.at) {
            Some(&quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let start = self.at;
                while self.at < self.bytes.len() && self.bytes[self.at] != quote {
                    if self.liquid(HtmlContext::Value).is_none() {
                        self.at += 1;
                    }
                }
                let end = self.at.min(self.bytes.len());
                self.at += 1;
                if end == self.bytes.len() {
                    let message = format!("the value of `{name}` has no closing quote");
                    self.notes.add(at, Error, "StrayQuote", message);
                    self.markup.is_odd = true;
                    self.at = end;
                }
                Span::new(start, end)
            }
            _ => {
                let start = self.at;
                while let Some(&byte) = self.bytes.get(self.at) {
                    if byte.is_ascii_whitespace() || byte == b'>' {
                        break;
                    }
                    if byte == b'"' || byte == b'\'' {
                        self.stray_quote(None, has_control);
                    }
                    if self.liquid(HtmlContext::Value).is_none() {
                        self.at += 1;
                    }
                }
                Span::new(start, self.at)
            }
        };
        element.attributes.push(Attribute { name, at, value: Some(value) });
        Some((at, value))
    }

    /// The content of an element in which no tags are read.
    fn raw(&mut self, name: &str, index: usize, open: usize) {
        let start = self.at;
        let place = match name {
            "script" => HtmlContext::Script,
            "style" => HtmlContext::Style,
            _ => HtmlContext::Text,
        };
        let end = format!("</{name}");
        let depth = self.controls.len();
        while self.at < self.bytes.len() {
            if self.bytes[self.at] == b'<'
                && self.bytes[self.at..]
                    .get(..end.len())
                    .is_some_and(|head| head.eq_ignore_ascii_case(end.as_bytes()))
            {
                let body = Span::new(start, self.at);
                match name {
                    "script" => self.markup.scripts.push((body, Some(index))),
                    "style" => self.markup.styles.push(body),
                    _ => {}
                }
                self.at += memchr::memchr(b'>', &self.bytes[self.at..])
                    .map_or(self.bytes.len() - self.at, |at| at + 1);
                return;
            }
            match self.liquid(place) {
                // Branches that begin within the script also end there; nothing is paired here.
                Some(_) => debug_assert_eq!(depth, self.controls.len()),
                None => self.at += 1,
            }
        }
        self.notes.add(open, Error, "UnclosedElement", format!("`<{name}>` has no end"));
        self.markup.is_odd = true;
    }
}

/// Checks single elements.
pub fn check_elements(text: &str, markup: &Markup, notes: &mut Notes) {
    const OLD: [&str; 11] = [
        "center", "font", "marquee", "blink", "big", "strike", "tt", "frame", "frameset", "acronym", "applet",
    ];
    for element in &markup.elements {
        let name = element.name.as_str();
        if OLD.contains(&name) {
            notes.add(element.at, Info, "DeprecatedElement", format!("the element `{name}` is deprecated"));
        }
        let mut names = rustc_hash::FxHashSet::default();
        for attribute in &element.attributes {
            let is_new = names.insert(attribute.name.to_ascii_lowercase());
            if !is_new && !attribute.name.contains('{') && !element.has_liquid {
                let message = format!("the attribute `{}` is there twice", attribute.name);
                notes.add(attribute.at, Warning, "DuplicateAttribute", message);
            }
        }
        match name {
            "script" => {
                let has = |name: &str| element.attribute(name).is_some();
                let is_module = element
                    .value(text, "type")
                    .is_some_and(|kind| kind != "text/javascript" && kind != "application/javascript");
                if has("src") && !has("defer") && !has("async") && !is_module && !element.has_liquid {
                    let message = "the script blocks rendering: add `defer` or `async`";
                    notes.add(element.at, Warning, "ParserBlockingScript", message);
                }
            }
            "img" if !element.has_liquid => {
                if element.attribute("alt").is_none() {
                    notes.add(element.at, Info, "ImgAlt", "the image has no `alt`");
                }
                if element.attribute("width").is_none() || element.attribute("height").is_none() {
                    notes.add(element.at, Info, "ImgWidthAndHeight", "the image has no `width` and `height`");
                }
            }
            _ => {}
        }
    }
}

/// Checks that ids are unique. `is_single` tells whether a block type, in quotes, occurs at most once in a section.
pub fn check_ids(text: &str, markup: &Markup, is_single: &dyn Fn(&str) -> bool, notes: &mut Notes) {
    let mut seen: rustc_hash::FxHashMap<&str, Vec<&Element>> = rustc_hash::FxHashMap::default();
    for element in &markup.elements {
        let Some(attribute) = element.attribute("id") else { continue };
        let Some(id) = attribute.value.map(|value| value.of(text)) else { continue };
        if id.is_empty() {
            continue;
        }
        if !id.contains('{') {
            let others = seen.entry(id).or_default();
            // Two branches of one condition are never printed together.
            let apart = |other: &Element| {
                element.branches.iter().any(|(control, branch)| {
                    other.branches.iter().any(|(other, theirs)| control == other && branch != theirs)
                })
            };
            if others.len() < 20
                && others.iter().any(|other| {
                    !apart(other)
                        && other.branches.len() == element.branches.len()
                        && other.branches == element.branches
                })
            {
                notes.add(attribute.at, Warning, "DuplicateId", format!("the id `{id}` is there twice"));
            }
            others.push(element);
        }
        let is_single = element.when.as_deref().is_some_and(is_single);
        if element.in_loop.is_some() && !element.is_conditional_in_loop && !is_single && !varies(id) {
            notes.add(attribute.at, Warning, "DuplicateId", format!("the id `{id}` is repeated by the loop"));
        }
    }
}

/// Whether an id differs from one round of a loop to the next: it prints something other than the section's own id.
fn varies(id: &str) -> bool {
    let mut rest = id;
    while let Some(start) = rest.find("{{") {
        let Some(end) = rest[start..].find("}}") else { return true };
        let inner = rest[start + 2..start + end].trim_matches(['-', ' ']);
        if !inner.starts_with("section.") {
            return true;
        }
        rest = &rest[start + end + 2..];
    }
    rest.contains("{%")
}

/// Checks that each block in a loop over the section's blocks can be selected in the theme editor.
pub fn check_blocks(text: &str, tokens: &[Token], markup: &Markup, notes: &mut Notes) {
    let name_of = |token: &Token| match token.kind {
        TokenKind::Tag { name, markup } => Some((name.of(text), markup.of(text))),
        _ => None,
    };
    let mut loops: Vec<(usize, usize, String)> = Vec::new(); // first token, last token, variable
    let mut open: Vec<(usize, Option<String>)> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let Some((name, rest)) = name_of(token) else { continue };
        match name {
            "for" => {
                let mut words = rest.split_whitespace();
                let (variable, is_in, list) = (words.next(), words.next(), words.next());
                let is_blocks = is_in == Some("in") && list == Some("section.blocks");
                open.push((index, variable.filter(|_| is_blocks).map(str::to_owned)));
            }
            "endfor" => {
                if let Some((start, Some(variable))) = open.pop() {
                    loops.push((start, index, variable));
                }
            }
            _ => {}
        }
    }
    let marked: Vec<bool> = loops
        .iter()
        .map(|(start, end, _)| {
            text[tokens[*start].span.end as usize..tokens[*end].span.start as usize]
                .contains("shopify_attributes")
        })
        .collect();
    for (number, (first, last, variable)) in loops.iter().enumerate() {
        let others_marked = marked.iter().enumerate().any(|(other, marked)| other != number && *marked);
        // Regions of the loop: what every block prints, and one for each type.
        let mut regions: Vec<(usize, usize, bool)> = Vec::new();
        let mut depth = 0;
        let mut case_depth = None;
        let mut start = tokens[*first].span.end as usize;
        let mut is_branch = false;
        let mut is_app = false;
        for token in &tokens[first + 1..=*last] {
            let Some((name, rest)) = name_of(token) else { continue };
            let here = token.span.start as usize;
            match name {
                "case" if case_depth.is_none() && rest.trim() == format!("{variable}.type") => {
                    case_depth = Some(depth);
                    regions.push((start, here, false));
                    is_app = true; // until the first `when`
                    is_branch = true;
                    start = token.span.end as usize;
                    depth += 1;
                }
                "when" | "else" if case_depth.is_some_and(|case| depth == case + 1) => {
                    if !is_app {
                        regions.push((start, here, true));
                    }
                    is_app = rest.contains("@app");
                    start = token.span.end as usize;
                }
                "endcase" if case_depth.is_some_and(|case| depth == case + 1) => {
                    if !is_app {
                        regions.push((start, here, true));
                    }
                    is_branch = false;
                    case_depth = None;
                    start = token.span.end as usize;
                    depth -= 1;
                }
                "if" | "unless" | "case" | "for" | "tablerow" => depth += 1,
                "endif" | "endunless" | "endcase" | "endfor" | "endtablerow" if depth > 0 => depth -= 1,
                _ => {}
            }
        }
        if !is_branch {
            regions.push((start, tokens[*last].span.start as usize, false));
        }
        let covers = |from: usize, to: usize| {
            let inside = text.get(from..to).unwrap_or_default();
            inside.contains("shopify_attributes")
                || inside.contains(&format!("render {variable}"))
                || inside.contains(&format!(": {variable}"))
                || inside.contains(&format!("for {variable}"))
                || inside.contains("content_for")
        };
        if regions.iter().any(|(from, to, is_branch)| !is_branch && covers(*from, *to)) {
            continue;
        }
        let has_branches = regions.iter().any(|(_, _, is_branch)| *is_branch);
        for (from, to, is_branch) in &regions {
            if (has_branches && !is_branch) || covers(*from, *to) || (others_marked && !marked[number]) {
                continue;
            }
            let element = markup.elements.iter().find(|element| {
                (*from..*to).contains(&element.at)
                    && !matches!(element.name.as_str(), "script" | "style" | "link" | "template")
            });
            if let Some(element) = element {
                notes.add(element.at, Warning, "MissingShopifyAttributes", format!("the editor can't select this block: print `{variable}.shopify_attributes` in its element"));
            }
        }
    }
}
