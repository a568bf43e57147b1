//! Areas that are crates of their own above this one, and what this crate asks them.
//!
//! This crate knows the records of an area, because exports, deletions and the manual list all records. It does not know what is valid
//! in them. A function names its areas in its declaration ([`Function::areas`](crate::runtime::function::Function::areas)), and the
//! [`Cx`](crate::context::Cx) has them.

use serde_json::Value;

/// What an area knows about its own data. An import of an account asks it, because an archive comes from outside.
pub struct Area {
    pub name: &'static str,
    /// Whether a record is valid. The first argument is the name of its kind. The error says what is wrong.
    pub check_record: fn(&str, &Value) -> Result<(), String>,
    /// Whether an object is valid. The first argument is its key without the owner, in parts. The error says what is wrong.
    pub check_object: fn(&[&str], &[u8]) -> Result<(), String>,
}

/// The areas that a function knows.
pub type Areas = &'static [&'static Area];

/// What is wrong with a record, if an area knows its kind.
pub(crate) fn check_record(areas: Areas, kind: &str, record: &Value) -> Result<(), String> {
    areas.iter().try_for_each(|area| (area.check_record)(kind, record))
}

/// What is wrong with an object, if an area knows its key.
pub(crate) fn check_object(areas: Areas, key: &[&str], content: &[u8]) -> Result<(), String> {
    areas.iter().try_for_each(|area| (area.check_object)(key, content))
}
