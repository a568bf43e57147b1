//! Judges a URL before a request.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use super::policy::{is_name, literal};
use super::{Address, Policy};

/// The longest URL, in bytes.
pub const MAX_URL_BYTES: usize = 8_192;

/// The ends of names that networks give to their own machines, and of names that DNS does not have.
const INTERNAL: [&str; 14] = [
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "onion",
    "alt",
    "test",
    "invalid",
];

/// A URL that may be requested. The addresses that DNS answers for its host are checked when a connection is opened.
#[derive(Clone, PartialEq, Eq)]
pub struct Checked {
    url: Url,
    allowed: bool,
}

/// Why a URL is not requested. It shows at most scheme, host and port, because user names, paths and queries may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{target} is refused: {reason}")]
pub struct Refused {
    /// `scheme://host:port`, or what is known of it.
    pub target: String,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("the URL is longer than {MAX_URL_BYTES} bytes")]
    Long,
    #[error("it has a control character, or white space at its ends")]
    Characters,
    #[error("the URL is invalid ({0})")]
    Malformed(String),
    #[error("the scheme must be http or https")]
    Scheme,
    #[error("the URL must not have a user name or a password")]
    Credentials,
    #[error("the host is not a valid name, or ends in a dot")]
    Name,
    #[error("names without a dot, and names in {0}, belong to private networks{MAY_BE_ALLOWED}", INTERNAL.map(|end| format!(".{end}")).join(", "))]
    Internal,
    #[error("port {0} is not permitted for this host{MAY_BE_ALLOWED}")]
    Port(u16),
    #[error("{}", not_public(None, *.0))]
    Address(IpAddr),
    #[error("it must be a name, not an address{MAY_BE_ALLOWED}")]
    Literal,
}

/// What follows a refusal that the operator can lift.
const MAY_BE_ALLOWED: &str = ". The operator may allow it with LAMPLIGHTER_ALLOWED_HOSTS, as host:port";

/// Why an address is refused that is a URL's host itself, or that DNS has answered for this name.
#[must_use]
pub fn not_public(name: Option<&str>, ip: IpAddr) -> String {
    let kind = Address::of(ip);
    let may_be_allowed =
        name.map_or(matches!(kind, Address::Private | Address::Loopback), |name| may_connect(name, true, ip));
    format!("{ip} is {}{}", kind.name(), if may_be_allowed { MAY_BE_ALLOWED } else { "" })
}

/// Parses and judges a URL.
///
/// # Errors
/// [`Refused`] says what is refused, and why.
pub fn check(text: &str, policy: &Policy) -> Result<Checked, Refused> {
    judge(text, Url::parse, policy)
}

/// Parses and judges a URL that must be `https`. A host that the operator allows may be one without certificates.
///
/// # Errors
/// What is wrong, as it follows the name of a field.
pub fn check_https(text: &str, policy: &Policy) -> Result<Checked, String> {
    match check(text, policy) {
        Ok(checked) if checked.url().scheme() != "https" && !checked.is_allowed() => {
            Err("must begin with https://".to_owned())
        }
        Ok(checked) => Ok(checked),
        Err(refused) => Err(format!("must be a public https address: {}", refused.reason)),
    }
}

/// Judges a host without a scheme and a port, and returns it as the URLs of [`Checked`] have it. An address is one only if the
/// operator allows it.
///
/// # Errors
/// Why it is refused.
pub fn check_host(text: &str, policy: &Policy) -> Result<String, Reason> {
    if text.len() > MAX_URL_BYTES {
        return Err(Reason::Long);
    }
    let host = Host::parse(text).map_err(|error| Reason::Malformed(error.to_string()))?;
    match &host {
        _ if policy.names(&host) => {}
        Host::Domain(name) if !is_name(name) => return Err(Reason::Name),
        Host::Domain(name) if is_internal(name) => return Err(Reason::Internal),
        Host::Domain(_) => {}
        Host::Ipv4(_) | Host::Ipv6(_) => return Err(Reason::Literal),
    }
    Ok(host.to_string())
}

fn judge(
    text: &str,
    parse: impl FnOnce(&str) -> Result<Url, url::ParseError>,
    policy: &Policy,
) -> Result<Checked, Refused> {
    let unparsed = |reason| Refused { target: "the URL".to_owned(), reason };
    if text.len() > MAX_URL_BYTES {
        return Err(unparsed(Reason::Long));
    }
    // The parser would drop these characters, also inside of the host.
    if text.chars().any(char::is_control) || text.trim() != text {
        return Err(unparsed(Reason::Characters));
    }
    let mut url = parse(text).map_err(|error| unparsed(Reason::Malformed(error.to_string())))?;
    let scheme = url.scheme();
    let refused = |reason| Refused { target: origin(&url), reason };
    if scheme != "http" && scheme != "https" {
        return Err(refused(Reason::Scheme));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(Reason::Credentials));
    }
    let host = url.host().map(|host| host.to_owned()).ok_or_else(|| refused(Reason::Name))?;
    let port = url.port_or_known_default().ok_or_else(|| refused(Reason::Scheme))?;
    let allowed = judge_host(&host, port, &policy.ports, policy).map_err(refused)?;
    url.set_fragment(None);
    Ok(Checked { url, allowed })
}

/// Judges a host and a port. `ports`: those that are used at public hosts. Returns whether the operator allows it although it is not public.
fn judge_host(host: &Host<String>, port: u16, ports: &[u16], policy: &Policy) -> Result<bool, Reason> {
    if policy.allows(host, port) {
        return Ok(true);
    }
    match (host, literal(host)) {
        (Host::Domain(name), _) if !is_name(name) => Err(Reason::Name),
        (Host::Domain(name), _) if is_internal(name) => Err(Reason::Internal),
        (_, Some(ip)) if Address::of(ip) != Address::Public => Err(Reason::Address(ip)),
        _ if !ports.contains(&port) => Err(Reason::Port(port)),
        _ => Ok(false),
    }
}

/// A server of another protocol than HTTP that may be connected to. The addresses that DNS answers for its host are checked when a
/// connection is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedServer {
    host: Host<String>,
    name: String,
    port: u16,
    allowed: bool,
}

/// Judges a server of another protocol than HTTP. `ports`: those that are used at public hosts. A host that the operator allows is
/// allowed at the ports that `LAMPLIGHTER_ALLOWED_HOSTS` names with it, and at those of HTTP.
///
/// # Errors
/// Why it is refused.
pub fn check_server(host: &str, port: u16, ports: &[u16], policy: &Policy) -> Result<CheckedServer, Reason> {
    if host.len() > MAX_URL_BYTES {
        return Err(Reason::Long);
    }
    if host.chars().any(char::is_control) || host.trim() != host {
        return Err(Reason::Characters);
    }
    let host = Host::parse(host).map_err(|error| Reason::Malformed(error.to_string()))?;
    let allowed = judge_host(&host, port, ports, policy)?;
    let name = match literal(&host) {
        Some(ip) => ip.to_string(),
        None => host.to_string(),
    };
    Ok(CheckedServer { host, name, port, allowed })
}

impl CheckedServer {
    /// The name in small letters, or the address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The address, if the host is one.
    #[must_use]
    pub fn literal(&self) -> Option<IpAddr> {
        literal(&self.host)
    }

    /// Whether the operator allows this host although it is not public.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.allowed
    }
}

impl fmt::Display for CheckedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// `name` is in lower case, as the parser leaves it.
fn is_internal(name: &str) -> bool {
    let ends_in =
        |end: &str| name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    !name.contains('.') || INTERNAL.into_iter().any(ends_in)
}

/// Scheme, host and port. Schemes other than ours may hide a secret anywhere, so that only the scheme is shown.
fn origin(url: &Url) -> String {
    match url.host() {
        Some(host) if matches!(url.scheme(), "http" | "https") => {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{}://{host}{port}", url.scheme())
        }
        _ => format!("a URL with the scheme {}", url.scheme()),
    }
}

impl Checked {
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// Whether the operator allows this host although it is not public.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Scheme, host and port, without anything that may be secret.
    #[must_use]
    pub fn origin(&self) -> String {
        origin(&self.url)
    }

    #[must_use]
    pub fn is_same_origin(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin()
    }

    /// Judges where a redirect leads. `location` may be relative to this URL.
    ///
    /// # Errors
    /// As [`check`].
    pub fn join(&self, location: &str, policy: &Policy) -> Result<Self, Refused> {
        judge(location, |location| self.url.join(location), policy)
    }
}

/// Judges an address that DNS has answered for `name`. `allowed` is [`Checked::is_allowed`] of the URL that is requested.
#[must_use]
pub fn may_connect(name: &str, allowed: bool, ip: IpAddr) -> bool {
    match Address::of(ip) {
        Address::Public => true,
        Address::Private => allowed,
        // The owner of another name could point it at this machine.
        Address::Loopback => allowed && name == "localhost",
        Address::Reserved => false,
    }
}

/// Without path and query, which may be secret.
impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked").field("origin", &self.origin()).field("allowed", &self.allowed).finish()
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
