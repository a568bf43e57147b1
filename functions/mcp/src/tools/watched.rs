//! Reports of routines that something else runs.

use domain::tools::watched::ReportRun;
use domain::watched::witness::NewReport;
use shared::flows::watched::witness;

use super::{Failure, ToolResult, to_json};
use crate::client::Client;

pub async fn report_run(client: Client, arguments: ReportRun) -> ToolResult {
    let ReportRun { watched, ok, summary, link } = arguments;
    let Client { cx, owner, once, .. } = &client;
    let id = witness::named(cx, owner, &watched).await?.map_err(Failure)?;
    let report = NewReport { ok: Some(ok), summary: Some(summary), link, exit_code: None };
    to_json(witness::report(cx, owner, once, id, report).await?)
}
