//! Signatures of requests, as Standard Webhooks describe them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// The secret with which webhooks are signed: `whsec_` and the base64 of 24 to 64 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(Vec<u8>);

/// The text is not a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be `whsec_` and the base64 of 24 to 64 bytes")]
pub struct InvalidSecret;

const PREFIX: &str = "whsec_";

impl SigningSecret {
    /// # Errors
    /// [`InvalidSecret`] if there are less than 24 or more than 64 bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, InvalidSecret> {
        if (24..=64).contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(InvalidSecret) }
    }

    /// # Errors
    /// [`InvalidSecret`].
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.strip_prefix(PREFIX).filter(|encoded| encoded.len() <= 88).ok_or(InvalidSecret)?;
        Self::from_bytes(BASE64.decode(encoded).map_err(|_| InvalidSecret)?)
    }

    /// The text that the receiver needs.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", BASE64.encode(&self.0))
    }
}

/// Without the secret.
impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(…)")
    }
}

/// The signature of a webhook: `v1,` and the base64 of the HMAC-SHA-256 over `id.timestamp.body`.
#[must_use]
pub fn sign(secret: &SigningSecret, id: &str, timestamp: Timestamp, body: &[u8]) -> String {
    let seconds = timestamp.as_second().to_string();
    let signed = hmac_sha256(&secret.0, &[id.as_bytes(), b".", seconds.as_bytes(), b".", body]);
    format!("v1,{}", BASE64.encode(signed))
}

/// The headers of a webhook. While a secret is replaced, both sign: the receiver needs only one of them.
#[must_use]
pub fn headers(
    secrets: &[&SigningSecret],
    id: &str,
    timestamp: Timestamp,
    body: &[u8],
) -> [(&'static str, String); 3] {
    let signatures: Vec<String> = secrets.iter().map(|secret| sign(secret, id, timestamp, body)).collect();
    [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp.as_second().to_string()),
        ("webhook-signature", signatures.join(" ")),
    ]
}

/// HMAC (RFC 2104) with SHA-256, over the parts one after another.
pub(crate) fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    const BLOCK: usize = 64;
    let mut block = [0_u8; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36));
    let inner = parts.iter().fold(inner, Digest::chain_update).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 4231, test cases 1 to 4, 6 and 7.
    #[test]
    fn the_hmac_is_the_one_of_the_standard() {
        let counting: Vec<u8> = (1..=25).collect();
        let long = "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed \
                    before being used by the HMAC algorithm.";
        let cases: [(&[u8], &[u8], &str); 6] = [
            (&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (&[0xaa; 20], &[0xdd; 50], "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
            (&counting, &[0xcd; 50], "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (
                &[0xaa; 131],
                long.as_bytes(),
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            ),
        ];
        for (key, data, expected) in cases {
            assert_eq!(crate::hex(&hmac_sha256(key, &[data])), expected);
            let (one, two) = data.split_at(data.len() / 2);
            assert_eq!(crate::hex(&hmac_sha256(key, &[one, b"", two])), expected, "in parts");
        }
    }

    /// The example of the specification of Standard Webhooks.
    #[test]
    fn a_webhook_is_signed_as_the_standard_says() {
        let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let at = Timestamp::from_second(1_614_265_330).unwrap();
        let body = br#"{"test": 2432232314}"#;
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body), expected);
        let newer = SigningSecret::from_bytes(vec![7; 32]).unwrap();
        let [id, timestamp, signature] =
            headers(&[&newer, &secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body);
        assert_eq!(id, ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned()));
        assert_eq!(timestamp, ("webhook-timestamp", "1614265330".to_owned()));
        let (first, second) = signature.1.split_once(' ').unwrap();
        assert!(first.starts_with("v1,") && first != expected);
        assert_eq!((signature.0, second), ("webhook-signature", expected));
    }

    #[test]
    fn a_secret_has_24_to_64_bytes() {
        for (bytes, is_good) in [(0, false), (23, false), (24, true), (64, true), (65, false), (200, false)] {
            let secret = SigningSecret::from_bytes(vec![1; bytes]);
            assert_eq!(secret.is_ok(), is_good, "{bytes}");
            let text = format!("whsec_{}", BASE64.encode(vec![1; bytes]));
            assert_eq!(SigningSecret::parse(&text).is_ok(), is_good, "{bytes}");
            if let Ok(secret) = secret {
                assert_eq!(secret.reveal(), text);
                assert_eq!(format!("{secret:?}"), "SigningSecret(…)");
            }
        }
        for wrong in
            ["", "whsec_", "sec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!"]
        {
            assert_eq!(SigningSecret::parse(wrong), Err(InvalidSecret), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_signature_depends_on_every_part(
            key in proptest::collection::vec(any::<u8>(), 24..=64), id in "[a-z0-9_]{1,40}", seconds in 0..2_000_000_000_i64,
            body in proptest::collection::vec(any::<u8>(), 0..200), at in 0..200_usize,
        ) {
            let secret = SigningSecret::from_bytes(key).unwrap();
            let when = Timestamp::from_second(seconds).unwrap();
            let signature = sign(&secret, &id, when, &body);
            prop_assert_eq!(signature.len(), 3 + 44);
            prop_assert_ne!(&signature, &sign(&secret, &format!("{id}x"), when, &body));
            prop_assert_ne!(&signature, &sign(&secret, &id, Timestamp::from_second(seconds + 1).unwrap(), &body));
            let mut other = body.clone();
            match other.get_mut(at) { Some(byte) => *byte ^= 1, None => other.push(0) }
            prop_assert_ne!(&signature, &sign(&secret, &id, when, &other));
            prop_assert_eq!(SigningSecret::parse(&secret.reveal()).unwrap(), secret);
        }
    }
}
