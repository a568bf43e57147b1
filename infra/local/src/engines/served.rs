//! A service on an ephemeral loopback port, until it is stopped.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

/// How long requests under way may go on after the stop, before their connections are cut.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(2);

/// Dropping it cuts every connection; [`Served::stop`] first lets requests under way end.
#[derive(Debug)]
pub(super) struct Served {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Served {
    /// Serves HTTP/1. A service that answers with an error ends the connection without an answer.
    pub(super) async fn start<S, B>(service: S) -> io::Result<Self>
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let graceful = GracefulShutdown::new();
            let mut connections = JoinSet::new();
            loop {
                let stream = tokio::select! {
                    _ = &mut stopped => break,
                    Some(_) = connections.join_next() => continue,
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => stream,
                        Err(error) => {
                            // Too many open files, say: others may close theirs.
                            tracing::warn!(%error, "failed to accept a connection");
                            tokio::time::sleep(Duration::from_millis(50)).await;
                            continue;
                        }
                    },
                };
                // Otherwise an answer in two writes waits 40 ms for the client to acknowledge the first.
                let _ = stream.set_nodelay(true);
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone());
                // An error of a connection is its client's to notice.
                connections.spawn(graceful.watch(connection));
            }
            drop(listener);
            let _ = tokio::time::timeout(STOP_GRACE, graceful.shutdown()).await;
        });
        Ok(Self { address, stop: Some(stop), task })
    }

    /// Accepts nothing more, and returns when every connection has ended.
    pub(super) async fn stop(mut self) {
        drop(self.stop.take());
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "an engine stopped in disorder");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}
