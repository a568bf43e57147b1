//! Recommends the agent that should carry out a plan. It uses a simple rule, so that the same request always gets the
//! same answer: the agent with the most matching words wins. If two have the same number, the order below decides.

use super::document::Confidence;

/// A recommended agent, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    pub agent: &'static str,
    pub reason: String,
    pub confidence: Confidence,
}

/// The agent for requests without any matching word.
const ANY: &str = "software-engineer";

/// Each kind of agent with the words that count for it, in lower case and singular.
const KINDS: [(&str, &[&str]); 9] = [
    (
        "backend-developer",
        &[
            "api",
            "backend",
            "server",
            "endpoint",
            "rest",
            "graphql",
            "grpc",
            "auth",
            "authentication",
            "authorization",
            "login",
            "session",
            "jwt",
            "token",
            "oauth",
            "middleware",
            "controller",
            "service",
            "webhook",
            "queue",
            "cache",
            "lambda",
            "nestjs",
            "express",
            "django",
            "rails",
            "spring",
            "axum",
            "route",
        ],
    ),
    (
        "frontend-developer",
        &[
            "ui",
            "frontend",
            "component",
            "button",
            "page",
            "form",
            "css",
            "html",
            "react",
            "vue",
            "svelte",
            "angular",
            "nextjs",
            "tailwind",
            "layout",
            "style",
            "responsive",
            "accessibility",
            "modal",
            "navbar",
            "header",
            "footer",
            "theme",
            "liquid",
            "browser",
            "dashboard",
        ],
    ),
    (
        "mobile-developer",
        &[
            "mobile", "ios", "android", "swift", "swiftui", "kotlin", "flutter", "expo", "tablet", "apk",
            "xcode",
        ],
    ),
    (
        "data-engineer",
        &[
            "database",
            "schema",
            "sql",
            "migration",
            "table",
            "index",
            "query",
            "etl",
            "pipeline",
            "warehouse",
            "postgres",
            "postgresql",
            "mysql",
            "mongodb",
            "dynamodb",
            "redis",
            "prisma",
            "csv",
            "parquet",
            "dataset",
        ],
    ),
    (
        "devops-engineer",
        &[
            "deploy",
            "deployment",
            "ci",
            "cd",
            "docker",
            "dockerfile",
            "kubernetes",
            "helm",
            "terraform",
            "cloudformation",
            "sam",
            "infrastructure",
            "monitoring",
            "alarm",
            "rollback",
            "nginx",
            "aws",
            "gcp",
            "azure",
            "release",
        ],
    ),
    (
        "test-engineer",
        &[
            "test",
            "testing",
            "tdd",
            "coverage",
            "e2e",
            "fixture",
            "mock",
            "jest",
            "vitest",
            "pytest",
            "playwright",
            "cypress",
            "flaky",
        ],
    ),
    (
        "security-engineer",
        &[
            "security",
            "vulnerability",
            "xss",
            "csrf",
            "injection",
            "encryption",
            "encrypt",
            "secret",
            "cve",
            "owasp",
            "audit",
            "permission",
            "sandbox",
        ],
    ),
    (
        "ml-engineer",
        &[
            "ml",
            "ai",
            "llm",
            "model",
            "prompt",
            "embedding",
            "rag",
            "training",
            "inference",
            "pytorch",
            "tensorflow",
            "classifier",
        ],
    ),
    (
        "technical-writer",
        &[
            "documentation",
            "docs",
            "readme",
            "changelog",
            "tutorial",
            "guide",
            "glossary",
            "adr",
            "docstring",
        ],
    ),
];

/// Every kind of agent that can be recommended.
pub fn agents() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(agent, _)| *agent).chain([ANY])
}

/// Recommends an agent for a request.
#[must_use]
pub fn recommend(request: &str) -> Recommendation {
    let lower = request.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let matches = |keyword: &str| {
        words
            .iter()
            .any(|word| *word == keyword || word.strip_suffix('s').is_some_and(|single| single == keyword))
    };
    let mut best: Option<(&str, Vec<&str>)> = None;
    let mut all = 0;
    for (agent, keywords) in KINDS {
        let found: Vec<&str> = keywords.iter().copied().filter(|keyword| matches(keyword)).collect();
        all += found.len();
        if !found.is_empty() && best.as_ref().is_none_or(|(_, most)| found.len() > most.len()) {
            best = Some((agent, found));
        }
    }
    match best {
        None => Recommendation {
            agent: ANY,
            reason: "Nothing in the request names a field.".to_owned(),
            confidence: hundredths(30),
        },
        Some((agent, found)) => {
            // One word is a hint, and three are enough. Words of other agents reduce the confidence.
            let share = 100 * found.len() / all;
            let weight = (50 + 15 * found.len()).min(95);
            Recommendation {
                agent,
                reason: format!("The request speaks of {}.", found.join(", ")),
                confidence: hundredths(weight * (50 + share / 2) / 100),
            }
        }
    }
}

fn hundredths(n: usize) -> Confidence {
    Confidence::try_from(n as f64 / 100.0).expect("at most 95 hundredths")
}
