//! What a plan limits: the requests of a month, and the projects.

use domain::accounts::quota::Month;
use domain::ids::{Owner, ProjectId};
use domain::projects::Project;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::store::idempotency::Once;
use crate::store::keys;
use crate::store::table::{Condition, Extras, Store, StoreError, Write, item};

/// How long the number of a month is kept after the month.
const KEPT: SignedDuration = SignedDuration::from_hours(400 * 24);

/// How many projects are read at once to count them.
const PAGE: usize = 200;

/// The requests of a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonthRequests {
    /// All requests that were counted.
    pub used: u32,
    /// Those of them that the plan did not include.
    pub overage: u32,
}

/// The project that was created last under a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastProject {
    project_id: ProjectId,
}

/// Whether a project was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    Yes,
    /// The owner has as many as the limit allows.
    TooMany,
    /// Another call created one meanwhile.
    Raced,
}

impl Store {
    /// The write that counts a request that the plan includes. It is refused if there are `limit` already.
    #[must_use]
    pub fn request_write(owner: &Owner, month: Month, limit: u32) -> Write {
        Write::Add {
            key: keys::month_requests(owner, month),
            numbers: vec![("used", 1)],
            only_if: Condition::Within { number: "used", ceiling: limit.into() },
            expires: Some(month.end() + KEPT),
        }
    }

    /// The write that counts a request after the last one that the plan includes.
    #[must_use]
    pub fn overage_write(owner: &Owner, month: Month) -> Write {
        Write::Add {
            key: keys::month_requests(owner, month),
            numbers: vec![("used", 1), ("overage", 1)],
            only_if: Condition::Always,
            expires: Some(month.end() + KEPT),
        }
    }

    pub async fn month_requests(&self, owner: &Owner, month: Month) -> Result<MonthRequests, StoreError> {
        let found = self.get(&keys::month_requests(owner, month)).await?;
        Ok(found.map(|found| found.value).unwrap_or_default())
    }

    /// The number of an owner's projects besides the default project.
    pub async fn count_projects(&self, owner: &Owner) -> Result<u32, StoreError> {
        let (mut count, mut after) = (0, None::<String>);
        loop {
            let found = self.projects(owner, after.as_deref(), PAGE).await?;
            let stored = found.items.iter().map(|(_, project)| project.value.project_id);
            let of_page = stored.filter(|id| *id != ProjectId::DEFAULT).count();
            count += u32::try_from(of_page).unwrap_or(u32::MAX);
            after = found.last;
            if after.is_none() {
                return Ok(count);
            }
        }
    }

    /// Creates a project, unless its owner has `limit` projects. Every such creation replaces one item of the owner, so of
    /// concurrent ones one succeeds, and the others count again: they get [`Created::Raced`].
    pub async fn create_project_within(
        &self,
        owner: &Owner,
        once: &Once,
        project: &Project,
        limit: u32,
    ) -> Result<Created, StoreError> {
        let key = keys::project_creation(owner);
        // Read before the projects are counted.
        let version = self.get::<LastProject>(&key).await?.map_or(0, |found| found.version);
        if self.count_projects(owner).await? >= limit {
            return Ok(Created::TooMany);
        }
        let last = item(&LastProject { project_id: project.project_id }, &Extras::default())?;
        let create = Write::Create {
            key: keys::project(owner, project.project_id),
            item: item(project, &Extras::default())?,
        };
        let written = self.commit(once, vec![Write::over(key, version, last), create]).await?;
        Ok(if written.done() { Created::Yes } else { Created::Raced })
    }
}
