//! All routes of the function; the handlers are with their subjects.

shared::routes!(in crate::documents, crate::hooks, crate::logs, crate::recall);
