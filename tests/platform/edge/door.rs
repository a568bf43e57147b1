//! Access: a web page, another user of this machine or a half-open connection can do nothing to the server.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use lamplighter_local::platform::PlatformConfig;
use lamplighter_local::served::PortLimits;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::program::Server;
use tests::{Answer, Harness, send};

use crate::command;

/// Every route of the OpenAPI document, and the front page, with a value for each parameter.
fn routes() -> Vec<(Method, String)> {
    let document: Value = serde_json::from_str(catalog::OPENAPI_JSON).unwrap();
    let mut routes = vec![(Method::GET, "/".to_owned())];
    for (path, operations) in document["paths"].as_object().unwrap() {
        let mut parts: Vec<&str> = path.split('/').collect();
        for part in &mut parts {
            if part.starts_with('{') {
                *part = "x";
            }
        }
        for method in operations.as_object().unwrap().keys() {
            let method = method.to_uppercase().parse().unwrap();
            if [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(&method) {
                routes.push((method, parts.join("/")));
            }
        }
    }
    assert!(routes.len() > 60, "{}", routes.len());
    routes
}

#[tokio::test]
async fn no_route_answers_a_page_or_another_name() {
    let h = Harness::start().await;
    let port = h.platform.url().rsplit(':').next().unwrap().to_owned();
    let rebound = format!("evil.example:{port}");
    for (method, path) in routes() {
        let headers: [&[(&str, &str)]; 9] = [
            // DNS rebinding: the page calls its own host name, which now resolves to this machine.
            &[
                ("host", &rebound),
                ("origin", &format!("http://{rebound}")),
                ("sec-fetch-site", "same-origin"),
            ],
            &[("host", &rebound)],
            &[("host", "evil.example")],
            &[("origin", "http://evil.example")],
            &[("origin", "null")],
            &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
            &[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")],
            // A page of another program of this machine. For a browser it is the same site.
            &[("origin", "http://localhost:1"), ("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")],
        ];
        for headers in headers {
            if path == "/mcp" && headers.contains(&("origin", "http://localhost:1")) {
                continue;
            }
            let mut request = h.request(method.clone(), &path).header("content-type", "application/json");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            // A page may send a POST without a body and without asking first.
            let body = if method == Method::POST && path != "/mcp" { "" } else { "{}" };
            let answer = send(request.body(body)).await;
            assert!(!answer.headers.contains_key("access-control-allow-origin"), "{method} {path}");
            assert_eq!(answer.status, 403, "{method} {path} {headers:?}");
            answer.refused(403, "forbidden");
        }
    }
}

/// The bodies that a page may send to another origin without a preflight.
#[tokio::test]
async fn no_route_takes_a_body_without_its_type() {
    let h = Harness::start().await;
    let kinds = [
        None,
        Some("text/plain"),
        Some("text/plain;application/json"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=x"),
    ];
    for (method, path) in routes() {
        // A PUT needs a preflight, and a file may have any type.
        if [Method::GET, Method::PUT].contains(&method) {
            continue;
        }
        for kind in kinds {
            let mut request = h.request(method.clone(), &path);
            if let Some(kind) = kind {
                request = request.header("content-type", kind);
            }
            let answer = send(request.body(r#"{"prompt": "AgentId: the-architect"}"#)).await;
            // Mail programs and the page of an answer send a form there. The token is a credential that no page has, and this one is
            // wrong.
            let has_token = ["/unsubscribe/", "/answers/"].iter().any(|with| path.starts_with(with));
            let expected = if has_token { 404 } else { 415 };
            assert_eq!(answer.status, expected, "{method} {path} {kind:?}: {answer:?}");
        }
    }
    assert_eq!(h.get("/context/hooks/rejected").await.expect(200)["count"], 0);
}

/// With authentication, a proxy or a domain may be in front, and a page has no key.
#[tokio::test]
async fn with_authentication_any_host_is_allowed_and_a_key_is_required() {
    let auth = shared::config::AuthConfig::On(None);
    let h = Harness::with(PlatformConfig { auth, ..PlatformConfig::in_memory() }).await;
    let key = h.key_of("local").await;
    let call = |path: &str, key: &str, origin: &str| {
        let request = h.request(Method::GET, path).header("host", "lamps.example").header("origin", origin);
        send(if key.is_empty() { request } else { request.bearer_auth(key) })
    };
    call("/agents", &key, "https://lamps.example").await.expect(200);
    call("/agents", &key, "https://console.example").await.expect(200);
    call("/mcp", &key, "https://lamps.example").await.refused(405, "method_not_allowed");
    call("/mcp", &key, "https://console.example").await.refused(403, "forbidden");
    call("/agents", "", "https://lamps.example").await.refused(401, "unauthenticated");
}

/// The ports of this machine on which a process listens.
fn ports(pid: u32) -> Vec<u16> {
    let sockets: BTreeSet<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|file| std::fs::read_link(file.unwrap().path()).ok()?.to_str().map(str::to_owned))
        .collect();
    let mut ports = Vec::new();
    for table in ["tcp", "tcp6"] {
        let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")) else { continue };
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields[3] == "0A" && sockets.contains(&format!("socket:[{}]", fields[9])) {
                let port = fields[1].rsplit(':').next().unwrap();
                ports.push(u16::from_str_radix(port, 16).unwrap());
            }
        }
    }
    ports
}

/// What an attacker would try on the port of an engine.
const ENGINES: &[(&str, &str, &str)] = &[
    ("POST", "/", "DynamoDB_20120810.Scan"),
    ("POST", "/", "DynamoDB_20120810.PutItem"),
    ("POST", "/", "DynamoDB_20120810.ListTables"),
    ("POST", "/", "AWSEvents.PutEvents"),
    ("GET", "/lamplighter?list-type=2", ""),
    ("GET", "/lamplighter/", ""),
    ("GET", "/lamplighter/local/x", ""),
    ("PUT", "/lamplighter/local/x", ""),
    ("DELETE", "/lamplighter/local/x", ""),
    ("POST", "/lamplighter?delete", ""),
    ("POST", "/v1/messages", ""),
];

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_port_of_the_server_reveals_data() {
    for auth in ["off", "on"] {
        let folder = TempDir::new().unwrap();
        let server = Server::start(command(folder.path()).env("LAMPLIGHTER_AUTH", auth));
        let ports = ports(server.id());
        assert_eq!(ports.len(), 2, "the server and the demo model, and no engine: {ports:?}");
        assert!(ports.contains(&server.port().parse().unwrap()));
        // Signed with the secret that was once published, not signed, and presigned.
        let scope = |service: &str| {
            format!(
                "AWS4-HMAC-SHA256 Credential=lamplighter/20261122/us-east-1/{service}/aws4_request, \
                 SignedHeaders=host;x-amz-date, Signature={}",
                "0".repeat(64)
            )
        };
        let signatures = [String::new(), scope("dynamodb"), scope("s3"), scope("events")];
        let callers: [&[(&str, &str)]; 4] = [
            &[],
            &[("origin", "http://evil.example")],
            &[("host", "evil.example:8000")],
            &[("origin", "null"), ("sec-fetch-site", "cross-site")],
        ];
        let client = tests::client();
        for port in ports {
            for (method, path, target) in ENGINES {
                for (signature, caller) in
                    signatures.iter().flat_map(|one| callers.iter().map(move |other| (one, other)))
                {
                    let url = format!("http://127.0.0.1:{port}{path}");
                    let mut request = client.request(method.parse().unwrap(), url);
                    for (name, value) in [
                        ("x-amz-target", *target),
                        ("authorization", signature),
                        ("x-amz-date", "20261122T000000Z"),
                    ] {
                        if !value.is_empty() {
                            request = request.header(name, value);
                        }
                    }
                    for (name, value) in *caller {
                        request = request.header(*name, *value);
                    }
                    let request = request.header("content-type", "application/x-amz-json-1.0");
                    let body = r#"{"TableName":"lamplighter"}"#;
                    let answer = send(if *method == "GET" { request } else { request.body(body) }).await;
                    let what = format!("{port} {method} {path} {target} {signature} {caller:?}: {answer:?}");
                    assert!((400..600).contains(&answer.status), "{what}");
                    assert!(!answer.headers.contains_key("access-control-allow-origin"), "{what}");
                }
            }
        }
    }
}

/// An address for one upload can't be used for anything else.
#[tokio::test]
async fn a_presigned_address_is_for_one_upload_to_this_host() {
    let h = Harness::start().await;
    let import = h.post("/context/import", json!({"bytes": 4})).await.expect(202);
    let upload = &import["upload"];
    let url = upload["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("{}/lamplighter/", h.platform.url())), "{url}");
    let send = async |method: Method, url: &str, change: &[(&str, &str)], body: &'static str| -> u16 {
        let mut headers: Vec<(&str, &str)> = upload["headers"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| *name != "content-length")
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        headers.extend(change);
        let mut request = tests::client().request(method, url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.body(body).send().await.unwrap().status().as_u16()
    };
    for (method, url, change, body) in [
        (Method::GET, url.to_owned(), &[][..], ""),
        (Method::DELETE, url.to_owned(), &[], ""),
        (Method::PUT, url.replace("/lamplighter/local/", "/lamplighter/other/"), &[], "zip!"),
        (Method::PUT, url.replace("X-Amz-Expires=300", "X-Amz-Expires=3000"), &[], "zip!"),
        (Method::PUT, url.split('?').next().unwrap().to_owned(), &[], "zip!"),
        (Method::PUT, url.to_owned(), &[("origin", "http://evil.example")], "zip!"),
        (Method::PUT, url.to_owned(), &[("host", "evil.example")], "zip!"),
        (Method::PUT, url.to_owned(), &[], "another length"),
    ] {
        let status = send(method.clone(), &url, change, body).await;
        assert!([400, 403].contains(&status), "{method} {url} {change:?}: {status}");
    }
    assert_eq!(send(Method::PUT, url, &[], "zip!").await, 200);
}

fn address(h: &Harness) -> SocketAddr {
    h.platform.url().strip_prefix("http://").unwrap().parse().unwrap()
}

/// Opens connections that begin a request and never end it.
fn half_open(address: SocketAddr, count: usize, sent: &[u8]) -> Vec<TcpStream> {
    let open = (0..count).map(|_| {
        let mut stream = TcpStream::connect(address).unwrap();
        // A connection that was closed to make room can't be written to any more.
        let _ = stream.write_all(sent);
        stream
    });
    open.collect()
}

/// Whether the server closes the connection within this time.
fn closed_within(stream: &mut TcpStream, patience: Duration) -> bool {
    stream.set_read_timeout(Some(patience)).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).is_ok_and(|_| true) || {
        // A reset counts, a timeout does not.
        stream.set_nonblocking(true).unwrap();
        matches!(stream.read(&mut [0]), Ok(0)) || stream.peer_addr().is_err()
    }
}

async fn quick(h: &Harness) -> Answer {
    let began = Instant::now();
    let answer = send(h.request(Method::GET, "/agents").timeout(Duration::from_secs(25))).await;
    // A half-open connection is closed after 30 s. This one was closed earlier.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_ends_its_request_is_disconnected() {
    let second = Duration::from_secs(1);
    let limits = PortLimits { head: second, body: second, ..PortLimits::default() };
    let h = Harness::with(PlatformConfig { limits, ..PlatformConfig::in_memory() }).await;
    let address = address(&h);
    let beginnings: [&[u8]; 3] = [
        b"",
        b"GET /agents HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"POST /agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    ];
    let mut streams: Vec<TcpStream> =
        beginnings.iter().flat_map(|sent| half_open(address, 3, sent)).collect();
    let closed = tokio::task::spawn_blocking(move || {
        streams.iter_mut().all(|stream| closed_within(stream, Duration::from_secs(20)))
    });
    assert!(closed.await.unwrap());
    quick(&h).await.expect(200);
}

/// As many bytes of headers as API Gateway accepts.
#[tokio::test]
async fn long_headers_are_refused() {
    let h = Harness::start().await;
    let asked = async |bytes: usize| {
        // Headers that the client itself adds also count.
        let own = "hostaccept*/*".len() + address(&h).to_string().len();
        let (name, most) = ("x-long", 4_096);
        let mut request = h.request(Method::GET, "/agents");
        let mut left = bytes - own;
        while left > 0 {
            let value = left.min(most) - name.len();
            request = request.header(name, "x".repeat(value));
            left -= value + name.len();
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    assert_eq!(asked(10_240).await.0, 200);
    for bytes in [10_241, 20_000, 60_000] {
        let (status, problem) = asked(bytes).await;
        assert_eq!((status, &problem["code"]), (431, &json!("headers_too_large")), "{problem:#}");
        let detail = problem["detail"].as_str().unwrap();
        let limit = format!("the headers may have at most 10240 bytes together; these have {bytes}");
        assert!(detail.ends_with(&limit), "{detail}");
    }
    // Headers that are larger than the buffer are refused before they are read completely.
    for bytes in [100_000, 1_000_000] {
        let request = h.request(Method::GET, "/agents").header("x-long", "x".repeat(bytes));
        match request.send().await {
            Ok(response) => assert_eq!(response.status(), 431, "{bytes}"),
            // The server closed the connection while the client was still writing.
            Err(error) => assert!(error.is_request(), "{bytes}: {error}"),
        }
        quick(&h).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_half_open_connections_do_not_block_others() {
    let limits = PortLimits { connections: 40, streams: 10, ..PortLimits::default() };
    let h = Harness::with(PlatformConfig { limits, ..PlatformConfig::in_memory() }).await;
    let address = address(&h);
    let agent = h.agent().await;
    let turn = h.post(&format!("/agents/{agent}/chat"), json!({"message": "Hello"})).await.expect(200);
    let run = turn["run_id"].as_str().unwrap().to_owned();
    let body: &[u8] =
        b"POST /agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    let mut crowd = Vec::new();
    for sent in [&b""[..], b"GET / HTTP/1.1\r\n", body] {
        crowd.extend(half_open(address, 100, sent));
        quick(&h).await.expect(200);
    }
    let events = format!("/runs/{run}/events");
    assert_eq!(send(h.request(Method::GET, &events)).await.status, 200);
    drop(crowd);
    quick(&h).await.expect(200);
}

/// As many connections as the machine allows a process, to the program as people start it.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_thousand_half_open_connections_cost_little() {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let files: usize = files.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX);
    let count = 3_000.min(files.saturating_sub(200));
    let folder = TempDir::new().unwrap();
    let server = Server::start(&mut command(folder.path()));
    let client = tests::client();
    let url = format!("{}/agents", server.url);
    assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
    let before = server.resident().unwrap();
    let address: SocketAddr = server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let crowd = half_open(address, count, b"POST /agents HTTP/1.1\r\nHost: localhost\r\nContent-Le");
    let began = Instant::now();
    assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
    // A half-open connection is closed after 30 s. This one was closed earlier.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let grown = server.resident().unwrap() - before;
    let held = std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count();
    println!("{count} half-open connections: {grown} KiB more, {held} files open");
    assert!(grown < 64 * 1024, "{grown} KiB");
    assert!(held < 700, "{held} files");
    drop(crowd);
}
