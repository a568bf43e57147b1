//! Handles uploads: updates the map of a theme after its files, and imports log files.
//!
//! The bucket reports every upload whose key looks like one of ours. A theme's archive is imported. A note that files
//! have changed starts an update of the map. An archive of log files is imported into logs. An event is only a hint:
//! the work is read from the table. So a repeated, late or reordered event does nothing twice and undoes nothing. Logs
//! do not have a function of their own, because a second queue would be polled all day, and that would cost more than
//! everything else in the sleeping platform.
//!
//! When the map is up to date and nobody waits for it, a model may describe the new files, if the project allows that.

use futures::FutureExt;
use futures::future::BoxFuture;
use models::Models;
use shared::blobs::{BlobKey, Upload};
use shared::flows::logs;
use shared::runtime::function::{Function, Invocation, Trigger, Uploaded};
use shared::{Cx, Result};
use themes::{enrich, import, index};

pub const FUNCTION: Function = Function {
    name: "theme-index",
    trigger: Trigger::Upload { handler: uploaded },
    models: Models::from_config,
    areas: &[&themes::area::AREA],
};

fn uploaded(cx: Cx, Invocation { deadline }: Invocation, upload: Uploaded) -> BoxFuture<'static, Result<()>> {
    async move {
        let Some((owner, upload)) = BlobKey::parse_upload(&upload.key) else { return Ok(()) };
        if cx.deletions.of(&cx.store, &owner, cx.clock.now()).await?.is_some() {
            return Ok(());
        }
        match upload {
            Upload::ThemeChanged(project) => {
                index::catch_up(&cx, &owner, project, deadline).await?;
                enrich::follow(&cx, &owner, project, deadline).await
            }
            Upload::Theme(project, id) => {
                import::uploaded(&cx, &owner, project, id, deadline).await?;
                enrich::follow(&cx, &owner, project, deadline).await
            }
            Upload::Logs(id) => logs::import::uploaded(&cx, &owner, id, deadline).await,
        }
    }
    .boxed()
}
