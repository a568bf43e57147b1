//! Authentication by the authorizer's binary and the local server, with an issuer that answers over TLS.

use std::io::Write;
use std::sync::Arc;

use base::clock::{Clock, ManualClock};
use base::https;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::{AuthConfig, Given, JwtConfig, JwtKeys};
use tempfile::NamedTempFile;
use tests::{Harness, send};

use crate::bed::Bed;
use crate::issuer::{
    AUDIENCE, ISSUER, Issuer, IssuerResponse, authority, claims, forged, token, token_called,
};
use crate::lambda::Lambda;
use crate::payload::payload;
use crate::reply::Reply;

/// The authorizer's answer for a token: the owner, or the error message.
async fn asked(authorizer: &mut Lambda, token: &str) -> Result<String, String> {
    asked_at(&Value::Null, authorizer, token).await
}

async fn asked_at(stage: &Value, authorizer: &mut Lambda, token: &str) -> Result<String, String> {
    let mut event = payload("authorizer.request");
    event["stageVariables"] = stage.clone();
    event["headers"]["Authorization"] = format!("Bearer {token}").into();
    event["multiValueHeaders"]["Authorization"] = json!([format!("Bearer {token}")]);
    match authorizer.invoke(&event).await {
        Reply::Error(failure) => Err(failure.error_message),
        answered => Ok(answered.json().await["context"]["owner"].as_str().unwrap().to_owned()),
    }
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// An authorizer that trusts this issuer. `authorities` are the trusted certificates for the issuer's server.
async fn authorizer(bed: &Bed, issuer: &Issuer, authorities: Option<&NamedTempFile>) -> Lambda {
    authorizer_for(AUDIENCE, bed, issuer, authorities).await
}

async fn authorizer_for(
    audience: &str,
    bed: &Bed,
    issuer: &Issuer,
    authorities: Option<&NamedTempFile>,
) -> Lambda {
    let url = issuer.url();
    let mut variables = vec![
        ("LAMPLIGHTER_AUTH", "on"),
        ("LAMPLIGHTER_JWT_ISSUER", ISSUER),
        ("LAMPLIGHTER_JWT_AUDIENCE", audience),
        ("LAMPLIGHTER_JWKS_URL", &url),
    ];
    if let Some(file) = authorities {
        variables.push(("LAMPLIGHTER_JWKS_CA_FILE", file.path().to_str().unwrap()));
    }
    bed.lambda_with("authorizer", &variables).await
}

/// API Gateway turns exactly this message into a 401.
const REFUSED: Result<&str, &str> = Err("Unauthorized");
/// API Gateway turns any other message into a 500.
const AWAY: Result<&str, &str> = Err("authorizer failed: temporarily_unavailable");

#[tokio::test]
async fn only_valid_tokens_of_the_issuer_are_accepted() {
    let bed = Bed::new().await;
    let issuer = Issuer::start(IssuerResponse::Keys(&["rsa-1", "ec-1"])).await;
    let trusted = file(authority());
    let mut authorizer = authorizer(&bed, &issuer, Some(&trusted)).await;
    let now = Timestamp::now().as_second();
    let good = claims(now, &json!({}));
    let with = |change: Value| token("rsa-1", &claims(now, &change));
    let signed = token("rsa-1", &good);
    let (head, signature) = signed.rsplit_once('.').unwrap();
    let other = with(json!({"sub": "bert"}));
    for (token, expected) in [
        (signed.clone(), Ok("anna")),
        (token("ec-1", &good), Ok("anna")),
        (with(json!({"sub": "auth0|65f0"})), Ok("auth0|65f0")),
        (with(json!({"aud": ["else", AUDIENCE]})), Ok("anna")),
        // A clock difference of up to a minute is accepted.
        (with(json!({"exp": now - 30})), Ok("anna")),
        (with(json!({"nbf": now + 30})), Ok("anna")),
        (with(json!({"exp": now - 61})), REFUSED),
        (with(json!({"nbf": now + 600})), REFUSED),
        (with(json!({"exp": "(absent)"})), REFUSED),
        (with(json!({"iss": "https://else.example"})), REFUSED),
        (with(json!({"aud": "else"})), REFUSED),
        (with(json!({"aud": "(absent)"})), REFUSED),
        (with(json!({"sub": ""})), REFUSED),
        // These tokens are unsigned, or not signed with the issuer's key.
        (forged("none", "rsa-1", &good), REFUSED),
        (forged("None", "rsa-1", &good), REFUSED),
        (forged("HS256", "rsa-1", &good), REFUSED),
        (token("rsa-2", &good), REFUSED),
        (token_called("rsa-1", "rsa-2", &good), REFUSED),
        (token_called("ec-1", "rsa-1", &good), REFUSED),
        (format!("{head}."), REFUSED),
        (format!("{}.{signature}", other.rsplit_once('.').unwrap().0), REFUSED),
        (format!("{signed}.{signature}"), REFUSED),
        (format!("{head}.{}", &signature[..signature.len() - 4]), REFUSED),
        ("x".repeat(9_000), REFUSED),
    ] {
        let said = asked(&mut authorizer, &token).await;
        assert_eq!(said.as_deref().map_err(String::as_str), expected, "{token}");
    }
    // The keys were fetched once: inventing key ids does not cause more fetches.
    assert_eq!(issuer.asked(), 1);
    let log = authorizer.log();
    assert!(!log.contains(signature) && !log.contains("anna"), "{log}");
}

/// The stage names the audience if the stack makes its own user pool. A stage that does not is a fault of the deployment.
#[tokio::test]
async fn the_stage_may_name_the_audience() {
    let bed = Bed::new().await;
    let issuer = Issuer::start(IssuerResponse::Keys(&["rsa-1"])).await;
    let trusted = file(authority());
    let mut authorizer = authorizer_for("stage:client_id", &bed, &issuer, Some(&trusted)).await;
    let signed = token("rsa-1", &claims(Timestamp::now().as_second(), &json!({})));
    for (stage, expected) in [
        (json!({"client_id": AUDIENCE, "else": "x"}), Ok("anna")),
        (json!({"client_id": "else"}), REFUSED),
        (json!({"client_id": ""}), Err("authorizer failed: internal")),
        (json!({"else": AUDIENCE}), Err("authorizer failed: internal")),
        (Value::Null, Err("authorizer failed: internal")),
    ] {
        let said = asked_at(&stage, &mut authorizer, &signed).await;
        assert_eq!(said.as_deref().map_err(String::as_str), expected, "{stage}");
    }
}

/// A token that cannot be checked is not the caller's fault: the answer is 500 and not 401, and the next call is
/// served.
#[tokio::test]
async fn without_keys_the_answer_is_500_and_not_401() {
    let bed = Bed::new().await;
    let trusted = file(authority());
    let signed = token("rsa-1", &claims(Timestamp::now().as_second(), &json!({})));
    let redirect = format!("location: {}\r\n", bed.model.url());
    let moved = IssuerResponse::Raw { status: "302 Found", header: redirect, body: String::new() };
    let broken =
        IssuerResponse::Raw { status: "500 Internal Server Error", header: String::new(), body: "{}".into() };
    let check = async |answer: IssuerResponse, authorities: Option<&NamedTempFile>| {
        let issuer = Issuer::start(answer.clone()).await;
        let mut authorizer = authorizer(&bed, &issuer, authorities).await;
        for _ in 0..2 {
            let said = asked(&mut authorizer, &signed).await;
            assert_eq!(said.as_deref().map_err(String::as_str), AWAY, "{answer:?}");
        }
        // API keys work without the issuer.
        let said = asked(&mut authorizer, "llk_x").await;
        assert_eq!(said.as_deref().map_err(String::as_str), REFUSED, "{answer:?}");
        // The second call comes too soon after the first one to fetch again.
        assert!(issuer.asked() <= 1, "{answer:?}");
        issuer.asked()
    };
    let large = IssuerResponse::body(format!("{{\"keys\": [], \"more\": \"{}\"}}", "x".repeat(2 << 20)));
    let asked = join_all([
        check(IssuerResponse::Silence, Some(&trusted)),
        check(IssuerResponse::body("<html></html>"), Some(&trusted)),
        check(large, Some(&trusted)),
        check(broken, Some(&trusted)),
        check(moved, Some(&trusted)),
        // A server without a certificate from a public authority does not even get the request.
        check(IssuerResponse::Keys(&["rsa-1"]), None),
    ]);
    assert_eq!(asked.await, [1, 1, 1, 1, 1, 0]);
}

/// The keys change, and the issuer becomes unavailable and comes back, with a clock that the test sets.
#[tokio::test]
async fn keys_change_while_it_runs() {
    let issuer = Issuer::start(IssuerResponse::Keys(&["rsa-1"])).await;
    let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
    let authorities = https::authorities(authority().as_bytes());
    assert!(authorities.is_some());
    let keys = JwtKeys::Jwks { url: issuer.url(), authorities };
    let jwt = JwtConfig { issuer: ISSUER.to_owned(), audience: Given::Text(AUDIENCE.to_owned()), keys };
    let config = PlatformConfig {
        auth: AuthConfig::On(Some(Arc::new(jwt))),
        clock: Clock::Manual(clock.clone()),
        automatic: false,
        ..PlatformConfig::in_memory()
    };
    let h = Harness::with(config).await;
    let began = clock.now();
    let check = async |seconds: i64, key: &str, status: u16, asked: usize| {
        clock.set(began + SignedDuration::from_secs(seconds));
        let token = token(key, &claims(clock.now().as_second(), &json!({})));
        let answer = send(h.request(Method::GET, "/agents").bearer_auth(token)).await;
        assert_eq!(
            (answer.status, issuer.asked()),
            (status, asked),
            "{key} after {seconds} s: {}",
            answer.body
        );
    };
    check(0, "rsa-1", 200, 1).await;
    // The issuer replaces its keys. An unknown key id causes a fetch, but at most one per minute.
    issuer.answers(IssuerResponse::Keys(&["rsa-2", "ec-1"]));
    check(59, "rsa-2", 401, 1).await;
    check(60, "rsa-2", 200, 2).await;
    check(61, "ec-1", 200, 2).await;
    check(62, "rsa-1", 401, 2).await;
    check(121, "rsa-1", 401, 3).await;
    // The issuer is unavailable. Known keys keep working for as long as it takes; tokens with unknown keys are refused.
    issuer.answers(IssuerResponse::body("not now"));
    check(3_720, "rsa-2", 200, 3).await;
    check(3_722, "rsa-2", 200, 4).await;
    check(3_723, "rsa-1", 401, 4).await;
    check(90_000, "ec-1", 200, 5).await;
    // The issuer is back.
    issuer.answers(IssuerResponse::Keys(&["rsa-1"]));
    check(90_004, "ec-1", 200, 5).await;
    check(90_060, "ec-1", 401, 6).await;
    check(90_061, "rsa-1", 200, 6).await;
}
