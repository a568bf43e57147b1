//! Which files and lines of a shop's theme a request is about.

pub mod path;
pub mod scan;
pub mod text;
