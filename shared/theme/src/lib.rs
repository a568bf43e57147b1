//! Finds the files and lines of a shop's theme that a request is about, and checks the theme.
//!
//! Everything here is a pure function or a plain type, as in the crate `domain`. Neither crate uses the other. The crate
//! `shared` uses both.
//!
//! A theme is read file by file ([`scan`]) into records. A record depends only on its file's path and bytes. Everything
//! else is derived from the records: postings, the dependency [`graph`], the texts of translation keys. So a change of
//! one file replaces one record and repeats the derivation, and the result always equals a full index.
//!
//! - [`ThemeIndex`]: built from files, updated file by file ([`index`])
//! - [`lookup`]: files, lines, neighbours and edit order for a request; [`rank`] holds all weights
//! - [`history`]: what was asked and edited before, as an argument of a lookup
//! - [`repo_map`]: an outline within a token budget
//! - [`describe`]: the map, file by file; [`gating`]: which parts of a theme an agent should see
//! - [`enrich`]: what a model may add to the map; nothing else here depends on it
//! - [`check`]: what is wrong with a theme
//! - [`strict`]: which places of a file Shopify refuses
//! - [`fix`]: mends them
//! - [`update`]: updates the index of one set of files to another set
//! - [`blob`]: the serialized index
//! - [`archive`]: which entries of an archive are a theme
//! - [`answers`]: all this, in the shapes of the API

pub mod answers;
pub mod archive;
pub mod blob;
pub mod check;
mod chunks;
mod cues;
pub mod describe;
pub mod enrich;
mod fields;
pub mod fix;
pub mod gating;
pub mod graph;
pub mod history;
pub mod index;
pub mod lookup;
pub mod path;
mod plain_words;
mod postings;
mod priors;
mod query;
mod ranges;
pub mod rank;
mod record;
pub mod repo_map;
pub mod scan;
mod scope;
pub mod strict;
mod synonyms;
pub mod text;
pub mod update;
mod words;

pub use history::History;
pub use index::ThemeIndex;
pub use query::QueryWeights;
pub use ranges::RangeWeights;

#[cfg(test)]
mod tests;
