//! TLS for calls to the outside: ring, and the roots in the binary. Loading the system's trust store is what a cold
//! start would notice most.

use std::sync::Arc;

/// What every HTTPS client of ours is built with.
///
/// # Panics
/// Never: ring has the default protocol versions.
#[must_use]
pub fn tls() -> rustls::ClientConfig {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
