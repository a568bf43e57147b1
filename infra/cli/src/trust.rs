//! `lamplighter trust`: which folders' project files are used.

use std::path::Path;

use crate::Failure;
use crate::args::Trust;
use crate::config::{self, ProjectFile};
use crate::output::{self, escaped, shown};
use crate::trusted::{Entry, TrustError, TrustFile};

/// Trusts a folder, ends the trust, or lists the trusted folders.
///
/// # Errors
/// If there is no project file, or it is invalid, or the list can't be changed.
pub fn run(trust: &Trust) -> Result<(), Failure> {
    let settings =
        config::config_dir().ok_or_else(|| Failure::Message("there is no home folder".to_owned()))?;
    let file = TrustFile::in_folder(&settings);
    match trust {
        Trust::Add(dir) => add(&file, dir.as_deref()),
        Trust::Revoke(dir) => revoke(&file, dir.as_deref()),
        Trust::List => list(&file),
    }
}

/// The project file of a folder, or of the current one.
fn project(dir: Option<&Path>) -> Result<ProjectFile, Failure> {
    let dir = dir.unwrap_or(Path::new("."));
    let failed = |error| Failure::Message(format!("failed to read {}: {error}", shown(dir)));
    ProjectFile::find(&dir.canonicalize().map_err(failed)?).map_err(failed)?.ok_or_else(|| {
        Failure::Message(format!(
            "there is no lamplighter.toml in {} or above it, up to the top of the repository",
            shown(dir)
        ))
    })
}

fn add(file: &TrustFile, dir: Option<&Path>) -> Result<(), Failure> {
    let project = project(dir)?;
    let folder = shown(&project.folder);
    let (url, has_key) = project.asks()?;
    if url.is_none() && !has_key {
        return Ok(output::print(format!(
            "{folder}/lamplighter.toml names no server and no API key, so it needs no trust\n"
        ))?);
    }
    let path = project.folder.to_str().ok_or_else(|| TrustError::NotText(project.folder.clone()))?.to_owned();
    let url = url.map(|url| url.to_string());
    let entry = Entry { url: url.clone(), sha256: project.fingerprint.hex() };
    file.change(|list| list.folders.insert(path, entry))?;
    let server = match &url {
        Some(url) => format!(
            "server    {url}: it gets the prompts of hooks, a model reads its answers, and it gets the API key of \
             LAMPLIGHTER_API_KEY or config.toml, unless that key is for another server\n"
        ),
        None => String::new(),
    };
    let key = if has_key { "key       the file's own is sent to the server that is used\n" } else { "" };
    Ok(output::print(format!(
        "trusted   {folder}\n{server}{key}If the file changes, it must be trusted again. `lamplighter trust --revoke` ends the trust.\n"
    ))?)
}

fn revoke(file: &TrustFile, dir: Option<&Path>) -> Result<(), Failure> {
    // The folder may be gone. Then its path must be as in the list.
    let folder = match (project(dir), dir) {
        (Ok(project), _) => project.folder,
        (Err(_), Some(dir)) => dir.canonicalize().unwrap_or_else(|_| dir.to_owned()),
        (Err(error), None) => return Err(error),
    };
    let listed =
        folder.to_str().map(|path| file.change(|list| list.folders.remove(path).is_some())).transpose()?;
    match listed {
        Some(true) => Ok(output::print(format!("no longer trusted: {}\n", shown(&folder)))?),
        _ => Err(Failure::Message(format!("{} is not trusted", shown(&folder)))),
    }
}

fn list(file: &TrustFile) -> Result<(), Failure> {
    let list = file.read()?;
    let mut text = String::new();
    for (folder, Entry { url, .. }) in &list.folders {
        let url = url.as_deref().unwrap_or("no server, only an API key");
        text.push_str(&format!("{}  {}\n", escaped(folder), escaped(url)));
    }
    Ok(output::print(if text.is_empty() { "no folder is trusted\n" } else { &text })?)
}
