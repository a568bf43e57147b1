//! Checks a theme, or what a change of it would add. The change is part of the request and is not saved.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use domain::ids::{Owner, ProjectId};
use domain::validate::FieldErrors;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use theme::answers::{CheckAnswer, MAX_CHANGED, MAX_FINDINGS, MAX_READ};
use theme::check::script::{ScriptFacts, ScriptReader};
use theme::check::{CheckedTheme, Finding, is_read};
use theme::path::check_path;
use theme_scripts::Oxc;
use utoipa::ToSchema;

use crate::cache::{Checked, CheckedCache};
use crate::{contents, state, version};
use shared::context::Cx;
use shared::error::{Error, Result};
use shared::flows::page::{self, PageQuery};
use shared::process::compute::{Stop, Stopped};

/// The code of the error if a theme is too large to be checked.
pub(crate) const NOT_CHECKABLE: &str = "theme_not_checkable";

/// What to check.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"files": [{"path": "snippets/price.liquid", "content": "{{ product.price | money }}"}]}))]
pub struct CheckAsk {
    /// Files that the change adds or replaces, at most 200. They are not saved.
    #[schema(max_items = 200)]
    pub files: Vec<ChangedFile>,
    /// Paths that the change deletes, at most 200.
    #[schema(max_items = 200)]
    pub deleted: Vec<String>,
    /// The most findings of the answer, 1 to 1,000. Default 1,000.
    #[schema(minimum = 1, maximum = 1_000)]
    pub limit: Option<usize>,
    /// The `next_cursor` of the previous answer. The change must be the same.
    pub cursor: Option<String>,
}

/// A file of a change.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangedFile {
    /// The path in the theme.
    #[schema(example = "snippets/price.liquid")]
    pub path: String,
    /// The whole text after the change.
    pub content: String,
}

/// Checks a theme. With a change, only what the change adds is reported.
///
/// # Errors
/// 404 if the project does not exist, 400 if the change breaks a limit, or if the findings have changed since the previous answer, 409 if the
/// theme is too large to be checked.
pub async fn check(cx: &Cx, owner: &Owner, project: ProjectId, ask: CheckAsk) -> Result<CheckAnswer> {
    let most = validate(&ask)?;
    let list = "findings";
    let begins = PageQuery { limit: None, cursor: ask.cursor.clone() }.after(owner, list)?;
    let base = checked(cx, owner, project).await?;
    let part = move |stop: &Stop| {
        let (findings, theme) = run(&base, &ask, &Oxc, stop)?;
        let mark = mark(&findings);
        let skipped = match &begins {
            None => 0,
            // The cursor was made of the same findings.
            Some(begins) => match begins.split_once(' ').filter(|(_, of)| *of == mark) {
                Some((skipped, _)) => skipped.parse().unwrap_or(usize::MAX),
                None => return Ok(None),
            },
        };
        let total = findings.len();
        let answer = CheckAnswer::part(findings, &theme, skipped, most);
        let next = skipped.saturating_add(answer.findings.len());
        Ok(Some((answer, (next < total).then(|| format!("{next} {mark}")))))
    };
    let told = "the findings have changed since the previous answer: begin again without it";
    let (answer, next) =
        cx.compute.checks.run(part).await?.ok_or_else(|| FieldErrors::one("cursor", told))?;
    Ok(CheckAnswer { next_cursor: next.map(|next| page::cursor(owner, list, &next)), ..answer })
}

/// The stored theme, read for checks. The process keeps the newest ones, and reads only the files that have changed since.
///
/// # Errors
/// 404 if the project does not exist, 409 if the theme is too large to be checked.
pub(crate) async fn checked(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<Arc<CheckedTheme>> {
    let state = state(cx, owner, project).await?;
    let version = Some(version(owner, project, &state));
    let cache = cx.kept.get::<CheckedCache>();
    let known = cache.get(owner, project).unwrap_or_default();
    if known.version == version {
        return Ok(known.theme);
    }
    let mut files = cx.store.all_theme_files(owner, project, state.generation).await?;
    let bytes = files.iter().filter(|file| is_read(&file.path, file.bytes));
    let bytes: u64 = bytes.fold(0, |bytes: u64, file| bytes.saturating_add(file.bytes));
    if bytes > MAX_READ {
        return Err(Error::conflict(
            NOT_CHECKABLE,
            format!("the theme has {bytes} bytes of text, and at most {MAX_READ} can be checked"),
        ));
    }
    let hashes: BTreeMap<String, String> =
        files.iter().map(|file| (file.path.clone(), file.sha256.clone())).collect();
    if known.hashes == hashes {
        let theme = known.theme.clone();
        cache.put(owner, project, Checked { version, ..known });
        return Ok(theme);
    }
    files.retain(|file| known.hashes.get(&file.path) != Some(&file.sha256));
    let deleted: Vec<String> =
        known.hashes.keys().filter(|path| !hashes.contains_key(*path)).cloned().collect();
    let (read, unread): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| is_read(&file.path, file.bytes));
    let texts = contents(cx, owner, project, read.iter()).await?;
    let build = move |stop: &Stop| {
        let mut theme = CheckedTheme::clone(&known.theme);
        let scripts = Stoppable { scripts: &Oxc, stop };
        deleted.iter().for_each(|path| theme.remove(path));
        for (path, bytes) in texts {
            theme.add(&path, &bytes, Some(&scripts));
            stop.check()?;
        }
        unread.into_iter().for_each(|file| theme.add_unread(file.path, file.bytes));
        Ok(Arc::new(theme))
    };
    let theme = cx.compute.checks.run(build).await?;
    cache.put(owner, project, Checked { version, hashes, theme: theme.clone(), bytes });
    Ok(theme)
}

/// What tells lists of findings apart.
fn mark(findings: &[Finding]) -> String {
    let mut hash = Sha256::new();
    for Finding { path, line, code, message, .. } in findings {
        hash.update(format!("{path}\0{line}\0{code}\0{message}\0"));
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn run(
    base: &CheckedTheme,
    ask: &CheckAsk,
    scripts: &'static dyn ScriptReader,
    stop: &Stop,
) -> Result<(Vec<Finding>, CheckedTheme), Stopped> {
    if ask.files.is_empty() && ask.deleted.is_empty() {
        return Ok((base.findings(), base.clone()));
    }
    let scripts = Stoppable { scripts, stop };
    let mut changed = base.clone();
    for path in &ask.deleted {
        changed.remove(path);
    }
    for ChangedFile { path, content } in &ask.files {
        changed.add(path, content.as_bytes(), Some(&scripts));
        stop.check()?;
    }
    Ok((changed.added_since(base), changed))
}

/// Reads no further script when it is time to stop: one file can have many scripts, and each takes a while. Its findings are not
/// used then.
pub(crate) struct Stoppable<'a> {
    pub scripts: &'static dyn ScriptReader,
    pub stop: &'a Stop,
}

impl ScriptReader for Stoppable<'_> {
    fn read(&self, source: &str, is_module: bool) -> ScriptFacts {
        if self.stop.is_set() { ScriptFacts::default() } else { self.scripts.read(source, is_module) }
    }
}

/// The most findings of the answer.
///
/// # Errors
/// Every invalid field with its limit.
fn validate(ask: &CheckAsk) -> Result<usize, FieldErrors> {
    let mut errors = FieldErrors::default();
    let most = ask.limit.unwrap_or(MAX_FINDINGS);
    if !(1..=MAX_FINDINGS).contains(&most) {
        errors.add("limit", format!("must be 1 to {MAX_FINDINGS}, is {most}"));
    }
    for (field, count) in [("files", ask.files.len()), ("deleted", ask.deleted.len())] {
        if count > MAX_CHANGED {
            errors.add(field, format!("must have at most {MAX_CHANGED} entries, has {count}"));
        }
    }
    let files = ask.files.iter().enumerate().map(|(n, file)| (format!("files[{n}].path"), &file.path));
    let deleted = ask.deleted.iter().enumerate().map(|(n, path)| (format!("deleted[{n}]"), path));
    let mut seen = HashSet::new();
    for (field, path) in files.chain(deleted).take(2 * MAX_CHANGED) {
        if let Err(error) = check_path(path) {
            errors.add(&field, error.to_string());
        } else if !seen.insert(path.as_str()) {
            errors.add(&field, "is in the change twice");
        }
    }
    errors.into_result(most)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    struct Counting(AtomicUsize);

    impl ScriptReader for Counting {
        fn read(&self, _: &str, _: bool) -> ScriptFacts {
            self.0.fetch_add(1, Ordering::Relaxed);
            ScriptFacts::default()
        }
    }

    #[test]
    fn no_script_is_read_after_the_time_limit() {
        static READER: Counting = Counting(AtomicUsize::new(0));
        let scripts = "<script>a();</script>".repeat(10);
        let ask = CheckAsk {
            files: vec![ChangedFile { path: "snippets/a.liquid".to_owned(), content: scripts }],
            ..CheckAsk::default()
        };
        let check = |budget| run(&CheckedTheme::default(), &ask, &READER, &Stop::after(budget));
        assert_eq!(check(Duration::ZERO).err(), Some(Stopped));
        assert_eq!(READER.0.load(Ordering::Relaxed), 0);
        assert!(check(Duration::from_secs(60)).is_ok());
        assert_eq!(READER.0.load(Ordering::Relaxed), 10);
    }
}
