//! Token estimates before a call. A tokenizer would cost megabytes and most of a second. A reservation only has to be
//! large enough, so bytes are counted and a fifth is added.

use super::image::Image;
use super::prices;
use super::request::{Block, Message, ModelId, ModelRequest, Provider};

/// For models that are not in the price table: the ratio of the newest tokenizers, which produce the most tokens.
const UNKNOWN_BYTES_PER_TOKEN: u64 = 3;
/// What a provider adds around each message, block and tool.
const FRAME_BYTES: usize = 24;

/// A high estimate of the number of tokens in `bytes` of text.
#[must_use]
pub fn tokens(model: &ModelId, bytes: usize) -> u64 {
    let per_token = prices::price(model).map_or(UNKNOWN_BYTES_PER_TOKEN, |price| price.bytes_per_token);
    // bytes / per_token * 1.2, rounded up.
    (bytes as u64 * 6).div_ceil(per_token * 5)
}

/// A high estimate of the number of input tokens of `request` for `model`.
#[must_use]
pub fn request_tokens(model: &ModelId, request: &ModelRequest) -> u64 {
    let system: usize = request.system.iter().map(|block| block.text.len() + FRAME_BYTES).sum();
    let tools: usize = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + json_bytes(&tool.input_schema) + FRAME_BYTES)
        .sum();
    let messages: usize = request.messages.iter().map(message_bytes).sum();
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    let images: u64 = blocks
        .map(|block| if let Block::Image(image) = block { image_tokens(model, image) } else { 0 })
        .sum();
    tokens(model, system + tools + messages) + images
}

/// The tokens of a scaled-down image for the models that see the most details.
const ANTHROPIC_MOST: u64 = 4_784;
/// 2,500 pieces of 32 × 32 pixels, times the largest factor of a model.
const OPENAI_MOST: u64 = 6_150;
/// The tokens of an image at Google's highest resolution.
const GOOGLE_MOST: u64 = 2_240;

/// The most input tokens that the image is likely to have, by the documentation of the model's provider.
#[must_use]
pub fn image_tokens(model: &ModelId, image: &Image) -> u64 {
    let (width, height) = (u64::from(image.width), u64::from(image.height));
    match prices::price(model).map(|price| price.provider) {
        // One token for 750 pixels. Larger images are scaled down to at most this many tokens.
        Some(Provider::Anthropic) => (width * height).div_ceil(750).min(ANTHROPIC_MOST),
        // Its models count differently.
        Some(Provider::Bedrock) => ANTHROPIC_MOST,
        Some(Provider::OpenAi) => OPENAI_MOST,
        // Newer models take a fixed number. Older ones divide an image into tiles of 258 tokens.
        Some(Provider::Google) => {
            let side = (width.min(height) * 2 / 3).clamp(256, 768);
            (width.div_ceil(side) * height.div_ceil(side) * 258).max(GOOGLE_MOST)
        }
        None => OPENAI_MOST,
    }
}

/// The size of one message for [`tokens`]. The code that trims long conversations uses it.
#[must_use]
pub fn message_bytes(message: &Message) -> usize {
    let content = message.content.iter().map(block_bytes);
    content.map(|bytes| bytes + FRAME_BYTES).sum::<usize>() + FRAME_BYTES
}

pub(crate) fn block_bytes(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        // Its tokens do not depend on its bytes. See `request_tokens`.
        Block::Image(_) => 0,
        Block::ToolUse { name, input, .. } => name.len() + json_bytes(input),
        Block::ToolResult { content, .. } => content.len(),
        Block::Native { block, .. } => json_bytes(block),
    }
}

pub(crate) fn json_bytes(value: &serde_json::Value) -> usize {
    value.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::request::tests::request;

    #[test]
    fn bytes_become_tokens_with_headroom() {
        for (model, bytes, expected) in [
            ("gpt-5.1", 0, 0),
            ("gpt-5.1", 1, 1),
            ("gpt-5.1", 4_000, 1_200),
            ("claude-haiku-4-5", 4_000, 1_200),
            ("claude-opus-4-6", 4_000, 1_200),
            ("claude-opus-4-7", 3_000, 1_200),
            ("claude-sonnet-5-5", 3_000, 1_200),
            ("qwen3-max", 3_000, 1_200),
        ] {
            assert_eq!(tokens(&ModelId::new(model), bytes), expected, "{model} {bytes}");
        }
    }

    #[test]
    fn every_part_of_a_request_counts() {
        let model = ModelId::new("claude-sonnet-5-5");
        let whole = request_tokens(&model, &request());
        let check = |what: &str, change: fn(&mut ModelRequest)| {
            let mut smaller = request();
            change(&mut smaller);
            assert!(request_tokens(&model, &smaller) < whole, "{what}");
        };
        check("system", |r| r.system.clear());
        check("tools", |r| r.tools.clear());
        for index in 0..3 {
            let mut smaller = request();
            smaller.messages.remove(index);
            assert!(request_tokens(&model, &smaller) < whole, "message {index}");
        }
        check("a provider's own block", |r| {
            r.messages[1].content.remove(0);
        });
    }
}
