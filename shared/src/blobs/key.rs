//! The keys of objects. Every key begins with its owner.

use domain::ids::{AssetId, ExportId, ImportId, MessageId, Owner, ProjectId, ProposalId, RunId};
use domain::log::{InstanceId, SessionId};
use uuid::Uuid;

use domain::chats::Thread;

/// The key of an object. It always begins with the owner; there is no other way to build it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobKey(pub(super) String);

impl BlobKey {
    /// All objects of an owner.
    #[must_use]
    pub fn everything(owner: &Owner) -> Self {
        Self(format!("{owner}/"))
    }

    /// An object of the search index of memory.
    #[must_use]
    pub fn memory(owner: &Owner, id: Uuid) -> Self {
        Self(format!("{owner}/memory/{}", id.simple()))
    }

    /// All objects of the index of a memory.
    #[must_use]
    pub fn memory_prefix(owner: &Owner) -> Self {
        Self(format!("{owner}/memory/"))
    }

    /// The archive of an export.
    #[must_use]
    pub fn export(owner: &Owner, export: ExportId) -> Self {
        Self(format!("{}{export}.zip", Self::exports(owner).0))
    }

    /// The archives of all exports.
    #[must_use]
    pub fn exports(owner: &Owner) -> Self {
        Self(format!("{owner}/exports/"))
    }

    /// The uploaded archive of the account's import.
    #[must_use]
    pub fn account_archive(owner: &Owner) -> Self {
        Self(format!("{owner}/imports/account.zip"))
    }

    /// An object of an owner, as [`Blobs::list`](super::Blobs::list) names it below [`BlobKey::everything`].
    #[must_use]
    pub fn listed(owner: &Owner, rest: &str) -> Self {
        Self(format!("{owner}/{rest}"))
    }

    /// A content of an asset, by its SHA-256. One key never has two contents.
    #[must_use]
    pub fn asset(owner: &Owner, asset: AssetId, sha256: &str) -> Self {
        Self(format!("{owner}/assets/{asset}/{sha256}"))
    }

    /// All contents of an asset.
    #[must_use]
    pub fn asset_prefix(owner: &Owner, asset: AssetId) -> Self {
        Self(format!("{owner}/assets/{asset}/"))
    }

    /// The content of a proposed asset.
    #[must_use]
    pub fn proposal(owner: &Owner, proposal: ProposalId) -> Self {
        Self(format!("{owner}/proposals/{proposal}"))
    }

    /// The content of a message that is too large for an item.
    #[must_use]
    pub fn message(owner: &Owner, thread: Thread, message: MessageId) -> Self {
        Self(format!("{}{message}", Self::messages(owner, thread).0))
    }

    /// An image of a message. `object` begins with the message's id, so the image is deleted together with the content.
    #[must_use]
    pub fn image(owner: &Owner, thread: impl Into<Thread>, object: &str) -> Self {
        Self(format!("{}{object}", Self::messages(owner, thread).0))
    }

    /// All message contents and images of a conversation.
    #[must_use]
    pub fn messages(owner: &Owner, thread: impl Into<Thread>) -> Self {
        match thread.into() {
            Thread::Chat(id) => Self(format!("{owner}/chats/{id}/")),
            Thread::Action(id) => Self(format!("{owner}/actions/{id}/")),
        }
    }

    /// All objects of a run.
    #[must_use]
    pub fn run_prefix(owner: &Owner, run: RunId) -> Self {
        Self(format!("{owner}/runs/{run}/"))
    }

    /// A part of a step that is too large for an item: its reply, or the result of one of its calls.
    #[must_use]
    pub fn step(owner: &Owner, run: RunId, step: u32, call: Option<u32>, fence: u64) -> Self {
        let call = call.map(|call| format!("-{call:04}")).unwrap_or_default();
        Self(format!("{owner}/runs/{run}/{step:04}{call}-{fence}"))
    }

    /// All objects of a project.
    #[must_use]
    pub fn project_prefix(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/"))
    }

    /// All objects of a log.
    #[must_use]
    pub fn log_prefix(owner: &Owner, session: &SessionId, agent: &InstanceId) -> Self {
        Self(format!("{owner}/logs/{session}/{agent}/"))
    }

    /// A log line that is too large for an item.
    #[must_use]
    pub fn log_line(owner: &Owner, session: &SessionId, agent: &InstanceId, blob: Uuid) -> Self {
        Self(format!("{owner}/logs/{session}/{agent}/lines/{}", blob.simple()))
    }

    /// A segment with lines of a log.
    #[must_use]
    pub fn log_segment(owner: &Owner, session: &SessionId, agent: &InstanceId, blob: Uuid) -> Self {
        Self(format!("{owner}/logs/{session}/{agent}/segments/{}", blob.simple()))
    }

    /// A segment with lines that an import created. The key is the same for every retry. It cannot collide with a
    /// session, because no session name contains a dot.
    #[must_use]
    pub fn imported_segment(
        owner: &Owner,
        import: ImportId,
        session: &SessionId,
        agent: &InstanceId,
        first: u64,
    ) -> Self {
        Self(format!("{}{first:012}", Self::imported_log(owner, import, session, agent).0))
    }

    /// All segments that an import created for one log.
    #[must_use]
    pub fn imported_log(owner: &Owner, import: ImportId, session: &SessionId, agent: &InstanceId) -> Self {
        Self(format!("{}{session}/{agent}/", Self::imported_logs(owner, import).0))
    }

    /// All segments that an import created.
    #[must_use]
    pub fn imported_logs(owner: &Owner, import: ImportId) -> Self {
        Self(format!("{owner}/logs/.imports/{import}/"))
    }

    /// An uploaded archive of log files to import. The upload triggers the indexer.
    #[must_use]
    pub fn log_archive(owner: &Owner, import: ImportId) -> Self {
        Self(format!("{owner}/logs/.imports/{import}.zip"))
    }

    /// The content of theme files with this SHA-256.
    #[must_use]
    pub fn theme_file(owner: &Owner, project: ProjectId, sha256: &str) -> Self {
        Self(format!("{owner}/projects/{project}/files/{sha256}"))
    }

    /// A theme's map, by the SHA-256 of the blob.
    #[must_use]
    pub fn theme_map(owner: &Owner, project: ProjectId, sha256: &str) -> Self {
        Self(format!("{owner}/projects/{project}/maps/{sha256}"))
    }

    /// All contents of a theme's files.
    #[must_use]
    pub fn theme_files(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/files/"))
    }

    /// All maps of a theme.
    #[must_use]
    pub fn theme_maps(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/maps/"))
    }

    /// A model's notes about a theme's files, as a worker saved them once.
    #[must_use]
    pub fn theme_notes(owner: &Owner, project: ProjectId, notes: Uuid) -> Self {
        Self(format!("{}{}", Self::all_theme_notes(owner, project).0, notes.simple()))
    }

    /// All notes about a theme.
    #[must_use]
    pub fn all_theme_notes(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/notes/"))
    }

    /// A text of a living document, as it was written once.
    #[must_use]
    pub fn living_text(owner: &Owner, project: ProjectId, text: Uuid) -> Self {
        Self(format!("{}{}", Self::living_texts(owner, project).0, text.simple()))
    }

    /// All texts of the living documents of a project.
    #[must_use]
    pub fn living_texts(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/living/"))
    }

    /// What a synchronisation of living documents has brought so far.
    #[must_use]
    pub fn docs_draft(owner: &Owner, project: ProjectId, draft: Uuid) -> Self {
        Self(format!("{owner}/projects/{project}/docs-sync/{}", draft.simple()))
    }

    /// The edits of a change set, as they were written once.
    #[must_use]
    pub fn change_set(owner: &Owner, project: ProjectId, edits: Uuid) -> Self {
        Self(format!("{owner}/projects/{project}/changes/{}", edits.simple()))
    }

    /// An uploaded theme archive to import. The upload triggers the indexer.
    #[must_use]
    pub fn theme_archive(owner: &Owner, project: ProjectId, import: ImportId) -> Self {
        Self(format!("{owner}/projects/{project}/imports/{import}.zip"))
    }

    /// An empty object that is written whenever files have changed. The upload triggers the indexer.
    #[must_use]
    pub fn theme_change(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/theme.changed"))
    }

    /// The owner of a key and the meaning of its upload. `None` for keys whose upload has no meaning.
    #[must_use]
    pub fn parse_upload(key: &str) -> Option<(Owner, Upload)> {
        let import = |archive: &str| archive.strip_suffix(".zip")?.parse().ok();
        let parts: Vec<&str> = key.split('/').collect();
        let (owner, what) = match parts[..] {
            [owner, "projects", project, "theme.changed"] => {
                (owner, Upload::ThemeChanged(project.parse().ok()?))
            }
            [owner, "projects", project, "imports", archive] => {
                (owner, Upload::Theme(project.parse().ok()?, import(archive)?))
            }
            [owner, "logs", ".imports", archive] => (owner, Upload::Logs(import(archive)?)),
            _ => return None,
        };
        Some((Owner::new(owner).ok()?, what))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What an upload asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upload {
    /// Index the changed files of a theme.
    ThemeChanged(ProjectId),
    /// Import an archive as a project's theme.
    Theme(ProjectId, ImportId),
    /// Import an archive of log files.
    Logs(ImportId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_determines_the_meaning_of_an_upload() {
        let (owner, project) = (Owner::new("auth0|me").unwrap(), ProjectId::DEFAULT);
        let import = ImportId::from_uuid(uuid::Uuid::from_u128(7));
        let (session, agent) = (".imports".parse::<SessionId>(), "arch-1".parse().unwrap());
        assert!(session.is_err(), "no session's logs lie among the imports");
        let session = "s1".parse().unwrap();
        for (key, meaning) in [
            (BlobKey::theme_change(&owner, project), Some(Upload::ThemeChanged(project))),
            (BlobKey::theme_archive(&owner, project, import), Some(Upload::Theme(project, import))),
            (BlobKey::log_archive(&owner, import), Some(Upload::Logs(import))),
            (BlobKey::theme_file(&owner, project, "00"), None),
            (BlobKey::imported_segment(&owner, import, &session, &agent, 1), None),
        ] {
            let meaning = meaning.map(|meaning| (owner.clone(), meaning));
            assert_eq!(BlobKey::parse_upload(key.as_str()), meaning, "{key:?}");
        }
        for key in [
            "",
            "x",
            "me/projects/prj_x/theme.changed",
            "me/projects/default/imports/x.zip",
            "a#b/projects/default/theme.changed",
            "me/logs/.imports/x.zip",
            "me/logs/s1/imp_00000000000000000000000000000007.zip",
        ] {
            assert_eq!(BlobKey::parse_upload(key), None, "{key}");
        }
    }
}
