//! The expressions of Liquid: values, filters, conditions. What the platform would ignore or refuse becomes a problem.

use super::Severity::{self, Error, Warning};

#[derive(Debug)]
pub enum Value<'a> {
    Path {
        root: &'a str,
        at: usize,
        steps: Vec<Step<'a>>,
    },
    Text {
        text: &'a str,
        at: usize,
    },
    Number {
        text: &'a str,
    },
    /// `nil`, `true`, `false`, `blank`, `empty`.
    Literal {
        text: &'a str,
    },
    Range(Box<(Value<'a>, Value<'a>)>),
    Missing,
}

impl Value<'_> {
    /// The type of a value that is written out. `nil`, `blank` and `empty` stand for a value that is missing, so they have none.
    pub fn written_type(&self) -> Option<&'static str> {
        match self {
            Value::Text { .. } => Some("string"),
            Value::Number { .. } => Some("number"),
            Value::Literal { text: "true" | "false" } => Some("boolean"),
            Value::Range(_) => Some("range"),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub enum Step<'a> {
    Name(&'a str),
    Index(Value<'a>),
}

#[derive(Debug)]
pub struct Filter<'a> {
    pub name: &'a str,
    pub at: usize,
    pub arguments: Vec<Value<'a>>,
    pub named: Vec<(&'a str, Value<'a>)>,
    /// Whether its arguments could not be read completely.
    pub is_odd: bool,
}

#[derive(Debug)]
pub struct Filtered<'a> {
    pub value: Value<'a>,
    pub filters: Vec<Filter<'a>>,
}

#[derive(Debug)]
pub struct Comparison<'a> {
    pub left: Value<'a>,
    pub operator: Option<&'a str>,
    pub right: Option<Value<'a>>,
}

#[derive(Debug)]
pub struct Problem {
    pub at: usize,
    pub severity: Severity,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Word,
    Text,
    OpenText,
    Number,
    Mark,
}

#[derive(Clone, Copy, Debug)]
struct Lexeme<'a> {
    kind: Kind,
    text: &'a str,
    at: usize,
}

/// The deepest nesting of values in each other. The parser calls itself for each level.
const MAX_DEPTH: usize = 100;

/// Reads expressions from the markup of one tag or output.
pub struct Parser<'a> {
    lexemes: Vec<Lexeme<'a>>,
    next: usize,
    end: usize,
    /// How many values are open around this place.
    depth: usize,
    pub problems: Vec<Problem>,
}

const MARKS: [&str; 14] =
    ["===", "!==", "==", "!=", "<>", "<=", ">=", "&&", "||", "..", "=>", "+=", "-=", "??"];

impl<'a> Parser<'a> {
    /// `at` is the position of `markup` in its file.
    pub fn new(markup: &'a str, at: usize) -> Self {
        Self {
            lexemes: lexemes(markup, at),
            next: 0,
            end: at + markup.trim_end().len(),
            depth: 0,
            problems: Vec::new(),
        }
    }

    fn peek(&self) -> Option<Lexeme<'a>> {
        self.lexemes.get(self.next).copied()
    }

    fn peek_mark(&self) -> &'a str {
        self.peek().filter(|lexeme| lexeme.kind == Kind::Mark).map_or("", |lexeme| lexeme.text)
    }

    fn second_mark(&self) -> &'a str {
        let second = self.lexemes.get(self.next + 1);
        second.filter(|lexeme| lexeme.kind == Kind::Mark).map_or("", |lexeme| lexeme.text)
    }

    pub fn is_done(&self) -> bool {
        self.next >= self.lexemes.len()
    }

    pub fn here(&self) -> usize {
        self.peek().map_or(self.end.saturating_sub(1), |lexeme| lexeme.at)
    }

    pub fn problem(&mut self, at: usize, severity: Severity, message: impl Into<String>) {
        if self.problems.is_empty() {
            self.problems.push(Problem { at, severity, message: message.into() });
        }
    }

    pub fn take_mark(&mut self, mark: &str) -> bool {
        let found = self.peek_mark() == mark;
        self.next += usize::from(found);
        found
    }

    pub fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|lexeme| lexeme.kind == Kind::Word && lexeme.text == word);
        self.next += usize::from(found);
        found
    }

    /// The next word, if there is one.
    pub fn word(&mut self) -> Option<(&'a str, usize)> {
        let lexeme = self.peek().filter(|lexeme| lexeme.kind == Kind::Word)?;
        self.next += 1;
        Some((lexeme.text, lexeme.at))
    }

    /// A word that is followed by a colon.
    pub fn name_with_colon(&mut self) -> Option<(&'a str, usize)> {
        let lexeme = self.peek().filter(|lexeme| lexeme.kind == Kind::Word)?;
        if self.second_mark() != ":" {
            return None;
        }
        self.next += 2;
        Some((lexeme.text, lexeme.at))
    }

    pub fn next_is_value(&self) -> bool {
        self.peek().is_some_and(|lexeme| lexeme.kind != Kind::Mark)
    }

    /// Reports what is left over.
    pub fn finish(&mut self, place: &str) {
        let Some(lexeme) = self.peek() else { return };
        let (severity, message) = match lexeme.text {
            "?" => (Warning, "Liquid has no ternary operator: use `if`".to_owned()),
            "??" => (Warning, "Liquid has no `??`: use the filter `default`".to_owned()),
            "==" | "!=" | "<" | ">" | "<=" | ">=" | "<>" | "contains" | "and" | "or" => (
                Warning,
                format!("`{}` works only in conditions; {place} uses only the first value", lexeme.text),
            ),
            "(" => (Warning, format!("brackets call nothing in Liquid; {place} ignores them")),
            _ if lexeme.kind == Kind::OpenText => (Warning, "a quote has no end".to_owned()),
            "+" | "-" | "*" | "/" | "%" => {
                (Warning, format!("Liquid has no operator `{}`: use a filter such as `plus`", lexeme.text))
            }
            text => (Warning, format!("`{text}` is not expected here; {place} ignores it")),
        };
        self.problem(lexeme.at, severity, message);
    }

    pub fn filtered(&mut self, place: &str) -> Filtered<'a> {
        let value = self.value();
        let mut filters = Vec::new();
        loop {
            match self.peek_mark() {
                "|" => {
                    let bar = self.here();
                    self.next += 1;
                    match self.filter() {
                        Some(filter) => filters.push(filter),
                        None => self.problem(bar, Warning, "a filter's name is missing after `|`"),
                    }
                }
                _ if self.is_done() => break,
                _ => {
                    if self.peek_mark() == "||" {
                        self.problem(
                            self.here(),
                            Warning,
                            "`||` is not Liquid: one `|` precedes a filter, `or` joins conditions",
                        );
                    }
                    self.finish(place);
                    // The filters after the odd place are still read.
                    while !self.is_done() && self.peek_mark() != "|" {
                        self.next += 1;
                    }
                }
            }
        }
        Filtered { value, filters }
    }

    fn filter(&mut self) -> Option<Filter<'a>> {
        let (name, at) = self.word()?;
        let mut filter = Filter { name, at, arguments: Vec::new(), named: Vec::new(), is_odd: false };
        if self.take_mark(":") {
            loop {
                if let Some((name, _)) = self.name_with_colon() {
                    let value = self.value();
                    if matches!(value, Value::Missing) {
                        self.problem(
                            at,
                            Warning,
                            format!("the argument `{name}` of the filter `{}` has no value", filter.name),
                        );
                    }
                    filter.named.push((name, value));
                } else if self.next_is_value() || self.peek_mark() == "(" || self.peek_mark() == "[" {
                    filter.arguments.push(self.value());
                } else if filter.arguments.is_empty() && filter.named.is_empty() {
                    self.problem(at, Warning, format!("the filter `{name}` has a colon but no argument"));
                    filter.is_odd = true;
                }
                let here = self.here();
                match self.peek_mark() {
                    "," => self.next += 1,
                    "|" => break,
                    _ if self.is_done() => break,
                    "=" => {
                        self.problem(here, Warning, format!("an argument of the filter `{name}` is written `name: value`, not `name = value`"));
                        filter.is_odd = true;
                        self.skip_to_bar();
                        break;
                    }
                    ":" => {
                        self.problem(
                            here,
                            Warning,
                            format!("the arguments of the filter `{name}` are separated by commas"),
                        );
                        filter.is_odd = true;
                        self.skip_to_bar();
                        break;
                    }
                    _ => {
                        filter.is_odd = true;
                        if self.next_is_value() {
                            self.problem(
                                here,
                                Warning,
                                format!("a comma is missing between the arguments of the filter `{name}`"),
                            );
                        } else {
                            self.finish("the filter");
                        }
                        self.skip_to_bar();
                        break;
                    }
                }
            }
            return Some(filter);
        }
        let here = self.here();
        match self.peek_mark() {
            "|" => {}
            _ if self.is_done() => {}
            "(" => {
                self.problem(
                    here,
                    Warning,
                    format!("the filter `{name}` is called with brackets: its arguments follow a colon"),
                );
                filter.is_odd = true;
                self.skip_to_bar();
            }
            "=" => {
                self.problem(
                    here,
                    Warning,
                    format!("the arguments of the filter `{name}` follow a colon, not `=`"),
                );
                filter.is_odd = true;
                self.skip_to_bar();
            }
            "," if self.lexemes.get(self.next + 1).is_some() => {
                self.problem(
                    here,
                    Warning,
                    format!("the filter `{name}` lacks a colon before its arguments"),
                );
                filter.is_odd = true;
                self.skip_to_bar();
            }
            _ if self.next_is_value()
                && !self.peek().is_some_and(|l| matches!(l.text, "and" | "or" | "contains")) =>
            {
                self.problem(
                    here,
                    Warning,
                    format!("the filter `{name}` lacks the colon before its argument"),
                );
                filter.is_odd = true;
                self.skip_to_bar();
            }
            _ => filter.is_odd = true,
        }
        Some(filter)
    }

    fn skip_to_bar(&mut self) {
        while !self.is_done() && self.peek_mark() != "|" {
            self.next += 1;
        }
    }

    /// A value. If there is none, nothing is consumed.
    pub fn value(&mut self) -> Value<'a> {
        if self.depth >= MAX_DEPTH {
            let message = format!("the brackets are nested more than {MAX_DEPTH} deep");
            self.problem(self.here(), Warning, message);
            self.next = self.lexemes.len();
            return Value::Missing;
        }
        self.depth += 1;
        let value = self.value_inside();
        self.depth -= 1;
        value
    }

    fn value_inside(&mut self) -> Value<'a> {
        let Some(lexeme) = self.peek() else { return Value::Missing };
        match (lexeme.kind, lexeme.text) {
            (Kind::Text, text) => {
                self.next += 1;
                Value::Text { text: &text[1..text.len() - 1], at: lexeme.at }
            }
            (Kind::OpenText, _) => {
                self.problem(lexeme.at, Warning, "a quote has no end");
                self.next = self.lexemes.len();
                Value::Missing
            }
            (Kind::Number, text) => {
                self.next += 1;
                Value::Number { text }
            }
            (Kind::Word, text @ ("nil" | "null" | "true" | "false" | "blank" | "empty"))
                if self.second_mark() != "." =>
            {
                self.next += 1;
                Value::Literal { text }
            }
            (Kind::Word, root) => {
                self.next += 1;
                let steps = self.steps();
                Value::Path { root, at: lexeme.at, steps }
            }
            (Kind::Mark, "(") => {
                let start = self.next;
                self.next += 1;
                let from = self.value();
                if self.take_mark("..") {
                    let to = self.value();
                    if self.take_mark(")") {
                        return Value::Range(Box::new((from, to)));
                    }
                    self.problem(lexeme.at, Warning, "a range has no closing bracket");
                    return Value::Missing;
                }
                self.next = start;
                Value::Missing
            }
            (Kind::Mark, "[") => {
                // `[name]` reads the variable whose name is the value.
                self.next += 1;
                let inner = self.value();
                if matches!(inner, Value::Missing) || !self.take_mark("]") {
                    self.problem(lexeme.at, Warning, "Liquid has no array literals: use `split`");
                    return Value::Missing;
                }
                self.steps();
                inner
            }
            (Kind::Mark, "{") => {
                self.problem(lexeme.at, Warning, "Liquid has no object literals");
                Value::Missing
            }
            (Kind::Mark, "!") => {
                self.problem(lexeme.at, Warning, "Liquid has no `!`: use `unless` or `== false`");
                self.next += 1;
                self.value()
            }
            _ => Value::Missing,
        }
    }

    fn steps(&mut self) -> Vec<Step<'a>> {
        let mut steps = Vec::new();
        loop {
            let at = self.here();
            if self.take_mark(".") {
                match self.word() {
                    Some((name, _)) => steps.push(Step::Name(name)),
                    None => {
                        self.problem(at, Warning, "a name is missing after the dot");
                        return steps;
                    }
                }
            } else if self.take_mark("[") {
                let index = self.value();
                if matches!(index, Value::Missing) {
                    self.problem(at, Warning, "the square brackets are empty");
                }
                steps.push(Step::Index(index));
                if !self.take_mark("]") {
                    self.problem(at, Warning, "a square bracket has no end");
                    return steps;
                }
            } else {
                return steps;
            }
        }
    }

    /// The condition of `if`, `elsif` or `unless`.
    pub fn condition(&mut self, tag: &str) -> Vec<Comparison<'a>> {
        let mut parts = Vec::new();
        if self.is_done() {
            self.problem(self.here(), Error, format!("`{tag}` has no condition"));
            return parts;
        }
        loop {
            let here = self.here();
            if self.peek_mark() == "(" && self.second_mark() != ".." {
                let is_range = self.lexemes.get(self.next + 2).is_some_and(|lexeme| lexeme.text == "..");
                if !is_range {
                    self.problem(
                        here,
                        Warning,
                        format!("brackets do not work in the condition of `{tag}`: use nested tags"),
                    );
                    return parts;
                }
            }
            if self.peek().is_some_and(|lexeme| lexeme.text == "not")
                && self.lexemes.get(self.next + 1).is_some_and(|lexeme| lexeme.kind != Kind::Mark)
            {
                self.problem(here, Warning, "Liquid has no `not`: use `unless` or `!=`");
                return parts;
            }
            let left = self.value();
            if matches!(left, Value::Missing) {
                self.problem(here, Error, format!("a value is missing in the condition of `{tag}`"));
                return parts;
            }
            let operator = match self.peek() {
                Some(Lexeme { text: "==" | "!=" | "<>" | "<" | ">" | "<=" | ">=" | "contains", .. }) => {
                    self.next += 1;
                    self.lexemes.get(self.next - 1).map(|lexeme| lexeme.text)
                }
                Some(Lexeme { text: "=", at, .. }) => {
                    self.problem(
                        at,
                        Error,
                        format!("`=` does not compare in the condition of `{tag}`: use `==`"),
                    );
                    return parts;
                }
                Some(Lexeme { text: text @ ("===" | "!==" | "=>" | "+=" | "-="), at, .. }) => {
                    self.problem(at, Error, format!("`{text}` is not an operator of Liquid"));
                    return parts;
                }
                _ => None,
            };
            let mut right = None;
            if let Some(operator) = operator {
                let here = self.here();
                let value = self.value();
                if matches!(value, Value::Missing) {
                    self.problem(
                        here,
                        Error,
                        format!("a value is missing after `{operator}` in the condition of `{tag}`"),
                    );
                    return parts;
                }
                right = Some(value);
            }
            parts.push(Comparison { left, operator, right });
            if self.is_done() {
                return parts;
            }
            if self.take_word("and") || self.take_word("or") {
                continue;
            }
            let here = self.here();
            let message = match self.peek().map_or("", |lexeme| lexeme.text) {
                "&&" => "`&&` is not Liquid: use `and`".to_owned(),
                "||" => "`||` is not Liquid: use `or`".to_owned(),
                "|" => format!("a filter does not work in the condition of `{tag}`: assign the value first"),
                "?" => "Liquid has no ternary operator: use `if`".to_owned(),
                "=" | "==" | "!=" | "<" | ">" => {
                    format!("the condition of `{tag}` compares twice: join comparisons with `and`")
                }
                text => format!("`{text}` is not expected in the condition of `{tag}`"),
            };
            self.problem(here, Warning, message);
            return parts;
        }
    }
}

fn lexemes(markup: &str, base: usize) -> Vec<Lexeme<'_>> {
    let bytes = markup.as_bytes();
    let mut found: Vec<Lexeme> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        let kind = match byte {
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            quote @ (b'"' | b'\'') => match memchr::memchr(quote, &bytes[at + 1..]) {
                Some(length) => {
                    at += length + 2;
                    Kind::Text
                }
                None => {
                    at = bytes.len();
                    Kind::OpenText
                }
            },
            b if b.is_ascii_alphabetic() || b == b'_' => {
                while bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')) {
                    at += 1;
                }
                // Names such as `posted_successfully?` end with a question mark.
                if bytes.get(at) == Some(&b'?') {
                    at += 1;
                }
                Kind::Word
            }
            b if b.is_ascii_digit() || (b == b'-' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)) => {
                at += 1;
                while bytes.get(at).is_some_and(u8::is_ascii_digit)
                    || (bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit))
                {
                    at += 1;
                }
                // After a dot, `2nd` is a name.
                if bytes.get(at).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
                    || found.last().is_some_and(|last| last.text == "." && last.at + 1 == base + start)
                {
                    while bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
                    {
                        at += 1;
                    }
                    Kind::Word
                } else {
                    Kind::Number
                }
            }
            _ => {
                let rest = &markup[at..];
                let mark = MARKS.iter().find(|mark| rest.starts_with(**mark));
                at += mark.map_or_else(|| rest.chars().next().map_or(1, char::len_utf8), |mark| mark.len());
                Kind::Mark
            }
        };
        found.push(Lexeme { kind, text: &markup[start..at], at: base + start });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_reports_what_the_platform_ignores() {
        let check = |markup: &str, expected: Option<&str>| {
            let mut parser = Parser::new(markup, 0);
            parser.filtered("the output");
            let found = parser.problems.first().map(|problem| problem.message.as_str());
            match (found, expected) {
                (Some(found), Some(expected)) => assert!(found.contains(expected), "{markup}: {found}"),
                (found, expected) => assert_eq!(found, expected, "{markup}"),
            }
        };
        check("product.title | escape", None);
        check("product['a'].b[0].size | append: 'x', 'y' | image_url: width: 3, height: 4", None);
        check("form.posted_successfully?", None);
        check("'a' | t: count: cart.item_count", None);
        check("section.settings.2nd", None);
        check("all_products[x.y].title | default: -1.5, allow_false: true", None);
        check("a | append('b')", Some("brackets"));
        check("a | append 'b'", Some("colon"));
        check("a ? b : c", Some("ternary"));
        check("a == b", Some("only in conditions"));
        check("a b", Some("not expected"));
        check("a + 1", Some("no operator"));
        check("'a | upcase", Some("quote"));
        check("a | replace: 'b' 'c'", Some("comma"));
        check("a | image_url: width = 3", Some("name: value"));
        check("a |", Some("name is missing"));
        check("a.", Some("after the dot"));
        check("a[0", Some("no end"));
        check("a || upcase", Some("||"));
    }

    #[test]
    fn a_condition_reports_what_is_not_a_condition() {
        let check = |markup: &str, expected: Option<&str>| {
            let mut parser = Parser::new(markup, 0);
            parser.condition("if");
            let found = parser.problems.first().map(|problem| problem.message.as_str());
            match (found, expected) {
                (Some(found), Some(expected)) => assert!(found.contains(expected), "{markup}: {found}"),
                (found, expected) => assert_eq!(found, expected, "{markup}"),
            }
        };
        check("a == 'b' and c contains d or e", None);
        check("a != blank", None);
        check("a.first == nil", None);
        check("", Some("no condition"));
        check("a = b", Some("use `==`"));
        check("a === b", Some("not an operator"));
        check("a && b", Some("use `and`"));
        check("a | size > 1", Some("filter"));
        check("(a or b) and c", Some("brackets"));
        check("!a", Some("unless"));
        check("not a", Some("unless"));
        check("a ==", Some("missing after"));
        check("a b", Some("not expected"));
    }
}
