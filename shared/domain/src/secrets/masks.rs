//! Hides secrets in texts that others have written, for example in the answer of a server that repeats what it was sent.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};

/// What stands for a secret.
pub const MASK: &str = "•••";

/// A text may end in the middle of a secret. So many of its first characters are recognised.
const SHORTEST_PART: usize = 4;

/// What is searched for: each secret in the forms in which servers repeat it.
#[derive(Default)]
pub struct Masks(Vec<String>);

impl Masks {
    /// `secrets` are printable ASCII.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms: Vec<String> =
            secrets.into_iter().filter(|secret| !secret.is_empty()).flat_map(forms).collect();
        // A longer form may contain a shorter one.
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        forms.dedup();
        Self(forms)
    }

    /// The text without the secrets. It may be longer than before.
    #[must_use]
    pub fn hide(&self, mut text: String) -> String {
        for form in self.0.iter().filter(|form| text.contains(form.as_str())).collect::<Vec<_>>() {
            text = text.replace(form, MASK);
        }
        if let Some(part) = self.0.iter().filter_map(|form| ends_with_part(&text, form)).max() {
            text.truncate(text.len() - part);
            text.push_str(MASK);
        }
        text
    }
}

/// How many bytes at the end of the text are the beginning of a form.
fn ends_with_part(text: &str, form: &str) -> Option<usize> {
    (SHORTEST_PART..form.len()).rev().find(|length| text.ends_with(&form[..*length]))
}

/// The secret as it is, in JSON, in a URL and in base64.
fn forms(secret: &str) -> Vec<String> {
    let json = serde_json::Value::from(secret).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let mut forms = vec![secret.to_owned(), json.replace('/', "\\/"), json, percent_encoded(secret)];
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

fn percent_encoded(secret: &str) -> String {
    secret.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
    use proptest::prelude::*;

    use super::*;

    fn hidden(secret: &str, text: &str) -> String {
        Masks::of([secret]).hide(text.to_owned())
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
        fn no_text_is_cut_within_a_character(text in "\\PC{0,40}", secret in "[ -~]{1,8}") {
            let _ = hidden(&secret, &text);
        }
    }
}
