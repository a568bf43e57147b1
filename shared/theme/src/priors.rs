//! The properties of files that raise their scores in every request.

use super::graph::Graph;
use super::record::FileRecord;

/// Properties of a file that do not depend on the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Priors {
    /// How many files need it, on a logarithmic scale, from 0 to 1.
    pub hub: f32,
    /// How long it is, on a logarithmic scale, from 0 to 1.
    pub size: f32,
    /// 1 for other people's code, otherwise 0.
    pub vendor: f32,
}

/// Code whose lines are longer than this on average is not written by hand.
const MAX_LINE_CHARACTERS: u64 = 250;

fn is_vendor(record: &FileRecord) -> bool {
    let name = record.path.strip_prefix("assets/").unwrap_or_default();
    u64::from(record.characters) > MAX_LINE_CHARACTERS * u64::from(record.lines)
        || record.path.contains(".min.")
        || name.starts_with("vendor")
        || name.starts_with("lib")
}

impl Priors {
    pub fn of(file: u32, record: &FileRecord, graph: &Graph) -> Self {
        let logarithmic = |value: f32, most: f32| value.min(most).ln_1p() / most.ln_1p();
        Self {
            hub: logarithmic(graph.incoming(file).len() as f32, 32.0),
            size: logarithmic(record.lines as f32, 2_000.0),
            vendor: f32::from(u8::from(is_vendor(record))),
        }
    }
}
