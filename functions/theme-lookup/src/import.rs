//! The routes of imports and of the map's state.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::ids::{ImportId, ProjectId};
use domain::projects::theme::ImportState;
use shared::edge::extract::{Body, Caller, Id, Ids, header_text, parse_json};
use shared::flows::uploads::NewUpload;
use shared::{Cx, Error, Result};
use themes::import::{self, ImportView};
use themes::index::{self, MapStatus};

shared::routes!(begin, read, status);

/// Import a whole theme
///
/// A zip (`application/zip`, up to 4.4 MB) replaces all files of the project at once. The answer is 200 when the import
/// is done, or 202 with a `Location` for its progress. For a larger archive, send JSON with its size. The answer says
/// where to upload it within five minutes, and the import begins with the upload. A folder around all files is removed,
/// and hidden files are left out.
#[utoipa::path(
    post, path = "/projects/{project_id}/import", tag = "themes", operation_id = "import_theme",
    params(ProjectId),
    request_body(content((Vec<u8> = "application/zip"), (NewUpload = "application/json"))),
    responses(
        (status = 200, description = "It is done", body = ImportView),
        (status = 202, description = "The import is in progress, or waits for its upload", body = ImportView),
    ),
)]
async fn begin(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response> {
    let kind = header_text(&headers, header::CONTENT_TYPE).unwrap_or_default();
    let import = match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/json" => import::upload(&cx, &caller.owner, project, parse_json(&body)?).await?,
        "application/zip" | "application/x-zip-compressed" | "application/octet-stream" => {
            import::inline(&cx, &caller.owner, project, body).await?
        }
        _ => {
            return Err(Error::Malformed {
                status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
                code: "unsupported_media_type",
                message: "the body must be a zip (`application/zip`), or JSON with the size of an archive to upload"
                    .to_owned(),
            });
        }
    };
    let is_done = import.import.state == ImportState::Done;
    let place = format!("/projects/{project}/imports/{}", import.import.import_id);
    let status = if is_done { StatusCode::OK } else { StatusCode::ACCEPTED };
    let mut response = (status, axum::Json(import)).into_response();
    response.headers_mut().extend(HeaderValue::try_from(place).ok().map(|place| (header::LOCATION, place)));
    Ok(response)
}

/// Read the state of an import
///
/// Available for a week.
#[utoipa::path(
    get, path = "/projects/{project_id}/imports/{import_id}", tag = "themes", operation_id = "read_theme_import",
    params(ProjectId, ImportId),
    responses((status = 200, body = ImportView)),
)]
async fn read(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, id): Ids<ProjectId, ImportId>,
) -> Result<axum::Json<ImportView>> {
    import::read(&cx, &caller.owner, project, id).await.map(axum::Json)
}

/// Read the state of the map
///
/// Whether the stored map is up to date, which places could not be parsed, and what a model has described.
#[utoipa::path(
    get, path = "/projects/{project_id}/map/status", tag = "themes", operation_id = "read_theme_map_status",
    params(ProjectId),
    responses((status = 200, body = MapStatus)),
)]
async fn status(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
) -> Result<axum::Json<MapStatus>> {
    index::status(&cx, &caller.owner, project).await.map(axum::Json)
}
