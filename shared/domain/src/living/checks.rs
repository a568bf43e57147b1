//! What a new text must keep before it replaces the old one.
//!
//! A model writes the new texts, from commits and documents that others have written. So a program checks what can be checked: no
//! document is lost or halved, the lines of its frontmatter stay, links lead somewhere, and every name in it was known before. A problem is
//! told to the model once, and then to the person; the old text stays.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::commit::Commit;
use super::frontmatter::parts;
use super::{Doc, DocName, MAX_TEXT};
use crate::text::quoting::short_line;

/// A text below this size may shrink as it likes.
const SMALL: usize = 400;

/// How many problems of a kind are told of one document.
const MAX_TOLD: usize = 5;

/// What is wrong with a new text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DocsProblemCode)]
pub enum ProblemCode {
    /// The text is empty.
    Lost,
    /// Less than half of the text is left.
    Halved,
    /// The text is longer than a document may be.
    TooLong,
    /// A line of the frontmatter is missing or changed.
    Frontmatter,
    /// A link leads to a document, a heading, a file or a server that neither the old texts nor the commits name.
    Link,
    /// A name stands neither in the old texts nor in the commits.
    Name,
}

/// A problem of one document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DocsProblem)]
pub struct Problem {
    /// The name of the document.
    #[schema(value_type = String, example = "ARCHITECTURE.md")]
    pub document: DocName,
    pub code: ProblemCode,
    /// What is wrong, on one line. It may quote the text.
    pub text: String,
}

/// What the new texts may rely on.
pub struct Known<'a> {
    /// With the anchors of their headings.
    documents: Vec<(Doc<'a>, HashSet<String>)>,
    words: HashSet<&'a str>,
    files: HashSet<&'a str>,
    links: HashSet<String>,
}

impl<'a> Known<'a> {
    /// `documents` are all of the project, as they are now. `commits` are those that the synchronisation has taken.
    #[must_use]
    pub fn new(documents: Vec<Doc<'a>>, commits: &'a [Commit]) -> Self {
        let mut known = Self {
            documents: Vec::new(),
            words: HashSet::new(),
            files: HashSet::new(),
            links: HashSet::new(),
        };
        for document in &documents {
            known.words.extend(words(document.text));
            known.words.extend(words(document.name.as_str()));
            known.links.extend(links(document.text).map(|link| target(link).to_owned()));
        }
        for commit in commits {
            known.words.extend(words(&commit.message));
            known.words.extend(commit.author.iter().flat_map(|author| words(author)));
            for file in &commit.files {
                known.words.extend(words(file));
                known.files.insert(file);
            }
        }
        known.documents = documents.into_iter().map(|document| (document, anchors(document.text))).collect();
        known
    }

    /// What is wrong with a new text of a document. Empty: it may replace the old one.
    #[must_use]
    pub fn check(&self, name: &DocName, new: &str) -> Vec<Problem> {
        let old = self.documents.iter().find(|(document, _)| document.name == name);
        let old = old.map_or("", |(document, _)| document.text);
        let mut problems = Vec::new();
        let mut add = |code, text: String| {
            problems.push(Problem { document: name.clone(), code, text: short_line(&text, 300) });
        };
        let (visible, before) = (visible(new), visible(old));
        if visible == 0 && before > 0 {
            add(ProblemCode::Lost, "the text is empty".to_owned());
            return problems;
        }
        if before >= SMALL && visible * 2 < before {
            let text =
                format!("the text has {visible} characters, and had {before}: keep what is still true");
            add(ProblemCode::Halved, text);
        }
        if new.len() > MAX_TEXT {
            add(ProblemCode::TooLong, format!("must be at most {MAX_TEXT} bytes, is {}", new.len()));
            return problems;
        }
        let (is, was) = (parts(new).lines, parts(old).lines);
        if is != was {
            let text = format!("must stay as it is: {}", was.join(" | "));
            add(ProblemCode::Frontmatter, text);
        }
        let own = anchors(new);
        for link in first_new(links(new).filter(|link| !self.leads_somewhere(link, name, &own))) {
            add(ProblemCode::Link, format!("neither the texts nor the commits name {link}"));
        }
        // What a link names, the link has been checked for.
        let linked: HashSet<&str> = links(new).flat_map(words).collect();
        let is_unknown = |word: &&str| !linked.contains(word) && !self.knows(word);
        for word in first_new(names(new).filter(is_unknown)) {
            add(ProblemCode::Name, format!("neither the texts nor the commits name {word}"));
        }
        problems
    }

    /// Whether a name was known, or each part of it: `Session::open` is known if both are.
    fn knows(&self, word: &str) -> bool {
        let parts = word.split(['.', ':', '/', '#', '(', ')']).filter(|part| !part.is_empty());
        self.words.contains(word)
            || parts.clone().count() > 1 && parts.clone().all(|part| self.words.contains(part))
    }

    /// `own` are the anchors of the new text.
    fn leads_somewhere(&self, link: &str, name: &DocName, own: &HashSet<String>) -> bool {
        let (path, heading) =
            link.split_once('#').map_or((link, None), |(path, heading)| (path, Some(heading)));
        let path = path.strip_prefix("./").unwrap_or(path);
        let anchors = if path.is_empty() || path == name.as_str() {
            Some(own)
        } else {
            let other = self.documents.iter().find(|(document, _)| document.name.as_str() == path);
            other.map(|(_, anchors)| anchors)
        };
        match (anchors, heading) {
            (Some(anchors), Some(heading)) => anchors.contains(&heading.to_lowercase()),
            (Some(_), None) => true,
            (None, _) => self.files.contains(path) || self.links.contains(target(link)),
        }
    }
}

/// The first few of them, each once.
fn first_new<'a>(found: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut first: Vec<&str> = Vec::new();
    for one in found {
        if !first.contains(&one) {
            first.push(one);
            if first.len() == MAX_TOLD {
                break;
            }
        }
    }
    first
}

fn visible(text: &str) -> usize {
    parts(text).body.chars().filter(|c| !c.is_whitespace()).count()
}

/// The words of a text. A word may have inner punctuation, as paths and names in code have it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_inner = |c: char| c.is_alphanumeric() || "_-./:#@".contains(c);
    text.split(move |c| !is_inner(c)).flat_map(|word| {
        let whole = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let parts = whole.split(['.', ':', '/', '#', '@']).filter(move |part| *part != whole);
        std::iter::once(whole).chain(parts).filter(|word| !word.is_empty())
    })
}

/// The names of a text: every word of code in backticks or fences, and outside of them what looks like code.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').enumerate().flat_map(|(n, part)| {
        let is_code = n % 2 == 1;
        words(part).filter(move |word| is_name(word, is_code))
    })
}

/// Whether a word is a name rather than a word of a language. In code, every word is one. Elsewhere it has an underscore, a capital inside,
/// letters beside digits, `::`, or an ending like that of a file.
fn is_name(word: &str, is_code: bool) -> bool {
    let letters: Vec<char> = word.chars().collect();
    if !letters.iter().any(|c| c.is_alphabetic()) || letters.len() < 2 || is_number(word) {
        return false;
    }
    let inner_capital = letters.windows(2).any(|two| two[0].is_lowercase() && two[1].is_uppercase());
    let has_ending = word
        .rsplit_once('.')
        .is_some_and(|(stem, ending)| stem.len() > 1 && ending.chars().all(char::is_alphabetic));
    let has_digit = letters.iter().any(char::is_ascii_digit);
    is_code || inner_capital || has_ending || has_digit || word.contains('_') || word.contains("::")
}

/// `1st`, `20th`, `3x`, `40ms`: a number with a unit.
fn is_number(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    unit.len() < word.len() && unit.len() <= 3 && unit.chars().all(char::is_alphabetic)
}

/// The targets of the links of a text, inline and by reference, and bare addresses.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let inline = targets(text, "](", &[')', '\n']).map(|link| {
        let target = link[2..].split_whitespace().next().unwrap_or("");
        target.trim_matches(['<', '>'])
    });
    let references = text.lines().filter_map(|line| {
        let (_, target) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
        target.split_whitespace().next()
    });
    let ends = &[' ', '\t', '\n', '\r', '<', '>', '(', ')', '[', ']', '"', '\'', '`', '|'];
    let bare = ["https://", "http://"].into_iter().flat_map(|scheme| targets(text, scheme, ends));
    let bare = bare.map(|link| link.trim_end_matches(['.', ',', ';', ':', '!', '?']));
    inline.chain(references).chain(bare).filter(|link| !link.is_empty())
}

/// The parts of a text that begin with `begin` and go on until one of `ends`. They do not overlap, so the time grows with the text.
fn targets<'a>(text: &'a str, begin: &'a str, ends: &'a [char]) -> impl Iterator<Item = &'a str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let found = &rest[rest.find(begin)?..];
        let length = found[begin.len()..].find(ends).map_or(found.len(), |end| begin.len() + end);
        let (link, after) = found.split_at(length);
        rest = after;
        Some(link)
    })
}

/// A link without the heading that it names.
fn target(link: &str) -> &str {
    link.split_once('#').map_or(link, |(target, _)| target)
}

/// The anchors of the headings of a text, as GitHub makes them.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let headings = text.lines().filter_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then(|| title.trim())
    });
    for heading in headings {
        let anchor: String = heading
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            })
            .collect();
        // A heading that stands twice gets a number.
        let count = counts.entry(anchor.clone()).or_default();
        anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::super::commit::tests::commit;
    use super::*;

    const OLD: &str = "---\ntitle: The house\n---\n# Floors\n\nThe `store` uses DynamoDB, see [DESIGN.md](DESIGN.md#keys) and \
        https://example.com/a. `Session::open` begins.\n\n## Doors and keys\n\nThere are three.\n";

    fn found(new: &str) -> Vec<(ProblemCode, String)> {
        let (name, other): (DocName, DocName) =
            ("ARCHITECTURE.md".parse().unwrap(), "DESIGN.md".parse().unwrap());
        let documents = vec![
            Doc { name: &name, text: OLD },
            Doc { name: &other, text: "# Keys\n\nEach owner has a `TableKey`.\n" },
        ];
        let mut of = commit(1);
        of.message = "Sessions end after an hour (SESSION_HOURS)\n\nSee #12.".to_owned();
        of.files = vec!["src/session.rs".to_owned()];
        let commits = [of];
        let problems = Known::new(documents, &commits).check(&name, new);
        problems.into_iter().map(|problem| (problem.code, problem.text)).collect()
    }

    fn with(more: &str) -> String {
        format!("{OLD}\n{more}\n")
    }

    #[test]
    fn what_was_known_may_be_written() {
        for more in [
            "",
            "Sessions end after an hour, by `SESSION_HOURS` in `src/session.rs`.",
            "A `Session` opens, and `session.rs` closes it. The TableKey of DESIGN.md is the 2nd one, 40ms later.",
            "[keys](DESIGN.md#keys), [above](#doors-and-keys), [code](src/session.rs), [code](./src/session.rs), <https://example.com/a>",
            "Ordinary words, also new ones: warehouse, Überraschung, e.g. this; and/or that. It costs $5.00.",
        ] {
            assert_eq!(found(&with(more)), [], "{more}");
        }
    }

    #[test]
    fn each_problem_is_told() {
        use ProblemCode::{Frontmatter, Halved, Link, Lost, Name, TooLong};
        let unknown = |what: &str| format!("neither the texts nor the commits name {what}");
        for (new, expected) in [
            (String::new(), vec![(Lost, "the text is empty".to_owned())]),
            ("---\ntitle: The house\n---\n\n".to_owned(), vec![(Lost, "the text is empty".to_owned())]),
            (
                OLD.replace("title: The house", "title: A hut"),
                vec![(Frontmatter, "must stay as it is: title: The house".to_owned())],
            ),
            (with("[x](OTHER.md)"), vec![(Link, unknown("OTHER.md"))]),
            (with("[x](#nowhere)"), vec![(Link, unknown("#nowhere"))]),
            (with("[x](DESIGN.md#nowhere)"), vec![(Link, unknown("DESIGN.md#nowhere"))]),
            (with("[x]: https://evil.example/hook"), vec![(Link, unknown("https://evil.example/hook"))]),
            (
                with("Call `drop_tables`, dropTables, Drop::tables and `erase`."),
                ["drop_tables", "dropTables", "Drop::tables", "erase"]
                    .map(|name| (Name, unknown(name)))
                    .to_vec(),
            ),
            (
                with("```sh\nrm everything\n```"),
                ["sh", "rm", "everything"].map(|name| (Name, unknown(name))).to_vec(),
            ),
            (with("Uses GPT5."), vec![(Name, unknown("GPT5"))]),
        ] {
            assert_eq!(found(&new), expected, "{new}");
        }
        let long = "# Floors\n".to_owned() + &"word ".repeat(50_000);
        assert!(found(&long).iter().any(|(code, _)| *code == TooLong));
        let name: DocName = "a".parse().unwrap();
        let old = "word ".repeat(200);
        let known = Known::new(vec![Doc { name: &name, text: &old }], &[]);
        let check = |count: usize| {
            known.check(&name, &"word ".repeat(count)).into_iter().map(|p| p.code).collect::<Vec<_>>()
        };
        assert_eq!((check(100), check(99)), (vec![], vec![Halved]));
        // A new document, and one that was short.
        assert!(Known::new(Vec::new(), &[]).check(&name, "word").is_empty());
    }

    #[test]
    fn hostile_texts_are_checked_in_a_time_that_grows_with_their_length() {
        let name: DocName = "a".parse().unwrap();
        for part in ["](", "http://", "[x]:", "`", "_a", "a.", "# a\n[](#b)", "---\n", "é::"] {
            let text = part.repeat(MAX_TEXT / part.len());
            let old = text.clone();
            let known = Known::new(vec![Doc { name: &name, text: &old }], &[]);
            assert!(known.check(&name, &text).len() <= 2 * MAX_TOLD, "{part}");
        }
    }

    #[test]
    fn at_most_five_problems_of_a_kind_are_told() {
        let names: String = (0..50).map(|n| format!("`name_{n}` ")).collect();
        assert_eq!(found(&with(&names)).len(), MAX_TOLD);
    }
}
