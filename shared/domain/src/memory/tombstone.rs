//! What keeps a fact away that was deleted or corrected.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Quoted, Source, words};
use crate::ids::FactId;

/// Why a fact is no longer current.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TombstoneKind {
    /// The person has deleted it. Nothing that its messages said comes back.
    Deleted,
    /// Another fact has replaced it. The old text does not come back, and other facts may come from its messages.
    Corrected { by: FactId },
}

/// What is left of a fact that was deleted or corrected. It has no text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    pub fact_id: FactId,
    #[serde(flatten)]
    pub kind: TombstoneKind,
    /// The messages that the fact came from, those that say the same, and the outputs of runs that say it.
    #[serde(default)]
    pub sources: Vec<Quoted>,
    /// Hashes of the parts of its text. They find a fact that says almost the same.
    #[serde(default)]
    pub shingles: Vec<u32>,
    /// Hashes of the words that tell of it, in ascending order. Empty if it has none, or before they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub telling: Vec<u32>,
    /// The SHA-256 of its [`normal`] text.
    pub text_sha256: String,
    /// The day of the deletion or the correction.
    pub date: Date,
}

/// A text in lower case, without accents, with one blank in place of all blanks and punctuation between two words.
#[must_use]
pub fn normal(text: &str) -> String {
    let plain = words::plain(text);
    let words: Vec<String> = words::tokens(&plain).into_iter().map(|token| token.lower).collect();
    if words.is_empty() {
        // A text of signs alone is still a text.
        return plain.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    words.join(" ")
}

/// The SHA-256 of the [`normal`] text, as 64 hexadecimal digits.
#[must_use]
pub fn text_sha256(text: &str) -> String {
    crate::hex(&Sha256::digest(normal(text)))
}

impl Tombstone {
    /// Whether a new fact must not be stored: it has the same normal text, or the fact was deleted and all messages of the new one are
    /// among its messages. The caller compares the shingles.
    #[must_use]
    pub fn keeps_away(&self, text_sha256: &str, sources: &[Quoted]) -> bool {
        if self.text_sha256 == text_sha256 {
            return true;
        }
        let mut quoted = sources
            .iter()
            .flat_map(|quoted| quoted.message_ids.iter().map(move |id| (&quoted.source, id)))
            .peekable();
        let is_known = |(source, id): (&Source, &String)| {
            self.sources.iter().any(|known| known.source == *source && known.message_ids.contains(id))
        };
        self.kind == TombstoneKind::Deleted && quoted.peek().is_some() && quoted.all(is_known)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn quoted(source: &str, ids: &[&str]) -> Quoted {
        let message_ids = ids.iter().map(|id| (*id).to_owned()).collect();
        Quoted { source: source.parse().unwrap(), message_ids }
    }

    fn tombstone(kind: TombstoneKind) -> Tombstone {
        Tombstone {
            fact_id: FactId::from_uuid(Uuid::nil()),
            kind,
            sources: vec![quoted("ext:a", &["1", "2"]), quoted("ext:b", &["3"])],
            shingles: vec![1, 2],
            telling: vec![3, 4],
            text_sha256: text_sha256("The user lives in Bonn."),
            date: "2026-11-26".parse().unwrap(),
        }
    }

    #[test]
    fn a_deleted_fact_and_its_messages_stay_away() {
        let deleted = tombstone(TombstoneKind::Deleted);
        let by = FactId::from_uuid(Uuid::from_u128(1));
        let corrected = tombstone(TombstoneKind::Corrected { by });
        let same = text_sha256(" the USER lives, in\n“Bonn” ");
        let other = text_sha256("The user lives in Berlin.");
        assert!(deleted.keeps_away(&same, &[]) && corrected.keeps_away(&same, &[quoted("ext:z", &["9"])]));
        for (sources, expected) in [
            (vec![quoted("ext:a", &["1"])], true),
            (vec![quoted("ext:a", &["2", "1"]), quoted("ext:b", &["3"])], true),
            (vec![quoted("ext:a", &["1", "4"])], false),
            (vec![quoted("ext:a", &["1"]), quoted("ext:b", &["1"])], false),
            (vec![quoted("ext:c", &["1"])], false),
            (vec![], false),
            (vec![quoted("ext:a", &[])], false),
        ] {
            assert_eq!(deleted.keeps_away(&other, &sources), expected, "{sources:?}");
            assert!(!corrected.keeps_away(&other, &sources));
        }
    }

    #[test]
    fn the_format_never_changes() {
        let by = FactId::from_uuid(Uuid::from_u128(1));
        let stored = serde_json::to_value(tombstone(TombstoneKind::Corrected { by })).unwrap();
        assert_eq!(
            stored,
            json!({
                "fact_id": "fct_00000000000000000000000000000000",
                "kind": "corrected",
                "by": "fct_00000000000000000000000000000001",
                "sources": [{"source": "ext:a", "message_ids": ["1", "2"]}, {"source": "ext:b", "message_ids": ["3"]}],
                "shingles": [1, 2],
                "telling": [3, 4],
                "text_sha256": stored["text_sha256"],
                "date": "2026-11-26",
            })
        );
        assert_eq!(
            serde_json::from_value::<Tombstone>(stored).unwrap(),
            tombstone(TombstoneKind::Corrected { by })
        );
        let deleted = Tombstone { telling: Vec::new(), ..tombstone(TombstoneKind::Deleted) };
        let stored = serde_json::to_value(&deleted).unwrap();
        assert_eq!((&stored["kind"], stored.get("telling")), (&json!("deleted"), None));
        assert_eq!(serde_json::from_value::<Tombstone>(stored).unwrap(), deleted);
        assert_eq!(normal("It’s  José – 1,500 €!"), "it s jose 1 500");
        assert_eq!(normal("?!  …"), "?! …");
        assert_ne!(text_sha256("👍"), text_sha256("👎"));
    }

    proptest! {
        #[test]
        fn a_normal_text_is_its_own_normal_text(text in any::<String>()) {
            let once = normal(&text);
            prop_assert_eq!(normal(&once), once);
        }
    }
}
