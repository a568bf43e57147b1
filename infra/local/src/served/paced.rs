//! Bodies that report the state of their connection. Request bodies also have a time limit.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use super::connections::Connection;

type BoxError = Box<dyn Error + Send + Sync>;

/// A request's body. A pause that is too long ends it with an error.
pub(super) struct Received {
    body: Incoming,
    pause: Duration,
    patience: Pin<Box<Sleep>>,
    connection: Arc<Connection>,
}

impl Received {
    pub(super) fn new(body: Incoming, pause: Duration, connection: Arc<Connection>) -> Self {
        Self { body, pause, patience: Box::pin(tokio::time::sleep(pause)), connection }
    }
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) else {
            ready!(this.patience.as_mut().poll(cx));
            let late = io::Error::new(io::ErrorKind::TimedOut, "the body did not arrive in time");
            return Poll::Ready(Some(Err(late.into())));
        };
        this.patience.as_mut().reset(Instant::now() + this.pause);
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.connection.work();
    }
}

/// An answer's body.
pub(super) struct Sent {
    body: Body,
    connection: Arc<Connection>,
    streams: bool,
}

impl Sent {
    pub(super) fn new(body: Body, connection: Arc<Connection>, streams: bool) -> Self {
        if streams {
            connection.stream();
        } else {
            connection.send();
        }
        Self { body, connection, streams }
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.streams {
            self.connection.send();
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.connection.rest();
    }
}
