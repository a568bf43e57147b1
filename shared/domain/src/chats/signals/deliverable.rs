//! The deliverables of a reply, and how they are read from JSON or from key–value lines.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agents::{AgentDraft, Need};
use crate::assets::NewAsset;
use crate::text::wording::refusal;
use crate::work::{ActionDraft, Condition, TaskConfig};

/// One deliverable, in the order of the reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Deliverable {
    /// The setup conversation is complete.
    ReadyToCreate(AgentDraft),
    /// Finished content, now.
    Asset(NewAsset),
    /// Work for later. At least one action.
    Actions { actions: Vec<ActionDraft> },
    /// A call of a tool from the registry.
    UseTool { name: String, input: Value },
    /// A signal whose payload can't be read. People see the reason, and the model may get one chance to repair it.
    Invalid { signal: SignalKind, reason: String, raw_len: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    ReadyToCreate,
    GenerateAsset,
    GenerateActions,
    UseTool,
}

impl SignalKind {
    pub const ALL: [Self; 4] =
        [Self::ReadyToCreate, Self::GenerateAsset, Self::GenerateActions, Self::UseTool];

    /// The keyword at the start of the line.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::ReadyToCreate => "READY_TO_CREATE",
            Self::GenerateAsset => "GENERATE_ASSET",
            Self::GenerateActions => "GENERATE_ACTIONS",
            Self::UseTool => "USE_TOOL",
        }
    }
}

impl Deliverable {
    /// The deliverable of a native tool call. `None` if the tool is from the registry instead.
    #[must_use]
    pub fn from_tool_call(name: &str, input: &Value) -> Option<Self> {
        let signal = match name {
            "ready_to_create" => SignalKind::ReadyToCreate,
            "generate_asset" => SignalKind::GenerateAsset,
            "generate_actions" => SignalKind::GenerateActions,
            _ => return None,
        };
        Some(Self::from_json(signal, input).unwrap_or_else(|reason| Self::Invalid {
            signal,
            reason,
            raw_len: input.to_string().len(),
        }))
    }

    /// The payload of `signal`, which is not [`SignalKind::UseTool`]. The error is a reason for people.
    pub(super) fn from_json(signal: SignalKind, payload: &Value) -> Result<Self, String> {
        match signal {
            SignalKind::ReadyToCreate => agent(&Fields::of(payload, "")?).map(Self::ReadyToCreate),
            SignalKind::GenerateAsset => asset(&Fields::of(payload, "")?).map(Self::Asset),
            SignalKind::GenerateActions => actions(payload).map(|actions| Self::Actions { actions }),
            SignalKind::UseTool => Err("a tool call names its tool".into()),
        }
    }

    /// The payload of `READY_TO_CREATE`: upper-case keys at line starts, values up to the next key.
    pub(super) fn from_key_values(payload: &str) -> Result<Self, String> {
        const KEYS: [&str; 7] =
            ["TITLE", "GOAL", "SUCCESS_CRITERIA", "TIMELINE", "INSTRUCTIONS", "FIRST_ACTION", "NEEDS"];
        let mut values: [Option<String>; KEYS.len()] = Default::default();
        let mut current = None;
        for line in payload.lines() {
            let key = line.trim_start_matches(['*', '#', ' ']).split_once(':').and_then(|(key, value)| {
                let key = key.trim_end_matches(['*', ' ']);
                let index = KEYS.iter().position(|known| *known == key)?;
                // A key that has already occurred is a line of the current value.
                values[index].is_none().then_some((index, value.trim_start_matches('*')))
            });
            if let Some((index, value)) = key {
                current = Some(index);
                values[index] = Some(value.to_owned());
            } else if let Some(value) = current.and_then(|index| values[index].as_mut()) {
                value.push('\n');
                value.push_str(line);
            }
        }
        let [title, goal, success_criteria, timeline, instructions, first, needs] =
            values.map(|value| value.map(|v| v.trim().to_owned()).filter(|v| !v.is_empty()));
        let needed = |value: Option<String>, key: &str| value.ok_or_else(|| format!("it has no {key}"));
        let first_action = match first {
            None => None,
            Some(text) => {
                let json: Value = serde_json::from_str(&text)
                    .map_err(|error| format!("FIRST_ACTION is not one JSON object ({error})"))?;
                Some(Box::new(action(&Fields::of(&json, "FIRST_ACTION")?)?))
            }
        };
        let needs = needs.unwrap_or_default();
        let needs = needs.split([',', ' ', '\n']).filter_map(need).collect();
        Ok(Self::ReadyToCreate(AgentDraft {
            name: needed(title, "TITLE")?,
            goal: needed(goal, "GOAL")?,
            success_criteria: needed(success_criteria, "SUCCESS_CRITERIA")?,
            timeline: needed(timeline, "TIMELINE")?,
            instructions: instructions.unwrap_or_default(),
            first_action,
            needs,
        }))
    }
}

fn agent(fields: &Fields<'_>) -> Result<AgentDraft, String> {
    Ok(AgentDraft {
        name: fields.needed(&["title", "name"])?,
        goal: fields.needed(&["goal"])?,
        success_criteria: fields.needed(&["success_criteria", "successCriteria"])?,
        timeline: fields.needed(&["timeline"])?,
        instructions: fields.text(&["instructions"])?.unwrap_or_default(),
        first_action: fields
            .nested(&["first_action", "firstAction"])?
            .map(|fields| action(&fields).map(Box::new))
            .transpose()?,
        needs: match fields.get(&["needs"]) {
            Some((_, Value::Array(names))) => {
                names.iter().filter_map(Value::as_str).filter_map(need).collect()
            }
            _ => Vec::new(),
        },
    })
}

/// A word that is no need is left out: what is needed is a hint, and never decides.
fn need(name: &str) -> Option<Need> {
    Need::ALL.into_iter().find(|need| need.as_str().eq_ignore_ascii_case(name.trim()))
}

fn asset(fields: &Fields<'_>) -> Result<NewAsset, String> {
    Ok(NewAsset {
        title: fields.needed(&["title"])?,
        description: fields.text(&["description"])?.unwrap_or_default(),
        asset_type: fields.choice(&["asset_type", "assetType", "type"], "document, code, prompt or email")?,
        content: fields.verbatim(&["content"])?.ok_or_else(|| fields.missing("content"))?.to_owned(),
    })
}

fn actions(payload: &Value) -> Result<Vec<ActionDraft>, String> {
    // A native tool's input is always an object, so the list may be one level deeper.
    let (list, path) = match payload.get("actions") {
        Some(list) => (list, "actions"),
        None => (payload, ""),
    };
    let Value::Array(items) = list else { return Ok(vec![action(&Fields::of(list, path)?)?]) };
    if items.is_empty() {
        return Err("it has no action".into());
    }
    items
        .iter()
        .enumerate()
        .map(|(index, item)| action(&Fields::of(item, &format!("actions[{index}]"))?))
        .collect()
}

fn action(fields: &Fields<'_>) -> Result<ActionDraft, String> {
    let description = fields.text(&["description"])?.unwrap_or_default();
    // Some models omit the nesting.
    let task = fields.nested(&["task_config", "taskConfig"])?;
    let task = task.as_ref().unwrap_or(fields);
    let instructions = task.text(&["instructions"])?.unwrap_or_else(|| description.clone());
    if instructions.is_empty() {
        return Err(task.missing("instructions"));
    }
    let title = fields.needed(&["title"])?;
    // If the expected output is missing, the description is used, or else the title.
    let expected_output = task.text(&["expected_output", "expectedOutput"])?;
    let promised = || if description.is_empty() { title.clone() } else { description.clone() };
    let expected_output = expected_output.unwrap_or_else(promised);
    Ok(ActionDraft {
        title,
        description,
        priority: fields.choice(&["priority"], "high, medium or low")?,
        task_config: TaskConfig { instructions, expected_output },
        schedule: fields.get(&["schedule"]).map(|(_, value)| value.clone()),
        conditions: fields.conditions()?,
    })
}

/// An object and its path in the payload.
struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: String,
}

impl<'a> Fields<'a> {
    fn of(value: &'a Value, path: &str) -> Result<Self, String> {
        match value {
            Value::Object(object) => Ok(Self { object, path: path.to_owned() }),
            _ if path.is_empty() => Err("it is not a JSON object".into()),
            _ => Err(format!("`{path}` is not an object")),
        }
    }

    fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The first of `names` that has a value. `null` does not count.
    fn get(&self, names: &[&'static str]) -> Option<(&'static str, &'a Value)> {
        names.iter().find_map(|&name| Some((name, self.object.get(name).filter(|v| !v.is_null())?)))
    }

    /// The text unchanged, including whitespace. `None` if it is blank.
    fn verbatim(&self, names: &[&'static str]) -> Result<Option<&'a str>, String> {
        match self.get(names) {
            None => Ok(None),
            Some((_, Value::String(text))) => Ok(Some(text.as_str()).filter(|text| !text.trim().is_empty())),
            Some((name, _)) => Err(format!("`{}` is not a text", self.path(name))),
        }
    }

    fn text(&self, names: &[&'static str]) -> Result<Option<String>, String> {
        Ok(self.verbatim(names)?.map(|text| text.trim().to_owned()))
    }

    fn needed(&self, names: &[&'static str]) -> Result<String, String> {
        self.text(names)?.ok_or_else(|| self.missing(names[0]))
    }

    fn missing(&self, name: &str) -> String {
        format!("`{}` is missing", self.path(name))
    }

    fn nested(&self, names: &[&'static str]) -> Result<Option<Self>, String> {
        self.get(names).map(|(name, value)| Self::of(value, &self.path(name))).transpose()
    }

    /// The conditions of an action. Their limits are checked when the action is defined.
    fn conditions(&self) -> Result<Vec<Condition>, String> {
        let Some((name, value)) = self.get(&["conditions"]) else { return Ok(Vec::new()) };
        serde_path_to_error::deserialize(value).map_err(|error| {
            let errors = refusal("conditions", &error.path().to_string(), &error.inner().to_string());
            format!("`{}` is not a list of conditions ({errors})", self.path(name))
        })
    }

    fn choice<T: Default + for<'de> Deserialize<'de>>(
        &self,
        names: &[&'static str],
        choices: &str,
    ) -> Result<T, String> {
        let Some(text) = self.text(names)? else { return Ok(T::default()) };
        serde_json::from_value(Value::String(text.to_lowercase()))
            .map_err(|_| format!("`{}` is not one of {choices}", self.path(names[0])))
    }
}
