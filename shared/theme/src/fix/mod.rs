//! Mends what strict Liquid refuses.
//!
//! Shopify takes no file that has a refused place ([`crate::strict`]). [`file()`] writes each such place in strict Liquid: *as it is shown
//! today*, so that the page stays the same, or *as it was meant*, where that is clear. All bytes outside of the places stay.
//!
//! - `places`: the smallest edits that turn one markup into another
//! - `meant`: what was meant
//! - `branches`: `else if`, which Liquid accepts and does not read as it was meant
//! - `also`: what Shopify accepts and what is mended on request
//! - `includes`: of that, `include` where `render` shows the same
//! - `stored`: Liquid in JSON, whose places are escaped
//! - `theme`: the files of a theme, some of which say where others have Liquid
//! - `choices`: what a person can do where nothing is safe
//! - `diff`: the edits as a unified diff
//!
//! `tests/liquid/strict` has what Liquid itself says of the mended templates.

mod also;
mod branches;
mod choices;
mod diff;
mod includes;
mod meant;
mod places;
mod stored;
#[cfg(test)]
mod tests;
mod theme;

use rustc_hash::FxHashSet;
use serde::Serialize;
use utoipa::ToSchema;

pub use self::also::Also;
use self::branches::Branch;
use self::meant::Names;
use self::places::Edit;
use self::stored::Settings;
pub use self::theme::{FixedFile, Mender};
use crate::strict::{self, Kind, Refusal};
use crate::text::{Lines, Span};

/// How a place is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The page shows what it shows today.
    AsShown,
    /// Where it is clear what was meant, the page shows that. Elsewhere, what it shows today.
    AsMeant,
}

/// How often edits are taken back before all are. Each time, at least one is.
const MOST_ROUNDS: usize = 8;

/// A file after its mends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fixed {
    /// The new text. It is the old one, if nothing was changed.
    pub text: String,
    pub changes: Vec<MendedPlace>,
    /// What is still refused.
    pub left: Vec<LeftPlace>,
    #[serde(skip)]
    edits: Vec<Edit>,
}

/// A tag or output that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MendedPlace {
    /// The line in the old text.
    pub line: u32,
    /// The name of the finding that it mends.
    pub code: &'static str,
    /// The kind of fault.
    pub kind: &'static str,
    /// The tag or output before. In `{% liquid %}`, the line.
    pub before: String,
    /// The same after the change.
    pub after: String,
    /// What was refused, and why the new tag is right.
    pub reason: String,
    /// What the page shows now that it did not show before. Left out if the page stays the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// A place that is still refused, or a finding that was to be mended and has no certain mend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct LeftPlace {
    /// The line in the old text.
    pub line: u32,
    /// The name of the finding.
    pub code: &'static str,
    /// The kind of fault.
    pub kind: &'static str,
    /// The tag or output.
    pub place: String,
    /// Why it was not mended.
    pub reason: String,
    /// What a person can do.
    pub choices: Vec<String>,
}

impl Fixed {
    /// The changes as a unified diff. It is empty, if nothing was changed. `old` is the text before.
    #[must_use]
    pub fn diff(&self, path: &str, old: &str) -> String {
        diff::unified(path, old, &self.edits)
    }
}

/// What becomes of one refusal.
struct Mend {
    edits: Vec<Edit>,
    reason: String,
    output: Option<String>,
}

/// Mends a file by itself: its Liquid, and that in its schema. Of a theme, [`Mender`] mends more: what templates store.
#[must_use]
pub fn file(path: &str, text: &str, how: How) -> Fixed {
    file_of(path, text, how, &Settings::default())
}

/// Mends a file of a theme with these settings.
fn file_of(path: &str, text: &str, how: How, settings: &Settings) -> Fixed {
    if !path.ends_with(".liquid") {
        return stored::fix(path, text, how, settings);
    }
    let mut fixed = liquid(text, how);
    let inner = stored::fix(path, text, how, settings);
    if inner.changes.is_empty() && inner.left.is_empty() {
        return fixed;
    }
    let mut edits = fixed.edits.clone();
    edits.extend(inner.edits);
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let new = places::applied(text, &edits);
    // The braces in a schema are braces of the file, too: one of them could hide its end.
    if strict::refusals(&new).len() > fixed.left.len() {
        return fixed;
    }
    (fixed.text, fixed.edits) = (new, edits);
    fixed.changes.extend(inner.changes);
    fixed.changes.sort_by_key(|change| change.line);
    fixed.left.extend(inner.left);
    fixed
}

/// Mends a text that is Liquid.
fn liquid(text: &str, how: How) -> Fixed {
    let found = strict::refusals(text);
    let mut names = Names::of(text);
    let mut mends: Vec<Option<Mend>> = found
        .iter()
        .map(|refusal| mend(text, refusal, how, &mut names).filter(|mend| !mend.edits.is_empty()))
        .collect();
    let branches = if how == How::AsMeant { branches::read(text, &found) } else { Vec::new() };
    let mut is_taken_back = vec![false; found.len()];
    for round in 0..MOST_ROUNDS {
        let wrong = wrong(text, &found, &mends, &branches);
        if wrong.is_empty() {
            break;
        }
        let all = 0..found.len();
        let wrong = if round + 1 == MOST_ROUNDS { all.collect() } else { wrong };
        for index in wrong {
            if let (Some(mend), Some(back)) = (mends.get_mut(index), is_taken_back.get_mut(index)) {
                *back = mend.take().is_some();
            }
        }
    }
    fixed(text, &found, mends, &branches, &is_taken_back, how)
}

/// The mends after which Liquid still refuses their tag, or all of them if another tag is refused then.
fn wrong(text: &str, found: &[Refusal], mends: &[Option<Mend>], branches: &[Branch]) -> Vec<usize> {
    let edits = all_edits(mends, branches);
    if edits.is_empty() {
        return Vec::new();
    }
    let new = places::applied(text, &edits);
    let mut again = strict::refusals(&new);
    again.sort_by_key(|refusal| refusal.tag);
    // A fault that is listed can be at the same tag.
    let listed: FxHashSet<(u32, &str)> = found
        .iter()
        .zip(mends)
        .filter(|(_, mend)| mend.is_none())
        .map(|(refusal, _)| (refusal.tag.start, refusal.kind.name()))
        .collect();
    let mut wrong = Vec::new();
    let moved = Moved::new(&edits);
    for (index, (refusal, mend)) in found.iter().zip(mends).enumerate() {
        if mend.is_none() {
            continue;
        }
        let tag = moved.moved(refusal.tag);
        let first = again.partition_point(|other| other.tag.start < tag.start);
        let behind = again.get(first..).unwrap_or_default();
        let mut refused = behind.iter().take_while(|other| other.tag.start < tag.end);
        if refused.any(|other| !listed.contains(&(refusal.tag.start, other.kind.name()))) {
            wrong.push(index);
        }
    }
    let left = mends.iter().filter(|mend| mend.is_none()).count();
    if wrong.is_empty() && again.len() > left {
        wrong.extend(mends.iter().enumerate().filter(|(_, mend)| mend.is_some()).map(|(index, _)| index));
    }
    wrong
}

/// Finds places of the old text in the new one.
struct Moved {
    /// Where each edit begins, and by how much what follows it has moved.
    starts: Vec<(u32, i64)>,
}

impl Moved {
    fn new(edits: &[Edit]) -> Self {
        let mut by = 0;
        let starts = edits.iter().map(|edit| {
            by += edit.new.len() as i64 - i64::from(edit.span.end - edit.span.start);
            (edit.span.start, by)
        });
        Self { starts: starts.collect() }
    }

    /// The span with what was put in before its first byte.
    fn moved(&self, span: Span) -> Span {
        let moved = |at: u32| {
            let before = self.starts.partition_point(|(start, _)| *start < at);
            let by = before.checked_sub(1).and_then(|last| self.starts.get(last)).map_or(0, |(_, by)| *by);
            (i64::from(at) + by).max(0) as u32
        };
        let start = moved(span.start);
        Span { start, end: moved(span.end).max(start) }
    }
}

/// The edits in the order of their places, without those that reach into an earlier one.
fn all_edits(mends: &[Option<Mend>], branches: &[Branch]) -> Vec<Edit> {
    let mended = mends.iter().flatten().flat_map(|mend| mend.edits.iter().cloned());
    let mut edits: Vec<Edit> = mended.chain(branches.iter().map(|branch| branch.edit.clone())).collect();
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut end = 0;
    edits.retain(|edit| {
        let is_free = edit.span.start >= end;
        end = end.max(edit.span.end);
        is_free
    });
    edits
}

fn fixed(
    text: &str,
    found: &[Refusal],
    mends: Vec<Option<Mend>>,
    branches: &[Branch],
    is_taken_back: &[bool],
    how: How,
) -> Fixed {
    let edits = all_edits(&mends, branches);
    let new = places::applied(text, &edits);
    let lines = Lines::new(text);
    let moved = Moved::new(&edits);
    let (mut changes, mut left) = (Vec::new(), Vec::new());
    let mut names = Names::of(text);
    for ((refusal, mend), is_back) in found.iter().zip(mends).zip(is_taken_back) {
        let code = crate::check::STRICT_CODE;
        let kind = refusal.kind.name();
        match mend {
            Some(mend) => changes.push(MendedPlace {
                line: lines.line_of(refusal.place.start),
                code,
                kind,
                before: refusal.tag.of(text).trim_end().to_owned(),
                after: moved.moved(refusal.tag).of(&new).trim_end().to_owned(),
                reason: mend.reason,
                output: mend.output,
            }),
            None => {
                let mut choices = choices::of(name_of(text, refusal), refusal, how);
                if how == How::AsShown {
                    choices.splice(0..0, as_meant(text, refusal, &mut names));
                }
                left.push(LeftPlace {
                    line: lines.line_of(refusal.place.start),
                    code,
                    kind,
                    place: refusal.tag.of(text).trim_end().to_owned(),
                    reason: choices::reason(refusal, *is_back, how),
                    choices,
                });
            }
        }
    }
    for branch in branches {
        changes.push(MendedPlace {
            line: lines.line_of(branch.tag.start),
            code: "LiquidHTMLSyntaxError",
            kind: "ElseIf",
            before: branch.tag.of(text).trim_end().to_owned(),
            after: moved.moved(branch.tag).of(&new).trim_end().to_owned(),
            reason: "`else if` ignores its condition: use `elsif`".to_owned(),
            output: Some("the branch is shown only if its condition holds".to_owned()),
        });
    }
    changes.sort_by_key(|change| change.line);
    Fixed { text: new, changes, left, edits }
}

/// The choice to write a tag as it was meant, if that is clear.
fn as_meant(text: &str, refusal: &Refusal, names: &mut Names) -> Option<String> {
    let meant = meant::read(text, name_of(text, refusal), refusal, names)?;
    let new = places::applied_at(text, refusal.tag, &meant.edits);
    Some(format!("with --as-meant: {}", new.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// The name of the refused tag. It is empty for an output.
fn name_of<'a>(text: &'a str, refusal: &Refusal) -> &'a str {
    let head = Span { start: refusal.tag.start, end: refusal.markup.start.max(refusal.tag.start) }.of(text);
    if head.starts_with("{{") {
        return "";
    }
    let head = head.strip_prefix("{%").map_or(head, |head| head.strip_prefix('-').unwrap_or(head));
    head.trim_matches(|c: char| u8::try_from(c).is_ok_and(strict::is_blank))
}

fn mend(text: &str, refusal: &Refusal, how: How, names: &mut Names) -> Option<Mend> {
    let name = name_of(text, refusal);
    match &refusal.kind {
        Kind::Words if name != "stylesheet" => {
            return Some(Mend {
                edits: vec![Edit { span: words(text, refusal), new: String::new() }],
                reason: format!("{}; the words have no meaning", refusal.message),
                output: None,
            });
        }
        Kind::CommentLines { starts } => {
            return Some(Mend {
                edits: starts
                    .iter()
                    .map(|&at| Edit { span: Span { start: at, end: at }, new: "# ".to_owned() })
                    .collect(),
                reason: format!("{}; a comment shows nothing", refusal.message),
                output: None,
            });
        }
        _ => {}
    }
    if how == How::AsMeant {
        if let Some(meant) = meant::read(text, name, refusal, names) {
            return Some(Mend {
                edits: meant.edits,
                reason: with_lax(refusal),
                output: (!meant.says.is_empty()).then(|| meant.says.join("; ")),
            });
        }
        // Only a person knows where the text was to end.
        if refusal.kind == Kind::OpenQuote {
            return None;
        }
    }
    let markup = refusal.lax.as_ref()?.markup.as_ref()?;
    // The tolerant parser leaves out a `nil` of `cycle`, and the strict one shows nothing in its turn. No markup has both read the same.
    if name == "cycle" && places::words(markup).iter().any(|word| word.of(markup) == "nil") {
        return None;
    }
    Some(Mend {
        edits: places::in_place(text, refusal.markup, markup),
        reason: with_lax(refusal),
        output: None,
    })
}

/// The words that a tag does not take, with the blanks before them, if others follow.
fn words(text: &str, refusal: &Refusal) -> Span {
    let name = name_of(text, refusal);
    let head = Span { start: refusal.tag.start, end: refusal.place.start }.of(text);
    let follows =
        text.get(refusal.place.end as usize..).is_some_and(|rest| rest.starts_with([' ', '\n', '\t']));
    match head.find(name) {
        Some(at) if follows => Span { start: refusal.tag.start + (at + name.len()) as u32, ..refusal.place },
        _ => refusal.place,
    }
}

/// What is refused, and what the shop has done until now.
fn with_lax(refusal: &Refusal) -> String {
    match &refusal.lax {
        Some(lax) => format!("{}; {}", refusal.message, lax.sentence),
        None => refusal.message.clone(),
    }
}
