//! The list of all functions. The local server runs them, the OpenAPI document describes them, and checks compare them
//! with the template and the folders. As a Lambda, the catalog answers `/health` and `/openapi.json`.

mod routes;

use axum::Router;
pub use routes::describe;
use shared::Cx;
use shared::function::{Function, Trigger};
use shared::models::Models;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// All functions, sorted by name.
pub const ALL: &[&Function] = &[
    &account::FUNCTION,
    &action_define::FUNCTION,
    &agent_chat::FUNCTION,
    &agents::FUNCTION,
    &asset_save::FUNCTION,
    &authorizer::FUNCTION,
    &FUNCTION,
    &context::FUNCTION,
    &mcp::FUNCTION,
    &schedule_sweep::FUNCTION,
    &scheduled_executor::FUNCTION,
    &theme_index::FUNCTION,
    &theme_lookup::FUNCTION,
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
    "context",
    "mcp",
    "schedule-sweep",
    "scheduled-executor",
    "theme-index",
    "theme-lookup",
];

pub const FUNCTION: Function = Function {
    name: "catalog",
    trigger: Trigger::Http { routes: routes::router, streaming: false },
    models: Models::none,
};

type Describe = fn() -> OpenApi;

/// For each function with routes, what describes them.
const DESCRIPTIONS: &[(&str, Describe)] = &[
    ("account", account::describe),
    ("action-define", action_define::describe),
    ("agent-chat", agent_chat::describe),
    ("agents", agents::describe),
    ("asset-save", asset_save::describe),
    ("catalog", describe),
    ("context", context::describe),
    ("mcp", mcp::describe),
    ("theme-lookup", theme_lookup::describe),
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

/// The OpenAPI description of all routes.
pub fn openapi() -> OpenApi {
    use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
    let mut document = OpenApiRouter::<Cx>::default().into_openapi();
    for (_, describe) in DESCRIPTIONS {
        document.merge(describe());
    }
    // In axum, `{*path}` is a parameter that matches the rest of the path, including slashes.
    let paths = std::mem::take(&mut document.paths.paths);
    document.paths.paths = paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    "Lamplighter".clone_into(&mut document.info.title);
    env!("CARGO_PKG_VERSION").clone_into(&mut document.info.version);
    document.info.description =
        Some("AI agents that keep their appointments, in your own AWS account.".to_owned());
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key (`llk_…`) or a JWT of the configured issuer"))
        .build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    document.security = Some(vec![SecurityRequirement::new("bearer", Vec::<String>::new())]);
    document
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
    fn every_function_is_heard_in_the_log() {
        for name in NAMES {
            assert!(shared::logging::OURS.contains(&name.replace('-', "_").as_str()), "{name}");
        }
    }

    #[test]
    fn every_function_with_routes_is_described() {
        let served = ALL.iter().filter(|function| matches!(function.trigger, Trigger::Http { .. }));
        let served: Vec<&str> = served.map(|function| function.name).collect();
        let described: Vec<&str> = DESCRIPTIONS.iter().map(|(name, _)| *name).collect();
        assert_eq!(described, served);
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
