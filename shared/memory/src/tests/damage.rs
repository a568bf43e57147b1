//! Bytes that are not a segment, or not one any more.

use super::*;
use crate::{Segment, SegmentError, Vector};

fn sample() -> Vec<u8> {
    let with_vector = |mut document: Document| {
        document.vector = Some(vec![0.5, -0.25, 1.0]);
        document
    };
    segment([
        Part {
            session: "s".to_owned(),
            ..part(
                "a",
                vec![
                    with_vector(said(
                        "1",
                        "Ada",
                        "2026-01-02T10:00:00Z",
                        "Yesterday we went to Oslo with two dogs.",
                    )),
                    with_vector(said(
                        "2",
                        "Bela",
                        "2026-01-02T10:01:00Z",
                        "Which dogs? Größe und Farbe, 北京",
                    )),
                ],
            )
        },
        part("b", vec![said("3", "", "", "Nothing happened in May 2024.")]),
        Part::deletion("c"),
    ])
}

/// Loads bytes, and searches and merges what they hold. Nothing of it may panic.
fn use_all(bytes: Vec<u8>) -> Result<(), SegmentError> {
    let index = Index::load(vec![bytes, segment([part("d", vec![said("4", "Ada", "", "dogs in Oslo")])])])?;
    let vector = [0.1, 0.2, 0.3];
    let vector = Some(Vector { model: "model", values: &vector });
    for text in ["dogs in Oslo yesterday", "When was Ada in 北京?", "May 2024", "größe"] {
        index.search(&Query { vector, limit: 100, ..query(text) });
    }
    let _ = index.merge();
    Ok(())
}

fn with_sum(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = crc32fast::hash(&bytes[12..]);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = sample();
    assert_eq!(use_all(bytes.clone()), Ok(()));
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(Segment::load(damaged).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn wrong_bytes_with_a_right_sum_never_panic() {
    let bytes = sample();
    let mut refused = 0;
    for at in 12..bytes.len() {
        for value in [0, 1, 0x7F, 0x80, 0xFF, bytes[at].wrapping_add(1)] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            refused += u32::from(use_all(with_sum(damaged)).is_err());
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn cut_and_extended_bytes_are_refused() {
    let bytes = sample();
    for len in 0..bytes.len() {
        let cut = bytes[..len].to_vec();
        assert!(Segment::load(cut.clone()).is_err(), "{len}");
        if len > 12 {
            assert_eq!(Segment::load(with_sum(cut)).err(), Some(SegmentError::Damaged), "{len}");
        }
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(Segment::load(with_sum(longer)).err(), Some(SegmentError::Damaged));
    let mut newer = bytes;
    newer[4] = 99;
    assert_eq!(Segment::load(newer).err(), Some(SegmentError::Version(99)));
    assert_eq!(Segment::load(b"something else".to_vec()).err(), Some(SegmentError::NotASegment));
}

#[test]
fn numbers_of_four_bytes_at_their_limits_never_panic() {
    let bytes = sample();
    for at in 12..bytes.len() - 4 {
        for value in [u32::MAX, u32::MAX - 1, 1 << 31, (1 << 31) - 1, 1 << 24] {
            let mut damaged = bytes.clone();
            damaged[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let _ = use_all(with_sum(damaged));
        }
    }
}
