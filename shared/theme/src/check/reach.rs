//! What no page shows breaks no page: errors in comments of HTML and in files that nothing uses are warnings.
//!
//! Shopify refuses a file for its Liquid, its schema and its JSON wherever it is used, so such errors stay.

use std::cell::{OnceCell, RefCell};

use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::RenderKind;
use super::{CheckedFile, CheckedTheme, Content, Note, Severity};
use crate::path::{FileKind, handle};

/// Codes of errors that break a page, and for which Shopify refuses no file.
const OF_PAGES: [&str; 19] = [
    "CssSyntax",
    "EditingDamage",
    "FilterArguments",
    "HtmlSyntax",
    "InvisibleCharacter",
    "JavaScriptSyntax",
    "LiquidInStaticAsset",
    "MissingAsset",
    "MissingLayout",
    "MissingTemplate",
    "MissingVariantId",
    "PaginationSize",
    "Placeholder",
    "SmartQuotes",
    "StrayEnd",
    "StrayQuote",
    "UnclosedElement",
    "UndefinedName",
    "UnknownFilter",
];

/// The most names that are looked for in the texts of all files. Each look can read the whole theme.
const MOST_LOOKS: usize = 64;

/// Tells which errors a page can show.
pub struct Reach<'a> {
    theme: &'a CheckedTheme,
    /// The snippets that are printed, unless a variable names them.
    printed: OnceCell<Option<FxHashSet<&'a str>>>,
    used: RefCell<FxHashMap<&'a str, bool>>,
}

impl<'a> Reach<'a> {
    pub fn of(theme: &'a CheckedTheme) -> Self {
        Self { theme, printed: OnceCell::new(), used: RefCell::default() }
    }

    /// The severity of a finding in its theme.
    pub fn severity(&self, path: &str, note: &Note) -> Severity {
        if note.severity != Severity::Error || !OF_PAGES.contains(&note.code) {
            return note.severity;
        }
        let Some((path, file)) = self.theme.files.get_key_value(path) else { return note.severity };
        if is_json(path) || !is_in_comment(file, note.at) && self.is_used(path, file) {
            return note.severity;
        }
        Severity::Warning
    }

    fn is_used(&self, path: &'a str, file: &'a CheckedFile) -> bool {
        // Of a part of a theme, it is not known what uses it.
        if !self.theme.files.contains_key("layout/theme.liquid") {
            return true;
        }
        let name = handle(path);
        match file.kind {
            FileKind::Snippet => self.printed().as_ref().is_none_or(|printed| printed.contains(name)),
            // An editor can add a section that has presets.
            FileKind::Section if has_presets(file) => true,
            FileKind::Section | FileKind::Stylesheet | FileKind::Script => self.is_named(path, file),
            // Shopify shows a checkout of its own, and takes two more layouts by their names.
            FileKind::Layout => match name {
                "theme" | "password" | "checkpoint" => true,
                "checkout" => false,
                _ => self.is_named(path, file),
            },
            _ => true,
        }
    }

    fn printed(&self) -> &Option<FxHashSet<&'a str>> {
        self.printed.get_or_init(|| {
            let mut found = FxHashSet::default();
            for file in self.theme.files.values() {
                let Content::Liquid(liquid) = &file.content else { continue };
                for render in &liquid.facts.renders {
                    if matches!(render.kind, RenderKind::Render | RenderKind::Include) {
                        match &render.name {
                            Some(name) => found.insert(name.as_str()),
                            None => return None,
                        };
                    }
                }
            }
            Some(found)
        })
    }

    /// Whether another file names this one.
    fn is_named(&self, path: &'a str, file: &CheckedFile) -> bool {
        let mut used = self.used.borrow_mut();
        if let Some(known) = used.get(path) {
            return *known;
        }
        if used.len() >= MOST_LOOKS {
            return true;
        }
        let finder = memchr::memmem::Finder::new(handle(path));
        let is_named = self
            .theme
            .files
            .values()
            .any(|other| other.id != file.id && finder.find(other.text.as_bytes()).is_some());
        used.insert(path, is_named);
        is_named
    }
}

fn is_json(path: &str) -> bool {
    path.ends_with(".json")
}

/// Whether the page has what stands here in a comment.
fn is_in_comment(file: &CheckedFile, at: usize) -> bool {
    let Content::Liquid(liquid) = &file.content else { return false };
    let comments = &liquid.kept.comments;
    let next = comments.partition_point(|comment| (comment.start as usize) < at);
    next.checked_sub(1).is_some_and(|last| at < comments[last].end as usize)
}

/// Whether an editor offers the section, as far as that is known.
fn has_presets(file: &CheckedFile) -> bool {
    let Content::Liquid(liquid) = &file.content else { return true };
    liquid.has_broken_schema
        || liquid.schema.as_ref().is_some_and(|schema| {
            ["presets", "default"]
                .iter()
                .any(|key| schema.root.get(key).is_some_and(|list| !list.is_empty_array()))
        })
}

#[cfg(test)]
mod tests {
    use crate::check::{CheckedTheme, Severity};

    const LAYOUT: &str = "{{ content_for_header }}{{ content_for_layout }}";

    fn severities(files: &[(&str, &str)], code: &str) -> Vec<Severity> {
        let findings = CheckedTheme::read(files.iter().copied(), None).findings();
        findings.into_iter().filter(|finding| finding.code == code).map(|finding| finding.severity).collect()
    }

    #[test]
    fn what_nothing_uses_breaks_no_page() {
        let layout = |more: &str| format!("{LAYOUT}{more}");
        for (path, text, code, used) in [
            (
                "assets/zebra.css",
                "@media (min-width 1px) { a { b: c } }",
                "CssSyntax",
                "{{ 'zebra.css' | asset_url }}",
            ),
            ("sections/zebra.liquid", "{{ x | plus: 1, 2 }}", "FilterArguments", "{% section 'zebra' %}"),
            ("snippets/zebra.liquid", "{{ x | plus: 1, 2 }}", "FilterArguments", "{% render 'zebra' %}"),
            ("snippets/zebra.liquid", "{{ x | plus: 1, 2 }}", "FilterArguments", "{% include name %}"),
            ("layout/zebra.liquid", "{{ x | plus: 1, 2 }}", "FilterArguments", "{% layout 'zebra' %}"),
        ] {
            let with = |more: &str| {
                let layout = layout(more);
                severities(&[("layout/theme.liquid", &layout), (path, text)], code)
            };
            assert_eq!(with(""), [Severity::Warning], "{path}");
            assert_eq!(with(used), [Severity::Error], "{path} {used}");
            // Of a part of a theme it is not known.
            assert_eq!(severities(&[(path, text)], code), [Severity::Error], "{path}");
        }
        let section = "{{ x | plus: 1, 2 }}{% schema %}{\"name\": \"A\", \"presets\": [{\"name\": \"A\"}]}{% endschema %}";
        let files = [("layout/theme.liquid", LAYOUT), ("sections/a.liquid", section)];
        assert_eq!(severities(&files, "FilterArguments"), [Severity::Error]);
        // Shopify refuses the file all the same.
        let files = [("layout/theme.liquid", LAYOUT), ("snippets/zebra.liquid", "{% if x %}")];
        assert_eq!(severities(&files, "LiquidSyntaxError"), [Severity::Error]);
    }

    #[test]
    fn a_comment_shows_nothing() {
        let text = |part: &str| format!("<p>a</p>{part}<p>b</p>");
        for part in ["{% render 'gone' %}", "{{ 'gone.png' | asset_url }}", "{{ x | plus: 1, 2 }}"] {
            let count = |text: &str| {
                let findings = CheckedTheme::read([("sections/a.liquid", text)], None).findings();
                findings.iter().filter(|finding| finding.severity == Severity::Error).count()
            };
            assert_eq!(count(&text(part)), 1, "{part}");
            assert_eq!(count(&text(&format!("<!-- {part} -->"))), 0, "{part}");
            assert_eq!(count(&text(&format!("<!-- x -->{part}<!-- y -->"))), 1, "{part}");
        }
    }

    #[test]
    fn a_change_that_uses_a_broken_file_adds_its_error() {
        let files = [("layout/theme.liquid", LAYOUT), ("snippets/zebra.liquid", "{{ x | plus: 1, 2 }}")];
        let before = CheckedTheme::read(files, None);
        let layout = format!("{LAYOUT}{{% render 'zebra' %}}");
        let after = before.changed([("layout/theme.liquid", layout.as_str())], &[], None);
        let added = after.added_since(&before);
        assert!(
            added.iter().any(|f| f.code == "FilterArguments" && f.severity == Severity::Error),
            "{added:?}"
        );
        let gone = before.added_since(&after);
        assert!(gone.iter().all(|finding| finding.code != "FilterArguments"), "{gone:?}");
    }
}
