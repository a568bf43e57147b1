//! How a turn goes on: when it becomes larger than it was planned, which calls it may not make, and what it is told if it stops too
//! early.
//!
//! All of it follows from the plan and from what is stored of the run. So a process that takes a turn over decides as the one before.

use std::collections::BTreeMap;

use domain::agent_loop::{Call, CallResult, Purpose, Step};
use domain::models::routing::TaskTier;
use domain::projects::turn::{Escalation, ThemeTurn, TurnMode, TurnStrategy};
use domain::tools::theme_tools as tools;

use crate::classify::strategy_of;
use crate::helpers;
use crate::limits::limits_of;
use crate::steps::{calls_of, is_edit, tool, was_called};

/// After so many refused edits of a file in a row, its lines are read again.
pub const READ_AFTER: u32 = 2;

/// After so many, the turn escalates.
pub const ESCALATE_AFTER: u32 = 3;

/// After so many steps without an edit, a turn that may give work to specialists does everything itself.
pub const STALLED_AFTER: usize = 8;

/// The line with which a model says that the task is much larger than planned.
pub const ASKS_FOR_GOD_MODE: &str = "STRATEGY: GOD_MODE";

/// The words with which a model says that nothing must be changed.
pub const NOTHING_TO_CHANGE: &str = "NO CHANGE:";

/// What a model is told that was asked for a change and stops without one.
const NUDGE: &str = "Nothing in the theme has changed. If the request needs a change, make it now. If you need an answer of the person first, \
                     ask one question that ends with a question mark. If nothing must be changed, begin your reply with \"NO CHANGE:\" and say why.";

/// What is known of the edits of a turn.
#[derive(Debug, Default)]
struct Edits {
    made: usize,
    /// How often edits of each file were refused in a row.
    refused: BTreeMap<String, u32>,
    /// The files of which lines were read since their last refused edit.
    read_since: BTreeMap<String, bool>,
}

impl Edits {
    fn note(&mut self, call: &Call, result: &CallResult) {
        // What was not called says nothing about the file.
        if !was_called(result) {
            return;
        }
        for path in paths_of(call) {
            if is_edit(&call.name) {
                if result.is_error {
                    *self.refused.entry(path.clone()).or_default() += 1;
                    self.read_since.insert(path, false);
                } else {
                    self.refused.remove(&path);
                }
            } else if !result.is_error
                && matches!(call.name.as_str(), "read_file" | "read_lines" | "extract_region")
            {
                self.read_since.insert(path, true);
            }
        }
        let is_own = is_edit(&call.name) && call.name != tools::UPDATE_PLAN.name && !result.is_error;
        if is_own || helpers::has_changed(call, result) {
            self.made += 1;
        }
    }

    fn of(steps: &[Step]) -> Self {
        let mut edits = Self::default();
        for (call, result) in calls_of(steps) {
            edits.note(call, result);
        }
        edits
    }
}

/// The files that a call names.
fn paths_of(call: &Call) -> Vec<String> {
    let text = |value: &serde_json::Value| value["path"].as_str().map(str::to_owned);
    let several = call.input["reads"].as_array().into_iter().flatten().filter_map(text);
    text(&call.input).into_iter().chain(several).collect()
}

/// Each time the turn became larger than it was planned, in these steps, oldest first.
#[must_use]
pub fn escalations(turn: &ThemeTurn, steps: &[Step]) -> Vec<Escalation> {
    if turn.helper.is_some() {
        return Vec::new();
    }
    let mut now = ThemeTurn { escalations: Vec::new(), ..turn.clone() };
    let mut edits = Edits::default();
    let mut idle = 0;
    let mut is_first = true;
    for step in steps {
        match step.purpose {
            Purpose::Nudge => {
                let above = above(now.tier_now());
                raise(&mut now, above, "it stopped without a change".to_owned());
                continue;
            }
            Purpose::Work => {}
            _ => continue,
        }
        if std::mem::take(&mut is_first)
            && asks_for_god_mode(&step.reply.text)
            && now.strategy_now() != TurnStrategy::GodMode
        {
            let to = at_least_complex(now.tier_now());
            raise(&mut now, to, "the model says that the task is larger than planned".to_owned());
        }
        let before = edits.made;
        for (call, result) in step.reply.calls.iter().zip(&step.results) {
            edits.note(call, result);
        }
        let stuck =
            edits.refused.iter().find(|(_, times)| **times >= ESCALATE_AFTER).map(|(path, _)| path.clone());
        if let Some(path) = stuck {
            edits.refused.remove(&path);
            let above = above(now.tier_now());
            raise(&mut now, above, format!("{ESCALATE_AFTER} edits of {path} in a row were refused"));
        }
        idle = if edits.made > before || step.reply.calls.is_empty() { 0 } else { idle + 1 };
        if turn.mode == TurnMode::Code && now.strategy_now() == TurnStrategy::Hybrid && idle >= STALLED_AFTER
        {
            let to = at_least_complex(now.tier_now());
            raise(&mut now, to, format!("{idle} steps changed nothing"));
        }
    }
    now.escalations
}

/// Notes that a turn has this size, if it was smaller.
fn raise(turn: &mut ThemeTurn, tier: TaskTier, why: String) {
    let strategy = strategy_of(tier).max(turn.strategy_now());
    if tier != turn.tier_now() || strategy != turn.strategy_now() {
        turn.escalations.push(Escalation { tier, strategy, why });
    }
}

fn asks_for_god_mode(text: &str) -> bool {
    text.trim_start().lines().next().is_some_and(|line| line.trim() == ASKS_FOR_GOD_MODE)
}

fn above(tier: TaskTier) -> TaskTier {
    match tier {
        TaskTier::Trivial => TaskTier::Simple,
        TaskTier::Simple => TaskTier::Complex,
        TaskTier::Complex | TaskTier::Architectural => TaskTier::Architectural,
    }
}

fn at_least_complex(tier: TaskTier) -> TaskTier {
    match tier {
        TaskTier::Architectural => tier,
        _ => TaskTier::Complex,
    }
}

/// Why a call may not be made now. The text is for the model. `steps`: what was done before the call, with the results so far of the
/// step that makes it.
#[must_use]
pub fn refusal(turn: &ThemeTurn, steps: &[Step], call: &Call) -> Option<String> {
    if let Some(helper) = &turn.helper {
        return helpers::refusal_of_helper(helper, call);
    }
    let name = call.name.as_str();
    if helpers::is_for_helpers(name) {
        return helpers::refusal(turn, steps, call);
    }
    let is_plan = turn.mode == TurnMode::Plan && name == tools::UPDATE_PLAN.name;
    let changes = is_edit(name) || name == tools::APPLY_CHANGES.name;
    if changes && !turn.mode.edits() && !is_plan {
        let told = match turn.mode {
            TurnMode::Plan => "this turn makes a plan: write it with update_plan, and change nothing",
            _ => "this turn answers a question: say what you would change, and change nothing",
        };
        return Some(told.to_owned());
    }
    let limits = limits_of(turn.mode, turn.tier_now(), turn.strategy_now());
    let is_graph =
        |name: &str| ["get_dependency_graph", "find_references", "trace_rendering_chain"].contains(&name);
    if is_graph(name) {
        let asked = calls_of(steps).filter(|(call, _)| is_graph(&call.name)).count();
        if asked >= limits.graph_lookups {
            return Some(format!(
                "the graph was asked {asked} times, which is all that this turn may: work with what you know"
            ));
        }
    }
    let edits = Edits::of(steps);
    if is_edit(name) && name != tools::UNDO_EDIT.name {
        for path in paths_of(call) {
            let refused = edits.refused.get(&path).copied().unwrap_or_default();
            if refused >= READ_AFTER && !edits.read_since.get(&path).copied().unwrap_or_default() {
                return Some(format!(
                    "{refused} edits of {path} in a row were refused: read its lines first, then edit with that version"
                ));
            }
        }
        return None;
    }
    let reads = tool(name).is_some_and(|tool| tool.effect == domain::tools::Effect::Read);
    if let (Some(most), true) = (limits.lookups_before_edit, reads && turn.mode.edits() && edits.made == 0) {
        let looked = calls_of(steps).count();
        if looked >= most {
            return Some(format!(
                "{looked} calls have changed nothing: make the edit now, or say what you need to know"
            ));
        }
    }
    None
}

/// Whether these steps have changed the change set of the turn.
#[must_use]
pub fn has_edited(steps: &[Step]) -> bool {
    Edits::of(steps).made > 0
}

/// What a turn is told that was asked for a change and ends without one. It is told once.
#[must_use]
pub fn nudge(turn: &ThemeTurn, steps: &[Step]) -> Option<&'static str> {
    if turn.helper.is_some() {
        return None;
    }
    let was_told = steps.iter().any(|step| step.purpose == Purpose::Nudge);
    let last = steps.iter().rfind(|step| step.purpose == Purpose::Work)?;
    let text = last.reply.text.trim();
    let explains = text.ends_with('?') || text.starts_with(NOTHING_TO_CHANGE);
    let stops = turn.mode.edits() && !was_told && !explains && Edits::of(steps).made == 0;
    stops.then_some(NUDGE)
}

#[cfg(test)]
mod tests {
    use domain::agent_loop::{NOT_CALLED, Reply};
    use serde_json::json;

    use super::*;
    use crate::steps::samples::{call, turn};

    /// A step with these calls. `!` before the name: the call is refused.
    fn step(text: &str, calls: &[(&str, &str)]) -> Step {
        let mut made = Step { reply: Reply { text: text.to_owned(), ..Reply::default() }, ..Step::default() };
        for (name, path) in calls {
            let name = name.strip_prefix('!').unwrap_or(name);
            made.reply.calls.push(call(name, json!({"path": path})));
        }
        for (name, _) in calls {
            made.results.push(if name.starts_with('!') {
                CallResult::refused("no")
            } else {
                CallResult::told("yes")
            });
        }
        made
    }

    const HEADER: &str = "sections/header.liquid";

    fn raised(turn: &ThemeTurn, steps: &[Step]) -> Vec<(TaskTier, TurnStrategy)> {
        escalations(turn, steps).into_iter().map(|one| (one.tier, one.strategy)).collect()
    }

    #[test]
    fn a_turn_escalates() {
        use TaskTier::{Architectural, Complex, Simple, Trivial};
        use TurnStrategy::{GodMode, Hybrid};
        let code = |tier| turn(TurnMode::Code, tier);
        let refused = || step("", &[("!edit_lines", HEADER)]);
        let reads = |times| vec![step("", &[("read_lines", HEADER)]); times];
        let nudged = || Step { purpose: Purpose::Nudge, ..Step::default() };
        // The plan, the steps, and what the turn becomes.
        type Row = (&'static str, ThemeTurn, Vec<Step>, Vec<(TaskTier, TurnStrategy)>);
        let table: Vec<Row> = vec![
            ("nothing happens", code(Simple), vec![], vec![]),
            ("an edit", code(Simple), vec![step("", &[("edit_lines", HEADER)])], vec![]),
            ("two refused edits", code(Simple), vec![refused(), refused()], vec![]),
            (
                "three refused edits",
                code(Trivial),
                vec![refused(), refused(), refused()],
                vec![(Simple, Hybrid)],
            ),
            (
                "six refused edits",
                code(Trivial),
                vec![refused(); 6],
                vec![(Simple, Hybrid), (Complex, GodMode)],
            ),
            (
                "an edit between them",
                code(Trivial),
                vec![refused(), refused(), step("", &[("edit_lines", HEADER)]), refused()],
                vec![],
            ),
            (
                "the model asks",
                code(Simple),
                vec![step("STRATEGY: GOD_MODE\nI begin.", &[])],
                vec![(Complex, GodMode)],
            ),
            ("it asks too late", code(Simple), vec![step("", &[]), step("STRATEGY: GOD_MODE", &[])], vec![]),
            ("it asks within a sentence", code(Simple), vec![step("No STRATEGY: GOD_MODE", &[])], vec![]),
            ("it asks and has it", code(Complex), vec![step("STRATEGY: GOD_MODE", &[])], vec![]),
            ("it stalls", code(Simple), reads(STALLED_AFTER), vec![(Complex, GodMode)]),
            ("it nearly stalls", code(Simple), reads(STALLED_AFTER - 1), vec![]),
            ("a question reads on", turn(TurnMode::Ask, Simple), reads(20), vec![]),
            (
                "it stopped without a change",
                code(Trivial),
                vec![step("Done.", &[]), nudged()],
                vec![(Simple, Hybrid)],
            ),
            ("there is nothing above", code(Architectural), vec![step("Done.", &[]), nudged()], vec![]),
        ];
        for (name, turn, steps, expected) in table {
            assert_eq!(raised(&turn, &steps), expected, "{name}");
            // A process that takes the turn over sees the beginning of the same list.
            for known in 0..steps.len() {
                let before = escalations(&turn, &steps[..known]);
                assert_eq!(before, escalations(&turn, &steps)[..before.len()], "{name}");
            }
        }
    }

    #[test]
    fn calls_are_refused() {
        let header = || json!({"path": HEADER});
        let refused = || step("", &[("!edit_lines", HEADER)]);
        let again = || step("", &[("read_lines", HEADER)]);
        let not_called =
            || Step { results: vec![CallResult::refused(format!("{NOT_CALLED}no"))], ..refused() };
        let graph = |times| vec![step("", &[("find_references", HEADER)]); times];
        use TaskTier::{Complex, Simple, Trivial};
        use TurnMode::{Ask, Code, Debug, Plan};
        // The turn, the steps before, the call, and the words of the refusal.
        type Row = (TurnMode, TaskTier, Vec<Step>, &'static str, Option<&'static str>);
        let table: Vec<Row> = vec![
            (Code, Simple, vec![], "edit_lines", None),
            (Debug, Simple, vec![], "write_file", None),
            (Ask, Simple, vec![], "edit_lines", Some("answers a question")),
            (Ask, Simple, vec![], "apply_changes", Some("answers a question")),
            (Ask, Simple, vec![], "update_plan", Some("answers a question")),
            (Ask, Simple, vec![], "read_file", None),
            (Plan, Simple, vec![], "search_replace", Some("makes a plan")),
            (Plan, Simple, vec![], "update_plan", None),
            (Code, Simple, vec![refused()], "edit_lines", None),
            (Code, Simple, vec![refused(), refused()], "edit_lines", Some("read its lines first")),
            (Code, Simple, vec![refused(), not_called(), not_called()], "edit_lines", None),
            (Code, Simple, vec![refused(), refused()], "undo_edit", None),
            (Code, Simple, vec![refused(), refused()], "read_lines", None),
            (Code, Simple, vec![refused(), refused(), again()], "edit_lines", None),
            (Code, Simple, vec![refused(), again(), refused()], "edit_lines", Some("read its lines first")),
            (Code, Trivial, graph(3), "get_dependency_graph", None),
            (Code, Trivial, graph(4), "get_dependency_graph", Some("asked 4 times")),
            (Code, Complex, graph(29), "find_references", None),
            (Code, Complex, graph(30), "find_references", Some("asked 30 times")),
            (Code, Simple, vec![again(); 23], "read_file", None),
            (Code, Simple, vec![again(); 24], "read_file", Some("make the edit now")),
            (Code, Simple, vec![again(); 24], "edit_lines", None),
            (Code, Complex, vec![again(); 60], "read_file", None),
            (Ask, Simple, vec![again(); 30], "read_file", None),
        ];
        for (mode, tier, steps, name, expected) in table {
            let told = refusal(&turn(mode, tier), &steps, &call(name, header()));
            let fits = match (&told, expected) {
                (Some(told), Some(words)) => told.contains(words),
                (told, expected) => told.is_none() && expected.is_none(),
            };
            assert!(fits, "{mode:?} {tier:?} {name} after {} steps: {told:?}", steps.len());
        }
    }

    #[test]
    fn a_turn_that_stops_without_a_change_is_told_so_once() {
        let code = turn(TurnMode::Code, TaskTier::Simple);
        let told = |turn: &ThemeTurn, steps: &[Step]| nudge(turn, steps).is_some();
        assert!(told(&code, &[step("Done.", &[])]));
        assert!(!told(&code, &[step("Which header do you mean?", &[])]));
        assert!(!told(&code, &[step("NO CHANGE: it is sticky already.", &[])]));
        assert!(!told(&code, &[step("", &[("edit_lines", HEADER)]), step("Done.", &[])]));
        assert!(told(&code, &[step("", &[("!edit_lines", HEADER)]), step("Done.", &[])]));
        assert!(told(&code, &[step("", &[("update_plan", HEADER)]), step("Done.", &[])]));
        let nudged = Step { purpose: Purpose::Nudge, ..Step::default() };
        assert!(!told(&code, &[step("Done.", &[]), nudged, step("Done.", &[])]));
        assert!(!told(&turn(TurnMode::Ask, TaskTier::Simple), &[step("It is this way.", &[])]));
    }
}
