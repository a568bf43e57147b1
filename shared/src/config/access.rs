//! Who may call, how often, and from which web pages.

use std::sync::Arc;

use base::https;
use domain::accounts::rates::RateLimits;
use http::HeaderValue;
use rustls::RootCertStore;

use super::{ConfigError, Env, listed};

/// Who may call.
#[derive(Clone, Debug)]
pub enum AuthConfig {
    /// Every call is the owner `local`. Only for a server that nobody else can reach.
    Off,
    On(Option<Arc<JwtConfig>>),
}

/// A text that the environment has, or that a variable of the API's stage has.
///
/// A stack that makes its own user pool needs the second form: the pool's client contains the address of the API, the API
/// contains the functions, so their environment cannot contain the id of that client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    Text(String),
    StageVariable(String),
}

impl Given {
    /// A text that begins with `stage:` names a variable of the stage.
    fn read(text: String) -> Self {
        match text.strip_prefix("stage:") {
            Some(name) => Self::StageVariable(name.to_owned()),
            None => Self::Text(text),
        }
    }

    /// The text. `None` if the stage has no such variable.
    pub fn text(&self, stage: impl FnOnce(&str) -> Option<String>) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::StageVariable(name) => stage(name).filter(|value| !value.is_empty()),
        }
    }
}

/// Whose tokens are accepted.
#[derive(Clone, Debug)]
pub struct JwtConfig {
    pub issuer: String,
    pub audience: Given,
    pub keys: JwtKeys,
}

/// The keys that verify a token's signature.
#[derive(Clone)]
pub enum JwtKeys {
    /// RS256, ES256 and EdDSA keys, fetched from `url` and cached. If `authorities` is set, only their certificates are
    /// trusted for this.
    Jwks { url: String, authorities: Option<RootCertStore> },
    /// A shared secret. No variable sets it; tests do.
    Hs256 { secret: Vec<u8> },
}

impl std::fmt::Debug for JwtKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Jwks { url, .. } => f.debug_struct("Jwks").field("url", url).finish_non_exhaustive(),
            Self::Hs256 { .. } => f.write_str("Hs256"),
        }
    }
}

impl AuthConfig {
    /// # Errors
    /// If a variable has an invalid value.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        match env("LAMPLIGHTER_AUTH").as_deref() {
            Some("off") => return Ok(Self::Off),
            None | Some("on") => {}
            Some(other) => {
                let problem = format!("must be `on` or `off`, is `{other}`");
                return Err(ConfigError { variable: "LAMPLIGHTER_AUTH", problem });
            }
        }
        let present = |variable| env(variable).filter(|value| !value.is_empty());
        let Some(issuer) = present("LAMPLIGHTER_JWT_ISSUER") else { return Ok(Self::On(None)) };
        let audience = present("LAMPLIGHTER_JWT_AUDIENCE").ok_or_else(|| ConfigError {
            variable: "LAMPLIGHTER_JWT_AUDIENCE",
            problem: "is required with LAMPLIGHTER_JWT_ISSUER".to_owned(),
        })?;
        let audience = Given::read(audience);
        let url = present("LAMPLIGHTER_JWKS_URL")
            .unwrap_or_else(|| format!("{}/.well-known/jwks.json", issuer.trim_end_matches('/')));
        if !url.starts_with("https://") {
            let problem = "must begin with https://".to_owned();
            return Err(ConfigError { variable: "LAMPLIGHTER_JWKS_URL", problem });
        }
        let authorities = match present("LAMPLIGHTER_JWKS_CA_FILE") {
            Some(path) => Some(authorities("LAMPLIGHTER_JWKS_CA_FILE", &path)?),
            None => None,
        };
        let keys = JwtKeys::Jwks { url, authorities };
        Ok(Self::On(Some(Arc::new(JwtConfig { issuer, audience, keys }))))
    }
}

/// The certificates of a PEM file.
pub(super) fn authorities(variable: &'static str, path: &str) -> Result<RootCertStore, ConfigError> {
    let refused = |problem: String| ConfigError { variable, problem };
    let pem =
        std::fs::read(path).map_err(|error| refused(format!("names a file that can't be read: {error}")))?;
    https::authorities(&pem).ok_or_else(|| refused("must name a PEM file of certificates".to_owned()))
}

/// The rate limits. Without authentication, only this machine calls, and there are none unless they are configured.
///
/// # Errors
/// If the variable has an invalid value.
pub fn rates(env: Env<'_>, auth: &AuthConfig) -> Result<RateLimits, ConfigError> {
    let variable = "LAMPLIGHTER_RATE_LIMITS";
    match env(variable).filter(|text| !text.trim().is_empty()) {
        None if matches!(auth, AuthConfig::Off) => Ok(RateLimits::OFF),
        text => {
            RateLimits::parse(&text.unwrap_or_default()).map_err(|problem| ConfigError { variable, problem })
        }
    }
}

/// The provider at which people sign in to the console: the authorization code flow of OpenID Connect with PKCE, in the browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignIn {
    pub client_id: Given,
    pub authorize_url: String,
    pub token_url: String,
    pub scope: String,
    pub token: SignInToken,
}

/// Which token of the provider the console sends to the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInToken {
    Id,
    Access,
}

impl SignInToken {
    /// Its name in the answer of the provider.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Id => "id_token",
            Self::Access => "access_token",
        }
    }
}

impl SignIn {
    /// `None` if no client is configured: then people paste a key.
    ///
    /// # Errors
    /// If an address is missing or not https, or another variable has an invalid value.
    pub fn read(env: Env<'_>) -> Result<Option<Self>, ConfigError> {
        let present = |variable| env(variable).filter(|value| !value.trim().is_empty());
        let Some(client_id) = present("LAMPLIGHTER_SIGN_IN_CLIENT_ID") else { return Ok(None) };
        let address = |variable: &'static str| match present(variable) {
            None => {
                let problem = "is required with LAMPLIGHTER_SIGN_IN_CLIENT_ID".to_owned();
                Err(ConfigError { variable, problem })
            }
            Some(url) if url.starts_with("https://") && url.parse::<http::Uri>().is_ok() => Ok(url),
            Some(url) => {
                let problem = format!("must be an address that begins with https://, is `{url}`");
                Err(ConfigError { variable, problem })
            }
        };
        let token = match present("LAMPLIGHTER_SIGN_IN_TOKEN").as_deref() {
            None | Some("id_token") => SignInToken::Id,
            Some("access_token") => SignInToken::Access,
            Some(other) => {
                let problem = format!("must be `id_token` or `access_token`, is `{other}`");
                return Err(ConfigError { variable: "LAMPLIGHTER_SIGN_IN_TOKEN", problem });
            }
        };
        Ok(Some(Self {
            client_id: Given::read(client_id),
            authorize_url: address("LAMPLIGHTER_SIGN_IN_AUTHORIZE_URL")?,
            token_url: address("LAMPLIGHTER_SIGN_IN_TOKEN_URL")?,
            scope: present("LAMPLIGHTER_SIGN_IN_SCOPE").unwrap_or_else(|| "openid".to_owned()),
            token,
        }))
    }
}

/// The origins of web pages that may call the API from a browser, as browsers send them.
#[derive(Clone, Debug, Default)]
pub struct CorsConfig {
    pub origins: Vec<HeaderValue>,
}

impl CorsConfig {
    /// # Errors
    /// If an origin is not of the form `https://host` or `https://host:port`, in lower case.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let variable = "LAMPLIGHTER_CORS_ORIGINS";
        let origins = listed(env, variable).into_iter().map(|origin| {
            is_origin(&origin).then(|| HeaderValue::try_from(&origin).ok()).flatten().ok_or_else(|| {
                let problem = format!(
                    "must be origins like https://app.example.com, separated by commas, and has `{origin}`"
                );
                ConfigError { variable, problem }
            })
        });
        Ok(Self { origins: origins.collect::<Result<_, _>>()? })
    }
}

/// Whether a text is an origin as browsers send it: scheme, host, and the port unless it is the default one.
fn is_origin(text: &str) -> bool {
    let Some(authority) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_host = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._[]:".contains(&byte);
    !host.is_empty() && host.bytes().all(is_host) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}
