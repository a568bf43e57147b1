//! Any text as Liquid: the places that strict Liquid refuses lie in the text, and a markup that takes the place of another one is accepted.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theme::strict::{accepts, refusals};

fuzz_target!(|text: &str| {
    for refusal in refusals(text) {
        for span in [refusal.place, refusal.tag, refusal.markup] {
            assert!(text.get(span.start as usize..span.end as usize).is_some(), "{refusal:?} is not in the text");
        }
        assert!(refusal.tag.start <= refusal.markup.start && refusal.markup.end <= refusal.tag.end);
        if let Some(markup) = refusal.lax.and_then(|lax| lax.markup) {
            let tag = text.get(refusal.tag.start as usize..refusal.markup.start as usize).unwrap_or_default();
            let name = tag.trim_start_matches(['{', '%', '-']).trim();
            assert!(accepts(name, &markup), "{name} {markup}");
        }
    }
    // As an output alone, the verdict is that of its markup.
    if !text.contains(['{', '}', '%']) && !text.starts_with('-') && !text.ends_with('-') {
        assert!(refusals(&format!("{{{{{text}}}}}")).is_empty() == accepts("", text));
    }
});
