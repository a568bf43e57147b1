//! All routes of the function. The handlers are in the files of their subjects.

use crate::chat;

shared::routes!(in chat);
