//! DNS whose answers are checked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use domain::reach::{may_connect, not_public};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A name is refused because DNS answers an address that may not be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is refused: {}", not_public(Some(.name), *.ip))]
pub struct NotReachable {
    pub name: String,
    pub ip: IpAddr,
}

/// The resolver of the operating system.
pub(super) struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await?.collect::<Vec<_>>();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Passes the answers of another resolver on, if all of them may be reached.
///
/// One address that may not be reached refuses the name: no public server has one, and a client that leaves out such addresses would show
/// an attacker which of them answer.
pub(super) struct Guarded {
    inner: Arc<dyn Resolve>,
    /// Whether the operator allows the hosts that are resolved here.
    allowed: bool,
}

impl Guarded {
    pub(super) const fn new(inner: Arc<dyn Resolve>, allowed: bool) -> Self {
        Self { inner, allowed }
    }
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, allowed) = (name.as_str().to_owned(), self.allowed);
        let answers = self.inner.resolve(name);
        Box::pin(async move {
            let addresses = answers.await?.map(|address| address.ip()).collect::<Vec<_>>();
            if let Some(ip) = addresses.iter().find(|ip| !may_connect(&host, allowed, **ip)) {
                return Err(NotReachable { name: host, ip: *ip }.into());
            }
            // Port 0 stands for the port of the URL.
            Ok(Box::new(addresses.into_iter().map(|ip| SocketAddr::new(ip, 0))) as Addrs)
        })
    }
}
