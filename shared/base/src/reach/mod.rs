//! Requests to servers that people and models name: the guard against server-side request forgery.
//!
//! [`domain::reach`] judges URLs and addresses. Here, requests are sent only to what was judged:
//!
//! - [`connect`] does the same for protocols other than HTTP.
//! - A [`Client`] takes a [`Checked`] URL and nothing else. It checks every address that DNS answers, and connects to the addresses that
//!   it checked, so a second answer of DNS cannot lead elsewhere.
//! - It follows no redirects, uses no proxy, and never sends a request twice by itself. [`Fetch`] follows redirects and judges each.
//! - It decompresses nothing. [`Fetch`] asks for uncompressed answers. Servers that compress them anyway are read if it is gzip or deflate,
//!   and the limit of bytes counts for what comes out.

mod connect;
mod fetch;
mod resolver;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use domain::reach::{Checked, Policy, Refused};
use reqwest::dns::Resolve;
use reqwest::{Method, RequestBuilder};

pub use connect::{connect, encrypt};
pub use fetch::{Ask, Fetch, FetchError, FetchLimits, Fetched};
use resolver::{Guarded, System};

use crate::https;

/// Sends requests to public servers, and to those that the policy allows. A clone shares its connections.
#[derive(Clone, Debug)]
pub struct Client {
    policy: Arc<Policy>,
    public: reqwest::Client,
    /// For the hosts that the operator allows. Its connections may lead to private addresses, so `public` does not share them.
    allowed: reqwest::Client,
}

/// A client for requests of our own, such as calls of a model server. Connecting takes at most `connect`, and a server may be silent for
/// `silence`. The caller limits the whole request and the bytes of the answer.
///
/// # Panics
/// Never: the client has nothing to read at start.
#[must_use]
pub fn client(policy: Arc<Policy>, connect: Duration, silence: Duration) -> Client {
    with_resolver(policy, connect, silence, &(Arc::new(System) as Arc<dyn Resolve>))
}

fn with_resolver(
    policy: Arc<Policy>,
    connect: Duration,
    silence: Duration,
    resolver: &Arc<dyn Resolve>,
) -> Client {
    let client = |allowed| {
        reqwest::Client::builder()
            .tls_backend_preconfigured(https::tls())
            .dns_resolver(Guarded::new(resolver.clone(), allowed))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .connect_timeout(connect)
            .read_timeout(silence)
            .build()
            .expect("the client has nothing to read at start")
    };
    Client { policy, public: client(false), allowed: client(true) }
}

impl Client {
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Parses and judges a URL.
    ///
    /// # Errors
    /// [`Refused`] says what is refused, and why.
    pub fn check(&self, url: &str) -> Result<Checked, Refused> {
        domain::reach::check(url, &self.policy)
    }

    /// Begins a request. An error of it may hold a [`refusal`].
    pub fn request(&self, method: Method, url: &Checked) -> RequestBuilder {
        let client = if url.is_allowed() { &self.allowed } else { &self.public };
        client.request(method, url.url().clone())
    }
}

/// The host of a request that was refused because of an address that DNS answered. `None` if the request failed for another reason.
#[must_use]
pub fn refusal(error: &reqwest::Error) -> Option<&NotReachable> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(refusal) = error.downcast_ref() {
            return Some(refusal);
        }
        cause = error.source();
    }
    None
}

pub use resolver::NotReachable;
