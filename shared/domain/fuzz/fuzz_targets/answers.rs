//! Any answer of a server that an action watches: what is shown keeps within its limits, and a line of it is one line.

#![no_main]

use domain::watch::{feed, page};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    for (content_type, pointer) in [
        ("text/html", None),
        ("text/html; charset=Shift_JIS", None),
        ("text/plain", None),
        ("application/json", None),
        ("", Some("/a/0")),
    ] {
        if let Ok(page) = page::read(content_type, body, pointer) {
            assert!(page.shown.len() <= page::MAX_SHOWN && page.sha256.len() == 64);
            assert!(!page.title.contains('\n'));
        }
    }
    if let Ok(feed) = feed::read("", body, "https://a.com/feed") {
        assert!(feed.entries.len() <= feed::MAX_ENTRIES && feed.beside.len() <= feed::MAX_BESIDE);
        for entry in feed.entries {
            assert!(entry.key().len() == 12 && !entry.line().contains(['\n', '\r']));
        }
    }
});
