//! All routes of the function; the handlers are with their subjects.

use crate::{answers, files, import, projects};

shared::routes!(in projects, files, import, answers);
