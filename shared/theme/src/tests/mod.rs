//! Tests of the whole index on a small theme.

mod changes;
pub(super) mod harbour;
mod history;
mod hostile;
mod questions;
mod repeated;
mod scope;
mod unused;

use super::ThemeIndex;

pub(super) fn harbour() -> ThemeIndex {
    ThemeIndex::build(harbour::FILES.iter().copied()).unwrap()
}
