//! Change sets: edits of a theme that nobody else sees until they are applied.
//!
//! A change set is a draft over the theme. Its edits are one object in the bucket, and its record names that object, so an edit is stored
//! whole or not at all. Two writers of one change set meet at the record's version: the second one reads what the first one wrote. The
//! theme below may change meanwhile. What only others have changed is taken over; what both have changed is a conflict, which a person
//! decides.
//!
//! - `record`: what is stored and shown
//! - `draft`: the edits, from the bucket and back
//! - [`edit`], [`show`], [`apply`], [`revert`], [`resolve`]: what people, assistants and agents do with it

mod draft;
mod lint;
mod reads;
mod record;
mod requests;

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::ids::{ChangeSetId, Owner, ProjectId};
use domain::tools::theme_tools;
use domain::validate::FieldErrors;
use futures::FutureExt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use shared::context::{Cx, StagedObjects};
use shared::error::{Error, Result};
use shared::flows::existing;
use shared::flows::page::{self, Page, PageQuery};
use shared::store::table::{Extras, Order, Write, item};
use shared::store::{Once, Tries, Versioned, keys};
use theme_edit::{Call, Compared, Draft, EditError, Lint, Outcome, Problem, State, Tree, Version};
use utoipa::ToSchema;

use self::draft::Loaded;
pub use self::reads::{Looked, Reading, Shown, look, read};
pub(crate) use self::reads::{index, known, texts};
use self::record::Stored;
pub use self::record::{ChangeSet, ChangeSetFile, ChangeSetState, FileChangeKind, MadeBy, Plan};
pub use self::requests::asked;
use crate::check::NOT_CHECKABLE;
use crate::files::{self, After, FileChange, MAX_WRITTEN};

/// The most open change sets of a project. Old ones are deleted by themselves.
const MAX_OPEN: usize = 200;

/// The most edits of a change set, also those that were taken back. Each stays in its journal.
const MAX_EDITS: u64 = 2_000;

/// The most change sets that lookups know.
const MAX_RECALLED: usize = theme::history::MAX_CHANGES;

/// How many pages of change sets are read to find an open one. Each has as many as there may be open ones.
const MAX_PAGES: usize = 5;

/// The most calls of one edit.
pub const MAX_CALLS: usize = 50;

/// The most bytes of text of all conflicts, on the page of a change set and in an error. An error is kept for a replay, if it is short.
const MAX_SIDES: usize = 4 << 20;
const MAX_SIDES_IN_ERROR: usize = 128 << 10;

/// The most problems that an answer lists.
const MAX_PROBLEMS: usize = 50;

/// A new change set.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"title": "A larger header"}))]
pub struct NewChangeSet {
    /// What it is for. Up to 200 characters. Default: "Changes".
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// What was asked for, in a person's words, if that is more than the title. Of more than 500 characters, the rest is not kept.
    pub request: Option<String>,
}

/// Edits of a change set: all of them are made, or none.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"calls": [
    {"tool": "search_replace", "path": "snippets/price.liquid", "version": "5f70bf18a086",
     "replacements": [{"old": "| money }}", "new": "| money_with_currency }}"}]},
]}))]
pub struct Edits {
    /// 1 to 50 calls. Line numbers and versions are those before all of them.
    #[schema(min_items = 1, max_items = 50)]
    pub calls: Vec<Call>,
}

/// What edits have done.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Edited {
    /// The change set after the edits.
    pub change_set: ChangeSet,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What the edits have made wrong, and was not wrong before. At most 50 problems; what Shopify would refuse comes first.
    #[serde(flatten)]
    pub lint: Lint,
    /// Why the edits were not checked: the theme is too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_checked: Option<String>,
    /// Whether the change set is one whose edits are applied at once.
    #[serde(skip)]
    pub at_once: bool,
}

/// A change set with its edits.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChangeSetDetail {
    #[serde(flatten)]
    pub change_set: ChangeSet,
    /// The edits as a unified diff. `git apply` takes it. Bytes that are no UTF-8 are shown as `�`; `…/diff` has them.
    pub diff: String,
    /// What the edits would make wrong. At most 50; what Shopify would refuse comes first.
    pub problems: Vec<Problem>,
    /// Why the edits were not checked: the theme is too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_checked: Option<String>,
    /// The files that both the change set and somebody else have changed. It can't be applied until each is decided. Of long texts, the
    /// beginning.
    pub conflicts: Vec<Compared>,
}

/// What to apply.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// The hash that the change set had when its diff was read.
    pub hash: String,
}

/// What becomes of the files that somebody else has changed, too.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resolve {
    /// Join changes of one file that do not touch each other.
    pub merge: bool,
    /// For each other conflict, by path: what the file becomes.
    pub decisions: BTreeMap<String, Side>,
}

/// Which text a file gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// As the change set has it.
    Ours,
    /// As the theme has it.
    Theirs,
}

/// A project's theme, and who works on it.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub cx: &'a Cx,
    pub owner: &'a Owner,
    pub project: ProjectId,
}

/// Which change set a caller means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This one.
    Id(ChangeSetId),
    /// This one. It begins with the first edit.
    Own(ChangeSetId),
    /// The newest open one of the same maker. The first edit begins one.
    Newest,
}

/// Begins a change set.
///
/// # Errors
/// 404 if the project does not exist, 400 if the title is too long, 409 if the project has too many open ones.
pub async fn create(place: Place<'_>, once: &Once, input: NewChangeSet, by: MadeBy) -> Result<ChangeSet> {
    let title = record::titled(input.title.as_deref())?;
    existing::project(place.cx, place.owner, place.project).await?;
    must_have_room(place).await?;
    let mut stored = begin(place, ChangeSetId::from_uuid(place.cx.clock.uuid()), title, by);
    let request = input.request.or(input.title).map(|request| requests::shortened(&request));
    stored.set.request = request.filter(|request| !request.is_empty());
    let mut writes = vec![write_of(place, &mut stored, 0)?];
    writes.extend(shared::store::Store::project_exists(place.owner, place.project));
    if !place.cx.store.commit(once, writes).await?.done() {
        return Err(Error::NotFound("project"));
    }
    Ok(stored.set)
}

/// # Errors
/// 409 if the project has too many open change sets.
async fn must_have_room(place: Place<'_>) -> Result<()> {
    let mut open = 0;
    newest_where(place, |stored| {
        open += usize::from(stored.is_open());
        open >= MAX_OPEN
    })
    .await?;
    if open >= MAX_OPEN {
        let told = format!("the project has {MAX_OPEN} open change sets: apply or delete some");
        return Err(Error::conflict("too_many_change_sets", told));
    }
    Ok(())
}

/// An empty change set that is not stored yet.
fn begin(place: Place<'_>, id: ChangeSetId, title: String, by: MadeBy) -> Stored {
    let now = place.cx.clock.now();
    let set = ChangeSet {
        change_set_id: id,
        title,
        request: None,
        plan: None,
        state: ChangeSetState::Open,
        by,
        created_at: now,
        updated_at: now,
        version: 0,
        edits: 0,
        files: Vec::new(),
        hash: Draft::new("", Tree::default()).changes().hash(),
        applied_at: None,
        reverts: None,
    };
    Stored { set, object: None, at_once: false }
}

/// The write of a change set over the record that was read at `version`. Sets the version that it then has.
fn write_of(place: Place<'_>, stored: &mut Stored, version: u64) -> Result<Write> {
    stored.set.version = version + 1;
    let key = keys::change_set(place.owner, place.project, stored.set.change_set_id);
    Ok(Write::over(key, version, item(stored, &Extras::expiring(stored.expires_at()))?))
}

/// Change sets, newest first.
///
/// # Errors
/// 404 if the project does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn list(place: Place<'_>, query: &PageQuery) -> Result<Page<ChangeSet>> {
    existing::project(place.cx, place.owner, place.project).await?;
    let range = keys::change_sets(place.owner, place.project);
    let now = place.cx.clock.now();
    let newest = |after: Option<String>, limit| {
        let range = range.clone();
        async move { place.cx.store.query::<Stored>(&range, after.as_deref(), limit, Order::Newest).await }
            .boxed()
    };
    let name = format!("change sets of {}", place.project);
    let found = page::filtered(place.owner, &name, query, newest, |stored| stored.expires_at() > now).await?;
    Ok(found.map(|stored| stored.value.set))
}

/// The newest change sets that were applied.
pub(crate) async fn applied(place: Place<'_>) -> Result<Vec<ChangeSet>> {
    let mut sets = Vec::new();
    newest_where(place, |stored| {
        sets.extend(stored.set.applied_at.map(|_| stored.set.clone()));
        sets.len() >= MAX_RECALLED
    })
    .await?;
    Ok(sets)
}

/// The newest change set for which `is_it` is true.
async fn newest_where(
    place: Place<'_>,
    mut is_it: impl FnMut(&Stored) -> bool,
) -> Result<Option<Versioned<Stored>>> {
    let range = keys::change_sets(place.owner, place.project);
    let now = place.cx.clock.now();
    let mut after: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let found = place.cx.store.query::<Stored>(&range, after.as_deref(), MAX_OPEN, Order::Newest).await?;
        let mut stored = found.items.into_iter().map(|(_, stored)| stored);
        if let Some(stored) = stored.find(|stored| stored.value.expires_at() > now && is_it(&stored.value)) {
            return Ok(Some(stored));
        }
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    Ok(None)
}

/// The id of a client's next change set. Two of its calls that come at once, before there is one, must begin the same: the second one is
/// refused by the first one's record, and finds it. So the id is made of the client, of the minute and of its change set before, not of
/// chance.
fn next_id(place: Place<'_>, by: MadeBy, last: Option<ChangeSetId>) -> ChangeSetId {
    let minute = place.cx.clock.now().as_millisecond() / 60_000 * 60_000;
    let digest = Sha256::digest(format!("{} {} {by:?} {minute} {last:?}", place.owner, place.project));
    let random: [u8; 10] = std::array::from_fn(|at| digest[at]);
    // Ids are ordered by time.
    let after = last.and_then(|id| id.uuid().get_timestamp()).map_or(0, |time| {
        let (seconds, nanos) = time.to_unix();
        seconds * 1_000 + u64::from(nanos) / 1_000_000 + 1
    });
    let millis = u64::try_from(minute).unwrap_or_default().max(after);
    ChangeSetId::from_uuid(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
}

/// The stored change set that a caller means, with the version of its record. Version 0: it is not stored yet.
async fn find(place: Place<'_>, target: Target, by: MadeBy) -> Result<(Stored, u64)> {
    let now = place.cx.clock.now();
    let (Target::Id(id) | Target::Own(id)) = target else {
        let mut last = None;
        let own = newest_where(place, |stored| {
            let is_own = stored.set.by == by;
            if is_own {
                last.get_or_insert(stored.set.change_set_id);
            }
            is_own && stored.is_open()
        });
        return match own.await? {
            Some(stored) => Ok((stored.value, stored.version)),
            None => Ok((begin(place, next_id(place, by, last), record::titled(None)?, by), 0)),
        };
    };
    let key = keys::change_set(place.owner, place.project, id);
    let stored = place.cx.store.get::<Stored>(&key).await?.filter(|stored| stored.value.expires_at() > now);
    match (stored, target) {
        (Some(stored), _) => Ok((stored.value, stored.version)),
        (None, Target::Own(id)) => {
            existing::project(place.cx, place.owner, place.project).await?;
            Ok((begin(place, id, record::titled(None)?, by), 0))
        }
        (None, _) => Err(Error::NotFound("change set")),
    }
}

/// The change set that a caller means, with its edits, and the version of its record.
async fn load(place: Place<'_>, target: Target, by: MadeBy) -> Result<(Loaded, u64)> {
    let mut tries = Tries::default();
    loop {
        let (stored, version) = find(place, target, by).await?;
        match Loaded::read(place, stored).await? {
            Some(loaded) => return Ok((loaded, version)),
            // Another edit has replaced the object since its name was read.
            None => tries.next().await?,
        }
    }
}

/// What edits have done, and the write that stores it. `None`: nothing has to be stored.
pub struct Prepared {
    pub edited: Edited,
    pub write: Option<Write>,
    pub objects: StagedObjects,
}

/// Makes edits, without storing them. The inner error is the reason of the edit engine. Whoever stores the write later has to repeat this
/// if it is refused, because another edit was faster.
///
/// # Errors
/// 404 if the change set does not exist, 409 if it was applied, 400 if the edits break a limit.
pub async fn prepare(
    place: Place<'_>,
    target: Target,
    by: MadeBy,
    calls: &[Call],
) -> Result<std::result::Result<Prepared, EditError>> {
    if !(1..=MAX_CALLS).contains(&calls.len()) {
        let told = format!("must have 1 to {MAX_CALLS} entries, has {}", calls.len());
        return Err(FieldErrors::one("calls", told).into());
    }
    let (mut loaded, version) = load(place, target, by).await?;
    must_be_open(&loaded.stored)?;
    check_edits(loaded.stored.set.edits, calls)?;
    let before = loaded.texts();
    let outcome = match loaded.apply(place, calls).await? {
        Ok(outcome) => outcome,
        Err(refused) => return Ok(Err(refused)),
    };
    if outcome.edit.is_none() {
        let at_once = loaded.stored.at_once;
        let lint = Lint::default();
        let edited = Edited { change_set: loaded.stored.set, outcome, lint, not_checked: None, at_once };
        return Ok(Ok(Prepared { edited, write: None, objects: StagedObjects::default() }));
    }
    let old = loaded.stored.object;
    let checked = lint::added(place, before, loaded.draft.clone(), outcome.clone()).await;
    let (mut found, not_checked) = unless_too_large(checked)?;
    if calls.iter().all(|call| matches!(call, Call::UndoEdit { .. })) {
        // A file that is again as the theme has it has nothing new.
        let changes = loaded.draft.changes();
        found.problems.retain(|problem| changes.files.iter().any(|file| file.path == problem.path));
    }
    found.problems.truncate(MAX_PROBLEMS);
    if version == 0 {
        begun(place, target, by, &mut loaded.stored).await?;
    }
    let mut stored = loaded.keep(place).await?;
    let at_once = stored.at_once;
    let write = Some(write_of(place, &mut stored, version)?);
    let objects = draft::objects(place, old, stored.object);
    let edited = Edited { change_set: stored.set, outcome, lint: found, not_checked, at_once };
    Ok(Ok(Prepared { edited, write, objects }))
}

/// Makes sure that there is room for a change set that was begun by an edit, and gives it the request of its maker.
async fn begun(place: Place<'_>, target: Target, by: MadeBy, stored: &mut Stored) -> Result<()> {
    must_have_room(place).await?;
    if target == Target::Newest {
        let project = existing::project(place.cx, place.owner, place.project).await?.value;
        stored.at_once = project.assistants_apply && project.apply_at_once;
    }
    let set = &mut stored.set;
    if let Some(request) = requests::request_of(place, by).await? {
        set.title = record::titled(Some(&request.chars().take(record::MAX_TITLE).collect::<String>()))?;
        set.request = Some(request);
    }
    Ok(())
}

/// The plan of a change set.
///
/// # Errors
/// 404 if the change set does not exist.
pub async fn plan(place: Place<'_>, target: Target, by: MadeBy) -> Result<Option<Plan>> {
    existing::project(place.cx, place.owner, place.project).await?;
    Ok(find(place, target, by).await?.0.set.plan)
}

/// Writes the plan of a change set, without storing it. Returns the write and the plan; the inner error is the version that the plan has.
///
/// # Errors
/// 404 if the change set does not exist, 409 if it was applied, 400 if the plan is too long.
pub async fn prepare_plan(
    place: Place<'_>,
    target: Target,
    by: MadeBy,
    text: &str,
    replaces: u64,
) -> Result<std::result::Result<(Write, Plan), u64>> {
    let mut errors = FieldErrors::default();
    errors.length("text", text, 1, theme_tools::MAX_PLAN);
    errors.into_result(())?;
    existing::project(place.cx, place.owner, place.project).await?;
    let (mut stored, version) = find(place, target, by).await?;
    must_be_open(&stored)?;
    let now = stored.set.plan.as_ref().map_or(0, |plan| plan.version);
    if now != replaces {
        return Ok(Err(now));
    }
    if version == 0 {
        begun(place, target, by, &mut stored).await?;
    }
    let plan = Plan { text: text.to_owned(), version: now + 1 };
    stored.set.plan = Some(plan.clone());
    stored.set.updated_at = place.cx.clock.now();
    Ok(Ok((write_of(place, &mut stored, version)?, plan)))
}

/// Writes the plan of a change set, and stores it.
///
/// # Errors
/// As [`prepare_plan`].
pub async fn update_plan(
    place: Place<'_>,
    once: &Once,
    target: Target,
    by: MadeBy,
    text: &str,
    replaces: u64,
) -> Result<std::result::Result<Plan, u64>> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let (write, plan) = match prepare_plan(place, target, by, text, replaces).await? {
            Ok(prepared) => prepared,
            Err(now) => return Ok(Err(now)),
        };
        let mut writes = vec![write];
        writes.extend(shared::store::Store::project_exists(place.owner, place.project));
        if place.cx.store.commit(once, writes).await?.done() {
            return Ok(Ok(plan));
        }
    }
}

/// # Errors
/// The change set has too many edits. Edits can always be taken back, up to twice as many.
fn check_edits(edits: u64, calls: &[Call]) -> Result<(), FieldErrors> {
    let undoes = calls.iter().all(|call| matches!(call, Call::UndoEdit { .. }));
    if edits < if undoes { 2 * MAX_EDITS } else { MAX_EDITS } {
        return Ok(());
    }
    let told = format!("a change set has at most {MAX_EDITS} edits: apply it, or begin another one");
    Err(FieldErrors::one("calls", told))
}

/// Makes edits, and stores them.
///
/// # Errors
/// As [`prepare`]; 409 if the edit engine refuses them, with what it says. Then nothing is stored.
pub async fn edit(
    place: Place<'_>,
    once: &Once,
    target: Target,
    by: MadeBy,
    calls: &[Call],
) -> Result<Edited> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Prepared { edited, write, objects } =
            prepare(place, target, by, calls).await?.map_err(refused)?;
        let mut writes: Vec<Write> = write.into_iter().collect();
        writes.extend(shared::store::Store::project_exists(place.owner, place.project));
        let stored = place.cx.store.commit(once, writes).await?.done();
        objects.settle(place.cx, stored).await;
        if stored {
            return Ok(edited);
        }
    }
}

/// What a check found, or nothing and the reason if the theme is too large to be checked.
fn unless_too_large<T: Default>(checked: Result<T>) -> Result<(T, Option<String>)> {
    match checked {
        Ok(found) => Ok((found, None)),
        Err(Error::Conflict { code: NOT_CHECKABLE, message, .. }) => Ok((T::default(), Some(message))),
        Err(error) => Err(error),
    }
}

/// The error of a refused edit.
fn refused(error: EditError) -> Error {
    Error::conflict_with("edit_refused", error.to_string(), &error)
}

fn must_be_open(stored: &Stored) -> Result<()> {
    match stored.is_open() {
        true => Ok(()),
        false => Err(Error::conflict("change_set_applied", "the change set was applied already")),
    }
}

/// A change set with its edits.
///
/// # Errors
/// 404 if it does not exist.
pub async fn show(place: Place<'_>, target: Target, by: MadeBy) -> Result<ChangeSetDetail> {
    let (mut loaded, _) = load(place, target, by).await?;
    let is_open = loaded.stored.is_open();
    let changes = loaded.draft.changes();
    if loaded.is_rebased {
        loaded.stored.set.files = draft::files_of(&changes);
    }
    let diff = String::from_utf8_lossy(&changes.diff()).into_owned();
    let (mut problems, mut not_checked, mut conflicts) = (Vec::new(), None, Vec::new());
    if is_open {
        let checked = lint::of_draft(place, loaded.draft.clone(), loaded.texts(), false).await;
        (problems, not_checked) = unless_too_large(checked)?;
        problems.truncate(MAX_PROBLEMS);
        conflicts = cut(loaded.conflicts(place, false).await?, MAX_SIDES);
    }
    Ok(ChangeSetDetail { change_set: loaded.stored.set, diff, problems, not_checked, conflicts })
}

/// What the edits would make wrong, or with `whole`, everything that is wrong in the theme with them.
///
/// # Errors
/// 404 if the change set does not exist, 409 if the theme is too large to be checked.
pub async fn problems(place: Place<'_>, target: Target, by: MadeBy, whole: bool) -> Result<Vec<Problem>> {
    let (loaded, _) = load(place, target, by).await?;
    lint::of_draft(place, loaded.draft.clone(), loaded.texts(), whole).await
}

/// The edits as a unified diff.
///
/// # Errors
/// 404 if the change set does not exist.
pub async fn diff(place: Place<'_>, id: ChangeSetId) -> Result<Bytes> {
    let (loaded, _) = load(place, Target::Id(id), MadeBy::Person).await?;
    Ok(loaded.draft.changes().diff().into())
}

/// A file as the change set has it.
pub struct DraftFile {
    pub bytes: Bytes,
    /// The SHA-256 of the content. Its beginning is the `version` that calls name.
    pub version: Version,
}

/// A file as the change set has it. A file that it does not change is the theme's.
///
/// # Errors
/// 404 if the change set or the file does not exist.
pub async fn file(place: Place<'_>, id: ChangeSetId, path: &str) -> Result<DraftFile> {
    let (mut loaded, _) = load(place, Target::Id(id), MadeBy::Person).await?;
    loaded.load_all(place, &[path.to_owned()]).await?;
    let found = loaded.draft.file(path).and_then(|file| Some((file.version, file.bytes.as_ref()?)));
    let (version, bytes) = found.ok_or(Error::NotFound("file"))?;
    Ok(DraftFile { bytes: Bytes::copy_from_slice(bytes), version })
}

/// Puts the edits into the theme: all of them or none.
///
/// # Errors
/// 404 if the change set does not exist; 409 if its edits are others than `hash` says, or if the theme has changed underneath, with all
/// three sides of each file.
pub async fn apply(
    place: Place<'_>,
    once: &Once,
    target: Target,
    by: MadeBy,
    hash: &str,
) -> Result<ChangeSet> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let (mut stored, version) = find(place, target, by).await?;
        if !stored.is_open() && stored.set.hash == hash {
            return Ok(stored.set);
        }
        if target == Target::Newest && stored.set.hash != hash {
            // The answer to an earlier call was lost.
            let own = |set: &ChangeSet| set.by == by && set.hash == hash;
            if let Some(set) = applied(place).await?.into_iter().find(own) {
                return Ok(set);
            }
        }
        must_be_open(&stored)?;
        if stored.set.hash != hash {
            let told = "the edits are not those that `hash` names: read them again";
            return Err(Error::conflict_with("changes_differ", told, &stored.set));
        }
        let Some(loaded) = Loaded::read(place, stored.clone()).await? else { continue };
        let conflicts = loaded.conflicts(place, false).await?;
        if !conflicts.is_empty() {
            let told = format!(
                "the theme has changed underneath: decide each file that both have changed: {}",
                named(&conflicts)
            );
            return Err(Error::conflict_with("theme_changed", told, &cut(conflicts, MAX_SIDES_IN_ERROR)));
        }
        let changes = loaded.writes()?;
        if changes.is_empty() {
            // Somebody else may have applied it since its record was read.
            if find(place, target, by).await?.1 != version {
                continue;
            }
            let told =
                "there is nothing to apply: the change set has no edits, or the theme has them already";
            return Err(Error::conflict("nothing_changed", told));
        }
        let old = stored.object;
        let is_rebased = loaded.is_rebased;
        if is_rebased {
            // What is kept is what is applied, so that the diff and a revert know the theme as it was right before.
            stored = loaded.keep(place).await?;
            hash.clone_into(&mut stored.set.hash);
        }
        let objects =
            if is_rebased { draft::objects(place, old, stored.object) } else { StagedObjects::default() };
        let now = place.cx.clock.now();
        stored.set.state = ChangeSetState::Applied;
        stored.set.applied_at = Some(now);
        stored.set.updated_at = now;
        let also = vec![write_of(place, &mut stored, version)?];
        let written = files::write(place.cx, place.owner, place.project, changes, (once, also)).await;
        if !matches!(written, Err(ref error) if error.status().is_server_error()) {
            objects.settle(place.cx, matches!(written, Ok(true))).await;
        }
        match written {
            Ok(true) => return Ok(stored.set),
            // Somebody was faster: with this change set, or with a file of it.
            Ok(false) | Err(Error::Conflict { code: files::CHANGED_MEANWHILE, .. }) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Begins a change set that takes back an applied one. What others have changed since stays.
///
/// # Errors
/// 404 if it does not exist; 409 if it was not applied, or if somebody has changed the same lines since.
pub async fn revert(place: Place<'_>, once: &Once, id: ChangeSetId, by: MadeBy) -> Result<ChangeSet> {
    let (applied, _) = find(place, Target::Id(id), by).await?;
    if applied.is_open() {
        return Err(Error::conflict("change_set_open", "the change set was not applied: delete it"));
    }
    let title = format!("Revert of {}", applied.set.title).chars().take(record::MAX_TITLE).collect();
    must_have_room(place).await?;
    let mut stored = begin(place, ChangeSetId::from_uuid(place.cx.clock.uuid()), title, by);
    stored.set.reverts = Some(id);
    let reverted = Loaded::reverting(place, applied, stored).await?;
    let mut stored = match reverted {
        Ok(loaded) => loaded.keep(place).await?,
        Err(conflicts) => {
            let told = format!(
                "somebody has changed these files since: {}. Edit them in a new change set",
                named(&conflicts)
            );
            return Err(Error::conflict_with("theme_changed", told, &cut(conflicts, MAX_SIDES_IN_ERROR)));
        }
    };
    let mut writes = vec![write_of(place, &mut stored, 0)?];
    writes.extend(shared::store::Store::project_exists(place.owner, place.project));
    if !place.cx.store.commit(once, writes).await?.done() {
        draft::objects(place, None, stored.object).settle(place.cx, false).await;
        return Err(Error::NotFound("project"));
    }
    Ok(stored.set)
}

/// Puts the edits over the theme as it is now.
///
/// # Errors
/// 404 if the change set does not exist; 409 if a conflict is not decided, with all three sides.
pub async fn resolve(place: Place<'_>, once: &Once, id: ChangeSetId, input: Resolve) -> Result<ChangeSet> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let (mut loaded, version) = load(place, Target::Id(id), MadeBy::Person).await?;
        must_be_open(&loaded.stored)?;
        let open = loaded.resolve(place, &input).await?;
        if !open.is_empty() {
            let told =
                format!("give each of these files `ours` or `theirs` in `decisions`: {}", named(&open));
            return Err(Error::conflict_with("theme_changed", told, &cut(open, MAX_SIDES_IN_ERROR)));
        }
        let old = loaded.stored.object;
        let mut stored = loaded.keep(place).await?;
        let mut writes = vec![write_of(place, &mut stored, version)?];
        writes.extend(shared::store::Store::project_exists(place.owner, place.project));
        let is_stored = place.cx.store.commit(once, writes).await?.done();
        draft::objects(place, old, stored.object).settle(place.cx, is_stored).await;
        if is_stored {
            return Ok(stored.set);
        }
    }
}

/// Deletes a change set. The theme stays as it is.
///
/// # Errors
/// 404 if it does not exist.
pub async fn delete(place: Place<'_>, id: ChangeSetId) -> Result<()> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let (stored, version) = find(place, Target::Id(id), MadeBy::Person).await?;
        let key = keys::change_set(place.owner, place.project, id);
        if place.cx.store.write_all(vec![Write::Remove { key, version }]).await?.done() {
            draft::objects(place, stored.object, None).settle(place.cx, true).await;
            return Ok(());
        }
    }
}

/// The changes of files that applying makes.
fn changes_of(draft: &Draft, sizes: &BTreeMap<Version, u64>) -> Result<Vec<FileChange>> {
    let mut changes = Vec::new();
    for file in draft.changes().files {
        let before = file.before.as_ref().map(|before| before.version.to_string());
        let after = match &file.after {
            None => None,
            Some(after) => Some(match (&after.bytes, sizes.get(&after.version)) {
                (Some(bytes), _) => After::Content(Bytes::copy_from_slice(bytes)),
                (None, Some(bytes)) => After::Stored { sha256: after.version.to_string(), bytes: *bytes },
                (None, None) => return Err(Error::internal(format!("{} has no content", file.path))),
            }),
        };
        match file.from {
            Some(from) => {
                changes.push(FileChange { path: from, before, after: None });
                changes.push(FileChange { path: file.path, before: None, after });
            }
            None => changes.push(FileChange { path: file.path, before, after }),
        }
    }
    if changes.len() > MAX_WRITTEN {
        let told = format!(
            "at most {MAX_WRITTEN} files are changed at once, and a renamed one counts twice; this would change {}",
            changes.len()
        );
        return Err(FieldErrors::one("files", told).into());
    }
    Ok(changes)
}

/// The conflicts with at most `most` bytes of text. What is longer is cut, and says so.
fn cut(mut conflicts: Vec<Compared>, most: usize) -> Vec<Compared> {
    let mut left = most;
    for Compared { state, .. } in &mut conflicts {
        let State::Conflict { base, ours, theirs } = state else { continue };
        for text in [base, ours, theirs].into_iter().flatten() {
            if text.len() > left {
                let bytes = text.len();
                text.truncate(text.floor_char_boundary(left));
                text.push_str(&format!("\n… ({bytes} bytes; this is the beginning)"));
            }
            left = left.saturating_sub(text.len());
        }
    }
    conflicts
}

/// The paths of conflicts, the first of many.
fn named(conflicts: &[Compared]) -> String {
    const MOST: usize = 10;
    let paths: Vec<&str> = conflicts.iter().take(MOST).map(|file| file.path.as_str()).collect();
    let more = conflicts.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", paths.join(", "))
}

/// Only the conflicts.
fn conflicts(compared: Vec<Compared>) -> Vec<Compared> {
    compared.into_iter().filter(|file| matches!(file.state, State::Conflict { .. })).collect()
}
