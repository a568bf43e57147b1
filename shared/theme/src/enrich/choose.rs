//! Chooses which files are sent to a model, in what order, and how many per call.

use super::{Content, MAX_TRIES, Notes};
use crate::index::ThemeIndex;
use crate::path::FileKind;
use crate::record::FileRecord;
use crate::scan::{DegradedReason, locale};

/// The largest part of a file that is sent, in bytes.
pub const MAX_SHOWN: usize = 32 * 1024;

/// The longest answer, in tokens. At eighty tokens a second it takes 100 of the 120 seconds that a call has.
pub const MAX_ANSWER: u32 = 8_000;

/// Batches are planned for half of the maximum answer. Models write more than they are asked for, and an answer that is
/// cut off is paid for twice.
const PLANNED_ANSWER: u32 = MAX_ANSWER / 2;

/// The batch size of retries. If a batch gave no usable answer, its files are sent again in small batches, so a file
/// that causes failures affects few others.
const RETRY_BATCH: usize = 5;

/// The size of the number before a line, in bytes.
const LINE_NUMBER_BYTES: usize = 7;
/// The size of the line that introduces a file, in bytes.
const FILE_HEADER_BYTES: usize = 160;

/// A file that a model should describe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub path: String,
    pub kind: FileKind,
    pub content: Content,
    pub bytes: u32,
    pub lines: u32,
}

impl Candidate {
    /// The largest size of the file in the prompt, in bytes.
    fn question_bytes(&self) -> usize {
        let shown = MAX_SHOWN.min(self.bytes as usize);
        let lines = (self.lines as usize).min(shown);
        shown + lines * LINE_NUMBER_BYTES + self.path.len() + FILE_HEADER_BYTES
    }

    /// The usual size of an answer about the file, in tokens: a sentence, some words, and one feature per dozen lines.
    fn answer_tokens(&self) -> u32 {
        120 + 25 * (self.lines / 12).min(20)
    }
}

fn is_worth_describing(record: &FileRecord) -> bool {
    let is_text = match record.kind {
        FileKind::Other | FileKind::SettingsData => false,
        FileKind::Locale | FileKind::SchemaLocale => locale::is_default(&record.path),
        _ => true,
    };
    let is_unreadable =
        |reason: &DegradedReason| matches!(reason, DegradedReason::Minified | DegradedReason::TooLarge);
    is_text && record.bytes > 0 && !record.degraded.iter().any(|(_, reason)| is_unreadable(reason))
}

impl ThemeIndex {
    /// The files that a model should describe. Files that many others need come first. Images, generated files, stored
    /// settings and translations are left out, because the index already knows everything useful about them.
    #[must_use]
    pub fn worth_describing(&self) -> Vec<Candidate> {
        let importance = self.importance(None, None);
        let mut order: Vec<(f32, &FileRecord)> = importance
            .into_iter()
            .zip(&self.files)
            .filter(|(_, record)| is_worth_describing(record))
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.path.cmp(&b.1.path)));
        let candidate = |(_, record): (f32, &FileRecord)| Candidate {
            path: record.path.to_string(),
            kind: record.kind,
            content: record.hash,
            bytes: record.bytes,
            lines: record.lines,
        };
        order.into_iter().map(candidate).collect()
    }
}

/// The candidates that have no note and have tries left.
#[must_use]
pub fn missing(candidates: Vec<Candidate>, notes: &Notes) -> Vec<Candidate> {
    let lacks = |candidate: &Candidate| {
        let (path, content) = (&candidate.path, &candidate.content);
        notes.of(path, content).is_none() && notes.tries(path, content) < MAX_TRIES
    };
    candidates.into_iter().filter(lacks).collect()
}

/// The longest answer to request for these files, in tokens.
#[must_use]
pub fn answer_ceiling(batch: &[Candidate]) -> u32 {
    (2 * batch.iter().map(Candidate::answer_tokens).sum::<u32>() + 500).min(MAX_ANSWER)
}

/// Splits the files into as few batches as fit the model, in their order. `fits` tells whether the model takes an input of so
/// many bytes. `fixed` bytes are added to every batch. Files that were sent before come last, in small batches.
#[must_use]
pub fn batches(
    fits: impl Fn(usize) -> bool,
    files: Vec<Candidate>,
    notes: &Notes,
    fixed: usize,
) -> Vec<Vec<Candidate>> {
    let was_shown = |file: &Candidate| notes.tries(&file.path, &file.content) > 0;
    let (again, new): (Vec<_>, Vec<_>) = files.into_iter().partition(was_shown);
    let mut batches: Vec<Vec<Candidate>> = Vec::new();
    for (files, at_once) in [(new, usize::MAX), (again, RETRY_BATCH)] {
        let (mut batch, mut bytes, mut answer) = (Vec::new(), fixed, 0);
        for file in files {
            let (question, tokens) = (file.question_bytes(), file.answer_tokens());
            let has_room =
                fits(bytes + question) && answer + tokens <= PLANNED_ANSWER && batch.len() < at_once;
            if !has_room && !batch.is_empty() {
                batches.push(std::mem::take(&mut batch));
                (bytes, answer) = (fixed, 0);
            }
            (bytes, answer) = (bytes + question, answer + tokens);
            batch.push(file);
        }
        if !batch.is_empty() {
            batches.push(batch);
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tests::harbour;

    /// Usual largest inputs of models, in bytes.
    const LARGE_MODEL: usize = 225_000;
    const SMALL_MODEL: usize = 60_000;

    fn candidate(n: usize, bytes: u32, lines: u32) -> Candidate {
        let path = format!("snippets/{n:04}.liquid");
        Candidate { path, kind: FileKind::Snippet, content: [n as u8; 16], bytes, lines }
    }

    #[test]
    fn files_that_the_index_fully_knows_are_not_sent() {
        let one_line = format!("a=1;{}", "b();".repeat(2_000));
        let index = ThemeIndex::build([
            ("assets/base.css", ".a {}"),
            ("assets/app.min.js", one_line.as_str()),
            ("assets/icon.svg", "<svg/>"),
            ("assets/empty.css", ""),
            ("config/settings_data.json", "{}"),
            ("config/settings_schema.json", "[]"),
            ("layout/theme.liquid", "{% render 'price' %}"),
            ("locales/de.json", "{}"),
            ("locales/de.schema.json", "{}"),
            ("locales/en.default.json", "{\"a\": \"A\"}"),
            ("locales/en.default.schema.json", "{}"),
            ("snippets/price.liquid", "{{ price }}"),
        ])
        .unwrap();
        let mut paths: Vec<String> = index.worth_describing().into_iter().map(|file| file.path).collect();
        assert_eq!(paths[0], "snippets/price.liquid", "the one that another needs comes first");
        paths.sort_unstable();
        assert_eq!(
            paths,
            [
                "assets/base.css",
                "config/settings_schema.json",
                "layout/theme.liquid",
                "locales/en.default.json",
                "locales/en.default.schema.json",
                "snippets/price.liquid",
            ]
        );
    }

    #[test]
    fn a_small_theme_is_one_call() {
        let (files, notes) = (harbour().worth_describing(), Notes::default());
        let fits = |bytes| bytes <= LARGE_MODEL;
        assert_eq!(batches(fits, files.clone(), &notes, 8_000), [files]);
    }

    #[test]
    fn files_without_an_answer_are_retried_in_small_batches_then_given_up() {
        let files: Vec<Candidate> = (0..7).map(|n| candidate(n, 100, 5)).collect();
        let mut notes = Notes::default();
        files[..6].iter().for_each(|file| notes.failed(&file.path, &file.content));
        let fits = |bytes| bytes <= SMALL_MODEL;
        let sizes = |notes: &Notes| -> Vec<usize> {
            let batches = batches(fits, missing(files.clone(), notes), notes, 0);
            batches.iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(&notes), [1, 5, 1]);
        files[..3].iter().for_each(|file| notes.failed(&file.path, &file.content));
        assert_eq!(sizes(&notes), [1, 3]);
    }

    proptest! {
        /// Every file is in one batch. No batch is larger than its bounds, unless a single file is.
        #[test]
        fn batches_hold_every_file_once_within_their_bounds(
            sizes in prop::collection::vec((1u32..200_000, 1u32..5_000), 0..60),
            large in any::<bool>(),
            fixed in 0usize..20_000,
        ) {
            let fits = |bytes| bytes <= if large { LARGE_MODEL } else { SMALL_MODEL };
            let files: Vec<Candidate> = sizes.iter().enumerate()
                .map(|(n, &(bytes, lines))| candidate(n, bytes, lines)).collect();
            let batches = batches(fits, files.clone(), &Notes::default(), fixed);
            prop_assert_eq!(batches.concat(), files);
            for batch in batches {
                let bytes = fixed + batch.iter().map(Candidate::question_bytes).sum::<usize>();
                let answer: u32 = batch.iter().map(Candidate::answer_tokens).sum();
                prop_assert!(batch.len() == 1 || (fits(bytes) && answer <= PLANNED_ANSWER));
                prop_assert!(answer_ceiling(&batch) <= MAX_ANSWER && answer_ceiling(&batch) > answer);
            }
        }
    }
}
