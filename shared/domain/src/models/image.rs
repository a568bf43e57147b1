//! Images in the messages of people: their formats and limits.
//!
//! A message keeps only what describes an image. Its bytes are an object in the bucket, and are loaded when a request is built. The
//! header of an image is read, because a provider refuses an image whose type is wrong or that is too large, and would then
//! refuse every later turn of the conversation too.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::validate::FieldErrors;

/// The most images of one message.
pub const MAX_IMAGES: usize = 8;
/// The most bytes of one image, and of all images of a message together. Base64 makes them a third larger, and the message's
/// text must fit into the same request.
pub const MAX_IMAGE_BYTES: usize = 3_000_000;
/// The largest width and height, in pixels. Anthropic and Amazon Bedrock refuse larger images.
pub const MAX_PIXELS: u32 = 8_000;

/// The format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum MediaType {
    #[serde(rename = "image/png")]
    Png,
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/gif")]
    Gif,
    #[serde(rename = "image/webp")]
    Webp,
}

impl MediaType {
    pub const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp];

    /// The part after `image/`.
    #[must_use]
    pub const fn format(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Gif => "gif",
            Self::Webp => "webp",
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The format whose first bytes `data` has.
    #[must_use]
    pub fn of(data: &[u8]) -> Option<Self> {
        match data {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }

    /// The width and height in pixels, from the header.
    fn size(self, data: &[u8]) -> Option<(u32, u32)> {
        let byte = |at: usize| data.get(at).copied().map(u32::from);
        let big = |at: usize| Some((byte(at)? << 8) | byte(at + 1)?);
        let little = |at: usize| Some((byte(at + 1)? << 8) | byte(at)?);
        match self {
            Self::Png if data.get(12..16)? == b"IHDR" => {
                Some(((big(16)? << 16) | big(18)?, (big(20)? << 16) | big(22)?))
            }
            Self::Png => None,
            Self::Gif => Some((little(6)?, little(8)?)),
            Self::Jpeg => jpeg_size(data),
            Self::Webp => match data.get(12..16)? {
                // The upper two bits of each number are a scale.
                b"VP8 " => Some((little(26)? & 0x3fff, little(28)? & 0x3fff)),
                b"VP8L" => {
                    let bits = (little(23)? << 16) | little(21)?;
                    Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
                }
                b"VP8X" => {
                    let (wide, high) = ((byte(26)? << 16) | little(24)?, (byte(29)? << 16) | little(27)?);
                    Some((wide + 1, high + 1))
                }
                _ => None,
            },
        }
    }
}

/// The size of a JPEG image is in its frame header, after any number of other segments.
fn jpeg_size(data: &[u8]) -> Option<(u32, u32)> {
    let two = |at: usize| Some((usize::from(*data.get(at)?) << 8) | usize::from(*data.get(at + 1)?));
    let mut at = 2;
    loop {
        if *data.get(at)? != 0xff {
            return None;
        }
        match *data.get(at + 1)? {
            // Bytes that fill a gap between segments.
            0xff => at += 1,
            // Markers without a length.
            0x01 | 0xd0..=0xd8 => at += 2,
            // The image's data begins without a frame header.
            0xd9 | 0xda => return None,
            // A frame header. The other markers of this range are tables.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let (high, wide) = (two(at + 5)?, two(at + 7)?);
                return Some((u32::try_from(wide).ok()?, u32::try_from(high).ok()?));
            }
            _ => at += 2 + two(at + 2)?.max(2),
        }
    }
}

/// An image as a client sends it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
pub struct ImageInput {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`. It must be the format of `data`.
    #[serde(default)]
    #[schema(required = true, example = "image/png")]
    pub media_type: String,
    /// The file in base64, at most 3,000,000 bytes before the encoding and 8,000 pixels wide and high.
    #[serde(default)]
    #[schema(required = true)]
    pub data: String,
}

impl ImageInput {
    /// Reads a `data:` URL. Nothing is fetched from elsewhere, so every other URL is refused.
    ///
    /// # Errors
    /// A sentence without its subject.
    pub fn from_url(url: &str) -> Result<Self, String> {
        let parts = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let (media_type, data) =
            parts.ok_or("must be a URL of the form `data:image/png;base64,…`: images are not fetched")?;
        let image = Self { media_type: media_type.to_owned(), data: data.to_owned() };
        match image.read() {
            Ok(_) => Ok(image),
            Err(FieldErrors(errors)) => Err(errors.into_iter().map(|error| error.message).collect()),
        }
    }

    fn read(&self) -> Result<Image, FieldErrors> {
        let media_type = MediaType::parse(&self.media_type).ok_or_else(|| {
            let told = "must be image/png, image/jpeg, image/gif or image/webp";
            FieldErrors::one("media_type", format!("{told}, is `{}`", shortened(&self.media_type)))
        })?;
        let refused = |told: String| FieldErrors::one("data", told);
        let bytes = BASE64.decode(&self.data).map_err(|_| refused("must be base64".into()))?;
        if bytes.is_empty() || bytes.len() > MAX_IMAGE_BYTES {
            return Err(refused(format!("must be 1 to {MAX_IMAGE_BYTES} bytes, is {}", bytes.len())));
        }
        if MediaType::of(&bytes) != Some(media_type) {
            let is = MediaType::of(&bytes).map_or("another format", MediaType::name);
            return Err(refused(format!("must be {} as `media_type` says, is {is}", media_type.name())));
        }
        let (width, height) = media_type
            .size(&bytes)
            .ok_or_else(|| refused(format!("must be a whole {} file, has no size", media_type.name())))?;
        if !(1..=MAX_PIXELS).contains(&width) || !(1..=MAX_PIXELS).contains(&height) {
            let told = format!("must be 1 to {MAX_PIXELS} pixels wide and high, is {width} × {height}");
            return Err(refused(told));
        }
        Ok(Image {
            media_type,
            bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            width,
            height,
            object: String::new(),
            data: Some(self.data.as_str().into()),
        })
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Reads the images of one message. `field` is the path of their list.
pub fn read_all(errors: &mut FieldErrors, field: &str, inputs: &[ImageInput]) -> Vec<Image> {
    if inputs.len() > MAX_IMAGES {
        errors.add(field, format!("must have at most {MAX_IMAGES} images, has {}", inputs.len()));
        return Vec::new();
    }
    let images: Vec<Image> = inputs
        .iter()
        .enumerate()
        .filter_map(|(at, input)| errors.nest(&format!("{field}[{at}]"), input.read()))
        .collect();
    let bytes: usize = images.iter().map(|image| image.bytes as usize).sum();
    if bytes > MAX_IMAGE_BYTES {
        errors.add(field, format!("must have at most {MAX_IMAGE_BYTES} bytes together, has {bytes}"));
    }
    images
}

/// An image of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    pub media_type: MediaType,
    pub bytes: u32,
    /// In pixels.
    pub width: u32,
    pub height: u32,
    /// The last part of the key of the object that has the bytes.
    #[serde(default)]
    pub object: String,
    /// The bytes in base64. They are not stored with the message, and `None` until they are loaded.
    #[serde(skip)]
    pub data: Option<Arc<str>>,
}

impl Image {
    /// The bytes in base64. Empty if they are not loaded.
    #[must_use]
    pub fn base64(&self) -> &str {
        self.data.as_deref().unwrap_or_default()
    }

    /// The image as a `data:` URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("data:{};base64,{}", self.media_type.name(), self.base64())
    }

    /// The bytes. `None` if they are not loaded.
    #[must_use]
    pub fn decoded(&self) -> Option<Vec<u8>> {
        BASE64.decode(self.data.as_deref()?).ok()
    }

    /// Puts the loaded bytes in.
    pub fn load(&mut self, bytes: &[u8]) {
        self.data = Some(BASE64.encode(bytes).into());
    }
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
