use super::super::catalog::ModelRef;
use super::super::estimate::image_tokens;
use super::super::request::{Block, Message, ModelId, ModelRequest, Role};
use super::super::sight::{MAX_SENT, MAX_SENT_BYTES, fit, leave_out_old};
use super::super::vendor::Vendor;
use super::*;

/// The first bytes of a file, as far as its size.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut data = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR".to_vec();
    data.extend(width.to_be_bytes());
    data.extend(height.to_be_bytes());
    data
}

fn gif(width: u16, height: u16) -> Vec<u8> {
    [&b"GIF89a"[..], &width.to_le_bytes(), &height.to_le_bytes()].concat()
}

fn jpeg(width: u16, height: u16) -> Vec<u8> {
    // A segment with a thumbnail's frame header in it, a filler byte, and the frame header.
    let thumbnail = b"\xff\xd8\xff\xe1\x00\x09\xff\xc0\x00\x11\x08\x00\x01\xff";
    let frame = b"\xff\xc2\x00\x11\x08";
    [&thumbnail[..], frame, &height.to_be_bytes(), &width.to_be_bytes()].concat()
}

fn webp(chunk: &[u8]) -> Vec<u8> {
    [&b"RIFF\0\0\0\0WEBP"[..], chunk].concat()
}

fn input(media_type: &str, data: &[u8]) -> ImageInput {
    ImageInput { media_type: media_type.into(), data: BASE64.encode(data) }
}

fn image(media_type: MediaType, width: u32, height: u32, bytes: u32) -> Image {
    Image { media_type, bytes, width, height, object: String::new(), data: Some("AAAA".into()) }
}

#[test]
fn the_size_is_read_from_every_format() {
    for (media_type, data, size) in [
        ("image/png", png(640, 480), (640, 480)),
        ("image/gif", gif(640, 480), (640, 480)),
        ("image/jpeg", jpeg(640, 480), (640, 480)),
        ("image/webp", webp(b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x42\xe0\x01"), (640, 480)),
        // 14 bits of the width less one, then 14 bits of the height less one.
        ("image/webp", webp(b"VP8L\0\0\0\0\x2f\x7f\xc2\x77\x00"), (640, 480)),
        ("image/webp", webp(b"VP8X\0\0\0\0\0\0\0\0\x7f\x02\x00\xdf\x01\x00"), (640, 480)),
    ] {
        let read = input(media_type, &data).read().unwrap();
        assert_eq!((read.width, read.height), size, "{media_type}");
        assert_eq!(read.media_type.name(), media_type);
        assert_eq!(read.decoded().as_deref(), Some(&data[..]));
        // A file that was cut off has no size. No cut makes the reader panic.
        for end in 0..data.len() {
            assert!(input(media_type, &data[..end]).read().is_err(), "{media_type} {end}");
        }
    }
}

#[test]
fn an_error_names_the_field_and_the_limit() {
    let check = |images: &[ImageInput], expected: &str| {
        let mut errors = FieldErrors::default();
        read_all(&mut errors, "images", images);
        assert_eq!(errors.to_string(), expected);
    };
    let small = input("image/png", &png(1, 1));
    check(&[small.clone(), small.clone()], "");
    check(
        &[small.clone(), input("image/bmp", b"BM")],
        "images[1].media_type: must be image/png, image/jpeg, image/gif or image/webp, is `image/bmp`",
    );
    let broken = ImageInput { data: "%".into(), ..small.clone() };
    check(&[broken], "images[0].data: must be base64");
    check(&[input("image/png", b"")], "images[0].data: must be 1 to 3000000 bytes, is 0");
    check(
        &[input("image/png", &gif(1, 1))],
        "images[0].data: must be image/png as `media_type` says, is image/gif",
    );
    check(
        &[input("image/png", b"<svg/>")],
        "images[0].data: must be image/png as `media_type` says, is another format",
    );
    check(
        &[input("image/png", &png(8_001, 1))],
        "images[0].data: must be 1 to 8000 pixels wide and high, is 8001 × 1",
    );
    check(&vec![small; 9], "images: must have at most 8 images, has 9");
    let mut large = png(1, 1);
    large.resize(MAX_IMAGE_BYTES, 0);
    let whole = input("image/png", &large);
    check(std::slice::from_ref(&whole), "");
    check(
        &[whole, input("image/png", &png(1, 1))],
        "images: must have at most 3000000 bytes together, has 3000024",
    );
    large.push(0);
    check(&[input("image/png", &large)], "images[0].data: must be 1 to 3000000 bytes, is 3000001");
}

#[test]
fn only_data_urls_are_read() {
    let (data, url) = (BASE64.encode(png(1, 1)), "https://example.com/a.png");
    let read = ImageInput::from_url(&format!("data:image/png;base64,{data}")).unwrap();
    assert_eq!(read, input("image/png", &png(1, 1)));
    for refused in [url, "", "data:image/png,abc", "file:///etc/passwd"] {
        assert!(ImageInput::from_url(refused).unwrap_err().ends_with("images are not fetched"), "{refused}");
    }
    let wrong = ImageInput::from_url(&format!("data:image/gif;base64,{data}")).unwrap_err();
    assert_eq!(wrong, "must be image/gif as `media_type` says, is image/png");
}

#[test]
fn the_bytes_are_not_stored_with_a_message() {
    let block = Block::Image(image(MediaType::Png, 2, 3, 4));
    let json = serde_json::to_value(&block).unwrap();
    let stored = serde_json::json!(
        {"type": "image", "media_type": "image/png", "bytes": 4, "width": 2, "height": 3, "object": ""}
    );
    assert_eq!(json, stored);
    let read: Block = serde_json::from_value(json).unwrap();
    assert_eq!(read, Block::Image(Image { data: None, ..image(MediaType::Png, 2, 3, 4) }));
}

#[test]
fn an_image_costs_at_least_what_the_provider_documents() {
    let check = |model: &str, width, height, tokens| {
        let id = ModelId::new(model);
        assert_eq!(
            image_tokens(&id, &image(MediaType::Png, width, height, 1)),
            tokens,
            "{model} {width} {height}"
        );
    };
    check("claude-sonnet-5-5", 1_000, 750, 1_000);
    check("claude-sonnet-5-5", 1, 1, 1);
    check("claude-sonnet-5-5", 8_000, 8_000, 4_784);
    check("gpt-5.1", 1, 1, 6_150);
    check("amazon.nova-pro-v1:0", 1, 1, 4_784);
    check("gemini-2.5-pro", 100, 100, 2_240);
    // Eleven tiles by eleven.
    check("gemini-2.5-pro", 8_000, 8_000, 31_218);
    check("llava", 1, 1, 6_150);
    let mut request = ModelRequest { messages: vec![Message::user("hi")], ..ModelRequest::default() };
    let model = ModelId::new("claude-sonnet-5-5");
    let without = super::super::estimate::request_tokens(&model, &request);
    request.messages[0].content.push(Block::Image(image(MediaType::Png, 1_000, 750, 1)));
    let with = super::super::estimate::request_tokens(&model, &request);
    assert!(with >= without + 1_000, "{with} {without}");
}

#[test]
fn a_model_gets_only_what_it_can_read() {
    let check = |vendor, model: &str, media_type, readable: bool| {
        let content = vec![Block::Image(image(media_type, 1, 1, 1)), Block::text("?")];
        let message = Message { role: Role::User, content };
        let mut request = ModelRequest { messages: vec![message], ..ModelRequest::default() };
        fit(&mut request, &ModelRef { vendor, model: ModelId::new(model) });
        let content = &request.messages[0].content;
        assert_eq!(matches!(content[0], Block::Image(_)), readable, "{model} {media_type:?}");
        assert_eq!(content[0].as_text().is_some_and(|text| text.contains("left out")), !readable, "{model}");
        assert_eq!(content[1], Block::text("?"));
    };
    check(Vendor::Anthropic, "claude-sonnet-5-5", MediaType::Gif, true);
    check(Vendor::Google, "gemini-2.5-pro", MediaType::Webp, true);
    check(Vendor::Google, "gemini-2.5-pro", MediaType::Gif, false);
    check(Vendor::Xai, "grok-4", MediaType::Jpeg, true);
    check(Vendor::Xai, "grok-4", MediaType::Webp, false);
    check(Vendor::Bedrock, "amazon.nova-micro-v1:0", MediaType::Png, false);
    check(Vendor::Bedrock, "us.amazon.nova-pro-v1:0", MediaType::Png, true);
    check(Vendor::Server(crate::models::ServerName::COMPATIBLE), "llava", MediaType::Png, true);
}

#[test]
fn the_newest_images_stay() {
    let half = u32::try_from(MAX_SENT_BYTES / 2).unwrap();
    let kept = |bytes: &[u32]| {
        let mut blocks: Vec<Block> =
            bytes.iter().map(|bytes| Block::Image(image(MediaType::Png, 1, 1, *bytes))).collect();
        leave_out_old(blocks.iter_mut());
        blocks.iter().map(|block| matches!(block, Block::Image(_))).collect::<Vec<_>>()
    };
    assert_eq!(kept(&[half, half]), [true, true]);
    assert_eq!(kept(&[1, half, half]), [false, true, true]);
    let many = kept(&[1; MAX_SENT + 2]);
    assert_eq!(many.iter().position(|kept| *kept), Some(2));
}
