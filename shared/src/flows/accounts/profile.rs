//! The account of an owner: read and changed.

use domain::accounts::plans::Plan;
use domain::accounts::profile::{Account, AccountPatch, Alert, BillingMode, MemoryVectors, Overage};
use domain::accounts::quota::Month;
use domain::ceilings::{AccountBudget, CeilingOf};
use domain::ids::Owner;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Cx;
use crate::error::Result;
use crate::flows::edit;
use crate::money::ceilings;
use crate::money::plans;
use crate::request::caller::IfMatch;
use crate::store::{Store, Tries, Versioned};

/// An account as its owner sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AccountView {
    /// The owner that the credentials name.
    #[schema(value_type = String)]
    pub owner: Owner,
    /// An IANA name. `UTC` until it is changed.
    #[schema(example = "Europe/Berlin")]
    pub timezone: String,
    /// The plan that applies.
    pub plan: Plan,
    /// Whose keys pay for the models.
    pub billing_mode: BillingMode,
    /// What happens after the last request that the plan includes.
    pub overage: Overage,
    /// The thresholds, lowest first.
    pub alerts: Vec<AlertView>,
    /// The ceilings of the account's days and months.
    pub budget: AccountBudget,
    /// The provider whose model turns the texts of memory into vectors.
    pub memory_vectors: MemoryVectors,
    /// When the account was stopped. Absent if it is not stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
    /// When it was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Send it in `If-Match`. 0 until it is changed.
    pub version: u64,
}

/// A threshold of a month's costs, and whether this month (UTC) has reached it.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct AlertView {
    #[serde(flatten)]
    pub alert: Alert,
    /// When the costs of this month reached it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_at: Option<Timestamp>,
    /// What the month had cost then, in micro-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent_micros: Option<i64>,
}

async fn view(cx: &Cx, owner: &Owner, found: Versioned<Account>) -> Result<AccountView> {
    let plan = plans::plan(cx, &found.value);
    let reached = match found.value.alerts[..] {
        [] => Vec::new(),
        _ => cx.store.reached_alerts(owner, Month::at(cx.clock.now())).await?,
    };
    let alert_view = |alert: Alert| {
        let reached = reached.iter().find(|reached| reached.month_micros == alert.month_micros);
        let (reached_at, spent_micros) =
            (reached.map(|reached| reached.reached_at), reached.map(|reached| reached.spent_micros));
        AlertView { alert, reached_at, spent_micros }
    };
    let Versioned {
        value:
            Account { timezone, billing_mode, overage, alerts, budget, memory_vectors, updated_at, stop, .. },
        version,
    } = found;
    let alerts = alerts.into_iter().map(alert_view).collect();
    Ok(AccountView {
        owner: owner.clone(),
        timezone,
        plan,
        billing_mode,
        overage,
        alerts,
        budget,
        memory_vectors,
        stopped_at: stop.map(|stop| stop.at),
        updated_at,
        version,
    })
}

/// # Errors
/// If the table does not answer.
pub async fn read(cx: &Cx, owner: &Owner) -> Result<AccountView> {
    let found = cx.store.account(owner).await?;
    view(cx, owner, found).await
}

/// # Errors
/// 400 with every invalid field and its limit; 409 if `If-Match` is not the current version.
pub async fn change(
    cx: &Cx,
    owner: &Owner,
    if_match: Option<IfMatch>,
    patch: AccountPatch,
) -> Result<AccountView> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let found = cx.store.account(owner).await?;
        edit::check(if_match, found.version, &view(cx, owner, found.clone()).await?)?;
        let version = found.version;
        let account = found.value.patched(patch.clone(), &cx.config.plans.allowed, cx.clock.now())?;
        // Other fields can be changed if the deployment's maximum has become lower.
        if let Some(budget) = patch.budget {
            ceilings::check_month(cx, CeilingOf::Month, budget.per_month_micros)?;
        }
        if patch.memory_vectors.is_some() {
            // An executor makes the vectors, or removes them.
            let look = Store::memory_wakes_up(owner, cx.clock.now())?;
            let _ = cx.store.write_all(vec![look]).await?;
        }
        if cx.store.replace_account(owner, &account, version).await?.done() {
            return view(cx, owner, Versioned { value: account, version: version + 1 }).await;
        }
    }
}
