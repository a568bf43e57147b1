//! The packages of the workspace: their folders, and which package uses which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::run::{Problem, cargo, git, output};

/// The packages of the workspace.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Every folder with a `Cargo.toml`, relative to the root, with `/`. The package is absent if it is not a member.
    folders: BTreeMap<String, Option<String>>,
    /// The direct dependencies of each member.
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Workspace {
    /// Asks cargo and git. The current folder is the root.
    ///
    /// # Errors
    /// If one of them fails.
    pub fn load() -> Result<Self, Problem> {
        let root = std::env::current_dir()
            .and_then(|root| root.canonicalize())
            .map_err(|error| Problem::new(format!("the current folder cannot be read: {error}")))?;
        let tree = output(cargo().args([
            "tree",
            "--quiet",
            "--workspace",
            "--depth",
            "1",
            "--no-dedupe",
            "--edges",
            "normal,build,dev",
            "--target",
            "all",
            "--prefix",
            "depth",
            "--format",
            "{p}",
        ]))?;
        let manifests =
            git(&["ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", "*Cargo.toml"])?;
        Self::parse(&root, &tree, &manifests)
    }

    /// `tree` is the output of `cargo tree`: the depth and the package in each line, and the folder of a package of this
    /// workspace in parentheses. `manifests` are paths that end with NUL.
    fn parse(root: &Path, tree: &str, manifests: &str) -> Result<Self, Problem> {
        let mut workspace = Self::default();
        for manifest in manifests.split('\0').filter(|path| !path.is_empty()) {
            let folder = manifest.rsplit_once('/').map_or("", |(folder, _)| folder);
            workspace.folders.insert(folder.to_owned(), None);
        }
        let mut member = None;
        for line in tree.lines().filter(|line| !line.is_empty()) {
            let unreadable = || Problem::new(format!("this line of `cargo tree` cannot be read: {line}"));
            let (depth, package) = line.split_at(1);
            let name = package.split(' ').next().unwrap_or_default().to_owned();
            match (depth, &member) {
                ("0", _) => {
                    let folder = package.rsplit_once('(').and_then(|(_, rest)| rest.split_once(')'));
                    let (folder, _) = folder.ok_or_else(unreadable)?;
                    let folder = Path::new(folder).strip_prefix(root).map_err(|_| unreadable())?;
                    let folder = folder.to_string_lossy().replace('\\', "/");
                    workspace.folders.insert(folder, Some(name.clone()));
                    workspace.uses.entry(name.clone()).or_default();
                    member = Some(name);
                }
                ("1", Some(member)) => {
                    workspace.uses.entry(member.clone()).or_default().insert(name);
                }
                _ => return Err(unreadable()),
            }
        }
        Ok(workspace)
    }

    /// The package of a file: that of the nearest folder with a `Cargo.toml`. `None` if this is not a member, as the root and
    /// the fuzz targets are not.
    pub fn package_of(&self, file: &str) -> Option<&str> {
        let mut folder = file;
        while let Some((parent, _)) = folder.rsplit_once('/') {
            if let Some(package) = self.folders.get(parent) {
                return package.as_deref();
            }
            folder = parent;
        }
        None
    }

    /// The path of a file within its package.
    pub fn within<'a>(&self, package: &str, file: &'a str) -> &'a str {
        let folder = self.folders.iter().find(|(_, name)| name.as_deref() == Some(package));
        let within = folder.and_then(|(folder, _)| file.strip_prefix(folder.as_str()));
        within.map_or(file, |rest| rest.trim_start_matches('/'))
    }

    /// The members that use this package directly, also if only their tests do.
    pub fn users_of(&self, package: &str) -> BTreeSet<String> {
        self.uses.iter().filter(|(_, uses)| uses.contains(package)).map(|(name, _)| name.clone()).collect()
    }

    /// The members that use one of these packages, directly or through others, without these packages.
    pub fn dependents(&self, packages: &BTreeSet<String>) -> BTreeSet<String> {
        let mut found = packages.clone();
        let mut new: Vec<String> = packages.iter().cloned().collect();
        while let Some(package) = new.pop() {
            for user in self.users_of(&package) {
                if found.insert(user.clone()) {
                    new.push(user);
                }
            }
        }
        &found - packages
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const TREE: &str = "\
0domain v0.1.0 (/w/shared/domain)
1jiff v0.2.43
1insta v1.49.0

0shared v0.1.0 (/w/shared)
1domain v0.1.0 (/w/shared/domain)
1serde_derive v1.0.0 (proc-macro)

0agents v0.1.0 (/w/functions/agents)
1shared v0.1.0 (/w/shared)

0catalog v0.1.0 (/w/functions/catalog)
1agents v0.1.0 (/w/functions/agents)

0tests v0.1.0 (/w/tests)
1catalog v0.1.0 (/w/functions/catalog)

0bench v0.1.0 (/w/tests/bench)
1tests v0.1.0 (/w/tests)

0xtask v0.1.0 (/w/infra/xtask)
1lexopt v0.3.1
";
    const MANIFESTS: &str = "Cargo.toml\0shared/Cargo.toml\0shared/domain/Cargo.toml\0shared/domain/fuzz/Cargo.toml\0\
        functions/agents/Cargo.toml\0functions/catalog/Cargo.toml\0tests/Cargo.toml\0tests/bench/Cargo.toml\0\
        infra/xtask/Cargo.toml\0";

    pub fn workspace() -> Workspace {
        Workspace::parse(Path::new("/w"), TREE, MANIFESTS).unwrap()
    }

    pub fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_file_belongs_to_the_nearest_package() {
        for (file, package) in [
            ("shared/src/lib.rs", Some("shared")),
            ("shared/Cargo.toml", Some("shared")),
            ("shared/domain/src/ids.rs", Some("domain")),
            // A workspace of its own, within the folder of a member.
            ("shared/domain/fuzz/fuzz_targets/log.rs", None),
            ("shared/domain_notes.md", Some("shared")),
            ("functions/agents/src/lib.rs", Some("agents")),
            // A folder that has gone, or a package that is not in the workspace yet.
            ("functions/gone/src/lib.rs", None),
            ("tests/platform/runs/durable.rs", Some("tests")),
            ("tests/bench/golden.rs", Some("bench")),
            ("infra/template.yaml", None),
            ("Cargo.toml", None),
            ("docs/api.md", None),
        ] {
            assert_eq!(workspace().package_of(file), package, "{file}");
        }
    }

    #[test]
    fn a_path_within_a_package() {
        assert_eq!(workspace().within("tests", "tests/platform/main.rs"), "platform/main.rs");
        assert_eq!(workspace().within("bench", "tests/bench/golden.rs"), "golden.rs");
    }

    #[test]
    fn dependents_are_found_through_others() {
        let of = |packages: &[&str]| workspace().dependents(&names(packages));
        assert_eq!(of(&["domain"]), names(&["shared", "agents", "catalog", "tests", "bench"]));
        assert_eq!(of(&["agents", "catalog"]), names(&["tests", "bench"]));
        assert_eq!(of(&["xtask"]), names(&[]));
        assert_eq!(workspace().users_of("insta"), names(&["domain"]));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_an_error() {
        for tree in
            ["1domain v0.1.0 (/w/domain)", "0domain v0.1.0", "0domain v0.1.0 (/elsewhere/domain)", "?"]
        {
            let error = Workspace::parse(Path::new("/w"), tree, "").unwrap_err();
            assert!(error.to_string().contains(tree), "{error}");
        }
    }
}
