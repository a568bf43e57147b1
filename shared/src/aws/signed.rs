//! Calls of services of which the platform uses one or two operations. Their SDKs would be larger than all of the platform, so the
//! requests are signed here.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use base::https::{self, Pooled};
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};

use crate::config::AwsConfig;

/// The time limit of one call.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// The call cannot be signed, which is a bug or a wrong configuration.
#[derive(Debug, thiserror::Error)]
#[error("failed to sign a call: {0}")]
pub struct NotSigned(String);

/// Makes signed calls. The HTTP client is built on the first one.
#[derive(Debug)]
pub struct SignedCalls {
    config: AwsConfig,
    client: OnceLock<Pooled<Full<Bytes>>>,
}

/// A call: a `POST` with a body of JSON, or a `GET` with an empty one.
pub(crate) struct Call<'a> {
    pub method: Method,
    /// The name for which the call is signed.
    pub service: &'static str,
    pub url: &'a str,
    pub content_type: &'static str,
    /// Further headers, which are signed, too.
    pub headers: &'a [(&'static str, String)],
    pub body: String,
}

impl SignedCalls {
    pub(crate) fn new(config: &AwsConfig) -> Self {
        Self { config: config.clone(), client: OnceLock::new() }
    }

    pub(crate) fn config(&self) -> &AwsConfig {
        &self.config
    }

    /// Makes one try. The inner error is worth another one.
    ///
    /// # Errors
    /// If the call cannot be signed.
    pub(crate) async fn send(
        &self,
        call: Call<'_>,
    ) -> Result<Result<(StatusCode, Bytes), String>, NotSigned> {
        let request = self.signed(call)?;
        let client = self.client.get_or_init(https::pooled);
        let exchange = async {
            let response = client.request(request).await.map_err(|_| "no connection")?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
            Ok((status, body.map_err(|_| "an answer that can't be read")?.to_bytes()))
        };
        let ended = tokio::time::timeout(TIMEOUT, exchange).await.unwrap_or(Err("no answer in time"));
        Ok(ended.map_err(str::to_owned))
    }

    fn signed(&self, call: Call<'_>) -> Result<Request<Full<Bytes>>, NotSigned> {
        let AwsConfig { region, credentials: keys, .. } = &self.config;
        let failed = |error: &dyn std::fmt::Display| NotSigned(error.to_string());
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.url)
            .header(header::CONTENT_TYPE, call.content_type);
        for (name, value) in call.headers {
            request = request.header(*name, value);
        }
        let body = Full::new(Bytes::from(call.body.clone()));
        let mut request = request.body(body).map_err(|error| failed(&error))?;
        let (id, secret) = (&keys.access_key_id, &keys.secret_access_key);
        let identity = Credentials::new(id, secret, keys.session_token.clone(), None, "environment").into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(call.service)
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| failed(&error))?
            .into();
        let headers = call.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let body = SignableBody::Bytes(call.body.as_bytes());
        let signable = SignableRequest::new(call.method.as_str(), call.url, headers, body);
        let signature = sign(signable.map_err(|error| failed(&error))?, &params);
        signature.map_err(|error| failed(&error))?.into_parts().0.apply_to_request_http1x(&mut request);
        Ok(request)
    }
}
