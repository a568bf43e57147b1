//! Converts a JWT or an API key to an owner and a scope.
//!
//! [`authenticate`] identifies the caller. API Gateway calls it through [`FUNCTION`]; the local server calls
//! it directly. An error tells the caller its kind and nothing about the token, and no token is ever logged.

mod event;
mod jwks;
mod jwt;

use std::collections::HashMap;

use domain::accounts::scopes::Scope;
use domain::accounts::{ApiKeyToken, KEY_PREFIX};
use futures::FutureExt;
use http::{HeaderMap, header};
use models::Models;
use shared::config::AuthConfig;
use shared::edge::extract::Caller;
use shared::flows::accounts::api_keys;
use shared::runtime::function::{Function, Trigger};
use shared::{Cx, Error, Result};

pub const FUNCTION: Function = Function {
    name: "authorizer",
    trigger: Trigger::Authorizer { handler: |cx, event| event::authorize(cx, event).boxed() },
    models: Models::none,
    areas: &[],
};

/// The longest credentials, in bytes.
const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// The owner and the scope of a request's credentials. A JWT has all scopes. `stage` are the variables of the API's stage; a
/// local server has none.
///
/// # Errors
/// 401 if credentials are missing or invalid; 503 if they cannot be checked now; 500 if the configured audience is a variable
/// that the stage does not have.
pub async fn authenticate(cx: &Cx, headers: &HeaderMap, stage: &HashMap<String, String>) -> Result<Caller> {
    let token = bearer(headers)?;
    if token.starts_with(KEY_PREFIX) {
        return api_key(cx, token).await;
    }
    match &cx.config.auth {
        AuthConfig::On(Some(config)) => {
            let audience = config.audience.text(|name| stage.get(name).cloned());
            let audience = audience.ok_or_else(|| {
                Error::internal(format!("the stage has no variable for the audience ({:?})", config.audience))
            })?;
            let owner = jwt::owner(config, &audience, token, cx.clock.now()).await?;
            Ok(Caller { owner, scope: Scope::Admin, key: None })
        }
        AuthConfig::On(None) | AuthConfig::Off => Err(Error::Unauthenticated("this is not an API key")),
    }
}

fn bearer(headers: &HeaderMap) -> Result<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Error::Unauthenticated("exactly one Authorization header is required"));
    };
    let value = value.to_str().unwrap_or_default();
    let (scheme, token) = value.split_once(' ').unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Error::Unauthenticated(
            "the Authorization header must be `Bearer`, a space, and the token",
        ));
    }
    let token = token.trim();
    if token.len() > MAX_TOKEN_BYTES {
        return Err(Error::Unauthenticated("the token is longer than 8 KiB"));
    }
    Ok(token)
}

async fn api_key(cx: &Cx, token: &str) -> Result<Caller> {
    const REFUSED: Error = Error::Unauthenticated("the API key is not valid");
    let token: ApiKeyToken = token.parse().map_err(|_| REFUSED)?;
    let stored = cx.store.api_key(&token.owner, token.key_id).await?.ok_or(REFUSED)?;
    let now = cx.clock.now();
    if !token.hash().matches(&stored.hash) {
        return Err(REFUSED);
    }
    if stored.expires_at.is_some_and(|at| at <= now) {
        return Err(Error::Unauthenticated("the API key has expired"));
    }
    api_keys::note_use(cx, &token.owner, &stored, now).await;
    Ok(Caller { owner: token.owner, scope: stored.scope, key: Some(stored.key_id) })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn one_bearer_token_is_taken() {
        let check = |values: &[&str], expected: Result<&str, &str>| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            let got = bearer(&headers).map_err(|error| error.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), expected, "{values:?}");
        };
        let one = Err("no valid credentials: exactly one Authorization header is required");
        let form =
            Err("no valid credentials: the Authorization header must be `Bearer`, a space, and the token");
        check(&["Bearer abc"], Ok("abc"));
        check(&["bearer  abc "], Ok("abc"));
        check(&[], one);
        check(&["Bearer a", "Bearer b"], one);
        check(&["Basic YTpi"], form);
        check(&["abc"], form);
        let longest = "x".repeat(MAX_TOKEN_BYTES);
        check(&[&format!("Bearer {longest}")], Ok(&longest));
        let long = format!("Bearer {longest}x");
        check(&[&long], Err("no valid credentials: the token is longer than 8 KiB"));
    }
}
