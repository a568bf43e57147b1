//! The page and its files.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use shared::edge::extract::Stage;
use shared::request::path_for_client;
use shared::{Cx, Error};

use crate::{FILES, page};

shared::routes!(read_page, open_reference, read_file);

const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const FOR_A_DAY: HeaderValue = HeaderValue::from_static("public, max-age=86400");
/// Browsers keep the page, and ask each time whether it is still the same.
const ASK: HeaderValue = HeaderValue::from_static("no-cache");

/// The console
///
/// The page for people. Needs no credentials: the page asks for them, and its calls send them.
#[utoipa::path(
    get, path = "/", tag = "console", operation_id = "read_console", security(()),
    responses(
        (status = 200, description = "The page", content_type = "text/html", body = String,
            headers(("ETag" = String, description = "The version of the page, for `If-None-Match`"))),
        (status = 304, description = "The client has this version of the page",
            headers(("ETag" = String, description = "The version of the page"))),
    ),
)]
async fn read_page(State(cx): State<Cx>, stage: Stage, headers: HeaderMap) -> Response {
    let html = page::html(&cx.config, &path_for_client(""), |name| stage.variable(name));
    let tag = page::tag(&html);
    let policy = page::policy(&cx.config);
    let mut response =
        if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            ([(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], html)
                .into_response()
        };
    let values = [
        (header::CACHE_CONTROL, Ok(ASK)),
        (header::ETAG, HeaderValue::try_from(tag)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::try_from(policy)),
        (header::REFERRER_POLICY, Ok(HeaderValue::from_static("no-referrer"))),
        (HeaderName::from_static("cross-origin-opener-policy"), Ok(HeaderValue::from_static("same-origin"))),
        (
            HeaderName::from_static("permissions-policy"),
            Ok(HeaderValue::from_static("camera=(), geolocation=(), microphone=()")),
        ),
    ];
    for (name, value) in values {
        if let Ok(value) = value {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Go to the API reference
///
/// A page of the console shows what `/openapi.json` describes. Needs no credentials.
#[utoipa::path(
    get, path = "/docs", tag = "console", operation_id = "open_reference", security(()),
    responses((status = 303, description = "To the page of the console", headers(("Location" = String, description = "The page")))),
)]
async fn open_reference() -> Redirect {
    // Relative, because the function does not know under which address it is reached.
    Redirect::to("./#/reference")
}

/// A file of the console
///
/// The script, the style sheet and the icons that the page names. Needs no credentials.
#[utoipa::path(
    get, path = "/console/{file}", tag = "console", operation_id = "read_console_file", security(()),
    params(("file" = String, Path, description = "The name of the file, as the page has it")),
    responses((status = 200, description = "The file", content(
        (String = "text/javascript"), (String = "text/css"), (String = "image/svg+xml"), (String = "image/png"),
        (String = "application/manifest+json"),
    ))),
)]
async fn read_file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Error> {
    let file = FILES.iter().find(|file| file.name == name).ok_or(Error::NotFound("file"))?;
    let compressed = file.compressed.as_ref().and_then(|compressed| {
        let forms = [("br", compressed.brotli), ("gzip", compressed.gzip)];
        forms.into_iter().find(|(coding, _)| accepts(&headers, coding))
    });
    let mut response = match compressed {
        Some((coding, bytes)) => {
            ([(header::CONTENT_ENCODING, HeaderValue::from_static(coding))], Bytes::from_static(bytes))
                .into_response()
        }
        None => Bytes::from_static(file.bytes).into_response(),
    };
    let sent = response.headers_mut();
    sent.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    sent.insert(header::CACHE_CONTROL, if file.immutable { FOR_EVER } else { FOR_A_DAY });
    if file.compressed.is_some() {
        sent.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
    Ok(response)
}

/// Whether the client understands a coding: it names it, and not with the quality 0.
fn accepts(headers: &HeaderMap, coding: &str) -> bool {
    let accepted =
        headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(coding));
        named && !parts.any(|quality| quality.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)))
    })
}
