//! `docs pull` and `docs push`: the files of a working tree and the stored documents together.
//!
//! Neither overwrites a change of the other side. A text that has changed on both sides is a conflict: it is shown, and nothing is written
//! until the person has merged it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Docs;
use super::files::{self, ConflictFiles, Local};
use super::git::{Repository, folder};
use super::state::{Compared, Seen, State, Version, compare};
use crate::Failure;
use crate::context::edit::difference;
use crate::output::{self, shown};
use crate::server::ServerError;
use crate::shell::api::{parsed, patiently, unexpected};
use crate::shell::values::Fields;
use crate::url::segment;

/// A document as it is stored.
#[derive(Clone, Debug)]
struct Stored {
    version: Version,
    /// If it had to be read.
    text: Option<String>,
}

/// A document on both sides.
pub struct Document {
    pub name: String,
    here: Local,
    there: Option<Stored>,
    seen: Seen,
    pub compared: Compared,
}

impl Document {
    /// What is wrong with the file.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        match &self.here {
            Local::Unusable(why) => Some(why),
            _ => None,
        }
    }
}

/// The working tree and the project together.
pub struct Exchange<'d> {
    docs: &'d Docs,
    repository: Repository,
    state: State,
    conflicts: ConflictFiles,
    /// What was found wrong, a paragraph each.
    faults: Vec<String>,
    is_idle: bool,
}

impl<'d> Exchange<'d> {
    /// # Errors
    /// If the current folder is in no working tree.
    pub fn open(docs: &'d Docs) -> Result<Self, Failure> {
        let repository = Repository::find()?;
        let state = State::open(&repository, docs.place())?;
        let conflicts = ConflictFiles::new(folder(repository.own_dir()?.join("conflicts"))?);
        Ok(Self { docs, repository, state, conflicts, faults: Vec::new(), is_idle: true })
    }

    /// The documents of both sides by their names, and Markdown files that could be ones.
    ///
    /// # Errors
    /// If the server does not answer, or a folder can't be read.
    pub fn documents(&self, overview: &Value) -> Result<Vec<Document>, Failure> {
        let rows = overview.items("documents");
        let mut names: BTreeSet<String> = rows.iter().map(|row| row.text("name").to_owned()).collect();
        if let Some(name) = names.iter().find(|name| !files::is_name(name)) {
            return Err(Failure::Message(format!(
                "the server has a document `{name}`, which is no name of a file"
            )));
        }
        names.extend(self.state.names().cloned());
        names.extend(files::markdown(&self.repository.root)?);
        let row = |name: &str| rows.iter().find(|row| row.text("name") == name);
        names.into_iter().map(|name| self.document(row(&name), name)).collect()
    }

    fn document(&self, row: Option<&Value>, name: String) -> Result<Document, Failure> {
        let seen = self.state.seen(&name);
        let there = match row {
            None => None,
            Some(row) => {
                let is_it = |version: &&Version| {
                    row["version"] == version.version && row.text("written_at") == version.written_at
                };
                match [&seen.together, &seen.shown].into_iter().flatten().find(is_it) {
                    Some(version) => Some(Stored { version: version.clone(), text: None }),
                    None => self.stored(&name, None)?,
                }
            }
        };
        let here = files::read(&self.repository.root, &name);
        let together = seen.together.as_ref().map(|version| version.sha256.as_str());
        let compared = compare(&here, there.as_ref().map(|there| there.version.sha256.as_str()), together);
        Ok(Document { name, here, there, seen, compared })
    }

    /// Reads a stored document: the newest version, or this one. `None` if there is none.
    fn stored(&self, name: &str, version: Option<u64>) -> Result<Option<Stored>, Failure> {
        let version = version.map(|version| version.to_string());
        let path = self.docs.path(&format!("/{}", segment(name)));
        let query = [("version", version.as_deref())];
        match patiently(|| self.docs.api.server.get(&path, &query)) {
            Ok(answer) => stored(&parsed(&answer.body)?).map(Some),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The documents that are named, or all.
    fn chosen(&self, names: &[String]) -> Result<Vec<Document>, Failure> {
        if let Some(name) = names.iter().find(|name| !files::is_name(name)) {
            return Err(Failure::Message(format!(
                "`{name}` is not the name of a document: a file at the top of the repository, of letters, digits, `-`, `_` and `.`"
            )));
        }
        let mut all = self.documents(&self.docs.overview()?)?;
        if names.is_empty() {
            return Ok(all);
        }
        all.retain(|document| names.contains(&document.name));
        for name in names {
            if !all.iter().any(|document| document.name == *name) {
                let document = self.document(None, name.clone())?;
                if document.here == Local::Absent {
                    return Err(Failure::Message(format!("there is no {name}, here or there")));
                }
                all.push(document);
            }
        }
        Ok(all)
    }

    /// Takes over what has changed there.
    ///
    /// # Errors
    /// If there is a conflict, or if the server does not answer. The other documents are pulled.
    pub fn pull(mut self, names: &[String]) -> Result<(), Failure> {
        for document in self.chosen(names)? {
            let is_named = names.contains(&document.name);
            let name = &document.name;
            match document.compared {
                Compared::Same => self.is_together(&document)?,
                Compared::ChangedThere => self.take(&document)?,
                Compared::OnlyThere if is_named || files::is_plain_text(name) => self.take(&document)?,
                Compared::DeletedHere if is_named => self.take(&document)?,
                Compared::OnlyThere => self.told(&format!(
                    "{name}: only there, and its name is not that of a text; `lamplighter docs pull {name}` takes it\n"
                ))?,
                Compared::Nowhere => self.forget(&document)?,
                Compared::DeletedHere => self.told(&format!(
                    "{name}: deleted here; `lamplighter docs pull {name}` brings it back\n"
                ))?,
                Compared::ChangedHere => self.told(&format!(
                    "{name}: changed here; `lamplighter docs push {name}` stores it\n"
                ))?,
                Compared::DeletedThere => {
                    self.told(&format!("{name}: deleted there; the file is kept\n"))?;
                }
                Compared::OnlyHere if is_named => self.told(&format!("{name}: only here\n"))?,
                Compared::OnlyHere => {}
                Compared::Both => self.conflict(&document)?,
                Compared::Unusable => self.unusable(&document),
            }
        }
        self.end()
    }

    /// Stores what has changed here. `merged` says that the files hold what was shown in a conflict.
    ///
    /// # Errors
    /// If there is a conflict, or if the server refuses a text or does not answer.
    pub fn push(mut self, names: &[String], merged: bool) -> Result<(), Failure> {
        for document in self.chosen(names)? {
            let is_named = names.contains(&document.name);
            let name = &document.name;
            match document.compared {
                Compared::Same => self.is_together(&document)?,
                Compared::ChangedHere => self.store(&document)?,
                Compared::OnlyHere | Compared::DeletedThere if is_named => self.store(&document)?,
                Compared::OnlyHere => {}
                Compared::DeletedThere => self.told(&format!(
                    "{name}: deleted there; `lamplighter docs push {name}` creates it again\n"
                ))?,
                Compared::Nowhere => self.forget(&document)?,
                Compared::DeletedHere => {
                    self.told(&format!("{name}: deleted here; it is kept there\n"))?;
                }
                Compared::OnlyThere | Compared::ChangedThere => self.told(&format!(
                    "{name}: {}; `lamplighter docs pull {name}` takes it\n",
                    document.compared.words()
                ))?,
                Compared::Both if merged && is_shown(&document) => self.store(&document)?,
                Compared::Both => self.conflict(&document)?,
                Compared::Unusable => self.unusable(&document),
            }
        }
        self.end()
    }

    fn told(&mut self, text: &str) -> Result<(), Failure> {
        self.is_idle = false;
        Ok(output::print(text)?)
    }

    fn end(self) -> Result<(), Failure> {
        if !self.faults.is_empty() {
            return Err(Failure::Message(self.faults.join("\n\n")));
        }
        if self.is_idle {
            output::print("everything is the same here and there\n")?;
        }
        Ok(())
    }

    fn is_together(&mut self, document: &Document) -> Result<(), Failure> {
        let version = document.there.as_ref().map(|there| there.version.clone());
        self.remember(&document.name, version)
    }

    fn remember(&mut self, name: &str, together: Option<Version>) -> Result<(), Failure> {
        self.conflicts.remove(name);
        self.state.remember(name, Some(Seen { together, shown: None }))
    }

    /// It is gone on both sides.
    fn forget(&mut self, document: &Document) -> Result<(), Failure> {
        self.state.remember(&document.name, None)
    }

    /// Writes the stored text into the file.
    fn take(&mut self, document: &Document) -> Result<(), Failure> {
        let Document { name, here, there, .. } = document;
        let there = match there {
            Some(Stored { version, text: Some(text) }) => {
                Some(Stored { version: version.clone(), text: Some(text.clone()) })
            }
            Some(_) => self.stored(name, None)?,
            None => None,
        };
        let Some(Stored { version, text: Some(text) }) = there else {
            return self.told(&format!("{name}: deleted there meanwhile; nothing was changed here\n"));
        };
        files::write(&self.repository.root, name, here, &text)?;
        let number = version.version;
        self.remember(name, Some(version))?;
        self.told(&format!("{name}: pulled version {number}\n"))
    }

    /// Stores the text of the file as the version after the one that was seen.
    fn store(&mut self, document: &Document) -> Result<(), Failure> {
        let Document { name, here: Local::Text { text, sha256, .. }, there, .. } = document else {
            return Ok(());
        };
        let path = self.docs.path(&format!("/{}", segment(name)));
        // Version 0 means that there is no document.
        let etag = format!("\"{}\"", there.as_ref().map_or(0, |there| there.version.version));
        let body = json!({ "content": text });
        let there = match patiently(|| self.docs.api.server.put_json(&path, &body, Some(&etag))) {
            Ok(answer) => stored(&parsed(&answer.body)?)?,
            Err(error @ ServerError::Refused { status: 409, .. })
                if error.conflict() == Some("version_conflict") =>
            {
                // It is no conflict if our own text is there because an answer was lost.
                match self.stored(name, None)? {
                    Some(there) if there.version.sha256 == *sha256 => there,
                    there => {
                        let now = Document {
                            name: name.clone(),
                            here: document.here.clone(),
                            there,
                            seen: document.seen.clone(),
                            compared: Compared::Both,
                        };
                        return self.conflict(&now);
                    }
                }
            }
            Err(error) => {
                return Err(Failure::Message(format!("{name}: {}", Failure::from(error))));
            }
        };
        let number = there.version.version;
        self.remember(name, Some(there.version))?;
        self.told(&format!("{name}: stored as version {number}\n"))
    }

    fn unusable(&mut self, document: &Document) {
        if document.there.is_some() || document.seen.together.is_some() {
            let why = document.fault().unwrap_or_default();
            self.faults.push(format!("{}: {why}; nothing was read or written", document.name));
        }
    }

    /// Writes the other texts to files, and says how to continue.
    fn conflict(&mut self, document: &Document) -> Result<(), Failure> {
        let Document { name, here, seen, .. } = document;
        let there = match &document.there {
            Some(there) if there.text.is_some() => Some(there.clone()),
            _ => self.stored(name, None)?,
        };
        let (Local::Text { text: mine, .. }, Some(Stored { version, text: Some(theirs) })) = (here, there)
        else {
            self.faults.push(format!("{name}: it was deleted there meanwhile; nothing was changed"));
            return Ok(());
        };
        let base = match &seen.together {
            Some(base) => {
                self.stored(name, Some(base.version))?.filter(|old| old.version.sha256 == base.sha256)
            }
            None => None,
        };
        let base = base.and_then(|base| base.text);
        let mut texts = vec![("theirs", theirs.as_str())];
        texts.extend(base.as_deref().map(|base| ("base", base)));
        let paths = self.conflicts.write(name, &texts)?;
        let diff = match &base {
            Some(base) => difference(("as you saw it", base), ("as it is there now", &theirs)),
            None => difference(("your file", mine), ("as it is there", &theirs)),
        };
        let mut told = format!(
            "{name} has changed here and there; nothing was overwritten\n\n{diff}\nyour text:       {}\n",
            shown(&self.repository.root.join(name))
        );
        for (role, what) in [("theirs", "the other text: "), ("base", "the text before:")] {
            if let Some(path) = paths.get(role) {
                told.push_str(&format!("{what} {}\n", shown(path)));
            }
        }
        told.push_str(&format!(
            "to continue:     merge the other text into yours, then `lamplighter docs push --merged {name}`\n\
             to take theirs:  delete your file, then `lamplighter docs pull {name}`"
        ));
        self.faults.push(told);
        self.state.remember(name, Some(Seen { shown: Some(version), ..seen.clone() }))
    }
}

/// Whether the stored version is the one that was shown in the conflict.
fn is_shown(document: &Document) -> bool {
    let there = document.there.as_ref().map(|there| &there.version);
    there.is_some() && there == document.seen.shown.as_ref()
}

/// A document of the API.
fn stored(view: &Value) -> Result<Stored, Failure> {
    let (Some(version), Some(content)) = (view["version"].as_u64(), view["content"].as_str()) else {
        return Err(unexpected());
    };
    let (text, sha256) = files::stored(content);
    let written_at = view.text("written_at").to_owned();
    Ok(Stored { version: Version { version, written_at, sha256 }, text: Some(text) })
}
