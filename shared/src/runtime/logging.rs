//! Which log lines are written.
//!
//! `RUST_LOG` sets the level, but not for all code: only code that is known to log no bodies and no secrets may log.
//! Our own crates name each field that they log. A few libraries that only transport bytes may log warnings. All others
//! are silent at every level. For example, the AWS SDK would print whole requests and presigned addresses, and the MCP
//! library every argument and answer.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// The crates of this workspace, by their names in the log.
pub const OURS: &[&str] = &[
    "account",
    "action_define",
    "agent_chat",
    "agents",
    "asset_save",
    "authorizer",
    "base",
    "catalog",
    "console",
    "context",
    "docs_sync",
    "domain",
    "lamplighter_local",
    "mcp",
    "memory_recall",
    "models",
    "schedule_sweep",
    "scheduled_executor",
    "notices",
    "shared",
    "theme_chat",
    "theme_index",
    "theme_lookup",
    "watch",
    "watchdog",
];

/// Libraries whose warnings are only about connections and the process.
const MOVERS: &[&str] = &["hyper", "lambda_http", "lambda_runtime", "rustls", "tokio"];

/// The filter from `RUST_LOG`. If it is not set, our own code logs at the level `otherwise`. `EnvFilter` is not used,
/// because it would add a regex engine to every binary.
#[must_use]
pub fn filter(otherwise: LevelFilter) -> Targets {
    let asked = std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok());
    allowed(&asked.unwrap_or_else(|| Targets::new().with_default(otherwise)))
}

/// Reduces a requested filter to the code that may log.
fn allowed(asked: &Targets) -> Targets {
    let default = asked.default_level().unwrap_or(LevelFilter::OFF);
    let mut allowed = Targets::new().with_default(LevelFilter::OFF);
    for (names, most) in [(OURS, LevelFilter::TRACE), (MOVERS, LevelFilter::WARN)] {
        allowed = allowed.with_targets(names.iter().map(|name| (*name, default.min(most))));
        let within = |target: &str| {
            names.iter().any(|name| {
                target == *name || target.strip_prefix(name).is_some_and(|rest| rest.starts_with("::"))
            })
        };
        let named = asked.iter().filter(|(target, _)| within(target));
        allowed = allowed.with_targets(named.map(|(target, level)| (target, level.min(most))));
    }
    allowed
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn no_level_makes_a_library_log_contents() {
        for text in
            ["trace", "debug", "rmcp=trace,aws_smithy_runtime=trace,s3s=debug,shared=debug", "hyper=trace"]
        {
            let allowed = allowed(&text.parse().unwrap());
            for silent in [
                "rmcp::service",
                "aws_smithy_runtime::client",
                "aws_sigv4",
                "s3s::service",
                "dynoxide",
                "reqwest",
            ] {
                for level in [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR] {
                    assert!(!allowed.would_enable(silent, &level), "{text}: {silent} {level}");
                }
            }
            for mover in ["hyper", "hyper_util::client", "lambda_runtime"] {
                assert!(!allowed.would_enable(mover, &Level::INFO), "{text}: {mover}");
            }
        }
    }

    #[test]
    fn our_own_code_logs_at_the_requested_level() {
        let check = |text: &str, target: &str, level: Level, expected: bool| {
            let allowed = allowed(&text.parse().unwrap());
            assert_eq!(allowed.would_enable(target, &level), expected, "{text}: {target} {level}");
        };
        check("debug", "shared::edge", Level::DEBUG, true);
        check("debug", "shared::edge", Level::TRACE, false);
        check("warn", "shared::edge", Level::INFO, false);
        check("warn,shared::flows=debug", "shared::flows::turn", Level::DEBUG, true);
        check("warn,shared::flows=debug", "shared::edge", Level::INFO, false);
        check("shared=info", "mcp::server", Level::ERROR, false);
        check("off,hyper=warn", "hyper::proto", Level::WARN, true);
        check("info", "hyper::proto", Level::WARN, true);
    }
}
