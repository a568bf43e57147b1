//! Metrics in CloudWatch's embedded metric format: one line of JSON in the log.
//!
//! An owner is never a dimension: metrics describe the installation.

use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The namespace of all our metrics.
pub const NAMESPACE: &str = "Lamplighter";

/// Whether metrics are written. On Lambda, standard output goes to the log; elsewhere it is a person's terminal.
static COLLECTED: AtomicBool = AtomicBool::new(false);

/// Enables writing metrics to standard output.
pub(crate) fn collect() {
    COLLECTED.store(true, Ordering::Relaxed);
}

/// The `Function` of metrics that are about all functions. An alarm watches one metric, so it cannot add those of several functions.
const ALL: &str = "all";

/// One metric: its name, its unit in CloudWatch's terms, and its value.
pub type Metric = (&'static str, &'static str, i64);

/// A dimension and its value.
type Dimension = (&'static str, &'static str);

/// What can fail for good. Each word is a metric of its own, which costs, so there are few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A run of an action in which a model works.
    Action,
    /// A run of an action that is a request.
    Call,
    /// A turn of a chat or of a setup.
    Conversation,
    /// A background job.
    Job,
}

impl Work {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Call => "call",
            Self::Conversation => "conversation",
            Self::Job => "job",
        }
    }
}

/// Writes the metrics of `function`, if they are enabled.
pub fn emit(function: &'static str, at: Timestamp, metrics: &[Metric]) {
    write(&[("Function", function)], at, metrics);
}

/// Counts work that has failed for good: in all, and of its kind. Call it after the write that says so, which is done once.
pub fn failed(work: Work, at: Timestamp) {
    write(&[("Function", ALL), ("Kind", work.as_str())], at, &[("RunsFailed", "Count", 1)]);
}

/// Counts a notice that did not arrive. Call it after the write that says so.
pub fn undelivered(at: Timestamp) {
    emit("scheduled-executor", at, &[("DeliveriesUndelivered", "Count", 1)]);
}

/// Writes the metrics once for each of these dimensions.
fn write(dimensions: &[Dimension], at: Timestamp, metrics: &[Metric]) {
    if COLLECTED.load(Ordering::Relaxed) {
        println!("{}", line(dimensions, at, metrics));
    }
}

fn line(dimensions: &[Dimension], at: Timestamp, metrics: &[Metric]) -> Value {
    let sets: Vec<[&str; 1]> = dimensions.iter().map(|(name, _)| [*name]).collect();
    let names: Vec<Value> =
        metrics.iter().map(|(name, unit, _)| json!({"Name": name, "Unit": unit})).collect();
    let mut line = Map::new();
    line.insert(
        "_aws".to_owned(),
        json!({
            "Timestamp": at.as_millisecond(),
            "CloudWatchMetrics": [
                {"Namespace": NAMESPACE, "Dimensions": sets, "Metrics": names},
            ],
        }),
    );
    line.extend(dimensions.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    line.extend(metrics.iter().map(|(name, _, value)| ((*name).to_owned(), json!(value))));
    Value::Object(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_form_that_cloudwatch_reads() {
        let at = Timestamp::from_millisecond(1_795_251_600_123).unwrap();
        assert_eq!(
            line(
                &[("Function", "schedule-sweep")],
                at,
                &[("FireLagMs", "Milliseconds", 41), ("Dispatched", "Count", 2)]
            ),
            json!({
                "_aws": {
                    "Timestamp": 1_795_251_600_123_i64,
                    "CloudWatchMetrics": [{
                        "Namespace": "Lamplighter",
                        "Dimensions": [["Function"]],
                        "Metrics": [
                            {"Name": "FireLagMs", "Unit": "Milliseconds"},
                            {"Name": "Dispatched", "Unit": "Count"},
                        ],
                    }],
                },
                "Function": "schedule-sweep",
                "FireLagMs": 41,
                "Dispatched": 2,
            })
        );
        let two = line(&[("Function", ALL), ("Kind", "call")], at, &[("RunsFailed", "Count", 1)]);
        assert_eq!(two["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["Function"], ["Kind"]]));
        assert_eq!(
            (&two["Function"], &two["Kind"], &two["RunsFailed"]),
            (&json!("all"), &json!("call"), &json!(1))
        );
    }
}
