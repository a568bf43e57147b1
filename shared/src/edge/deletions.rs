//! Keeps everybody out of an account that is being deleted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::ids::{Owner, ReceiptId};
use http::Method;
use jiff::{SignedDuration, Timestamp};

use crate::context::Cx;
use crate::edge::extract::Caller;
use crate::problem::{Error, Result};

/// How long a process trusts what it has read. [`domain::accounts::deletion::SETTLED_AFTER`] includes it.
const TRUSTED: SignedDuration = SignedDuration::from_secs(30);

/// How many owners a process remembers.
const REMEMBERED: usize = 10_000;

/// What a process knows about the deletions of accounts. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Deletions(Arc<Mutex<HashMap<Owner, Known>>>);

#[derive(Clone, Copy, Debug)]
struct Known {
    receipt: Option<ReceiptId>,
    read_at: Timestamp,
}

impl Deletions {
    /// The receipt of the owner's deletion. `None` if the account is not being deleted.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn of(&self, cx: &Cx, owner: &Owner) -> Result<Option<ReceiptId>> {
        let now = cx.clock.now();
        if let Some(known) = self.known().get(owner)
            && now.duration_since(known.read_at).abs() < TRUSTED
        {
            return Ok(known.receipt);
        }
        let receipt = cx.store.deletion(owner).await?.map(|found| found.value.receipt_id);
        self.learn(owner, receipt, now);
        Ok(receipt)
    }

    /// Notes what was read or written.
    pub fn learn(&self, owner: &Owner, receipt: Option<ReceiptId>, now: Timestamp) {
        let mut known = self.known();
        if known.len() >= REMEMBERED {
            known.retain(|_, known| now.duration_since(known.read_at).abs() < TRUSTED);
        }
        if known.len() < REMEMBERED {
            known.insert(owner.clone(), Known { receipt, read_at: now });
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Owner, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The middleware: while an account is being deleted, its owner can only ask for the deletion again.
pub async fn layer(State(cx): State<Cx>, request: Request, next: Next) -> Response {
    let Some(Caller { owner, .. }) = request.extensions().get::<Caller>() else {
        return next.run(request).await;
    };
    let path = request.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str);
    if path == "/health"
        || path.starts_with("/receipts/")
        || (path == "/account" && request.method() == Method::DELETE)
    {
        return next.run(request).await;
    }
    match cx.deletions.of(&cx, owner).await {
        Ok(None) => next.run(request).await,
        Ok(Some(receipt)) => Error::AccountDeleted { receipt }.into_response(),
        Err(error) => error.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_bounded_and_forgets_what_is_old() {
        let deletions = Deletions::default();
        let owner = |n: usize| Owner::new(format!("o{n}")).unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        for n in 0..REMEMBERED + 5 {
            deletions.learn(&owner(n), None, at(0));
        }
        assert_eq!(deletions.known().len(), REMEMBERED);
        deletions.learn(&owner(REMEMBERED + 9), None, at(31));
        assert_eq!(deletions.known().len(), 1);
    }
}
