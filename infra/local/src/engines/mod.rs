//! Replacements for AWS on one machine: a table, a bucket, a bus and queues, in one process.
//!
//! The platform uses them through the AWS SDKs, as it uses AWS, and does not know this module. The calls of the SDK stay inside
//! the process ([`Engines::http_client`]), so there is no port that others could call. Only the bucket can be reached from
//! outside, with presigned addresses, through the server's port (`Engines::bucket`).

mod compact;
pub mod data_dir;
mod digest;
mod dynamo;
mod eraser;
mod events;
pub mod faults;
mod identity;
mod master_key;
pub(crate) mod ports;
pub mod queue;
mod reserve;
mod s3;
mod sqs;
pub mod storage;
mod transport;
mod wal;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use jiff::Timestamp;
use rand::Rng;
use secrecy::SecretSlice;
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use data_dir::{DataDir, DataDirError};
use dynamo::Dynamo;
use faults::{FaultConfig, Faults};
use identity::IdentityError;
use master_key::MasterKeyError;
use ports::Ports;
use queue::{DeadLetterError, Queue, QueueConfig};
use reserve::Reserve;
use shared::config::Eraser;
use storage::Storage;
use transport::Transport;
use wal::LeftOut;

use crate::handler::{Handler, Hangup};
use crate::served::STOP_GRACE;

pub use dynamo::DynamoError;
pub use s3::{ObjectCreated, Upload, Uploads};

pub const REGION: &str = "us-east-1";
pub const ACCOUNT: &str = "000000000000";
/// The endpoints of the table, the bus and the queues inside this process.
pub const TABLE_URL: &str = "http://table.invalid";
pub const BUS_URL: &str = "http://bus.invalid";
pub const QUEUES_URL: &str = "http://queues.invalid";

/// The queue with the dead letters of all queues.
pub const DEAD_LETTERS: &str = "arn:aws:sqs:us-east-1:000000000000:dead-letters";

/// How often items whose `ttl` has passed are deleted. AWS promises "within a few days".
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// How often expired objects are deleted. AWS does it once a day.
const EXPIRE_EVERY: Duration = Duration::from_secs(3600);

/// Where the data is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataLocation {
    /// The data survives every end of the process, even a kill.
    Folder(PathBuf),
    /// The data is lost with the engines: the table is in memory, the bucket in a temporary folder.
    Memory,
}

/// Which events are delivered to which queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleConfig {
    /// `None` matches every source.
    pub source: Option<String>,
    /// An empty list matches every detail type.
    pub detail_types: Vec<String>,
    /// The name of one of the queues.
    pub queue: String,
}

#[derive(Debug, Clone)]
pub struct EnginesConfig {
    pub data: DataLocation,
    pub table: String,
    pub bucket: String,
    pub bus: String,
    pub queues: Vec<QueueConfig>,
    pub rules: Vec<RuleConfig>,
    /// Whether items are deleted when their `ttl` has passed, and objects a month after they got the tag for it. The
    /// machine's clock decides; a simulation has its own clock.
    pub expiry: bool,
    /// Adds faults of AWS between the platform and the table and bucket.
    pub faults: Option<FaultConfig>,
    /// Opens a loopback port for each engine, for separate programs. Only tests do this.
    pub ports: bool,
}

/// The keys that sign requests to the engines. They are made at each start, and only this process knows them.
#[derive(Clone)]
pub struct Keys {
    pub access_key_id: String,
    pub secret_access_key: String,
}

impl Keys {
    fn random() -> Self {
        let mut rng = rand::rng();
        let mut hex = |bytes: usize| domain::hex(&(0..bytes).map(|_| rng.random()).collect::<Vec<u8>>());
        Self { access_key_id: format!("LOCAL{}", hex(8)), secret_access_key: hex(32) }
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

/// Why the engines did not start. Messages are one line and follow "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Dynamo(#[from] DynamoError),
    #[error("open the bucket {bucket}: {source}")]
    Bucket { bucket: String, source: io::Error },
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    MasterKey(#[from] MasterKeyError),
    #[error("watch the data folder: {0}")]
    Watch(io::Error),
    #[error(transparent)]
    DeadLetters(#[from] DeadLetterError),
    #[error("start the engines: a rule names the queue {0}, which is not configured")]
    UnknownQueue(String),
    #[error("serve the engines on loopback ports: {0}")]
    Serve(io::Error),
    #[error("make a temporary folder: {0}")]
    Temporary(io::Error),
}

/// The running engines. [`Engines::shutdown`] stops them gently; dropping them stops them at once.
#[derive(Debug)]
pub struct Engines {
    dynamo: Dynamo,
    bucket: s3::Bucket,
    transport: Transport,
    /// Every call holds it while it is being answered. `true` once no more calls are answered.
    closed: Arc<RwLock<bool>>,
    keys: Keys,
    master_key: SecretSlice<u8>,
    storage: Storage,
    ports: Option<Ports>,
    faults: Option<Faults>,
    queues: HashMap<String, Queue>,
    /// The task ends when this is dropped.
    _expiry: JoinSet<()>,
    /// Declared last, so that the folder is released when nothing uses it any more.
    _place: Folder,
}

/// Holds the data folder.
#[derive(Debug)]
enum Folder {
    Kept(DataDir),
    Temporary(tempfile::TempDir),
}

impl Folder {
    fn open(location: &DataLocation) -> Result<Self, EngineError> {
        match location {
            DataLocation::Folder(path) => Ok(Self::Kept(DataDir::open(path)?)),
            DataLocation::Memory => tempfile::Builder::new()
                .prefix("lamplighter-")
                .tempdir()
                .map(Self::Temporary)
                .map_err(EngineError::Temporary),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(folder) => folder.path(),
            Self::Temporary(folder) => folder.path(),
        }
    }
}

/// Says that the log of the table ends within a write or was changed, before SQLite opens it and removes that end.
fn report_left_out(table: &Path) {
    match wal::left_out(table) {
        Ok(None) => {}
        Ok(Some(LeftOut::Cut(bytes))) => tracing::warn!(
            bytes,
            "the log of the table ends within a write, which is left out; if the machine or the process was stopped, nobody was told that \
             this write is stored; if the file was cut or copied while the platform ran, later writes are missing, too"
        ),
        Ok(Some(LeftOut::Changed(bytes))) => tracing::error!(
            bytes,
            "the log of the table does not match its checksums from some place on, and all writes from there on are left out; if the power \
             failed, these are writes that nobody was told of; otherwise the disk or another program has changed the file: stop the \
             server and restore the data folder from a backup, as a whole"
        ),
        Err(error) => tracing::warn!(%error, "the log of the table can't be read before it is opened"),
    }
}

impl Engines {
    /// Starts all engines. When this returns, every engine answers.
    pub async fn start(config: EnginesConfig) -> Result<Self, EngineError> {
        let place = Folder::open(&config.data)?;
        let kept = matches!(place, Folder::Kept(_));
        // First, because SQLite needs some room to open the table.
        let reserve = kept.then(|| Reserve::open(place.path()));

        let table_file = place.path().join("table.sqlite");
        if kept {
            report_left_out(&table_file);
        }
        let dynamo = Dynamo::start(kept.then_some(table_file.as_path()), &config.table)?;

        let bucket = s3::Bucket::open(&place.path().join("bucket"), &config.bucket, kept)
            .map_err(|source| EngineError::Bucket { bucket: config.bucket.clone(), source })?;
        let keys = Keys::random();
        let mut storage = Storage::default();
        if let Some(reserve) = reserve {
            identity::agree(place.path(), &dynamo, !bucket.is_empty())?;
            let watched = [data_dir::LOCK_FILE, "table.sqlite", "bucket/objects"];
            storage = Storage::watch(place.path(), &watched, reserve).map_err(EngineError::Watch)?;
            dynamo.watch(storage.clone());
        }

        let master_key = master_key::open(place.path())?.into();

        let dead_letters = place.path().join("dead-letters");
        std::fs::create_dir_all(&dead_letters)
            .map_err(|source| DeadLetterError::File { path: dead_letters.clone(), source })?;
        let mut queues = HashMap::new();
        for queue in config.queues {
            queues.insert(queue.name.clone(), Queue::open(queue, &dead_letters)?);
        }

        let mut rules = Vec::new();
        for RuleConfig { source, detail_types, queue } in config.rules {
            let queue = queues.get(&queue).ok_or(EngineError::UnknownQueue(queue))?.clone();
            rules.push(events::Rule { source, detail_types, queue });
        }
        let faults = config.faults.as_ref().map(Faults::new);
        let closed = Arc::new(RwLock::new(false));
        let mut transport = Transport {
            table: dynamo.handler(),
            bus: events::router(config.bus, rules).into(),
            queues: sqs::router(queues.clone()).into(),
            bucket: storage::watched(bucket.router(&keys).into(), storage.clone()),
        };
        if let Some(faults) = &faults {
            transport.table = faults::proxy(faults::Engine::Table, transport.table, faults.clone());
            transport.bucket = faults::proxy(faults::Engine::Bucket, transport.bucket, faults.clone());
        }
        let Transport { table, bus, queues: sqs, bucket: files } = &mut transport;
        for handler in [table, bus, sqs, files] {
            *handler = until_closed(handler.clone(), closed.clone());
        }
        let ports = match config.ports {
            true => Some(Ports::open(&transport, &keys).await.map_err(EngineError::Serve)?),
            false => None,
        };
        let mut expiry = JoinSet::new();
        if config.expiry {
            let bucket = bucket.clone();
            expiry.spawn(regularly(EXPIRE_EVERY, "objects", move || {
                let bucket = bucket.clone();
                async move { bucket.expire(Timestamp::now()).await }
            }));
            let table = dynamo.table();
            expiry.spawn(regularly(SWEEP_EVERY, "items", move || {
                let table = table.clone();
                async move { table.sweep_expired().await }
            }));
        }
        Ok(Self {
            dynamo,
            bucket,
            transport,
            closed,
            keys,
            master_key,
            storage,
            ports,
            faults,
            queues,
            _expiry: expiry,
            _place: place,
        })
    }

    /// The HTTP client with which the SDK reaches the engines inside this process: the table at [`TABLE_URL`], the bus
    /// at [`BUS_URL`], the queues at [`QUEUES_URL`], and the bucket at every other address.
    pub fn http_client(&self) -> SharedHttpClient {
        self.transport.client()
    }

    /// The health of the storage.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The keys that sign requests.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The key that encrypts stored provider keys.
    pub(crate) fn master_key(&self) -> SecretSlice<u8> {
        self.master_key.clone()
    }

    /// Erases deleted data from the files.
    pub fn eraser(&self) -> Arc<dyn Eraser> {
        Arc::new(eraser::Files { table: self.dynamo.table(), bucket: self.bucket.clone() })
    }

    /// The bucket, for signed requests and presigned addresses from outside.
    pub(crate) fn bucket(&self) -> Handler {
        self.transport.bucket.clone()
    }

    /// For `AWS_ENDPOINT_URL_DYNAMODB` of another program, if there are ports.
    pub fn dynamo_url(&self) -> Option<String> {
        self.ports.as_ref().map(|ports| ports::url(ports.table.address))
    }

    /// For `AWS_ENDPOINT_URL_S3` of another program, if there are ports. Clients must use path-style addresses.
    pub fn s3_url(&self) -> Option<String> {
        self.ports.as_ref().map(|ports| ports::url(ports.bucket.address))
    }

    /// For `AWS_ENDPOINT_URL_EVENTBRIDGE` of another program, if there are ports.
    pub fn events_url(&self) -> Option<String> {
        self.ports.as_ref().map(|ports| ports::url(ports.bus.address))
    }

    /// For `AWS_ENDPOINT_URL_SQS` of another program, if there are ports.
    pub fn sqs_url(&self) -> Option<String> {
        self.ports.as_ref().map(|ports| ports::url(ports.queues.address))
    }

    /// One of the configured queues.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.get(name)
    }

    /// The events of uploads, beginning with the unacknowledged ones. Only one subscriber at a time.
    pub fn uploads(&self) -> io::Result<Uploads> {
        self.bucket.subscribe()
    }

    /// The faults of the table and the bucket, if they were configured.
    pub fn faults(&self) -> Option<&Faults> {
        self.faults.as_ref()
    }

    /// Deletes the items whose `ttl` has passed now, instead of within a minute. Returns their number.
    pub async fn sweep_expired(&self) -> Result<usize, DynamoError> {
        self.dynamo.table().sweep_expired().await
    }

    /// Deletes the objects that have expired by `now`, instead of within an hour. Returns their number.
    pub async fn expire_objects(&self, now: Timestamp) -> io::Result<usize> {
        self.bucket.expire(now).await
    }

    /// Stops serving, closes the files and releases the data folder.
    pub async fn shutdown(self) {
        let Self { dynamo, bucket, transport, closed, ports, _expiry: expiry, _place: place, .. } = self;
        drop(expiry);
        if let Some(ports) = ports {
            ports.stop().await;
        }
        if let Ok(mut closed) = tokio::time::timeout(STOP_GRACE, closed.write()).await {
            *closed = true;
        }
        drop((bucket, transport));
        dynamo.stop().await;
        if let Err(error) = tokio::task::spawn_blocking(|| drop(place)).await {
            tracing::error!(%error, "failed to release the data folder");
        }
    }
}

/// Calls `delete` at once and then at each interval, for as long as it is polled.
async fn regularly<F, E>(every: Duration, what: &str, delete: impl Fn() -> F)
where
    F: Future<Output = Result<usize, E>>,
    E: std::fmt::Display,
{
    let mut timer = tokio::time::interval(every);
    loop {
        timer.tick().await;
        match delete().await {
            Ok(0) => {}
            Ok(deleted) => tracing::debug!(what, deleted, "deleted expired entries"),
            Err(error) => tracing::warn!(what, %error, "failed to delete expired entries"),
        }
    }
}

/// Answers until the engines stop. Stopping waits for the calls in progress.
fn until_closed(handler: Handler, closed: Arc<RwLock<bool>>) -> Handler {
    Handler::new(move |request| {
        let (handler, closed) = (handler.clone(), closed.clone());
        async move {
            let open = closed.read_owned().await;
            if *open { Err(Hangup) } else { handler.call(request).await }
        }
    })
}
