//! What owners may spend, and their plans.

use domain::accounts::plans::Plan;

use super::{ConfigError, Env, listed};

/// Budget limits in micro-dollars.
#[derive(Clone, Copy, Debug)]
pub struct BudgetConfig {
    pub run_micros: i64,
    pub day_micros: i64,
    /// The most to which an owner may raise the ceiling of a day.
    pub day_max_micros: i64,
    /// The most to which an owner may set or raise the ceiling of a month. `None`: see [`Self::month_max`].
    pub month_max_micros: Option<i64>,
    /// Of one pass of a model over a theme.
    pub enrichment_micros: i64,
}

impl Default for BudgetConfig {
    fn default() -> Self {
        Self {
            run_micros: 1_000_000,
            day_micros: 10_000_000,
            day_max_micros: 100_000_000,
            month_max_micros: None,
            enrichment_micros: 2_000_000,
        }
    }
}

impl BudgetConfig {
    /// The most to which an owner may set or raise the ceiling of a month: what 31 days may cost, unless a variable sets it.
    #[must_use]
    pub fn month_max(&self) -> i64 {
        self.month_max_micros.unwrap_or_else(|| self.day_max_micros.saturating_mul(31))
    }

    /// # Errors
    /// If a budget limit is not a positive whole number.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let set = |variable: &'static str| match env(variable) {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(micros) if micros > 0 => Ok(Some(micros)),
                _ => Err(ConfigError {
                    variable,
                    problem: format!("must be a positive number of micro-dollars, is `{text}`"),
                }),
            },
        };
        let micros = |variable, default: i64| Ok(set(variable)?.unwrap_or(default));
        let default = Self::default();
        // The template sets it to an empty text if the operator names no maximum.
        let month_max = "LAMPLIGHTER_MONTH_BUDGET_MAX_MICROS";
        let is_set = env(month_max).is_some_and(|text| !text.trim().is_empty());
        let month_max_micros = if is_set { set(month_max)? } else { None };
        Ok(Self {
            run_micros: micros("LAMPLIGHTER_RUN_BUDGET_MICROS", default.run_micros)?,
            day_micros: micros("LAMPLIGHTER_DAY_BUDGET_MICROS", default.day_micros)?,
            day_max_micros: micros("LAMPLIGHTER_DAY_BUDGET_MAX_MICROS", default.day_max_micros)?,
            month_max_micros,
            enrichment_micros: micros("LAMPLIGHTER_ENRICHMENT_BUDGET_MICROS", default.enrichment_micros)?,
        })
    }
}

/// Which plans the owners have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlansConfig {
    /// The plan of owners who have not chosen one.
    pub default: Plan,
    /// The plans that an owner may choose, with the default one.
    pub allowed: Vec<Plan>,
}

impl Default for PlansConfig {
    fn default() -> Self {
        Self { default: Plan::Unlimited, allowed: vec![Plan::Unlimited] }
    }
}

impl PlansConfig {
    /// # Errors
    /// If a variable names a plan that does not exist.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let plan = |variable: &'static str, name: &str| {
            Plan::named(name).ok_or_else(|| {
                let names = Plan::ALL.map(Plan::name).join(", ");
                ConfigError { variable, problem: format!("must name plans out of {names}, names `{name}`") }
            })
        };
        let texts = |variable: &'static str| {
            listed(env, variable).iter().map(|name| plan(variable, name)).collect::<Result<Vec<_>, _>>()
        };
        let default = match texts("LAMPLIGHTER_PLAN")?[..] {
            [] => Plan::Unlimited,
            [plan] => plan,
            _ => {
                let problem = "must name one plan".to_owned();
                return Err(ConfigError { variable: "LAMPLIGHTER_PLAN", problem });
            }
        };
        let mut allowed = texts("LAMPLIGHTER_PLANS")?;
        allowed.push(default);
        allowed.sort_unstable();
        allowed.dedup();
        Ok(Self { default, allowed })
    }
}
