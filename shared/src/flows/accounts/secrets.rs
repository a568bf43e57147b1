//! The secrets of an owner for the calls of actions: stored, listed, deleted. A value is never shown again.

use domain::ids::Owner;
use domain::secrets::{InvalidSecretName, MAX_SECRETS, SecretName, SecretTerms};
use domain::validate::FieldErrors;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::store::{OwnSecret, Tries, Versioned};

/// The input that stores a secret. It replaces all of an earlier one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"value": "github_pat_0123456789", "hosts": ["api.github.com"]}))]
pub struct NewSecret {
    /// 1 to 4,096 bytes of printable ASCII, without spaces at its ends.
    #[serde(default)]
    #[schema(value_type = String, required = true, min_length = 1, max_length = 4096, write_only)]
    value: SecretString,
    /// The hosts to which it may be sent, 1 to 10 names without a port. There are no wildcards. A host must be public, unless the operator
    /// allows it.
    #[serde(default)]
    #[schema(required = true, min_items = 1, max_items = 10)]
    hosts: Vec<String>,
}

/// A stored secret, without its value.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SecretView {
    /// The name by which calls use it.
    #[schema(value_type = String, example = "github")]
    pub name: SecretName,
    #[serde(flatten)]
    pub terms: SecretTerms,
    /// 1 for the first value, and one more for each value after it.
    #[schema(example = 1)]
    pub version: u64,
    /// When this value was stored.
    pub stored_at: Timestamp,
}

/// All stored secrets.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SecretList {
    /// By name. At most 50.
    pub data: Vec<SecretView>,
}

impl From<Versioned<OwnSecret>> for SecretView {
    fn from(Versioned { version, value }: Versioned<OwnSecret>) -> Self {
        let OwnSecret { name, terms, stored_at, .. } = value;
        Self { name, terms, version, stored_at }
    }
}

/// The name in a path.
///
/// # Errors
/// 400 if it is not the name of a secret.
pub fn name(text: &str) -> Result<SecretName> {
    text.parse().map_err(|error: InvalidSecretName| FieldErrors::one("name", error.to_string()).into())
}

/// Stores a secret in place of an earlier one.
///
/// # Errors
/// 400 if the input is invalid; 409 if the owner has as many secrets as an owner may have.
pub async fn put(cx: &Cx, owner: &Owner, name: SecretName, input: NewSecret) -> Result<SecretView> {
    let NewSecret { value, hosts } = input;
    let terms = SecretTerms::checked(value.expose_secret(), &hosts, &cx.config.reach.policy)?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let stored = cx.store.secrets(owner).await?;
        let earlier = stored.iter().find(|stored| stored.value.name == name);
        if earlier.is_none() && stored.len() >= MAX_SECRETS {
            let told = format!("an account has at most {MAX_SECRETS} secrets: delete one first");
            return Err(Error::conflict("too_many_secrets", told));
        }
        let version = earlier.map_or(0, |earlier| earlier.version);
        let secret = cx.provider_keys.seal_secret(owner, name.clone(), terms.clone(), &value).await?;
        // Somebody else may have stored a value meanwhile. Then the version is another one.
        if cx.store.put_secret(owner, &secret, version).await?.done() {
            return Ok(Versioned { version: version + 1, value: secret }.into());
        }
    }
}

pub async fn list(cx: &Cx, owner: &Owner) -> Result<SecretList> {
    Ok(SecretList { data: cx.store.secrets(owner).await?.into_iter().map(Into::into).collect() })
}

/// Deletes a secret.
///
/// # Errors
/// 404 if there is none.
pub async fn delete(cx: &Cx, owner: &Owner, name: &SecretName) -> Result<()> {
    if cx.store.delete_secret(owner, name).await?.done() {
        return Ok(());
    }
    Err(Error::NotFound("secret"))
}
