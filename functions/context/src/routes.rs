//! All routes of the function; the handlers are with their subjects.

use shared::Cx;
use utoipa_axum::router::OpenApiRouter;

pub fn router() -> OpenApiRouter<Cx> {
    OpenApiRouter::default()
        .merge(crate::documents::router())
        .merge(crate::hooks::router())
        .merge(crate::logs::router())
}
