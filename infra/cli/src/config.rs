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
//! A project's file comes with a checkout, so a stranger may have written it. Its server and its key decide who gets
//! prompts and keys, and whose answers a model reads. So they are ignored until the person has trusted the folder (see
//! [`crate::trusted`]), also for a server on this machine: any program can listen there. If the project's file names a
//! file with a key, that file must be in the same folder.

use std::env;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::output::shown;
use crate::project::{NoProjectId, ProjectId};
use crate::trusted::{Fingerprint, State, TrustFile};
use crate::url::{Url, UrlError};

const PROJECT_FILE: &str = "lamplighter.toml";
const ENVIRONMENT_KEY: &str = "LAMPLIGHTER_API_KEY";
const DEFAULT_URL: &str = "http://127.0.0.1:9000";

/// The maximum size of a configuration file or key file, in bytes. A checkout may contain a link to an endless device.
const MAX_FILE: u64 = 64 * 1024;

/// The configuration.
#[derive(Debug)]
pub struct Settings {
    pub url: Url,
    /// Where the server's address comes from.
    pub url_from: String,
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
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("failed to read {}: {cause}", shown(path))]
    Unreadable { path: PathBuf, cause: String },
    /// The message names the position but does not quote the line, which may contain the key.
    #[error("failed to read {} at line {line}: {message}", shown(path))]
    Syntax { path: PathBuf, line: usize, message: String },
    #[error("failed to read the server's address from {origin}: {source}")]
    Url { origin: String, source: UrlError },
    #[error("failed to read the project from {origin}: {source}")]
    Project { origin: String, source: NoProjectId },
    #[error("failed to read the API key from {0}: it is empty or contains invalid characters")]
    Key(String),
    #[error("{} has both api_key and api_key_file; one is enough", shown(.0))]
    TwoKeys(PathBuf),
    #[error(
        "{} may not name {}: the file of a project's key must be in the project's folder",
        shown(path),
        shown(key_file)
    )]
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
#[derive(Clone, Debug, Default)]
struct Source {
    name: String,
    url: Option<Url>,
    key: Option<ApiKey>,
    project: Option<ProjectId>,
    warnings: Vec<String>,
}

impl Source {
    /// The name of the source for messages about the server. The name of the environment is the variable of the key.
    fn url_from(&self) -> &str {
        if self.name == ENVIRONMENT_KEY { "LAMPLIGHTER_URL" } else { &self.name }
    }
}

/// The file of a checkout. It is read once, so that what was compared with the trusted content is what is used.
#[derive(Clone, Debug)]
pub struct ProjectFile {
    /// The folder, without links and `..`.
    pub folder: PathBuf,
    path: PathBuf,
    source: Result<Source, ConfigError>,
    pub fingerprint: Fingerprint,
}

impl ProjectFile {
    /// The nearest file at this folder or above.
    ///
    /// # Errors
    /// If a folder can't be read.
    pub fn find(dir: &Path) -> io::Result<Option<Self>> {
        let Some(path) = project_file(dir, home().as_deref()) else { return Ok(None) };
        // The folder is canonical, and not the file: a link to the file of a trusted folder is not trusted.
        let folder = path.parent().unwrap_or(Path::new("/")).canonicalize()?;
        let mut fingerprint = Fingerprint::default();
        let source = read_file(&path, Some(&folder), &mut fingerprint);
        Ok(Some(Self { folder, path, source, fingerprint }))
    }

    /// What the file asks for beyond the project: the server, and whether it has a key.
    ///
    /// # Errors
    /// If the file is invalid.
    pub fn asks(&self) -> Result<(Option<Url>, bool), ConfigError> {
        self.source.clone().map(|source| (source.url, source.key.is_some()))
    }

    /// Whether the file asks for something that needs trust. An invalid file asks for nothing, because it is not used.
    fn needs_trust(&self) -> bool {
        self.asks().is_ok_and(|(url, has_key)| url.is_some() || has_key)
    }
}

/// The files of the configuration. The project's is read, the user's is not.
#[derive(Clone, Debug)]
pub struct Places {
    project: Option<ProjectFile>,
    /// Of the project's folder.
    trust: State,
    user_file: Option<PathBuf>,
    warnings: Vec<String>,
}

impl Places {
    /// Finds the files of the current folder and the home folder.
    #[must_use]
    pub fn look() -> Self {
        let user_file = config_dir().map(|dir| dir.join("config.toml")).filter(|file| file.exists());
        let project = env::current_dir().and_then(|dir| ProjectFile::find(&dir)).ok().flatten();
        let (mut trust, mut warnings) = (State::Trusted, Vec::new());
        if let Some(file) = project.as_ref().filter(|file| file.needs_trust()) {
            let list = config_dir().map(|settings| TrustFile::in_folder(&settings));
            let trusted = list.map_or(Ok(State::Unknown), |list| list.state(&file.folder, &file.fingerprint));
            trust = trusted.unwrap_or_else(|error| {
                warnings.push(error.to_string());
                State::Unknown
            });
        }
        Self { project, trust, user_file, warnings }
    }

    /// The variable or file that decides which server is used. The spool is named after it. So payloads are kept even
    /// while the file is invalid, and they are sent to the new server if its address changes.
    #[must_use]
    pub fn decider(&self) -> String {
        let project = self.project.as_ref().filter(|_| self.trust == State::Trusted).map(|file| &file.path);
        variable("LAMPLIGHTER_URL")
            .map(|url| format!("LAMPLIGHTER_URL {url}"))
            .or_else(|| project.or(self.user_file.as_ref()).map(|file| file.display().to_string()))
            .unwrap_or_else(|| "default".to_owned())
    }

    /// Reads all sources.
    ///
    /// # Errors
    /// The first error.
    pub fn read(&self) -> Result<Settings, ConfigError> {
        let mut warnings = self.warnings.clone();
        let environment = environment()?;
        let (no_url, no_key) = (environment.url.is_none(), environment.key.is_none());
        let mut sources = vec![environment];
        let mut ignored = None;
        if let Some(file) = &self.project {
            let source = file.source.clone()?;
            if self.trust == State::Trusted {
                sources.push(source);
            } else {
                // The project is one of the person's own, so it needs no trust.
                let Source { name, project, .. } = source.clone();
                sources.push(Source { name, project, ..Source::default() });
                ignored = Some(source);
            }
        }
        if let Some(path) = &self.user_file {
            sources.push(read_file(path, None, &mut Fingerprint::default())?);
        }
        let named = sources.iter().find_map(|source| Some((source.url.clone()?, source.url_from())));
        let (url, url_from) = named.unwrap_or_else(|| (default_url(), "the default"));
        let url_from = url_from.to_owned();
        if let Some(source) = &ignored {
            let other = source.url.as_ref().filter(|other| no_url && **other != url);
            let key = source.key.is_some() && no_key;
            warnings.extend(self.ignored(source, other, key, &url));
        }
        let may_have = |source: &&Source| source.url.as_ref().is_none_or(|own| *own == url);
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
        warnings.extend(sources.iter().flat_map(|source| source.warnings.clone()));
        let project = sources.into_iter().find_map(|source| source.project);
        Ok(Settings { url, url_from, key, project, warnings })
    }

    /// The warning about a file that is not trusted, if something of it would have been used.
    fn ignored(&self, source: &Source, other: Option<&Url>, key: bool, used: &Url) -> Option<String> {
        let what = match (other, key) {
            (Some(url), false) => format!("the server {url}"),
            (Some(url), true) => format!("the server {url} and the API key"),
            (None, true) => "the API key".to_owned(),
            (None, false) => return None,
        };
        let why = match self.trust {
            State::Changed => "the file has changed since you trusted it",
            State::Unknown | State::Trusted => "you have not trusted this folder",
        };
        Some(format!(
            "{what} of {} is not used, because {why}; {used} is used. \
             Run `lamplighter trust` there if you want to use what the file names",
            source.name
        ))
    }
}

/// The person's own folder of settings. `None` if there is no home folder.
#[must_use]
pub fn config_dir() -> Option<PathBuf> {
    let shared = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    shared.or_else(|| Some(home()?.join(".config"))).map(|dir| dir.join("lamplighter"))
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
        warnings: Vec::new(),
    })
}

/// Reads a file of settings. A project's key file must be in the `folder` of the project. The fingerprint gets everything
/// that was read.
fn read_file(
    path: &Path,
    folder: Option<&Path>,
    fingerprint: &mut Fingerprint,
) -> Result<Source, ConfigError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| ConfigError::Unreadable { path, cause: error.to_string() }
    };
    let text = read_text(path).map_err(unreadable(path))?;
    fingerprint.add(&text);
    let file: File = toml::from_str(&text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        line: error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count()),
        message: error.message().to_owned(),
    })?;
    let mut warnings = Vec::new();
    let key = match (file.api_key, file.api_key_file) {
        (Some(_), Some(_)) => return Err(ConfigError::TwoKeys(path.to_owned())),
        (Some(key), None) => {
            warnings.extend(open_to_others(path));
            Some(api_key(&key, || shown(path))?)
        }
        (None, Some(named)) => {
            let key_file = beside(path, &named).canonicalize().map_err(unreadable(&named))?;
            if folder.is_some_and(|folder| !key_file.starts_with(folder)) {
                return Err(ConfigError::KeyOutside { path: path.to_owned(), key_file: named });
            }
            warnings.extend(open_to_others(&key_file));
            let text = read_text(&key_file).map_err(unreadable(&key_file))?;
            fingerprint.add(&text);
            Some(api_key(&text, || shown(&key_file))?)
        }
        (None, None) => None,
    };
    let url = file.url.map(|url| url.parse()).transpose();
    let url = url.map_err(|source| ConfigError::Url { origin: shown(path), source })?;
    let project = project(file.project, || shown(path))?;
    Ok(Source { name: shown(path), url, key, project, warnings })
}

/// Reads a short file. A checkout may contain links to devices and pipes, which would never end.
fn read_text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    fs::File::open(path)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it has more than {MAX_FILE} bytes")));
    }
    Ok(text)
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
    let path = shown(path);
    (mode & 0o077 != 0).then(|| {
        format!("{path} contains an API key, and others can read it ({mode:04o}); run `chmod 600 {path}`")
    })
}
