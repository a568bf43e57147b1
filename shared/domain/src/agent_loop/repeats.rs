//! The same calls with the same results, again and again: the model is told, and then the run ends.

use super::transcript::{Call, CallResult, Purpose, Step, Transcript};

/// From how many equal calls in a row the model is warned, and at how many the run ends.
const WARN: usize = 3;
const STOP: usize = 5;
/// The same for two calls that alternate, counted in pairs.
const WARN_PAIRS: usize = 2;
const STOP_PAIRS: usize = 4;

/// Calls that repeat at the end of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// One call, with the same result, so often in a row.
    Same(usize),
    /// Two calls by turns (A-B-A-B), so many pairs.
    Pairs(usize),
}

impl Repeats {
    /// What the model is told.
    #[must_use]
    pub fn warning(self) -> String {
        let what = match self {
            Self::Same(times) => format!("You have made the same call with the same result {times} times."),
            Self::Pairs(pairs) => {
                format!("You have made the same two calls with the same results {pairs} times by turns.")
            }
        };
        format!("{what} Do something else, or finish.")
    }

    /// Why the run ends, if it does.
    #[must_use]
    pub fn stops(self) -> Option<String> {
        match self {
            Self::Same(times) if times >= STOP => {
                Some(format!("the model made the same call with the same result {times} times"))
            }
            Self::Pairs(pairs) if pairs >= STOP_PAIRS => Some(format!(
                "the model made the same two calls with the same results {pairs} times by turns"
            )),
            _ => None,
        }
    }
}

/// The repetition that a transcript ends with, if it is worth a warning.
#[must_use]
pub fn find(transcript: &Transcript) -> Option<Repeats> {
    find_in(&transcript.steps)
}

pub(super) fn find_in(steps: &[Step]) -> Option<Repeats> {
    let calls: Vec<(&Call, &CallResult)> = steps
        .iter()
        .filter(|step| step.purpose == Purpose::Work)
        .flat_map(|step| step.reply.calls.iter().zip(&step.results))
        .collect();
    let equal = |a: usize, b: usize| {
        let ((a, a_result), (b, b_result)) = (calls[a], calls[b]);
        a.name == b.name
            && a.input == b.input
            && a.invalid == b.invalid
            && a_result.content == b_result.content
    };
    // How many calls at the end equal the one `period` before them.
    let run = |period: usize| (period..calls.len()).rev().take_while(|at| equal(*at, at - period)).count();
    let same = run(1) + 1;
    if calls.len() >= WARN && same >= WARN {
        return Some(Repeats::Same(same));
    }
    let pairs = (run(2) + 2) / 2;
    (calls.len() >= 2 * WARN_PAIRS && same == 1 && pairs >= WARN_PAIRS).then_some(Repeats::Pairs(pairs))
}
