//! The webhook of a project: GitHub reports its pushes.
//!
//! The path has a token, which says whose project it is, and the signature shows that it is GitHub. Neither is enough: who knows the path
//! can report nothing.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use domain::ids::{Owner, ProjectId};
use domain::living::CommitId;
use domain::living::github::{self, EVENT, MAX_BRANCH, Push, SIGNATURE};
use domain::validate::FieldErrors;
use http::HeaderMap;
use jiff::Timestamp;
use rand::Rng;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::commits::{self, MAX_AT_ONCE, NewCommits};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::existing;
use crate::request::path_for_client;
use crate::store::projects::living::StoredHook;
use crate::store::{Once, Store};

/// How many random bytes a secret has.
const SECRET_BYTES: usize = 32;

/// A new webhook.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(as = NewDocsHook)]
#[serde(default)]
pub struct NewHook {
    /// The branch whose commits count, 1 to 200 bytes. Default: the default branch of the repository.
    #[schema(max_length = 200, example = "main")]
    pub branch: Option<String>,
}

/// The webhook of a project.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = DocsHook)]
pub struct HookView {
    /// Append it to the scheme and the host of the platform, such as `https://lamps.example.com`. That is the payload URL for GitHub. Each
    /// answer has another path, and all of them work.
    #[schema(example = "/hooks/github/1.4f1c")]
    pub path: String,
    /// The branch whose commits count. Absent: the default branch of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    pub created_at: Timestamp,
}

/// A new webhook with its secret.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = DocsHookWithSecret)]
pub struct HookWithSecret {
    #[serde(flatten)]
    pub hook: HookView,
    /// The secret for GitHub. It is in the first answer only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// What became of a call of GitHub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DocsPush)]
pub struct Pushed {
    /// How many commits are new.
    pub new: u64,
    /// How many have replaced a waiting commit of an earlier report with the same author, time and message, as after a forced push.
    pub rebased: u64,
    /// How many commits were known.
    pub known: u64,
    /// Why the call changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
}

async fn view(cx: &Cx, owner: &Owner, hook: StoredHook) -> Result<HookView> {
    let token = cx.provider_keys.token_of_docs_hook(owner, hook.project_id).await?;
    let path = path_for_client(&format!("/hooks/github/{token}"));
    Ok(HookView { path, branch: hook.branch, created_at: hook.created_at })
}

/// Creates the webhook of a project, or gives it a new secret. The old secret no longer works.
///
/// # Errors
/// 400 if the branch is invalid; 404 if the project does not exist.
pub async fn create(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    project: ProjectId,
    new: NewHook,
) -> Result<HookWithSecret> {
    if let Some(branch) = &new.branch
        && (branch.is_empty() || branch.len() > MAX_BRANCH || branch.chars().any(char::is_control))
    {
        let told = format!("must be 1 to {MAX_BRANCH} bytes without control characters");
        return Err(FieldErrors::one("branch", told).into());
    }
    existing::project(cx, owner, project).await?;
    let secret = BASE64_URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; SECRET_BYTES]>());
    let sealed =
        cx.provider_keys.seal_docs_secret(owner, project, &SecretString::from(secret.clone())).await?;
    let hook =
        StoredHook { project_id: project, branch: new.branch, created_at: cx.clock.now(), secret: sealed };
    if !cx.store.commit(once, Store::docs_hook_writes(owner, &hook)?).await?.done() {
        return Err(Error::NotFound("project"));
    }
    Ok(HookWithSecret { hook: view(cx, owner, hook).await?, secret: Some(secret) })
}

/// # Errors
/// 404 if the project does not exist.
pub async fn read(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<Option<HookView>> {
    existing::project(cx, owner, project).await?;
    match cx.store.docs_hook(owner, project).await? {
        Some(hook) => view(cx, owner, hook).await.map(Some),
        None => Ok(None),
    }
}

/// Deletes a webhook. Its path no longer works.
///
/// # Errors
/// 404 if the project or the webhook does not exist.
pub async fn delete(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<()> {
    existing::project(cx, owner, project).await?;
    let is_deleted = cx.store.delete_docs_hook(owner, project).await?.done();
    if is_deleted { Ok(()) } else { Err(Error::NotFound("webhook")) }
}

/// Takes a call of GitHub. It may be repeated.
///
/// # Errors
/// 404 if the platform has not made the token, or if the webhook does not exist any more; 403 if the signature is wrong; 400 if the body
/// is not that of a push; 409 if the changelog is full.
pub async fn take(cx: &Cx, token: &str, headers: &HeaderMap, body: &[u8]) -> Result<Pushed> {
    let unknown = || Error::NotFound("webhook");
    let (owner, project) = cx.provider_keys.docs_hook_of_token(token).await?.ok_or_else(unknown)?;
    let hook = cx.store.docs_hook(&owner, project).await?.ok_or_else(unknown)?;
    if cx.deletions.of(&cx.store, &owner, cx.clock.now()).await?.is_some() {
        return Err(unknown());
    }
    let header = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let secret = cx.provider_keys.open_docs_secret(&owner, project, &hook.secret).await?;
    let is_signed =
        header(SIGNATURE).is_some_and(|signature| github::is_signed(secret.expose_secret(), body, signature));
    if !is_signed {
        return Err(Error::Forbidden("the signature in `X-Hub-Signature-256` is missing or wrong"));
    }
    let ignored = |why: String| Ok(Pushed { new: 0, rebased: 0, known: 0, ignored: Some(why) });
    match header(EVENT) {
        Some("push") => {}
        Some("ping") => return ignored("it is a ping".to_owned()),
        _ => return ignored("only the event `push` is taken".to_owned()),
    }
    let push = github::read(body, hook.branch.as_deref())
        .map_err(|error| FieldErrors::one("body", error.to_string()))?;
    let commits = match push {
        Push::Commits(commits) => commits,
        Push::Other(what) => return ignored(format!("it is a push of {what}")),
    };
    let mut pushed = Pushed { new: 0, rebased: 0, known: 0, ignored: None };
    let report: Vec<CommitId> = commits.iter().map(|commit| commit.id.clone()).collect();
    for some in commits.chunks(MAX_AT_ONCE) {
        let new = NewCommits { commits: some.to_vec(), report: report.clone() };
        let added = commits::add(cx, &owner, &Once::none(), project, new).await?;
        pushed.new += added.new;
        pushed.rebased += added.rebased;
        pushed.known += added.known;
    }
    Ok(pushed)
}
