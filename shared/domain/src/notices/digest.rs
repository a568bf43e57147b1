//! The digest of a day: what happened, by kind, in a bounded number of lines.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{About, NoticeKey, NoticeKind};

/// The most lines of a digest. What is left out is counted.
pub const MAX_LINES: usize = 50;

/// A line of a digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestItem {
    pub key: NoticeKey,
    pub about: About,
    /// How many events it says.
    pub count: u32,
    /// It is right again.
    pub is_over: bool,
    /// When the newest event was.
    pub last_at: Timestamp,
}

/// The lines of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub kind: NoticeKind,
    /// The newest first.
    pub lines: Vec<DigestItem>,
}

/// What is sent once a day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// In the order of the kinds: what needs a person comes first.
    pub groups: Vec<Group>,
    /// How many lines were left out.
    pub more: usize,
}

impl Digest {
    /// Nothing has happened, so nothing is sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// "3 failed, 12 succeeded", with the lines that were left out.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.groups.iter().map(|group| group.lines.len()).sum()
    }
}

/// Groups the lines. At most [`MAX_LINES`] are kept; less important kinds are left out first.
#[must_use]
pub fn digest(mut items: Vec<DigestItem>) -> Digest {
    items.sort_by(|a, b| {
        a.key.kind.cmp(&b.key.kind).then(b.last_at.cmp(&a.last_at)).then_with(|| a.key.cmp(&b.key))
    });
    let more = items.len().saturating_sub(MAX_LINES);
    items.truncate(MAX_LINES);
    let mut groups: Vec<Group> = Vec::new();
    for item in items {
        match groups.last_mut() {
            Some(group) if group.kind == item.key.kind => group.lines.push(item),
            _ => groups.push(Group { kind: item.key.kind, lines: vec![item] }),
        }
    }
    Digest { groups, more }
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, LeadsTo};
    use super::*;

    #[test]
    fn lines_are_grouped_bounded_and_the_rest_is_counted() {
        let item = |kind, n: i64| DigestItem {
            key: NoticeKey { kind, action_id: None, cause: Cause::new(&format!("c{n}")) },
            about: About::new("Report", "", LeadsTo::Watch),
            count: 1,
            is_over: false,
            last_at: Timestamp::from_second(n).unwrap(),
        };
        let mut items: Vec<DigestItem> = (0..60).map(|n| item(NoticeKind::Succeeded, n)).collect();
        items.extend((0..2).map(|n| item(NoticeKind::Failed, n)));
        let digest = digest(items);
        assert_eq!((digest.lines(), digest.more), (50, 12));
        assert_eq!(digest.groups[0].kind, NoticeKind::Failed);
        assert_eq!(digest.groups[1].lines.len(), 48);
        let newest: Vec<i64> = digest.groups[1].lines.iter().map(|line| line.last_at.as_second()).collect();
        assert!(newest.is_sorted_by(|a, b| a > b) && newest[0] == 59);
        assert!(super::digest(Vec::new()).is_empty());
    }
}
