//! Which plan applies.

use domain::accounts::plans::Plan;
use domain::accounts::profile::Account;
use domain::ids::Owner;

use crate::context::Cx;
use crate::error::Result;

/// The plan that applies to an account in this deployment.
#[must_use]
pub fn plan(cx: &Cx, account: &Account) -> Plan {
    let plans = &cx.config.plans;
    account.plan(plans.default, &plans.allowed)
}

/// The plan that applies to an owner. It reads nothing if there is only one plan.
///
/// # Errors
/// If the table does not answer.
pub async fn plan_of(cx: &Cx, owner: &Owner) -> Result<Plan> {
    match cx.config.plans.allowed[..] {
        [only] => Ok(only),
        _ => Ok(plan(cx, &cx.store.account(owner).await?.value)),
    }
}
