//! Tests of the index as a whole, on a small theme.

mod changes;
mod harbour;
mod hostile;
mod questions;

use super::ThemeIndex;

fn harbour() -> ThemeIndex {
    ThemeIndex::build(harbour::FILES.iter().copied()).unwrap()
}
