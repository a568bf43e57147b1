//! Any edit of any file: what is refused changes nothing, what is done can be undone to the byte, and a diff leads from one text to the
//! other.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theme_edit::{Call, Draft, LineEdit, NodeKind, NodeRef, Replacement, Tree, Undo, diff, merge, nodes};

const PATHS: [&str; 6] = [
    "sections/a.liquid",
    "assets/a.css",
    "assets/a.js",
    "assets/a.css.liquid",
    "templates/a.json",
    "config/settings_schema.json",
];
const KINDS: [NodeKind; 6] = [
    NodeKind::LiquidBlock,
    NodeKind::SchemaSetting,
    NodeKind::CssRule,
    NodeKind::JsFunction,
    NodeKind::JsClass,
    NodeKind::HtmlElement,
];

fuzz_target!(|input: (&str, &str, &str, u8, u8)| {
    let (text, old, new, line, which) = input;
    let path = PATHS[usize::from(which) % PATHS.len()].to_owned();
    let version = None;
    let allow_shrink = Vec::new();
    let end = u32::from(line) + u32::from(which) % 3;
    let edits = vec![LineEdit::Replace { start: u32::from(line), end, content: new.to_owned(), old: None }];
    let replacements = vec![Replacement { old: old.to_owned(), new: new.to_owned(), expected_matches: None }];
    let mut calls = vec![
        Call::EditLines { path: path.clone(), version: version.clone(), edits, allow_shrink: allow_shrink.clone() },
        Call::SearchReplace { path: path.clone(), version: version.clone(), replacements, allow_shrink: allow_shrink.clone() },
        Call::WriteFile { path: path.clone(), version, content: new.to_owned(), allow_shrink },
    ];
    let total = text.lines().count().max(1) as u32;
    for node in nodes(&path, text) {
        assert!(1 <= node.lines.start && node.lines.start <= node.lines.end && node.lines.end <= total, "{node:?}");
    }
    for kind in KINDS {
        let node = NodeRef { kind, name: old.to_owned(), line: None };
        let content = new.to_owned();
        calls.push(Call::EditNode { path: path.clone(), version: None, node, content, allow_shrink: Vec::new() });
    }
    let tree: Tree = [(path.as_str(), text.as_bytes())].into_iter().collect();
    for call in calls {
        let mut draft = Draft::new("fuzz", tree.clone());
        draft.note_seen(&path);
        match draft.apply(&call) {
            Ok(outcome) => {
                drop(draft.changes().hash());
                if outcome.edit.is_some() {
                    draft.undo(Undo::All).expect("an edit can be undone");
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        assert!(draft.tree() == tree, "{call:?}");
    }
    let (olds, news): (Vec<&str>, Vec<&str>) = (text.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let (mut made, mut at) = (String::new(), 0);
    for hunk in diff::hunks(&olds, &news) {
        made.extend(olds[at..hunk.old.start].iter().copied().chain(news[hunk.new].iter().copied()));
        at = hunk.old.end;
    }
    made.extend(olds[at..].iter().copied());
    assert!(made == new);
    assert!(merge(text.as_bytes(), new.as_bytes(), text.as_bytes()).as_deref() == Some(new.as_bytes()));
});
