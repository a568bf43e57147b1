//! Which files and lines of a shop's theme a request is about.
//!
//! A theme is read file by file ([`scan`]) into records, a function of each file's path and bytes alone. From the
//! records everything else is derived: postings, the dependency [`graph`], the texts that keys stand for. So a change
//! of one file is a new record and the same derivation, and can't end elsewhere than a full index does.
//!
//! - [`ThemeIndex`]: built from files, changed by one file ([`index`])
//! - [`lookup`]: files, lines, neighbours and edit order for a request; [`rank`] has every number it depends on
//! - [`repo_map`]: an outline within a token budget
//! - [`describe`]: the map, file by file; [`gating`]: what of a theme an agent should see
//! - [`enrich`]: what a model may add to the map; nothing here waits for it
//! - [`update`]: from the index of some files to that of others
//! - [`blob`]: the index as bytes

pub mod blob;
mod chunks;
mod cues;
pub mod describe;
pub mod enrich;
mod fields;
pub mod gating;
pub mod graph;
pub mod index;
pub mod lookup;
pub mod path;
mod plain_words;
mod postings;
mod query;
mod ranges;
pub mod rank;
mod record;
pub mod repo_map;
pub mod scan;
mod synonyms;
pub mod text;
pub mod update;
mod words;

pub use index::ThemeIndex;
pub use query::QueryWeights;
pub use ranges::RangeWeights;

#[cfg(test)]
mod tests;
