//! Which images of a request a model gets. Sentences replace the others, so that the model can tell the person.

use super::catalog::ModelRef;
use super::image::{Image, MediaType};
use super::prices;
use super::request::{Block, ModelRequest};
use super::vendor::Vendor;

/// The most images of one request. Amazon Bedrock refuses more.
pub const MAX_SENT: usize = 20;
/// The most bytes of all images of one request. A function holds them several times in its memory.
pub const MAX_SENT_BYTES: usize = 8_000_000;

/// Why a model is not sent an image.
fn unreadable(model: &ModelRef, image: &Image) -> Option<&'static str> {
    let formats: &[MediaType] = match model.vendor {
        Vendor::Google => &[MediaType::Png, MediaType::Jpeg, MediaType::Webp],
        Vendor::Xai => &[MediaType::Png, MediaType::Jpeg],
        _ => &MediaType::ALL,
    };
    if !prices::sees(&model.model) {
        Some("(Here is an image. It is left out, because this model can't read images.)")
    } else if !formats.contains(&image.media_type) {
        Some("(Here is an image. It is left out, because this model can't read its format.)")
    } else if image.data.is_none() {
        Some("(Here is an image. It is left out, because it is not stored any more.)")
    } else {
        None
    }
}

const OLD: &str = "(Here was an image. It is left out, because the conversation has newer ones.)";

/// Replaces the images that `model` can't read with a sentence, so that the model can tell the person.
pub fn fit(request: &mut ModelRequest, model: &ModelRef) {
    for block in request.messages.iter_mut().flat_map(|message| &mut message.content) {
        if let Block::Image(image) = block
            && let Some(told) = unreadable(model, image)
        {
            *block = Block::text(told);
        }
    }
}

/// Replaces images with a sentence, if a request would have too many. The newest images stay.
pub fn leave_out_old<'a>(blocks: impl DoubleEndedIterator<Item = &'a mut Block>) {
    let (mut count, mut bytes) = (0, 0);
    for block in blocks.rev() {
        if let Block::Image(image) = block {
            count += 1;
            bytes += image.bytes as usize;
            if count > MAX_SENT || bytes > MAX_SENT_BYTES {
                *block = Block::text(OLD);
            }
        }
    }
}

/// Replaces all images with a sentence. Returns how many there were.
pub fn leave_out_all<'a>(blocks: impl Iterator<Item = &'a mut Block>) -> usize {
    let images = blocks.filter(|block| matches!(block, Block::Image(_)));
    images.map(|block| *block = Block::text(OLD)).count()
}
