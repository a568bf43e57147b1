//! What a draft changes: a diff that `git apply` accepts, and what happened to the theme below meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::diff::{Hunk, hunks};
use crate::draft::Draft;
use crate::error::EditError;
use crate::journal::Change;
use crate::tree::{Bytes, File, Tree};

/// The lines around a change in a diff.
const CONTEXT: usize = 3;

/// What differs between a draft and the theme below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The files that differ, by path. Of a renamed file, the new path.
    pub files: Vec<FileChange>,
}

/// How a file of a draft differs from the theme below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The path in the draft; of a deleted file, the path that it had.
    pub path: String,
    /// The path in the theme below, if it is another one.
    pub from: Option<String>,
    /// The file in the theme below. `None` if the file is new.
    pub before: Option<File>,
    /// The file in the draft. `None` if it is deleted.
    pub after: Option<File>,
}

impl Changes {
    /// The change set as a unified diff with git's headers. It is made of bytes, because the files are. Files of which only the version
    /// is known can be renamed in it, but not made or deleted: [`Changes::not_shown`] lists them.
    #[must_use]
    pub fn diff(&self) -> Vec<u8> {
        let mut diff = Vec::new();
        for file in &self.files {
            file.write(&mut diff);
        }
        diff
    }

    /// The SHA-256 of the diff and of the versions of the files, as 64 hexadecimal digits. An approval of the changes is an approval of
    /// this hash: another change, also of a file that the diff can't show, has another hash.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        for file in &self.files {
            let version =
                |file: &Option<File>| file.as_ref().map_or_else(String::new, |file| file.version.to_string());
            for part in [
                &file.path,
                file.from.as_deref().unwrap_or_default(),
                &version(&file.before),
                &version(&file.after),
            ] {
                hasher.update((part.len() as u64).to_le_bytes());
                hasher.update(part.as_bytes());
            }
        }
        hasher.update(self.diff());
        hex::encode(hasher.finalize())
    }

    /// The files that are made or deleted, and whose bytes are not loaded. The diff lacks them.
    pub fn not_shown(&self) -> impl Iterator<Item = &str> {
        let lacks = |file: &Option<File>| file.as_ref().is_some_and(|file| file.bytes.is_none());
        self.files
            .iter()
            .filter(move |file| !file.is_renamed_only() && (lacks(&file.before) || lacks(&file.after)))
            .map(|file| file.path.as_str())
    }

    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

impl FileChange {
    fn is_renamed_only(&self) -> bool {
        let version = |file: &Option<File>| file.as_ref().map(|file| file.version);
        self.from.is_some() && version(&self.before) == version(&self.after)
    }

    fn write(&self, diff: &mut Vec<u8>) {
        let old_path = self.from.as_ref().unwrap_or(&self.path);
        let (old_name, new_name) = (quoted("a/", old_path), quoted("b/", &self.path));
        let mut head = format!("diff --git {old_name} {new_name}\n");
        if self.is_renamed_only() {
            let _ = write!(
                head,
                "similarity index 100%\nrename from {}\nrename to {}\n",
                quoted("", old_path),
                quoted("", &self.path)
            );
            diff.extend_from_slice(head.as_bytes());
            return;
        }
        let bytes = |file: &Option<File>| -> Option<Bytes> {
            match file {
                Some(file) => file.bytes.clone(),
                None => Some(Bytes::from(&b""[..])),
            }
        };
        let (Some(old), Some(new)) = (bytes(&self.before), bytes(&self.after)) else { return };
        match (&self.before, &self.after) {
            (None, _) => head.push_str("new file mode 100644\n"),
            (_, None) => head.push_str("deleted file mode 100644\n"),
            _ if self.from.is_some() => {
                let _ = write!(
                    head,
                    "rename from {}\nrename to {}\n",
                    quoted("", old_path),
                    quoted("", &self.path)
                );
            }
            _ => {}
        }
        let (olds, news) = (split(&old), split(&new));
        let changed = hunks(&olds, &news);
        if !changed.is_empty() {
            // A name with a blank ends with a tab, as git writes it.
            let name =
                |missing: bool, name: &str| match (missing, name.contains(' ') && !name.starts_with('"')) {
                    (true, _) => "/dev/null".to_owned(),
                    (_, true) => format!("{name}\t"),
                    _ => name.to_owned(),
                };
            let _ = writeln!(head, "--- {}", name(self.before.is_none(), &old_name));
            let _ = writeln!(head, "+++ {}", name(self.after.is_none(), &new_name));
        } else if self.before.is_some() == self.after.is_some() {
            return;
        }
        diff.extend_from_slice(head.as_bytes());
        write_hunks(diff, &olds, &news, &changed);
    }
}

/// A path as git writes it: in quotes, with escapes, if it has a quote, a backslash or a control character.
fn quoted(prefix: &str, path: &str) -> String {
    if !path.chars().any(|c| matches!(c, '"' | '\\') || c.is_control()) {
        return format!("{prefix}{path}");
    }
    let mut name = format!("\"{prefix}");
    for c in path.chars() {
        match c {
            '"' | '\\' => name.extend(['\\', c]),
            '\n' => name.push_str("\\n"),
            '\t' => name.push_str("\\t"),
            c if c.is_control() => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(name, "\\{byte:03o}");
                }
            }
            c => name.push(c),
        }
    }
    name.push('"');
    name
}

/// The lines of a file with their ends. An empty file has none.
pub(crate) fn split(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

fn write_hunks(diff: &mut Vec<u8>, old: &[&[u8]], new: &[&[u8]], changed: &[Hunk]) {
    let line = |sign: u8, line: &[u8]| {
        let mut written = vec![sign];
        written.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            written.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
        written
    };
    let mut at = 0;
    while at < changed.len() {
        let mut end = at + 1;
        while end < changed.len() && changed[end].old.start - changed[end - 1].old.end <= 2 * CONTEXT {
            end += 1;
        }
        let group = &changed[at..end];
        at = end;
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let start = first.old.start.saturating_sub(CONTEXT);
        let stop = (last.old.end + CONTEXT).min(old.len());
        let new_start = first.new.start - (first.old.start - start);
        let new_stop = last.new.end + (stop - last.old.end);
        // A part without lines is named by the line before it.
        let place = |start: usize, count: usize| if count == 0 { start } else { start + 1 };
        let (count, new_count) = (stop - start, new_stop - new_start);
        diff.extend_from_slice(
            format!("@@ -{},{count} +{},{new_count} @@\n", place(start, count), place(new_start, new_count))
                .as_bytes(),
        );
        let mut from = start;
        for hunk in group {
            (from..hunk.old.start).for_each(|index| diff.extend(line(b' ', old[index])));
            hunk.old.clone().for_each(|index| diff.extend(line(b'-', old[index])));
            hunk.new.clone().for_each(|index| diff.extend(line(b'+', new[index])));
            from = hunk.old.end;
        }
        (from..stop).for_each(|index| diff.extend(line(b' ', old[index])));
    }
}

/// A file in a draft, beside the theme below as it is by now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ComparedFile)]
pub struct Compared {
    /// The file.
    pub path: String,
    /// Who changed it.
    pub state: State,
}

/// Who changed a file since the draft began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
#[schema(as = ComparedState)]
pub enum State {
    /// Only this draft.
    OursOnly,
    /// Only others.
    TheirsOnly,
    /// Both, in the same way.
    Same,
    /// Both, in different lines: the texts were merged. Only if merging was asked for.
    Merged {
        /// The text with both changes.
        #[serde(with = "lossy")]
        #[schema(value_type = String)]
        merged: Vec<u8>,
    },
    /// Both. The texts are empty where there is no file, or no text.
    Conflict {
        /// The text when the draft began.
        base: Option<String>,
        /// The text of the draft.
        ours: Option<String>,
        /// The text that others wrote.
        theirs: Option<String>,
    },
}

/// Bytes that are shown as text.
mod lossy {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        Ok(String::deserialize(deserializer)?.into_bytes())
    }
}

/// The text with the changes of both sides, if no two of them touch each other.
#[must_use]
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let (base, our, their) = (split(base), split(ours), split(theirs));
    let (mine, other) = (hunks(&base, &our), hunks(&base, &their));
    let (mut mine, mut other) = (mine.into_iter().peekable(), other.into_iter().peekable());
    let mut merged = Vec::new();
    let mut at = 0;
    loop {
        let (hunk, lines) = match (mine.peek(), other.peek()) {
            (None, None) => break,
            (Some(a), Some(b)) if a.old == b.old && our[a.new.clone()] == their[b.new.clone()] => {
                other.next();
                (mine.next(), &our)
            }
            (Some(a), Some(b)) if a.old.start <= b.old.end && b.old.start <= a.old.end => return None,
            (Some(a), Some(b)) if a.old.start < b.old.start => (mine.next(), &our),
            (Some(_), None) => (mine.next(), &our),
            _ => (other.next(), &their),
        };
        let hunk = hunk?;
        merged.extend(base[at..hunk.old.start].concat());
        merged.extend(lines[hunk.new.clone()].concat());
        at = hunk.old.end;
    }
    merged.extend(base[at..].concat());
    Some(merged)
}

impl Draft {
    /// What differs from the theme below.
    #[must_use]
    pub fn changes(&self) -> Changes {
        let mut files = Vec::new();
        let mut moved: BTreeSet<&str> = BTreeSet::new();
        for (path, after) in &self.files {
            let before = self.base.get(path);
            let (Some(after), None) = (after, before) else { continue };
            let origin = self.origins.get(path).filter(|origin| {
                self.file(origin).is_none()
                    && self.base.get(origin).is_some()
                    && !moved.contains(origin.as_str())
            });
            let from = origin.cloned();
            if let Some(origin) = origin {
                moved.insert(origin);
            }
            let before = from.as_ref().and_then(|from| self.base.get(from)).cloned();
            files.push(FileChange { path: path.clone(), from, before, after: Some(after.clone()) });
        }
        for (path, after) in &self.files {
            if let Some(before) = self.base.get(path).filter(|_| !moved.contains(path.as_str())) {
                files.push(FileChange {
                    path: path.clone(),
                    from: None,
                    before: Some(before.clone()),
                    after: after.clone(),
                });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Changes { files }
    }

    /// Each file that the draft or others changed. `now` is the theme below as others left it. With `merging`, texts whose changes do not
    /// touch each other are merged; without it, they are conflicts.
    #[must_use]
    pub fn compare(&self, now: &Tree, merging: bool) -> Vec<Compared> {
        let version = |file: Option<&File>| file.map(|file| file.version);
        let paths: BTreeSet<&String> =
            self.base.0.keys().chain(self.files.keys()).chain(now.0.keys()).collect();
        let mut found = Vec::new();
        for path in paths {
            let (base, ours, theirs) = (self.base.get(path), self.file(path), now.get(path));
            let (was, our, their) = (version(base), version(ours), version(theirs));
            let state = match (our != was, their != was) {
                (false, false) => continue,
                (true, false) => State::OursOnly,
                (false, true) => State::TheirsOnly,
                (true, true) if our == their => State::Same,
                (true, true) => {
                    let bytes = |file: Option<&File>| file.and_then(|file| file.bytes.clone());
                    let sides = (bytes(base), bytes(ours), bytes(theirs));
                    let merged = match &sides {
                        (Some(base), Some(ours), Some(theirs)) if merging => merge(base, ours, theirs),
                        _ => None,
                    };
                    let text = |bytes: Option<Bytes>| {
                        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                    };
                    match merged {
                        Some(merged) => State::Merged { merged },
                        None => State::Conflict {
                            base: text(sides.0),
                            ours: text(sides.1),
                            theirs: text(sides.2),
                        },
                    }
                }
            };
            found.push(Compared { path: path.clone(), state });
        }
        found
    }

    /// Puts the draft over the theme as others left it. What only others changed is taken from them.
    ///
    /// # Errors
    /// There are conflicts; the draft is as before. Decide each of them with [`Draft::resolve`], then rebase.
    pub fn rebase(&mut self, now: Tree, merging: bool) -> Result<(), EditError> {
        let compared = self.compare(&now, merging);
        let is_conflict = |file: &&Compared| matches!(file.state, State::Conflict { .. });
        let paths: Vec<String> = compared.iter().filter(is_conflict).map(|file| file.path.clone()).collect();
        if !paths.is_empty() {
            return Err(EditError::Conflicts { paths });
        }
        self.put_over(now, compared);
        Ok(())
    }

    /// Puts the draft over the theme as others left it, where the caller has decided each conflict: the bytes that the file gets, or
    /// `None` to delete it.
    ///
    /// # Errors
    /// A conflict has no decision; the draft is as before.
    pub fn resolve(
        &mut self,
        now: Tree,
        merging: bool,
        decisions: &BTreeMap<String, Option<Bytes>>,
    ) -> Result<(), EditError> {
        let compared = self.compare(&now, merging);
        let is_open = |file: &&Compared| {
            matches!(file.state, State::Conflict { .. }) && !decisions.contains_key(&file.path)
        };
        let paths: Vec<String> = compared.iter().filter(is_open).map(|file| file.path.clone()).collect();
        if !paths.is_empty() {
            return Err(EditError::Conflicts { paths });
        }
        let is_decided = |file: &Compared| matches!(file.state, State::Conflict { .. });
        let decided: Vec<String> =
            compared.iter().filter(|file| is_decided(file)).map(|file| file.path.clone()).collect();
        self.put_over(now, compared);
        for path in decided {
            let file = decisions.get(&path).cloned().flatten().map(File::new);
            self.note_rebased(&path, file);
        }
        Ok(())
    }

    fn put_over(&mut self, now: Tree, compared: Vec<Compared>) {
        for Compared { path, state } in &compared {
            match state {
                State::Merged { merged } => self.note_rebased(path, Some(File::new(&merged[..]))),
                State::TheirsOnly if self.journal().iter().any(|entry| entry.path == *path) => {
                    self.note_rebased(path, now.get(path).cloned());
                }
                _ => {}
            }
        }
        self.base = now;
        let base = &self.base;
        self.files.retain(|path, file| {
            file.as_ref().map(|file| file.version) != base.get(path).map(|file| file.version)
        });
        self.origins.retain(|_, origin| base.get(origin).is_some());
    }

    fn note_rebased(&mut self, path: &str, file: Option<File>) {
        let by = "the theme below";
        self.write_as(by, path, file, Change::Rebased);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;

    #[test]
    fn changes_in_different_lines_are_merged() {
        let check = |ours: &str, theirs: &str, expected: Option<&str>| {
            let merged = merge(b"a\nb\nc\nd\n", ours.as_bytes(), theirs.as_bytes());
            assert_eq!(merged.as_deref(), expected.map(str::as_bytes), "{ours:?} {theirs:?}");
        };
        check("x\nb\nc\nd\n", "a\nb\nc\ny\n", Some("x\nb\nc\ny\n"));
        check("x\nb\nc\nd\n", "x\nb\nc\nd\n", Some("x\nb\nc\nd\n"));
        check("x\nb\nc\nd\n", "y\nb\nc\nd\n", None);
        check("x\nb\nc\nd\n", "a\ny\nc\nd\n", None);
        check("a\nc\nd\n", "a\nb\nc\nd\ne\n", Some("a\nc\nd\ne\n"));
        check("a\nb\nc\nd\ne\n", "a\nb\nc\nd\nf\n", None);
    }

    #[test]
    fn paths_are_quoted_as_git_does() {
        assert_eq!(quoted("a/", "assets/a b.css"), "a/assets/a b.css");
        assert_eq!(quoted("a/", "assets/a\"b.css"), "\"a/assets/a\\\"b.css\"");
        assert_eq!(quoted("", "a\tb\u{1}"), "\"a\\tb\\001\"");
    }

    fn tree(files: &[(&str, &str)]) -> Tree {
        files.iter().map(|(path, text)| (*path, text.as_bytes())).collect()
    }

    fn rewrite(path: &str, content: &str) -> crate::Call {
        let (path, content) = (path.to_owned(), content.to_owned());
        crate::Call::WriteFile { path, version: None, content, allow_shrink: Vec::new() }
    }

    #[test]
    fn a_diff_names_what_happened_to_each_file() {
        let mut draft = Draft::new(
            "run",
            tree(&[("a b.css", "one\ntwo"), ("gone.css", "x\n"), ("old.css", "1\n2\n3\n")]),
        );
        draft.note_seen("a b.css");
        draft.apply(&rewrite("a b.css", "one\n2\n")).unwrap();
        for call in [
            r#"{"tool": "delete_file", "path": "gone.css"}"#,
            r#"{"tool": "create_file", "path": "new.css", "content": ""}"#,
            r#"{"tool": "rename_file", "path": "old.css", "to": "moved.css"}"#,
        ] {
            draft.apply(&serde_json::from_str(call).unwrap()).unwrap();
        }
        assert_eq!(
            String::from_utf8(draft.changes().diff()).unwrap(),
            "diff --git a/a b.css b/a b.css\n--- a/a b.css\t\n+++ b/a b.css\t\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n\
             +2\n\\ No newline at end of file\n\
             diff --git a/gone.css b/gone.css\ndeleted file mode 100644\n--- a/gone.css\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n\
             diff --git a/old.css b/moved.css\nsimilarity index 100%\nrename from old.css\nrename to moved.css\n\
             diff --git a/new.css b/new.css\nnew file mode 100644\n"
        );
        let hash = draft.changes().hash();
        assert_eq!(hash.len(), 64);
        draft.apply(&rewrite("a b.css", "one\n3\n")).unwrap();
        assert_ne!(draft.changes().hash(), hash);
    }

    #[test]
    fn files_of_which_only_the_version_is_known_have_a_hash_and_no_diff() {
        let mut base = tree(&[("a.css", "x\n")]);
        base.insert("assets/gull.png", File::listed(Version::of(b"gull")));
        let mut draft = Draft::new("run", base);
        let empty = draft.changes().hash();
        let call = r#"{"tool": "delete_file", "path": "assets/gull.png", "force": true}"#;
        draft.apply(&serde_json::from_str(call).unwrap()).unwrap();
        let changes = draft.changes();
        assert_eq!(
            (changes.not_shown().collect::<Vec<_>>(), changes.diff().len()),
            (vec!["assets/gull.png"], 0)
        );
        assert_ne!(changes.hash(), empty);
        draft.undo(crate::Undo::All).unwrap();
        assert!(draft.changes().is_empty());
    }

    #[test]
    fn a_theme_that_changed_meanwhile_is_compared_and_taken() {
        let lines = "1\n2\n3\n4\n5\n";
        let base = tree(&[
            ("ours.css", lines),
            ("theirs.css", lines),
            ("same.css", lines),
            ("both.css", lines),
            ("clash.css", lines),
            ("gone.css", lines),
        ]);
        let mut draft = Draft::new("run", base);
        let edits = [
            ("ours.css", lines.replace('1', "a")),
            ("same.css", lines.replace('1', "a")),
            ("both.css", lines.replace('1', "a")),
            ("clash.css", lines.replace('1', "a")),
            ("gone.css", lines.replace('1', "a")),
        ];
        for (path, text) in &edits {
            draft.note_seen(path);
            draft.apply(&rewrite(path, text)).unwrap();
        }
        let now = tree(&[
            ("ours.css", lines),
            ("theirs.css", "new\n"),
            ("same.css", &lines.replace('1', "a")),
            ("both.css", &lines.replace('5', "b")),
            ("clash.css", &lines.replace('1', "b")),
        ]);
        let states = |merging: bool| -> Vec<(String, &'static str)> {
            let name = |file: Compared| {
                let state = match file.state {
                    State::OursOnly => "ours",
                    State::TheirsOnly => "theirs",
                    State::Same => "same",
                    State::Merged { merged } => {
                        assert_eq!(merged, b"a\n2\n3\n4\nb\n");
                        "merged"
                    }
                    State::Conflict { base, ours, theirs } => {
                        assert!(
                            base.is_some() && ours.is_some() && (theirs.is_some() || file.path == "gone.css")
                        );
                        "conflict"
                    }
                };
                (file.path, state)
            };
            draft.compare(&now, merging).into_iter().map(name).collect()
        };
        let expected = |both| {
            [
                ("both.css", both),
                ("clash.css", "conflict"),
                ("gone.css", "conflict"),
                ("ours.css", "ours"),
                ("same.css", "same"),
                ("theirs.css", "theirs"),
            ]
            .map(|(path, state)| (path.to_owned(), state))
        };
        assert_eq!(states(false), expected("conflict"));
        assert_eq!(states(true), expected("merged"));
        let Err(EditError::Conflicts { paths }) = draft.rebase(now.clone(), true) else {
            panic!("there are conflicts")
        };
        assert_eq!(paths, ["clash.css", "gone.css"]);
        let decisions = BTreeMap::from([
            ("clash.css".to_owned(), Some(Bytes::from(&b"mine\n"[..]))),
            ("gone.css".to_owned(), None),
        ]);
        draft.resolve(now, true, &decisions).unwrap();
        let text = |path: &str| {
            draft.file(path).map(|file| String::from_utf8(file.bytes.clone().unwrap().to_vec()).unwrap())
        };
        assert_eq!(text("both.css").unwrap(), "a\n2\n3\n4\nb\n");
        assert_eq!(text("clash.css").unwrap(), "mine\n");
        assert_eq!(text("theirs.css").unwrap(), "new\n");
        assert_eq!(text("gone.css"), None);
        let changed: Vec<String> = draft.changes().files.into_iter().map(|file| file.path).collect();
        assert_eq!(changed, ["both.css", "clash.css", "ours.css"]);
        // What was merged is not what the run wrote, so it is read again.
        assert!(matches!(draft.apply(&rewrite("both.css", "x\n")), Err(EditError::Changed { .. })));
        assert!(matches!(draft.undo(crate::Undo::File("both.css")), Err(EditError::LaterWrite { .. })));
        let stored = draft.stored();
        let loaded =
            Draft::load(stored.clone(), draft.base().clone(), |version| draft.content(version)).unwrap();
        assert_eq!(loaded.stored(), stored);
        let other = Draft::load(stored, tree(&[("ours.css", "other\n")]), |_| None);
        assert!(matches!(other, Err(crate::LoadError::BaseChanged { .. })));
    }
}
