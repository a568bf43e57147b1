//! What was meant, where that is clear.
//!
//! The fault that Liquid names first is mended with the rule of its kind, and then the next one, until Liquid accepts the markup. Where a
//! fault has no rule, nothing is said to be meant.

use rustc_hash::{FxHashMap, FxHashSet};

use super::places::{self, Edit};
use crate::check::is_filter;
use crate::strict::{self, Kind, Lexed, Lexeme, Refusal, Stop, is_blank, is_word, lex};
use crate::text::Span;

/// The most faults of one markup.
const MOST_STEPS: usize = 16;

/// The longest markup that is read. It keeps hostile files linear.
const LONGEST: usize = 4096;

/// A tag as it was meant.
pub struct Meant {
    pub edits: Vec<Edit>,
    /// What the page shows now.
    pub says: Vec<String>,
}

/// Names for new variables: those that stand nowhere in the file.
pub struct Names<'a> {
    words: FxHashSet<&'a str>,
    /// How often a name was looked for.
    numbers: FxHashMap<String, usize>,
}

impl<'a> Names<'a> {
    pub fn of(text: &'a str) -> Self {
        let words = text.split(|c: char| !u8::try_from(c).is_ok_and(is_word));
        Self { words: words.filter(|word| word.contains('_')).collect(), numbers: FxHashMap::default() }
    }

    fn new_name(&mut self, value: &str, what: &str) -> String {
        let word: String = value
            .rsplit(|c: char| !u8::try_from(c).is_ok_and(is_word))
            .find(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
            .unwrap_or("value")
            .chars()
            .take(24)
            .collect();
        let base = format!("{}_{what}", word.to_ascii_lowercase());
        let number = self.numbers.entry(base.clone()).or_default();
        loop {
            *number += 1;
            let name = if *number == 1 { base.clone() } else { format!("{base}_{number}") };
            if !self.words.contains(name.as_str()) {
                return name;
            }
        }
    }
}

/// A tag before the refused one.
struct Before {
    name: String,
    /// A value with filters, or a condition.
    value: String,
    is_condition: bool,
}

/// A markup that is being mended.
struct Draft<'a> {
    name: &'a str,
    markup: String,
    before: Vec<Before>,
    says: Vec<String>,
}

pub fn read(text: &str, name: &str, refusal: &Refusal, names: &mut Names) -> Option<Meant> {
    let renamed = if refusal.kind == Kind::UnknownTag { Some(elsif(text, name, refusal)?) } else { None };
    let name = if renamed.is_some() { "elsif" } else { name };
    let old = refusal.markup.of(text);
    if (refusal.kind.is_pairing() && renamed.is_none()) || old.len() > LONGEST {
        return None;
    }
    let mut draft = Draft { name, markup: old.to_owned(), before: Vec::new(), says: Vec::new() };
    for step in 0..MOST_STEPS {
        let Some(stop) = strict::first_fault(name, &draft.markup) else {
            // The markup alone is not what was refused.
            if step == 0 && renamed.is_none() {
                return None;
            }
            let mut meant = draft.done(text, refusal);
            if let Some(renamed) = renamed {
                meant.edits.insert(0, renamed);
                meant.says.insert(0, "the branch is shown if its condition holds".to_owned());
            }
            return Some(meant);
        };
        draft.step(&stop, names)?;
    }
    None
}

/// `elseif` is written `elsif`.
fn elsif(text: &str, name: &str, refusal: &Refusal) -> Option<Edit> {
    if !matches!(name.to_ascii_lowercase().as_str(), "elseif" | "elif" | "elselif" | "elsif") {
        return None;
    }
    let head = Span { start: refusal.tag.start, end: refusal.markup.start };
    let at = refusal.tag.start as usize + head.of(text).find(name)?;
    let span = Span::new(at, at + name.len());
    Some(Edit { span, new: "elsif".to_owned() })
}

fn is_condition(name: &str) -> bool {
    matches!(name, "if" | "unless" | "elsif")
}

fn is_value(lexeme: Lexeme) -> bool {
    matches!(lexeme, Lexeme::Text | Lexeme::Number)
}

impl Draft<'_> {
    fn says(&mut self, what: &str) {
        if !self.says.iter().any(|said| said == what) {
            self.says.push(what.to_owned());
        }
    }

    fn put(&mut self, span: Span, new: &str) {
        self.markup.replace_range(span.start as usize..span.end as usize, new);
    }

    /// Mends one fault.
    fn step(&mut self, stop: &Stop, names: &mut Names) -> Option<()> {
        match &stop.kind {
            Kind::Character => self.character(stop.place),
            Kind::NumberAsProperty => self.number(stop.place),
            Kind::LoopOption if self.name == "for" => self.reversed(stop.place),
            Kind::Rest | Kind::LoopOption | Kind::Sign { .. } | Kind::Value | Kind::Name => {
                self.rest(stop.place, names)
            }
            _ => None,
        }
    }

    fn character(&mut self, place: Span) -> Option<()> {
        let at = place.start as usize;
        let rest = self.markup.get(at..)?;
        let before = self.markup.get(..at)?;
        let span = |length: usize| Span::new(at, at + length);
        if rest.starts_with(['“', '”', '„', '‘', '’']) {
            return self.curly(place);
        }
        if let Some(hidden) = rest.chars().next().filter(|c| strict::is_hidden(*c)) {
            self.put(place, if hidden.is_whitespace() { " " } else { "" });
            self.says("the invisible character has no effect");
            return Some(());
        }
        if is_condition(self.name) {
            if rest.starts_with("&&") {
                self.joint(span(2), "and");
                self.says("both conditions must hold");
            } else if rest.starts_with("=>") {
                self.put(span(2), ">=");
                self.says("`=>` compares as `>=`");
            } else if rest.starts_with('=') && (before.ends_with("==") || before.ends_with("!=")) {
                self.put(span(1), "");
                self.says("the two values are compared");
            } else if rest.starts_with("=<") {
                self.put(span(2), "<=");
                self.says("`=<` compares as `<=`");
            } else if rest.starts_with('=') {
                self.put(span(1), "==");
                self.says("`=` compares");
            } else if rest.starts_with('!') {
                return self.not(place);
            } else {
                return None;
            }
            return Some(());
        }
        // An argument: `width = 3`.
        let target = self.name == "assign" && !before.contains('=');
        if rest.starts_with('=') && !rest.starts_with("==") && !target {
            let words = lex(before, 0).ok()?;
            let [.., sign, key, _end] = words.as_slice() else { return None };
            if key.lexeme == Lexeme::Name && matches!(sign.lexeme, Lexeme::Comma | Lexeme::Colon) {
                self.put(Span { start: key.span.end, end: place.end }, ":");
                self.says("the argument has an effect");
                return Some(());
            }
        }
        None
    }

    /// A word that joins conditions, with a blank at each side.
    fn joint(&mut self, span: Span, word: &str) {
        let is_blank_at = |at: Option<u8>| at.is_some_and(is_blank);
        let bytes = self.markup.as_bytes();
        let before = (span.start as usize).checked_sub(1).and_then(|at| bytes.get(at)).copied();
        let lead = if is_blank_at(before) { "" } else { " " };
        let trail = if is_blank_at(bytes.get(span.end as usize).copied()) { "" } else { " " };
        self.put(span, &format!("{lead}{word}{trail}"));
    }

    /// A text in curly quotes.
    fn curly(&mut self, place: Span) -> Option<()> {
        let (start, inner) = (place.start as usize, place.end as usize);
        let length = self.markup.get(inner..)?.find(['“', '”', '„', '‘', '’'])?;
        let text = self.markup.get(inner..inner + length)?.to_owned();
        let close = self.markup.get(inner + length..)?.chars().next()?.len_utf8();
        let quote = ['\'', '"'].into_iter().find(|quote| !text.contains(*quote))?;
        self.put(Span::new(start, inner + length + close), &format!("{quote}{text}{quote}"));
        self.says("what stands in the quotes is a text");
        Some(())
    }

    /// `!a`, if it is the whole condition.
    fn not(&mut self, place: Span) -> Option<()> {
        let value = self.markup.get(place.end as usize..)?.trim().to_owned();
        let before = self.markup.get(..place.start as usize)?;
        let words = lex(&value, 0).ok()?;
        let is_one = strict::accepts("", &value)
            && !value.is_empty()
            && words.iter().all(|word| !matches!(word.lexeme, Lexeme::Pipe | Lexeme::Comparison));
        if !places::is_all_blank(before) || !is_one {
            return None;
        }
        let end = place.end as usize + self.markup.get(place.end as usize..)?.trim_end().len();
        // Only `nil` and `false` do not hold.
        self.put(Span::new(place.start as usize, end), &format!("{value} == nil or {value} == false"));
        self.says("the condition holds if the value is missing or false");
        Some(())
    }

    /// `.0` is the place in a list.
    fn number(&mut self, place: Span) -> Option<()> {
        let number = place.of(&self.markup).to_owned();
        let dot = self.markup.get(..place.start as usize)?.rfind('.')?;
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.put(Span::new(dot, place.end as usize), &format!("[{number}]"));
        self.says(&format!("`[{number}]` is the item at this place of the list"));
        Some(())
    }

    /// `reversed` behind the options is moved behind the list.
    fn reversed(&mut self, place: Span) -> Option<()> {
        let words = lex(&self.markup, 0).ok()?;
        let is_word =
            |word: &Lexed, name: &str| word.lexeme == Lexeme::Name && word.span.of(&self.markup) == name;
        let late =
            words.iter().find(|word| word.span.start == place.start && is_word(word, "reversed"))?.span;
        let option = words.windows(2).skip(3).find_map(|pair| match pair {
            [key, colon] if colon.lexeme == Lexeme::Colon => {
                (is_word(key, "limit") || is_word(key, "offset")).then_some(key.span.start)
            }
            _ => None,
        })?;
        let before = self.markup.get(..option as usize)?;
        // Before the comma that precedes the option.
        let list_end = before.trim_end().trim_end_matches(',').trim_end().len() as u32;
        if list_end >= late.start {
            return None;
        }
        let bytes = self.markup.as_bytes();
        let mut start = late.start as usize;
        while start > 0 && bytes.get(start - 1).is_some_and(|byte| is_blank(*byte) || *byte == b',') {
            start -= 1;
        }
        self.put(Span::new(start, late.end as usize), "");
        self.put(Span { start: list_end, end: list_end }, " reversed");
        self.says("`reversed` reverses the loop");
        Some(())
    }

    /// What stands where the markup could end.
    fn rest(&mut self, place: Span, names: &mut Names) -> Option<()> {
        let rest = place.of(&self.markup);
        if rest.starts_with("||") {
            if !is_condition(self.name) {
                return None;
            }
            self.joint(Span { start: place.start, end: place.start + 2 }, "or");
            self.says("one of both conditions must hold");
            return Some(());
        }
        if rest.starts_with('|') && !matches!(self.name, "" | "echo" | "assign") {
            return self.filtered(place.start, names);
        }
        match self.name {
            "" | "echo" => self.filter_argument(place),
            "assign" => self.filter_argument(place).or_else(|| self.assigned(place)),
            "render" | "include" => self.with_arguments().or_else(|| self.compared(place, names)),
            _ => None,
        }
    }

    /// The argument of a filter lacks the colon or the comma before it.
    fn filter_argument(&mut self, place: Span) -> Option<()> {
        let words = lex(&self.markup, 0).ok()?;
        let index = words.iter().position(|word| word.span.start == place.start)?;
        let before = words.get(..index)?;
        let next = words.get(index)?;
        let bar = before.iter().rposition(|word| word.lexeme == Lexeme::Pipe)?;
        let filter = before.get(bar + 1..)?;
        let is_named = words.get(index + 1).is_some_and(|word| word.lexeme == Lexeme::Colon);
        let end = before.last()?.span.end;
        let sign = match filter {
            [name] if name.lexeme == Lexeme::Name && (is_value(next.lexeme) || is_named) => ":",
            // `'a''b'` can also be one text.
            [_, colon, ..]
                if colon.lexeme == Lexeme::Colon
                    && end < next.span.start
                    && (is_value(next.lexeme) || is_named) =>
            {
                ","
            }
            _ => return None,
        };
        let gap = if end == next.span.start { " " } else { "" };
        self.put(Span { start: end, end }, &format!("{sign}{gap}"));
        self.says("the filter takes the argument");
        Some(())
    }

    /// `assign x = a == b`: the whole value is a condition.
    fn assigned(&mut self, place: Span) -> Option<()> {
        let value = self.markup.get(self.markup.find('=')? + 1..)?.trim();
        let condition = truth(value)?.to_owned();
        let target = self.markup.get(..self.markup.find('=')?)?.trim().to_owned();
        debug_assert!(place.start > 0);
        self.before.push(Before { name: target, value: condition, is_condition: true });
        // The tags before the assignment take its place.
        self.markup = String::from("_ = _");
        self.says("the variable is true or false");
        Some(())
    }

    /// `render 's' with k: v`: a comma stands before an argument, and `with` before a value that has no name.
    fn with_arguments(&mut self) -> Option<()> {
        let words = lex(&self.markup, 0).ok()?;
        let [file, rest @ ..] = words.as_slice() else { return None };
        let rest = match rest {
            [comma, rest @ ..] if comma.lexeme == Lexeme::Comma => rest,
            rest => rest,
        };
        let [with, key, colon, ..] = rest else { return None };
        let is_clear = file.lexeme == Lexeme::Text
            && with.span.of(&self.markup) == "with"
            && key.lexeme == Lexeme::Name
            && colon.lexeme == Lexeme::Colon;
        if !is_clear {
            return None;
        }
        let span = Span { start: file.span.end, end: with.span.end };
        self.put(span, ",");
        self.says("the snippet gets the argument and no value of another name");
        Some(())
    }

    /// An argument of `render` is a condition.
    fn compared(&mut self, place: Span, names: &mut Names) -> Option<()> {
        let words = lex(&self.markup, 0).ok()?;
        let index = words.iter().position(|word| word.span.start == place.start)?;
        let colon = words.get(..index)?.iter().rposition(|word| word.lexeme == Lexeme::Colon)?;
        let start = words.get(colon + 1)?.span.start;
        let behind = words.get(index..)?;
        let last = behind.iter().position(|word| matches!(word.lexeme, Lexeme::Comma | Lexeme::End))?;
        let end = words.get((index + last).checked_sub(1)?)?.span.end;
        let span = Span { start, end };
        let condition = truth(span.of(&self.markup))?.to_owned();
        let key = words.get(colon.checked_sub(1)?)?.span.of(&self.markup).to_owned();
        let name = names.new_name(&key, "holds");
        self.put(span, &name);
        self.before.push(Before { name, value: condition, is_condition: true });
        self.says("the condition is evaluated, and the argument is true or false");
        Some(())
    }

    /// A value with filters is computed before.
    fn filtered(&mut self, bar: u32, names: &mut Names) -> Option<()> {
        // Nothing can stand before a branch that is computed only for it.
        if matches!(self.name, "elsif" | "when") {
            return None;
        }
        let words = lex(&self.markup, 0).ok()?;
        let index = words.iter().position(|word| word.span.start == bar)?;
        let is_edge = |word: &Lexed| match word.lexeme {
            Lexeme::Comparison | Lexeme::End => true,
            Lexeme::Name => matches!(
                word.span.of(&self.markup),
                "and" | "or" | "in" | "reversed" | "limit" | "offset" | "cols" | "with" | "for" | "as"
            ),
            _ => false,
        };
        let first = words
            .get(..index)?
            .iter()
            .rposition(|word| is_edge(word) || matches!(word.lexeme, Lexeme::Comma | Lexeme::Colon))
            .map_or(0, |edge| edge + 1);
        let behind = words.get(index..)?;
        let has_commas = !is_condition(self.name) && !matches!(self.name, "case" | "for");
        let mut has_arguments = false;
        let mut last = None;
        for (number, word) in behind.iter().enumerate() {
            let follows_bar =
                number > 0 && behind.get(number - 1).is_some_and(|word| word.lexeme == Lexeme::Pipe);
            has_arguments |= word.lexeme == Lexeme::Colon;
            if word.lexeme == Lexeme::Comma && has_commas {
                // It is not clear whether the next argument belongs to the filter.
                if has_arguments {
                    return None;
                }
                last = Some(number);
                break;
            }
            if is_edge(word) && !follows_bar {
                last = Some(number);
                break;
            }
        }
        let end = words.get((index + last?).checked_sub(1)?)?.span.end;
        let span = Span { start: words.get(first)?.span.start, end };
        let value = span.of(&self.markup).to_owned();
        if span.start >= bar || !strict::accepts("", &value) {
            return None;
        }
        // The tolerant parser reads `| name: value` as an argument of the tag, so a name that is no filter can be one.
        let filter = words.get(index + 1)?.span.of(&self.markup).to_owned();
        if !is_filter(&filter) {
            return None;
        }
        let operand = self.markup.get(span.start as usize..bar as usize)?.to_owned();
        let name = names.new_name(&operand, &filter.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
        self.put(span, &name);
        self.before.push(Before { name, value, is_condition: false });
        self.says("the filter is applied, in an `assign` before");
        Some(())
    }

    /// The edits in the file.
    fn done(self, text: &str, refusal: &Refusal) -> Meant {
        let tag = refusal.tag.of(text);
        let is_line = !tag.starts_with("{%") && !tag.starts_with("{{");
        let line_start = text
            .get(..refusal.tag.start as usize)
            .and_then(|before| before.rfind('\n'))
            .map_or(0, |at| at + 1);
        let indent = text.get(line_start..refusal.tag.start as usize).unwrap_or_default();
        let is_alone = places::is_all_blank(indent);
        let says = self.says;
        let replaces = self.name == "assign" && self.before.iter().any(|before| before.is_condition);
        let mut lines: Vec<String> = Vec::new();
        for before in &self.before {
            let Before { name, value, is_condition } = before;
            if *is_condition {
                lines.push(format!("assign {name} = false"));
                lines.push(format!("if {value}"));
                lines.push(format!("assign {name} = true"));
                lines.push("endif".to_owned());
            } else {
                lines.push(format!("assign {name} = {value}"));
            }
        }
        let start = refusal.tag.start;
        if lines.is_empty() {
            return Meant { edits: places::in_place(text, refusal.markup, &self.markup), says };
        }
        let indent = if is_alone { indent } else { "" };
        let break_line = if text.get(..start as usize).is_some_and(|before| before.ends_with("\r\n")) {
            "\r\n"
        } else {
            "\n"
        };
        let (open, close) = (
            if tag.starts_with("{%-") { "{%-" } else { "{%" },
            if tag.ends_with("-%}") { "-%}" } else { "%}" },
        );
        let mut edits = Vec::new();
        if is_line {
            let mut new = lines.join(&format!("{break_line}{indent}"));
            if replaces {
                let end = start as usize + tag.trim_end().len();
                edits.push(Edit { span: Span::new(start as usize, end), new });
            } else {
                new.push_str(&format!("{break_line}{indent}"));
                edits.push(Edit { span: Span { start, end: start }, new });
            }
        } else if replaces {
            let count = lines.len();
            let new: String = lines
                .iter()
                .enumerate()
                .map(|(number, line)| {
                    let open = if number == 0 { open } else { "{%" };
                    let close = if number + 1 == count { close } else { "%}" };
                    format!("{open} {line} {close}")
                })
                .collect();
            edits.push(Edit { span: refusal.tag, new });
        } else {
            let mut new = String::new();
            for (number, line) in lines.iter().enumerate() {
                let open = if number == 0 { open } else { "{%" };
                // What follows it up to the tag is deleted, so that the page gets no more blanks.
                let close = if is_alone && number + 1 == lines.len() { "-%}" } else { "%}" };
                new.push_str(&format!("{open} {line} {close}"));
            }
            if is_alone {
                new.push_str(&format!("\n{indent}"));
            }
            edits.push(Edit { span: Span { start, end: start }, new });
        }
        if !replaces {
            edits.extend(places::in_place(text, refusal.markup, &self.markup));
        }
        Meant { edits, says }
    }
}

/// A condition with a comparison or an `and`. An `or` of two values alone can also mean the first one that is there.
fn truth(value: &str) -> Option<&str> {
    let value = value.trim();
    let words = lex(value, 0).ok()?;
    let has =
        |name: &str| words.iter().any(|word| word.lexeme == Lexeme::Name && word.span.of(value) == name);
    let compares = words.iter().any(|word| word.lexeme == Lexeme::Comparison);
    let is_clear = compares || (has("and") && !has("or"));
    (is_clear && strict::accepts("if", value)).then_some(value)
}
