//! The entries of a feed: RSS, Atom or JSON Feed.
//!
//! Feeds come from strangers. XML is read with `quick-xml`, event by event: it expands no entities of a document type, fetches
//! nothing, and does not recurse.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// How many entries are read: the first ones, which are the newest ones of most feeds.
pub const MAX_ENTRIES: usize = 200;

/// The longest text of a field of an entry, in bytes.
const MAX_FIELD: usize = 400;

/// An entry of a feed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// What the feed calls the entry: its id, or else its link, or else its title and date.
    id: String,
    pub title: String,
    pub link: String,
    /// As the feed writes it.
    pub date: String,
}

impl Entry {
    /// 12 hexadecimal digits of its hash.
    #[must_use]
    pub fn key(&self) -> String {
        let id = match (self.id.as_str(), self.link.as_str()) {
            ("", "") => format!("{}\n{}", self.title, self.date),
            ("", link) => link.to_owned(),
            (id, _) => id.to_owned(),
        };
        crate::hex(&Sha256::digest(id)[..6])
    }

    /// The entry on one line.
    #[must_use]
    pub fn line(&self) -> String {
        let parts = [&self.date, &self.title, &self.link]
            .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }

    fn has_nothing(&self) -> bool {
        self.id.is_empty() && self.link.is_empty() && self.title.is_empty()
    }
}

/// Why an answer is not a feed. It follows the name of the feed in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAFeed {
    #[error("is not a feed in RSS, Atom or JSON Feed")]
    Other,
    #[error("is broken XML: {0}")]
    Xml(String),
}

/// Reads the first entries of a feed, in its order.
///
/// # Errors
/// If it is not a feed.
pub fn read(body: &[u8]) -> Result<Vec<Entry>, NotAFeed> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('{') { json(text) } else { xml(text) }
}

fn json(text: &str) -> Result<Vec<Entry>, NotAFeed> {
    let feed: Value = serde_json::from_str(text).map_err(|_| NotAFeed::Other)?;
    let version = feed["version"].as_str().unwrap_or_default();
    let items =
        feed["items"].as_array().filter(|_| version.contains("jsonfeed.org")).ok_or(NotAFeed::Other)?;
    let entry = |item: &Value| {
        let field = |name: &str| match &item[name] {
            Value::String(text) => cut(text),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        Entry { id: field("id"), title: field("title"), link: field("url"), date: field("date_published") }
    };
    Ok(items.iter().take(MAX_ENTRIES).map(entry).filter(|entry| !entry.has_nothing()).collect())
}

fn xml(text: &str) -> Result<Vec<Entry>, NotAFeed> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.expand_empty_elements = true;
    let mut entries = Vec::new();
    let (mut depth, mut has_root) = (0_usize, false);
    // The entry that is being read, with its depth, and the field of it.
    let mut open: Option<(usize, Entry)> = None;
    let mut field = String::new();
    loop {
        let event = reader.read_event().map_err(|error| NotAFeed::Xml(error.to_string()))?;
        match event {
            Event::Start(start) => {
                let name = local_name(&start);
                if depth == 0 && !matches!(name.as_str(), "rss" | "feed" | "rdf") {
                    return Err(NotAFeed::Other);
                }
                has_root = true;
                depth += 1;
                match &mut open {
                    None if matches!(name.as_str(), "item" | "entry") => {
                        open = Some((depth, Entry::default()));
                    }
                    None => {}
                    Some((at, entry)) if depth == *at + 1 => {
                        if name == "link" && entry.link.is_empty() {
                            entry.link = href(&start).unwrap_or_default();
                        }
                        field = name;
                    }
                    Some(_) => field.clear(),
                }
            }
            Event::End(_) => {
                if open.as_ref().is_some_and(|(at, _)| *at == depth) {
                    let (_, entry) = open.take().unwrap_or_default();
                    if !entry.has_nothing() {
                        entries.push(entry);
                    }
                    if entries.len() >= MAX_ENTRIES {
                        return Ok(entries);
                    }
                }
                depth = depth.saturating_sub(1);
                field.clear();
            }
            Event::Text(text) => add(&mut open, &field, &text.decode().unwrap_or_default()),
            Event::CData(text) => add(&mut open, &field, &text.decode().unwrap_or_default()),
            Event::GeneralRef(reference) => {
                let name = reference.decode().unwrap_or_default();
                let text = match reference.resolve_char_ref() {
                    Ok(Some(character)) => character.to_string(),
                    _ => quick_xml::escape::resolve_predefined_entity(&name).unwrap_or_default().to_owned(),
                };
                add(&mut open, &field, &text);
            }
            Event::Eof if !has_root => return Err(NotAFeed::Other),
            Event::Eof if depth > 0 => return Err(NotAFeed::Xml("it ends too early".to_owned())),
            Event::Eof => break,
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    Ok(entries)
}

fn local_name(start: &BytesStart<'_>) -> String {
    String::from_utf8_lossy(start.local_name().into_inner()).to_ascii_lowercase()
}

/// The `href` of a link in Atom, unless the link leads to something else than the entry.
fn href(start: &BytesStart<'_>) -> Option<String> {
    let value = |name: &str| {
        let found = start.try_get_attribute(name).ok().flatten()?;
        Some(cut(&String::from_utf8_lossy(&found.value).replace("&amp;", "&")))
    };
    let is_other = value("rel").is_some_and(|rel| rel != "alternate");
    if is_other { None } else { value("href") }
}

fn add(open: &mut Option<(usize, Entry)>, field: &str, text: &str) {
    let Some((_, entry)) = open else { return };
    let to = match field {
        "guid" | "id" => &mut entry.id,
        "title" => &mut entry.title,
        "link" => &mut entry.link,
        "pubdate" | "published" | "date" => &mut entry.date,
        "updated" if entry.date.is_empty() => &mut entry.date,
        _ => return,
    };
    let is_full = to.len() >= MAX_FIELD;
    if is_full || (to.is_empty() && text.trim().is_empty()) {
        return;
    }
    to.push_str(&text[..text.floor_char_boundary(MAX_FIELD)]);
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_FIELD)].to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(feed: &str) -> Vec<String> {
        read(feed.as_bytes()).unwrap().iter().map(Entry::line).collect()
    }

    #[test]
    fn every_kind_of_feed_is_read() {
        let rss = "<?xml version='1.0'?><rss version='2.0'><channel><title>News</title><link>https://a.com</link>\
            <item><title>One &amp; <![CDATA[<two>]]></title><link>https://a.com/1</link><guid>g1</guid>\
            <pubDate>Mon, 23 Nov 2026</pubDate><media:content xmlns:media='m'><title>inner</title></media:content></item>\
            <item><title>No id</title></item><item/></channel></rss>";
        assert_eq!(lines(rss), ["Mon, 23 Nov 2026 · One & <two> · https://a.com/1", "No id"]);
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><id>f</id><entry><id>e1</id><title type='html'>A &#38; B</title>\
            <link rel='self' href='https://a.com/self'/><link href='https://a.com/e1?a=1&amp;b=2'/><updated>2026-11-23</updated></entry></feed>";
        assert_eq!(lines(atom), ["2026-11-23 · A & B · https://a.com/e1?a=1&b=2"]);
        let json = r#"{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": 7, "url": "https://a.com/7", "title": "Seven"}]}"#;
        assert_eq!(lines(json), ["Seven · https://a.com/7"]);
        let rdf = "<rdf:RDF xmlns:rdf='r'><channel/><item rdf:about='x'><title>T</title><link>https://a.com/t</link></item></rdf:RDF>";
        assert_eq!(lines(rdf), ["T · https://a.com/t"]);
    }

    #[test]
    fn an_entry_keeps_its_key_when_its_text_changes() {
        let key = |guid: &str, title: &str| {
            let feed = format!(
                "<rss><channel><item><guid>{guid}</guid><title>{title}</title></item></channel></rss>"
            );
            read(feed.as_bytes()).unwrap()[0].key()
        };
        assert_eq!(key("1", "a"), key("1", "b"));
        assert_ne!(key("1", "a"), key("2", "a"));
    }

    #[test]
    fn what_is_not_a_feed_is_refused() {
        for (body, said) in [
            ("", "is not a feed"),
            ("<html><body>Not found</body></html>", "is not a feed"),
            ("{\"items\": []}", "is not a feed"),
            ("plain text", "is not a feed"),
            ("<rss><channel><item>", "is broken XML"),
            ("<rss></feed>", "is broken XML"),
        ] {
            let error = read(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(said), "{body}: {error}");
        }
    }

    #[test]
    fn hostile_feeds_are_bounded() {
        let bomb = "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;'>]><rss><channel><item><title>&b;&b;x</title></item></channel></rss>";
        assert_eq!(lines(bomb), ["x"]);
        let deep = format!("<rss>{}", "<a>".repeat(300_000));
        assert!(read(deep.as_bytes()).is_err());
        let many = "<item><title>t</title></item>".repeat(20_000);
        assert_eq!(lines(&format!("<rss>{many}</rss>")).len(), MAX_ENTRIES);
        let long = format!("<rss><item><title>{}</title></item></rss>", "é&amp;".repeat(100_000));
        assert!(lines(&long)[0].len() <= MAX_FIELD + 2);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body in "(<rss>|<item>|</item>|<title>|</title>|<!\\[CDATA\\[|\\]\\]>|&|;|<|>|é|x|/|=|'){0,40}") {
            let _ = read(body.as_bytes());
        }
    }
}
