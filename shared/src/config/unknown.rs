//! The names of the platform's variables, and a warning about names that are none of them.

/// The prefix of the platform's own variables.
const PREFIX: &str = "LAMPLIGHTER_";

/// The platform's own variables and those of its command, without their prefix. A test compares them with the manuals.
pub const VARIABLES: &[&str] = &[
    "ALLOWED_HOSTS",
    "ANSWER_DAYS",
    "API_KEY",
    "AUTH",
    "BEDROCK",
    "BEDROCK_REGION",
    "BUCKET",
    "BUS",
    "CORS_ORIGINS",
    "DATA",
    "DAY_BUDGET_MAX_MICROS",
    "DAY_BUDGET_MICROS",
    "DEAD_LETTERS",
    "ENRICHMENT_BUDGET_MICROS",
    "EXECUTORS",
    "FEATURES",
    "HOST",
    "JWKS_CA_FILE",
    "JWKS_URL",
    "JWT_AUDIENCE",
    "JWT_ISSUER",
    "LOG_HOT_DAYS",
    "MAIL_CONFIGURATION_SET",
    "MAIL_FROM",
    "MASTER_KEY",
    "MODEL",
    "MODELS",
    "MODEL_KEY",
    "MODEL_TOOLS",
    "MODEL_URL",
    "MONTH_BUDGET_MAX_MICROS",
    "PLAN",
    "PLANS",
    "PORT",
    "PRICES",
    "PROJECT",
    "PUBLIC_URL",
    "QUEUE",
    "RATE_LIMITS",
    "RUN_BUDGET_MICROS",
    "SERVERS",
    "SIGN_IN_AUTHORIZE_URL",
    "SIGN_IN_CLIENT_ID",
    "SIGN_IN_SCOPE",
    "SIGN_IN_TOKEN",
    "SIGN_IN_TOKEN_URL",
    "SMTP_CA_FILE",
    "STATE",
    "SWEEP_PING_URL",
    "TABLE",
    "TELEGRAM_API",
    "TIMERS",
    "URL",
    "WATCHDOG_PING_URL",
];

/// A sentence about each variable of the environment that begins like one of the platform but is none of them. A misspelt
/// variable is ignored, so a limit or a key that somebody believes to have set is not set.
#[must_use]
pub fn unknown_variables(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut sentences: Vec<String> = names.into_iter().filter_map(|name| unknown(&name)).collect();
    sentences.sort_unstable();
    sentences
}

/// Logs each unknown variable of the process.
pub fn warn_of_unknown_variables() {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for sentence in unknown_variables(names) {
        tracing::warn!("{sentence}");
    }
}

fn unknown(name: &str) -> Option<String> {
    let rest = name.strip_prefix(PREFIX).filter(|rest| !VARIABLES.contains(rest))?;
    let near = VARIABLES.iter().map(|known| (strsim::damerau_levenshtein(rest, known), known));
    let near = near.min().filter(|(distance, known)| *distance <= known.len() / 2);
    let hint = near.map_or_else(String::new, |(_, known)| format!("; do you mean {PREFIX}{known}?"));
    Some(format!("the variable {name} is unknown and has no effect{hint}"))
}
