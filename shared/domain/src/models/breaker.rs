//! Whether a provider that fails should be called: a circuit breaker, without a clock and without storage.
//!
//! A breaker belongs to one candidate: a provider, its address, a model and a credential. It opens when a provider asks for
//! a pause, or when at least half of the last minute's calls have failed. While it is open, other candidates are called.
//! Then one call is a probe: a success closes the breaker, and a failure opens it for longer.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::ModelError;

/// Calls older than this are forgotten.
const WINDOW: SignedDuration = SignedDuration::from_secs(60);

/// With fewer calls in the window, failures do not open the breaker.
const MIN_CALLS: usize = 5;

/// How long the breaker is open: the first time, the second time, and from then on.
const OPEN: [SignedDuration; 3] =
    [SignedDuration::from_secs(5), SignedDuration::from_secs(30), SignedDuration::from_secs(300)];

/// How long a provider may ask for a pause, and the pause after a rate limit that names none.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(300);
const USUAL_PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// A probe that has no result after this time is forgotten, because its process may have died.
const PROBE: SignedDuration = SignedDuration::from_secs(120);

/// What processes share about a breaker. It is stored when it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The breaker is open until then. `None`: it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// How often in a row it has opened.
    #[serde(default)]
    pub times: u32,
}

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    Closed,
    /// This call decides whether the breaker closes.
    Probe,
    Open {
        until: Timestamp,
    },
}

/// What a call says about its candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Healthy,
    Failed,
    /// The provider asks for a pause.
    Limited(Option<Duration>),
    /// Nothing, for example because the request was invalid or was cancelled.
    Unknown,
}

impl Verdict {
    /// The verdict of a call that failed.
    #[must_use]
    pub const fn of(error: &ModelError) -> Self {
        match error {
            ModelError::RateLimited { retry_after } => Self::Limited(*retry_after),
            ModelError::Overloaded { .. }
            | ModelError::Server { .. }
            | ModelError::ProviderTimeout { .. }
            | ModelError::Timeout(_)
            | ModelError::Connection { .. }
            | ModelError::ConnectionLost
            | ModelError::Truncated
            | ModelError::Malformed => Self::Failed,
            // The provider has answered: it works, and the request does not.
            ModelError::ContextTooLarge
            | ModelError::RequestTooLarge
            | ModelError::InvalidRequest { .. }
            | ModelError::Refused
            | ModelError::Authentication
            | ModelError::Permission
            | ModelError::Quota
            | ModelError::NotFound
            | ModelError::Unsendable(_)
            | ModelError::Unexpected { .. }
            | ModelError::AddressRefused { .. }
            | ModelError::NotConfigured => Self::Unknown,
        }
    }
}

/// A circuit breaker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    opened: Opened,
    /// When a call of the last minute ended, and whether it failed. Each process counts its own calls.
    calls: VecDeque<(Timestamp, bool)>,
    probing_since: Option<Timestamp>,
}

impl Breaker {
    /// A breaker as another process has stored it.
    #[must_use]
    pub fn shared(opened: Opened) -> Self {
        Self { opened, ..Self::default() }
    }

    /// Adopts what another process has stored.
    pub fn adopt(&mut self, opened: Opened) {
        if self.opened != opened {
            *self = Self { calls: std::mem::take(&mut self.calls), ..Self::shared(opened) };
        }
    }

    /// What other processes should know.
    #[must_use]
    pub const fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Whether a call may be made now. The answer changes nothing; see [`Breaker::begin`].
    #[must_use]
    pub fn gate(&self, now: Timestamp) -> Gate {
        match (self.opened.until, self.probing_since) {
            (None, _) => Gate::Closed,
            (Some(until), _) if now < until => Gate::Open { until },
            (Some(_), Some(since)) if now < since + PROBE => Gate::Open { until: since + PROBE },
            (Some(_), _) => Gate::Probe,
        }
    }

    /// A call begins. If it is a probe, no other call is one until it ends.
    pub fn begin(&mut self, now: Timestamp) -> Gate {
        let gate = self.gate(now);
        if gate == Gate::Probe {
            self.probing_since = Some(now);
        }
        gate
    }

    /// A call has ended that began at this gate. Returns whether other processes should know.
    pub fn end(&mut self, began: Gate, verdict: Verdict, now: Timestamp) -> bool {
        let before = self.opened.clone();
        while self.calls.front().is_some_and(|(at, _)| *at + WINDOW <= now) {
            self.calls.pop_front();
        }
        let was_probe = began == Gate::Probe;
        if was_probe {
            self.probing_since = None;
        }
        match verdict {
            Verdict::Unknown => {}
            Verdict::Healthy => {
                self.calls.push_back((now, false));
                // A call that began before the breaker opened does not close it.
                if was_probe || self.opened.until.is_none() {
                    self.opened = Opened::default();
                }
            }
            Verdict::Failed => {
                self.calls.push_back((now, true));
                let failed = self.calls.iter().filter(|(_, failed)| *failed).count();
                let is_bad = self.calls.len() >= MIN_CALLS && 2 * failed >= self.calls.len();
                if was_probe || self.opened.until.is_none() && is_bad {
                    let pause = OPEN[(self.opened.times as usize).min(OPEN.len() - 1)];
                    self.open(now + pause);
                }
            }
            Verdict::Limited(pause) => {
                let asked =
                    pause.and_then(|pause| SignedDuration::try_from(pause).ok()).unwrap_or(USUAL_PAUSE);
                let until = now + asked.min(LONGEST_PAUSE);
                if self.opened.until.is_none_or(|open| open < until) {
                    self.open(until);
                }
            }
        }
        self.opened != before
    }

    fn open(&mut self, until: Timestamp) {
        self.opened = Opened { until: Some(until), times: self.opened.times.saturating_add(1) };
        self.calls.clear();
    }
}

/// The order in which candidates are called: those whose breaker is closed or may be probed, and then, if there is none, the
/// one whose breaker closes first. So there is always one to call.
#[must_use]
pub fn order(gates: &[Gate]) -> Vec<usize> {
    let open_until = |at: &usize| match gates[*at] {
        Gate::Open { until } => Some(until),
        Gate::Closed | Gate::Probe => None,
    };
    let usable: Vec<usize> = (0..gates.len()).filter(|at| open_until(at).is_none()).collect();
    if usable.is_empty() {
        return (0..gates.len()).min_by_key(open_until).into_iter().collect();
    }
    usable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn call(breaker: &mut Breaker, second: i64, verdict: Verdict) -> bool {
        let gate = breaker.begin(at(second));
        breaker.end(gate, verdict, at(second))
    }

    fn open(seconds: i64) -> Gate {
        Gate::Open { until: at(seconds) }
    }

    #[test]
    fn it_opens_when_half_of_a_minutes_calls_have_failed() {
        use Verdict::{Failed, Healthy, Unknown};
        let check = |verdicts: &[Verdict], every: i64, expected: bool| {
            let mut breaker = Breaker::default();
            let mut second = 0;
            let opened = verdicts.iter().fold(false, |opened, verdict| {
                second += every;
                opened | call(&mut breaker, second, *verdict)
            });
            assert_eq!(opened, expected, "{verdicts:?}");
            assert_eq!(breaker.gate(at(second)) != Gate::Closed, expected);
        };
        check(&[Failed; 4], 1, false);
        check(&[Failed; 5], 1, true);
        check(&[Healthy, Healthy, Healthy, Failed, Failed], 1, false);
        check(&[Healthy, Healthy, Failed, Failed, Failed], 1, true);
        check(&[Healthy, Healthy, Healthy, Failed, Failed, Failed], 1, true);
        check(&[Unknown; 50], 1, false);
        // Five failures in more than a minute.
        check(&[Failed; 9], 15, false);
    }

    #[test]
    fn it_is_probed_once_and_opens_for_longer() {
        let mut breaker = Breaker::default();
        let mut second = 100;
        (0..5).for_each(|_| {
            call(&mut breaker, second, Verdict::Failed);
        });
        for pause in [5, 30, 300, 300] {
            assert_eq!(breaker.gate(at(second + pause - 1)), open(second + pause));
            second += pause;
            assert_eq!(breaker.gate(at(second)), Gate::Probe);
            let probe = breaker.begin(at(second));
            assert_eq!(breaker.gate(at(second)), open(second + 120), "one probe at a time");
            assert!(!breaker.end(Gate::Closed, Verdict::Healthy, at(second)), "an older call is no probe");
            assert!(breaker.end(probe, Verdict::Failed, at(second)));
        }
        second += 300;
        breaker.begin(at(second));
        assert!(matches!(breaker.gate(at(second + 119)), Gate::Open { .. }));
        assert_eq!(breaker.gate(at(second + 120)), Gate::Probe, "the process of the probe has died");
        assert!(call(&mut breaker, second + 120, Verdict::Healthy));
        assert_eq!((breaker.gate(at(second + 120)), breaker.opened()), (Gate::Closed, &Opened::default()));
    }

    #[test]
    fn a_probe_without_a_verdict_is_made_again() {
        let mut breaker = Breaker::shared(Opened { until: Some(at(10)), times: 1 });
        assert!(!call(&mut breaker, 10, Verdict::Unknown));
        assert_eq!(breaker.gate(at(10)), Gate::Probe);
    }

    #[test]
    fn a_rate_limit_opens_it_for_as_long_as_the_provider_asks() {
        let check = |asked: Option<u64>, pause: i64| {
            let mut breaker = Breaker::default();
            assert!(call(&mut breaker, 100, Verdict::Limited(asked.map(Duration::from_secs))));
            assert_eq!(breaker.gate(at(100)), open(100 + pause), "{asked:?}");
            // Calls that began before neither shorten nor end the pause.
            assert!(!breaker.end(Gate::Closed, Verdict::Healthy, at(101)));
            assert!(!breaker.end(Gate::Closed, Verdict::Limited(Some(Duration::ZERO)), at(101)));
            assert_eq!(breaker.gate(at(101)), open(100 + pause));
        };
        check(None, 5);
        check(Some(20), 20);
        check(Some(3_600), 300);
        check(Some(u64::MAX), 5);
    }

    #[test]
    fn processes_share_what_is_open() {
        let mut breaker = Breaker::default();
        (0..4).for_each(|_| {
            call(&mut breaker, 1, Verdict::Failed);
        });
        breaker.adopt(Opened { until: Some(at(30)), times: 2 });
        assert_eq!(breaker.gate(at(29)), open(30));
        breaker.adopt(Opened::default());
        assert_eq!(breaker.gate(at(29)), Gate::Closed);
        assert!(call(&mut breaker, 2, Verdict::Failed), "it still counts its own calls");
        let stored = serde_json::to_string(breaker.opened()).unwrap();
        assert_eq!(serde_json::from_str::<Opened>(&stored).unwrap(), *breaker.opened());
    }

    #[test]
    fn there_is_always_a_candidate() {
        let check = |gates: &[Gate], expected: &[usize]| assert_eq!(order(gates), expected, "{gates:?}");
        check(&[Gate::Closed, open(9), Gate::Probe], &[0, 2]);
        check(&[open(9), Gate::Closed], &[1]);
        check(&[open(9), open(5)], &[1]);
        check(&[open(9)], &[0]);
        check(&[], &[]);
    }
}
