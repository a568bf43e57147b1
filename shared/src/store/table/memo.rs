//! What a piece of work has read, so that it reads nothing twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use super::item::Attributes;
use super::key::{Key, Range};
use super::{Order, StoreError};

/// A part of a partition: the items, and where to continue.
pub(super) type Page = (Vec<Attributes>, Option<String>);

/// Readers of the same thing at the same time share one request.
type Cell<T> = Arc<OnceCell<T>>;

/// The reads of one piece of work. A write of the same piece of work forgets what it may have changed.
#[derive(Debug, Default)]
pub(super) struct Memo(Mutex<Read>);

#[derive(Debug, Default)]
struct Read {
    items: HashMap<Key, Cell<Option<Attributes>>>,
    pages: HashMap<PageKey, Cell<Page>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageKey {
    pk: String,
    prefix: &'static str,
    after: Option<String>,
    limit: usize,
    newest: bool,
}

impl PageKey {
    pub(super) fn new(range: &Range, after: Option<&str>, limit: usize, order: Order) -> Self {
        Self {
            pk: range.pk.clone(),
            prefix: range.prefix,
            after: after.map(str::to_owned),
            limit,
            newest: order == Order::Newest,
        }
    }
}

impl Memo {
    /// The item. `read` reads it if it is not remembered.
    pub(super) async fn item(
        &self,
        key: &Key,
        read: BoxFuture<'_, Result<Option<Attributes>, StoreError>>,
    ) -> Result<Option<Attributes>, StoreError> {
        let cell = self.read().items.entry(key.clone()).or_default().clone();
        cell.get_or_try_init(|| read).await.cloned()
    }

    pub(super) async fn page(
        &self,
        key: PageKey,
        read: BoxFuture<'_, Result<Page, StoreError>>,
    ) -> Result<Page, StoreError> {
        let cell = self.read().pages.entry(key).or_default().clone();
        cell.get_or_try_init(|| read).await.cloned()
    }

    /// Forgets these items, and the parts of partitions that they belong to. Called before and after a write: a read that goes on
    /// meanwhile may have seen either state.
    pub(super) fn forget<'a>(&self, keys: impl Iterator<Item = &'a Key>) {
        let mut read = self.read();
        for key in keys {
            read.items.remove(key);
            read.pages.retain(|page, _| page.pk != key.pk || !key.sk.starts_with(page.prefix));
        }
    }

    pub(super) fn forget_all(&self) {
        *self.read() = Read::default();
    }

    fn read(&self) -> MutexGuard<'_, Read> {
        self.0.lock().expect("no code panics while it holds what was read")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;

    use super::*;

    fn key(sk: &str) -> Key {
        Key::new("U#ada#RUN".to_owned(), sk)
    }

    fn page(prefix: &'static str) -> PageKey {
        PageKey::new(&Range { pk: "U#ada#RUN".to_owned(), prefix }, None, 10, Order::Oldest)
    }

    #[tokio::test]
    async fn what_was_read_is_read_again_only_after_a_write() {
        let (memo, reads) = (Memo::default(), AtomicUsize::new(0));
        let item = async |sk: &str| {
            let read = async {
                reads.fetch_add(1, Ordering::Relaxed);
                Ok(None)
            };
            memo.item(&key(sk), Box::pin(read)).await.unwrap();
            reads.load(Ordering::Relaxed)
        };
        assert_eq!((item("A#1").await, item("A#1").await, item("A#2").await), (1, 1, 2));
        memo.forget([key("A#1")].iter());
        assert_eq!((item("A#2").await, item("A#1").await), (2, 3));
        memo.forget_all();
        assert_eq!(item("A#2").await, 4);
    }

    #[tokio::test]
    async fn a_write_forgets_the_parts_that_have_its_item() {
        let (memo, reads) = (Memo::default(), AtomicUsize::new(0));
        let read = async |prefix: &'static str| {
            let read = async {
                reads.fetch_add(1, Ordering::Relaxed);
                Ok((Vec::new(), None))
            };
            memo.page(page(prefix), Box::pin(read)).await.unwrap();
            reads.load(Ordering::Relaxed)
        };
        assert_eq!((read("A#").await, read("B#").await, read("").await), (1, 2, 3));
        memo.forget([key("A#7")].iter());
        assert_eq!((read("B#").await, read("A#").await, read("").await), (3, 4, 5));
        // Another partition.
        memo.forget([Key::new("U#bob#RUN".to_owned(), "A#7")].iter());
        assert_eq!(read("A#").await, 5);
    }

    #[tokio::test]
    async fn readers_at_the_same_time_share_a_request_and_an_error_is_not_kept() {
        let (memo, reads) = (Memo::default(), AtomicUsize::new(0));
        let read = |fails: bool| {
            let reads = &reads;
            async move {
                reads.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                if fails { Err(StoreError::Contended) } else { Ok(None) }
            }
            .boxed()
        };
        let one = key("A#1");
        assert!(memo.item(&one, read(true)).await.is_err());
        let (a, b) = tokio::join!(memo.item(&one, read(false)), memo.item(&one, read(false)));
        assert!(a.is_ok() && b.is_ok());
        assert_eq!(reads.load(Ordering::Relaxed), 2);
    }
}
