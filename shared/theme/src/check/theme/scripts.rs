//! Names and selectors of scripts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use super::Whole;
use crate::check::Severity::{Error, Warning};
use crate::check::script::Unresolved;
use crate::check::words::{self, MAX_PREFIX};
use crate::check::{CheckedFile, CheckedTheme, Content, ScriptFacts, Severity};

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
        let mut foreign: Option<Foreign> = None;
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
            for Unresolved { name, at, is_library, .. } in &facts.unresolved {
                if has_unread || globals.contains(name.as_str()) {
                    continue;
                }
                let foreign = foreign.get_or_insert_with(|| Foreign::of(theme));
                let words = words.get_or_insert_with(|| Words::of(theme));
                // An element with an id is a variable of its page.
                if foreign.loads(name) || words.ids.contains(name.as_str()) {
                    continue;
                }
                // A script of another host, or an id of an element, may define it, too.
                let (severity, message) = if *is_library || foreign.is_any {
                    (Warning, format!("no file of the theme defines `{name}`: another script must"))
                } else {
                    (Error, format!("nothing defines `{name}`"))
                };
                found.push((path.clone(), *at, severity, "UndefinedName", message));
            }
            for (selector, at) in &facts.selectors {
                let name = &selector[1..];
                if name.starts_with("shopify") || name.starts_with("Shopify") {
                    continue;
                }
                let words = words.get_or_insert_with(|| Words::of(theme));
                if words.has(selector, &theme.places) {
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

/// The scripts that pages load from elsewhere.
struct Foreign {
    /// Their addresses, in small letters.
    addresses: Vec<String>,
    is_any: bool,
}

impl Foreign {
    fn of(theme: &CheckedTheme) -> Self {
        let mut found = Self { addresses: Vec::new(), is_any: false };
        let mut left = MAX_ADDRESSES;
        for file in theme.files.values() {
            let own = match &file.content {
                Content::Liquid(liquid) => &liquid.kept.addresses[..],
                _ => &[],
            };
            for source in own.iter().chain(&file.words.tags) {
                let address = source.of(&file.text);
                found.is_any = true;
                left = left.saturating_sub(address.len());
                if left > 0 {
                    found.addresses.push(address.to_ascii_lowercase());
                }
            }
            found.is_any |= file.words.has_loader;
        }
        found
    }

    /// Whether an address says that it loads this name.
    fn loads(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        name.len() > 2 && self.addresses.iter().any(|address| address.contains(&name))
    }
}

/// The most bytes of addresses. Each name that nothing defines is looked for in them.
const MAX_ADDRESSES: usize = 1024 * 1024;

/// In which file each selector of the scripts was found last, by the id of the file. The versions of a theme share it, so that a change does
/// not make each selector be looked for in all files again. It only says where to look first.
#[derive(Clone, Default)]
pub struct SelectorPlaces(Arc<Mutex<FxHashMap<u64, u64>>>);

/// The most selectors whose places are kept.
const MAX_PLACES: usize = 10_000;

impl SelectorPlaces {
    fn places(&self) -> MutexGuard<'_, FxHashMap<u64, u64>> {
        // Each value is whole, also after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, selector: &str) -> Option<u64> {
        self.places().get(&words::hash(selector)).copied()
    }

    fn put(&self, selector: &str, file: u64) {
        let mut places = self.places();
        if places.len() >= MAX_PLACES {
            places.clear();
        }
        places.insert(words::hash(selector), file);
    }
}

/// What scripts can find in the markup of all files.
struct Words<'a> {
    files: Vec<&'a CheckedFile>,
    by_id: FxHashMap<u64, &'a CheckedFile>,
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

impl<'a> Words<'a> {
    fn of(theme: &'a CheckedTheme) -> Self {
        let mut found = Words {
            files: theme.files.values().map(AsRef::as_ref).collect(),
            by_id: theme.files.values().map(|file| (file.id, file.as_ref())).collect(),
            ids: FxHashSet::default(),
            prefixes: FxHashSet::default(),
            scripts: Vec::new(),
            searches: MAX_SEARCHES,
            left: MAX_SEARCHED,
        };
        for file in theme.files.values() {
            let words = &file.words;
            let of = |span: &crate::text::Span| span.of(&file.text);
            found.ids.extend(words.ids.iter().map(of));
            found.prefixes.extend(words.prefixes.iter().map(of));
            found.scripts.extend(words.scripts.iter().map(of));
        }
        found
    }

    fn has(&self, selector: &str, places: &SelectorPlaces) -> bool {
        let name = &selector[1..];
        let mut ends =
            name.match_indices(['-', '_']).map(|(at, _)| at + 1).take_while(|end| *end <= MAX_PREFIX);
        if selector.starts_with('#') && self.ids.contains(name)
            || ends.any(|end| self.prefixes.contains(&name[..end]))
        {
            return true;
        }
        let hash = words::hash(name);
        let is_in = |file: &CheckedFile| match selector.starts_with('#') {
            true => has_literal(file, name),
            false => file.words.has(hash, name, &file.text),
        };
        // Where it was found last time, it mostly is still.
        let known = places.get(selector).and_then(|id| self.by_id.get(&id));
        if known.is_some_and(|file| is_in(file)) {
            return true;
        }
        let Some(file) = self.files.iter().find(|file| is_in(file)) else { return false };
        places.put(selector, file.id);
        true
    }

    /// How often the scripts mention the name. `None` if too much was searched already.
    fn mentions(&mut self, name: &str) -> Option<usize> {
        self.searches = self.searches.checked_sub(1)?;
        self.left = self.left.checked_sub(self.scripts.iter().map(|script| script.len()).sum())?;
        let finder = memchr::memmem::Finder::new(name);
        Some(self.scripts.iter().map(|script| finder.find_iter(script.as_bytes()).count()).sum())
    }
}

fn has_literal(file: &CheckedFile, name: &str) -> bool {
    matches!(&file.content, Content::Liquid(liquid) if liquid.facts.literals.contains(name))
}
