//! Tables of tokens: valid ones, and one for each way to be invalid.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};
use shared::config::Given;

use super::*;

/// The tokens in the test data expire at 10:00.
const NOW: &str = "2026-11-21T09:00:00Z";
const SECRET: &[u8] = b"a secret that only tests know";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn config() -> JwtConfig {
    JwtConfig {
        issuer: "https://issuer.example".to_owned(),
        audience: Given::Text("lamplighter".to_owned()),
        keys: JwtKeys::Hs256 { secret: SECRET.to_vec() },
    }
}

fn claims(change: &Value) -> Value {
    let now = now().as_second();
    let mut claims = json!({
        "iss": "https://issuer.example", "aud": "lamplighter", "sub": "user|1", "exp": now + 3600, "iat": now,
    });
    for (name, value) in change.as_object().unwrap() {
        match value.as_str() {
            Some("(absent)") => drop(claims.as_object_mut().unwrap().remove(name)),
            _ => claims[name] = value.clone(),
        }
    }
    claims
}

fn signed(header: &Header, claims: &Value, secret: &[u8]) -> String {
    encode(header, claims, &EncodingKey::from_secret(secret)).unwrap()
}

fn raw(header: &Value, claims: &Value, signature: &str) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{signature}", part(header), part(claims))
}

async fn answer(token: &str) -> Result<String, String> {
    let owner = owner(&config(), "lamplighter", token, now()).await;
    owner.map(|owner| owner.to_string()).map_err(|error| {
        assert_eq!(error.status(), http::StatusCode::UNAUTHORIZED);
        error.to_string().trim_start_matches("no valid credentials: ").to_owned()
    })
}

#[tokio::test]
async fn claims_are_checked_for_issuer_audience_and_time() {
    let at = now().as_second();
    let types = Err("the token must have valid iss, aud, sub and exp claims");
    let (expired, early) = (Err("the token has expired"), Err("the token is not valid yet"));
    let (issuer, audience) =
        (Err("the token is from another issuer"), Err("the token is for another audience"));
    // A subject that is not allowed in a key is replaced by its hash.
    let hashed = Owner::from_subject("ä#b").to_string();
    // A subject of the same form is somebody else.
    let posing = Owner::from_subject(&hashed).to_string();
    assert_ne!(posing, hashed);
    for (change, expected) in [
        (json!({}), Ok("user|1")),
        (json!({"sub": "auth0|65f0"}), Ok("auth0|65f0")),
        (json!({"sub": "ä#b"}), Ok(hashed.as_str())),
        (json!({"sub": hashed}), Ok(posing.as_str())),
        (json!({"sub": ""}), Err("the token has no subject")),
        (json!({"sub": "(absent)"}), types),
        (json!({"sub": 1}), types),
        (json!({"iss": "https://issuer.example/"}), issuer),
        (json!({"iss": "(absent)"}), types),
        (json!({"iss": ["https://issuer.example"]}), types),
        (json!({"aud": ["else", "lamplighter"]}), Ok("user|1")),
        (json!({"aud": "else"}), audience),
        (json!({"aud": []}), audience),
        (json!({"aud": "(absent)"}), types),
        (json!({"exp": at - 59}), Ok("user|1")),
        (json!({"exp": at - 60}), expired),
        (json!({"exp": 0}), expired),
        (json!({"exp": -1}), expired),
        (json!({"exp": at as f64 - 60.5}), expired),
        (json!({"exp": "(absent)"}), types),
        (json!({"exp": null}), types),
        (json!({"exp": (at + 3600).to_string()}), types),
        (json!({"nbf": at + 60}), Ok("user|1")),
        (json!({"nbf": at + 61}), early),
        (json!({"nbf": (at - 60).to_string()}), types),
    ] {
        let token = signed(&Header::new(Algorithm::HS256), &claims(&change), SECRET);
        let answer = answer(&token).await;
        assert_eq!(answer.as_deref().map_err(String::as_str), expected, "{change}");
    }
}

#[tokio::test]
async fn unsigned_and_forged_tokens_are_refused() {
    let good = signed(&Header::new(Algorithm::HS256), &claims(&json!({})), SECRET);
    let (head, signature) = good.rsplit_once('.').unwrap();
    let (_, payload) = head.split_once('.').unwrap();
    let other_claims = raw(&json!({"alg": "HS256"}), &claims(&json!({"sub": "victim"})), signature);
    let (algorithm, wrong) = (
        Err("the token's algorithm is not the algorithm of its key"),
        Err("the token's signature is not valid"),
    );
    let malformed = Err("the token is neither an API key nor a JWT");
    let critical = {
        let mut header = Header::new(Algorithm::HS256);
        header.crit = Some(vec!["exp".to_owned()]);
        signed(&header, &claims(&json!({})), SECRET)
    };
    for (token, expected) in [
        (signed(&Header::new(Algorithm::HS256), &claims(&json!({})), b"another secret"), wrong),
        (signed(&Header::new(Algorithm::HS512), &claims(&json!({})), SECRET), algorithm),
        (other_claims, wrong),
        (format!("{head}."), wrong),
        (format!("{head}.{signature}x"), wrong),
        (raw(&json!({"alg": "none"}), &claims(&json!({})), ""), malformed),
        (raw(&json!({"alg": "NONE"}), &claims(&json!({})), signature), malformed),
        (raw(&json!({"typ": "JWT"}), &claims(&json!({})), signature), malformed),
        (raw(&json!({"alg": "RS256"}), &claims(&json!({})), signature), algorithm),
        (critical, Err("the token has critical extensions")),
        (payload.to_owned(), malformed),
        (head.to_owned(), malformed),
        (format!("{good}.{good}"), malformed),
        ("..".to_owned(), malformed),
        (String::new(), malformed),
    ] {
        let answer = answer(&token).await;
        assert_eq!(answer.as_deref().map_err(String::as_str), expected, "{token}");
    }
}

#[test]
fn each_key_verifies_only_its_own_algorithm() {
    let data: Value = serde_json::from_str(include_str!("../test_data/tokens.json")).unwrap();
    let keys = jwks::parse(data["jwks"].to_string().as_bytes()).unwrap();
    let key = |id: &str| keys.iter().find(|key| key.id.as_deref() == Some(id));
    let subject = |token: &str| {
        let id = decode_header(token).ok()?.kid?;
        let claims = verified(token, key(&id)?).ok()?;
        check(&claims, &config().issuer, "lamplighter", now()).ok().map(|()| claims.sub)
    };
    for (algorithm, token) in data["tokens"].as_object().unwrap() {
        let token = token.as_str().unwrap();
        assert_eq!(subject(token).as_deref(), Some("user|1"), "{algorithm}");
        let mut other = token.to_owned();
        // The second-to-last digit, because some bits of the last digit are ignored.
        let digit = other.len() - 2;
        other.replace_range(digit..=digit, if other.as_bytes()[digit] == b'A' { "B" } else { "A" });
        assert_eq!(subject(&other), None, "{algorithm}, one digit off");
    }
    for (what, token) in data["refused"].as_object().unwrap() {
        assert_eq!(subject(token.as_str().unwrap()), None, "{what}");
    }
    // A public key is not secret, so a token that was signed with it as an HMAC secret proves nothing.
    for raw_key in data["jwks"]["keys"].as_array().unwrap().iter().take(3) {
        let id = raw_key["kid"].as_str().unwrap();
        let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::HS256) };
        let public = raw_key.get("n").or(raw_key.get("x")).unwrap().as_str().unwrap();
        for secret in [public.as_bytes().to_vec(), BASE64_URL_SAFE_NO_PAD.decode(public).unwrap()] {
            let token = signed(&header, &claims(&json!({})), &secret);
            assert_eq!(subject(&token), None, "HS256 with the public key {id}");
        }
    }
}
