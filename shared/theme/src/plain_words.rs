//! Common words in requests that say little about the place to edit.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// Words that say nothing about the place.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "the", "an", "to", "in", "on", "of", "for", "and", "or", "is", "are", "was", "be", "been", "it", "its",
    "this", "that", "these", "those", "there", "with", "from", "at", "by", "as", "we", "my", "our", "your",
    "you", "me", "us", "they", "them", "their", "he", "she", "i", "so", "if", "but", "not", "no", "do",
    "does", "did", "doesn", "don", "isn", "aren", "won", "can", "could", "would", "should", "will",
    "please", "want", "need", "like", "have", "has", "had", "get", "got", "when", "while", "where", "which",
    "what", "who", "how", "why", "than", "then", "too", "very", "just", "also", "some", "any", "all",
    "each", "every", "more", "most", "into", "onto", "about", "after", "before", "up", "out", "off", "over",
    "under", "let", "lets", "because", "only", "still", "even", "same", "other", "via", "per", "am", "were",
    "being", "hi", "hello", "thanks", "thank", "something", "thing", "way", "ve", "ll", "re", "now",
    "instead",
];

/// Words that occur in many requests. They get a small weight.
#[rustfmt::skip]
const WEAK_WORDS: &[&str] = &[
    "fix", "fixes", "fixed", "add", "adds", "added", "adding", "remove", "removed", "removes", "update",
    "updated", "updates", "change", "changed", "changes", "make", "makes", "made", "use", "used", "using",
    "improve", "improved", "improvements", "issue", "issues", "bug", "bugs", "problem", "wrong", "broken",
    "new", "allow", "allows", "prevent", "ensure", "support", "set", "adjust", "adjusted", "minor", "small",
    "better", "work", "works", "working", "show", "shows", "shown", "display", "displayed", "see", "look",
    "looks", "feat", "feature", "refactor", "cleanup", "clean", "replace", "replaced", "move", "moved",
    "missing", "correct", "properly", "proper", "currently", "help", "put", "give", "turn", "page",
    "section", "theme", "store", "shop", "site", "website", "instances", "implement", "create", "apply",
    "enable", "appear", "appears", "happens", "cause", "causing",
    "check", "checks", "switch", "switched", "include", "includes", "included", "convert", "converted", "rename",
    "renamed", "revert", "restore", "avoid", "handle", "resolve", "resolves", "resolved", "applied", "applies",
    "adapt", "tweak", "tweaks", "introduce", "introduces", "increase", "increased", "increases", "decrease",
    "reduce", "reduced", "consistent", "consistently", "inconsistent", "inconsistency", "incorrect", "correctly",
    "unused", "redundant", "unnecessary", "duplicate", "duplicated", "doubled", "unexpected", "undesired",
    "invalid", "two", "one", "first", "high", "low", "higher", "lower", "api", "instance", "during", "without",
    "optimize", "optimise", "simplify",
];

/// Words for the circumstances, not the place. They get half weight.
#[rustfmt::skip]
const CONTEXT_WORDS: &[&str] = &[
    "mobile", "desktop", "tablet", "phone", "phones", "iphone", "ios", "os", "android", "safari", "chrome",
    "firefox", "ie11", "windows", "browser", "browsers", "device", "devices", "screens", "viewport", "user",
    "users", "customers", "merchant", "merchants", "ux", "ui", "polish", "iteration", "design", "enhancement",
    "enhancements",
];

/// How much a word says about the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordClass {
    Stop,
    Weak,
    Context,
    Full,
}

static PLAIN: LazyLock<FxHashMap<&str, WordClass>> = LazyLock::new(|| {
    // If two lists contain a word, the later list wins.
    let lists =
        [(CONTEXT_WORDS, WordClass::Context), (WEAK_WORDS, WordClass::Weak), (STOP_WORDS, WordClass::Stop)];
    lists.into_iter().flat_map(|(words, class)| words.iter().map(move |&word| (word, class))).collect()
});

/// How much `word` says about the place. It must be in lower case.
pub fn word_class(word: &str) -> WordClass {
    PLAIN.get(word).copied().unwrap_or(WordClass::Full)
}
