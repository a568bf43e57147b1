//! What a piece of work has read, so that it reads nothing twice. Items that its futures want at the same time are read with one request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::BoxFuture;
use tokio::sync::{OnceCell, oneshot};

use super::item::Attributes;
use super::key::{Key, Range};
use super::{Order, StoreError};

/// A part of a partition: the items, and where to continue.
pub(super) type Page = (Vec<Attributes>, Option<String>);

/// Readers of the same thing at the same time share one request.
type Cell<T> = Arc<OnceCell<T>>;

/// A request for items.
pub(super) type Reading<'a> = BoxFuture<'a, Result<Vec<Option<Attributes>>, StoreError>>;

/// The reads of one piece of work. A write of the same piece of work forgets what it may have changed.
#[derive(Debug, Default)]
pub(super) struct Memo(Mutex<Read>);

#[derive(Debug, Default)]
struct Read {
    items: HashMap<Key, Cell<Option<Attributes>>>,
    pages: HashMap<PageKey, Cell<Page>>,
    /// What is wanted and not asked for yet. The first that wants something asks for all.
    wanted: Vec<(Key, oneshot::Sender<Option<Attributes>>)>,
}

/// The future that asks for what is wanted. If it is dropped before, the others ask for themselves.
struct Asks<'a>(&'a Memo);

impl Drop for Asks<'_> {
    fn drop(&mut self) {
        self.0.read().wanted.clear();
    }
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
    /// The item. `read` reads items that are not remembered, and returns them in the order of their keys.
    pub(super) async fn item<'a>(
        &self,
        key: &Key,
        read: impl Fn(Vec<Key>) -> Reading<'a>,
    ) -> Result<Option<Attributes>, StoreError> {
        let cell = self.read().items.entry(key.clone()).or_default().clone();
        cell.get_or_try_init(|| self.together(key, read)).await.cloned()
    }

    async fn together<'a>(
        &self,
        key: &Key,
        read: impl Fn(Vec<Key>) -> Reading<'a>,
    ) -> Result<Option<Attributes>, StoreError> {
        let (sender, answer) = oneshot::channel();
        let is_first = {
            let wanted = &mut self.read().wanted;
            wanted.push((key.clone(), sender));
            wanted.len() == 1
        };
        if is_first {
            let asks = Asks(self);
            // Until then, the others of the same `join` have said what they want.
            tokio::task::yield_now().await;
            let wanted = std::mem::take(&mut self.read().wanted);
            drop(asks);
            let (keys, senders): (Vec<Key>, Vec<_>) = wanted.into_iter().unzip();
            for (sender, item) in senders.into_iter().zip(read(keys).await?) {
                // Who wanted it may have left meanwhile.
                drop(sender.send(item));
            }
        }
        match answer.await {
            Ok(item) => Ok(item),
            // Nobody has asked, or the request has failed.
            Err(_) => Ok(read(vec![key.clone()]).await?.pop().flatten()),
        }
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

    /// Counts requests. Each finds nothing.
    fn finds_nothing<'a>(requests: &'a AtomicUsize) -> impl Fn(Vec<Key>) -> Reading<'a> {
        move |keys| {
            async move {
                requests.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Ok(vec![None; keys.len()])
            }
            .boxed()
        }
    }

    #[tokio::test]
    async fn what_was_read_is_read_again_only_after_a_write() {
        let (memo, requests) = (Memo::default(), AtomicUsize::new(0));
        let item = async |sk: &str| {
            memo.item(&key(sk), finds_nothing(&requests)).await.unwrap();
            requests.load(Ordering::Relaxed)
        };
        assert_eq!((item("A#1").await, item("A#1").await, item("A#2").await), (1, 1, 2));
        memo.forget([key("A#1")].iter());
        assert_eq!((item("A#2").await, item("A#1").await), (2, 3));
        memo.forget_all();
        assert_eq!(item("A#2").await, 4);
    }

    #[tokio::test]
    async fn what_is_wanted_at_the_same_time_is_one_request() {
        let (memo, requests) = (Memo::default(), AtomicUsize::new(0));
        let says_its_key = |keys: Vec<Key>| -> Reading<'_> {
            requests.fetch_add(1, Ordering::Relaxed);
            let item = |key: Key| {
                let value = aws_sdk_dynamodb::types::AttributeValue::S(key.sk);
                Some(Attributes::from([("sk".to_owned(), value)]))
            };
            async move { Ok(keys.into_iter().map(item).collect()) }.boxed()
        };
        let item = async |sk: &'static str| {
            let found = memo.item(&key(sk), says_its_key).await.unwrap().unwrap();
            assert_eq!(found["sk"].as_s().unwrap(), sk);
        };
        tokio::join!(item("A#1"), item("A#2"), item("A#1"), item("A#3"));
        assert_eq!(requests.load(Ordering::Relaxed), 1);
        tokio::join!(item("A#1"), item("A#4"));
        assert_eq!(requests.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn if_who_asks_leaves_the_others_ask() {
        let (memo, requests) = (Memo::default(), AtomicUsize::new(0));
        let item = |sk: &'static str| {
            let (memo, requests) = (&memo, &requests);
            async move { memo.item(&key(sk), finds_nothing(requests)).await }.boxed()
        };
        let (mut first, second) = (item("A#1"), item("A#2"));
        assert!(futures::poll!(&mut first).is_pending());
        let second = async {
            let mut second = second;
            assert!(futures::poll!(&mut second).is_pending());
            drop(first);
            second.await
        };
        assert!(second.await.unwrap().is_none());
        // Nothing is left that nobody asks for.
        item("A#3").await.unwrap();
        assert_eq!(requests.load(Ordering::Relaxed), 2);
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
    async fn an_error_is_not_kept() {
        let (memo, requests) = (Memo::default(), AtomicUsize::new(0));
        let fails = |_: Vec<Key>| -> Reading<'_> {
            requests.fetch_add(1, Ordering::Relaxed);
            async { Err(StoreError::Contended) }.boxed()
        };
        let (one, two) = (key("A#1"), key("A#2"));
        let (a, b) = tokio::join!(memo.item(&one, fails), memo.item(&two, fails));
        assert!(a.is_err() && b.is_err());
        assert!(memo.item(&one, finds_nothing(&requests)).await.is_ok());
        // Who did not get an answer asked for itself.
        assert_eq!(requests.load(Ordering::Relaxed), 3);
    }
}
