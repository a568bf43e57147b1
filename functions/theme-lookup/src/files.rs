//! The routes of a theme's files.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::ids::ProjectId;
use domain::validate::FieldErrors;
use serde::Deserialize;
use shared::edge::extract::{Body, Caller, Id, Ids, IfMatch, Json, Query};
use shared::edge::respond::Tagged;
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};
use themes::files::{self, FileContent, FileView, Outline, Rename};
use themes::grep::{self, GrepAnswer, GrepQuery};
use utoipa::IntoParams;

use crate::answers::Which;

shared::routes!(list, search, outline, read, put, rename, delete);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only paths that match this pattern: `*` matches within a part, `**` across parts, `?`, `{a,b}`. For example
    /// `sections/*.liquid`.
    glob: Option<String>,
}

/// List the files of a theme, by path
///
/// With a `glob`, a page may be short although there are more.
#[utoipa::path(
    get, path = "/projects/{project_id}/files", tag = "themes", operation_id = "list_theme_files",
    params(ProjectId, PageQuery, Filter),
    responses((status = 200, body = Page<FileView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(filter): Query<Filter>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<FileView>>> {
    let glob = filter.glob.as_deref();
    files::list(&cx, &caller.owner, project, glob, &page).await.map(axum::Json)
}

/// Search in the files of a theme
///
/// Searches for a text or a regular expression, line by line. Expressions run in linear time, so they have neither
/// backreferences nor lookaround.
#[utoipa::path(
    get, path = "/projects/{project_id}/grep", tag = "themes", operation_id = "grep_theme_files",
    params(ProjectId, GrepQuery),
    responses((status = 200, body = GrepAnswer)),
)]
async fn search(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(query): Query<GrepQuery>,
) -> Result<axum::Json<GrepAnswer>> {
    grep::grep(&cx, &caller.owner, project, &query).await.map(axum::Json)
}

/// Read the outline of a file
///
/// Its named parts with their lines: blocks of Liquid, settings and blocks of a schema, CSS rules, functions, elements with an id. At most 300;
/// of more, the longest. `edit_node` replaces a part by its kind and name.
#[utoipa::path(
    get, path = "/projects/{project_id}/outline", tag = "themes", operation_id = "read_theme_file_outline",
    params(ProjectId, Which),
    responses((status = 200, body = Outline)),
)]
async fn outline(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(which): Query<Which>,
) -> Result<axum::Json<Outline>> {
    files::outline(&cx, &caller.owner, project, &which.path).await.map(axum::Json)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Part {
    /// Only these lines, from 1: `10-25`, `10-` or `10`.
    #[param(example = "10-25")]
    lines: Option<String>,
}

/// Read a file
///
/// The content, unchanged. `ETag` is the version, `x-content-sha256` the content's hash.
#[utoipa::path(
    get, path = "/projects/{project_id}/files/{*path}", tag = "themes", operation_id = "read_theme_file",
    params(ProjectId, ("path" = String, Path), Part),
    responses(
        (status = 200, description = "The content, by its kind", content(
            (String = "text/plain"), (serde_json::Value = "application/json"), (Vec<u8> = "application/octet-stream"),
        ), headers(
            ("ETag" = String, description = "The version, for `If-Match`"),
            ("x-content-sha256" = String, description = "SHA-256 of the whole content, in hexadecimal"),
        )),
    ),
)]
async fn read(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, path): Ids<ProjectId, String>,
    Query(part): Query<Part>,
) -> Result<Response> {
    let content = files::read(&cx, &caller.owner, project, &path).await?;
    Ok(match part.lines {
        None => download(content),
        Some(lines) => {
            let bytes = cut(&content.bytes, &lines)?;
            download(FileContent { bytes, ..content })
        }
    })
}

/// Lines `from-to` of a content, with their line ends.
fn cut(content: &Bytes, lines: &str) -> Result<Bytes, FieldErrors> {
    let refused = || FieldErrors::one("lines", format!("must be like 10-25, 10- or 10, is {lines:?}"));
    let number = |text: &str| text.parse::<usize>().ok().filter(|&n| n > 0).ok_or_else(refused);
    let (from, to) = match lines.split_once('-') {
        None => (number(lines)?, number(lines)?),
        Some((from, "")) => (number(from)?, usize::MAX),
        Some((from, to)) => (number(from)?, number(to)?),
    };
    if to < from {
        return Err(refused());
    }
    let mut ends = content.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let start = if from == 1 { Some(0) } else { ends.nth(from - 2) };
    let start = start.unwrap_or(content.len());
    let end = ends.nth(to - from).unwrap_or(content.len());
    Ok(content.slice(start..end))
}

/// Sends the content with its type, but never as a page that could run scripts.
fn download(FileContent { file, bytes }: FileContent) -> Response {
    content(&file.path, bytes, file.sha256, Some(file.version))
}

/// The content of a file. `version` is its version in the theme.
pub(crate) fn content(path: &str, bytes: Bytes, sha256: String, version: Option<u64>) -> Response {
    let kind = match path.rsplit('.').next().unwrap_or_default() {
        "json" => "application/json",
        "css" | "scss" | "js" | "mjs" | "liquid" | "md" | "txt" | "html" | "svg" | "xml" => {
            "text/plain; charset=utf-8"
        }
        _ => "application/octet-stream",
    };
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (header::CACHE_CONTROL, "private, no-cache"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let tag = version.map(|version| (header::ETAG, format!("\"{version}\"")));
    for (name, value) in tag.into_iter().chain([(HeaderName::from_static("x-content-sha256"), sha256)]) {
        headers.extend(HeaderValue::try_from(value).ok().map(|value| (name, value)));
    }
    response
}

/// Write a file
///
/// The body is the content, of any type, up to 4.4 MB. Larger files need an import. Writing the same content
/// again changes nothing. The map is updated within seconds; answers always use the current files.
#[utoipa::path(
    put, path = "/projects/{project_id}/files/{*path}", tag = "themes", operation_id = "put_theme_file",
    params(ProjectId, ("path" = String, Path), IfMatch),
    request_body(content = String, content_type = "text/plain"),
    responses((status = 200, body = FileView), (status = 201, body = FileView)),
)]
async fn put(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, path): Ids<ProjectId, String>,
    if_match: Option<IfMatch>,
    Body(content): Body,
) -> Result<Response> {
    let stored = files::put(&cx, &caller.owner, project, &path, if_match, content).await?;
    let status = if stored.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Tagged { version: stored.file.version, body: stored.file }).into_response())
}

/// Rename a file
///
/// The content is kept. References to the file in other files are not changed.
#[utoipa::path(
    patch, path = "/projects/{project_id}/files/{*path}", tag = "themes", operation_id = "rename_theme_file",
    params(ProjectId, ("path" = String, Path), IfMatch),
    responses((status = 200, body = FileView)),
)]
async fn rename(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, path): Ids<ProjectId, String>,
    if_match: Option<IfMatch>,
    Json(to): Json<Rename>,
) -> Result<Tagged<FileView>> {
    let file = files::rename(&cx, &caller.owner, project, &path, if_match, &to.path).await?;
    Ok(Tagged { version: file.version, body: file })
}

/// Delete a file
///
/// The map is updated within seconds.
#[utoipa::path(
    delete, path = "/projects/{project_id}/files/{*path}", tag = "themes", operation_id = "delete_theme_file",
    params(ProjectId, ("path" = String, Path), IfMatch),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, path): Ids<ProjectId, String>,
    if_match: Option<IfMatch>,
) -> Result<StatusCode> {
    files::delete(&cx, &caller.owner, project, &path, if_match).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_out() {
        let content = Bytes::from_static(b"one\ntwo\nthree");
        let check = |lines: &str, expected: &str| {
            assert_eq!(cut(&content, lines).unwrap(), expected.as_bytes(), "{lines}");
        };
        check("1", "one\n");
        check("1-2", "one\ntwo\n");
        check("2-", "two\nthree");
        check("3-9", "three");
        check("4-9", "");
        for wrong in ["", "0", "2-1", "a", "-3", "1-2-3"] {
            assert!(cut(&content, wrong).is_err(), "{wrong}");
        }
    }
}
