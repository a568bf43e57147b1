//! What an area above this crate knows about its own data.
//!
//! This crate knows the records of an area, because exports, deletions and the manual list all records. It does not know what is valid
//! in them.

use serde_json::Value;

/// What an area knows about its own data. An import of an account asks it, because an archive comes from outside.
#[derive(Debug)]
pub struct DataRules {
    /// Whether a record is valid. The first argument is the name of its kind. The error says what is wrong.
    pub check_record: fn(&str, &Value) -> Result<(), String>,
    /// Whether an object is valid. The first argument is its key without the owner, in parts. The error says what is wrong.
    pub check_object: fn(&[&str], &[u8]) -> Result<(), String>,
}

/// The rules of all areas that a function knows.
pub type AllRules = Vec<&'static DataRules>;

/// What is wrong with a record, if an area knows its kind.
pub(crate) fn check_record(rules: &AllRules, kind: &str, record: &Value) -> Result<(), String> {
    rules.iter().try_for_each(|rules| (rules.check_record)(kind, record))
}

/// What is wrong with an object, if an area knows its key.
pub(crate) fn check_object(rules: &AllRules, key: &[&str], content: &[u8]) -> Result<(), String> {
    rules.iter().try_for_each(|rules| (rules.check_object)(key, content))
}
