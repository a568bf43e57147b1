//! The sockets that people and models are answered on.

use std::net::SocketAddr;

use axum::serve::{Listener, ListenerExt};
use tokio::net::TcpListener;

/// Sends each event as it is written. The system would hold a small second piece back until the client has acknowledged
/// the first, which clients put off for 40 ms.
pub fn without_delay(listener: TcpListener) -> impl Listener<Addr = SocketAddr> {
    listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
    })
}
