//! Practices: the habits that the user tracks.

use domain::tools::Arguments;
use domain::tools::practices::{QueryPractice, ReadPractices};
use domain::validate::FieldErrors;
use shared::flows::practices;

use super::{Failure, ToolResult};
use crate::client::Client;

pub async fn read_practices(client: Client, arguments: ReadPractices) -> ToolResult {
    let ReadPractices { practice, from, to } = arguments;
    let mut query = QueryPractice { practice, from, to };
    let mut errors = FieldErrors::default();
    query.check(&mut errors);
    errors.into_result(()).map_err(|errors| Failure(errors.to_string()))?;
    practices::query(&client.cx, &client.owner, query).await?.map_err(Failure)
}
