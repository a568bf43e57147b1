//! The context of every handler and flow: the store, the blobs, the models, the bus, the queues, the clock.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::clock::Clock;
use base::reach::{Fetch, FetchLimits};
use domain::agent_loop::{Call, CallId, Step};
use domain::ids::{AgentId, ChangeSetId, Owner, ProjectId, RunId};
use domain::models::routing::Ask;
use domain::models::{ModelTier, SystemBlock};
use domain::projects::turn::{Escalation, Helper, ThemeChanges, ThemeTurn};
use domain::runs::{EventKind, Run};
use domain::tools::ToolDef;
use futures::future::BoxFuture;
use jiff::Timestamp;
use models::{InvalidEndpoint, Models};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};

use crate::area::{AllRules, DataRules};
use crate::aws::Clients;
use crate::aws::bus::Bus;
use crate::aws::queues::Queues;
use crate::aws::signed::SignedCalls;
use crate::blobs::{BlobKey, Blobs};
use crate::config::Config;
use crate::error::Result;
use crate::process::compute::Compute;
use crate::process::deletions::Deletions;
use crate::process::due_queue::DueQueue;
use crate::process::followed::Followed;
use crate::process::held_places::Places;
use crate::process::kept::Kept;
use crate::process::keyed_locks::KeyedLocks;
use crate::process::live_runs::LiveRuns;
use crate::process::memories::MemoryCache;
use crate::process::used_up::UsedUp;
use crate::provider_keys::ProviderKeys;
use crate::store::Store;
use crate::store::table::Write;

/// The limits of a request for something that an action watches.
const WATCHED: FetchLimits = FetchLimits {
    bytes: 2 << 20,
    redirects: 5,
    connect: Duration::from_secs(5),
    total: Duration::from_secs(10),
};

/// The limits of a message to a channel. Nobody reads more of the answer than its status, so its length has no limit.
const NOTICE: FetchLimits = FetchLimits {
    bytes: 1 << 20,
    redirects: 0,
    connect: Duration::from_secs(5),
    total: domain::notices::channels::TIMEOUT.unsigned_abs(),
};

/// The limits of the call of an action. It is not sent on to where an answer redirects.
const CALL: FetchLimits = FetchLimits {
    bytes: domain::actions::http_call::MAX_ANSWER,
    redirects: 0,
    connect: Duration::from_secs(5),
    total: Duration::from_secs(15),
};

/// Whether the process is about to end. Then it releases its runs, and other processes continue them.
#[derive(Clone, Debug, Default)]
pub struct Stopping(Arc<AtomicBool>);

impl Stopping {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// An area that is a crate of its own above this one. A function names its areas in its declaration.
pub struct Area {
    pub data: &'static DataRules,
    /// The tools of the agent loop that it performs.
    pub tools: &'static [AreaTool],
    /// How it leads turns of its own.
    pub leads: Option<&'static AreaLead>,
}

/// How an area leads the turns that are its own: those with a [`ThemeTurn`]. All functions but `changed` are pure, so that a process
/// that takes a turn over goes on as the one before.
pub struct AreaLead {
    /// The stable part of the prompt.
    pub system: fn(&ThemeTurn) -> Vec<SystemBlock>,
    /// What a helper is told first.
    pub task: fn(&Helper) -> String,
    /// What holds after these steps.
    pub lead: fn(&ThemeTurn, &[Step]) -> Lead,
    /// Why a call may not be made after these steps, in words for the model.
    pub refusal: fn(&ThemeTurn, &[Step], &Call) -> Option<String>,
    /// Whether these steps have edited, also by helpers.
    pub has_edited: fn(&[Step]) -> bool,
    /// How many calls that give work to helpers begin with the one at this place of the last reply, and whether it is their first.
    pub begins: fn(&[Step], usize) -> (usize, bool),
    /// The files that these steps have edited themselves.
    pub edited: fn(&[Step]) -> Vec<String>,
    /// What a run has changed in the theme of this project. `None`: nothing.
    pub changed: fn(Cx, Owner, ChangedBy) -> Changed,
}

/// A run that may have changed a theme.
#[derive(Clone, Copy, Debug)]
pub struct ChangedBy {
    pub run: RunId,
    pub project: ProjectId,
    /// The change set that its turn was planned with.
    pub planned: Option<ChangeSetId>,
}

/// What a run has changed: the data of its event, and what its record has.
pub type Changed = BoxFuture<'static, Result<Option<(Value, ThemeChanges)>>>;

/// What holds for a turn at its present size.
#[derive(Clone, Debug, PartialEq)]
pub struct Lead {
    /// Each time it became larger than it was planned, oldest first.
    pub escalations: Vec<Escalation>,
    /// How often the model may be called.
    pub steps: usize,
    /// The most tokens of a reply.
    pub reply_tokens: u32,
    /// Which models it asks for.
    pub ask: Ask,
    /// How much the models think.
    pub tier: ModelTier,
    /// What the model is told if it stops now.
    pub nudge: Option<&'static str>,
}

/// The areas that a function knows.
pub type Areas = &'static [&'static Area];

/// A tool of the agent loop that an area performs.
pub struct AreaTool {
    pub def: &'static ToolDef,
    /// It writes nothing that a repeated call would write twice: the loop stores the writes that it names, together with the result.
    pub perform: fn(AreaCall) -> BoxFuture<'static, Result<AreaAnswer>>,
}

/// A call of a tool of an area.
pub struct AreaCall {
    pub cx: Cx,
    pub owner: Owner,
    /// The project that the agent works on.
    pub project: ProjectId,
    pub run: RunId,
    pub agent: Option<AgentId>,
    /// Where the edits of the run collect, if it is not a change set of its own.
    pub change_set: Option<ChangeSetId>,
    pub input: Value,
    /// For a tool that gives work to helpers.
    pub helpers: Option<Box<ForHelpers>>,
}

/// What a call that gives work to helpers needs of its run.
pub struct ForHelpers {
    pub run: Run,
    pub turn: ThemeTurn,
    /// The call, and those after it in the same reply that begin with it.
    pub calls: Vec<(CallId, Call)>,
    /// Whether it is the first of those that begin together. Otherwise they have begun with the first.
    pub is_first: bool,
    /// The most that the run may cost, in micro-dollars.
    pub ceiling_micros: i64,
    /// When the turn must be done.
    pub until: Timestamp,
    /// When this process must put the run down.
    pub deadline: Timestamp,
    /// Tells the followers of the run something before the call has ended.
    pub tell: mpsc::UnboundedSender<(EventKind, Value)>,
}

/// What a call of a tool has done.
pub struct AreaAnswer {
    /// The text for the model, or why nothing was done.
    pub told: std::result::Result<String, String>,
    /// What is stored with the result.
    pub writes: Vec<Write>,
    pub objects: StagedObjects,
    /// Told to followers together with the result.
    pub events: Vec<(EventKind, Value)>,
    /// What helpers have cost for it.
    pub helpers_micros: i64,
}

impl AreaAnswer {
    /// An answer that nothing is stored with.
    #[must_use]
    pub fn only(told: std::result::Result<String, String>) -> Self {
        let objects = StagedObjects::default();
        Self { told, writes: Vec::new(), objects, events: Vec::new(), helpers_micros: 0 }
    }
}

/// Objects of the bucket around writes that are not stored yet.
#[derive(Debug, Default)]
pub struct StagedObjects {
    /// Those that the writes name. They are deleted if the writes are refused.
    pub made: Vec<BlobKey>,
    /// Those that nothing names once the writes are stored. They are deleted then.
    pub replaced: Vec<BlobKey>,
}

impl StagedObjects {
    /// Deletes what is not needed. If that fails, the objects are deleted by their expiry.
    pub async fn settle(self, cx: &Cx, is_stored: bool) {
        for key in if is_stored { self.replaced } else { self.made } {
            if let Err(error) = cx.blobs.delete(&key).await {
                tracing::warn!(%error, "an object that nothing names was not deleted");
            }
        }
    }
}

/// The context of a process; cheap to clone. Each layer of each route has one.
#[derive(Clone)]
pub struct Cx(Arc<CxParts>);

/// What people have stored, and the time. This is all that a kind of run gets: it can read, and it can name writes, but it calls no
/// model, sends no event and starts no run.
#[derive(Clone)]
pub struct Data {
    pub clock: Clock,
    pub store: Store,
    pub blobs: Blobs,
}

/// What a [`Cx`] consists of.
#[derive(Clone)]
pub struct CxParts {
    pub data: Data,
    pub config: Arc<Config>,
    pub bus: Bus,
    pub due_queue: DueQueue,
    pub queues: Queues,
    pub models: Models,
    /// The keys of model providers that owners have stored.
    pub provider_keys: ProviderKeys,
    pub live: LiveRuns,
    pub stopping: Stopping,
    /// The places that this invocation of an executor holds for the owners of its runs.
    pub places: Places,
    /// Locks for writers of this process that change the same item.
    pub locks: KeyedLocks,
    /// What the areas above this crate keep in memory.
    pub kept: Kept,
    /// The areas above this crate.
    pub areas: Areas,
    pub memories: MemoryCache,
    /// The rate limits that this process knows to be used up.
    pub used_up: UsedUp,
    /// The deletions of accounts that this process knows.
    pub deletions: Deletions,
    /// The owners whom the watchdog is known to look at.
    pub followed: Followed,
    /// For CPU-bound work.
    pub compute: Compute,
    /// Allows one import of an archive of logs at a time.
    pub imports: Arc<Semaphore>,
    fetch: Arc<OnceLock<Fetch>>,
    notifier: Arc<OnceLock<Fetch>>,
    caller: Arc<OnceLock<Fetch>>,
    /// Calls of services without an SDK.
    pub signed: Arc<SignedCalls>,
}

impl Cx {
    /// How the area of themes leads its turns, if this function knows that area.
    #[must_use]
    pub fn leads(&self) -> Option<&'static AreaLead> {
        self.areas.iter().find_map(|area| area.leads)
    }

    /// A context with the configured models.
    ///
    /// # Errors
    /// If the address of a model is invalid.
    pub fn new(config: Config, clock: Clock) -> std::result::Result<Self, InvalidEndpoint> {
        let models = Models::from_config(&config.models)?;
        Ok(Self::with_models(config, clock, models))
    }

    /// Builds the clients; no I/O happens here.
    #[must_use]
    pub fn with_models(config: Config, clock: Clock, models: Models) -> Self {
        let clients = Clients::new(&config.aws);
        let blobs = Blobs::new(clients.s3, config.aws.bucket.clone());
        let store = Store::new(clients.dynamodb, config.aws.table.clone());
        Self(Arc::new(CxParts {
            provider_keys: ProviderKeys::new(&config, store.clone(), clock.clone()),
            data: Data { clock, store, blobs },
            bus: Bus::new(clients.eventbridge, config.aws.bus.clone()),
            due_queue: DueQueue::new(clients.sqs.clone(), config.aws.queue.clone()),
            queues: Queues::new(clients.sqs),
            models,
            live: LiveRuns::default(),
            stopping: Stopping::default(),
            places: Places::default(),
            locks: KeyedLocks::default(),
            kept: Kept::default(),
            areas: &[],
            memories: MemoryCache::default(),
            used_up: UsedUp::default(),
            deletions: Deletions::default(),
            followed: Followed::default(),
            compute: Compute::default(),
            imports: Arc::new(Semaphore::new(1)),
            fetch: Arc::default(),
            notifier: Arc::default(),
            caller: Arc::default(),
            signed: Arc::new(SignedCalls::new(&config.aws)),
            config: Arc::new(config),
        }))
    }

    /// Fetches what actions watch. Most processes never need it, so the first use builds it.
    #[must_use]
    pub fn fetch(&self) -> &Fetch {
        self.fetch.get_or_init(|| Fetch::new(self.config.reach.policy.clone(), WATCHED))
    }

    /// Sends messages to the channels of people. A message is not sent on to where an answer redirects: only the receiver that the
    /// person has named gets it.
    #[must_use]
    pub fn notifier(&self) -> &Fetch {
        self.notifier.get_or_init(|| Fetch::new(self.config.reach.policy.clone(), NOTICE))
    }

    /// Sends the calls of actions that ask no model.
    #[must_use]
    pub fn caller(&self) -> &Fetch {
        self.caller.get_or_init(|| Fetch::new(self.config.reach.policy.clone(), CALL))
    }

    /// What the areas know about their data.
    #[must_use]
    pub fn data_rules(&self) -> AllRules {
        self.areas.iter().map(|area| area.data).collect()
    }

    /// The same context for one short piece of work; see [`Store::remembering`].
    #[must_use]
    pub fn remembering(&self) -> Self {
        self.with(|parts| parts.data.store = parts.data.store.remembering())
    }

    /// The same context for work that goes on after its caller has ended: it reads the table itself, and keeps no place alive.
    #[must_use]
    pub fn detached(&self) -> Self {
        self.with(|parts| {
            parts.data.store = parts.data.store.direct();
            parts.places = Places::default();
        })
    }

    /// A context that differs in some parts.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut CxParts)) -> Self {
        let mut parts = CxParts::clone(self);
        change(&mut parts);
        Self(Arc::new(parts))
    }
}

impl Deref for Cx {
    type Target = CxParts;

    fn deref(&self) -> &CxParts {
        &self.0
    }
}

impl Deref for CxParts {
    type Target = Data;

    fn deref(&self) -> &Data {
        &self.data
    }
}

impl DerefMut for CxParts {
    fn deref_mut(&mut self) -> &mut Data {
        &mut self.data
    }
}
