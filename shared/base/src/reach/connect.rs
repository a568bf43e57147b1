//! Connections of protocols other than HTTP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use domain::reach::CheckedServer;
use reqwest::dns::{Name, Resolve};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::resolver::{Guarded, System};
use super::{FetchError, NotReachable};

/// Connects to a server. Every address that DNS answers is checked, and the connection goes to one of the checked ones. The caller limits
/// the time.
///
/// # Errors
/// If an address is refused, or if no address answers.
pub async fn connect(server: &CheckedServer) -> Result<TcpStream, FetchError> {
    connect_with(server, Arc::new(System)).await
}

pub(super) async fn connect_with(
    server: &CheckedServer,
    resolver: Arc<dyn Resolve>,
) -> Result<TcpStream, FetchError> {
    let failed = |problem| FetchError::Failed { from: server.to_string(), problem };
    let addresses: Vec<SocketAddr> = match server.literal() {
        Some(ip) => vec![SocketAddr::new(ip, server.port())],
        None => {
            let name: Name = server.host().parse().map_err(|_| failed("its name does not resolve"))?;
            let answers = Guarded::new(resolver, server.is_allowed()).resolve(name).await;
            let answers = answers.map_err(|error| match error.downcast_ref::<NotReachable>() {
                Some(refused) => FetchError::NotReachable(refused.clone()),
                None => failed("its name does not resolve"),
            })?;
            answers.map(|address| SocketAddr::new(address.ip(), server.port())).collect()
        }
    };
    for address in addresses {
        if let Ok(stream) = TcpStream::connect(address).await {
            return Ok(stream);
        }
    }
    Err(failed("no connection"))
}

/// Encrypts a connection. The certificate must be one of the host.
///
/// # Errors
/// If the server has no valid certificate, or if the connection breaks.
pub async fn encrypt(
    stream: TcpStream,
    server: &CheckedServer,
    tls: Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let name = match server.literal() {
        Some(ip) => ServerName::from(ip),
        None => ServerName::try_from(server.host().to_owned()).map_err(io::Error::other)?,
    };
    TlsConnector::from(tls).connect(name, stream).await
}
