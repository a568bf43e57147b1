//! The model servers of an owner: stored, listed, deleted. A key is never shown again.

use std::collections::BTreeMap;

use domain::accounts::checked_provider_key;
use domain::accounts::servers::{MAX_SERVERS, ServerSettings};
use domain::ids::Owner;
use domain::models::price_list::SetPrice;
use domain::models::{ModelClass, ModelId, ServerName};
use domain::validate::FieldErrors;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::store::OwnServer;

/// The input that stores a server. It replaces all of an earlier one, with its key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "url": "https://openrouter.ai/api/v1", "key": "sk-or-v1-0123456789", "models": {"deep": ["z-ai/glm-5"]},
    "prices": {"z-ai/glm-5": {"input": 600_000, "output": 2_200_000}},
}))]
pub struct NewServer {
    /// The base address, which usually ends in `/v1`. Its host must be public, unless the operator allows it.
    #[schema(max_length = 8192)]
    url: String,
    /// Its key, if it needs one: 16 to 512 visible ASCII characters. It is sent as a bearer token.
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 16, max_length = 512, write_only)]
    key: Option<SecretString>,
    /// Whether its models can call tools. If not, tools are explained in words.
    #[serde(default)]
    #[schema(default = true)]
    tools: Option<bool>,
    /// Its models, by kind. At most 50. Without any, the first model that it lists is used for every kind.
    #[serde(default)]
    #[schema(value_type = BTreeMap<ModelClass, Vec<String>>)]
    models: BTreeMap<ModelClass, Vec<ModelId>>,
    /// The price of each model, at most 50. `*` stands for all others. A model without a price is not called.
    #[serde(default)]
    prices: BTreeMap<String, SetPrice>,
}

/// A stored server, without its key.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ServerView {
    /// Its name: the provider of its models, as in `router/z-ai/glm-5`.
    #[schema(value_type = String, example = "router")]
    pub name: ServerName,
    #[serde(flatten)]
    pub settings: ServerSettings,
    /// The last four characters of its key, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "x9Qw")]
    pub last_characters: Option<String>,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// All stored servers.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ServerList {
    /// By name. At most 10.
    pub data: Vec<ServerView>,
}

impl From<OwnServer> for ServerView {
    fn from(OwnServer { name, settings, created_at, key }: OwnServer) -> Self {
        Self { name, settings, last_characters: key.map(|key| key.last_characters), created_at }
    }
}

/// The name in a path.
///
/// # Errors
/// 400 if it is not the name of a server.
pub fn name(text: &str) -> Result<ServerName> {
    text.parse().map_err(|error| FieldErrors::one("name", format!("{error}")).into())
}

/// Stores a server in place of an earlier one.
///
/// # Errors
/// 400 if the input is invalid; 409 if the owner has as many servers as an owner may have.
pub async fn put(cx: &Cx, owner: &Owner, name: ServerName, input: NewServer) -> Result<ServerView> {
    let NewServer { url, key, tools, models, prices } = input;
    let settings = ServerSettings { url, tools: tools.unwrap_or(true), models, prices };
    let mut errors = FieldErrors::default();
    if cx.config.models.servers.contains_key(&name) {
        errors.add("name", format!("`{name}` is a server of this deployment: choose another name"));
    }
    errors.nest("", settings.check(name, &cx.config.models.reach));
    let key = key.as_ref().map(|key| checked_provider_key(key.expose_secret()));
    let key = key.and_then(|key| errors.nest("", key)).map(SecretString::from);
    errors.into_result(())?;
    let stored = cx.store.servers(owner).await?;
    if stored.len() >= MAX_SERVERS && stored.iter().all(|server| server.name != name) {
        let told = format!("an account has at most {MAX_SERVERS} servers: delete one first");
        return Err(Error::conflict("too_many_servers", told));
    }
    Ok(cx.provider_keys.put_server(owner, name, settings, key.as_ref()).await?.into())
}

pub async fn list(cx: &Cx, owner: &Owner) -> Result<ServerList> {
    Ok(ServerList { data: cx.store.servers(owner).await?.into_iter().map(Into::into).collect() })
}

/// Deletes a server.
///
/// # Errors
/// 404 if there is none.
pub async fn delete(cx: &Cx, owner: &Owner, name: ServerName) -> Result<()> {
    if cx.provider_keys.delete_server(owner, name).await? {
        return Ok(());
    }
    Err(Error::NotFound("server"))
}
