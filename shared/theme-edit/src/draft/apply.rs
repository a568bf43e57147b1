//! Doing what was planned.

use super::plan::{Plan, Work};
use super::undo::Undo;
use super::{Draft, Outcome};
use crate::call::Call;
use crate::differs::Differs;
use crate::error::EditError;
use crate::guards;
use crate::journal::Change;
use crate::text::{Splice, Text, spliced};
use crate::tree::{Bytes, File};

/// What a file becomes. Nothing has changed yet.
struct Next {
    path: String,
    file: Option<File>,
    change: Change,
    /// How it differs, if that is known.
    differs: Option<Differs>,
}

impl Draft {
    /// Does one call, or nothing.
    ///
    /// # Errors
    /// A guard refused it. The draft is as before.
    pub fn apply(&mut self, call: &Call) -> Result<Outcome, EditError> {
        if let Call::UndoEdit { edit, path, all } = call {
            return match (edit, path, all) {
                (Some(edit), None, false) => self.undo(Undo::Edit(*edit)),
                (None, Some(path), false) => self.undo(Undo::File(path)),
                (None, None, true) => self.undo(Undo::All),
                _ => Err(EditError::BadCall {
                    reason: "undo_edit has one of edit (a number), path, or all: true".to_owned(),
                }),
            };
        }
        let mut plan = Plan::default();
        self.plan(call, &mut plan)?;
        self.carry_out(plan)
    }

    /// Does all calls as one edit, or nothing. All line numbers and versions are those before the batch.
    ///
    /// # Errors
    /// A guard refused one of the calls. The draft is as before.
    pub fn apply_all(&mut self, calls: &[Call]) -> Result<Outcome, EditError> {
        if let [call] = calls {
            return self.apply(call);
        }
        let mut plan = Plan::default();
        for (index, call) in (1..).zip(calls) {
            self.plan(call, &mut plan).map_err(|error| EditError::InBatch {
                index,
                of: calls.len(),
                error: Box::new(error),
            })?;
        }
        self.carry_out(plan)
    }

    fn carry_out(&mut self, plan: Plan) -> Result<Outcome, EditError> {
        let Plan { works, calls, mentions } = plan;
        let mut next = Vec::new();
        for (path, work) in works {
            next.push(self.next(path, work)?);
        }
        if next.is_empty() {
            return Ok(Outcome { edit: None, files: Vec::new(), calls, mentions });
        }
        self.edits += 1;
        let (edit, run) = (self.edits, self.run.clone());
        let mut files = Vec::new();
        for Next { path, file, change, differs } in next {
            match &change {
                Change::MovedFrom { from } => {
                    let origin = self.origins.get(from).unwrap_or(from).clone();
                    if self.base.get(&origin).is_some() {
                        self.origins.insert(path.clone(), origin);
                    }
                }
                Change::Created => {
                    self.origins.remove(&path);
                }
                _ => {}
            }
            let outcome = self.set(edit, &run, &path, file, change, differs);
            match outcome.version {
                Some(version) => self.seen.insert(path, version),
                None => self.seen.remove(&path),
            };
            files.push(outcome);
        }
        Ok(Outcome { edit: Some(edit), files, calls, mentions })
    }

    /// The bytes of a file whose text changes. The plan has found out that it is a text.
    fn planned(&self, path: &str) -> Result<&Bytes, EditError> {
        let bytes = self.file(path).and_then(|file| file.bytes.as_ref());
        bytes.ok_or_else(|| EditError::NotLoaded { paths: vec![path.to_owned()] })
    }

    fn next(&self, path: String, work: Work) -> Result<Next, EditError> {
        let (bytes, change, differs) = match work {
            Work::Splices { splices, allowed } => {
                let bytes = self.planned(&path)?;
                let splices = in_order(&path, bytes, splices)?;
                let new = spliced(bytes, &splices);
                let differs = guards::check(&path, Some(bytes), &new, Some(&splices), &allowed)?;
                (Some(new), Change::Edited, Some(differs))
            }
            Work::Whole { bytes: new, allowed } => {
                let bytes = self.planned(&path)?;
                let differs = guards::check(&path, Some(bytes), &new, None, &allowed)?;
                (Some(new), Change::Edited, Some(differs))
            }
            Work::Create { bytes } => {
                let differs = guards::check(&path, None, &bytes, None, &[])?;
                (Some(bytes), Change::Created, Some(differs))
            }
            Work::Delete => (None, Change::Deleted, None),
            Work::MoveTo { to } => (None, Change::MovedTo { to }, None),
            Work::MoveFrom { from } => {
                let file = self.file(&from).cloned();
                return Ok(Next { path, file, change: Change::MovedFrom { from }, differs: None });
            }
        };
        Ok(Next { path, file: bytes.map(File::new), change, differs })
    }
}

/// Sorts the splices of a file.
///
/// # Errors
/// Two of them change the same place.
fn in_order(path: &str, bytes: &[u8], mut splices: Vec<Splice>) -> Result<Vec<Splice>, EditError> {
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    for pair in splices.windows(2) {
        let (first, second) = (&pair[0].range, &pair[1].range);
        if second.start < first.end || first == second {
            let text = Text::new(bytes);
            return Err(EditError::Overlap {
                path: path.to_owned(),
                first: text.lines_of(first),
                second: text.lines_of(second),
            });
        }
    }
    Ok(splices)
}
