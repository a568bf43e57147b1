//! What a due item is there for, by its kind.

use jiff::Timestamp;

use super::wake;
use crate::context::Cx;
use crate::problem::{Error, Result};
use crate::store::{DueItem, DueTarget};
use crate::stream;

/// Looks at an item that is due. The item may have come twice or late: what to do is decided from the stored state.
///
/// # Errors
/// When the table does not answer; the message comes again.
pub async fn look_at(cx: &Cx, item: &DueItem, deadline: Timestamp) -> Result<()> {
    match item.target {
        DueTarget::Action(id) => wake::wake(cx, &item.owner, id, deadline).await,
        DueTarget::Run(id) => match stream::load(cx, &item.owner, id).await {
            Ok(_) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        },
    }
}
