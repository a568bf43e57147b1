//! What owners store and no route gives back: the keys of model providers, the addresses of channels, the secrets of calls. It is encrypted.

mod master_keys;
pub(crate) mod parameters;

use std::collections::HashMap;
use std::hash::Hash;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use domain::accounts::servers::ServerSettings;
use domain::accounts::{KeyProvider, last_characters};
use domain::ids::{ChannelId, Owner, ProjectId};
use domain::models::ServerName;
use domain::notices::answer_link::AnswerLink;
use domain::secrets::{SecretName, SecretTerms};
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::store::notices::SealedText;
use crate::store::{OwnSecret, OwnServer, ProviderKey, SealedKey, Store};

pub use master_keys::KEY_BYTES;
pub(crate) use master_keys::is_unreadable;
use master_keys::{MasterKeys, Sealed};

/// How long a process uses a key without reading it again. A key that was replaced or deleted in another process is used for
use base::clock::Clock;
use models::{ServerConfig, ServerOfOwner};
/// this time at most.
const FRESH: SignedDuration = SignedDuration::from_secs(60);

/// The most keys that a process keeps.
const MAX_KEPT: usize = 1_000;

/// The provider keys of all owners.
#[derive(Clone, Debug)]
pub struct ProviderKeys(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    clock: Clock,
    masters: MasterKeys,
    kept: Mutex<KeptKeys>,
    servers: Mutex<KeptServers>,
}

/// What was read at a time. An owner without a key is also kept.
#[derive(Debug)]
struct Kept<T> {
    value: T,
    read_at: Timestamp,
}

type KeptKeys = HashMap<(Owner, KeyProvider), Kept<Option<SecretString>>>;
type KeptServers = HashMap<Owner, Kept<Arc<[ServerOfOwner]>>>;

/// Keeps what was read, if there is room.
fn keep<K: Hash + Eq, T>(map: &mut HashMap<K, Kept<T>>, place: K, value: T, read_at: Timestamp) {
    if map.len() >= MAX_KEPT {
        map.retain(|_, kept| kept.is_fresh(read_at));
    }
    if map.len() < MAX_KEPT {
        map.insert(place, Kept { value, read_at });
    }
}

impl ProviderKeys {
    #[must_use]
    pub fn new(config: &Config, store: Store, clock: Clock) -> Self {
        let masters = MasterKeys::new(&config.master_keys, &config.aws);
        Self(Arc::new(Inner { store, clock, masters, kept: Mutex::default(), servers: Mutex::default() }))
    }

    /// The key that an owner has stored for a provider. A change in another process is seen after 60 seconds at most.
    ///
    /// # Errors
    /// If the table or the master keys cannot be read, or if the stored key cannot be decrypted.
    pub async fn get(&self, owner: &Owner, provider: KeyProvider) -> Result<Option<SecretString>> {
        let place = (owner.clone(), provider);
        let read_at = self.0.clock.now();
        if let Some(kept) = self.kept().get(&place).filter(|kept| kept.is_fresh(read_at)) {
            return Ok(kept.value.clone());
        }
        let key = match self.0.store.provider_key(owner, provider).await? {
            None => None,
            Some(ProviderKey { master, sealed: text, .. }) => {
                Some(self.0.masters.open(&purpose(owner, provider), &Sealed { master, text }).await?)
            }
        };
        keep(&mut self.kept(), place, key.clone(), read_at);
        Ok(key)
    }

    /// The servers that an owner has added, with their keys. A change in another process is seen after 60 seconds at most.
    ///
    /// # Errors
    /// If the table or the master keys cannot be read, or if a stored key cannot be decrypted.
    pub async fn servers(&self, owner: &Owner) -> Result<Arc<[ServerOfOwner]>> {
        let read_at = self.0.clock.now();
        if let Some(kept) = self.kept_servers().get(owner).filter(|kept| kept.is_fresh(read_at)) {
            return Ok(kept.value.clone());
        }
        let mut servers = Vec::new();
        for OwnServer { name, settings, key, .. } in self.0.store.servers(owner).await? {
            let prices = settings.price_list(name);
            let key = match key {
                None => None,
                Some(SealedKey { sealed: text, master, .. }) => {
                    let purpose = server_purpose(owner, name, &settings.url);
                    Some(self.0.masters.open(&purpose, &Sealed { master, text }).await?)
                }
            };
            let ServerSettings { url, tools, models, .. } = settings;
            servers.push(ServerOfOwner { name, config: ServerConfig { url, key, tools, models }, prices });
        }
        let servers: Arc<[ServerOfOwner]> = servers.into();
        keep(&mut self.kept_servers(), owner.clone(), servers.clone(), read_at);
        Ok(servers)
    }

    /// Stores a checked server in place of an earlier one with this name.
    ///
    /// # Errors
    /// If the table or the master keys do not answer.
    pub async fn put_server(
        &self,
        owner: &Owner,
        name: ServerName,
        settings: ServerSettings,
        key: Option<&SecretString>,
    ) -> Result<OwnServer> {
        let key = match key {
            None => None,
            Some(key) => {
                let purpose = server_purpose(owner, name, &settings.url);
                let Sealed { master, text } = self.0.masters.seal(&purpose, key).await?;
                let last_characters = last_characters(key.expose_secret()).to_owned();
                Some(SealedKey { last_characters, sealed: text, master })
            }
        };
        let record = OwnServer { name, settings, created_at: self.0.clock.now(), key };
        self.0.store.put_server(owner, &record).await?;
        self.kept_servers().remove(owner);
        Ok(record)
    }

    /// Deletes a server. Returns whether there was one.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn delete_server(&self, owner: &Owner, name: ServerName) -> Result<bool> {
        let deleted = self.0.store.delete_server(owner, name).await?.done();
        self.kept_servers().remove(owner);
        Ok(deleted)
    }

    /// Stores a checked key in place of an earlier one.
    ///
    /// # Errors
    /// If the table or the master keys do not answer.
    pub async fn put(&self, owner: &Owner, provider: KeyProvider, key: &SecretString) -> Result<ProviderKey> {
        let Sealed { master, text } = self.0.masters.seal(&purpose(owner, provider), key).await?;
        let record = ProviderKey {
            provider,
            last_characters: last_characters(key.expose_secret()).to_owned(),
            created_at: self.0.clock.now(),
            sealed: text,
            master,
        };
        self.0.store.put_provider_key(owner, &record).await?;
        self.forget(owner, provider);
        Ok(record)
    }

    /// Deletes a key. Returns whether there was one.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn delete(&self, owner: &Owner, provider: KeyProvider) -> Result<bool> {
        let deleted = self.0.store.delete_provider_key(owner, provider).await?.done();
        self.forget(owner, provider);
        Ok(deleted)
    }

    /// Encrypts an address or a secret of a channel.
    ///
    /// # Errors
    /// If the master keys do not answer.
    pub async fn seal_for_channel(
        &self,
        owner: &Owner,
        channel: ChannelId,
        text: &SecretString,
    ) -> Result<SealedText> {
        let Sealed { master, text } = self.0.masters.seal(&channel_purpose(owner, channel), text).await?;
        Ok(SealedText { text, master })
    }

    /// Decrypts what [`Self::seal_for_channel`] has encrypted.
    ///
    /// # Errors
    /// If the master keys do not answer, or if the text was encrypted for something else.
    pub async fn open_for_channel(
        &self,
        owner: &Owner,
        channel: ChannelId,
        sealed: &SealedText,
    ) -> Result<SecretString> {
        let sealed = Sealed { master: sealed.master, text: sealed.text.clone() };
        self.0.masters.open(&channel_purpose(owner, channel), &sealed).await
    }

    /// A token that stands for a channel, for people who have no account.
    ///
    /// # Errors
    /// If the master keys do not answer.
    pub async fn token_of_channel(&self, owner: &Owner, channel: ChannelId) -> Result<String> {
        self.token(UNSUBSCRIBE, &channel.to_string(), owner).await
    }

    /// What a token of a channel stands for. None if this platform has not made it.
    ///
    /// # Errors
    /// If the master keys do not answer.
    pub async fn channel_of_token(&self, token: &str) -> Result<Option<(Owner, ChannelId)>> {
        self.of_token(UNSUBSCRIBE, token).await
    }

    /// A token that stands for the replies in a chat with a bot.
    ///
    /// # Errors
    /// If the master keys do not answer.
    pub async fn token_of_replies(&self, owner: &Owner, channel: ChannelId) -> Result<String> {
        self.token(REPLIES, &channel.to_string(), owner).await
    }

    /// What a token of replies stands for. None if this platform has not made it.
    ///
    /// # Errors
    /// If the master keys do not answer.
    pub async fn replies_of_token(&self, token: &str) -> Result<Option<(Owner, ChannelId)>> {
        self.of_token(REPLIES, token).await
    }

    /// A token with which the reader of a message answers.
    ///
    /// # Errors
    /// If the master keys do not answer.
    pub async fn token_of_answer(&self, owner: &Owner, link: AnswerLink) -> Result<String> {
        self.token(ANSWER, &link.to_string(), owner).await
    }

    /// What the token of an answer stands for. None if this platform has not made it.
    ///
    /// # Errors
    /// If the master keys do not answer.
    pub async fn answer_of_token(&self, token: &str) -> Result<Option<(Owner, AnswerLink)>> {
        self.of_token(ANSWER, token).await
    }

    /// A token that stands for the webhook of a project's living documents.
    ///
    /// # Errors
    /// If the master keys do not answer.
    pub async fn token_of_docs_hook(&self, owner: &Owner, project: ProjectId) -> Result<String> {
        self.token(DOCS_HOOK, &project.to_string(), owner).await
    }

    /// What a token of a webhook stands for. None if this platform has not made it.
    ///
    /// # Errors
    /// If the master keys do not answer.
    pub async fn docs_hook_of_token(&self, token: &str) -> Result<Option<(Owner, ProjectId)>> {
        self.of_token(DOCS_HOOK, token).await
    }

    /// A token is the number of a master key, a dot, and an encrypted text, so nothing is stored for it.
    async fn token(&self, purpose: &str, id: &str, owner: &Owner) -> Result<String> {
        let text = SecretString::from(format!("{id} {owner}"));
        let Sealed { master, text } = self.0.masters.seal(purpose, &text).await?;
        let bytes = BASE64_STANDARD.decode(&text).map_err(|error| Error::internal(error.to_string()))?;
        Ok(format!("{master}.{}", BASE64_URL_SAFE_NO_PAD.encode(bytes)))
    }

    async fn of_token<Id: FromStr>(&self, purpose: &str, token: &str) -> Result<Option<(Owner, Id)>> {
        let Some((master, text)) = token.split_once('.') else { return Ok(None) };
        let (Ok(master), Ok(bytes)) = (master.parse::<u32>(), BASE64_URL_SAFE_NO_PAD.decode(text)) else {
            return Ok(None);
        };
        // Anybody may send tokens. A master key that can't exist is not looked for.
        if !(1..=self.0.masters.current()).contains(&master) || bytes.len() > MAX_TOKEN {
            return Ok(None);
        }
        let sealed = Sealed { master, text: BASE64_STANDARD.encode(bytes) };
        let text = match self.0.masters.open(purpose, &sealed).await {
            Err(error) if is_unreadable(&error) => return Ok(None),
            text => text?,
        };
        let read = |text: &str| {
            let (id, owner) = text.split_once(' ')?;
            Some((Owner::new(owner).ok()?, id.parse().ok()?))
        };
        Ok(read(text.expose_secret()))
    }

    /// Encrypts the secret of the webhook of a project's living documents.
    ///
    /// # Errors
    /// If the master keys do not answer.
    pub async fn seal_docs_secret(
        &self,
        owner: &Owner,
        project: ProjectId,
        secret: &SecretString,
    ) -> Result<SealedText> {
        let Sealed { master, text } = self.0.masters.seal(&docs_purpose(owner, project), secret).await?;
        Ok(SealedText { text, master })
    }

    /// Decrypts what [`Self::seal_docs_secret`] has encrypted.
    ///
    /// # Errors
    /// If the master keys do not answer, or if the text was encrypted for something else.
    pub async fn open_docs_secret(
        &self,
        owner: &Owner,
        project: ProjectId,
        sealed: &SealedText,
    ) -> Result<SecretString> {
        let sealed = Sealed { master: sealed.master, text: sealed.text.clone() };
        self.0.masters.open(&docs_purpose(owner, project), &sealed).await
    }

    /// Encrypts the checked value of a secret.
    ///
    /// # Errors
    /// If the master keys do not answer.
    pub async fn seal_secret(
        &self,
        owner: &Owner,
        name: SecretName,
        terms: SecretTerms,
        value: &SecretString,
    ) -> Result<OwnSecret> {
        let purpose = secret_purpose(owner, &name, &terms);
        let Sealed { master, text: sealed } = self.0.masters.seal(&purpose, value).await?;
        Ok(OwnSecret { name, terms, stored_at: self.0.clock.now(), sealed, master })
    }

    /// Decrypts what [`Self::seal_secret`] has encrypted. The value is not kept, so that a new one is used at once.
    ///
    /// # Errors
    /// If the master keys do not answer, or if the value was encrypted for something else.
    pub async fn open_secret(&self, owner: &Owner, secret: &OwnSecret) -> Result<SecretString> {
        let sealed = Sealed { master: secret.master, text: secret.sealed.clone() };
        self.0.masters.open(&secret_purpose(owner, &secret.name, &secret.terms), &sealed).await
    }

    fn forget(&self, owner: &Owner, provider: KeyProvider) {
        self.kept().remove(&(owner.clone(), provider));
    }

    fn kept(&self) -> MutexGuard<'_, KeptKeys> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept_servers(&self) -> MutexGuard<'_, KeptServers> {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Kept<T> {
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.read_at <= now && now < self.read_at + FRESH
    }
}

/// What the tokens of e-mails are encrypted for.
const UNSUBSCRIBE: &str = "unsubscribe";

/// The purpose of the tokens with which readers of messages answer.
const ANSWER: &str = "answer";

/// The purpose of the tokens with which Telegram sends replies.
const REPLIES: &str = "replies";

/// What the tokens of webhooks of living documents are encrypted for.
const DOCS_HOOK: &str = "docs-hook";

/// The longest encrypted text of a token, in bytes. An owner has at most 128.
const MAX_TOKEN: usize = 300;

/// What a key is encrypted for. A ciphertext that was copied to another owner or provider cannot be decrypted.
fn purpose(owner: &Owner, provider: KeyProvider) -> String {
    format!("provider-key\0{owner}\0{provider}")
}

fn docs_purpose(owner: &Owner, project: ProjectId) -> String {
    format!("docs-hook\0{owner}\0{project}")
}

fn channel_purpose(owner: &Owner, channel: ChannelId) -> String {
    format!("channel\0{owner}\0{channel}")
}

/// What the key of a server is encrypted for. It names the address, so that a key cannot be sent to another one.
fn server_purpose(owner: &Owner, name: ServerName, url: &str) -> String {
    format!("server-key\0{owner}\0{name}\0{url}")
}

/// What a secret is encrypted for. It names the hosts, so that nobody can send it to another one by changing its record.
fn secret_purpose(owner: &Owner, name: &SecretName, terms: &SecretTerms) -> String {
    let hosts: Vec<&str> = terms.hosts.iter().map(String::as_str).collect();
    format!("secret\0{owner}\0{name}\0{}", hosts.join(","))
}
