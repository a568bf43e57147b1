//! Against web pages that would call a server on their reader's machine or in their reader's name.
//!
//! Without authentication the server is for this machine alone: the name it is called by has to be this machine's, which
//! a page that had its own name resolved to 127.0.0.1 can't fake. With authentication a page of another origin has no
//! credentials to send; it is refused all the same, as the protocol asks for.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use shared::config::AuthConfig;
use shared::{Error, Result};

/// # Errors
/// 403 for a `Host` or an `Origin` that is not to call here.
pub fn check(auth: &AuthConfig, headers: &HeaderMap) -> Result<()> {
    let local_only = matches!(auth, AuthConfig::Off);
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let host = host.and_then(|host| host.parse::<Authority>().ok());
    let host = host.as_ref().map(Authority::host);
    if local_only && !host.is_some_and(is_this_machine) {
        return Err(Error::Forbidden(
            "without authentication this server answers to this machine's names only",
        ));
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
    match origin.as_ref().and_then(Uri::host) {
        Some(origin) if is_this_machine(origin) || !local_only && Some(origin) == host => Ok(()),
        _ => Err(Error::Forbidden("pages of this origin may not call here")),
    }
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || matches!(host, "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_machine_or_this_server_call() {
        let check = |auth: &AuthConfig, host: Option<&str>, origin: Option<&str>, expected: bool| {
            let mut headers = HeaderMap::new();
            for (name, value) in [(header::HOST, host), (header::ORIGIN, origin)] {
                if let Some(value) = value {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            assert_eq!(super::check(auth, &headers).is_ok(), expected, "{auth:?} {host:?} {origin:?}");
        };
        let (off, on) = (AuthConfig::Off, AuthConfig::On(None));
        for auth in [&off, &on] {
            check(auth, Some("127.0.0.1:9000"), None, true);
            check(auth, Some("localhost:9000"), Some("http://localhost:6274"), true);
            check(auth, Some("[::1]:9000"), Some("http://[::1]:9000"), true);
            check(auth, Some("localhost"), Some("http://evil.example"), false);
            check(auth, Some("localhost"), Some("null"), false);
            check(auth, Some("localhost"), Some("http://localhost.evil.example"), false);
        }
        check(&off, Some("evil.example"), None, false);
        check(&off, Some("evil.example"), Some("http://evil.example"), false);
        check(&off, None, None, false);
        check(&on, Some("api.example"), None, true);
        check(&on, Some("api.example"), Some("https://api.example"), true);
        check(&on, Some("api.example"), Some("https://evil.example"), false);
        check(&on, None, None, true);
    }
}
