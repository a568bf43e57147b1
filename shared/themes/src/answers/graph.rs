//! How the files of a theme depend on each other.

use domain::ids::{Owner, ProjectId};
use theme::answers::{Findings, Neighbours};

use super::{asked, current};
use shared::context::Cx;
use shared::error::{Error, Result};

/// What a file needs, and which files need it.
///
/// # Errors
/// 404 if the project or the file does not exist.
pub async fn neighbours(cx: &Cx, owner: &Owner, project: ProjectId, path: &str) -> Result<Neighbours> {
    let warm = current(cx, owner, project).await?;
    let path = path.to_owned();
    let (found, _) = asked(cx, &warm, move |index| Neighbours::of(index, &path)).await?;
    found.ok_or(Error::NotFound("file"))
}

/// Files that are probably unused, and references to something that the theme does not contain.
///
/// # Errors
/// 404 if the project does not exist.
pub async fn findings(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<Findings> {
    let warm = current(cx, owner, project).await?;
    Ok(asked(cx, &warm, Findings::of).await?.0)
}
