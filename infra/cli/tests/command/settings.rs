//! Where settings come from, who gets the key, and what is reported about it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::bed::{Bed, DOWN, KEY, PROJECT};
use crate::server::{Reply, Server};

/// What the server gets: the project's path and the key.
fn seen(bed: &Bed, server: &Server) -> (String, Option<String>) {
    let output = bed.run(&["context", "show"]);
    assert_eq!(output.code, 0, "{output:?}");
    let request = server.requests().pop().unwrap();
    (request.target.clone(), request.header("authorization").map(str::to_owned))
}

type Case = (&'static [(&'static str, &'static str)], &'static str, &'static str, &'static str, bool);

#[test]
fn the_environment_overrides_the_project_and_the_project_the_user() {
    let server = Server::start(|_| Reply::ok(""));
    let id = |letter: &str| format!("prj_{}", letter.repeat(32));
    let filled = |text: &str| {
        let ids = [("P_ID", "a"), ("U_ID", "b"), ("E_ID", "c")];
        let text = text.replace("UP", &server.url).replace("KEY", KEY);
        ids.iter().fold(text, |text, (name, letter)| text.replace(name, &id(letter)))
    };
    // environment, project's file, user's file, project, whether the key is sent
    let cases: &[Case] = &[
        (&[("LAMPLIGHTER_URL", "UP"), ("LAMPLIGHTER_PROJECT", "E_ID")], "", "", "E_ID", false),
        (
            &[("LAMPLIGHTER_URL", "UP"), ("LAMPLIGHTER_PROJECT", "E_ID"), ("LAMPLIGHTER_API_KEY", "KEY")],
            "",
            "",
            "E_ID",
            true,
        ),
        (
            &[("LAMPLIGHTER_URL", "UP/"), ("LAMPLIGHTER_PROJECT", "")],
            "project = 'P_ID'",
            "project = 'U_ID'",
            "P_ID",
            false,
        ),
        (&[], "url = 'UP'\nproject = 'P_ID'", "url = 'http://127.0.0.1:1'\nproject = 'U_ID'", "P_ID", false),
        (&[], "project = 'P_ID'", "url = 'UP'\nproject = 'U_ID'\napi_key = 'KEY'", "P_ID", true),
        (&[], "", "url = 'UP'\nproject = 'U_ID'\napi_key = ' KEY '", "U_ID", true),
        (
            &[("LAMPLIGHTER_PROJECT", "E_ID")],
            "url = 'UP'\nproject = 'P_ID'\napi_key = 'KEY'",
            "project = 'U_ID'",
            "E_ID",
            true,
        ),
        // A key is only sent to the server that it was given for.
        (
            &[("LAMPLIGHTER_URL", "UP")],
            "project = 'P_ID'",
            "url = 'http://127.0.0.1:1'\napi_key = 'KEY'",
            "P_ID",
            false,
        ),
        (&[], "url = 'UP'\nproject = 'P_ID'", "url = 'http://127.0.0.1:1'\napi_key = 'KEY'", "P_ID", false),
        (&[], "url = 'UP'\nproject = 'P_ID'", "url = 'UP'\napi_key = 'KEY'", "P_ID", true),
        // A person who trusts the folder also gives its server the key that was given for no server in particular.
        (&[("LAMPLIGHTER_API_KEY", "KEY")], "url = 'UP'\nproject = 'P_ID'", "", "P_ID", true),
        (&[("LAMPLIGHTER_URL", "UP")], "project = 'P_ID'", "api_key = 'KEY'", "P_ID", true),
    ];
    for (variables, project_file, user_file, project, with_key) in cases {
        let mut bed = Bed::bare();
        for (path, text) in
            [("project/lamplighter.toml", project_file), (".config/lamplighter/config.toml", user_file)]
        {
            if !text.is_empty() {
                bed.private(path, &filled(text));
            }
        }
        for (name, value) in *variables {
            bed = bed.with(name, &filled(value));
        }
        if !project_file.is_empty() {
            assert_eq!(bed.run(&["trust"]).code, 0);
        }
        let expected =
            (format!("/projects/{}/context.md", filled(project)), with_key.then(|| format!("Bearer {KEY}")));
        assert_eq!(seen(&bed, &server), expected, "{variables:?} {project_file:?} {user_file:?}");
    }
}

#[test]
fn the_projects_file_is_searched_up_to_the_top_of_the_project() {
    let server = Server::start(|_| Reply::ok(""));
    let file = format!("project = '{PROJECT}'");
    let bed = Bed::bare().with("LAMPLIGHTER_URL", &server.url);
    let found = |bed: &Bed| {
        let mut command = bed.command(&["context", "show"]);
        assert!(command.current_dir(bed.path("project/deep/down")).output().unwrap().status.success());
        server.requests().pop().unwrap().target.contains(PROJECT)
    };
    fs::create_dir_all(bed.path("project/deep/down")).unwrap();
    assert!(!found(&bed));
    let at_home = bed.write("lamplighter.toml", &file);
    assert!(found(&bed));
    fs::create_dir(bed.path("project/.git")).unwrap();
    assert!(!found(&bed), "it lies outside of the repository");
    fs::rename(at_home, bed.path("project/lamplighter.toml")).unwrap();
    assert!(found(&bed));
    fs::remove_dir(bed.path("project/.git")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let bed = bed.with("HOME", elsewhere.path().to_str().unwrap());
    assert!(!found(&bed), "it lies in nobody's home");
}

#[test]
fn a_key_file_is_read_only_from_allowed_places() {
    let server = Server::start(|_| Reply::ok(""));
    let bed = Bed::bare();
    bed.private("project/keys/key", &format!("{KEY}\n"));
    bed.private("key", KEY);
    std::os::unix::fs::symlink(bed.path("key"), bed.path("project/link")).unwrap();
    let key = Some(format!("Bearer {KEY}"));
    for named in ["keys/key", "./keys/../keys/key"] {
        bed.write(
            "project/lamplighter.toml",
            format!("url = '{}'\nproject = 'default'\napi_key_file = '{named}'", server.url),
        );
        assert_eq!(bed.run(&["trust"]).code, 0);
        assert_eq!(seen(&bed, &server).1, key);
    }
    for named in ["../key", "~/key", "link", bed.path("key").to_str().unwrap()] {
        bed.write(
            "project/lamplighter.toml",
            format!("url = '{}'\nproject = 'default'\napi_key_file = '{named}'", server.url),
        );
        bed.run(&["context", "show"]).failed("the file of a project's key must be in the project's folder");
    }
    fs::remove_file(bed.path("project/lamplighter.toml")).unwrap();
    for named in ["../../key", "~/key", bed.path("key").to_str().unwrap()] {
        bed.write(
            ".config/lamplighter/config.toml",
            format!("url = '{}'\nproject = 'default'\napi_key_file = '{named}'", server.url),
        );
        assert_eq!(seen(&bed, &server).1, key, "{named}");
    }
}

#[test]
fn an_error_in_a_file_is_reported_without_its_key() {
    for (text, error) in [
        (format!("url = 'http://x'\napi_key = {KEY}"), "config.toml at line 2: "),
        (format!("api_key = ['{KEY}']"), "config.toml at line 1: invalid type: sequence, expected a string"),
        (format!("key = '{KEY}'"), "unknown field `key`"),
        (format!("api_key = \"{KEY}\\u0000\""), "it is empty or contains invalid characters"),
        (format!("api_key = '{KEY} x'"), "it is empty or contains invalid characters"),
        ("api_key = ''".to_owned(), "it is empty or contains invalid characters"),
        (format!("api_key = '{KEY}'\napi_key_file = 'x'"), "has both api_key and api_key_file"),
        ("api_key_file = 'missing'".to_owned(), "failed to read missing: No such file"),
        (
            "project = 'shop'".to_owned(),
            "config.toml: `shop` is not a project id; it must be `default`, or `prj_`",
        ),
        ("url = 'example.com'".to_owned(), "it must begin with http:// or https://"),
        (format!("url = 'https://me:{KEY}@example.com'"), "it may have no user name or password"),
    ] {
        let bed = Bed::bare();
        bed.private(".config/lamplighter/config.toml", &text);
        for args in [&["context", "show"][..], &["log", "-r", "--agent-id", "ab"]] {
            bed.run(args).failed(error);
        }
    }
    let bed = Bed::bare().with("LAMPLIGHTER_URL", "example.com");
    bed.run(&["context", "show"])
        .failed("failed to read the server's address from LAMPLIGHTER_URL: it must begin with");
    let bed = Bed::bare().with("LAMPLIGHTER_API_KEY", "sekret sekret");
    bed.run(&["context", "show"]).failed("failed to read the API key from LAMPLIGHTER_API_KEY: it is empty");
    let bed = Bed::bare().with("LAMPLIGHTER_PROJECT", "shop");
    bed.run(&["context", "show"])
        .failed("failed to read the project from LAMPLIGHTER_PROJECT: `shop` is not a project id; it must be `default`");
}

#[test]
fn a_key_that_others_can_read_causes_a_warning_but_not_in_a_hook() {
    let server = Server::start(|_| Reply::ok(""));
    for (inline, mode, warns) in [
        (true, 0o600, false),
        (true, 0o400, false),
        (true, 0o640, true),
        (true, 0o604, true),
        (false, 0o600, false),
        (false, 0o644, true),
    ] {
        let bed = Bed::bare();
        let key_file = bed.private("key", KEY);
        let key = if inline { format!("api_key = '{KEY}'") } else { "api_key_file = '~/key'".to_owned() };
        let file = bed.private(
            ".config/lamplighter/config.toml",
            &format!("url = '{}'\nproject = 'default'\n{key}", server.url),
        );
        let holder = if inline { file } else { key_file };
        fs::set_permissions(&holder, fs::Permissions::from_mode(mode)).unwrap();
        let holder = holder.display();
        let warning = format!(
            "lamplighter: warning: {holder} contains an API key, and others can read it ({mode:04o}); run `chmod 600 {holder}`\n"
        );
        assert_eq!(bed.run(&["context", "show"]).err, if warns { warning } else { String::new() });
        bed.give(&["log", "-a"], "{}").silent();
    }
}

#[test]
fn an_unencrypted_key_causes_a_warning() {
    let bed = Bed::bare().with("LAMPLIGHTER_URL", "http://nowhere.invalid").with("LAMPLIGHTER_API_KEY", KEY);
    bed.run(&["context", "show", "--project", "default"])
        .failed("the API key goes to http://nowhere.invalid without encryption; use https");
    Bed::new(DOWN).run(&["context", "show"]).failed("failed to reach http://127.0.0.1:1");
}
