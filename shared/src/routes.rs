//! The routes of a function. They are declared once, by the names of their handlers, for the router and for the OpenAPI
//! document.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use utoipa_axum::PathItemExt;

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
            let mut all = ::utoipa_axum::router::OpenApiRouter::<$crate::Cx>::default().into_openapi();
            $(all.merge({ use $module as part; part::describe() });)+
            all
        }
    };
    ($($handler:ident),+ $(,)?) => {
        pub fn router() -> ::axum::Router<$crate::Cx> {
            let router = ::axum::Router::new();
            $crate::routes::paste! {
                $(let router = $crate::routes::with::<[<__path_ $handler>], _, _>(router, $handler);)+
            }
            router
        }

        pub fn describe() -> ::utoipa::openapi::OpenApi {
            ::utoipa_axum::router::OpenApiRouter::<$crate::Cx>::default()
                $(.routes(::utoipa_axum::routes!($handler)))+
                .into_openapi()
        }
    };
}

/// Adds a handler under the path and method of its description.
pub fn with<P: utoipa::Path, H: Handler<T, Cx>, T: 'static>(router: Router<Cx>, handler: H) -> Router<Cx> {
    let methods = P::methods();
    let filter = methods.iter().map(PathItemExt::to_method_filter).reduce(MethodFilter::or);
    router.route(&P::path(), on(filter.expect("a description has a method"), handler))
}
