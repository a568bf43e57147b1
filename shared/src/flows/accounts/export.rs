//! The export of an account. An executor writes the archive in one go. If it is killed, another one begins again.
//!
//! ```text
//! records.jsonl     each record on a line: {"kind", "partition", "key", "version", "record"}
//! objects/…         texts and files that are too large for a record, by the key that records name
//! readable/…        for people: the agents with their actions, and each asset under its title
//! README.md         for people: what is in the archive
//! manifest.json     the format, the owner, and the counts; it is written last
//! ```
//!
//! An import reads records, objects and the manifest, and ignores what is for people.

use std::time::Duration;

use domain::accounts::export::{ADDRESS_VALID, Export};
use domain::background::dispatch::LEASE;
use domain::background::jobs::{JobKind, Outcome};
use domain::ids::{ExportId, Owner};
use domain::memory::recall::Recalled;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::blobs::{BlobError, BlobKey, PartUpload};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::accounts::readable::Readable;
use crate::flows::archive::Growing;
use crate::flows::background::due;
use crate::flows::background::jobs::{self, Due};
use crate::flows::background::lease::{ClaimedJob, Interrupted};
use crate::flows::memory::forgotten::Forgotten;
use crate::store::partitions::Partition;
use crate::store::{Attributes, DueItem, Job, Once, Versioned, Walk};

/// How many objects a page lists.
const PAGE: usize = 1_000;

/// An export as its owner sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExportView {
    #[serde(flatten)]
    pub export: Export,
    /// Where the archive can be downloaded without credentials. Each answer has a new address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Until when the address is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_expires_at: Option<Timestamp>,
}

/// Requests an export.
///
/// # Errors
/// 409 if an export is running.
pub async fn request(cx: &Cx, owner: &Owner, once: &Once) -> Result<ExportView> {
    let newest = cx.store.exports(owner, 1).await?.items.pop();
    if let Some((_, Versioned { value: running, .. })) = newest.filter(|(_, found)| !found.value.has_ended())
    {
        return Err(Error::conflict_with("export_running", "an export is running", &running));
    }
    let now = cx.clock.now();
    let export = Export::new(ExportId::from_uuid(cx.clock.uuid()), now);
    let write = export.write(owner, 0, now + LEASE)?;
    if !cx.store.commit(once, vec![write]).await?.done() {
        return Err(Error::internal("a new id was taken"));
    }
    due::dispatch(cx, &DueItem::export(owner, export.export_id)).await;
    Ok(ExportView { export, url: None, url_expires_at: None })
}

/// Reads an export. If it is done, the answer has an address of the archive.
///
/// # Errors
/// 404 if it does not exist.
pub async fn read(cx: &Cx, owner: &Owner, id: ExportId) -> Result<ExportView> {
    let export = cx.store.export(owner, id).await?.ok_or(Error::NotFound("export"))?.value;
    if export.bytes == 0 || !export.has_ended() {
        return Ok(ExportView { export, url: None, url_expires_at: None });
    }
    let valid = Duration::try_from(ADDRESS_VALID).unwrap_or_default();
    let name = format!("lamplighter-{}.zip", export.requested_at.strftime("%Y-%m-%d"));
    let url = cx.blobs.presign_get(&BlobKey::export(owner, id), &name, valid).await?;
    Ok(ExportView { export, url: Some(url), url_expires_at: Some(cx.clock.now() + ADDRESS_VALID) })
}

/// Writes the archive of an export that has not ended.
///
/// # Errors
/// If the table or the bucket does not answer. A sweep begins again.
pub(crate) async fn write(cx: &Cx, owner: &Owner, id: ExportId, deadline: Timestamp) -> Result<()> {
    let Some(found) = cx.store.export(owner, id).await? else { return Ok(()) };
    if found.value.has_ended() {
        return Ok(());
    }
    let Some(claimed) = ClaimedJob::claim(cx, owner, found, deadline).await? else { return Ok(()) };
    let due = Due::At(claimed.job.requested_at);
    let record = jobs::begin(cx, owner, JobKind::AccountExport, &id.to_string(), due).await;
    match archive(cx, owner, claimed, deadline).await {
        Ok(Some(export)) => {
            let work_found = export.records.values().sum::<u64>() + export.objects;
            let artefacts = u64::from(export.error.is_none());
            record.end(Outcome { work_found, artefacts, error: export.error, ..Outcome::default() }).await;
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(error) => {
            record.fail(Outcome::default(), &error).await;
            Err(error)
        }
    }
}

/// Writes the archive of a claimed export. `None` if another executor begins again.
async fn archive(
    cx: &Cx,
    owner: &Owner,
    claimed: ClaimedJob<'_, Export>,
    deadline: Timestamp,
) -> Result<Option<Export>> {
    let id = claimed.job.export_id;
    let parts = PartUpload::begin_expiring(&cx.blobs, BlobKey::export(owner, id), "application/zip").await?;
    let began = cx.clock.now();
    let (zip, readable) = (Growing::default(), Readable::default());
    let mut work = Work { cx, owner, claimed, zip, parts, readable };
    let ended = work.everything().await;
    let Work { mut claimed, parts, .. } = work;
    match ended {
        Ok(()) => {}
        // Nobody can continue an archive. A sweep lets another executor begin again.
        Err(Interrupted::Lost | Interrupted::Stopping) => {
            parts.abort().await?;
            return Ok(None);
        }
        // Another executor would not have more time.
        Err(Interrupted::TimeUp) => {
            parts.abort().await?;
            let minutes = deadline.duration_since(began).as_mins();
            let text = format!("the account has more than can be written in {minutes} minutes");
            claimed.job.fail(&text, cx.clock.now());
            return Ok(claimed.give_back().await?.then_some(claimed.job));
        }
        Err(Interrupted::Failed(error)) => return Err(error),
    }
    claimed.job.finish(parts.finish().await?, cx.clock.now());
    let done = claimed.give_back().await?;
    let Export { bytes, objects, .. } = claimed.job;
    tracing::info!(bytes, objects, done, "an account was exported");
    Ok(done.then_some(claimed.job))
}

/// The work of one executor.
struct Work<'a> {
    cx: &'a Cx,
    owner: &'a Owner,
    claimed: ClaimedJob<'a, Export>,
    zip: Growing,
    parts: PartUpload,
    readable: Readable,
}

impl Work<'_> {
    async fn everything(&mut self) -> Result<(), Interrupted> {
        self.zip.file("records.jsonl")?;
        let forgotten = Forgotten::of(self.cx, self.owner).await?;
        let mut walk = Walk::new(self.owner, self.cx.clock.now());
        while let Some((partition, items)) = walk.next(&self.cx.store).await? {
            if !partition.is_exported() {
                continue;
            }
            for item in &items {
                self.readable.note(&partition, item);
                self.zip.write(&line(self.owner, &partition, item, &forgotten)?)?;
            }
            *self.claimed.job.records.entry(partition.kind().to_owned()).or_default() += items.len() as u64;
            self.pause().await?;
        }
        self.objects().await?;
        self.zip.whole_file("readable/agents.md", self.readable.agents().as_bytes())?;
        let readme = self.readable.readme(self.claimed.job.requested_at);
        self.zip.whole_file("README.md", readme.as_bytes())?;
        self.zip.file("manifest.json")?;
        let Export { export_id, requested_at, records, objects, .. } = &self.claimed.job;
        let manifest = json!({
            "format": "lamplighter-account", "version": 1, "owner": self.owner, "export_id": export_id,
            "requested_at": requested_at, "records": records, "objects": objects,
        });
        self.zip.write(format!("{manifest:#}\n").as_bytes())?;
        self.zip.finish()?;
        let last = self.zip.take();
        self.parts.send(last).await?;
        Ok(())
    }

    async fn objects(&mut self) -> Result<(), Interrupted> {
        let everything = BlobKey::everything(self.owner);
        let mut after: Option<String> = None;
        loop {
            let page = self.cx.blobs.list(&everything, after.as_deref()).await?;
            // The index of memory is made of records.
            let is_taken = |rest: &&String| !rest.starts_with("exports/") && !rest.starts_with("memory/");
            for rest in page.iter().filter(is_taken) {
                let content = match self.cx.blobs.get(&BlobKey::listed(self.owner, rest)).await {
                    Ok(content) => content,
                    // Deleted since the page was read.
                    Err(BlobError::Missing { .. }) => continue,
                    Err(error) => return Err(error.into()),
                };
                self.zip.whole_file(&format!("objects/{rest}"), &content)?;
                if let Some(name) = self.readable.name_of(rest) {
                    self.zip.whole_file(&format!("readable/assets/{name}"), &content)?;
                }
                self.claimed.job.objects += 1;
                self.pause().await?;
            }
            if page.len() < PAGE {
                return Ok(());
            }
            after = page.last().cloned();
        }
    }

    /// Sends a part if it is large enough, and keeps the job.
    async fn pause(&mut self) -> Result<(), Interrupted> {
        if self.zip.waiting() >= PartUpload::LEAST {
            let part = self.zip.take();
            self.parts.send(part).await?;
        }
        self.claimed.keep().await
    }
}

/// A record as a line. Its partition is without the owner.
fn line(owner: &Owner, partition: &Partition, item: &Attributes, forgotten: &Forgotten) -> Result<Vec<u8>> {
    let mut record: Value =
        serde_dynamo::from_item(item.clone()).map_err(|error| Error::internal(error.to_string()))?;
    let mut take =
        |name: &str| record.as_object_mut().and_then(|record| record.remove(name)).unwrap_or_default();
    let (pk, sk, version) = (take("pk"), take("sk"), take("_v"));
    // What the table needs for itself.
    for name in ["_w", "ttl", "found_at", "found_until"] {
        take(name);
    }
    // Together they are an entry of the index. Alone, `due_at` belongs to a record.
    if !take("shard").is_null() {
        take("due_at");
    }
    // A run has what it was told of memory, also what was deleted since.
    if let Some(Value::Array(recalled)) = record.get_mut("recalled") {
        recalled.retain(|one| {
            serde_json::from_value::<Recalled>(one.clone()).is_ok_and(|one| forgotten.keeps(&one))
        });
    }
    let prefix = format!("U#{owner}#");
    let place = pk.as_str().and_then(|pk| pk.strip_prefix(&prefix)).unwrap_or_default();
    let line = json!({
        "kind": partition.kind(), "partition": place, "key": sk, "version": version, "record": record,
    });
    Ok(format!("{line}\n").into_bytes())
}
