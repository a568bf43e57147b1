//! The tools: what each takes and gives, and what it does. Arguments are read strictly: what a tool does not know, or has
//! another type, is refused with its place, never dropped.

mod catalog;
mod context;
mod logs;
mod output;
mod projects;
mod runs;
mod schedules;
mod theme;
mod work;

use std::future::Future;

use domain::ids::ProjectId;
use domain::wording::refusal;
use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared::Error;
use shared::flows::documents::Place;

use crate::server::{Server, told};

pub use catalog::{all, find};

/// A tool, described and ready to be called.
pub struct Callable {
    pub about: Tool,
    #[allow(clippy::type_complexity, reason = "a function of two arguments")]
    pub call: Box<dyn Fn(Server, JsonObject) -> BoxFuture<'static, Result<Value, Failure>> + Send + Sync>,
}

/// Why a call has no result: for the model to read.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(told(error))
    }
}

/// What a call may change. Nothing here reaches beyond the owner's own data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Reads,
    /// Adds, and adds it once however often it is called.
    Merges,
    Adds,
    /// Takes the place of something, which can be had back.
    Replaces,
}

impl From<Effect> for ToolAnnotations {
    fn from(effect: Effect) -> Self {
        let hints = Self::new().read_only(effect == Effect::Reads).open_world(false);
        match effect {
            Effect::Reads => hints,
            Effect::Merges => hints.destructive(false).idempotent(true),
            Effect::Adds => hints.destructive(false).idempotent(false),
            Effect::Replaces => hints.destructive(true).idempotent(false),
        }
    }
}

fn tool<A, F>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
    gives: Value,
    call: impl Fn(Server, A) -> F + Copy + Send + Sync + 'static,
) -> Callable
where
    A: DeserializeOwned + JsonSchema + 'static,
    F: Future<Output = Result<Value, Failure>> + Send + 'static,
{
    let about = Tool::new(name, description, JsonObject::new())
        .with_title(title)
        .with_input_schema::<A>()
        .with_raw_output_schema(rmcp::model::object(gives).into())
        .with_annotations(effect.into());
    let call = Box::new(move |server: Server, arguments: JsonObject| match arguments_of(arguments) {
        Ok(arguments) => call(server, arguments).boxed(),
        Err(failure) => std::future::ready(Err(failure)).boxed(),
    });
    Callable { about, call }
}

fn arguments_of<A: DeserializeOwned>(arguments: JsonObject) -> Result<A, Failure> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let (path, message) = (error.path().to_string(), error.inner().to_string());
        match message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
            Some(field) if path == "." => Failure(format!("Missing required parameter: {field}")),
            _ => Failure(refusal("arguments", &path, &message).to_string()),
        }
    })
}

/// A project that a call names, or that of the server's address.
fn project(server: &Server, named: Option<String>) -> Result<ProjectId, Failure> {
    Ok(place(server, named, None)?.project)
}

/// The result of a flow, as the tool's.
fn given(value: impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|error| Error::internal(error.to_string()).into())
}

/// The longest result, in bytes of JSON. It stands in the answer twice, as text and as structure.
const MAX_RESULT: usize = 1024 * 1024;

/// A result that a model can still be given.
///
/// # Errors
/// When it is too long; the caller is told how to ask for less.
pub fn bounded(value: Value) -> Result<Value, Failure> {
    let bytes = value.to_string().len();
    if bytes <= MAX_RESULT {
        return Ok(value);
    }
    Err(Failure(format!(
        "The result has {bytes} bytes, more than the {MAX_RESULT} that one call may give. Ask for less: a smaller limit or lines, \
         or format text."
    )))
}

/// The document that a call is about: what it says itself goes before what the address says.
fn place(server: &Server, project: Option<String>, workflow: Option<String>) -> Result<Place, Failure> {
    let mut place = server.place.clone();
    if let Some(text) = project {
        place.project = text.parse().map_err(|_| Failure("there is no such project".to_owned()))?;
    }
    if let Some(text) = workflow {
        place.workflow = text.parse().map_err(|error| Failure(format!("workflow: {error}")))?;
    }
    Ok(place)
}
