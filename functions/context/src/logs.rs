//! The routes of context logs.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::ids::{ImportId, ProjectId};
use domain::log::view::{self, Metadata, Shown};
use domain::log::{Entry, InstanceId, SessionId};
use domain::validate::FieldErrors;
use serde::{Deserialize, Serialize};
use shared::edge::extract::{Caller, Id, Json, Once, Query, parse_json};
use shared::edge::guard::is_archive;
use shared::flows::logs::export::{self, Selection};
use shared::flows::logs::import::{self, LogImportView};
use shared::flows::logs::read::{self, SessionView, Tail};
use shared::flows::logs::{self, NewEntry};
use shared::flows::page::{Page, PageQuery};
use shared::flows::uploads::NewUpload;
use shared::{Cx, Result};
use utoipa::{IntoParams, ToSchema};

/// The default number of entries.
const DEFAULT_LINES: u64 = 50;

/// The most entries in one answer.
const MAX_LINES: u64 = 1_000;

shared::routes!(list, read_tail, append, export_all, import_archive, read_import);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct OfProject {
    /// Only sessions of this project.
    #[serde(rename = "project_id", alias = "project")]
    project: Option<ProjectId>,
}

/// List sessions with their agents' logs, newest first
///
/// Each session with its agents, and the size of each log.
#[utoipa::path(
    get, path = "/context/logs", tag = "context", operation_id = "list_log_sessions",
    params(OfProject, PageQuery),
    responses((status = 200, body = Page<SessionView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Query(of): Query<OfProject>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<SessionView>>> {
    read::sessions(&cx, &caller.owner, of.project, &page).await.map(axum::Json)
}

/// How a log is shown.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[default]
    Json,
    Text,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ReadQuery {
    /// Only this session. Default: the latest session that has the agent, and then earlier ones.
    #[serde(rename = "session_id", alias = "session")]
    session: Option<SessionId>,
    /// If no session is given: only sessions of this project.
    #[serde(rename = "project_id", alias = "project")]
    project: Option<ProjectId>,
    /// How many entries, 1 to 1,000. Default 50. There are fewer if they are longer than 8 MB together.
    #[param(minimum = 1, maximum = 1000)]
    lines: Option<u64>,
    /// `json` (the default), or `text`: headings with the questions and answers, in at most 16,000 characters.
    #[serde(default)]
    #[param(inline, value_type = Option<Format>)]
    format: Format,
    /// Whether to include the data about the log as a whole.
    #[serde(default)]
    #[param(value_type = Option<bool>)]
    include_metadata: bool,
}

impl ReadQuery {
    fn lines(&self) -> Result<u64, FieldErrors> {
        match self.lines {
            None => Ok(DEFAULT_LINES),
            Some(lines) if (1..=MAX_LINES).contains(&lines) => Ok(lines),
            Some(lines) => Err(FieldErrors::one("lines", format!("must be 1 to {MAX_LINES}, is {lines}"))),
        }
    }
}

/// The end of a log.
#[derive(Serialize, ToSchema)]
struct LogAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    /// Oldest first. Without `session`, entries of earlier sessions come first and are marked.
    entries: Vec<Shown>,
}

fn agent(text: &str) -> Result<InstanceId, FieldErrors> {
    text.parse().map_err(|error| FieldErrors::one("agent_id", format!("{error}")))
}

/// Read the last entries of an agent's log
///
/// Without `session`, the answer has the entries of the latest session that has the agent. If these are fewer than
/// `lines`, the last entries of earlier sessions are added and marked with `earlier_session`. An unknown agent has an
/// empty log. `main` is the assistant itself.
#[utoipa::path(
    get, path = "/context/logs/{agent_id}", tag = "context", operation_id = "read_log",
    params(("agent_id" = InstanceId, Path), ReadQuery),
    responses(
        (status = 200, description = "The entries, oldest first", content(
            (LogAnswer = "application/json"), (String = "text/plain"),
        )),
    ),
)]
async fn read_tail(
    State(cx): State<Cx>,
    caller: Caller,
    Id(agent_id): Id<String>,
    Query(query): Query<ReadQuery>,
) -> Result<Response> {
    let (agent, lines) = (agent(&agent_id)?, query.lines()?);
    let ReadQuery { session, project, format, include_metadata, .. } = query;
    let Tail { metadata, entries } = read::tail(&cx, &caller.owner, project, session, &agent, lines).await?;
    Ok(match format {
        Format::Text => view::text(&metadata, &entries, view::TEXT_CHARS).into_response(),
        Format::Json => {
            let metadata = include_metadata.then_some(metadata);
            axum::Json(LogAnswer { metadata, entries }).into_response()
        }
    })
}

/// Append an entry to an agent's log
///
/// The log and the session are created if necessary. Entries are in the order of arrival.
#[utoipa::path(
    post, path = "/context/logs/{agent_id}", tag = "context", operation_id = "append_to_log",
    params(("agent_id" = InstanceId, Path)),
    responses((status = 201, body = Entry)),
)]
async fn append(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(agent_id): Id<String>,
    Json(input): Json<NewEntry>,
) -> Result<(StatusCode, axum::Json<Entry>)> {
    let entry = logs::append(&cx, &caller.owner, &once, &agent(&agent_id)?, input).await?;
    Ok((StatusCode::CREATED, axum::Json(entry)))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    /// Only sessions of this project.
    #[serde(rename = "project_id", alias = "project")]
    project: Option<ProjectId>,
    /// Only this session.
    #[serde(rename = "session_id", alias = "session")]
    session: Option<SessionId>,
}

/// Export logs as a zip of files
///
/// `{session}/{agent}.jsonl` for each log, `{session}/main.jsonl` for the assistant's own log, and the same lines again
/// in `{session}/agent-instructions.jsonl` and `all-agent-instructions.jsonl`.
#[utoipa::path(
    get, path = "/context/export", tag = "context", operation_id = "export_logs",
    params(ExportQuery),
    responses((status = 200, description = "The archive", body = Vec<u8>, content_type = "application/zip")),
)]
async fn export_all(
    State(cx): State<Cx>,
    caller: Caller,
    Query(ExportQuery { project, session }): Query<ExportQuery>,
) -> Response {
    let archive = export::archive(cx, caller.owner, Selection { project, session });
    let headers = [
        (header::CONTENT_TYPE, "application/zip"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"context-logs.zip\""),
    ];
    (headers, Body::from_stream(archive)).into_response()
}

/// Import a zip of log files
///
/// Send the archive of `/context/export`; the files may also be in a folder of the archive. A line needs `event`, `agent_id` and
/// `timestamp`. Other lines are skipped and counted. A log is in the order of its times. A log that already exists is not changed, so an import can be repeated. A zip (up to 4.4
/// MB) is imported before the answer. If the call is interrupted, the import continues without it. For a larger
/// archive, up to 128 MB, send JSON with its size. The answer says where to upload it within five minutes. The import
/// begins with the upload, and `Location` reports its progress.
#[utoipa::path(
    post, path = "/context/import", tag = "context", operation_id = "import_logs",
    params(("project_id" = Option<ProjectId>, Query, description = "The project of new sessions")),
    request_body(content((Vec<u8> = "application/zip"), (NewUpload = "application/json"))),
    responses(
        (status = 200, description = "It is done", body = LogImportView),
        (status = 202, description = "The import waits for its upload", body = LogImportView),
    ),
)]
async fn import_archive(
    State(cx): State<Cx>,
    caller: Caller,
    Query(of): Query<OfProject>,
    headers: HeaderMap,
    archive: Bytes,
) -> Result<Response> {
    let project = of.project.unwrap_or(ProjectId::DEFAULT);
    if is_archive(&headers) {
        let import = import::inline(&cx, &caller.owner, project, archive).await?;
        return Ok(axum::Json(import).into_response());
    }
    let import = import::upload(&cx, &caller.owner, project, parse_json(&archive)?).await?;
    let place = [(header::LOCATION, format!("/context/imports/{}", import.import_id))];
    Ok((StatusCode::ACCEPTED, place, axum::Json(import)).into_response())
}

/// Read the state of an import of log files
///
/// For a week after its end.
#[utoipa::path(
    get, path = "/context/imports/{import_id}", tag = "context", operation_id = "read_log_import",
    params(ImportId),
    responses((status = 200, body = LogImportView)),
)]
async fn read_import(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ImportId>,
) -> Result<axum::Json<LogImportView>> {
    import::read(&cx, &caller.owner, id).await.map(axum::Json)
}
