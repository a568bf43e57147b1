//! A theme was imported or changed: its map follows.
//!
//! The bucket tells of every upload whose key looks like ours. An archive is imported; a note that files have changed
//! makes the map catch up with them. Neither is believed more than that: what is to be done is read from the table, so an
//! upload that is told of twice, late or out of order does nothing twice and undoes nothing.

use futures::FutureExt;
use futures::future::BoxFuture;
use shared::blobs::{BlobKey, ThemeUpload};
use shared::flows::themes::{import, index};
use shared::function::{Function, Invocation, Trigger, Uploaded};
use shared::{Cx, Result};

pub const FUNCTION: Function =
    Function { name: "theme-index", trigger: Trigger::Upload { handler: uploaded } };

fn uploaded(cx: Cx, invocation: Invocation, upload: Uploaded) -> BoxFuture<'static, Result<()>> {
    async move {
        match BlobKey::parse_theme_upload(&upload.key) {
            Some((owner, project, ThemeUpload::Changed)) => {
                index::catch_up(&cx, &owner, project, invocation.deadline).await
            }
            Some((owner, project, ThemeUpload::Archive(id))) => {
                import::uploaded(&cx, &owner, project, id, invocation.deadline).await
            }
            None => Ok(()),
        }
    }
    .boxed()
}
