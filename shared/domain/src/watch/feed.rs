//! The entries of a feed: RSS, Atom or JSON Feed.
//!
//! Feeds come from strangers, and many of them are not as their formats say. XML is read with `quick-xml`, event by event, without
//! recursion: nothing is fetched, and of the entities of a document type only short texts are replaced. End tags that are missing, names of
//! characters in HTML and unescaped HTML are read as other readers do. `feeds/` beside this file shows what is read of what.

use std::collections::HashSet;
use std::sync::Arc;

use base64::Engine as _;
use jiff::Timestamp;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;

use super::{MAX_URL, dates, markup};
use crate::text::charset;

/// How many entries are looked at. [`Looked`] says which ones.
pub const MAX_ENTRIES: usize = 200;

/// How many entries beside them are remembered, because they are looked at if others go.
pub const MAX_BESIDE: usize = 200;

/// A feed with more entries is refused.
const MAX_READ: usize = 20_000;

/// How deeply elements may be nested, with those whose end tags are missing.
const MAX_DEPTH: usize = 256;

/// How many namespaces may be declared at one place.
const MAX_NAMESPACES: usize = 256;

/// The longest title and the longest date of an entry, in bytes.
const MAX_FIELD: usize = 400;

/// How much of a field is read, in bytes.
const MAX_RAW: usize = 64 << 10;

/// The longest base of links within a feed, in bytes.
const MAX_BASE: usize = 500;

/// How many entities of a document type are known, and the longest text of one, in bytes.
const MAX_DECLARED: usize = 300;
const MAX_REPLACED: usize = 100;

/// A feed, as far as it is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feed {
    /// At most [`MAX_ENTRIES`].
    pub entries: Vec<Entry>,
    /// The keys of the entries beside them, at most [`MAX_BESIDE`].
    pub beside: Vec<String>,
    /// How many entries the feed has.
    pub total: usize,
    pub looked: Looked,
}

/// Which entries of a feed are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// All of them, in the order of the feed.
    All,
    /// The newest ones by their dates, the newest first.
    Newest,
    /// The first half and the last half of [`MAX_ENTRIES`], because the entries have no dates that tell them apart.
    Ends,
}

/// An entry of a feed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// What the feed calls the entry. Empty if it has no name for it.
    pub id: String,
    pub title: String,
    pub link: String,
    /// As the feed writes it.
    pub date: String,
    /// What the date means, if it can be read.
    pub time: Option<Timestamp>,
    key: String,
    /// The keys that earlier versions may have given it, if they are others.
    earlier: Vec<String>,
    /// Whether earlier versions did not look so far into the feed.
    is_beyond: bool,
}

impl Entry {
    /// 12 hexadecimal digits of the hash of its id, or else of its link, title and date.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether an earlier version has seen it, if `knows` says which keys that version has stored.
    pub(super) fn was_seen_earlier(&self, knows: impl Fn(&str) -> bool) -> bool {
        self.is_beyond || self.earlier.iter().any(|key| knows(key))
    }

    /// The entry on one line.
    #[must_use]
    pub fn line(&self) -> String {
        let parts = [&self.date, &self.title, &self.link].map(|part| one_line(part));
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }
}

/// Why an answer is not a feed. It follows the name of the feed in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAFeed {
    #[error("is empty, so it is not a feed")]
    Empty,
    #[error("is not a feed in RSS, Atom or JSON Feed")]
    Other,
    #[error("is broken XML: {0}")]
    Xml(String),
    #[error("is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("has more than {MAX_NAMESPACES} namespaces in one place")]
    TooManyNamespaces,
    #[error("has more than {MAX_READ} entries")]
    TooManyEntries,
}

/// Reads a feed. `address` is where it was found: links may be relative to it.
///
/// # Errors
/// If it is not a feed, or exceeds a limit.
pub fn read(content_type: &str, body: &[u8], address: &str) -> Result<Feed, NotAFeed> {
    let text = charset::decode(content_type, body);
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\0'));
    if text.is_empty() {
        return Err(NotAFeed::Empty);
    }
    let address = Url::parse(address).ok().map(Arc::new);
    let drafts = if text.starts_with('{') { json(text, address)? } else { Xml::new(address).read(text)? };
    Ok(chosen(drafts))
}

/// Chooses the entries that are looked at.
fn chosen(mut drafts: Vec<Draft>) -> Feed {
    let total = drafts.len();
    if total <= MAX_ENTRIES {
        let entries = drafts.into_iter().map(Draft::entry).collect();
        return Feed { entries, beside: Vec::new(), total, looked: Looked::All };
    }
    let times: Vec<Timestamp> = drafts.iter().filter_map(|draft| draft.time).collect();
    let differ = times.iter().collect::<HashSet<_>>().len();
    // Dates that most entries lack or share do not say which one is new.
    let looked =
        if times.len() * 10 >= total * 9 && differ * 2 > total { Looked::Newest } else { Looked::Ends };
    match looked {
        // An entry without a date may be new.
        Looked::Newest => drafts.sort_by_key(|draft| std::cmp::Reverse(draft.time.unwrap_or(Timestamp::MAX))),
        _ => {
            for draft in drafts.iter_mut().skip(MAX_ENTRIES) {
                draft.is_beyond = true;
            }
            // Those that are next to the ends are next.
            let mut at: Vec<usize> = (0..total).collect();
            at.sort_by_key(|at| (*at).min(total - 1 - at));
            let mut slots: Vec<Option<Draft>> = drafts.into_iter().map(Some).collect();
            let (ends, next) = at[..total.min(MAX_ENTRIES + MAX_BESIDE)].split_at_mut(MAX_ENTRIES);
            ends.sort_unstable();
            drafts = ends.iter().chain(next.iter()).filter_map(|at| slots[*at].take()).collect();
        }
    }
    let beside = drafts.iter().skip(MAX_ENTRIES).take(MAX_BESIDE).map(Draft::key).collect();
    let entries = drafts.into_iter().take(MAX_ENTRIES).map(Draft::entry).collect();
    Feed { entries, beside, total, looked }
}

/// What is read of an entry.
#[derive(Debug, Default)]
struct Draft {
    id: String,
    /// As it is written, with the blanks around it.
    raw_id: String,
    /// Whether the id may also be the link.
    id_is_link: bool,
    title: String,
    /// Whether the title is one of a picture or film in it.
    title_is_of_media: bool,
    link: String,
    /// What the link is relative to.
    base: Option<Arc<Url>>,
    /// A link to the entry in another form than a page.
    other_link: Option<(String, Option<Arc<Url>>)>,
    /// What it is about. It is its title if it has no title, link and id.
    summary: String,
    published: String,
    updated: String,
    created: String,
    time: Option<Timestamp>,
    is_beyond: bool,
}

impl Draft {
    fn has_nothing(&self) -> bool {
        self.id.is_empty() && self.link.is_empty() && self.title.is_empty()
    }

    /// Decides what depends on several fields.
    fn finished(mut self) -> Self {
        if self.link.is_empty() {
            if let Some((link, base)) = self.other_link.take() {
                (self.link, self.base) = (link, base);
            } else if self.id_is_link && (self.id.starts_with("https://") || self.id.starts_with("http://")) {
                (self.link, self.base) = (self.id.clone(), None);
            }
        }
        if self.has_nothing() {
            self.title = std::mem::take(&mut self.summary);
        }
        let time = self.dates().into_iter().find_map(dates::parse);
        Self { time, ..self }
    }

    /// Its dates, the one that counts first.
    fn dates(&self) -> [&str; 3] {
        [&self.published, &self.updated, &self.created]
    }

    fn date(&self) -> &str {
        let dates = self.dates();
        let readable = dates.into_iter().find(|date| dates::parse(date).is_some());
        readable.or_else(|| dates.into_iter().find(|date| !date.is_empty())).unwrap_or_default()
    }

    /// Links count as they are written: the address of the feed may change.
    fn key(&self) -> String {
        if !self.id.is_empty() {
            return hash(&self.id);
        }
        let parts = [self.link.as_str(), &self.title, self.date()];
        // An entry without a link has the key that it always had.
        let parts = if self.link.is_empty() { &parts[1..] } else { &parts[..] };
        hash(&parts.join("\n"))
    }

    /// Earlier versions kept the blanks around an id and only its first bytes, and took the link alone if there was no id.
    fn earlier(&self) -> Vec<String> {
        let names = [cut(&self.raw_id, MAX_FIELD), cut(&self.link, MAX_FIELD)];
        let key = self.key();
        let names = names.into_iter().filter(|name| !name.is_empty()).map(|name| hash(&name));
        names.filter(|earlier| *earlier != key).collect()
    }

    fn entry(self) -> Entry {
        Entry {
            key: self.key(),
            earlier: self.earlier(),
            id: cut(&self.id, MAX_FIELD),
            link: cut(&resolved(&self.link, self.base.as_deref()), MAX_URL),
            date: self.date().to_owned(),
            title: self.title,
            time: self.time,
            is_beyond: self.is_beyond,
        }
    }
}

fn hash(text: &str) -> String {
    crate::hex(&Sha256::digest(text)[..6])
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

/// A text of a field, on one line.
fn field(text: &str) -> String {
    let text: String =
        text.chars().map(markup::shown).filter(|c| !c.is_control() || c.is_whitespace()).collect();
    cut(&one_line(&text), MAX_FIELD)
}

/// A link as it is followed. A script is not a link.
fn resolved(link: &str, base: Option<&Url>) -> String {
    match Url::parse(link) {
        Ok(url) if matches!(url.scheme(), "javascript" | "vbscript" | "data") => String::new(),
        Err(url::ParseError::RelativeUrlWithoutBase) if !link.is_empty() => {
            base.and_then(|base| base.join(link).ok()).map_or_else(|| link.to_owned(), String::from)
        }
        _ => link.to_owned(),
    }
}

fn json(text: &str, address: Option<Arc<Url>>) -> Result<Vec<Draft>, NotAFeed> {
    let feed: Value = serde_json::from_str(text).map_err(|_| NotAFeed::Other)?;
    let version = feed["version"].as_str().unwrap_or_default();
    let items =
        feed["items"].as_array().filter(|_| version.contains("jsonfeed.org")).ok_or(NotAFeed::Other)?;
    if items.len() > MAX_READ {
        return Err(NotAFeed::TooManyEntries);
    }
    let draft = |item: &Value| {
        let text = |name: &str| match &item[name] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let link =
            Some(text("url")).filter(|url| !url.trim().is_empty()).unwrap_or_else(|| text("external_url"));
        Draft {
            id: text("id").trim().to_owned(),
            raw_id: text("id"),
            id_is_link: true,
            title: field(&text("title")),
            link: one_line(&link),
            base: address.clone(),
            summary: field(&text("content_text")),
            published: field(&text("date_published")),
            updated: field(&text("date_modified")),
            ..Draft::default()
        }
        .finished()
    };
    Ok(items.iter().map(draft).filter(|draft| !draft.has_nothing()).collect())
}

/// Whose names an element has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// RSS, RDF and Atom.
    Plain,
    /// Dublin Core: `dc` and `dcterms`.
    Dc,
    Terms,
    Media,
    Other,
}

/// The namespaces of RSS and Atom, also of drafts that feeds still name, without `http://` and in small letters.
const PLAIN: [&str; 10] = [
    "www.w3.org/2005/atom",
    "purl.org/atom/ns#",
    "purl.org/rss/1.0/",
    "my.netscape.com/rdf/simple/0.9/",
    "channel.netscape.com/rdf/simple/0.9/",
    "purl.org/rss/1.0/modules/rss091#",
    "blogs.law.harvard.edu/tech/rss",
    "cyber.law.harvard.edu/rss",
    "purl.org/echo/",
    "purl.org/pie/",
];

impl Family {
    /// By the address of a namespace.
    fn of(namespace: &str) -> Option<Self> {
        let name = namespace.trim().to_ascii_lowercase();
        let name = name.trim_start_matches("http://").trim_start_matches("https://");
        match name {
            "purl.org/dc/elements/1.1/" => Some(Self::Dc),
            "purl.org/dc/terms/" => Some(Self::Terms),
            "www.w3.org/1999/xhtml" => Some(Self::Other),
            _ if PLAIN.contains(&name) || name.starts_with("backend.userland.com/rss") => Some(Self::Plain),
            _ if name.starts_with("search.yahoo.com/mrss")
                || name.starts_with("www.rssboard.org/media-rss") =>
            {
                Some(Self::Media)
            }
            _ => None,
        }
    }

    /// By a prefix whose namespace is unknown or missing.
    fn of_prefix(prefix: &str) -> Self {
        match prefix {
            "" => Self::Plain,
            "dc" => Self::Dc,
            "dcterms" => Self::Terms,
            "media" => Self::Media,
            _ => Self::Other,
        }
    }
}

/// A field of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Id,
    Title,
    MediaTitle,
    Link,
    Summary,
    Published,
    Updated,
    Created,
}

impl Field {
    fn of(family: Family, name: &str) -> Option<Self> {
        Some(match (family, name) {
            (Family::Plain, "guid" | "id") => Self::Id,
            (Family::Plain | Family::Dc, "title") => Self::Title,
            (Family::Media, "title") => Self::MediaTitle,
            (Family::Plain, "link") => Self::Link,
            (Family::Plain, "description" | "summary") => Self::Summary,
            (Family::Plain, "pubdate" | "published" | "issued") | (Family::Terms, "issued") => {
                Self::Published
            }
            (Family::Plain, "updated" | "modified" | "lastbuilddate")
            | (Family::Dc, "date")
            | (Family::Terms, "modified") => Self::Updated,
            (Family::Plain | Family::Terms, "created") => Self::Created,
            _ => return None,
        })
    }
}

/// A field that is being read.
struct Open {
    field: Field,
    depth: usize,
    text: String,
    /// The attributes `type` and `mode` of a title.
    kind: String,
    mode: String,
    has_elements: bool,
    /// The depth of an element in it that nobody sees.
    hidden: Option<usize>,
}

/// What an attribute says.
#[derive(Default)]
struct Attributes {
    kind: String,
    mode: String,
    rel: String,
    href: Option<String>,
    is_permalink: Option<String>,
    about: String,
}

/// Reads a feed in XML.
struct Xml {
    drafts: Vec<Draft>,
    /// The names of the elements around.
    names: Vec<String>,
    /// The namespaces that are declared, with the depth of their element.
    namespaces: Vec<(usize, String, Option<Family>)>,
    /// What links are relative to, with the depth of the element that says so.
    bases: Vec<(usize, Option<Arc<Url>>)>,
    is_atom: bool,
    /// The entry that is being read, with its depth.
    entry: Option<(usize, Draft)>,
    open: Option<Open>,
    /// The entities of the document type. Those that are not replaced are empty.
    declared: Vec<(String, String)>,
}

impl Xml {
    fn new(address: Option<Arc<Url>>) -> Self {
        Self {
            drafts: Vec::new(),
            names: Vec::new(),
            namespaces: Vec::new(),
            bases: vec![(0, address)],
            is_atom: false,
            entry: None,
            open: None,
            declared: Vec::new(),
        }
    }

    fn read(mut self, text: &str) -> Result<Vec<Draft>, NotAFeed> {
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.allow_dangling_amp = true;
        config.expand_empty_elements = true;
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        let mut has_root = false;
        loop {
            let event = reader.read_event().map_err(|error| NotAFeed::Xml(error.to_string()))?;
            match event {
                Event::Start(start) => {
                    self.start(&start)?;
                    has_root = true;
                }
                Event::End(end) => self.end(&lossy(end.name().into_inner()))?,
                Event::Text(text) => self.add(&text.decode().unwrap_or_default()),
                Event::CData(text) => self.add(&text.decode().unwrap_or_default()),
                Event::GeneralRef(reference) => self.refer(&reference.decode().unwrap_or_default()),
                Event::DocType(text) => self.declare(&text.decode().unwrap_or_default()),
                Event::Eof if !has_root => return Err(NotAFeed::Other),
                Event::Eof if !self.names.is_empty() => {
                    return Err(NotAFeed::Xml("it ends too early".to_owned()));
                }
                Event::Eof => return Ok(self.drafts),
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), NotAFeed> {
        let full = lossy(start.name().into_inner());
        let depth = self.names.len() + 1;
        if depth > MAX_DEPTH {
            return Err(NotAFeed::TooDeep);
        }
        let (prefix, name) = full.split_once(':').unwrap_or(("", &full));
        let (prefix, name) = (prefix.to_owned(), name.to_owned());
        self.names.push(full);
        let attributes = self.attributes(start, depth)?;
        let family = self.family(&prefix);
        if depth == 1 {
            match name.as_str() {
                "rss" | "rdf" => self.is_atom = false,
                "feed" => self.is_atom = true,
                "entry" if family == Family::Plain => self.is_atom = true,
                _ => return Err(NotAFeed::Other),
            }
        }
        if let Some(open) = &mut self.open {
            open.has_elements = true;
            if open.hidden.is_none() && matches!(name.as_str(), "script" | "style") {
                open.hidden = Some(depth);
            }
            return Ok(());
        }
        let Some((at, draft)) = &mut self.entry else {
            if family == Family::Plain && matches!(name.as_str(), "item" | "entry") {
                let draft = Draft { id: attributes.about.trim().to_owned(), ..Draft::default() };
                self.entry = Some((depth, draft));
            }
            return Ok(());
        };
        let Some(field) = Field::of(family, &name) else { return Ok(()) };
        if depth != *at + 1 && field != Field::MediaTitle {
            return Ok(());
        }
        let base = self.bases.last().and_then(|(_, base)| base.clone());
        match (field, attributes.href) {
            (Field::Link, Some(href)) => {
                let is_page = matches!(
                    attributes.kind.as_str(),
                    "" | "html" | "xhtml" | "text/html" | "application/xhtml+xml"
                );
                let href = one_line(&href);
                if href.is_empty() || !matches!(attributes.rel.as_str(), "" | "alternate") {
                } else if is_page {
                    (draft.link, draft.base) = (href, base);
                } else if draft.other_link.is_none() {
                    draft.other_link = Some((href, base));
                }
            }
            _ => {
                if field == Field::Id {
                    draft.id_is_link = attributes.is_permalink.is_none_or(|says| says == "true");
                }
                self.open = Some(Open {
                    field,
                    depth,
                    text: String::new(),
                    kind: attributes.kind,
                    mode: attributes.mode,
                    has_elements: false,
                    hidden: None,
                });
            }
        }
        Ok(())
    }

    /// Reads the attributes that matter, and keeps namespaces and bases.
    fn attributes(&mut self, start: &BytesStart<'_>, depth: usize) -> Result<Attributes, NotAFeed> {
        let mut found = Attributes::default();
        if start.attributes_raw().is_empty() {
            return Ok(found);
        }
        let mut attributes = start.html_attributes();
        for attribute in attributes.with_checks(false).flatten() {
            let name = lossy(attribute.key.into_inner());
            let value = || markup::characters(&String::from_utf8_lossy(&attribute.value));
            match name.as_str() {
                "type" => found.kind = value().trim().to_ascii_lowercase(),
                "mode" => found.mode = value().trim().to_ascii_lowercase(),
                "rel" => found.rel = value().trim().to_ascii_lowercase(),
                "href" | "url" | "uri" => found.href = Some(value()),
                "ispermalink" => found.is_permalink = Some(value().trim().to_ascii_lowercase()),
                "rdf:about" => found.about = value(),
                "xml:base" => {
                    let (value, around) = (value(), self.bases.last().and_then(|(_, base)| base.clone()));
                    let base = match &around {
                        Some(around) => around.join(value.trim()).ok(),
                        None => Url::parse(value.trim()).ok(),
                    };
                    let base = base.filter(|base| base.as_str().len() <= MAX_BASE).map(Arc::new);
                    self.bases.push((depth, base.or(around)));
                }
                _ => {
                    let Some(prefix) = name.strip_prefix("xmlns") else { continue };
                    if self.namespaces.len() >= MAX_NAMESPACES {
                        return Err(NotAFeed::TooManyNamespaces);
                    }
                    let prefix = prefix.trim_start_matches(':').to_owned();
                    self.namespaces.push((depth, prefix, Family::of(&value())));
                }
            }
        }
        Ok(found)
    }

    fn family(&self, prefix: &str) -> Family {
        let declared = self.namespaces.iter().rev().find(|(_, name, _)| name == prefix);
        declared.and_then(|(_, _, family)| *family).unwrap_or_else(|| Family::of_prefix(prefix))
    }

    /// Ends an element and those in it whose end tags are missing. An end tag without an element means nothing.
    fn end(&mut self, name: &str) -> Result<(), NotAFeed> {
        let Some(at) = self.names.iter().rposition(|open| open == name) else { return Ok(()) };
        for depth in (at + 1..=self.names.len()).rev() {
            self.close(depth)?;
        }
        self.names.truncate(at);
        Ok(())
    }

    fn close(&mut self, depth: usize) -> Result<(), NotAFeed> {
        while self.namespaces.last().is_some_and(|(of, ..)| *of >= depth) {
            self.namespaces.pop();
        }
        if let Some(open) = &mut self.open {
            if open.hidden == Some(depth) {
                open.hidden = None;
            }
            if open.depth == depth {
                self.keep();
            }
        }
        while self.bases.last().is_some_and(|(of, _)| *of >= depth) {
            self.bases.pop();
        }
        if self.entry.as_ref().is_some_and(|(at, _)| *at == depth)
            && let Some((_, draft)) = self.entry.take()
        {
            let draft = draft.finished();
            if !draft.has_nothing() {
                self.drafts.push(draft);
            }
            if self.drafts.len() > MAX_READ {
                return Err(NotAFeed::TooManyEntries);
            }
        }
        Ok(())
    }

    /// Keeps the field that has ended.
    fn keep(&mut self) {
        let (Some(open), Some((_, draft))) = (self.open.take(), &mut self.entry) else { return };
        let text = &open.text;
        match open.field {
            Field::Id if !text.trim().is_empty() => {
                draft.id = text.trim().to_owned();
                draft.raw_id = open.text;
            }
            Field::Link if !text.trim().is_empty() => {
                draft.link = one_line(text).replace("&amp;", "&");
                draft.base = self.bases.last().and_then(|(_, base)| base.clone());
            }
            Field::Title | Field::MediaTitle => {
                let is_of_media = open.field == Field::MediaTitle;
                if draft.title.is_empty() || (draft.title_is_of_media && !is_of_media) {
                    let title = title(&open, self.is_atom);
                    if !title.is_empty() {
                        (draft.title, draft.title_is_of_media) = (title, is_of_media);
                    }
                }
            }
            Field::Summary => draft.summary = field(&markup::text(text)),
            Field::Published => set(&mut draft.published, text),
            Field::Updated => set(&mut draft.updated, text),
            Field::Created => set(&mut draft.created, text),
            Field::Id | Field::Link => {}
        }
    }

    fn add(&mut self, text: &str) {
        if let Some(open) = self.open.as_mut().filter(|open| open.hidden.is_none()) {
            let room = MAX_RAW.saturating_sub(open.text.len());
            open.text.push_str(&text[..text.floor_char_boundary(room)]);
        }
    }

    /// Adds what a reference stands for. One that nobody has declared stays as it is written.
    fn refer(&mut self, name: &str) {
        if self.open.is_none() {
            return;
        }
        let declared = self.declared.iter().find(|(declared, _)| declared == name);
        let text = match declared {
            Some((_, text)) => text.clone(),
            None => markup::character(name).unwrap_or_else(|| match name.starts_with('#') {
                true => String::new(),
                false => format!("&{name};"),
            }),
        };
        self.add(&text);
    }

    /// Reads the entities of a document type. Only a short text without references, or a single character, is replaced.
    fn declare(&mut self, doctype: &str) {
        for declaration in doctype.split("<!ENTITY").skip(1).take(MAX_DECLARED) {
            let mut parts = declaration.trim_start().splitn(2, char::is_whitespace);
            let (Some(name), Some(rest)) = (parts.next(), parts.next()) else { continue };
            let rest = rest.trim_start();
            let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
            let Some(text) = rest[1..].split(quote).next() else { continue };
            let single =
                text.strip_prefix('&').and_then(|rest| rest.strip_suffix(';')).and_then(markup::character);
            let text = match single {
                Some(character) => character,
                None if text.len() <= MAX_REPLACED && !text.contains(['&', '%', '<']) => text.to_owned(),
                None => String::new(),
            };
            if !matches!(name, "amp" | "lt" | "gt" | "quot" | "apos") && name.len() <= MAX_REPLACED {
                self.declared.push((name.to_owned(), text));
            }
        }
    }
}

fn set(date: &mut String, text: &str) {
    let text = field(text);
    if !text.is_empty() {
        *date = text;
    }
}

/// The text of a title. Atom says what it is. Elsewhere it is HTML if all of it can be.
fn title(open: &Open, is_atom: bool) -> String {
    let decoded = (open.mode == "base64")
        .then(|| {
            let letters: String = open.text.split_whitespace().collect();
            String::from_utf8(base64::engine::general_purpose::STANDARD.decode(letters).ok()?).ok()
        })
        .flatten();
    let text = decoded.as_deref().unwrap_or(&open.text);
    let is_html = match open.kind.as_str() {
        _ if open.has_elements => false,
        "html" | "text/html" => true,
        "" | "text" | "text/plain" => !is_atom && markup::looks_like_html(text),
        _ => false,
    };
    if is_html { field(&markup::text(text)) } else { field(text) }
}

/// A name in small letters.
fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod shapes;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(feed: &str) -> Vec<String> {
        read("", feed.as_bytes(), "").unwrap().entries.iter().map(Entry::line).collect()
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
            read("", feed.as_bytes(), "").unwrap().entries[0].key().to_owned()
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
            let error = read("", body.as_bytes(), "").unwrap_err().to_string();
            assert!(error.contains(said), "{body}: {error}");
        }
    }

    #[test]
    fn hostile_feeds_are_bounded() {
        let bomb = "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;'>]><rss><channel><item><title>&b;&b;x</title></item></channel></rss>";
        assert_eq!(lines(bomb), ["x"]);
        let deep = format!("<rss>{}", "<a>".repeat(300_000));
        assert!(read("", deep.as_bytes(), "").is_err());
        let many = "<item><title>t</title></item>".repeat(20_000);
        assert_eq!(lines(&format!("<rss>{many}</rss>")).len(), MAX_ENTRIES);
        let long = format!("<rss><item><title>{}</title></item></rss>", "é&amp;".repeat(100_000));
        assert!(lines(&long)[0].len() <= MAX_FIELD + 2);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body in "(<rss>|<item>|</item>|<title>|</title>|<!\\[CDATA\\[|\\]\\]>|&|;|<|>|é|x|/|=|'){0,40}") {
            let _ = read("", body.as_bytes(), "https://a.com");
        }
    }
}
