//! All routes of this function.

use crate::{agents, models};

shared::routes!(in agents, models);
