//! The names that the `Dockerfile` uses are those of the workspace. The image itself is not built here.

use crate::page::read;

#[test]
fn the_dockerfile_names_what_exists() {
    let file = read("Dockerfile");
    let all = |before: &str| {
        let rest = file.split(before).skip(1);
        rest.filter_map(|rest| rest.split_whitespace().next()).collect::<Vec<_>>()
    };
    let manifests = [read("infra/local/Cargo.toml"), read("infra/cli/Cargo.toml")];
    let packages = all("--package ");
    assert_eq!(packages.len(), 2);
    for package in packages {
        let named = format!("name = \"{package}\"");
        assert!(manifests.iter().any(|manifest| manifest.contains(&named)), "{package}");
    }
    // `lamplighter-local` is named after its package, `lamplighter` in `[[bin]]`.
    let programs: Vec<&str> = all("/src/target/release/");
    assert_eq!(programs, ["lamplighter-local", "lamplighter"]);
    assert!(manifests[0].contains("default-run = \"lamplighter-local\""));
    assert!(manifests[1].contains("[[bin]]\nname = \"lamplighter\"\n"));
    assert!(file.contains("ENTRYPOINT [\"lamplighter-local\"]"));

    let help = read("infra/local/src/program.rs");
    let variables = all("LAMPLIGHTER_");
    assert!(variables.len() >= 4);
    for variable in variables {
        let name = format!("LAMPLIGHTER_{}", variable.split('=').next().unwrap_or_default());
        assert!(help.contains(&name), "{name}");
    }
    for line in ["LAMPLIGHTER_AUTH=on\n", "USER lamplighter\n", "VOLUME /data\n", "EXPOSE 9000\n"] {
        assert!(file.contains(line), "{line}");
    }
    // The compiler of the image is new enough.
    let number = |text: &str| text.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    let cargo = read("Cargo.toml");
    let needed = cargo.split("rust-version = \"").nth(1).and_then(|rest| rest.split('"').next());
    let used = all("FROM rust:")[0].split('-').next();
    assert!(used.and_then(number) >= needed.and_then(number) && needed.is_some(), "{used:?} {needed:?}");
    let ignored = read(".dockerignore");
    for folder in ["target", ".lamplighter", ".git"] {
        assert!(ignored.lines().any(|line| line == folder), "{folder}");
    }
}
