//! `cargo run`: the whole platform at <http://127.0.0.1:9000>, its data in `.lamplighter/`. `--help` prints the options.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use base::clock::Clock;
use domain::accounts::scopes::Scope;
use domain::ids::{Owner, RunId};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use shared::config::{
    self, AuthConfig, BudgetConfig, CorsConfig, LogsConfig, NoticesConfig, PingsConfig, PlansConfig,
    ReachConfig, RunsConfig, SignIn,
};
use shared::flows::accounts::api_keys::NewApiKey;
use shared::runtime::model_keys;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

use crate::demo::DemoSettings;
use crate::engines::data_dir::DataDirError;
use crate::engines::{DataLocation, EngineError};
use crate::platform::{self, Platform, PlatformConfig, PlatformError};
use crate::served::PortLimits;
use crate::show;
use crate::week;

const HELP: &str = "\
Lamplighter on one machine: the whole platform in one process.

Usage:
  cargo run                        start the server
  cargo run -- --demo              the same, and fill an empty folder first: agents with a week of history, a theme, habits, a memory
  cargo run -- api-key [NAME] [--scopes SCOPES]
                                   make an API key for LAMPLIGHTER_AUTH=on, while no server uses the folder;
                                   `--name NAME` is the same; SCOPES are read, write, admin (all), with commas
  cargo run -- show RUN_ID [--owner OWNER]
                                   print what is stored of a run (its record, its steps, its events), while no server
                                   uses the folder; OWNER is `local` unless somebody signed in with a JWT
  cargo run -- --help | --version

Environment:
  LAMPLIGHTER_PORT   the port it listens on (9000)
  LAMPLIGHTER_HOST   the address it listens on (127.0.0.1)
  LAMPLIGHTER_DATA   the folder of its data (.lamplighter)
  LAMPLIGHTER_AUTH   on: every call needs a JWT or an API key (off)
  RUST_LOG           how much is logged: error, warn, info, debug (info)
";

/// The stack of each worker, in bytes. In a debug build, which `cargo run` makes, a run of an action needs nearly the 2 MB that are
/// usual. Only what is used of it takes memory.
const STACK: usize = 8 << 20;

/// The command of the program.
enum Command {
    /// With a week of history for an empty folder, or without.
    Serve {
        demo: bool,
    },
    ApiKey(NewApiKey),
    Show(Owner, RunId),
    Say(String),
}

/// The whole program.
#[must_use]
pub fn main() -> ExitCode {
    let command = match command() {
        Ok(command) => command,
        Err(problem) => {
            eprintln!("lamplighter: {problem}; see --help");
            return ExitCode::from(2);
        }
    };
    // Files of this program and of SQLite must be readable by their owner only.
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let filter = shared::runtime::logging::filter(LevelFilter::INFO);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
    let run = |work: BoxFuture<'static, Result<(), String>>| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build();
        runtime.map_err(|error| error.to_string())?.block_on(work)
    };
    let done = match command {
        Command::Serve { demo } => config().and_then(|config| run(serve(config, demo).boxed())),
        Command::ApiKey(input) => run(make_key(input).boxed()),
        Command::Show(owner, id) => run(show(owner, id).boxed()),
        Command::Say(text) => {
            print!("{text}");
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("lamplighter: failed to {problem}");
            ExitCode::FAILURE
        }
    }
}

fn command() -> Result<Command, lexopt::Error> {
    use lexopt::prelude::{Long, Short, Value};
    let mut args = lexopt::Parser::from_env();
    let Some(first) = args.next()? else { return Ok(Command::Serve { demo: false }) };
    match first {
        Long("help") | Short('h') => Ok(Command::Say(HELP.to_owned())),
        Long("version") | Short('V') => {
            Ok(Command::Say(format!("lamplighter-local {}\n", env!("CARGO_PKG_VERSION"))))
        }
        Long("demo") => match args.next()? {
            None => Ok(Command::Serve { demo: true }),
            Some(other) => Err(other.unexpected()),
        },
        Value(word) if word == "api-key" => key_command(args),
        Value(word) if word == "show" => show_command(args),
        other => Err(other.unexpected()),
    }
}

/// The command that makes a key: `api-key [NAME] [--scopes SCOPES]`.
fn key_command(mut args: lexopt::Parser) -> Result<Command, lexopt::Error> {
    use lexopt::prelude::{Long, Short, Value};
    let (mut name, mut scopes) = (None, None);
    while let Some(found) = args.next()? {
        match found {
            Long("help") | Short('h') => return Ok(Command::Say(HELP.to_owned())),
            Value(given) if name.is_none() => name = Some(given.into_string()?),
            Long("name") if name.is_none() => name = Some(args.value()?.into_string()?),
            Long("scopes") if scopes.is_none() => {
                let list = args.value()?.into_string()?;
                let parse =
                    |scope: &str| scope.trim().parse().map_err(|error| format!("`--scopes {list}` {error}"));
                scopes = Some(list.split(',').map(parse).collect::<Result<Vec<Scope>, _>>()?);
            }
            other => return Err(other.unexpected()),
        }
    }
    let name = name.unwrap_or_else(|| "first key".to_owned());
    Ok(Command::ApiKey(NewApiKey { name, expires_in_days: None, scopes }))
}

/// The command that shows a run: `show RUN_ID [--owner OWNER]`.
fn show_command(mut args: lexopt::Parser) -> Result<Command, lexopt::Error> {
    use lexopt::prelude::{Long, Short, Value};
    let (mut owner, mut id) = (None, None);
    while let Some(found) = args.next()? {
        match found {
            Long("help") | Short('h') => return Ok(Command::Say(HELP.to_owned())),
            Long("owner") if owner.is_none() => {
                let name = args.value()?.into_string()?;
                owner = Some(Owner::new(&name).map_err(|error| format!("`--owner {name}`: {error}"))?);
            }
            Value(given) if id.is_none() => {
                let given = given.into_string()?;
                id = Some(given.parse::<RunId>().map_err(|error| format!("`{given}`: {error}"))?);
            }
            other => return Err(other.unexpected()),
        }
    }
    let owner = owner.map_or_else(|| Owner::new("local"), Ok).map_err(|error| error.to_string())?;
    Ok(Command::Show(owner, id.ok_or("`show` needs the id of a run (run_…)")?))
}

fn data() -> PathBuf {
    std::env::var_os("LAMPLIGHTER_DATA").map_or_else(|| PathBuf::from(".lamplighter"), PathBuf::from)
}

/// Prints a new key of the owner `local` to standard output, and how to use it to standard error.
async fn make_key(input: NewApiKey) -> Result<(), String> {
    let made = platform::api_key(data(), input).await.map_err(|error| match error {
        PlatformError::Engine(EngineError::DataDir(DataDirError::Held { .. })) => {
            format!(
                "{error}. With a key, a running server makes more of them: `lamplighter keys create`, or \
                 POST /account/api-keys"
            )
        }
        error => error.to_string(),
    })?;
    println!("{}", made.api_key);
    eprintln!(
        "This is the key `{}` with the scopes {}, and the only time that it is shown. Start the server with \
         LAMPLIGHTER_AUTH=on, and call it with the header `Authorization: Bearer KEY`.",
        made.key.name,
        made.key.scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(", "),
    );
    Ok(())
}

/// Prints a run to standard output.
async fn show(owner: Owner, id: RunId) -> Result<(), String> {
    let text = show::run(data(), &owner, id).await.map_err(|error| match error {
        PlatformError::Engine(EngineError::DataDir(DataDirError::Held { .. })) => format!(
            "{error}. A running server shows the run at GET /runs/{id}, and its events at GET /runs/{id}/events"
        ),
        error => error.to_string(),
    })?;
    print!("{text}");
    Ok(())
}

fn config() -> Result<PlatformConfig, String> {
    config::warn_of_unknown_variables();
    let env = |name: &str| std::env::var(name).ok();
    let number = |name: &str, default: u16| match env(name) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("read {name}: `{text}` is not a port (0 to 65535)")),
    };
    let host = env("LAMPLIGHTER_HOST").unwrap_or_else(|| "127.0.0.1".to_owned());
    let host: IpAddr =
        host.parse().map_err(|_| format!("read LAMPLIGHTER_HOST: `{host}` is not an IP address"))?;
    // The default is off, because a newcomer has no key and others cannot reach a loopback address.
    let auth = |name: &str| match name {
        "LAMPLIGHTER_AUTH" => Some(env(name).unwrap_or_else(|| "off".to_owned())),
        _ => env(name),
    };
    let read = |error: shared::config::ConfigError| format!("read the environment: {error}");
    let access = AuthConfig::read(&auth).map_err(read)?;
    if let Some(variable) = model_keys::named(&env).map_err(read)?.keys().next() {
        return Err(format!(
            "read the environment: {variable} names a parameter, which only deployed functions read"
        ));
    }
    let rates = config::rates(&env, &access).map_err(read)?;
    let reach = ReachConfig::read(&env).map_err(read)?;
    Ok(PlatformConfig {
        data: DataLocation::Folder(data()),
        address: SocketAddr::from((host, number("LAMPLIGHTER_PORT", 9000)?)),
        auth: access,
        rates,
        models: config::providers::read(&env).map_err(read)?,
        budget: BudgetConfig::read(&env).map_err(read)?,
        logs: LogsConfig::read(&env).map_err(read)?,
        cors: CorsConfig::read(&env).map_err(read)?,
        sign_in: SignIn::read(&env).map_err(read)?,
        runs: RunsConfig::read(&env).map_err(read)?,
        pings: PingsConfig::read(&env, &reach.policy).map_err(read)?,
        reach,
        site: NoticesConfig::public_url(&env).map_err(read)?,
        plans: PlansConfig::read(&env).map_err(read)?,
        clock: Clock::System,
        automatic: true,
        // On one machine they are tasks, and a run mostly waits for its model.
        executors: 16,
        demo: DemoSettings::default(),
        demo_costs: false,
        faults: None,
        limits: PortLimits::default(),
        engine_ports: false,
    })
}

async fn serve(config: PlatformConfig, demo: bool) -> Result<(), String> {
    let data = match &config.data {
        DataLocation::Folder(path) => path.display().to_string(),
        DataLocation::Memory => "memory".to_owned(),
    };
    let authenticates = matches!(config.auth, AuthConfig::On(_));
    // Before the start, so that a signal during the start also stops it cleanly.
    let mut stop = std::pin::pin!(stop_signal());
    if demo {
        tokio::select! {
            () = &mut stop => return Ok(()),
            filled = week::fill(&config) => filled?,
        }
    }
    let platform = Platform::start(config).await.map_err(|error| error.to_string())?;
    let url = platform.url();
    println!("Lamplighter runs at {url}");
    println!("  functions  {}", catalog::NAMES.join(", "));
    println!("  data       {data}");
    println!("  model      {}", platform.model());
    println!("{}", advice(&url, authenticates, &own_command()));
    stop.await;
    println!("\nstopping");
    platform.stop().await;
    Ok(())
}

/// How a person started this program, for advice.
fn own_command() -> String {
    if std::env::var_os("CARGO").is_some() {
        return "cargo run --".to_owned();
    }
    std::env::args().next().unwrap_or_else(|| "lamplighter-local".to_owned())
}

/// The rest of the lines that the start prints: who may call, and commands that work as they are printed.
fn advice(url: &str, authenticates: bool, program: &str) -> String {
    let (auth, key, header) = if authenticates {
        (
            "on, every call needs an API key or a JWT".to_owned(),
            format!(
                "  export LAMPLIGHTER_API_KEY=llk_…   # a first key: stop this server, run `{program} api-key`, start it again\n"
            ),
            " -H \"authorization: Bearer $LAMPLIGHTER_API_KEY\"",
        )
    } else {
        ("off, every call is the owner `local`".to_owned(), String::new(), "")
    };
    format!(
        "  auth       {auth}\n\n\
         Open {url} in a browser, and say what somebody should look after for you. The API reference is at {url}/docs.\n\n\
         Or try it from a shell:\n\
         {key}\
         \x20 curl -s {url}/health\n\
         \x20 curl -s {url}/setup/chat{header} -H 'content-type: application/json' -H 'accept: application/json' \
         -d '{{\"message\":\"I want to follow my market\"}}'\n\
         \x20 curl -s {url}/agents{header}"
    )
}

/// Completes at Ctrl-C or SIGTERM. Signals count from this call on.
fn stop_signal() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let asked = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
    async move {
        let mut told = FuturesUnordered::new();
        for mut signal in asked.into_iter().filter_map(Result::ok) {
            told.push(async move { signal.recv().await });
        }
        if told.next().await.is_none() {
            // No signal can be received: the process runs until it is killed.
            std::future::pending::<()>().await;
        }
    }
}
