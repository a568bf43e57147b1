//! How much is logged.

use tracing_subscriber::filter::Targets;

/// What `RUST_LOG` asks for, else this. Not `EnvFilter`: its expressions bring a regex engine into every binary.
#[must_use]
pub fn filter(otherwise: Targets) -> Targets {
    let asked = std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(otherwise)
}
