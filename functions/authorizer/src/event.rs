//! Authorizer events of API Gateway, and the policies that answer them.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::edge::extract::Caller;
use shared::{Cx, Error, Result};

/// The event of a REST API authorizer of type TOKEN or REQUEST.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    method_arn: String,
    authorization_token: Option<String>,
    #[serde(default)]
    headers: Option<HashMap<String, String>>,
    #[serde(default)]
    multi_value_headers: Option<HashMap<String, Vec<String>>>,
    /// Events of the type TOKEN have none.
    #[serde(default)]
    stage_variables: Option<HashMap<String, String>>,
}

/// Answers an authorizer event with a policy, the owner, the scope of the credentials, and the id of the API key.
pub async fn authorize(cx: Cx, event: Value) -> Result<Value> {
    let mut event: Event = serde_json::from_value(event)
        .map_err(|error| Error::internal(format!("the event is not an authorizer event: {error}")))?;
    let resource = whole_stage(&event.method_arn)
        .ok_or_else(|| Error::internal("the event's methodArn is not the ARN of a method"))?;
    let stage = event.stage_variables.take().unwrap_or_default();
    let caller = crate::authenticate(&cx, &event.headers(), &stage).await?;
    Ok(policy(&caller, &resource))
}

impl Event {
    fn headers(self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(token) = self.authorization_token {
            headers.extend(HeaderValue::try_from(token).map(|value| (header::AUTHORIZATION, value)));
            return headers;
        }
        let single = || self.headers.unwrap_or_default().into_iter().map(|(name, value)| (name, vec![value]));
        let all: Vec<(String, Vec<String>)> = match self.multi_value_headers {
            Some(headers) => headers.into_iter().collect(),
            None => single().collect(),
        };
        for (name, values) in all {
            if let Ok(name) = HeaderName::try_from(name) {
                for value in values.into_iter().filter_map(|value| HeaderValue::try_from(value).ok()) {
                    headers.append(&name, value);
                }
            }
        }
        headers
    }
}

/// The ARN of all methods and paths of the stage in `method_arn`. API Gateway caches the answer and uses it for the
/// caller's next calls to any route.
fn whole_stage(method_arn: &str) -> Option<String> {
    let mut parts = method_arn.split('/');
    let (api, stage, _method) = (parts.next()?, parts.next()?, parts.next()?);
    let valid = api.starts_with("arn:") && api.contains(":execute-api:") && !stage.is_empty();
    valid.then(|| format!("{api}/{stage}/*/*"))
}

fn policy(Caller { owner, scope, key }: &Caller, resource: &str) -> Value {
    let mut policy = json!({
        "principalId": owner,
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [{ "Action": "execute-api:Invoke", "Effect": "Allow", "Resource": resource }],
        },
        "context": { "owner": owner, "scope": scope },
    });
    if let Some(key) = key {
        policy["context"]["key_id"] = json!(key);
    }
    policy
}

#[cfg(test)]
mod tests {
    use domain::accounts::scopes::Scope;
    use domain::ids::Owner;

    use super::*;

    fn headers_of(event: Value) -> Vec<(String, String)> {
        let headers = serde_json::from_value::<Event>(event).unwrap().headers();
        let mut pairs: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        pairs.sort();
        pairs
    }

    #[test]
    fn both_kinds_of_event_give_their_headers() {
        let check = |event: Value, expected: &[&str]| {
            let expected: Vec<_> =
                expected.iter().map(|value| ("authorization".to_owned(), (*value).to_owned())).collect();
            assert_eq!(headers_of(event), expected);
        };
        let arn = "arn:aws:execute-api:eu-central-1:123456789012:abc/v1/GET/agents";
        check(json!({"type": "TOKEN", "methodArn": arn, "authorizationToken": "Bearer a"}), &["Bearer a"]);
        check(
            json!({"type": "REQUEST", "methodArn": arn, "headers": {"AUTHORIZATION": "Bearer a"}}),
            &["Bearer a"],
        );
        check(
            json!({
                "type": "REQUEST", "methodArn": arn, "headers": {"Authorization": "Bearer b"},
                "multiValueHeaders": {"Authorization": ["Bearer a", "Bearer b"]},
            }),
            &["Bearer a", "Bearer b"],
        );
        check(json!({"type": "REQUEST", "methodArn": arn, "headers": null}), &[]);
    }

    #[test]
    fn the_policy_covers_the_stage() {
        let check = |arn: &str, expected: Option<&str>| {
            assert_eq!(whole_stage(arn).as_deref(), expected, "{arn}");
        };
        let api = "arn:aws:execute-api:eu-central-1:123456789012:abc";
        let whole = format!("{api}/v1/*/*");
        check(&format!("{api}/v1/GET/agents/agt_1"), Some(&whole));
        check(&format!("{api}/v1/GET/"), Some(&whole));
        check(&format!("{api}/v1"), None);
        check("arn:aws:lambda:eu-central-1:1:x/v1/GET/", None);
        check("", None);
        let caller = Caller { owner: Owner::new("me").unwrap(), scope: Scope::Write, key: None };
        assert_eq!(
            policy(&caller, &whole),
            json!({
                "principalId": "me",
                "policyDocument": {
                    "Version": "2012-10-17",
                    "Statement": [{"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": whole}],
                },
                "context": {"owner": "me", "scope": "write"},
            })
        );
        let key = "key_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c".parse().unwrap();
        let with_key = policy(&Caller { key: Some(key), ..caller }, &whole);
        assert_eq!(with_key["context"]["key_id"], json!(key));
    }
}
