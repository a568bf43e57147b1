//! Projects with their context documents and themes.

use domain::context::{VERSION_DAYS, Workflow};
use domain::ids::{ChatId, ImportId, ProjectId};
use domain::living::{Changelog, DocName};
use domain::projects::Project;
use domain::projects::enrichment::Enrichment;
use domain::projects::theme::{Import, ThemeFile, ThemeState};
use domain::text::names;
use jiff::SignedDuration;
use serde_json::Value;

use super::{KeptOrNot, Location, Named, keep, naming, read, valid, without};
use crate::blobs::BlobKey;
use crate::store::agents::Mark;
use crate::store::keys;
use crate::store::projects::documents::{DocumentVersion, StoredDocument};
use crate::store::projects::living::LivingVersion;
use crate::store::projects::themes::IMPORT_KEPT;

pub(super) fn project(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let mut project: Project = read(record)?;
    project.name = names::canonical(&project.name);
    valid(project.check())?;
    keep(keys::project(place.owner, project.project_id), &project)
}

/// A mark that a conversation belongs to the project.
pub(super) fn chat(place: &Location<'_>, project: &ProjectId, _: &Value) -> KeptOrNot {
    let Ok(chat) = place.sk.parse::<ChatId>() else { return Ok(None) };
    keep(keys::project_chat(place.owner, *project, chat), &Mark {})
}

pub(super) fn document(place: &Location<'_>, project: &ProjectId, record: &Value) -> KeptOrNot {
    let kept: StoredDocument = read(record)?;
    valid(kept.document.clone().validated())?;
    keep(keys::document(place.owner, *project, &kept.workflow), &kept)
}

pub(super) fn document_version(
    place: &Location<'_>,
    project: &ProjectId,
    workflow: &Workflow,
    record: &Value,
) -> KeptOrNot {
    let version: DocumentVersion = read(record)?;
    let key = keys::document_version(place.owner, *project, workflow, version.version);
    place.expiring(key, &version, version.expires_at, SignedDuration::ZERO)
}

pub(super) fn document_text(
    place: &Location<'_>,
    _: &ProjectId,
    workflow: &Workflow,
    record: &Value,
) -> KeptOrNot {
    let kept: StoredDocument = read(record)?;
    if kept.workflow != *workflow {
        return Err("does not belong to its key".to_owned());
    }
    valid(kept.document.clone().validated())?;
    place.expiring(place.key(), &kept, place.now, SignedDuration::from_hours(24 * VERSION_DAYS))
}

pub(super) fn docs_changelog(place: &Location<'_>, project: &ProjectId, record: &Value) -> KeptOrNot {
    let changelog: Changelog = read(record)?;
    valid(changelog.check())?;
    keep(keys::docs_changelog(place.owner, *project), &changelog)
}

pub(super) fn living_document(place: &Location<'_>, project: &ProjectId, record: &Value) -> KeptOrNot {
    let version: LivingVersion = read(record)?;
    let key = keys::living_document(place.owner, *project, &version.name);
    with_text(place, project, &version, keep(key, &version))
}

pub(super) fn living_version(
    place: &Location<'_>,
    project: &ProjectId,
    name: &DocName,
    record: &Value,
) -> KeptOrNot {
    let version: LivingVersion = read(record)?;
    if version.name != *name {
        return Err("does not belong to its key".to_owned());
    }
    let key = keys::living_version(place.owner, *project, name, version.version);
    with_text(place, project, &version, keep(key, &version))
}

/// A version of a living document is kept only with its text.
fn with_text(
    place: &Location<'_>,
    project: &ProjectId,
    version: &LivingVersion,
    kept: KeptOrNot,
) -> KeptOrNot {
    valid(version.check())?;
    let key = BlobKey::living_text(place.owner, *project, version.text);
    naming(kept, vec![Named { key, bytes: Some(version.bytes), lines: None }])
}

pub(super) fn theme(place: &Location<'_>, project: &ProjectId, record: &Value) -> KeptOrNot {
    let (owner, state): (_, ThemeState) = (place.owner, read(record)?);
    let map = state.map.iter().map(|map| BlobKey::theme_map(owner, *project, &map.sha256).into());
    let map = map.collect();
    // The indexer of the other deployment does not work here. Without its object, the map is built again.
    let kept = keep(keys::theme(owner, *project), &ThemeState { lease: None, ..state });
    without(naming(kept, map), "map")
}

pub(super) fn enrichment(place: &Location<'_>, project: &ProjectId, record: &Value) -> KeptOrNot {
    let (owner, enrichment): (_, Enrichment) = (place.owner, read(record)?);
    let notes = enrichment.notes.map(|notes| BlobKey::theme_notes(owner, *project, notes).into());
    let kept = keep(keys::enrichment(owner, *project), &Enrichment { hold: None, ..enrichment });
    without(naming(kept, notes.into_iter().collect()), "notes")
}

pub(super) fn theme_import(place: &Location<'_>, project: &ProjectId, record: &Value) -> KeptOrNot {
    let import: Import = read(record)?;
    if !import.state.is_final() {
        return Ok(None);
    }
    let key = keys::theme_import(place.owner, *project, import.import_id);
    place.expiring(key, &import, place.now, IMPORT_KEPT)
}

pub(super) fn theme_file(
    place: &Location<'_>,
    project: &ProjectId,
    generation: &ImportId,
    record: &Value,
) -> KeptOrNot {
    let (owner, file): (_, ThemeFile) = (place.owner, read(record)?);
    let key = BlobKey::theme_file(owner, *project, &file.sha256);
    let object = Named { key, bytes: Some(file.bytes), lines: None };
    naming(keep(keys::theme_file(owner, *project, *generation, &file.path), &file), vec![object])
}
