//! The process of a function, with the environment that Lambda sets.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

use crate::binaries::binary;
use crate::reply::{Http, MOST, Reply};
use crate::runtime_api::RuntimeApi;

/// The longest run of a function on Lambda.
pub const LONGEST: Duration = Duration::from_secs(900);

/// Far longer than anything here takes. It separates a function that does not answer from a slow one.
const PATIENCE: Duration = Duration::from_secs(600);

/// A running function.
pub struct Lambda {
    api: RuntimeApi,
    child: Child,
    log: NamedTempFile,
}

/// The environment in which Lambda starts a function.
pub fn environment(function: &str, api: &str) -> Vec<(String, String)> {
    let log_group = format!("/aws/lambda/{function}");
    let fixed = [
        ("_HANDLER", "bootstrap"),
        ("AWS_DEFAULT_REGION", lamplighter_local::engines::REGION),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
        ("AWS_LAMBDA_FUNCTION_NAME", function),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", &log_group),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "2026/11/21/[$LATEST]0a1b2c3d4e5f60718293a4b5c6d7e8f9"),
        ("AWS_LAMBDA_RUNTIME_API", api),
        ("AWS_REGION", lamplighter_local::engines::REGION),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_SESSION_TOKEN", "a-session"),
        ("LAMBDA_RUNTIME_DIR", "/var/runtime"),
        ("LAMBDA_TASK_ROOT", "/var/task"),
        ("LANG", "en_US.UTF-8"),
        ("PATH", "/usr/local/bin:/usr/bin/:/bin:/opt/bin"),
        ("TZ", ":UTC"),
    ];
    fixed.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// A function's binary with exactly this environment.
pub fn command(function: &str, environment: Vec<(String, String)>) -> Command {
    let mut command = Command::new(binary(function));
    command.env_clear().envs(environment).stdin(Stdio::null()).kill_on_drop(true);
    command
}

impl Lambda {
    /// Starts a function. The variables in `more` override those that Lambda sets.
    pub async fn start(function: &str, more: Vec<(String, String)>) -> Self {
        let api = RuntimeApi::start().await;
        let mut variables = environment(function, &api.address.to_string());
        variables.extend(more);
        let log = NamedTempFile::new().unwrap();
        let file = log.reopen().unwrap();
        let child = command(function, variables)
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{function} starts: {error}"));
        Self { api, child, log }
    }

    /// The lines that the function has written.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Invokes the function. The payload need not be JSON.
    pub async fn invoke_within(&mut self, payload: impl Into<Bytes>, remaining: Duration) -> Reply {
        let payload = payload.into();
        assert!(payload.len() <= MOST, "Lambda takes {MOST} bytes and was sent {}", payload.len());
        let invoked = self.api.invoke(payload, remaining);
        tokio::select! {
            reply = invoked => reply,
            ended = self.child.wait() => panic!("the process ended: {ended:?}\n{}", self.log()),
            () = tokio::time::sleep(PATIENCE) => panic!("no reply\n{}", self.log()),
        }
    }

    pub async fn invoke(&mut self, payload: &Value) -> Reply {
        self.invoke_within(payload.to_string(), LONGEST).await
    }

    /// Sends a request and reads the whole response.
    pub async fn http(&mut self, payload: &Value) -> Http {
        self.invoke(payload).await.http().await
    }

    /// Sends SIGTERM, as Lambda does before it removes the execution environment.
    pub async fn terminate(mut self) -> ExitStatus {
        let id = self.child.id().expect("it runs").to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
        let ended = tokio::time::timeout(PATIENCE, self.child.wait());
        ended.await.expect("it ends").unwrap()
    }
}
