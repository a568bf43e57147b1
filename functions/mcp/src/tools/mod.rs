//! Calls of tools: the definitions of [`domain::tools::MCP`] as the protocol shows them, and the function that performs
//! each. Arguments are read strictly: an unknown field or a wrong type is an error that names the field.

mod context;
mod documents;
mod logs;
mod memory;
mod practices;
mod projects;
mod runs;
#[cfg(test)]
mod tests;
mod theme;
mod watched;
mod work;

use std::future::Future;

use domain::accounts::scopes::Scope;
use domain::ids::ProjectId;
use domain::tools::{
    Decision, Effect, MCP, Setting, THEME, ToolDef, ToolSets, decide, find, offered, read_fields,
};
use domain::validate::FieldError;
use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{JsonObject, Tool, ToolAnnotations, object};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared::Error;
use shared::flows::projects::documents::DocumentName;

use crate::client::{Client, message};
pub use theme::may_apply;

/// The longest result, in bytes of JSON. The answer contains it twice: as text and as structured content.
const MAX_RESULT: usize = 1024 * 1024;

/// Why a call failed: a text for the model.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(message(error))
    }
}

type ToolResult = Result<Value, Failure>;

/// The tools that a client with this scope and these sets of tools is offered.
pub fn of(scope: Scope, sets: &ToolSets) -> impl Iterator<Item = &'static ToolDef> {
    offered(MCP, Setting::Mcp)
        .chain(offered(THEME, Setting::Mcp))
        .filter(move |tool| sets.has(tool) && scope.includes(Scope::of_tool(tool.effect)))
}

/// The definitions of these tools.
pub fn list(scope: Scope, sets: &ToolSets) -> Vec<Tool> {
    of(scope, sets).map(described).collect()
}

/// Whether a client may call the tool with this name.
pub fn decision(name: &str) -> Decision {
    let table = if find(THEME, name).is_some() { THEME } else { MCP };
    decide(table, name, Setting::Mcp)
}

/// A tool as the protocol describes it, without what says nothing: each session of an assistant carries the definitions.
pub fn described(def: &ToolDef) -> Tool {
    let mut input = (def.input)();
    shorten(&mut input);
    let mut tool = Tool::new(def.name, def.description, object(input)).with_annotations(annotations(def));
    // Clients show the name if there is no title.
    let is_name = |title: &&str| title.to_lowercase().replace(' ', "_") == def.name;
    tool.title = def.title.filter(|title| !is_name(title)).map(str::to_owned);
    match def.output {
        Some(output) => tool.with_raw_output_schema(object(output()).into()),
        None => tool,
    }
}

/// Removes what a schema says by itself: no required properties, and that an optional property may be `null`. The server still takes
/// `null`.
fn shorten(schema: &mut Value) {
    if let Some(fields) = schema.as_object_mut() {
        fields.retain(|name, value| name != "required" || *value != json!([]));
        if let Some(Value::Array(types)) = fields.get_mut("type") {
            types.retain(|one| one != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                fields.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(choices)) = fields.get_mut("enum") {
            choices.retain(|choice| !choice.is_null());
        }
        fields.values_mut().for_each(shorten);
    }
}

/// The protocol's hints about what a call changes. The first and the last one are false if they are absent.
fn annotations(def: &ToolDef) -> ToolAnnotations {
    let hints = ToolAnnotations::new().open_world(def.effect == Effect::Outside);
    if def.effect == Effect::Read {
        return hints.read_only(true);
    }
    let hints = hints.destructive(def.replaces);
    if def.idempotent { hints.idempotent(true) } else { hints }
}

/// Calls a tool.
///
/// # Errors
/// A text for the model: which argument is wrong, or why the call failed.
pub async fn call(client: Client, def: &'static ToolDef, arguments: JsonObject) -> ToolResult {
    if THEME.contains(&def) {
        return bounded(theme::tool(client, def, arguments).await?);
    }
    let Some(performer) = performer(def.name) else {
        return Err(Error::internal(format!("no function performs {}", def.name)).into());
    };
    bounded((performer.call)(client, arguments).await?)
}

/// The function that performs a tool, and the type of its arguments.
struct Performer {
    #[allow(clippy::type_complexity, reason = "a function of two arguments")]
    call: Box<dyn Fn(Client, JsonObject) -> BoxFuture<'static, ToolResult> + Send + Sync>,
    #[cfg(test)]
    read: fn(JsonObject) -> Result<(), Failure>,
}

fn performer(name: &str) -> Option<Performer> {
    Some(match name {
        "parse_mode" => by(context::parse_mode),
        "update_context" => by(context::update_context),
        "read_context" => by(context::read_context),
        "list_context_versions" => by(context::list_context_versions),
        "restore_context" => by(context::restore_context),
        "read_agent_log" => by(logs::read_agent_log),
        "append_agent_log" => by(logs::append_agent_log),
        "lookup_theme" => by(theme::lookup_theme),
        "check_theme" => by(theme::check_theme),
        "preview_theme_fix" => by(theme::preview_theme_fix),
        "list_projects" => by(projects::list_projects),
        "list_workflows" => by(projects::list_workflows),
        "list_agents" => by(work::list_agents),
        "read_agent" => by(work::read_agent),
        "propose_agent" => by(work::propose_agent),
        "list_assets" => by(work::list_assets),
        "read_asset" => by(work::read_asset),
        "propose_asset" => by(work::propose_asset),
        "list_actions" => by(work::list_actions),
        "read_action" => by(work::read_action),
        "propose_action" => by(work::propose_action),
        "explain_action" => by(runs::explain_action),
        "list_runs" => by(runs::list_runs),
        "read_run" => by(runs::read_run),
        "list_run_outputs" => by(runs::list_run_outputs),
        "preview_schedule" => by(runs::preview_schedule),
        "list_proposals" => by(runs::list_proposals),
        "read_proposal" => by(runs::read_proposal),
        "search_memory" => by(memory::search_memory),
        "remember_card" => by(memory::remember_card),
        "correct_fact" => by(memory::correct_fact),
        "forget_fact" => by(memory::forget_fact),
        "report_run" => by(watched::report_run),
        "read_practices" => by(practices::read_practices),
        "read_document" => by(documents::read_document),
        "sync_documentation" => by(documents::sync_documentation),
        "add_commit" => by(documents::add_commit),
        _ => return None,
    })
}

fn by<A, F>(perform: impl Fn(Client, A) -> F + Send + Sync + 'static) -> Performer
where
    A: DeserializeOwned,
    F: Future<Output = ToolResult> + Send + 'static,
{
    Performer {
        call: Box::new(move |client, arguments| match read(arguments) {
            Ok(arguments) => perform(client, arguments).boxed(),
            Err(failure) => std::future::ready(Err(failure)).boxed(),
        }),
        #[cfg(test)]
        read: |arguments| read::<A>(arguments).map(drop),
    }
}

fn read<A: DeserializeOwned>(arguments: JsonObject) -> Result<A, Failure> {
    read_fields(Value::Object(arguments)).map_err(|errors| match &errors.0[..] {
        [FieldError { field, message }] if message == "is required" && !field.contains(['.', '[']) => {
            Failure(format!("Missing required parameter: {field}"))
        }
        _ => Failure(errors.to_string()),
    })
}

/// Limits the size of a result. A longer result is an error that says how to ask for less.
fn bounded(value: Value) -> ToolResult {
    let bytes = value.to_string().len();
    if bytes <= MAX_RESULT {
        return Ok(value);
    }
    Err(Failure(format!(
        "The result has {bytes} bytes, more than the {MAX_RESULT} that one call may give. Ask for less: a smaller limit or lines, \
         or format text."
    )))
}

/// The result of a flow as JSON.
fn to_json(value: impl Serialize) -> ToolResult {
    serde_json::to_value(value).map_err(|error| Error::internal(error.to_string()).into())
}

/// The project of a call: its argument, or else the project of the server's address.
fn project(client: &Client, argument: Option<String>) -> Result<ProjectId, Failure> {
    Ok(place(client, argument, None)?.project)
}

/// The document of a call: its arguments, or else those of the server's address.
fn place(
    client: &Client,
    project: Option<String>,
    workflow: Option<String>,
) -> Result<DocumentName, Failure> {
    let mut place = client.place.clone();
    if let Some(text) = project {
        place.project = text.parse().map_err(|_| Failure("there is no such project".to_owned()))?;
    }
    if let Some(text) = workflow {
        place.workflow = text.parse().map_err(|error| Failure(format!("workflow: {error}")))?;
    }
    Ok(place)
}
