//! What every handler and flow is given: the store, the blobs, the models, the bus, the clock.

use std::sync::Arc;

use crate::aws::Clients;
use crate::blobs::Blobs;
use crate::bus::Bus;
use crate::clock::Clock;
use crate::config::Config;
use crate::store::Store;

/// The context of a process; cheap to clone.
#[derive(Clone)]
pub struct Cx {
    pub config: Arc<Config>,
    pub clock: Clock,
    pub store: Store,
    pub blobs: Blobs,
    pub bus: Bus,
}

impl Cx {
    /// Builds the clients; no I/O happens here.
    #[must_use]
    pub fn new(config: Config, clock: Clock) -> Self {
        let clients = Clients::new(&config.aws);
        let blobs = Blobs::new(clients.s3, config.aws.bucket.clone());
        Self {
            store: Store::new(clients.dynamodb, config.aws.table.clone()),
            blobs,
            bus: Bus::new(clients.eventbridge, config.aws.bus.clone()),
            config: Arc::new(config),
            clock,
        }
    }
}
