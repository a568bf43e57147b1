//! Any reply, cut anywhere: reading it in two pieces gives what reading it whole gives.

#![no_main]

use domain::chats::signals::{Reply, SignalReader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (usize, &str)| {
    let (cut, text) = input;
    let whole = Reply::parse(text);
    let (first, second) = text.split_at(text.floor_char_boundary(cut % (text.len() + 1)));
    let mut reader = SignalReader::default();
    let mut chat = reader.feed(first);
    chat.push_str(&reader.feed(second));
    let rest = reader.finish();
    chat.push_str(&rest.text);
    assert_eq!(Reply { text: chat, deliverables: rest.deliverables }, whole);
});
