//! The list of all functions. The local server runs them, the OpenAPI document describes them, and checks compare them
//! with the template and the folders. As a Lambda, the catalog answers `/health` and `/openapi.json`.

mod document;
mod routes;

use axum::Router;
use domain::validate::FieldError;
use models::Models;
pub use routes::describe;
use serde_json::Value;
use shared::Cx;
use shared::context::Areas;
use shared::edge::problem::{OpenAiError, Problem};
use shared::runtime::function::{Function, Trigger};
use utoipa::openapi::{ComponentsBuilder, OpenApi};

/// Every area that is a crate of its own above `shared`.
pub const AREAS: Areas = &[&themes::area::WITH_TOOLS];

/// All functions, sorted by name.
pub const ALL: &[&Function] = &[
    &account::FUNCTION,
    &action_define::FUNCTION,
    &agent_chat::FUNCTION,
    &agents::FUNCTION,
    &asset_save::FUNCTION,
    &authorizer::FUNCTION,
    &FUNCTION,
    &console::FUNCTION,
    &context::FUNCTION,
    &docs_sync::FUNCTION,
    &mcp::FUNCTION,
    &memory_recall::FUNCTION,
    &notices::FUNCTION,
    &schedule_sweep::FUNCTION,
    &scheduled_executor::FUNCTION,
    &theme_chat::FUNCTION,
    &theme_index::FUNCTION,
    &theme_lookup::FUNCTION,
    &watch::FUNCTION,
    &watchdog::FUNCTION,
];

/// The names of all functions. They are separate from [`ALL`], so that the Lambda that returns them does not contain
/// all functions.
pub const NAMES: &[&str] = &[
    "account",
    "action-define",
    "agent-chat",
    "agents",
    "asset-save",
    "authorizer",
    "catalog",
    "console",
    "context",
    "docs-sync",
    "mcp",
    "memory-recall",
    "notices",
    "schedule-sweep",
    "scheduled-executor",
    "theme-chat",
    "theme-index",
    "theme-lookup",
    "watch",
    "watchdog",
];

pub const FUNCTION: Function = Function {
    name: "catalog",
    trigger: Trigger::Http { routes: routes::router, streaming: false },
    models: Models::none,
    areas: &[],
};

type Describe = fn() -> OpenApi;

/// The descriptions of all functions with routes.
const DESCRIPTIONS: &[(&str, Describe)] = &[
    ("account", account::describe),
    ("action-define", action_define::describe),
    ("agent-chat", agent_chat::describe),
    ("agents", agents::describe),
    ("asset-save", asset_save::describe),
    ("catalog", describe),
    ("console", console::describe),
    ("context", context::describe),
    ("docs-sync", docs_sync::describe),
    ("mcp", mcp::describe),
    ("memory-recall", memory_recall::describe),
    ("notices", notices::describe),
    ("theme-chat", theme_chat::describe),
    ("theme-lookup", theme_lookup::describe),
    ("watch", watch::describe),
];

/// The deployed OpenAPI document. It is generated from [`openapi`], and a test compares the two.
pub const OPENAPI_JSON: &str = include_str!("../../../infra/openapi.json");

/// The routes of all functions.
pub fn router() -> Router<Cx> {
    ALL.iter().fold(Router::new(), |all, function| match function.trigger {
        Trigger::Http { routes, .. } => all.merge(routes()),
        Trigger::Timer { .. }
        | Trigger::Queue { .. }
        | Trigger::Upload { .. }
        | Trigger::Authorizer { .. } => all,
    })
}

/// The description of all routes.
pub fn openapi() -> Value {
    // Every route refers to these schemas and none declares them.
    let components = ComponentsBuilder::new()
        .schema_from::<Problem>()
        .schema_from::<OpenAiError>()
        .schema_from::<FieldError>()
        .build();
    let mut routes = OpenApi::default();
    routes.components = Some(components);
    for (_, describe) in DESCRIPTIONS {
        shared::edge::routes::merge(&mut routes, describe());
    }
    document::complete(&routes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_all_functions() {
        let names: Vec<&str> = ALL.iter().map(|function| function.name).collect();
        assert_eq!(names, NAMES);
    }

    #[test]
    fn every_function_may_write_to_the_log() {
        for name in NAMES {
            assert!(shared::runtime::logging::OURS.contains(&name.replace('-', "_").as_str()), "{name}");
        }
    }

    #[test]
    fn every_function_with_routes_is_described() {
        let served = ALL.iter().filter(|function| matches!(function.trigger, Trigger::Http { .. }));
        let served: Vec<&str> = served.map(|function| function.name).collect();
        let described: Vec<&str> = DESCRIPTIONS.iter().map(|(name, _)| *name).collect();
        assert_eq!(described, served);
    }

    /// The list that the routes' layer checks is that of the document.
    #[test]
    fn the_parameters_of_all_queries_are_listed() {
        let document = openapi();
        let mut declared = std::collections::BTreeMap::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
                let parameters = parameters.iter().map(|parameter| match parameter["$ref"].as_str() {
                    Some(name) => document.pointer(name.trim_start_matches('#')).unwrap(),
                    None => parameter,
                });
                let queries = parameters.filter(|parameter| parameter["in"] == "query");
                let mut names: Vec<&str> =
                    queries.map(|parameter| parameter["name"].as_str().unwrap()).collect();
                names.sort_unstable();
                if !names.is_empty() {
                    declared.insert((method.to_uppercase(), path.clone()), names);
                }
            }
        }
        let listed = shared::edge::query::PARAMETERS.iter().map(|(method, path, names)| {
            let method = if *method == shared::edge::query::ANY { "POST" } else { method };
            let mut names = names.to_vec();
            names.sort_unstable();
            ((method.to_owned(), path.replace("{*", "{")), names)
        });
        assert_eq!(listed.collect::<std::collections::BTreeMap<_, _>>(), declared);
    }

    #[test]
    fn the_committed_document_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/openapi.json");
        let mut generated = serde_json::to_string_pretty(&openapi()).unwrap();
        generated.push('\n');
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(path, &generated).unwrap();
        } else {
            assert!(
                generated == OPENAPI_JSON,
                "infra/openapi.json is out of date: run `UPDATE_OPENAPI=1 cargo test -p catalog` and commit it"
            );
        }
    }
}
