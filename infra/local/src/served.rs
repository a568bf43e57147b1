//! Serves a handler on a port, with limits on the number of connections and on the time that a client may take to send its
//! request.

mod connections;
mod paced;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response, header};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use shared::edge::rates::ClientAddress;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::handler::{Handler, Reply};
use connections::{Connection, Connections};
use paced::{Received, Sent};

/// How long running requests may continue after the stop, before their connections are closed.
pub const STOP_GRACE: Duration = Duration::from_secs(2);

/// How long a new connection waits for room.
const ROOM_WAIT: Duration = Duration::from_secs(5);
const ROOM_TICK: Duration = Duration::from_millis(20);

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// The limits of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLimits {
    /// Maximum number of connections. A further one closes the connection that has waited longest for its client.
    pub connections: usize,
    /// Maximum number of event streams. A further one closes the oldest; its client can reconnect and continue.
    pub streams: usize,
    /// How long a client may take to send the head of a request.
    pub head: Duration,
    /// How long a client may pause in the body of a request.
    pub body: Duration,
}

impl Default for PortLimits {
    fn default() -> Self {
        Self { connections: 512, streams: 256, head: Duration::from_secs(30), body: Duration::from_secs(30) }
    }
}

/// Dropping it closes every connection; [`Served::stop`] first waits for running requests.
#[derive(Debug)]
pub struct Served {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Served {
    /// Serves HTTP/1.1 on this listener.
    ///
    /// # Errors
    /// If the listener has no address any more.
    pub fn start(listener: TcpListener, handler: Handler, limits: PortLimits) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(accept(listener, handler, limits, stopped));
        Ok(Self { address, stop: Some(stop), task })
    }

    /// Serves on a free loopback port.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn on_loopback(handler: Handler) -> io::Result<Self> {
        Self::start(TcpListener::bind(("127.0.0.1", 0)).await?, handler, PortLimits::default())
    }

    /// Accepts no new connections, and returns when every connection has ended.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "a server did not stop cleanly");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    handler: Handler,
    limits: PortLimits,
    mut stopped: oneshot::Receiver<()>,
) {
    let graceful = GracefulShutdown::new();
    let connections = Connections::new(limits);
    let mut tasks = JoinSet::new();
    loop {
        let (stream, client) = tokio::select! {
            _ = &mut stopped => break,
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept() => match accepted {
                Ok((stream, client)) => (stream, client),
                Err(error) => {
                    // For example too many open files, which may pass.
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let room = tokio::select! {
            _ = &mut stopped => break,
            room = room(&connections, &mut tasks) => room,
        };
        let Some(connection) = room else { continue };
        let served = serve((stream, client.ip()), handler.clone(), limits, connection.clone());
        let served = graceful.watch(served);
        tasks.spawn(async move {
            tokio::select! {
                // The client notices an error of its connection.
                _ = served => {}
                () = connection.cut() => {}
            }
            connection.leave();
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(STOP_GRACE, graceful.shutdown()).await;
}

/// Room for one more connection. If all are busy or new, it waits for a while: requests end, and clients that have gone are noticed.
/// Clients that come meanwhile wait in the listener's queue. `None` closes the connection.
async fn room(connections: &Connections, tasks: &mut JoinSet<()>) -> Option<Arc<Connection>> {
    let end = Instant::now() + ROOM_WAIT;
    loop {
        if let Some(connection) = connections.enter() {
            return Some(connection);
        }
        tokio::select! {
            // A connection may also become idle, which ends no task.
            () = tokio::time::sleep(ROOM_TICK) => {}
            Some(_) = tasks.join_next() => {}
        }
        if Instant::now() > end {
            return None;
        }
    }
}

fn serve(
    (stream, client): (TcpStream, IpAddr),
    handler: Handler,
    limits: PortLimits,
    connection: Arc<Connection>,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> {
    // Without this, an answer in two writes waits 40 ms for the acknowledgement of the first.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ClientAddress(client));
        answer(request, handler.clone(), limits.body, connection.clone())
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
}

async fn answer(
    request: Request<Incoming>,
    handler: Handler,
    pause: Duration,
    connection: Arc<Connection>,
) -> Reply {
    let request = request.map(|body| {
        if body.is_end_stream() {
            connection.work();
            Body::empty()
        } else {
            Body::new(Received::new(body, pause, connection.clone()))
        }
    });
    let response = handler.call(request).await?;
    let streams = is_stream(&response);
    Ok(response.map(|body| Body::new(Sent::new(body, connection, streams))))
}

fn is_stream(response: &Response<Body>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn ask(address: SocketAddr) -> io::Result<String> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn a_connection_waits_while_all_others_are_busy() {
        let slow = async || {
            tokio::time::sleep(Duration::from_millis(200)).await;
            "done"
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let limits = PortLimits { connections: 2, ..PortLimits::default() };
        let served = Served::start(listener, Router::new().route("/", get(slow)).into(), limits).unwrap();
        let address = served.address;
        let asked: Vec<_> = (0..6).map(|_| tokio::spawn(ask(address))).collect();
        for one in asked {
            let answer = one.await.unwrap().unwrap();
            assert!(answer.ends_with("done"), "{answer:?}");
        }
        served.stop().await;
    }
}
