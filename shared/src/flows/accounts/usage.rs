//! What an owner's models have used in a month.

use std::collections::BTreeMap;

use domain::ids::{ActionId, AgentId, Owner};
use domain::models::{ModelId, UsedModel, Vendor};
use domain::validate::FieldErrors;
use jiff::civil::Date;
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Cx;
use crate::error::Result;
use crate::store::accounts::usage::{UsageEntry, Used};

/// The usage of a month. Days are in the time zone that the account had at the time of the call. A call counts on the day on which its
/// cost was reserved.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MonthUsage {
    /// The month.
    #[schema(example = "2026-11")]
    pub month: String,
    /// The sums of the month.
    pub total: Used,
    /// The days with calls, oldest first.
    pub by_day: Vec<DayUsage>,
    /// The agents with calls, the most expensive first.
    pub by_agent: Vec<AgentUsage>,
    /// The actions whose runs made calls, the most expensive first.
    pub by_action: Vec<ActionUsage>,
    /// The models of each provider, the most expensive first.
    pub by_model: Vec<ModelUsage>,
}

/// The usage of a day.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DayUsage {
    /// The day, in the time zone of the account.
    #[schema(value_type = String, format = Date, example = "2026-11-21")]
    pub date: Date,
    #[serde(flatten)]
    pub used: Used,
}

/// The usage of an agent.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AgentUsage {
    /// The agent. It is absent for calls that no agent makes: setting an agent up, notes about a theme, and memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(flatten)]
    pub used: Used,
    /// The part of the input tokens that was read from a cache, from 0 to 1. It is absent if there was no input.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 0.82)]
    pub cache_hit_ratio: Option<f64>,
}

/// The usage of an action's runs.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionUsage {
    /// The action. It is absent for calls that no run of an action makes, such as conversations about actions, and for calls that an
    /// earlier version of the platform counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
    #[serde(flatten)]
    pub used: Used,
}

/// The usage of a provider's model.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelUsage {
    /// The provider of the model, or the name of a server. It is absent for calls that an earlier version of the platform counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "anthropic")]
    pub provider: Option<Vendor>,
    /// The id of the model at this provider.
    #[schema(value_type = String, example = "claude-opus-4-7")]
    pub model: ModelId,
    #[serde(flatten)]
    pub used: Used,
}

/// The first day of a month in the form `2026-11`.
///
/// # Errors
/// 400 if it has another form.
pub fn month(text: &str) -> Result<Date> {
    let digits = text.len() == 7
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let first = digits.then(|| format!("{text}-01").parse().ok()).flatten();
    Ok(first.ok_or_else(|| FieldErrors::one("month", "must be a month such as 2026-11"))?)
}

/// # Errors
/// If the table does not answer.
pub async fn of_month(cx: &Cx, owner: &Owner, month: Date) -> Result<MonthUsage> {
    let entries = cx.store.usage_of_month(owner, month).await?;
    Ok(summed(month, entries))
}

fn summed(month: Date, entries: Vec<UsageEntry>) -> MonthUsage {
    let mut total = Used::default();
    let (mut days, mut agents) = (BTreeMap::new(), BTreeMap::new());
    let (mut actions, mut models) = (BTreeMap::new(), BTreeMap::new());
    for UsageEntry { date, agent, action, model, used } in entries {
        total += used;
        *days.entry(date).or_insert_with(Used::default) += used;
        *agents.entry(agent).or_insert_with(Used::default) += used;
        *actions.entry(action).or_insert_with(Used::default) += used;
        *models.entry(model).or_insert_with(Used::default) += used;
    }
    let by_day = days.into_iter().map(|(date, used)| DayUsage { date, used }).collect();
    let mut by_agent: Vec<AgentUsage> = agents
        .into_iter()
        .map(|(agent_id, used)| AgentUsage { agent_id, used, cache_hit_ratio: cache_hit_ratio(&used) })
        .collect();
    by_agent.sort_by_key(|agent| std::cmp::Reverse(agent.used.cost_micros));
    let mut by_action: Vec<ActionUsage> =
        actions.into_iter().map(|(action_id, used)| ActionUsage { action_id, used }).collect();
    by_action.sort_by_key(|action| std::cmp::Reverse(action.used.cost_micros));
    let mut by_model: Vec<ModelUsage> = models
        .into_iter()
        .map(|(UsedModel { vendor, model }, used)| ModelUsage { provider: vendor, model, used })
        .collect();
    by_model.sort_by_key(|model| std::cmp::Reverse(model.used.cost_micros));
    MonthUsage { month: month.strftime("%Y-%m").to_string(), total, by_day, by_agent, by_action, by_model }
}

fn cache_hit_ratio(used: &Used) -> Option<f64> {
    let input = used.input_tokens + used.cache_read_tokens + used.cache_write_tokens;
    (input > 0).then(|| used.cache_read_tokens as f64 / input as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_four_digits_a_hyphen_and_two_digits() {
        assert_eq!(month("2026-11").unwrap().to_string(), "2026-11-01");
        for wrong in
            ["", "2026", "2026-13", "2026-00", "2026-1", "26-11-1", "2026-11-01", "+026-11", "2026/11"]
        {
            assert_eq!(month(wrong).unwrap_err().code(), "invalid_input", "{wrong}");
        }
    }

    #[test]
    fn the_parts_add_up_to_the_total() {
        let agent = |n| Some(AgentId::from_uuid(uuid::Uuid::from_u128(n)));
        let action = |n| Some(ActionId::from_uuid(uuid::Uuid::from_u128(n)));
        let entry = |date: &str, (agent, action), (vendor, model): (&str, &str), n: u64| UsageEntry {
            date: date.parse().unwrap(),
            agent,
            action,
            model: UsedModel { vendor: vendor.parse().ok(), model: ModelId::new(model) },
            used: Used {
                calls: 1,
                input_tokens: n,
                cache_read_tokens: 3 * n,
                cost_micros: n as i64,
                ..Used::default()
            },
        };
        let entries = vec![
            entry("2026-11-21", (agent(1), None), ("xai", "small"), 10),
            entry("2026-11-21", (agent(2), action(3)), ("openai", "large"), 100),
            entry("2026-11-22", (agent(1), action(4)), ("gpu", "large"), 1_000),
            entry("2026-11-22", (agent(2), action(3)), ("openai", "large"), 200),
            // As an earlier version counted it.
            entry("2026-11-22", (None, None), ("", "large"), 0),
        ];
        let month = summed("2026-11-01".parse().unwrap(), entries);
        assert_eq!(
            month.total,
            Used {
                calls: 5,
                input_tokens: 1_310,
                cache_read_tokens: 3_930,
                cost_micros: 1_310,
                ..Used::default()
            }
        );
        let days: Vec<_> = month.by_day.iter().map(|day| (day.date.day(), day.used.cost_micros)).collect();
        assert_eq!(days, [(21, 110), (22, 1_200)]);
        let agents: Vec<_> =
            month.by_agent.iter().map(|a| (a.agent_id, a.used.cost_micros, a.cache_hit_ratio)).collect();
        assert_eq!(agents, [(agent(1), 1_010, Some(0.75)), (agent(2), 300, Some(0.75)), (None, 0, None)]);
        let actions: Vec<_> =
            month.by_action.iter().map(|action| (action.action_id, action.used.cost_micros)).collect();
        assert_eq!(actions, [(action(4), 1_000), (action(3), 300), (None, 10)]);
        let models: Vec<_> = month
            .by_model
            .iter()
            .map(|row| (row.provider.as_ref().map_or("", Vendor::as_str), row.model.as_str(), row.used.calls))
            .collect();
        assert_eq!(
            models,
            [("gpu", "large", 1), ("openai", "large", 2), ("xai", "small", 1), ("", "large", 1)]
        );
    }
}
