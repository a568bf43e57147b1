//! Finds the links of a text that lead to other hosts than permitted ones.
//!
//! Nobody knows which program will show the text: a reader of Markdown, a browser, or a program that makes links of whatever
//! looks like a URL. So everything that one of them takes for a link is judged, in code and in other URLs, too. What can be read in
//! two ways must be permitted in both.
//!
//! A link is judged by its head: everything up to the end of the host. What follows can't lead to another host.

use std::sync::LazyLock;

use url::{Host, Url};

use crate::reach::is_name;

/// The longest head of a link, in bytes: a scheme, a host name of 253 bytes and a port.
const MAX_HEAD: usize = 300;

/// How many links a finding names. The search ends after them.
const MAX_FOUND: usize = 3;

/// The longest link that a finding shows, in characters.
const MAX_SHOWN: usize = 100;

/// A relative link is resolved against both. If it stays at both hosts, it names no host itself.
static BASES: LazyLock<[Url; 2]> = LazyLock::new(|| {
    ["https://base.invalid/", "http://other-base.invalid/"].map(|base| Url::parse(base).expect("it is a URL"))
});

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
    fn permit(&self, host: &Host<&str>) -> bool {
        self.0.iter().any(|permitted| match (permitted, host) {
            (Host::Domain(permitted), Host::Domain(name)) => {
                let below = name.strip_suffix(permitted.as_str());
                is_name(name) && below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
            }
            (Host::Ipv4(permitted), Host::Ipv4(ip)) => permitted == ip,
            (Host::Ipv6(permitted), Host::Ipv6(ip)) => permitted == ip,
            _ => false,
        })
    }
}

/// The first links that are not permitted, each with the reason.
pub(super) fn foreign(text: &str, hosts: &Hosts) -> Vec<String> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        // All marks are ASCII, so that every slice below begins at a character.
        let rest = || window(text, at);
        let wrong = match byte {
            b']' => in_brackets(&text[at..], hosts),
            b'<' => in_angles(&text[at..], hosts),
            b'h' | b'H' | b's' | b'S' | b'f' | b'F' => {
                attribute(&text[at..], hosts).or_else(|| with_scheme(rest(), hosts))
            }
            b'a'..=b'd' | b'A'..=b'D' | b'p' | b'P' => attribute(&text[at..], hosts),
            b'u' | b'U' | b'@' => in_styles(rest(), hosts),
            b'w' | b'W' if begins(&text[at..], "www.") && may_begin(&text[..at]) => {
                let url = format!("http://{}", rest());
                with_scheme(&url, hosts)
            }
            _ => None,
        };
        if let Some(wrong) = wrong
            && !found.contains(&wrong)
        {
            found.push(wrong);
            if found.len() == MAX_FOUND {
                break;
            }
        }
    }
    found
}

/// What is wrong with a link, for people and models.
fn wrong(link: &str, why: &str) -> Option<String> {
    let mut shown: String =
        link.chars().take(MAX_SHOWN).map(|char| if char.is_control() { '\u{FFFD}' } else { char }).collect();
    if shown.len() < link.len() {
        shown.push('…');
    }
    Some(format!("`{shown}`, which {why}"))
}

/// The next bytes from a position on.
fn window(text: &str, at: usize) -> &str {
    let end = text.floor_char_boundary(text.len().min(at + 2 * MAX_HEAD));
    &text[at..end]
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
fn in_brackets(text: &str, hosts: &Hosts) -> Option<String> {
    let (inline, rest) = match text.as_bytes().get(1) {
        Some(b'(') => (true, window(text, 2)),
        Some(b':') => (false, window(text, 2)),
        _ => return None,
    };
    let rest = rest.trim_start_matches(|char: char| char <= ' ');
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
fn in_angles(text: &str, hosts: &Hosts) -> Option<String> {
    let rest = window(text, 1);
    // The end may come later than the window.
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

/// The scheme that a text begins with.
fn scheme_of(text: &str) -> Option<&str> {
    let end = text.find(|char: char| !char.is_ascii_alphanumeric() && !matches!(char, '+' | '-' | '.'))?;
    let is_scheme = text[end..].starts_with(':') && text.starts_with(|char: char| char.is_ascii_alphabetic());
    is_scheme.then(|| &text[..end])
}

/// The attributes of HTML and SVG that have links, or whose names end so: `formaction`, `xlink:href`.
const ATTRIBUTES: [&str; 10] =
    ["href", "srcset", "src", "action", "background", "cite", "content", "data", "ping", "poster"];

/// `href="link"`, `src='link'` and `srcset=link`, at the name of the attribute.
fn attribute(text: &str, hosts: &Hosts) -> Option<String> {
    let name = ATTRIBUTES.into_iter().find(|name| begins(text, name))?;
    let space = |char: char| char <= ' ';
    let value =
        window(text, name.len()).trim_start_matches(space).strip_prefix('=')?.trim_start_matches(space);
    // Quotes are escaped in HTML that is in JSON.
    let unescaped = value.trim_start_matches('\\');
    let value = match unescaped.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inner = &unescaped[1..];
            inner[..inner.find(quote).unwrap_or(inner.len())].trim_end_matches('\\')
        }
        _ => &value[..value.find(|char: char| char <= ' ' || char == '>').unwrap_or(value.len())],
    };
    match name {
        "srcset" | "ping" => value.split([',', ' ', '\t', '\n']).find_map(|link| judge(link, hosts)),
        // `<meta http-equiv="refresh" content="0; url=link">`. What else stands in `content` is no link.
        "content" => {
            let at = value.as_bytes().windows(4).position(|four| four.eq_ignore_ascii_case(b"url="))?;
            judge(value[at + 4..].trim_matches(['"', '\'', ' ']), hosts)
        }
        _ => judge(value, hosts),
    }
}

/// `url(link)` and `@import "link"` of CSS.
fn in_styles(text: &str, hosts: &Hosts) -> Option<String> {
    let quotes = ['"', '\'', '\\'];
    if begins(text, "url(") {
        let link = &text["url(".len()..];
        let link = &link[..link.find(')').unwrap_or(link.len())];
        return judge(link.trim_matches(|char: char| char <= ' ' || quotes.contains(&char)), hosts);
    }
    let link = text.get("@import".len()..).filter(|_| begins(text, "@import"))?;
    let link = link.trim_start_matches(|char: char| char <= ' ').strip_prefix(quotes)?;
    judge(&link[..link.find(quotes).unwrap_or(link.len())], hosts)
}

/// A URL in the text, at its scheme.
fn with_scheme(text: &str, hosts: &Hosts) -> Option<String> {
    let scheme = ["https:", "http:", "ftp:"].into_iter().find(|scheme| begins(text, scheme))?;
    let slashes = text[scheme.len()..].len() - text[scheme.len()..].trim_start_matches(['/', '\\']).len();
    if slashes == 0 {
        return None;
    }
    let start = scheme.len() + slashes;
    let rest = &text[start..];
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

/// Judges the target of a link. `None` if it is permitted.
fn judge(link: &str, hosts: &Hosts) -> Option<String> {
    let link = link.trim_matches(|char: char| char <= ' ');
    let after_scheme = scheme_of(link).map_or(0, |scheme| scheme.len() + 1);
    let slashes = link[after_scheme..].len() - link[after_scheme..].trim_start_matches(['/', '\\']).len();
    let start = after_scheme + slashes;
    let head = &link[..start + link[start..].find(['/', '?', '#']).unwrap_or(link.len() - start)];
    if head.len() > MAX_HEAD {
        return wrong(link, "is too long");
    }
    if head.chars().any(char::is_control) {
        return wrong(link, "has a control character");
    }
    // `https:&#47;&#47;example.com` and `java&Tab;script:`.
    if head.contains('&') {
        return wrong(link, "has a character reference");
    }
    if after_scheme == 0 && slashes == 0 && !head.contains(':') {
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
            return wrong(link, &format!("leads to {host}"));
        }
    }
    None
}
