//! Erases deleted data from the files of the table and the bucket.
//!
//! A deleted object has no file any more. What remains is the table's file ([`super::compact`]), and the parts of uploads that
//! were cut off. S3 deletes such parts after two days.

use std::sync::Arc;

use domain::ids::Owner;
use futures::FutureExt;
use futures::future::BoxFuture;
use shared::config::Eraser;

use super::dynamo::Table;
use super::s3::Bucket;

#[derive(Debug)]
pub(super) struct Files {
    pub table: Arc<Table>,
    pub bucket: Bucket,
}

impl Eraser for Files {
    fn erase<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let prefix = format!("{owner}/");
            let removed = self.bucket.remove_uploads(prefix).await;
            removed.map_err(|error| format!("failed to remove incomplete uploads: {error}"))?;
            self.table.compact().await.map_err(|error| format!("failed to {error}"))
        }
        .boxed()
    }
}
