//! What holds for any text and any edits.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]
#![allow(clippy::disallowed_methods, reason = "tests read and write files")]

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use theme_edit::{Call, Draft, LineEdit, Replacement, Tree, Undo, merge};

const PATHS: [&str; 4] =
    ["assets/harbour.css", "snippets/boat.liquid", "snippets/long boat.liquid", "assets/mooring.js"];

/// Lines that are alike, with all kinds of ends.
fn file() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("  .quay { top: 0; }"),
        Just("\t<p>{{ boat.title }}</p>"),
        Just("{% if boat.berth %}"),
        Just("{% endif %}"),
        Just(""),
        Just("pier \u{a0} é  "),
        Just("const rope = 1;"),
    ];
    let end = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    (any::<bool>(), proptest::collection::vec((line, end), 0..14), any::<bool>()).prop_map(
        |(bom, lines, ends)| {
            let mut text = if bom { "\u{feff}".to_owned() } else { String::new() };
            let last = lines.len().saturating_sub(1);
            for (index, (line, end)) in lines.into_iter().enumerate() {
                text.push_str(line);
                if index < last || ends {
                    text.push_str(end);
                }
            }
            text
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Call(Call),
    UndoLast,
    UndoFile(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let path = || (0..PATHS.len()).prop_map(|index| PATHS[index].to_owned());
    let text = prop_oneof![Just("<hr>\n"), Just("a\nb"), Just(""), Just(".pier {}\r\n"), Just("x")];
    let old =
        prop_oneof![Just("boat"), Just("{% endif %}\n"), Just("top: 0"), Just("rope = 1;\n"), Just("a")];
    let insert = (path(), 0..14_u32, text.clone()).prop_map(|(path, after, content)| Call::EditLines {
        path,
        version: None,
        edits: vec![LineEdit::Insert { after, content: content.to_owned() }],
        allow_shrink: Vec::new(),
    });
    let replace = (path(), 1..14_u32, 0..3_u32, text.clone()).prop_map(|(path, start, more, content)| {
        let content = content.to_owned();
        Call::EditLines {
            path,
            version: None,
            edits: vec![LineEdit::Replace { start, end: start + more, content, old: None }],
            allow_shrink: Vec::new(),
        }
    });
    let search =
        (path(), old, text.clone(), 1..4_usize).prop_map(|(path, old, new, matches)| Call::SearchReplace {
            path,
            version: None,
            replacements: vec![Replacement {
                old: old.to_owned(),
                new: new.to_owned(),
                expected_matches: Some(matches),
            }],
            allow_shrink: Vec::new(),
        });
    let write = (path(), file()).prop_map(|(path, content)| Call::WriteFile {
        path,
        version: None,
        content,
        allow_shrink: Vec::new(),
    });
    let create = (path(), file()).prop_map(|(path, content)| Call::CreateFile { path, content });
    let delete = path().prop_map(|path| Call::DeleteFile { path, version: None, force: true });
    let rename = (path(), path(), any::<bool>()).prop_map(|(path, to, update_references)| Call::RenameFile {
        path,
        to,
        version: None,
        update_references,
    });
    prop_oneof![
        3 => insert.prop_map(Step::Call),
        4 => replace.prop_map(Step::Call),
        4 => search.prop_map(Step::Call),
        2 => write.prop_map(Step::Call),
        1 => create.prop_map(Step::Call),
        1 => delete.prop_map(Step::Call),
        2 => rename.prop_map(Step::Call),
        2 => Just(Step::UndoLast),
        1 => (0..PATHS.len()).prop_map(Step::UndoFile),
    ]
}

fn draft(files: &[String]) -> Draft {
    let tree: Tree = PATHS.iter().zip(files).map(|(path, text)| (*path, text.as_bytes())).collect();
    let mut draft = Draft::new("the run", tree);
    for path in PATHS {
        draft.note_seen(path);
    }
    draft
}

fn run(draft: &mut Draft, steps: &[Step]) -> usize {
    let mut done = 0;
    for step in steps {
        let before = draft.tree();
        let result = match step {
            Step::Call(call) => draft.apply(call),
            Step::UndoLast => {
                let last = draft.journal().last().map_or(0, |entry| entry.edit);
                draft.undo(Undo::Edit(last))
            }
            Step::UndoFile(index) => draft.undo(Undo::File(PATHS[*index])),
        };
        match result {
            Ok(outcome) => done += usize::from(outcome.edit.is_some()),
            Err(_) => assert_eq!(draft.tree(), before, "a refused step changes nothing"),
        }
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_and_undos_lead_back_to_the_bytes(
        files in proptest::collection::vec(file(), 3),
        steps in proptest::collection::vec(step(), 1..12),
    ) {
        let mut draft = draft(&files);
        let base = draft.tree();
        if run(&mut draft, &steps) > 0 {
            draft.undo(Undo::All).ok();
        }
        prop_assert_eq!(draft.tree(), base);
        prop_assert!(draft.changes().is_empty());
        prop_assert!(draft.changes().diff().is_empty());
    }

    #[test]
    fn bytes_outside_of_replaced_lines_stay(text in file(), start in 1..14_usize, more in 0..3_usize, new in "[a-z<>\n]{0,20}") {
        let mut draft = draft(std::slice::from_ref(&text));
        let end = start + more;
        let result = draft.apply(&Call::EditLines {
            path: PATHS[0].to_owned(),
            version: None,
            edits: vec![LineEdit::Replace { start: start as u32, end: end as u32, content: new.clone(), old: None }],
            allow_shrink: Vec::new(),
        });
        if result.is_ok() {
            let made = draft.file(PATHS[0]).unwrap().bytes.clone().unwrap();
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let before = lines[..start - 1].concat();
            let after = lines.get(end..).unwrap_or_default().concat();
            // A last line without end goes with the end of the line before it.
            let kept = before.trim_end_matches(['\r', '\n']);
            let head = if new.is_empty() && after.is_empty() && !text.ends_with('\n') { kept } else { &before };
            prop_assert!(made.starts_with(head.as_bytes()), "{made:?}");
            prop_assert!(made.ends_with(after.as_bytes()), "{made:?}");
            // An empty last line has no end either.
            let last = if new.is_empty() && after.is_empty() { None } else { Some(new.strip_suffix('\n')) };
            let is_empty = |lines: Option<&str>| lines.is_some_and(|lines| lines.is_empty() || lines.ends_with('\n'));
            if !made.is_empty() && last.is_some_and(|lines| !is_empty(lines)) {
                prop_assert_eq!(made.ends_with(b"\n"), text.ends_with('\n'), "{:?}", made);
            }
        }
    }

    #[test]
    fn bytes_outside_of_a_replaced_text_stay(text in file(), new in "[a-z<>\n]{0,20}", from in 0..200_usize, len in 1..40_usize) {
        let first = if text.starts_with('\u{feff}') { 3 } else { 0 };
        prop_assume!(text.len() > first);
        let from = text.floor_char_boundary(first + from % (text.len() - first));
        let to = text.ceil_char_boundary((from + len).min(text.len()));
        prop_assume!(from < to);
        let (before, old, after) = (&text[..from], &text[from..to], &text[to..]);
        // A place within a line end is none.
        prop_assume!(!before.ends_with('\r') && !old.ends_with('\r'));
        let mut draft = draft(std::slice::from_ref(&text));
        let outcome = draft.apply(&Call::SearchReplace {
            path: PATHS[0].to_owned(),
            version: None,
            replacements: vec![Replacement { old: old.to_owned(), new: new.clone(), expected_matches: None }],
            allow_shrink: Vec::new(),
        });
        if outcome.is_ok_and(|outcome| outcome.edit.is_some()) {
            let made = draft.file(PATHS[0]).unwrap().bytes.clone().unwrap();
            prop_assert!(made.starts_with(before.as_bytes()) && made.ends_with(after.as_bytes()), "{made:?}");
            let middle = String::from_utf8(made[before.len()..made.len() - after.len()].to_vec()).unwrap();
            prop_assert_eq!(middle.replace("\r\n", "\n"), new);
        }
    }

    #[test]
    fn a_merge_has_the_changes_of_both(base in file(), ours in file()) {
        prop_assert_eq!(merge(base.as_bytes(), ours.as_bytes(), base.as_bytes()), Some(ours.clone().into_bytes()));
        prop_assert_eq!(merge(base.as_bytes(), base.as_bytes(), ours.as_bytes()), Some(ours.clone().into_bytes()));
        prop_assert_eq!(merge(base.as_bytes(), ours.as_bytes(), ours.as_bytes()), Some(ours.into_bytes()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn git_applies_the_diff_and_takes_it_back(
        files in proptest::collection::vec(file(), 3),
        steps in proptest::collection::vec(step(), 1..10),
    ) {
        let mut draft = draft(&files);
        run(&mut draft, &steps);
        let changes = draft.changes();
        let folder = tempfile::tempdir().unwrap();
        let write = |tree: &Tree| {
            for (path, file) in &tree.0 {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, file.bytes.as_ref().unwrap()).unwrap();
            }
        };
        let is_like = |tree: &Tree| PATHS.iter().all(|path| {
            let found = fs::read(folder.path().join(path)).ok();
            found == tree.get(path).map(|file| file.bytes.as_ref().unwrap().to_vec())
        });
        write(draft.base());
        let diff = changes.diff();
        if !diff.is_empty() {
            for (options, tree) in [(&["apply", "--whitespace=nowarn"][..], &draft.tree()), (&["apply", "--whitespace=nowarn", "-R"], draft.base())] {
                let git = Command::new("git")
                    .args(options)
                    .env("GIT_CEILING_DIRECTORIES", folder.path().parent().unwrap())
                    .current_dir(folder.path())
                    .stdin(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn();
                // Without git, there is nothing to compare with.
                let Ok(mut git) = git else { return Ok(()) };
                git.stdin.take().unwrap().write_all(&diff).unwrap();
                let done = git.wait_with_output().unwrap();
                prop_assert!(
                    done.status.success() && is_like(tree),
                    "{options:?}: {}\n{}",
                    String::from_utf8_lossy(&done.stderr),
                    String::from_utf8_lossy(&diff)
                );
            }
        }
        prop_assert!(is_like(draft.base()) || diff.is_empty());
    }
}
