//! Secrets in the parameter store of AWS (Systems Manager), encrypted with the account's own key there.
//!
//! A standard parameter costs nothing, while a secret of Secrets Manager has a monthly price. Two operations do not justify
//! the SDK of this service, which is one of the largest: the requests are made and signed here.

use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use base::https::{self, Pooled};
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::AwsConfig;
use crate::error::{Error, Result};
use crate::store::table::back_off;

/// The number of tries of a call.
const TRIES: u32 = 3;

/// The time limit of one try.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

const TARGET: &str = "x-amz-target";

/// The parameter store. The client is built on the first call.
#[derive(Debug)]
pub(crate) struct Parameters {
    config: AwsConfig,
    client: OnceLock<Pooled<Full<Bytes>>>,
}

/// A refusal by the service.
#[derive(Deserialize)]
struct Refusal {
    #[serde(rename = "__type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Found {
    parameter: Parameter,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Parameter {
    value: SecretString,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct FoundAll {
    parameters: Vec<NamedParameter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NamedParameter {
    name: String,
    value: SecretString,
}

/// The answer of the service, or the name of its error.
enum Answer {
    Done(Bytes),
    Refused(String),
}

impl Parameters {
    pub(crate) fn new(config: &AwsConfig) -> Self {
        Self { config: config.clone(), client: OnceLock::new() }
    }

    /// Reads a parameter.
    ///
    /// # Errors
    /// If the service does not answer, or refuses the call.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<SecretString>> {
        match self.call("GetParameter", &json!({ "Name": name, "WithDecryption": true })).await? {
            Answer::Done(body) => {
                // The cause may quote the secret.
                let found: Found = serde_json::from_slice(&body)
                    .map_err(|_| Error::internal("the parameter store gave an unknown answer"))?;
                Ok(Some(found.parameter.value))
            }
            Answer::Refused(kind) if kind == "ParameterNotFound" => Ok(None),
            Answer::Refused(kind) => Err(refused(&kind)),
        }
    }

    /// Reads up to ten parameters. Those that do not exist are left out.
    ///
    /// # Errors
    /// If the service does not answer, or refuses the call.
    pub(crate) async fn read_all(
        &self,
        names: impl IntoIterator<Item = &String>,
    ) -> Result<HashMap<String, SecretString>> {
        // The service refuses a name that is listed twice.
        let names: BTreeSet<&String> = names.into_iter().collect();
        match self.call("GetParameters", &json!({ "Names": names, "WithDecryption": true })).await? {
            Answer::Done(body) => {
                // The cause may quote a secret.
                let found: FoundAll = serde_json::from_slice(&body)
                    .map_err(|_| Error::internal("the parameter store gave an unknown answer"))?;
                Ok(found.parameters.into_iter().map(|found| (found.name, found.value)).collect())
            }
            Answer::Refused(kind) => Err(refused(&kind)),
        }
    }

    /// Creates a parameter. Returns whether it did not exist before.
    ///
    /// # Errors
    /// If the service does not answer, or refuses the call.
    pub(crate) async fn create(&self, name: &str, value: &str) -> Result<bool> {
        let input = json!({ "Name": name, "Value": value, "Type": "SecureString", "Overwrite": false });
        match self.call("PutParameter", &input).await? {
            Answer::Done(_) => Ok(true),
            Answer::Refused(kind) if kind == "ParameterAlreadyExists" => Ok(false),
            Answer::Refused(kind) => Err(refused(&kind)),
        }
    }

    async fn call(&self, operation: &str, input: &Value) -> Result<Answer> {
        let mut attempt = 1;
        loop {
            let cause = match self.send(operation, input).await? {
                Ok((status, body)) if status.is_success() => return Ok(Answer::Done(body)),
                Ok((status, body)) => {
                    let kind = serde_json::from_slice(&body).map(|Refusal { kind }| kind).unwrap_or_default();
                    // The name may have a namespace: "com.amazonaws.ssm#ParameterNotFound".
                    let kind = kind.rsplit('#').next().unwrap_or_default().to_owned();
                    if !status.is_server_error() && kind != "ThrottlingException" {
                        return Ok(Answer::Refused(kind));
                    }
                    format!("{kind} (HTTP status {})", status.as_u16())
                }
                Err(cause) => cause,
            };
            if attempt == TRIES {
                return Err(Error::Outside { what: "the parameter store", cause });
            }
            back_off(attempt).await;
            attempt += 1;
        }
    }

    /// One try. The inner error is worth a retry.
    async fn send(
        &self,
        operation: &str,
        input: &Value,
    ) -> Result<std::result::Result<(StatusCode, Bytes), String>> {
        let request = self.signed(operation, input.to_string())?;
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

    fn signed(&self, operation: &str, body: String) -> Result<Request<Full<Bytes>>> {
        let AwsConfig { region, credentials: keys, .. } = &self.config;
        let url = self.config.ssm_endpoint.clone().unwrap_or_else(|| {
            let suffix = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
            format!("https://ssm.{region}.{suffix}/")
        });
        let failed =
            |error: &dyn std::fmt::Display| Error::internal(format!("failed to sign a call: {error}"));
        let headers = [(TARGET, format!("AmazonSSM.{operation}"))];
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&url)
            .header(header::CONTENT_TYPE, "application/x-amz-json-1.1")
            .header(TARGET, &headers[0].1)
            .body(Full::new(Bytes::from(body.clone())))
            .map_err(|error| failed(&error))?;
        let (id, secret) = (&keys.access_key_id, &keys.secret_access_key);
        let identity = Credentials::new(id, secret, keys.session_token.clone(), None, "environment").into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name("ssm")
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| failed(&error))?
            .into();
        let signable = headers.iter().map(|(name, value)| (*name, value.as_str()));
        let signable = SignableRequest::new("POST", &*url, signable, SignableBody::Bytes(body.as_bytes()));
        let signature = sign(signable.map_err(|error| failed(&error))?, &params);
        signature.map_err(|error| failed(&error))?.into_parts().0.apply_to_request_http1x(&mut request);
        Ok(request)
    }
}

fn refused(kind: &str) -> Error {
    Error::internal(format!("the parameter store refused a call: {kind}"))
}
