//! Reads a record that must exist.

use domain::agents::Agent;
use domain::ids::{AgentId, Owner, ProjectId, RunId};
use domain::projects::Project;
use domain::runs::Run;

use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::store::Versioned;

/// # Errors
/// 404 if it does not exist.
pub async fn agent(data: &Data, owner: &Owner, id: AgentId) -> Result<Versioned<Agent>> {
    data.store.agent(owner, id).await?.ok_or(Error::NotFound("agent"))
}

/// # Errors
/// 404 if it does not exist.
pub async fn project(data: &Data, owner: &Owner, id: ProjectId) -> Result<Versioned<Project>> {
    match data.store.project(owner, id).await? {
        Some(project) => Ok(project),
        None if id == ProjectId::DEFAULT => Ok(default_project()),
        None => Err(Error::NotFound("project")),
    }
}

#[must_use]
pub fn default_project() -> Versioned<Project> {
    Versioned { value: Project::default_of_all(), version: 0 }
}

/// # Errors
/// 404 if it does not exist.
pub async fn run(cx: &Cx, owner: &Owner, id: RunId) -> Result<Versioned<Run>> {
    cx.store.run(owner, id).await?.ok_or(Error::NotFound("run"))
}
