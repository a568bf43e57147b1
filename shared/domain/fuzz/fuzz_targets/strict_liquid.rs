//! Any text as Liquid: the places that strict Liquid refuses or reads otherwise lie in the text, and a markup that takes the place of another one
//! is accepted. A mend leaves no more refused places than it lists, also in a string of JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theme::fix::{self, How, Mender};
use theme::strict::{accepts, read, refusals};

fuzz_target!(|text: &str| {
    let found = read(text);
    for otherwise in &found.otherwise {
        assert!(text.get(otherwise.tag.start as usize..otherwise.tag.end as usize).is_some(), "{otherwise:?} is not in the text");
    }
    for how in [How::AsShown, How::AsMeant] {
        let fixed = fix::file("snippets/a.liquid", text, how);
        assert!(refusals(&fixed.text).len() <= fixed.left.len(), "{fixed:?}");
        let mut mender = Mender::new(how);
        mender.learn("config/settings_schema.json", r#"[{"settings": [{"type": "liquid", "id": "code"}]}]"#);
        let json = serde_json::json!({"current": {"code": text}}).to_string();
        let new = mender.mend("config/settings_data.json", &json).map_or(json, |fixed| fixed.text);
        let new: serde_json::Value = serde_json::from_str(&new).expect("it is JSON as before");
        assert_eq!(new["current"]["code"], fixed.text);
    }
    for refusal in found.refusals {
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
