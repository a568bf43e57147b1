//! A file of a checkout decides nothing about servers and keys until the person has trusted the folder.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::bed::{Bed, DOWN, KEY, Output, PROJECT, ended, payload, start};
use crate::server::{Reply, Server, wait_until};

const FILE: &str = "project/lamplighter.toml";
const TRUSTED: &str = ".config/lamplighter/trusted.json";

/// A program of a stranger that listens on this machine and accepts nobody.
struct Trap(TcpListener);

impl Trap {
    fn set() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// Checks that nobody has connected. A connection would wait in the queue of the listener.
    #[track_caller]
    fn untouched(&self) {
        // Longer than a process in the background needs to start.
        std::thread::sleep(std::time::Duration::from_millis(300));
        self.0.set_nonblocking(true).unwrap();
        assert_eq!(self.0.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "somebody has connected");
    }
}

/// The server of the person: it takes everything, and remembers one thing.
fn own_server() -> Server {
    Server::start(|request| {
        Reply::ok(if request.target.starts_with("/context/recall") {
            r#"{"context": "my past"}"#
        } else {
            "{}"
        })
    })
}

/// A server that the file of the project names.
fn project_file(url: &str) -> String {
    format!("url = '{url}'\nproject = '{PROJECT}'\n")
}

fn shows(bed: &Bed, folder: &str) -> Output {
    let mut command = bed.command(&["context", "show"]);
    command.current_dir(bed.path(folder)).stdin(std::process::Stdio::null());
    ended(command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap())
}

#[test]
fn a_server_of_a_checkout_gets_nothing() {
    let trap = Trap::set();
    for host in ["127.0.0.1", "localhost", "LOCALHOST", "0.0.0.0", "127.1.2.3", "[::ffff:127.0.0.1]"] {
        let own = own_server();
        let bed = Bed::new(&own.url).with("LAMPLIGHTER_API_KEY", KEY);
        let url = format!("http://{host}:{}", trap.port());
        bed.write(FILE, format!("{}api_key = 'lk_of-a-stranger'\n", project_file(&url)));

        // A hook is silent. Its payload goes to the person's own server.
        bed.give(&["log", "-a"], payload(1)).silent();
        bed.give(&["log", "-u"], payload(2)).silent();
        own.wait_for(2);
        wait_until(|| bed.spooled().is_empty());
        let recalled = bed.give(&["log", "--recall"], start("SessionStart", None));
        assert!(recalled.err.is_empty() && recalled.out.contains("my past"), "{recalled:?}");

        let warning = format!(
            "lamplighter: warning: the server {url} of {} is not used, because you have not trusted this folder; {} is used. \
             Run `lamplighter trust` there if you want to use what the file names\n",
            bed.path(FILE).display(),
            own.url
        );
        for args in [
            &["log", "-r", "--agent-id", "main"][..],
            &["log", "--flush"],
            &["context", "show"],
            &["context", "export", "logs"],
            &["status"],
        ] {
            let said = bed.run(args);
            assert_eq!(said.err.matches(&warning).count(), 1, "{args:?}: {said:?}");
            assert!(!said.out.contains(&url), "{args:?}: {said:?}");
        }
        bed.run(&["log", "--flush", "--background"]).silent();
        for request in own.requests() {
            assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        }

        // Without a spool, the payload is not sent to the stranger either.
        let nowhere = Bed::new(DOWN).with("LAMPLIGHTER_STATE", "/dev/null/state");
        nowhere.write(FILE, project_file(&url));
        nowhere.give(&["log", "-a"], payload(9)).silent();
    }
    trap.untouched();
}

#[test]
fn a_trusted_server_is_used_until_the_file_changes() {
    let (own, team) = (own_server(), own_server());
    let bed = Bed::new(&own.url);
    bed.write(FILE, project_file(&team.url));
    let trusted = bed.run(&["trust"]);
    assert_eq!((trusted.code, trusted.err.as_str()), (0, ""));
    let folder = bed.path("project");
    for part in [
        &format!("trusted   {}\n", folder.display()),
        &format!("server    {}: it gets the prompts", team.url),
    ] {
        assert!(trusted.out.contains(part), "{trusted:?}");
    }
    bed.run(&["trust", "--list"]).printed(&format!("{}  {}\n", folder.display(), team.url));
    bed.give(&["log", "-a"], payload(1)).silent();
    assert_eq!(team.wait_for(1)[0].text(), payload(1));
    // The key in the person's file is for the person's server.
    let said = bed.run(&["context", "show"]);
    assert!(
        said.out == "{}" && said.err.contains("the API key from ") && !said.err.contains("trust"),
        "{said:?}"
    );
    assert!(team.requests().iter().all(|request| request.header("authorization").is_none()));
    assert_eq!(own.requests(), []);

    // Any change asks again, also of something else.
    let seen = team.requests().len();
    let trap = Trap::set();
    for text in [
        project_file(&format!("http://127.0.0.1:{}", trap.port())),
        format!("{}api_key = 'lk_of-a-stranger'\n", project_file(&team.url)),
        format!("# more\n{}", project_file(&team.url)),
    ] {
        bed.write(FILE, text);
        bed.give(&["log", "-a"], payload(2)).silent();
        let said = bed.run(&["context", "show"]);
        assert!(
            said.err.contains("is not used, because the file has changed since you trusted it"),
            "{said:?}"
        );
    }
    trap.untouched();
    assert_eq!((team.requests().len(), own.wait_for(6).len()), (seen, 6));

    // The trusted content is trusted again, until the person ends the trust.
    bed.write(FILE, project_file(&team.url));
    assert_eq!(bed.run(&["context", "show"]).code, 0);
    assert_eq!(team.requests().len(), seen + 1);
    bed.run(&["trust", "--revoke"]).printed(&format!("no longer trusted: {}\n", folder.display()));
    bed.run(&["trust", "--revoke"]).failed("is not trusted");
    bed.run(&["trust", "--list"]).printed("no folder is trusted\n");
    assert!(bed.run(&["context", "show"]).err.contains("you have not trusted this folder"));
    assert_eq!(team.requests().len(), seen + 1);
}

#[test]
fn trust_belongs_to_one_folder() {
    let (own, team) = (own_server(), own_server());
    let bed = Bed::new(&own.url);
    bed.write(FILE, project_file(&team.url));
    assert_eq!(bed.run(&["trust"]).code, 0);
    let used = |folder: &str| {
        let before = team.requests().len();
        assert_eq!(shows(&bed, folder).code, 0, "{folder}");
        team.requests().len() > before
    };
    // The same folder under other names.
    symlink(bed.path("project"), bed.path("name")).unwrap();
    fs::create_dir_all(bed.path("project/deep")).unwrap();
    assert!(used("project") && used("name") && used("project/deep/.."));

    // Other folders: a copy, a link to the trusted file, other letters, a checkout inside of the trusted folder.
    for folder in ["copy", "Project", "PROJECT", "project/vendor"] {
        bed.write(&format!("{folder}/lamplighter.toml"), project_file(&team.url));
        assert!(!used(folder), "{folder}");
    }
    fs::create_dir(bed.path("link")).unwrap();
    symlink(bed.path(FILE), bed.path("link/lamplighter.toml")).unwrap();
    assert!(!used("link"));

    // A folder that was moved, and another one in its place.
    fs::rename(bed.path("project"), bed.path("moved")).unwrap();
    assert!(!used("moved"));
    bed.write(FILE, project_file(DOWN));
    assert!(!used("project"));
    fs::remove_dir_all(bed.path("project")).unwrap();
    fs::create_dir(bed.path("project")).unwrap();

    // The trust of a folder that is gone can be ended by its path.
    let gone = bed.path("project").display().to_string();
    bed.run(&["trust", "--revoke", &gone]).printed(&format!("no longer trusted: {gone}\n"));
}

/// The key of a stranger would show the person's prompts to the stranger, on any server.
#[test]
fn a_key_of_a_checkout_is_not_used_before_the_folder_is_trusted() {
    let own = own_server();
    for inline in [true, false] {
        let bed = Bed::bare();
        bed.private(".config/lamplighter/config.toml", &format!("url = '{}'", own.url));
        bed.private("project/key", "lk_of-a-stranger");
        let key = if inline { "api_key = 'lk_of-a-stranger'" } else { "api_key_file = 'key'" };
        bed.private(FILE, key);
        let sent = |bed: &Bed| {
            let said = bed.run(&["context", "show"]);
            let key = own.requests().pop().unwrap().header("authorization").map(str::to_owned);
            (said.err.contains("the API key of "), key)
        };
        assert_eq!(sent(&bed), (true, None));
        let trusted = bed.run(&["trust"]);
        assert!(trusted.out.contains("key       the file's own"), "{trusted:?}");
        assert!(!trusted.out.contains("lk_"), "{trusted:?}");
        assert_eq!(sent(&bed), (false, Some("Bearer lk_of-a-stranger".to_owned())));
        bed.run(&["trust", "--list"])
            .printed(&format!("{}  no server, only an API key\n", bed.path("project").display()));
        if !inline {
            // The content of the key file was trusted, too.
            bed.private("project/key", "lk_of-another-stranger");
            assert_eq!(sent(&bed), (true, None));
        }
    }
}

#[test]
fn only_the_owner_may_write_the_list_of_trusted_folders() {
    let (own, team) = (own_server(), own_server());
    let bed = Bed::new(&own.url);
    fs::remove_dir_all(bed.path(".config")).unwrap();
    bed.write(FILE, project_file(&team.url));
    assert_eq!(bed.run(&["trust"]).code, 0);
    bed.configure(&own.url);
    let mode = |path: &str| fs::metadata(bed.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(TRUSTED), mode(".config/lamplighter")), (0o600, 0o700));

    for (mode, text, error) in [
        (0o620, None, "others can write it (0620)"),
        (0o602, None, "others can write it (0602)"),
        (0o600, Some("{"), "failed to read "),
        (0o600, Some(r#"{"version": 2, "folders": {}}"#), "its format has version 2"),
    ] {
        if let Some(text) = text {
            bed.write(TRUSTED, text);
        }
        fs::set_permissions(bed.path(TRUSTED), fs::Permissions::from_mode(mode)).unwrap();
        bed.give(&["log", "-a"], payload(1)).silent();
        let said = bed.run(&["context", "show"]);
        assert!(
            said.err.contains(error) && said.err.contains("you have not trusted this folder"),
            "{said:?}"
        );
        bed.run(&["trust"]).failed(error);
        bed.run(&["trust", "--list"]).failed(error);
    }
    assert_eq!((team.requests().len(), own.wait_for(8).len()), (0, 8));
}

#[test]
fn concurrent_trust_is_all_kept() {
    let bed = Bed::new(DOWN);
    let folders: Vec<String> = (0..12).map(|n| format!("project/{n}")).collect();
    for folder in &folders {
        bed.write(&format!("{folder}/lamplighter.toml"), project_file(DOWN));
    }
    let started: Vec<_> =
        folders.iter().map(|folder| bed.start(&["trust", bed.path(folder).to_str().unwrap()], "")).collect();
    for child in started {
        assert_eq!(ended(child).code, 0);
    }
    assert_eq!(bed.run(&["trust", "--list"]).out.lines().count(), folders.len());
}

#[test]
fn a_file_that_asks_for_nothing_needs_no_trust() {
    let bed = Bed::new(DOWN);
    bed.run(&["trust"]).failed("there is no lamplighter.toml in . or above it");
    bed.write(FILE, format!("project = '{PROJECT}'"));
    bed.run(&["trust"]).printed(&format!(
        "{}/lamplighter.toml names no server and no API key, so it needs no trust\n",
        bed.path("project").display()
    ));
    assert!(!bed.path(TRUSTED).exists());
    assert!(!bed.run(&["context", "show"]).err.contains("trust"));
    bed.write(FILE, "url = 'ftp://x'");
    bed.run(&["trust"]).failed("it must begin with http:// or https://");
    // The person has decided already.
    bed.write(FILE, project_file(DOWN));
    assert!(!bed.run(&["context", "show"]).err.contains("trust"));
    bed.write(FILE, project_file("http://127.0.0.1:2"));
    let bed = bed.with("LAMPLIGHTER_URL", DOWN);
    assert!(!bed.run(&["context", "show"]).err.contains("trust"));
    for (args, error) in [
        (&["trust", "--list", "--revoke"][..], "`trust --list` takes no folder and no --revoke"),
        (&["trust", "--list", "x"], "`trust --list` takes no folder"),
        (&["trust", "x", "y"], "unexpected argument 'y' found"),
        (&["trust", "--revok"], "a similar argument exists: '--revoke'"),
        (&["trust", "missing"], "failed to read missing: No such file"),
    ] {
        bed.run(args).failed(error);
    }
}

#[test]
fn a_hostile_path_can_not_control_the_terminal() {
    let own = own_server();
    let bed = Bed::new(&own.url);
    let folder = "pro\u{1b}[2Jject\nlamplighter: all is well\r\u{202e}";
    bed.write(&format!("{folder}/lamplighter.toml"), project_file(DOWN));
    bed.write(&format!("{folder}/a\u{1b}]0;x\u{7}.md"), "---\nname: a\n---\n");
    let run = |args: &[&str]| {
        let mut command = bed.command(args);
        command.current_dir(bed.path(folder)).stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let said = ended(command.spawn().unwrap());
        for text in [&said.out, &said.err] {
            let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(
                !text.contains(bad) && !text.contains("\nlamplighter: all is well"),
                "{args:?}: {text:?}"
            );
        }
        said
    };
    assert!(run(&["status"]).err.contains("pro\\u{1b}[2Jject\\nlamplighter"));
    assert!(run(&["trust"]).out.contains("pro\\u{1b}[2Jject\\nlamplighter"));
    run(&["trust", "--list"]);
    run(&["status"]);
    run(&["context", "init", "."]);
    run(&["context", "show"]);
    bed.write(&format!("{folder}/lamplighter.toml"), "url = 7\u{1b}[2J");
    assert_eq!(run(&["context", "show"]).code, 1);
    assert_eq!(run(&["trust", "--revoke"]).code, 0);
}

/// A checkout may contain links to devices and pipes. A hook must not read them for ever.
#[test]
fn endless_files_of_a_checkout_disturb_no_hook() {
    let long = "#".repeat(70_000);
    type Make<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, Make<'_>); 4] = [
        ("it is not a file", &|path| symlink("/dev/zero", path).unwrap()),
        ("it is not a file", &|path| {
            let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }),
        ("it is not a file", &|path| fs::create_dir(path).unwrap()),
        ("it has more than 65536 bytes", &|path| fs::write(path, &long).unwrap()),
    ];
    for (error, make) in cases {
        let bed = Bed::new(DOWN);
        make(&bed.path(FILE));
        bed.give(&["log", "-a"], payload(1)).silent();
        assert_eq!(bed.spooled().len(), 1);
        bed.run(&["context", "show"]).failed(error);
    }
}
