//! What every item must be so that the table accepts it and the platform can read it.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::validate::{MAX_STORED, TIME_LIMIT, is_sane};
use jiff::Timestamp;

use crate::store::partitions::Partition;
use crate::store::table::Attributes;

/// The largest item that DynamoDB accepts, in bytes.
const LARGEST_ITEM: usize = 400 * 1024;

/// How many levels of lists and maps an item may have.
const DEEPEST: usize = 32;

/// Attributes with JSON that models or clients have chosen. Its numbers mean nothing to the platform.
const FREE: [&str; 3] = ["block", "data", "input"];

/// Checks what the table accepts, and what all arithmetic of the platform can handle: every number that it reads is 0 to
/// [`MAX_STORED`], and every time is sane.
pub(super) fn item(partition: &Partition, item: &Attributes) -> Result<(), String> {
    let may_be_free = matches!(partition, Partition::Action(_) | Partition::Chat(_) | Partition::Run(_));
    let mut bytes = 0_usize;
    for (name, value) in item {
        bytes += name.len() + check_value(name, name, value, may_be_free, 1)?;
    }
    if bytes > LARGEST_ITEM {
        return Err(format!("has {bytes} bytes; the limit is {LARGEST_ITEM}"));
    }
    Ok(())
}

/// The size of a value in bytes, as DynamoDB counts it.
fn check_value(
    path: &str,
    name: &str,
    value: &AttributeValue,
    may_be_free: bool,
    depth: usize,
) -> Result<usize, String> {
    if depth > DEEPEST {
        let path: String = path.chars().take(80).collect();
        return Err(format!("is nested too deeply: `{path}…` has more than {DEEPEST} levels"));
    }
    let is_free = may_be_free && FREE.contains(&name);
    match value {
        AttributeValue::N(number) => {
            let value: f64 = number.parse().map_err(|_| format!("has an invalid number in `{path}`"))?;
            // The name of a free part is lost below it, so its path ends with `…`.
            if is_free || path.ends_with('…') {
                if value.abs() > 1e125 || (value != 0.0 && value.abs() < 1e-129) {
                    return Err(format!(
                        "has the number {number} in `{path}`, which the table does not accept"
                    ));
                }
            } else if !(0.0..=MAX_STORED as f64).contains(&value) {
                return Err(format!("is invalid: {path}: must be 0 to {MAX_STORED}, is {number}"));
            }
            Ok(number.len() / 2 + 2)
        }
        AttributeValue::S(text) => {
            if is_time(name)
                && let Ok(time) = text.parse::<Timestamp>()
                && !is_sane(time)
            {
                return Err(format!("is invalid: {path}: {TIME_LIMIT}"));
            }
            Ok(text.len())
        }
        AttributeValue::L(values) => {
            let mut bytes = 3;
            for (i, value) in values.iter().enumerate() {
                let path = below(path, is_free, &format!("[{i}]"));
                bytes += 1 + check_value(&path, "", value, may_be_free, depth + 1)?;
            }
            Ok(bytes)
        }
        AttributeValue::M(values) => {
            let mut bytes = 3;
            for (name, value) in values {
                let path = below(path, is_free, &format!(".{name}"));
                bytes += 1 + name.len() + check_value(&path, name, value, may_be_free, depth + 1)?;
            }
            Ok(bytes)
        }
        _ => Ok(1),
    }
}

/// The path of a part. Parts of free JSON have the path of the whole.
fn below(path: &str, is_free: bool, part: &str) -> String {
    match path.ends_with('…') {
        true => path.to_owned(),
        false if is_free => format!("{path}…"),
        false => format!("{path}{part}"),
    }
}

/// Whether an attribute with this name is a time.
fn is_time(name: &str) -> bool {
    let ends = ["_at", "_until", "_by", "_before", "_due", "_seen", "_since"];
    ends.iter().any(|end| name.ends_with(end)) || matches!(name, "at" | "until" | "began" | "anchor")
}
