//! Something was uploaded: a theme's map follows its files, and log files become logs.
//!
//! The bucket tells of every upload whose key looks like ours. A theme's archive is imported; a note that files have changed
//! makes the map catch up with them; an archive of log files becomes logs. None is believed more than that: what is to be
//! done is read from the table, so an upload that is told of twice, late or out of order does nothing twice and undoes
//! nothing. Logs have no function of their own, because a second queue would be asked all day long whether there is an
//! archive, and that would cost more than everything else that sleeps.
//!
//! Once the map is that of the files, and nobody waits for it any more, a model may describe what is new in them, where the
//! project wants that.

use futures::FutureExt;
use futures::future::BoxFuture;
use shared::blobs::{BlobKey, Upload};
use shared::flows::logs;
use shared::flows::themes::{enrich, import, index};
use shared::function::{Function, Invocation, Trigger, Uploaded};
use shared::models::Models;
use shared::{Cx, Result};

pub const FUNCTION: Function = Function {
    name: "theme-index",
    trigger: Trigger::Upload { handler: uploaded },
    models: Models::from_config,
};

fn uploaded(cx: Cx, Invocation { deadline }: Invocation, upload: Uploaded) -> BoxFuture<'static, Result<()>> {
    async move {
        let Some((owner, upload)) = BlobKey::parse_upload(&upload.key) else { return Ok(()) };
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
