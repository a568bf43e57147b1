//! HTTPS connections to other servers: ring, HTTP/1.1, and root certificates that are compiled into the binary.
//!
//! The AWS SDK's own HTTP client reads the system's root certificates for each client, and again with the first call.
//! That would take most of the time of a cold start.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use http_body::Body;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The time limit for opening a connection.
const CONNECT: Duration = Duration::from_secs(2);

/// The TLS configuration of all our HTTPS clients.
///
/// # Panics
/// Never: ring has the default protocol versions.
#[must_use]
pub fn tls() -> rustls::ClientConfig {
    trusting(public())
}

/// The certificates of the public authorities.
#[must_use]
pub fn public() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

/// The TLS configuration for a server with a certificate from one of these authorities. It trusts no others.
///
/// # Panics
/// Never: ring has the default protocol versions.
#[must_use]
pub fn trusting(roots: RootCertStore) -> rustls::ClientConfig {
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// The certificates of a PEM file, to be trusted. `None` if the file holds no certificate, or one that cannot be read.
#[must_use]
pub fn authorities(pem: &[u8]) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.ok()?).ok()?;
    }
    (!roots.is_empty()).then_some(roots)
}

/// A client with its own connection pool.
pub type Pooled<B> = legacy::Client<HttpsConnector<legacy::connect::HttpConnector>, B>;

/// The HTTP client of the AWS SDK: one connection pool for all SDK clients.
#[must_use]
pub fn sdk_client() -> SharedHttpClient {
    let connector = SharedHttpConnector::new(Hyper(pooled()));
    http_client_fn(move |_, _| connector.clone())
}

/// A client for AWS. It uses TLS, except for endpoints with `http://`.
pub fn pooled<B: Body + Send>() -> Pooled<B>
where
    B::Data: Send,
{
    let mut tcp = legacy::connect::HttpConnector::new();
    // The connector above this one checks the endpoint's scheme.
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(tls())
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    legacy::Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector)
}

#[derive(Clone, Debug)]
struct Hyper(Pooled<SdkBody>);

impl HttpConnector for Hyper {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into()))),
        };
        let answer = self.0.request(request);
        HttpConnectorFuture::new(async move {
            let answer = answer.await.map_err(classified)?;
            HttpResponse::try_from(answer.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// Tells the SDK whether a retry may help. It may, unless the request itself cannot be sent.
fn classified(error: legacy::Error) -> ConnectorError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_user) {
            return ConnectorError::user(error.to_string().into());
        }
        if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::TimedOut) {
            return ConnectorError::timeout(error.to_string().into());
        }
        cause = error.source();
    }
    ConnectorError::io(error.into())
}
