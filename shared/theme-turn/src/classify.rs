//! What a message asks for, and how large it is. No model is called.
//!
//! The rules look for words and for where they stand: a verb that starts a wish, what it brings, and how many
//! places it names. They read a message once, so a long one costs no more than its length. What they leave open is
//! said with the result, and [`crate::small`] asks a small model about it.

mod certainty;
mod text;
mod words;

use domain::models::routing::TaskTier;
use domain::projects::turn::{TurnMode, TurnStrategy};

use text::{Place, Sentence, Text, Word, any_of, find, has};

/// A cosmetic change is short.
const SHORT_WORDS: usize = 25;

/// A message that changes more kinds of looks asks for a design.
const MOST_LOOKS: usize = 2;

/// With more words, no rule is sure that nothing large is asked for.
const LONG_WORDS: usize = 20;

/// This many files in one message are several.
const SEVERAL_FILES: usize = 3;

/// This many wishes in one message are a list.
const LIST: usize = 3;

/// A message with what is known when it arrives.
#[derive(Clone, Debug, Default)]
pub struct Asked<'a> {
    /// In the person's words.
    pub message: &'a str,
    /// The path of the file that the person has open.
    pub active_file: Option<&'a str>,
    /// Whether an earlier turn of this conversation has changed the theme.
    pub has_changed: bool,
    /// Whether the client has sent diagnostics, such as errors of a page.
    pub has_diagnostics: bool,
}

/// How a message is classified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    pub mode: TurnMode,
    pub tier: TaskTier,
    /// What the rules are not sure of. A model may be asked about it.
    pub open: Open,
    /// Whether a rule sees that it may concern several files.
    pub is_several: bool,
    /// Why, in words, one reason each.
    pub why: Vec<String>,
}

/// What the rules are not sure of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Never if the client has chosen the mode.
    pub mode: bool,
    pub tier: bool,
}

impl Open {
    #[must_use]
    pub const fn any(self) -> bool {
        self.mode || self.tier
    }
}

/// The strategy for a task of this size.
#[must_use]
pub const fn strategy_of(tier: TaskTier) -> TurnStrategy {
    match tier {
        TaskTier::Trivial => TurnStrategy::Simple,
        TaskTier::Simple => TurnStrategy::Hybrid,
        TaskTier::Complex | TaskTier::Architectural => TurnStrategy::GodMode,
    }
}

/// Classifies a message. `mode`: what the client has chosen, if it has chosen.
#[must_use]
pub fn classify(asked: &Asked<'_>, mode: Option<TurnMode>) -> Classified {
    let read = Reading::of(asked);
    let is_free = mode.is_none();
    if read.text.words.is_empty() {
        return Classified {
            mode: mode.unwrap_or(TurnMode::Code),
            tier: TaskTier::Simple,
            open: Open { mode: is_free, tier: true },
            is_several: false,
            why: vec!["The message has no words.".to_owned()],
        };
    }
    let found = match mode {
        Some(mode) => Found::sure(mode, format!("The mode is chosen: {}.", name_of(mode))),
        None => read.mode(),
    };
    let (mode, is_cut) = (found.what, read.text.is_cut);
    let tier = read.tier(mode);
    let mut why = vec![found.why, tier.why];
    if is_cut {
        why.push("The message is so long that only its beginning was read.".to_owned());
        let open = Open { mode: is_free, tier: true };
        return Classified { mode, tier: tier.what, open, is_several: true, why };
    }
    let mode_doubt = read.doubts_mode(mode).filter(|_| is_free && found.is_sure);
    let tier_doubt = read.doubts_tier(mode, tier.what).filter(|_| tier.is_sure);
    let is_mode_open = is_free && (!found.is_sure || mode_doubt.is_some());
    // A size was found for a mode, so it is as open as that.
    let is_tier_open = is_mode_open || !tier.is_sure || tier_doubt.is_some();
    why.extend(mode_doubt.map(str::to_owned));
    why.extend(tier_doubt.filter(|doubt| Some(*doubt) != mode_doubt).map(str::to_owned));
    Classified {
        mode,
        tier: tier.what,
        open: Open { mode: is_mode_open, tier: is_tier_open },
        is_several: read.sees_several_files(),
        why,
    }
}

const fn name_of(mode: TurnMode) -> &'static str {
    match mode {
        TurnMode::Code => "code",
        TurnMode::Plan => "plan",
        TurnMode::Debug => "debug",
        TurnMode::Ask => "ask",
    }
}

/// A decision with its reason.
struct Found<T> {
    what: T,
    is_sure: bool,
    why: String,
}

impl<T> Found<T> {
    fn sure(what: T, why: impl Into<String>) -> Self {
        Self { what, is_sure: true, why: why.into() }
    }

    fn weak(what: T, why: impl Into<String>) -> Self {
        Self { what, is_sure: false, why: why.into() }
    }
}

/// What a sentence does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Wishes,
    Asks,
    States,
}

/// A message with what its sentences do.
struct Reading<'a> {
    asked: &'a Asked<'a>,
    text: Text,
    kinds: Vec<Kind>,
    /// Where the verbs of its wishes stand.
    verbs: Vec<usize>,
}

impl<'a> Reading<'a> {
    fn of(asked: &'a Asked<'a>) -> Self {
        let text = Text::read(asked.message);
        let mut kinds = Vec::with_capacity(text.sentences.len());
        let mut verbs = Vec::new();
        for sentence in &text.sentences {
            let words = text.of(*sentence);
            let wishes = wishes_of(words);
            if !wishes.is_empty() {
                verbs.extend(wishes.into_iter().map(|at| sentence.start + at));
                kinds.push(Kind::Wishes);
            } else if is_question(words, *sentence) {
                kinds.push(Kind::Asks);
            } else {
                let ends = german_verbs(words);
                kinds.push(if ends.is_empty() { Kind::States } else { Kind::Wishes });
                verbs.extend(ends.into_iter().map(|at| sentence.start + at));
            }
        }
        Self { asked, text, kinds, verbs }
    }

    fn words(&self) -> &[Word] {
        &self.text.words
    }

    fn has(&self, phrases: &[&'static str]) -> bool {
        has(self.words(), phrases)
    }

    fn any_of(&self, phrases: &[&'static str]) -> Option<&'static str> {
        any_of(self.words(), phrases)
    }

    fn sentences(&self, kind: Kind) -> impl Iterator<Item = &[Word]> {
        self.text
            .sentences
            .iter()
            .zip(&self.kinds)
            .filter(move |(_, of)| **of == kind)
            .map(|(at, _)| self.text.of(*at))
    }

    /// With which of these verbs a wish starts, in the words before `end`.
    fn starts(&self, verbs: &[&'static str], end: usize) -> Option<&'static str> {
        let words = self.words();
        (0..end).filter(|at| is_start(words, *at)).find_map(|at| {
            verbs.iter().copied().find(|verb| {
                let length = verb.split(' ').count();
                words.get(at..at + length).is_some_and(|window| find(window, verb) == Some(0))
            })
        })
    }

    /// With which of these words the message begins.
    fn begins(&self, phrases: &[&'static str]) -> Option<&'static str> {
        let words = self.words();
        phrases.iter().copied().find(|phrase| {
            let length = phrase.split(' ').count();
            words.get(..length).is_some_and(|window| find(window, phrase) == Some(0))
        })
    }

    fn mode(&self) -> Found<TurnMode> {
        let all = self.words().len();
        let first = self.verbs.first().copied().unwrap_or(all);
        if let Some(plan) = self.any_of(words::PLANS).or_else(|| self.starts(words::PLAN_STARTS, first)) {
            return Found::sure(TurnMode::Plan, format!("It asks for a plan (\"{plan}\")."));
        }
        if let Some(repair) = self.any_of(words::SEARCHES).or_else(|| self.starts(words::REPAIRS, all)) {
            return Found::sure(TurnMode::Debug, format!("It asks for a repair (\"{repair}\")."));
        }
        if !self.asked.message.contains('?')
            && let Some(words) = self.begins(words::GO_AHEAD)
        {
            return Found::weak(TurnMode::Code, format!("It agrees to a change (\"{words}\")."));
        }
        if let Some(words) = self.begins(words::OFFERS) {
            return Found::weak(TurnMode::Code, format!("It asks for a change as a question (\"{words}\")."));
        }
        let stated = self.sentences(Kind::States).find_map(|words| any_of(words, words::FAULTS));
        let wishes = self.kinds.contains(&Kind::Wishes);
        if let Some(question) = self.sentences(Kind::Asks).next() {
            let is_why = has(question, words::WHYS);
            let is_fault = any_of(question, words::FAULTS).or_else(|| any_of(question, words::DENIALS));
            return match (is_why.then_some(is_fault).flatten(), stated) {
                (Some(fault), _) | (None, Some(fault)) => {
                    Found::sure(TurnMode::Debug, format!("It asks why something is at fault (\"{fault}\")."))
                }
                _ if is_why && self.asked.has_diagnostics => {
                    Found::weak(TurnMode::Debug, "It asks why, and the page reports errors.")
                }
                _ if wishes || self.sentences(Kind::States).any(|words| has(words, words::WISHES)) => {
                    Found::weak(TurnMode::Code, "It asks a question and for a change.")
                }
                _ => Found::sure(TurnMode::Ask, "It is a question."),
            };
        }
        match (stated, wishes) {
            (Some(fault), true) => {
                return Found::weak(
                    TurnMode::Debug,
                    format!("It tells of a fault (\"{fault}\") and asks for a change."),
                );
            }
            (Some(fault), false) => {
                return Found::sure(TurnMode::Debug, format!("It tells of a fault (\"{fault}\")."));
            }
            (None, true) => return Found::sure(TurnMode::Code, "It asks for a change."),
            (None, false) => {}
        }
        let starts = self.words().first().map_or("", |word| word.text.as_str());
        if self.complains() {
            return Found::weak(TurnMode::Debug, "It tells what happens, and what should happen instead.");
        }
        if self.has(words::WISHES) {
            return Found::sure(TurnMode::Code, "It tells what should be different.");
        }
        if let Some(tells) = self.any_of(words::TELLS) {
            return Found::weak(
                TurnMode::Debug,
                format!("It tells what happens (\"{tells}\"), and asks for nothing."),
            );
        }
        if self.has(words::FOLLOWS) {
            return Found::weak(TurnMode::Code, "It goes on with a change.");
        }
        if let Some(denial) = self.any_of(words::DENIALS) {
            return Found::weak(TurnMode::Debug, format!("It tells what does not happen (\"{denial}\")."));
        }
        if self.asked.has_diagnostics {
            return Found::weak(TurnMode::Debug, "It asks for nothing clear, and the page reports errors.");
        }
        if words::STATES.contains(&starts) && self.words().len() > 3 {
            return Found::weak(TurnMode::Debug, "It tells what happens, and asks for nothing.");
        }
        Found::weak(TurnMode::Code, "It has no word that tells what kind of help it asks for.")
    }

    /// Whether it tells what happens and adds what should, as in "it hides too early, it should wait".
    fn complains(&self) -> bool {
        self.words().windows(3).any(|words| {
            words[0].place == Place::Clause
                && ["it", "they", "that"].contains(&words[0].text.as_str())
                && ["should", "shouldn't", "must", "has", "have"].contains(&words[1].text.as_str())
                // "It should be 1.5" names the change.
                && words[2].text != "be"
        })
    }

    fn tier(&self, mode: TurnMode) -> Found<TaskTier> {
        if self.is_outside() {
            return Found::weak(
                TaskTier::Simple,
                "It is about the shop's data or settings, not about its theme.",
            );
        }
        if let Some(found) = self.whole(mode) {
            return found;
        }
        if mode == TurnMode::Ask {
            return Found::sure(TaskTier::Simple, "A question changes nothing.");
        }
        if let Some(found) = self.several(mode) {
            return found;
        }
        if mode == TurnMode::Code {
            return self.small();
        }
        let is_sure = self.words().len() <= LONG_WORDS;
        Found { what: TaskTier::Simple, is_sure, why: "It is about one thing.".to_owned() }
    }

    /// Whether it is about data and settings that are not in a theme.
    fn is_outside(&self) -> bool {
        let deletes = self.has(words::SHOP_VERBS) && self.has(words::SHOP_DATA);
        let is_page = self.has(words::PARTS) || self.has(&["page", "pages", "section", "theme"]);
        self.has(words::SHOP_SETTINGS) || (deletes && !is_page)
    }

    /// A change of the whole theme.
    fn whole(&self, mode: TurnMode) -> Option<Found<TaskTier>> {
        let large = TaskTier::Architectural;
        let rebuild = self.any_of(words::REBUILDS);
        if let Some(total) = self.any_of(words::TOTAL) {
            return Some(Found::sure(large, format!("It changes the whole theme (\"{total}\").")));
        }
        let scope = words::WHOLE
            .iter()
            .copied()
            .filter(|phrase| !words::NAMED.contains(phrase))
            .find(|phrase| find(self.words(), phrase).is_some());
        let moves = rebuild.or_else(|| self.any_of(words::MOVES_TO).filter(|_| mode != TurnMode::Ask));
        if self.has(words::STORE_TWO) && moves.is_some() && mode != TurnMode::Debug {
            return Some(Found::sure(
                large,
                "It brings the theme to another structure (\"Online Store 2.0\").",
            ));
        }
        let is_for_all = scope.is_some()
            || rebuild.is_some()
            || (mode != TurnMode::Ask && (self.has(words::NAMED) || self.has(&["support"])));
        if mode != TurnMode::Debug
            && is_for_all
            && let Some(pervasive) = self.any_of(words::PERVASIVE)
        {
            return Some(Found::sure(
                large,
                format!("Each part of the theme has to support it (\"{pervasive}\")."),
            ));
        }
        if mode == TurnMode::Debug {
            return None;
        }
        if let (Some(scope), Some(rebuild)) = (scope, rebuild) {
            return Some(Found::sure(large, format!("It asks to {rebuild} a lot (\"{scope}\").")));
        }
        if self.takes_theme() {
            return Some(Found::weak(large, "It brings the theme itself to another state."));
        }
        if mode == TurnMode::Ask {
            return None;
        }
        if let Some(rebuild) = self.any_of(words::WIDE_REBUILDS) {
            return Some(Found::weak(large, format!("It changes the structure (\"{rebuild}\").")));
        }
        let scope = scope.filter(|scope| *scope != "everything" && *scope != "alles")?;
        if self.cosmetic().is_empty() || self.words().len() > SHORT_WORDS {
            let is_theme = ["theme", "tema", "files", "file", "templates", "template"]
                .iter()
                .any(|part| scope.split(' ').any(|word| word == *part));
            let tier = if is_theme { large } else { TaskTier::Complex };
            return Some(Found::weak(tier, format!("It changes something in many places (\"{scope}\").")));
        }
        None
    }

    /// Whether the theme itself is what a verb changes, as in "update our theme from 6 to 15".
    fn takes_theme(&self) -> bool {
        let words = self.words();
        words.windows(3).enumerate().any(|(at, window)| {
            let verb = window[0].text.as_str();
            let is_verb = words::REBUILDS.contains(&verb) || verb == "update" || verb == "aktualisiere";
            let is_theme = ["my", "our", "the", "this", "das", "mein", "unser", "le", "mon", "el", "mi"]
                .contains(&window[1].text.as_str())
                && ["theme", "tema"].contains(&window[2].text.as_str());
            let is_all = words.get(at + 3).is_none_or(|next| {
                next.place != Place::Inside || words::ENDS.contains(&next.text.as_str()) || next.text == "and"
            });
            is_verb && is_theme && is_all
        })
    }

    /// Several files, or several different things.
    fn several(&self, mode: TurnMode) -> Option<Found<TaskTier>> {
        let large = TaskTier::Complex;
        let files = self.text.files.len();
        if files >= SEVERAL_FILES {
            return Some(Found::sure(large, format!("It names {files} files.")));
        }
        if let Some(languages) = self.any_of(words::LANGUAGES) {
            return Some(Found::sure(
                large,
                format!("Each language has a file of its own (\"{languages}\")."),
            ));
        }
        let wishes = self.verbs.len();
        if self.text.points >= LIST || wishes >= LIST {
            return Some(Found::sure(large, format!("It asks for {} things.", wishes.max(self.text.points))));
        }
        if mode == TurnMode::Debug {
            return None;
        }
        if let Some(part) = self.brings() {
            return Some(Found::sure(large, format!("It adds something with several files (\"{part}\").")));
        }
        let repeats = self.verbs.iter().any(|at| {
            self.words()
                .get(at + 1)
                .is_some_and(|next| ["it", "them", "this", "that"].contains(&next.text.as_str()))
        });
        let is_different = wishes == 2 && !repeats && self.text.quotes == 0 && self.cosmetic().is_empty();
        if wishes >= 2 && (self.has(words::MORES) || (is_different && !self.has(words::SETTINGS))) {
            return Some(Found::weak(large, "It asks for different things."));
        }
        if self.asked.has_changed && self.has(words::EXTENDS) {
            return Some(Found::sure(large, "It goes on with an earlier change in another place."));
        }
        if let Some(rebuild) = self.any_of(words::PART_REBUILDS) {
            return Some(Found::weak(large, format!("It changes a part thoroughly (\"{rebuild}\").")));
        }
        if wishes == 0
            && mode == TurnMode::Code
            && !self.has(words::WISHES)
            && let Some(feature) =
                self.any_of(words::FEATURES).or_else(|| self.any_of(&["support", "feature", "integration"]))
        {
            return Some(Found::weak(
                large,
                format!("It names something with several files (\"{feature}\")."),
            ));
        }
        None
    }

    /// The feature or the part of a theme that a verb brings.
    fn brings(&self) -> Option<&'static str> {
        let part_of =
            |words: &[Word]| any_of(words, words::FEATURES).or_else(|| any_of(words, words::NEW_PARTS));
        for sentence in &self.text.sentences {
            let words = self.text.of(*sentence);
            for (at, word) in words.iter().enumerate() {
                let verb = word.text.as_str();
                if words::CREATES.contains(&verb) && !is_name(words, at) {
                    let found = part_of(object_of(words, at));
                    // "Make the filter red" brings nothing; "make a filter" does.
                    let is_new = verb != "make"
                        || words.get(at + 1).is_some_and(|next| next.text == "a" || next.text == "an");
                    if found.is_some() && is_new {
                        return found;
                    }
                } else if words::GERMAN_CREATES.contains(&verb) {
                    let found = part_of(&words[..at]);
                    if found.is_some() {
                        return found;
                    }
                }
            }
        }
        None
    }

    /// A change that is not large: a short cosmetic one, or another.
    fn small(&self) -> Found<TaskTier> {
        let words = self.words();
        let count = words.len();
        let cosmetic = self.cosmetic();
        let several = self.is_several();
        let is_short = count <= SHORT_WORDS;
        if is_short
            && !cosmetic.is_empty()
            && cosmetic.len() <= MOST_LOOKS
            && several.is_none()
            && !self.has(words::CONDITIONS)
        {
            let kinds = cosmetic.join(" and ");
            let why = format!("It changes {kinds}, in {count} words.");
            return if self.verbs.is_empty() && !self.has(words::WISHES) {
                Found::weak(TaskTier::Trivial, why)
            } else {
                Found::sure(TaskTier::Trivial, why)
            };
        }
        if let Some(several) = several {
            let is_sure = cosmetic.is_empty()
                && self.verbs.len() == 1
                && !self.has(words::SETTINGS)
                && self.unknown().is_none()
                && count <= LONG_WORDS;
            return Found { what: TaskTier::Simple, is_sure, why: several };
        }
        if self.has(words::EXTENDS) {
            return Found::weak(TaskTier::Simple, "It goes on with something that is not known.");
        }
        let why = format!("It asks for one change, in {count} words.");
        if let Some(thing) = self.unknown() {
            return Found::weak(
                TaskTier::Simple,
                format!("It adds something that no rule knows (\"{thing}\")."),
            );
        }
        if count > LONG_WORDS || self.verbs.is_empty() {
            return Found::weak(TaskTier::Simple, why);
        }
        Found::sure(TaskTier::Simple, why)
    }

    /// What a verb brings, if no rule knows how large that is.
    fn unknown(&self) -> Option<String> {
        let words = self.words();
        let at = self.verbs.iter().copied().find(|at| {
            let verb = words[*at].text.as_str();
            words::CREATES.contains(&verb) && verb != "make"
        })?;
        let object = object_of(words, at);
        let is_known = has(object, words::SMALL_PARTS) || has(object, words::SETTINGS);
        let named: Vec<&str> = object.iter().take(6).map(|word| word.text.as_str()).collect();
        (!is_known && !named.is_empty()).then(|| named.join(" "))
    }

    /// What of the looks a message changes, in words. Nothing if it changes more than looks.
    fn cosmetic(&self) -> Vec<&'static str> {
        let words = self.words();
        let verbs: Vec<&str> =
            self.verbs.iter().filter_map(|at| words.get(*at)).map(|word| word.text.as_str()).collect();
        let has_verb = |of: &[&str]| verbs.iter().any(|verb| of.contains(verb));
        let quotes_text = (1..=2).contains(&self.text.quotes)
            && has_verb(&[
                "change", "replace", "rename", "use", "write", "set", "make", "andere", "ersetze",
                "remplace", "cambia",
            ]);
        let is_hidden = self.has(words::ATTRIBUTES);
        let is_text = quotes_text || (self.has(words::TEXTS) && !is_hidden);
        if has_verb(words::STRUCTURES) && !(has_verb(&["replace"]) && is_text) {
            return Vec::new();
        }
        let wants_new = ["want", "need", "like"].iter().any(|verb| {
            words.windows(2).any(|pair| pair[0].text == *verb && matches!(pair[1].text.as_str(), "a" | "an"))
        });
        let adds = wants_new
            || has_verb(&[
                "add",
                "include",
                "introduce",
                "install",
                "fuge",
                "erganze",
                "ajoute",
                "ajoutez",
                "anade",
                "agrega",
                "hinzufugen",
                "einfugen",
                "einbauen",
            ]);
        let removes = has_verb(&[
            "remove",
            "entferne",
            "entfernen",
            "enleve",
            "retire",
            "supprime",
            "supprimez",
            "quita",
            "elimina",
        ]);
        let has_value = words.iter().any(|word| is_value(&word.text)) || self.has(words::VALUES);
        let mut kinds = Vec::new();
        let mut push = |is: bool, kind: &'static str| {
            if is {
                kinds.push(kind);
            }
        };
        push(self.has(words::COLOURS) && !adds && !removes, "a colour");
        push(self.has(words::FONTS) && !adds, "a font");
        push(self.has(words::SIZES) && !adds && !removes, "a size");
        push(self.has(words::SPACINGS), "a space");
        push(is_text && !adds, "a text");
        push(self.has(words::LOOKS), "a look");
        if kinds.is_empty() && has_value && !adds && !removes {
            kinds.push("a value");
        }
        kinds
    }

    /// Why a change is in more than one place, if it is.
    fn is_several(&self) -> Option<String> {
        let words = self.words();
        if self.verbs.len() >= 2 || self.text.points >= 2 {
            return Some(format!("It asks for {} things.", self.verbs.len().max(self.text.points)));
        }
        if self.kinds.contains(&Kind::Asks) {
            return Some("It asks a question as well.".to_owned());
        }
        if self.text.quotes > 2 {
            return Some(format!("It names {} texts.", self.text.quotes));
        }
        if self.text.files.len() >= 2 {
            return Some(format!("It names {} files.", self.text.files.len()));
        }
        if let Some(many) = self.any_of(words::MANY) {
            return Some(format!("It may be in more than one place (\"{many}\")."));
        }
        if let Some(site) = self.any_of(words::SITES) {
            return Some(format!("It may be in more than one place (\"{site}\")."));
        }
        let languages =
            words.iter().filter(|word| words::LANGUAGE_NAMES.contains(&word.text.as_str())).count();
        if languages >= 2 {
            return Some(format!("It names {languages} languages."));
        }
        if let Some(setting) = self.any_of(words::SETTINGS) {
            return Some(format!("A setting needs more than the markup (\"{setting}\")."));
        }
        if let Some(more) = self.any_of(words::MORES) {
            return Some(format!("It asks for more than one thing (\"{more}\")."));
        }
        let words = &words[self.verbs.first().copied().unwrap_or(0)..];
        let is_part = |word: &Word| has(std::slice::from_ref(word), words::PARTS);
        let is_pair = find(words, "between").is_none()
            && words.iter().enumerate().any(|(at, word)| {
                let links = ["and", "und", "et", "y"].contains(&word.text.as_str());
                let after = if links { at + 1 } else { at };
                (links || word.place == Place::Clause)
                    && words[after..].iter().take(3).any(is_part)
                    && words[..at].iter().rev().take(6).any(is_part)
            });
        is_pair.then(|| "It names more than one part of the page.".to_owned())
    }
}

/// Whether a wish can start with the word there.
fn is_start(words: &[Word], at: usize) -> bool {
    words[at].place != Place::Inside
        || words[at - 1].text == "to"
        || words::POLITE.contains(&words[at - 1].text.as_str())
}

/// Where the verbs stand with which the wishes of a sentence start.
fn wishes_of(words: &[Word]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut may_start = false;
    for (at, word) in words.iter().enumerate() {
        let text = word.text.as_str();
        may_start |= word.place != Place::Inside;
        if may_start && is_change(words, at) {
            found.push(at);
            may_start = false;
            continue;
        }
        let links = text == "please" || (words::LINKS.contains(&text) && !found.is_empty());
        may_start = links || (may_start && words::POLITE.contains(&text));
    }
    if found.is_empty() {
        found.extend(behind_place(words));
    }
    if !found.is_empty() {
        found.extend(german_verbs(words));
    }
    found
}

/// The verb of a wish that starts with a place and has no comma behind it, as in "in the footer hide the logo".
fn behind_place(words: &[Word]) -> Option<usize> {
    let is_place = words.first().is_some_and(|first| words::PLACES.contains(&first.text.as_str()));
    is_place.then_some(())?;
    (2..words.len()).find(|at| {
        words::CHANGES.contains(&words[*at].text.as_str())
            && words.get(at + 1).is_some_and(|next| words::POINTERS.contains(&next.text.as_str()))
            && !words::SUBJECTS.contains(&words[at - 1].text.as_str())
    })
}

/// Whether the word asks for a change at the start of a wish.
fn is_change(words: &[Word], at: usize) -> bool {
    let text = words[at].text.as_str();
    words::CHANGES.contains(&text)
        || (words::NOUN_VERBS.contains(&text)
            && words.get(at + 1).is_some_and(|next| words::POINTERS.contains(&next.text.as_str())))
}

fn german_verbs(words: &[Word]) -> Vec<usize> {
    (0..words.len()).filter(|at| words::GERMAN_ENDS.contains(&words[*at].text.as_str())).collect()
}

fn is_question(words: &[Word], sentence: Sentence) -> bool {
    let rest = words.iter().position(|word| !words::GREETINGS.contains(&word.text.as_str())).unwrap_or(0);
    let Some(first) = words.get(rest) else { return false };
    let first = first.text.as_str();
    let asks = || {
        words::ASK_VERBS.contains(&first)
            && words.get(rest + 1).is_some_and(|next| words::ASKED.contains(&next.text.as_str()))
    };
    sentence.is_question || words::ASKS.contains(&first) || asks()
}

/// Whether the verb there is part of a name, as in "add to cart" and "quick add".
fn is_name(words: &[Word], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| words.get(before)).map_or("", |word| word.text.as_str());
    let after: Vec<&str> = words[at + 1..].iter().take(2).map(|word| word.text.as_str()).collect();
    before == "quick" || matches!(after[..], ["to", "cart" | "basket" | "bag"])
}

/// What a verb brings: the words behind it, up to the place.
fn object_of(words: &[Word], verb: usize) -> &[Word] {
    let rest = &words[verb + 1..];
    let end = rest.iter().position(|word| words::ENDS.contains(&word.text.as_str())).unwrap_or(rest.len());
    &rest[..end]
}

/// Whether the word is a value of a style, such as "20px", "50%" and "#fff".
fn is_value(word: &str) -> bool {
    if let Some(hex) = word.strip_prefix('#') {
        return matches!(hex.len(), 3 | 4 | 6 | 8) && hex.chars().all(|digit| digit.is_ascii_hexdigit());
    }
    let digits = word.trim_end_matches(|letter: char| letter.is_alphabetic() || letter == '%');
    let unit = &word[digits.len()..];
    !digits.is_empty()
        && digits.chars().all(|digit| digit.is_ascii_digit() || digit == '.')
        && matches!(unit, "px" | "rem" | "em" | "%" | "vh" | "vw" | "pt")
}
