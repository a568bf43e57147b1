//! S3: one bucket in a folder, served by s3s, which implements the protocol and checks signatures.

mod convert;
mod listing;
mod multipart;
mod object;
mod operations;
mod receive;
mod store;
mod uploads;
mod watch;

use std::io;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;

use jiff::Timestamp;
use operations::Operations;

use store::Store;

use super::Keys;

pub use uploads::{ObjectCreated, Upload, Uploads};

/// The bucket's files and its upload events.
#[derive(Debug, Clone)]
pub(super) struct Bucket(Arc<Store>);

impl Bucket {
    /// `durable`: an acknowledged write also survives a power cut, not only the end of the process.
    pub(super) fn open(folder: &Path, name: &str, durable: bool) -> io::Result<Self> {
        Store::open(folder, name, durable).map(|store| Self(Arc::new(store)))
    }

    /// Whether the bucket has no objects.
    pub(super) fn is_empty(&self) -> bool {
        self.0.state().objects.is_empty()
    }

    /// Deletes the objects that have expired by `now`, and returns their number.
    pub(super) async fn expire(&self, now: Timestamp) -> io::Result<usize> {
        let store = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || store.expire(now)).await.map_err(io::Error::other)?
    }

    /// Removes the incomplete uploads to keys with this prefix.
    pub(super) async fn remove_uploads(&self, prefix: String) -> io::Result<()> {
        let store = Arc::clone(&self.0);
        let removed = tokio::task::spawn_blocking(move || store.remove_uploads(&prefix));
        removed.await.map_err(io::Error::other)?
    }

    pub(super) fn subscribe(&self) -> io::Result<Uploads> {
        Uploads::subscribe(&self.0)
    }

    /// Serves the bucket to requests that are signed with these keys.
    pub(super) fn router(&self, keys: &Keys) -> Router {
        let mut builder = S3ServiceBuilder::new(Operations::new(Arc::clone(&self.0)));
        builder.set_auth(SimpleAuth::from_single(keys.access_key_id.clone(), keys.secret_access_key.clone()));
        let service = builder.build();
        Router::new().fallback(move |request: Request| {
            let service = service.clone();
            async move {
                match service.call(request.map(s3s::Body::http_body_unsync)).await {
                    Ok(response) => response.map(Body::new).into_response(),
                    Err(error) => {
                        tracing::error!(?error, "failed to answer an object request");
                        StatusCode::INTERNAL_SERVER_ERROR.into_response()
                    }
                }
            }
        })
    }
}
