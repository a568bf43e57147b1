//! Loops: a model that repeats its calls, or learns nothing new. The model is warned first, and then the run ends.

use super::step::{Call, CallResult, Purpose, Step};

/// The number of equal calls in a row at which the model is warned, and at which the run ends. Equal calls of one reply count
/// once.
const WARN: usize = 3;
const STOP: usize = 5;
/// The same for two calls that alternate, counted in pairs.
const WARN_PAIRS: usize = 2;
const STOP_PAIRS: usize = 4;
/// The same for steps in a row that bring nothing new.
const WARN_IDLE: usize = 3;
const STOP_IDLE: usize = 5;

/// A loop at the end of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// The same call with the same result, this many times in a row.
    Same(usize),
    /// Two calls that alternate (A-B-A-B) with the same results, this many pairs.
    Pairs(usize),
    /// This many steps in a row brought nothing new: see `is_idle`.
    NoProgress(usize),
}

impl Repeats {
    /// The warning for the model.
    #[must_use]
    pub fn warning(self) -> String {
        let what = match self {
            Self::Same(times) => format!("You have made the same call with the same result {times} times."),
            Self::Pairs(pairs) => {
                format!("You have alternated between the same two calls with the same results {pairs} times.")
            }
            Self::NoProgress(steps) => {
                format!("Your last {steps} steps brought nothing that you had not seen before.")
            }
        };
        format!("{what} Do something else, or finish.")
    }

    /// The code and the detail of the error that ends the run, if it ends.
    #[must_use]
    pub fn stops(self) -> Option<(&'static str, String)> {
        match self {
            Self::Same(times) if times >= STOP => Some((
                "tool_loop",
                format!("the model made the same call with the same result {times} times"),
            )),
            Self::Pairs(pairs) if pairs >= STOP_PAIRS => Some((
                "tool_loop",
                format!(
                    "the model alternated between the same two calls with the same results {pairs} times"
                ),
            )),
            Self::NoProgress(steps) if steps >= STOP_IDLE => {
                Some(("no_progress", format!("{steps} steps in a row brought nothing new")))
            }
            _ => None,
        }
    }
}

/// The loop that these steps end with, if it is worth a warning.
#[must_use]
pub fn find(steps: &[Step]) -> Option<Repeats> {
    let work = steps.iter().filter(|step| step.purpose == Purpose::Work);
    let calls: Vec<(&Call, &CallResult)> = work.flat_map(different_calls_of).collect();
    let equal = |a: usize, b: usize| are_equal(calls[a], calls[b]);
    // How many calls at the end equal the one `period` before them.
    let run = |period: usize| (period..calls.len()).rev().take_while(|at| equal(*at, at - period)).count();
    let same = run(1) + 1;
    if calls.len() >= WARN && same >= WARN {
        return Some(Repeats::Same(same));
    }
    let pairs = (run(2) + 2) / 2;
    if calls.len() >= 2 * WARN_PAIRS && same == 1 && pairs >= WARN_PAIRS {
        return Some(Repeats::Pairs(pairs));
    }
    let idle = idle_at_the_end(steps);
    (idle >= WARN_IDLE).then_some(Repeats::NoProgress(idle))
}

fn are_equal((a, a_result): (&Call, &CallResult), (b, b_result): (&Call, &CallResult)) -> bool {
    a.name == b.name && a.input == b.input && a.invalid == b.invalid && a_result.content == b_result.content
}

/// The calls of a step without those that the same reply repeats: the model makes them before it can be warned.
fn different_calls_of(step: &Step) -> Vec<(&Call, &CallResult)> {
    let mut different: Vec<(&Call, &CallResult)> = Vec::new();
    for call in calls_of(step) {
        if !different.iter().any(|earlier| are_equal(*earlier, call)) {
            different.push(call);
        }
    }
    different
}

fn calls_of(step: &Step) -> impl Iterator<Item = (&Call, &CallResult)> {
    step.reply.calls.iter().zip(&step.results)
}

/// How many steps in a row, up to the last one, bring nothing new.
fn idle_at_the_end(steps: &[Step]) -> usize {
    (0..steps.len()).rev().take_while(|at| is_idle(&steps[*at], &steps[..*at])).count()
}

/// Whether a step brings nothing new: it makes calls, each of them was made before with the same result or is refused as
/// before, and its text is empty or was said before. A new question with a known answer is new: several searches may find
/// the same.
fn is_idle(step: &Step, before: &[Step]) -> bool {
    let text = step.reply.text.trim();
    let was_said = || before.iter().any(|earlier| earlier.reply.text.trim() == text);
    let is_known = |(call, result): (&Call, &CallResult)| {
        before.iter().flat_map(calls_of).any(|(earlier, its)| {
            earlier.name == call.name
                && its.content == result.content
                && (earlier.input == call.input || result.is_error && its.is_error)
        })
    };
    step.purpose == Purpose::Work
        && !step.results.is_empty()
        && (text.is_empty() || was_said())
        && calls_of(step).all(is_known)
}
