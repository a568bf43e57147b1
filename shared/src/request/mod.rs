//! What every module may know about the current request. This folder uses no other module of the crate.

pub mod caller;
pub mod limits;

use http::request::Parts;
use jiff::{SignedDuration, Timestamp};

/// What the client's URL has before a route's path: the stage of the API's default domain, or the base path of a custom
/// domain. The code that receives a request from API Gateway adds it to the request.
#[derive(Clone, Debug)]
pub(crate) struct BasePath(pub String);

tokio::task_local! {
    pub(crate) static CURRENT_REQUEST_ID: String;
    pub(crate) static BASE_PATH: String;
    pub(crate) static FOR_OPENAI_CLIENT: bool;
}

/// A route's path as the client of the current request must write it, with the stage or base path.
#[must_use]
pub fn path_for_client(path: &str) -> String {
    BASE_PATH.try_with(|base| format!("{base}{path}")).unwrap_or_else(|_| path.to_owned())
}

/// The address at which a client reaches the platform, for links in texts that leave the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientAddress(pub(crate) String);

impl ClientAddress {
    /// The address of a route's path. If the request did not name a host that can be shown, it is a path.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

/// The id of the current request, inside a handler.
#[must_use]
pub fn current_request_id() -> Option<String> {
    CURRENT_REQUEST_ID.try_with(Clone::clone).ok()
}

/// Whether the current request has a path that only OpenAI clients use. They read errors in OpenAI's form.
#[must_use]
pub fn is_for_openai_client() -> bool {
    FOR_OPENAI_CLIENT.try_with(|is| *is).unwrap_or_default()
}

/// What a handler knows about its invocation.
#[derive(Clone, Copy, Debug)]
pub struct Invocation {
    /// When the environment will be stopped. Work that is not done by then is lost.
    pub deadline: Timestamp,
}

/// How long before the invocation's end its answer ends.
const ANSWERS_BEFORE: SignedDuration = SignedDuration::from_secs(10);

impl Invocation {
    /// The invocation of a request. A server that is not a Lambda has no deadline.
    #[must_use]
    pub fn of(parts: &Parts) -> Self {
        parts.extensions.get().copied().unwrap_or(Self { deadline: Timestamp::MAX })
    }

    /// When an answer that follows a run must end.
    #[must_use]
    pub fn answers_until(&self) -> Timestamp {
        self.deadline - ANSWERS_BEFORE
    }
}
