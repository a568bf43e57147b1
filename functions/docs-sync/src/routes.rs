//! All routes of the function. The handlers are in the files of their subjects.

shared::routes!(in crate::commits, crate::documents, crate::hook, crate::sync);
