//! All routes of the function; the handlers are with their subjects.

use shared::Cx;
use utoipa_axum::router::OpenApiRouter;

use crate::{answers, files, import, projects};

pub fn router() -> OpenApiRouter<Cx> {
    OpenApiRouter::default()
        .merge(projects::router())
        .merge(files::router())
        .merge(import::router())
        .merge(answers::router())
}
