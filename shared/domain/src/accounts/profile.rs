//! The record of an account: time zone, plan, and how its costs are paid and watched.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::plans::Plan;
use crate::ceilings::AccountBudget;
use crate::models::Vendor;
use crate::schedule::timezone_named;
use crate::validate::FieldErrors;

/// The most alerts of one account.
pub const MAX_ALERTS: usize = 10;

/// The highest threshold of an alert, in micro-dollars: a million dollars.
pub const MAX_ALERT_MICROS: i64 = 1_000_000_000_000;

/// Whose keys pay for the models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BillingMode {
    /// The keys of the deployment. The plan limits the number of requests.
    #[default]
    Platform,
    /// The owner's own keys. The plan does not limit the number of requests.
    Byok,
}

/// What happens after the last request that the plan includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overage {
    /// Further requests are refused.
    #[default]
    Off,
    /// Further requests pass, and their cost counts twice.
    On,
}

/// The provider whose model turns the texts of memory into vectors. A search then finds what is said in other words, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryVectors {
    /// No text is sent anywhere for it, and the search uses words alone.
    #[default]
    Off,
    Bedrock,
    Google,
    OpenAi,
}

impl MemoryVectors {
    /// Whether no text is sent.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        matches!(self, Self::Off)
    }

    /// `None` if no text is sent.
    #[must_use]
    pub const fn vendor(self) -> Option<Vendor> {
        match self {
            Self::Off => None,
            Self::Bedrock => Some(Vendor::Bedrock),
            Self::Google => Some(Vendor::Google),
            Self::OpenAi => Some(Vendor::OpenAi),
        }
    }
}

/// A threshold of the month's costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// The costs of a month (UTC) in micro-dollars, 1 to 1,000,000,000,000.
    #[schema(minimum = 1, maximum = 1_000_000_000_000_i64)]
    pub month_micros: i64,
}

/// The account is stopped: no run begins, and nothing calls a model or a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// When it was stopped.
    pub at: Timestamp,
    /// How often a person has stopped it since it last ran. So a start notices that somebody stops the account meanwhile.
    pub times: u32,
}

/// The stored record. An owner without a record has the defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// An IANA name.
    pub timezone: String,
    /// The plan that the owner chose. `None`: the deployment's default.
    pub plan: Option<Plan>,
    pub billing_mode: BillingMode,
    pub overage: Overage,
    /// Lowest first, each threshold once.
    pub alerts: Vec<Alert>,
    pub budget: AccountBudget,
    #[serde(skip_serializing_if = "MemoryVectors::is_off")]
    pub memory_vectors: MemoryVectors,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// Whether the account is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            timezone: "UTC".to_owned(),
            plan: None,
            billing_mode: BillingMode::default(),
            overage: Overage::default(),
            alerts: Vec::new(),
            budget: AccountBudget::default(),
            memory_vectors: MemoryVectors::default(),
            updated_at: None,
            stop: None,
        }
    }
}

/// The input that changes an account. Omitted fields keep their values.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({"timezone": "Europe/Berlin", "alerts": [{"month_micros": 20_000_000}]}))]
pub struct AccountPatch {
    /// An IANA time zone, such as `Europe/Berlin`.
    pub timezone: Option<String>,
    /// One of `plans` in `GET /limits`.
    pub plan: Option<Plan>,
    /// Whose keys pay for the models.
    pub billing_mode: Option<BillingMode>,
    /// What happens after the last request that the plan includes.
    pub overage: Option<Overage>,
    /// Replaces all thresholds: up to 10.
    #[schema(max_items = 10)]
    pub alerts: Option<Vec<Alert>>,
    /// Replaces both ceilings. `{}` removes them.
    pub budget: Option<AccountBudget>,
    /// The provider whose model turns the texts of memory into vectors, once a week: `off`, `bedrock`, `google` or `openai`. It gets the
    /// texts of your conversations, and each question that you search for.
    pub memory_vectors: Option<MemoryVectors>,
}

/// Checks the number of alerts and each threshold.
fn check_alerts(errors: &mut FieldErrors, alerts: &[Alert]) {
    if alerts.len() > MAX_ALERTS {
        errors.add("alerts", format!("must have at most {MAX_ALERTS}, has {}", alerts.len()));
    }
    for (i, Alert { month_micros }) in alerts.iter().enumerate() {
        if !(1..=MAX_ALERT_MICROS).contains(month_micros) {
            let field = format!("alerts[{i}].month_micros");
            errors.add(field, format!("must be 1 to {MAX_ALERT_MICROS}, is {month_micros}"));
        }
    }
}

impl Account {
    /// Checks the limits of every account, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if let Err(message) = timezone_named(&self.timezone) {
            errors.add("timezone", message);
        }
        check_alerts(&mut errors, &self.alerts);
        self.budget.validate(&mut errors);
        errors.into_result(())
    }

    /// The account after a person has stopped it at `now`. If it is stopped already, the time stays.
    #[must_use]
    pub fn stopped(mut self, now: Timestamp) -> Self {
        let (at, times) = self.stop.map_or((now, 0), |stop| (stop.at, stop.times));
        self.stop = Some(Stop { at, times: times.saturating_add(1) });
        self
    }

    /// The owner's plan. `default` applies if the owner chose none, or one that is no longer among `allowed`.
    #[must_use]
    pub fn plan(&self, default: Plan, allowed: &[Plan]) -> Plan {
        self.plan.filter(|plan| allowed.contains(plan)).unwrap_or(default)
    }

    /// The account after a change. `allowed` are the plans that may be chosen.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn patched(
        mut self,
        patch: AccountPatch,
        allowed: &[Plan],
        now: Timestamp,
    ) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        if let Some(name) = patch.timezone {
            match timezone_named(&name) {
                Ok(name) => self.timezone = name,
                Err(message) => errors.add("timezone", message),
            }
        }
        if let Some(plan) = patch.plan {
            if !allowed.contains(&plan) {
                let names: Vec<&str> = allowed.iter().map(|plan| plan.name()).collect();
                errors.add("plan", format!("must be one of: {}", names.join(", ")));
            }
            self.plan = Some(plan);
        }
        if let Some(mut alerts) = patch.alerts {
            check_alerts(&mut errors, &alerts);
            alerts.sort_unstable();
            alerts.dedup();
            self.alerts = alerts;
        }
        if let Some(budget) = patch.budget {
            budget.validate(&mut errors);
            self.budget = budget;
        }
        self.billing_mode = patch.billing_mode.unwrap_or(self.billing_mode);
        self.overage = patch.overage.unwrap_or(self.overage);
        self.memory_vectors = patch.memory_vectors.unwrap_or(self.memory_vectors);
        self.updated_at = Some(now);
        errors.into_result(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn patched(patch: Value) -> Result<Account, FieldErrors> {
        let patch: AccountPatch = serde_json::from_value(patch).unwrap();
        Account::default().patched(patch, &[Plan::Starter, Plan::Pro], Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let changed = patched(json!({"timezone": "europe/berlin", "plan": "pro"})).unwrap();
        assert_eq!(changed.timezone, "Europe/Berlin");
        let alerts = json!({"alerts": [{"month_micros": 9}, {"month_micros": 5}, {"month_micros": 9}], "overage": "on"});
        let patch = serde_json::from_value(alerts).unwrap();
        let changed = changed.patched(patch, &[], Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((changed.timezone.as_str(), changed.plan), ("Europe/Berlin", Some(Plan::Pro)));
        assert_eq!(changed.alerts, [Alert { month_micros: 5 }, Alert { month_micros: 9 }]);
        assert_eq!((changed.overage, changed.billing_mode), (Overage::On, BillingMode::Platform));
    }

    #[test]
    fn every_invalid_field_is_named_with_its_limit() {
        let many: Vec<Value> = (0..11).map(|n| json!({"month_micros": n})).collect();
        let errors =
            patched(json!({"timezone": "Mars/Olympus", "plan": "agency", "alerts": many})).unwrap_err();
        let told: Vec<(&str, &str)> =
            errors.0.iter().map(|error| (error.field.as_str(), error.message.as_str())).collect();
        assert_eq!(told[0].0, "timezone");
        assert_eq!(told[1], ("plan", "must be one of: starter, pro"));
        assert_eq!(told[2], ("alerts", "must have at most 10, has 11"));
        assert_eq!(told[3], ("alerts[0].month_micros", "must be 1 to 1000000000000, is 0"));
        assert_eq!(told.len(), 4);
    }

    #[test]
    fn a_plan_that_is_no_longer_allowed_gives_way_to_the_default() {
        let account = patched(json!({"plan": "pro"})).unwrap();
        assert_eq!(account.plan(Plan::Starter, &[Plan::Starter, Plan::Pro]), Plan::Pro);
        assert_eq!(account.plan(Plan::Starter, &[Plan::Starter]), Plan::Starter);
        assert_eq!(Account::default().plan(Plan::Team, &[Plan::Team]), Plan::Team);
    }

    #[test]
    fn a_record_of_an_earlier_version_has_defaults() {
        assert_eq!(serde_json::from_value::<Account>(json!({})).unwrap(), Account::default());
    }
}
