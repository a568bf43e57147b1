//! The issuer's public keys. They are fetched over HTTPS and cached for an hour. A token with an unknown key triggers
//! another fetch, but at most one per minute.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::https;
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use rustls::RootCertStore;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;

/// How long cached keys are used without another fetch.
const FRESH: SignedDuration = SignedDuration::from_hours(1);

/// The shortest time between two fetches.
const AFTER_SUCCESS: SignedDuration = SignedDuration::from_mins(1);
const AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(5);

const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest key set, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// The shortest RSA modulus, in bytes.
const MIN_RSA_BYTES: usize = 256;

/// A key that verifies signatures of one algorithm. The key determines the algorithm; the header of the token does not.
#[derive(Clone, Debug)]
pub struct Key {
    pub id: Option<String>,
    pub algorithm: Algorithm,
    pub decoding: DecodingKey,
}

/// Why the keys are not available. The message follows "failed to fetch the issuer's keys: ….".
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("the issuer did not answer")]
    Http(#[from] reqwest::Error),
    #[error("the answer has more than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("the answer is not a set of keys")]
    NotKeys(#[from] serde_json::Error),
    #[error("the last fetch failed a moment ago")]
    TooSoon,
}

/// The cached keys of one URL.
#[derive(Debug, Default)]
pub struct KeyCache(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    url: String,
    keys: Option<Arc<[Key]>>,
    fresh_until: Timestamp,
    next_fetch: Timestamp,
}

impl KeyCache {
    /// The key with this id, or, if the token names no id, the only key. Calls `fetch` if no keys are cached, if they
    /// are too old, or if this key is missing. Only one caller fetches at a time, and not more often than the limits
    /// above allow.
    ///
    /// # Errors
    /// If no keys are available.
    pub async fn find<F>(
        &self,
        url: &str,
        id: Option<&str>,
        now: Timestamp,
        fetch: impl FnOnce() -> F,
    ) -> Result<Option<Key>, FetchError>
    where
        F: Future<Output = Result<Vec<Key>, FetchError>>,
    {
        let mut cached = self.0.lock().await;
        if cached.url != url {
            *cached = Cached { url: url.to_owned(), ..Cached::default() };
        }
        let known = cached.keys.as_deref().and_then(|keys| pick(keys, id));
        if (known.is_some() && now < cached.fresh_until) || (cached.keys.is_some() && now < cached.next_fetch)
        {
            return Ok(known);
        }
        if now < cached.next_fetch {
            return Err(FetchError::TooSoon);
        }
        let began = Instant::now();
        match fetch().await {
            Ok(keys) => {
                cached.fresh_until = now + FRESH;
                cached.next_fetch = now + AFTER_SUCCESS;
                let found = pick(&keys, id);
                cached.keys = Some(keys.into());
                Ok(found)
            }
            Err(error) => {
                // Counted from the end of the fetch: if the issuer does not answer, callers must not all wait for it.
                let took = i64::try_from(began.elapsed().as_secs()).unwrap_or(0);
                cached.next_fetch = now + SignedDuration::from_secs(took) + AFTER_FAILURE;
                tracing::warn!(%error, "the issuer's keys cannot be fetched");
                // While the issuer is unavailable, old keys are better than rejecting everybody.
                if cached.keys.is_some() { Ok(known) } else { Err(error) }
            }
        }
    }
}

fn pick(keys: &[Key], id: Option<&str>) -> Option<Key> {
    match id {
        Some(id) => keys.iter().find(|key| key.id.as_deref() == Some(id)).cloned(),
        None => match keys {
            [only] => Some(only.clone()),
            _ => None,
        },
    }
}

/// Fetches a key set. The server's certificate must come from a public authority, or from one of `authorities`.
pub async fn fetch(url: &str, authorities: Option<RootCertStore>) -> Result<Vec<Key>, FetchError> {
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(authorities.map_or_else(https::tls, https::trusting))
        .https_only(true)
        .redirect(reqwest::redirect::Policy::limited(3))
        .timeout(TIMEOUT)
        .build()?;
    let mut response = client.get(url).send().await?.error_for_status()?;
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > MAX_BYTES {
            return Err(FetchError::TooLarge);
        }
        body.extend_from_slice(&piece);
    }
    Ok(parse(&body)?)
}

#[derive(Deserialize)]
struct RawKey {
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    #[serde(flatten)]
    parameters: Parameters,
}

#[derive(Deserialize)]
#[serde(tag = "kty")]
enum Parameters {
    #[serde(rename = "RSA")]
    Rsa { n: String, e: String },
    #[serde(rename = "EC")]
    Ec { crv: String, x: String, y: String },
    #[serde(rename = "OKP")]
    Okp { crv: String, x: String },
}

/// Reads a JSON Web Key Set. Keys of another kind or for another use are left out. So are unreadable keys: one bad key
/// must not disable the others.
///
/// # Errors
/// If the body is not a key set.
pub fn parse(body: &[u8]) -> Result<Vec<Key>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    let Set { keys } = serde_json::from_slice(body)?;
    Ok(keys.into_iter().filter_map(|key| usable(serde_json::from_value(key).ok()?)).collect())
}

fn usable(RawKey { kid, usage, alg, parameters }: RawKey) -> Option<Key> {
    if usage.is_some_and(|usage| usage != "sig") {
        return None;
    }
    let (name, algorithm, decoding) = match parameters {
        Parameters::Rsa { n, e } => {
            let decoding = DecodingKey::from_rsa_components(&n, &e).ok()?;
            match decoding.kind() {
                DecodingKeyKind::RsaModulusExponent { n, .. } if n.len() >= MIN_RSA_BYTES => {}
                _ => return None,
            }
            ("RS256", Algorithm::RS256, decoding)
        }
        Parameters::Ec { crv, x, y } if crv == "P-256" => {
            ("ES256", Algorithm::ES256, DecodingKey::from_ec_components(&x, &y).ok()?)
        }
        Parameters::Okp { crv, x } if crv == "Ed25519" => {
            ("EdDSA", Algorithm::EdDSA, DecodingKey::from_ed_components(&x).ok()?)
        }
        Parameters::Ec { .. } | Parameters::Okp { .. } => return None,
    };
    alg.is_none_or(|alg| alg == name).then_some(Key { id: kid, algorithm, decoding })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn key(id: &str) -> Key {
        let decoding = DecodingKey::from_ed_der(&[0; 32]);
        Key { id: Some(id.to_owned()), algorithm: Algorithm::EdDSA, decoding }
    }

    #[tokio::test]
    async fn keys_are_fetched_no_more_often_than_needed() {
        #[derive(Clone, Copy)]
        enum Issuer {
            Has(&'static [&'static str]),
            IsAway,
        }
        use Issuer::{Has, IsAway};
        let (cache, fetches) = (KeyCache::default(), Cell::new(0));
        let check = async |at: i64, id: Option<&str>, issuer: Issuer, found: Result<bool, ()>, count: u32| {
            let fetch = || async {
                fetches.set(fetches.get() + 1);
                match issuer {
                    Has(ids) => Ok(ids.iter().map(|id| key(id)).collect()),
                    IsAway => Err(FetchError::TooLarge),
                }
            };
            let now = Timestamp::from_second(1_795_251_600 + at).unwrap();
            let got = cache.find("https://a.example", id, now, fetch).await;
            let got = got.map(|key| key.is_some()).map_err(|_| ());
            assert_eq!((got, fetches.get()), (found, count), "after {at} s");
        };
        check(0, Some("a"), IsAway, Err(()), 1).await;
        check(4, Some("a"), Has(&["a"]), Err(()), 1).await;
        check(5, Some("a"), Has(&["a"]), Ok(true), 2).await;
        check(6, Some("a"), IsAway, Ok(true), 2).await;
        // Inventing key ids does not cause more fetches.
        check(64, Some("b"), Has(&["a", "b"]), Ok(false), 2).await;
        check(65, Some("b"), Has(&["a", "b"]), Ok(true), 3).await;
        check(66, Some("c"), Has(&["c"]), Ok(false), 3).await;
        check(66, None, IsAway, Ok(false), 3).await;
        // After an hour the keys are fetched again. While the issuer is unavailable, the old keys stay valid.
        check(3_664, Some("a"), IsAway, Ok(true), 3).await;
        check(3_665, Some("a"), IsAway, Ok(true), 4).await;
        check(3_669, Some("a"), Has(&["b"]), Ok(true), 4).await;
        check(3_670, Some("a"), Has(&["b"]), Ok(false), 5).await;
        check(3_671, None, IsAway, Ok(true), 5).await;
    }

    #[tokio::test]
    async fn another_address_has_other_keys() {
        let cache = KeyCache::default();
        let now = Timestamp::UNIX_EPOCH;
        let find = async |url: &str| {
            cache.find(url, Some("a"), now, || async { Ok(vec![key("a")]) }).await.unwrap().is_some()
        };
        assert!(find("https://a.example").await);
        assert!(
            cache.find("https://b.example", Some("a"), now, || async { Ok(vec![]) }).await.unwrap().is_none()
        );
    }

    #[tokio::test]
    async fn keys_come_over_https_only() {
        assert!(
            matches!(fetch("http://127.0.0.1:1/keys", None).await, Err(FetchError::Http(error)) if error.is_builder())
        );
    }

    #[test]
    fn unusable_keys_are_left_out() {
        let data: Value = serde_json::from_str(include_str!("../test_data/tokens.json")).unwrap();
        let keys = parse(data["jwks"].to_string().as_bytes()).unwrap();
        let ids: Vec<_> = keys.iter().map(|key| (key.id.as_deref().unwrap(), key.algorithm)).collect();
        assert_eq!(ids, [("rsa", Algorithm::RS256), ("ec", Algorithm::ES256), ("ed", Algorithm::EdDSA)]);
        for wrong in ["", "[]", "{}", r#"{"keys": {}}"#] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
