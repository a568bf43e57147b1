//! Texts and names: how they are checked, quoted, compared and explained.
//!
//! - `canonical`: JSON in one form, so that equal values have equal hashes
//! - [`charset`]: the characters of an answer
//! - [`json_schema`]: the JSON Schemas of replies, and the check of values against them
//! - [`names`]: names by which a person tells things apart
//! - [`quoting`]: text of others within a prompt
//! - [`wording`]: serde's error messages in words for people

pub(crate) mod canonical;
pub mod charset;
pub mod json_schema;
pub mod names;
pub mod quoting;
pub mod wording;
