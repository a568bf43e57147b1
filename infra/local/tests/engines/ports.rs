//! The ports that a test may open: they accept only signed requests, and none of a web page.

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use lamplighter_local::engines::Keys;

use crate::harness::{BUCKET, BUS, TABLE, dynamo_at, engines, engines_with_ports, events_at, s3_at};

#[tokio::test]
async fn ports_are_opened_only_on_request() {
    let engines = engines().await;
    assert_eq!((engines.dynamo_url(), engines.s3_url(), engines.events_url()), (None, None, None));
    engines.shutdown().await;
}

#[tokio::test]
async fn only_requests_with_the_keys_of_this_start_are_served() {
    let engines = engines_with_ports().await;
    let [table, bucket, bus] =
        [engines.dynamo_url(), engines.s3_url(), engines.events_url()].map(Option::unwrap);
    let event = || {
        let entry = PutEventsRequestEntry::builder().event_bus_name(BUS).source("lamplighter");
        entry.detail_type("occurrence.due").detail("{}").build()
    };
    let calls = async |keys: &Keys| {
        let scan = dynamo_at(table.clone(), keys).scan().table_name(TABLE).send().await;
        let list = s3_at(&bucket, keys).list_objects_v2().bucket(BUCKET).send().await;
        let put = events_at(bus.clone(), keys).put_events().entries(event()).send().await;
        [
            scan.err().map(|error| error.code().unwrap_or_default().to_owned()),
            list.err().map(|error| error.code().unwrap_or_default().to_owned()),
            put.err().map(|error| error.code().unwrap_or_default().to_owned()),
        ]
    };
    let keys = engines.keys().clone();
    assert_eq!(calls(&keys).await, [None, None, None]);
    let refused = |bucket: &str| {
        ["InvalidSignatureException", bucket, "InvalidSignatureException"].map(|c| Some(c.to_owned()))
    };
    let secret = Keys { secret_access_key: "lamplighter-local-secret".into(), ..keys.clone() };
    assert_eq!(calls(&secret).await, refused("SignatureDoesNotMatch"));
    let id = Keys { access_key_id: "lamplighter".into(), ..keys.clone() };
    assert_eq!(calls(&id).await, refused("NotSignedUp"));
    let other = crate::harness::engines().await;
    assert_ne!(other.keys().secret_access_key, keys.secret_access_key, "each start has its own");
    other.shutdown().await;
    engines.shutdown().await;
}

#[tokio::test]
async fn a_signature_covers_the_whole_request() {
    let engines = engines_with_ports().await;
    let url = engines.dynamo_url().unwrap();
    let client = dynamo_at(url.clone(), engines.keys());
    let put = client.put_item().table_name(TABLE).item("pk", AttributeValue::S("U#1".into()));
    put.item("sk", AttributeValue::S("a".into())).send().await.unwrap();

    // A request that was signed once, with one change each.
    let http = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let body = format!(r#"{{"TableName":"{TABLE}"}}"#);
    let signed = signed_scan(&url, &body, engines.keys());
    let send = async |headers: &[(String, String)], body: &str| {
        let mut request = Request::builder().method("POST").uri(&url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::from(Bytes::from(body.to_owned()))).unwrap();
        http.request(request).await.unwrap().status().as_u16()
    };
    let with = |name: &str, value: &str| {
        let mut headers = signed.clone();
        headers.retain(|(header, _)| header != name);
        if !value.is_empty() {
            headers.push((name.to_owned(), value.to_owned()));
        }
        headers
    };
    assert_eq!(send(&signed, &body).await, 200);
    assert_eq!(send(&signed, &body.replace('}', ",\"Limit\":1}")).await, 403, "another body");
    for (name, value) in [
        ("x-amz-target", "DynamoDB_20120810.DescribeTable"),
        ("x-amz-date", "20260101T000000Z"),
        ("x-amz-date", "tomorrow"),
        ("authorization", ""),
        ("authorization", "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=b"),
        ("origin", "http://evil.example"),
        ("sec-fetch-site", "cross-site"),
        ("host", "evil.example"),
    ] {
        assert_eq!(send(&with(name, value), &body).await, 403, "{name}: {value}");
    }
    engines.shutdown().await;
}

/// The headers of a signed `Scan`.
fn signed_scan(url: &str, body: &str, keys: &Keys) -> Vec<(String, String)> {
    use aws_credential_types::Credentials;
    use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
    let identity = Credentials::from_keys(&keys.access_key_id, &keys.secret_access_key, None).into();
    let params = aws_sigv4::sign::v4::SigningParams::builder()
        .identity(&identity)
        .region("us-east-1")
        .name("dynamodb")
        .time(std::time::SystemTime::now())
        .settings(SigningSettings::default())
        .build()
        .unwrap()
        .into();
    let headers =
        [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", "DynamoDB_20120810.Scan")];
    let body = SignableBody::Bytes(body.as_bytes());
    let request = SignableRequest::new("POST", format!("{url}/"), headers.into_iter(), body).unwrap();
    let signature = sign(request, &params).unwrap().into_parts().0;
    let added = signature.headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
    headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).chain(added).collect()
}
