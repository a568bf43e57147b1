//! DynamoDB: dynoxide (SQLite underneath) on an ephemeral loopback port. With a file it has a thread of its own, because
//! SQLite waits for the disk on the worker that serves the request. In memory there is nothing to wait for, and whoever
//! asks is spared a change of threads, which may take longer than the answer.
//!
//! What differs from AWS and matters here: signatures are not verified, indexes are consistent at once,
//! and nothing is ever throttled or in conflict, which [`super::faults`] makes up for.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use dynoxide::errors::DynoxideError;
use dynoxide::{Database, server};
use serde_json::json;
use tokio::sync::oneshot;

use super::regularly;
use super::served::STOP_GRACE;

/// How often items whose `ttl` has passed are deleted. AWS promises "within a few days".
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Why the table engine did not start. Messages follow "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum DynamoError {
    #[error("open the table's file {path}: {source}")]
    Open { path: String, source: DynoxideError },
    #[error("prepare the table {table}: {source}")]
    Table { table: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("delete expired items: {0}")]
    Sweep(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("serve the table on a loopback port: {0}")]
    Serve(#[from] std::io::Error),
}

/// A running table engine. Dropping it stops it.
pub struct Dynamo {
    address: SocketAddr,
    /// `None` once stopped: the file is closed when the last handle is gone.
    db: Option<Database>,
    stop: Option<oneshot::Sender<()>>,
    server: Option<Server>,
}

enum Server {
    Thread(thread::JoinHandle<()>),
    Task(tokio::task::JoinHandle<()>),
}

impl Dynamo {
    /// Opens the file (`None`: memory), creates the table if it is absent, and serves it; with `expiry` it deletes what has
    /// expired.
    ///
    /// # Panics
    /// For a table in memory outside of a runtime.
    pub fn start(file: Option<&Path>, table: &str, expiry: bool) -> Result<Self, DynamoError> {
        let db = match file {
            Some(file) => Database::new(&file.to_string_lossy()),
            None => Database::memory(),
        }
        .map_err(|source| DynamoError::Open {
            path: file.map_or_else(|| "in memory".to_owned(), |file| file.display().to_string()),
            source,
        })?;
        prepare(&db, table).map_err(|source| DynamoError::Table { table: table.to_owned(), source })?;

        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let served = serve(listener, db.clone(), expiry, stopped);
        let server = if file.is_none() {
            Server::Task(tokio::spawn(served))
        } else {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            Server::Thread(thread::Builder::new().name("dynamo".into()).spawn(move || {
                runtime.block_on(served);
                // Cuts the connections that are left, and with them the last handles of the database.
                runtime.shutdown_timeout(STOP_GRACE);
            })?)
        };
        Ok(Self { address, db: Some(db), stop: Some(stop), server: Some(server) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn sweep_expired(&self) -> Result<usize, DynamoError> {
        match &self.db {
            Some(db) => sweep_expired(db.clone()).await,
            None => Ok(0),
        }
    }

    /// Stops serving and closes the file; returns when that is done, after a few seconds at most.
    pub async fn stop(mut self) {
        let ended = match self.let_go() {
            Some(Server::Task(task)) => task.await.is_ok(),
            Some(Server::Thread(thread)) => {
                tokio::task::spawn_blocking(|| thread.join().is_ok()).await.unwrap_or(false)
            }
            None => true,
        };
        say_if_panicked(ended);
    }

    /// Tells the server to stop, and gives it to be waited for.
    fn let_go(&mut self) -> Option<Server> {
        drop(self.stop.take());
        self.db = None;
        self.server.take()
    }
}

impl std::fmt::Debug for Dynamo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dynamo").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Dynamo {
    /// Blocks until the file is closed.
    fn drop(&mut self) {
        match self.let_go() {
            Some(Server::Task(task)) => task.abort(),
            Some(Server::Thread(thread)) => say_if_panicked(thread.join().is_ok()),
            None => {}
        }
    }
}

fn say_if_panicked(ended: bool) {
    if !ended {
        tracing::error!("the table engine had panicked");
    }
}

async fn serve(listener: std::net::TcpListener, db: Database, expiry: bool, stopped: oneshot::Receiver<()>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "failed to serve the table"),
    };
    let sweeper = expiry.then(|| {
        let db = db.clone();
        tokio::spawn(regularly(SWEEP_EVERY, "items", move || sweep_expired(db.clone())))
    });
    let (drain, draining) = oneshot::channel::<()>();
    let server = server::serve_with_shutdown(listener, db, async {
        let _ = draining.await;
    });
    tokio::pin!(server);
    let ended = tokio::select! {
        ended = &mut server => Some(ended),
        _ = stopped => {
            drop(drain);
            tokio::time::timeout(STOP_GRACE, server).await.ok()
        }
    };
    if let Some(Err(error)) = ended {
        tracing::error!(%error, "the table engine stopped serving");
    }
    if let Some(sweeper) = sweeper {
        sweeper.abort();
    }
}

async fn sweep_expired(db: Database) -> Result<usize, DynamoError> {
    // Off the serving thread: between its pages the sweep waits for requests to have their turn.
    match tokio::task::spawn_blocking(move || db.sweep_ttl()).await {
        Ok(swept) => swept.map_err(|error| DynamoError::Sweep(error.into())),
        Err(panicked) => Err(DynamoError::Sweep(panicked.into())),
    }
}

/// The same table as in the deployed template: `pk`, `sk`, the sparse index `due`, and `ttl`.
fn prepare(db: &Database, table: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    if db.get_table_metadata(table)?.is_some() {
        return Ok(());
    }
    let string = |name| json!({"AttributeName": name, "AttributeType": "S"});
    let key = |hash, range| {
        json!([
            {"AttributeName": hash, "KeyType": "HASH"},
            {"AttributeName": range, "KeyType": "RANGE"},
        ])
    };
    db.create_table(serde_json::from_value(json!({
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [string("pk"), string("sk"), string("shard"), string("due_at")],
        "KeySchema": key("pk", "sk"),
        "GlobalSecondaryIndexes": [{
            "IndexName": "due",
            "KeySchema": key("shard", "due_at"),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }],
    }))?)?;
    db.update_time_to_live(serde_json::from_value(json!({
        "TableName": table,
        "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": true},
    }))?)?;
    Ok(())
}
