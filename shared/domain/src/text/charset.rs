//! The characters of an answer. What a server sends says in up to four places how its bytes are to be read, and often in none.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// How far into a document its own declaration is searched, in bytes, as browsers do.
const DECLARED_WITHIN: usize = 1_024;

/// The text of an answer. These say how it is encoded, the first one that names a known encoding: a byte order mark, the `charset` of
/// the header `Content-Type`, the XML declaration, and `<meta charset>`. If none does, or if the bytes do not fit what they say, they
/// are UTF-8 or windows-1252, whichever fits.
///
/// Every input has a text: bytes that mean nothing become U+FFFD.
#[must_use]
pub fn decode<'a>(content_type: &str, body: &'a [u8]) -> Cow<'a, str> {
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return encoding.decode_without_bom_handling(&body[mark..]).0;
    }
    for encoding in [charset(content_type), declared(body)].into_iter().flatten() {
        if encoding == UTF_8 {
            if looks_like_utf_8(body) {
                break;
            }
        } else if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(body) {
            return text;
        }
    }
    if looks_like_utf_8(body) {
        String::from_utf8_lossy(body)
    } else {
        WINDOWS_1252.decode_without_bom_handling(body).0
    }
}

/// The encoding that a `Content-Type` names.
fn charset(content_type: &str) -> Option<&'static Encoding> {
    let parameter = content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then_some(value)
    })?;
    encoding(parameter.trim().trim_matches(['"', '\'']))
}

/// The encoding that a document names at its beginning.
fn declared(body: &[u8]) -> Option<&'static Encoding> {
    // Without a byte order mark, the first bytes of `<?xml` tell.
    match body {
        [b'<', 0, b'?', 0, ..] => return Some(UTF_16LE),
        [0, b'<', 0, b'?', ..] => return Some(UTF_16BE),
        _ => {}
    }
    let start = String::from_utf8_lossy(&body[..body.len().min(DECLARED_WITHIN)]).to_ascii_lowercase();
    let start = start.trim_start();
    let label = match start.strip_prefix("<?xml") {
        Some(xml) => value(xml.split("?>").next().unwrap_or_default(), "encoding"),
        None => start
            .split("<meta")
            .skip(1)
            .find_map(|tag| value(tag.split('>').next().unwrap_or_default(), "charset")),
    };
    // What could be read so far is not UTF-16.
    encoding(label?).filter(|encoding| encoding.is_ascii_compatible())
}

/// The value that follows a name and `=`, without its quotes.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.split(name).skip(1).find_map(|rest| rest.trim_start().strip_prefix('='))?;
    let rest = rest.trim_start().trim_start_matches(['"', '\'']);
    rest.split(|c: char| matches!(c, '"' | '\'' | ';' | '/') || c.is_whitespace()).next()
}

fn encoding(label: &str) -> Option<&'static Encoding> {
    // Servers and programs name ASCII without a thought. Bytes above it are then of another encoding.
    if ["us-ascii", "ascii"].iter().any(|ascii| label.eq_ignore_ascii_case(ascii)) {
        return None;
    }
    Encoding::for_label(label.as_bytes())
}

/// Whether more of the bytes above ASCII are UTF-8 than are not. A text in UTF-8 with a broken character stays UTF-8.
fn looks_like_utf_8(body: &[u8]) -> bool {
    let (mut fit, mut broken) = (0_usize, 0_usize);
    for chunk in body.utf8_chunks() {
        fit += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    broken == 0 || fit > broken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_says_how_a_text_is_encoded_is_believed_in_order() {
        let html = "text/html";
        for (content_type, body, text) in [
            (html, &b"plain"[..], "plain"),
            (html, "é".as_bytes(), "é"),
            (html, b"\xef\xbb\xbf\xc3\xa9", "é"),
            ("text/html; charset=iso-8859-1", b"\xef\xbb\xbf\xc3\xa9", "é"),
            (html, b"\xff\xfe\xe9\x00", "é"),
            (html, b"\xfe\xff\x00\xe9", "é"),
            ("text/html; Charset=\"ISO-8859-1\"", b"\xe9\x96", "é–"),
            ("text/html; charset=windows-1251", b"\xcc\xe8\xf0", "Мир"),
            (
                "text/html; charset=koi8-r",
                b"<meta charset=windows-1251>\xed\xc9\xd2",
                "<meta charset=windows-1251>Мир",
            ),
            (
                html,
                b"<meta http-equiv=content-type content='text/html; charset=Shift_JIS'>\x93\xfa",
                "<meta http-equiv=content-type content='text/html; charset=Shift_JIS'>日",
            ),
            (
                html,
                b" <META name=a><META CHARSET = \"euc-jp\" >\xc6\xfc",
                " <META name=a><META CHARSET = \"euc-jp\" >日",
            ),
            (
                "",
                b"<?xml version='1.0' encoding='windows-1251'?>\xcc",
                "<?xml version='1.0' encoding='windows-1251'?>М",
            ),
            ("", b"<\0?\0x\0", "<?x"),
            ("", b"\0<\0?\0x", "<?x"),
            // Nothing says it, or what says it is wrong.
            (html, b"caf\xe9 \x80", "café €"),
            ("text/html; charset=no-such", b"\xe9", "é"),
            ("text/xml; charset=us-ascii", "é".as_bytes(), "é"),
            ("text/html; charset=utf-8", b"caf\xe9", "café"),
            ("text/html; charset=utf-8", "<meta charset=gbk>é".as_bytes(), "<meta charset=gbk>é"),
            ("text/html; charset=utf-8", b"<meta charset=koi8-r>\xed", "<meta charset=koi8-r>М"),
            (
                "",
                b"<?xml version='1.0' encoding='utf-16'?>\xc3\xa9",
                "<?xml version='1.0' encoding='utf-16'?>é",
            ),
            ("text/html; charset=Shift_JIS", "日本語".as_bytes(), "日本語"),
            // A character of many is broken.
            (html, b"\xc3\xa9\xc3\xa9\xc3", "éé\u{fffd}"),
        ] {
            assert_eq!(decode(content_type, body), text, "{content_type}, {body:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_text(start in "(<\\?xml|<meta|charset|encoding|=|'|\"|>|;|utf-8|gbk|é| ){0,12}", body in prop::collection::vec(any::<u8>(), 0..60)) {
            let bytes = [start.as_bytes(), &body].concat();
            let text = decode(&start, &bytes);
            prop_assert!(text.len() <= 3 * bytes.len());
        }
    }
}
