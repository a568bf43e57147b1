//! Whether a person was told of a run.

use domain::actions::{Occurrence, Telling};
use domain::ids::{DeliveryId, Owner};
use domain::notices::deliveries::{DeliveryRecord, Said};
use domain::notices::hours::digest_time;
use domain::notices::told::Told;
use jiff::SignedDuration;

use crate::context::Data;
use crate::error::Result;
use crate::flows::schedules;

/// How many of the deliveries around the time of a digest are looked at.
const LOOKED_AT: usize = 100;

/// How long after its time a digest is looked for: it waits for the end of quiet hours, and for a platform that was switched off.
const LATER: SignedDuration = SignedDuration::from_hours(48);

/// Whether a person was told of this run, and how. None if nobody is told of a run in this state, or if an earlier version has told of it.
///
/// # Errors
/// If the table does not answer.
pub async fn of_run(data: &Data, owner: &Owner, occurrence: &Occurrence) -> Result<Option<Told>> {
    if occurrence.untold().is_some() {
        return Ok(Some(Told::new(None, Vec::new())));
    }
    let Some(telling) = occurrence.telling else { return Ok(None) };
    let deliveries = match telling {
        Telling::NoChannel | Telling::Off => Vec::new(),
        Telling::Digest { date } => {
            let preferences = data.store.preferences(owner).await?.value;
            let zone = schedules::zone_of(data, owner, None).await?;
            let until = digest_time(date, &preferences, &zone).saturating_add(LATER);
            let after = until.ok().map(|at| DeliveryId::last_at(at).to_string());
            let found = data.store.deliveries(owner, after.as_deref(), LOOKED_AT).await?;
            let tells = |delivery: &DeliveryRecord| match &delivery.said {
                Said::Digest { date: of, items, .. } => {
                    *of == date && items.iter().any(|item| item.key.action_id == Some(occurrence.action_id))
                }
                Said::Notice { .. } | Said::Code => false,
            };
            found.items.into_iter().map(|(_, delivery)| delivery.value).filter(tells).collect()
        }
        Telling::Later { .. } | Telling::Sent => {
            data.store.deliveries_of_run(owner, occurrence.run_id).await?
        }
    };
    Ok(Some(Told::new(Some(telling), deliveries.into_iter().map(Into::into).collect())))
}
