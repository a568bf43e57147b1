//! Whether a call is allowed: one pure function for all kinds of runs.

use super::Tool;

/// The situation in which a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting<'a> {
    /// The conversation that sets an agent up.
    Setup,
    /// A conversation with an agent.
    Chat,
    /// The conversation about one action.
    AboutAction,
    /// An unattended run of an action with these grants.
    Run { grants: &'a [String] },
}

/// The result of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allowed(Tool),
    /// A person must approve it. The text is for the person.
    NeedsPerson(String),
    /// It is not made. The text is for the model.
    Refused(String),
}

/// Decides about a call of the tool with this name.
#[must_use]
pub fn decide(name: &str, setting: Setting<'_>) -> Decision {
    let unknown = || Decision::Refused(format!("there is no tool {name}"));
    let Some(tool) = Tool::from_name(name) else { return unknown() };
    let offered = match setting {
        Setting::Setup => Tool::offered_in_setup().any(|offered| offered == tool),
        Setting::Chat => Tool::offered_in_chat().any(|offered| offered == tool),
        Setting::AboutAction => Tool::offered_about_action().any(|offered| offered == tool),
        Setting::Run { grants } => tool.is_allowed_in_run(grants),
    };
    match (setting, tool) {
        _ if offered => Decision::Allowed(tool),
        (Setting::Setup, Tool::GenerateAsset | Tool::GenerateActions) => {
            Decision::Refused("there is no agent yet; first set one up with ready_to_create".to_owned())
        }
        (Setting::Chat | Setting::AboutAction, Tool::ReadyToCreate) => {
            Decision::Refused("this agent exists already".to_owned())
        }
        // The other tools cannot be granted, so a person cannot allow them.
        (Setting::Run { .. }, _) if tool.is_grantable() => {
            Decision::NeedsPerson(format!("it wants to use {name}, which this action was not granted"))
        }
        _ => unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_decided_about_in_every_setting() {
        let granted = ["generate_actions".to_owned()];
        let settings = [
            Setting::Setup,
            Setting::Chat,
            Setting::AboutAction,
            Setting::Run { grants: &[] },
            Setting::Run { grants: &granted },
        ];
        let mark = |decision: Decision| match decision {
            Decision::Allowed(_) => 'a',
            Decision::NeedsPerson(_) => 'p',
            Decision::Refused(_) => 'r',
        };
        for (tool, expected) in [
            ("query_actions", "raaaa"),
            ("query_assets", "raaaa"),
            ("read_asset", "raaaa"),
            ("generate_asset", "raaaa"),
            ("generate_actions", "raapa"),
            ("ready_to_create", "arrrr"),
            ("save_output", "rrraa"),
            ("ask_person", "rrraa"),
            ("change_action", "rrarr"),
            ("approve", "rrrrr"),
            ("", "rrrrr"),
        ] {
            let decisions: String = settings.iter().map(|setting| mark(decide(tool, *setting))).collect();
            assert_eq!(decisions, expected, "{tool}");
        }
        assert_eq!(Tool::ALL.len(), 9, "a new tool needs a row above");
    }

    #[test]
    fn what_is_offered_is_what_is_allowed() {
        let grants = ["generate_actions".to_owned()];
        let offered: [(Setting<'_>, Vec<Tool>); 4] = [
            (Setting::Setup, Tool::offered_in_setup().collect()),
            (Setting::Chat, Tool::offered_in_chat().collect()),
            (Setting::AboutAction, Tool::offered_about_action().collect()),
            (Setting::Run { grants: &grants }, Tool::offered_in_run(&grants).collect()),
        ];
        for (setting, tools) in offered {
            for tool in tools {
                assert_eq!(decide(tool.name(), setting), Decision::Allowed(tool), "{setting:?}");
            }
        }
    }
}
