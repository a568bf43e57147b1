//! A function's routes: declared once, by the names of their handlers, for two readers.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use utoipa_axum::PathItemExt;

use crate::context::Cx;

#[doc(hidden)]
pub use pastey::paste;

/// Makes `router()`, which serves the named handlers, and `describe()`, which describes them for the OpenAPI document; with
/// `in`, the same of the named modules together.
///
/// Two functions and not one that gives both, as `utoipa_axum` has it: a Lambda that never calls `describe` does not contain
/// the description, and does not build it at each start.
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

/// Adds a handler under the path and the method that its description has.
pub fn with<P: utoipa::Path, H: Handler<T, Cx>, T: 'static>(router: Router<Cx>, handler: H) -> Router<Cx> {
    let methods = P::methods();
    let filter = methods.iter().map(PathItemExt::to_method_filter).reduce(MethodFilter::or);
    router.route(&P::path(), on(filter.expect("a description has a method"), handler))
}
