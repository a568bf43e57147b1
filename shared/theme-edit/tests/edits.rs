//! Runs the rules in `tests/edits`. Its README says what the folders mean.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]
#![allow(clippy::disallowed_methods, reason = "tests read and write files")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use theme_edit::{Call, Draft, Lint, Linter, Outcome, Tree};

type Files = BTreeMap<String, Vec<u8>>;

fn read_files(folder: &Path, prefix: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            read_files(&path, &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
}

fn files_in(folder: &Path) -> Option<Files> {
    folder.is_dir().then(|| {
        let mut files = Files::new();
        read_files(folder, "", &mut files);
        files
    })
}

fn files_of(draft: &Draft) -> Files {
    let file = |path: &str| (path.to_owned(), draft.file(path).unwrap().bytes.as_ref().unwrap().to_vec());
    draft.paths().map(file).collect()
}

/// The text of a field of a step.
fn text<'a>(step: &'a Value, field: &str) -> Option<&'a str> {
    step.get(field).and_then(Value::as_str)
}

/// A call, with the version that was read for `$version`.
fn call(step: &Value, version: &str) -> Result<Call, String> {
    let mut step = step.clone();
    if text(&step, "version") == Some("$version") {
        step["version"] = version.into();
    }
    serde_json::from_value(step).map_err(|error| error.to_string())
}

struct Run<'a> {
    draft: Draft,
    linter: Linter<'a>,
    version: String,
    last: Option<(Outcome, Lint)>,
}

impl Run<'_> {
    fn step(&mut self, step: &Value) -> Result<(), String> {
        if text(step, "forget").is_some() {
            return Ok(());
        }
        if let Some(path) = text(step, "read_version") {
            self.version = self.draft.file(path).unwrap().version.short();
            return Ok(());
        }
        if let Some(path) = text(step, "another_writes") {
            let bytes = text(step, "content").map(|content| content.as_bytes().into());
            self.draft.written_by_another(text(step, "by").unwrap(), path, bytes);
            return Ok(());
        }
        let outcome = match step.get("batch").and_then(Value::as_array) {
            Some(calls) => {
                let calls: Result<Vec<Call>, String> =
                    calls.iter().map(|step| call(step, &self.version)).collect();
                self.draft.apply_all(&calls?)
            }
            None => self.draft.apply(&call(step, &self.version)?),
        };
        let outcome = outcome.map_err(|error| {
            // The refusal can be stored and sent.
            let json = serde_json::to_string(&error).unwrap();
            assert_eq!(serde_json::from_str::<theme_edit::EditError>(&json).unwrap(), error);
            error.to_string()
        })?;
        let lint = self.linter.after(&self.draft, &outcome);
        self.last = Some((outcome, lint));
        Ok(())
    }
}

/// Runs one folder. The result is what is wrong.
fn check(folder: &Path) -> Result<(), String> {
    let input = files_in(&folder.join("input")).ok_or("there is no input")?;
    let asked = fs::read_to_string(folder.join("call.json")).map_err(|error| error.to_string())?;
    let part = |name: &str| fs::read_to_string(folder.join(name)).ok().map(|text| text.trim_end().to_owned());
    let refused = part("refused.txt");
    let expected = files_in(&folder.join("expected"));
    let tree: Tree = input.iter().map(|(path, bytes)| (path.clone(), bytes.as_slice())).collect();
    let steps = match serde_json::from_str::<Value>(&asked) {
        Ok(Value::Array(steps)) => steps,
        Ok(step) => vec![step],
        Err(error) => {
            let wanted = refused.ok_or_else(|| error.to_string())?;
            return if error.to_string().contains(&wanted) { Ok(()) } else { Err(error.to_string()) };
        }
    };
    let linter = Linter::new(&tree, None);
    let mut run = Run { draft: Draft::new("the run", tree), linter, version: String::new(), last: None };
    let forgotten: BTreeSet<&str> = steps.iter().filter_map(|step| text(step, "forget")).collect();
    for path in input.keys().filter(|path| !forgotten.contains(path.as_str())) {
        run.draft.note_seen(path);
    }
    let (last, before) = steps.split_last().ok_or("there is no step")?;
    for step in before {
        run.step(step)?;
    }
    let unchanged = files_of(&run.draft);
    let result = run.step(last);
    let files = files_of(&run.draft);
    match (&result, &refused) {
        (Ok(()), Some(wanted)) => return Err(format!("it was not refused with {wanted:?}")),
        (Err(error), None) => return Err(format!("it was refused: {error}")),
        (Err(error), Some(wanted)) if !error.contains(wanted.as_str()) => {
            return Err(format!("it was refused otherwise: {error}"));
        }
        (Err(_), Some(_)) if files != unchanged => return Err("it was refused and changed files".to_owned()),
        _ => {}
    }
    if let Some(expected) = expected {
        if files != expected {
            let shown = |files: &Files| -> BTreeMap<String, String> {
                files
                    .iter()
                    .map(|(path, bytes)| (path.clone(), String::from_utf8_lossy(bytes).into_owned()))
                    .collect()
            };
            return Err(format!("files are {:#?}, expected {:#?}", shown(&files), shown(&expected)));
        }
    } else if refused.is_none() {
        return Err("there is neither expected nor refused.txt".to_owned());
    }
    let (answer, lint) = match &run.last {
        Some((outcome, lint)) => {
            (serde_json::to_string(outcome).unwrap(), serde_json::to_string(lint).unwrap())
        }
        None => (String::new(), String::new()),
    };
    for (name, found) in [("answer.txt", answer), ("lint.txt", lint)] {
        for line in part(name).iter().flat_map(|text| text.lines()) {
            if !found.contains(line) {
                return Err(format!("{name}: {line} is not in {found}"));
            }
        }
    }
    // A draft that is stored and loaded is the same, and its journal leads to the same files.
    let contents: BTreeMap<_, _> =
        run.draft.contents().map(|(version, bytes)| (version, bytes.clone())).collect();
    let json = serde_json::to_string(&run.draft.stored()).unwrap();
    let loaded = Draft::load(serde_json::from_str(&json).unwrap(), run.draft.base().clone(), |version| {
        contents.get(&version).cloned()
    })
    .map_err(|error| error.to_string())?;
    if files_of(&loaded) != files || loaded.stored() != run.draft.stored() {
        return Err("the loaded draft is another one".to_owned());
    }
    Ok(())
}

#[test]
fn each_folder_is_as_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edits");
    let mut folders: Vec<_> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    let mut numbers = BTreeSet::new();
    let mut wrong = Vec::new();
    for folder in &folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert!(
            numbers.insert(name.split('_').next().unwrap().to_owned()),
            "{name} has the number of another"
        );
        if let Err(error) = check(folder) {
            wrong.push(format!("{name}: {error}"));
        }
    }
    assert!(folders.len() >= 60);
    assert!(wrong.is_empty(), "{} of {} are wrong:\n\n{}", wrong.len(), folders.len(), wrong.join("\n\n"));
}
