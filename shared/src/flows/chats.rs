//! Chats: created, appended to, reset, deleted.

use domain::chats::Chat;
use domain::ids::Owner;

use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::problem::Result;

/// Deletes a chat and its messages.
///
/// # Errors
/// When the table or the bucket does not answer; the call can be made again.
pub async fn erase(cx: &Cx, owner: &Owner, chat: &Chat) -> Result<()> {
    cx.blobs.delete_prefix(&BlobKey::chat_prefix(owner, chat.chat_id)).await?;
    Ok(cx.store.delete_chat(owner, chat).await?)
}
