//! ListObjectsV2 over the ordered keys.

use std::collections::BTreeMap;
use std::ops::Bound;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::store::Summary;

/// The requested page.
#[derive(Debug, Clone, Default)]
pub(super) struct Query {
    pub prefix: String,
    /// Keys that contain it after the prefix are combined into one common prefix. Not empty.
    pub delimiter: Option<String>,
    /// The page begins after this key, or after all keys with this common prefix.
    pub after: Option<After>,
    pub max: usize,
}

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum After {
    Key(String),
    Prefix(String),
}

#[derive(Debug, PartialEq, Default)]
pub(super) struct Page {
    pub objects: Vec<(String, Summary)>,
    pub prefixes: Vec<String>,
    /// Set if there are more entries.
    pub next: Option<After>,
}

impl After {
    pub(super) fn token(&self) -> String {
        let (kind, text) = match self {
            Self::Key(key) => ('k', key),
            Self::Prefix(prefix) => ('p', prefix),
        };
        BASE64_URL_SAFE_NO_PAD.encode(format!("{kind}{text}"))
    }

    pub(super) fn parse(token: &str) -> Option<Self> {
        let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        match text.split_at_checked(1)? {
            ("k", key) => Some(Self::Key(key.to_owned())),
            ("p", prefix) => Some(Self::Prefix(prefix.to_owned())),
            _ => None,
        }
    }
}

pub(super) fn list(objects: &BTreeMap<String, Summary>, query: &Query) -> Page {
    let mut page = Page::default();
    if query.max == 0 {
        return page;
    }
    let mut last = None;
    let mut from = start(query);
    loop {
        let Some((key, object)) = objects.range((from, Bound::Unbounded)).next() else { return page };
        let Some(rest) = key.strip_prefix(&query.prefix) else { return page };
        if page.objects.len() + page.prefixes.len() == query.max {
            page.next = last;
            return page;
        }
        let folded = query.delimiter.as_ref().and_then(|delimiter| {
            rest.find(delimiter).map(|at| key[..query.prefix.len() + at + delimiter.len()].to_owned())
        });
        match folded {
            Some(prefix) => {
                from = beyond(&prefix);
                page.prefixes.push(prefix.clone());
                last = Some(After::Prefix(prefix));
            }
            None => {
                from = Bound::Excluded(key.clone());
                page.objects.push((key.clone(), object.clone()));
                last = Some(After::Key(key.clone()));
            }
        }
    }
}

fn start(query: &Query) -> Bound<String> {
    let after = match &query.after {
        Some(After::Key(key)) => Bound::Excluded(key.clone()),
        Some(After::Prefix(prefix)) => beyond(prefix),
        None => return Bound::Included(query.prefix.clone()),
    };
    match &after {
        Bound::Excluded(at) | Bound::Included(at) if *at < query.prefix => {
            Bound::Included(query.prefix.clone())
        }
        _ => after,
    }
}

/// The first position after every key with this prefix.
fn beyond(prefix: &str) -> Bound<String> {
    // The greatest character also sorts last in UTF-8, and no key is long enough to contain more of them than this.
    let greatest = char::MAX.to_string().repeat(1024 / char::MAX.len_utf8() + 1);
    Bound::Excluded(format!("{prefix}{greatest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn objects(keys: &[&str]) -> BTreeMap<String, Summary> {
        let summary = Summary {
            size: 1,
            etag: "e".into(),
            modified: jiff::Timestamp::UNIX_EPOCH,
            sequencer: 1,
            expires: false,
        };
        keys.iter().map(|key| ((*key).to_owned(), summary.clone())).collect()
    }

    /// Reads all pages. Returns the keys and the common prefixes.
    fn walk(keys: &[&str], mut query: Query) -> (Vec<String>, Vec<String>) {
        let objects = objects(keys);
        let (mut found, mut prefixes) = (Vec::new(), Vec::new());
        loop {
            let page = list(&objects, &query);
            assert!(page.objects.len() + page.prefixes.len() <= query.max);
            found.extend(page.objects.into_iter().map(|(key, _)| key));
            prefixes.extend(page.prefixes);
            let Some(next) = page.next else { return (found, prefixes) };
            query.after = After::parse(&next.token());
            assert_eq!(query.after, Some(next));
        }
    }

    #[test]
    fn keys_fold_at_the_delimiter_whatever_the_page_size() {
        let keys = ["a", "a/", "a/b", "a/b/c", "a/c", "a\u{10ffff}/x", "b//c", "b/c", "ä/ö", "z"];
        type Case<'a> = (&'a str, Option<&'a str>, &'a [&'a str], &'a [&'a str]);
        let cases: [Case; 6] = [
            ("", None, &keys, &[]),
            ("", Some("/"), &["a", "z"], &["a/", "a\u{10ffff}/", "b/", "ä/"]),
            ("a/", Some("/"), &["a/", "a/b", "a/c"], &["a/b/"]),
            ("a/b", Some("/"), &["a/b"], &["a/b/"]),
            ("b/", Some("/c"), &["b/c"], &["b//c"]),
            ("nothing", Some("/"), &[], &[]),
        ];
        for (prefix, delimiter, expected, expected_prefixes) in cases {
            for max in [1, 2, 3, 1000] {
                let query =
                    Query { prefix: prefix.into(), delimiter: delimiter.map(Into::into), after: None, max };
                let mut expected_keys = expected.to_vec();
                expected_keys.sort_unstable();
                let mut expected_prefixes = expected_prefixes.to_vec();
                expected_prefixes.sort_unstable();
                let (found, prefixes) = walk(&keys, query);
                assert_eq!((found, prefixes), {
                    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect::<Vec<_>>();
                    (owned(expected_keys), owned(expected_prefixes))
                });
            }
        }
    }

    #[test]
    fn a_page_may_begin_after_a_key_and_may_be_empty() {
        let keys = ["a", "b", "c"];
        let after = |key: &str| Query { after: Some(After::Key(key.into())), max: 10, ..Query::default() };
        assert_eq!(walk(&keys, after("a")).0, ["b", "c"]);
        assert_eq!(walk(&keys, after("c")).0, [""; 0]);
        assert_eq!(list(&objects(&keys), &Query::default()), Page::default());
        let before_the_prefix = Query { prefix: "b".into(), ..after("a") };
        assert_eq!(walk(&keys, before_the_prefix).0, ["b"]);
    }

    proptest! {
        #[test]
        fn paging_finds_the_same_as_one_listing(
            keys in proptest::collection::btree_set("[ab/\u{10ffff}]{1,6}", 0..20),
            prefix in "[ab/]{0,2}",
            max in 1usize..5,
        ) {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let mut expected = (Vec::new(), BTreeSet::new());
            for key in keys.iter().filter(|key| key.starts_with(&prefix)) {
                match key[prefix.len()..].find('/') {
                    Some(at) => { expected.1.insert(key[..=prefix.len() + at].to_owned()); }
                    None => expected.0.push((*key).to_owned()),
                }
            }
            let query = Query { prefix, delimiter: Some("/".into()), after: None, max };
            prop_assert_eq!(walk(&keys, query), (expected.0, expected.1.into_iter().collect::<Vec<_>>()));
        }

        #[test]
        fn no_token_panics(token in ".*") {
            After::parse(&token);
        }
    }
}
