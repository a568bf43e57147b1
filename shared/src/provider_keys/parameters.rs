//! Secrets in the parameter store of AWS (Systems Manager), encrypted with the account's own key there.
//!
//! A standard parameter costs nothing, while a secret of Secrets Manager has a monthly price. Two operations do not justify
//! the SDK of this service, which is one of the largest: the requests are made here.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use http::{Method, StatusCode};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::aws::signed::{Call, SignedCalls};
use crate::config::AwsConfig;
use crate::error::{Error, Result};
use crate::store::table::back_off;

/// The number of tries of a call.
const TRIES: u32 = 3;

/// The parameter store.
#[derive(Debug)]
pub(crate) struct Parameters {
    calls: SignedCalls,
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
        Self { calls: SignedCalls::new(config) }
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
        let config = self.calls.config();
        let url = config.ssm_endpoint.clone().unwrap_or_else(|| format!("{}/", config.endpoint("ssm")));
        let call = Call {
            method: Method::POST,
            service: "ssm",
            url: &url,
            content_type: "application/x-amz-json-1.1",
            headers: &[("x-amz-target", format!("AmazonSSM.{operation}"))],
            body: input.to_string(),
        };
        self.calls.send(call).await.map_err(|error| Error::internal(error.to_string()))
    }
}

fn refused(kind: &str) -> Error {
    Error::internal(format!("the parameter store refused a call: {kind}"))
}
