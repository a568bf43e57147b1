//! The routes of a function. They are declared once, by the names of their handlers, for the router and for the OpenAPI
//! document.

use std::collections::BTreeMap;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{OpenApi, RefOr};
use utoipa_axum::PathItemExt;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::context::Cx;

#[doc(hidden)]
pub use pastey::paste;

/// Generates `router()`, which serves the named handlers, and `describe()`, which describes them for the OpenAPI
/// document. With `in`, it combines the named modules instead.
///
/// `utoipa_axum` builds both with one function. Two functions are better here: a Lambda that never calls `describe`
/// does not contain the description, and does not build it at each start.
///
/// ```ignore
/// shared::routes!(create, list, read);
/// shared::routes!(in files, answers);
/// ```
#[macro_export]
macro_rules! routes {
    (in $($module:path),+ $(,)?) => {
        pub fn router() -> ::axum::Router<$crate::Cx> {
            ::axum::Router::new()$(.merge({ use $module as part; part::router() }))+
        }

        pub fn describe() -> ::utoipa::openapi::OpenApi {
            let mut all = ::utoipa::openapi::OpenApi::default();
            $($crate::edge::routes::merge(&mut all, { use $module as part; part::describe() });)+
            all
        }
    };
    ($($handler:ident),+ $(,)?) => {
        pub fn router() -> ::axum::Router<$crate::Cx> {
            let router = ::axum::Router::new();
            $crate::edge::routes::paste! {
                $(let router = $crate::edge::routes::with::<[<__path_ $handler>], _, _>(router, $handler);)+
            }
            router
        }

        pub fn describe() -> ::utoipa::openapi::OpenApi {
            let mut all = ::utoipa::openapi::OpenApi::default();
            $($crate::edge::routes::merge(&mut all, $crate::edge::routes::described(::utoipa_axum::routes!($handler)));)+
            all
        }
    };
}

/// Adds a handler under the path and method of its description.
pub fn with<P: utoipa::Path, H: Handler<T, Cx>, T: 'static>(router: Router<Cx>, handler: H) -> Router<Cx> {
    let methods = P::methods();
    let filter = methods.iter().map(PathItemExt::to_method_filter).reduce(MethodFilter::or);
    router.route(&P::path(), on(filter.expect("a description has a method"), handler))
}

/// The description of one handler.
///
/// # Panics
/// If two different types have the same name.
#[must_use]
pub fn described(handler: UtoipaMethodRouter<Cx>) -> OpenApi {
    let mut named: BTreeMap<&str, &RefOr<Schema>> = BTreeMap::new();
    for (name, schema) in &handler.0 {
        one_name(name, named.entry(name).or_insert(schema), schema);
    }
    OpenApiRouter::default().routes(handler).into_openapi()
}

/// Adds the description of a part.
///
/// # Panics
/// If a type of the part has the name of another type: clients would get the wrong one.
pub fn merge(all: &mut OpenApi, part: OpenApi) {
    if let (Some(known), Some(new)) = (&all.components, &part.components) {
        for (name, schema) in &new.schemas {
            one_name(name, known.schemas.get(name).unwrap_or(schema), schema);
        }
    }
    all.merge(part);
}

fn one_name(name: &str, known: &RefOr<Schema>, new: &RefOr<Schema>) {
    assert!(known == new, "two types are called {name} in the OpenAPI document: rename one of them");
}
