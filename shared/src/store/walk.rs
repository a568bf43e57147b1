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
struct OpenPartition {
    partition: Partition,
    /// The page that was read last. It is visited after the partitions that it names.
    page: Vec<Attributes>,
    /// The partitions that the page names and that were not visited yet.
    named: Vec<Partition>,
    next: Resume,
}

/// Where to continue in a partition.
enum Resume {
    Start,
    After(String),
    End,
}

impl OpenPartition {
    fn new(partition: Partition) -> Self {
        Self { partition, page: Vec::new(), named: Vec::new(), next: Resume::Start }
    }
}

/// Visits all items of an owner, page by page, each item once.
///
/// The items that an item leads to are visited before it. So if what was visited is deleted, and that is interrupted, the
/// next walk finds the rest. Only one page of each of at most three partitions is in memory, and the names of the partitions
/// that several items name: runs, projects, agents with logs, theme files.
pub struct Walk {
    owner: Owner,
    known: std::vec::IntoIter<Partition>,
    seen: HashSet<Partition>,
    open: Vec<OpenPartition>,
}

impl Walk {
    /// `now` limits the months that are read.
    #[must_use]
    pub fn new(owner: &Owner, now: Timestamp) -> Self {
        let known = Partition::known(now).into_iter();
        Self { owner: owner.clone(), known, seen: HashSet::new(), open: Vec::new() }
    }

    /// The next page. `None` at the end.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn next(&mut self, store: &Store) -> Result<Option<(Partition, Vec<Attributes>)>, StoreError> {
        loop {
            let Some(open) = self.open.last_mut() else {
                let Some(partition) = self.known.next() else { return Ok(None) };
                self.enter(partition);
                continue;
            };
            if let Some(named) = open.named.pop() {
                self.enter(named);
                continue;
            }
            let page = std::mem::take(&mut open.page);
            if !page.is_empty() {
                return Ok(Some((open.partition.clone(), page)));
            }
            let after = match &open.next {
                Resume::Start => None,
                Resume::After(after) => Some(after.as_str()),
                Resume::End => {
                    self.open.pop();
                    continue;
                }
            };
            let range = Range { pk: open.partition.of(&self.owner), prefix: "" };
            let (page, last) = store.query_items(&range, after, PAGE, Order::Oldest).await?;
            open.named = page.iter().flat_map(|item| open.partition.named_by(item)).collect();
            open.page = page;
            open.next = last.map_or(Resume::End, Resume::After);
        }
    }

    fn enter(&mut self, partition: Partition) {
        if !partition.is_named_often() || self.seen.insert(partition.clone()) {
            self.open.push(OpenPartition::new(partition));
        }
    }
}
