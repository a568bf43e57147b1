//! Reads a file tag by tag: what opens, what ends, and what is not read.

use rustc_hash::{FxHashMap, FxHashSet};

use super::expression::Stop;
use super::pieces::{self, Named, Piece, PieceKind, Pieces, is_blank};
use super::tags::{self, BLOCKS, VERBATIM};
use super::{Kind, MAX_NESTING, Otherwise, Reading, Refusal, Span, lax, sentence};

/// How often the end of a tag such as `raw` is looked for in vain.
const MOST_LOOKS: u8 = 8;

/// An open block.
struct Open<'a> {
    name: &'a str,
    tag: Span,
    markup: Span,
    /// A `for` has one `else`. Liquid ends it at a second one.
    has_else: bool,
}

pub struct Reader<'a> {
    text: &'a str,
    pieces: Pieces<'a>,
    stack: Vec<Open<'a>>,
    /// How many blocks of a name are open. An end whose block is not open is not looked for.
    open: FxHashMap<&'a str, usize>,
    /// How often the end of a tag was looked for and not found.
    endless: FxHashMap<&'a str, u8>,
    /// Variables of loops over the blocks of a section.
    blocks: FxHashSet<&'a str>,
    is_too_deep: bool,
    refusals: Vec<Refusal>,
    /// What strict Liquid reads otherwise than the tolerant parser, if it is asked for.
    otherwise: Option<Vec<Otherwise>>,
}

/// The lines of a `{% liquid %}` that are not read yet.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    end: usize,
}

impl Lines<'_> {
    fn next(&mut self) -> Option<Span> {
        if self.at >= self.end {
            return None;
        }
        let rest = self.text.as_bytes().get(self.at..self.end)?;
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = Span::new(self.at, self.at + length);
        self.at += length + 1;
        Some(line)
    }
}

/// Reads a file. `compares` asks for [`Reading::otherwise`].
pub fn read(text: &str, compares: bool) -> Reading {
    let mut reader = Reader {
        text,
        pieces: Pieces::new(text),
        stack: Vec::new(),
        open: FxHashMap::default(),
        endless: FxHashMap::default(),
        blocks: FxHashSet::default(),
        is_too_deep: false,
        refusals: Vec::new(),
        otherwise: compares.then(Vec::new),
    };
    while let Some(piece) = reader.pieces.next() {
        reader.piece(piece);
    }
    reader.close_to(0, None);
    Reading { refusals: reader.refusals, otherwise: reader.otherwise.unwrap_or_default() }
}

impl<'a> Reader<'a> {
    fn piece(&mut self, piece: Piece) {
        match piece.kind {
            PieceKind::Output => {
                let markup = pieces::output_markup(self.text, piece.span);
                self.markup("", piece.span, markup);
            }
            PieceKind::BrokenOutput { tag } => {
                let is_whole = tag.is_some() || piece.span.of(self.text).ends_with('}');
                let token = if is_whole { piece.span.of(self.text) } else { "{{" };
                let said = format!("Variable '{token}' was not properly terminated with regexp: /\\}}\\}}/");
                // What stands behind the place where the tag begins is read as a tag, as it was meant.
                let end = tag.unwrap_or(piece.span.end);
                if let Some(tag) = tag {
                    self.pieces.go_to(tag as usize);
                }
                let span = Span { start: piece.span.start, end };
                let opener = Span { start: span.start, end: span.start + 2 };
                self.refuse(Stop::new(opener, Kind::OpenOutput, said), "", span, span);
            }
            PieceKind::BrokenTag => {
                let said = "Tag '{%' was not properly terminated with regexp: /\\%\\}/";
                self.refuse(Stop::new(piece.span, Kind::OpenTag, said), "", piece.span, piece.span);
            }
            PieceKind::Tag => match pieces::named(self.text, piece.span) {
                None => {
                    let said = format!("Unknown tag '{}'", piece.span.of(self.text));
                    let markup = pieces::output_markup(self.text, piece.span);
                    self.refuse(Stop::new(piece.span, Kind::NamelessTag, said), "", piece.span, markup);
                }
                Some(named) => self.tag(piece.span, named, None, 0),
            },
        }
    }

    /// Reads a tag, or a line of `{% liquid %}`. `base` is the number of blocks that were open where the lines began: they do not end in it.
    fn tag(&mut self, span: Span, named: Named, lines: Option<&mut Lines<'a>>, base: usize) {
        let name = named.name.of(self.text);
        match name {
            "liquid" => self.liquid(named.markup),
            "comment" => self.comment(span, named.markup, lines),
            _ if VERBATIM.contains(&name) => {
                self.markup(name, span, named.markup);
                self.verbatim(name, span, named.markup, lines.is_some());
            }
            _ if BLOCKS.contains(&name) => {
                self.markup(name, span, named.markup);
                self.open(name, span, named.markup);
            }
            _ if tags::is_tag(name) => self.markup(name, span, named.markup),
            _ => self.branch_or_end(span, named, lines.is_some(), base),
        }
    }

    /// Reads the markup of a tag or output.
    fn markup(&mut self, name: &str, tag: Span, markup: Span) {
        let text = markup.of(self.text);
        let is_block = |word: &str| self.blocks.contains(word);
        match tags::read(name, text, markup.start as usize, &is_block) {
            Err(stop) => self.refuse(stop, name, tag, markup),
            Ok(()) => {
                if let Some(found) = &mut self.otherwise
                    && let Some(sentence) = lax::otherwise(name, text)
                {
                    found.push(Otherwise { tag, sentence });
                }
            }
        }
    }

    fn refuse(&mut self, stop: Stop, name: &str, tag: Span, markup: Span) {
        let lax = lax::read(name, self.text, markup, &stop);
        let message = sentence::of(name, self.text, &stop);
        self.refusals.push(Refusal {
            place: stop.place,
            tag,
            markup,
            kind: stop.kind,
            message,
            parser: stop.parser,
            lax,
        });
    }

    /// Reads the lines of a `{% liquid %}`. What they open must end in them.
    fn liquid(&mut self, markup: Span) {
        let base = self.stack.len();
        let mut lines = Lines { text: self.text, at: markup.start as usize, end: markup.end as usize };
        while let Some(mut line) = lines.next() {
            let mut is_nested = false;
            loop {
                if line.of(self.text).bytes().all(is_blank) {
                    break;
                }
                let Some(named) = pieces::named_line(self.text, line) else {
                    let said = format!("Unknown tag '{}'", line.of(self.text));
                    self.refuse(Stop::new(line, Kind::NamelessTag, said), "", line, line);
                    break;
                };
                // `liquid` in `liquid` has one line, and what it opens must end in it.
                if named.name.of(self.text) == "liquid" {
                    (is_nested, line) = (true, named.markup);
                    continue;
                }
                let span = Span { start: named.name.start, end: line.end };
                if is_nested {
                    let base = self.stack.len();
                    let mut none = Lines { text: self.text, at: 0, end: 0 };
                    self.tag(span, named, Some(&mut none), base);
                    self.close_to(base, None);
                } else {
                    self.tag(span, named, Some(&mut lines), base);
                }
                break;
            }
        }
        self.close_to(base, None);
    }

    fn open(&mut self, name: &'a str, tag: Span, markup: Span) {
        self.check_depth(tag, markup);
        if name == "for" {
            let mut words = markup.of(self.text).split_ascii_whitespace();
            if let (Some(variable), Some("in"), Some("section.blocks")) =
                (words.next(), words.next(), words.next())
            {
                self.blocks.insert(variable);
            }
        }
        *self.open.entry(name).or_default() += 1;
        self.stack.push(Open { name, tag, markup, has_else: false });
    }

    fn check_depth(&mut self, tag: Span, markup: Span) {
        if self.stack.len() >= MAX_NESTING && !self.is_too_deep {
            self.is_too_deep = true;
            self.refuse(Stop::new(tag, Kind::TooDeep, "Nesting too deep"), "", tag, markup);
        }
    }

    fn pop(&mut self) -> Option<Open<'a>> {
        let open = self.stack.pop()?;
        if let Some(count) = self.open.get_mut(open.name) {
            *count = count.saturating_sub(1);
        }
        Some(open)
    }

    /// Reports the blocks that are open above `base`. `said` is what Liquid says of the tag that shows it, if it is not the end of the text.
    fn close_to(&mut self, base: usize, said: Option<&str>) {
        while self.stack.len() > base {
            let Some(open) = self.pop() else { return };
            match said {
                None => self.never_closed(open.name, open.tag, open.markup),
                Some(said) => {
                    self.refuse(Stop::new(open.tag, Kind::OpenBlock, said), open.name, open.tag, open.markup);
                }
            }
        }
    }

    fn never_closed(&mut self, name: &str, tag: Span, markup: Span) {
        let said = format!("'{name}' tag was never closed");
        self.refuse(Stop::new(tag, Kind::OpenBlock, said), name, tag, markup);
    }

    /// What is no tag of its own: an end, a branch, or an unknown name.
    fn branch_or_end(&mut self, span: Span, named: Named, is_line: bool, base: usize) {
        let name = named.name.of(self.text);
        let owner = if self.stack.len() > base { self.stack.last_mut() } else { None };
        match (owner.as_ref().map(|open| open.name), name) {
            (Some(owner), _) if name.strip_prefix("end") == Some(owner) => drop(self.pop()),
            (Some("if" | "unless"), "elsif") | (Some("case"), "when") => {
                self.markup(name, span, named.markup);
            }
            (Some("if" | "unless"), "else") => {}
            (Some("case"), "else") => {
                if let Err(stop) = tags::else_of_case(named.markup.of(self.text), named.markup.start as usize)
                {
                    self.refuse(stop, name, span, named.markup);
                }
            }
            (Some("for"), "else") => {
                if owner.is_some_and(|open| std::mem::replace(&mut open.has_else, true)) {
                    self.pop();
                }
            }
            (owner, _) => {
                let owner = if is_line && owner.is_none() { Some("liquid") } else { owner };
                self.misplaced(span, named, owner, base);
            }
        }
    }

    fn misplaced(&mut self, span: Span, named: Named, owner: Option<&'a str>, base: usize) {
        let name = named.name.of(self.text);
        let said = match (owner, name) {
            (None, "else" | "end") => format!("Unexpected outer '{name}' tag"),
            (Some(owner), "else") => format!("{owner} tag does not expect 'else' tag"),
            (Some("liquid"), _) if name.starts_with("end") => {
                format!("'{name}' is not a valid delimiter for liquid tags. use %}}")
            }
            (Some(owner), _) if name.starts_with("end") => {
                format!("'{name}' is not a valid delimiter for {owner} tags. use end{owner}")
            }
            _ => format!("Unknown tag '{name}'"),
        };
        let ended = name.strip_prefix("end").filter(|ended| tags::is_tag(ended));
        let kind = match (name, ended) {
            (_, Some(_)) => Kind::StrayEnd,
            ("elsif" | "when", _) => Kind::StrayBranch,
            ("else", _) => Kind::StrayBranch,
            _ => Kind::UnknownTag,
        };
        // The end of a block further out: the blocks in it have no end.
        if let Some(ended) = ended
            && self.open.get(ended).is_some_and(|count| *count > 0)
            && let near = base.max(self.stack.len().saturating_sub(MAX_NESTING))
            && let Some(index) =
                self.stack.get(near..).and_then(|open| open.iter().rposition(|open| open.name == ended))
        {
            let index = near + index;
            self.close_to(index + 1, Some(&said));
            self.pop();
            return;
        }
        self.refuse(Stop::new(span, kind, said), name, span, named.markup);
    }

    /// Whether the end of a tag is looked for: each look can read the whole file.
    fn looks_for(&self, name: &str) -> bool {
        self.endless.get(name).is_none_or(|count| *count < MOST_LOOKS)
    }

    /// Goes to the end of a tag whose content is not read.
    fn verbatim(&mut self, name: &'a str, span: Span, markup: Span, is_line: bool) {
        if is_line {
            let said = format!("'{name}' tag was never closed");
            self.refuse(Stop::new(span, Kind::VerbatimInLiquid, said), name, span, markup);
            return;
        }
        let start = self.pieces.at();
        let mut has_nested = false;
        if self.looks_for(name) {
            while let Some(piece) = self.pieces.next() {
                let Some(found) = pieces::last_name(self.text, piece.span) else { continue };
                if found.strip_prefix("end") == Some(name) {
                    return;
                }
                if name == "doc" && found == "doc" && !has_nested {
                    has_nested = true;
                    let said = "Syntax Error in 'doc' - Nested doc tags are not allowed";
                    self.refuse(Stop::new(piece.span, Kind::NestedDoc, said), name, piece.span, piece.span);
                }
            }
            *self.endless.entry(name).or_default() += 1;
        }
        self.pieces.go_to(start);
        if !has_nested {
            self.never_closed(name, span, markup);
        }
    }

    /// Goes to the end of a comment. Comments in it are counted, and `raw` in it must end.
    fn comment(&mut self, span: Span, markup: Span, lines: Option<&mut Lines<'a>>) {
        self.check_depth(span, markup);
        let Some(lines) = lines else {
            let start = self.pieces.at();
            let mut open = "comment";
            if self.looks_for("comment") {
                match self.comment_end(start) {
                    Ok(()) => return,
                    Err(inner) => open = inner,
                }
                *self.endless.entry("comment").or_default() += 1;
            }
            self.pieces.go_to(start);
            let said = format!("'{open}' tag was never closed");
            self.refuse(Stop::new(span, Kind::OpenBlock, said), open, span, markup);
            return;
        };
        let mut depth = 1;
        while let Some(line) = lines.next() {
            let Some(named) = pieces::named_line(self.text, line) else { continue };
            match named.name.of(self.text) {
                "comment" => depth += 1,
                "endcomment" => depth -= 1,
                // Lines have no `endraw`, so it would not end.
                "raw" => {
                    let said = "'raw' tag was never closed";
                    self.refuse(Stop::new(line, Kind::VerbatimInLiquid, said), "raw", line, named.markup);
                }
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
        self.never_closed("comment", span, markup);
    }

    /// Moves behind the end of a comment.
    ///
    /// # Errors
    /// Which tag has no end: `comment`, or a `raw` in it.
    fn comment_end(&mut self, start: usize) -> Result<(), &'static str> {
        let mut depth = 1;
        self.pieces.go_to(start);
        while let Some(piece) = self.pieces.next() {
            let named =
                matches!(piece.kind, PieceKind::Tag).then(|| pieces::named(self.text, piece.span)).flatten();
            match named.map(|named| named.name.of(self.text)) {
                Some("comment") => depth += 1,
                Some("endcomment") => depth -= 1,
                Some("raw") => loop {
                    let raw = self.pieces.next().ok_or("raw")?;
                    if pieces::last_name(self.text, raw.span) == Some("endraw") {
                        break;
                    }
                },
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err("comment")
    }
}
