//! What the stored steps of a turn say about its calls.

use domain::agent_loop::{Call, CallResult, NOT_CALLED, Step};
use domain::tools::ToolDef;
use domain::tools::theme_tools::{self as tools, TOOLS};

/// The calls of these steps that have a result.
pub(crate) fn calls_of(steps: &[Step]) -> impl Iterator<Item = (&Call, &CallResult)> {
    steps.iter().flat_map(|step| step.reply.calls.iter().zip(&step.results))
}

/// Whether the call of this result was made.
pub(crate) fn was_called(result: &CallResult) -> bool {
    !(result.is_error && result.content.starts_with(NOT_CALLED))
}

pub(crate) fn tool(name: &str) -> Option<&'static ToolDef> {
    domain::tools::find(TOOLS, name)
}

/// Whether a tool changes the change set of the turn.
pub(crate) fn is_edit(name: &str) -> bool {
    tool(name).is_some_and(|tool| tool.granted_as == Some(tools::EDIT))
}

/// A turn and a call, for tests.
#[cfg(test)]
pub(crate) mod samples {
    use domain::agent_loop::Call;
    use domain::ids::{ChangeSetId, ProjectId};
    use domain::models::routing::TaskTier;
    use domain::projects::turn::{ThemeTurn, TurnMode};
    use serde_json::Value;

    use crate::classify::strategy_of;

    pub(crate) fn turn(mode: TurnMode, tier: TaskTier) -> ThemeTurn {
        ThemeTurn {
            project_id: ProjectId::DEFAULT,
            mode,
            tier,
            strategy: strategy_of(tier),
            why: Vec::new(),
            files: Vec::new(),
            change_set_id: ChangeSetId::from_uuid(ProjectId::DEFAULT.uuid()),
            estimate_micros: 0,
            escalations: Vec::new(),
            helper: None,
        }
    }

    pub(crate) fn call(name: &str, input: Value) -> Call {
        Call { id: None, name: name.to_owned(), input, invalid: None, implied: false }
    }
}
