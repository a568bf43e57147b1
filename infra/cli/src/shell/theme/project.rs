//! The theme of a project: the server answers.

use serde_json::{Value, json};
use theme::answers::MAX_FINDINGS;

use super::super::api::Api;
use super::super::values::Fields;
use super::folder;
use crate::Failure;
use crate::args::ThemeCommand;
use crate::project::ProjectId;
use crate::server::Change;

/// Whether the theme of the project has no files.
///
/// # Errors
/// If the server does not answer.
pub fn is_empty(api: &Api, project: &ProjectId) -> Result<bool, Failure> {
    Ok(api.get(&format!("/projects/{project}/files"), &[("limit", Some("1"))])?.items("data").is_empty())
}

/// The findings of a theme, at most so many, or all of them with 0: answer after answer.
fn checked(api: &Api, path: &str, mut ask: Value, limit: usize) -> Result<Value, Failure> {
    let most = if limit == 0 { usize::MAX } else { limit };
    let mut all = Value::Null;
    loop {
        let listed = all.items("findings").len();
        ask["limit"] = json!((most - listed).min(MAX_FINDINGS));
        let mut answer = api.send(Change::Post, path, &ask)?;
        let mut findings = all["findings"].as_array_mut().map(std::mem::take).unwrap_or_default();
        findings.append(answer["findings"].as_array_mut().unwrap_or(&mut Vec::new()));
        answer["findings"] = json!(findings);
        let next = answer.as_object_mut().and_then(|answer| answer.remove("next_cursor"));
        all = answer;
        match next {
            Some(next) if all.items("findings").len() < most => ask["cursor"] = next,
            _ => return Ok(all),
        }
    }
}

/// Asks the server.
///
/// # Errors
/// If it does not answer, or the project does not exist.
pub fn ask(api: &Api, project: &ProjectId, command: &ThemeCommand) -> Result<Value, Failure> {
    let path = |question: &str| format!("/projects/{project}/{question}");
    match command {
        ThemeCommand::Check { overlay, deleted, limit, .. } => {
            let mut files = Vec::new();
            for (path, content) in folder::changes(overlay.as_deref(), deleted)? {
                let content = String::from_utf8(content).map_err(|_| {
                    Failure::Message(format!("{path} is not a text; only texts can be sent to be checked"))
                })?;
                files.push(json!({ "path": path, "content": content }));
            }
            let change = json!({ "files": files, "deleted": deleted });
            checked(api, &path("check"), change, *limit as usize)
        }
        ThemeCommand::Fix { also, .. } if !also.is_empty() => Err(Failure::Message(format!(
            "`--also` mends the files of a folder, and {project} is a project; export it, and name the folder"
        ))),
        ThemeCommand::Fix { files, as_meant, write, .. } => {
            let ask = json!({ "paths": files, "as_meant": as_meant, "write": write });
            api.send(Change::Post, &path("fix"), &ask)
        }
        ThemeCommand::Lookup { request, active, .. } => {
            let mut body = json!({ "request": request });
            if let Some(active) = active {
                body["active_file"] = json!(active);
            }
            api.send(Change::Post, &path("lookup"), &body)
        }
        ThemeCommand::Map { request, active, tokens, .. } => {
            let mut body = json!({ "max_tokens": tokens });
            for (field, value) in [("request", request), ("active_file", active)] {
                if let Some(value) = value {
                    body[field] = json!(value);
                }
            }
            api.send(Change::Post, &path("repo-map"), &body)
        }
        ThemeCommand::Graph { file: Some(file), .. } => api.get(&path("graph"), &[("path", Some(file))]),
        ThemeCommand::Graph { file: None, .. } => api.get(&path("graph/findings"), &[]),
    }
}
