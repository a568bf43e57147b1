//! Logs as files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::bed::{Bed, Output, files};
use crate::server::{Reply, Server};

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (index, (name, text)) in files.iter().enumerate() {
        let method = if index % 2 == 0 { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        zip.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn bed(files: &[(&str, &str)]) -> (Server, Bed) {
    let archive = archive(files);
    let server = Server::start(move |request| match request.target.as_str() {
        "/context/export" => Reply::ok(archive.clone()),
        other => Reply::status(404, other),
    });
    let bed = Bed::new(&server.url);
    (server, bed)
}

fn written(bed: &Bed) -> BTreeMap<String, String> {
    let mut found = Vec::new();
    let dir = bed.path("project/logs");
    files(&dir, &mut found);
    let name = |path: &std::path::Path| path.strip_prefix(&dir).unwrap().display().to_string();
    found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn an_export_is_written_and_extended() {
    let long = "a line\n".repeat(30_000);
    let first = [
        ("s-1/arch-001.jsonl", long.as_str()),
        ("s-1/main.jsonl", "1\n"),
        ("all-agent-instructions.jsonl", ""),
    ];
    let grown = [
        ("s-1/arch-001.jsonl", long.as_str()),
        ("s-1/main.jsonl", "1\n2\n"),
        ("all-agent-instructions.jsonl", "3\n"),
    ];
    let (server, bed) = bed(&first);
    let all = |files: &[(&str, &str)]| {
        files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
    };
    bed.run(&["context", "export", "logs"]).printed("3 files written, in logs\n");
    assert_eq!(written(&bed), all(&first));
    bed.run(&["context", "export", "logs"]).printed("0 files written, in logs\n");
    drop(server);

    let more = archive(&grown);
    let server = Server::start(move |_| Reply::ok(more.clone()));
    bed.configure(&server.url);
    bed.run(&["context", "export", "logs"]).printed("2 files written, in logs\n");
    assert_eq!(written(&bed), all(&grown));
}

#[test]
fn a_file_with_other_lines_is_replaced_only_with_force() {
    let (_server, bed) = bed(&[("s/a.jsonl", "1\n"), ("s/b.jsonl", "2\n")]);
    bed.write("project/logs/s/a.jsonl", "1\nonly here\n");
    let Output { code, out, err } = bed.run(&["context", "export", "logs"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.contains("1 files written; these differ from the server") && err.contains("logs/s/a.jsonl"),
        "{err}"
    );
    assert_eq!(written(&bed)["s/a.jsonl"], "1\nonly here\n");
    assert_eq!(written(&bed)["s/b.jsonl"], "2\n");
    bed.run(&["context", "export", "logs", "--force"]).printed("1 files written, in logs\n");
    assert_eq!(written(&bed)["s/a.jsonl"], "1\n");
}

#[test]
fn nothing_is_written_outside_of_the_folder() {
    for name in ["../out.jsonl", "s/../../out.jsonl", "/tmp/lamplighter-out.jsonl"] {
        let (_server, bed) = bed(&[(name, "x")]);
        let output = bed.run(&["context", "export", "logs"]);
        assert!(!bed.path("project/out.jsonl").exists(), "{name}");
        assert!(!std::path::Path::new("/tmp/lamplighter-out.jsonl").exists());
        assert!(output.code == 1 || written(&bed).len() == 1, "{output:?}");
    }
}

#[test]
fn an_answer_that_is_not_an_archive_is_an_error() {
    let whole = archive(&[("s/a.jsonl", "1\n")]);
    for bytes in [b"".to_vec(), b"{}".to_vec(), whole[..whole.len() / 2].to_vec()] {
        let server = Server::start(move |_| Reply::ok(bytes.clone()));
        let bed = Bed::new(&server.url);
        bed.run(&["context", "export", "logs"]).failed("failed to read the archive that the server gave");
        assert_eq!(written(&bed), BTreeMap::new());
    }
}
