//! A theme that was edited file by file has the findings of the same files, read anew.

use std::collections::{BTreeMap, BTreeSet};

use theme::check::{CheckedFile, CheckedTheme};
use theme_scripts::Oxc;

use crate::corpus::{self, DELETED};

/// A generator of numbers: each seed gives the same ones.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        // Xorshift, as Marsaglia published it.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }
}

type Texts = BTreeMap<String, String>;

/// The files of a change, by path. `None` deletes the file.
type Change = BTreeMap<String, Option<String>>;

/// One edit of some files: a fault, its repair, a deleted file, or a file with the text of another one.
fn edit(dice: &mut Dice, first: &Texts, now: &Texts) -> Change {
    let paths: Vec<&String> = first.keys().collect();
    let faults = crate::all();
    let mut change = Change::new();
    if dice.below(6) == 0 {
        // Everything is repaired, so that damage does not hide what later edits do.
        let added = now.keys().filter(|path| !first.contains_key(*path)).map(|path| (path.clone(), None));
        change = first.iter().map(|(path, text)| (path.clone(), Some(text.clone()))).chain(added).collect();
    }
    for _ in 0..=dice.below(2) {
        let path = paths[dice.below(paths.len())];
        let (path, text) = match dice.below(8) {
            0 => (path.clone(), None),
            1 => (path.clone(), Some(first[path].clone())),
            2 => {
                let other = paths[dice.below(paths.len())];
                (path.clone(), Some(first[other].clone()))
            }
            3 => {
                let (folder, name) = path.split_once('/').expect("a folder");
                (format!("{folder}/{}-{name}", dice.below(3)), Some(first[path].clone()))
            }
            _ => {
                let fault = &faults[dice.below(faults.len())];
                let before = now.get(fault.path).map_or("", String::as_str);
                let text = match fault.old {
                    "" => fault.new.to_owned(),
                    old => before.replacen(old, fault.new, 1),
                };
                (fault.path.to_owned(), (fault.new != DELETED).then_some(text))
            }
        };
        change.insert(path, text);
    }
    change
}

fn read(texts: &Texts) -> CheckedTheme {
    CheckedTheme::read(texts, Some(&Oxc))
}

fn check(seed: u64, edits: usize, codes: &mut BTreeSet<&'static str>) {
    let mut dice = Dice(seed);
    let first: Texts = corpus::lantern().into_iter().collect();
    let mut now = first.clone();
    let mut theme = read(&now);
    for number in 0..edits {
        let change = edit(&mut dice, &first, &now);
        let before = theme.clone();
        let deleted: Vec<String> =
            change.iter().filter(|(_, text)| text.is_none()).map(|(path, _)| path.clone()).collect();
        let changed = change.iter().filter_map(|(path, text)| Some((path, text.as_ref()?)));
        theme = theme.changed(changed, &deleted, Some(&Oxc));
        let (old, mut new) = (read(&now), now);
        for (path, text) in change.clone() {
            match text {
                Some(text) => new.insert(path, text),
                None => new.remove(&path),
            };
        }
        now = new;
        let anew = read(&now);
        let shown = || format!("seed {seed}, edit {number} of {:?}", change.keys());
        assert_eq!(theme.findings(), anew.findings(), "{}", shown());
        assert_eq!(theme.added_since(&before), anew.added_since(&old), "{}", shown());
        assert_eq!(theme.len(), now.len(), "{}", shown());
        codes.extend(theme.findings().into_iter().map(|finding| finding.code));
    }
}

#[test]
fn edits_in_memory_find_what_reading_anew_finds() {
    let mut codes = BTreeSet::new();
    for seed in [1, 0x5EED, 0xFACE_0FF1, 0xDA5E] {
        check(seed, 40, &mut codes);
    }
    assert!(codes.len() > 30, "the edits have little effect: {codes:?}");
    for code in ["MatchingTranslations", "MissingTemplate", "TranslationKeyExists", "UnknownSelector"] {
        assert!(codes.contains(code), "no edit leads to {code}: {codes:?}");
    }
}

#[test]
fn the_default_locale_and_the_markup_can_change_under_unchanged_files() {
    let first: Texts = corpus::lantern().into_iter().collect();
    let theme = read(&first);
    for (path, old, new) in [
        ("locales/en.default.json", "\": ", "x\": "),
        ("locales/en.default.schema.json", "\": ", "x\": "),
        ("layout/theme.liquid", "class=", "data-class="),
        ("sections/header.liquid", "id=", "data-id="),
        ("assets/lantern.js", "querySelector('", "querySelector('.missing-"),
    ] {
        let mut texts = first.clone();
        let text = first[path].replace(old, new);
        assert_ne!(text, first[path], "{path}");
        texts.insert(path.to_owned(), text.clone());
        // Before and after it, the theme without the edit is asked.
        assert_eq!(theme.findings(), [], "{path}");
        let changed = theme.changed([(path, text)], &[], Some(&Oxc));
        assert_eq!(changed.findings(), read(&texts).findings(), "{path}");
        assert_eq!(theme.findings(), [], "{path}");
    }
}

#[test]
fn every_number_of_threads_reads_the_same() {
    let mut texts: Texts = corpus::lantern().into_iter().collect();
    for fault in crate::all().iter().filter(|fault| fault.new != DELETED) {
        if let Some(text) = texts.get_mut(fault.path) {
            *text = text.replacen(fault.old, fault.new, usize::from(!fault.old.is_empty()));
        }
    }
    let files: Vec<(&String, &String)> = texts.iter().collect();
    let expected = read(&texts).findings();
    assert!(expected.len() > 20, "{expected:?}");
    for threads in [0, 1, 2, 3, 64] {
        let read = |(path, text): &(&String, &String)| {
            Ok::<_, String>(((*path).clone(), CheckedFile::read(path, text.as_bytes(), Some(&Oxc))))
        };
        let theme = CheckedTheme::read_on(threads, &files, read).expect("each file is read");
        assert_eq!(theme.findings(), expected, "{threads} threads");
        // Several files can't be read. The first of them is named.
        let fails = |(path, _): &(&String, &String)| match path.starts_with("s") {
            true => Err((*path).clone()),
            false => Ok(((*path).clone(), CheckedFile::unread(path, 0))),
        };
        let first = files.iter().map(|(path, _)| (*path).clone()).find(|path| path.starts_with('s'));
        assert_eq!(CheckedTheme::read_on(threads, &files, fails).err(), first, "{threads} threads");
    }
}
