//! `generate_placeholder`: an SVG with a text.

use std::fmt::Write as _;

use crate::arguments::Placeholder;

const GREY: &str = "#d9d9d9";

/// The SVG of the image.
pub fn svg(call: &Placeholder) -> String {
    let (width, height) = (call.width, call.height);
    let colour = call.colour.as_deref().unwrap_or(GREY);
    let text = match &call.text {
        Some(text) => text.clone(),
        None => format!("{width} × {height}"),
    };
    let letters = u32::try_from(text.chars().count().max(1)).unwrap_or(u32::MAX);
    // A letter is about 0.6 of its size wide, and the text takes at most four fifths of the width.
    let size = (width * 4 / 3 / letters).min(height / 3).clamp(1, 200);
    let ink = if is_dark(colour) { "#ffffff" } else { "#333333" };
    let escaped = escaped(&text);
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{escaped}\">\
         <rect width=\"100%\" height=\"100%\" fill=\"{colour}\"/>"
    );
    if !escaped.is_empty() {
        let _ = write!(
            svg,
            "<text x=\"50%\" y=\"50%\" fill=\"{ink}\" font-family=\"sans-serif\" font-size=\"{size}\" text-anchor=\"middle\" dominant-baseline=\"central\">{escaped}</text>"
        );
    }
    svg + "</svg>\n"
}

/// Liquid's braces are escaped, too: the image may be put into a template.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '{' => escaped.push_str("&#123;"),
            '}' => escaped.push_str("&#125;"),
            '\n' | '\r' | '\t' => escaped.push(' '),
            // XML has no other control characters and no noncharacters.
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}

fn is_dark(colour: &str) -> bool {
    let digits: Vec<u32> = colour.chars().filter_map(|c| c.to_digit(16)).collect();
    let [red, green, blue] = match *digits {
        [r, g, b] => [r * 17, g * 17, b * 17],
        [r1, r2, g1, g2, b1, b2] => [r1 * 16 + r2, g1 * 16 + g2, b1 * 16 + b2],
        _ => return false,
    };
    (299 * red + 587 * green + 114 * blue) / 1000 < 128
}
