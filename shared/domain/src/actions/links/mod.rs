//! Finds the links of a text that lead to other hosts than permitted ones.
//!
//! Nobody knows which program will show the text: a reader of Markdown, a browser, or a program that makes links of whatever
//! looks like a URL. So everything that one of them takes for a link is judged. What can be read in two ways must be permitted in both.
//!
//! - [`search`] finds what looks like a link, at any place of a text and without its grammar
//! - [`markup`] reads the text as CommonMark and as GitHub's Markdown
//! - [`html`] reads the HTML of both, and [`styles`] the CSS in it
//! - [`strings`] reads the strings of JSON
//! - [`names`] finds hosts without a scheme: `example.com/path`
//! - [`target`] judges one link
//!
//! All of them read a text in linear time.

#[cfg(test)]
mod cases_tests;
mod html;
mod markup;
mod names;
mod search;
mod strings;
mod styles;
mod target;

use std::borrow::Cow;

use url::Host;

use crate::reach::is_name;

/// The longest head of a link, in bytes: a scheme, a host name of 253 bytes and a port.
const MAX_HEAD: usize = 300;

/// How many links a finding names. The search ends after them.
const MAX_FOUND: usize = 3;

/// The longest link that a finding shows, in characters.
const MAX_SHOWN: usize = 100;

/// How deep texts in texts are read: strings of JSON in strings of JSON.
const MAX_DEPTH: usize = 2;

/// Reads a host that a person permits: a name with a dot, or an address.
pub(super) fn host(text: &str) -> Option<Host<String>> {
    let host = Host::parse(text).ok()?;
    match &host {
        Host::Domain(name) => (is_name(name) && name.contains('.')).then_some(host),
        Host::Ipv4(_) | Host::Ipv6(_) => Some(host),
    }
}

/// The hosts that links may lead to.
pub(super) struct Hosts(Vec<Host<String>>);

impl Hosts {
    /// Hosts that cannot be read permit nothing.
    pub(super) fn of(hosts: &[String]) -> Self {
        Self(hosts.iter().filter_map(|text| host(text)).collect())
    }

    /// Whether a host is one of these, or a subdomain of one.
    fn permit<T: AsRef<str>>(&self, host: &Host<T>) -> bool {
        self.0.iter().any(|permitted| match (permitted, host) {
            (Host::Domain(permitted), Host::Domain(name)) => {
                let below = name.as_ref().strip_suffix(permitted.as_str());
                is_name(name.as_ref()) && below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
            }
            (Host::Ipv4(permitted), Host::Ipv4(ip)) => permitted == ip,
            (Host::Ipv6(permitted), Host::Ipv6(ip)) => permitted == ip,
            _ => false,
        })
    }
}

/// Why a link is not permitted.
struct Wrong {
    /// The link, as a person reads it.
    link: String,
    /// Follows the link: "leads to example.com".
    why: String,
}

/// What is wrong with a link.
fn wrong(link: &str, why: impl Into<String>) -> Option<Wrong> {
    let mut shown: String =
        link.chars().take(MAX_SHOWN).map(|char| if char.is_control() { '\u{FFFD}' } else { char }).collect();
    if shown.len() < link.len() {
        shown.push('…');
    }
    Some(Wrong { link: shown, why: why.into() })
}

/// The links that are not permitted, without repetitions.
struct Found<'a> {
    hosts: &'a Hosts,
    links: Vec<Wrong>,
}

impl Found<'_> {
    /// Whether enough is found.
    fn is_full(&self) -> bool {
        self.links.len() >= MAX_FOUND
    }

    /// Adds what the search has found.
    fn add(&mut self, found: Option<Wrong>) {
        let Some(wrong) = found.filter(|_| !self.is_full()) else { return };
        if !self.links.iter().any(|known| (&known.link, &known.why) == (&wrong.link, &wrong.why)) {
            self.links.push(wrong);
        }
    }

    /// Adds what another reading of the same text has found. The same fault is not named twice, because both readings may show the
    /// same link in other words.
    fn add_again(&mut self, found: Option<Wrong>) {
        if found.as_ref().is_some_and(|wrong| !self.links.iter().any(|known| known.why == wrong.why)) {
            self.add(found);
        }
    }
}

/// The first links that are not permitted, each with the reason, for people and models.
pub(super) fn foreign(text: &str, hosts: &Hosts) -> Vec<String> {
    let mut found = Found { hosts, links: Vec::new() };
    read(text, 0, &mut found);
    found.links.iter().map(|Wrong { link, why }| format!("`{link}`, which {why}")).collect()
}

/// Reads a text in all ways.
fn read(text: &str, depth: usize, found: &mut Found) {
    let text = with_newlines(text);
    search::search(&text, found);
    markup::read(&text, depth, found);
    strings::read(&text, depth, found);
}

/// With `\n` at the end of each line. CommonMark ends lines also at a single `\r`.
fn with_newlines(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') {
        return text.into();
    }
    text.replace("\r\n", "\n").replace('\r', "\n").into()
}
