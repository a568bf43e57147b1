//! Whether a call is allowed: one pure function for all kinds of runs and for MCP.

use super::{Effect, Surface, Table, ToolDef, find};

/// The situation in which a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting<'a> {
    /// The conversation that sets an agent up.
    Setup,
    /// A conversation with an agent.
    Chat,
    /// The conversation about one action.
    AboutAction,
    /// A conversation with the theme agent.
    Theme,
    /// A helper of the theme agent.
    Helper {
        /// Whether it may edit files.
        edits: bool,
    },
    /// An unattended run of an action with these grants.
    Run { grants: &'a [String] },
    /// A call of an MCP client.
    Mcp,
}

impl Setting<'_> {
    #[must_use]
    pub const fn surface(self) -> Surface {
        match self {
            Self::Setup => Surface::Setup,
            Self::Chat => Surface::Chat,
            Self::AboutAction => Surface::AboutAction,
            Self::Theme => Surface::Theme,
            Self::Helper { .. } => Surface::Helper,
            Self::Run { .. } => Surface::Run,
            Self::Mcp => Surface::Mcp,
        }
    }
}

/// The result of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allowed(&'static ToolDef),
    /// A person must approve it. The text is for the person.
    NeedsPerson(String),
    /// It is not made. The text is for the model.
    Refused(String),
}

/// Decides about a call of the tool with this name in `table`.
#[must_use]
pub fn decide(table: Table, name: &str, setting: Setting<'_>) -> Decision {
    match find(table, name) {
        Some(tool) => decide_about(tool, setting),
        None => Decision::Refused(format!("there is no tool {name}")),
    }
}

/// Decides about a call of a tool.
#[must_use]
pub fn decide_about(tool: &'static ToolDef, setting: Setting<'_>) -> Decision {
    let name = tool.name;
    if !tool.is_accepted_on(setting.surface()) {
        return Decision::Refused(match (setting, name) {
            (Setting::Setup, "generate_asset" | "generate_actions") => {
                "there is no agent yet; first set one up with ready_to_create".to_owned()
            }
            (Setting::Chat | Setting::AboutAction, "ready_to_create") => {
                "this agent exists already".to_owned()
            }
            _ => format!("there is no tool {name}"),
        });
    }
    match setting {
        Setting::Helper { edits: false } if tool.effect != Effect::Read => {
            Decision::Refused("this helper reads, and changes nothing".to_owned())
        }
        Setting::Helper { .. } if tool.effect == Effect::Outside => {
            Decision::Refused("a helper does nothing outside this platform".to_owned())
        }
        Setting::Run { grants } if tool.needs_grant() => {
            if grants.iter().any(|grant| grant == tool.grant()) {
                Decision::Allowed(tool)
            } else {
                Decision::NeedsPerson(format!("it wants to use {name}, which this action was not granted"))
            }
        }
        Setting::Setup | Setting::Chat | Setting::AboutAction | Setting::Theme | Setting::Mcp
            if tool.effect == Effect::Outside =>
        {
            Decision::NeedsPerson(format!("it wants to use {name}, which acts outside this platform"))
        }
        _ => Decision::Allowed(tool),
    }
}

/// The tools that a model is offered in this setting, in the order of the table: those that it may call, and those that a
/// person who is present may approve.
pub fn offered(table: Table, setting: Setting<'_>) -> impl Iterator<Item = &'static ToolDef> {
    offered_of(table.iter().copied(), setting)
}

/// The same for tools that are in no table.
pub fn offered_of(
    tools: impl IntoIterator<Item = &'static ToolDef>,
    setting: Setting<'_>,
) -> impl Iterator<Item = &'static ToolDef> {
    let is_person_present =
        matches!(setting, Setting::Setup | Setting::Chat | Setting::AboutAction | Setting::Theme);
    tools.into_iter().filter(move |tool| {
        tool.is_offered_on(setting.surface())
            && match decide_about(tool, setting) {
                Decision::Allowed(_) => true,
                Decision::NeedsPerson(_) => is_person_present,
                Decision::Refused(_) => false,
            }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ALL, DOCUMENTS, HELPERS, LOOP, MCP, OWN, THEME};
    use super::*;

    /// Allowed for MCP clients, and nowhere else.
    const MCP_TOOLS: &str = "
        parse_mode update_context read_context list_context_versions restore_context read_agent_log append_agent_log
        lookup_theme check_theme preview_theme_fix list_projects list_workflows list_agents read_agent propose_agent list_assets read_asset propose_asset
        list_actions read_action propose_action explain_action list_runs read_run list_run_outputs preview_schedule
        list_proposals read_proposal search_memory remember_card correct_fact forget_fact
        report_run read_practices read_document sync_documentation add_commit";
    const EVERYWHERE: &[Surface] = &[
        Surface::Setup,
        Surface::Chat,
        Surface::AboutAction,
        Surface::Theme,
        Surface::Helper,
        Surface::Run,
        Surface::Mcp,
    ];
    static WRITES: ToolDef = ToolDef::new("writes", "", Effect::Write, EVERYWHERE, || json!({}));
    static ACTS_OUTSIDE: ToolDef =
        ToolDef::new("acts_outside", "", Effect::Outside, EVERYWHERE, || json!({}));

    fn mark(decision: &Decision) -> char {
        match decision {
            Decision::Allowed(_) => 'a',
            Decision::NeedsPerson(_) => 'p',
            Decision::Refused(_) => 'r',
        }
    }

    /// The name of a tool, and a letter for each of [`settings`]: allowed, needs a person, refused.
    type Row = (&'static str, &'static str);

    /// Setup, chat, about an action, run without grants, run with grants, MCP, theme agent, its helpers that read, and those that edit.
    fn settings(granted: &[String]) -> [Setting<'_>; 9] {
        [
            Setting::Setup,
            Setting::Chat,
            Setting::AboutAction,
            Setting::Run { grants: &[] },
            Setting::Run { grants: granted },
            Setting::Mcp,
            Setting::Theme,
            Setting::Helper { edits: false },
            Setting::Helper { edits: true },
        ]
    }

    #[test]
    fn every_tool_is_decided_about_in_every_setting() {
        let granted = ["generate_actions", "acts_outside", "edit_theme"].map(str::to_owned);
        let of_loop: &[Row] = &[
            ("query_actions", "raaaarrrr"),
            ("query_assets", "raaaarrrr"),
            ("read_asset", "raaaarrrr"),
            ("generate_asset", "raaaarrrr"),
            ("generate_actions", "raaparrrr"),
            ("ready_to_create", "arrrrrrrr"),
            ("save_output", "rrraarrrr"),
            ("ask_person", "rrraarrrr"),
            ("change_action", "raarrrrrr"),
            ("command_action", "raarrrrrr"),
            ("note", "rrraarrrr"),
            ("nothing_new", "rrraarrrr"),
            ("read_messages", "aaarrrarr"),
            ("query_practice", "raaaarrrr"),
            ("explain_action", "raarrrrrr"),
        ];
        let of_own: &[Row] = &[("read_result", "raaaaraaa")];
        let of_documents: &[Row] = &[("read_document", "raaaarrrr"), ("sync_documentation", "raaaarrrr")];
        let of_theme: &[Row] = &[
            ("list_files", "raaaaaaaa"),
            ("read_file", "raaaaaaaa"),
            ("read_lines", "raaaaaaaa"),
            ("extract_region", "raaaaaaaa"),
            ("grep_content", "raaaaaaaa"),
            ("search_files", "raaaaaaaa"),
            ("theme_check", "raaaaaaaa"),
            ("edit_lines", "raapaaara"),
            ("search_replace", "raapaaara"),
            ("write_file", "raapaaara"),
            ("edit_node", "raapaaara"),
            ("create_file", "raapaaara"),
            ("delete_file", "raapaaara"),
            ("rename_file", "raapaaara"),
            ("undo_edit", "raapaaara"),
            ("show_changes", "raaaaaaaa"),
            ("apply_changes", "raappaarr"),
            ("get_dependency_graph", "raaaaaaaa"),
            ("find_references", "raaaaaaaa"),
            ("trace_rendering_chain", "raaaaaaaa"),
            ("get_schema_settings", "raaaaaaaa"),
            ("check_theme_setting", "raaaaaaaa"),
            ("diagnose_visibility", "raaaaaaaa"),
            ("analyze_variants", "raaaaaaaa"),
            ("check_performance", "raaaaaaaa"),
            ("generate_placeholder", "raaaaaaaa"),
            ("run_command", "raaaaaaaa"),
            ("read_plan", "raaaaaaaa"),
            ("update_plan", "raapaaarr"),
        ];
        let of_helpers: &[Row] = &[
            ("run_specialist", "rrrrrrarr"),
            ("run_review", "rrrrrrarr"),
            ("get_second_opinion", "rrrrrrarr"),
            ("spawn_workers", "rrrrrrarr"),
        ];
        let of_mcp: Vec<Row> = MCP_TOOLS.split_whitespace().map(|name| (name, "rrrrrarrr")).collect();
        let invented: &[Row] = &[("writes", "aaaaaaara"), ("acts_outside", "ppppapprr")];
        static INVENTED: [&ToolDef; 2] = [&WRITES, &ACTS_OUTSIDE];
        let unknown: &[Row] = &[("approve", "rrrrrrrrr"), ("", "rrrrrrrrr"), ("Query_Actions", "rrrrrrrrr")];
        let tables: [(Table, &[&[Row]]); 7] = [
            (LOOP, &[of_loop, unknown]),
            (OWN, &[of_own, unknown]),
            (DOCUMENTS, &[of_documents, unknown]),
            (THEME, &[of_theme, unknown]),
            (HELPERS, &[of_helpers, unknown]),
            (MCP, &[&of_mcp, unknown]),
            (&INVENTED, &[invented, unknown]),
        ];
        for (table, rows) in tables {
            let rows: Vec<_> = rows.iter().copied().flatten().collect();
            for (tool, expected) in &rows {
                let decisions: String =
                    settings(&granted).iter().map(|setting| mark(&decide(table, tool, *setting))).collect();
                assert_eq!(decisions, *expected, "{tool}");
            }
            for tool in table {
                assert!(rows.iter().any(|(name, _)| *name == tool.name), "{tool:?} needs a row above");
            }
        }
        assert_eq!(ALL, [LOOP, OWN, DOCUMENTS, THEME, HELPERS, MCP], "a new table needs rows above");
    }

    #[test]
    fn what_is_offered_is_not_refused() {
        static INVENTED: [&ToolDef; 2] = [&WRITES, &ACTS_OUTSIDE];
        let granted = ["generate_actions".to_owned()];
        for table in ALL.into_iter().chain([&INVENTED[..]]) {
            for setting in settings(&granted) {
                for tool in offered(table, setting) {
                    let is_allowed = decide(table, tool.name, setting) == Decision::Allowed(tool);
                    assert!(is_allowed || *tool == ACTS_OUTSIDE, "{tool:?} {setting:?}");
                }
            }
        }
        let names = |setting| offered(&INVENTED, setting).map(|tool| tool.name).collect::<Vec<_>>();
        assert_eq!(names(Setting::Chat), ["writes", "acts_outside"]);
        assert_eq!(names(Setting::Run { grants: &granted }), ["writes"]);
        assert_eq!(names(Setting::Run { grants: &["acts_outside".to_owned()] }), ["writes", "acts_outside"]);
    }
}
