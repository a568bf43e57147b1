//! The guard in front of every route: it refuses requests that web pages make.
//!
//! A web page can make the browser of its reader send requests to a server on the reader's machine. Without authentication,
//! that server would obey the page. Three things reveal such a request:
//!
//! - `Host`: with DNS rebinding, a page lets its own name resolve to 127.0.0.1. The request still has that name as host.
//! - `Origin` and `Sec-Fetch-Site`: the browser sets them, and a page cannot change them. The server's own pages have its host and its
//!   port: another port of this machine may belong to any program. Pages of the origins in `LAMPLIGHTER_CORS_ORIGINS` are allowed.
//!   `/mcp` also takes calls from pages of other ports of this machine, because inspectors of MCP servers are such pages.
//! - `Content-Type`: without a preflight, a page can send a body to another origin only with a few types, which no route
//!   accepts, or without a type.
//!
//! With authentication, every call has a bearer token, which a browser never adds by itself. Then any `Host` and `Origin` is
//! allowed, because there may be a proxy or a custom domain in front. The exception is `/mcp`, whose protocol requires the
//! check of `Origin`. Behind API Gateway, the gateway checks `Host`.

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::uri::Authority;
use http::{HeaderMap, Method, Uri, header};

use crate::config::{AuthConfig, CorsConfig};
use crate::context::Cx;
use crate::edge::extract::{is_json, unsupported_type};
use crate::error::{Error, Result};

/// The middleware. `public` means that clients reach this port directly, without an API Gateway.
pub async fn layer(State((cx, public)): State<(Cx, bool)>, request: Request, next: Next) -> Response {
    match check(&cx.config.auth, &cx.config.cors, public, &request).and_then(|()| check_type(&request)) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// # Errors
/// 403 if the `Host` or the `Origin` is not allowed.
fn check<B>(auth: &AuthConfig, cors: &CorsConfig, public: bool, request: &http::Request<B>) -> Result<()> {
    let (headers, uri) = (request.headers(), request.uri());
    if public && matches!(auth, AuthConfig::Off) {
        if !calls_this_machine(headers, uri) {
            return Err(Error::Forbidden(
                "without authentication, this server accepts only requests for `localhost`, `127.0.0.1` or `[::1]`",
            ));
        }
        let pages = if uri.path() == "/mcp" { Pages::OfThisMachine } else { Pages::Own };
        if !is_navigation(request.method(), headers) && is_foreign_page(headers, pages, cors) {
            return Err(Error::Forbidden("pages of this origin may not call this server"));
        }
    }
    if uri.path() == "/mcp" && is_foreign_page(headers, Pages::OfThisMachine, cors) {
        return Err(Error::Forbidden("pages of this origin may not call this server"));
    }
    Ok(())
}

/// Whether a request names this machine as its host, and does not come from a page of another origin. For ports that only
/// this program uses.
#[must_use]
pub fn is_from_this_machine(headers: &HeaderMap, uri: &Uri) -> bool {
    calls_this_machine(headers, uri) && !is_foreign_page(headers, Pages::Own, &CorsConfig::default())
}

/// Whether the bucket may process a signed request. The checks are the same as for the routes, except for the content type.
#[must_use]
pub fn may_be_signed(auth: &AuthConfig, cors: &CorsConfig, headers: &HeaderMap, uri: &Uri) -> bool {
    let is_called = matches!(auth, AuthConfig::On(_)) || calls_this_machine(headers, uri);
    is_called && !is_foreign_page(headers, Pages::Own, cors)
}

fn calls_this_machine(headers: &HeaderMap, uri: &Uri) -> bool {
    let named = uri.authority().is_none_or(|named| is_this_machine(named.host()));
    named && host(headers).is_some_and(|host| is_this_machine(host.host()))
}

/// The host, if there is exactly one valid `Host` header.
pub(crate) fn host(headers: &HeaderMap) -> Option<Authority> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return None };
    let host: Authority = host.to_str().ok()?.parse().ok()?;
    (!host.as_str().contains('@')).then_some(host)
}

/// Which pages may call, besides those of the configured origins.
#[derive(Clone, Copy, PartialEq)]
enum Pages {
    /// Those that this server itself has sent.
    Own,
    /// These, and those of all servers of this machine.
    OfThisMachine,
}

/// Whether the request comes from a page that may not call.
fn is_foreign_page(headers: &HeaderMap, pages: Pages, cors: &CorsConfig) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter().peekable();
    if origins.peek().is_none() {
        // Browsers send no `Origin` with simple reads. For them, another port is the same site.
        return headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    }
    let own = host(headers);
    origins.any(|origin| {
        let is_allowed = |page: &Uri| {
            let is_of_this_machine = page.host().is_some_and(is_this_machine);
            own.as_ref().is_some_and(|own| is_page_of(page, own))
                || (pages == Pages::OfThisMachine && is_of_this_machine)
        };
        let page = origin.to_str().ok().filter(|origin| !origin.contains('@'));
        let page = page.and_then(|origin| origin.parse::<Uri>().ok());
        !cors.origins.contains(origin) && !page.as_ref().is_some_and(is_allowed)
    })
}

/// Whether a server with this host has sent the page with this origin. `localhost` and `127.0.0.1` are the same host.
fn is_page_of(origin: &Uri, server: &Authority) -> bool {
    let default = match origin.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        _ => return false,
    };
    let is_same_port = origin.port_u16().unwrap_or(default) == server.port_u16().unwrap_or(default);
    let is_same_host = origin.host().is_some_and(|host| {
        host.eq_ignore_ascii_case(server.host()) || (is_this_machine(host) && is_this_machine(server.host()))
    });
    is_same_port && is_same_host
}

/// Whether a person follows a link. The answer becomes a page of its own, and the page with the link cannot read it.
fn is_navigation(method: &Method, headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
    *method == Method::GET
        && !headers.contains_key(header::ORIGIN)
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || matches!(host, "127.0.0.1" | "[::1]")
}

/// Checks that a body has a content type that a page cannot send without a preflight. `PUT` needs no check, because the
/// method itself needs a preflight.
///
/// # Errors
/// 415 for other content types.
fn check_type(request: &Request) -> Result<()> {
    let headers = request.headers();
    let free = matches!(*request.method(), Method::PUT | Method::GET | Method::HEAD | Method::OPTIONS);
    // Mail programs and the page of an answer send a form. The token in the path is a credential that no other page has.
    let path = request.uri().path();
    let free = free || path.starts_with("/unsubscribe/") || path.starts_with("/answers/");
    if free || request.body().is_end_stream() || is_json(headers) || is_archive(headers) {
        return Ok(());
    }
    Err(unsupported_type())
}

/// Whether the content type is one of an archive.
#[must_use]
pub fn is_archive(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    ["application/zip", "application/x-zip-compressed", "application/octet-stream"]
        .iter()
        .any(|archive| essence.eq_ignore_ascii_case(archive))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> http::Request<()> {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[track_caller]
    fn check(auth: &AuthConfig, path: &str, headers: &[(&str, &str)], expected: bool) {
        let cors = CorsConfig { origins: vec!["https://app.example".parse().unwrap()] };
        let checked = super::check(auth, &cors, true, &request("POST", path, headers));
        assert_eq!(checked.is_ok(), expected, "{auth:?} {path} {headers:?}");
    }

    #[test]
    fn without_authentication_only_this_machine_calls() {
        let off = AuthConfig::Off;
        for path in ["/agents", "/mcp", "/health", "/nowhere"] {
            for (headers, expected) in [
                (&[("host", "127.0.0.1:9000")][..], true),
                (&[("host", "localhost:9000")], true),
                (&[("host", "LOCALHOST")], true),
                (&[("host", "[::1]:9000")], true),
                (&[], false),
                (&[("host", "evil.example")], false),
                (&[("host", "evil.example:9000"), ("origin", "http://evil.example:9000")], false),
                (&[("host", "localhost.evil.example")], false),
                (&[("host", "127.0.0.1.evil.example:9000")], false),
                (&[("host", "0.0.0.0:9000")], false),
                (&[("host", "evil.example@localhost")], false),
                (&[("host", "localhost"), ("origin", "http://evil.example@localhost")], false),
                (&[("host", "localhost"), ("host", "evil.example")], false),
                (&[("host", "localhost:9000"), ("origin", "http://localhost:6274")], path == "/mcp"),
                (&[("host", "localhost:9000"), ("origin", "http://localhost")], path == "/mcp"),
                (&[("host", "localhost:9000"), ("origin", "ftp://localhost:9000")], path == "/mcp"),
                (&[("host", "localhost:9000"), ("origin", "http://127.0.0.1:9000")], true),
                (&[("host", "localhost:443"), ("origin", "https://localhost")], true),
                (&[("host", "localhost"), ("origin", "http://localhost:80")], true),
                (&[("host", "localhost"), ("origin", "https://localhost:80")], path == "/mcp"),
                (&[("host", "[::1]:9000"), ("origin", "http://[::1]:9000")], true),
                (&[("host", "localhost"), ("origin", "http://evil.example")], false),
                (&[("host", "localhost"), ("origin", "https://app.example")], true),
                (&[("host", "localhost"), ("origin", "http://app.example")], false),
                (&[("host", "evil.example"), ("origin", "https://app.example")], false),
                (&[("host", "localhost"), ("origin", "null")], false),
                (&[("host", "localhost"), ("origin", "")], false),
                (&[("host", "localhost"), ("origin", "http://localhost.evil.example")], false),
                (
                    &[
                        ("host", "localhost"),
                        ("origin", "http://localhost"),
                        ("origin", "http://evil.example"),
                    ],
                    false,
                ),
                (&[("host", "localhost"), ("sec-fetch-site", "cross-site")], false),
                (&[("host", "localhost"), ("sec-fetch-site", "same-site")], false),
                (&[("host", "localhost"), ("sec-fetch-site", "same-origin")], true),
                (&[("host", "localhost"), ("sec-fetch-site", "none")], true),
            ] {
                check(&off, path, headers, expected);
            }
        }
    }

    #[test]
    fn only_own_and_configured_pages_use_signed_addresses() {
        let cors = CorsConfig { origins: vec!["https://app.example".parse().unwrap()] };
        for (host, origin, off, on) in [
            ("localhost:9000", "http://localhost:9000", true, true),
            ("localhost:9000", "http://localhost:3000", false, false),
            ("localhost:9000", "https://app.example", true, true),
            ("api.example", "https://api.example", false, true),
            ("api.example:444", "https://api.example", false, false),
            ("api.example", "http://localhost:9000", false, false),
        ] {
            let request = request("PUT", "/bucket/x", &[("host", host), ("origin", origin)]);
            for (auth, expected) in [(AuthConfig::Off, off), (AuthConfig::On(None), on)] {
                let may = may_be_signed(&auth, &cors, request.headers(), request.uri());
                assert_eq!(may, expected, "{auth:?} {host} {origin}");
            }
        }
    }

    #[test]
    fn with_authentication_any_host_is_allowed_and_mcp_checks_the_origin() {
        let on = AuthConfig::On(None);
        for (headers, expected) in [
            (&[][..], true),
            (&[("host", "api.example")], true),
            (&[("host", "api.example"), ("origin", "https://api.example")], true),
            (&[("host", "api.example"), ("origin", "http://localhost:6274")], true),
            (&[("host", "api.example"), ("origin", "https://evil.example")], false),
            (&[("host", "localhost"), ("origin", "null")], false),
        ] {
            check(&on, "/mcp", headers, expected);
            check(&on, "/agents", headers, true);
        }
    }

    #[test]
    fn behind_api_gateway_the_gateway_checks_the_host() {
        let gateway = [("host", "abc.execute-api.eu-central-1.amazonaws.com")];
        let asked = request("GET", "/agents", &gateway);
        assert!(super::check(&AuthConfig::Off, &CorsConfig::default(), false, &asked).is_ok());
        assert!(super::check(&AuthConfig::Off, &CorsConfig::default(), true, &asked).is_err());
    }

    #[test]
    fn a_link_may_be_followed_and_a_frame_may_not() {
        let followed = |method: &str, dest: &str| {
            let headers = [
                ("host", "localhost:9000"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", dest),
            ];
            super::check(&AuthConfig::Off, &CorsConfig::default(), true, &request(method, "/", &headers))
                .is_ok()
        };
        assert!(followed("GET", "document"));
        assert!(!followed("GET", "iframe"));
        assert!(!followed("POST", "document"));
    }

    #[test]
    fn a_body_has_its_type() {
        let check = |method: &str, kind: Option<&str>, body: &'static str, expected: bool| {
            let mut request = Request::builder().method(method).uri("/agents");
            if let Some(kind) = kind {
                request = request.header("content-type", kind);
            }
            let request = request.body(axum::body::Body::from(body)).unwrap();
            assert_eq!(check_type(&request).is_ok(), expected, "{method} {kind:?} {body:?}");
        };
        for method in ["POST", "PATCH", "DELETE"] {
            check(method, None, "", true);
            check(method, Some("text/plain"), "", true);
            check(method, None, "{}", false);
            check(method, Some("application/json; charset=utf-8"), "{}", true);
            check(method, Some("application/zip"), "PK", true);
            for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "x"] {
                check(method, Some(kind), "{}", false);
            }
        }
        check("PUT", Some("text/plain"), "a file", true);
    }
}
