//! The images of messages. Their bytes are objects in the bucket, and the messages only describe them.

use domain::chats::ChatMessage;
use domain::chats::Thread;
use domain::ids::Owner;
use domain::models::sight::leave_out_old;
use domain::models::{Block, Message};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::blobs::{BlobError, BlobKey};
use crate::context::{Cx, Data};
use crate::error::{Error, Result};

/// How many images are read at once.
const AT_ONCE: usize = 8;

/// Stores the images of a new message.
///
/// # Errors
/// If the bucket does not answer.
pub async fn store(cx: &Cx, owner: &Owner, thread: Thread, message: &mut ChatMessage) -> Result<()> {
    let id = message.message_id;
    for (at, block) in message.content.iter_mut().enumerate() {
        if let Block::Image(image) = block
            && let Some(bytes) = image.decoded()
        {
            image.object = format!("{id}-{at}");
            let key = BlobKey::image(owner, thread, &image.object);
            cx.blobs.put(&key, bytes, image.media_type.name()).await?;
        }
    }
    Ok(())
}

/// Deletes the images of a message that was not written.
pub async fn discard(cx: &Cx, owner: &Owner, thread: Thread, message: &ChatMessage) {
    if message.images().next().is_some() {
        let key = BlobKey::message(owner, thread, message.message_id);
        if let Err(error) = cx.blobs.delete_prefix(&key).await {
            tracing::warn!(cause = %Error::from(error).causes(), "images stay until their conversation is deleted");
        }
    }
}

/// Loads the newest images of a conversation, as many as one request may have. Sentences replace the others.
///
/// # Errors
/// If the bucket does not answer.
pub async fn load(data: &Data, owner: &Owner, thread: Thread, messages: &mut [Message]) -> Result<()> {
    leave_out_old(messages.iter_mut().flat_map(|message| &mut message.content));
    let mut wanted = Vec::new();
    for block in messages.iter().flat_map(|message| &message.content) {
        if let Block::Image(image) = block
            && image.data.is_none()
        {
            wanted.push(BlobKey::image(owner, thread, &image.object));
        }
    }
    let read = async |key: BlobKey| match data.blobs.get(&key).await {
        Ok(bytes) => Ok(Some(bytes)),
        // The conversation was reset or deleted meanwhile. The model is told that the image is missing.
        Err(BlobError::Missing { .. }) => Ok(None),
        Err(error) => Err(Error::from(error)),
    };
    let read: Vec<_> = stream::iter(wanted.into_iter().map(read)).buffered(AT_ONCE).try_collect().await?;
    let mut read = read.into_iter();
    for block in messages.iter_mut().flat_map(|message| &mut message.content) {
        if let Block::Image(image) = block
            && image.data.is_none()
            && let Some(bytes) = read.next().flatten()
        {
            image.load(&bytes);
        }
    }
    Ok(())
}
