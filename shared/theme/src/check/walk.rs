//! One pass over the Liquid of a file: pairs its blocks, checks the grammar of its tags, and collects what it uses.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Notes;
use super::Severity::{Error, Info, Warning};
use super::expression::{Comparison, Filtered, Parser, Step, Value};
use super::facts::{ChainUse, Doc, Facts, KeyUse, RawText, Render, RenderKind, SettingUse};
use super::html::Place;
use super::names::{FORMS, NAMES, Type, arity};
use crate::path::FileKind;
use crate::scan::DegradedReason;
use crate::scan::liquid::{Token, TokenKind};

const SYNTAX: &str = "LiquidHTMLSyntaxError";

/// Tags with an end, except those whose content is not Liquid.
const BLOCKS: [&str; 10] =
    ["if", "unless", "case", "for", "tablerow", "capture", "form", "paginate", "style", "ifchanged"];

/// The deepest nesting that the platform renders.
const MAX_NESTING: usize = 100;

struct Open<'a> {
    name: &'a str,
    at: usize,
    indent: Option<usize>,
    has_else: bool,
    /// The variable of a loop, and its type.
    variable: Option<(&'a str, Type)>,
    /// The variable whose `type` a `case` compares.
    case_of_type: bool,
    has_when: bool,
    /// The block types that this branch is for.
    block_types: Option<Vec<String>>,
}

struct Pair {
    name: String,
    open: usize,
    close: usize,
    indents: Option<(usize, usize)>,
}

pub struct Walker<'a, 'n> {
    kind: FileKind,
    text: &'a str,
    notes: &'n mut Notes,
    facts: Facts,
    stack: Vec<Open<'a>>,
    pairs: Vec<Pair>,
    /// Variables that are assigned, how often, and their type.
    assigned: FxHashMap<&'a str, (u32, Type, usize)>,
    read: FxHashSet<&'a str>,
    doc_types: FxHashMap<String, Type>,
    /// Ends of blocks that follow, by name: positions, in order.
    ends: FxHashMap<&'a str, Vec<usize>>,
    opens: FxHashMap<&'a str, Vec<usize>>,
    is_broken: bool,
}

/// What the walk found.
pub struct Walked {
    pub facts: Facts,
    /// Whether blocks or tags are not paired, so that nothing can be said about the markup between them.
    pub is_broken: bool,
}

pub fn walk(
    kind: FileKind,
    text: &str,
    tokens: &[Token],
    degraded: &[(usize, DegradedReason)],
    places: &[Place],
    notes: &mut Notes,
) -> Walked {
    let mut walker = Walker {
        kind,
        text,
        notes,
        facts: Facts::default(),
        stack: Vec::new(),
        pairs: Vec::new(),
        assigned: FxHashMap::default(),
        read: FxHashSet::default(),
        doc_types: FxHashMap::default(),
        ends: FxHashMap::default(),
        opens: FxHashMap::default(),
        is_broken: false,
    };
    walker.unclosed_pieces(degraded);
    walker.definitions(tokens);
    for (index, token) in tokens.iter().enumerate() {
        walker.token(token, places.get(index).copied().unwrap_or(Place::Text));
    }
    walker.close_rest();
    walker.unused();
    Walked { is_broken: walker.is_broken, facts: walker.facts }
}

impl<'a> Walker<'a, '_> {
    fn unclosed_pieces(&mut self, degraded: &[(usize, DegradedReason)]) {
        for &(at, reason) in degraded {
            let message = match reason {
                DegradedReason::UnclosedTag => "a tag has no `%}`",
                DegradedReason::UnclosedOutput => "an output has no `}}`",
                DegradedReason::UnclosedBlock => {
                    let name = self.text[at..].trim_start_matches(['{', '%', '-', ' ']);
                    let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
                    let message = format!("`{}` has no `end{0}`", &name[..end]);
                    self.is_broken = true;
                    self.notes.add(at, Error, SYNTAX, message);
                    continue;
                }
                _ => continue,
            };
            self.is_broken = true;
            self.notes.add(at, Error, SYNTAX, message);
        }
    }

    /// Reads which variables the file defines. A variable may be read before the line that assigns it, in a loop.
    fn definitions(&mut self, tokens: &[Token]) {
        for token in tokens {
            match token.kind {
                TokenKind::Tag { name, markup } => {
                    let (name, markup, at) =
                        (name.of(self.text), markup.of(self.text), markup.start as usize);
                    match name {
                        "assign" | "capture" | "increment" | "decrement" => {
                            let mut parser = Parser::new(markup, at);
                            let word = match parser.value() {
                                Value::Path { root, .. } => Some(root),
                                Value::Text { text, .. } => Some(text),
                                _ => None,
                            };
                            if let Some(word) = word {
                                self.assigned
                                    .entry(word)
                                    .or_insert((0, Type::UNKNOWN, token.span.start as usize))
                                    .0 += 1;
                            }
                        }
                        "include" => self.facts.includes = true,
                        _ => {}
                    }
                    if let Some(ended) = name.strip_prefix("end") {
                        self.ends.entry(ended).or_default().push(token.span.start as usize);
                    } else if BLOCKS.contains(&name) {
                        self.opens.entry(name).or_default().push(token.span.start as usize);
                    }
                }
                TokenKind::Comment { body } => {
                    let head = token.span.of(self.text);
                    let head = head.trim_start_matches(['{', '%', '-', ' ', '\n', '\t', '\r']);
                    if head.starts_with("doc") && self.facts.doc.is_none() {
                        let doc = Doc::read(body.of(self.text), body.start as usize, self.notes);
                        for param in &doc.params {
                            self.doc_types.insert(param.name.clone(), param.kind_type());
                        }
                        self.facts.doc = Some(doc);
                    }
                }
                _ => {}
            }
        }
    }

    fn token(&mut self, token: &Token, place: Place) {
        let at = token.span.start as usize;
        match token.kind {
            TokenKind::Output { markup } => {
                let mut parser = Parser::new(markup.of(self.text), markup.start as usize);
                if parser.is_done() {
                    self.notes.add(at, Warning, "EmptyOutput", "an output has no value");
                    return;
                }
                let filtered = parser.filtered("the output");
                self.problems(&mut parser);
                self.filtered(&filtered);
                self.raw_text(&filtered, place, at);
            }
            TokenKind::Tag { name, markup } => {
                self.tag(at, name.of(self.text), markup.of(self.text), markup.start as usize);
            }
            TokenKind::Schema { .. } | TokenKind::Script { .. } | TokenKind::Style { .. } => {
                if let Some(open) = self.stack.last() {
                    let name = match token.kind {
                        TokenKind::Schema { .. } => "schema",
                        TokenKind::Script { .. } => "javascript",
                        _ => "stylesheet",
                    };
                    let message = format!("`{name}` must not stand within `{}`", open.name);
                    self.notes.add(at, Error, SYNTAX, message);
                }
            }
            TokenKind::Comment { body } => {
                let words = body.of(self.text).split(|c: char| !c.is_alphanumeric() && c != '_');
                self.facts.commented.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
            }
            TokenKind::Raw { .. } => {}
        }
    }

    fn problems(&mut self, parser: &mut Parser) {
        for problem in parser.problems.drain(..) {
            self.notes.add(problem.at, problem.severity, SYNTAX, problem.message);
        }
    }

    fn tag(&mut self, at: usize, name: &'a str, markup: &'a str, markup_at: usize) {
        let mut parser = Parser::new(markup, markup_at);
        match name {
            "if" | "unless" => {
                let condition = parser.condition(name);
                self.problems(&mut parser);
                self.comparisons(&condition);
                let types = if name == "if" { self.types_of(&condition) } else { None };
                self.open(name, at).block_types = types;
            }
            "elsif" => {
                let condition = parser.condition(name);
                self.problems(&mut parser);
                self.comparisons(&condition);
                let types = self.types_of(&condition);
                match self.stack.last_mut() {
                    Some(open) if matches!(open.name, "if" | "unless") => {
                        open.block_types = types;
                        if open.has_else {
                            self.notes.add(at, Warning, SYNTAX, "`elsif` after `else` is never reached");
                        }
                    }
                    _ => self.misplaced(at, "elsif", "if"),
                }
            }
            "else" => {
                if !parser.is_done() {
                    let message = if parser.take_word("if") {
                        "`else if` ignores its condition: use `elsif`"
                    } else {
                        "`else` takes no condition: use `elsif`"
                    };
                    self.notes.add(at, Warning, SYNTAX, message);
                }
                match self.stack.last_mut() {
                    Some(open) if matches!(open.name, "if" | "unless" | "case" | "for" | "tablerow") => {
                        open.block_types = None;
                        if open.has_else {
                            self.notes.add(at, Warning, SYNTAX, "there is an `else` already");
                        }
                        open.has_else = true;
                    }
                    _ => self.misplaced(at, "else", "if"),
                }
            }
            "case" => {
                if parser.is_done() {
                    self.notes.add(at, Error, SYNTAX, "`case` has no value");
                }
                let value = parser.value();
                if parser.problems.is_empty() && !parser.is_done() {
                    parser.finish("`case`");
                }
                self.problems(&mut parser);
                self.value(&value);
                let is_type = self.is_block_type(&value);
                self.open(name, at).case_of_type = is_type;
            }
            "when" => self.when(at, parser),
            "for" | "tablerow" => self.for_loop(at, name, parser),
            "assign" => self.assign(at, parser, markup),
            "capture" => {
                if parser.is_done() {
                    self.notes.add(at, Error, SYNTAX, "`capture` has no name");
                } else {
                    parser.value();
                    parser.finish("`capture`");
                    self.problems(&mut parser);
                }
                self.open(name, at);
            }
            "form" => self.form(at, parser, name),
            "paginate" => self.paginate(at, parser, name),
            "style" | "ifchanged" => {
                self.open(name, at);
            }
            "echo" => {
                if parser.is_done() {
                    self.notes.add(at, Warning, "EmptyOutput", "`echo` has no value");
                    return;
                }
                let filtered = parser.filtered("`echo`");
                self.problems(&mut parser);
                self.filtered(&filtered);
            }
            "render" | "include" => self.render(at, name, parser),
            "section" | "sections" => self.section(at, name, parser),
            "content_for" => self.content_for(at, parser),
            "layout" => match parser.value() {
                Value::Text { text, .. } => self.push_render(RenderKind::Layout, text, at),
                Value::Missing => self.notes.add(at, Error, SYNTAX, "`layout` has no name"),
                Value::Path { root: "none", .. } => {}
                value => self.value(&value),
            },
            "cycle" => {
                if parser.is_done() {
                    self.notes.add(at, Error, SYNTAX, "`cycle` has no values");
                }
                while !parser.is_done() {
                    let value = parser.value();
                    self.value(&value);
                    if !parser.take_mark(",") && !parser.take_mark(":") {
                        break;
                    }
                }
            }
            "increment" | "decrement" => {
                if parser.is_done() {
                    self.notes.add(at, Error, SYNTAX, format!("`{name}` has no variable"));
                }
            }
            "break" | "continue" | "liquid" | "#" | "comment" | "raw" | "doc" | "schema" | "stylesheet"
            | "javascript" => {}
            "" => {
                // `{% %}` does nothing. Anything else that begins without a letter is not a tag.
                if !markup.is_empty() {
                    let message = format!("a tag begins with a name, not with `{}`", first_word(markup));
                    self.notes.add(at, Error, SYNTAX, message);
                }
            }
            _ => self.other(at, name, markup),
        }
    }

    fn other(&mut self, at: usize, name: &'a str, markup: &str) {
        if let Some(ended) = name.strip_prefix("end")
            && (BLOCKS.contains(&ended)
                || ["comment", "raw", "schema", "stylesheet", "javascript", "doc"].contains(&ended))
        {
            self.end(at, ended);
            return;
        }
        if NAMES.tags.contains(name) {
            return;
        }
        let lower = name.to_ascii_lowercase();
        let message = match lower.as_str() {
            "elseif" | "elif" | "elselif" | "elsif" => format!("`{name}` is not a tag: use `elsif`"),
            "end" => {
                let open = self.stack.last().map_or("if", |open| open.name);
                format!("`end {}` is not a tag: use `end{open}`", first_word(markup))
                    .replace("end ` ", "end` ")
            }
            _ => format!("`{name}` is not a tag of Liquid"),
        };
        if ["end", "endfi", "endfor_", "fi", "endeach", "endunles"].contains(&lower.as_str())
            || lower.starts_with("end")
        {
            // It stands for the end of the innermost block, so that one mistake gives one finding.
            self.is_broken = true;
            self.stack.pop();
        }
        if !matches!(lower.as_str(), "elseif" | "elif") {
            self.is_broken |= lower.starts_with("end");
        }
        self.notes.add(at, Error, SYNTAX, message);
    }

    fn misplaced(&mut self, at: usize, name: &str, owner: &str) {
        self.is_broken = true;
        let message = match self.stack.last() {
            Some(open) => format!("`{name}` does not belong to `{}`", open.name),
            None => format!("`{name}` stands outside of any `{owner}`"),
        };
        self.notes.add(at, Error, SYNTAX, message);
    }

    /// The width of the blanks before a tag, if the tag begins its line.
    fn indent(&self, at: usize) -> Option<usize> {
        super::indent_of(self.text.as_bytes(), at)
    }

    fn open(&mut self, name: &'a str, at: usize) -> &mut Open<'a> {
        if self.stack.len() >= MAX_NESTING {
            self.is_broken = true;
            self.notes.add(at, Error, SYNTAX, format!("tags are nested deeper than {MAX_NESTING} levels"));
            self.stack.pop();
        }
        let indent = self.indent(at);
        self.stack.push(Open {
            name,
            at,
            indent,
            has_else: false,
            variable: None,
            case_of_type: false,
            has_when: false,
            block_types: None,
        });
        self.stack.last_mut().expect("one was pushed")
    }

    fn end(&mut self, at: usize, name: &'a str) {
        if self.notes.is_full() {
            (self.is_broken, self.notes.is_cut) = (true, true);
            return; // a text of ends only, each of which would look back
        }
        match self.stack.iter().rposition(|open| open.name == name) {
            Some(index) if index + 1 == self.stack.len() => {
                let open = self.stack.pop().expect("it is there");
                self.pair(&open, at);
            }
            Some(index) => {
                self.is_broken = true;
                let inner = self.stack[index + 1..].last().expect("it is not the last");
                // How many ends of the inner block follow that no later opening explains.
                let rest =
                    self.ends.get(inner.name).map_or(0, |ends| ends.iter().filter(|&&end| end > at).count());
                let begun = self
                    .opens
                    .get(inner.name)
                    .map_or(0, |opens| opens.iter().filter(|&&open| open > at).count());
                let below = self.stack[..index].iter().filter(|open| open.name == inner.name).count();
                if rest > begun + below {
                    let message = format!("`end{name}` stands before the end of `{}`", inner.name);
                    self.notes.add(at, Error, SYNTAX, message);
                    self.stack.remove(index);
                    return;
                }
                let rest: Vec<Open> = self.stack.drain(index + 1..).collect();
                for open in rest.iter().rev() {
                    self.unclosed(open);
                }
                let open = self.stack.pop().expect("it is there");
                self.pair(&open, at);
            }
            None => {
                self.is_broken = true;
                // If an opening was lost, an outer block was closed by the end of an inner one, further to the right.
                let culprit = self
                    .pairs
                    .iter()
                    .filter(|pair| {
                        pair.name == name && pair.indents.is_some_and(|(open, close)| close > open)
                    })
                    .map(|pair| pair.close)
                    .min();
                self.notes.add(culprit.unwrap_or(at), Error, SYNTAX, format!("`end{name}` has no `{name}`"));
            }
        }
    }

    fn pair(&mut self, open: &Open<'a>, close: usize) {
        let indents = open.indent.zip(self.indent(close));
        self.pairs.push(Pair { name: open.name.to_owned(), open: open.at, close, indents });
        if open.name == "case" && !open.has_when {
            self.notes.add(open.at, Warning, SYNTAX, "`case` has no `when`");
        }
    }

    /// Reports a block without its end. If an inner block of the same kind ends further to the left than it begins,
    /// the end is missing there.
    fn unclosed(&mut self, open: &Open<'a>) {
        self.is_broken = true;
        let culprit = self
            .pairs
            .iter()
            .filter(|pair| pair.name == open.name && pair.open > open.at)
            .filter(|pair| pair.indents.is_some_and(|(open, close)| close < open))
            .map(|pair| pair.open)
            .max();
        let message = format!("`{}` has no `end{0}`", open.name);
        self.notes.add(culprit.unwrap_or(open.at), Error, SYNTAX, message);
    }

    fn close_rest(&mut self) {
        for open in std::mem::take(&mut self.stack).iter().rev() {
            self.unclosed(open);
        }
    }

    fn when(&mut self, at: usize, mut parser: Parser<'a>) {
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

    fn for_loop(&mut self, at: usize, name: &'a str, mut parser: Parser<'a>) {
        let variable = parser.word();
        let mut element = Type::UNKNOWN;
        match variable {
            None => self.notes.add(at, Error, SYNTAX, format!("`{name}` has no variable")),
            Some(_) if !parser.take_word("in") => {
                self.notes.add(at, Error, SYNTAX, format!("`{name}` lacks `in`: `{name} item in list`"));
            }
            Some(_) => {
                let here = parser.here();
                let value = parser.value();
                if matches!(value, Value::Missing) {
                    self.notes.add(here, Error, SYNTAX, format!("`{name}` has nothing to loop over"));
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
                            self.notes.add(
                                option_at,
                                Warning,
                                SYNTAX,
                                format!("`{name}` has no option `{option}`"),
                            );
                        }
                        let value = parser.value();
                        if matches!(value, Value::Missing) {
                            self.notes.add(
                                option_at,
                                Warning,
                                SYNTAX,
                                format!("the option `{option}` has no value"),
                            );
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
                            self.notes.add(here, Warning, SYNTAX, message);
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

    fn assign(&mut self, at: usize, mut parser: Parser<'a>, markup: &'a str) {
        let target = parser.value();
        let name = match target {
            Value::Path { root, .. } => root,
            Value::Missing => {
                self.notes.add(at, Error, SYNTAX, "`assign` has no variable");
                return;
            }
            _ => "",
        };
        if !parser.take_mark("=") {
            let severity = if markup.contains('=') { Warning } else { Error };
            let message = if markup.contains("==") {
                "`assign` takes one `=`"
            } else if markup.contains("+=") || markup.contains("-=") {
                "`assign` has no `+=`: use the filter `plus`"
            } else {
                "`assign` lacks its `=`"
            };
            self.notes.add(at, severity, SYNTAX, message);
            return;
        }
        if parser.is_done() {
            self.notes.add(at, Error, SYNTAX, "`assign` has no value");
            return;
        }
        let filtered = parser.filtered("`assign`");
        self.problems(&mut parser);
        self.filtered(&filtered);
        if let Some((times, kind, _)) = self.assigned.get(name)
            && *times == 1
            && !kind.is_known()
        {
            let kind = self.type_of_filtered(&filtered);
            if let Some(entry) = self.assigned.get_mut(name) {
                entry.1 = kind;
            }
        }
    }

    fn form(&mut self, at: usize, mut parser: Parser<'a>, name: &'a str) {
        match parser.value() {
            Value::Text { text, at: text_at } => {
                if !FORMS.contains(&text) {
                    self.notes.add(
                        text_at,
                        Error,
                        "UnknownForm",
                        format!("there is no form of the type `{text}`"),
                    );
                }
                if text == "product" {
                    self.facts.product_forms.push(at);
                }
            }
            Value::Missing => self.notes.add(at, Error, SYNTAX, "`form` has no type"),
            value => self.value(&value),
        }
        while parser.take_mark(",") {
            let _ = parser.name_with_colon();
            let value = parser.value();
            self.value(&value);
        }
        if parser.problems.is_empty() {
            parser.finish("`form`");
        }
        self.problems(&mut parser);
        self.open(name, at);
    }

    fn paginate(&mut self, at: usize, mut parser: Parser<'a>, name: &'a str) {
        let list = parser.value();
        if matches!(list, Value::Missing) {
            self.notes.add(at, Error, SYNTAX, "`paginate` has no list");
        } else if !parser.take_word("by") {
            self.notes.add(at, Error, SYNTAX, "`paginate` lacks `by`");
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
                Value::Missing => self.notes.add(at, Error, SYNTAX, "`paginate` has no page size"),
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

    fn render(&mut self, at: usize, name: &'a str, mut parser: Parser<'a>) {
        let kind = if name == "render" { RenderKind::Render } else { RenderKind::Include };
        if name == "include" {
            self.notes.add(at, Info, "DeprecatedTag", "`include` is deprecated: use `render`");
        }
        let mut render = Render { kind, name: None, at, arguments: Vec::new(), alias: None, is_open: false };
        match parser.value() {
            Value::Text { text, .. } => {
                render.name = Some(text.to_owned());
                if text.trim().is_empty() {
                    self.notes.add(at, Error, SYNTAX, format!("`{name}` has an empty name"));
                    render.name = None;
                }
            }
            Value::Missing => self.notes.add(at, Error, SYNTAX, format!("`{name}` has no name")),
            value => {
                if let Value::Path { root, steps, .. } = &value
                    && name == "render"
                    && *root != "block"
                    && self.type_of(root).0.name != "block"
                    && (steps.is_empty() && !self.is_defined(root))
                {
                    self.notes.add(
                        at,
                        Error,
                        SYNTAX,
                        format!("`render` needs a name in quotes: `render '{root}'`"),
                    );
                }
                self.value(&value);
                render.is_open = true;
            }
        }
        for word in ["with", "for"] {
            if parser.take_word(word) {
                let value = parser.value();
                if matches!(value, Value::Missing) {
                    self.notes.add(at, Error, SYNTAX, format!("`{word}` has no value"));
                }
                let kind = if word == "for" { self.element_of(&value) } else { self.type_of_value(&value) };
                self.value(&value);
                let alias = if parser.take_word("as") { parser.word().map(|(alias, _)| alias) } else { None };
                let alias = alias.map(str::to_owned).or_else(|| render.name.clone()).unwrap_or_default();
                render.alias = Some((alias, kind));
            }
        }
        let mut seen = FxHashSet::default();
        loop {
            parser.take_mark(",");
            let Some((argument, argument_at)) = parser.name_with_colon() else { break };
            let value = parser.value();
            if matches!(value, Value::Missing) {
                self.notes.add(
                    argument_at,
                    Warning,
                    SYNTAX,
                    format!("the argument `{argument}` has no value"),
                );
            }
            if !seen.insert(argument) {
                self.notes.add(
                    argument_at,
                    Warning,
                    "DuplicateRenderSnippetArguments",
                    format!("the argument `{argument}` is there twice"),
                );
            }
            let kind = self.type_of_value(&value);
            render.arguments.push((argument.to_owned(), kind, argument_at));
            self.value(&value);
        }
        if parser.problems.is_empty() && !parser.is_done() {
            let here = parser.here();
            let message = match parser.word() {
                Some((word, _)) if parser.take_mark("=") => {
                    format!("an argument is written `{word}: value`, not `{word} = value`")
                }
                Some((word, _)) => format!("`{name}` ignores `{word}`: an argument is written `name: value`"),
                None if parser.take_mark("|") => {
                    format!("a filter does not work in `{name}`: assign the value first")
                }
                None => format!("`{name}` ignores the rest of its arguments"),
            };
            self.notes.add(here, Warning, SYNTAX, message);
        }
        self.problems(&mut parser);
        self.facts.renders.push(render);
    }

    fn push_render(&mut self, kind: RenderKind, name: &str, at: usize) {
        self.facts.renders.push(Render {
            kind,
            name: Some(name.to_owned()),
            at,
            arguments: Vec::new(),
            alias: None,
            is_open: false,
        });
    }

    fn section(&mut self, at: usize, name: &'a str, mut parser: Parser<'a>) {
        let kind = if name == "section" { RenderKind::Section } else { RenderKind::Group };
        match parser.value() {
            Value::Text { text, .. } => self.push_render(kind, text, at),
            _ => self.notes.add(at, Error, SYNTAX, format!("`{name}` needs a name in quotes")),
        }
    }

    fn content_for(&mut self, at: usize, mut parser: Parser<'a>) {
        let what = match parser.value() {
            Value::Text { text, .. } => text,
            _ => {
                self.notes.add(at, Error, SYNTAX, "`content_for` needs 'blocks' or 'block'");
                return;
            }
        };
        let (mut kind, mut id) = (None, None);
        while parser.take_mark(",") {
            // Names such as `closest.product` are arguments, too.
            let mut word = parser.name_with_colon();
            if word.is_none() {
                let value = parser.value();
                if matches!(value, Value::Missing) {
                    break;
                }
                word = parser.take_mark(":").then_some(("", at));
            }
            let value = parser.value();
            match (word.map(|(word, _)| word), &value) {
                (Some("type"), Value::Text { text, .. }) => kind = Some(Some(*text)),
                (Some("type"), _) => kind = Some(None),
                (Some("id"), Value::Text { text, .. }) => id = Some(Some(*text)),
                (Some("id"), _) => id = Some(None),
                _ => {}
            }
            self.value(&value);
        }
        match what {
            "blocks" => {
                self.facts.content_for_blocks += 1;
                if self.facts.content_for_blocks == 2 {
                    self.notes.add(
                        at,
                        Warning,
                        "DuplicateContentForBlocks",
                        "`content_for 'blocks'` is there twice",
                    );
                }
            }
            "block" => {
                self.facts.has_static_blocks = true;
                for (name, given) in [("type", kind.is_some()), ("id", id.is_some())] {
                    if !given {
                        self.notes.add(
                            at,
                            Error,
                            "MissingContentForArguments",
                            format!("`content_for 'block'` lacks the argument `{name}`"),
                        );
                    }
                }
                if let Some(Some(name)) = kind {
                    self.push_render(RenderKind::Block, name, at);
                }
                if let Some(Some(id)) = id {
                    // Two branches of a condition may print the same block.
                    if self.stack.is_empty() && self.facts.static_ids.iter().any(|other| other == id) {
                        self.notes.add(
                            at,
                            Error,
                            "UniqueStaticBlockId",
                            format!("the id `{id}` of a static block is there twice"),
                        );
                    }
                    if self.stack.is_empty() {
                        self.facts.static_ids.push(id.to_owned());
                    }
                }
            }
            other => self.notes.add(
                at,
                Error,
                SYNTAX,
                format!("`content_for` knows 'blocks' and 'block', not '{other}'"),
            ),
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

    fn filtered(&mut self, filtered: &Filtered<'a>) {
        self.value(&filtered.value);
        for filter in &filtered.filters {
            self.filter(filter.name, filter.at);
            let given = filter.arguments.len();
            if let Some((least, most)) = arity(filter.name)
                && !filter.is_odd
                && !(least..=most).contains(&given)
            {
                let needs = match (least, most) {
                    (0, 0) => "no argument".to_owned(),
                    (1, 1) => "one argument".to_owned(),
                    (least, most) if least == most => format!("{least} arguments"),
                    (least, most) => format!("{least} to {most} arguments"),
                };
                self.notes.add(
                    filter.at,
                    Error,
                    "FilterArguments",
                    format!("the filter `{}` takes {needs}, not {given}", filter.name),
                );
            }
            if filter.name == "image_url" && !filter.is_odd {
                self.image_url(filter);
            }
            for value in filter.arguments.iter().chain(filter.named.iter().map(|(_, value)| value)) {
                self.value(value);
            }
        }
        let Value::Text { text, at } = filtered.value else { return };
        match filtered.filters.first() {
            Some(first) if matches!(first.name, "t" | "translate") => {
                let named = first.named.iter().map(|(name, _)| (*name).to_owned()).collect();
                self.facts.keys.push(KeyUse { key: text.to_owned(), at, named });
            }
            Some(first) if matches!(first.name, "asset_url" | "inline_asset_content") => {
                self.facts.assets.push((text.to_owned(), at));
            }
            _ => {}
        }
    }

    fn image_url(&mut self, filter: &super::expression::Filter<'a>) {
        const KNOWN: [&str; 6] = ["width", "height", "crop", "format", "pad_color", "quality"];
        for (name, value) in &filter.named {
            if !KNOWN.contains(name) {
                self.notes.add(
                    filter.at,
                    Warning,
                    "FilterArguments",
                    format!("the filter `image_url` has no argument `{name}`"),
                );
            }
            if let (true, Value::Number { text }) = (matches!(*name, "width" | "height"), value)
                && text.parse::<f64>().is_ok_and(|size| !(1.0..=5760.0).contains(&size))
            {
                self.notes.add(
                    filter.at,
                    Error,
                    "FilterArguments",
                    format!("the {name} of `image_url` is 1 to 5760, not {text}"),
                );
            }
        }
    }

    fn filter(&mut self, name: &'a str, at: usize) {
        if !NAMES.filters.contains(name) {
            self.notes.add(at, Error, "UnknownFilter", format!("there is no filter `{name}`"));
        } else if name == "script_tag" {
            self.notes.add(
                at,
                Warning,
                "ParserBlockingScript",
                "the script of `script_tag` blocks rendering: use an element with `defer`",
            );
        } else if NAMES.deprecated_filters.contains(name) {
            self.notes.add(at, Info, "DeprecatedFilter", format!("the filter `{name}` is deprecated"));
        }
    }

    /// Records everything that a value reads.
    fn value(&mut self, value: &Value<'a>) {
        match value {
            Value::Path { root, at, steps } => self.path(root, *at, steps),
            Value::Range(ends) => {
                self.value(&ends.0);
                self.value(&ends.1);
            }
            Value::Text { text, .. } => {
                self.facts.literals.extend(text.split_whitespace().map(str::to_owned));
            }
            Value::Number { .. } | Value::Literal | Value::Missing => {}
        }
    }

    fn path(&mut self, root: &'a str, at: usize, steps: &[Step<'a>]) {
        self.read.insert(root);
        self.facts.words.insert(root.to_owned());
        for step in steps {
            if let Step::Index(value) = step {
                self.value(value);
            }
        }
        let names: Vec<Option<&str>> = steps
            .iter()
            .map(|step| match step {
                Step::Name(name) => Some(*name),
                Step::Index(Value::Text { text, .. }) => Some(*text),
                Step::Index(_) => None,
            })
            .collect();
        let is_own = self.is_local(root);
        match (root, names.as_slice()) {
            ("settings", [Some(id), ..]) if !is_own => {
                self.facts.theme_settings.push(SettingUse { id: (*id).to_owned(), at, types: None });
                return;
            }
            ("section", [Some("settings"), Some(id), ..]) if !is_own => {
                self.facts.section_settings.push(SettingUse { id: (*id).to_owned(), at, types: None });
                return;
            }
            (_, [Some("settings"), Some(id), ..]) if self.type_of(root).0.name == "block" => {
                let types = self.stack.iter().rev().find_map(|open| open.block_types.clone());
                let is_loop =
                    self.stack.iter().any(|open| open.variable.is_some_and(|(word, _)| word == root));
                if is_loop || root == "block" {
                    self.facts.block_settings.push(SettingUse { id: (*id).to_owned(), at, types });
                }
                return;
            }
            _ => {}
        }
        let (kind, is_argument) = self.type_of(root);
        if !is_own && !NAMES.globals.contains_key(root) {
            self.facts.unknown_names.push((root.to_owned(), at));
            if !is_argument {
                return;
            }
        }
        let names: Vec<Option<String>> = names.iter().map(|name| name.map(str::to_owned)).collect();
        if names.is_empty() {
            return;
        }
        if is_argument {
            self.facts.chains.push(ChainUse { root: root.to_owned(), names, at });
        } else if let Some(message) = wrong_property(kind, &names) {
            self.notes.add(at, Warning, "UnknownProperty", message);
        }
    }

    /// Whether the file itself defines the variable: by a tag, a loop around this place, or a parameter.
    fn is_local(&self, root: &str) -> bool {
        self.assigned.contains_key(root)
            || self.stack.iter().any(|open| open.variable.is_some_and(|(word, _)| word == root))
            || self.doc_types.contains_key(root)
    }

    fn is_defined(&self, root: &str) -> bool {
        self.is_local(root) || NAMES.globals.contains_key(root)
    }

    /// The type of a variable, and whether it may be an argument of the snippet.
    fn type_of(&self, root: &str) -> (Type, bool) {
        let in_loop =
            self.stack.iter().rev().find_map(|open| open.variable.filter(|(word, _)| *word == root));
        if let Some((_, kind)) = in_loop {
            return (kind, false);
        }
        if let Some((times, kind, _)) = self.assigned.get(root) {
            return (if *times == 1 { *kind } else { Type::UNKNOWN }, false);
        }
        if let Some(kind) = self.doc_types.get(root) {
            return (*kind, false);
        }
        let global = NAMES.globals.get(root).copied().unwrap_or(Type::UNKNOWN);
        if root == "block" {
            return (Type { name: "block", is_array: false }, false);
        }
        let may_be_argument = self.kind == FileKind::Snippet
            || (self.kind == FileKind::Block && !NAMES.globals.contains_key(root));
        (global, may_be_argument)
    }

    fn type_of_value(&self, value: &Value<'a>) -> Type {
        match value {
            Value::Path { root, steps, .. } => {
                let (mut kind, is_argument) = self.type_of(root);
                if is_argument {
                    return Type::UNKNOWN;
                }
                for step in steps {
                    let name = match step {
                        Step::Name(name) => Some(*name),
                        Step::Index(Value::Text { text, .. }) => Some(*text),
                        Step::Index(_) => None,
                    };
                    kind = step_into(kind, name).unwrap_or(Type::UNKNOWN);
                }
                kind
            }
            Value::Text { .. } => Type { name: "string", is_array: false },
            Value::Number { .. } => Type { name: "number", is_array: false },
            _ => Type::UNKNOWN,
        }
    }

    fn type_of_filtered(&self, filtered: &Filtered<'a>) -> Type {
        let mut kind = self.type_of_value(&filtered.value);
        for filter in &filtered.filters {
            kind = match filter.name {
                "where" | "sort" | "sort_natural" | "reverse" | "compact" | "uniq" | "reject"
                    if kind.is_array =>
                {
                    kind
                }
                "first" | "last" | "find" if kind.is_array => Type { is_array: false, ..kind },
                _ => Type::UNKNOWN,
            };
        }
        kind
    }

    fn element_of(&self, value: &Value<'a>) -> Type {
        let kind = self.type_of_value(value);
        if kind.is_array { Type { is_array: false, ..kind } } else { Type::UNKNOWN }
    }

    fn setting_of(&self, value: &Value<'a>, at: usize) -> Option<SettingUse> {
        let Value::Path { root: "section", steps, .. } = value else { return None };
        let [Step::Name("settings"), Step::Name(id)] = steps.as_slice() else { return None };
        Some(SettingUse { id: (*id).to_owned(), at, types: None })
    }

    /// Records outputs of settings whose text a merchant writes freely.
    fn raw_text(&mut self, filtered: &Filtered<'a>, place: Place, at: usize) {
        const KEEPS: [&str; 11] = [
            "upcase",
            "downcase",
            "capitalize",
            "strip",
            "truncate",
            "truncatewords",
            "append",
            "prepend",
            "default",
            "replace",
            "newline_to_br",
        ];
        if !matches!(place, Place::Text | Place::Value)
            || !filtered.filters.iter().all(|filter| KEEPS.contains(&filter.name))
        {
            return;
        }
        let Value::Path { root, steps, .. } = &filtered.value else { return };
        let [Step::Name("settings"), Step::Name(id)] = steps.as_slice() else {
            if place == Place::Value
                && filtered.filters.is_empty()
                && let Some(Step::Name(last @ ("title" | "alt" | "vendor"))) = steps.last()
                && matches!(self.type_of_value(&filtered.value).name, "string")
            {
                let message = format!("`{last}` is printed into an attribute without `escape`");
                self.notes.add(at, Warning, "UnescapedText", message);
            }
            return;
        };
        let is_block = self.type_of(root).0.name == "block";
        if *root == "section" || is_block {
            let types = self.stack.iter().rev().find_map(|open| open.block_types.clone());
            self.facts.raw_texts.push(RawText {
                id: (*id).to_owned(),
                at,
                is_block,
                types,
                in_value: place == Place::Value,
            });
        }
    }

    fn unused(&mut self) {
        if self.facts.includes {
            return;
        }
        for (name, (_, _, at)) in &self.assigned {
            // A variable is also read as the name within brackets, in the text of the file.
            if !self.read.contains(name) && !name.starts_with('_') {
                let tag = self.text[*at..].trim_start_matches(['{', '%', '-', ' ', '\n', '\t', '\r']);
                if tag.starts_with("assign") || tag.starts_with("capture") {
                    self.facts.unused.push(((*name).to_owned(), *at));
                }
            }
        }
        self.facts.unused.sort_by_key(|(_, at)| *at);
    }
}

fn first_word(markup: &str) -> &str {
    markup.split_whitespace().next().unwrap_or_default()
}

/// Objects whose elements are read by a handle.
const BY_HANDLE: [&str; 8] =
    ["collection", "page", "blog", "article", "link", "product", "image", "metaobject"];

/// The type of a property. `None` if the object does not have it; an unknown type if nothing is known.
pub fn step_into(kind: Type, name: Option<&str>) -> Option<Type> {
    if !kind.is_known() {
        return Some(Type::UNKNOWN);
    }
    if kind.is_array {
        let element = Type { is_array: false, ..kind };
        return Some(match name {
            Some("size") => Type { name: "number", is_array: false },
            Some("first" | "last") | None => element,
            Some(_) if BY_HANDLE.contains(&kind.name) => element,
            Some(_) => Type::UNKNOWN,
        });
    }
    let Some(properties) = NAMES.objects.get(kind.name) else { return Some(Type::UNKNOWN) };
    let Some(name) = name else { return Some(Type::UNKNOWN) };
    if properties.is_empty() || matches!(name, "size" | "first" | "last" | "metafields") {
        return Some(Type::UNKNOWN);
    }
    properties.get(name).copied()
}

/// What is wrong with a chain of properties, if something is.
pub fn wrong_property(mut kind: Type, names: &[Option<String>]) -> Option<String> {
    /// Properties that work and are not documented.
    const MORE: &str = "line_item.options line_item.index variant.options variant.instructions shop.locale shop.currency \
        shop.features shop.checkout image.url image.presentation media.presentation product.selected_options \
        request.visual_preview_mode article.published section.block_order section.shopify_attributes block.blocks \
        link.links theme.role customer.new_address customer.addresses_count collection.results_count collection.terms \
        recommendations.performed search.products_count search.all_products_count search.articles_count search.filters \
        predictive_search_resources.queries theme.settings";
    for name in names {
        match step_into(kind, name.as_deref()) {
            Some(next) => kind = next,
            None => {
                let name = name.as_deref().unwrap_or_default();
                let is_more =
                    MORE.split_whitespace().any(|known| known.split_once('.') == Some((kind.name, name)));
                if kind.name == "form" || is_more {
                    return None;
                }
                return Some(format!("`{}` has no property `{name}`", kind.name));
            }
        }
    }
    None
}
