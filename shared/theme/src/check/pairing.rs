//! Pairs the elements of a file, although branches may open and close them.

use rustc_hash::FxHashMap;

use super::Notes;
use super::Severity::{self, Error, Info, Warning};
use super::items::{Item, OPTIONAL, may_end_another};
use super::pages;

/// Elements that have no end.
pub const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];

/// Elements of SVG that hold no others.
const SHAPES: [&str; 8] = ["path", "use", "circle", "ellipse", "line", "polygon", "polyline", "rect"];

#[derive(Clone, Debug)]
enum Opened {
    Element {
        name: String,
        at: usize,
    },
    /// What the branches of one condition open.
    Either {
        branches: Vec<Vec<String>>,
        at: usize,
    },
}

#[derive(Clone, Debug)]
enum Closed {
    Element { name: String, at: usize },
    Either { branches: Vec<Vec<String>>, at: usize },
}

/// What a piece of markup closes of what stands before it, and what it leaves open.
#[derive(Default, Debug)]
struct Effect {
    closed: Vec<Closed>,
    opened: Vec<Opened>,
}

/// An element that a file only opens or only closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Half {
    pub name: String,
    pub at: usize,
    pub is_open: bool,
    /// What is said of it.
    pub message: String,
    /// How bad it is if no other file has the other half.
    pub alone: Severity,
}

/// The most halves of a file. With more of them, a file is damaged.
const MAX_HALVES: usize = 20;

pub struct Pairing<'a, 'n> {
    text: &'a str,
    notes: &'n mut Notes,
    is_snippet: bool,
    /// Whether what is reported is certainly wrong.
    is_certain: bool,
    /// Pairs whose tags begin their lines: name, opening and its indent, closing and its indent.
    pairs: Vec<(String, usize, usize, usize, usize)>,
    /// What stands at the top of the file, while that is collected.
    halves: Option<Vec<Half>>,
    /// Whether branches seem to open or close different elements.
    is_branched: bool,
}

impl<'a, 'n> Pairing<'a, 'n> {
    pub fn new(text: &'a str, notes: &'n mut Notes, is_snippet: bool) -> Self {
        Self {
            text,
            notes,
            is_snippet,
            is_certain: true,
            pairs: Vec::new(),
            halves: None,
            is_branched: false,
        }
    }

    /// Reports what is not paired, except the halves, which it returns.
    pub fn run(mut self, items: &[Item]) -> Vec<Half> {
        let before = (self.notes.list.len(), self.notes.counts);
        let halves = self.pair(items);
        // The comparison of branches above knows no conditions. If each page that the conditions allow is balanced, it was wrong.
        if self.is_branched && pages::are_balanced(self.text, items) {
            self.notes.list.truncate(before.0);
            self.notes.counts = before.1;
            return Vec::new();
        }
        // What a variable remembers from round to round is not followed.
        let mut halves = halves;
        let flags = flags(self.text);
        if !flags.is_empty() && depends_on(self.text, items, &flags) {
            for note in &mut self.notes.list[before.0..] {
                note.severity = note.severity.max(Warning);
            }
            for half in &mut halves {
                half.alone = half.alone.max(Warning);
            }
        }
        halves
    }

    fn pair(&mut self, items: &[Item]) -> Vec<Half> {
        let effect = self.sequence(items);
        // A snippet may open an element that another snippet closes.
        self.is_certain = !self.is_snippet;
        if effect.closed.len() + effect.opened.len() <= MAX_HALVES {
            self.halves = Some(Vec::new());
        }
        self.leftovers(&effect);
        self.halves.take().unwrap_or_default()
    }

    /// Reports an element, or keeps it if another file may have the other half. `culprit` is the place where the file itself has lost the
    /// other half.
    fn leftover(&mut self, name: &str, at: usize, culprit: Option<usize>, is_open: bool, message: String) {
        let alone = match () {
            // `</p>` alone makes an empty paragraph. `</body>` and `</html>` may be missing their start.
            () if OPTIONAL.contains(&name) => Info,
            () if !self.is_certain || !is_open && !may_end_another(name) => Warning,
            () => Error,
        };
        match &mut self.halves {
            Some(halves) if alone != Info && culprit.is_none() => {
                halves.push(Half { name: name.to_owned(), at, is_open, message, alone });
            }
            _ => self.notes.add(culprit.unwrap_or(at), alone, "UnclosedElement", message),
        }
    }

    fn indent(&self, at: usize) -> Option<usize> {
        super::indent_of(self.text.as_bytes(), at)
    }

    fn leftovers(&mut self, effect: &Effect) {
        for closed in &effect.closed {
            match closed {
                Closed::Element { name, at } => self.stray(name, *at),
                Closed::Either { at, branches } => {
                    let name = branches.iter().flatten().next().cloned().unwrap_or_default();
                    self.one_branch(&name, *at, "closed");
                }
            }
        }
        for opened in &effect.opened {
            match opened {
                Opened::Element { name, at } => self.unclosed(name, *at),
                Opened::Either { at, branches } => {
                    let name = branches.iter().flatten().next().cloned().unwrap_or_default();
                    self.one_branch(&name, *at, "opened");
                }
            }
        }
    }

    fn one_branch(&mut self, name: &str, at: usize, what: &str) {
        // The branches of an inner condition: `(div|)`.
        let mut names = name.split(['(', ')', '|', ' ']).filter(|name| !name.is_empty());
        let Some(name) = names.find(|name| !OPTIONAL.contains(name)).or_else(|| names.next()) else { return };
        if OPTIONAL.contains(&name) {
            return;
        }
        let message = format!("`<{name}>` is {what} on one branch only");
        self.is_branched = true;
        self.leftover(name, at, None, what == "opened", message);
    }

    fn stray(&mut self, name: &str, at: usize) {
        let culprit = self
            .pairs
            .iter()
            .filter(|(other, _, open, _, close)| other == name && close > open)
            .map(|(_, _, _, close_at, _)| *close_at)
            .min();
        let message = format!("`</{name}>` closes nothing");
        self.leftover(name, at, culprit, false, message);
    }

    fn unclosed(&mut self, name: &str, at: usize) {
        let culprit = self
            .pairs
            .iter()
            .filter(|(other, open_at, open, _, close)| other == name && close < open && *open_at > at)
            .map(|(_, open_at, ..)| *open_at)
            .max();
        let message = format!("`<{name}>` has no end");
        self.leftover(name, at, culprit, true, message);
    }

    fn sequence(&mut self, items: &[Item]) -> Effect {
        let mut effect = Effect::default();
        for item in items {
            match item {
                Item::Open { name, at } => {
                    effect.opened.push(Opened::Element { name: name.clone(), at: *at });
                }
                Item::Close { name, at } => self.close(&mut effect, name, *at),
                Item::Branches { at, branches } => {
                    let effects: Vec<Effect> = branches.iter().map(|branch| self.sequence(branch)).collect();
                    self.merge(&mut effect, effects, *at);
                }
                Item::Loop { body } => {
                    let inner = self.sequence(body);
                    // A round may close what the round before opened, such as a row of four.
                    let closes = inner.closed.len();
                    if closes == 0 && inner.opened.is_empty() {
                        continue;
                    }
                    if closes == inner.opened.len()
                        || closes > 0
                            && !inner.opened.is_empty()
                            && inner.closed.iter().all(|closed| matches!(closed, Closed::Either { .. }))
                            && inner.opened.iter().all(|opened| matches!(opened, Opened::Either { .. }))
                    {
                        continue;
                    }
                    self.leftovers(&inner);
                }
            }
        }
        effect
    }

    fn close(&mut self, effect: &mut Effect, name: &str, at: usize) {
        let found = effect.opened.iter().rposition(|opened| match opened {
            Opened::Element { name: other, .. } => other == name,
            Opened::Either { .. } => false,
        });
        let Some(index) = found else {
            if let Some(Opened::Either { branches, at: open_at }) = effect.opened.last()
                && branches.iter().any(|branch| branch.last().is_some_and(|last| last == name))
            {
                let open_at = *open_at;
                effect.opened.pop();
                self.one_branch(name, open_at, "opened");
                return;
            }
            match effect.opened.last() {
                Some(Opened::Element { name: other, .. }) if !OPTIONAL.contains(&other.as_str()) => {
                    // Two different names: a mistyped end, or an end that belongs to something before this branch.
                    let is_heading = |name: &str| {
                        name.len() == 2 && name.starts_with('h') && name.as_bytes()[1].is_ascii_digit()
                    };
                    let other = other.clone();
                    let message = format!("`</{name}>` does not close `<{other}>`");
                    let severity = match () {
                        // The browser ignores the end of a cell outside of a table, a `</p>` is an empty paragraph, and a heading ends
                        // with the end of any heading.
                        () if OPTIONAL.contains(&name) => Info,
                        () if self.is_snippet || !may_end_another(name) => Warning,
                        () => Error,
                    };
                    self.notes.add(at, severity, "UnclosedElement", message);
                    if is_heading(name) && is_heading(&other) {
                        effect.opened.pop();
                    }
                }
                _ => effect.closed.push(Closed::Element { name: name.to_owned(), at }),
            }
            return;
        };
        let inner = effect.opened.split_off(index + 1);
        let mut crossing = Vec::new();
        for (depth, opened) in inner.iter().enumerate().rev() {
            match opened {
                // The end of the picture ends its last shape, too. What follows within the shape is not drawn.
                Opened::Element { name: shape, at: open }
                    if SHAPES.contains(&shape.as_str())
                        && depth + 1 == inner.len()
                        && !self.text[*open + 1..at].contains('<') =>
                {
                    let message = format!("`<{shape}>` has no end, but the picture ends here");
                    self.notes.add(*open, Info, "UnclosedElement", message);
                }
                // An element and a form may overlap: the end of the one does not move the end of the other.
                Opened::Element { name: inner, at: open } if is_form(name) || is_form(inner) => {
                    let message = format!("`<{inner}>` and `<{name}>` overlap");
                    self.notes.add(*open, Warning, "UnclosedElement", message);
                    crossing.push(opened.clone());
                }
                Opened::Element { name: inner, at: open } if self.ends_with(inner, *open, at) => {
                    let message = format!("`<{inner}>` has no end, but `</{name}>` ends it");
                    self.notes.add(*open, Warning, "UnclosedElement", message);
                }
                Opened::Element { name, at } => self.unclosed(name, *at),
                Opened::Either { branches, at } => {
                    let name = branches.iter().flatten().next().cloned().unwrap_or_default();
                    self.one_branch(&name, *at, "opened");
                }
            }
        }
        crossing.reverse();
        let own = effect.opened.pop();
        effect.opened.append(&mut crossing);
        if let Some(Opened::Element { at: open_at, .. }) = own
            && let (Some(open), Some(close)) = (self.indent(open_at), self.indent(at))
            && open != close
        {
            self.pairs.push((name.to_owned(), open_at, open, at, close));
        }
    }

    /// Whether the end at `end` of the element around it ends the element at `open` without a loss: no other element follows that would
    /// be within it. Browsers open elements for the looks of text again, and a picture is another language.
    fn ends_with(&self, name: &str, open: usize, end: usize) -> bool {
        const OPENED_AGAIN: [&str; 14] =
            ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
        const OTHER: [&str; 4] = ["svg", "math", "select", "table"];
        if OPENED_AGAIN.contains(&name) || OTHER.contains(&name) {
            return false;
        }
        let inside = self.text.get(open + 1..end).unwrap_or_default();
        let mut tags =
            inside.split('<').skip(1).filter(|tag| tag.starts_with(|c: char| c.is_ascii_alphabetic()));
        tags.all(|tag| {
            let name =
                &tag[..tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(tag.len())];
            VOID.contains(&name.to_ascii_lowercase().as_str())
        })
    }

    /// Adds the effect of a condition, of which exactly one branch is printed.
    fn merge(&mut self, effect: &mut Effect, branches: Vec<Effect>, at: usize) {
        let closed: Vec<Vec<String>> =
            branches.iter().map(|branch| names_of_closed(&branch.closed)).collect();
        let opened: Vec<Vec<String>> =
            branches.iter().map(|branch| names_of_opened(&branch.opened)).collect();
        let same = |lists: &[Vec<String>]| lists.windows(2).all(|pair| pair[0] == pair[1]);
        // A branch that closes something and opens the same again changes nothing.
        let is_swap = closed
            .iter()
            .zip(&opened)
            .all(|(closed, opened)| closed.len() == opened.len() && closed.iter().eq(opened.iter().rev()));
        if is_swap && !same(&closed) {
            return;
        }
        if same(&closed) {
            if let Some(first) = branches.first() {
                for item in first.closed.clone() {
                    self.apply(effect, item);
                }
            }
        } else {
            let at = branches
                .iter()
                .flat_map(|branch| &branch.closed)
                .map(|closed| match closed {
                    Closed::Element { at, .. } | Closed::Either { at, .. } => *at,
                })
                .next()
                .unwrap_or(at);
            self.apply(effect, Closed::Either { branches: closed, at });
        }
        if same(&opened) {
            effect.opened.extend(branches.into_iter().next().map(|branch| branch.opened).unwrap_or_default());
        } else {
            let at = branches
                .iter()
                .flat_map(|branch| &branch.opened)
                .map(|opened| match opened {
                    Opened::Element { at, .. } | Opened::Either { at, .. } => *at,
                })
                .next()
                .unwrap_or(at);
            effect.opened.push(Opened::Either { branches: opened, at });
        }
    }

    fn apply(&mut self, effect: &mut Effect, closed: Closed) {
        match closed {
            Closed::Element { name, at } => self.close(effect, &name, at),
            Closed::Either { branches, at } => {
                if effect.opened.is_empty() {
                    effect.closed.push(Closed::Either { branches, at });
                    return;
                }
                // Each branch must close exactly what the same branch opened; an `unless` turns them round.
                for depth in 1..=effect.opened.len().min(6) {
                    let top = &effect.opened[effect.opened.len() - depth..];
                    if closes(top, &branches) {
                        effect.opened.truncate(effect.opened.len() - depth);
                        return;
                    }
                }
                if let Some(Opened::Either { branches: theirs, .. }) = effect.opened.last_mut()
                    && closes_part(theirs, &branches)
                {
                    return;
                }
                let first = branches.iter().flatten().next().cloned().unwrap_or_default();
                self.one_branch(&first, at, "closed");
                let most = branches.into_iter().max_by_key(Vec::len).unwrap_or_default();
                for name in most {
                    if matches!(effect.opened.last(), Some(Opened::Element { name: other, .. }) if *other == name)
                    {
                        effect.opened.pop();
                    }
                }
            }
        }
    }
}

/// Whether the branches close exactly what is open.
fn closes(open: &[Opened], branches: &[Vec<String>]) -> bool {
    let opened = |turned: bool, branch: usize| -> Option<Vec<&str>> {
        let mut names = Vec::new();
        for item in open {
            match item {
                Opened::Element { name, .. } => names.push(name.as_str()),
                Opened::Either { branches: theirs, .. } => {
                    if theirs.len() != branches.len() {
                        return None;
                    }
                    let branch = if turned { theirs.len() - 1 - branch } else { branch };
                    names.extend(theirs[branch].iter().map(String::as_str));
                }
            }
        }
        names.reverse();
        Some(names)
    };
    let fits = |turned: bool| {
        branches.iter().enumerate().all(|(index, closed)| {
            opened(turned, index)
                .is_some_and(|names| names.iter().copied().eq(closed.iter().map(String::as_str)))
        })
    };
    if fits(false) || fits(true) {
        return true;
    }
    // Other numbers of branches, for example `if a or b` that opens and `case` that closes: compare the sets.
    let [Opened::Either { branches: theirs, .. }] = open else { return false };
    let ours = distinct(branches.iter().map(|list| list.iter().map(String::as_str).collect()).collect());
    let theirs =
        distinct(theirs.iter().map(|list| list.iter().rev().map(String::as_str).collect()).collect());
    ours == theirs
}

/// The variables that a file sets both to true and to false.
fn flags(text: &str) -> Vec<&str> {
    let mut values: FxHashMap<&str, [bool; 2]> = FxHashMap::default();
    for at in memchr::memmem::find_iter(text.as_bytes(), "assign ") {
        let rest = text[at + "assign ".len()..].trim_start();
        let name = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())];
        let Some(value) = rest[name.len()..].trim_start().strip_prefix('=').map(str::trim_start) else {
            continue;
        };
        for (index, word) in ["true", "false"].iter().enumerate() {
            if value.starts_with(word) {
                values.entry(name).or_default()[index] = true;
            }
        }
    }
    values.into_iter().filter(|(_, both)| both.iter().all(|set| *set)).map(|(name, _)| name).collect()
}

/// Whether a condition on one of the variables opens or closes elements.
fn depends_on(text: &str, items: &[Item], flags: &[&str]) -> bool {
    items.iter().any(|item| match item {
        Item::Loop { body } => depends_on(text, body, flags),
        Item::Branches { at, branches } => {
            let tag = text[*at..].lines().next().unwrap_or_default();
            let tag = &tag[..tag.find("%}").unwrap_or(tag.len())];
            let mut words = tag.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.any(|word| flags.contains(&word)) && branches.iter().any(|branch| is_uneven(branch))
                || branches.iter().any(|branch| depends_on(text, branch, flags))
        }
        _ => false,
    })
}

/// Whether a branch opens and closes another number of elements.
fn is_uneven(items: &[Item]) -> bool {
    let count = |wanted: fn(&Item) -> bool| items.iter().filter(|item| wanted(item)).count();
    count(|item| matches!(item, Item::Open { .. })) != count(|item| matches!(item, Item::Close { .. }))
}

fn is_form(name: &str) -> bool {
    matches!(name, "form" | "{% form %}")
}

fn names_of_closed(closed: &[Closed]) -> Vec<String> {
    let name = |item: &Closed| match item {
        Closed::Element { name, .. } => name.clone(),
        Closed::Either { branches, .. } => joined(branches),
    };
    closed.iter().map(name).collect()
}

fn names_of_opened(opened: &[Opened]) -> Vec<String> {
    let name = |item: &Opened| match item {
        Opened::Element { name, .. } => name.clone(),
        Opened::Either { branches, .. } => joined(branches),
    };
    opened.iter().map(name).collect()
}

fn joined(branches: &[Vec<String>]) -> String {
    let lists: Vec<String> = branches.iter().map(|names| names.join(" ")).collect();
    format!("({})", lists.join("|"))
}

/// Closes the innermost elements of each branch, if the branches close nothing else.
fn closes_part(open: &mut [Vec<String>], branches: &[Vec<String>]) -> bool {
    if open.len() != branches.len() {
        return false;
    }
    for turned in [false, true] {
        let partner = |index: usize| if turned { open.len() - 1 - index } else { index };
        let fits = branches.iter().enumerate().all(|(index, closed)| {
            let names = &open[partner(index)];
            closed.len() <= names.len() && closed.iter().eq(names.iter().rev().take(closed.len()))
        });
        if fits {
            let partners: Vec<usize> = (0..branches.len()).map(partner).collect();
            for (closed, index) in branches.iter().zip(partners) {
                let kept = open[index].len() - closed.len();
                open[index].truncate(kept);
            }
            return true;
        }
    }
    false
}

fn distinct(mut lists: Vec<Vec<&str>>) -> Vec<Vec<&str>> {
    lists.sort();
    lists.dedup();
    lists
}
