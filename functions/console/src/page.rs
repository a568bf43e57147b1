//! The HTML page. It is the same for everybody but for where the platform is and how people get in.

use std::hash::{DefaultHasher, Hasher};

use serde_json::json;
use shared::config::{AuthConfig, Config};

use crate::{CSS, JS};

const PAGE: &str = include_str!("../web/index.html");
const POLICY: &str = include_str!("../web/csp.txt");

/// The page below `base`, which is empty or a path such as `/live`. `stage` gives the variables of the API's stage.
pub fn html(config: &Config, base: &str, stage: impl FnOnce(&str) -> Option<String>) -> String {
    let sign_in = config.sign_in.as_ref().and_then(|sign_in| Some((sign_in, sign_in.client_id.text(stage)?)));
    let access = json!({
        "auth": if matches!(config.auth, AuthConfig::Off) { "off" } else { "on" },
        "base": base,
        "openid": sign_in.map(|(sign_in, client_id)| json!({
            "authorize": sign_in.authorize_url,
            "token": sign_in.token_url,
            "client_id": client_id,
            "scope": sign_in.scope,
            "use": sign_in.token.name(),
        })),
    });
    PAGE.replace("{{access}}", &escaped(&access.to_string()))
        .replace("{{base}}", &escaped(base))
        .replace("{{style}}", CSS)
        .replace("{{script}}", JS)
}

/// The content security policy. The page may call the platform, upload to its bucket, and get a token from the provider of the
/// sign-in. Nothing else.
pub fn policy(config: &Config) -> String {
    let aws = &config.aws;
    let mut reached = "connect-src 'self'".to_owned();
    // An engine on this machine serves its bucket at the address of the platform.
    if aws.s3_endpoint.is_none() && aws.http.is_none() {
        reached.push_str(&format!(" https://{}.s3.{}.amazonaws.com", aws.bucket, aws.region));
    }
    if let Some(origin) = config.sign_in.as_ref().and_then(|sign_in| origin(&sign_in.token_url)) {
        reached.push_str(&format!(" {origin}"));
    }
    POLICY.trim().replace("connect-src 'self'", &reached)
}

/// The scheme, the host and the port of an address.
fn origin(url: &str) -> Option<String> {
    let url: http::Uri = url.parse().ok()?;
    Some(format!("{}://{}", url.scheme_str()?, url.authority()?))
}

/// A text in an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// An entity tag of a text.
pub fn tag(text: &str) -> String {
    let mut hash = DefaultHasher::new();
    hash.write(text.as_bytes());
    format!("\"{:016x}\"", hash.finish())
}
