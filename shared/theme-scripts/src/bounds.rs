//! Bounds on what the parser is given. It calls itself for each bracket, and it reads some brackets again and again.
//!
//! A `(` may begin the parameters of an arrow function. The parser tries that first. If no `=>` follows, it goes back and reads
//! the bracket once more. So a byte is read once more for each such bracket around it, and memory is not given back. The scan
//! here takes linear time and counts these repetitions before the parser runs.
//!
//! For some words, such as `await`, the checks of the parser visit everything around the word. The scan counts these steps, too: at
//! most, each token of a statement is around each of its words.
//!
//! The scan must see the same tokens as the parser, or brackets could hide. Only the grammar decides whether some slashes divide
//! or begin a regular expression. Where that matters, the script is not read.

use std::fmt;

/// The deepest nesting of brackets, and of scopes without them. 1,181 real scripts of at least 3 KB, also minified ones, have at most 17.
const MAX_DEPTH: usize = 200;
/// How many times a script is read again on average. Real scripts stay below 2.
const MAX_REPEATS: usize = 8;
/// So many bytes may always be read again.
const FREE_REPEATS: usize = 16 * 1024;

/// How many steps to the outside are allowed, per byte of the script. Real scripts stay below 3.
const MAX_STEPS: usize = 64;
/// So many steps are always allowed.
const FREE_STEPS: usize = 1024 * 1024;

/// So many words before colons may stand in one statement before each counts as a label.
const FREE_LABELS: usize = 8;

/// The most parameters of a function: the parser compares each with all others. Arguments look like parameters.
const MAX_ITEMS: usize = 1_000;

/// Why a script is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    Depth,
    Repeats,
    Steps,
    Items,
    Ambiguous,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth => {
                write!(f, "its brackets, loops and functions are nested more than {MAX_DEPTH} deep")
            }
            Self::Repeats => {
                write!(
                    f,
                    "brackets that may hold parameters are nested so that it would be read more than {MAX_REPEATS} times"
                )
            }
            Self::Steps => f.write_str(
                "a statement is too long for the number of words such as `await` and `break` in it",
            ),
            Self::Items => write!(f, "more than {MAX_ITEMS} parameters or arguments stand in a bracket"),
            Self::Ambiguous => f.write_str("here a slash may divide or begin a regular expression"),
        }
    }
}

/// What precedes a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// A slash after it begins a regular expression, and a bracket encloses a value.
    Operator,
    /// A slash after it divides, and a bracket encloses arguments.
    Operand,
    /// Both are possible.
    Unsure,
    /// `if` and its kin: the bracket encloses a condition.
    Control,
    /// After a point, every word is a name.
    Point,
}

struct Bracket {
    byte: u8,
    is_condition: bool,
    /// Whether the parser may read it twice.
    is_repeated: bool,
    inside: Inside,
}

/// What stands in a bracket.
#[derive(Clone, Copy, Default)]
struct Inside {
    /// The tokens since the last `;` or `,`. The syntax is no deeper, but for chains of `else`.
    tokens: usize,
    /// The costly words among them, with those in brackets.
    words: usize,
    /// The words before a colon among them: possibly labels.
    labels: usize,
    /// The scopes among them that need no bracket: of `for`, `with` and `=>`.
    scopes: usize,
    /// The `,` and `;` of the whole bracket.
    items: usize,
    /// The `else` of the whole bracket.
    elses: usize,
    /// The costly words of the whole bracket.
    all_words: usize,
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    before: Before,
    open: Vec<Bracket>,
    /// The open brackets that may be read twice.
    repeated: usize,
    /// The bytes that are read again.
    repeats: usize,
    /// Only blanks and comments precede on this line.
    is_line_start: bool,
    deepest: usize,
    /// The scopes without brackets that may be open here.
    scopes: usize,
    /// What stands outside of all brackets.
    outside: Inside,
    steps: usize,
}

/// The first place where the script exceeds a bound.
///
/// # Errors
/// The place in bytes, and the bound.
pub fn check(source: &str) -> Result<(), (usize, Excess)> {
    let mut scan = Scan::new(source);
    let most = FREE_REPEATS + source.len() * MAX_REPEATS;
    let most_steps = FREE_STEPS + source.len() * MAX_STEPS;
    while scan.at < scan.bytes.len() {
        let start = scan.at;
        scan.step().map_err(|excess| (start, excess))?;
        scan.repeats += (scan.at - start) * scan.repeated;
        if scan.deepest > MAX_DEPTH {
            return Err((start, Excess::Depth));
        }
        if scan.repeats > most {
            return Err((start, Excess::Repeats));
        }
        if scan.steps > most_steps {
            return Err((start, Excess::Steps));
        }
    }
    scan.end();
    if scan.steps > most_steps { Err((0, Excess::Steps)) } else { Ok(()) }
}

impl<'a> Scan<'a> {
    fn new(source: &'a str) -> Self {
        let mut scan = Self {
            bytes: source.as_bytes(),
            at: 0,
            before: Before::Operator,
            open: Vec::new(),
            repeated: 0,
            repeats: 0,
            is_line_start: true,
            deepest: 0,
            scopes: 0,
            outside: Inside::default(),
            steps: 0,
        };
        if source.starts_with("#!") {
            scan.at = line_end(scan.bytes, 0);
        }
        scan
    }

    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    fn step(&mut self) -> Result<(), Excess> {
        let rest = self.rest();
        if let Some(length) = blank(rest) {
            self.is_line_start |= rest[..length].contains(&b'\n') || length == 3;
            self.at += length;
            return Ok(());
        }
        // In a script, HTML's comments are comments, too. In a module, they are operators.
        let is_html = rest.starts_with(b"<!--") || (rest.starts_with(b"-->") && self.is_line_start);
        if is_html && matters(&rest[..line_end(rest, 0)]) {
            return Err(Excess::Ambiguous);
        }
        if rest.starts_with(b"//") {
            self.at += line_end(rest, 0);
            return Ok(());
        }
        if rest.starts_with(b"/*") {
            let length = memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4);
            self.is_line_start |= rest[..length].contains(&b'\n');
            self.at += length;
            return Ok(());
        }
        self.is_line_start = false;
        self.inside().tokens += 1;
        match rest[0] {
            b';' | b',' => {
                self.end_part();
                if let Some(Bracket { byte: b'(', inside, .. }) = self.open.last_mut() {
                    inside.items += 1;
                    if inside.items > MAX_ITEMS {
                        return Err(Excess::Items);
                    }
                }
                self.at += 1;
                self.before = Before::Operator;
            }
            b':' => {
                let is_label = self.before == Before::Operand || self.before == Before::Unsure;
                let inside = self.inside();
                inside.labels += usize::from(is_label);
                if inside.labels > FREE_LABELS {
                    self.costly();
                }
                self.at += 1;
                self.before = Before::Operator;
            }
            b'/' => self.slash()?,
            quote @ (b'"' | b'\'') => self.string(quote),
            b'`' => {
                self.at += 1;
                self.template();
            }
            byte if is_word(byte) => self.word(),
            b'(' => {
                let is_condition = self.before == Before::Control;
                let is_repeated =
                    !is_condition && self.before != Before::Operand && may_be_parameters(&rest[1..]);
                self.push(b'(', is_condition, is_repeated);
            }
            b'=' if rest.get(1) == Some(&b'>') => {
                self.scope();
                self.at += 2;
                self.before = Before::Operator;
            }
            b'[' => self.push(b'[', false, false),
            b'{' => self.push(b'{', false, false),
            byte @ (b')' | b']' | b'}') => self.close(byte),
            b'+' | b'-' if rest.get(1) == Some(&rest[0]) => {
                self.at += 2;
                self.before = Before::Unsure;
            }
            b'.' => {
                self.at += 1;
                // `...` precedes a value.
                self.before = if rest.starts_with(b"...") {
                    self.at += 2;
                    Before::Operator
                } else {
                    Before::Point
                };
            }
            _ => {
                self.at += 1;
                self.before = Before::Operator;
            }
        }
        Ok(())
    }

    fn inside(&mut self) -> &mut Inside {
        self.open.last_mut().map_or(&mut self.outside, |open| &mut open.inside)
    }

    /// Counts a word for which the checks visit everything around it.
    fn costly(&mut self) {
        let inside = self.inside();
        inside.words += 1;
        inside.all_words += 1;
    }

    fn scope(&mut self) {
        self.inside().scopes += 1;
        self.scopes += 1;
        self.deepest = self.deepest.max(self.open.len() + self.scopes);
    }

    /// Ends a statement, or an item of a list.
    fn end_part(&mut self) {
        let inside = self.inside();
        let steps = inside.words.saturating_mul(inside.tokens);
        let scopes = inside.scopes;
        (inside.words, inside.tokens, inside.labels, inside.scopes) = (0, 0, 0, 0);
        self.scopes -= scopes;
        self.steps = self.steps.saturating_add(steps);
    }

    /// Ends a bracket, whose words are also words of what is around it.
    fn end_bracket(&mut self) -> Option<Bracket> {
        self.end_part();
        let open = self.open.pop()?;
        let Inside { all_words, elses, .. } = open.inside;
        self.steps = self.steps.saturating_add(all_words.saturating_mul(elses));
        let inside = self.inside();
        inside.words += all_words;
        inside.all_words += all_words;
        self.repeated -= usize::from(open.is_repeated);
        Some(open)
    }

    fn end(&mut self) {
        while self.end_bracket().is_some() {}
        self.steps = self.steps.saturating_add(self.outside.all_words.saturating_mul(self.outside.elses));
    }

    fn push(&mut self, byte: u8, is_condition: bool, is_repeated: bool) {
        self.open.push(Bracket { byte, is_condition, is_repeated, inside: Inside::default() });
        self.repeated += usize::from(is_repeated);
        self.deepest = self.deepest.max(self.open.len() + self.scopes);
        self.at += 1;
        self.before = Before::Operator;
    }

    fn close(&mut self, byte: u8) {
        self.at += 1;
        // A bracket that does not fit ends the parser's work, but what was opened stays open here.
        let wanted = match byte {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        let fits =
            self.open.last().is_some_and(|open| open.byte == wanted || (byte == b'}' && open.byte == b'`'));
        let Some(open) = fits.then(|| self.end_bracket()).flatten() else {
            self.before = Before::Unsure;
            return;
        };
        if open.byte == b'`' {
            self.template();
            return;
        }
        self.before = match byte {
            b')' if open.is_condition => Before::Operator,
            b'}' => Before::Unsure,
            _ => Before::Operand,
        };
    }

    fn word(&mut self) {
        let rest = self.rest();
        let length = word_length(rest);
        let word = &rest[..length];
        self.at += length;
        if word[0].is_ascii_digit() {
            // `1.` and `1.5e3`: the point belongs to the number.
            if self.rest().first() == Some(&b'.') {
                self.at += 1;
                self.at += word_length(self.rest());
            }
            self.before = Before::Operand;
            return;
        }
        let is_name = self.before == Before::Point;
        match word {
            _ if is_name => {}
            b"await" | b"yield" | b"arguments" | b"eval" | b"let" | b"super" | b"break" | b"continue" => {
                self.costly();
            }
            b"else" => self.inside().elses += 1,
            b"for" | b"with" => self.scope(),
            _ if word.contains(&b'\\') => self.costly(),
            _ => {}
        }
        self.before = match word {
            _ if is_name => Before::Operand,
            b"if" | b"while" | b"for" | b"with" => Before::Control,
            // `for await (`
            b"await" if self.before == Before::Control => Before::Control,
            b"return" | b"typeof" | b"case" | b"in" | b"instanceof" | b"void" | b"delete" | b"throw"
            | b"else" | b"do" | b"new" | b"extends" | b"default" => Before::Operator,
            // Words that are names in some places, and all words with escapes.
            b"await" | b"yield" | b"of" | b"let" | b"async" | b"static" | b"get" | b"set" | b"using"
            | b"import" | b"export" | b"var" | b"const" | b"as" | b"from" | b"accessor" => Before::Unsure,
            _ if word.contains(&b'\\') => Before::Unsure,
            _ => Before::Operand,
        };
    }

    fn slash(&mut self) -> Result<(), Excess> {
        let rest = self.rest();
        let length = match self.before {
            Before::Operand | Before::Point => None,
            Before::Operator | Before::Control => regex_length(rest),
            Before::Unsure => {
                let length = regex_length(rest);
                if length.is_some_and(|length| matters(&rest[1..length])) {
                    return Err(Excess::Ambiguous);
                }
                length
            }
        };
        self.at += length.unwrap_or(1);
        self.before = if length.is_some() { Before::Operand } else { Before::Operator };
        Ok(())
    }

    fn string(&mut self, quote: u8) {
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                // Also a line break, and both of its bytes.
                b'\\' if self.bytes[self.at + 1..].starts_with(b"\r\n") => self.at += 3,
                b'\\' => self.at += 2,
                // The string has no end. What follows is read as code, to be sure.
                b'\n' | b'\r' => break,
                _ => {
                    self.at += 1;
                    if byte == quote {
                        break;
                    }
                }
            }
        }
        self.at = self.at.min(self.bytes.len());
        self.before = Before::Operand;
    }

    /// The text of a template up to its end or to the next `${`.
    fn template(&mut self) {
        loop {
            match memchr::memchr3(b'\\', b'`', b'$', self.rest()) {
                None => {
                    self.at = self.bytes.len();
                    return;
                }
                Some(length) => self.at += length,
            }
            match self.bytes[self.at] {
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                b'`' => {
                    self.at += 1;
                    self.before = Before::Operand;
                    return;
                }
                _ if self.bytes.get(self.at + 1) == Some(&b'{') => {
                    self.at += 1;
                    self.push(b'`', false, false);
                    return;
                }
                _ => self.at += 1,
            }
        }
    }
}

/// Whether the parser tries to read what follows a `(` as the parameters of an arrow function.
fn may_be_parameters(rest: &[u8]) -> bool {
    let rest = skip_blanks(rest);
    match rest.first() {
        Some(b'[' | b'{') => true,
        Some(b'.') => rest.starts_with(b"..."),
        Some(byte) if is_word(*byte) && !byte.is_ascii_digit() => {
            let after = skip_blanks(&rest[word_length(rest)..]);
            match after.first() {
                Some(b',' | b')') => true,
                Some(b'=') => !matches!(after.get(1), Some(b'=' | b'>')),
                _ => false,
            }
        }
        _ => false,
    }
}

fn skip_blanks(mut rest: &[u8]) -> &[u8] {
    loop {
        let length = if let Some(length) = blank(rest) {
            length
        } else if rest.starts_with(b"//") {
            line_end(rest, 0)
        } else if rest.starts_with(b"/*") {
            memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4)
        } else {
            return rest;
        };
        rest = &rest[length..];
    }
}

/// The length of the blank that begins here. Of the blanks beyond ASCII, three bytes each but one.
fn blank(rest: &[u8]) -> Option<usize> {
    match rest {
        [b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C, ..] => Some(1),
        [0xC2, 0xA0, ..] => Some(2),
        [0xE2, 0x80, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF, ..]
        | [0xE2, 0x81, 0x9F, ..]
        | [0xE3, 0x80, 0x80, ..]
        | [0xE1, 0x9A, 0x80, ..]
        | [0xEF, 0xBB, 0xBF, ..] => Some(3),
        _ => None,
    }
}

/// The end of the line: JavaScript has four characters for it.
fn line_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() {
        at += match memchr::memchr3(b'\n', b'\r', 0xE2, &bytes[at..]) {
            None => return bytes.len(),
            Some(length) => length,
        };
        if bytes[at] != 0xE2 || matches!(bytes[at..], [_, 0x80, 0xA8 | 0xA9, ..]) {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// Whether a part that may be a regular expression would change what follows if it were code.
fn matters(part: &[u8]) -> bool {
    part.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'`' | b'(' | b')' | b'[' | b']' | b'{' | b'}'))
        || memchr::memmem::find(part, b"/*").is_some()
        || memchr::memmem::find(part, b"//").is_some()
}

/// The length of the regular expression that begins here, if it ends on its line.
fn regex_length(rest: &[u8]) -> Option<usize> {
    let mut in_class = false;
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\n' | b'\r' => return None,
            0xE2 if matches!(rest[at..], [_, 0x80, 0xA8 | 0xA9, ..]) => return None,
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

fn word_length(rest: &[u8]) -> usize {
    let mut at = 0;
    while at < rest.len() && is_word(rest[at]) && (rest[at] < 0x80 || blank(&rest[at..]).is_none()) {
        at += 1;
    }
    at
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#' | b'\\') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excess(source: &str) -> Option<Excess> {
        check(source).err().map(|(at, excess)| {
            assert!(at <= source.len());
            excess
        })
    }

    #[test]
    fn hostile_nesting_is_found() {
        for unit in ["a=(", "({a=", "([a=", "async(a=", "(a,", "(a=()=>{", "return(a=", "if(a)(b=", "(a=`${"]
        {
            assert!(matches!(excess(&unit.repeat(1_000)), Some(Excess::Depth | Excess::Repeats)), "{unit}");
        }
        // Not deep, but much text is inside.
        let inner = "a+".repeat(50_000);
        assert_eq!(excess(&format!("{}{inner}a", "(a=".repeat(20))), Some(Excess::Repeats));
        assert_eq!(excess(&format!("{}{inner}a", "f(a,".repeat(20))), None, "arguments are read once");
        assert_eq!(excess(&format!("{}a", "await ".repeat(20_000))), Some(Excess::Steps));
        assert_eq!(excess(&format!("for(;;){{{}}}", "if(a)break;else ".repeat(9_000))), Some(Excess::Steps));
        assert_eq!(excess(&"await a;".repeat(20_000)), None);
        let names: Vec<String> = (0..=MAX_ITEMS + 1).map(|n| format!("a{n}")).collect();
        assert_eq!(excess(&format!("function f({}){{}}", names.join(","))), Some(Excess::Items));
        assert_eq!(excess(&format!("function f({}){{}}", names[..MAX_ITEMS].join(","))), None);
        for unit in ["with(a)", "for(;;)", "a=b=>"] {
            assert_eq!(excess(&format!("{}c", unit.repeat(300))), Some(Excess::Depth), "{unit}");
            assert_eq!(excess(&format!("{unit}c;").repeat(300)), None, "{unit}");
        }
    }

    #[test]
    fn nothing_hides_brackets() {
        let deep = "(a=".repeat(1_000);
        for before in [
            "'\\''",
            "\"'\"",
            "/'/",
            "a=/[/'](/",
            "a/b;'/'",
            "`'`",
            "`${'}'}`",
            "/*'*/",
            "//'\n",
            "//'\u{2028}",
            "if(a)/'/;",
            "(a)/b/'c';",
            "a.if/b;'/'",
            "return/'/;",
            "x=>/'/;",
            "1./b;'/'",
            "'a\\\r\nb'",
            "'a\n",
        ] {
            let found = excess(&format!("{before}{deep}"));
            assert!(matches!(found, Some(Excess::Depth | Excess::Repeats)), "{before}: {found:?}");
        }
        for before in ["{}/'/;", "a++/'/;", "yield/'/;", "<!--'\n", "\n-->'\n"] {
            assert_eq!(excess(&format!("{before}{deep}")), Some(Excess::Ambiguous), "{before}");
        }
        // A slash that makes no difference.
        for fine in ["{}/a/.b", "while(n-->0)'a'", "a++/2", "}\n/2/"] {
            assert_eq!(excess(fine), None, "{fine}");
        }
    }
}
