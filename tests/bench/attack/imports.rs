//! Hostile archives: an owner for each of them imports it into an account of a running server. Each must be refused, with the
//! place in the archive, and nothing of it may be stored. Then an archive with the highest values that are accepted is
//! imported, and every route over it is called: none may answer with a server error.

use base::clock::{Clock, ManualClock};
use domain::ids::Owner;
use futures::StreamExt;
use lamplighter_local::platform::PlatformConfig;
use shared::config::AuthConfig;
use tests::Harness;
use tests::archives::{self, Hostile};
use tests::golden::Golden;
use tests::things::Caller;

const DATA: &str = include_str!("../../golden/data.json");

/// How many archives are imported at once.
const AT_ONCE: usize = 4;

/// The fewest archives that are tried.
const LEAST: usize = 60;

pub async fn attack(seed: u64) -> Vec<String> {
    let golden: Golden = serde_json::from_str(DATA).unwrap();
    let clock = || Clock::Manual(ManualClock::at(golden.written_at));
    // A platform with a record of each kind.
    let config = PlatformConfig { clock: clock(), automatic: false, ..PlatformConfig::in_memory() };
    let source = Harness::with(config).await;
    golden.open(&source.platform.cx).await;
    let files = archives::exported(&source.platform.cx, &Owner::new("local").unwrap()).await;

    let config = PlatformConfig { auth: AuthConfig::On(None), clock: clock(), ..PlatformConfig::in_memory() };
    let h = Harness::with(config).await;
    let hostile = archives::hostile(&files);
    let mut wrong: Vec<String> = futures::stream::iter(hostile.iter().enumerate())
        .map(|(n, archive)| try_one(&h, n, archive))
        .buffer_unordered(AT_ONCE)
        .filter_map(std::future::ready)
        .collect()
        .await;
    if hostile.len() < LEAST {
        wrong.push(format!("only {} archives, {LEAST} are wanted", hostile.len()));
    }

    let (me, key) = (Owner::new("highest").unwrap(), h.key_of("highest").await);
    let caller = Caller { h: &h, key: Some(&key) };
    let files = archives::at_the_limits(&files);
    let import = archives::imported(&caller, &me, &archives::zip(&files)).await;
    if import["state"] != "done" {
        wrong.push(format!("the highest values are refused: {}", import["error"]));
    }
    let reads: Vec<String> = golden.reads.into_iter().map(|read| read.path).collect();
    let (calls, failed) = archives::call_everything(&caller, &reads, &archives::ids(&files), seed).await;
    wrong.extend(failed);
    println!("{} hostile archives; {calls} calls over the highest values", hostile.len());
    wrong
}

/// What is wrong after the import of one archive.
async fn try_one(h: &Harness, n: usize, archive: &Hostile) -> Option<String> {
    let name = format!("attacker-{n}");
    let (me, key) = (Owner::new(name.as_str()).unwrap(), h.key_of(&name).await);
    let import = archives::imported(&Caller { h, key: Some(&key) }, &me, &archive.zip).await;
    let error = import["error"].as_str().unwrap_or_default();
    let stored = archives::stored(&h.platform.cx, &me).await;
    let is_well = import["state"] == "failed"
        && archive.told.iter().all(|told| error.contains(told))
        && stored.is_empty();
    (!is_well).then(|| format!("{}: {} {error:?}; stored: {stored:?}", archive.name, import["state"]))
}
