//! A lease: who may work on something, and until when.
//!
//! The holder renews the lease while it works. If the holder dies, the lease ends by itself, and another worker may take it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// A lease and its holder: a fence that grows with each lease, or the id of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease<H> {
    #[serde(alias = "by", alias = "fence")]
    pub holder: H,
    /// The lease is over from this time on.
    pub until: Timestamp,
}

impl<H: Copy + PartialEq> Lease<H> {
    /// A lease that begins now.
    #[must_use]
    pub fn take(holder: H, now: Timestamp, length: SignedDuration) -> Self {
        Self { holder, until: now.saturating_add(length).unwrap_or(Timestamp::MAX) }
    }

    /// The lease of the same holder, for this long from now on. It never ends earlier than before.
    #[must_use]
    pub fn renew(self, now: Timestamp, length: SignedDuration) -> Self {
        Self { until: Self::take(self.holder, now, length).until.max(self.until), ..self }
    }

    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now
    }

    #[must_use]
    pub fn is_held_by(&self, holder: H) -> bool {
        self.holder == holder
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_795_251_600 + seconds).unwrap()
    }

    const MINUTE: SignedDuration = SignedDuration::from_mins(1);

    #[test]
    fn a_lease_is_over_at_its_end() {
        let lease = Lease::take(7_u64, at(0), MINUTE);
        for (seconds, expected) in [(-5, false), (0, false), (59, false), (60, true), (61, true)] {
            assert_eq!(lease.is_over(at(seconds)), expected, "{seconds}");
        }
        assert!(lease.is_held_by(7) && !lease.is_held_by(8));
        assert_eq!(Lease::take(7_u64, Timestamp::MAX, MINUTE).until, Timestamp::MAX);
    }

    #[test]
    fn a_renewal_keeps_the_holder_and_never_shortens() {
        let lease = Lease::take(7_u64, at(0), MINUTE);
        for (now, expected) in [(30, 90), (0, 60), (-30, 60), (90, 150)] {
            assert_eq!(lease.renew(at(now), MINUTE), Lease { holder: 7, until: at(expected) }, "{now}");
        }
    }

    /// Leases that earlier versions stored under other names are still read.
    #[test]
    fn earlier_forms_are_read() {
        let until = at(60);
        for earlier in [
            json!({"holder": 7, "until": until}),
            json!({"by": 7, "until": until}),
            json!({"fence": 7, "until": until}),
        ] {
            assert_eq!(serde_json::from_value::<Lease<u64>>(earlier).unwrap(), Lease { holder: 7, until });
        }
    }
}
