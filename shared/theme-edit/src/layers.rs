//! Whether a tool may run: five layers, one after the other.
//!
//! 1. The strategy: what the mode and the strategy of the run leave out
//! 2. The file: after two failed edits, it is read again; after three, the run escalates
//! 3. The dispatcher: which part of the program runs the tool
//! 4. The tool: sizes, and how much of a file would go
//! 5. The specialist: its lease, its ceiling, and its own sizes
//!
//! [`Policy::default`] has no limits of size for `search_replace`: what is dangerous about it is an ambiguous text, and the engine refuses
//! that. [`Policy::strict`] has the limits of size, for those who want them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a run works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// One step after the other, with few tools.
    Simple,
    /// The agent edits, and gives parts of the work to specialists.
    #[default]
    Hybrid,
    /// One agent does everything itself.
    GodMode,
}

/// Who calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The agent of the run.
    #[default]
    Agent,
    /// A run within the run, for some of the files.
    Specialist,
    /// A run within the run that only reads.
    Worker,
}

/// What the person asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// An answer.
    Ask,
    /// A plan.
    Plan,
    /// A change.
    #[default]
    Code,
}

/// A tool call, before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    pub mode: Mode,
    pub strategy: Strategy,
    pub role: Role,
    /// The characters and the lines of the file, if the call names one.
    pub size: Option<(usize, usize)>,
    /// The bytes of the file before and after, if they are known before the edit.
    pub bytes: Option<(usize, usize)>,
    /// Whether the call names the lines that shall go.
    pub names_lost_lines: bool,
    /// How many edits of the file were refused in a row.
    pub failed_edits: u32,
    /// Whether lines of the file were read since the last refused edit.
    pub was_read_since: bool,
    /// Whether the specialist has the lease of the file. Of no meaning for others.
    pub has_lease: bool,
    /// How many calls the specialist has made.
    pub calls: u32,
    /// How many specialists the run has started.
    pub specialists: u32,
}

/// The limits of the layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Policy {
    /// Tools that are left out where one agent does everything itself.
    pub left_out_in_god_mode: Vec<String>,
    /// The most characters of a file that `search_replace` edits.
    pub search_replace_characters: Option<usize>,
    /// The same for specialists.
    pub specialist_search_replace_characters: Option<usize>,
    /// The most lines of a file that `propose_code_edit` rewrites.
    pub rewrite_lines: Option<usize>,
    /// Whether `search_replace` may be tried again after it failed.
    pub search_replace_after_failure: bool,
    /// After so many refused edits of a file, it must be read again.
    pub read_after: u32,
    /// After so many, the run escalates.
    pub escalate_after: u32,
    /// The most calls of a specialist.
    pub specialist_calls: u32,
    /// The most specialists of a run.
    pub specialists: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            left_out_in_god_mode: vec!["run_specialist".to_owned()],
            search_replace_characters: None,
            specialist_search_replace_characters: None,
            rewrite_lines: Some(1_000),
            search_replace_after_failure: true,
            read_after: 2,
            escalate_after: 3,
            specialist_calls: 16,
            specialists: 16,
        }
    }
}

impl Policy {
    /// With limits of size for `search_replace`, and without it and the searches where one agent does everything itself.
    #[must_use]
    pub fn strict() -> Self {
        let left_out =
            ["search_replace", "propose_code_edit", "grep_content", "search_files", "run_specialist"];
        Self {
            left_out_in_god_mode: left_out.map(str::to_owned).to_vec(),
            search_replace_characters: Some(15_000),
            specialist_search_replace_characters: Some(8_000),
            search_replace_after_failure: false,
            ..Self::default()
        }
    }
}

/// The part of the program that runs a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// Runs within the run, and what only the loop can do.
    Loop,
    /// The edits of this crate.
    Edits,
    /// Plans, notes and questions.
    Plans,
    /// The preview.
    Preview,
    /// The shop.
    Shop,
    /// Everything else that reads, or that a provider runs.
    Tools,
}

/// What becomes of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// It runs.
    Allow { route: Route },
    /// It does not run. `instead` is the tool to use.
    Refuse { layer: u8, reason: String, instead: Option<String> },
    /// It does not run, and the run goes on with a stronger model and a summary.
    Escalate { reason: String },
}

/// All tools, with the part of the program that runs each.
pub const TOOLS: [(&str, Route); 64] = [
    ("analyze_variants", Route::Tools),
    ("ask_clarification", Route::Plans),
    ("check_lint", Route::Tools),
    ("check_performance", Route::Tools),
    ("check_theme_setting", Route::Tools),
    ("code_execution", Route::Loop),
    ("compare_screenshots", Route::Preview),
    ("create_file", Route::Edits),
    ("create_plan", Route::Plans),
    ("delete_file", Route::Edits),
    ("diagnose_visibility", Route::Tools),
    ("edit_lines", Route::Edits),
    ("edit_node", Route::Edits),
    ("extract_region", Route::Tools),
    ("fetch_url", Route::Tools),
    ("find_references", Route::Tools),
    ("generate_image", Route::Tools),
    ("generate_placeholder", Route::Plans),
    ("get_dependency_graph", Route::Tools),
    ("get_file_info", Route::Tools),
    ("get_page_snapshot", Route::Preview),
    ("get_product", Route::Shop),
    ("get_schema_settings", Route::Tools),
    ("get_second_opinion", Route::Loop),
    ("get_shopify_asset", Route::Shop),
    ("glob_files", Route::Tools),
    ("grep_content", Route::Tools),
    ("inject_css", Route::Preview),
    ("inject_html", Route::Preview),
    ("inspect_element", Route::Preview),
    ("list_files", Route::Tools),
    ("list_store_resources", Route::Shop),
    ("list_themes", Route::Shop),
    ("navigate_preview", Route::Preview),
    ("parallel_batch_read", Route::Tools),
    ("propose_code_edit", Route::Edits),
    ("propose_plan", Route::Plans),
    ("pull_from_shopify", Route::Shop),
    ("push_to_shopify", Route::Shop),
    ("query_selector", Route::Preview),
    ("read_chunk", Route::Tools),
    ("read_console_logs", Route::Preview),
    ("read_file", Route::Tools),
    ("read_lines", Route::Tools),
    ("read_plan", Route::Plans),
    ("read_scratchpad", Route::Plans),
    ("rename_file", Route::Edits),
    ("run_command", Route::Tools),
    ("run_diagnostics", Route::Tools),
    ("run_review", Route::Loop),
    ("run_specialist", Route::Loop),
    ("screenshot_preview", Route::Preview),
    ("search_files", Route::Tools),
    ("search_replace", Route::Edits),
    ("semantic_search", Route::Tools),
    ("spawn_workers", Route::Loop),
    ("theme_check", Route::Tools),
    ("trace_rendering_chain", Route::Tools),
    ("undo_edit", Route::Edits),
    ("update_plan", Route::Plans),
    ("update_scratchpad", Route::Plans),
    ("validate_syntax", Route::Tools),
    ("web_search", Route::Tools),
    ("write_file", Route::Edits),
];

/// Whether a tool changes the theme or the shop.
fn changes(tool: &str, route: Route) -> bool {
    route == Route::Edits
        || matches!(tool, "push_to_shopify" | "pull_from_shopify" | "inject_css" | "inject_html")
}

fn refuse(layer: u8, reason: impl Into<String>, instead: Option<&str>) -> Decision {
    Decision::Refuse { layer, reason: reason.into(), instead: instead.map(str::to_owned) }
}

/// Decides whether a tool call runs. The first layer that refuses it says why.
#[must_use]
pub fn decide(attempt: &Attempt, policy: &Policy) -> Decision {
    let tool = attempt.tool;
    let route = TOOLS.binary_search_by_key(&tool, |(name, _)| *name).ok().map(|index| TOOLS[index].1);
    let is_change = route.is_some_and(|route| changes(tool, route));
    // Layer 1.
    if is_change && attempt.mode != Mode::Code {
        return refuse(
            1,
            "nothing is changed while a question is answered or a plan is made",
            Some("propose_plan"),
        );
    }
    if is_change && attempt.role == Role::Worker {
        return refuse(1, "workers only read", None);
    }
    if attempt.strategy == Strategy::GodMode
        && policy.left_out_in_god_mode.iter().any(|left_out| left_out == tool)
    {
        let instead = if tool == "run_specialist" { None } else { Some("edit_lines") };
        return refuse(1, format!("{tool} is left out where one agent does everything itself"), instead);
    }
    // Layer 2. Taking back and reading are what a failed edit needs.
    let is_edit = route == Some(Route::Edits) && tool != "undo_edit";
    if is_edit && attempt.failed_edits >= policy.escalate_after {
        let reason = format!("{} edits of the file were refused in a row", attempt.failed_edits);
        return Decision::Escalate { reason };
    }
    if is_edit && attempt.failed_edits >= policy.read_after && !attempt.was_read_since {
        let reason =
            format!("{} edits of the file were refused in a row: read the lines first", attempt.failed_edits);
        return refuse(2, reason, Some("read_lines"));
    }
    if tool == "search_replace" && attempt.failed_edits > 0 && !policy.search_replace_after_failure {
        return refuse(2, "search_replace failed with this file", Some("edit_lines"));
    }
    // Layer 3.
    let Some(route) = route else {
        return refuse(3, format!("there is no tool {tool}"), None);
    };
    // Layer 4.
    let (characters, lines) = attempt.size.unwrap_or_default();
    if tool == "search_replace" && policy.search_replace_characters.is_some_and(|most| characters > most) {
        return refuse(4, format!("the file has {characters} characters"), Some("edit_lines"));
    }
    if tool == "propose_code_edit" && policy.rewrite_lines.is_some_and(|most| lines > most) {
        return refuse(
            4,
            format!("the file has {lines} lines, too many to be rewritten"),
            Some("edit_lines"),
        );
    }
    if let ("write_file" | "propose_code_edit" | "edit_lines", Some((before, after))) = (tool, attempt.bytes)
        && before > 0
        && after * 2 < before
        && !attempt.names_lost_lines
    {
        return refuse(
            4,
            format!("the file would have {after} of {before} bytes: name the lines that shall go"),
            None,
        );
    }
    // Layer 5.
    if attempt.role == Role::Specialist {
        if attempt.calls >= policy.specialist_calls {
            return refuse(5, format!("the specialist has made {} calls", attempt.calls), None);
        }
        if is_edit && !attempt.has_lease {
            return refuse(5, "another specialist has this file: say in the result what it needs", None);
        }
        if matches!(tool, "run_specialist" | "spawn_workers" | "push_to_shopify" | "pull_from_shopify") {
            return refuse(5, format!("a specialist has no {tool}"), None);
        }
        if tool == "search_replace"
            && policy.specialist_search_replace_characters.is_some_and(|most| characters > most)
        {
            return refuse(5, format!("the file has {characters} characters"), Some("edit_lines"));
        }
    } else if tool == "run_specialist" && attempt.specialists >= policy.specialists {
        return refuse(5, format!("the run has started {} specialists", attempt.specialists), None);
    }
    Decision::Allow { route }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_sorted_and_there_once() {
        assert!(TOOLS.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn the_first_layer_that_refuses_decides() {
        let base = || Attempt { has_lease: true, ..Attempt::default() };
        let edit = |tool| Attempt { tool, size: Some((20_000, 800)), ..base() };
        let (plain, strict) = (Policy::default(), Policy::strict());
        let god = |tool| Attempt { strategy: Strategy::GodMode, ..edit(tool) };
        let failed =
            |failed_edits, was_read_since| Attempt { failed_edits, was_read_since, ..edit("search_replace") };
        let specialist = |tool| Attempt { role: Role::Specialist, ..edit(tool) };
        // The attempt, and the layer that refuses it by default and under the strict policy: 0 runs, 9 escalates.
        let table: Vec<(&str, Attempt, u8, u8)> = vec![
            ("an edit", edit("edit_lines"), 0, 0),
            ("a search in a large file", edit("search_replace"), 0, 4),
            (
                "the same in a file of 15,000 characters",
                Attempt { size: Some((15_000, 9)), ..edit("search_replace") },
                0,
                0,
            ),
            ("an edit while asking", Attempt { mode: Mode::Ask, ..edit("write_file") }, 1, 1),
            ("an edit while planning", Attempt { mode: Mode::Plan, ..edit("rename_file") }, 1, 1),
            ("reading while asking", Attempt { mode: Mode::Ask, ..edit("read_lines") }, 0, 0),
            ("an edit by a worker", Attempt { role: Role::Worker, ..edit("create_file") }, 1, 1),
            ("a search by a worker", Attempt { role: Role::Worker, ..edit("grep_content") }, 0, 0),
            ("god mode: search_replace", god("search_replace"), 0, 1),
            ("god mode: propose_code_edit", god("propose_code_edit"), 0, 1),
            ("god mode: grep_content", god("grep_content"), 0, 1),
            ("god mode: search_files", god("search_files"), 0, 1),
            ("god mode: run_specialist", god("run_specialist"), 1, 1),
            ("god mode: edit_lines", god("edit_lines"), 0, 0),
            ("one failed search", Attempt { size: Some((9, 1)), ..failed(1, false) }, 0, 2),
            ("two failed edits", failed(2, false), 2, 2),
            ("two failed edits and a reading", Attempt { tool: "edit_lines", ..failed(2, true) }, 0, 0),
            ("three failed edits", failed(3, true), 9, 9),
            ("reading after three", Attempt { tool: "read_lines", ..failed(3, false) }, 0, 0),
            ("undoing after three", Attempt { tool: "undo_edit", ..failed(3, false) }, 0, 0),
            ("an unknown tool", edit("sudo"), 3, 3),
            ("a rewrite of 800 lines", edit("propose_code_edit"), 0, 0),
            (
                "a rewrite of 1,001 lines",
                Attempt { size: Some((9, 1_001)), ..edit("propose_code_edit") },
                4,
                4,
            ),
            ("half a file", Attempt { bytes: Some((100, 50)), ..edit("write_file") }, 0, 0),
            ("less than half a file", Attempt { bytes: Some((100, 49)), ..edit("write_file") }, 4, 4),
            ("less than half, by lines", Attempt { bytes: Some((100, 10)), ..edit("edit_lines") }, 4, 4),
            (
                "less than half, named",
                Attempt { bytes: Some((100, 0)), names_lost_lines: true, ..edit("write_file") },
                0,
                0,
            ),
            ("a new file", Attempt { bytes: Some((0, 10)), ..edit("write_file") }, 0, 0),
            ("a specialist", specialist("edit_lines"), 0, 0),
            (
                "a specialist without the lease",
                Attempt { has_lease: false, ..specialist("edit_lines") },
                5,
                5,
            ),
            ("a specialist reads anything", Attempt { has_lease: false, ..specialist("read_file") }, 0, 0),
            ("a specialist at its ceiling", Attempt { calls: 16, ..specialist("read_file") }, 5, 5),
            ("a specialist starts another", specialist("run_specialist"), 5, 5),
            ("a specialist pushes", specialist("push_to_shopify"), 5, 5),
            (
                "a specialist searches 8,001 characters",
                Attempt { size: Some((8_001, 9)), ..specialist("search_replace") },
                0,
                5,
            ),
            (
                "a specialist searches 8,000 characters",
                Attempt { size: Some((8_000, 9)), ..specialist("search_replace") },
                0,
                0,
            ),
            ("the 17th specialist", Attempt { specialists: 16, ..edit("run_specialist") }, 5, 5),
        ];
        let layer = |decision: Decision| match decision {
            Decision::Allow { .. } => 0,
            Decision::Refuse { layer, .. } => layer,
            Decision::Escalate { .. } => 9,
        };
        for (name, attempt, by_default, when_strict) in table {
            assert_eq!(layer(decide(&attempt, &plain)), by_default, "{name}");
            assert_eq!(layer(decide(&attempt, &strict)), when_strict, "{name}, strict");
        }
        assert_eq!(decide(&edit("run_review"), &plain), Decision::Allow { route: Route::Loop });
        assert_eq!(decide(&edit("undo_edit"), &plain), Decision::Allow { route: Route::Edits });
    }
}
