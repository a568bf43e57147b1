//! The routes of the catalog itself.

use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{NAMES, OPENAPI_JSON};

shared::routes!(health, document);

/// The health and the version of the platform.
#[derive(Serialize, ToSchema)]
struct Health {
    #[schema(example = "ok")]
    status: &'static str,
    version: &'static str,
    functions: &'static [&'static str],
}

/// Check that the platform runs
///
/// Needs no credentials. Names the version and the functions.
#[utoipa::path(get, path = "/health", tag = "catalog", operation_id = "read_health", security(()), responses((status = 200, body = Health)))]
async fn health() -> axum::Json<Health> {
    axum::Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION"), functions: NAMES })
}

/// The OpenAPI document
///
/// OpenAPI 3.1, generated when this version was built. Needs no credentials.
#[utoipa::path(
    get, path = "/openapi.json", tag = "catalog", operation_id = "read_openapi", security(()),
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json")),
)]
async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI_JSON)
}
