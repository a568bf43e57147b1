//! Which files have changed, as git says.

use std::collections::BTreeSet;

use crate::run::{Problem, git};

/// The changed files of the work tree.
#[derive(Debug)]
pub struct Changes {
    /// What the files are compared with: a short commit id and how it was found.
    pub base: String,
    /// Relative to the root of the repository, with `/`. A file that was renamed is here with both names.
    pub files: BTreeSet<String>,
}

impl Changes {
    /// The files that differ from the common ancestor of `HEAD` and `base`, committed or not, and new files.
    ///
    /// # Errors
    /// If git fails, or `base` does not exist.
    pub fn since(base: Option<&str>) -> Result<Self, Problem> {
        let (commit, base) = ancestor(base)?;
        let differ = git(&["diff", "--name-only", "--no-renames", "-z", &commit])?;
        let new = git(&["ls-files", "--others", "--exclude-standard", "-z"])?;
        let files = [differ, new].concat();
        let files = files.split('\0').filter(|file| !file.is_empty()).map(str::to_owned).collect();
        Ok(Self { base, files })
    }
}

/// The commit to compare with, and a name for it.
fn ancestor(base: Option<&str>) -> Result<(String, String), Problem> {
    let names: &[&str] = match &base {
        Some(base) => &[base],
        None => &["main", "origin/main"],
    };
    for name in names {
        if git(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).is_ok() {
            let commit = git(&["merge-base", name, "HEAD"])?.trim().to_owned();
            let short = commit.get(..10).unwrap_or(&commit);
            return Ok((commit.clone(), format!("{short} (the common ancestor with {name})")));
        }
    }
    match base {
        Some(base) => Err(Problem::new(format!("`--base {base}`: there is no such commit"))),
        // A copy with one branch of another name.
        None => Ok(("HEAD".to_owned(), "HEAD (there is no branch main)".to_owned())),
    }
}
