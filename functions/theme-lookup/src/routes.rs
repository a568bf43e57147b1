//! All routes of the function. The handlers are in the files of their subjects.

use crate::{answers, changes, files, import, projects};

shared::routes!(in projects, files, import, answers, changes);
