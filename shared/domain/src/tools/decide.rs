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

    use super::super::{ALL, DOCUMENTS, LOOP, MCP, OWN, THEME};
    use super::*;

    /// Allowed for MCP clients, and nowhere else.
    const MCP_TOOLS: &str = "
        parse_mode update_context read_context list_context_versions restore_context read_agent_log append_agent_log
        lookup_theme check_theme preview_theme_fix list_projects list_workflows list_agents read_agent propose_agent list_assets read_asset propose_asset
        list_actions read_action propose_action explain_action list_runs read_run list_run_outputs preview_schedule
        list_proposals read_proposal search_memory remember_card correct_fact forget_fact
        report_run read_practices read_document sync_documentation add_commit";
    const EVERYWHERE: &[Surface] =
        &[Surface::Setup, Surface::Chat, Surface::AboutAction, Surface::Theme, Surface::Run, Surface::Mcp];
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

    /// Setup, chat, about an action, run without grants, run with grants, MCP, theme agent.
    fn settings(granted: &[String]) -> [Setting<'_>; 7] {
        [
            Setting::Setup,
            Setting::Chat,
            Setting::AboutAction,
            Setting::Run { grants: &[] },
            Setting::Run { grants: granted },
            Setting::Mcp,
            Setting::Theme,
        ]
    }

    #[test]
    fn every_tool_is_decided_about_in_every_setting() {
        let granted = ["generate_actions", "acts_outside", "edit_theme"].map(str::to_owned);
        let of_loop: &[Row] = &[
            ("query_actions", "raaaarr"),
            ("query_assets", "raaaarr"),
            ("read_asset", "raaaarr"),
            ("generate_asset", "raaaarr"),
            ("generate_actions", "raaparr"),
            ("ready_to_create", "arrrrrr"),
            ("save_output", "rrraarr"),
            ("ask_person", "rrraarr"),
            ("change_action", "raarrrr"),
            ("command_action", "raarrrr"),
            ("note", "rrraarr"),
            ("nothing_new", "rrraarr"),
            ("read_messages", "aaarrra"),
            ("query_practice", "raaaarr"),
            ("explain_action", "raarrrr"),
        ];
        let of_own: &[Row] = &[("read_result", "raaaara")];
        let of_documents: &[Row] = &[("read_document", "raaaarr"), ("sync_documentation", "raaaarr")];
        let of_theme: &[Row] = &[
            ("list_files", "raaaaaa"),
            ("read_file", "raaaaaa"),
            ("read_lines", "raaaaaa"),
            ("extract_region", "raaaaaa"),
            ("grep_content", "raaaaaa"),
            ("search_files", "raaaaaa"),
            ("theme_check", "raaaaaa"),
            ("edit_lines", "raapaaa"),
            ("search_replace", "raapaaa"),
            ("write_file", "raapaaa"),
            ("edit_node", "raapaaa"),
            ("create_file", "raapaaa"),
            ("delete_file", "raapaaa"),
            ("rename_file", "raapaaa"),
            ("undo_edit", "raapaaa"),
            ("show_changes", "raaaaaa"),
            ("apply_changes", "raappaa"),
            ("get_dependency_graph", "raaaaaa"),
            ("find_references", "raaaaaa"),
            ("trace_rendering_chain", "raaaaaa"),
            ("get_schema_settings", "raaaaaa"),
            ("check_theme_setting", "raaaaaa"),
            ("diagnose_visibility", "raaaaaa"),
            ("analyze_variants", "raaaaaa"),
            ("check_performance", "raaaaaa"),
            ("generate_placeholder", "raaaaaa"),
            ("run_command", "raaaaaa"),
            ("read_plan", "raaaaaa"),
            ("update_plan", "raapaaa"),
        ];
        let of_mcp: Vec<Row> = MCP_TOOLS.split_whitespace().map(|name| (name, "rrrrrar")).collect();
        let invented: &[Row] = &[("writes", "aaaaaaa"), ("acts_outside", "ppppapp")];
        static INVENTED: [&ToolDef; 2] = [&WRITES, &ACTS_OUTSIDE];
        let unknown: &[Row] = &[("approve", "rrrrrrr"), ("", "rrrrrrr"), ("Query_Actions", "rrrrrrr")];
        let tables: [(Table, &[&[Row]]); 6] = [
            (LOOP, &[of_loop, unknown]),
            (OWN, &[of_own, unknown]),
            (DOCUMENTS, &[of_documents, unknown]),
            (THEME, &[of_theme, unknown]),
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
        assert_eq!(ALL, [LOOP, OWN, DOCUMENTS, THEME, MCP], "a new table needs rows above");
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
