//! The notebook of an action, for people: read it, edit it, erase it. Its runs rewrite it with the tool `note`.

use domain::actions::Notebook;
use domain::ids::{ActionId, Owner};
use futures::FutureExt;

use super::load;
use crate::context::Cx;
use crate::error::Result;
use crate::flows::edit;
use crate::flows::page::{self, Page, PageQuery};
use crate::request::caller::IfMatch;
use crate::store::table::Write;
use crate::store::{Once, Store, Tries, keys};

/// The newest version. Version 0 if nothing was ever written.
///
/// # Errors
/// 404 if the action does not exist.
pub async fn read(cx: &Cx, owner: &Owner, id: ActionId) -> Result<Notebook> {
    load(cx, owner, id).await?;
    Ok(cx.store.notebook(owner, id).await?)
}

/// The versions of a notebook, newest first.
///
/// # Errors
/// 404 if the action does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn versions(cx: &Cx, owner: &Owner, id: ActionId, query: &PageQuery) -> Result<Page<Notebook>> {
    load(cx, owner, id).await?;
    let read = |after: Option<String>, limit| {
        async move { cx.store.notebook_versions(owner, id, after.as_deref(), limit).await }.boxed()
    };
    let found = page::filtered(owner, &format!("notebook of {id}"), query, read, |_| true).await?;
    Ok(found.map(|version| version.value))
}

/// Replaces the text.
///
/// # Errors
/// 404 if the action does not exist, 400 if the text is too long, 409 if `If-Match` is not the newest version.
pub async fn replace(
    cx: &Cx,
    owner: &Owner,
    id: ActionId,
    if_match: Option<IfMatch>,
    text: String,
) -> Result<Notebook> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let current = read(cx, owner, id).await?;
        edit::check(if_match, current.version, &current)?;
        let next = current.rewritten(text.clone(), None, cx.clock.now())?;
        let mut writes = Store::notebook_writes(owner, id, &next)?;
        // A notebook must not outlive its action.
        writes.push(Write::Exists { key: keys::action(owner, id) });
        if cx.store.commit(&Once::none(), writes).await?.done() {
            return Ok(next);
        }
    }
}

/// Erases the text and all earlier versions. An empty version remains, so that a run that has read the old text can't write it again
/// without being told.
///
/// # Errors
/// 404 if the action does not exist, 409 if `If-Match` is not the newest version.
pub async fn erase(cx: &Cx, owner: &Owner, id: ActionId, if_match: Option<IfMatch>) -> Result<()> {
    let empty = replace(cx, owner, id, if_match, String::new()).await?;
    let mut after = Some(keys::notebook_version(owner, id, empty.version).sk);
    while let Some(from) = after.take() {
        let older = cx.store.notebook_versions(owner, id, Some(&from), 50).await?;
        let delete = |(sk, _): &(String, _)| Write::Delete {
            key: keys::Key::new(keys::notebook_versions(owner, id).pk, sk),
            must_exist: false,
        };
        let deletes: Vec<Write> = older.items.iter().map(delete).collect();
        if !deletes.is_empty() {
            // These writes have no condition.
            let _ = cx.store.write_all(deletes).await?;
        }
        after = older.last;
    }
    Ok(())
}
