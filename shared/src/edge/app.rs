//! The HTTP layers that every function shares: request ids, spans, authentication, rate limits, deleted accounts, scopes, idempotency,
//! and the answers to panics, unknown paths and wrong methods.

use std::convert::Infallible;
use std::time::Instant;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequestParts, MatchedPath, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use domain::accounts::scopes::Scope;
use domain::ids::Owner;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use lambda_http::request::RequestContext;
use tracing::Instrument;

use crate::config::AuthConfig;
use crate::context::Cx;
use crate::edge::extract::{Caller, header_text};
use crate::edge::{conditional, cors, deletions, guard, idempotency, query, rates};
use crate::error::{Error, Result, caught};
use crate::request::limits::MAX_BODY_BYTES;
use crate::request::{BASE_PATH, BasePath, CURRENT_REQUEST_ID, ClientAddress, FOR_OPENAI_CLIENT};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

impl ClientAddress {
    /// Behind API Gateway, the gateway says which domain was called. Otherwise it is the request's `Host`. A client can send
    /// any host. But the address goes only to this client, and a host that has other characters than a name is left out.
    fn of(parts: &Parts) -> Self {
        let base = parts.extensions.get::<BasePath>().map(|BasePath(base)| base.as_str()).unwrap_or_default();
        let gateway = match parts.extensions.get::<RequestContext>() {
            Some(RequestContext::ApiGatewayV1(context)) => context.domain_name.clone(),
            _ => None,
        };
        let origin = match gateway {
            Some(domain) => is_plain_host(&domain).then(|| format!("https://{domain}")),
            None => {
                let host = guard::host(&parts.headers).filter(|host| is_plain_host(host.as_str()));
                let is_https = header_text(&parts.headers, "x-forwarded-proto")
                    .is_some_and(|proto| proto.eq_ignore_ascii_case("https"));
                host.map(|host| format!("{}://{host}", if is_https { "https" } else { "http" }))
            }
        };
        Self(origin.unwrap_or_default() + base)
    }
}

impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> std::result::Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}

/// Whether a text has only characters of a host's name, its port or an address.
fn is_plain_host(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte);
    (1..=255).contains(&host.len()) && host.bytes().all(is_plain)
}

/// Authenticates a request by its headers.
pub type Authenticate = fn(Cx, HeaderMap) -> BoxFuture<'static, Result<Caller>>;

/// A function's routes with the shared layers. `authenticate` is for servers without an API Gateway in front.
pub fn app(cx: Cx, routes: Router<Cx>, authenticate: Option<Authenticate>) -> Router {
    let cors = cors::layer(&cx.config.cors);
    let app = routes
        .fallback(|| async { Error::NotFound("path") })
        .method_not_allowed_fallback(|| async {
            Error::Malformed {
                status: StatusCode::METHOD_NOT_ALLOWED,
                code: "method_not_allowed",
                message: "this path does not support this method".to_owned(),
            }
        })
        // One layer of several: the router wraps each route anew for every layer, and that is a large part of a start.
        .layer((
            from_fn(edge),
            from_fn_with_state((cx.clone(), authenticate.is_some()), guard::layer),
            DefaultBodyLimit::max(MAX_BODY_BYTES),
            from_fn_with_state((cx.clone(), authenticate), identify),
            from_fn_with_state(cx.clone(), rates::layer),
            from_fn_with_state(cx.clone(), deletions::layer),
            from_fn(check_call),
            from_fn_with_state(cx.clone(), idempotency::layer),
            from_fn(conditional::layer),
        ));
    // CORS is the outermost layer: a preflight carries no credentials, and pages must be able to read refusals.
    let app = match cors {
        Some(cors) => app.layer(cors),
        None => app,
    };
    app.with_state(cx)
}

/// Gives every request an id and a span, turns a panic into a problem, and completes `Location`.
async fn edge(request: Request, next: Next) -> Response {
    let id = request_id(&request);
    let trace = header_text(request.headers(), TRACEPARENT).filter(|value| is_traceparent(value));
    let route = request.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!(
        "request",
        request_id = %id,
        method = %request.method(),
        route,
        trace_id = trace.as_deref().map(|value| &value[3..35]),
    );
    let base = request.extensions().get::<BasePath>().map(|BasePath(base)| base.clone()).unwrap_or_default();
    let for_openai_client = request.uri().path().starts_with("/v1/");
    let began = Instant::now();
    let serve = async {
        let response = caught(next.run(request)).await.unwrap_or_else(IntoResponse::into_response);
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(status = response.status().as_u16(), ms, "answered");
        response
    };
    let serve = FOR_OPENAI_CLIENT.scope(for_openai_client, serve.instrument(span));
    let serve = BASE_PATH.scope(base.clone(), serve);
    let mut response = CURRENT_REQUEST_ID.scope(id.clone(), serve).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    // A browser must not interpret an answer as a script or a page because of text that a person wrote.
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    below(response.headers_mut(), &base);
    if let Some(value) = trace.and_then(|trace| HeaderValue::from_str(&trace).ok()) {
        response.headers_mut().insert(TRACEPARENT, value);
    }
    response
}

/// Adds the base path to a `Location` that names a route.
fn below(headers: &mut HeaderMap, base: &str) {
    let Some(location) = headers.get(header::LOCATION).and_then(|value| value.to_str().ok()) else { return };
    if location.starts_with('/')
        && let Ok(value) = HeaderValue::try_from(format!("{base}{location}"))
    {
        headers.insert(header::LOCATION, value);
    }
}

/// API Gateway's id if there is one, otherwise a new one. An id from the client is not used, because it may not be
/// unique.
fn request_id(request: &Request) -> String {
    let gateway = match request.extensions().get::<RequestContext>() {
        Some(RequestContext::ApiGatewayV1(context)) => context.request_id.clone(),
        _ => None,
    };
    gateway.unwrap_or_else(|| format!("req_{}", uuid::Uuid::now_v7().simple()))
}

fn is_traceparent(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    let hex = |text: &str, len: usize| text.len() == len && text.bytes().all(|b| b.is_ascii_hexdigit());
    matches!(parts[..], ["00", trace, span, flags] if hex(trace, 32) && hex(span, 16) && hex(flags, 2))
}

/// Adds the caller to the request. Behind API Gateway, the authorizer has identified the caller. A server without a
/// gateway does it here. With `LAMPLIGHTER_AUTH=off` the caller is `local`. A request without credentials has no
/// caller; handlers that need one refuse it.
async fn identify(
    State((cx, authenticate)): State<(Cx, Option<Authenticate>)>,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().insert(cx.compute.clone());
    let caller = match (caller_of(&cx, &request), authenticate) {
        (None, Some(authenticate)) if request.headers().contains_key(header::AUTHORIZATION) => {
            match authenticate(cx.clone(), request.headers().clone()).await {
                Ok(caller) => Some(caller),
                Err(error @ Error::Unauthenticated(_)) => {
                    return rates::unauthenticated(&cx, &request, error).await;
                }
                Err(error) => return error.into_response(),
            }
        }
        (caller, _) => caller,
    };
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
    next.run(request).await
}

/// The caller that does not depend on the request's own headers. An answer of the authorizer without a valid scope
/// identifies nobody.
fn caller_of(cx: &Cx, request: &Request) -> Option<Caller> {
    if matches!(cx.config.auth, AuthConfig::Off) {
        return Some(Caller { owner: Owner::new("local").ok()?, scope: Scope::Admin, key: None });
    }
    let fields = &request.extensions().get::<RequestContext>()?.authorizer()?.fields;
    let owner = Owner::new(fields.get("owner")?.as_str()?).ok()?;
    let key = fields.get("key_id").and_then(|key| key.as_str()?.parse().ok());
    Some(Caller { owner, scope: fields.get("scope")?.as_str()?.parse().ok()?, key })
}

/// Refuses a call that the caller's scope does not allow, or that has parameters that the route does not have. It decides for all
/// routes. A call without a caller goes on: its handler refuses it if it needs one.
async fn check_call(request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>();
    if let (Some(caller), Some(path)) = (caller, request.extensions().get::<MatchedPath>()) {
        let needed = Scope::needed(request.method().as_str(), path.as_str());
        if !caller.scope.includes(needed) {
            return Error::ScopeMissing { needed, held: caller.scope }.into_response();
        }
    }
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    if let Some(Err(errors)) = path.map(|path| query::check(&request, path)) {
        return Error::from(errors).into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(headers: &[(&'static str, &str)]) -> String {
        let mut request = http::Request::builder().uri("/v1/chat/completions");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(BasePath("/prod".to_owned()));
        ClientAddress::of(&parts).at("/proposals/p")
    }

    #[test]
    fn an_address_has_the_host_of_the_request_or_none() {
        let path = "/prod/proposals/p";
        for (headers, origin) in [
            (&[("host", "localhost:8080")][..], "http://localhost:8080"),
            (&[("host", "[::1]:8080")], "http://[::1]:8080"),
            (&[("host", "api.example.com"), ("x-forwarded-proto", "https")], "https://api.example.com"),
            (&[("host", "api.example.com"), ("x-forwarded-proto", "javascript")], "http://api.example.com"),
            (&[("host", "a.example"), ("host", "b.example")], ""),
            (&[("host", "user@a.example")], ""),
            (&[("host", "a.example/path")], ""),
            (&[("host", "a)b(c*.example")], ""),
            (&[], ""),
        ] {
            assert_eq!(address(headers), format!("{origin}{path}"), "{headers:?}");
        }
    }
}
