//! Limits the rate of requests, by owner, or by address if there are no credentials. [`domain::accounts::rates`] has the
//! classes and their limits.
//!
//! A counter in the table makes a limit hold across all processes: each request is one conditional write, and no read.
//! A process that has learnt that a window is used up answers without a write until the window ends.
//!
//! If the table does not answer, the request passes. The limits protect the platform from too much use, and the costs of
//! models have ceilings of their own, which are reserved in the same table. So nothing expensive passes while the table
//! is out of reach, and a limit must not add an outage of its own.

use std::net::IpAddr;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::accounts::rates::{RouteClass, WINDOW_SECONDS, Window};
use domain::ids::Owner;
use http::{HeaderMap, HeaderName, HeaderValue};
use lambda_http::request::RequestContext;

use crate::context::Cx;
use crate::edge::extract::Caller;
use crate::error::Error;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The address of a client that is connected to this process. The server adds it to the request. It never comes from a
/// header, because a client can send any header.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddress(pub IpAddr);

/// What a limit says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub limit: u32,
    /// How many more requests fit into the window. `None`: this one does not fit.
    pub remaining: Option<u32>,
    /// When the next window begins, in seconds.
    pub reset_seconds: u64,
}

impl Rate {
    fn tell(&self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, self.limit.into());
        headers.insert(REMAINING, self.remaining.unwrap_or_default().into());
        headers.insert(RESET, self.reset_seconds.into());
        if let Ok(policy) = HeaderValue::try_from(format!("{};w={WINDOW_SECONDS}", self.limit)) {
            headers.insert(POLICY, policy);
        }
    }

    fn refusal(&self, class: RouteClass) -> Response {
        let mut response = Error::TooManyRequests {
            limit: self.limit,
            class: class.name(),
            retry_after_seconds: self.reset_seconds,
        }
        .into_response();
        self.tell(response.headers_mut());
        response
    }
}

/// The middleware.
pub async fn layer(State(cx): State<Cx>, request: Request, next: Next) -> Response {
    let Some(class) = class_of(&request) else { return next.run(request).await };
    let owner = request.extensions().get::<Caller>().map(|caller| &caller.owner);
    let caller = owner.map_or_else(|| by_address(&request), by_owner);
    let Some(rate) = count(&cx, &caller, class).await else { return next.run(request).await };
    if rate.remaining.is_none() {
        return rate.refusal(class);
    }
    let mut response = next.run(request).await;
    rate.tell(response.headers_mut());
    response
}

/// The answer to a request with credentials that are not valid. It counts for the address, so that nobody tries many.
pub(crate) fn unauthenticated(cx: &Cx, request: &Request, error: Error) -> impl Future<Output = Response> {
    let (cx, caller, class) = (cx.clone(), by_address(request), class_of(request));
    async move {
        let Some(class) = class else { return error.into_response() };
        match count(&cx, &caller, class).await {
            Some(rate) if rate.remaining.is_none() => rate.refusal(class),
            Some(rate) => {
                let mut response = error.into_response();
                rate.tell(response.headers_mut());
                response
            }
            None => error.into_response(),
        }
    }
}

/// Counts a request. `None` if there is no limit, or if the table does not answer.
pub async fn count(cx: &Cx, caller: &str, class: RouteClass) -> Option<Rate> {
    let limit = cx.config.rates.per_minute(class)?;
    let now = cx.clock.now();
    let window = Window::at(now);
    let rate = |remaining| Rate { limit, remaining, reset_seconds: window.remaining_seconds(now) };
    if cx.used_up.contains(caller, class, window) {
        return Some(rate(None));
    }
    match cx.store.count_request(caller, class, window, limit).await {
        Ok(counted) => {
            let remaining = counted.map(|count| limit.saturating_sub(count));
            if remaining.is_none_or(|remaining| remaining == 0) {
                cx.used_up.add(caller, class, window);
            }
            Some(rate(remaining))
        }
        Err(error) => {
            tracing::warn!(cause = %Error::from(error).causes(), "a request was not counted; it passes");
            None
        }
    }
}

fn class_of(request: &Request) -> Option<RouteClass> {
    let path = request.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str);
    RouteClass::of(request.method().as_str(), path)
}

/// The name under which the requests of an owner are counted.
#[must_use]
pub fn by_owner(owner: &Owner) -> String {
    format!("owner {owner}")
}

/// The name under which the requests of an address are counted.
fn by_address(request: &Request) -> String {
    match address(request) {
        Some(address) => format!("address {}", network(address)),
        None => "address unknown".to_owned(),
    }
}

/// The client's address: behind API Gateway the one that the gateway has seen, otherwise the one of the connection.
fn address(request: &Request) -> Option<IpAddr> {
    match request.extensions().get::<RequestContext>() {
        Some(RequestContext::ApiGatewayV1(context)) => context.identity.source_ip.as_ref()?.parse().ok(),
        _ => request.extensions().get::<ClientAddress>().map(|ClientAddress(address)| *address),
    }
}

/// The part of an address that one customer of a provider has. With IPv6, that is a network of 2⁶⁴ addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_customer_is_one_caller() {
        let same = |a: &str, b: &str| network(a.parse().unwrap()) == network(b.parse().unwrap());
        assert!(same("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"));
        assert!(!same("2001:db8:1:2::1", "2001:db8:1:3::1"));
        assert!(!same("192.0.2.1", "192.0.2.2"));
        assert!(same("::ffff:192.0.2.1", "192.0.2.1"));
    }
}
