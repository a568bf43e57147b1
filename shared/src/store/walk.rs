//! Visits every item of an owner.

use std::collections::HashSet;

use domain::ids::Owner;
use jiff::Timestamp;

use super::keys::Range;
use super::partitions::Partition;
use super::table::{Attributes, Order, Store, StoreError};

/// How many items a query reads. DynamoDB returns at most 1 MB, whatever their number.
const PAGE: usize = 100;

/// A partition that is being read.
struct Reading {
    partition: Partition,
    /// The page that was read last. It is visited after the partitions that it names.
    page: Vec<Attributes>,
    /// The partitions that the page names and that were not visited yet.
    named: Vec<Partition>,
    next: Next,
}

/// Where to continue in a partition.
enum Next {
    Start,
    After(String),
    End,
}

impl Reading {
    fn new(partition: Partition) -> Self {
        Self { partition, page: Vec::new(), named: Vec::new(), next: Next::Start }
    }
}

impl Store {
    /// Visits all items of an owner, page by page, each item once. `now` limits the months that are read.
    ///
    /// The items that an item leads to are visited before it. So if `visit` deletes what it is given and is interrupted,
    /// the next walk finds the rest. Only one page of each of at most three partitions is in memory, and the names of the
    /// partitions that several items name: runs, projects, agents with logs, theme files.
    ///
    /// # Errors
    /// If the table does not answer, or if `visit` fails.
    pub async fn walk<E: From<StoreError>>(
        &self,
        owner: &Owner,
        now: Timestamp,
        mut visit: impl AsyncFnMut(&Partition, &[Attributes]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut seen = HashSet::new();
        for partition in Partition::known(now) {
            let mut readings = Vec::new();
            enter(partition, &mut seen, &mut readings);
            while let Some(reading) = readings.last_mut() {
                if let Some(named) = reading.named.pop() {
                    enter(named, &mut seen, &mut readings);
                    continue;
                }
                let page = std::mem::take(&mut reading.page);
                if !page.is_empty() {
                    visit(&reading.partition, &page).await?;
                }
                let after = match &reading.next {
                    Next::Start => None,
                    Next::After(after) => Some(after.as_str()),
                    Next::End => {
                        readings.pop();
                        continue;
                    }
                };
                let range = Range { pk: reading.partition.of(owner), prefix: "" };
                let (page, last) = self.query_items(&range, after, PAGE, Order::Oldest).await?;
                reading.named = page.iter().flat_map(|item| reading.partition.named_by(item)).collect();
                reading.page = page;
                reading.next = last.map_or(Next::End, Next::After);
            }
        }
        Ok(())
    }
}

fn enter(partition: Partition, seen: &mut HashSet<Partition>, readings: &mut Vec<Reading>) {
    if !partition.is_named_often() || seen.insert(partition.clone()) {
        readings.push(Reading::new(partition));
    }
}
