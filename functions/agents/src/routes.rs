//! All routes of this function.

use crate::{agents, history, models, overview};

shared::routes!(in agents, history, models, overview);
