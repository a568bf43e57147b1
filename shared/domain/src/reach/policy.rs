//! Which hosts the operator allows although they are not public, and which ports are used.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::Host;

use super::Address;

/// What may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Hosts that are reached although they are not public.
    pub allowed_hosts: Vec<AllowedHost>,
    /// The ports that are used. A port that `allowed_hosts` names with a host is used for that host, too.
    pub ports: Vec<u16>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { allowed_hosts: Vec::new(), ports: vec![80, 443] }
    }
}

impl Policy {
    /// Whether the operator allows this host at this port.
    pub(super) fn allows(&self, host: &Host<String>, port: u16) -> bool {
        self.allowed_hosts.iter().any(|allowed| {
            allowed.host == *host
                && allowed.port.map_or_else(|| self.ports.contains(&port), |own| own == port)
        })
    }

    /// Whether the operator allows this host at any port.
    pub(super) fn names(&self, host: &Host<String>) -> bool {
        self.allowed_hosts.iter().any(|allowed| allowed.host == *host)
    }
}

/// A host that the operator allows: `host`, `host:port`, `[IPv6]` or `[IPv6]:port`. It matches exactly, without wildcards, after both
/// sides are parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    host: Host<String>,
    /// `None`: the ports of the policy.
    port: Option<u16>,
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            None => self.host.fmt(f),
            Some(port) => write!(f, "{}:{port}", self.host),
        }
    }
}

/// Why a text is not a host that may be allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHost {
    #[error("must be hosts such as models.internal or 10.0.0.7:8080")]
    Malformed,
    #[error("must be hosts with ports from 1 to 65535")]
    Port,
    #[error("cannot allow {0}, a reserved address: must be hosts")]
    Reserved(IpAddr),
}

impl FromStr for AllowedHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
            _ => (text, None),
        };
        let port = match port {
            None => None,
            // `parse` would take a plus sign.
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().ok().filter(|port| *port > 0).ok_or(InvalidHost::Port)?)
            }
            Some(_) => return Err(InvalidHost::Port),
        };
        let host = Host::parse(host).map_err(|_| InvalidHost::Malformed)?;
        match &host {
            Host::Domain(name) if !is_name(name) => return Err(InvalidHost::Malformed),
            Host::Domain(_) => {}
            _ => {
                let ip = literal(&host).ok_or(InvalidHost::Malformed)?;
                if Address::of(ip) == Address::Reserved {
                    return Err(InvalidHost::Reserved(ip));
                }
            }
        }
        Ok(Self { host, port })
    }
}

/// The address, if the host is one.
pub(super) fn literal(host: &Host<String>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(ip) => Some((*ip).into()),
        Host::Ipv6(ip) => Some((*ip).into()),
    }
}

/// Whether a parsed domain is a name as DNS has it. `url` also takes names with other characters, empty labels, or any length.
/// A final dot is refused: the same host would have two names.
pub(crate) fn is_name(domain: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    domain.len() <= 253 && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_are_parsed() {
        for (text, shown) in [
            ("models.internal", "models.internal"),
            ("MODELS.Internal:8080", "models.internal:8080"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("localhost", "localhost"),
            ("127.1:11434", "127.0.0.1:11434"),
            ("10.0.0.7", "10.0.0.7"),
            ("[fd00:0:0::7]:443", "[fd00::7]:443"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(text.parse::<AllowedHost>().unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_not_one_host_is_refused() {
        use InvalidHost::{Malformed, Port};
        for (text, expected) in [
            ("", Malformed),
            ("*", Malformed),
            ("*.internal", Malformed),
            (".internal", Malformed),
            ("a..internal", Malformed),
            ("models.internal.", Malformed),
            ("http://models.internal", Port),
            ("user@models.internal", Malformed),
            ("models.internal/v1", Malformed),
            ("a b", Malformed),
            ("10.0.0.0/8", Malformed),
            ("fd00::7", Malformed),
            ("[fd00::7", Malformed),
            ("[fe80::1%25eth0]", Malformed),
            ("models.internal:", Port),
            ("models.internal:0", Port),
            ("models.internal:+80", Port),
            ("models.internal:65536", Port),
            ("models.internal:http", Port),
        ] {
            assert_eq!(text.parse::<AllowedHost>(), Err(expected), "{text}");
        }
        for text in
            ["169.254.169.254", "[fd00:ec2::254]:80", "0.0.0.0:8080", "[::ffff:127.0.0.1]", "2852039166"]
        {
            assert!(matches!(text.parse::<AllowedHost>(), Err(InvalidHost::Reserved(_))), "{text}");
        }
    }
}
