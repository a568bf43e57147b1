//! Helpers: other models that do a part of a turn, each in a run of its own.
//!
//! A specialist has a lease of the files that it may change. The lease is held as long as its run: the turn waits meanwhile, and
//! [`begins`] lets only specialists with different files work at the same time. All other helpers read.

use std::collections::BTreeSet;

use domain::agent_loop::{Call, CallResult, Step};
use domain::models::routing::{AgentRole, Ask, TaskTier};
use domain::projects::turn::{Helper, HelperRole, ThemeTurn, TurnStrategy};
use domain::text::quoting::short_line;
use domain::tools::theme_tools::{self as tools, MAX_LEASED, MAX_TASK, MAX_WORKERS};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::steps::{calls_of, is_edit, was_called};

/// How often a turn may call specialists.
pub const SPECIALIST_CALLS: usize = 16;

/// How often it may call each of the other tools for helpers.
pub const OTHER_CALLS: usize = 4;

/// The most helpers that work at the same time.
pub const AT_ONCE: usize = 4;

/// The longest report of a helper, in bytes.
pub const MAX_REPORT: usize = 32_000;

/// The longest path of a file, in bytes.
const MAX_PATH: usize = 512;

/// What a call wants of one helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub role: HelperRole,
    pub task: String,
    /// The files that it may change.
    pub files: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Specialist {
    kind: Kind,
    task: String,
    files: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Liquid,
    Css,
    Javascript,
    Json,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Review {
    task: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Opinion {
    question: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Workers {
    tasks: Vec<String>,
}

/// Whether the tool gives work to helpers.
#[must_use]
pub fn is_for_helpers(name: &str) -> bool {
    tools::HELPERS.iter().any(|tool| tool.name == name)
}

/// What a call wants of helpers. It is empty for calls of other tools.
///
/// # Errors
/// Which argument is wrong, for the model.
pub fn parts(call: &Call) -> Result<Vec<Part>, String> {
    let name = call.name.as_str();
    let part = |role, field, task: String| checked(role, field, task, Vec::new());
    if name == tools::RUN_SPECIALIST.name {
        let Specialist { kind, task, files } = read(call)?;
        let role = match kind {
            Kind::Liquid => HelperRole::LiquidSpecialist,
            Kind::Css => HelperRole::CssSpecialist,
            Kind::Javascript => HelperRole::JavascriptSpecialist,
            Kind::Json => HelperRole::JsonSpecialist,
        };
        let different: BTreeSet<&String> = files.iter().collect();
        if files.is_empty() || files.len() > MAX_LEASED || different.len() < files.len() {
            let count = files.len();
            return Err(format!("files: must have 1 to {MAX_LEASED} different paths, has {count}"));
        }
        if files.iter().any(|path| path.trim().is_empty() || path.trim() != path || path.len() > MAX_PATH) {
            return Err(format!("files: a path has 1 to {MAX_PATH} bytes, and no blank at its ends"));
        }
        return checked(role, "task", task, files).map(|part| vec![part]);
    }
    if name == tools::RUN_REVIEW.name {
        let Review { task } = read(call)?;
        return part(HelperRole::Reviewer, "task", task).map(|part| vec![part]);
    }
    if name == tools::GET_SECOND_OPINION.name {
        let Opinion { question } = read(call)?;
        return part(HelperRole::SecondOpinion, "question", question).map(|part| vec![part]);
    }
    if name == tools::SPAWN_WORKERS.name {
        let Workers { tasks } = read(call)?;
        if tasks.is_empty() || tasks.len() > MAX_WORKERS {
            return Err(format!("tasks: must have 1 to {MAX_WORKERS} entries, has {}", tasks.len()));
        }
        return tasks.into_iter().map(|task| part(HelperRole::Worker, "tasks", task)).collect();
    }
    Ok(Vec::new())
}

fn read<T: DeserializeOwned>(call: &Call) -> Result<T, String> {
    T::deserialize(&call.input).map_err(|error| error.to_string())
}

fn checked(role: HelperRole, field: &str, task: String, files: Vec<String>) -> Result<Part, String> {
    let characters = task.trim().chars().count();
    if (1..=MAX_TASK).contains(&characters) {
        return Ok(Part { role, task: task.trim().to_owned(), files });
    }
    Err(format!("{field}: must have 1 to {MAX_TASK} characters, has {characters}"))
}

/// Why a turn may not give this work to helpers now. The text is for the model.
pub(crate) fn refusal(turn: &ThemeTurn, steps: &[Step], call: &Call) -> Option<String> {
    let name = call.name.as_str();
    if name == tools::RUN_SPECIALIST.name {
        if !turn.mode.edits() {
            return Some("this turn changes nothing, so no specialist may".to_owned());
        }
        if turn.strategy_now() == TurnStrategy::GodMode {
            return Some("in this turn you do everything yourself: make the edits".to_owned());
        }
    }
    let most = if name == tools::RUN_SPECIALIST.name { SPECIALIST_CALLS } else { OTHER_CALLS };
    let made = made(steps, name);
    (made >= most).then(|| format!("{name} was called {made} times, which is all that a turn may"))
}

/// Why a helper may not make a call. The text is for the model.
pub(crate) fn refusal_of_helper(helper: &Helper, call: &Call) -> Option<String> {
    if !is_edit(&call.name) {
        return None;
    }
    let paths = edited_paths(call);
    if paths.is_empty() {
        return Some("name the `path` of a file that you were given".to_owned());
    }
    let other = paths.into_iter().find(|path| !helper.files.contains(path))?;
    let other = short_line(&other, MAX_PATH);
    Some(format!("{other} is not one of your files: say in your report what must change there"))
}

/// The files that an edit changes. `rename_file` has two.
fn edited_paths(call: &Call) -> Vec<String> {
    let text = |field: &str| call.input[field].as_str().map(str::to_owned);
    // References are in files that nobody has named.
    if call.input["update_references"] == true {
        return vec!["a file that refers to it".to_owned()];
    }
    ["path", "to"].into_iter().filter_map(text).collect()
}

/// The files that these steps have edited themselves, without those of specialists and those that are again as they were.
#[must_use]
pub fn edited(steps: &[Step]) -> Vec<String> {
    let mut edited = BTreeSet::new();
    for (call, result) in calls_of(steps).filter(|(call, result)| is_edit(&call.name) && !result.is_error) {
        if call.name == tools::UNDO_EDIT.name {
            edited_paths(call).iter().for_each(|path| {
                edited.remove(path);
            });
        } else if call.name != tools::UPDATE_PLAN.name && result.content.starts_with(tools::EDITED) {
            edited.extend(edited_paths(call));
        }
    }
    edited.into_iter().collect()
}

/// What begins to work with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begins {
    /// How many calls, from this one on.
    pub count: usize,
    /// Whether the call is the first of those that begin together. Otherwise they have begun with the first one, and a process that has
    /// taken the turn over goes on with them.
    pub is_first: bool,
}

/// What begins with the call at this place of the last reply. Only when all that began together have ended, the next ones begin: so what
/// each of them may cost is known.
#[must_use]
pub fn begins(steps: &[Step], at: usize) -> Begins {
    let calls = steps.last().map_or(&[][..], |step| &step.reply.calls);
    let mut first = 0;
    while first < calls.len() {
        let count = together(&calls[first..]);
        if at < first + count {
            let room = SPECIALIST_CALLS.saturating_sub(made(steps, tools::RUN_SPECIALIST.name));
            return Begins { count: (first + count - at).min(room).max(1), is_first: at == first };
        }
        first += count;
    }
    Begins { count: 1, is_first: true }
}

/// How often a tool was called in these steps.
fn made(steps: &[Step], name: &str) -> usize {
    calls_of(steps).filter(|(call, result)| call.name == name && was_called(result)).count()
}

/// How many of these calls can work at the same time, from the first one on: specialists of different files.
fn together(calls: &[Call]) -> usize {
    let mut held = BTreeSet::new();
    let is_free = |call: &&Call| {
        call.name == tools::RUN_SPECIALIST.name
            && call.invalid.is_none()
            && parts(call).is_ok_and(|parts| {
                let files = || parts.iter().flat_map(|part| &part.files).cloned();
                let is_free = files().all(|path| !held.contains(&path));
                held.extend(files());
                is_free
            })
    };
    calls.iter().take(AT_ONCE).take_while(is_free).count().max(1)
}

/// How often the model of a helper is called, for a task of this size.
#[must_use]
pub const fn steps_of(role: HelperRole, tier: TaskTier) -> usize {
    match (role.edits(), tier) {
        (true, TaskTier::Trivial) => 8,
        (true, TaskTier::Complex) => 16,
        (true, TaskTier::Architectural) => 20,
        (true, TaskTier::Simple) | (false, _) => 12,
    }
}

/// Which models a helper asks for.
#[must_use]
pub const fn ask_of(helper: &Helper, tier: TaskTier) -> Ask {
    let (role, task) = match helper.role {
        HelperRole::Reviewer => (AgentRole::Review, tier),
        // If there is one provider only, it is a model of another size.
        HelperRole::SecondOpinion => match tier {
            TaskTier::Trivial | TaskTier::Simple => (AgentRole::Review, TaskTier::Complex),
            TaskTier::Complex | TaskTier::Architectural => (AgentRole::Review, TaskTier::Simple),
        },
        HelperRole::Worker => (AgentRole::Scout, tier),
        _ => (AgentRole::Specialist, tier),
    };
    Ask { role, task: Some(task), tier: None, work: None, other_than: helper.other_than }
}

/// The most that each of `count` helpers may cost, of a turn that may cost `ceiling` and has cost `spent`: a quarter of the whole, and
/// all together three quarters of what is left, so that the turn itself can go on.
#[must_use]
pub fn ceiling_of(ceiling: i64, spent: i64, count: usize) -> i64 {
    let left = ceiling.saturating_sub(spent).max(0);
    let count = i64::try_from(count.max(1)).unwrap_or(i64::MAX);
    (ceiling / 4).min(left / 4 * 3 / count)
}

const fn name_of(role: HelperRole) -> &'static str {
    match role {
        HelperRole::LiquidSpecialist => "Liquid specialist",
        HelperRole::CssSpecialist => "CSS specialist",
        HelperRole::JavascriptSpecialist => "JavaScript specialist",
        HelperRole::JsonSpecialist => "JSON specialist",
        HelperRole::Reviewer => "reviewer",
        HelperRole::SecondOpinion => "second opinion",
        HelperRole::Worker => "worker",
    }
}

const LIQUID: &str = "\
You know Liquid: scopes of render and include, filters, forms, sections with their schema, blocks and presets. Output of what a merchant or customer
has typed is escaped, unless the theme means HTML. A new setting has an id that the file does not have, a label and a default.";

const CSS: &str = "\
You know CSS. Look at how the theme scopes its rules, and which custom properties and breakpoints it has, before you add a rule. Keep specificity as
low as that of the rules around. No `!important` unless the rule that must lose has one.";

const JAVASCRIPT: &str = "\
You know JavaScript in themes: custom elements, deferred scripts, sections that the editor loads again. Use the theme's own helpers. A handler must
not be bound twice when a section is loaded again.";

const JSON: &str = "\
You know the JSON of themes: templates with sections, blocks and their order, section groups, settings_schema, locales. Keep the order of keys, and the
leading comment. Each id in `order` exists, and each type and setting is in the schema of its section.";

const REVIEWER: &str = "\
Look at the changes with show_changes, and read around them. Compare them with the task, point by point. Begin your reply with `VERDICT: OK` or
`VERDICT: MEND`. Then list each fault with its path and line: what happens, for whom, and how to mend it. Only what is wrong: no praise, no matters of
taste.";

const SECOND_OPINION: &str = "\
Answer the question yourself, from the files. Don't assume that what it says is right. Say how sure you are, and what would change your answer.";

const WORKER: &str = "\
Find out what is asked, and answer it with paths and lines. Say what you looked for and did not find.";

/// What a helper is told first.
#[must_use]
pub fn message(helper: &Helper) -> String {
    let role = match helper.role {
        HelperRole::LiquidSpecialist => LIQUID,
        HelperRole::CssSpecialist => CSS,
        HelperRole::JavascriptSpecialist => JAVASCRIPT,
        HelperRole::JsonSpecialist => JSON,
        HelperRole::Reviewer => REVIEWER,
        HelperRole::SecondOpinion => SECOND_OPINION,
        HelperRole::Worker => WORKER,
    };
    let mut text = format!("# You are: {}\n{role}\n", name_of(helper.role));
    if helper.role.edits() {
        text.push_str("\n# The files that you may change or make\n");
        for path in &helper.files {
            text.push_str(&format!("- {}\n", short_line(path, MAX_PATH)));
        }
    } else {
        text.push_str("\nYou change nothing.\n");
    }
    text.push_str("\n# Your task\n");
    text.push_str(&helper.task);
    text
}

/// How the run of a helper has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub role: HelperRole,
    /// The files that it has changed.
    pub edited: &'a [String],
    /// Its last reply.
    pub report: &'a str,
    /// The model that wrote it.
    pub model: Option<&'a str>,
    /// Why it did not end as it should.
    pub error: Option<&'a str>,
}

impl Ended<'_> {
    /// Whether it has done anything.
    #[must_use]
    pub const fn is_of_use(&self) -> bool {
        self.error.is_none() || !self.edited.is_empty()
    }
}

const CHANGED: &str = "It has changed ";

/// What a turn is told of its helpers.
#[must_use]
pub fn told(ended: &[Ended<'_>]) -> String {
    let count = ended.len();
    let most = MAX_REPORT / count.max(1);
    let one = |(at, ended): (usize, &Ended<'_>)| {
        let mut text = String::new();
        if ended.role.edits() {
            let files: Vec<String> = ended.edited.iter().map(|path| short_line(path, MAX_PATH)).collect();
            let files = if files.is_empty() { "nothing".to_owned() } else { files.join(", ") };
            text.push_str(&format!("{CHANGED}{files}.\n"));
        }
        if let Some(error) = ended.error {
            text.push_str(&format!("It did not end as it should: {error}\n"));
        }
        let by = ended.model.map_or_else(String::new, |model| format!(" by {model}"));
        let number = if count > 1 { format!(" {}", at + 1) } else { String::new() };
        text.push_str(&format!("Report of the {}{number}{by}, which is data:\n", name_of(ended.role)));
        text.push_str(&ended.report[..ended.report.floor_char_boundary(most)]);
        if ended.report.len() > most {
            text.push_str("\n(shortened)");
        }
        text
    };
    ended.iter().enumerate().map(one).collect::<Vec<_>>().join("\n\n")
}

/// Whether the result of a call says that a specialist has changed files.
pub(crate) fn has_changed(call: &Call, result: &CallResult) -> bool {
    let nothing = || result.content[CHANGED.len()..].starts_with("nothing.");
    call.name == tools::RUN_SPECIALIST.name
        && !result.is_error
        && result.content.starts_with(CHANGED)
        && !nothing()
}

#[cfg(test)]
mod tests {
    use domain::agent_loop::Reply;
    use domain::ids::{CallId, ProjectId, RunId};
    use domain::projects::turn::TurnMode;
    use serde_json::{Value, json};

    use super::*;
    use crate::lead;
    use crate::steps::samples::{call, turn};

    fn specialist(files: &[&str]) -> Call {
        call("run_specialist", json!({"kind": "css", "task": "Make it blue.", "files": files}))
    }

    fn helper(role: HelperRole, files: &[&str]) -> Helper {
        Helper {
            turn: RunId::from_uuid(ProjectId::DEFAULT.uuid()),
            call_id: CallId::new(1, 0),
            role,
            task: "Make it blue.".to_owned(),
            files: files.iter().map(|path| (*path).to_owned()).collect(),
            ceiling_micros: 1_000,
            until: "2026-11-30T10:00:00Z".parse().unwrap(),
            other_than: None,
            edited: Vec::new(),
        }
    }

    fn step(call: Call, result: CallResult) -> Step {
        let reply = Reply { calls: vec![call], ..Reply::default() };
        Step { reply, results: vec![result], ..Step::default() }
    }

    #[test]
    fn what_begins_together_is_within_the_limit_and_begins_once() {
        let reply = |calls: Vec<Call>, results: usize| Step {
            reply: Reply { calls, ..Reply::default() },
            results: vec![CallResult::told("It has changed a."); results],
            ..Step::default()
        };
        let many = |count: usize| (0..count).map(|n| specialist(&[&format!("{n}")])).collect::<Vec<_>>();
        let begin = |steps: &[Step], at| {
            let begins = begins(steps, at);
            (begins.count, begins.is_first)
        };
        // Four, then three; each call that is not the first has begun with it.
        let steps = [reply(many(7), 0)];
        let found: Vec<_> = (0..7).map(|at| begin(&steps, at)).collect();
        assert_eq!(found, [(4, true), (3, false), (2, false), (1, false), (3, true), (2, false), (1, false)]);
        // After 14 calls, two are left.
        let steps = [reply(many(14), 14), reply(many(6), 0)];
        assert_eq!(begin(&steps, 0), (2, true));
        let steps = [reply(many(14), 14), reply(many(6), 1)];
        assert_eq!(begin(&steps, 1), (1, false));
        let review = call("run_review", json!({"task": "x"}));
        let steps = [reply(vec![specialist(&["a"]), review, specialist(&["b"])], 0)];
        assert_eq!([0, 1, 2].map(|at| begin(&steps, at)), [(1, true); 3]);
        assert_eq!(begin(&[], 0), (1, true));
    }

    #[test]
    fn what_begins_together_has_different_files() {
        let (a, b, c) = (specialist(&["a"]), specialist(&["b"]), specialist(&["b", "c"]));
        let review = call("run_review", json!({"task": "x"}));
        let bad = specialist(&[]);
        for (calls, count) in [
            (vec![a.clone()], 1),
            (vec![a.clone(), b.clone()], 2),
            (vec![a.clone(), b.clone(), c.clone()], 2),
            (vec![b.clone(), c.clone(), a.clone()], 1),
            (vec![a.clone(), a.clone()], 1),
            (vec![a.clone(), review.clone(), b.clone()], 1),
            (vec![review.clone(), a.clone()], 1),
            (vec![bad, a.clone()], 1),
        ] {
            assert_eq!(together(&calls), count, "{calls:?}");
        }
        let many: Vec<Call> = ["a", "b", "c", "d", "e", "f"].iter().map(|path| specialist(&[path])).collect();
        assert_eq!(together(&many), AT_ONCE);
    }

    #[test]
    fn a_turn_calls_helpers_within_limits() {
        use TaskTier::{Complex, Simple, Trivial};
        let told = |mode, tier, steps: &[Step], call: &Call| lead::refusal(&turn(mode, tier), steps, call);
        let (work, review) = (specialist(&["a"]), call("run_review", json!({"task": "x"})));
        let made =
            |call: &Call, times| vec![step(call.clone(), CallResult::told("It has changed a.")); times];
        assert_eq!(told(TurnMode::Code, Simple, &[], &work), None);
        assert_eq!(told(TurnMode::Debug, Trivial, &[], &work), None);
        assert!(told(TurnMode::Code, Complex, &[], &work).unwrap().contains("everything yourself"));
        assert!(told(TurnMode::Ask, Simple, &[], &work).unwrap().contains("changes nothing"));
        assert_eq!(told(TurnMode::Ask, Simple, &[], &review), None);
        assert_eq!(told(TurnMode::Code, Complex, &[], &review), None);
        assert_eq!(told(TurnMode::Code, Simple, &made(&work, 15), &work), None);
        assert!(told(TurnMode::Code, Simple, &made(&work, 16), &work).unwrap().contains("16 times"));
        assert!(told(TurnMode::Code, Simple, &made(&review, 4), &review).unwrap().contains("4 times"));
        let not_called = step(review.clone(), CallResult::refused("not called: no"));
        assert_eq!(told(TurnMode::Code, Simple, &vec![not_called; 9], &review), None);
    }

    #[test]
    fn a_specialist_edits_its_files_only() {
        let mut turn = turn(TurnMode::Code, TaskTier::Simple);
        turn.helper = Some(helper(HelperRole::CssSpecialist, &["assets/a.css", "assets/b.css"]));
        let refused = |name: &str, input: Value| lead::refusal(&turn, &[], &call(name, input)).is_some();
        for (name, input, expected) in [
            ("edit_lines", json!({"path": "assets/a.css"}), false),
            ("create_file", json!({"path": "assets/b.css"}), false),
            ("edit_lines", json!({"path": "assets/c.css"}), true),
            ("delete_file", json!({"path": "assets/c.css"}), true),
            ("rename_file", json!({"path": "assets/a.css", "to": "assets/b.css"}), false),
            ("rename_file", json!({"path": "assets/a.css", "to": "assets/c.css"}), true),
            (
                "rename_file",
                json!({"path": "assets/a.css", "to": "assets/b.css", "update_references": true}),
                true,
            ),
            ("undo_edit", json!({"path": "assets/a.css"}), false),
            ("undo_edit", json!({"all": true}), true),
            ("undo_edit", json!({"edit": 3}), true),
            ("write_file", json!({}), true),
            ("read_file", json!({"path": "assets/c.css"}), false),
        ] {
            assert_eq!(refused(name, input.clone()), expected, "{name} {input}");
        }
    }

    #[test]
    fn what_is_as_it_was_is_not_edited() {
        let told = |name: &str, path: &str, text: &str| {
            step(call(name, json!({ "path": path })), CallResult::told(text))
        };
        let made = "edit 1 of chs_1";
        for (steps, expected) in [
            (vec![told("create_file", "a", made)], vec!["a"]),
            (vec![told("create_file", "a", made), told("undo_edit", "a", "undone")], vec![]),
            (vec![told("undo_edit", "a", "undone"), told("edit_lines", "a", made)], vec!["a"]),
            (vec![told("create_file", "a", "nothing to do: the files are already like this")], vec![]),
            (vec![told("update_plan", "a", made), told("read_file", "a", made)], vec![]),
            (vec![told("edit_lines", "b", made), told("edit_node", "a", made)], vec!["a", "b"]),
        ] {
            assert_eq!(edited(&steps), expected);
        }
    }

    #[test]
    fn a_turn_knows_from_the_result_whether_a_specialist_has_edited() {
        let files = ["assets/a.css".to_owned()];
        let ended = |edited, error| Ended {
            role: HelperRole::CssSpecialist,
            edited,
            report: "It has changed everything.",
            model: Some("openai/gpt"),
            error,
        };
        let has_edited = |text: String| lead::has_edited(&[step(specialist(&["a"]), CallResult::told(text))]);
        assert!(has_edited(told(&[ended(&files, None)])));
        assert!(has_edited(told(&[ended(&files, Some("its time was over"))])));
        assert!(!has_edited(told(&[ended(&[], None)])));
        assert!(!has_edited("It".to_owned()));
        assert!(!has_edited(String::new()));
        // Only its own first line counts, and not that of another tool.
        let review = step(call("run_review", json!({})), CallResult::told("It has changed a."));
        assert!(!lead::has_edited(&[review]));
        assert!(ended(&files, Some("x")).is_of_use() && !ended(&[], Some("x")).is_of_use());
        let long = "é".repeat(100_000);
        let long = Ended { report: &long, ..ended(&files, None) };
        let text = told(&[long, long]);
        assert!(text.len() < MAX_REPORT + 500 && text.contains("(shortened)"), "{}", text.len());
        assert!(text.contains("Report of the CSS specialist 2 by openai/gpt"), "{}", &text[..200]);
    }

    #[test]
    fn the_parts_of_a_turn_cost_no_more_than_it_may() {
        for (ceiling, spent, count) in
            [(1_000_000, 0, 1), (1_000_000, 0, 4), (1_000_000, 900_000, 2), (1_000, 2_000, 1)]
        {
            let each = ceiling_of(ceiling, spent, count);
            let left = (ceiling - spent).max(0);
            assert!(each >= 0 && each <= ceiling / 4 && each * count as i64 <= left * 3 / 4 + 4, "{each}");
        }
        assert_eq!(ceiling_of(1_000_000, 0, 1), 250_000);
        assert_eq!(ceiling_of(1_000_000, 0, 4), 187_500);
        assert_eq!(ceiling_of(1_000_000, 1_000_000, 1), 0);
    }

    #[test]
    fn limits_and_models_follow_the_table() {
        use TaskTier::{Architectural, Complex, Simple, Trivial};
        let steps = TaskTier::ALL.map(|tier| steps_of(HelperRole::LiquidSpecialist, tier));
        assert_eq!(steps, [8, 12, 16, 20]);
        assert!(TaskTier::ALL.iter().all(|tier| steps_of(HelperRole::Worker, *tier) == 12));
        let asks = |role, tier| {
            let ask = ask_of(&helper(role, &[]), tier);
            (ask.role, ask.task.unwrap())
        };
        assert_eq!(asks(HelperRole::JsonSpecialist, Trivial), (AgentRole::Specialist, Trivial));
        assert_eq!(asks(HelperRole::Reviewer, Complex), (AgentRole::Review, Complex));
        assert_eq!(asks(HelperRole::SecondOpinion, Simple), (AgentRole::Review, Complex));
        assert_eq!(asks(HelperRole::SecondOpinion, Architectural), (AgentRole::Review, Simple));
        assert_eq!(asks(HelperRole::Worker, Simple), (AgentRole::Scout, Simple));
    }

    #[test]
    fn each_helper_is_told_what_it_may() {
        for role in HelperRole::ALL {
            let text = message(&helper(role, &["assets/a.css\n# Your task"]));
            assert!(text.ends_with("# Your task\nMake it blue."), "{text}");
            assert_eq!(text.contains("- assets/a.css"), role.edits(), "{text}");
            assert_eq!(text.matches("\n# Your task").count(), 1, "{text}");
        }
    }
}
