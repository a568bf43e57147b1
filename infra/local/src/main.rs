//! `cargo run`: the whole platform at <http://127.0.0.1:9000>, its data in `.lamplighter/`.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `LAMPLIGHTER_PORT` | where it listens | 9000 |
//! | `LAMPLIGHTER_HOST` | on which address | 127.0.0.1 |
//! | `LAMPLIGHTER_DATA` | the folder of its data | `.lamplighter` |
//! | `LAMPLIGHTER_AUTH` | `on`: calls need a JWT or an API key | `off` |
//! | `RUST_LOG` | how much is logged | `warn` |

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use lamplighter_local::demo::DemoSettings;
use lamplighter_local::engines::DataLocation;
use lamplighter_local::platform::{Platform, PlatformConfig};
use shared::clock::Clock;
use shared::config::{AuthConfig, BudgetConfig, CorsConfig, LogsConfig, ModelsConfig};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

fn main() -> ExitCode {
    let quiet = Targets::new().with_default(LevelFilter::WARN).with_target("s3s", LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(shared::logging::filter(quiet))).init();
    let started = config().and_then(|config| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.map_err(|error| error.to_string())?.block_on(serve(config))
    });
    match started {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("lamplighter: failed to {problem}");
            ExitCode::FAILURE
        }
    }
}

fn config() -> Result<PlatformConfig, String> {
    let env = |name: &str| std::env::var(name).ok();
    let number = |name: &str, default: u16| match env(name) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("read {name}: `{text}` is not a port (0 to 65535)")),
    };
    let host = env("LAMPLIGHTER_HOST").unwrap_or_else(|| "127.0.0.1".to_owned());
    let host: IpAddr =
        host.parse().map_err(|_| format!("read LAMPLIGHTER_HOST: `{host}` is not an IP address"))?;
    // Off unless it is asked for: a newcomer has no key yet, and nobody else can reach a loopback address.
    let auth = |name: &str| match name {
        "LAMPLIGHTER_AUTH" => Some(env(name).unwrap_or_else(|| "off".to_owned())),
        _ => env(name),
    };
    let read = |error: shared::config::ConfigError| format!("read the environment: {error}");
    Ok(PlatformConfig {
        data: DataLocation::Folder(PathBuf::from(
            env("LAMPLIGHTER_DATA").unwrap_or_else(|| ".lamplighter".to_owned()),
        )),
        address: SocketAddr::from((host, number("LAMPLIGHTER_PORT", 9000)?)),
        auth: AuthConfig::read(&auth).map_err(read)?,
        models: ModelsConfig::read(&env).map_err(read)?,
        budget: BudgetConfig::read(&env).map_err(read)?,
        logs: LogsConfig::read(&env).map_err(read)?,
        cors: CorsConfig::read(&env).map_err(read)?,
        clock: Clock::System,
        automatic: true,
        executors: 4,
        demo: DemoSettings::default(),
        faults: None,
    })
}

async fn serve(config: PlatformConfig) -> Result<(), String> {
    let data = match &config.data {
        DataLocation::Folder(path) => path.display().to_string(),
        DataLocation::Memory => "memory".to_owned(),
    };
    let auth =
        if matches!(config.auth, AuthConfig::Off) { "off, every call is the owner `local`" } else { "on" };
    let platform = Platform::start(config).await.map_err(|error| error.to_string())?;
    let url = platform.url();
    println!("Lamplighter runs at {url}");
    println!("  functions  {}", catalog::NAMES.join(", "));
    println!("  data       {data}");
    println!("  model      {}", platform.model());
    println!("  auth       {auth}");
    println!();
    println!("Try it:");
    println!("  curl -s {url}/health");
    println!(
        "  curl -s {url}/setup/chat -H 'content-type: application/json' -d '{{\"message\":\"I want to follow my market\"}}'"
    );
    println!("  curl -s {url}/agents");
    until_told_to_stop().await;
    println!("\nstopping");
    platform.stop().await;
    Ok(())
}

/// Returns at Ctrl-C, or when the system asks.
async fn until_told_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
