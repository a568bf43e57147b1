use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::Instant;

use domain::reach::{Policy, Reason, check_server};
use http::{HeaderMap, StatusCode, header};
use reqwest::dns::{Addrs, Name, Resolving};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A server on this machine. It keeps what it was sent, and answers each connection once.
struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// `answer` gets the request, and writes the answer.
    async fn new<F: Future<Output = ()> + Send>(
        answer: impl Fn(String, TcpStream) -> F + Send + Sync + Copy + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = requests.clone();
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                loop {
                    let mut piece = [0; 4096];
                    let read = stream.read(&mut piece).await.unwrap_or(0);
                    request.extend_from_slice(&piece[..read]);
                    let text = String::from_utf8_lossy(&request).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else {
                        if read == 0 { break } else { continue }
                    };
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                    if read == 0 || length.is_none_or(|length| body.len() >= length.parse().unwrap()) {
                        break;
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                seen.lock().unwrap().push(request.clone());
                answer(request, stream).await;
            }
        });
        Self { port, requests, task }
    }

    /// A server that answers a path `/to/{code}/{location}` with a redirect, and others with `hello`.
    async fn redirecting() -> Self {
        Self::new(async |request: String, mut stream: TcpStream| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let answer = match path.strip_prefix("/to/").and_then(|rest| rest.split_once('/')) {
                Some((code, location)) => format!("HTTP/1.1 {code} Moved\r\nlocation: {location}\r\n"),
                None => "HTTP/1.1 200 OK\r\nx-kind: test\r\n".to_owned(),
            };
            let answer = format!("{answer}connection: close\r\ncontent-length: 5\r\n\r\nhello");
            let _ = stream.write_all(answer.as_bytes()).await;
        })
        .await
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// DNS in a test: the answers for each name, one after another. The last answer stays.
#[derive(Default)]
struct Dns {
    answers: Mutex<HashMap<&'static str, VecDeque<Vec<IpAddr>>>>,
    lookups: Mutex<Vec<String>>,
}

impl Dns {
    fn new(answers: &[(&'static str, &[&[&str]])]) -> Arc<Self> {
        let parsed = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect::<Vec<IpAddr>>();
        let answers = answers.iter().map(|(name, answers)| (*name, answers.iter().map(parsed).collect()));
        Arc::new(Self { answers: Mutex::new(answers.collect()), lookups: Mutex::default() })
    }

    fn lookups(&self) -> Vec<String> {
        self.lookups.lock().unwrap().clone()
    }
}

impl Resolve for Dns {
    fn resolve(&self, name: Name) -> Resolving {
        self.lookups.lock().unwrap().push(name.as_str().to_owned());
        let mut answers = self.answers.lock().unwrap();
        let answer = answers.get_mut(name.as_str()).map(|answers| match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        });
        Box::pin(async move {
            let ips = answer.ok_or_else(|| std::io::Error::other("no such name"))?;
            // A port of DNS must not replace the port of the URL.
            Ok(Box::new(ips.into_iter().map(|ip| SocketAddr::new(ip, 9))) as Addrs)
        })
    }
}

fn limits() -> FetchLimits {
    FetchLimits { connect: Duration::from_secs(5), total: Duration::from_secs(10), ..FetchLimits::default() }
}

/// A fetch that may use `hosts`, and the ports of `servers` for public names.
fn fetch_with(hosts: &[String], servers: &[&Server], dns: &Arc<Dns>, limits: FetchLimits) -> Fetch {
    let allowed_hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    let ports = [80, 443].into_iter().chain(servers.iter().map(|server| server.port)).collect();
    let policy = Arc::new(Policy { allowed_hosts, ports });
    let resolver = dns.clone() as Arc<dyn Resolve>;
    Fetch::with_client(with_resolver(policy, limits.connect, limits.total, &resolver), limits)
}

fn fetch(servers: &[&Server]) -> Fetch {
    let hosts = servers.iter().map(|server| server.host()).collect::<Vec<_>>();
    fetch_with(&hosts, servers, &Dns::new(&[]), limits())
}

fn post(url: String) -> Ask {
    Ask { method: Method::POST, body: Some("secret body".into()), ..Ask::get(url) }
}

#[tokio::test]
async fn an_allowed_host_answers() {
    let server = Server::redirecting().await;
    let answer = fetch(&[&server]).send(Ask::get(server.url("/a?b#c"))).await.unwrap();
    assert_eq!(
        (answer.status, &answer.body[..], answer.headers["x-kind"].as_bytes()),
        (StatusCode::OK, &b"hello"[..], &b"test"[..])
    );
    assert_eq!(answer.url.url().as_str(), server.url("/a?b"));
    let [request] = &server.requests()[..] else { panic!("{:?}", server.requests()) };
    assert!(
        request.starts_with("GET /a?b HTTP/1.1\r\n") && request.contains("accept-encoding: identity\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn a_literal_that_is_not_public_is_never_connected_to() {
    let server = Server::redirecting().await;
    let fetch = fetch_with(&[], &[&server], &Dns::new(&[]), limits());
    let error = fetch.send(Ask::get(server.url("/secret"))).await.unwrap_err();
    assert!(
        matches!(&error, FetchError::Refused(refused) if matches!(refused.reason, Reason::Address(_))),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        format!(
            "http://{} is refused: 127.0.0.1 is a loopback address. The operator may allow it with LAMPLIGHTER_ALLOWED_HOSTS, as \
             host:port",
            server.host()
        )
    );
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_redirect_to_a_private_literal_is_refused_after_the_hop() {
    let (server, inner) = (Server::redirecting().await, Server::redirecting().await);
    let fetch = fetch(&[&server]);
    for target in [
        inner.url("/"),
        "http://169.254.169.254/latest/".into(),
        "//2130706433/".into(),
        "file:///etc/passwd".into(),
    ] {
        let error = fetch.send(Ask::get(server.url(&format!("/to/302/{target}")))).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused(_)), "{target}: {error}");
    }
    assert_eq!((server.requests().len(), inner.requests().len()), (4, 0));
}

#[tokio::test]
async fn a_redirect_to_a_name_that_resolves_privately_is_refused() {
    let (server, inner) = (Server::redirecting().await, Server::redirecting().await);
    let dns = Dns::new(&[
        ("private.example.com", &[&["127.0.0.1"]]),
        // A public address does not excuse a private one.
        ("both.example.com", &[&["93.184.215.14", "127.0.0.1"]]),
        ("mapped.example.com", &[&["::ffff:127.0.0.1"]]),
    ]);
    let fetch = fetch_with(&[server.host()], &[&inner], &dns, limits());
    for (name, ip) in [
        ("private.example.com", "127.0.0.1"),
        ("both.example.com", "127.0.0.1"),
        ("mapped.example.com", "::ffff:127.0.0.1"),
    ] {
        let url = server.url(&format!("/to/307/http://{name}:{}/secret", inner.port));
        let error = fetch.send(Ask::get(url)).await.unwrap_err();
        let expected = NotReachable { name: name.into(), ip: ip.parse().unwrap() };
        assert!(matches!(&error, FetchError::NotReachable(refused) if *refused == expected), "{error:?}");
        assert!(error.to_string().starts_with(&format!("{name} is refused: {ip} is a ")), "{error}");
    }
    assert_eq!((server.requests().len(), inner.requests().len()), (3, 0));
}

/// The addresses that are checked are those that are connected to: there is one lookup for a connection, and no second one later.
#[tokio::test]
async fn a_name_that_is_rebound_never_leads_to_the_private_address() {
    let inner = Server::redirecting().await;
    let dns = Dns::new(&[("rebind.example.com", &[&["93.184.215.14"], &["127.0.0.1"]])]);
    let fetch = fetch_with(&[], &[&inner], &dns, limits());
    let first = Guarded::new(dns.clone(), false).resolve("rebind.example.com".parse().unwrap()).await;
    let first = first.map(Iterator::collect::<Vec<_>>).map_err(|error| error.to_string());
    assert_eq!(first, Ok(vec!["93.184.215.14:0".parse().unwrap()]), "a check before would have passed");
    let error = fetch.send(Ask::get(format!("http://rebind.example.com:{}/", inner.port))).await.unwrap_err();
    assert!(matches!(error, FetchError::NotReachable(_)), "{error}");
    // The same for the calls of actions and for webhooks, which carry a body.
    let url = format!("http://rebind.example.com:{}/", inner.port);
    let error = fetch.send_once(post(url), 100).await.unwrap_err();
    assert!(matches!(error, FetchError::NotReachable(_)), "{error}");
    assert_eq!((dns.lookups().len(), inner.requests().len()), (3, 0));
}

#[tokio::test]
async fn an_allowed_name_may_be_private_but_not_this_machine() {
    let server = Server::redirecting().await;
    let hosts = [format!("localhost:{}", server.port), format!("models.internal:{}", server.port)];
    let dns = Dns::new(&[
        ("localhost", &[&["127.0.0.1"], &["169.254.169.254"]]),
        ("models.internal", &[&["127.0.0.1"], &["10.0.0.1", "fd00:ec2::254"]]),
    ]);
    let fetch = fetch_with(&hosts, &[], &dns, limits());
    let get = |host: &String| Ask::get(format!("http://{host}/"));
    assert_eq!(fetch.send(get(&hosts[0])).await.unwrap().body, "hello");
    for (host, ip) in [(&hosts[0], "169.254.169.254"), (&hosts[1], "127.0.0.1"), (&hosts[1], "fd00:ec2::254")]
    {
        let error = fetch.send(get(host)).await.unwrap_err();
        assert!(
            matches!(&error, FetchError::NotReachable(refused) if refused.ip.to_string() == ip),
            "{error}"
        );
    }
    let private = Guarded::new(Dns::new(&[("models.internal", &[&["10.0.0.1"]])]), true);
    assert!(private.resolve("models.internal".parse().unwrap()).await.is_ok());
    assert_eq!(server.requests().len(), 1);
}

/// A host that is allowed at one port is a public host at the others.
#[tokio::test]
async fn an_allowed_port_does_not_open_the_others() {
    let server = Server::redirecting().await;
    let dns = Dns::new(&[("api.example.com", &[&["10.0.0.1"]])]);
    let fetch = fetch_with(&["api.example.com:8443".into()], &[&server], &dns, limits());
    let error = fetch.send(Ask::get(format!("http://api.example.com:{}/", server.port))).await.unwrap_err();
    assert!(matches!(error, FetchError::NotReachable(_)), "{error}");
}

/// Connections of other protocols go only to checked addresses, too, with one lookup for each.
#[tokio::test]
async fn a_connection_of_another_protocol_is_guarded() {
    let inner = Server::redirecting().await;
    let allowed_hosts = vec![format!("localhost:{}", inner.port).parse().unwrap()];
    let policy = Policy { allowed_hosts, ..Policy::default() };
    let dns = Dns::new(&[
        ("localhost", &[&["127.0.0.1"], &["169.254.169.254"]]),
        ("private.example.com", &[&["127.0.0.1"]]),
        ("both.example.com", &[&["127.0.0.1", "93.184.215.14"]]),
    ]);
    let connected = async |host: &str| {
        let server = check_server(host, inner.port, &[inner.port], &policy).unwrap();
        let connected = super::connect::connect_with(&server, dns.clone()).await;
        connected.map(|stream| stream.peer_addr().unwrap().to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(connected("localhost").await, Ok(inner.host()));
    let told = connected("localhost").await.unwrap_err();
    assert_eq!(told, "localhost is refused: 169.254.169.254 is a reserved address");
    for name in ["private.example.com", "both.example.com"] {
        let told = connected(name).await.unwrap_err();
        assert_eq!(told, format!("{name} is refused: 127.0.0.1 is a loopback address"));
    }
    let told = connected("none.example.com").await.unwrap_err();
    let at = format!("none.example.com:{}", inner.port);
    assert_eq!(told, format!("{at} cannot be reached: its name does not resolve"));
    assert_eq!(dns.lookups().len(), 5);
}

fn with_secrets() -> HeaderMap {
    let headers = [
        ("authorization", "Bearer secret"),
        ("cookie", "a=secret"),
        ("x-api-key", "secret"),
        ("x-subscription-token", "secret"),
        ("accept", "text/html"),
        ("accept", "text/plain"),
        ("user-agent", "test"),
        ("host", "secret.example"),
    ];
    headers.into_iter().fold(HeaderMap::new(), |mut map, (name, value)| {
        map.append(name, value.parse().unwrap());
        map
    })
}

#[tokio::test]
async fn another_origin_gets_no_secrets() {
    let (server, other) = (Server::redirecting().await, Server::redirecting().await);
    let fetch = fetch(&[&server, &other]);
    let ask = |path: String| Ask { headers: with_secrets(), ..Ask::get(server.url(&path)) };
    fetch.send(ask(format!("/to/302/{}", other.url("/")))).await.unwrap();
    let [request] = &other.requests()[..] else { panic!("one request") };
    assert!(
        !request.contains("secret") && request.contains(&format!("host: {}\r\n", other.host())),
        "{request}"
    );
    for kept in ["accept: text/html\r\n", "accept: text/plain\r\n", "user-agent: test\r\n"] {
        assert!(request.contains(kept), "{request}");
    }
    // Back at the first origin, the headers stay away.
    fetch
        .send(ask(format!("/to/302/{}", other.url(&format!("/to/302/{}", server.url("/back"))))))
        .await
        .unwrap();
    let back = server.requests().pop().unwrap();
    assert!(back.starts_with("GET /back ") && !back.contains("secret"), "{back}");
    // The same origin keeps them.
    fetch.send(ask("/to/302//same".to_owned())).await.unwrap();
    let same = server.requests().pop().unwrap();
    assert!(same.starts_with("GET /same ") && same.contains("authorization: Bearer secret"), "{same}");
    assert!(same.contains("x-api-key: secret") && !same.contains("secret.example"), "{same}");
}

#[tokio::test]
async fn another_origin_gets_no_body() {
    let (server, other) = (Server::redirecting().await, Server::redirecting().await);
    let fetch = fetch(&[&server, &other]);
    for code in [307, 308] {
        let error =
            fetch.send(post(server.url(&format!("/to/{code}/{}", other.url("/"))))).await.unwrap_err();
        assert!(matches!(error, FetchError::Leak { .. }), "{error}");
        let delete =
            Ask { method: Method::DELETE, ..Ask::get(server.url(&format!("/to/{code}/{}", other.url("/")))) };
        let error = fetch.send(delete).await.unwrap_err();
        assert!(matches!(error, FetchError::Leak { .. }), "{error}");
    }
    assert_eq!(other.requests().len(), 0);
    for code in [301, 302, 303] {
        fetch.send(post(server.url(&format!("/to/{code}/{}", other.url("/"))))).await.unwrap();
        let request = other.requests().pop().unwrap();
        assert!(request.starts_with("GET / ") && !request.contains("secret body"), "{request}");
    }
    fetch.send(post(server.url("/to/307//same"))).await.unwrap();
    let same = server.requests().pop().unwrap();
    assert!(same.starts_with("POST /same ") && same.ends_with("secret body"), "{same}");
}

#[tokio::test]
async fn a_request_that_becomes_get_does_not_describe_a_body() {
    let server = Server::redirecting().await;
    for code in [301, 302, 303, 307] {
        let mut ask = post(server.url(&format!("/to/{code}//next")));
        ask.headers.insert(header::CONTENT_TYPE, "application/x-test".parse().unwrap());
        fetch(&[&server]).send(ask).await.unwrap();
        let next = server.requests().pop().unwrap();
        let keeps = code == 307;
        assert!(next.starts_with(if keeps { "POST /next " } else { "GET /next " }), "{next}");
        assert_eq!(next.contains("content-type: application/x-test\r\n"), keeps, "{code}: {next}");
    }
}

/// A proxy would resolve names itself, so nothing would check the addresses. The variables are those of a process of its own.
#[test]
fn a_proxy_of_the_environment_is_not_used() {
    let test = "reach::tests::an_allowed_host_answers";
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env_remove("NO_PROXY").env_remove("no_proxy");
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(variable, "http://127.0.0.1:1");
    }
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

#[test]
fn a_secret_is_not_sent_without_encryption() {
    let at = |url| domain::reach::check(url, &Policy::default()).unwrap();
    let (from, to) = (at("https://example.com/"), at("http://example.com/"));
    let redirect = |ask: &mut Ask| fetch::redirect(ask, StatusCode::FOUND, &from, &to);
    for mut ask in [post(String::new()), Ask { headers: with_secrets(), ..Ask::get("") }] {
        let error = redirect(&mut ask).unwrap_err().to_string();
        let expected = "https://example.com redirects to http://example.com, which would send headers or a body without encryption or to another server";
        assert_eq!(error, expected);
    }
    let mut harmless = HeaderMap::new();
    harmless.insert(header::ACCEPT, "text/html".parse().unwrap());
    assert!(redirect(&mut Ask { headers: harmless, ..Ask::get("") }).is_ok());
}

#[tokio::test]
async fn redirects_end() {
    let server = Server::redirecting().await;
    let fetch = fetch(&[&server]);
    let hops = |count: usize| server.url(&format!("{}/end", "/to/302/".repeat(count)));
    assert_eq!(fetch.send(Ask::get(hops(5))).await.unwrap().url.url().as_str(), server.url("/end"));
    let error = fetch.send(Ask::get(hops(6))).await.unwrap_err();
    assert!(matches!(error, FetchError::Redirects { limit: 5, .. }), "{error}");
    assert_eq!(server.requests().len(), 6 + 6);
    // A client alone follows none.
    let client = client(Arc::new(fetch.client.policy().clone()), limits().connect, limits().total);
    let url = client.check(&hops(1)).unwrap();
    assert_eq!(client.request(Method::GET, &url).send().await.unwrap().status(), StatusCode::FOUND);
}

/// A server whose answers say how they are compressed: the path names the encoding, and what is sent.
async fn compressing() -> Server {
    Server::new(async |request: String, mut stream: TcpStream| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        let (encoding, what) = path[1..].split_once('/').unwrap();
        let gzip = |text: &[u8]| {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        };
        let body = match what {
            "gzip" => gzip(b"hello"),
            "padded" => [gzip(b"hello"), vec![0; 10]].concat(),
            "parts" => [gzip(b"hel"), gzip(b"lo")].concat(),
            "many" => gzip(b"").repeat(1_000),
            "cut" => gzip(b"hello")[..20].to_vec(),
            "bomb" => gzip(&vec![0; 300_000]),
            "zlib" => {
                let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                writer.write_all(b"hello").unwrap();
                writer.finish().unwrap()
            }
            "raw" => {
                let mut writer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
                writer.write_all(b"hello").unwrap();
                writer.finish().unwrap()
            }
            _ => Vec::new(),
        };
        let status = if what == "304" { "304 Not Modified" } else { "200 OK" };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-encoding: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            encoding.replace('+', ", "),
            body.len()
        );
        let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
    })
    .await
}

#[tokio::test]
async fn answers_that_are_compressed_without_being_asked_are_read() {
    let server = compressing().await;
    for path in [
        "/GZIP/gzip",
        "/x-gzip/padded",
        "/gzip/parts",
        "/identity+gzip/gzip",
        "/deflate/zlib",
        "/deflate/raw",
    ] {
        let answer = fetch(&[&server]).send(Ask::get(server.url(path))).await.unwrap();
        assert_eq!(&answer.body[..], b"hello", "{path}");
        assert!(!answer.headers.contains_key(header::CONTENT_ENCODING), "{path}");
    }
    let same = fetch(&[&server]).send(Ask::get(server.url("/gzip/304"))).await.unwrap();
    assert_eq!((same.status, same.body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert!(server.requests().iter().all(|request| request.contains("accept-encoding: identity\r\n")));
}

#[tokio::test]
async fn compressed_answers_have_the_same_limits() {
    let server = compressing().await;
    let fetch =
        fetch_with(&[server.host()], &[&server], &Dns::new(&[]), FetchLimits { bytes: 1 << 16, ..limits() });
    for (path, said) in [
        ("/gzip/bomb", "is longer than 65536 bytes"),
        ("/gzip/many", "compressed, and broken"),
        ("/gzip/cut", "compressed, and broken"),
        ("/gzip/zlib", "compressed, and broken"),
        ("/deflate/gzip", "compressed, and broken"),
        ("/br/gzip", "has the encoding br; only"),
        ("/gzip+gzip/gzip", "has the encoding gzip, gzip; only"),
    ] {
        let error = fetch.send(Ask::get(server.url(path))).await.unwrap_err();
        assert!(error.to_string().contains(said), "{path}: {error}");
    }
}

#[tokio::test]
async fn long_answers_are_cut_off() {
    // One server announces the length, the other sends without end.
    let honest = Server::new(async |_: String, mut stream: TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
    .await;
    let endless = Server::new(async |_: String, mut stream: TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while stream.write_all(b"5\r\nhello\r\n").await.is_ok() {}
    })
    .await;
    for server in [&honest, &endless] {
        let limits = FetchLimits { bytes: 1000, ..limits() };
        let fetch = fetch_with(&[server.host()], &[], &Dns::new(&[]), limits);
        let error = fetch.send(Ask::get(server.url("/"))).await.unwrap_err();
        assert!(matches!(error, FetchError::TooLarge { limit: 1000, .. }), "{error}");
    }
    let server = Server::redirecting().await;
    let limits = FetchLimits { bytes: 5, ..limits() };
    let exact = fetch_with(&[server.host()], &[], &Dns::new(&[]), limits);
    assert_eq!(exact.send(Ask::get(server.url("/"))).await.unwrap().body.len(), 5);
}

#[tokio::test]
async fn slow_servers_are_given_up() {
    let silent = Server::new(async |_: String, _stream: TcpStream| {
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
    .await;
    // It is never silent for long.
    let dripping = Server::new(async |_: String, mut stream: TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    for server in [&silent, &dripping] {
        let limits = FetchLimits { total: Duration::from_millis(300), ..limits() };
        let fetch = fetch_with(&[server.host()], &[], &Dns::new(&[]), limits);
        let began = Instant::now();
        let error = fetch.send(Ask::get(server.url("/"))).await.unwrap_err();
        assert!(matches!(error, FetchError::TimedOut { .. }), "{error:?}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn errors_show_no_secrets_and_nothing_is_sent_twice() {
    let closing = Server::new(async |_: String, stream: TcpStream| drop(stream)).await;
    let error = fetch(&[&closing]).send(post(closing.url("/secret?secret"))).await.unwrap_err();
    let expected = format!(
        "http://{} cannot be reached: the connection broke, or the answer is not HTTP",
        closing.host()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(closing.requests().len(), 1);
    let unbound = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let fetch = fetch_with(&[unbound.to_string()], &[], &Dns::new(&[]), limits());
    let error = fetch.send(Ask::get(format!("http://{unbound}/secret?secret"))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("http://{unbound} cannot be reached: no connection, or no valid certificate")
    );
    let error = fetch.send(Ask::get("http://nowhere.example.com/secret")).await.unwrap_err();
    assert_eq!(error.to_string(), "http://nowhere.example.com cannot be reached: its name does not resolve");
}
