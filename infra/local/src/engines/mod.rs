//! What stands in for AWS on one machine: a table, a bucket, a bus and queues, on loopback ports.
//!
//! The platform talks to them through the AWS SDKs, as it talks to AWS; nothing in it knows of this module.

pub mod data_dir;
mod digest;
mod dynamo;
mod events;
pub mod faults;
pub mod queue;
mod s3;
mod served;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use tokio::task::JoinSet;

use data_dir::{DataDir, DataDirError};
use dynamo::Dynamo;
use faults::{FaultConfig, Faults};
use queue::{DeadLetterError, Queue, QueueConfig};
use served::Served;

pub use dynamo::DynamoError;
pub use s3::{ObjectCreated, Upload, Uploads};

pub const REGION: &str = "us-east-1";
pub const ACCOUNT: &str = "000000000000";
/// The engines listen on loopback only, so the pair guards against mistakes and not against people.
pub const ACCESS_KEY: &str = "lamplighter";
pub const SECRET_KEY: &str = "lamplighter-local-secret";

/// How often objects are deleted that have expired. AWS does it once a day.
const EXPIRE_EVERY: Duration = Duration::from_secs(3600);

/// Where the data lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataLocation {
    /// Survives the end of the process, however it ends.
    Folder(PathBuf),
    /// Gone with the engines: the table is in memory, the bucket in a temporary folder.
    Memory,
}

/// Which events go into which queue.
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
    /// Whether items are deleted when their `ttl` has passed, and objects a month after they were tagged for it, by the
    /// machine's clock. A simulation has its own.
    pub expiry: bool,
    /// Puts what goes wrong on AWS between the platform and the table and bucket.
    pub faults: Option<FaultConfig>,
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
    DeadLetters(#[from] DeadLetterError),
    #[error("start the engines: a rule names the queue {0}, which is not configured")]
    UnknownQueue(String),
    #[error("serve the {engine} on a loopback port: {source}")]
    Serve { engine: &'static str, source: io::Error },
    #[error("make a temporary folder: {0}")]
    Temporary(io::Error),
}

/// The running engines. [`Engines::shutdown`] stops them; so does dropping them, less gently.
#[derive(Debug)]
pub struct Engines {
    dynamo: Dynamo,
    bucket: s3::Bucket,
    s3: Served,
    events: Served,
    faulty: Option<Faulty>,
    queues: HashMap<String, Queue>,
    /// Dropped, it ends.
    _expiry: JoinSet<()>,
    /// Declared last: the folder is let go when nothing uses it any more.
    _place: Place,
}

/// The proxies before the table and the bucket.
#[derive(Debug)]
struct Faulty {
    faults: Faults,
    dynamo: Served,
    s3: Served,
}

/// Keeps the folder ours.
#[derive(Debug)]
enum Place {
    Kept(DataDir),
    Temporary(tempfile::TempDir),
}

impl Place {
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

impl Engines {
    /// Starts everything; when this returns, every engine answers.
    pub async fn start(config: EnginesConfig) -> Result<Self, EngineError> {
        let serve = |engine| move |source| EngineError::Serve { engine, source };
        let place = Place::open(&config.data)?;
        let kept = matches!(place, Place::Kept(_));

        let table_file = place.path().join("table.sqlite");
        let dynamo = Dynamo::start(kept.then_some(table_file.as_path()), &config.table, config.expiry)?;

        let bucket = s3::Bucket::open(&place.path().join("bucket"), &config.bucket, kept)
            .map_err(|source| EngineError::Bucket { bucket: config.bucket.clone(), source })?;
        let s3 = Served::start(TowerToHyperService::new(bucket.router(ACCESS_KEY, SECRET_KEY)))
            .await
            .map_err(serve("bucket"))?;

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
        let events = Served::start(TowerToHyperService::new(events::router(config.bus, rules)))
            .await
            .map_err(serve("bus"))?;

        let faulty = match &config.faults {
            Some(faults) => {
                Some(Faulty::start(faults, dynamo.address(), s3.address).await.map_err(serve("faults"))?)
            }
            None => None,
        };
        let mut expiry = JoinSet::new();
        if config.expiry {
            let bucket = bucket.clone();
            expiry.spawn(regularly(EXPIRE_EVERY, "objects", move || {
                let bucket = bucket.clone();
                async move { bucket.expire(Timestamp::now()).await }
            }));
        }
        Ok(Self { dynamo, bucket, s3, events, faulty, queues, _expiry: expiry, _place: place })
    }

    /// For `AWS_ENDPOINT_URL_DYNAMODB`.
    pub fn dynamo_url(&self) -> String {
        url(self.faulty.as_ref().map_or(self.dynamo.address(), |faulty| faulty.dynamo.address))
    }

    /// For `AWS_ENDPOINT_URL_S3`; clients must address the bucket by path.
    pub fn s3_url(&self) -> String {
        url(self.faulty.as_ref().map_or(self.s3.address, |faulty| faulty.s3.address))
    }

    /// For `AWS_ENDPOINT_URL_EVENTBRIDGE`.
    pub fn events_url(&self) -> String {
        url(self.events.address)
    }

    /// One of the configured queues.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.get(name)
    }

    /// The events of uploads, beginning with those that were never acknowledged. One subscriber at a time.
    pub fn uploads(&self) -> io::Result<Uploads> {
        self.bucket.subscribe()
    }

    /// The faults before the table and the bucket, if they were asked for.
    pub fn faults(&self) -> Option<&Faults> {
        self.faulty.as_ref().map(|faulty| &faulty.faults)
    }

    /// Deletes the items whose `ttl` has passed now, instead of within the minute; answers how many.
    pub async fn sweep_expired(&self) -> Result<usize, DynamoError> {
        self.dynamo.sweep_expired().await
    }

    /// Deletes the objects that will have expired by `now`, instead of within the hour; answers how many.
    pub async fn expire_objects(&self, now: Timestamp) -> io::Result<usize> {
        self.bucket.expire(now).await
    }

    /// Stops serving, closes the files and lets the data folder go.
    pub async fn shutdown(self) {
        let Self { dynamo, s3, events, faulty, _expiry: expiry, _place: place, .. } = self;
        drop(expiry);
        if let Some(Faulty { dynamo, s3, .. }) = faulty {
            dynamo.stop().await;
            s3.stop().await;
        }
        s3.stop().await;
        events.stop().await;
        dynamo.stop().await;
        if let Err(error) = tokio::task::spawn_blocking(|| drop(place)).await {
            tracing::error!(%error, "failed to let the data folder go");
        }
    }
}

/// Deletes what has expired, at once and then every so often, for as long as it is polled.
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
            Ok(deleted) => tracing::debug!(what, deleted, "deleted what has expired"),
            Err(error) => tracing::warn!(what, %error, "failed to delete what has expired"),
        }
    }
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

impl Faulty {
    async fn start(config: &FaultConfig, dynamo: SocketAddr, s3: SocketAddr) -> io::Result<Self> {
        let faults = Faults::new(config);
        let dynamo = Served::start(faults::proxy(faults::Engine::Table, dynamo, faults.clone())).await?;
        let s3 = Served::start(faults::proxy(faults::Engine::Bucket, s3, faults.clone())).await?;
        Ok(Self { faults, dynamo, s3 })
    }
}
