//! Calls of the server.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use serde::Deserialize;
use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::{Agent, Body};

use crate::config::{ApiKey, Settings};
use crate::output::escaped;
use crate::project::ProjectId;
use crate::spool::Record;
use crate::url::Url;

/// How long a stream of events is read before the connection is made again. The server sends something every 15 seconds, so this
/// is also how long a connection that is dead goes unnoticed.
const STREAM: Duration = Duration::from_secs(90);

/// The longest sentence of a server that is shown, in characters.
const MAX_DETAIL: usize = 2_000;

/// The longest answer that is read into memory, in bytes: three times the longest tail of a log.
const MAX_ANSWER: u64 = 24 * 1024 * 1024;

/// How long to wait, at most.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub connect: Duration,
    /// For the complete answer, counted from the request.
    pub answer: Duration,
}

impl Patience {
    /// For a person who waits for the answer.
    pub const PERSON: Self = Self { connect: Duration::from_secs(5), answer: Duration::from_secs(60) };
}

/// A method that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Post,
    Patch,
}

/// A server with our credentials. Connections are kept between calls.
pub struct Server {
    agent: Agent,
    url: Url,
    key: Option<ApiKey>,
}

/// A complete, successful answer.
#[derive(Debug)]
pub struct ServerResponse {
    pub body: Vec<u8>,
    /// The version, for `If-Match`.
    pub etag: Option<String>,
}

/// The errors of a call.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("failed to reach {url}: {cause}")]
    Unreachable { url: String, cause: String },
    #[error("{url} did not answer in time")]
    Slow { url: String },
    #[error("{url} answered {status}{detail}")]
    Refused {
        url: String,
        status: u16,
        detail: String,
        conflict: Option<Box<Conflict>>,
        /// The seconds after which the same call may succeed.
        retry_after: Option<u64>,
    },
}

impl ServerError {
    /// Whether the server will always refuse this call because of its content. Other errors may be temporary: a server that is
    /// down, an expired key, a mistyped address.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 413 | 415 | 422, .. })
    }

    /// The code of a conflict.
    #[must_use]
    pub fn conflict(&self) -> Option<&str> {
        match self {
            Self::Refused { conflict, .. } => conflict.as_ref().map(|conflict| conflict.code.as_str()),
            Self::Unreachable { .. } | Self::Slow { .. } => None,
        }
    }

    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Unreachable { .. } | Self::Slow { .. } => None,
        }
    }
}

/// What a server says about a conflict, beside the sentence.
#[derive(Debug)]
pub struct Conflict {
    /// The code for programs.
    pub code: String,
    /// The current state.
    pub current: serde_json::Value,
}

/// The body of an error answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    code: String,
    detail: String,
    current: serde_json::Value,
    errors: Vec<FieldError>,
}

#[derive(Deserialize)]
struct FieldError {
    field: String,
    message: String,
}

impl Server {
    #[must_use]
    pub fn new(settings: &Settings, patience: Patience) -> Self {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // Only the configured server may answer, so redirects are not followed.
            .max_redirects(0)
            .user_agent(concat!("lamplighter/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(patience.connect))
            .timeout_send_body(Some(patience.answer))
            .timeout_recv_response(Some(patience.answer))
            .timeout_recv_body(Some(patience.answer));
        if settings.url.is_near() {
            config = config.proxy(None);
        }
        let (url, key) = (settings.url.clone(), settings.key.clone());
        Self { agent: config.build().into(), url, key }
    }

    /// Delivers the payload of a hook. Sending it twice acts once, because the record's id is its idempotency key.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn deliver(&self, record: &Record, project: Option<&ProjectId>) -> Result<(), ServerError> {
        let project = record.project.as_deref().or(project.map(ProjectId::as_str));
        let (session, at) = (record.session.as_deref(), record.at());
        let query = [("session", session), ("project", project), ("at", at.as_deref())];
        let url = self.url.at("/context/hooks", &query);
        let request = self
            .authorized(self.agent.post(&url))
            .header("content-type", "application/json")
            .header("idempotency-key", record.id.to_string());
        self.answer(request.send(&record.body[..])).map(drop)
    }

    /// # Errors
    /// See [`ServerError`].
    pub fn get(&self, path: &str, query: &[(&str, Option<&str>)]) -> Result<ServerResponse, ServerError> {
        self.answer(self.authorized(self.agent.get(self.url.at(path, query))).call())
    }

    /// Like [`Self::get`], in this format.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn get_as(
        &self,
        path: &str,
        query: &[(&str, Option<&str>)],
        format: &str,
    ) -> Result<ServerResponse, ServerError> {
        let request = self.authorized(self.agent.get(self.url.at(path, query)));
        self.answer(request.header("accept", format).call())
    }

    /// Like [`Self::get`], for answers that are too long for memory.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn get_stream(&self, path: &str) -> Result<impl Read + use<>, ServerError> {
        let response = self.answered(self.authorized(self.agent.get(self.url.at(path, &[]))).call())?;
        Ok(response.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// Replaces the version of a Markdown document that has this tag. Version 0 means that there is no document.
    ///
    /// # Errors
    /// See [`ServerError`]; 409 if the version has changed.
    pub fn put_markdown(
        &self,
        path: &str,
        query: &[(&str, Option<&str>)],
        text: &str,
        etag: Option<&str>,
    ) -> Result<ServerResponse, ServerError> {
        let mut request =
            self.authorized(self.agent.put(self.url.at(path, query))).header("content-type", "text/markdown");
        if let Some(etag) = etag {
            request = request.header("if-match", etag);
        }
        self.answer(request.send(text))
    }

    /// Replaces the version of something that has this tag.
    ///
    /// # Errors
    /// See [`ServerError`]; 409 if the version has changed.
    pub fn put_json(
        &self,
        path: &str,
        body: &serde_json::Value,
        etag: Option<&str>,
    ) -> Result<ServerResponse, ServerError> {
        let request = self.authorized(self.agent.put(self.url.at(path, &[])));
        let mut request = request.header("content-type", "application/json");
        if let Some(etag) = etag {
            request = request.header("if-match", etag);
        }
        self.answer(request.send(body.to_string()))
    }

    /// Creates something. This is not repeated: the answer may be lost although the server has created it.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn post_json(&self, path: &str, body: &serde_json::Value) -> Result<ServerResponse, ServerError> {
        let request = self.authorized(self.agent.post(self.url.at(path, &[])));
        self.answer(request.header("content-type", "application/json").send(body.to_string()))
    }

    /// Like [`Self::post_json`] with a method of choice. Sending it twice under the same key acts once.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn send_json(
        &self,
        change: Change,
        path: &str,
        body: &serde_json::Value,
        key: &str,
    ) -> Result<ServerResponse, ServerError> {
        let url = self.url.at(path, &[]);
        let request = match change {
            Change::Post => self.agent.post(url).header("idempotency-key", key),
            Change::Patch => self.agent.patch(url),
        };
        self.answer(
            self.authorized(request).header("content-type", "application/json").send(body.to_string()),
        )
    }

    /// Like [`Self::get`]. `None` if the answer still has this tag.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn get_if_changed(
        &self,
        path: &str,
        query: &[(&str, Option<&str>)],
        etag: Option<&str>,
    ) -> Result<Option<ServerResponse>, ServerError> {
        let mut request = self.authorized(self.agent.get(self.url.at(path, query)));
        if let Some(etag) = etag {
            request = request.header("if-none-match", etag);
        }
        match request.call() {
            Ok(response) if response.status() == StatusCode::NOT_MODIFIED => Ok(None),
            sent => self.answer(sent).map(Some),
        }
    }

    /// Begins a turn, and reads its events. Sending it twice under the same key begins one turn.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn post_events(
        &self,
        path: &str,
        body: &serde_json::Value,
        key: &str,
    ) -> Result<impl Read + use<>, ServerError> {
        let request = self.authorized(self.agent.post(self.url.at(path, &[])));
        let request = request.config().timeout_recv_body(Some(STREAM)).build();
        let request =
            request.header("content-type", "application/json").header("accept", "text/event-stream");
        let response = self.answered(request.header("idempotency-key", key).send(body.to_string()))?;
        Ok(response.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// Reads the events of a run after the one with this number. `None` if the run has ended and there are no more.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn events(&self, path: &str, after: u64) -> Result<Option<impl Read + use<>>, ServerError> {
        let request = self.authorized(self.agent.get(self.url.at(path, &[])));
        let request = request.config().timeout_recv_body(Some(STREAM)).build();
        let request =
            request.header("accept", "text/event-stream").header("last-event-id", after.to_string());
        let response = self.answered(request.call())?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        Ok(Some(response.into_body().into_with_config().limit(u64::MAX).reader()))
    }

    /// # Errors
    /// See [`ServerError`].
    pub fn delete(&self, path: &str) -> Result<(), ServerError> {
        self.answer(self.authorized(self.agent.delete(self.url.at(path, &[]))).call()).map(drop)
    }

    /// Uploads a file to an address that the server has given. Our credentials do not go there.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn upload<'h>(
        &self,
        url: &str,
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
        file: &File,
    ) -> Result<(), ServerError> {
        let mut request = self.agent.put(url);
        for (name, value) in headers {
            // They are those of the connection.
            if !name.eq_ignore_ascii_case("host") && !name.eq_ignore_ascii_case("content-length") {
                request = request.header(name, value);
            }
        }
        self.answer(request.send(file)).map(drop)
    }

    fn authorized<Kind>(&self, request: ureq::RequestBuilder<Kind>) -> ureq::RequestBuilder<Kind> {
        match &self.key {
            Some(key) => request.header("authorization", key.bearer()),
            None => request,
        }
    }

    fn answer(&self, sent: Result<Response<Body>, ureq::Error>) -> Result<ServerResponse, ServerError> {
        let mut response = self.answered(sent)?;
        let etag = text_of(response.headers(), "etag");
        let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        Ok(ServerResponse { body: body.map_err(|error| self.failed(&error))?, etag })
    }

    /// The answer, if it is successful.
    fn answered(&self, sent: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, ServerError> {
        let mut response = sent.map_err(|error| self.failed(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = text_of(response.headers(), "retry-after").and_then(|seconds| seconds.parse().ok());
        let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec().unwrap_or_default();
        let problem: Problem = serde_json::from_slice(&body).unwrap_or_default();
        let mut detail = String::new();
        if !problem.detail.is_empty() {
            detail = format!(": {}", problem.detail);
        }
        // The platform's own detail names the fields already.
        let told = |error: &&FieldError| problem.detail.contains(&error.message);
        for FieldError { field, message } in problem.errors.iter().filter(|error| !told(error)) {
            detail.push_str(&format!("; {field} {message}"));
        }
        // Another server may write anything here, and a person reads it in a terminal.
        let detail = escaped(&detail.chars().take(MAX_DETAIL).collect::<String>());
        let is_conflict = status.as_u16() == 409;
        let conflict = Conflict { code: problem.code, current: problem.current };
        Err(ServerError::Refused {
            url: self.url.to_string(),
            status: status.as_u16(),
            detail,
            conflict: is_conflict.then(|| Box::new(conflict)),
            retry_after,
        })
    }

    fn failed(&self, error: &ureq::Error) -> ServerError {
        let url = self.url.to_string();
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                ServerError::Unreachable { url, cause: "no connection in time".to_owned() }
            }
            ureq::Error::Timeout(_) => ServerError::Slow { url },
            other => ServerError::Unreachable { url, cause: other.to_string() },
        }
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
