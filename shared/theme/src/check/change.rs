//! What a change of a theme adds: findings that were not there, and damage that shows only beside the text before.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Severity::{Error, Info, Warning};
use super::{CheckedFile, CheckedTheme, Content, Finding, Located, Note, Severity};

/// The findings of `after` that `before` does not have.
pub fn added(before: &CheckedTheme, after: &CheckedTheme) -> Vec<Finding> {
    type Key<'a> = (&'a str, &'static str, &'a str);
    fn key(finding: &Finding) -> Key<'_> {
        // A text that one more locale has is still the same remark.
        let message = match finding.message.split_once(" is missing in ") {
            Some((what, _)) if finding.code == "MatchingTranslations" => what,
            _ => &finding.message,
        };
        (&finding.path, finding.code, message)
    }
    let (had, has) = (before.located(), after.located());
    let mut old: FxHashMap<Key<'_>, Vec<(&str, Severity)>> = FxHashMap::default();
    for located in had.iter() {
        let known = old.entry(key(&located.finding)).or_default();
        known.push((before.excerpt(located), located.finding.severity));
    }
    let mut new: Vec<&Located> = has.iter().collect();
    // First the findings whose line is the same, then those whose line was also changed.
    for by_line in [true, false] {
        new.retain(|located| {
            let finding = &located.finding;
            let Some(known) = old.get_mut(&key(finding)).filter(|known| !known.is_empty()) else {
                return true;
            };
            let excerpt = if by_line { after.excerpt(located) } else { "" };
            // A warning that becomes an error is new: the change uses the file, so that its pages break.
            let place = known
                .iter()
                .position(|(line, severity)| *severity <= finding.severity && (!by_line || *line == excerpt));
            match place {
                Some(index) => {
                    known.swap_remove(index);
                    false
                }
                None => true,
            }
        });
    }
    let mut found: Vec<Finding> = new.into_iter().map(|located| located.finding.clone()).collect();
    for (path, note) in damage(before, after) {
        found.push(after.finding(&path, &note));
    }
    found.sort();
    found.dedup();
    found
}

/// Whether the text is another one. A file that did not change is shared, so that its text need not be compared.
fn differs(old: &Arc<CheckedFile>, new: &Arc<CheckedFile>) -> bool {
    !Arc::ptr_eq(old, new) && old.text != new.text
}

fn note(at: usize, severity: Severity, code: &'static str, message: impl Into<String>) -> Note {
    Note { at, code, severity, message: message.into() }
}

fn damage(before: &CheckedTheme, after: &CheckedTheme) -> Vec<(String, Note)> {
    let mut found = Vec::new();
    for (path, new) in &after.files {
        let Some(old) = before.files.get(path).filter(|old| differs(old, new)) else { continue };
        let mut add = |note: Note| found.push((path.clone(), note));
        let (was, is) = (old.text.trim().len(), new.text.trim().len());
        if is == 0 && was > 0 {
            add(note(0, Error, "FileEmptied", "the whole content of the file is gone"));
        }
        if is > 0 && was >= 400 && is * 2 < was {
            add(note(
                new.text.len().saturating_sub(1),
                Warning,
                "FileShrunk",
                "more than half of the file is gone",
            ));
        }
        let ends = |text: &str| {
            let total = text.matches('\n').count();
            (total, text.matches("\r\n").count())
        };
        let ((old_total, old_crlf), (new_total, new_crlf)) = (ends(&old.text), ends(&new.text));
        if old_total > 1 && new_total > 1 {
            if old_crlf == 0 && new_crlf == new_total {
                add(note(0, Warning, "LineEndsChanged", "all line ends were changed from LF to CRLF"));
            } else if old_crlf == old_total && new_crlf == 0 {
                add(note(0, Warning, "LineEndsChanged", "all line ends were changed from CRLF to LF"));
            }
        }
        if let Some(at) = second_of_equal(&old.text, &new.text) {
            add(note(
                at,
                Info,
                "EditedRepeatedText",
                "the text before this edit is there twice, and the second place was edited",
            ));
        }
    }
    lost_classes(before, after, &mut found);
    lost_files(before, after, &mut found);
    found
}

/// Kinds of pages that each shop has. Without a template, such a page shows an error.
const PAGES: [&str; 11] = [
    "404",
    "article",
    "blog",
    "cart",
    "collection",
    "gift_card",
    "index",
    "list-collections",
    "page",
    "product",
    "search",
];

/// Files that the shop needs and that the change deletes.
fn lost_files(before: &CheckedTheme, after: &CheckedTheme, found: &mut Vec<(String, Note)>) {
    let mut lose = |path: &str, severity: Severity, message: &str| {
        found.push((path.to_owned(), note(0, severity, "MissingFile", message)));
    };
    let is_lost = |path: &str| before.files.contains_key(path) && !after.files.contains_key(path);
    if is_lost("config/settings_schema.json") {
        lose("config/settings_schema.json", Error, "a theme needs this file");
    }
    if is_lost("config/settings_data.json") {
        let message = "with this file, the values of all the theme's settings are lost";
        lose("config/settings_data.json", Warning, message);
    }
    for page in PAGES {
        let paths = ["json", "liquid"].map(|extension| format!("templates/{page}.{extension}"));
        let Some(path) = paths.iter().find(|path| is_lost(path)) else { continue };
        if !paths.iter().any(|path| after.files.contains_key(path)) {
            lose(
                path,
                Error,
                &format!("the shop has no template `{page}` any more, so these pages show an error"),
            );
        }
    }
}

/// The place of an edit of one run of lines, if the same lines, with the same neighbours, also stand earlier.
fn second_of_equal(old: &str, new: &str) -> Option<usize> {
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same_start = old_lines.iter().zip(&new_lines).take_while(|(a, b)| a == b).count();
    let most = old_lines.len().min(new_lines.len()) - same_start;
    let same_end =
        old_lines.iter().rev().zip(new_lines.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let changed = &old_lines[same_start..old_lines.len() - same_end];
    if changed.is_empty() || changed.len() > 5 || same_start < 1 || same_end < 1 {
        return None;
    }
    // One line on either side belongs to the place.
    let block = &old_lines[same_start - 1..old_lines.len() - same_end + 1];
    let weight: usize = changed.iter().map(|line| line.trim().len()).sum();
    let around: usize = block.iter().map(|line| line.trim().len()).sum();
    if weight < 8 || around < 24 {
        return None;
    }
    let trimmed = |lines: &[&str]| lines.iter().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let wanted = trimmed(block);
    let earlier = old_lines[..same_start - 1].windows(block.len()).any(|window| trimmed(window) == wanted);
    earlier.then(|| new_lines[..same_start].iter().map(|line| line.len() + 1).sum())
}

/// Classes that lost their last rule although the markup still has them.
fn lost_classes(before: &CheckedTheme, after: &CheckedTheme, found: &mut Vec<(String, Note)>) {
    let changed: Vec<&String> = before
        .files
        .iter()
        .filter(|(path, old)| after.files.get(*path).is_none_or(|new| differs(old, new)))
        .filter(|(_, old)| !classes(old).is_empty())
        .map(|(path, _)| path)
        .collect();
    if changed.is_empty() {
        return;
    }
    let mut lost: FxHashSet<&str> = FxHashSet::default();
    for path in &changed {
        lost.extend(classes(&before.files[*path]).iter().map(|(name, _)| name.as_str()));
    }
    // The changed files come first, because they still have most of them.
    let own = changed.iter().filter_map(|path| after.files.get(*path));
    for file in own.chain(after.files.values()) {
        if lost.is_empty() {
            return;
        }
        for (name, _) in classes(file) {
            lost.remove(name.as_str());
        }
    }
    let places = class_places(after, &lost);
    for path in changed {
        let old = &before.files[path];
        for (class, at) in classes(old) {
            if !lost.remove(class.as_str()) {
                continue;
            }
            let Some(&(user, place)) = places.get(class.as_str()) else { continue };
            found.push((
                user.clone(),
                note(
                    place,
                    Warning,
                    "ClassWithoutStyle",
                    format!("the class `{class}` lost its style in {path}"),
                ),
            ));
            let Some(new) = after.files.get(path) else { continue };
            // The line where the rule was is the line where the texts begin to differ.
            let line = old.line(*at);
            let at = new.lines.span_of(line.min(new.lines.count())).start as usize;
            if user != path {
                found.push((
                    path.clone(),
                    note(
                        at,
                        Warning,
                        "ClassWithoutStyle",
                        format!("the class `{class}` has no style any more, but {user} uses it"),
                    ),
                ));
            }
        }
    }
}

fn classes(file: &CheckedFile) -> &[(String, usize)] {
    match &file.content {
        Content::Css(css) => &css.classes,
        Content::Liquid(liquid) => &liquid.css.classes,
        _ => &[],
    }
}

/// The first place in the markup of the theme that has each of the `wanted` classes. All elements are read once, because a change
/// can take many classes away.
fn class_places<'a>(
    theme: &'a CheckedTheme,
    wanted: &FxHashSet<&str>,
) -> FxHashMap<&'a str, (&'a String, usize)> {
    let mut places = FxHashMap::default();
    if wanted.is_empty() {
        return places;
    }
    for (path, file) in &theme.files {
        let Content::Liquid(liquid) = &file.content else { continue };
        for (value, at) in &liquid.kept.classes {
            for word in value.of(&file.text).split_ascii_whitespace() {
                if wanted.contains(word) {
                    places.entry(word).or_insert((path, *at as usize));
                }
            }
        }
    }
    places
}
