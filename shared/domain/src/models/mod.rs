//! Requests, replies, usage and prices, independent of the provider.
//!
//! - [`request`]: what is sent to a model, stable blocks first, and the hash of that stable prefix
//! - [`event`]: what a model answers, as a stream of events
//! - [`usage`] and [`prices`]: tokens, and what they cost in micro-dollars
//! - [`reduce`]: a smaller request, if one is larger than the model's context
//! - [`image`]: images in messages, and their limits
//! - [`sampling`]: how a model chooses among the next words
//! - [`sight`]: the images that a model gets
//! - [`sources`]: the pages that a search of the web has found
//! - [`provider_tools`]: tools that a model's provider runs
//! - [`estimate`]: token estimates before the call, for reservations
//! - [`meter`]: the usage of a call, even if it was interrupted
//! - [`price_list`]: prices that a deployment or an owner sets
//! - [`vendor`]: providers, and the names of servers that a deployment or an owner adds
//! - [`catalog`] and [`routing`]: the models, and which of them a call uses
//! - [`breaker`]: whether a provider that fails should be called
//! - [`features`]: what the operator of a deployment can switch
//! - [`error`]: how a call can fail, and which failures should be retried

pub mod breaker;
pub mod catalog;
pub mod error;
pub mod estimate;
pub mod event;
pub mod features;
pub mod image;
pub mod meter;
pub mod price_list;
pub mod prices;
pub mod provider_tools;
pub mod reduce;
pub mod request;
pub mod routing;
pub mod sampling;
pub mod sight;
pub mod sources;
pub mod usage;
pub mod vendor;

pub use catalog::{Catalog, ModelClass, ModelRef, UsedModel};
pub use error::{HttpFailure, ModelError, Stop};
pub use event::{ModelEvent, StopReason};
pub use features::Features;
pub use image::{Image, ImageInput};
pub use price_list::PriceList;
pub use prices::ModelPrice;
pub use request::{
    Block, CacheTtl, Effort, Message, ModelId, ModelRequest, ModelTier, Provider, ProviderTool, Role,
    SystemBlock, ToolChoice, ToolSpec,
};
pub use sampling::{Sampling, SamplingParameter};
pub use sources::WebSource;
pub use usage::Usage;
pub use vendor::{ServerName, Vendor};
