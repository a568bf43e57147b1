//! What was seen at the last run, and whether something has changed since.
//!
//! A change is *offered* to a run. It counts as seen when that run has succeeded. If the run fails, the next due time finds the same
//! change again, so no change is lost.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::feed::{Entry, Feed, Looked, MAX_BESIDE, MAX_ENTRIES};
use super::page::{MAX_SHOWN, Page};
use super::{MAX_PATH, MAX_POINTER, MAX_URL, MAX_WATCHES, Watch};
use crate::ids::RunId;
use crate::models::WebSource;
use crate::validate::FieldErrors;

/// How many keys of entries are remembered of a feed: of those that are looked at and those beside them, and as many that have left, because
/// they may come back.
const MAX_KEYS: usize = 2 * MAX_ENTRIES + MAX_BESIDE;

/// How the keys of entries are made. It changes with [`Entry::key`].
const KEYS: u8 = 1;

/// How many new entries of a feed a run is shown.
const ENTRIES_SHOWN: usize = 30;

/// How many of the last costs of runs count.
const LAST_COSTS: usize = 5;

/// The longest hash, version, key or validator that is remembered, in bytes.
const MAX_REMEMBERED: usize = 500;

/// The longest sentence about a change, in bytes: it names an address and a place in it.
const MAX_TOLD: usize = MAX_URL + MAX_POINTER + MAX_PATH + 200;

/// The highest count and the highest amount that a stored record may have. A check can add to them without an overflow.
const MAX_COUNT: u64 = 1 << 53;

/// What is remembered about the things that an action watches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchState {
    /// By [`Watch::key`]: what the last run that succeeded was told.
    #[serde(default)]
    pub seen: BTreeMap<String, Seen>,
    /// What the newest run was told. It does not count as seen yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Offered>,
    #[serde(default)]
    pub counts: Counts,
    /// What the last runs have cost, newest last.
    #[serde(default)]
    pub costs: Vec<i64>,
}

/// What the checks have come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Counts {
    /// How often a due time was checked.
    #[schema(example = 720)]
    pub checks: u64,
    /// How often something had changed, so that a run began.
    #[schema(example = 12)]
    pub wakes: u64,
    /// How often nothing had changed, so that no run began.
    #[schema(example = 708)]
    pub unchanged: u64,
    /// What the runs that did not begin would have cost, in micro-dollars, by the average of the last five runs at that time.
    #[schema(example = 4_100_000)]
    pub saved_micros: i64,
    /// When they were checked last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Timestamp>,
}

/// What was seen of one thing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The hash or version of what counts. Empty for a feed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub print: String,
    /// The keys of the entries of a feed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<String>,
    /// How these keys were made: 0 by versions that did not say it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keys: u8,
    /// The validators of the answer, for the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// A change that a run is told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    pub run_id: RunId,
    pub seen: BTreeMap<String, Seen>,
    pub news: Vec<News>,
}

/// What a run is told about one thing that has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// What has changed, as a sentence without strangers' words.
    pub told: String,
    /// What was found. If `source` is set, strangers have written it.
    pub found: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<WebSource>,
}

/// What a look at one thing has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// The server says that nothing has changed since the last look.
    Same,
    Page {
        page: Page,
        etag: Option<String>,
        last_modified: Option<String>,
    },
    Feed {
        feed: Feed,
        etag: Option<String>,
        last_modified: Option<String>,
    },
    /// A record of the platform, by its hash or version. `None` if it does not exist. `shown`: what a run is shown of it.
    Record {
        print: Option<String>,
        shown: String,
    },
}

/// What has become of the run that was told of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It has not ended.
    Open,
    /// It has succeeded, or nobody knows any more.
    Yes { cost_micros: Option<i64> },
    /// It has failed or was cancelled.
    No { cost_micros: Option<i64> },
}

impl WatchState {
    /// The state after it is known what has become of the run that was told of the last change.
    #[must_use]
    pub fn settled(mut self, heard: Heard) -> Self {
        let (cost, is_seen) = match heard {
            Heard::Open => return self,
            Heard::Yes { cost_micros } => (cost_micros, true),
            Heard::No { cost_micros } => (cost_micros, false),
        };
        if let Some(offered) = self.offered.take()
            && is_seen
        {
            self.seen = offered.seen;
        }
        self.costs.extend(cost);
        let old = self.costs.len().saturating_sub(LAST_COSTS);
        self.costs.drain(..old);
        self
    }

    /// What the next look should compare with.
    #[must_use]
    pub fn seen_of(&self, watch: &Watch) -> Option<&Seen> {
        self.seen.get(&watch.key())
    }

    /// Decides whether `run` takes place, after a look at each thing. What was never seen before counts as changed.
    #[must_use]
    pub fn decide(mut self, looks: Vec<(&Watch, Look)>, run: RunId, now: Timestamp) -> (Self, bool) {
        let (mut seen, mut news) = (BTreeMap::new(), Vec::new());
        for (watch, look) in looks {
            let before = self.seen.get(&watch.key());
            let (after, found) = compare(watch, before, look);
            seen.insert(watch.key(), after);
            news.extend(found);
        }
        let changed = !news.is_empty();
        self.counts.checks += 1;
        self.counts.checked_at = Some(now);
        if changed {
            // A run that is tried again was counted before.
            let is_told = self.offered.as_ref().is_some_and(|offered| offered.run_id == run);
            self.counts.wakes += u64::from(!is_told);
            self.offered = Some(Offered { run_id: run, seen, news });
        } else {
            self.seen = seen;
            self.offered = None;
            self.counts.unchanged += 1;
            self.counts.saved_micros = self.counts.saved_micros.saturating_add(self.cost_of_a_run());
        }
        (self, changed)
    }

    /// Checks the limits of a record, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        check_seen(&mut errors, "seen", &self.seen);
        if let Some(Offered { seen, news, .. }) = &self.offered {
            check_seen(&mut errors, "offered.seen", seen);
            let fits = |news: &News| {
                let source = news.source.as_ref();
                news.told.len() <= MAX_TOLD
                    && news.found.len() <= MAX_SHOWN
                    // Each byte of an address may be written with three.
                    && source.is_none_or(|source| source.url.len() <= 3 * MAX_URL && source.title.len() <= MAX_REMEMBERED * 4)
            };
            if news.len() > MAX_WATCHES || !news.iter().all(fits) {
                errors.add("offered.news", format!("must be at most {MAX_WATCHES} items of limited length"));
            }
        }
        let Counts { checks, wakes, unchanged, saved_micros, .. } = self.counts;
        let saved = u64::try_from(saved_micros).unwrap_or(u64::MAX);
        if [checks, wakes, unchanged, saved].iter().any(|count| *count > MAX_COUNT) {
            errors.add("counts", format!("must be from 0 to {MAX_COUNT}"));
        }
        if self.costs.len() > LAST_COSTS || self.costs.iter().any(|cost| *cost < 0) {
            errors.add("costs", format!("must be at most {LAST_COSTS} amounts from 0"));
        }
        errors.into_result(())
    }

    /// What the last runs have cost on average.
    fn cost_of_a_run(&self) -> i64 {
        let count = i64::try_from(self.costs.len()).unwrap_or(i64::MAX);
        self.costs.iter().fold(0_i64, |sum, cost| sum.saturating_add(*cost)).checked_div(count).unwrap_or(0)
    }

    /// What `run` is told.
    #[must_use]
    pub fn news_for(self, run: RunId) -> Vec<News> {
        self.offered.filter(|offered| offered.run_id == run).map(|offered| offered.news).unwrap_or_default()
    }
}

fn check_seen(errors: &mut FieldErrors, field: &str, seen: &BTreeMap<String, Seen>) {
    let fits = |text: &String| text.len() <= MAX_REMEMBERED;
    let all_fit = seen.iter().all(|(key, seen)| {
        fits(key)
            && fits(&seen.print)
            && seen.entries.len() <= MAX_KEYS
            && seen.entries.iter().chain(&seen.etag).chain(&seen.last_modified).all(fits)
    });
    if seen.len() > MAX_WATCHES || !all_fit {
        errors.add(
            field,
            format!("must be at most {MAX_WATCHES} items with texts of at most {MAX_REMEMBERED} bytes and {MAX_KEYS} entries"),
        );
    }
}

/// What is seen now, and the news if it is a change. What was never seen before counts as a change.
fn compare(watch: &Watch, before: Option<&Seen>, look: Look) -> (Seen, Option<News>) {
    let (name, is_new) = (watch.name(), before.is_none());
    let was = before.cloned().unwrap_or_default();
    let told = match is_new {
        true => format!("{name}, seen for the first time"),
        false => format!("{name} has changed"),
    };
    match look {
        Look::Same => (was, None),
        Look::Page { page, etag, last_modified } => {
            let source = watch.url().map(|url| WebSource::watched(url, &page.title, &page.sha256));
            let is_same =
                was.print == page.sha256 || page.earlier_sha256.is_some_and(|earlier| earlier == was.print);
            let changed = is_new || !is_same;
            let seen = Seen { print: page.sha256, etag, last_modified, ..Seen::default() };
            (seen, changed.then_some(News { told, found: page.shown, source }))
        }
        Look::Feed { feed, etag, last_modified } => {
            let known: HashSet<&str> = was.entries.iter().map(String::as_str).collect();
            let is_known = |entry: &Entry| {
                // An entry that an earlier version has seen by another name is not new.
                let is_older = !is_new && was.keys < KEYS;
                known.contains(entry.key()) || (is_older && entry.was_seen_earlier(|key| known.contains(key)))
            };
            let mut told_once = HashSet::new();
            let mut fresh: Vec<&Entry> = feed.entries.iter().filter(|entry| !is_known(entry)).collect();
            fresh.retain(|entry| told_once.insert(entry.key()));
            // The newest ones are shown, if the dates of all of them say which ones these are.
            if fresh.iter().all(|entry| entry.time.is_some()) {
                fresh.sort_by_key(|entry| std::cmp::Reverse(entry.time));
            }
            let mut found: String =
                fresh.iter().take(ENTRIES_SHOWN).map(|entry| entry.line() + "\n").collect();
            found.truncate(found.floor_char_boundary(MAX_SHOWN));
            let sha256 = crate::hex(&Sha256::digest(&found));
            let source = watch.url().map(|url| WebSource::watched(url, "", &sha256));
            let told = match (is_new, fresh.len()) {
                (true, count) => format!("{told}, with {count} entries"),
                (false, 1) => format!("{name} has 1 new entry"),
                (false, count) => format!("{name} has {count} new entries"),
            };
            let told = match feed.looked {
                Looked::All => told,
                Looked::Newest => {
                    format!(
                        "{told}. Of its {} entries, the {MAX_ENTRIES} newest ones are looked at",
                        feed.total
                    )
                }
                Looked::Ends => format!(
                    "{told}. Of its {} entries, the first {half} and the last {half} are looked at",
                    feed.total,
                    half = MAX_ENTRIES / 2
                ),
            };
            let changed = is_new || !fresh.is_empty();
            let seen = Seen {
                entries: remembered(&feed, &was.entries),
                keys: KEYS,
                etag,
                last_modified,
                ..Seen::default()
            };
            (seen, changed.then_some(News { told, found, source }))
        }
        Look::Record { print, shown } => {
            let told = if print.is_some() { told } else { format!("{name} does not exist") };
            let print = print.unwrap_or_default();
            let changed = is_new || was.print != print;
            (Seen { print, ..Seen::default() }, changed.then_some(News { told, found: shown, source: None }))
        }
    }
}

/// The keys that are remembered: of what the feed has, then of what has left it last.
fn remembered(feed: &Feed, before: &[String]) -> Vec<String> {
    let has = feed.entries.iter().map(Entry::key).chain(feed.beside.iter().map(String::as_str));
    let mut kept = HashSet::new();
    let keys = has.chain(before.iter().map(String::as_str)).filter(|key| kept.insert(*key));
    keys.take(MAX_KEYS).map(str::to_owned).collect()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u8) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{feed, page};
    use super::*;

    fn run(n: u128) -> RunId {
        RunId::from_uuid(uuid::Uuid::from_u128(n))
    }

    /// What strangers have written is always marked as theirs, however the address is written.
    #[test]
    fn every_page_has_a_source() {
        let long = format!("https://a.com/{}", "a".repeat(1_900));
        for (url, kept) in [
            ("https://a.com/b", "https://a.com/b"),
            ("HTTPS://A.com/b", "https://a.com/b"),
            ("https://a.com/b c", "https://a.com/b%20c"),
            ("https:a.com", "https://a.com/"),
            (&long, &long),
        ] {
            for (watch, look) in [
                (Watch::Url { url: url.to_owned(), pointer: None }, look("one")),
                (
                    Watch::Feed { url: url.to_owned() },
                    Look::Feed {
                        feed: feed::read("", b"<rss></rss>", "").unwrap(),
                        etag: None,
                        last_modified: None,
                    },
                ),
            ] {
                let (state, _) =
                    WatchState::default().decide(vec![(&watch, look)], run(1), Timestamp::UNIX_EPOCH);
                let source = state.news_for(run(1))[0].source.clone();
                assert_eq!(source.map(|source| source.url).as_deref(), Some(kept));
            }
        }
    }

    #[test]
    fn a_record_has_limits() {
        let watch = page_watch();
        let (good, _) =
            WatchState::default().decide(vec![(&watch, look("one"))], run(1), Timestamp::UNIX_EPOCH);
        assert_eq!(good.check(), Ok(()));
        let said = |change: fn(&mut WatchState)| {
            let mut state = good.clone();
            change(&mut state);
            state.check().unwrap_err().to_string().split(':').next().unwrap().to_owned()
        };
        assert_eq!(said(|state| state.counts.checks = u64::MAX), "counts");
        assert_eq!(said(|state| state.counts.saved_micros = -1), "counts");
        assert_eq!(said(|state| state.costs = vec![1; 6]), "costs");
        assert_eq!(said(|state| state.costs = vec![-1]), "costs");
        let long = || "x".repeat(MAX_REMEMBERED + 1);
        assert!(good.offered.is_some());
        for change in [
            (|seen: &mut Seen, long| seen.print = long) as fn(&mut Seen, String),
            |seen, long| seen.etag = Some(long),
            |seen, long| seen.entries = vec![long],
            |seen, _| seen.entries = vec![String::new(); MAX_KEYS + 1],
        ] {
            let mut state = good.clone();
            state.seen = state.offered.as_ref().unwrap().seen.clone();
            state.seen.values_mut().for_each(|seen| change(seen, long()));
            assert!(state.check().unwrap_err().to_string().starts_with("seen: "));
        }
        let mut many = good.clone();
        many.seen = (0..6).map(|n| (n.to_string(), Seen::default())).collect();
        assert!(many.check().is_err());
        let mut told = good;
        told.offered.as_mut().unwrap().news[0].found = "x".repeat(MAX_SHOWN + 1);
        assert!(told.check().unwrap_err().to_string().starts_with("offered.news: "));
    }

    fn page_watch() -> Watch {
        Watch::Url { url: "https://a.com".to_owned(), pointer: None }
    }

    fn look(text: &str) -> Look {
        let page = page::read("text/plain", text.as_bytes(), None).unwrap();
        Look::Page { page, etag: Some(format!("\"{text}\"")), last_modified: None }
    }

    fn feed_look(ids: &[u32]) -> Look {
        let items: String =
            ids.iter().map(|id| format!("<item><guid>{id}</guid><title>T{id}</title></item>")).collect();
        feed_of(&format!("<rss>{items}</rss>"))
    }

    fn feed_of(text: &str) -> Look {
        let feed = feed::read("", text.as_bytes(), "https://a.com/feed").unwrap();
        Look::Feed { feed, etag: None, last_modified: None }
    }

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn a_change_is_seen_when_its_run_has_succeeded() {
        let watch = page_watch();
        let decide = |state: WatchState, text: &str, n| state.decide(vec![(&watch, look(text))], run(n), NOW);
        let (state, first) = decide(WatchState::default(), "a", 1);
        assert!(first && state.seen.is_empty());
        // The run has failed: the same change is offered to the next run.
        let (state, again) = decide(state.settled(Heard::No { cost_micros: Some(7) }), "a", 2);
        assert!(again);
        assert_eq!(state.clone().news_for(run(2))[0].told, "https://a.com, seen for the first time");
        assert_eq!(state.clone().news_for(run(1)), []);
        let state = state.settled(Heard::Yes { cost_micros: Some(9) });
        let (state, same) = decide(state, "a", 3);
        assert!(!same);
        let (state, by_server) = state.decide(vec![(&watch, Look::Same)], run(4), NOW);
        assert!(!by_server);
        let (state, changed) = decide(state, "b", 5);
        assert!(changed);
        assert_eq!(state.offered.as_ref().unwrap().news[0].told, "https://a.com has changed");
        let expected = Counts { checks: 5, wakes: 3, unchanged: 2, saved_micros: 16, checked_at: Some(NOW) };
        assert_eq!(state.counts, expected);
        // The same run looks again after a kill.
        let (state, again) = decide(state.settled(Heard::Open), "b", 5);
        assert_eq!((again, state.counts.wakes, state.counts.checks), (true, 3, 6));
    }

    #[test]
    fn only_new_entries_of_a_feed_count() {
        let watch = Watch::Feed { url: "https://a.com/feed".to_owned() };
        let decide = |state: WatchState, ids: &[u32], n| {
            let (state, changed) = state.decide(vec![(&watch, feed_look(ids))], run(n), NOW);
            let told = state.clone().news_for(run(n)).pop().map(|news| (news.told, news.found));
            (state.settled(Heard::Yes { cost_micros: None }), changed, told)
        };
        let (state, first, told) = decide(WatchState::default(), &[2, 1], 1);
        assert!(first && told.unwrap().0.ends_with("seen for the first time, with 2 entries"));
        let (state, gone, _) = decide(state, &[1], 2);
        let (state, back, _) = decide(state, &[1, 2], 3);
        assert!(!gone && !back, "an entry that left and came back is not new");
        let (_, new, told) = decide(state, &[4, 3, 2], 4);
        let (told, found) = told.unwrap();
        assert!(new && told == "the feed https://a.com/feed has 2 new entries" && found == "T4\nT3\n");
    }

    /// A look at a feed after others, all of whose runs have succeeded: what is told last.
    fn told_of(
        state: WatchState,
        looks: impl IntoIterator<Item = Look>,
    ) -> (WatchState, Option<(String, String)>) {
        let watch = Watch::Feed { url: "https://a.com/feed".to_owned() };
        let mut last = (state, None);
        for (n, look) in looks.into_iter().enumerate() {
            let (state, _) = last.0.decide(vec![(&watch, look)], run(n as u128), NOW);
            let told = state.clone().news_for(run(n as u128)).pop().map(|news| (news.told, news.found));
            last = (state.settled(Heard::Yes { cost_micros: None }), told);
        }
        last
    }

    #[test]
    fn a_second_entry_with_the_same_link_is_new() {
        let feed = |titles: &[&str]| {
            let items: String = titles
                .iter()
                .map(|title| format!("<item><title>{title}</title><link>https://a.com/status</link></item>"))
                .collect();
            feed_of(&format!("<rss>{items}</rss>"))
        };
        let (_, told) = told_of(WatchState::default(), [feed(&["begins"]), feed(&["ends", "begins"])]);
        let (told, found) = told.unwrap();
        assert!(
            told.ends_with("has 1 new entry") && found == "ends · https://a.com/status\n",
            "{told}: {found}"
        );
    }

    /// What version 0.1.0 of July 2026 has stored: keys of ids with the blanks around them, and of links.
    #[test]
    fn what_an_earlier_version_has_seen_is_not_new() {
        let key = |name: &str| crate::hex(&Sha256::digest(name)[..6]);
        let names = ["g1", "\n  g2\n  ", "https://a.com/3", "Four\n2026"];
        let stored = serde_json::json!({"seen": {
            Watch::Feed { url: "https://a.com/feed".to_owned() }.key(): {"entries": names.map(key)}
        }});
        let state: WatchState = serde_json::from_value(stored).unwrap();
        let feed = |more: &str| {
            feed_of(&format!(
                "<rss><item><guid>g1</guid></item><item><guid>\n  g2\n  </guid></item>{more}\
                 <item><title>Three</title><link>https://a.com/3</link></item><item><title>Four</title><pubDate>2026</pubDate></item></rss>"
            ))
        };
        let (state, told) = told_of(state, [feed("")]);
        assert_eq!(told, None);
        let (_, told) =
            told_of(state, [feed("<item><title>Other</title><link>https://a.com/3</link></item>")]);
        assert_eq!(told.unwrap().1, "Other · https://a.com/3\n");
    }

    #[test]
    fn a_long_feed_wakes_whichever_end_is_new_and_says_what_is_not_looked_at() {
        let feed = |ids: Vec<u32>, dated: bool| {
            let item = |id: &u32| {
                let date =
                    if dated { format!("<pubDate>{}-01-01</pubDate>", 1_000 + id) } else { String::new() };
                format!("<item><guid>{id}</guid><title>T{id}</title>{date}</item>")
            };
            feed_of(&format!("<rss>{}</rss>", ids.iter().map(item).collect::<String>()))
        };
        for dated in [true, false] {
            for is_reversed in [true, false] {
                let ids = |from: u32, to: u32| {
                    let ids: Vec<u32> = (from..=to).collect();
                    feed(if is_reversed { ids.into_iter().rev().collect() } else { ids }, dated)
                };
                let (state, first) = told_of(WatchState::default(), [ids(1, 450)]);
                let first = first.unwrap().0;
                let said =
                    if dated { "the 200 newest ones are" } else { "the first 100 and the last 100 are" };
                assert!(
                    first.ends_with(&format!("with 200 entries. Of its 450 entries, {said} looked at")),
                    "{first}"
                );
                // The oldest ones leave at the other end, so others take their places.
                let (state, same) = told_of(state, [ids(1, 450), ids(20, 450)]);
                assert_eq!(same, None, "{dated}, {is_reversed}");
                let (_, told) = told_of(state, [ids(25, 452)]);
                let (told, found) = told.unwrap();
                assert!(
                    told.starts_with("the feed https://a.com/feed has 2 new entries. Of its 428"),
                    "{told}"
                );
                assert!(found.contains("T451") && found.contains("T452"), "{found}");
            }
        }
    }

    #[test]
    fn an_entry_that_stays_in_the_feed_is_never_new_again() {
        let pinned_and =
            |ids: std::ops::Range<u32>| feed_look(&[0].into_iter().chain(ids).collect::<Vec<_>>());
        let looks = (1..30).map(|n| pinned_and(n * 150..n * 150 + 100));
        let (_, told) = told_of(WatchState::default(), looks);
        assert!(told.unwrap().0.ends_with("has 100 new entries"));
    }

    #[test]
    fn the_newest_entries_are_shown_and_each_once() {
        let item = |n: u32| {
            format!("<item><guid>{n}</guid><title>T{n}</title><pubDate>{}</pubDate></item>", 1_000 + n)
        };
        let items: String = (1..=50).map(item).chain([item(50)]).collect();
        let (_, told) = told_of(WatchState::default(), [feed_of(&format!("<rss>{items}</rss>"))]);
        let (told, found) = told.unwrap();
        assert!(told.ends_with("with 50 entries") && found.lines().count() == ENTRIES_SHOWN, "{told}");
        assert!(found.starts_with("1050 · T50\n1049 · T49\n"), "{found}");
    }

    /// Earlier versions read all pages as UTF-8, and JSON byte by byte.
    #[test]
    fn a_page_that_an_earlier_version_has_seen_has_not_changed() {
        let watch = page_watch();
        for (content_type, body, now, earlier) in [
            (
                "text/html; charset=windows-1251",
                &b"<p>\xcc\xe8\xf0</p>"[..],
                "Мир\n",
                "\u{fffd}\u{fffd}\u{fffd}\n",
            ),
            ("application/json", b"{\"b\": 1, \"a\": 2}", "{\"b\": 1, \"a\": 2}", "{\"b\": 1, \"a\": 2}"),
        ] {
            let print = crate::hex(&Sha256::digest(earlier));
            let stored = serde_json::json!({"seen": {watch.key(): {"print": print}}});
            let state: WatchState = serde_json::from_value(stored).unwrap();
            let page = page::read(content_type, body, None).unwrap();
            assert_eq!(page.shown, now);
            let look = Look::Page { page: page.clone(), etag: None, last_modified: None };
            let (state, changed) = state.decide(vec![(&watch, look)], run(1), NOW);
            assert!(!changed, "{content_type}");
            assert_eq!(state.seen[&watch.key()].print, page.sha256);
        }
    }

    #[test]
    fn what_is_no_longer_watched_is_forgotten() {
        let (a, b) = (page_watch(), Watch::Feed { url: "https://b.com".to_owned() });
        let (state, _) =
            WatchState::default().decide(vec![(&a, look("a")), (&b, feed_look(&[1]))], run(1), NOW);
        let state = state.settled(Heard::Yes { cost_micros: None });
        assert_eq!(state.seen.len(), 2);
        let (state, changed) = state.decide(vec![(&a, look("a"))], run(2), NOW);
        assert!(!changed);
        assert_eq!(state.seen.len(), 1);
    }

    #[test]
    fn the_state_fits_into_an_item() {
        let watches: Vec<Watch> =
            (0..super::super::MAX_WATCHES).map(|n| Watch::Feed { url: format!("https://{n}.com") }).collect();
        let mut state = WatchState::default();
        for n in 0..10_u32 {
            let ids: Vec<u32> = (n * 200..(n + 1) * 200).collect();
            let looks = watches.iter().map(|watch| (watch, feed_look(&ids))).collect();
            state = state.decide(looks, run(u128::from(n)), NOW).0;
            assert!(serde_json::to_vec(&state).unwrap().len() < 120 * 1024);
            state = state.settled(Heard::Yes { cost_micros: Some(i64::MAX) });
        }
    }

    proptest! {
        /// Whatever happens to the runs: each content that a look has found and that differs from what the last successful run
        /// was told is told to the next run.
        #[test]
        fn no_change_is_lost(steps in prop::collection::vec((0_u8..3, any::<bool>()), 1..40)) {
            let watch = page_watch();
            let (mut state, mut heard) = (WatchState::default(), None);
            for (n, (content, succeeds)) in steps.into_iter().enumerate() {
                let text = content.to_string();
                let (next, changed) = state.decide(vec![(&watch, look(&text))], run(n as u128), NOW);
                prop_assert_eq!(changed, heard != Some(content));
                if changed && succeeds {
                    heard = Some(content);
                }
                let cost_micros = Some(1);
                state = next.settled(if succeeds { Heard::Yes { cost_micros } } else { Heard::No { cost_micros } });
            }
        }
    }
}
