//! Extractors that validate a request before its handler runs, and refuse it with a problem.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Display;
use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, OptionalFromRequestParts, Path as AxumPath, Request};
use domain::text::wording::{UNKNOWN_FIELD, refusal};
use domain::validate::FieldErrors;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use lambda_http::RequestExt;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};

use crate::error::Error;
use crate::process::compute::Compute;
use crate::request::Invocation;

pub use crate::request::caller::{Actor, Caller, IfMatch};
pub use crate::store::Once;

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        parts.extensions.get::<Self>().cloned().ok_or(Error::Unauthenticated("this call needs credentials"))
    }
}

impl<S: Sync> FromRequestParts<S> for Invocation {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}

/// The stage of API Gateway that a request came through. A local server has none.
pub struct Stage(HashMap<String, String>);

impl Stage {
    /// A variable of the stage.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }
}

impl<S: Sync> FromRequestParts<S> for Stage {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let variables =
            parts.extensions.stage_variables_ref().into_iter().flat_map(|variables| variables.iter());
        Ok(Self(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }
}

/// A request without an `Idempotency-Key` gets [`Once::none`].
impl<S: Sync> FromRequestParts<S> for Once {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or(Self::none()))
    }
}

/// A JSON body.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned + Send + 'static, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Error;
    async fn from_request(request: Request, state: &S) -> Result<Self, Error> {
        parsed_body(request, state, parse_json).await.map(Self)
    }
}

/// A JSON body in a format that is not ours: fields that the route does not know are ignored.
pub struct ForeignJson<T>(pub T);

impl<T: DeserializeOwned + Send + 'static, S: Send + Sync> FromRequest<S> for ForeignJson<T> {
    type Rejection = Error;
    async fn from_request(request: Request, state: &S) -> Result<Self, Error> {
        parsed_body(request, state, |body| parse(body).map(|(parsed, _)| parsed)).await.map(Self)
    }
}

/// Reads a body that must be JSON.
async fn parsed_body<T: Send + 'static, S: Send + Sync>(
    request: Request,
    state: &S,
    parse: fn(&[u8]) -> Result<T, Error>,
) -> Result<T, Error> {
    if !is_json(request.headers()) {
        return Err(unsupported_type());
    }
    let compute = compute(&request);
    let body = read_body(request, state).await?;
    let bytes = body.len();
    compute.on_body(bytes, move || parse(&body)).await
}

/// A JSON body that may be absent. Then every field has its default.
pub struct OptionalJson<T>(pub T);

impl<T: DeserializeOwned + Default + Send + 'static, S: Send + Sync> FromRequest<S> for OptionalJson<T> {
    type Rejection = Error;
    async fn from_request(request: Request, state: &S) -> Result<Self, Error> {
        let typed = is_json(request.headers());
        let compute = compute(&request);
        let body = read_body(request, state).await?;
        let bytes = body.len();
        let parse = move || {
            if body.iter().all(u8::is_ascii_whitespace) {
                Ok(T::default())
            } else if typed {
                parse_json(&body)
            } else {
                Err(unsupported_type())
            }
        };
        compute.on_body(bytes, parse).await.map(Self)
    }
}

/// A body of any type, unchanged.
pub struct Body(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Error;
    async fn from_request(request: Request, state: &S) -> Result<Self, Error> {
        read_body(request, state).await.map(Self)
    }
}

/// Where large bodies are parsed. [`crate::edge::app`] adds it to the request. A request without it gets a new one.
fn compute(request: &Request) -> Compute {
    request.extensions().get::<Compute>().cloned().unwrap_or_default()
}

/// The error for a body whose type is not JSON.
pub(crate) fn unsupported_type() -> Error {
    Error::Malformed {
        status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
        code: "unsupported_media_type",
        message: "the body must be JSON, with `Content-Type: application/json`".to_owned(),
    }
}

/// Whether the content type is JSON.
#[must_use]
pub fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
        || essence.get(..12).is_some_and(|s| s.eq_ignore_ascii_case("application/"))
            && essence.to_ascii_lowercase().ends_with("+json")
}

async fn read_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Error> {
    Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Error::Malformed {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            code: "payload_too_large",
            message: format!("the body may have at most {} bytes", crate::request::limits::MAX_BODY_BYTES),
        },
        status => Error::Malformed { status, code: "unreadable_body", message: rejection.body_text() },
    })
}

/// Parses a JSON body that was read as [`Body`]. An unknown field is refused: otherwise a misspelt field would be
/// ignored silently.
///
/// # Errors
/// 400 with the invalid field.
pub fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    let (parsed, unknown) = parse(body)?;
    Ok(unknown.into_result(parsed)?)
}

/// Reads a JSON body, and reports the fields that the type does not have.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<(T, FieldErrors), Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let (mut track, mut unknown) = (serde_path_to_error::Track::new(), FieldErrors::default());
    let mut note = |path: serde_ignored::Path<'_>| unknown.add(unknown_field(&path), UNKNOWN_FIELD);
    let parsed = T::deserialize(serde_ignored::Deserializer::new(
        serde_path_to_error::Deserializer::new(&mut deserializer, &mut track),
        &mut note,
    ));
    let parsed = parsed.map_err(|error| match error.classify() {
        serde_json::error::Category::Data => {
            // serde adds line and column, which do not help the caller: a program has written the text.
            let message = error.to_string();
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(head, _)| head);
            Error::Invalid(refusal("body", &track.path().to_string(), message))
        }
        // If an enum value is not a string, serde reports invalid JSON although the text is valid.
        _ if serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() => {
            let path = track.path().to_string();
            Error::Invalid(refusal("body", &path, "must be one of the allowed values, as a string"))
        }
        _ => malformed_json(&error),
    })?;
    deserializer.end().map_err(|error| malformed_json(&error))?;
    // serde also reads an object from a list of its fields' values.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return Err(Error::Invalid(refusal("body", ".", "invalid type: sequence, expected struct Body")));
    }
    Ok((parsed, unknown))
}

/// Writes a field's name as other errors do: `messages[0].at`. `serde_ignored` marks options with `?`, which is not
/// part of the name.
fn unknown_field(path: &serde_ignored::Path<'_>) -> String {
    let mut name = String::new();
    for part in path.to_string().split('.').filter(|part| *part != "?") {
        match part.parse::<usize>() {
            Ok(index) => name.push_str(&format!("[{index}]")),
            Err(_) if name.is_empty() => name.push_str(part),
            Err(_) => name.extend([".", part]),
        }
    }
    name
}

fn malformed_json(error: &serde_json::Error) -> Error {
    Error::Malformed {
        status: StatusCode::BAD_REQUEST,
        code: "malformed_json",
        message: format!("the body is not valid JSON: {error}"),
    }
}

/// One id from the path. If the text is not an id of this kind, the answer is 404, as for an id of another owner.
pub struct Id<T>(pub T);

impl<T, S> FromRequestParts<S> for Id<T>
where
    T: FromStr + Send,
    S: Send + Sync,
{
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let AxumPath(text): AxumPath<String> = path(parts, state).await?;
        text.parse().map(Self).map_err(|_| Error::NotFound("resource"))
    }
}

/// Two ids from the path, in the order of the path.
pub struct Ids<A, B>(pub A, pub B);

impl<A, B, S> FromRequestParts<S> for Ids<A, B>
where
    A: FromStr + Send,
    B: FromStr + Send,
    S: Send + Sync,
{
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let AxumPath((a, b)): AxumPath<(String, String)> = path(parts, state).await?;
        match (a.parse(), b.parse()) {
            (Ok(a), Ok(b)) => Ok(Self(a, b)),
            _ => Err(Error::NotFound("resource")),
        }
    }
}

/// Three parts of the path, in its order.
pub struct Ids3<A, B, C>(pub A, pub B, pub C);

impl<A, B, C, S> FromRequestParts<S> for Ids3<A, B, C>
where
    A: FromStr + Send,
    B: FromStr + Send,
    C: FromStr + Send,
    S: Send + Sync,
{
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let AxumPath((a, b, c)): AxumPath<(String, String, String)> = path(parts, state).await?;
        match (a.parse(), b.parse(), c.parse()) {
            (Ok(a), Ok(b), Ok(c)) => Ok(Self(a, b, c)),
            _ => Err(Error::NotFound("resource")),
        }
    }
}

async fn path<T: DeserializeOwned + Send, S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<AxumPath<T>, Error> {
    <AxumPath<T> as FromRequestParts<S>>::from_request_parts(parts, state)
        .await
        .map_err(|_| Error::NotFound("resource"))
}

/// The query string.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let query = parts.uri.query().unwrap_or_default();
        let deserializer = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
        serde_path_to_error::deserialize(deserializer).map(Self).map_err(|error| {
            Error::Invalid(refusal("query", &error.path().to_string(), &error.inner().to_string()))
        })
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for IfMatch {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Error> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else { return Ok(None) };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(None);
        }
        let tag = text.strip_prefix("W/").unwrap_or(text);
        let digits = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag);
        // `parse` would also accept a sign.
        let version = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
        version.map(|version| Some(Self(version))).ok_or_else(|| {
            Error::Invalid(FieldErrors::one(
                "If-Match",
                "must be the version that you read, for example \"3\"",
            ))
        })
    }
}

/// The header for the OpenAPI document. The catalog describes it in one place, for all routes.
impl IntoParams for IfMatch {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let parameter = ParameterBuilder::new().name("If-Match").parameter_in(ParameterIn::Header);
        vec![parameter.build()]
    }
}

/// Reads one header as text.
#[must_use]
pub fn header_text(headers: &HeaderMap, name: impl Display) -> Option<String> {
    headers.get(name.to_string())?.to_str().ok().map(str::to_owned)
}
