//! The console: the pages for people. One HTML page loads one script and one style sheet, and everything else is a call of
//! the API from the browser. This function stores nothing and decides nothing.

#[cfg(test)]
#[path = "../build/join.rs"]
mod join;
mod page;
mod routes;
#[cfg(test)]
#[path = "../build/squeeze.rs"]
mod squeeze;
#[cfg(test)]
mod tests;

use models::Models;
pub use routes::describe;
use shared::runtime::function::{Function, Trigger};

pub const FUNCTION: Function = Function {
    name: "console",
    trigger: Trigger::Http { routes: routes::router, streaming: false },
    models: Models::none,
    areas: &[],
};

/// The files that the page loads.
struct File {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    compressed: Option<Compressed>,
    /// The name changes with the content.
    immutable: bool,
}

/// For clients that say that they understand it.
struct Compressed {
    brotli: &'static [u8],
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/names.rs"));

const FILES: &[File] = &[
    File {
        name: JS,
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!(concat!(env!("OUT_DIR"), "/console.js")),
        compressed: Some(Compressed {
            brotli: include_bytes!(concat!(env!("OUT_DIR"), "/console.js.br")),
            gzip: include_bytes!(concat!(env!("OUT_DIR"), "/console.js.gz")),
        }),
        immutable: true,
    },
    File {
        name: CSS,
        kind: "text/css; charset=utf-8",
        bytes: include_bytes!(concat!(env!("OUT_DIR"), "/console.css")),
        compressed: Some(Compressed {
            brotli: include_bytes!(concat!(env!("OUT_DIR"), "/console.css.br")),
            gzip: include_bytes!(concat!(env!("OUT_DIR"), "/console.css.gz")),
        }),
        immutable: true,
    },
    icon("icon.svg", "image/svg+xml", include_bytes!("../web/icon.svg")),
    icon("icon-192.png", "image/png", include_bytes!("../web/icon-192.png")),
    icon("icon-512.png", "image/png", include_bytes!("../web/icon-512.png")),
    icon("manifest.webmanifest", "application/manifest+json", include_bytes!("../web/manifest.webmanifest")),
];

const fn icon(name: &'static str, kind: &'static str, bytes: &'static [u8]) -> File {
    File { name, kind, bytes, compressed: None, immutable: false }
}
