//! The master keys, which encrypt the provider keys that owners store.
//!
//! Master keys are numbered. New secrets are encrypted with the current one, and each secret names the number of its own, so
//! that the current one can be replaced while older secrets stay readable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rand::Rng;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use secrecy::{ExposeSecret, SecretSlice, SecretString};

use super::parameters::Parameters;
use crate::config::{AwsConfig, MasterKeysConfig};
use crate::error::{Error, Result};

/// The length of a master key, in bytes.
pub const KEY_BYTES: usize = 32;

/// The master keys of a deployment. A key is read when it is first needed, and kept for the life of the process.
#[derive(Clone, Debug)]
pub(crate) struct MasterKeys(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: MasterKeysConfig,
    parameters: Parameters,
    loaded: Mutex<HashMap<u32, Arc<LessSafeKey>>>,
}

/// An encrypted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// The number of the master key.
    pub master: u32,
    /// The nonce and the ciphertext with its tag, as base64.
    pub text: String,
}

/// The message of the error about a secret that cannot be decrypted.
const UNREADABLE: &str = "a stored secret cannot be decrypted: store it again";

/// Whether the error says that a stored secret cannot be decrypted.
pub(crate) fn is_unreadable(error: &Error) -> bool {
    matches!(error, Error::Internal(message) if message == UNREADABLE)
}

impl MasterKeys {
    pub(crate) fn new(config: &MasterKeysConfig, aws: &AwsConfig) -> Self {
        let (config, parameters) = (config.clone(), Parameters::new(aws));
        Self(Arc::new(Inner { config, parameters, loaded: Mutex::default() }))
    }

    /// Encrypts a text with the current master key. It can be decrypted only with the same `purpose`. Creates the master
    /// key if there is none yet.
    ///
    /// # Errors
    /// If the master key cannot be read or created.
    pub(crate) async fn seal(&self, purpose: &str, secret: &SecretString) -> Result<Sealed> {
        let master = match self.current() {
            0 => return Err(not_configured()),
            current => current,
        };
        let key = self.load(master, true).await?;
        // With 96 random bits, a nonce does not repeat as long as a key encrypts fewer than 2^32 texts.
        let nonce: [u8; NONCE_LEN] = rand::rng().random();
        let mut sealed = secret.expose_secret().as_bytes().to_vec();
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(purpose), &mut sealed)
            .map_err(|_| Error::internal("failed to encrypt a secret"))?;
        Ok(Sealed { master, text: BASE64_STANDARD.encode([&nonce[..], &sealed].concat()) })
    }

    /// The number of the key that encrypts. Older keys have lower numbers. 0: there are none.
    pub(crate) fn current(&self) -> u32 {
        match &self.0.config {
            MasterKeysConfig::None => 0,
            MasterKeysConfig::Given { .. } => 1,
            MasterKeysConfig::Parameters { current, .. } => *current,
        }
    }

    /// Decrypts a text.
    ///
    /// # Errors
    /// If the text was changed, or belongs to another purpose or another master key.
    pub(crate) async fn open(&self, purpose: &str, sealed: &Sealed) -> Result<SecretString> {
        let wrong = || Error::internal(UNREADABLE);
        let key = self.load(sealed.master, false).await?;
        let mut bytes = BASE64_STANDARD.decode(&sealed.text).map_err(|_| wrong())?;
        let (nonce, text) = bytes.split_at_mut_checked(NONCE_LEN).ok_or_else(wrong)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| wrong())?;
        let text = key.open_in_place(nonce, Aad::from(purpose), text).map_err(|_| wrong())?;
        std::str::from_utf8(text).map(SecretString::from).map_err(|_| wrong())
    }

    async fn load(&self, number: u32, create: bool) -> Result<Arc<LessSafeKey>> {
        let loaded = || self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = loaded().get(&number) {
            return Ok(key.clone());
        }
        let bytes = match &self.0.config {
            MasterKeysConfig::None => return Err(not_configured()),
            MasterKeysConfig::Given { key } if number == 1 => key.clone(),
            MasterKeysConfig::Given { .. } => return Err(missing(number)),
            MasterKeysConfig::Parameters { prefix, .. } => {
                let name = format!("{prefix}/{number}");
                decoded(&self.parameter(&name, create).await?.ok_or_else(|| missing(number))?)?
            }
        };
        let key = UnboundKey::new(&AES_256_GCM, bytes.expose_secret())
            .map_err(|_| Error::internal(format!("master key {number} does not have {KEY_BYTES} bytes")))?;
        Ok(loaded().entry(number).or_insert(Arc::new(LessSafeKey::new(key))).clone())
    }

    /// Reads a parameter. With `create`, a new random key is stored if there is none. Of two processes that do it at the same
    /// time, one stores its key, and both use that one.
    async fn parameter(&self, name: &str, create: bool) -> Result<Option<SecretString>> {
        let parameters = &self.0.parameters;
        if let Some(found) = parameters.read(name).await? {
            return Ok(Some(found));
        }
        if !create {
            return Ok(None);
        }
        let key = SecretString::from(BASE64_STANDARD.encode(rand::rng().random::<[u8; KEY_BYTES]>()));
        if parameters.create(name, key.expose_secret()).await? {
            tracing::info!("a new master key was stored");
            return Ok(Some(key));
        }
        parameters.read(name).await
    }
}

fn decoded(text: &SecretString) -> Result<SecretSlice<u8>> {
    let bytes = BASE64_STANDARD.decode(text.expose_secret().trim());
    bytes.map(SecretSlice::from).map_err(|_| Error::internal("a master key is not base64"))
}

fn missing(number: u32) -> Error {
    Error::internal(format!("there is no master key {number}"))
}

fn not_configured() -> Error {
    Error::internal("this function has no master keys: set LAMPLIGHTER_MASTER_KEY")
}

#[cfg(test)]
#[path = "master_keys_tests.rs"]
mod tests;
