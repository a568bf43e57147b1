//! Regular expressions of callers, searched within a time limit.
//!
//! An expression with nested counts can have tens of thousands of states. A usual engine visits them for each byte. On
//! a large file this takes minutes, and the engine offers no point at which to stop. This search walks a lazily built
//! automaton byte by byte and checks a [`Stop`] in between, more often if the expression is larger. There are no
//! backreferences and no lookaround. `\b` knows only ASCII letters, because the automaton supports nothing else.

use memchr::memmem;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::{start, syntax};
use regex_automata::{Anchored, MatchKind};
use regex_syntax::hir::{Hir, HirKind, Look};

use shared::process::compute::{Stop, Stopped};

/// The largest compiled expression, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// The same for the reversed expression, which is larger if it has character classes.
const MAX_COMPILED_BACKWARD: usize = 8 << 20;

/// How deep groups may be nested.
const MAX_NESTED: u32 = 100;

/// The work between two checks of the [`Stop`], as the number of states visited at most: about 5 ms.
const STEPS: usize = 1 << 20;

/// A compiled expression. It caches states while it searches, so it serves one search at a time.
pub struct Expression {
    /// A text that each match contains, if there is one.
    needle: Option<memmem::Finder<'static>>,
    hir: Hir,
    forward: Automaton,
    /// Finds where a match begins. Built when it is first needed.
    backward: Option<Automaton>,
}

struct Automaton {
    dfa: DFA,
    cache: Cache,
    /// Bytes between two checks of the [`Stop`].
    stride: usize,
}

/// How an expression is compiled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Matching {
    pub ignore_case: bool,
    /// Whether `.` also matches a line end.
    pub dot_matches_new_line: bool,
}

impl Expression {
    /// # Errors
    /// What is wrong with the expression. The message follows "the expression".
    pub fn new(pattern: &str, matching: Matching) -> Result<Self, String> {
        let syntax = syntax::Config::new()
            .case_insensitive(matching.ignore_case)
            .dot_matches_new_line(matching.dot_matches_new_line)
            .nest_limit(MAX_NESTED);
        let hir = syntax::parse_with(pattern, &syntax).map_err(|error| format!("can't be read: {error}"))?;
        let hir = with_ascii_words(hir);
        let forward =
            Automaton::new(&hir, Direction::Forward).ok_or("is too large: use fewer or smaller counts")?;
        let needle = needle(&hir).map(|needle| memmem::Finder::new(needle).into_owned());
        Ok(Self { needle, hir, forward, backward: None })
    }

    /// A text that each match contains. Where it is not, nothing else must be looked at.
    #[must_use]
    pub fn needle(&self) -> Option<&memmem::Finder<'static>> {
        self.needle.as_ref()
    }

    /// Escapes a text, so that the expression matches exactly that text.
    #[must_use]
    pub fn escape(text: &str) -> String {
        regex_syntax::escape(text)
    }

    /// The end of the match that ends first.
    ///
    /// # Errors
    /// If the search was stopped.
    pub fn end(&mut self, text: &[u8], stop: &Stop) -> Result<Option<usize>, Stopped> {
        let stride = self.forward.stride;
        let Some(mut state) = self.forward.start(&start::Config::new()) else { return Ok(None) };
        for (at, byte) in text.iter().enumerate() {
            if at % stride == 0 {
                stop.check()?;
            }
            state = self.forward.next(state, *byte);
            if state.is_match() {
                return Ok(Some(at));
            }
            if state.is_dead() {
                return Ok(None);
            }
        }
        Ok(self.forward.at_end(state).is_match().then_some(text.len()))
    }

    /// The beginning of the longest match that ends at `end`.
    ///
    /// # Errors
    /// If the search was stopped.
    pub fn begin(&mut self, text: &[u8], end: usize, stop: &Stop) -> Result<usize, Stopped> {
        if self.backward.is_none() {
            self.backward = Automaton::new(&self.hir, Direction::Backward);
        }
        let start = start::Config::new().anchored(Anchored::Yes).look_behind(text.get(end).copied());
        let Some(automaton) = &mut self.backward else { return Ok(end) };
        let Some(mut state) = automaton.start(&start) else { return Ok(end) };
        let (mut begin, stride) = (end, automaton.stride);
        for at in (0..end).rev() {
            if at % stride == 0 {
                stop.check()?;
            }
            state = automaton.next(state, text[at]);
            if state.is_match() {
                begin = at + 1;
            }
            if state.is_dead() {
                return Ok(begin);
            }
        }
        Ok(if automaton.at_end(state).is_match() { 0 } else { begin })
    }
}

/// The longest text that stands in each match, as far as that is plain to see.
fn needle(hir: &Hir) -> Option<&[u8]> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(&literal.0),
        HirKind::Capture(group) => needle(&group.sub),
        HirKind::Concat(parts) => parts.iter().filter_map(needle).max_by_key(|needle| needle.len()),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

impl Automaton {
    /// `None` if the automaton would be too large.
    fn new(hir: &Hir, direction: Direction) -> Option<Self> {
        let most = if direction == Direction::Backward { MAX_COMPILED_BACKWARD } else { MAX_COMPILED };
        let config = thompson::Config::new()
            .nfa_size_limit(Some(most))
            .which_captures(thompson::WhichCaptures::None)
            .reverse(direction == Direction::Backward);
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(hir).ok()?;
        // Backwards, the longest match is the one that begins first.
        let kind = if direction == Direction::Backward { MatchKind::All } else { MatchKind::LeftmostFirst };
        let config = DFA::config().match_kind(kind).skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).ok()?;
        let states = dfa.get_nfa().states().len();
        Some(Self { cache: dfa.create_cache(), dfa, stride: (STEPS / states.max(1)).clamp(1, 4_096) })
    }

    // The automaton gives up only if it is configured to, and quits only at Unicode word boundaries. Neither happens
    // here. If it did, the result would count as no match.

    fn start(&mut self, config: &start::Config) -> Option<LazyStateID> {
        self.dfa.start_state(&mut self.cache, config).ok()
    }

    fn next(&mut self, state: LazyStateID, byte: u8) -> LazyStateID {
        self.dfa.next_state(&mut self.cache, state, byte).unwrap_or(state)
    }

    fn at_end(&mut self, state: LazyStateID) -> LazyStateID {
        self.dfa.next_eoi_state(&mut self.cache, state).unwrap_or(state)
    }
}

/// Replaces Unicode word boundaries by ASCII ones. Its recursion is limited by [`MAX_NESTED`].
fn with_ascii_words(hir: Hir) -> Hir {
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            other => other,
        }),
        HirKind::Repetition(mut repetition) => {
            repetition.sub = Box::new(with_ascii_words(*repetition.sub));
            Hir::repetition(repetition)
        }
        HirKind::Capture(capture) => with_ascii_words(*capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(with_ascii_words).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(with_ascii_words).collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn stop() -> Stop {
        Stop::after(Duration::from_secs(60))
    }

    #[test]
    fn a_match_is_found_where_it_is() {
        let check = |pattern: &str, text: &str, found: Option<(usize, usize)>| {
            let mut expression = Expression::new(pattern, Matching::default()).unwrap();
            let end = expression.end(text.as_bytes(), &stop()).unwrap();
            let begin = end.map(|end| expression.begin(text.as_bytes(), end, &stop()).unwrap());
            assert_eq!(begin.zip(end), found, "{pattern} in {text:?}");
        };
        check("cart", "the cart drawer", Some((4, 8)));
        check("cart", "the car", None);
        check("^the", "the cart", Some((0, 3)));
        check("^cart", "the cart", None);
        check("cart$", "the cart", Some((4, 8)));
        check("the$", "the cart", None);
        check(r"\bcart\b", "a carton, a cart.", Some((12, 16)));
        check(r"\bcafé", "un café", Some((3, 8)));
        check(r"\bart", "é art", Some((3, 6)));
        check("[é-ü]+x", "éüx", Some((0, 5)));
        check("", "abc", Some((0, 0)));
        check("", "", Some((0, 0)));
        check("a|ab", "xab", Some((1, 2)));
        check("(a+)(b{2})", "caabb", Some((1, 5)));
        check(r"\d{3}-\d{4}", "call 555-1234", Some((5, 13)));
        check(r"\w{3,30}!", "ab abc!", Some((3, 7)));
    }

    #[test]
    fn case_is_ignored_only_if_asked() {
        let found = |ignore_case, text: &str| {
            let matching = Matching { ignore_case, ..Matching::default() };
            Expression::new("straße", matching).unwrap().end(text.as_bytes(), &stop()).unwrap().is_some()
        };
        assert_eq!(
            [found(false, "STRAßE"), found(true, "STRAßE"), found(false, "straße")],
            [false, true, true]
        );
    }

    #[test]
    fn invalid_and_too_large_expressions_are_refused() {
        let check = |pattern: &str, expected: &str| {
            let error = Expression::new(pattern, Matching::default()).err().expect(pattern);
            assert!(error.starts_with(expected), "{pattern}: {error}");
        };
        check("(", "can't be read: ");
        check(r"(a)\1", "can't be read: ");
        check(r"(\pL{1000}){1000}", "is too large");
        check("((((a{0,99}){0,99}){0,99}){0,99})", "is too large");
        check(&format!("{}a{}", "(".repeat(101), ")".repeat(101)), "can't be read: ");
    }

    #[test]
    fn a_hostile_search_stops_in_time() {
        let pattern = format!("{}b", "(a{0,90}){0,90}");
        let mut expression = Expression::new(&pattern, Matching::default()).unwrap();
        let text = "a".repeat(8 << 20) + "\n";
        let began = Instant::now();
        let found = expression.end(text.as_bytes(), &Stop::after(Duration::from_millis(300)));
        // The search is either done by then, or stopped soon after.
        assert!(found.is_err() || found == Ok(None));
        // Without the stop, the search takes minutes.
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }
}
