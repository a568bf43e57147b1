//! Tables of requests, with what each asks for.

use domain::models::routing::TaskTier;
use domain::projects::turn::TurnMode;
use theme_turn::classify::{Asked, Classified, classify};

pub struct Row {
    pub message: String,
    pub has_changed: bool,
    pub mode: TurnMode,
    pub tier: TaskTier,
    pub is_several: bool,
}

fn yes(cell: &str) -> bool {
    match cell {
        "yes" => true,
        "no" => false,
        _ => panic!("neither yes nor no: {cell}"),
    }
}

fn named<T: serde::de::DeserializeOwned>(cell: &str) -> T {
    serde_json::from_value(serde_json::Value::String(cell.to_owned())).expect("a known mode or tier")
}

/// The rows below the names of the columns.
pub fn rows(table: &str) -> Vec<Row> {
    table
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            let [message, has_changed, mode, tier, is_several, _] = cells[..] else {
                panic!("not six cells: {line}")
            };
            Row {
                // A message of several lines stands on one line of the table.
                message: message.replace("\\n", "\n"),
                has_changed: yes(has_changed),
                mode: named(mode),
                tier: named(tier),
                is_several: yes(is_several),
            }
        })
        .collect()
}

pub fn classified(message: &str, has_changed: bool) -> Classified {
    classify(&Asked { message, has_changed, ..Asked::default() }, None)
}
