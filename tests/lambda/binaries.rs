//! The binaries of the functions, built once for all tests of this process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of a function's binary. The first call builds all functions.
pub fn binary(function: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(build).join(format!("{function}{}", std::env::consts::EXE_SUFFIX))
}

/// Builds into the folder and with the profile of this test, so the libraries are already built.
fn build() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // `target/debug/deps/lambda-0123abcd`
    let folder = test.parent().and_then(Path::parent).unwrap();
    let profile = match folder.file_name().and_then(|name| name.to_str()).unwrap() {
        "debug" => "dev",
        profile => profile,
    };
    let mut build = Command::new(env!("CARGO"));
    build
        // With the test among the targets, cargo resolves the same features as `cargo test`, so nothing is compiled
        // twice.
        .args(["build", "--quiet", "--workspace", "--bins", "--test", "lambda", "--profile", profile])
        .arg("--target-dir")
        .arg(folder.parent().unwrap())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    // Some build scripts would see the variables that cargo sets for a test as a change.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_"].iter().any(|prefix| text.starts_with(prefix)) {
            build.env_remove(&name);
        }
    }
    assert!(build.status().unwrap().success(), "the functions' binaries are built");
    folder.to_owned()
}
