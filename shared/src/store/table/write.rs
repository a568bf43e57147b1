//! The writes of a transaction, and their form in DynamoDB.

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{ConditionCheck, Delete, Put, TransactWriteItem, Update};
use jiff::Timestamp;

use super::item::{Attributes, VERSION, key_of, marked, number, text};
use super::key::{Guard, Key};

/// Whether a conditional write succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Written {
    Yes,
    /// A condition failed. The guard names the item of the first failed condition.
    Refused(Guard),
}

impl Written {
    #[must_use]
    pub fn done(self) -> bool {
        self == Self::Yes
    }
}

/// One write of a transaction.
#[derive(Clone)]
pub enum Write {
    /// The item must not exist.
    Create {
        key: Key,
        item: Attributes,
    },
    /// The item must exist at this version.
    Replace {
        key: Key,
        version: u64,
        item: Attributes,
    },
    /// Replaces whatever exists.
    Put {
        key: Key,
        item: Attributes,
    },
    /// Creates the item, or adds the attributes that it does not have. Its version changes in any case.
    Fill {
        key: Key,
        item: Attributes,
    },
    /// The item must exist.
    Exists {
        key: Key,
    },
    /// The item must exist at this version.
    Unchanged {
        key: Key,
        version: u64,
    },
    /// The item must not exist.
    Absent {
        key: Key,
    },
    Delete {
        key: Key,
        must_exist: bool,
    },
    /// Deletes the item. If it exists, its text `attribute` must be `value`.
    DeleteWhile {
        key: Key,
        attribute: &'static str,
        value: String,
    },
    /// Adds to numbers of an item. It is created if it does not exist and the condition allows it.
    Add {
        key: Key,
        numbers: Vec<(&'static str, i64)>,
        only_if: Condition,
        expires: Option<Timestamp>,
    },
    /// The item must exist at this version. It is deleted.
    Remove {
        key: Key,
        version: u64,
    },
    /// The item must exist at this version. Sets texts of its record, each at a path such as `outcome.state`.
    Set {
        key: Key,
        version: u64,
        texts: Vec<(&'static str, String)>,
    },
}

impl Write {
    pub(super) fn guard(&self) -> Guard {
        self.key().guard()
    }

    pub(super) fn key(&self) -> &Key {
        match self {
            Self::Create { key, .. }
            | Self::Replace { key, .. }
            | Self::Put { key, .. }
            | Self::Fill { key, .. }
            | Self::Exists { key }
            | Self::Unchanged { key, .. }
            | Self::Absent { key }
            | Self::Delete { key, .. }
            | Self::DeleteWhile { key, .. }
            | Self::Add { key, .. }
            | Self::Remove { key, .. }
            | Self::Set { key, .. } => key,
        }
    }

    /// Writes an item over the one that was read at `version`. 0 means that the item did not exist.
    #[must_use]
    pub fn over(key: Key, version: u64, item: Attributes) -> Self {
        match version {
            0 => Self::Create { key, item },
            version => Self::Replace { key, version, item },
        }
    }
}

/// The condition under which numbers are added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Always,
    /// The item exists.
    Exists,
    /// The sum of this number stays within the ceiling. A missing number counts as 0.
    Within {
        number: &'static str,
        ceiling: i64,
    },
    /// A text of the item has this value. With `or_missing` the text, or the whole item, may also be missing.
    Text {
        attribute: &'static str,
        value: String,
        or_missing: bool,
    },
}

impl Write {
    /// Converts the write to an item of a transaction with this write id.
    pub(super) fn into_transact_item(self, table: &str, id: &str) -> Result<TransactWriteItem, BuildError> {
        let put = |key: &Key, version, item| {
            Put::builder().table_name(table).set_item(Some(marked(key, version, id, item)))
        };
        let check = |key: &Key, condition: &str| {
            let check = ConditionCheck::builder().table_name(table).set_key(Some(key_of(key)));
            check.condition_expression(condition).build()
        };
        let delete = |key: &Key| Delete::builder().table_name(table).set_key(Some(key_of(key)));
        let builder = TransactWriteItem::builder();
        let builder = match self {
            Self::Create { key, item } => {
                builder.put(put(&key, 1, item).condition_expression("attribute_not_exists(pk)").build()?)
            }
            Self::Replace { key, version, item } => {
                let put = put(&key, version + 1, item)
                    .condition_expression("#v = :v")
                    .expression_attribute_names("#v", VERSION)
                    .expression_attribute_values(":v", number(version));
                builder.put(put.build()?)
            }
            Self::Put { key, item } => builder.put(put(&key, 1, item).build()?),
            Self::Fill { key, item } => builder.update(fill(table, &key, id, item)?),
            Self::Exists { key } => builder.condition_check(check(&key, "attribute_exists(pk)")?),
            Self::Unchanged { key, version } => {
                let check = ConditionCheck::builder().table_name(table).set_key(Some(key_of(&key)));
                let check = check
                    .condition_expression("#v = :v")
                    .expression_attribute_names("#v", VERSION)
                    .expression_attribute_values(":v", number(version));
                builder.condition_check(check.build()?)
            }
            Self::Absent { key } => builder.condition_check(check(&key, "attribute_not_exists(pk)")?),
            Self::Delete { key, must_exist } => {
                let condition = must_exist.then(|| "attribute_exists(pk)".to_owned());
                builder.delete(delete(&key).set_condition_expression(condition).build()?)
            }
            Self::DeleteWhile { key, attribute, value } => {
                let delete = delete(&key)
                    .condition_expression("attribute_not_exists(pk) OR #a = :a")
                    .expression_attribute_names("#a", attribute)
                    .expression_attribute_values(":a", text(&value));
                builder.delete(delete.build()?)
            }
            Self::Remove { key, version } => {
                let delete = delete(&key)
                    .condition_expression("#v = :v")
                    .expression_attribute_names("#v", VERSION)
                    .expression_attribute_values(":v", number(version));
                builder.delete(delete.build()?)
            }
            Self::Add { key, numbers, only_if, expires } => {
                builder.update(add(table, &key, &numbers, only_if, expires)?)
            }
            Self::Set { key, version, texts } => builder.update(set(table, &key, version, texts)?),
        };
        Ok(builder.build())
    }
}

fn fill(table: &str, key: &Key, id: &str, item: Attributes) -> Result<Update, BuildError> {
    let mut update = Update::builder().table_name(table).set_key(Some(key_of(key)));
    // The version changes even if the item has everything: whoever deletes or replaces what they have read must see this write.
    update = update.expression_attribute_names("#v", VERSION).expression_attribute_values(":one", number(1));
    let is_set = |name: &str| !["pk", "sk", VERSION].contains(&name);
    let whole = marked(key, 1, id, item).into_iter().filter(|(name, _)| is_set(name));
    let mut sets = Vec::new();
    for (i, (name, value)) in whole.enumerate() {
        sets.push(format!("#a{i} = if_not_exists(#a{i}, :a{i})"));
        update = update
            .expression_attribute_names(format!("#a{i}"), name)
            .expression_attribute_values(format!(":a{i}"), value);
    }
    update.update_expression(format!("ADD #v :one SET {}", sets.join(", "))).build()
}

fn add(
    table: &str,
    key: &Key,
    numbers: &[(&'static str, i64)],
    only_if: Condition,
    expires: Option<Timestamp>,
) -> Result<Update, BuildError> {
    let mut update = Update::builder().table_name(table).set_key(Some(key_of(key)));
    // The version changes too, so an edit of the whole item that has not seen the new number is refused.
    let mut adds = vec!["#v :one".to_owned()];
    update = update.expression_attribute_names("#v", VERSION).expression_attribute_values(":one", number(1));
    for (i, (name, amount)) in numbers.iter().enumerate() {
        adds.push(format!("#n{i} :n{i}"));
        update = update
            .expression_attribute_names(format!("#n{i}"), *name)
            .expression_attribute_values(format!(":n{i}"), number(amount));
    }
    let mut expression = format!("ADD {}", adds.join(", "));
    if let Some(expires) = expires {
        expression.push_str(" SET #ttl = :ttl");
        update = update
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_values(":ttl", number(expires.as_second()));
    }
    update = match only_if {
        Condition::Always => update,
        Condition::Exists => update.condition_expression("attribute_exists(pk)"),
        Condition::Within { number: limited, ceiling } => {
            let amount: i64 = numbers.iter().filter(|(name, _)| *name == limited).map(|(_, by)| by).sum();
            let room = ceiling.saturating_sub(amount);
            // If the number is missing, only the ceiling decides.
            let condition = if room >= 0 { "attribute_not_exists(#c) OR #c <= :c" } else { "#c <= :c" };
            update
                .condition_expression(condition)
                .expression_attribute_names("#c", limited)
                .expression_attribute_values(":c", number(room))
        }
        Condition::Text { attribute, value, or_missing } => {
            let condition = if or_missing { "attribute_not_exists(#c) OR #c = :c" } else { "#c = :c" };
            update
                .condition_expression(condition)
                .expression_attribute_names("#c", attribute)
                .expression_attribute_values(":c", text(&value))
        }
    };
    update.update_expression(expression).build()
}

fn set(
    table: &str,
    key: &Key,
    version: u64,
    texts: Vec<(&'static str, String)>,
) -> Result<Update, BuildError> {
    let mut update = Update::builder()
        .table_name(table)
        .set_key(Some(key_of(key)))
        .condition_expression("#v = :v")
        .expression_attribute_names("#v", VERSION)
        .expression_attribute_values(":one", number(1))
        .expression_attribute_values(":v", number(version));
    let mut sets = Vec::with_capacity(texts.len());
    for (i, (path, value)) in texts.into_iter().enumerate() {
        let mut places = Vec::new();
        for (j, part) in path.split('.').enumerate() {
            places.push(format!("#p{i}_{j}"));
            update = update.expression_attribute_names(format!("#p{i}_{j}"), part);
        }
        sets.push(format!("{} = :t{i}", places.join(".")));
        update = update.expression_attribute_values(format!(":t{i}"), text(&value));
    }
    update.update_expression(format!("SET {} ADD #v :one", sets.join(", "))).build()
}
