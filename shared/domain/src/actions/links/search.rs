//! Finds what looks like a link, at any place of a text: also in code, in other URLs, in comments, and in HTML in JSON.
//!
//! The search does not know the grammar around a link. Each mark, such as `](` or `href=`, has its link behind it. White space between
//! them may be of any length, because it belongs to one mark only. Of the link itself, a head of limited length is read. So the time
//! is linear. Lists of links have no limited length, so each byte of a text is read for one list only.

use super::MAX_HEAD;
use super::styles;
use super::target::{head_of, judge, scheme_of};
use super::{Found, Hosts, Wrong, wrong};

use url::{Host, Url};

use crate::reach::is_name;

/// Adds the links of a text that are not permitted.
pub(super) fn search(text: &str, found: &mut Found) {
    let hosts = found.hosts;
    let mut listed = 0;
    for (at, byte) in text.bytes().enumerate() {
        // All marks are ASCII, so that every slice below begins at a character.
        let wrong = match byte {
            b']' => in_brackets(&text[at..], hosts),
            b'<' => in_angles(&text[at..], hosts),
            b'h' | b'H' => {
                attribute(text, at, &["href"], &mut listed, hosts).or_else(|| url_at(text, at, hosts))
            }
            b's' | b'S' => attribute(text, at, &["srcset", "src"], &mut listed, hosts)
                .or_else(|| in_styles(&text[at..], hosts)),
            b'a' | b'A' => attribute(text, at, &["action"], &mut listed, hosts),
            b'b' | b'B' => attribute(text, at, &["background"], &mut listed, hosts),
            b'c' | b'C' => attribute(text, at, &["cite"], &mut listed, hosts),
            b'd' | b'D' => attribute(text, at, &["data"], &mut listed, hosts),
            b'p' | b'P' => attribute(text, at, &["ping", "poster"], &mut listed, hosts),
            // The target of a refresh, and CSS.
            b'u' | b'U' => {
                attribute(text, at, &["url"], &mut listed, hosts).or_else(|| in_styles(&text[at..], hosts))
            }
            b'@' => in_styles(&text[at..], hosts),
            b'i' | b'I' if begins(&text[at..], IMAGE_SET) => {
                in_list(text, at + IMAGE_SET.len(), ')', &mut listed, hosts)
            }
            _ => url_at(text, at, hosts),
        };
        found.add(wrong);
        if found.is_full() {
            return;
        }
    }
    if text.contains('\\') {
        // `\75 rl(link)`.
        let plain = styles::unescaped(text);
        for (at, _) in plain.bytes().enumerate().filter(|(_, byte)| b"uUsS@".contains(byte)) {
            found.add_again(in_styles(&plain[at..], hosts));
        }
    }
}

/// Adds the URLs of a text whose escapes and character references a parser has read: `https&#58;//example.com`.
pub(super) fn urls(text: &str, found: &mut Found) {
    if !text.contains(':') && !text.contains('.') {
        return;
    }
    for at in 0..text.len() {
        found.add_again(url_at(text, at, found.hosts));
        if found.is_full() {
            return;
        }
    }
}

/// A URL that begins here, without anything around it.
fn url_at(text: &str, at: usize, hosts: &Hosts) -> Option<Wrong> {
    match text.as_bytes()[at] {
        b'h' | b'H' | b'f' | b'F' => with_scheme(&text[at..], hosts),
        // GitHub's Markdown makes links of both.
        b'm' | b'M' if begins(&text[at..], "mailto:") => mail(&text[at..]),
        b'x' | b'X' if begins(&text[at..], "xmpp:") => mail(&text[at..]),
        b'w' | b'W' if begins(&text[at..], "www.") && may_begin(&text[..at]) => {
            with_scheme(&format!("http://{}", window(&text[at..])), hosts)
        }
        _ => None,
    }
}

/// What of a text may belong to the head of a link.
fn window(text: &str) -> &str {
    &text[..text.floor_char_boundary(text.len().min(2 * MAX_HEAD))]
}

/// Without the white space before a link.
fn after_blanks(text: &str) -> &str {
    text.trim_start_matches(|char: char| char <= ' ')
}

/// Whether a text begins with an ASCII text, in any case.
fn begins(text: &str, with: &str) -> bool {
    text.as_bytes().get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
}

/// Whether `www.` may be the beginning of a link after this text.
fn may_begin(before: &str) -> bool {
    let last = before.chars().next_back();
    !last.is_some_and(|last| last.is_alphanumeric() || matches!(last, '/' | '.' | '-' | '_' | '@' | '='))
}

/// `](link)` and `]: link`.
fn in_brackets(text: &str, hosts: &Hosts) -> Option<Wrong> {
    let inline = match text.as_bytes().get(1) {
        Some(b'(') => true,
        Some(b':') => false,
        _ => return None,
    };
    let rest = after_blanks(&text[2..]);
    let rest = match rest.strip_prefix('<') {
        Some(inner) => &rest[..1 + head_of(inner).len()],
        None => head_of(rest),
    };
    let end = match rest.strip_prefix('<') {
        Some(inner) => 1 + inner.find(['>', '\n']).unwrap_or(inner.len()),
        None if inline => end_of_inline(rest),
        None => rest.find(|char: char| char.is_whitespace()).unwrap_or(rest.len()),
    };
    let (link, after) = (&rest[..end], &rest[end..]);
    if !inline && !link.starts_with('<') {
        // `[Note]: this is no link`: after the link of a definition, only a title may follow.
        let line = after.lines().next().unwrap_or_default().trim();
        if !line.is_empty() && !line.starts_with(['"', '\'', '(']) {
            return None;
        }
    }
    let link = link.strip_prefix('<').unwrap_or(link);
    judge(link, hosts).or_else(|| link.contains('\\').then(|| judge(&unescaped(link), hosts)).flatten())
}

/// Where the target of an inline link ends: at white space, or at the parenthesis that closes it.
fn end_of_inline(text: &str) -> usize {
    let (mut depth, mut escaped) = (0_usize, false);
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' => depth += 1,
            ')' if depth == 0 => return at,
            ')' => depth -= 1,
            char if char <= ' ' => return at,
            _ => {}
        }
    }
    text.len()
}

/// As Markdown reads it: a backslash before punctuation is dropped.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match chars.peek() {
            Some(next) if char == '\\' && next.is_ascii_punctuation() => plain.extend(chars.next()),
            _ => plain.push(char),
        }
    }
    plain
}

/// `<https://example.com>` and `<a@example.com>`.
fn in_angles(text: &str, hosts: &Hosts) -> Option<Wrong> {
    let rest = head_of(&text[1..]);
    let end = rest.find(|char: char| char <= ' ' || matches!(char, '<' | '>')).unwrap_or(rest.len());
    let link = &rest[..end];
    if scheme_of(link).is_some_and(|scheme| scheme.len() > 1) {
        return judge(link, hosts);
    }
    let is_mail = rest[end..].starts_with('>')
        && link.find('@').is_some_and(|at| at > 0)
        && !link.contains(['"', '\'', '=', '/']);
    is_mail.then(|| wrong(link, "is an e-mail address")).flatten()
}

/// `mailto:a@example.com` in a text.
fn mail(text: &str) -> Option<Wrong> {
    let text = window(text);
    let link =
        &text[..text.find(|char: char| char <= ' ' || "<>()\"'`".contains(char)).unwrap_or(text.len())];
    link.contains('@').then(|| wrong(link, "is not an http or https URL")).flatten()
}

/// The attributes that hold several links.
const LISTS: [&str; 2] = ["srcset", "ping"];

/// The attributes that are also names in JSON and in code: `"href": "link"`.
const FIELDS: [&str; 4] = ["href", "srcset", "src", "url"];

/// `href="link"`, `src='link'`, `srcset=link` and `"href": "link"`, at the name of one of these attributes of HTML and SVG. A longer name
/// may end so: `formaction`, `xlink:href`.
fn attribute(
    text: &str,
    at: usize,
    names: &[&'static str],
    listed: &mut usize,
    hosts: &Hosts,
) -> Option<Wrong> {
    let name = *names.iter().find(|name| begins(&text[at..], name))?;
    let rest = &text[at + name.len()..];
    let value = match after_blanks(rest).strip_prefix('=') {
        Some(value) => after_blanks(value),
        None if FIELDS.contains(&name) => {
            // The quotes are escaped in JSON that is in JSON.
            let after_name = rest.trim_start_matches('\\');
            let after_name = after_name.strip_prefix(['"', '\'']).unwrap_or(after_name);
            let value = after_blanks(after_blanks(after_name).strip_prefix(':')?);
            value.trim_start_matches('\\').starts_with(['"', '\'']).then_some(value)?
        }
        None => return None,
    };
    // Quotes are escaped in HTML that is in JSON.
    let unescaped = value.trim_start_matches('\\');
    let quote = unescaped.chars().next().filter(|char| matches!(char, '"' | '\''));
    if LISTS.contains(&name) {
        let (inner, end) = match quote {
            Some(quote) => (&unescaped[1..], quote),
            None => (value, '>'),
        };
        return in_list(text, text.len() - inner.len(), end, listed, hosts);
    }
    let value = match quote {
        Some(quote) => {
            let inner = head_of(after_blanks(&unescaped[1..]));
            inner[..inner.find(quote).unwrap_or(inner.len())].trim_end_matches('\\')
        }
        None => {
            let value = head_of(value);
            &value[..value.find(|char: char| char <= ' ' || char == '>').unwrap_or(value.len())]
        }
    };
    judge(value, hosts)
}

const IMAGE_SET: &str = "image-set(";

/// Each part of a list of links: `srcset="link 1x, link 2x"`. What an earlier list has read is not read again.
fn in_list(text: &str, start: usize, end: char, listed: &mut usize, hosts: &Hosts) -> Option<Wrong> {
    if start < *listed {
        return None;
    }
    let list = &text[start..];
    let list = &list[..list.find(end).unwrap_or(list.len())];
    *listed = start + list.len();
    list.split([',', ' ', '\t', '\n', '\u{c}', '"', '\'', '=', '('])
        .find_map(|link| judge(link.trim_end_matches('\\'), hosts))
}

/// `url(link)`, `src(link)`, `@import "link"` and `@namespace a "link"` of CSS.
fn in_styles(text: &str, hosts: &Hosts) -> Option<Wrong> {
    let quotes = ['"', '\'', '\\'];
    if begins(text, "url(") || begins(text, "src(") {
        let rest = after_blanks(&text["url(".len()..]);
        let link = head_of(after_blanks(rest.trim_start_matches(quotes)));
        let link = &link[..link.find(')').unwrap_or(link.len())];
        return judge(link.trim_matches(|char: char| char <= ' ' || quotes.contains(&char)), hosts);
    }
    let rest = if begins(text, "@import") {
        &text["@import".len()..]
    } else if begins(text, "@namespace") {
        // The name may stand before the link.
        after_blanks(&text["@namespace".len()..])
            .trim_start_matches(|char: char| char.is_alphanumeric() || "-_".contains(char))
    } else {
        return None;
    };
    let rest = after_blanks(rest).strip_prefix(quotes)?;
    let link = head_of(after_blanks(rest));
    judge(&link[..link.find(quotes).unwrap_or(link.len())], hosts)
}

/// A URL in the text, at its scheme.
fn with_scheme(text: &str, hosts: &Hosts) -> Option<Wrong> {
    let scheme = ["https:", "http:", "ftp:"].into_iter().find(|scheme| begins(text, scheme))?;
    let slashes = text[scheme.len()..].len() - text[scheme.len()..].trim_start_matches(['/', '\\']).len();
    if slashes == 0 {
        return None;
    }
    let start = scheme.len() + slashes;
    let rest = window(&text[start..]);
    let end = rest.find(|char: char| char.is_whitespace() || char.is_control() || "/?#<>\\".contains(char));
    let (authority, is_cut) = (&rest[..end.unwrap_or(rest.len())], end.is_none() && rest.len() > MAX_HEAD);
    let shown = &text[..start + authority.len()];
    if is_cut {
        return wrong(shown, "is too long");
    }
    // Programs that make links end a URL at different characters. Some end it at the first one that no host has, others at the
    // next white space. Both hosts must be permitted.
    let is_of_host = |char: char| char.is_alphanumeric() || "-._:%@[]&。．｡".contains(char);
    // A path follows, so that the last characters belong to the host and end no sentence.
    let goes_on = rest[authority.len()..].starts_with(['/', '?', '#', '\\']);
    let last = if goes_on { authority } else { trimmed(authority) };
    let first = match authority.find(|char| !is_of_host(char)) {
        Some(end) => trimmed(&authority[..end]),
        None => last,
    };
    if last.is_empty() {
        // "URLs begin with https://".
        return None;
    }
    let slashes = &text[scheme.len()..start];
    if slashes.contains('\\') || rest[authority.len()..].starts_with('\\') {
        return wrong(shown, "has a backslash");
    }
    let whole = |authority: &str| format!("{scheme}{slashes}{authority}");
    if !first.is_empty()
        && let Some(found) = judge(&whole(first), hosts)
    {
        return Some(found);
    }
    if first == last || !is_host_at_all(&whole(last)) {
        return None;
    }
    judge(&whole(last), hosts)
}

/// Without the punctuation that ends a sentence, a link or a quotation.
fn trimmed(authority: &str) -> &str {
    let is_address = authority.starts_with('[');
    let is_end = |char: char| ".,:;!?_*~'\"`)]}|".contains(char) && !(is_address && char == ']');
    authority.trim_end_matches(is_end)
}

/// Whether a URL has a host that could exist: its last label has no other characters than names in DNS.
fn is_host_at_all(url: &str) -> bool {
    match Url::parse(url).as_ref().map(Url::host) {
        Ok(Some(Host::Domain(name))) => name.rsplit('.').next().is_some_and(is_name),
        Ok(host) => host.is_some(),
        Err(_) => false,
    }
}
