//! JSON Web Tokens of the configured issuer. The library verifies the signature. The claims are checked here, with
//! strict types and this platform's clock.

use std::sync::LazyLock;

use domain::ids::Owner;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use shared::config::{JwtConfig, JwtKeys};
use shared::{Error, Result};

use crate::jwks::{self, Key, KeyCache};

/// The allowed difference between clocks, in seconds.
const LEEWAY: f64 = 60.0;

/// One cache per process: a warm execution environment fetches the keys once.
static KEYS: LazyLock<KeyCache> = LazyLock::new(KeyCache::default);

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Audience,
    sub: String,
    /// Seconds since the epoch, like `nbf`. RFC 7519 allows fractions.
    exp: f64,
    nbf: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Audience {
    fn names(&self, audience: &str) -> bool {
        match self {
            Self::One(one) => one == audience,
            Self::Many(many) => many.iter().any(|one| one == audience),
        }
    }
}

/// The owner that a token for `audience` identifies.
///
/// # Errors
/// 401 if the token is not valid; 503 if the issuer's keys are not available.
pub async fn owner(config: &JwtConfig, audience: &str, token: &str, now: Timestamp) -> Result<Owner> {
    let key = match &config.keys {
        JwtKeys::Hs256 { secret } => {
            Key { id: None, algorithm: Algorithm::HS256, decoding: DecodingKey::from_secret(secret) }
        }
        JwtKeys::Jwks { url, authorities } => {
            let id = decode_header(token).map_err(|_| MALFORMED)?.kid;
            let found = KEYS.find(url, id.as_deref(), now, || jwks::fetch(url, authorities.clone())).await;
            let unreachable =
                |error: jwks::FetchError| Error::Outside { what: "the issuer", cause: error.to_string() };
            found
                .map_err(unreachable)?
                .ok_or(Error::Unauthenticated("the token's key is not one of the issuer's keys"))?
        }
    };
    let claims = verified(token, &key)?;
    check(&claims, &config.issuer, audience, now)?;
    Ok(Owner::from_subject(&claims.sub))
}

const MALFORMED: Error = Error::Unauthenticated("the token is neither an API key nor a JWT");

/// The claims of a token that was signed with this key.
fn verified(token: &str, key: &Key) -> Result<Claims> {
    let header = decode_header(token).map_err(|_| MALFORMED)?;
    if header.alg != key.algorithm {
        return Err(Error::Unauthenticated("the token's algorithm is not the algorithm of its key"));
    }
    // No extensions are supported, and critical extensions must be rejected.
    if header.crit.is_some() {
        return Err(Error::Unauthenticated("the token has critical extensions"));
    }
    let mut validation = Validation::new(key.algorithm);
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    decode(token, &key.decoding, &validation).map(|data| data.claims).map_err(|error| {
        use jsonwebtoken::errors::ErrorKind;
        Error::Unauthenticated(match error.kind() {
            ErrorKind::Json(_) | ErrorKind::Utf8(_) => {
                "the token must have valid iss, aud, sub and exp claims"
            }
            _ => "the token's signature is not valid",
        })
    })
}

fn check(claims: &Claims, issuer: &str, audience: &str, now: Timestamp) -> Result<()> {
    let now = now.as_second() as f64;
    let refusal = if claims.iss != issuer {
        "the token is from another issuer"
    } else if !claims.aud.names(audience) {
        "the token is for another audience"
    } else if claims.sub.is_empty() {
        "the token has no subject"
    } else if now >= claims.exp + LEEWAY {
        "the token has expired"
    } else if claims.nbf.is_some_and(|nbf| now < nbf - LEEWAY) {
        "the token is not valid yet"
    } else {
        return Ok(());
    };
    Err(Error::Unauthenticated(refusal))
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
