//! Prints the elements of a file for chosen values of its conditions, and looks whether they are paired.

use rustc_hash::FxHashMap;

use super::items::{Item, OPTIONAL};
use super::words;

/// How many choices of values are tried.
const PAGES: u64 = 48;
/// The most elements that are looked at in all pages together.
const MOST_STEPS: usize = 400_000;

/// Whether the elements of each tried page are paired. Equal conditions have equal values.
pub fn are_balanced(text: &str, items: &[Item]) -> bool {
    let mut steps = 0;
    (0..PAGES).all(|seed| {
        let mut page = Page { text, seed, known: FxHashMap::default(), open: Vec::new(), steps: &mut steps };
        page.print(items) && page.open.iter().all(|name| OPTIONAL.contains(name))
    })
}

struct Page<'a, 'n> {
    text: &'a str,
    seed: u64,
    known: FxHashMap<&'a str, u64>,
    open: Vec<&'a str>,
    steps: &'n mut usize,
}

impl<'a> Page<'a, '_> {
    /// Whether no end lacks its beginning.
    fn print(&mut self, items: &'a [Item]) -> bool {
        items.iter().all(|item| {
            *self.steps += 1;
            *self.steps < MOST_STEPS
                && match item {
                    Item::Open { name, .. } => {
                        self.open.push(name);
                        true
                    }
                    Item::Close { name, .. } => self.close(name),
                    Item::Loop { body } => self.print(body) && self.print(body),
                    Item::Branches { at, branches } => {
                        let chosen = self.choose(*at, branches.len());
                        branches.get(chosen).is_none_or(|branch| self.print(branch))
                    }
                }
        })
    }

    fn close(&mut self, name: &str) -> bool {
        let near = self.open.len().saturating_sub(64);
        let Some(index) = self.open[near..].iter().rposition(|open| *open == name) else {
            return OPTIONAL.contains(&name);
        };
        self.open.drain(near + index..).skip(1).all(|inner| OPTIONAL.contains(&inner))
    }

    /// The branch of the condition at a place.
    fn choose(&mut self, at: usize, count: usize) -> usize {
        let rest = &self.text[at..];
        let tag = &rest[..rest.find("%}").unwrap_or(rest.len().min(200))];
        let tag = tag.lines().next().unwrap_or_default().trim_start_matches(['{', '%', '-', ' ']);
        let (word, condition) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        let (condition, is_turned) = positive(condition.trim_matches(['-', ' ']));
        let seed = self.seed;
        let value = *self.known.entry(condition).or_insert_with(|| {
            words::hash(condition).wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
        });
        let count = count.max(1) as u64;
        if word == "case" {
            return (value % count) as usize;
        }
        // Mostly even, but sometimes nearly all conditions hold, or nearly none.
        let most = [50, 10, 90][(seed % 3) as usize];
        let holds = (value % 100 < most) != is_turned;
        if holds == (word != "unless") { 0 } else { (1 + value % (count - 1).max(1)).min(count - 1) as usize }
    }
}

/// A condition without its negation, and whether it had one.
fn positive(condition: &str) -> (&str, bool) {
    const SIGNS: [(&str, bool); 6] = [
        (" != blank", false),
        (" == blank", true),
        (" == true", false),
        (" == false", true),
        (" > 0", false),
        (" == 0", true),
    ];
    if condition.contains(" and ") || condition.contains(" or ") {
        return (condition, false);
    }
    let found = SIGNS.iter().find_map(|(sign, is_turned)| Some((condition.strip_suffix(sign)?, *is_turned)));
    found.or_else(|| Some((condition.strip_suffix(" != 0")?, false))).unwrap_or((condition, false))
}

#[cfg(test)]
mod tests {
    use crate::check::CheckedTheme;

    fn faults(text: &str) -> Vec<String> {
        let findings = CheckedTheme::read([("sections/a.liquid", text)], None).findings();
        findings.into_iter().filter(|finding| finding.code == "UnclosedElement").map(|f| f.message).collect()
    }

    #[test]
    fn equal_conditions_open_and_close() {
        for text in [
            "{% if a %}{% if b %}<div>{% endif %}{% endif %}<i>x</i>{% if a %}{% if b %}</div>{% endif %}{% endif %}",
            "{% if a %}<div>{% endif %}{% if a %}<div>{% endif %}x{% if a %}</div></div>{% endif %}",
            "{% if a != blank %}<div>{% endif %}{% if b %}<b>{% endif %}x{% if b %}</b>{% endif %}{% unless a == blank %}</div>{% endunless %}",
            "{% if a %}{% if b %}<p class=\"x\">{% endif %}{% endif %}x<p>y</p>",
            "{% if a == 'x' %}<div class=\"x\">{% elsif a == 'y' %}<div class=\"y\">{% endif %}z</div>",
            "<svg><g><path d=\"M0\"></svg>".replace("<g>", "").as_str(),
        ] {
            let wrong: Vec<String> = faults(text).into_iter().filter(|m| !m.contains("picture")).collect();
            assert_eq!(wrong, Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn unequal_conditions_do_not() {
        for text in [
            "{% if a %}<div>{% endif %}x</div>",
            "{% if a %}{% if b %}<div>{% endif %}{% endif %}x{% if a %}</div>{% endif %}",
            "{% if a == 'x' %}<div>{% elsif a == 'y' %}<p>{% endif %}z</div>",
            "<svg><path d=\"M0\"><path d=\"M1\"/></svg>",
        ] {
            assert!(!faults(text).is_empty(), "{text}");
        }
    }
}
