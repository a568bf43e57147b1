//! Judges the target of one link.
//!
//! A link is judged by its head: everything up to the end of the host. What follows can't lead to another host.

use std::sync::LazyLock;

use url::Url;

use super::{Hosts, MAX_HEAD, Wrong, names, wrong};

/// A relative link is resolved against both. If it stays at both hosts, it names no host itself.
static BASES: LazyLock<[Url; 2]> = LazyLock::new(|| {
    ["https://base.invalid/", "http://other-base.invalid/"].map(|base| Url::parse(base).expect("it is a URL"))
});

/// Schemes that a program follows without a slash after them.
const SCHEMES: [&str; 13] = [
    "http",
    "https",
    "ftp",
    "ftps",
    "ws",
    "wss",
    "file",
    "blob",
    "data",
    "javascript",
    "vbscript",
    "mailto",
    "intent",
];

/// The scheme that a text begins with.
pub(super) fn scheme_of(text: &str) -> Option<&str> {
    let bytes = &text.as_bytes()[..text.len().min(MAX_HEAD)];
    let end = bytes.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte))?;
    let is_scheme = bytes[end] == b':' && bytes[0].is_ascii_alphabetic();
    is_scheme.then(|| &text[..end])
}

/// Where the host of a link begins: after the scheme and all slashes.
fn start_of_host(link: &str) -> usize {
    let after_scheme = scheme_of(link).map_or(0, |scheme| scheme.len() + 1);
    link.len() - link[after_scheme..].trim_start_matches(['/', '\\']).len()
}

/// The beginning of a link, so long that [`judge`] decides the same as for the whole link.
pub(super) fn head_of(text: &str) -> &str {
    let start = start_of_host(text);
    &text[..text.floor_char_boundary(text.len().min(start + MAX_HEAD + 4))]
}

/// Judges the target of a link as it is written, with character references. `None` if it is permitted.
pub(super) fn judge(link: &str, hosts: &Hosts) -> Option<Wrong> {
    // `https:&#47;&#47;example.com` and `java&Tab;script:`.
    if link.contains('&') {
        let link = link.trim_matches(|char: char| char <= ' ');
        let head = head(link);
        if head.len() <= MAX_HEAD && !head.chars().any(char::is_control) && head.contains('&') {
            return wrong(link, "has a character reference");
        }
    }
    judge_read(link, hosts)
}

/// Judges the target of a link that a parser has read. `None` if it is permitted.
pub(super) fn judge_read(link: &str, hosts: &Hosts) -> Option<Wrong> {
    // Some programs that read Markdown drop every blank of Unicode around a target.
    let link = link.trim_matches(|char: char| char <= ' ' || char.is_whitespace() || char == '\u{feff}');
    let has_scheme = scheme_of(link).is_some();
    let has_slashes = link.starts_with(['/', '\\']);
    let head = head(link);
    if head.len() > MAX_HEAD {
        return wrong(link, "is too long");
    }
    if head.chars().any(char::is_control) {
        return wrong(link, "has a control character");
    }
    if !has_scheme && !has_slashes && !head.contains(':') {
        return None;
    }
    let joined = BASES.each_ref().map(|base| base.join(head));
    let [Ok(first), Ok(second)] = &joined else { return wrong(link, "cannot be read") };
    let stays = |url: &Url, base: &Url| url.scheme() == base.scheme() && url.host() == base.host();
    if stays(first, &BASES[0]) && stays(second, &BASES[1]) {
        return None;
    }
    for url in [first, second] {
        if !matches!(url.scheme(), "http" | "https") {
            return wrong(link, "is not an http or https URL");
        }
        if !url.username().is_empty() || url.password().is_some() || head.contains('@') {
            return wrong(link, "has a user name");
        }
        if head.contains(['\\', '%']) || head.contains(char::is_whitespace) {
            return wrong(link, "has an unusual host");
        }
        let Some(host) = url.host() else { return wrong(link, "has no host") };
        if !hosts.permit(&host) {
            return wrong(link, format!("leads to {host}"));
        }
    }
    None
}

fn head(link: &str) -> &str {
    let start = start_of_host(link);
    &link[..start + link[start..].find(['/', '?', '#']).unwrap_or(link.len() - start)]
}

/// Judges the target of a link that a parser of Markdown or HTML has read. Some programs take `example.com/path` for a host.
pub(super) fn judge_link(link: &str, hosts: &Hosts) -> Option<Wrong> {
    judge_read(link, hosts).or_else(|| names::in_target(link.trim(), hosts))
}

/// Judges a text that may be a link and may be something else, such as the value of an attribute that nobody knows: only if it
/// begins with two slashes or with a scheme that programs follow.
pub(super) fn judge_maybe(text: &str, hosts: &Hosts) -> Option<Wrong> {
    let text = text.trim_matches(|char: char| char <= ' ');
    // Browsers drop these from URLs: "java\nscript:".
    let plain: String = head_of(text).chars().filter(|char| !matches!(char, '\t' | '\n' | '\r')).collect();
    let start = start_of_host(&plain);
    if plain[start..].chars().next().is_none_or(char::is_whitespace) {
        return None;
    }
    let is_link = match scheme_of(&plain) {
        Some(scheme) => {
            start > scheme.len() + 1 || SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known))
        }
        None => start > 1,
    };
    if is_link { judge_read(&plain, hosts) } else { None }
}
