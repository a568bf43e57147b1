//! The address of a server.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ureq::http::Uri;

/// `http://host[:port][/path]`, or with `https`. It has no slash at the end, no query, no user name and no password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    text: String,
    https: bool,
    near: bool,
}

/// Why a text is not the address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("it is not a URL")]
    Syntax,
    #[error("it must begin with http:// or https://")]
    Scheme,
    #[error("it may have no user name or password")]
    UserInfo,
    #[error("it may have no query")]
    Query,
}

impl Url {
    /// Whether the server is on this machine. Then answers come in microseconds, or not at all.
    #[must_use]
    pub fn is_near(&self) -> bool {
        self.near
    }

    /// Whether nobody on the network can read what is sent.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.https || self.near
    }

    /// The address of a path below this one, with the parameters that have a value. The path begins with a slash.
    #[must_use]
    pub fn at(&self, path: &str, query: &[(&str, Option<&str>)]) -> String {
        let mut url = format!("{}{path}", self.text);
        let mut sign = '?';
        for (name, value) in query {
            if let Some(value) = value {
                url.push(sign);
                url.push_str(name);
                url.push('=');
                url.extend(form_urlencoded::byte_serialize(value.as_bytes()));
                sign = '&';
            }
        }
        url
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let text = text.trim().trim_end_matches('/');
        let uri: Uri = text.parse().map_err(|_| UrlError::Syntax)?;
        let https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(UrlError::Scheme),
        };
        let authority = uri.authority().ok_or(UrlError::Syntax)?;
        if authority.as_str().contains('@') {
            return Err(UrlError::UserInfo);
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(UrlError::Query);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let near = host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        Ok(Self { text: text.to_owned(), https, near })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One segment of a path, with any characters escaped.
#[must_use]
pub fn segment(text: &str) -> String {
    // Only in a query does a plus mean a space.
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_distinguished() {
        // text, near, private
        for (text, near, private) in [
            ("http://127.0.0.1:9000", true, true),
            ("http://127.8.8.8/", true, true),
            ("http://localhost", true, true),
            ("http://LOCALHOST:1/base/", true, true),
            ("http://[::1]:9000", true, true),
            ("http://example.com", false, false),
            ("http://127.0.0.1.example.com", false, false),
            ("https://example.com/prod", false, true),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!((url.is_near(), url.is_private()), (near, private), "{text}");
            assert_eq!(url.to_string(), text.trim_end_matches('/'));
        }
        for (text, error) in [
            ("", UrlError::Syntax),
            ("example.com", UrlError::Scheme),
            ("ftp://example.com", UrlError::Scheme),
            ("/context", UrlError::Scheme),
            ("https://me:secret@example.com", UrlError::UserInfo),
            ("https://example.com/?a=b", UrlError::Query),
            ("https://exa mple.com", UrlError::Syntax),
        ] {
            assert_eq!(text.parse::<Url>(), Err(error), "{text}");
        }
    }

    #[test]
    fn only_parameters_with_a_value_are_written() {
        let url: Url = "https://example.com/prod".parse().unwrap();
        assert_eq!(
            url.at("/x", &[("a", Some("ü &=")), ("b", None), ("c", Some("1"))]),
            "https://example.com/prod/x?a=%C3%BC+%26%3D&c=1"
        );
        assert_eq!(url.at("/x", &[("a", None)]), "https://example.com/prod/x");
        assert_eq!(segment("a/b ../ü"), "a%2Fb%20..%2F%C3%BC");
    }
}
