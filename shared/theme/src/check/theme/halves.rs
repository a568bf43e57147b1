//! Elements that one file opens and another one closes.
//!
//! Shopify joins what the files of a page print, so such a page can be right. The two files must have something to do with each other: one
//! prints the other, or a third one prints both. Then it is a warning, because each of them is broken without the other one.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::check::Severity::Warning;
use crate::check::facts::RenderKind;
use crate::check::json::Node;
use crate::check::{CheckedTheme, Content, Notes};
use crate::path::{FileKind, handle};

/// For each half, by its file and number, the file with the other half.
#[derive(Default)]
pub struct Partners<'a>(FxHashMap<(&'a str, usize), &'a str>);

impl<'a> Partners<'a> {
    pub fn of(theme: &'a CheckedTheme) -> Self {
        let mut partners = Self::default();
        let owners: FxHashMap<(FileKind, &str), &'a str> = theme
            .files
            .iter()
            .filter(|(_, file)| matches!(&file.content, Content::Liquid(liquid) if !liquid.halves.is_empty()))
            .map(|(path, file)| ((file.kind, handle(path)), path.as_str()))
            .collect();
        if owners.len() < 2 {
            return partners;
        }
        for (path, file) in &theme.files {
            let mut family: Vec<&'a str> = Vec::new();
            match &file.content {
                Content::Liquid(liquid) => {
                    family.extend(owners.get(&(file.kind, handle(path))));
                    for render in &liquid.facts.renders {
                        let Some(name) = render.name.as_deref() else { continue };
                        family.extend(printed(render.kind).and_then(|kind| owners.get(&(kind, name))));
                    }
                }
                Content::Json(root) => {
                    for section in root.get("sections").map_or(&[][..], Node::members) {
                        let name = section.node.text_of("type").unwrap_or_default();
                        family.extend(owners.get(&(FileKind::Section, name)));
                    }
                }
                _ => {}
            }
            partners.join(theme, &family);
        }
        partners
    }

    /// Finds the partners in files that are printed together.
    fn join(&mut self, theme: &'a CheckedTheme, family: &[&'a str]) {
        let mut seen = FxHashSet::default();
        let members: Vec<&'a str> = family.iter().copied().filter(|path| seen.insert(*path)).collect();
        // The first two files with a half of this kind: one of them is another file.
        let mut first: FxHashMap<(&str, bool), [Option<&'a str>; 2]> = FxHashMap::default();
        let halves = |path: &str| match theme.files.get(path).map(|file| &file.content) {
            Some(Content::Liquid(liquid)) => liquid.halves.as_slice(),
            _ => &[],
        };
        for path in &members {
            for half in halves(path) {
                let two = first.entry((half.name.as_str(), half.is_open)).or_default();
                match two {
                    [None, _] => two[0] = Some(path),
                    [Some(one), second @ None] if one != path => *second = Some(path),
                    _ => {}
                }
            }
        }
        for path in members {
            for (number, half) in halves(path).iter().enumerate() {
                let others = first.get(&(half.name.as_str(), !half.is_open)).into_iter().flatten();
                if let Some(other) = others.flatten().find(|other| **other != path) {
                    self.0.entry((path, number)).or_insert(other);
                }
            }
        }
    }

    /// Reports the halves of a file.
    pub fn report(&self, path: &'a str, halves: &[super::Half], notes: &mut Notes) {
        for (number, half) in halves.iter().enumerate() {
            let (severity, message) = match self.0.get(&(path, number)) {
                Some(other) => {
                    let does = if half.is_open { "closes" } else { "opens" };
                    (half.alone.max(Warning), format!("{}: `{other}` {does} one", half.message))
                }
                None => (half.alone, half.message.clone()),
            };
            notes.add(half.at, severity, "UnclosedElement", message);
        }
    }
}

/// The kind of files that such a tag prints, if they have markup.
const fn printed(kind: RenderKind) -> Option<FileKind> {
    match kind {
        RenderKind::Render | RenderKind::Include => Some(FileKind::Snippet),
        RenderKind::Section => Some(FileKind::Section),
        RenderKind::Block => Some(FileKind::Block),
        RenderKind::Group | RenderKind::Layout => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::check::{CheckedTheme, Severity};

    fn halves(files: &[(&str, &str)]) -> Vec<(String, Severity, String)> {
        let added = CheckedTheme::read(files.iter().copied(), None).added_since(&CheckedTheme::default());
        let of = added.into_iter().filter(|finding| finding.code == "UnclosedElement");
        of.map(|finding| (finding.path, finding.severity, finding.message)).collect()
    }

    fn severities(files: &[(&str, &str)]) -> Vec<Severity> {
        halves(files).into_iter().map(|(_, severity, _)| severity).collect()
    }

    use Severity::{Error, Warning};

    #[test]
    fn halves_that_one_file_prints_are_warnings_and_name_each_other() {
        let template = (
            "templates/index.json",
            "{\"sections\": {\"a\": {\"type\": \"a\"}, \"b\": {\"type\": \"b\"}}, \"order\": [\"a\", \"b\"]}",
        );
        let open = ("sections/a.liquid", "<div class=\"grid\">\n<p>x</p>\n");
        let close = ("sections/b.liquid", "<p>y</p>\n</div>\n");
        let expected = [
            (
                "sections/a.liquid".to_owned(),
                Warning,
                "`<div>` has no end: `sections/b.liquid` closes one".to_owned(),
            ),
            (
                "sections/b.liquid".to_owned(),
                Warning,
                "`</div>` closes nothing: `sections/a.liquid` opens one".to_owned(),
            ),
        ];
        assert_eq!(halves(&[template, open, close]), expected);
        // Nothing prints both.
        assert_eq!(severities(&[open, close]), [Error, Error]);
        // One of them alone, and two of the same kind.
        assert_eq!(severities(&[template, open, ("sections/b.liquid", "<p>y</p>")]), [Error]);
        assert_eq!(severities(&[template, open, ("sections/b.liquid", "<div>")]), [Error, Error]);
        assert_eq!(severities(&[template, open, ("sections/b.liquid", "</section>")]), [Error, Error]);
    }

    #[test]
    fn a_file_and_a_snippet_that_it_prints_are_two_halves() {
        let layout = "{{ content_for_header }}{% render 'open' %}{{ content_for_layout }}</main>";
        let files = [("layout/theme.liquid", layout), ("snippets/open.liquid", "<main>")];
        assert_eq!(severities(&files), [Warning, Warning]);
        assert_eq!(severities(&files[..1]), [Error]);
        // On one branch.
        let section = "{% if section.index == 1 %}<div>{% endif %}{% render 'end' %}";
        let end = ("snippets/end.liquid", "{% if section.index == 9 %}</div>{% endif %}");
        assert_eq!(severities(&[("sections/a.liquid", section), end]), [Warning, Warning]);
    }

    #[test]
    fn a_file_does_not_have_the_other_half_of_its_own() {
        let section = "</div>\n<p>x</p>\n<div>\n";
        assert_eq!(severities(&[("sections/a.liquid", section), ("sections/b.liquid", section)]), [Error; 4]);
        // The indentation shows where the end is missing.
        let lost = "<div>\n  <div>\n    <p>x</p>\n</div>\n";
        let files = [
            ("sections/a.liquid", lost),
            ("snippets/end.liquid", "</div>"),
            ("templates/page.liquid", "{% section 'a' %}{% render 'end' %}"),
        ];
        assert_eq!(severities(&files), [Error, Warning]);
    }
}
