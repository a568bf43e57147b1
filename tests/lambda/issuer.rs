//! A token issuer: it signs tokens, and answers over TLS with its public keys, or with a faulty response.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

pub const ISSUER: &str = "https://issuer.example";
pub const AUDIENCE: &str = "lamplighter";

/// An authority, a server certificate and signing keys that were made only for these tests.
static DATA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("test_data/issuer.json")).unwrap());

fn bytes(value: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(value.as_str().unwrap()).unwrap()
}

/// The certificate of the authority that signed the issuer's certificate, in PEM.
pub fn authority() -> &'static str {
    DATA["authority"].as_str().unwrap()
}

/// The issuer's response to a request for its keys.
#[derive(Clone, Debug)]
pub enum IssuerResponse {
    Keys(&'static [&'static str]),
    Raw {
        status: &'static str,
        header: String,
        body: String,
    },
    /// Never answers.
    Silence,
}

impl IssuerResponse {
    pub fn body(body: impl Into<String>) -> Self {
        Self::Raw { status: "200 OK", header: String::new(), body: body.into() }
    }

    fn http(&self) -> Option<String> {
        let (status, header, body) = match self {
            Self::Keys(ids) => {
                let keys: Vec<&Value> = ids.iter().map(|id| &DATA["keys"][id]["jwk"]).collect();
                ("200 OK", String::new(), json!({ "keys": keys }).to_string())
            }
            Self::Raw { status, header, body } => (*status, header.clone(), body.clone()),
            Self::Silence => return None,
        };
        let length = body.len();
        Some(format!(
            "HTTP/1.1 {status}\r\n{header}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }
}

/// A running issuer.
pub struct Issuer {
    address: SocketAddr,
    answer: Arc<Mutex<IssuerResponse>>,
    asked: Arc<AtomicUsize>,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Issuer {
    pub async fn start(answer: IssuerResponse) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (answer, asked) = (Arc::new(Mutex::new(answer)), Arc::new(AtomicUsize::new(0)));
        let (acceptor, shown, counted) = (acceptor(), Arc::clone(&answer), Arc::clone(&asked));
        let server = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let answer = shown.lock().unwrap().http();
                tokio::spawn(serve(acceptor.clone(), socket, answer, Arc::clone(&counted)));
            }
        });
        Self { address, answer, asked, server }
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}/keys", self.address.port())
    }

    pub fn answers(&self, answer: IssuerResponse) {
        *self.answer.lock().unwrap() = answer;
    }

    /// How often its keys were requested.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn acceptor() -> TlsAcceptor {
    let certificate = CertificateDer::from(bytes(&DATA["server"]["certificate"]));
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(bytes(&DATA["server"]["private"])));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

/// Serves one request. A client that does not trust the certificate never sends one.
async fn serve(acceptor: TlsAcceptor, socket: TcpStream, answer: Option<String>, asked: Arc<AtomicUsize>) {
    let Ok(mut stream) = acceptor.accept(socket).await else { return };
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => return,
        }
    }
    asked.fetch_add(1, Ordering::SeqCst);
    match answer {
        Some(answer) => {
            // The client may close the connection early.
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        None => std::future::pending().await,
    }
}

/// The claims of a token that is valid for an hour from `now`, in seconds. The value `(absent)` removes a claim.
pub fn claims(now: i64, change: &Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "anna", "iat": now, "exp": now + 3_600});
    for (name, value) in change.as_object().unwrap() {
        match value.as_str() {
            Some("(absent)") => drop(claims.as_object_mut().unwrap().remove(name)),
            _ => claims[name] = value.clone(),
        }
    }
    claims
}

/// A token that the issuer signed with this key.
pub fn token(key: &str, claims: &Value) -> String {
    let der = bytes(&DATA["keys"][key]["private"]);
    let (algorithm, signing) = match DATA["keys"][key]["jwk"]["kty"].as_str() {
        Some("RSA") => (Algorithm::RS256, EncodingKey::from_rsa_der(&der)),
        _ => (Algorithm::ES256, EncodingKey::from_ec_der(&der)),
    };
    encode(&Header { kid: Some(key.to_owned()), ..Header::new(algorithm) }, claims, &signing).unwrap()
}

/// The same token with another key id.
pub fn token_called(name: &str, key: &str, claims: &Value) -> String {
    let token = token(key, claims);
    let rest = token.split_once('.').unwrap().1;
    format!("{}.{rest}", part(&json!({"alg": "RS256", "kid": name})))
}

/// An unsigned token, or one signed with public data: the key's public parameter as a shared secret.
pub fn forged(algorithm: &str, key: &str, claims: &Value) -> String {
    let header = json!({"alg": algorithm, "kid": key, "typ": "JWT"});
    if algorithm.eq_ignore_ascii_case("none") {
        return format!("{}.{}.", part(&header), part(claims));
    }
    let public = BASE64_URL_SAFE_NO_PAD.decode(DATA["keys"][key]["jwk"]["n"].as_str().unwrap()).unwrap();
    let header = Header { kid: Some(key.to_owned()), ..Header::new(Algorithm::HS256) };
    encode(&header, claims, &EncodingKey::from_secret(&public)).unwrap()
}

fn part(value: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(value.to_string())
}
