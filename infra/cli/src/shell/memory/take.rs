//! `memory export` and `memory import`: the memory as files, and the files of OpenClaw.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use super::UPDATE;
use crate::Failure;
use crate::output::{self, shown};
use crate::server::{Change, Server};
use crate::shell::api::{Api, unexpected};
use crate::shell::screen::{line, print_json};
use crate::shell::values::Fields;

const PATH: &str = "/account/import";

/// How often the server is asked how far it is.
const LOOKS_EVERY: Duration = Duration::from_secs(2);

/// How long an import is waited for.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// The most files of a folder that are sent.
const MAX_FILES: usize = 20_000;

/// Writes the memory as a zip.
///
/// # Errors
/// If the file exists, or if the server does not answer with a whole archive.
pub fn export(api: &Api, file: &Path, force: bool) -> Result<(), Failure> {
    if !force && file.exists() {
        return Err(Failure::Message(format!("{} exists (--force replaces it)", shown(file))));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A reader never sees half of it.
    let mut temporary = tempfile::Builder::new().prefix(".memory-").tempfile_in(folder)?;
    let server = Server::new(&api.settings, UPDATE);
    io::copy(&mut server.get_stream("/memory/export")?, &mut temporary)?;
    temporary.as_file_mut().rewind()?;
    // An export that ended early has no directory.
    let files = ZipArchive::new(temporary.as_file_mut()).map_err(|error| {
        Failure::Message(format!("failed to read the archive that the server gave: {error}"))
    });
    let files = files?.len();
    match force {
        true => temporary.persist(file).map(drop).map_err(|error| error.error)?,
        false => temporary.persist_noclobber(file).map(drop).map_err(|error| error.error)?,
    }
    Ok(output::print(format!("{files} files, in {}\n", shown(file)))?)
}

/// Brings in the files of a folder, or those of a zip, and waits until they are there.
///
/// # Errors
/// If the folder has none of the files, or if the server refuses them or does not answer.
pub fn import(api: &Api, from: &Path, json: bool) -> Result<(), Failure> {
    let about = match fs::metadata(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Failure::Message(format!("there is no such file or folder: {}", shown(from))));
        }
        found => found?,
    };
    let mut archive = match about.is_dir() {
        true => zip_of(from)?,
        false => File::open(from)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", shown(from))))?,
    };
    let mut hash = Sha256::new();
    let bytes = io::copy(&mut archive, &mut hash)?;
    archive.rewind()?;
    let sha256: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let new = json!({"format": "openclaw", "bytes": bytes, "sha256": sha256});
    let begun = api.send(Change::Post, PATH, &new)?;
    let target = &begun["upload"];
    let (Some(url), Some(headers)) = (target.some("url"), target["headers"].as_object()) else {
        return Err(unexpected());
    };
    let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
    Server::new(&api.settings, UPDATE).upload(url, headers, &archive)?;
    output::note("uploaded; waiting for the import, which may take a minute to begin");
    let done = wait(api)?;
    if json {
        print_json(&done)?;
    } else {
        output::print(told(&done))?;
    }
    match done.text("state") {
        "done" => Ok(()),
        _ => Err(Failure::Message(format!("the import failed: {}", line(done.text("error"))))),
    }
}

/// The import, when it has ended.
fn wait(api: &Api) -> Result<Value, Failure> {
    let began = Instant::now();
    loop {
        let import = api.get(PATH, &[])?;
        if matches!(import.text("state"), "done" | "failed") {
            return Ok(import);
        }
        if began.elapsed() >= LONGEST {
            return Err(Failure::Message(
                "the import has not ended within an hour; it goes on without this command".to_owned(),
            ));
        }
        thread::sleep(LOOKS_EVERY);
    }
}

/// What was brought in, and what was left out.
fn told(import: &Value) -> String {
    let mut text = String::new();
    for (name, kind) in [("records", "brought in"), ("left_out", "left out")] {
        let counts = import[name].as_object();
        for (what, count) in counts.into_iter().flatten() {
            let what = line(&what.replace('_', " "));
            let what = if count.as_i64() == Some(1) { one_of(&what) } else { what };
            text.push_str(&format!("{kind}: {count} {what}\n"));
        }
    }
    import
        .items("notes")
        .iter()
        .filter_map(Value::as_str)
        .for_each(|note| text.push_str(&format!("{}\n", line(note))));
    if text.is_empty() { "nothing was brought in\n".to_owned() } else { text }
}

/// The singular of "files" or "memories".
fn one_of(many: &str) -> String {
    match (many.strip_suffix("ies"), many.strip_suffix('s')) {
        (Some(stem), _) => format!("{stem}y"),
        (None, one) => one.unwrap_or(many).to_owned(),
    }
}

/// The files of a folder that the platform knows, as a zip.
fn zip_of(folder: &Path) -> Result<File, Failure> {
    let files = known_files(folder)?;
    if files.is_empty() {
        let told = "has none of MEMORY.md, memory/*.md, agents/*/sessions/*.jsonl and cron/jobs.json";
        return Err(Failure::Message(format!("{} {told}", shown(folder))));
    }
    let broken = |error: zip::result::ZipError| Failure::Message(format!("failed to write a zip: {error}"));
    let mut zip = ZipWriter::new(tempfile::tempfile()?);
    for (name, path) in &files {
        zip.start_file(name.as_str(), SimpleFileOptions::default().large_file(true)).map_err(broken)?;
        io::copy(&mut fs::File::open(path)?, &mut zip)?;
    }
    let mut zip = zip.finish().map_err(broken)?;
    zip.flush()?;
    zip.rewind()?;
    Ok(zip)
}

/// The known files below a folder, by their names in the zip. Links are not followed.
fn known_files(folder: &Path) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let mut found = BTreeMap::new();
    for workspace in ["", "workspace/"] {
        for (place, end) in [
            ("", "MEMORY.md"),
            ("memory/", ".md"),
            ("memory/weekly/", ".md"),
            ("memory/tasks/", ".md"),
            ("memory/archive/*/", ".md"),
            ("memory/state/", ".json"),
        ] {
            add(
                folder,
                &format!("{workspace}{place}"),
                |name| match end {
                    "MEMORY.md" => name == end,
                    end => name.ends_with(end),
                },
                &mut found,
            )?;
        }
    }
    for place in ["sessions/", "agents/*/sessions/"] {
        add(folder, place, |name| name.ends_with(".jsonl") || name == "sessions.json", &mut found)?;
    }
    add(folder, "cron/", |name| name == "jobs.json", &mut found)?;
    Ok(found)
}

/// Adds the wanted files of a place. `*` stands for any folder.
fn add(
    folder: &Path,
    place: &str,
    wanted: impl Fn(&str) -> bool + Copy,
    found: &mut BTreeMap<String, PathBuf>,
) -> Result<(), Failure> {
    if let Some((before, after)) = place.split_once("*/") {
        for (name, _) in entries(&folder.join(before), |kind| kind.is_dir())? {
            add(folder, &format!("{before}{name}/{after}"), wanted, found)?;
        }
        return Ok(());
    }
    // Every folder on the way must be one, and not a link to somewhere else.
    let mut at = folder.to_owned();
    for part in place.split('/').filter(|part| !part.is_empty()) {
        at.push(part);
        if !at.symlink_metadata().is_ok_and(|data| data.is_dir()) {
            return Ok(());
        }
    }
    for (name, path) in entries(&at, |kind| kind.is_file())?.into_iter().filter(|(name, _)| wanted(name)) {
        found.insert(format!("{place}{name}"), path);
        if found.len() > MAX_FILES {
            return Err(Failure::Message(format!(
                "{} has more than {MAX_FILES} files to bring in",
                shown(folder)
            )));
        }
    }
    Ok(())
}

/// The entries of a folder, without those whose names are not UTF-8. None if it does not exist.
fn entries(
    folder: &Path,
    wanted: impl Fn(std::fs::FileType) -> bool,
) -> Result<Vec<(String, PathBuf)>, Failure> {
    let read = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        read => read?,
    };
    let mut found = Vec::new();
    for entry in read {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && wanted(entry.file_type()?)
        {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_called_many() {
        let import = json!({"records": {"memories": 1, "cards": 2}, "left_out": {"files": 1, "watched": 1}});
        assert_eq!(
            told(&import),
            "brought in: 2 cards\nbrought in: 1 memory\nleft out: 1 file\nleft out: 1 watched\n"
        );
    }
}
