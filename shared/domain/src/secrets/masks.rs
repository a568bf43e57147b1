//! Hides secrets in texts that others have written, for example in the answer of a server that repeats what it was sent.
//!
//! A first search knows each spelling of a character exactly, also where a text is cut. A second one compares texts without their escapes, in
//! however many layers they were written: JSON in HTML, JSON in JSON in a URL. Both are linear in the text. A text in which every character was
//! written as `\u0041` is read without its escapes only if it has no other layer.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use quick_xml::escape::resolve_html5_entity;

/// What stands for a secret.
pub const MASK: &str = "•••";

/// The longest character reference that is read, in bytes.
const MAX_REFERENCE: usize = 40;

/// How many backslashes in a row, and how many escapes of a percent sign, are read as one escape. Without a bound, an answer of backslashes
/// would be read again from each of them.
const MAX_ESCAPES: usize = 16;

/// A text may end in the middle of a secret. So many of its first characters are recognised.
const SHORTEST_PART: usize = 4;

/// What is searched for: each secret in the forms in which servers repeat it.
#[derive(Default)]
pub struct Masks {
    secrets: Vec<String>,
    /// Their forms in base64.
    encoded: Vec<String>,
    /// All of them without their escapes.
    plain: Vec<String>,
}

impl Masks {
    /// `secrets` are printable ASCII.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let secrets: Vec<String> =
            secrets.into_iter().filter(|secret| !secret.is_empty()).map(str::to_owned).collect();
        let encoded: Vec<String> = secrets.iter().flat_map(|secret| encoded(secret)).collect();
        let plain = secrets.iter().chain(&encoded).map(|form| Plain::of(form).text);
        let plain = plain.filter(|form| form.len() >= SHORTEST_PART).collect();
        Self { secrets: longest_first(secrets), encoded: longest_first(encoded), plain: longest_first(plain) }
    }

    /// The text without the secrets. It may be longer than before.
    #[must_use]
    pub fn hide(&self, mut text: String) -> String {
        for form in &self.encoded {
            text = hide_spelled(form, true, text);
        }
        for secret in &self.secrets {
            text = hide_spelled(secret, false, text);
        }
        hide_layered(&self.plain, text)
    }
}

/// The text without secrets that were escaped several times.
fn hide_layered(secrets: &[String], text: String) -> String {
    if secrets.is_empty() || !text.contains(['\\', '%', '&']) {
        return text;
    }
    let plain = Plain::of(&text);
    let mut found: Vec<(usize, usize)> = Vec::new();
    for secret in secrets {
        found.extend(plain.text.match_indices(secret.as_str()).map(|(at, _)| (at, at + secret.len())));
        // The text may end within the secret, and within an escape.
        for read in [&plain.text[..], &plain.text[..plain.whole]] {
            let longest = secret.len().min(read.len() + 1);
            let part = (SHORTEST_PART..longest).rev().find(|length| read.ends_with(&secret[..*length]));
            found.extend(part.map(|length| (read.len() - length, plain.text.len())));
        }
    }
    found.sort_unstable();
    let (mut shown, mut copied) = (String::new(), 0);
    for (from, to) in found {
        let is_cut = to == plain.text.len();
        let (from, to) = (plain.spans[from].0, if is_cut { text.len() } else { plain.spans[to - 1].1 });
        if to <= copied {
            continue;
        }
        if from >= copied {
            shown.push_str(&text[copied..from]);
            shown.push_str(MASK);
        }
        copied = to;
    }
    shown.push_str(&text[copied..]);
    shown
}

/// A text without its escapes, however many layers there are. Backslashes are left out, because one may stand for itself or begin an
/// escape, and a space is a plus, as forms write it. So a secret and all ways to write it are the same.
struct Plain {
    text: String,
    /// Where each byte of it begins and ends in the text as it was written.
    spans: Vec<(usize, usize)>,
    /// How much of it has no escape that the end of the text cuts.
    whole: usize,
}

impl Plain {
    fn of(written: &str) -> Self {
        let mut read = Read::default();
        for (at, byte) in written.bytes().enumerate() {
            read.push(byte, at);
        }
        let Read { bytes, mut starts } = read;
        starts.push(written.len());
        let spans = starts.windows(2).map(|of| (of[0], of[1]));
        let is_shown = |byte: &u8| *byte != b'\\';
        let cut = bytes.iter().rev().take(MAX_OPEN).position(|byte| b"\\%&".contains(byte));
        let cut = cut.map(|after| bytes.len() - 1 - after).filter(|at| is_open(&bytes[*at..]));
        let whole = bytes[..cut.unwrap_or(bytes.len())].iter().filter(|byte| is_shown(byte)).count();
        let (bytes, spans) =
            bytes.iter().copied().zip(spans).filter(|(byte, _)| is_shown(byte)).unzip::<_, _, Vec<u8>, _>();
        // Only ASCII was replaced, by ASCII.
        let text = String::from_utf8(bytes).unwrap_or_default();
        Self { text, spans, whole }
    }
}

/// Whether an escape begins so.
fn is_open(bytes: &[u8]) -> bool {
    match bytes {
        [b'%', digits @ ..] => digits.len() < 2 && digits.iter().all(u8::is_ascii_hexdigit),
        [b'\\', b'x', digits @ ..] => digits.len() < 2,
        [b'\\', rest @ ..] => b"u00".starts_with(rest) || rest.starts_with(b"u00") && rest.len() < 5,
        [b'&', name @ ..] => name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#'),
        _ => false,
    }
}

/// The longest begin of an escape at the end of a text: `&#x0002`.
const MAX_OPEN: usize = 8;

/// What was read so far of a text, without its escapes, and where each byte begins in it.
#[derive(Default)]
struct Read {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Read {
    /// Adds a byte. If an escape ends with it, what it stands for takes its place, and that may end another one.
    fn push(&mut self, byte: u8, at: usize) {
        let (mut byte, mut at) = (byte, at);
        loop {
            self.bytes.push(if byte == b' ' { b'+' } else { byte });
            self.starts.push(at);
            let Some((length, meant)) = self.escape() else { return };
            let begin = self.bytes.len() - length;
            (byte, at) = (meant, self.starts[begin]);
            self.bytes.truncate(begin);
            self.starts.truncate(begin);
        }
    }

    /// The length of the escape at the end, and the printable character that it stands for.
    fn escape(&self) -> Option<(usize, u8)> {
        let last = *self.bytes.last()?;
        let (length, meant) = match last {
            b';' => {
                let window = &self.bytes[self.bytes.len().saturating_sub(MAX_REFERENCE)..];
                let begin = window.iter().rposition(|byte| *byte == b'&')?;
                (window.len() - begin, referred(&window[begin + 1..window.len() - 1])?)
            }
            _ if last.is_ascii_hexdigit() => {
                let (before, digits) = self.bytes.split_at_checked(self.bytes.len().checked_sub(2)?)?;
                let begins: [&[u8]; 3] = [b"%", b"\\u00", b"\\x"];
                let begin = begins.into_iter().find(|begin| before.ends_with(begin))?;
                let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
                (begin.len() + 2, u8::from_str_radix(digits, 16).ok()?)
            }
            _ => return None,
        };
        (0x20..0x7f).contains(&meant).then_some((length, meant))
    }
}

/// The ASCII character that a character reference names, without `&` and `;`.
fn referred(name: &[u8]) -> Option<u8> {
    let name = std::str::from_utf8(name).ok()?;
    let Some(number) = name.strip_prefix('#') else {
        let [byte] = resolve_html5_entity(name)?.as_bytes() else { return None };
        return Some(*byte);
    };
    if number.contains('+') {
        return None;
    }
    match number.strip_prefix(['x', 'X']) {
        Some(hex) => u8::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    }
}

/// A longer form may contain a shorter one, so it is searched first.
fn longest_first(mut forms: Vec<String>) -> Vec<String> {
    forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    forms.dedup();
    forms
}

/// The text without a secret, however its characters are spelled. `is_wrapped`: there may be line ends in it, as in long base64.
fn hide_spelled(secret: &str, is_wrapped: bool, text: String) -> String {
    let (mut shown, mut copied, mut at) = (String::new(), 0, 0);
    let first = secret.as_bytes()[0];
    while at < text.len() {
        // Most characters begin no spelling of the first one.
        let byte = text.as_bytes()[at];
        if byte != first && !b"\\%&+".contains(&byte) {
            at = text.ceil_char_boundary(at + 1);
            continue;
        }
        match spelled(secret.as_bytes(), is_wrapped, &text.as_bytes()[at..]) {
            Some(length) => {
                shown.push_str(&text[copied..at]);
                shown.push_str(MASK);
                at += length;
                copied = at;
            }
            None => at = text.ceil_char_boundary(at + 1),
        }
    }
    if copied == 0 {
        return text;
    }
    shown.push_str(&text[copied..]);
    shown
}

/// Line ends, also as JSON writes them.
const LINE_ENDS: [&[u8]; 4] = [b"\r\n", b"\n", b"\\r\\n", b"\\n"];

/// How many bytes at the beginning of the text spell the secret. If the text ends within the secret: all of it.
fn spelled(secret: &[u8], is_wrapped: bool, text: &[u8]) -> Option<usize> {
    // A backslash may stand for itself or begin an escape, so there may be several ways to read the text.
    let mut ends = vec![0];
    for (known, byte) in secret.iter().enumerate() {
        let mut next = Vec::new();
        if is_wrapped && known > 0 {
            let line_end = |end: usize| {
                LINE_ENDS
                    .iter()
                    .filter(move |mark| text[end..].starts_with(mark))
                    .map(move |mark| end + mark.len())
            };
            let after: Vec<usize> = ends.iter().copied().flat_map(line_end).collect();
            ends.extend(after);
        }
        for rest in ends.iter().map(|end| &text[*end..]) {
            let read = text.len() - rest.len();
            if known >= SHORTEST_PART && is_begin_of_spelling(*byte, rest) {
                return Some(text.len());
            }
            next.extend(spellings(*byte, rest).into_iter().flatten().map(|length| read + length));
        }
        next.sort_unstable();
        next.dedup();
        if next.is_empty() {
            return None;
        }
        ends = next;
    }
    ends.last().copied()
}

/// The lengths of the spellings of `byte` with which the text begins: as it is, and as JSON, a URL and HTML write it, also if they
/// were applied several times.
fn spellings(byte: u8, text: &[u8]) -> [Option<usize>; 6] {
    let hex = format!("{byte:02x}");
    let begins = |text: &[u8], with: &str| {
        text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with.as_bytes()))
    };
    let itself = (text.first() == Some(&byte)).then_some(1);
    let slashes = text.iter().take(MAX_ESCAPES).take_while(|byte| **byte == b'\\').count();
    let after = &text[slashes..];
    let escape = match byte {
        _ if slashes == 0 => None,
        b'\\' if slashes >= 2 => Some(2),
        _ if begins(after, &format!("u00{hex}")) => Some(slashes + 5),
        _ if !byte.is_ascii_alphanumeric() && after.first() == Some(&byte) => Some(slashes + 1),
        _ => None,
    };
    let escaped_twice = (byte == b'\\' && slashes >= 4).then_some(4);
    let percent = text.strip_prefix(b"%").and_then(|mut rest| {
        for _ in 0..MAX_ESCAPES {
            if begins(rest, "25") && byte != b'%' {
                rest = &rest[2..];
            }
        }
        begins(rest, &hex).then(|| text.len() - rest.len() + 2)
    });
    // As forms write it.
    let plus = (byte == b' ' && text.first() == Some(&b'+')).then_some(1);
    [itself, escape, escaped_twice, percent, plus, reference(byte, text)]
}

/// The length of a character reference of HTML that stands for `byte`.
fn reference(byte: u8, text: &[u8]) -> Option<usize> {
    let name = text.strip_prefix(b"&")?;
    let is_part = |at: usize, c: u8| match name {
        [b'#', b'x' | b'X', ..] => at < 2 || c.is_ascii_hexdigit(),
        [b'#', ..] => at < 1 || c.is_ascii_digit(),
        _ => c.is_ascii_alphanumeric(),
    };
    let most = name.len().min(MAX_REFERENCE);
    let length = (0..most).find(|at| !is_part(*at, name[*at])).unwrap_or(most);
    let word = std::str::from_utf8(&name[..length]).ok()?;
    let has_end = name.get(length) == Some(&b';');
    let is_meant = match word.strip_prefix('#') {
        Some(number) => {
            let number = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            number == Ok(byte.into())
        }
        None => has_end && resolve_html5_entity(word) == std::str::from_utf8(&[byte]).ok(),
    };
    is_meant.then_some(1 + length + usize::from(has_end))
}

/// Whether the text ends within a spelling of `byte`.
fn is_begin_of_spelling(byte: u8, text: &[u8]) -> bool {
    let hex = format!("{byte:02x}");
    let longest = [format!("\\u00{hex}"), format!("%{hex}"), format!("&#x{hex};"), format!("&#{byte};")];
    let is_begin = |spelling: &String| {
        spelling.len() > text.len() && spelling.as_bytes()[..text.len()].eq_ignore_ascii_case(text)
    };
    text.is_empty() || longest.iter().any(is_begin)
}

/// The secret in base64.
fn encoded(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for engine in [BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD] {
        forms.push(engine.encode(secret));
        forms.extend((0..3).map(|before| within_base64(&engine, secret, before)));
    }
    forms.retain(|form| form.len() >= secret.len().min(SHORTEST_PART));
    forms
}

/// The characters of a base64 that depend on nothing but the secret, if it comes after `before` bytes (modulo 3) of another text.
fn within_base64(engine: &impl Engine, secret: &str, before: usize) -> String {
    let all = engine.encode([&b"000"[..before], secret.as_bytes()].concat());
    let (begin, end) = ((before * 8).div_ceil(6), (before + secret.len()) * 8 / 6);
    all[begin.min(end)..end].to_owned()
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
    use proptest::prelude::*;

    use super::*;

    fn hidden(secret: &str, text: &str) -> String {
        Masks::of([secret]).hide(text.to_owned())
    }

    /// The time is linear: an answer of backslashes, percent signs or references is not read again from each of them.
    #[test]
    fn no_answer_is_read_again_from_each_of_its_characters() {
        for unit in
            ["\\", "%25", "&#x", "&", "\\u00", "ghp", "\n", "&amp;", "%2525", "\\\\u005c", ";", "&#38;"]
        {
            let text = unit.repeat(100_000 / unit.len());
            assert_eq!(hidden("ghp_quick/silver\"+x", &text).len(), text.len(), "{unit}");
        }
    }

    #[test]
    fn a_secret_is_hidden_in_each_form() {
        let secret = "ghp_quick/silver\"+x";
        for (text, expected) in [
            ("ok", "ok"),
            ("Bearer ghp_quick/silver\"+x.", "Bearer •••."),
            (r#"{"a":"ghp_quick/silver\"+x"}"#, r#"{"a":"•••"}"#),
            (r#"{"a":"ghp_quick\/silver\"+x"}"#, r#"{"a":"•••"}"#),
            ("?t=ghp_quick%2Fsilver%22%2Bx", "?t=•••"),
            ("ghp_quick/silver\"+xghp_quick/silver\"+x", "••••••"),
            // Other spellings of JSON, also within a text of JSON.
            (r#"{"a":"ghp_quick\u002fsilver\u0022\u002Bx"}"#, r#"{"a":"•••"}"#),
            (r#"{"a":"\u0067hp_quick/silver\"+x"}"#, r#"{"a":"•••"}"#),
            (r#"{"a":"{\"b\":\"ghp_quick\\\/silver\\\"\\u002bx\"}"}"#, r#"{"a":"{\"b\":\"•••\"}"}"#),
            ("?t=ghp_quick%2fsilver%22%2bx&u=1", "?t=•••&u=1"),
            ("?t=ghp_quick%252Fsilver%2522%252Bx", "?t=•••"),
            ("<p>ghp_quick/silver&quot;+x</p>", "<p>•••</p>"),
            ("<p>ghp_quick&#x2F;silver&#34;&#43;x</p>", "<p>•••</p>"),
            ("<p>ghp&lowbar;quick&sol;silver&quot;&plus;x</p>", "<p>•••</p>"),
            ("<p>ghp_quick&#x002F;silver&#0034;&#43x</p>", "<p>•••</p>"),
            // Cut within an escape.
            (r"cut ghp_quick\u00", "cut •••"),
            ("cut ghp_quick%2", "cut •••"),
            // An answer that was cut.
            ("cut ghp_quick/sil", "cut •••"),
            ("cut ghp", "cut ghp"),
        ] {
            assert_eq!(hidden(secret, text), expected, "{text}");
        }
        assert_eq!(hidden(secret, &BASE64_STANDARD.encode(secret)).trim_end_matches('='), MASK);
        assert_eq!(Masks::of(["ab", "abc"]).hide("abc ab".to_owned()), "••• •••");
        assert_eq!(Masks::default().hide("abc".to_owned()), "abc");
        assert_eq!(hidden("", "abc"), "abc");
        for text in [r"a\b", r"a\\b", r"a\\\\b", r"a\u005cb", "a%5Cb"] {
            assert_eq!(hidden(r"a\b", text), MASK, "{text}");
        }
        assert_eq!(hidden("pass word", "p=pass+word&q"), "p=•••&q");
        // Base64 in JSON and in an address, and on several lines.
        let odd = "pass word'x?>>?~~and_more";
        let encoded = BASE64_STANDARD.encode(odd);
        assert!(encoded.contains('/') || encoded.contains('+'), "{encoded}");
        for text in [
            encoded.replace('/', "\\/"),
            encoded.replace('/', "\\u002F").replace('+', "\\u002b"),
            encoded.replace('/', "%2F").replace('+', "%2B"),
            format!("{}\n{}", &encoded[..20], &encoded[20..]),
            format!("{}\\r\\n{}", &encoded[..20], &encoded[20..]),
        ] {
            assert_eq!(hidden(odd, &text).trim_end_matches('='), MASK, "{text}");
        }
        // Two backslashes in the secret itself.
        assert_eq!(hidden(r"a\\b", r"a\\b a\\\\b"), "••• •••");
    }

    fn each(text: &str, escaped: impl Fn(char) -> Option<String>) -> String {
        text.chars().map(|char| escaped(char).unwrap_or_else(|| char.into())).collect()
    }

    /// Ways to write a text in another one.
    const LAYERS: [fn(&str) -> String; 8] = [
        // JSON, as most programs write it, with all that may be escaped, and with all characters escaped.
        |text| serde_json::to_string(text).unwrap(),
        |text| serde_json::to_string(text).unwrap().replace('/', "\\/").replace('<', "\\u003C"),
        |text| each(text, |char| char.is_ascii().then(|| format!("\\u{:04x}", u32::from(char)))),
        // A URL, a form, and a URL with all characters escaped.
        |text| each(text, |char| (!char.is_alphanumeric()).then(|| percent(char))),
        |text| {
            let plus = |char: char| if char == ' ' { "+".to_owned() } else { percent(char) };
            each(text, |char| (!char.is_alphanumeric()).then(|| plus(char)))
        },
        |text| each(text, |char| Some(percent(char).to_lowercase())),
        // HTML with names and with numbers.
        |text| {
            let name = |char| match char {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                '\'' => "&#x27;",
                '/' => "&sol;",
                _ => "",
            };
            each(text, |char| Some(name(char).to_owned()).filter(|name| !name.is_empty()))
        },
        |text| each(text, |char| Some(format!("&#{};", u32::from(char)))),
    ];

    fn percent(char: char) -> String {
        char.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect()
    }

    #[test]
    fn a_secret_in_several_layers_is_hidden() {
        let secret = "ghp_quick/silver\"+x";
        for (text, expected) in [
            // JSON in HTML, in a URL, and in JSON in a URL.
            (
                r#"<p>{&quot;a&quot;:&quot;ghp_quick\/silver\&quot;+x&quot;}</p>"#,
                "<p>{&quot;a&quot;:&quot;•••&quot;}</p>",
            ),
            (
                "?q=%7B%22a%22%3A%22ghp_quick%5C%2Fsilver%5C%22%2Bx%22%7D&b=1",
                "?q=%7B%22a%22%3A%22•••%22%7D&b=1",
            ),
            ("?q=%22ghp_quick%5C%5Cu002fsilver%5C%5Cu0022%2Bx%22", "?q=%22•••%22"),
            // A URL in HTML, and HTML in JSON.
            ("<a href='?t=ghp_quick&#37;2Fsilver&#37;22&#37;2Bx'>", "<a href='?t=•••'>"),
            (r#"{"a":"<p>ghp_quick\u0026#x2f;silver\u0026quot;+x</p>"}"#, r#"{"a":"<p>•••</p>"}"#),
            ("&amp;quot;ghp_quick&amp;#47;silver&amp;quot;+x&amp;quot;", "&amp;quot;•••&amp;quot;"),
            // Cut, also within an escape.
            ("cut ghp_quick%5C%5C%2Fsil", "cut •••"),
            ("cut ghp_quick%5C%2Fsilver%5C%2", "cut •••"),
            ("cut ghp_quick&#37;2Fsilver&#37;2", "cut •••"),
            ("no ghp_quick%5C%2Fgold%5C%22", "no ghp_quick%5C%2Fgold%5C%22"),
        ] {
            assert_eq!(hidden(secret, text), expected, "{text}");
        }
        // Two secrets in one text, one within the other.
        let masks = Masks::of(["ab/cd", "ab/cd\"ef"]);
        assert_eq!(masks.hide(r"ab%5C%2Fcd, ab%5C%2Fcd%5C%22ef".to_owned()), "•••, •••");
        // The base64 of a secret.
        let odd = "pass word'x?>>?~~and_more";
        let encoded = BASE64_STANDARD.encode(odd).replace('/', "%252F").replace('+', "%5Cu002b");
        assert!(encoded.contains('%'), "{encoded}");
        assert!(hidden(odd, &encoded).starts_with(MASK), "{encoded}");
        // What stands for itself in a secret.
        for odd in [r"a\u0041bcd", "a%41bcd", "a&lt;bcd", r"\\ab\cd", "100%%41", "a+b c d"] {
            for layer in LAYERS {
                let text = layer(&format!("[{odd}]"));
                assert!(hidden(odd, &text).contains(MASK), "{odd}: {text}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_base64_shows_a_secret(before in "[ -~]{0,9}", secret in "[!-~]{12,40}", after in "[ -~]{0,9}") {
            let text = format!("{before}{secret}{after}");
            for encoded in [BASE64_STANDARD.encode(&text), BASE64_URL_SAFE.encode(&text)] {
                let shown = hidden(&secret, &encoded);
                prop_assert!(shown.contains(MASK), "{}", shown);
                // Six bits at each end may remain.
                prop_assert!(shown.replace(MASK, "").len() <= encoded.len() - (secret.len() * 8 / 6 - 2));
            }
            prop_assert!(!hidden(&secret, &text).contains(&secret));
        }

        #[test]
        fn no_mixture_of_spellings_shows_a_secret(secret in "[!-~]{4,30}", ways in proptest::collection::vec(0..5, 30), after in "[ -~é]{0,9}") {
            let spell = |(byte, way): (u8, &i32)| match way {
                0 => format!("\\u{:04x}", byte),
                1 => format!("%{byte:02X}"),
                2 => format!("&#{byte};"),
                3 if matches!(byte, b'"' | b'\\' | b'/') => format!("\\{}", char::from(byte)),
                _ => char::from(byte).to_string(),
            };
            let text: String = secret.bytes().zip(&ways).map(spell).collect();
            let shown = hidden(&secret, &format!("é {text}{after}"));
            prop_assert!(shown.starts_with("é •••"), "{} of {}", shown, text);
        }

        /// A secret in a text that up to three programs have escaped, each in its own way.
        #[test]
        fn no_layers_of_escapes_show_a_secret(
            secret in "[ -~]{8,30}",
            layers in proptest::collection::vec(0..LAYERS.len(), 0..4),
            before in "\\PC{0,9}",
        ) {
            let needle = Plain::of(&secret).text;
            prop_assume!(needle.len() >= SHORTEST_PART);
            // See above.
            prop_assume!(layers.len() < 2 || !layers.contains(&2));
            let written = |text: &str| layers.iter().fold(text.to_owned(), |text, layer| LAYERS[*layer](&text));
            let text = format!("{before}[{secret}]");
            let shown = hidden(&secret, &written(&text));
            prop_assert!(shown.contains(MASK), "{} of {}", shown, written(&text));
            prop_assert!(!Plain::of(&shown).text.contains(&needle), "{}", shown);
        }

        #[test]
        fn what_has_no_secret_stays(text in "[a-d\\\\%&#;0-9xu+ é]{0,60}") {
            prop_assert_eq!(hidden("ghp_quick", &text), text);
        }

        #[test]
        fn no_text_is_cut_within_a_character(text in "\\PC{0,40}", secret in "[ -~]{1,8}") {
            let _ = hidden(&secret, &text);
        }
    }
}
