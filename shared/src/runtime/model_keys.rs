//! Keys of model providers that the operator keeps in the parameter store of AWS.
//!
//! A variable with the value `ssm:/name` names a SecureString instead of containing the key. A function reads all parameters with one
//! call when it starts. It uses these keys for the life of its process.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};

use crate::config::{AwsConfig, ConfigError, Env};
use crate::provider_keys::parameters::Parameters;

/// The variables that may name a parameter.
const VARIABLES: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_AI_API_KEY",
    "XAI_API_KEY",
    "LAMPLIGHTER_MODEL_KEY",
];

/// What a value begins with if the rest is the name of a parameter.
const REFERENCE: &str = "ssm:";

/// The keys by the variables that name their parameters.
pub type Keys = BTreeMap<&'static str, SecretString>;

/// The names of parameters, by the variables that name them.
///
/// # Errors
/// If a name is invalid.
pub fn named(env: Env<'_>) -> Result<BTreeMap<&'static str, String>, ConfigError> {
    let mut all = BTreeMap::new();
    for variable in VARIABLES {
        let Some(value) = env(variable) else { continue };
        let Some(name) = value.trim().strip_prefix(REFERENCE) else { continue };
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte);
        if !(name.starts_with('/') && name.len() > 1 && name.bytes().all(allowed)) {
            // The text is not shown: it may be a key.
            let problem = "must name a parameter like ssm:/lamplighter/model-keys/anthropic".to_owned();
            return Err(ConfigError { variable, problem });
        }
        all.insert(variable, name.to_owned());
    }
    Ok(all)
}

/// Reads the parameters that the environment names. Without any, no call is made.
///
/// # Errors
/// If a parameter does not exist, is empty or cannot be read. The message names the parameter and never shows its value.
pub async fn read(env: Env<'_>) -> Result<Keys, ConfigError> {
    let named = named(env)?;
    let Some((&first, _)) = named.first_key_value() else { return Ok(Keys::new()) };
    let store = Parameters::new(&AwsConfig::read(env)?);
    let found = store.read_all(named.values()).await.map_err(|error| {
        let names = named.values().map(String::as_str).collect::<Vec<_>>().join(", ");
        let problem = format!("names a parameter that cannot be read ({names}): {}", error.causes());
        ConfigError { variable: first, problem }
    })?;
    let mut keys = Keys::new();
    for (variable, name) in &named {
        let refused = |problem: &str| ConfigError {
            variable,
            problem: format!("names the parameter {name}, which {problem}"),
        };
        let value = found.get(name).ok_or_else(|| refused("does not exist"))?;
        // Files and shells add line breaks.
        let key = value.expose_secret().trim();
        if key.is_empty() {
            return Err(refused("is empty"));
        }
        keys.insert(*variable, key.to_owned().into());
    }
    Ok(keys)
}

/// The environment with keys in place of the names of their parameters.
pub fn with_keys<'a>(env: Env<'a>, keys: &'a Keys) -> impl Fn(&str) -> Option<String> + 'a {
    move |variable| match keys.get(variable) {
        Some(key) => Some(key.expose_secret().to_owned()),
        None => env(variable),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::http::{HeaderMap, StatusCode};
    use axum::routing::post;
    use axum::{Json, Router};
    use domain::models::ServerName;
    use serde_json::{Value, json};
    use tokio::net::TcpListener;

    use super::*;
    use crate::config::Config;

    /// A parameter store with two keys and an empty parameter. It keeps the calls.
    async fn store() -> (String, Arc<Mutex<Vec<Value>>>) {
        let calls = Arc::<Mutex<Vec<Value>>>::default();
        let kept = Arc::clone(&calls);
        let answer = async move |headers: HeaderMap, input: String| {
            assert_eq!(headers["x-amz-target"], "AmazonSSM.GetParameters");
            assert!(headers["authorization"].to_str().unwrap().contains("/x/ssm/aws4_request"));
            let input: Value = serde_json::from_str(&input).unwrap();
            kept.lock().unwrap().push(input.clone());
            let (mut found, mut missing) = (Vec::new(), Vec::new());
            for name in input["Names"].as_array().unwrap() {
                let value = match name.as_str().unwrap() {
                    "/keys/one" => "sk-0123456789\n",
                    "/keys/two" => "xai-0123456789",
                    "/keys/empty" => " ",
                    "/keys/denied" => {
                        let refusal = json!({"__type": "a.b#AccessDeniedException"});
                        return (StatusCode::BAD_REQUEST, Json(refusal));
                    }
                    _ => {
                        missing.push(name.clone());
                        continue;
                    }
                };
                found.push(json!({"Name": name, "Type": "SecureString", "Value": value}));
            }
            (StatusCode::OK, Json(json!({"Parameters": found, "InvalidParameters": missing})))
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let app = Router::new().route("/", post(answer));
        tokio::spawn(async move { axum::serve(listener, app).await });
        (url, calls)
    }

    fn env(url: &str, more: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> + use<> {
        let fixed = [
            ("AWS_REGION", "x"),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("AWS_ENDPOINT_URL_SSM", url),
        ];
        let all = fixed.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let all: BTreeMap<String, String> = all.collect();
        move |name| all.get(name).cloned()
    }

    #[tokio::test]
    async fn all_keys_are_read_with_one_call_and_values_stay_as_they_are() {
        let (url, calls) = store().await;
        let env = env(
            &url,
            &[
                ("ANTHROPIC_API_KEY", "ssm:/keys/one"),
                ("OPENAI_API_KEY", "sk-plain"),
                ("GEMINI_API_KEY", ""),
                ("XAI_API_KEY", "ssm:/keys/two"),
                ("LAMPLIGHTER_MODEL_URL", "http://127.0.0.1:9/v1"),
                ("LAMPLIGHTER_MODEL_KEY", "ssm:/keys/two"),
                ("LAMPLIGHTER_PRICES", r#"{"compatible/*": "free"}"#),
            ],
        );
        let keys = read(&env).await.unwrap();
        assert!(!format!("{keys:?}").contains("0123456789"));
        let models = Config::read(&with_keys(&env, &keys)).unwrap().models;
        let read = [&models.anthropic_key, &models.openai_key, &models.google_key, &models.xai_key];
        let expected = [Some("sk-0123456789"), Some("sk-plain"), None, Some("xai-0123456789")];
        let of_server = models.servers[&ServerName::COMPATIBLE].key.as_ref();
        assert_eq!(of_server.map(ExposeSecret::expose_secret), Some("xai-0123456789"));
        assert_eq!(read.map(Option::as_deref), expected);
        // The store refuses a name that is listed twice.
        let expected = json!({"Names": ["/keys/one", "/keys/two"], "WithDecryption": true});
        assert_eq!(*calls.lock().unwrap(), [expected]);
    }

    #[tokio::test]
    async fn without_names_no_call_is_made() {
        let (url, calls) = store().await;
        assert!(read(&env(&url, &[("OPENAI_API_KEY", "sk-plain")])).await.unwrap().is_empty());
        assert!(calls.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn an_error_names_the_parameter_and_shows_no_key() {
        let (url, _) = store().await;
        for (value, expected) in [
            ("ssm:/keys/none", "OPENAI_API_KEY names the parameter /keys/none, which does not exist"),
            ("ssm:/keys/empty", "OPENAI_API_KEY names the parameter /keys/empty, which is empty"),
            (
                "ssm:/keys/denied",
                "ANTHROPIC_API_KEY names a parameter that cannot be read (/keys/one, /keys/denied): the parameter store refused a call: AccessDeniedException",
            ),
            ("ssm:sk-1", "OPENAI_API_KEY must name a parameter like ssm:/lamplighter/model-keys/anthropic"),
            ("ssm:/a b", "OPENAI_API_KEY must name a parameter like ssm:/lamplighter/model-keys/anthropic"),
        ] {
            let env = env(&url, &[("ANTHROPIC_API_KEY", "ssm:/keys/one"), ("OPENAI_API_KEY", value)]);
            assert_eq!(read(&env).await.unwrap_err().to_string(), expected);
        }
    }
}
