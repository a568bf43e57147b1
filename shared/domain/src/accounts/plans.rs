//! Plans: what an owner may use in a month.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A plan. The operator of a deployment decides which plans its owners may choose.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// No limits, for people who host the platform themselves.
    #[default]
    Unlimited,
    Starter,
    Pro,
    Team,
    Agency,
}

/// What a plan includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PlanTerms {
    /// The price per month in US cents. Absent if the plan has no price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub month_cents: Option<u32>,
    /// The price per year in US cents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub year_cents: Option<u32>,
    /// Requests that call models, per month. Absent if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_month: Option<u32>,
    /// How many projects may exist besides the default project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projects: Option<u32>,
}

impl Plan {
    pub const ALL: [Self; 5] = [Self::Unlimited, Self::Starter, Self::Pro, Self::Team, Self::Agency];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unlimited => "unlimited",
            Self::Starter => "starter",
            Self::Pro => "pro",
            Self::Team => "team",
            Self::Agency => "agency",
        }
    }

    /// The plan with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plan| plan.name() == name)
    }

    #[must_use]
    pub const fn terms(self) -> PlanTerms {
        match self {
            Self::Unlimited => {
                PlanTerms { month_cents: None, year_cents: None, requests_per_month: None, projects: None }
            }
            Self::Starter => PlanTerms {
                month_cents: Some(0),
                year_cents: Some(0),
                requests_per_month: Some(50),
                projects: Some(1),
            },
            Self::Pro => PlanTerms {
                month_cents: Some(4_900),
                year_cents: Some(47_040),
                requests_per_month: Some(500),
                projects: None,
            },
            Self::Team => PlanTerms {
                month_cents: Some(14_900),
                year_cents: Some(143_040),
                requests_per_month: Some(2_000),
                projects: None,
            },
            Self::Agency => PlanTerms {
                month_cents: Some(34_900),
                year_cents: Some(335_040),
                requests_per_month: Some(6_000),
                projects: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_has_the_name_that_is_on_the_wire() {
        for plan in Plan::ALL {
            assert_eq!(serde_json::to_value(plan).unwrap(), plan.name());
            assert_eq!(Plan::named(plan.name()), Some(plan));
        }
        assert_eq!(Plan::named("Starter"), None);
    }

    #[test]
    fn a_dearer_plan_includes_at_least_as_much() {
        let most = |limit: Option<u32>| limit.unwrap_or(u32::MAX);
        for pair in [Plan::Starter, Plan::Pro, Plan::Team, Plan::Agency, Plan::Unlimited].windows(2) {
            let (less, more) = (pair[0].terms(), pair[1].terms());
            assert!(most(less.requests_per_month) < most(more.requests_per_month));
            assert!(most(less.projects) <= most(more.projects));
        }
    }
}
