//! What a refusal says: what Shopify refuses, and what to write.

use super::expression::Stop;
use super::{Kind, Span};

/// The longest quotation of a file in a sentence, in characters.
const LONGEST: usize = 60;

/// A part of the file in one line, cut if it is long.
pub fn quoted(part: &str) -> String {
    let words = part.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = words.chars().take(LONGEST).collect();
    if shown.len() < words.len() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// The tag as the subject of a sentence.
fn subject(name: &str) -> String {
    if name.is_empty() { "an output".to_owned() } else { format!("`{name}`") }
}

/// The first sign at a place, as far as people know them as operators of other languages.
fn sign_at(text: &str, at: usize) -> &str {
    const SIGNS: [&str; 17] =
        ["===", "!==", "==", "!=", "&&", "||", "=>", "+=", "-=", "??", "<=", ">=", "<>", "=", "!", "&", "?"];
    let rest = text.get(at..).unwrap_or_default();
    SIGNS.iter().find(|sign| rest.starts_with(**sign)).map_or_else(
        || {
            let length = rest.chars().next().map_or(0, char::len_utf8);
            rest.get(..length).unwrap_or_default()
        },
        |sign| rest.get(..sign.len()).unwrap_or_default(),
    )
}

fn is_condition(name: &str) -> bool {
    matches!(name, "if" | "unless" | "elsif")
}

pub fn of(name: &str, text: &str, stop: &Stop) -> String {
    let place = stop.place.of(text);
    let at = stop.place.start as usize;
    let tag = subject(name);
    match &stop.kind {
        Kind::OpenOutput => "an output has no `}}`".to_owned(),
        Kind::OpenTag => "a tag has no `%}`".to_owned(),
        Kind::NamelessTag => format!("{} has no name of a tag", quoted(place)),
        Kind::UnknownTag => unknown_tag(name),
        Kind::StrayEnd => match name.strip_prefix("end") {
            Some(opened) => format!("`{name}` has no `{opened}` that it could end here"),
            None => format!("`{name}` ends nothing here"),
        },
        Kind::StrayBranch => format!("`{name}` does not belong to a block here"),
        Kind::OpenBlock => format!("`{name}` has no `end{name}`"),
        Kind::TooDeep => format!("tags are nested deeper than {} levels", super::MAX_NESTING),
        Kind::VerbatimInLiquid => format!("`{name}` can't end in `liquid`: write `{{% {name} %}}` as a tag of its own"),
        Kind::Words if name == "stylesheet" => format!("{tag} takes only `'scss'`, not {}", quoted(place)),
        Kind::Words => format!("{tag} takes no words: delete {}", quoted(place)),
        Kind::NestedDoc => "a `doc` stands in a `doc`: end the first one before".to_owned(),
        Kind::CommentLines { starts } => {
            let count = starts.len();
            let lines = if count == 1 { "a line".to_owned() } else { format!("{count} lines") };
            format!("{lines} of the comment lack `#`: each line begins with it")
        }
        Kind::Character => character(name, text, stop.place),
        Kind::OpenQuote => "a quote has no end".to_owned(),
        Kind::BareBrackets => {
            "a square bracket needs a name before it: a variable by its name is `self['name']`; Liquid has no lists, use `split`".to_owned()
        }
        Kind::NumberAsProperty => format!("`.{place}` is no property: write `[{place}]`"),
        Kind::RangeType => format!("the range {} can't be counted: its ends are numbers", quoted(place)),
        Kind::Value => value(name, text, stop),
        Kind::Name if text.get(..at).is_some_and(|before| before.trim_end().ends_with('|')) => {
            format!("a filter's name is missing before {}", or_end(place))
        }
        Kind::Name => format!("a name is missing before {}", or_end(place)),
        Kind::Sign { expected: ":" } => format!("a colon is missing before {}: an argument is `name: value`", or_end(place)),
        Kind::Sign { expected: ".." } if is_condition(name) => {
            format!("brackets do not work in the condition of {tag}: use nested tags")
        }
        Kind::Sign { expected: ".." } => "round brackets stand only around a range such as `(1..5)`".to_owned(),
        Kind::Sign { expected } => format!("`{expected}` is missing before {}", or_end(place)),
        Kind::Rest => rest(name, text, stop.place),
        Kind::Target if name == "assign" && !place.contains('=') && stop.parser.starts_with("Syntax") => {
            "`assign` lacks its `=`: write `assign name = value`".to_owned()
        }
        Kind::Target if place.is_empty() => format!("{tag} has no name of a variable"),
        Kind::Target => format!("{} is no name of a variable: a name has letters, digits, `_` and `-`", quoted(place)),
        Kind::LoopWithoutIn => format!("{tag} lacks `in`: write `{name} item in list`"),
        Kind::LoopOption if name == "for" && place == "reversed" => {
            "`reversed` stands behind the list, before `limit` and `offset`".to_owned()
        }
        Kind::LoopOption => {
            let options = if name == "for" { "`limit` and `offset`" } else { "`cols`, `limit`, `offset` and `range`" };
            format!("{} is no option of {tag}: it has {options}", or_end(place))
        }
        Kind::NameWithoutQuotes => format!("{tag} needs a name in quotes, not {}", or_end(place)),
        Kind::PaginateWithoutBy => "`paginate` lacks `by`: write `paginate list by 12`".to_owned(),
        Kind::Arguments => format!("the arguments of {tag} are a type, at most one more value, and then `name: value`"),
        Kind::ElseWithWords => "`else` of a `case` takes no condition: use `when`".to_owned(),
    }
}

fn or_end(place: &str) -> String {
    if place.is_empty() { "the end".to_owned() } else { quoted(place) }
}

fn unknown_tag(name: &str) -> String {
    match name.to_ascii_lowercase().as_str() {
        "elseif" | "elif" | "elselif" | "elsif" => format!("`{name}` is not a tag: use `elsif`"),
        "end" => "`end` is not a tag: write which block ends, such as `endif`".to_owned(),
        _ => format!("`{name}` is not a tag of Liquid"),
    }
}

fn character(name: &str, text: &str, place: Span) -> String {
    let sign = sign_at(text, place.start as usize);
    if text.get(place.start as usize..).is_some_and(|rest| rest.starts_with("{{")) {
        return format!("{} has no end before the next `{{{{`", subject(name));
    }
    if let Some(hidden) = sign.chars().next().filter(|c| is_hidden(*c)) {
        let code = u32::from(hidden);
        return format!(
            "an invisible character (U+{code:04X}) stands in Liquid: delete it, or write a blank"
        );
    }
    let what = match sign {
        "–" | "—" => "use `-`".to_owned(),
        "&&" | "&" => "use `and`".to_owned(),
        "=" if is_condition(name) => "use `==`".to_owned(),
        "=" => "an argument is `name: value`, and only `assign` has a `=`".to_owned(),
        "===" => "use `==`".to_owned(),
        "!==" => "use `!=`".to_owned(),
        "!" => "use `unless` or `== false`".to_owned(),
        "=>" => "use `>=`, or a colon".to_owned(),
        "+" | "*" | "/" | "%" | "+=" | "-=" => "use a filter such as `plus`".to_owned(),
        "{" | "}" => "Liquid has no objects, and no Liquid stands in Liquid".to_owned(),
        "“" | "”" | "„" | "‘" | "’" => "use straight quotes".to_owned(),
        _ => "delete it, or put it in quotes".to_owned(),
    };
    format!("{} is not Liquid: {what}", quoted(sign))
}

/// Blanks that Liquid does not know, and characters without a width.
pub fn is_hidden(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
}

fn value(name: &str, text: &str, stop: &Stop) -> String {
    let place = stop.place.of(text);
    let tag = subject(name);
    if place.is_empty() {
        return match name {
            "" => "a value is missing at the end of the output".to_owned(),
            _ => format!("{tag} lacks a value at its end"),
        };
    }
    match place {
        "contains" => "`contains` is an operator, so no variable can have this name alone".to_owned(),
        _ => format!("a value is missing in {tag} before {}", quoted(place)),
    }
}

fn rest(name: &str, text: &str, place: Span) -> String {
    let words = place.of(text);
    let tag = subject(name);
    let first = words.split_whitespace().next().unwrap_or_default();
    let sign = sign_at(text, place.start as usize);
    let what = match sign {
        "|" if is_condition(name) => {
            "a filter does not work in a condition: assign the value first".to_owned()
        }
        "|" => format!("a filter does not work in {tag}: assign the value first"),
        "||" => "`||` is not Liquid: one `|` precedes a filter, and `or` joins conditions".to_owned(),
        "?" | "??" => "Liquid has no `?`: use `if`, or the filter `default`".to_owned(),
        "(" => "round brackets call nothing: the arguments of a filter follow a colon".to_owned(),
        "-" => "use the filter `minus`".to_owned(),
        "==" | "!=" | "<" | ">" | "<=" | ">=" | "<>" if is_condition(name) => {
            "one comparison has one operator: join comparisons with `and`".to_owned()
        }
        "==" | "!=" | "<" | ">" | "<=" | ">=" | "<>" => format!("{tag} compares nothing: use `if`"),
        ":" | "," if name.is_empty() || matches!(name, "echo" | "assign") => {
            "the arguments of a filter follow `name:` and have commas between them".to_owned()
        }
        _ => match first {
            "and" | "or" | "contains" if !is_condition(name) => format!("`{first}` works only in conditions"),
            _ if matches!(name, "" | "echo" | "assign") => {
                "filters follow a `|`, and their arguments a colon, with commas between them".to_owned()
            }
            _ => "delete it, or write it as the tag expects it".to_owned(),
        },
    };
    format!("{tag} does not expect {}: {what}", quoted(words))
}
