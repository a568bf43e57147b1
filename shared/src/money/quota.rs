//! The requests of a month that a plan includes.
//!
//! A request is a turn (also of the setup conversation and of OpenAI clients), or a run of an action, whether a person or
//! its schedule starts it. It is counted in the transaction that begins the run, so that a crash neither loses nor
//! doubles it, and a repeated call with an `Idempotency-Key` is not counted again. A run that continues (after a crash, a
//! retry, or an answer of a person) is not counted again either. The enrichment of a theme has its own budget instead.

use domain::accounts::plans::Plan;
use domain::accounts::profile::{Account, BillingMode, Overage};
use domain::accounts::quota::{Charge, Month};
use domain::ids::Owner;

use crate::context::Cx;
use crate::error::{Error, QuotaExceeded, Result};
use crate::money::plans;
use crate::store::Store;
use crate::store::table::Write;

/// The requests that an owner may make in this month.
#[derive(Clone, Copy, Debug)]
pub struct Quota(Option<Limited>);

#[derive(Clone, Copy, Debug)]
struct Limited {
    plan: Plan,
    requests_per_month: u32,
    month: Month,
    overage: Overage,
}

impl Quota {
    /// No limit.
    pub const NONE: Self = Self(None);

    /// The quota of an owner. It reads nothing if the deployment has no plan with a limit.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn of(cx: &Cx, owner: &Owner) -> Result<Self> {
        if cx.config.plans.allowed.iter().all(|plan| plan.terms().requests_per_month.is_none()) {
            return Ok(Self::NONE);
        }
        let account = cx.store.account(owner).await?.value;
        let plan = plans::plan(cx, &account);
        let Some(requests_per_month) = plan.terms().requests_per_month else { return Ok(Self::NONE) };
        if pays_for_models(cx, owner, &account).await? {
            return Ok(Self::NONE);
        }
        let month = Month::at(cx.clock.now());
        Ok(Self(Some(Limited { plan, requests_per_month, month, overage: account.overage })))
    }

    /// How many requests the plan includes. `None` if they are not counted.
    #[must_use]
    pub fn requests_per_month(&self) -> Option<u32> {
        self.0.map(|limited| limited.requests_per_month)
    }

    /// The write that counts a request. It is refused if the request is not included in the plan.
    #[must_use]
    pub fn write(&self, owner: &Owner, charge: Charge) -> Option<Write> {
        let Limited { requests_per_month, month, .. } = self.0?;
        match charge {
            Charge::Included => Some(Store::request_write(owner, month, requests_per_month)),
            Charge::Overage => Some(Store::overage_write(owner, month)),
            Charge::Refused => None,
        }
    }

    /// How a request counts that the plan does not include.
    ///
    /// # Errors
    /// If the owner has not allowed such requests.
    pub fn beyond(&self) -> std::result::Result<Charge, QuotaExceeded> {
        match (self.0, self.exceeded()) {
            (Some(Limited { overage: Overage::Off, .. }), Some(exceeded)) => Err(exceeded),
            _ => Ok(Charge::Overage),
        }
    }

    /// What a refused request is told. `None` if there is no limit.
    #[must_use]
    pub fn exceeded(&self) -> Option<QuotaExceeded> {
        let Limited { plan, requests_per_month, month, .. } = self.0?;
        Some(QuotaExceeded::Requests { plan, requests_per_month, resets_at: month.end() })
    }

    /// Looks whether a request would be refused now.
    ///
    /// # Errors
    /// 402 if it would.
    pub async fn check(&self, cx: &Cx, owner: &Owner) -> Result<()> {
        let Some(Limited { requests_per_month, month, .. }) = self.0 else { return Ok(()) };
        if cx.store.month_requests(owner, month).await?.used >= requests_per_month {
            self.beyond().map_err(Error::QuotaExceeded)?;
        }
        Ok(())
    }
}

/// Whether the owner's own keys pay for the models: the owner has chosen so, and has stored a key.
async fn pays_for_models(cx: &Cx, owner: &Owner, account: &Account) -> Result<bool> {
    Ok(account.billing_mode == BillingMode::Byok && !cx.store.provider_keys(owner).await?.is_empty())
}
