//! The connections of one port, and the choice of the one to close when there are too many.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::PortLimits;

/// A client that has read nothing of its answer for this long may be closed if room is needed.
const STALLED: Duration = Duration::from_secs(10);

/// A client has this long to send its first request or the next one, before its connection may be closed to make room. Its request
/// may be under way.
const GRACE: Duration = Duration::from_millis(500);

/// All connections of one port.
#[derive(Clone, Debug)]
pub(super) struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: PortLimits,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    connections: BTreeMap<u64, Arc<Connection>>,
}

/// One connection. Dropping it removes it from the list.
#[derive(Debug)]
pub(super) struct Connection {
    cut: Notify,
    state: Mutex<State>,
    shared: Weak<Shared>,
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// For the rest of its first request, since this time.
    Waiting(Instant),
    /// For another request, since this time.
    Idle(Instant),
    Working,
    /// Sends an answer. The client last read a part of it at this time.
    Sending(Instant),
    /// Sends events, since this time.
    Streaming(Instant),
}

impl Connections {
    pub(super) fn new(limits: PortLimits) -> Self {
        Self(Arc::new(Shared { limits, open: Mutex::default() }))
    }

    /// Adds a connection. `None` if there is no room, and all others are busy or new.
    pub(super) fn enter(&self) -> Option<Arc<Connection>> {
        let mut open = self.0.open();
        if open.connections.len() >= self.0.limits.connections && !open.make_room() {
            return None;
        }
        let number = open.next;
        open.next += 1;
        let connection = Arc::new(Connection {
            cut: Notify::new(),
            state: Mutex::new(State::Waiting(Instant::now())),
            shared: Arc::downgrade(&self.0),
            number,
        });
        open.connections.insert(number, connection.clone());
        Some(connection)
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().expect("no code panics while it holds the connections")
    }
}

impl Open {
    /// Closes the least valuable connection, in this order: one whose client has not sent a complete request, an idle
    /// one, one whose client reads nothing, the oldest stream.
    fn make_room(&mut self) -> bool {
        let rank = |state: State| match state {
            State::Waiting(since) if since.elapsed() > GRACE => Some((0, since)),
            State::Idle(since) if since.elapsed() > GRACE => Some((1, since)),
            State::Sending(since) if since.elapsed() > STALLED => Some((2, since)),
            State::Streaming(since) => Some((3, since)),
            State::Waiting(_) | State::Idle(_) | State::Working | State::Sending(_) => None,
        };
        self.cut_first(rank)
    }

    fn cut_first<K: Ord>(&mut self, rank: impl Fn(State) -> Option<K>) -> bool {
        let ranked = self.connections.iter().filter_map(|(number, one)| Some((rank(one.state())?, *number)));
        let Some((_, number)) = ranked.min() else { return false };
        if let Some(connection) = self.connections.remove(&number) {
            connection.cut.notify_one();
        }
        true
    }
}

impl Connection {
    /// Returns when the connection must be closed.
    pub(super) async fn cut(&self) {
        self.cut.notified().await;
    }

    fn state(&self) -> State {
        *self.state.lock().expect("a state is only read and set")
    }

    fn set(&self, state: State) {
        *self.state.lock().expect("a state is only read and set") = state;
    }

    pub(super) fn rest(&self) {
        self.set(State::Idle(Instant::now()));
    }

    pub(super) fn work(&self) {
        self.set(State::Working);
    }

    pub(super) fn send(&self) {
        self.set(State::Sending(Instant::now()));
    }

    /// Begins a stream. If there are too many, the oldest is closed.
    pub(super) fn stream(&self) {
        self.set(State::Streaming(Instant::now()));
        let Some(shared) = self.shared.upgrade() else { return };
        let mut open = shared.open();
        let since = |state| if let State::Streaming(since) = state { Some(since) } else { None };
        let streams = open.connections.values().filter(|one| since(one.state()).is_some()).count();
        if streams > shared.limits.streams {
            open.cut_first(since);
        }
    }

    /// Removes the ended connection.
    pub(super) fn leave(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.open().connections.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(connections: usize, streams: usize) -> PortLimits {
        PortLimits { connections, streams, ..PortLimits::default() }
    }

    fn is_open(connections: &Connections, one: &Connection) -> bool {
        connections.0.open().connections.contains_key(&one.number)
    }

    async fn pass() {
        tokio::time::advance(GRACE + Duration::from_millis(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_waiting_connection_is_closed_and_busy_ones_stay() {
        let all = Connections::new(limits(3, 3));
        let (first, second, third) = (all.enter().unwrap(), all.enter().unwrap(), all.enter().unwrap());
        first.work();
        second.rest();
        assert!(all.enter().is_none(), "the request of a new connection may be under way");
        pass().await;
        let fourth = all.enter().unwrap();
        assert!(is_open(&all, &first) && is_open(&all, &second) && !is_open(&all, &third));
        fourth.work();
        let third = all.enter().unwrap();
        assert!(!is_open(&all, &second) && is_open(&all, &fourth));
        third.stream();
        fourth.work();
        let fifth = all.enter().unwrap();
        assert!(!is_open(&all, &third), "a stream goes where nobody waits");
        fifth.send();
        assert!(all.enter().is_none(), "nobody is cut off at work");
        fifth.leave();
        assert!(all.enter().is_some());
    }

    #[test]
    fn one_stream_too_many_closes_the_oldest() {
        let all = Connections::new(limits(10, 2));
        let streams: Vec<_> = (0..3).map(|_| all.enter().unwrap()).collect();
        for stream in &streams {
            stream.stream();
        }
        let open: Vec<bool> = streams.iter().map(|stream| is_open(&all, stream)).collect();
        assert_eq!(open, [false, true, true]);
    }
}
