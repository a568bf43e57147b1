//! Which files and lines a request is about.

use domain::ids::{Owner, ProjectId};
use theme::ThemeIndex;
use theme::answers::{DEFAULT_TARGETS, LookupAnswer};

use super::{Ask, asked, current};
use crate::cache::Warm;
use crate::history::recalled;
use shared::context::Cx;
use shared::error::Result;

/// The files and lines that a request is about.
///
/// # Errors
/// 404 if the project does not exist, 400 if a field is invalid.
pub async fn lookup(cx: &Cx, owner: &Owner, project: ProjectId, ask: &Ask) -> Result<LookupAnswer> {
    ask.checked(DEFAULT_TARGETS)?;
    lookup_in(cx, current(cx, owner, project).await?, ask).await
}

/// The same in an index that the caller has.
pub async fn lookup_in(cx: &Cx, warm: Warm, ask: &Ask) -> Result<LookupAnswer> {
    let limit = ask.checked(DEFAULT_TARGETS)?;
    let history = recalled(cx, &warm.version, &ask.changes).await?;
    let (ask, source) = (ask.clone(), warm.source);
    let find = move |index: &ThemeIndex| {
        LookupAnswer::with_history(index, source, &ask.request, ask.active_file.as_deref(), limit, &history)
    };
    let (found, took_us) = asked(cx, &warm, find).await?;
    Ok(LookupAnswer { took_us, ..found })
}
