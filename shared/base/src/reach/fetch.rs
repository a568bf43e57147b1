//! Requests that follow redirects, within limits.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::reach::{Checked, Policy, Refused};
use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use reqwest::Response;

use super::{Client, NotReachable, client, refusal};

/// The headers that another origin also gets. Every other one may hold a secret.
const HARMLESS: [HeaderName; 3] = [header::ACCEPT, header::ACCEPT_LANGUAGE, header::USER_AGENT];

/// The limits of one fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes of the answer, as it is sent and as it is read.
    pub bytes: usize,
    pub redirects: u32,
    /// For a connection, with DNS and TLS.
    pub connect: Duration,
    /// For everything, with all redirects.
    pub total: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { bytes: 2 << 20, redirects: 5, connect: Duration::from_secs(5), total: Duration::from_secs(20) }
    }
}

/// What is fetched.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: Method,
    pub url: String,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
}

impl Ask {
    #[must_use]
    pub fn get(url: impl Into<String>) -> Self {
        Self { method: Method::GET, url: url.into(), headers: HeaderMap::new(), body: None }
    }

    /// Whether the request holds something that must not be sent without encryption if it was first sent with it.
    fn has_secrets(&self) -> bool {
        self.body.is_some() || self.headers.keys().any(|name| !HARMLESS.contains(name))
    }
}

/// An answer, with any status except a redirect that was followed.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The URL that answered, after all redirects.
    pub url: Checked,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there is no answer. The messages show at most scheme, host and port of a URL.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    NotReachable(#[from] NotReachable),
    #[error("{from} redirects to a place that is not a URL")]
    Location { from: String },
    #[error("{from} redirects to {to}, which would send {what} without encryption or to another server")]
    Leak { from: String, to: String, what: &'static str },
    #[error("{from} is refused: more than {limit} redirects")]
    Redirects { from: String, limit: u32 },
    #[error("the answer of {from} is longer than {limit} bytes")]
    TooLarge { from: String, limit: usize },
    #[error(
        "the answer of {from} has the encoding {encoding}; only gzip, deflate and answers without compression are read"
    )]
    Encoded { from: String, encoding: String },
    #[error("{from} did not answer within {} seconds", limit.as_secs_f32())]
    TimedOut { from: String, limit: Duration },
    #[error("{from} cannot be reached: {problem}")]
    Failed { from: String, problem: &'static str },
}

/// Fetches from public servers, and from those that the policy allows.
#[derive(Clone, Debug)]
pub struct Fetch {
    pub(super) client: Client,
    limits: FetchLimits,
}

impl Fetch {
    #[must_use]
    pub fn new(policy: Arc<Policy>, limits: FetchLimits) -> Self {
        Self::with_client(client(policy, limits.connect, limits.total), limits)
    }

    pub(super) const fn with_client(client: Client, limits: FetchLimits) -> Self {
        Self { client, limits }
    }

    /// Sends a request, follows redirects and reads the answer.
    ///
    /// 303 turns every method except HEAD into GET, and 301 and 302 turn POST into GET, as browsers do. Other redirects repeat the method
    /// and the body, but only to the same origin. Another origin gets no headers except the harmless ones.
    ///
    /// # Errors
    /// If a URL or an address is refused, a limit is exceeded, or the server cannot be reached.
    pub async fn send(&self, ask: Ask) -> Result<Fetched, FetchError> {
        let mut at = self.client.check(&ask.url)?;
        let sent = self.follow(ask, &mut at);
        match tokio::time::timeout(self.limits.total, sent).await {
            Ok(answer) => answer,
            Err(_) => Err(FetchError::TimedOut { from: at.origin(), limit: self.limits.total }),
        }
    }

    /// Sends a request to one server, follows no redirect, and reads at most `keep` bytes of the answer. Once the status is there, it
    /// counts: the rest may be longer, break or not come in time.
    ///
    /// # Errors
    /// If the URL or an address is refused, or no status comes.
    pub async fn send_once(&self, ask: Ask, keep: usize) -> Result<Fetched, FetchError> {
        let at = self.client.check(&ask.url)?;
        let until = tokio::time::Instant::now() + self.limits.total;
        let mut answer = match tokio::time::timeout_at(until, self.once(&ask, &at)).await {
            Ok(answer) => answer?,
            Err(_) => return Err(FetchError::TimedOut { from: at.origin(), limit: self.limits.total }),
        };
        let (status, headers) = (answer.status(), std::mem::take(answer.headers_mut()));
        let mut body = Vec::new();
        // Nobody can read what is compressed.
        if !headers.contains_key(header::CONTENT_ENCODING) {
            while body.len() < keep
                && let Ok(Ok(Some(piece))) = tokio::time::timeout_at(until, answer.chunk()).await
            {
                body.extend_from_slice(&piece[..piece.len().min(keep - body.len())]);
            }
        }
        Ok(Fetched { url: at, status, headers, body: body.into() })
    }

    async fn follow(&self, mut ask: Ask, at: &mut Checked) -> Result<Fetched, FetchError> {
        for _ in 0..=self.limits.redirects {
            let answer = self.once(&ask, at).await?;
            let Some(location) = location(&answer) else { return self.read(answer, at).await };
            let location = std::str::from_utf8(location.as_bytes())
                .map_err(|_| FetchError::Location { from: at.origin() })?;
            let to = at.join(location, self.client.policy())?;
            redirect(&mut ask, answer.status(), at, &to)?;
            *at = to;
        }
        Err(FetchError::Redirects { from: at.origin(), limit: self.limits.redirects })
    }

    async fn once(&self, ask: &Ask, at: &Checked) -> Result<Response, FetchError> {
        let mut headers = ask.headers.clone();
        // These belong to the connection, and a caller must not choose another server with them.
        for name in [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION] {
            headers.remove(name);
        }
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let request = self.client.request(ask.method.clone(), at).headers(headers);
        let request = match &ask.body {
            Some(body) => request.body(body.clone()),
            None => request,
        };
        request.send().await.map_err(|error| self.failed(&error, at))
    }

    async fn read(&self, mut answer: Response, at: &Checked) -> Result<Fetched, FetchError> {
        let encoding = encoding_of(answer.headers());
        let packing = match encoding.as_str() {
            "" => None,
            "gzip" | "x-gzip" => Some(Packing::Gzip),
            "deflate" => Some(Packing::Deflate),
            _ => {
                return Err(FetchError::Encoded {
                    from: at.origin(),
                    encoding: encoding.chars().take(40).collect(),
                });
            }
        };
        let limit = self.limits.bytes;
        let too_large = || FetchError::TooLarge { from: at.origin(), limit };
        let announced = answer.content_length().unwrap_or(0);
        if announced > limit as u64 {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| self.failed(&error, at))? {
            if body.len() + piece.len() > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&piece);
        }
        let (status, mut headers) = (answer.status(), std::mem::take(answer.headers_mut()));
        // An answer without a body, such as a 304, may have the header of the answer that it stands for.
        if let Some(packing) = packing.filter(|_| !body.is_empty()) {
            body = unpacked(packing, &body, limit).map_err(|error| match error {
                NotUnpacked::TooLarge => too_large(),
                NotUnpacked::Broken => {
                    FetchError::Failed { from: at.origin(), problem: "its answer is compressed, and broken" }
                }
            })?;
            headers.remove(header::CONTENT_ENCODING);
            headers.remove(header::CONTENT_LENGTH);
        }
        Ok(Fetched { url: at.clone(), status, headers, body: body.into() })
    }

    /// The error's own text would show the whole URL.
    fn failed(&self, error: &reqwest::Error, at: &Checked) -> FetchError {
        if let Some(refusal) = refusal(error) {
            return refusal.clone().into();
        }
        let from = at.origin();
        if error.is_timeout() {
            let limit = if error.is_connect() { self.limits.connect } else { self.limits.total };
            return FetchError::TimedOut { from, limit };
        }
        let problem = if error.is_dns() {
            "its name does not resolve"
        } else if error.is_connect() {
            "no connection, or no valid certificate"
        } else {
            "the connection broke, or the answer is not HTTP"
        };
        FetchError::Failed { from, problem }
    }
}

/// How an answer is compressed, in small letters. Empty if it is not.
fn encoding_of(headers: &HeaderMap) -> String {
    let values = headers.get_all(header::CONTENT_ENCODING).iter();
    let values: Vec<String> =
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase()).collect();
    let encodings = values.iter().flat_map(|value| value.split(',')).map(str::trim);
    encodings.filter(|encoding| !matches!(*encoding, "" | "identity")).collect::<Vec<_>>().join(", ")
}

#[derive(Clone, Copy)]
enum Packing {
    Gzip,
    Deflate,
}

enum NotUnpacked {
    TooLarge,
    Broken,
}

/// A file of gzip may have several parts, one after another. More than these have no purpose.
const MAX_PARTS: usize = 16;

/// Decompresses an answer. It stops as soon as the limit is exceeded.
fn unpacked(packing: Packing, body: &[u8], limit: usize) -> Result<Vec<u8>, NotUnpacked> {
    let mut out = Vec::new();
    let mut unpack = |reader: &mut dyn Read| {
        let room = limit - out.len();
        let read = reader.take(room as u64 + 1).read_to_end(&mut out).map_err(|_| NotUnpacked::Broken)?;
        if read > room { Err(NotUnpacked::TooLarge) } else { Ok(()) }
    };
    match packing {
        Packing::Gzip => {
            let mut rest = body;
            for part in 0.. {
                if part == MAX_PARTS {
                    return Err(NotUnpacked::Broken);
                }
                let mut reader = GzDecoder::new(rest);
                unpack(&mut reader)?;
                rest = reader.into_inner();
                // Servers add zeros. What follows the last part means nothing.
                if !rest.starts_with(&[0x1f, 0x8b]) {
                    break;
                }
            }
        }
        // RFC 9110 means the form with a header. Some servers send it without one.
        Packing::Deflate => {
            let has_header = matches!(body, [first, second, ..]
                if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0);
            if has_header {
                unpack(&mut ZlibDecoder::new(body))?;
            } else {
                unpack(&mut DeflateDecoder::new(body))?;
            }
        }
    }
    Ok(out)
}

/// Where a redirect leads. An answer of another kind is for the caller.
fn location(answer: &Response) -> Option<HeaderValue> {
    let redirects = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    redirects.then(|| answer.headers().get(header::LOCATION).cloned()).flatten()
}

/// Makes the request for the next hop.
pub(super) fn redirect(
    ask: &mut Ask,
    status: StatusCode,
    from: &Checked,
    to: &Checked,
) -> Result<(), FetchError> {
    let leak = |what| FetchError::Leak { from: from.origin(), to: to.origin(), what };
    let other_origin = !from.is_same_origin(to);
    if from.url().scheme() == "https" && to.url().scheme() == "http" && ask.has_secrets() {
        return Err(leak("headers or a body"));
    }
    let becomes_get = match status.as_u16() {
        303 => ask.method != Method::HEAD,
        301 | 302 => ask.method == Method::POST,
        _ => false,
    };
    if becomes_get {
        ask.method = Method::GET;
        ask.body = None;
        for name in [
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
            header::CONTENT_LANGUAGE,
            header::CONTENT_LOCATION,
        ] {
            ask.headers.remove(name);
        }
    }
    if other_origin {
        if ask.body.is_some() || !ask.method.is_safe() {
            return Err(leak("the request's body or effect"));
        }
        ask.headers = std::mem::take(&mut ask.headers)
            .into_iter()
            .fold((HeaderMap::new(), None), |(mut kept, last), (name, value)| {
                // Only the first value of a header has its name.
                let name = name.or(last);
                if let Some(name) = name.as_ref().filter(|name| HARMLESS.contains(name)) {
                    kept.append(name.clone(), value);
                }
                (kept, name)
            })
            .0;
    }
    Ok(())
}
