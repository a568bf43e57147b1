//! Serves the engines on loopback ports, for separate programs such as the Lambda functions that tests run.
//!
//! As on AWS, every request must be signed, here with the secret that was made at this start, and must name the port's
//! own address. A web page can do neither.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use axum::body::Body;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::json;

use super::transport::{Transport, json_answer};
use super::{Keys, REGION};
use crate::handler::{Handler, Hangup};
use crate::served::Served;

const MAX_BODY: usize = 16 * 1024 * 1024;

/// How far the time of a signature may be from now, as on AWS.
const SKEW: Duration = Duration::from_secs(15 * 60);

/// The engines, each on its own port.
#[derive(Debug)]
pub(super) struct Ports {
    pub table: Served,
    pub bucket: Served,
    pub bus: Served,
    pub queues: Served,
}

impl Ports {
    pub(super) async fn open(transport: &Transport, keys: &Keys) -> io::Result<Self> {
        let Transport { table, bus, queues, bucket } = transport.clone();
        Ok(Self {
            table: Served::on_loopback(guarded(signed("dynamodb", keys, table))).await?,
            // The bucket checks signatures itself.
            bucket: Served::on_loopback(guarded(bucket)).await?,
            bus: Served::on_loopback(guarded(signed("events", keys, bus))).await?,
            queues: Served::on_loopback(guarded(signed("sqs", keys, queues))).await?,
        })
    }

    pub(super) async fn stop(self) {
        self.table.stop().await;
        self.bucket.stop().await;
        self.bus.stop().await;
        self.queues.stop().await;
    }
}

/// Refuses requests of web pages, and requests that call this machine by another name.
pub(crate) fn guarded(handler: Handler) -> Handler {
    Handler::new(move |request| {
        let allowed = shared::edge::guard::is_from_this_machine(request.headers(), request.uri());
        let answer = allowed.then(|| handler.call(request));
        async move {
            match answer {
                Some(answer) => answer.await,
                None => Ok(refusal("AccessDeniedException", "This port takes no calls from pages.")),
            }
        }
    })
}

fn refusal(kind: &str, message: &str) -> Response<Body> {
    let body = json!({ "__type": kind, "message": message }).to_string();
    json_answer(StatusCode::FORBIDDEN, "application/x-amz-json-1.1", body)
}

/// Accepts requests that are signed for this service with these keys.
fn signed(service: &'static str, keys: &Keys, handler: Handler) -> Handler {
    let keys = keys.clone();
    Handler::new(move |request: Request<Body>| {
        let (handler, keys) = (handler.clone(), keys.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = Limited::new(body, MAX_BODY).collect().await.map_err(|_| Hangup)?.to_bytes();
            let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
            match check(service, &keys, parts.method.as_str(), target, &parts.headers, &body) {
                Ok(()) => handler.call(Request::from_parts(parts, Body::from(body))).await,
                Err(message) => Ok(refusal("InvalidSignatureException", message)),
            }
        }
    })
}

/// Signs the request again, in the way that its `Authorization` names, and compares the signatures.
fn check(
    service: &str,
    keys: &Keys,
    method: &str,
    target: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(), &'static str> {
    const UNSIGNED: &str = "The request is not signed.";
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let authorization = text(header::AUTHORIZATION.as_str()).ok_or(UNSIGNED)?;
    let fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or(UNSIGNED)?;
    let field = |name: &str| {
        fields.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('=')).ok_or(UNSIGNED)
    };
    let (credential, names, signature) = (field("Credential")?, field("SignedHeaders")?, field("Signature")?);

    let date = text("x-amz-date").ok_or(UNSIGNED)?;
    let at = DateTime::strptime("%Y%m%dT%H%M%SZ", date)
        .and_then(|at| at.to_zoned_datetime(TimeZone::UTC))
        .map_err(|_| "The date of the signature can't be read.")?;
    let apart = Timestamp::now().duration_since(at.timestamp()).unsigned_abs();
    if apart > SKEW {
        return Err("The signature's time is too far from now.");
    }
    let scope = format!("{}/{}/{REGION}/{service}/aws4_request", keys.access_key_id, &date[..8]);
    if credential != scope {
        return Err("The credentials are not valid for this server, day, region and service.");
    }
    let signed: Vec<&str> = names.split(';').collect();
    for needed in ["host", "x-amz-date", "x-amz-target"] {
        if !signed.contains(&needed) {
            return Err("The signature does not cover the host, the date and the operation.");
        }
    }
    let covered = headers.iter().filter(|(name, _)| {
        // The signer adds these headers itself; it takes the host from the address.
        signed.contains(&name.as_str()) && !["host", "x-amz-date"].contains(&name.as_str())
    });
    let covered: Option<Vec<(&str, &str)>> =
        covered.map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
    let covered = covered.ok_or("A signed header is not text.")?;
    let uri = format!("http://{}{target}", text("host").unwrap_or_default());

    let failed = "The signature can't be computed.";
    let identity = Credentials::from_keys(&keys.access_key_id, &keys.secret_access_key, None).into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(REGION)
        .name(service)
        .time(SystemTime::try_from(at.timestamp()).map_err(|_| failed)?)
        .settings(SigningSettings::default())
        .build()
        .map_err(|_| failed)?
        .into();
    let request = SignableRequest::new(method, uri, covered.into_iter(), SignableBody::Bytes(body));
    let again = sign(request.map_err(|_| failed)?, &params).map_err(|_| failed)?;
    // Comparing hashes takes the same time for every difference of the signatures.
    let hash = |signature: &str| domain::hex(&<sha2::Sha256 as sha2::Digest>::digest(signature));
    if hash(again.signature()) == hash(signature) {
        Ok(())
    } else {
        Err("The signature does not match the request.")
    }
}

/// The address of a port as a URL.
pub(super) fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}
