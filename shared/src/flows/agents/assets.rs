//! Assets: saved from a proposal or directly, changed, deleted with all their versions.
//!
//! A content is stored under its hash before the record that names it, and deleted after that record. So no record ever names a
//! missing content, also with concurrent calls and after a crash.

use domain::assets::{Asset, AssetPatch, AssetType, AssetVersion, NewAsset, WithContent};
use domain::chats::{Proposal, ProposalBody};
use domain::ids::{AgentId, AssetId, Owner, ProposalId, RunId};
use domain::validate::FieldErrors;
use futures::FutureExt;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::aws::bus::{AssetSaved, Event};
use crate::blobs::{BlobError, BlobKey};
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::actions::proposals;
use crate::flows::page::{self, Page, PageQuery};
use crate::flows::{edit, existing};
use crate::request::caller::IfMatch;
use crate::store::keys::Guard;
use crate::store::table::{Write, Written};
use crate::store::{Once, Store, Tries, Versioned, keys};

/// The input that saves an asset: its fields, or a proposal with the fields that differ from it.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({
    "title": "Competitor report",
    "description": "Prices of the week",
    "asset_type": "document",
    "content": "# Prices\n\nNothing has changed."
}))]
pub struct SaveAsset {
    /// The proposal to save. Saving removes it, so a second save does not find it.
    #[serde(default)]
    pub proposal_id: Option<ProposalId>,
    /// 1 to 200 characters.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    pub title: Option<String>,
    /// Up to 2,000 characters.
    #[serde(default)]
    #[schema(max_length = 2_000)]
    pub description: Option<String>,
    /// Default: `document`.
    #[serde(default)]
    pub asset_type: Option<AssetType>,
    /// 1 byte to 4 MiB of UTF-8.
    #[serde(default)]
    pub content: Option<String>,
}

/// An asset as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AssetView {
    #[serde(flatten)]
    pub asset: Asset,
    /// Send it in `If-Match`.
    pub version: u64,
}

impl From<Versioned<Asset>> for AssetView {
    fn from(Versioned { value, version }: Versioned<Asset>) -> Self {
        Self { asset: value, version }
    }
}

/// A content and the title of its asset.
#[derive(Clone, Debug)]
pub struct Content {
    pub version: AssetVersion,
    pub text: String,
}

/// A part of a content, for a model.
pub struct Excerpt<'a> {
    pub text: &'a str,
    /// How many bytes follow the part.
    pub truncated_bytes: usize,
    /// Where the next part begins, if there is one.
    pub next_byte: Option<usize>,
}

impl Content {
    /// The content from a byte on, at most `max` bytes. Both ends are moved back to the start of a character.
    #[must_use]
    pub fn excerpt(&self, from_byte: usize, max: usize) -> Excerpt<'_> {
        excerpt(&self.text, from_byte, max)
    }
}

/// A text from a byte on, at most `max` bytes. Both ends are moved back to the start of a character.
#[must_use]
pub fn excerpt(text: &str, from_byte: usize, max: usize) -> Excerpt<'_> {
    let start = text.floor_char_boundary(from_byte);
    let end = text.floor_char_boundary(start.saturating_add(max));
    let truncated_bytes = text.len() - end;
    Excerpt { text: &text[start..end], truncated_bytes, next_byte: (truncated_bytes > 0).then_some(end) }
}

/// Saves an asset. A proposal is removed and saved as an asset in one transaction, which also adds the asset to its chat.
///
/// # Errors
/// 404 if the agent or the proposal does not exist, 400 with every invalid field and its limit.
pub async fn save(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    agent: AgentId,
    input: SaveAsset,
) -> Result<AssetView> {
    existing::agent(cx, owner, agent).await?;
    let proposal = match input.proposal_id {
        None => None,
        Some(id) => match proposals::to_accept(cx, owner, id).await? {
            proposal if proposal.agent_id == agent => Some(proposal),
            _ => return Err(Error::NotFound("proposal")),
        },
    };
    let new = merge(cx, owner, input, proposal.as_ref()).await?;
    let run = proposal.as_ref().and_then(|proposal| proposal.run_id);
    let asset = store(cx, owner, agent, run, new).await?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let chat = match proposal.as_ref().and_then(|proposal| proposal.chat_id) {
            Some(chat) => cx.store.chat(owner, chat).await?.map(|chat| chat.value.chat_id),
            None => None,
        };
        let mut writes = proposal.as_ref().map_or_else(Vec::new, |p| Store::take_proposal(owner, p));
        writes.extend(Store::asset_writes(owner, &asset)?);
        if let Some(chat) = chat {
            writes.push(Write::Exists { key: keys::chat(owner, chat) });
            writes.push(Store::generated_write(owner, chat, asset.asset_id)?);
        }
        match cx.store.commit(once, writes).await? {
            Written::Yes => {
                if let Some(proposal) = &proposal {
                    discard(cx, owner, proposal).await;
                }
                tell(cx, owner, &asset).await;
                return Ok(AssetView { asset, version: 1 });
            }
            // The chat was deleted meanwhile.
            Written::Refused(Guard::Chat) => {}
            Written::Refused(guard) => {
                sweep(cx, owner, asset.asset_id).await?;
                return Err(Error::NotFound(if guard == Guard::Proposal { "proposal" } else { "agent" }));
            }
        }
    }
}

async fn merge(cx: &Cx, owner: &Owner, input: SaveAsset, proposal: Option<&Proposal>) -> Result<NewAsset> {
    let base = match proposal.map(|proposal| (proposal.proposal_id, &proposal.body)) {
        None => NewAsset::default(),
        Some((id, ProposalBody::Asset { title, description, asset_type, content, .. })) => NewAsset {
            title: title.clone(),
            description: description.clone(),
            asset_type: *asset_type,
            content: match &input.content {
                Some(_) => String::new(),
                None => proposals::content(cx, owner, id, content.clone()).await?,
            },
        },
        Some((_, ProposalBody::Action(_) | ProposalBody::Change { .. } | ProposalBody::Command { .. })) => {
            return Err(FieldErrors::one("proposal_id", "proposes an action, not an asset").into());
        }
    };
    Ok(NewAsset {
        title: input.title.unwrap_or(base.title),
        description: input.description.unwrap_or(base.description),
        asset_type: input.asset_type.unwrap_or(base.asset_type),
        content: input.content.unwrap_or(base.content),
    })
}

/// A new asset whose content is stored. `Store::asset_writes` creates the record.
///
/// # Errors
/// 400 with every invalid field and its limit.
pub async fn store(
    cx: &Cx,
    owner: &Owner,
    agent: AgentId,
    run: Option<RunId>,
    new: NewAsset,
) -> Result<Asset> {
    let id = AssetId::from_uuid(cx.clock.uuid());
    let WithContent { asset, content } = new.into_asset(id, agent, run, cx.clock.now())?;
    upload(cx, owner, &asset, content).await?;
    Ok(asset)
}

/// The writes that save an output of a run as an asset, whose id is computed from the run: a new asset, or a new version of an
/// existing one. The content is stored before the writes are returned. They are refused if the asset has changed meanwhile.
///
/// # Errors
/// 400 with every invalid field and its limit, 404 if the agent is gone.
pub async fn output_writes(
    data: &Data,
    owner: &Owner,
    agent: AgentId,
    run: RunId,
    id: AssetId,
    output: NewAsset,
) -> Result<Vec<Write>> {
    // One request reads both.
    let store = data.store.remembering();
    let (found, agent_found) = tokio::try_join!(store.asset(owner, id), store.agent(owner, agent))?;
    match found {
        None => {
            agent_found.ok_or(Error::NotFound("agent"))?;
            let WithContent { asset, content } = output.into_asset(id, agent, Some(run), data.clock.now())?;
            upload(data, owner, &asset, content).await?;
            Ok(Store::asset_writes(owner, &asset)?)
        }
        Some(current) => {
            let patch = AssetPatch { content: Some(output.content), ..AssetPatch::default() };
            let WithContent { asset, content } = current.value.patched(patch, data.clock.now())?;
            let is_new = content.is_some();
            if let Some(content) = content {
                upload(data, owner, &asset, content).await?;
            }
            Ok(Store::replace_asset_writes(owner, &asset, current.version, is_new)?)
        }
    }
}

async fn upload(data: &Data, owner: &Owner, asset: &Asset, content: String) -> Result<()> {
    let key = BlobKey::asset(owner, asset.asset_id, &asset.sha256);
    Ok(data.blobs.put(&key, content, "text/plain; charset=utf-8").await?)
}

/// Publishes that a person or a program has saved a content. If the process dies before, the event is lost; the list of assets is complete.
async fn tell(cx: &Cx, owner: &Owner, asset: &Asset) {
    let saved = Event::AssetSaved(AssetSaved::of(owner, asset));
    if let Err(error) = cx.bus.publish(&[saved]).await {
        tracing::warn!(cause = %error, asset_id = %asset.asset_id, "the event of a saved asset was not published");
    }
}

/// Deletes the content of an accepted proposal. The asset is already saved, so errors are ignored.
async fn discard(cx: &Cx, owner: &Owner, proposal: &Proposal) {
    if let Err(error) = cx.blobs.delete_prefix(&BlobKey::proposal(owner, proposal.proposal_id)).await {
        tracing::warn!(%error, proposal_id = %proposal.proposal_id, "the content of an accepted proposal was not deleted");
    }
}

/// # Errors
/// 404 if it does not exist.
pub async fn load(data: &Data, owner: &Owner, id: AssetId) -> Result<Versioned<Asset>> {
    data.store.asset(owner, id).await?.ok_or(Error::NotFound("asset"))
}

/// All assets, or an agent's, newest first.
///
/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub async fn list(
    cx: &Cx,
    owner: &Owner,
    agent: Option<AgentId>,
    asset_type: Option<AssetType>,
    query: &PageQuery,
) -> Result<Page<AssetView>> {
    let list = agent.map_or_else(|| "assets".to_owned(), |agent| format!("assets of {agent}"));
    let newest = |after: Option<String>, limit| {
        async move {
            match agent {
                Some(agent) => cx.store.agent_assets(owner, agent, after.as_deref(), limit).await,
                None => cx.store.assets(owner, after.as_deref(), limit).await,
            }
        }
        .boxed()
    };
    let keep = |asset: &Asset| asset_type.is_none_or(|asset_type| asset.asset_type == asset_type);
    Ok(page::filtered(owner, &list, query, newest, keep).await?.map(AssetView::from))
}

/// Changes an asset. New content makes a new version.
///
/// # Errors
/// 404; 400 with every invalid field; 409 if `If-Match` is not the current version.
pub async fn change(
    cx: &Cx,
    owner: &Owner,
    id: AssetId,
    if_match: Option<IfMatch>,
    patch: AssetPatch,
) -> Result<AssetView> {
    let mut uploaded = false;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let current = match load(cx, owner, id).await {
            Err(gone @ Error::NotFound(_)) if uploaded => {
                sweep(cx, owner, id).await?;
                return Err(gone);
            }
            current => current?,
        };
        edit::check(if_match, current.version, &current.value)?;
        let WithContent { asset, content } = current.value.patched(patch.clone(), cx.clock.now())?;
        if let Some(content) = content.filter(|_| !uploaded) {
            upload(cx, owner, &asset, content).await?;
            uploaded = true;
        }
        if cx.store.replace_asset(owner, &asset, current.version, uploaded).await?.done() {
            if uploaded {
                tell(cx, owner, &asset).await;
            }
            return Ok(AssetView { asset, version: current.version + 1 });
        }
    }
}

/// The newest content, or the content of a version.
///
/// # Errors
/// 404 if the asset or version does not exist.
pub async fn content(data: &Data, owner: &Owner, id: AssetId, version: Option<u64>) -> Result<Content> {
    let version = match version {
        None => load(data, owner, id).await?.value.newest_version(),
        Some(n) => data.store.asset_version(owner, id, n).await?.ok_or(Error::NotFound("version"))?,
    };
    match data.blobs.get_text(&BlobKey::asset(owner, id, &version.sha256)).await {
        Ok(text) => Ok(Content { version, text }),
        Err(missing @ BlobError::Missing { .. }) => {
            // The asset was deleted after the record was read, or the stored data is damaged.
            load(data, owner, id).await?;
            Err(missing.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// The versions of an asset, newest first.
///
/// # Errors
/// 404 if the asset does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn versions(cx: &Cx, owner: &Owner, id: AssetId, query: &PageQuery) -> Result<Page<AssetVersion>> {
    load(cx, owner, id).await?;
    let newest = |after: Option<String>, limit| {
        async move { cx.store.asset_versions(owner, id, after.as_deref(), limit).await }.boxed()
    };
    let list = format!("versions of {id}");
    Ok(page::filtered(owner, &list, query, newest, |_| true).await?.map(|version| version.value))
}

/// Deletes an asset, its versions and their contents.
///
/// # Errors
/// 404 if it does not exist. The call then still deletes what an interrupted deletion has left.
pub async fn delete(cx: &Cx, owner: &Owner, id: AssetId) -> Result<()> {
    if delete_if_there(cx, owner, id).await? { Ok(()) } else { Err(Error::NotFound("asset")) }
}

/// Deletes an asset, its versions and their contents. Returns whether it existed.
///
/// # Errors
/// If the table or the bucket does not answer; the call can be repeated.
pub async fn delete_if_there(cx: &Cx, owner: &Owner, id: AssetId) -> Result<bool> {
    let asset = cx.store.asset(owner, id).await?.map(|asset| asset.value);
    let deleted = match &asset {
        Some(asset) => cx.store.delete_asset(owner, asset).await?.done(),
        None => false,
    };
    sweep(cx, owner, id).await?;
    if let Some(asset) = asset {
        // The mark at the agent is deleted last, because the deletion of the agent uses it to find what is left.
        cx.store.delete(&keys::agent_child(owner, asset.agent_id, id)).await?;
    }
    Ok(deleted)
}

/// Deletes the leftovers of an asset that has no record.
async fn sweep(cx: &Cx, owner: &Owner, id: AssetId) -> Result<()> {
    cx.store.delete_asset_versions(owner, id).await?;
    Ok(cx.blobs.delete_prefix(&BlobKey::asset_prefix(owner, id)).await?)
}
