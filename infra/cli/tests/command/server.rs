//! A small HTTP server that refuses every request that is not exactly right.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What the program sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// Path and query, without the time of the event.
    pub target: String,
    /// The time of the event.
    pub at: Option<String>,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// How the server responds.
#[derive(Clone, Debug)]
pub enum Reply {
    ServerResponse {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// No answer, and the connection stays open.
    Silence,
    /// The connection is closed.
    Close,
}

impl Reply {
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200, body)
    }

    pub fn status(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::ServerResponse { status, headers: Vec::new(), body: body.into() }
    }

    pub fn tagged(version: u64, body: &str) -> Self {
        Self::ServerResponse {
            status: 200,
            headers: vec![("etag", format!("\"{version}\""))],
            body: body.into(),
        }
    }
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

struct Inner {
    handler: Box<Handler>,
    requests: Mutex<Vec<Request>>,
    /// What was wrong with requests that were not valid HTTP.
    faults: Mutex<Vec<String>>,
    open: Mutex<Vec<TcpStream>>,
    closed: AtomicBool,
}

/// A server that runs until it is dropped.
pub struct Server {
    pub url: String,
    inner: Arc<Inner>,
}

impl Server {
    pub fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let inner = Arc::new(Inner {
            handler: Box::new(handler),
            requests: Mutex::default(),
            faults: Mutex::default(),
            open: Mutex::default(),
            closed: AtomicBool::new(false),
        });
        let accepting = inner.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.closed.load(Ordering::SeqCst) {
                    return;
                }
                let (inner, stream) = (accepting.clone(), stream.unwrap());
                inner.open.lock().unwrap().push(stream.try_clone().unwrap());
                thread::spawn(move || inner.serve(stream));
            }
        });
        Self { url, inner }
    }

    /// A server that accepts every hook.
    pub fn taking() -> Self {
        Self::start(|_| Reply::ok(""))
    }

    pub fn requests(&self) -> Vec<Request> {
        self.inner.requests.lock().unwrap().clone()
    }

    /// The bodies, in order of arrival.
    pub fn bodies(&self) -> Vec<String> {
        self.requests().iter().map(|request| request.text().to_owned()).collect()
    }

    /// Waits until this many requests have arrived. Background sending has no other sign of its end.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<Request> {
        wait_until(|| self.requests().len() >= count);
        self.requests()
    }
}

/// Waits without a limit, because the machine may be slow.
pub fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        thread::sleep(Duration::from_millis(10));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.inner.closed.store(true, Ordering::SeqCst);
        for stream in self.inner.open.lock().unwrap().iter() {
            drop(stream.shutdown(std::net::Shutdown::Both));
        }
        // Wakes the thread that accepts connections.
        drop(TcpStream::connect(self.url.trim_start_matches("http://")));
        let faults = self.inner.faults.lock().unwrap();
        assert!(thread::panicking() || faults.is_empty(), "{faults:?}");
    }
}

impl Inner {
    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        loop {
            let request = match read(&mut reader) {
                Ok(Some(request)) => request,
                Ok(None) => return,
                Err(fault) => return self.faults.lock().unwrap().push(fault),
            };
            self.requests.lock().unwrap().push(request.clone());
            match (self.handler)(&request) {
                Reply::ServerResponse { status, headers, body } => {
                    let mut answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
                    for (name, value) in headers {
                        answer.push_str(&format!("{name}: {value}\r\n"));
                    }
                    answer.push_str("\r\n");
                    let bytes = [answer.as_bytes(), &body].concat();
                    if stream.write_all(&bytes).is_err() {
                        return;
                    }
                }
                Reply::Silence => {}
                Reply::Close => return drop(stream.shutdown(std::net::Shutdown::Both)),
            }
        }
    }
}

/// A request. `None` if the client has disconnected, an error if it is not exactly HTTP/1.1.
fn read(reader: &mut BufReader<TcpStream>) -> Result<Option<Request>, String> {
    let mut line = String::new();
    let mut next = |reader: &mut BufReader<TcpStream>| {
        line.clear();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => Ok(None),
            Ok(_) => {
                line.strip_suffix("\r\n").map(|line| Some(line.to_owned())).ok_or(format!("ends: {line:?}"))
            }
        }
    };
    let Some(first) = next(reader)? else { return Ok(None) };
    let parts: Vec<_> = first.split(' ').collect();
    let [method, target, "HTTP/1.1"] = parts[..] else { return Err(first) };
    if !target.starts_with('/') || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(first);
    }
    let mut headers = BTreeMap::new();
    loop {
        let Some(line) = next(reader)? else { return Ok(None) };
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").ok_or(format!("header: {line:?}"))?;
        if headers.insert(name.to_lowercase(), value.to_owned()).is_some() {
            return Err(format!("twice: {line:?}"));
        }
    }
    if !headers.contains_key("host") || headers.contains_key("transfer-encoding") {
        return Err(format!("{headers:?}"));
    }
    let length = headers.get("content-length").map_or(Ok(0), |length| length.parse());
    let length: usize = length.map_err(|_| format!("{headers:?}"))?;
    if matches!(method, "POST" | "PUT") && !headers.contains_key("content-length") {
        return Err(format!("no length: {headers:?}"));
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return Ok(None);
    }
    let (target, at) = match target.rsplit_once("at=") {
        Some((rest, at)) if rest.ends_with(['?', '&']) => (&rest[..rest.len() - 1], Some(at.to_owned())),
        _ => (target, None),
    };
    let (method, target) = (method.to_owned(), target.to_owned());
    Ok(Some(Request { method, target, at, headers, body }))
}
