//! The usage of a call, even if its provider did not report it.
//!
//! A provider reports the usage at the end of a call. A call that is cancelled, cut off or timed out has no such report, but
//! still costs money. Its usage is estimated from what was sent and received.

use super::error::ModelError;
use super::estimate;
use super::event::ModelEvent;
use super::provider_tools;
use super::request::{ModelId, ModelRequest};
use super::usage::Usage;

/// Counts usage while a reply is read.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    reported: Usage,
    finished: bool,
    begun: bool,
    received_bytes: usize,
    /// What lost tries have reported, and how many of them have not reported their input.
    lost: Usage,
    lost_unreported: u64,
}

impl Meter {
    /// Records a piece of the reply.
    pub fn record(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::TryLost(reported) => {
                self.lost_unreported += u64::from(reported.total_input() == 0);
                let output_tokens = reported.output_tokens.max(1);
                self.lost += Usage { output_tokens, estimated: true, ..*reported };
                return;
            }
            ModelEvent::Started { .. } | ModelEvent::Found(_) => {}
            ModelEvent::Usage(usage) => self.reported = *usage,
            ModelEvent::TextDelta(text) | ModelEvent::ThinkingDelta(text) => {
                self.received_bytes += text.len();
            }
            ModelEvent::ToolUse { name, input, .. } => {
                self.received_bytes += name.len() + input.to_string().len();
            }
            ModelEvent::InvalidToolInput { name, raw, .. } => self.received_bytes += name.len() + raw.len(),
            ModelEvent::Finished { usage, .. } => {
                self.reported = *usage;
                self.finished = true;
            }
        }
        self.begun = true;
    }

    /// The usage of the call, with all its tries. `error` says why it did not finish. Without an error, we stopped it.
    #[must_use]
    pub fn used(&self, model: &ModelId, request: &ModelRequest, error: Option<&ModelError>) -> Usage {
        let input_tokens = estimate::request_tokens(model, request);
        let mut used = self.reported;
        if !self.finished && (self.begun || error.is_none_or(ModelError::may_be_billed)) {
            if used.total_input() == 0 {
                used.input_tokens = input_tokens;
            }
            // A provider reports what its tools have found only at the end.
            used.input_tokens += provider_tools::input_tokens(&used);
            let received = estimate::tokens(model, self.received_bytes);
            used.output_tokens = used.output_tokens.max(received).max(1);
            used.estimated = true;
        }
        used += self.lost;
        used.input_tokens += self.lost_unreported * input_tokens;
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::StopReason;
    use crate::models::error::TimeoutPhase;
    use crate::models::request::tests::request;

    fn model() -> ModelId {
        ModelId::new("claude-sonnet-5-5")
    }

    fn used(events: &[ModelEvent], error: Option<ModelError>) -> Usage {
        let mut meter = Meter::default();
        events.iter().for_each(|event| meter.record(event));
        meter.used(&model(), &request(), error.as_ref())
    }

    #[test]
    fn unreported_usage_is_estimated() {
        let input = estimate::request_tokens(&model(), &request());
        let started = ModelEvent::Started { model: ModelId::new("m") };
        let said = Usage { input_tokens: 7, output_tokens: 2, ..Usage::default() };
        let text = ModelEvent::TextDelta("word ".repeat(1_000));
        let received = estimate::tokens(&model(), 5_000);
        let finished =
            ModelEvent::Finished { stop: StopReason::EndTurn, assistant_blocks: Vec::new(), usage: said };
        let check = |events: &[ModelEvent], error: Option<ModelError>, expected: (u64, u64, bool)| {
            let used = used(events, error.clone());
            assert_eq!(
                (used.input_tokens, used.output_tokens, used.estimated),
                expected,
                "{events:?} {error:?}"
            );
        };
        // It finished, so the reported usage is used.
        check(&[started.clone(), text.clone(), finished.clone()], None, (7, 2, false));
        // We stopped it, before or after it began.
        check(&[], None, (input, 1, true));
        check(&[started.clone(), text.clone()], None, (input, received, true));
        check(&[ModelEvent::Usage(said), text.clone()], None, (7, received, true));
        // It was cut off, or timed out.
        for error in
            [ModelError::ConnectionLost, ModelError::Truncated, ModelError::Timeout(TimeoutPhase::Idle)]
        {
            check(std::slice::from_ref(&text), Some(error.clone()), (input, received, true));
            check(&[], Some(error), (input, 1, true));
        }
        // If it was refused before it began, it costs nothing. After it began, it does.
        let overloaded = ModelError::Overloaded { retry_after: None };
        check(&[], Some(overloaded.clone()), (0, 0, false));
        check(&[started, text], Some(overloaded), (input, received, true));
        // Earlier tries that were lost cost their input.
        let lost = ModelEvent::TryLost(Usage::default());
        check(&[lost.clone(), lost.clone(), finished.clone()], None, (7 + 2 * input, 4, true));
        check(
            std::slice::from_ref(&lost),
            Some(ModelError::Connection { at: String::new() }),
            (input, 1, true),
        );
        // If the provider had said what their input was, that is what they cost.
        check(&[ModelEvent::TryLost(said), lost, finished], None, (7 + 7 + input, 2 + 2 + 1, true));
    }
}
