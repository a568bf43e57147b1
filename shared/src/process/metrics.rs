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

/// One metric: its name, its unit in CloudWatch's terms, and its value.
pub type Metric = (&'static str, &'static str, i64);

/// Writes the metrics of `function`, if they are enabled.
pub fn emit(function: &'static str, at: Timestamp, metrics: &[Metric]) {
    if COLLECTED.load(Ordering::Relaxed) {
        println!("{}", line(function, at, metrics));
    }
}

fn line(function: &str, at: Timestamp, metrics: &[Metric]) -> Value {
    let names: Vec<Value> =
        metrics.iter().map(|(name, unit, _)| json!({"Name": name, "Unit": unit})).collect();
    let mut line = Map::new();
    line.insert(
        "_aws".to_owned(),
        json!({
            "Timestamp": at.as_millisecond(),
            "CloudWatchMetrics": [
                {"Namespace": NAMESPACE, "Dimensions": [["Function"]], "Metrics": names},
            ],
        }),
    );
    line.insert("Function".to_owned(), json!(function));
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
            line("schedule-sweep", at, &[("FireLagMs", "Milliseconds", 41), ("Dispatched", "Count", 2)]),
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
    }
}
