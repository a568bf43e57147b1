//! How often a run may be tried. This applies to the runs of actions and to turns of conversations.
//!
//! Attempts are counted since the last stored step. So a run that makes progress each time may be interrupted many
//! times. The total number of attempts also has a limit, so that a run which kills its executor after each step ends,
//! too. A hand-over is not an attempt.

/// How often the next step of a run is tried.
pub const PER_STEP: u32 = 3;

/// How often a run is tried in total.
pub const IN_TOTAL: u32 = 20;

/// The limit that is reached after these attempts, if one is.
#[must_use]
pub const fn used_up(since_last_step: u32, in_total: u32) -> Option<u32> {
    if since_last_step >= PER_STEP {
        Some(PER_STEP)
    } else if in_total >= IN_TOTAL {
        Some(IN_TOTAL)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_count_since_the_last_step_and_in_total() {
        for (since_last_step, in_total, expected) in [
            (0, 0, None),
            (2, 2, None),
            (3, 3, Some(PER_STEP)),
            (1, 3, None),
            (2, 19, None),
            (3, 19, Some(PER_STEP)),
            (0, 20, Some(IN_TOTAL)),
            (3, 20, Some(PER_STEP)),
            (0, u32::MAX, Some(IN_TOTAL)),
        ] {
            assert_eq!(used_up(since_last_step, in_total), expected, "{since_last_step} of {in_total}");
        }
    }
}
