//! Every shape of feed in `feeds/` is read as its `expected.json` says.

use std::path::Path;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Answer {
    content_type: String,
    address: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    #[serde(default)]
    differs_from_feedparser: Option<String>,
    entries: Vec<Row>,
}

#[derive(Debug, Deserialize, PartialEq, Eq, Default)]
#[serde(default, deny_unknown_fields)]
struct Row {
    id: String,
    title: String,
    link: String,
    date: String,
}

#[expect(clippy::disallowed_methods, reason = "the shapes are data of this test")]
fn bytes(path: &Path) -> Option<Vec<u8>> {
    std::fs::read(path).ok()
}

#[test]
fn every_shape_of_feed_is_read_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/watch/feeds");
    let mut shapes: Vec<_> = folder.read_dir().unwrap().map(|found| found.unwrap().path()).collect();
    shapes.retain(|path| path.is_dir());
    shapes.sort();
    assert!(shapes.len() >= 50, "{} shapes", shapes.len());
    let mut wrong = Vec::new();
    for shape in shapes {
        let body = bytes(&shape.join("feed.xml")).or_else(|| bytes(&shape.join("feed.json"))).unwrap();
        let answer: Answer = bytes(&shape.join("answer.json"))
            .map(|json| serde_json::from_slice(&json).unwrap())
            .unwrap_or_default();
        let expected: Expected =
            serde_json::from_slice(&bytes(&shape.join("expected.json")).unwrap()).unwrap();
        assert!(expected.differs_from_feedparser.is_none_or(|how| how.ends_with(['.', ';'])));
        let name = shape.file_name().unwrap().to_string_lossy().into_owned();
        match read(&answer.content_type, &body, &answer.address) {
            Ok(feed) => {
                let row = |entry: &Entry| Row {
                    id: entry.id.clone(),
                    title: entry.title.clone(),
                    link: entry.link.clone(),
                    date: entry.time.map(|time| time.to_string()).unwrap_or_default(),
                };
                let rows: Vec<Row> = feed.entries.iter().map(row).collect();
                if rows != expected.entries {
                    wrong.push(format!("{name}:\n  expected {:?}\n  read     {rows:?}", expected.entries));
                }
            }
            Err(error) => wrong.push(format!("{name}: it {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} shapes are read otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

fn keys(feed: &str) -> Vec<String> {
    read("", feed.as_bytes(), "https://a.com")
        .unwrap()
        .entries
        .iter()
        .map(|entry| entry.key().to_owned())
        .collect()
}

#[test]
fn entries_without_an_id_are_told_apart_by_link_title_and_date() {
    let item = |link: &str, title: &str, date: &str| {
        format!("<item><link>{link}</link><title>{title}</title><pubDate>{date}</pubDate></item>")
    };
    let rows = [("/a", "t", "d"), ("/b", "t", "d"), ("/a", "u", "d"), ("/a", "t", "e"), ("", "t", "d")];
    let items: String = rows.iter().map(|(link, title, date)| item(link, title, date)).collect();
    let mut found = keys(&format!("<rss>{items}</rss>"));
    assert_eq!(found.len(), 5);
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 5);
}

#[test]
fn blanks_around_an_id_do_not_count_and_long_ids_count_whole() {
    let item = |id: &str| format!("<rss><item><guid>{id}</guid></item></rss>");
    assert_eq!(keys(&item("a")), keys(&item("\n    a\n  ")));
    assert_eq!(keys(&item("a")), [crate::hex(&Sha256::digest("a")[..6])], "as it always was");
    let long = "a".repeat(MAX_FIELD);
    assert_ne!(keys(&item(&format!("{long}1"))), keys(&item(&format!("{long}2"))));
}

fn titles(feed: &Feed) -> Vec<&str> {
    feed.entries.iter().map(|entry| entry.title.as_str()).collect()
}

/// A feed with an entry for each number. `dated`: whether the entries have dates, the highest number the newest.
fn numbers(of: impl Iterator<Item = u32>, dated: bool) -> Feed {
    let item = |n: u32| {
        let date = if dated { format!("<updated>{}-01-01</updated>", 1_000 + n) } else { String::new() };
        format!("<entry><id>{n}</id><title>{n}</title>{date}</entry>")
    };
    let items: String = of.map(item).collect();
    read("", format!("<feed>{items}</feed>").as_bytes(), "").unwrap()
}

#[test]
fn of_a_long_feed_the_newest_entries_are_looked_at() {
    for feed in [numbers(1..=500, true), numbers((1..=500).rev(), true)] {
        assert_eq!(
            (feed.looked, feed.total, feed.entries.len(), feed.beside.len()),
            (Looked::Newest, 500, 200, 200)
        );
        assert_eq!((titles(&feed)[0], titles(&feed)[199]), ("500", "301"));
    }
    let feed = numbers(1..=500, false);
    assert_eq!((feed.looked, feed.total), (Looked::Ends, 500));
    assert_eq!(
        (titles(&feed)[0], titles(&feed)[99], titles(&feed)[100], titles(&feed)[199]),
        ("1", "100", "401", "500")
    );
    let all = numbers(1..=200, false);
    assert_eq!((all.looked, all.entries.len(), all.beside.len()), (Looked::All, 200, 0));
    // The same date everywhere does not say which entry is new.
    let same = "<item><title>t</title><pubDate>23 Nov 2026</pubDate></item>".repeat(300);
    assert_eq!(read("", format!("<rss>{same}</rss>").as_bytes(), "").unwrap().looked, Looked::Ends);
}

/// Each is refused, or read with what is within the limits. None of them needs more than a few passes over its text.
#[test]
fn hostile_documents_are_refused_or_cut() {
    let wrap = |inside: &str| format!("<rss><channel><item><title>x</title>{inside}</item></channel></rss>");
    let refused = |text: &str| read("", text.as_bytes(), "https://a.com").unwrap_err();
    assert_eq!(refused(&wrap(&"<a>".repeat(300_000))), NotAFeed::TooDeep);
    assert_eq!(refused(&format!("{{\"a\":{}", "[".repeat(300_000))), NotAFeed::Other);
    let spaces: String = (0..10_000).map(|n| format!(" xmlns:n{n}='u'")).collect();
    assert_eq!(refused(&wrap(&format!("<a{spaces}/>"))), NotAFeed::TooManyNamespaces);
    let many = "<item><title>t</title></item>".repeat(MAX_READ + 1);
    assert_eq!(refused(&format!("<rss>{many}</rss>")), NotAFeed::TooManyEntries);
    let many = format!(
        "{{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{}{{}}]}}",
        "{},".repeat(MAX_READ)
    );
    assert_eq!(refused(&many), NotAFeed::TooManyEntries);

    let one = |text: &str| read("", text.as_bytes(), "https://a.com").unwrap().entries.remove(0);
    let entities: String = (0..100_000).map(|n| format!("<!ENTITY e{n} \"{}\">", "y".repeat(90))).collect();
    let used = "&e0;".repeat(100_000);
    let bomb = one(&format!("<!DOCTYPE rss [{entities}]><rss><item><title>{used}</title></item></rss>"));
    assert!(bomb.title.starts_with("yyy") && bomb.title.len() <= MAX_FIELD);
    let attribute = "&amp;".repeat(200_000);
    let huge = one(&wrap(&format!(
        "<a x='{attribute}'/><atom:link xmlns:atom='http://www.w3.org/2005/Atom' href='https://b.com/{attribute}'/>"
    )));
    assert!(huge.link.len() <= MAX_URL);
    let attributes: String = (0..100_000).map(|n| format!(" a{n}=''")).collect();
    assert_eq!(one(&wrap(&format!("<a{attributes}/>"))).title, "x");
    let bases = format!("<a xml:base='{}'/>", "b/".repeat(40_000)).repeat(3);
    assert_eq!(one(&wrap(&bases)).title, "x");
    let ends = "</z>".repeat(200_000);
    assert_eq!(one(&wrap(&ends)).title, "x");
    let title =
        one(&format!("<rss><item><title>{}</title></item></rss>", "&lt;b&gt;é&lt;/b&gt;".repeat(50_000)))
            .title;
    assert!(title.starts_with('é') && title.len() <= MAX_FIELD);
    assert_eq!(one("<rss><item><title>a</title><link>javascript:alert(1)</link></item></rss>").link, "");
}

proptest! {
    /// Whatever stands in a feed: what is read keeps its limits, and one line is one line.
    #[test]
    fn what_is_read_keeps_its_limits(body in "(<rss>|</rss>|<feed xml:base='/b'>|<item>|</item>|<entry>|<title type='html'>|</title>|<link href='../x' rel='alternate'/>|<guid>|</guid>|<pubDate>|</pubDate>|&lt;|&eacute;|&x;|2026|<b>|</b>|\n|é){0,40}") {
        if let Ok(feed) = read("", body.as_bytes(), "https://a.com/feed") {
            for entry in &feed.entries {
                prop_assert!(entry.key().len() == 12 && !entry.line().contains('\n'));
                prop_assert!(entry.title.len() <= MAX_FIELD && entry.link.len() <= MAX_URL);
            }
        }
    }
}
