//! What the tolerant parser makes of a markup that the strict one refuses.
//!
//! Until 2026, Shopify read a refused markup with patterns: it took what it found and ignored the rest. [`read`] says what it took, as a
//! markup that strict Liquid accepts and that gives the same output.
//!
//! - [`fragments`]: the pieces that the patterns find
//! - [`value`]: how strict Liquid writes a piece
//! - [`condition`]: the condition of an `if`
//! - [`spaced`]: an accepted markup, written so that the patterns find what the strict grammar finds

mod condition;
mod fragments;
mod spaced;
mod value;

use self::fragments::{
    attributes, filter_arguments, filters, fragment, fragments, last_colon, quoted_string, skip,
};
use self::value::{is_name, written};
use super::expression::Stop;
use super::pieces::{is_blank, is_word};
use super::{Kind, Lax, Span, sentence, tags};

/// The longest markup that is read. It keeps hostile files linear.
const LONGEST: usize = 4096;

/// What the patterns found.
enum Found {
    /// The tolerant parser refuses the markup, too.
    Refused,
    /// The same, as strict Liquid writes it.
    Same(String),
    /// It printed an error.
    Error(String),
    /// It set a variable of this name.
    Variable(String),
    /// It can't be written in strict Liquid.
    Unwritten,
}

pub fn read(name: &str, text: &str, markup: Span, stop: &Stop) -> Option<Lax> {
    if stop.kind.is_pairing()
        || matches!(
            stop.kind,
            Kind::Words | Kind::NestedDoc | Kind::CommentLines { .. } | Kind::RangeType | Kind::ElseWithWords
        )
    {
        return None;
    }
    let old = markup.of(text);
    if old.len() > LONGEST {
        return None;
    }
    let found = find(name, old);
    let sentence = said(name, &found)?;
    let markup = match found {
        Found::Same(new) if is_accepted(name, &new) => Some(new),
        _ => None,
    };
    Some(Lax { markup, sentence })
}

/// What the tolerant parser made of a markup that strict Liquid accepts, if it is something else.
pub fn otherwise(name: &str, markup: &str) -> Option<String> {
    // The tolerant parser read outputs with a strict grammar first. A name alone has no second reading.
    if matches!(name, "" | "echo" | "assign" | "capture" | "increment" | "decrement")
        || markup.len() > LONGEST
    {
        return None;
    }
    let spaced = spaced::spaced(name, markup).filter(|spaced| spaced != markup.trim())?;
    let Found::Same(new) = find(name, &spaced) else { return None };
    let old = find(name, markup);
    match &old {
        Found::Same(old) if spaced::plain(old) == spaced::plain(&spaced::restored(&new)) => None,
        // All values of the `cycle` are `nil`, and both show nothing.
        Found::Unwritten if name == "cycle" => None,
        _ => said(name, &old),
    }
}

fn is_accepted(name: &str, markup: &str) -> bool {
    tags::read(name, markup, 0, &|_| false).is_ok()
}

/// What the tolerant parser did, if it did not refuse the markup.
fn said(name: &str, found: &Found) -> Option<String> {
    let shown =
        |new: &str| if name.is_empty() { format!("{{{{ {new} }}}}") } else { format!("{name} {new}") };
    Some(match found {
        Found::Refused => return None,
        Found::Same(new) if is_accepted(name, new) => {
            format!("until now, the shop read it as {}", sentence::quoted(&shown(new)))
        }
        Found::Error(said) => format!("until now, the comparison failed with `Liquid error: {said}`"),
        Found::Variable(variable) => {
            format!("until now, the shop set a variable of the name {}", sentence::quoted(variable))
        }
        Found::Same(_) | Found::Unwritten => {
            "until now, the shop ignored what it did not understand".to_owned()
        }
    })
}

fn find(name: &str, markup: &str) -> Found {
    match name {
        "" | "echo" => output(markup),
        "assign" => assign(markup),
        "capture" => capture(markup),
        "increment" | "decrement" => Found::Variable(markup.trim().to_owned()),
        "if" | "unless" | "elsif" => condition::find(markup),
        "case" => fragment(markup, 0).map_or(Found::Refused, |piece| same(written(piece.of(markup)))),
        "when" => when(markup),
        "for" => for_loop(markup),
        "tablerow" => tablerow(markup),
        "cycle" => cycle(markup),
        "render" | "include" => partial(name, markup),
        // The parsers of Shopify's own tags are not public.
        _ => Found::Refused,
    }
}

fn same(markup: Option<String>) -> Found {
    markup.map_or(Found::Unwritten, Found::Same)
}

/// A value and its filters.
fn output(markup: &str) -> Found {
    // Brackets without a name before them were read with the strict grammar.
    if let Some(named) = with_self(markup) {
        return Found::Same(named);
    }
    same(filtered(markup))
}

/// The markup with `self` before each square bracket without a name, if strict Liquid accepts it then.
fn with_self(markup: &str) -> Option<String> {
    let mut markup = markup.trim().to_owned();
    for _ in 0..16 {
        match tags::read("", &markup, 0, &|_| false) {
            Ok(()) => return Some(markup),
            Err(stop) if stop.kind == Kind::BareBrackets => {
                markup.insert_str(stop.place.start as usize, "self");
            }
            Err(_) => return None,
        }
    }
    None
}

fn filtered(markup: &str) -> Option<String> {
    let Some(value) = fragment(markup, 0) else { return Some(String::new()) };
    let mut new = written(value.of(markup))?;
    for filter in filters(markup.get(value.end as usize..)?) {
        let Some(name) =
            filter.split(|c: char| !u8::try_from(c).is_ok_and(is_word)).find(|word| !word.is_empty())
        else {
            continue;
        };
        let arguments = filter_arguments(filter)
            .iter()
            .map(|(key, value)| argument(*key, value))
            .collect::<Option<Vec<_>>>()?;
        let colon = if arguments.is_empty() { "" } else { ": " };
        new = format!("{new} | {name}{colon}{}", arguments.join(", "));
    }
    Some(new)
}

fn argument(key: Option<&str>, value: &str) -> Option<String> {
    let value = written(value)?;
    Some(key.map_or_else(|| value.clone(), |key| format!("{key}: {value}")))
}

fn assign(markup: &str) -> Found {
    let Some((target, value)) = tags::assign_halves(markup) else { return Found::Refused };
    let target = target.of(markup);
    if !is_name(target) {
        return Found::Variable(target.to_owned());
    }
    match output(markup.get(value..).unwrap_or_default()) {
        Found::Same(new) => Found::Same(format!("{target} = {new}")),
        other => other,
    }
}

fn capture(markup: &str) -> Found {
    // The first letters, dots and brackets.
    let is_sign = |c: char| u8::try_from(c).is_ok_and(is_word) || matches!(c, '-' | '.' | '[' | ']');
    let Some(start) = markup.find(is_sign) else { return Found::Refused };
    let rest = markup.get(start..).unwrap_or_default();
    let name = rest.get(..rest.find(|c| !is_sign(c)).unwrap_or(rest.len())).unwrap_or_default();
    if is_name(name) { Found::Same(name.to_owned()) } else { Found::Variable(name.to_owned()) }
}

/// The values of a `when`, as far as commas or `or` join them.
fn when(markup: &str) -> Found {
    let (mut at, mut values) = (0, Vec::new());
    loop {
        let Some(piece) = fragment(markup, at) else {
            // Behind a comma, there must be a value.
            return if values.is_empty() { Found::Refused } else { same(joined(values)) };
        };
        values.push(written(piece.of(markup)));
        let end = piece.end as usize;
        let after = skip(markup, end);
        let rest = markup.get(after..).unwrap_or_default();
        let is_or = after > end
            && rest.strip_prefix("or").is_some_and(|rest| rest.starts_with([' ', '\t', '\n', '\r']));
        let step = if rest.starts_with(',') {
            1
        } else if is_or {
            2
        } else {
            0
        };
        at = skip(markup, after + step);
        if step == 0 || fragment(markup, at).is_none_or(|next| next.start as usize != at) {
            return same(joined(values));
        }
    }
}

fn joined(values: Vec<Option<String>>) -> Option<String> {
    values.into_iter().collect::<Option<Vec<_>>>().map(|values| values.join(", "))
}

/// `for`: a variable, `in`, a list, and `reversed` right behind it.
fn for_loop(markup: &str) -> Found {
    let is_sign = |c: char| u8::try_from(c).is_ok_and(is_word) || c == '-';
    let length = markup.find(|c| !is_sign(c)).unwrap_or(markup.len());
    let Some((list, end)) = list_behind(markup, length).filter(|_| length > 0) else { return Found::Refused };
    let variable = markup.get(..length).unwrap_or_default();
    let Some(list) = written(list) else { return Found::Unwritten };
    let rest = markup.get(skip(markup, end)..).unwrap_or_default();
    let reversed = if rest.starts_with("reversed") { " reversed" } else { "" };
    let mut options = [None, None];
    for (key, value) in attributes(markup) {
        match key {
            "limit" => options[0] = Some(written(value).map(|value| format!(" limit: {value}"))),
            "offset" if value == "continue" => options[1] = Some(Some(" offset: continue".to_owned())),
            "offset" => options[1] = Some(written(value).map(|value| format!(" offset: {value}"))),
            _ => {}
        }
    }
    let options = options.into_iter().flatten().collect::<Option<String>>();
    same(options.map(|options| format!("{variable} in {list}{reversed}{options}")))
}

/// The fragments behind blanks, `in` and blanks, and where they end.
fn list_behind(markup: &str, at: usize) -> Option<(&str, usize)> {
    let word = skip(markup, at);
    let rest = markup.get(word..)?.strip_prefix("in")?;
    let start = skip(markup, word + 2);
    if word == at || start == word + 2 || rest.is_empty() {
        return None;
    }
    let end = fragments(markup, start)?;
    Some((markup.get(start..end)?, end))
}

/// `tablerow`: the first word that `in` and a list follow.
fn tablerow(markup: &str) -> Found {
    let bytes = markup.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let mut end = at;
        while bytes.get(end).is_some_and(|byte| is_word(*byte)) {
            end += 1;
        }
        if end > at
            && let Some((list, _)) = list_behind(markup, end)
        {
            let variable = markup.get(at..end).unwrap_or_default();
            let options = attributes(markup)
                .into_iter()
                .filter(|(key, _)| matches!(*key, "cols" | "limit" | "offset" | "range"))
                .map(|(key, value)| written(value).map(|value| format!(" {key}: {value}")))
                .collect::<Option<String>>();
            return same(
                written(list).zip(options).map(|(list, options)| format!("{variable} in {list}{options}")),
            );
        }
        at = end.max(at + 1);
    }
    Found::Refused
}

/// The first value in each part between commas, behind a name and a colon.
fn cycle(markup: &str) -> Found {
    let Some(first) = fragment(markup, 0).filter(|piece| piece.start == 0) else { return Found::Refused };
    let piece = first.of(markup);
    let after = skip(markup, first.end as usize);
    let (name, values) = if markup.get(after..).is_some_and(|rest| rest.starts_with(':')) {
        (Some(piece), markup.get(after + 1..))
    } else {
        // A colon in the first fragment divides it: the last one.
        match last_colon(markup).filter(|at| *at > 0) {
            Some(at) => (markup.get(..at), markup.get(at + 1..)),
            None => (None, Some(markup)),
        }
    };
    let values: Option<Vec<String>> = values
        .unwrap_or_default()
        .split(',')
        // A `nil` that is written out is left out.
        .filter_map(|part| fragment(part, 0).map(|piece| piece.of(part)))
        .filter(|value| !matches!(*value, "nil" | "null"))
        .map(written)
        .collect();
    let Some(values) = values.filter(|values| !values.is_empty()) else { return Found::Unwritten };
    match name.map(written) {
        Some(None) => Found::Unwritten,
        Some(Some(name)) => Found::Same(format!("{name}: {}", values.join(", "))),
        None => Found::Same(values.join(", ")),
    }
}

/// `render` and `include`: a name, `for` or `with`, `as`, and all arguments with names.
fn partial(tag: &str, markup: &str) -> Found {
    let piece = if tag == "render" {
        quoted_string(markup)
    } else {
        fragment(markup, 0)
            .and_then(|piece| Some(Span { end: fragments(markup, piece.start as usize)? as u32, ..piece }))
    };
    let Some(piece) = piece else { return Found::Refused };
    let Some(mut new) = written(piece.of(markup)) else { return Found::Unwritten };
    let mut at = piece.end as usize;
    let word = |at: usize, word: &str| {
        let start = skip(markup, at);
        let rest = markup.get(start..)?.strip_prefix(word)?;
        let next = skip(markup, start + word.len());
        (start > at && next > start + word.len() && !rest.is_empty()).then_some(next)
    };
    for bind in ["with", "for"] {
        if let Some(start) = word(at, bind)
            && let Some(end) = fragments(markup, start)
        {
            let Some(value) = markup.get(start..end).and_then(written) else { return Found::Unwritten };
            new = format!("{new} {bind} {value}");
            at = end;
            break;
        }
    }
    if let Some(start) = word(at, "as") {
        let rest = markup.get(start..).unwrap_or_default();
        let length = rest
            .find(|c: char| !u8::try_from(c).is_ok_and(|b| is_word(b) || b == b'-'))
            .unwrap_or(rest.len());
        if length > 0 {
            new = format!("{new} as {}", rest.get(..length).unwrap_or_default());
        }
    }
    for (key, value) in attributes(markup) {
        let Some(value) = written(value) else { return Found::Unwritten };
        new = format!("{new}, {key}: {value}");
    }
    Found::Same(new)
}

/// Whether a text has nothing but blanks.
fn is_empty(text: &str) -> bool {
    text.bytes().all(is_blank)
}
