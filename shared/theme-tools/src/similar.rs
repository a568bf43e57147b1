//! Which paths match a query or a wrong path. It compares letters.

use theme::path::handle;

/// A longer query or name is compared only by its parts, not letter by letter.
const MAX_LETTERS: usize = 64;

/// The paths that are most similar to a wrong one.
pub fn similar<'p>(paths: impl Iterator<Item = &'p str>, path: &str, most: usize) -> Vec<&'p str> {
    ranked(paths, path).into_iter().take(most).map(|(_, path)| path).collect()
}

/// All paths that match, best first.
pub fn ranked<'p>(paths: impl Iterator<Item = &'p str>, query: &str) -> Vec<(u32, &'p str)> {
    let query = Query::new(query);
    let mut found: Vec<(u32, &str)> =
        paths.filter_map(|path| query.score(path).map(|score| (score, path))).collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.len().cmp(&b.1.len())).then(a.1.cmp(b.1)));
    found
}

struct Query {
    whole: String,
    name: String,
    words: Vec<String>,
}

fn plain(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
}

impl Query {
    fn new(query: &str) -> Self {
        let whole = query.trim().to_lowercase();
        let words = whole.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let words = words.take(12).map(str::to_owned).collect();
        let name = plain(file_name(&whole));
        Self { whole, name, words }
    }

    /// How well a path matches, from 1 to 1000.
    fn score(&self, path: &str) -> Option<u32> {
        let lower = path.to_lowercase();
        let name = plain(file_name(&lower));
        if lower == self.whole {
            return Some(1000);
        }
        if self.name.is_empty() {
            return lower.contains(&self.whole).then_some(500);
        }
        let folder = self.whole.split_once('/').map(|(folder, _)| folder);
        let bonus = u32::from(folder.is_some_and(|folder| lower.split('/').next() == Some(folder))) * 40;
        if name == self.name {
            return Some(900 + bonus);
        }
        if lower.contains(&self.whole) {
            return Some(800);
        }
        if !self.words.is_empty() && self.words.iter().all(|word| lower.contains(word.as_str())) {
            return Some(700 + bonus);
        }
        if name.contains(&self.name) {
            return Some(650 + bonus);
        }
        let (query, name): (Vec<char>, Vec<char>) =
            (self.name.chars().take(MAX_LETTERS + 1).collect(), name.chars().take(MAX_LETTERS + 1).collect());
        if query.len() > MAX_LETTERS || name.len() > MAX_LETTERS {
            return None;
        }
        let wrong = distance(&query, &name);
        let allowed = (query.len() + 1) / 4;
        if wrong <= allowed {
            return Some(600 - 20 * wrong as u32 + bonus);
        }
        if let Some(wrong) = self.wrong_letters(&lower) {
            return Some(550 - 10 * wrong as u32 + bonus);
        }
        // All letters of a short form, in their order: `crtdrw` of `cart-drawer`.
        let is_short = query.len() >= 4 && query.len() * 3 >= name.len();
        (is_short && is_part(&query, &name)).then_some(200 + bonus)
    }
}

impl Query {
    /// How many letters of the query's words are wrong, if each word is similar to a word of the path.
    fn wrong_letters(&self, path: &str) -> Option<usize> {
        let is_letter = |c: char| c.is_alphanumeric();
        let names = || path.split(|c: char| !is_letter(c)).filter(|name| name.len() <= MAX_LETTERS).take(32);
        let mut wrong = 0;
        for word in &self.words {
            let letters: Vec<char> = word.chars().take(MAX_LETTERS).collect();
            let least = names().map(|name| distance(&letters, &name.chars().collect::<Vec<_>>())).min()?;
            if least > letters.len() / 4 {
                return None;
            }
            wrong += least;
        }
        (!self.words.is_empty()).then_some(wrong)
    }
}

/// The name without folder and extensions.
fn file_name(path: &str) -> &str {
    let name = handle(path).rsplit('/').next().unwrap_or(path);
    name.split('.').next().filter(|name| !name.is_empty()).unwrap_or(name)
}

fn is_part(query: &[char], name: &[char]) -> bool {
    let mut letters = name.iter();
    query.first() == name.first() && query.iter().all(|letter| letters.any(|other| other == letter))
}

/// How many letters must be changed, added, left out or exchanged with the next one.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let mut least = (last[j] + usize::from(letter != other)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == b[j - 1] && a[i - 1] == *other {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
