//! Rate limits: how many requests a minute each class of routes takes from one caller.
//!
//! The windows are the minutes of the clock. In each of them a caller makes at most as many requests as the limit of the
//! class, whichever process answers. So any 60 seconds, which touch at most two windows, have at most twice as many.
//! A window that slides needs the times of all requests, and so a read before each write. A minute needs one counter.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// The length of a window, in seconds.
pub const WINDOW_SECONDS: i64 = 60;

/// The highest limit that can be configured.
pub const MAX_PER_MINUTE: u32 = 1_000_000;

/// Routes with a common limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RouteClass {
    /// Turns of the agent that edits a theme.
    ThemeAgent,
    /// Turns that stream.
    StreamedTurns,
    /// Other requests that call models.
    Turns,
    /// Calls of a coding assistant over MCP.
    Mcp,
    /// Reports of a coding assistant's hooks, of watched schedules, and of the servers of calls. An assistant sends one before and one
    /// after each tool call of each of its agents.
    Hooks,
    /// What pages show first, and ask for again every few seconds.
    Overview,
    /// All other routes.
    Others,
}

impl RouteClass {
    pub const ALL: [Self; 7] = [
        Self::ThemeAgent,
        Self::StreamedTurns,
        Self::Turns,
        Self::Mcp,
        Self::Hooks,
        Self::Overview,
        Self::Others,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThemeAgent => "theme_agent",
            Self::StreamedTurns => "streamed_turns",
            Self::Turns => "turns",
            Self::Mcp => "mcp",
            Self::Hooks => "hooks",
            Self::Overview => "overview",
            Self::Others => "others",
        }
    }

    /// The limit if none is configured.
    #[must_use]
    pub const fn default_per_minute(self) -> u32 {
        match self {
            Self::ThemeAgent => 10,
            Self::StreamedTurns => 20,
            Self::Turns => 30,
            Self::Others => 60,
            // A page that asks for two of them every three seconds makes 40, and people have several pages open.
            Self::Overview => 120,
            // Five calls a second, as long as an assistant works.
            Self::Mcp => 300,
            // Ten agents at once, each with a tool call every two seconds, report 600 times a minute.
            Self::Hooks => 600,
        }
    }

    /// The class of a route, by its method and its path with the names of parameters. `None` if it has no limit.
    #[must_use]
    pub fn of(method: &str, path: &str) -> Option<Self> {
        Some(match (method, path) {
            // Preflights, what load balancers and monitors read, and the files of the console. They are the same for everybody, and
            // their functions have no right to the table, in which requests are counted.
            ("OPTIONS", _)
            | ("GET" | "HEAD", "/health" | "/openapi.json" | "/" | "/docs" | "/console/{file}") => {
                return None;
            }
            ("POST", "/projects/{project_id}/chat") => Self::ThemeAgent,
            ("POST", "/agents/{agent_id}/chat" | "/setup/chat") => Self::StreamedTurns,
            (
                "POST",
                "/v1/chat/completions"
                | "/actions/{action_id}/messages"
                | "/actions/{action_id}/rehearse"
                | "/actions/{action_id}/run"
                | "/memory/sync"
                | "/memory/tidy"
                | "/proposals/{proposal_id}/accept",
            ) => Self::Turns,
            (
                "POST",
                "/context/hooks"
                | "/context/logs/{agent_id}"
                | "/memory/sessions/{session_id}/messages"
                | "/runs/{run_id}/report"
                | "/watched/{watched_id}/reports",
            )
            | ("GET" | "HEAD", "/context/recall") => Self::Hooks,
            (_, "/mcp") => Self::Mcp,
            ("GET" | "HEAD", "/inbox" | "/day" | "/memory/search" | "/runs" | "/search") => Self::Overview,
            _ => Self::Others,
        })
    }
}

/// The limits of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits([Option<u32>; RouteClass::ALL.len()]);

impl RateLimits {
    /// No limits.
    pub const OFF: Self = Self([None; RouteClass::ALL.len()]);

    /// The limit of a class per minute. `None`: no limit.
    #[must_use]
    pub const fn per_minute(&self, class: RouteClass) -> Option<u32> {
        self.0[class as usize]
    }

    /// Reads `on`, `off`, or texts such as `turns=100,hooks=off`. A class that is not named keeps its default.
    ///
    /// # Errors
    /// What is wrong, as a predicate.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut limits = Self::default();
        match text.trim() {
            "" | "on" => return Ok(limits),
            "off" => return Ok(Self::OFF),
            _ => {}
        }
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (name.trim(), value.trim());
            let Some(class) = RouteClass::ALL.into_iter().find(|class| class.name() == name) else {
                let names = RouteClass::ALL.map(RouteClass::name).join(", ");
                return Err(format!("must be `on`, `off`, or limits of {names}, names `{name}`"));
            };
            limits.0[class as usize] = match value.parse() {
                _ if value == "off" => None,
                Ok(limit) if (1..=MAX_PER_MINUTE).contains(&limit) => Some(limit),
                _ => {
                    return Err(format!(
                        "must set `{name}` to 1 to {MAX_PER_MINUTE} requests a minute or `off`, sets it to `{value}`"
                    ));
                }
            };
        }
        Ok(limits)
    }
}

impl Default for RateLimits {
    fn default() -> Self {
        Self(RouteClass::ALL.map(|class| Some(class.default_per_minute())))
    }
}

/// One window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Window(i64);

impl Window {
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        // `as_second` rounds towards zero, which is the wrong second before 1970.
        Self(now.as_millisecond().div_euclid(1_000 * WINDOW_SECONDS))
    }

    /// The first moment after it.
    #[must_use]
    pub fn end(self) -> Timestamp {
        Timestamp::from_second((self.0 + 1) * WINDOW_SECONDS).unwrap_or(Timestamp::MAX)
    }

    /// How many seconds remain, rounded up, so that a request after this time is in a later window.
    #[must_use]
    pub fn remaining_seconds(self, now: Timestamp) -> u64 {
        let left: SignedDuration = self.end().duration_since(now);
        let whole = left.as_secs() + i64::from(left.subsec_nanos() > 0);
        u64::try_from(whole).unwrap_or_default().max(1)
    }

    /// The window as a part of a key.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }
}

/// Whether one more request fits after `before` requests of a window.
#[must_use]
pub const fn admits(limit: u32, before: u32) -> bool {
    before < limit
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    proptest! {
        /// Requests at any times, in any order, as processes with wrong clocks make them.
        #[test]
        fn no_window_admits_more_than_its_limit(
            limit in 1u32..20,
            times in proptest::collection::vec(0i64..600_000, 0..400),
        ) {
            let mut counts: HashMap<Window, u32> = HashMap::new();
            let mut admitted = Vec::new();
            for time in times {
                let count = counts.entry(Window::at(at(time))).or_default();
                if admits(limit, *count) {
                    *count += 1;
                    admitted.push(time);
                }
            }
            let within = |from: i64, until: i64| admitted.iter().filter(|time| (from..until).contains(time)).count();
            for minute in 0..10 {
                prop_assert!(within(minute * 60_000, (minute + 1) * 60_000) <= limit as usize);
            }
            for from in &admitted {
                prop_assert!(within(*from, from + 60_000) <= 2 * limit as usize);
            }
        }

        /// A client that waits as long as it is told is in a later window, and does not wait for longer than a window.
        #[test]
        fn the_remaining_time_leads_into_the_next_window(millis in -4_000_000_000_000i64..4_000_000_000_000) {
            let (now, window) = (at(millis), Window::at(at(millis)));
            let wait = window.remaining_seconds(now);
            prop_assert!((1..=60).contains(&wait), "{}", wait);
            let after = now + SignedDuration::from_secs(i64::try_from(wait).unwrap());
            prop_assert_eq!(Window::at(after).number(), window.number() + 1);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = RateLimits::parse(&text);
        }
    }

    #[test]
    fn limits_are_read_by_class() {
        assert_eq!(RateLimits::parse(" on ").unwrap(), RateLimits::default());
        assert_eq!(RateLimits::parse("").unwrap(), RateLimits::default());
        assert_eq!(RateLimits::parse("off").unwrap(), RateLimits::OFF);
        let limits = RateLimits::parse("turns=7, hooks = off").unwrap();
        let read = RouteClass::ALL.map(|class| limits.per_minute(class));
        assert_eq!(read, [Some(10), Some(20), Some(7), Some(300), None, Some(120), Some(60)]);
        for (text, told) in [
            ("chat=1", "names `chat`"),
            ("turns", "must set `turns` to 1 to 1000000 requests a minute or `off`, sets it to ``"),
            ("turns=0", "sets it to `0`"),
            ("turns=-1", "sets it to `-1`"),
            ("turns=1000001", "sets it to `1000001`"),
        ] {
            let refused = RateLimits::parse(text).unwrap_err();
            assert!(refused.ends_with(told), "{refused}");
        }
    }

    #[test]
    fn routes_have_their_classes() {
        for (method, path, class) in [
            ("GET", "/health", None),
            ("HEAD", "/health", None),
            ("POST", "/health", Some(RouteClass::Others)),
            ("OPTIONS", "/agents", None),
            ("GET", "/openapi.json", None),
            ("GET", "/", None),
            ("GET", "/docs", None),
            ("GET", "/console/{file}", None),
            ("POST", "/", Some(RouteClass::Others)),
            ("POST", "/projects/{project_id}/chat", Some(RouteClass::ThemeAgent)),
            ("GET", "/projects/{project_id}/chats", Some(RouteClass::Others)),
            ("POST", "/setup/chat", Some(RouteClass::StreamedTurns)),
            ("GET", "/setup/chat", Some(RouteClass::Others)),
            ("POST", "/v1/chat/completions", Some(RouteClass::Turns)),
            ("POST", "/actions/{action_id}/rehearse", Some(RouteClass::Turns)),
            ("POST", "/context/hooks", Some(RouteClass::Hooks)),
            ("GET", "/context/hooks/rejected", Some(RouteClass::Others)),
            ("POST", "/mcp", Some(RouteClass::Mcp)),
            ("GET", "/inbox", Some(RouteClass::Overview)),
            ("GET", "/runs", Some(RouteClass::Overview)),
            ("GET", "/runs/{run_id}", Some(RouteClass::Others)),
            ("POST", "/inbox", Some(RouteClass::Others)),
            ("GET", "/agents", Some(RouteClass::Others)),
            ("GET", "-", Some(RouteClass::Others)),
        ] {
            assert_eq!(RouteClass::of(method, path), class, "{method} {path}");
        }
    }
}
