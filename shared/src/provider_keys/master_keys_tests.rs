use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::config::Config;

fn keys(config: MasterKeysConfig, endpoint: Option<&str>) -> MasterKeys {
    let env = [("AWS_REGION", "x"), ("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "x")];
    let env = |name: &str| {
        let fixed = env.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        fixed.or_else(|| endpoint.filter(|_| name == "AWS_ENDPOINT_URL_SSM").map(str::to_owned))
    };
    MasterKeys::new(&config, &Config::read(&env).unwrap().aws)
}

fn given(byte: u8) -> MasterKeys {
    keys(MasterKeysConfig::Given { key: vec![byte; KEY_BYTES].into() }, None)
}

#[tokio::test]
async fn a_secret_opens_only_unchanged_for_its_purpose_and_with_its_key() {
    let secret = SecretString::from("sk-0123456789abcdef");
    let sealed = given(7).seal("me anthropic", &secret).await.unwrap();
    let opened = given(7).open("me anthropic", &sealed).await.unwrap();
    assert_eq!(opened.expose_secret(), secret.expose_secret());
    assert!(!format!("{:?} {sealed:?} {opened:?}", given(7)).contains("0123456789"));
    // The same text is never encrypted twice in the same way.
    assert_ne!(given(7).seal("me anthropic", &secret).await.unwrap(), sealed);

    for (keys, purpose, sealed) in [
        (given(8), "me anthropic", sealed.clone()),
        (given(7), "you anthropic", sealed.clone()),
        (given(7), "me openai", sealed.clone()),
        (given(7), "me anthropic", Sealed { master: 2, ..sealed.clone() }),
        (given(7), "me anthropic", Sealed { text: String::new(), ..sealed.clone() }),
        (given(7), "me anthropic", Sealed { text: "?".to_owned(), ..sealed.clone() }),
        (given(7), "me anthropic", Sealed { text: sealed.text[..40].to_owned(), ..sealed }),
    ] {
        let refused = keys.open(purpose, &sealed).await.unwrap_err();
        assert!(matches!(refused, Error::Internal(_)), "{refused}");
    }
}

/// Stored secrets outlive versions of this program.
#[tokio::test]
async fn a_secret_of_an_earlier_version_opens() {
    let text = "AAECAwQFBgcICQoLa+rEQCw76n1ChNKk2zkOmYVZ0P34GRsl+0s3R4fxLPl/WFE=";
    let sealed = Sealed { master: 1, text: text.to_owned() };
    assert_eq!(given(7).open("me anthropic", &sealed).await.unwrap().expose_secret(), "sk-0123456789abcdef");
}

/// The parameter store, with one server error before its first answer.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<(HashMap<String, Value>, u32)>>);

async fn answer(State(fake): State<Fake>, headers: HeaderMap, input: String) -> (StatusCode, Json<Value>) {
    let input: Value = serde_json::from_str(&input).unwrap();
    let mut state = fake.0.lock().unwrap();
    state.1 += 1;
    let refused = |kind: &str| (StatusCode::BAD_REQUEST, Json(json!({"__type": format!("a.b#{kind}")})));
    if state.1 == 1 {
        return (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({})));
    }
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let signature = header("authorization");
    let signed =
        signature.contains("/x/ssm/aws4_request") && signature.contains("host;x-amz-date;x-amz-target");
    assert!(signed, "{signature}");
    let name = input["Name"].as_str().unwrap().to_owned();
    match (header("x-amz-target").as_str(), state.0.get(&name)) {
        ("AmazonSSM.GetParameter", None) => refused("ParameterNotFound"),
        ("AmazonSSM.GetParameter", Some(value)) => {
            assert_eq!(input["WithDecryption"], true);
            (
                StatusCode::OK,
                Json(json!({"Parameter": {"Name": name, "Type": "SecureString", "Value": value}})),
            )
        }
        ("AmazonSSM.PutParameter", None) => {
            assert_eq!((&input["Type"], &input["Overwrite"]), (&json!("SecureString"), &json!(false)));
            state.0.insert(name, input["Value"].clone());
            (StatusCode::OK, Json(json!({"Version": 1})))
        }
        ("AmazonSSM.PutParameter", Some(_)) => refused("ParameterAlreadyExists"),
        _ => refused("AccessDeniedException"),
    }
}

#[tokio::test]
async fn processes_that_need_the_first_master_key_at_once_use_the_same_one() {
    let fake = Fake::default();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let app = Router::new().route("/", post(answer)).with_state(fake.clone());
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let process = |current| {
        keys(MasterKeysConfig::Parameters { prefix: "/stack/master-keys".to_owned(), current }, Some(&url))
    };
    let secret = SecretString::from("sk-0123456789abcdef");
    // Nobody makes a key to read a secret.
    let none = Sealed { master: 1, text: "x".to_owned() };
    assert!(process(1).open("p", &none).await.unwrap_err().to_string().contains("no master key 1"));
    let processes: Vec<MasterKeys> = (0..8).map(|_| process(1)).collect();
    let sealed = processes.iter().map(|keys| keys.seal("p", &secret));
    let sealed: Vec<Sealed> = futures::future::try_join_all(sealed).await.unwrap();
    for one in &sealed {
        assert_eq!(process(1).open("p", one).await.unwrap().expose_secret(), secret.expose_secret());
    }
    // After a rotation, new secrets have the new key, and older ones stay readable.
    let rotated = process(2);
    let newer = rotated.seal("p", &secret).await.unwrap();
    assert_eq!((sealed[0].master, newer.master), (1, 2));
    for one in [&sealed[0], &newer] {
        assert_eq!(rotated.open("p", one).await.unwrap().expose_secret(), secret.expose_secret());
    }
    let stored = fake.0.lock().unwrap().0.clone();
    assert_eq!(stored.len(), 2);
    assert_ne!(stored["/stack/master-keys/1"], stored["/stack/master-keys/2"]);
    // The master key is kept, so the service need not answer any more.
    server.abort();
    assert!(rotated.open("p", &newer).await.is_ok());
    let refused = process(1).seal("p", &secret).await.unwrap_err();
    assert_eq!(refused.code(), "temporarily_unavailable");
}
