//! Sets of the tools of the MCP server. A client that needs only some of the tools names sets in the server's address, because
//! every session of an assistant carries the definitions of all tools that it is offered.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use super::{
    Table, ToolDef, actions, agents, assets, context, documents, logs, memory, practices, projects,
    proposals, runs, schedules, theme, theme_tools, watched,
};

/// The word for all tools but those of [`OPT_IN`].
const ALL: &str = "all";

/// Tools that are used together. A tool may be in several sets, so that each set is complete by itself.
#[derive(Debug, PartialEq, Eq)]
pub struct ToolSet {
    pub name: &'static str,
    pub tools: Table,
}

pub const SETS: &[ToolSet] = &[
    ToolSet {
        name: "context",
        tools: &[
            &context::PARSE_MODE,
            &context::UPDATE_CONTEXT,
            &context::READ_CONTEXT,
            &context::LIST_CONTEXT_VERSIONS,
            &context::RESTORE_CONTEXT,
            &projects::LIST_WORKFLOWS,
        ],
    },
    ToolSet { name: "logs", tools: &[&logs::READ_AGENT_LOG, &logs::APPEND_AGENT_LOG] },
    ToolSet {
        name: "themes",
        tools: &[&theme::LOOKUP_THEME, &theme::CHECK_THEME, &theme::FIX_THEME, &projects::LIST_PROJECTS],
    },
    ToolSet {
        name: "agents",
        tools: &[
            &agents::LIST_AGENTS,
            &agents::READ_AGENT,
            &agents::PROPOSE_AGENT,
            &assets::LIST_ASSETS,
            &assets::READ_ANY_ASSET,
            &assets::PROPOSE_ASSET,
            &actions::LIST_ACTIONS,
            &actions::READ_ACTION,
            &actions::PROPOSE_ACTION,
            &schedules::PREVIEW_SCHEDULE,
            &proposals::LIST_PROPOSALS,
            &proposals::READ_PROPOSAL,
        ],
    },
    ToolSet {
        name: "runs",
        tools: &[
            &agents::LIST_AGENTS,
            &actions::LIST_ACTIONS,
            &actions::READ_ACTION,
            &runs::EXPLAIN_ACTION,
            &runs::LIST_RUNS,
            &runs::READ_RUN,
            &runs::LIST_RUN_OUTPUTS,
            &assets::READ_ANY_ASSET,
            &watched::REPORT_RUN,
        ],
    },
    ToolSet {
        name: "memory",
        tools: &[
            &memory::SEARCH_MEMORY,
            &memory::REMEMBER_CARD,
            &memory::CORRECT_FACT,
            &memory::FORGET_FACT,
            &practices::READ_PRACTICES,
        ],
    },
    ToolSet {
        name: "documents",
        tools: &[
            &documents::READ_PROJECT_DOCUMENT,
            &documents::SYNC_PROJECT_DOCUMENTATION,
            &documents::ADD_COMMIT,
            &projects::LIST_PROJECTS,
        ],
    },
    ToolSet { name: "projects", tools: &[&projects::LIST_PROJECTS, &projects::LIST_WORKFLOWS] },
    ToolSet { name: "theme", tools: theme_tools::TOOLS },
];

/// The sets that a client has only if it names them: they are long, and few clients need them.
const OPT_IN: &[&str] = &["theme"];

/// The sets that a client has named. The default is all tools but those of sets that must be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSets {
    all: bool,
    named: Vec<&'static ToolSet>,
}

impl Default for ToolSets {
    fn default() -> Self {
        Self { all: true, named: Vec::new() }
    }
}

/// The text names a set that does not exist, or no set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one or more of {}, with commas", names())]
pub struct UnknownToolSet;

/// The names of all sets, with commas.
fn names() -> String {
    let names: Vec<&str> = SETS.iter().map(|set| set.name).chain([ALL]).collect();
    names.join(", ")
}

impl ToolSets {
    #[must_use]
    pub fn has(&self, tool: &ToolDef) -> bool {
        let mut sets = SETS.iter().filter(|set| match OPT_IN.contains(&set.name) {
            true => self.named.contains(set),
            false => self.all || self.named.contains(set),
        });
        sets.any(|set| set.tools.contains(&tool))
    }
}

impl FromStr for ToolSets {
    type Err = UnknownToolSet;
    fn from_str(text: &str) -> Result<Self, UnknownToolSet> {
        let mut named: Vec<&'static ToolSet> = Vec::new();
        let mut all = false;
        for name in text.split(',') {
            if name == ALL {
                all = true;
                continue;
            }
            let set = SETS.iter().find(|set| set.name == name).ok_or(UnknownToolSet)?;
            if !named.contains(&set) {
                named.push(set);
            }
        }
        if all {
            named.retain(|set| OPT_IN.contains(&set.name));
        }
        Ok(Self { all, named })
    }
}

impl fmt::Display for ToolSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all.then_some(ALL);
        let names: Vec<&str> = all.into_iter().chain(self.named.iter().map(|set| set.name)).collect();
        f.write_str(&names.join(","))
    }
}

impl<'de> Deserialize<'de> for ToolSets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MCP, THEME};
    use super::*;

    #[test]
    fn sets_are_named_and_read_back() {
        for (text, shown) in [
            ("all", "all"),
            ("context", "context"),
            ("context,agents", "context,agents"),
            ("runs,runs,logs", "runs,logs"),
            ("context,all", "all"),
            ("theme,all", "all,theme"),
        ] {
            assert_eq!(text.parse::<ToolSets>().unwrap().to_string(), shown);
        }
        for wrong in ["", ",", "context,", "Context", "context agents", "contexts", "parse_mode", " all"] {
            let error = wrong.parse::<ToolSets>().unwrap_err().to_string();
            assert_eq!(
                error,
                "must be one or more of context, logs, themes, agents, runs, memory, documents, projects, theme, all, with commas",
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn every_tool_is_in_a_set_and_every_set_has_tools_of_mcp() {
        let context: ToolSets = "context".parse().unwrap();
        let all: ToolSets = "all".parse().unwrap();
        let each: ToolSets = "context,logs,themes,agents,runs,memory,documents,projects".parse().unwrap();
        for tool in MCP {
            assert!(all.has(tool) && ToolSets::default().has(tool) && each.has(tool), "{tool:?}");
        }
        for set in SETS {
            assert!(set.tools.len() >= 2, "{}", set.name);
            let table = if OPT_IN.contains(&set.name) { THEME } else { MCP };
            for tool in set.tools {
                assert!(table.contains(tool), "{tool:?}");
            }
        }
        let theme: ToolSets = "theme".parse().unwrap();
        for tool in THEME {
            assert!(theme.has(tool) && !all.has(tool), "{tool:?}");
        }
        assert!(context.has(&context::UPDATE_CONTEXT) && !context.has(&agents::LIST_AGENTS));
    }
}
