//! Context documents: shown, edited, and never overwritten by accident.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::bed::{Bed, Output, PROJECT, files};
use crate::server::{Reply, Request, Server};

/// A document on a server, with its version.
#[derive(Clone)]
struct Document(Arc<Mutex<(u64, String)>>);

impl Document {
    fn new(text: &str) -> Self {
        Self(Arc::new(Mutex::new((1, text.to_owned()))))
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().1.clone()
    }

    fn write(&self, text: &str) {
        let mut document = self.0.lock().unwrap();
        *document = (document.0 + 1, text.to_owned());
    }

    fn answer(&self, request: &Request) -> Reply {
        let mut document = self.0.lock().unwrap();
        if request.method == "PUT" {
            if request.header("if-match") != Some(&format!("\"{}\"", document.0)) {
                return Reply::status(409, r#"{"code":"version_conflict","detail":"it has changed"}"#);
            }
            *document = (document.0 + 1, request.text().to_owned());
        }
        Reply::tagged(document.0, &document.1)
    }

    fn serve(&self) -> Server {
        let document = self.clone();
        Server::start(move |request| document.answer(request))
    }
}

/// The folder of people's unfinished texts.
fn drafts(bed: &Bed) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&bed.path(".local/state/lamplighter/edits"), &mut found);
    found.sort();
    found
}

/// An editor that writes this text.
fn editor(bed: &Bed, script: &str) -> String {
    bed.write("editor.sh", script);
    format!("sh '{}' --wait", bed.path("editor.sh").display())
}

#[test]
fn a_document_is_shown_as_it_is() {
    let server = Document::new("# Context: ü\n\n- a").serve();
    let bed = Bed::new(&server.url);
    for (args, target) in [
        (&[][..], "/projects/PROJECT/context.md"),
        (&["--workflow", "big one"], "/projects/PROJECT/context.md?workflow=big+one"),
        (&["--project", "default"], "/projects/default/context.md"),
    ] {
        bed.run(&[&["context", "show"], args].concat()).printed("# Context: ü\n\n- a");
        assert_eq!(server.requests().pop().unwrap().target, target.replace("PROJECT", PROJECT));
    }
}

#[test]
fn an_edit_is_written_over_the_version_that_was_read() {
    let document = Document::new("one\n");
    let server = document.serve();
    let bed = Bed::new(&server.url);
    // `$1` is `--wait`, the editor's own argument.
    let editor = editor(&bed, "sed s/one/two/ \"$2\" > x && cat x > \"$2\"");
    let bed = bed.with("EDITOR", &editor);
    bed.run(&["context", "edit", "--workflow", "w"]).printed("saved\n");
    assert_eq!(document.text(), "two\n");
    let put = server.requests().pop().unwrap();
    assert_eq!(
        (put.method.as_str(), put.target.as_str()),
        ("PUT", format!("/projects/{PROJECT}/context.md?workflow=w").as_str())
    );
    assert_eq!((put.header("if-match"), put.header("content-type")), (Some("\"1\""), Some("text/markdown")));
    assert_eq!(drafts(&bed), Vec::<PathBuf>::new());

    bed.run(&["context", "edit"]).printed("nothing changed\n");
    let bed = bed.with("VISUAL", "printf three >");
    bed.run(&["context", "edit"]).printed("saved\n");
    assert_eq!(document.text(), "three");
}

#[test]
fn a_missing_document_is_created() {
    let missing = r#"{"code":"not_found","detail":"there is no such context document"}"#;
    let server = Server::start(move |request| match request.method.as_str() {
        "GET" => Reply::status(404, missing),
        _ => Reply::tagged(1, request.text()),
    });
    let bed = Bed::new(&server.url).with("EDITOR", "true");
    bed.run(&["context", "edit"]).printed("nothing changed\n");
    let bed = bed.with("EDITOR", "sed -i 's/^- Task:/- Task: Log in/'");
    bed.run(&["context", "edit"]).printed("saved\n");
    let put = server.requests().pop().unwrap();
    assert_eq!((put.method.as_str(), put.header("if-match")), ("PUT", Some("\"0\"")));
    let expected = lamplighter_cli::BEGINNING.replace("Task:", "Task: Log in");
    assert_eq!(put.text(), expected);
    assert_eq!(drafts(&bed), Vec::<PathBuf>::new());
    // A project that does not exist is a different error.
    let server = Server::start(|_| Reply::status(404, r#"{"detail":"there is no such project"}"#));
    Bed::new(&server.url)
        .with("EDITOR", "false")
        .run(&["context", "edit"])
        .failed("there is no such project");
}

#[test]
fn a_conflict_is_shown_and_both_texts_are_kept() {
    let document = Document::new("title\none\n");
    let somebody = document.clone();
    // While the editor is open, somebody else writes.
    let server = Server::start(move |request| {
        let reply = somebody.answer(request);
        if request.method == "GET" && somebody.text() == "title\none\n" {
            somebody.write("title\ntheirs\n");
        }
        reply
    });
    let bed = Bed::new(&server.url).with("EDITOR", "printf 'title\\nmine\\n' >");
    let output = bed.run(&["context", "edit"]);
    output.failed("the document has changed since you read it; nothing was overwritten");
    assert_eq!(document.text(), "title\ntheirs\n");
    let [mine, theirs] = &drafts(&bed)[..] else { panic!("{:?}", drafts(&bed)) };
    assert_eq!(fs::read_to_string(mine).unwrap(), "title\nmine\n");
    assert_eq!(fs::read_to_string(theirs).unwrap(), "title\ntheirs\n");
    for line in [
        "--- as you read it",
        "+++ as it is now",
        "-one",
        "+theirs",
        mine.to_str().unwrap(),
        theirs.to_str().unwrap(),
    ] {
        assert!(output.err.contains(line), "{line}: {}", output.err);
    }

    // As the message says: with the person's text, over the current version.
    let bed = bed.with("EDITOR", "printf 'both\\n' >>");
    bed.run(&["context", "edit", "--from", mine.to_str().unwrap()]).printed("saved\n");
    assert_eq!(document.text(), "title\nmine\nboth\n");
}

#[test]
fn the_text_is_kept_if_it_cannot_be_saved() {
    for (status, error) in
        [(400, "answered 400: a line is too long"), (413, "answered 413"), (500, "answered 500")]
    {
        let server = Server::start(move |request| match request.method.as_str() {
            "GET" => Reply::tagged(1, "one"),
            _ => Reply::status(status, r#"{"detail":"a line is too long"}"#),
        });
        let bed = Bed::new(&server.url).with("EDITOR", "printf 'an hour of work' >");
        let output = bed.run(&["context", "edit"]);
        output.failed(error);
        let [draft] = &drafts(&bed)[..] else { panic!("{:?}", drafts(&bed)) };
        assert_eq!(fs::read_to_string(draft).unwrap(), "an hour of work");
        output
            .failed(&format!("your text is kept in {}; `lamplighter context edit --from ", draft.display()));
    }
}

#[test]
fn the_file_to_begin_with_must_exist() {
    let server = Document::new("one\n").serve();
    Bed::new(&server.url)
        .run(&["context", "edit", "--from", "no.md"])
        .failed("failed to read no.md: No such file");
}

#[test]
fn an_editor_that_fails_changes_nothing() {
    let document = Document::new("one\n");
    let server = document.serve();
    let bed = Bed::new(&server.url).with("EDITOR", "false");
    let Output { code, out, err } = bed.run(&["context", "edit"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("the editor `false` failed (exit status: 1); your text is kept in "), "{err}");
    assert_eq!(document.text(), "one\n");
}

#[test]
fn without_a_terminal_an_editor_that_needs_one_is_not_opened() {
    let document = Document::new("one\n");
    let server = document.serve();
    for (name, value) in [("X", ""), ("EDITOR", "vi"), ("VISUAL", "/usr/bin/vim -f"), ("EDITOR", "nano")] {
        let bed = Bed::new(&server.url).with(name, value);
        bed.run(&["context", "edit"]).failed("needs a terminal, and there is none; set EDITOR");
        assert_eq!(drafts(&bed), Vec::<PathBuf>::new());
    }
    assert_eq!(server.requests(), []);
    // As the message says it.
    let bed = Bed::new(&server.url).with("EDITOR", "true");
    bed.write("project/new.md", "two\n");
    bed.run(&["context", "edit", "--from", "new.md"]).printed("saved\n");
    assert_eq!(document.text(), "two\n");
    let missing = Bed::new(&server.url).with("EDITOR", "no-such-editor");
    missing.run(&["context", "edit"]).failed("set EDITOR to an editor that is installed");
}
