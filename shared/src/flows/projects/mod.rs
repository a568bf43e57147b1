//! What a project has beside its theme: context documents and living documents. And what wakes the indexer of its theme.

pub mod documents;
pub mod indexing;
pub mod living;
