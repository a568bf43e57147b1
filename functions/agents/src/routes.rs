//! All routes of this function.

use crate::{agents, history, models, overview, practices};

shared::routes!(in agents, history, models, overview, practices);
