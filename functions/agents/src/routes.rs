//! All routes of this function.

use crate::{agents, history, models};

shared::routes!(in agents, history, models);
