//! Any text as every kind of theme file: scanners keep within the text, and the index of it survives its blob.

#![no_main]

use theme::ThemeIndex;
use theme::path::FileKind;
use theme::scan::{liquid, scan};
use libfuzzer_sys::fuzz_target;

const PATHS: [&str; 7] = [
    "sections/a.liquid",
    "assets/a.css",
    "assets/a.js",
    "assets/a.css.liquid",
    "templates/a.json",
    "config/settings_schema.json",
    "locales/fr.json",
];

fuzz_target!(|text: &str| {
    let (tokens, _) = liquid::tokens(text);
    let mut last = 0;
    for token in tokens {
        assert!(last <= token.span.start && token.span.start <= token.span.end, "tokens are in order");
        assert!(text.get(token.span.start as usize..token.span.end as usize).is_some(), "tokens are text");
        last = token.span.end;
    }
    for path in PATHS {
        let found = scan(FileKind::of(path), path, text);
        let spans = found.symbols.iter().flat_map(|symbol| [symbol.name, symbol.body]);
        let spans = spans.chain(found.references.iter().map(|reference| reference.name));
        for span in
            spans.chain(found.labels).chain(found.comments).chain(found.identifiers).chain(found.blocks)
        {
            assert!(
                text.get(span.start as usize..span.end as usize).is_some(),
                "{path}: {span:?} is not text"
            );
        }
        let index = ThemeIndex::build([(path, text)]).expect("the path is fine");
        let loaded = ThemeIndex::from_blob(&index.to_blob()).expect("a blob just written is readable");
        assert!(loaded.to_blob() == index.to_blob(), "{path}: the blob changes");
        let lines = index.lines(path).expect("the file is there");
        for target in index.lookup(text, Some(path), 3).targets {
            assert!(target.ranges.iter().all(|range| range.start <= range.end && range.end <= lines));
        }
    }
});
