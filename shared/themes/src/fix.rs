//! Mends what strict Liquid refuses in a theme, and stores the mended files if the caller wants it.

use bytes::Bytes;
use domain::ids::{Owner, ProjectId};
use domain::validate::FieldErrors;
use serde::{Deserialize, Serialize};
use theme::answers::{MAX_CHANGED, MAX_READ};
use theme::check::is_read;
use theme::fix::{FixedFile, How, Mender};
use theme::path::check_path;
use utoipa::ToSchema;

use super::check::NOT_CHECKABLE;
use super::files::{self, After, FileChange, MAX_WRITTEN};
use super::{contents, state};
use shared::context::Cx;
use shared::error::{Error, Result};
use shared::process::compute::{Stop, Stopped};
use shared::store::Once;

/// What to mend.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"paths": ["snippets/price.liquid"]}))]
pub struct FixAsk {
    /// The files, at most 200. Without them: all.
    #[schema(max_items = 200)]
    pub paths: Vec<String>,
    /// Mend as it was meant, where that is clear. The page then shows something else, and each change says what. Otherwise the page stays
    /// the same.
    pub as_meant: bool,
    /// Store the mended files, at most 90, in one transaction. Otherwise nothing is stored.
    pub write: bool,
}

/// What was mended, and what is left.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FixAnswer {
    /// The files with changes or with something left, by path. At most 200.
    pub files: Vec<FixedFile>,
    /// How many files are refused as they were stored before.
    pub refused_before: usize,
    /// How many files are still refused with the changes.
    pub refused_after: usize,
    /// Whether there are more files with changes. Name them in `paths`.
    pub has_more: bool,
    /// How many files were stored.
    pub written: usize,
}

/// Mends a theme. Without `write`, nothing is stored.
///
/// # Errors
/// 404 if the project does not exist; 400 if the request breaks a limit or names a file that does not exist; 409 if the theme is too large, or
/// if a file was changed meanwhile. Then nothing is stored.
pub async fn fix(cx: &Cx, owner: &Owner, project: ProjectId, ask: FixAsk) -> Result<FixAnswer> {
    validate(&ask)?;
    let generation = state(cx, owner, project).await?.generation;
    let mut stored = cx.store.all_theme_files(owner, project, generation).await?;
    if let Some(unknown) = ask.paths.iter().find(|path| !stored.iter().any(|file| file.path == **path)) {
        let told = format!("there is no file {unknown}");
        return Err(FieldErrors::one("paths", told).into());
    }
    // All files are read, also if only some are mended: a schema says which settings are Liquid.
    stored.retain(|file| is_read(&file.path, file.bytes));
    let bytes: u64 = stored.iter().fold(0, |bytes: u64, file| bytes.saturating_add(file.bytes));
    if bytes > MAX_READ {
        let told = format!("the theme has {bytes} bytes of text, and at most {MAX_READ} can be mended");
        return Err(Error::conflict(NOT_CHECKABLE, told));
    }
    let mut texts = contents(cx, owner, project, stored.iter()).await?;
    texts.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let how = if ask.as_meant { How::AsMeant } else { How::AsShown };
    let paths = ask.paths.clone();
    let mend = move |stop: &Stop| run(&texts, &paths, how, stop);
    let (mut answer, mended) = cx.compute.checks.run(mend).await?;
    if ask.write && !mended.is_empty() {
        if mended.len() > MAX_WRITTEN {
            let told = format!(
                "at most {MAX_WRITTEN} files are stored at once, and {} have changes: name some in `paths`",
                mended.len()
            );
            return Err(FieldErrors::one("write", told).into());
        }
        let changes = mended.into_iter().filter_map(|(path, text)| {
            let before = stored.iter().find(|file| file.path == path)?.sha256.clone();
            Some(FileChange { path, before: Some(before), after: Some(After::Content(Bytes::from(text))) })
        });
        let changes: Vec<FileChange> = changes.collect();
        answer.written = changes.len();
        if !files::write(cx, owner, project, changes, (&Once::none(), Vec::new())).await? {
            return Err(files::changed_meanwhile("the theme"));
        }
    }
    Ok(answer)
}

/// The answer, and the new texts.
fn run(
    texts: &[(String, Bytes)],
    paths: &[String],
    how: How,
    stop: &Stop,
) -> Result<(FixAnswer, Vec<(String, String)>), Stopped> {
    let mut mender = Mender::new(how);
    let read = texts.iter().filter_map(|(path, bytes)| Some((path, std::str::from_utf8(bytes).ok()?)));
    for (path, text) in read.clone() {
        mender.learn(path, text);
        stop.check()?;
    }
    let is_asked = |path: &String| match paths.is_empty() {
        true => mender.looks_at(path, false),
        false => paths.contains(path) && mender.looks_at(path, true),
    };
    let (mut files, mut mended) = (Vec::new(), Vec::new());
    let (mut refused_before, mut refused_after, mut has_more) = (0, 0, false);
    for (path, text) in read.filter(|(path, _)| is_asked(path)) {
        stop.check()?;
        let Some(fixed) = mender.mend(path, text) else { continue };
        refused_before += usize::from(fixed.was_refused());
        refused_after += usize::from(fixed.is_refused());
        if files.len() == MAX_CHANGED {
            has_more = true;
            continue;
        }
        if fixed.text != text {
            mended.push((path.clone(), fixed.text.clone()));
        }
        files.push(fixed);
    }
    Ok((FixAnswer { files, refused_before, refused_after, has_more, written: 0 }, mended))
}

/// # Errors
/// Every invalid field with its limit.
fn validate(ask: &FixAsk) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    if ask.paths.len() > MAX_CHANGED {
        errors.add("paths", format!("must have at most {MAX_CHANGED} entries, has {}", ask.paths.len()));
    }
    for (n, path) in ask.paths.iter().enumerate().take(MAX_CHANGED) {
        if let Err(error) = check_path(path) {
            errors.add(format!("paths[{n}]"), error.to_string());
        }
    }
    errors.into_result(())
}
