//! The platform in one process: the engines, the functions with their routes, the timers, and the consumers of queues.
//!
//! The functions are the same as on AWS. The same handlers run behind the same layers; a timer calls what a schedule
//! calls on AWS; a queue delivers the same SQS events, with the same duplicates and redeliveries.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use base::clock::Clock;
use domain::accounts::rates::RateLimits;
use domain::accounts::scopes::Scope;
use domain::ids::Owner;
use domain::notices::render::Site;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use models::InvalidEndpoint;
use models::ModelsConfig;
use serde_json::json;
use shared::Cx;
use shared::aws::storage::StorageFailure;
use shared::config::{
    AuthConfig, AwsConfig, AwsKeys, BudgetConfig, Config, CorsConfig, ExecutorsConfig, LogsConfig,
    MailConfig, MasterKeysConfig, NoticesConfig, PingsConfig, PlansConfig, ReachConfig, RunsConfig, SignIn,
};
use shared::edge::extract::{Caller, Once};
use shared::edge::guard::may_be_signed;
use shared::flows::accounts::api_keys::{self, CreatedApiKey, NewApiKey};
use shared::flows::executor::clock;
use shared::runtime::function::{Function, Invocation, Trigger};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt, service_fn};

use crate::demo::{DemoModel, DemoSettings};
use crate::engines::faults::FaultConfig;
use crate::engines::queue::{PollOptions, Poller, QueueConfig};
use crate::engines::storage::Storage;
use crate::engines::{
    BUS_URL, DEAD_LETTERS, DataLocation, EngineError, Engines, EnginesConfig, ObjectCreated, QUEUES_URL,
    REGION, TABLE_URL, Upload, Uploads,
};
use crate::handler::Handler;
use crate::headers;
use crate::served::{PortLimits, Served};

/// The bucket's name. It is also the first part of the paths of presigned addresses on this server.
const BUCKET: &str = "lamplighter";

/// The URL of the executors' queue. The queue has the name of its function.
const EXECUTORS_QUEUE: &str = "https://sqs.us-east-1.amazonaws.com/000000000000/scheduled-executor";

/// The longest time that a Lambda may run.
const TIMEOUT: Duration = Duration::from_secs(900);

/// How long a received message stays hidden from other consumers, unless its function reports that it failed. As in the
/// template: six times the timeout.
const VISIBILITY: Duration = Duration::from_secs(6 * TIMEOUT.as_secs());

/// How often a message is delivered, as in the template.
const RECEIVES: u32 = 5;

/// How often it is seen whether a fixed time of a timer has come.
const GLANCES_EVERY: Duration = Duration::from_secs(20);

/// By how much the clock may be ahead of what has run, before it is taken for a sleep of the machine.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(2);

/// How long a machine catches up after a start or a sleep.
const SETTLES: SignedDuration = SignedDuration::from_mins(5);

/// The pause before an upload is handed over again. Shorter than in AWS, because somebody is watching.
const RETRY: Duration = Duration::from_secs(1);

/// The configuration of the platform.
#[derive(Clone, Debug)]
pub struct PlatformConfig {
    pub data: DataLocation,
    pub address: SocketAddr,
    pub auth: AuthConfig,
    pub models: ModelsConfig,
    pub budget: BudgetConfig,
    pub logs: LogsConfig,
    pub cors: CorsConfig,
    pub sign_in: Option<SignIn>,
    pub runs: RunsConfig,
    pub reach: ReachConfig,
    /// The address under which people reach the platform, if it is another one than that of its port.
    pub site: Option<Site>,
    pub pings: PingsConfig,
    pub plans: PlansConfig,
    pub rates: RateLimits,
    pub clock: Clock,
    /// Whether timers fire and queues are consumed automatically. A simulation does both by hand.
    pub automatic: bool,
    /// How many executors work at once. Each drives up to ten runs.
    pub executors: usize,
    /// The settings of the demo model, which answers if no other model is configured.
    pub demo: DemoSettings,
    /// Whether calls of the demo model are counted at the prices of a small model, so that budgets can be tried.
    pub demo_costs: bool,
    /// Adds faults of AWS between the functions and the table and bucket.
    pub faults: Option<FaultConfig>,
    /// The limits of the server's port.
    pub limits: PortLimits,
    /// Opens ports for the engines ([`EnginesConfig::ports`]). Only tests do.
    pub engine_ports: bool,
}

impl PlatformConfig {
    /// For a test: everything in memory, on a free port.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {
            data: DataLocation::Memory,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            auth: AuthConfig::Off,
            models: ModelsConfig::default(),
            budget: BudgetConfig::default(),
            logs: LogsConfig::default(),
            cors: CorsConfig::default(),
            sign_in: None,
            runs: RunsConfig::default(),
            reach: ReachConfig::default(),
            site: None,
            pings: PingsConfig::default(),
            plans: PlansConfig::default(),
            rates: RateLimits::OFF,
            clock: Clock::System,
            automatic: true,
            executors: 4,
            demo: DemoSettings::default(),
            demo_costs: true,
            faults: None,
            limits: PortLimits::default(),
            engine_ports: false,
        }
    }
}

/// Why the platform did not start. Messages are one line and follow "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum PlatformError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("read which uploads were handled: {0}")]
    Uploads(io::Error),
    #[error("take over the work of the previous server: {}", .0.causes())]
    Leases(shared::Error),
    #[error("start the demo model: {0}")]
    Demo(io::Error),
    #[error("make a key: {0}")]
    Key(String),
    #[error("show {0}")]
    Show(String),
    #[error("read the models' configuration: {0}")]
    Model(#[from] InvalidEndpoint),
    #[error("listen on {address}: {}", in_words(source))]
    Listen { address: SocketAddr, source: io::Error },
    #[error(
        "listen on {address}: with LAMPLIGHTER_AUTH=off only this machine may reach the server; set LAMPLIGHTER_AUTH=on or a loopback address"
    )]
    Unprotected { address: SocketAddr },
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the port is in use; set LAMPLIGHTER_PORT to another one".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "this port needs more rights; set LAMPLIGHTER_PORT to one above 1023".to_owned()
        }
        _ => error.to_string(),
    }
}

/// The running platform.
pub struct Platform {
    pub cx: Cx,
    address: SocketAddr,
    engines: Engines,
    app: Handler,
    server: Served,
    _demo: Option<DemoModel>,
    pollers: Vec<Poller>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Platform {
    /// Starts the platform. When this returns, it answers.
    ///
    /// # Errors
    /// [`PlatformError`] describes the cause in one line.
    pub async fn start(config: PlatformConfig) -> Result<Self, PlatformError> {
        let PlatformConfig {
            data,
            address,
            auth,
            mut models,
            budget,
            logs,
            cors,
            sign_in,
            runs,
            reach,
            site,
            pings,
            plans,
            rates,
            clock,
            automatic,
            executors,
            demo,
            demo_costs,
            faults,
            limits,
            engine_ports,
        } = config;
        let authenticates = matches!(auth, AuthConfig::On(_));
        if !authenticates && !address.ip().is_loopback() {
            return Err(PlatformError::Unprotected { address });
        }
        // Listen first: a second start by mistake must not change the data.
        let listen = |source| PlatformError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;

        // The table's items expire by the machine's clock. With another clock they would expire at the wrong time.
        let expiry = matches!(clock, Clock::System);
        let on_disk = matches!(data, DataLocation::Folder(_));
        let engines =
            Engines::start(EnginesConfig { expiry, faults, ports: engine_ports, ..engines_config(data) })
                .await?;
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let mut demo_model = None;
        if !models.has_provider() {
            let demo = DemoModel::start(demo).await.map_err(PlatformError::Demo)?;
            models.demo_url = Some(demo.base_url());
            models.demo_costs = demo_costs;
            demo_model = Some(demo);
        }
        let welcome = (auth.clone(), cors.clone());
        let aws = aws_config(&engines, &reachable(address));
        let count = ExecutorsConfig { count: u32::try_from(executors).unwrap_or(u32::MAX) };
        let master_keys = MasterKeysConfig::Given { key: engines.master_key() };
        let config = Config {
            aws,
            auth,
            master_keys,
            models,
            budget,
            logs,
            cors,
            sign_in,
            executors: count,
            runs,
            reach,
            notices: notices(address, site)?,
            pings,
            plans,
            rates,
        };
        for function in catalog::ALL {
            if let Some(queue) = engines.queue(function.name) {
                queue.follow(clock.clone());
            }
        }
        let cx = Cx::new(config, clock)?.with(|parts| parts.areas = catalog::AREAS);

        if on_disk {
            // Only this process uses the folder, so every earlier lease holder is dead.
            match shared::flows::executor::free_leases::of_previous_process(&cx).await {
                Ok(_) => {}
                // On a full disk, accounts can be read and deleted. The leases end when their time is over.
                Err(error) if is_full(&error) => {
                    tracing::warn!(
                        "the leases of the previous server are not ended, because the disk is full"
                    );
                }
                Err(error) => return Err(PlatformError::Leases(error)),
            }
        }
        let storage = engines.storage().clone();
        let routes = catalog::router().layer(from_fn_with_state(storage, health));
        let functions = shared::edge::app::app(cx.clone(), routes, Some(authenticate));
        let app = with_bucket(functions.into(), engines.bucket(), welcome);
        let server = Served::start(listener, headers::bounded(app.clone()), limits).map_err(listen)?;
        let mut pollers = Vec::new();
        if automatic {
            for function in catalog::ALL {
                match function.trigger {
                    Trigger::Timer { newest: Some(newest), .. } => {
                        tasks.spawn(fixed_timer(function, newest, cx.clone(), stopped.clone()));
                    }
                    Trigger::Timer { every, newest: None, .. } => {
                        tasks.spawn(timer(function, every, cx.clone(), stopped.clone()));
                    }
                    Trigger::Queue { .. } => pollers.extend(consume(function, &engines, &cx, executors)),
                    Trigger::Upload { .. } => {
                        let uploads = engines.uploads().map_err(PlatformError::Uploads)?;
                        tasks.spawn(notify(function, uploads, cx.clone(), stopped.clone()));
                    }
                    Trigger::Http { .. } | Trigger::Authorizer { .. } => {}
                }
            }
        }
        Ok(Self { cx, address, engines, app, server, _demo: demo_model, pollers, stop, tasks })
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The configured model, for people.
    #[must_use]
    pub fn model(&self) -> String {
        self.cx.models.description()
    }

    #[must_use]
    pub fn engines(&self) -> &Engines {
        &self.engines
    }

    /// What answers the requests of the port.
    #[must_use]
    pub fn app(&self) -> &Handler {
        &self.app
    }

    /// Fires each timer once, and hands the messages of the queues over until there are none. For a platform that does not do so
    /// by itself ([`PlatformConfig::automatic`]).
    ///
    /// # Errors
    /// The causes of the first timer or message that fails.
    pub async fn work(&self) -> Result<(), String> {
        let invocation = || Invocation { deadline: deadline(&self.cx.clock) };
        for function in catalog::ALL {
            if let Trigger::Timer { handler, .. } = function.trigger {
                handler(self.cx.clone(), invocation()).await.map_err(|error| error.causes())?;
            }
        }
        for function in catalog::ALL {
            let (Trigger::Queue { handler }, Some(queue)) =
                (function.trigger, self.engines.queue(function.name))
            else {
                continue;
            };
            loop {
                let messages = queue.receive(1, Duration::ZERO).await;
                let Some(message) = messages.into_iter().next() else { break };
                let body = serde_json::from_str(&message.body).map_err(|error| error.to_string())?;
                let done = handler(self.cx.clone(), invocation(), body).await;
                done.map_err(|error| error.causes())?;
                // A receipt is stale if the message took longer than its visibility. Then it comes again.
                let _ = queue.delete(message.receipt);
            }
        }
        Ok(())
    }

    /// Stops accepting work, lets the current work end, and closes the data.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // Runs are released. The next process continues them.
        self.cx.stopping.set();
        for poller in self.pollers {
            poller.stop().await;
        }
        // Followers of a long run get a moment.
        self.server.stop().await;
        let _ = tokio::time::timeout(Duration::from_secs(2), async {
            while self.tasks.join_next().await.is_some() {}
            while !self.cx.live.is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        self.tasks.shutdown().await;
        self.engines.shutdown().await;
    }
}

/// Makes an API key of the owner `local` in a folder that no server uses.
///
/// # Errors
/// As [`Platform::start`]; also if the input is invalid.
pub async fn api_key(folder: PathBuf, input: NewApiKey) -> Result<CreatedApiKey, PlatformError> {
    let (cx, engines) = opened(folder).await?;
    let made = match Owner::new("local") {
        Ok(owner) => {
            api_keys::create(&cx, &Caller { owner, scope: Scope::Admin, key: None }, &Once::none(), input)
                .await
        }
        Err(error) => Err(shared::Error::internal(error.to_string())),
    };
    engines.shutdown().await;
    made.map_err(|error| PlatformError::Key(error.detail()))
}

/// Opens a folder that no server uses, for a command that needs its data for a moment. Nothing runs automatically.
pub(crate) async fn opened(folder: PathBuf) -> Result<(Cx, Engines), PlatformError> {
    let config = EnginesConfig { expiry: false, ..engines_config(DataLocation::Folder(folder)) };
    let engines = Engines::start(config).await?;
    let config = Config {
        aws: aws_config(&engines, "http://127.0.0.1"),
        auth: AuthConfig::Off,
        master_keys: MasterKeysConfig::None,
        models: ModelsConfig::default(),
        budget: BudgetConfig::default(),
        logs: LogsConfig::default(),
        cors: CorsConfig::default(),
        sign_in: None,
        executors: ExecutorsConfig::default(),
        runs: RunsConfig::default(),
        reach: ReachConfig::default(),
        notices: NoticesConfig::default(),
        pings: PingsConfig::default(),
        plans: PlansConfig::default(),
        rates: RateLimits::OFF,
    };
    Ok((Cx::new(config, Clock::System)?, engines))
}

fn is_full(error: &shared::Error) -> bool {
    use shared::store::StoreError;
    matches!(
        error,
        shared::Error::Storage(StorageFailure::Full)
            | shared::Error::Store(StoreError::Storage(StorageFailure::Full))
    )
}

/// Authenticates a request, as the authorizer does for API Gateway.
fn authenticate(cx: Cx, headers: HeaderMap) -> BoxFuture<'static, shared::Result<Caller>> {
    async move { authorizer::authenticate(&cx, &headers, &HashMap::new()).await }.boxed()
}

/// One queue for each function that is triggered by one, as in the template. The bus has no rules, because its events
/// are for others.
fn engines_config(data: DataLocation) -> EnginesConfig {
    let name = "lamplighter".to_owned();
    let mut queues = Vec::new();
    for function in catalog::ALL {
        if let Trigger::Queue { .. } = function.trigger {
            queues.push(QueueConfig {
                name: function.name.to_owned(),
                visibility_timeout: VISIBILITY,
                max_receives: RECEIVES,
            });
        }
    }
    EnginesConfig {
        data,
        table: name.clone(),
        bucket: BUCKET.to_owned(),
        bus: name,
        queues,
        rules: Vec::new(),
        expiry: true,
        faults: None,
        ports: false,
    }
}

/// Links lead to this server, or to the address under which people reach it. E-mails are stored in the outbox, because a laptop has no
/// verified sender.
fn notices(address: SocketAddr, site: Option<Site>) -> Result<NoticesConfig, PlatformError> {
    let site = match site {
        Some(site) => site,
        None => Site::new(&reachable(address)).map_err(|_| PlatformError::Unprotected { address })?,
    };
    let mail = MailConfig::Outbox { from: "lamplighter@localhost".to_owned() };
    Ok(NoticesConfig { mail, site })
}

/// `url` is the address at which the server listens and serves the bucket.
fn aws_config(engines: &Engines, url: &str) -> AwsConfig {
    let keys = engines.keys();
    AwsConfig {
        table: "lamplighter".to_owned(),
        bucket: BUCKET.to_owned(),
        bus: "lamplighter".to_owned(),
        queue: EXECUTORS_QUEUE.to_owned(),
        dead_letters: Some(DEAD_LETTERS.to_owned()),
        // Nobody switches off the timers of this process.
        timers: Vec::new(),
        region: REGION.to_owned(),
        credentials: AwsKeys {
            access_key_id: keys.access_key_id.clone(),
            secret_access_key: keys.secret_access_key.clone(),
            session_token: None,
        },
        dynamodb_endpoint: Some(TABLE_URL.to_owned()),
        s3_endpoint: Some(url.to_owned()),
        eventbridge_endpoint: Some(BUS_URL.to_owned()),
        sqs_endpoint: Some(QUEUES_URL.to_owned()),
        ssm_endpoint: None,
        ses_endpoint: None,
        scheduler_endpoint: None,
        http: Some(engines.http_client()),
        eraser: Some(engines.eraser()),
    }
}

/// `/health` reports it if the storage of the server fails.
async fn health(State(storage): State<Storage>, request: Request, next: Next) -> Response {
    if request.uri().path() == "/health"
        && let Ok(Some(failure)) = tokio::task::spawn_blocking(move || storage.state()).await
    {
        return shared::Error::Storage(failure).into_response();
    }
    next.run(request).await
}

/// The functions, and the bucket below its name for clients with a presigned address.
fn with_bucket(functions: Handler, bucket: Handler, (auth, cors): (AuthConfig, CorsConfig)) -> Handler {
    let bucket = for_pages(bucket, &cors);
    Handler::new(move |request| {
        let rest = request.uri().path().strip_prefix('/').and_then(|path| path.strip_prefix(BUCKET));
        if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return functions.call(request);
        }
        if may_be_signed(&auth, &cors, request.headers(), request.uri()) {
            return bucket.call(request);
        }
        let refusal =
            shared::Error::Forbidden("pages of this origin may not call this server").into_response();
        async move { Ok(refusal) }.boxed()
    })
}

/// The bucket, which also answers the preflights of configured pages.
fn for_pages(bucket: Handler, cors: &CorsConfig) -> Handler {
    let Some(layer) = shared::edge::cors::for_bucket(cors) else { return bucket };
    let bucket = layer.layer(service_fn(move |request| bucket.call(request)));
    Handler::new(move |request| bucket.clone().oneshot(request))
}

/// The host of presigned addresses. If the server listens on all addresses, it is this machine.
fn reachable(address: SocketAddr) -> String {
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(host, address.port()))
}

fn deadline(clock: &Clock) -> Timestamp {
    clock.now() + SignedDuration::try_from(TIMEOUT).unwrap_or(SignedDuration::ZERO)
}

/// Calls a function once at the start and then at each interval. A call that takes longer delays the next one.
async fn timer(function: &'static Function, every: Duration, cx: Cx, mut stopped: watch::Receiver<bool>) {
    let period = every / pace(&cx.clock);
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            _ = ticks.tick() => {}
        }
        if let Err(error) = clock::check(&cx).await {
            tracing::warn!(cause = %error.causes(), "could not check whether the clock was set back");
        }
        fire(function, &cx).await;
    }
}

/// Calls a function at fixed times of the day.
async fn fixed_timer(
    function: &'static Function,
    newest: fn(Timestamp) -> Timestamp,
    cx: Cx,
    mut stopped: watch::Receiver<bool>,
) {
    let pace = pace(&cx.clock);
    let (mut times, mut glanced) = (FixedTimes::from(newest, cx.clock.now()), Instant::now());
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(GLANCES_EVERY / pace) => {}
        }
        let ran = glanced.elapsed() * pace;
        glanced = Instant::now();
        if times.is_due(cx.clock.now(), ran) {
            fire(function, &cx).await;
        }
    }
}

/// How many times as fast as real time this clock runs.
fn pace(clock: &Clock) -> u32 {
    match clock {
        Clock::Scaled { factor, .. } => (*factor).max(1),
        Clock::System | Clock::Manual(_) => 1,
    }
}

async fn fire(function: &'static Function, cx: &Cx) {
    let Trigger::Timer { handler, .. } = function.trigger else { return };
    let invocation = Invocation { deadline: deadline(&cx.clock) };
    if let Err(error) = handler(cx.clone(), invocation).await {
        tracing::error!(function = function.name, cause = %error.causes(), "a timer's call failed");
    }
}

/// Which of the fixed times of a timer has come.
///
/// A machine is switched off and sleeps. What looks at the platform waits then, so that it does not see as missing what is just being
/// caught up with.
struct FixedTimes {
    newest: fn(Timestamp) -> Timestamp,
    awake_since: Timestamp,
    glanced_at: Timestamp,
    fired: Option<Timestamp>,
}

impl FixedTimes {
    fn from(newest: fn(Timestamp) -> Timestamp, now: Timestamp) -> Self {
        Self { newest, awake_since: now, glanced_at: now, fired: None }
    }

    /// Whether it fires now. `ran`: how long the process has run since the last call. The clock goes on while the machine sleeps, and the
    /// process does not run.
    fn is_due(&mut self, now: Timestamp, ran: Duration) -> bool {
        let ran = SignedDuration::try_from(ran).unwrap_or(SignedDuration::MAX);
        let slept = now.duration_since(self.glanced_at).saturating_sub(ran);
        if slept.abs() > CLOCKS_DIFFER {
            self.awake_since = now;
        }
        self.glanced_at = now;
        let newest = (self.newest)(now);
        if now.duration_since(self.awake_since) < SETTLES || self.fired == Some(newest) {
            return false;
        }
        self.fired = Some(newest);
        true
    }
}

/// Consumes a function's queue as Lambda's event source mapping would.
fn consume(function: &'static Function, engines: &Engines, cx: &Cx, executors: usize) -> Option<Poller> {
    let Trigger::Queue { handler } = function.trigger else { return None };
    let cx = cx.clone();
    let options =
        PollOptions { batch_size: shared::runtime::lambda::BATCH, concurrency: executors, timeout: TIMEOUT };
    Some(engines.queue(function.name)?.poll_with(options, move |event| {
        let cx = cx.clone();
        async move {
            let event: SqsEvent = serde_json::from_value(event)?;
            let invocation = Invocation { deadline: deadline(&cx.clock) };
            let response = shared::runtime::lambda::batch(cx, handler, invocation, event).await;
            Ok(serde_json::to_value(response)?)
        }
    }))
}

/// Calls a function for each upload. Uploads of one key are handled one after the other. If several of them wait, only
/// the newest is delivered, because it includes the others. Unfinished uploads at the platform's stop are announced
/// again at its next start.
async fn notify(
    function: &'static Function,
    mut uploads: Uploads,
    cx: Cx,
    mut stopped: watch::Receiver<bool>,
) {
    let mut calls = JoinSet::new();
    // The keys that are being handled, each with the upload that waits for it.
    let mut handled: HashMap<String, Option<Upload>> = HashMap::new();
    let call = |upload: Upload| {
        let (key, cx) = (upload.event.key.clone(), cx.clone());
        async move {
            let delivered = AssertUnwindSafe(deliver(function, upload, cx)).catch_unwind().await;
            if delivered.is_err() {
                tracing::error!(function = function.name, "a call panicked");
            }
            key
        }
    };
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            Some(Ok(key)) = calls.join_next() => {
                if let Some(next) = handled.remove(&key).flatten() {
                    handled.insert(key, None);
                    calls.spawn(call(next));
                }
            }
            upload = uploads.next() => match upload {
                Some(upload) => match handled.get_mut(&upload.event.key) {
                    Some(waiting) => {
                        if let Some(older) = waiting.replace(upload) {
                            acknowledge(function, older);
                        }
                    }
                    None => {
                        handled.insert(upload.event.key.clone(), None);
                        calls.spawn(call(upload));
                    }
                },
                None => return,
            },
        }
    }
}

fn acknowledge(function: &Function, upload: Upload) {
    if let Err(error) = upload.acknowledge() {
        tracing::warn!(function = function.name, %error, "an upload will be announced again");
    }
}

/// Delivers one notification. It retries if that fails, and gives up when the queue would.
async fn deliver(function: &'static Function, upload: Upload, cx: Cx) {
    let Trigger::Upload { handler } = function.trigger else { return };
    let mut message = SqsMessage::default();
    message.message_id = Some(upload.event.sequencer.clone());
    message.body = Some(notification(&upload.event));
    let mut event = SqsEvent::default();
    event.records.push(message);
    for _ in 0..RECEIVES {
        let invocation = Invocation { deadline: deadline(&cx.clock) };
        let response = shared::runtime::lambda::uploads(cx.clone(), handler, invocation, event.clone()).await;
        if response.batch_item_failures.is_empty() {
            break;
        }
        tokio::time::sleep(RETRY).await;
    }
    acknowledge(function, upload);
}

/// The notification that S3 sends, limited to the fields that are read.
fn notification(event: &ObjectCreated) -> String {
    let encoded = |part: &str| form_urlencoded::byte_serialize(part.as_bytes()).collect::<String>();
    let key = event.key.split('/').map(encoded).collect::<Vec<_>>().join("/");
    let object = json!({ "key": key, "size": event.size, "eTag": event.etag, "sequencer": event.sequencer });
    let s3 = json!({ "bucket": { "name": event.bucket }, "object": object });
    json!({ "Records": [{ "eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": s3 }] })
        .to_string()
}

#[cfg(test)]
mod tests {
    use domain::watchdog::look_at;

    use super::*;

    fn ts(time: &str) -> Timestamp {
        format!("2026-11-26T{time}Z").parse().unwrap()
    }

    /// When it fires of these glances: the time of the clock, and for how many seconds the process has run since the last one.
    fn fires(started: &str, glances: &[(&str, u64)]) -> Vec<String> {
        let mut times = FixedTimes::from(look_at, ts(started));
        let mut fired = Vec::new();
        for (at, ran) in glances {
            if times.is_due(ts(at), Duration::from_secs(*ran)) {
                fired.push((*at).to_owned());
            }
        }
        fired
    }

    #[test]
    fn a_timer_with_fixed_times_fires_once_for_each_and_not_while_the_machine_catches_up() {
        let awake =
            [("10:14:50", 20), ("10:15:00", 10), ("10:15:20", 20), ("12:14:59", 7_179), ("12:15:10", 11)];
        assert_eq!(
            fires("08:40:00", &[&[("08:45:00", 300), ("10:14:30", 5_370)], &awake[..]].concat()),
            ["08:45:00", "10:15:00", "12:15:10"]
        );
        // It starts shortly before, and shortly after a time.
        assert_eq!(fires("10:13:00", &[("10:15:00", 120), ("10:17:59", 179), ("10:18:00", 1)]), ["10:18:00"]);
        assert_eq!(fires("10:16:00", &[("10:20:59", 299), ("10:21:00", 1), ("10:30:00", 540)]), ["10:21:00"]);
        // It sleeps for five hours and wakes after a time.
        let asleep =
            [("08:50:00", 300), ("14:00:00", 20), ("14:04:59", 299), ("14:05:00", 1), ("14:15:00", 600)];
        assert_eq!(fires("08:45:00", &asleep), ["08:50:00", "14:05:00", "14:15:00"]);
        // A clock that is set back.
        assert_eq!(
            fires("10:10:00", &[("10:16:00", 360), ("08:16:00", 20), ("08:21:00", 300)]),
            ["10:16:00", "08:21:00"]
        );
    }
}
