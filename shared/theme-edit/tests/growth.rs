//! Every edit takes linear time and memory, whatever the texts are. The measure is that of the checks.

#[allow(clippy::disallowed_methods, reason = "it asks the environment whether it prints figures")]
#[path = "../../theme-scripts/tests/growth/measure.rs"]
mod measure;

use measure::Shape;
use theme_edit::{
    Call, Draft, LineEdit, NodeKind, NodeRef, Replacement, Tree, Undo, diff, merge, nodes, outline,
};

type Read = Box<dyn Fn(&str)>;

/// A draft with one file that the run has read.
fn draft(path: &str, text: &str) -> Draft {
    let tree: Tree = [(path, text.as_bytes())].into_iter().collect();
    let mut draft = Draft::new("the run", tree);
    draft.note_seen(path);
    draft
}

fn half(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}

fn search(path: &str, text: &str, old: &str, new: &str, expected_matches: Option<usize>) {
    let mut draft = draft(path, text);
    let replacements = vec![Replacement { old: old.to_owned(), new: new.to_owned(), expected_matches }];
    let call =
        Call::SearchReplace { path: path.to_owned(), version: None, replacements, allow_shrink: Vec::new() };
    if draft.apply(&call).is_ok() {
        drop(draft.changes().hash());
        draft.undo(Undo::All).ok();
    }
}

/// What is done with a text.
fn readers(path: &'static str) -> Vec<(&'static str, Read)> {
    vec![
        ("a search for half of the text", Box::new(move |text| search(path, text, half(text).0, "x", None))),
        (
            "a search for half of the text with other blanks",
            Box::new(move |text| {
                let old: String = half(text).0.lines().map(|line| format!("  {line} \n")).collect();
                search(path, text, &old, "x\n", None);
            }),
        ),
        (
            "a search for half of the text and one word more",
            Box::new(move |text| {
                search(path, text, &format!("{}\nnowhere", half(text).0), half(text).1, None);
            }),
        ),
        (
            "a search for one byte",
            Box::new(move |text| {
                search(path, text, &text[..text.ceil_char_boundary(1)], "x", Some(text.len() / 2));
            }),
        ),
        (
            "a rewrite",
            Box::new(move |text| {
                let content = text.lines().rev().collect::<Vec<_>>().join("\n");
                let mut draft = draft(path, text);
                let call = Call::WriteFile {
                    path: path.to_owned(),
                    version: None,
                    content,
                    allow_shrink: Vec::new(),
                };
                if draft.apply(&call).is_ok() {
                    drop(draft.changes().diff());
                }
            }),
        ),
        (
            "an edit of each second line",
            Box::new(move |text| {
                let lines = text.lines().count() as u32;
                let edit = |line| LineEdit::Replace {
                    start: line,
                    end: line,
                    content: format!("a{line}"),
                    old: None,
                };
                let edits = (1..=lines).step_by(2).map(edit).collect();
                let call =
                    Call::EditLines { path: path.to_owned(), version: None, edits, allow_shrink: Vec::new() };
                let mut draft = draft(path, text);
                if draft.apply(&call).is_ok() {
                    drop(draft.changes().diff());
                }
            }),
        ),
        (
            "an edit of a named part",
            Box::new(move |text| {
                let kind = match path.rsplit('.').next() {
                    Some("css") => NodeKind::CssRule,
                    Some("js") => NodeKind::JsFunction,
                    _ => NodeKind::HtmlElement,
                };
                let node = NodeRef { kind, name: ".a".to_owned(), line: None };
                let (path, content) = (path.to_owned(), text.to_owned());
                let call = Call::EditNode {
                    path: path.clone(),
                    version: None,
                    node,
                    content,
                    allow_shrink: Vec::new(),
                };
                draft(&path, text).apply(&call).ok();
            }),
        ),
        ("the parts", Box::new(move |text| drop((nodes(path, text), outline(path, text, 9))))),
        (
            "reading",
            Box::new(move |text| {
                let mut draft = draft(path, text);
                draft.open(path).ok();
                draft.read(path, 1, u32::MAX).ok();
            }),
        ),
        (
            "a merge",
            Box::new(move |text| {
                let (ours, theirs) = (text.replace('a', "b"), half(text).1);
                drop(merge(text.as_bytes(), ours.as_bytes(), theirs.as_bytes()));
                let (old, new): (Vec<&str>, Vec<&str>) =
                    (text.lines().collect(), ours.lines().rev().collect());
                drop(diff::hunks(&old, &new));
            }),
        ),
    ]
}

#[test]
fn hostile_texts_take_linear_time_and_memory() {
    let shapes: [(&str, &[&'static str]); 3] = [
        (
            "snippets/a.liquid",
            &[
                "a",
                "a\n",
                "a\nb\n",
                " a\n",
                "a§\n",
                "a\r\n",
                "  \n",
                "\t",
                "aab",
                "é",
                "{{",
                "{%",
                "{% if a %}",
                "{% if a %}\n<b>",
                "{% endif %}",
                "{% if a %}{% endfor %}",
                "{% else %}",
                "{% style %}.a{}{% endstyle %}",
                "{% raw %}{% endraw %}",
                "{% schema %}{}{% endschema %}",
                "{% schema %}",
                "<a",
                "<a ",
                "<a>",
                "<a></a>",
                "</a>",
                "<a b=\"",
                "<b '\"",
                "<a class=\"a§ b\">",
                "<i><b></i>",
                "<li>",
                "<!--",
                "<style>",
                "<style>a{}</style>",
                "<script>",
                "<script>a(</script>",
                "“",
                "{{ “ }}",
                "```\n",
                "1|a\n",
                "<<<<<<< a\n",
                "+ a\n",
                "&lt;p",
                "// ...\n",
                "... ",
                "-%}\n",
            ],
        ),
        (
            "assets/a.css",
            &[
                "a{",
                "}",
                ".a{b:c}\n",
                ".a§{b:c}\n",
                "/*",
                "/**/",
                "'",
                "\"\\",
                "a,\n",
                "@media(",
                "#{",
                ".a{/*'*/",
                ".a\n{\n}\n",
            ],
        ),
        (
            "assets/a.js",
            &[
                "function a(){}",
                "function a§(){}\n",
                "(",
                "`${",
                "/*",
                "const a=()=>{};",
                "async ",
                "class A{a(){}}",
                "'",
                "}",
                "a=>",
                "static ",
            ],
        ),
    ];
    let mut wrong = Vec::new();
    for (path, units) in shapes {
        for (reader, read) in readers(path) {
            // Read files have more characters than are shown whole, so that all three lengths are outlined.
            let bytes = if reader == "reading" { 64 * 1024 } else { 10 * 1024 };
            for unit in units {
                let shape = Shape { reader: format!("{path}, {reader}"), before: "", unit, after: "" };
                if let Err(error) = measure::check(&shape, bytes, &read) {
                    println!("{error}");
                    wrong.push(error);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} grow too fast:\n{}", wrong.len(), wrong.join("\n"));
}
