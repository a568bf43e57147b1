//! The expressions of Liquid: values, filters, conditions. They are read as far as they can be understood, because facts about a file are
//! wanted also where a place of it is refused. What is refused, [`crate::strict`] says.

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
    /// Whether it has a colon and nothing behind it.
    pub has_bare_colon: bool,
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
}

const MARKS: [&str; 14] =
    ["===", "!==", "==", "!=", "<>", "<=", ">=", "&&", "||", "..", "=>", "+=", "-=", "??"];

impl<'a> Parser<'a> {
    /// `at` is the position of `markup` in its file.
    pub fn new(markup: &'a str, at: usize) -> Self {
        Self { lexemes: lexemes(markup, at), next: 0, end: at + markup.trim_end().len(), depth: 0 }
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

    /// A value and its filters.
    pub fn filtered(&mut self) -> Filtered<'a> {
        let value = self.value();
        let mut filters = Vec::new();
        while !self.is_done() {
            // The filters after an odd place are still read.
            self.skip_to_bar();
            if self.take_mark("|") {
                filters.extend(self.filter());
            }
        }
        Filtered { value, filters }
    }

    fn filter(&mut self) -> Option<Filter<'a>> {
        let (name, at) = self.word()?;
        let mut filter = Filter {
            name,
            at,
            arguments: Vec::new(),
            named: Vec::new(),
            is_odd: false,
            has_bare_colon: false,
        };
        if self.take_mark(":") {
            loop {
                if let Some((name, _)) = self.name_with_colon() {
                    let value = self.value();
                    filter.named.push((name, value));
                } else if self.next_is_value() || self.peek_mark() == "(" || self.peek_mark() == "[" {
                    filter.arguments.push(self.value());
                } else if filter.arguments.is_empty() && filter.named.is_empty() {
                    filter.is_odd = true;
                    filter.has_bare_colon = self.is_done() || self.peek_mark() == "|";
                }
                if !self.take_mark(",") {
                    break;
                }
            }
        }
        filter.is_odd |= !self.is_done() && self.peek_mark() != "|";
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
                    return Value::Missing;
                }
                self.steps();
                inner
            }
            (Kind::Mark, "!") => {
                self.next += 1;
                self.value()
            }
            _ => Value::Missing,
        }
    }

    fn steps(&mut self) -> Vec<Step<'a>> {
        let mut steps = Vec::new();
        loop {
            if self.take_mark(".") {
                let Some((name, _)) = self.word() else { return steps };
                steps.push(Step::Name(name));
            } else if self.take_mark("[") {
                steps.push(Step::Index(self.value()));
                if !self.take_mark("]") {
                    return steps;
                }
            } else {
                return steps;
            }
        }
    }

    /// The comparisons of a condition, as far as they can be read.
    pub fn condition(&mut self) -> Vec<Comparison<'a>> {
        let mut parts = Vec::new();
        loop {
            let left = self.value();
            if matches!(left, Value::Missing) {
                return parts;
            }
            let mut comparison = Comparison { left, operator: None, right: None };
            if let Some(Lexeme {
                text: text @ ("==" | "!=" | "<>" | "<" | ">" | "<=" | ">=" | "contains"),
                ..
            }) = self.peek()
            {
                self.next += 1;
                (comparison.operator, comparison.right) = (Some(text), Some(self.value()));
            }
            parts.push(comparison);
            if !self.take_word("and") && !self.take_word("or") {
                return parts;
            }
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
