//! Waiting records are sent in order and once, even if processes die in between.

use std::fs::{self, File};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use crate::bed::{Bed, DOWN, Output, PROJECT, payload};
use crate::server::{Reply, Server, wait_until};

/// A bed with these payloads in the spool.
fn waiting(count: usize) -> Bed {
    let bed = Bed::new(DOWN);
    for n in 0..count {
        bed.give(&["log", "-a"], payload(n)).silent();
    }
    assert_eq!(bed.spooled().len(), count);
    bed
}

fn payloads(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(payload).collect()
}

#[test]
fn the_next_hook_that_finds_the_server_sends_all_in_order() {
    let bed = waiting(12);
    let server = Server::taking();
    bed.configure(&server.url);
    bed.give(&["log", "-u"], payload(12)).silent();
    server.wait_for(13);
    assert_eq!(server.bodies(), payloads(0..13));
    wait_until(|| bed.spooled().is_empty());
}

#[test]
fn the_background_sends_what_exceeds_a_hooks_limit() {
    let bed = waiting(70);
    let server = Server::taking();
    bed.configure(&server.url);
    bed.give(&["log", "-u"], payload(70)).silent();
    wait_until(|| bed.spooled().is_empty());
    assert_eq!(server.bodies(), payloads(0..71));
}

#[test]
fn a_reader_sees_waiting_payloads() {
    let bed = waiting(3);
    let server = Server::taking();
    bed.configure(&server.url);
    let read = bed.run(&["log", "-r", "--agent-id", "ab"]);
    assert_eq!((read.code, read.err.as_str()), (0, "lamplighter: the agent ab has no entries\n"));
    let targets: Vec<_> = server.requests().into_iter().map(|request| request.target).collect();
    assert_eq!(targets[..3], [(); 3].map(|()| format!("/context/hooks?project={PROJECT}")));
    assert_eq!(targets[3..], [format!("/context/logs/ab?lines=50&project={PROJECT}&format=json")]);
}

#[test]
fn a_temporary_failure_stops_the_queue_and_a_permanent_one_does_not() {
    // the answer to the second, what arrives, what waits afterwards, what is rejected
    for (status, sent, left, rejected) in [
        (401, 1, 2, 0),
        (409, 1, 2, 0),
        (429, 1, 2, 0),
        (503, 1, 2, 0),
        (400, 2, 0, 1),
        (413, 2, 0, 1),
        (422, 2, 0, 1),
    ] {
        let bed = waiting(3);
        let server = Server::start(move |request| match request.text() == payload(1) {
            true => Reply::status(status, r#"{"detail":"because"}"#),
            false => Reply::ok(""),
        });
        bed.configure(&server.url);
        let Output { code, out, err } = bed.run(&["log", "--flush"]);
        assert_eq!(
            (code, out),
            (i32::from(left > 0), format!("sent {sent}, waiting {left}\n")),
            "{status}: {err}"
        );
        let aside: Vec<_> =
            bed.spooled().into_iter().filter(|path| path.parent().unwrap().ends_with("rejected")).collect();
        assert_eq!(aside.len(), 2 * rejected, "{status}");
        if rejected > 0 {
            assert!(err.contains("1 hook payloads will never be accepted"), "{err}");
            let why = format!("{} answered {status}: because\n", server.url);
            assert_eq!(fs::read_to_string(&aside[1]).unwrap(), why);
            assert!(fs::read_to_string(&aside[0]).unwrap().ends_with(&payload(1)));
        } else {
            assert!(err.contains(&format!("answered {status}: because")), "{err}");
            assert_eq!(server.bodies(), payloads([0, 1]));
        }
    }
}

#[test]
fn a_kill_between_sending_and_removing_repeats_the_same_id() {
    let bed = waiting(3);
    let (asked, was_asked) = channel();
    let asked = Mutex::new(asked);
    // The server accepts the second one but does not answer.
    let server = Server::start(move |request| match request.text() == payload(1) {
        true => {
            asked.lock().unwrap().send(()).unwrap();
            Reply::Silence
        }
        false => Reply::ok(""),
    });
    bed.configure(&server.url);
    let mut child = bed.start(&["log", "--flush"], "");
    was_asked.recv_timeout(Duration::from_secs(60)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    let up = Server::taking();
    bed.configure(&up.url);
    bed.run(&["log", "--flush"]).printed("sent 2, waiting 0\n");
    assert_eq!(up.bodies(), payloads([1, 2]));
    let (before, after) = (&server.requests()[1], &up.requests()[0]);
    for name in ["idempotency-key", "content-length", "content-type"] {
        assert_eq!(before.header(name), after.header(name), "{name}");
    }
    assert_eq!((&before.target, &before.body), (&after.target, &after.body));
}

#[test]
fn a_damaged_record_is_rejected_and_the_others_are_sent() {
    let damages: [fn(Vec<u8>) -> Vec<u8>; 5] = [
        |_| Vec::new(),
        |bytes| bytes[..bytes.len() / 2].to_vec(),
        |bytes| vec![0; bytes.len()],
        |bytes| [&bytes[..], b"x"].concat(),
        |mut bytes| {
            *bytes.last_mut().unwrap() ^= 1;
            bytes
        },
    ];
    for damage in damages {
        let bed = waiting(3);
        let file = &bed.spooled()[1];
        fs::write(file, damage(fs::read(file).unwrap())).unwrap();
        let server = Server::taking();
        bed.configure(&server.url);
        let Output { code, out, err } = bed.run(&["log", "--flush"]);
        assert_eq!((code, out.as_str()), (0, "sent 2, waiting 0\n"));
        assert!(err.contains("1 hook payloads will never be accepted"), "{err}");
        assert_eq!(server.bodies(), payloads([0, 2]));
        let aside = bed.spooled();
        assert_eq!((aside.len(), aside[0].file_name()), (2, file.file_name()));
    }
}

#[test]
fn old_files_of_killed_writers_are_rejected() {
    let bed = waiting(1);
    let dir = bed.spooled()[0].parent().unwrap().to_owned();
    for (name, age) in [(".fresh", 10), (".old", 1000)] {
        let file = File::create(dir.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    fs::write(dir.join("0000000001.stray"), "not ours").unwrap();
    let server = Server::taking();
    bed.configure(&server.url);
    let Output { code, err, .. } = bed.run(&["log", "--flush"]);
    assert_eq!(code, 0);
    assert!(err.contains("1 hook payloads will never be accepted"), "{err}");
    assert_eq!(server.bodies(), payloads([0]));
    let names: Vec<_> =
        bed.spooled().iter().map(|path| path.strip_prefix(&dir).unwrap().display().to_string()).collect();
    assert_eq!(names, [".fresh", "0000000001.stray", "rejected/old", "rejected/old.why"]);
}

#[test]
fn a_full_spool_keeps_its_records_and_counts_lost_ones() {
    // Their names contain their lengths: one is too long, or there are too many.
    for (count, bytes) in [(1, 64 * 1024 * 1024), (2999, 1)] {
        fill(count, bytes);
    }
}

fn fill(count: usize, bytes: u64) {
    let bed = waiting(1);
    let first = bed.spooled().remove(0);
    for place in 2..count + 2 {
        let name = format!("{place:010}.{}.{bytes}.00000000", uuid::Uuid::now_v7());
        fs::write(first.with_file_name(name), "").unwrap();
    }
    let full = bed.spooled();
    bed.give(&["log", "-a"], payload(2)).silent();
    bed.give(&["log", "-a"], vec![b'x'; 7 * 1024 * 1024]).silent();
    bed.write(".config/lamplighter/config.toml", "broken");
    bed.give(&["log", "-a"], payload(3)).silent();
    let lost = first.with_file_name("lost");
    assert_eq!(bed.spooled(), [full, vec![lost.clone()]].concat());
    let lines = fs::read_to_string(&lost).unwrap();
    let lines: Vec<_> = lines.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(
        lines,
        [
            format!("{} bytes: the spool is full", payload(2).len()).as_str(),
            "7340032 bytes: the payload has more than 4400000 bytes",
            format!("{} bytes: the spool is full", payload(3).len()).as_str(),
        ]
    );

    let server = Server::taking();
    bed.configure(&server.url);
    let Output { code, err, .. } = bed.run(&["log", "--flush"]);
    assert_eq!(code, 0);
    assert!(err.contains("3 hook payloads were lost"), "{err}");
    assert!(err.contains(&format!("{count} hook payloads will never be accepted")), "{err}");
    assert_eq!(server.bodies(), payloads([0]));
}

#[test]
fn each_server_has_its_own_spool() {
    let bed = waiting(1);
    bed.write("project/lamplighter.toml", format!("url = \"{DOWN}\""));
    assert_eq!(bed.run(&["trust"]).code, 0);
    bed.give(&["log", "-a"], payload(1)).silent();
    let server = Server::taking();
    bed.configure(&server.url);
    bed.run(&["log", "--flush"])
        .failed_after("sent 0, waiting 1\n", "1 more wait for the server that is named by");
    assert_eq!(server.bodies(), Vec::<String>::new());
    fs::remove_file(bed.path("project/lamplighter.toml")).unwrap();
    let Output { code, out, err } = bed.run(&["log", "--flush"]);
    assert_eq!((code, out.as_str()), (0, "sent 1, waiting 0\n"));
    assert!(err.contains("project/lamplighter.toml"), "{err}");
    assert_eq!(server.bodies(), payloads([0]));
}

#[test]
fn nothing_to_send_is_fine() {
    let bed = Bed::new(DOWN);
    bed.run(&["log", "--flush"]).printed("sent 0, waiting 0\n");
    bed.run(&["log", "--flush", "--background"]).silent();
}
