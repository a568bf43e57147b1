//! After any changes, the index equals a full index of the resulting files.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{harbour, harbour::FILES};
use crate::ThemeIndex;
use crate::blob::{BlobError, VERSION};

#[derive(Clone, Debug)]
enum Change {
    Replace(usize, usize),
    Remove(usize),
    Rename(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let file = 0..FILES.len();
    prop_oneof![
        (file.clone(), file.clone()).prop_map(|(path, content)| Change::Replace(path, content)),
        file.clone().prop_map(Change::Remove),
        (file.clone(), file).prop_map(|(from, to)| Change::Rename(from, to)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn changes_give_the_same_index_as_a_full_build(changes in proptest::collection::vec(change(), 1..8)) {
        let mut files: BTreeMap<&str, &str> = FILES.iter().step_by(2).copied().collect();
        let mut index = ThemeIndex::build(files.clone()).unwrap();
        for change in changes {
            match change {
                Change::Replace(path, content) => {
                    files.insert(FILES[path].0, FILES[content].1);
                    index.replace(FILES[path].0, FILES[content].1.as_bytes()).unwrap();
                }
                Change::Remove(path) => {
                    let was_there = files.remove(FILES[path].0).is_some();
                    prop_assert_eq!(index.remove(FILES[path].0), was_there);
                }
                Change::Rename(from, to) => {
                    let content = files.remove(FILES[from].0).unwrap_or(FILES[from].1);
                    files.insert(FILES[to].0, content);
                    index.rename(FILES[from].0, FILES[to].0, content.as_bytes()).unwrap();
                }
            }
        }
        let full = ThemeIndex::build(files).unwrap();
        let loaded = ThemeIndex::from_blob(&index.to_blob()).unwrap();
        prop_assert!(index.to_blob() == full.to_blob());
        for request in ["cart drawer close", "der Warenkorb", "header menu sticky", "price on sale"] {
            let expected = full.lookup(request, None, 10);
            prop_assert_eq!(&index.lookup(request, None, 10), &expected);
            prop_assert_eq!(&loaded.lookup(request, None, 10), &expected);
        }
        let edges: Vec<_> = full.edges().collect();
        prop_assert_eq!(index.edges().collect::<Vec<_>>(), edges.clone());
        prop_assert_eq!(loaded.edges().collect::<Vec<_>>(), edges);
    }

    #[test]
    fn a_damaged_blob_is_detected(at in 0_usize..20_000, flip in 1_u8..=255) {
        let mut blob = harbour().to_blob();
        let at = at % blob.len();
        blob[at] ^= flip;
        prop_assert!(ThemeIndex::from_blob(&blob).is_err());
        prop_assert!(ThemeIndex::from_blob(&blob[..at]).is_err());
    }
}

#[test]
fn a_blob_of_another_kind_or_version_is_detected() {
    let error = |blob: &[u8]| ThemeIndex::from_blob(blob).err();
    assert_eq!(error(b""), Some(BlobError::NotAnIndex));
    assert_eq!(error(&[0; 64]), Some(BlobError::NotAnIndex));
    let mut blob = harbour().to_blob();
    blob[4..6].copy_from_slice(&(VERSION + 1).to_le_bytes());
    assert_eq!(error(&blob), Some(BlobError::Version(VERSION + 1)));
    blob[4..6].copy_from_slice(&VERSION.to_le_bytes());
    *blob.last_mut().unwrap() ^= 1;
    assert_eq!(error(&blob), Some(BlobError::Checksum));
    // Data with a valid checksum may still be invalid. It is refused, too.
    let mut nonsense = blob[..22].to_vec();
    nonsense.extend([0xFF; 40]);
    let digest = <sha2::Sha256 as sha2::Digest>::digest(&nonsense[22..]);
    nonsense[6..22].copy_from_slice(&digest[..16]);
    assert_eq!(error(&nonsense), Some(BlobError::Content));
}
