//! Names and selectors of scripts.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Whole;
use crate::check::Severity::{Error, Warning};
use crate::check::{CheckedTheme, Content, ScriptFacts, Severity};

impl<'a> Whole<'a> {
    /// Names and selectors of scripts.
    pub(super) fn scripts(&mut self) {
        let theme = self.theme;
        let scripts = || {
            theme.files.iter().flat_map(|(path, file)| {
                let own: Vec<&ScriptFacts> = match &file.content {
                    Content::Script(facts) => vec![facts],
                    Content::Liquid(liquid) => liquid.scripts.iter().map(|(_, facts)| facts).collect(),
                    _ => Vec::new(),
                };
                own.into_iter().map(move |facts| (path, facts))
            })
        };
        let mut globals: FxHashSet<&str> = FxHashSet::default();
        let mut words: Option<Words> = None;
        // A script that was not read may define any name.
        let mut has_unread = false;
        for (_, facts) in scripts() {
            globals.extend(facts.globals.iter().map(String::as_str));
            has_unread |= facts.unread.is_some();
        }
        let mut found: Vec<(String, usize, Severity, &'static str, String)> = Vec::new();
        let mut selectors: FxHashMap<&str, usize> = FxHashMap::default();
        for (_, facts) in scripts() {
            for (selector, _) in &facts.selectors {
                *selectors.entry(&selector[1..]).or_default() += 1;
            }
        }
        let mut mentions: FxHashMap<&str, Option<usize>> = FxHashMap::default();
        for (path, facts) in scripts() {
            for (name, at) in &facts.unresolved {
                if !has_unread && !globals.contains(name.as_str()) {
                    found.push((
                        path.clone(),
                        *at,
                        Error,
                        "UndefinedName",
                        format!("nothing defines `{name}`"),
                    ));
                }
            }
            for (selector, at) in &facts.selectors {
                let name = &selector[1..];
                if name.starts_with("shopify") || name.starts_with("Shopify") {
                    continue;
                }
                let words = words.get_or_insert_with(|| Words::of(theme));
                if words.has(selector) {
                    continue;
                }
                // Scripts add classes and ids, too.
                let mentions = *mentions.entry(name).or_insert_with(|| words.mentions(name));
                if mentions
                    .is_some_and(|mentions| mentions <= selectors.get(name).copied().unwrap_or_default())
                {
                    found.push((
                        path.clone(),
                        *at,
                        Warning,
                        "UnknownSelector",
                        format!("no markup has `{selector}`"),
                    ));
                }
            }
        }
        for (path, at, severity, code, message) in found {
            self.add(&path, at, severity, code, message);
        }
    }
}

/// What scripts can find in the markup.
struct Words<'a> {
    /// Every word outside of scripts and schemas. A class may stand anywhere, for example in a capture.
    all: FxHashSet<&'a str>,
    ids: FxHashSet<&'a str>,
    /// Beginnings of ids and classes that end with an output, such as `Menu-{{ id }}`.
    prefixes: FxHashSet<&'a str>,
    scripts: Vec<&'a str>,
    /// The searches that are left, and the bytes that they may read. Each name that no markup has costs a search of all scripts.
    searches: usize,
    left: usize,
}

/// The most names that one check searches for in scripts.
const MAX_SEARCHES: usize = 300;
/// The most bytes of scripts that one check searches for names. That takes less than a second.
const MAX_SEARCHED: usize = 1024 * 1024 * 1024;
/// The longest beginning of a name that markup completes.
const MAX_PREFIX: usize = 100;

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
        .filter(|word| !word.is_empty())
}

impl<'a> Words<'a> {
    fn of(theme: &'a CheckedTheme) -> Self {
        let mut found = Words {
            all: FxHashSet::default(),
            ids: FxHashSet::default(),
            prefixes: FxHashSet::default(),
            scripts: Vec::new(),
            searches: MAX_SEARCHES,
            left: MAX_SEARCHED,
        };
        for file in theme.files.values() {
            let text = file.text.as_str();
            match &file.content {
                Content::Script(_) => found.scripts.push(text),
                Content::Json(_) => found.all.extend(words(text)),
                Content::Liquid(liquid) => {
                    let mut at = 0;
                    for (span, _) in &liquid.markup.scripts {
                        let (start, end) = (span.start as usize, span.end as usize);
                        found.all.extend(words(text.get(at..start).unwrap_or_default()));
                        found.scripts.push(span.of(text));
                        at = end;
                    }
                    let rest = text.get(at..).unwrap_or_default();
                    let end = liquid.schema.as_ref().and_then(|_| rest.find("schema")).unwrap_or(rest.len());
                    found.all.extend(words(&rest[..end]));
                    found.ids.extend(liquid.facts.literals.iter().map(String::as_str));
                    for element in &liquid.markup.elements {
                        found.ids.extend(element.value(text, "id").into_iter().flat_map(words));
                    }
                }
                _ => {}
            }
        }
        let is_prefix = |word: &&&str| word.ends_with(['-', '_']) && (2..=MAX_PREFIX).contains(&word.len());
        found.prefixes = found.all.iter().filter(is_prefix).copied().collect();
        found
    }

    fn has(&self, selector: &str) -> bool {
        let name = &selector[1..];
        let is_known =
            if selector.starts_with('#') { self.ids.contains(name) } else { self.all.contains(name) };
        let mut ends =
            name.match_indices(['-', '_']).map(|(at, _)| at + 1).take_while(|end| *end <= MAX_PREFIX);
        is_known || ends.any(|end| self.prefixes.contains(&name[..end]))
    }

    /// How often the scripts mention the name. `None` if too much was searched already.
    fn mentions(&mut self, name: &str) -> Option<usize> {
        self.searches = self.searches.checked_sub(1)?;
        self.left = self.left.checked_sub(self.scripts.iter().map(|script| script.len()).sum())?;
        let count = |script: &&str| memchr::memmem::find_iter(script.as_bytes(), name.as_bytes()).count();
        Some(self.scripts.iter().map(count).sum())
    }
}
