//! What an owner has as a whole: the account, its keys, models, limits and usage, its export, import and deletion.

pub mod api_keys;
pub mod deletion;
pub mod export;
pub mod import;
pub mod limits;
pub mod models;
mod openclaw;
pub mod profile;
pub mod provider_keys;
mod readable;
pub mod secrets;
pub mod servers;
pub mod stop;
mod stopped;
pub mod usage;
