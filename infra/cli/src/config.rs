//! The server, the key and the project, from the environment and from files.
//!
//! | variable | in a file | meaning | default |
//! |---|---|---|---|
//! | `LAMPLIGHTER_URL` | `url` | the server | `http://127.0.0.1:9000` |
//! | `LAMPLIGHTER_API_KEY` | `api_key`, or the path `api_key_file` | the key | none |
//! | `LAMPLIGHTER_PROJECT` | `project` | the project's id | the default project |
//! | `LAMPLIGHTER_STATE` | | the folder of the spool | `~/.local/state/lamplighter` |
//!
//! The environment has priority over the project's file (`lamplighter.toml` in the current folder or a folder above it, up to
//! the top of the repository or the home folder). That file has priority over the user's (`~/.config/lamplighter/config.toml`).
//!
//! A project's file comes with a checkout, so a stranger may have written it. A server that only this file names is not
//! trusted, unless it is on this machine: it gets no hook payloads (they contain prompts) and no key from elsewhere,
//! and its answers are not given to a model. If the project's file names a file with a key, that file must be in the
//! same folder.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::project::{NoProjectId, ProjectId};
use crate::url::{Url, UrlError};

const PROJECT_FILE: &str = "lamplighter.toml";
const ENVIRONMENT_KEY: &str = "LAMPLIGHTER_API_KEY";
const DEFAULT_URL: &str = "http://127.0.0.1:9000";

/// The configuration.
#[derive(Debug)]
pub struct Settings {
    pub url: Url,
    /// Where the server's address comes from.
    pub url_from: String,
    /// Whether the server gets hook payloads and may send text to a model. This is true if it is on this machine, or if
    /// something other than the project's file names it.
    pub is_trusted: bool,
    pub key: Option<ApiKey>,
    pub project: Option<ProjectId>,
    /// Warnings about a configuration that works.
    pub warnings: Vec<String>,
}

/// An API key. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// For the `Authorization` header, and nothing else.
    #[must_use]
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// Why the configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("failed to read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The message names the position but does not quote the line, which may contain the key.
    #[error("failed to read {} at line {line}: {message}", path.display())]
    Syntax { path: PathBuf, line: usize, message: String },
    #[error("failed to read the server's address from {origin}: {source}")]
    Url { origin: String, source: UrlError },
    #[error("failed to read the project from {origin}: {source}")]
    Project { origin: String, source: NoProjectId },
    #[error("failed to read the API key from {0}: it is empty or contains invalid characters")]
    Key(String),
    #[error("{} has both api_key and api_key_file; one is enough", .0.display())]
    TwoKeys(PathBuf),
    #[error("{} may not name {}: the file of a project's key must be in the project's folder", path.display(), key_file.display())]
    KeyOutside { path: PathBuf, key_file: PathBuf },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    url: Option<String>,
    api_key: Option<String>,
    api_key_file: Option<PathBuf>,
    project: Option<String>,
}

/// One source of settings.
#[derive(Default)]
struct Source {
    name: String,
    url: Option<Url>,
    key: Option<ApiKey>,
    project: Option<ProjectId>,
    /// Whether it comes with a checkout.
    foreign: bool,
}

impl Source {
    /// The name of the source for messages about the server. The name of the environment is the variable of the key.
    fn url_from(&self) -> &str {
        if self.name == ENVIRONMENT_KEY { "LAMPLIGHTER_URL" } else { &self.name }
    }
}

/// The files of the configuration. They are not read yet.
#[derive(Clone, Debug)]
pub struct Places {
    project_file: Option<PathBuf>,
    user_file: Option<PathBuf>,
}

impl Places {
    /// Finds the files of the current folder and the home folder.
    #[must_use]
    pub fn look() -> Self {
        let home = home();
        let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let folder = folder.or_else(|| Some(home.as_ref()?.join(".config")));
        let user_file =
            folder.map(|folder| folder.join("lamplighter/config.toml")).filter(|file| file.exists());
        let project_file = env::current_dir().ok().and_then(|dir| project_file(&dir, home.as_deref()));
        Self { project_file, user_file }
    }

    /// The variable or file that decides which server is used. The spool is named after it. So payloads are kept even
    /// while the file is invalid, and they are sent to the new server if its address changes.
    #[must_use]
    pub fn decider(&self) -> String {
        let file = self.project_file.as_ref().or(self.user_file.as_ref());
        variable("LAMPLIGHTER_URL")
            .map(|url| format!("LAMPLIGHTER_URL {url}"))
            .or_else(|| file.map(|file| file.display().to_string()))
            .unwrap_or_else(|| "default".to_owned())
    }

    /// Reads all sources.
    ///
    /// # Errors
    /// The first error.
    pub fn read(&self) -> Result<Settings, ConfigError> {
        let mut warnings = Vec::new();
        let mut sources = vec![environment()?];
        for (file, foreign) in [(&self.project_file, true), (&self.user_file, false)] {
            if let Some(path) = file {
                sources.push(read_file(path, foreign, &mut warnings)?);
            }
        }
        let named = sources.iter().find_map(|source| Some((source.url.clone()?, source.foreign)));
        let url_from = sources.iter().find(|source| source.url.is_some());
        let url_from =
            url_from.map_or_else(|| "the default".to_owned(), |source| source.url_from().to_owned());
        let (url, foreign) = named.unwrap_or_else(|| (default_url(), false));
        let names_it = |source: &Source| !source.foreign && source.url.as_ref() == Some(&url);
        let is_trusted = !foreign || url.is_near() || sources.iter().any(names_it);
        let may_have = |source: &&Source| match &source.url {
            Some(own) => *own == url,
            None => !foreign || url.is_near(),
        };
        let mut with_key = sources.iter().filter(|source| source.key.is_some());
        let key = with_key.clone().find(may_have).and_then(|source| source.key.clone());
        if let (None, Some(source)) = (&key, with_key.next()) {
            warnings.push(format!(
                "the API key from {} is not sent to {url}, because it was not given for that server; name both in one place",
                source.name
            ));
        }
        if key.is_some() && !url.is_private() {
            warnings.push(format!("the API key goes to {url} without encryption; use https"));
        }
        let project = sources.into_iter().find_map(|source| source.project);
        Ok(Settings { url, url_from, is_trusted, key, project, warnings })
    }
}

/// The folder for data that must outlive this program. `None` if there is no home folder.
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    let own = variable("LAMPLIGHTER_STATE").map(PathBuf::from);
    let shared = || variable("XDG_STATE_HOME").map(|dir| PathBuf::from(dir).join("lamplighter"));
    own.or_else(shared).or_else(|| home().map(|home| home.join(".local/state/lamplighter")))
}

/// A variable, if it is set and not empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from)
}

fn default_url() -> Url {
    DEFAULT_URL.parse().expect("the default is an address")
}

/// The nearest project file at `dir` or above, but not above the repository or the home folder. Outside of both, only
/// `dir` itself is searched, because anybody can write to folders such as `/tmp`.
fn project_file(dir: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let is_top = |dir: &&Path| Some(*dir) == home || dir.join(".git").exists();
    let depth = dir.ancestors().position(|dir| is_top(&dir)).unwrap_or(0);
    dir.ancestors().take(depth + 1).map(|dir| dir.join(PROJECT_FILE)).find(|file| file.exists())
}

fn environment() -> Result<Source, ConfigError> {
    let origin = "LAMPLIGHTER_URL".to_owned();
    let url = variable("LAMPLIGHTER_URL").map(|url| url.parse());
    let key = variable("LAMPLIGHTER_API_KEY").map(|key| api_key(&key, || "LAMPLIGHTER_API_KEY".to_owned()));
    Ok(Source {
        name: ENVIRONMENT_KEY.to_owned(),
        url: url.transpose().map_err(|source| ConfigError::Url { origin, source })?,
        key: key.transpose()?,
        project: project(variable("LAMPLIGHTER_PROJECT"), || "LAMPLIGHTER_PROJECT".to_owned())?,
        foreign: false,
    })
}

fn read_file(path: &Path, foreign: bool, warnings: &mut Vec<String>) -> Result<Source, ConfigError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| ConfigError::Unreadable { path, source }
    };
    let text = fs::read_to_string(path).map_err(unreadable(path))?;
    let file: File = toml::from_str(&text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        line: error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count()),
        message: error.message().to_owned(),
    })?;
    let key = match (file.api_key, file.api_key_file) {
        (Some(_), Some(_)) => return Err(ConfigError::TwoKeys(path.to_owned())),
        (Some(key), None) => {
            warnings.extend(open_to_others(path));
            Some(api_key(&key, || path.display().to_string())?)
        }
        (None, Some(named)) => {
            let key_file = beside(path, &named).canonicalize().map_err(unreadable(&named))?;
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok()).unwrap_or_default();
            if foreign && !key_file.starts_with(&folder) {
                return Err(ConfigError::KeyOutside { path: path.to_owned(), key_file: named });
            }
            warnings.extend(open_to_others(&key_file));
            let text = fs::read_to_string(&key_file).map_err(unreadable(&key_file))?;
            Some(api_key(&text, || key_file.display().to_string())?)
        }
        (None, None) => None,
    };
    let url = file.url.map(|url| url.parse()).transpose();
    let url = url.map_err(|source| ConfigError::Url { origin: path.display().to_string(), source })?;
    let project = project(file.project, || path.display().to_string())?;
    Ok(Source { name: path.display().to_string(), url, key, project, foreign })
}

/// A path in a configuration file: relative to the folder of the file, or to the home folder after `~/`.
fn beside(file: &Path, named: &Path) -> PathBuf {
    match (named.strip_prefix("~"), home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => file.parent().unwrap_or(Path::new("")).join(named),
    }
}

fn api_key(text: &str, origin: impl Fn() -> String) -> Result<ApiKey, ConfigError> {
    let key = text.trim();
    let fits = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(ApiKey(key.to_owned())) } else { Err(ConfigError::Key(origin())) }
}

fn project(text: Option<String>, origin: impl Fn() -> String) -> Result<Option<ProjectId>, ConfigError> {
    let id = text.map(|text| text.parse()).transpose();
    id.map_err(|source| ConfigError::Project { origin: origin(), source })
}

/// A warning if others than the owner may read or write the file.
fn open_to_others(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let path = path.display();
    (mode & 0o077 != 0).then(|| {
        format!("{path} contains an API key, and others can read it ({mode:04o}); run `chmod 600 {path}`")
    })
}
