//! What the platform may reach outside: the guard against server-side request forgery.
//!
//! People and models name servers: pages, webhooks, MCP servers, model servers. Such an address must not lead into the network of
//! the platform. [`check`] judges a URL before a request, and [`Address`] judges the addresses that DNS answers. `base::reach` sends
//! requests only to what was checked here.
//!
//! URLs are parsed as browsers parse them, and the result is judged, never the text: `http://0x7f.1` and `http://①②⑦.0.0.1` are
//! 127.0.0.1.

mod address;
mod policy;
mod target;

pub use address::Address;
pub(crate) use policy::is_name;
pub use policy::{AllowedHost, InvalidHost, Policy};
pub use target::{
    Checked, CheckedServer, MAX_URL_BYTES, Reason, Refused, check, check_host, check_https, check_server,
    may_connect, not_public,
};
