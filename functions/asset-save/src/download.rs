//! Sends an asset's content to a browser as plain text, never as a page that could run scripts.

use std::fmt::Write;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use domain::assets::AssetType;
use shared::flows::agents::assets::Content;

/// The longest file name, in characters, without its extension.
const MAX_NAME: usize = 80;

/// A 200 response with only the content.
pub struct Download(pub Content);

impl IntoResponse for Download {
    fn into_response(self) -> Response {
        let Content { version, text } = self.0;
        let disposition = disposition(&version.title, version.asset_type);
        let mut response = text.into_response();
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_TYPE, content_type(version.asset_type)),
            (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
            (header::CACHE_CONTROL, "private, no-cache"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(HeaderName::from_static("x-content-version"), version.content_version.into());
        if let Ok(value) = HeaderValue::try_from(disposition) {
            headers.insert(header::CONTENT_DISPOSITION, value);
        }
        response
    }
}

fn content_type(asset_type: AssetType) -> &'static str {
    match asset_type {
        AssetType::Document => "text/markdown; charset=utf-8",
        AssetType::Code | AssetType::Prompt | AssetType::Email => "text/plain; charset=utf-8",
    }
}

/// `attachment` with the title as the file name: in plain ASCII for all clients, and unchanged for clients that support
/// RFC 8187.
fn disposition(title: &str, asset_type: AssetType) -> String {
    let ending = if asset_type == AssetType::Document { "md" } else { "txt" };
    let unsafe_in_a_name = |c: char| c.is_control() || "/\\:*?\"<>|".contains(c);
    let name: String =
        title.chars().take(MAX_NAME).map(|c| if unsafe_in_a_name(c) { '_' } else { c }).collect();
    // A leading dot would hide the file.
    let name = name.trim().trim_start_matches('.');
    let name = if name.is_empty() { "asset" } else { name };
    let ascii: String = name.chars().map(|c| if c.is_ascii() { c } else { '_' }).collect();
    let mut encoded = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    format!("attachment; filename=\"{ascii}.{ending}\"; filename*=UTF-8''{encoded}.{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_never_breaks_out_of_the_header() {
        let check =
            |title: &str, expected: &str| assert_eq!(disposition(title, AssetType::Document), expected);
        check("Report", "attachment; filename=\"Report.md\"; filename*=UTF-8''Report.md");
        check(
            "a \"b\"; filename=x\r\nSet-Cookie: y",
            "attachment; filename=\"a _b_; filename=x__Set-Cookie_ y.md\"; \
             filename*=UTF-8''a%20_b_%3B%20filename%3Dx__Set-Cookie_%20y.md",
        );
        check("../../etc", "attachment; filename=\"_.._etc.md\"; filename*=UTF-8''_.._etc.md");
        check("Über", "attachment; filename=\"_ber.md\"; filename*=UTF-8''%C3%9Cber.md");
        check(" . ", "attachment; filename=\"asset.md\"; filename*=UTF-8''asset.md");
        assert!(disposition("x", AssetType::Code).ends_with("''x.txt"));
        assert!(disposition(&"é".repeat(200), AssetType::Email).len() < 700);
    }
}
