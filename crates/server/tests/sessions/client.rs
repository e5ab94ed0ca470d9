//! Short helpers for calls in a session, on every transport and in both eras.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, Sse, Stdio, request, result};
use futures_util::StreamExt;
use serde_json::{Value, json};

pub const LEGACY: &str = "2025-11-25";
pub const LEGACY_KEY: &str = "io.modelcontextprotocol/session";
pub const MODERN_KEY: &str = "dev.heapstead/session";

/// A client on any transport.
pub enum Client {
    Stdio(Box<Stdio>),
    Http(Http),
    Sse(Box<Sse>),
}

impl Client {
    pub async fn stdio(folders: &Folders, arguments: &[&str]) -> Self {
        Self::Stdio(Box::new(Stdio::connect(folders, LEGACY, arguments).await))
    }

    pub async fn http(server: &Server) -> Self {
        Self::Http(Http::connect(server, LEGACY, &[]).await)
    }

    pub fn modern(server: &Server) -> Self {
        Self::Http(Http::modern(server, &[]))
    }

    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        match self {
            Self::Stdio(stdio) => stdio.ask(method, params).await,
            Self::Http(http) => http.all(&request(method, params)).await.pop().expect("an answer"),
            Self::Sse(sse) => sse.ask(method, params).await,
        }
    }

    pub fn key(&self) -> &'static str {
        match self {
            Self::Http(http) if http.connection.is_none() => MODERN_KEY,
            _ => LEGACY_KEY,
        }
    }

    /// The error code as that era defines it.
    pub fn code(&self, code: i64) -> i64 {
        if self.key() == MODERN_KEY { code + 1000 } else { code }
    }

    pub async fn create(&mut self) -> Value {
        let session = result(self.ask("sessions/create", json!({})).await)["session"].clone();
        assert!(session["sessionId"].is_string(), "{session}");
        session
    }

    /// Calls a method in a session, given as an id or as the whole session object.
    pub async fn ask_in(&mut self, session: &Value, method: &str, mut params: Value) -> Value {
        params["_meta"][self.key()] = match session {
            Value::String(id) => json!({ "sessionId": id }),
            whole => whole.clone(),
        };
        self.ask(method, params).await
    }

    pub async fn run_in(&mut self, session: &Value, code: &str) -> Value {
        result(self.ask_in(session, "tools/call", json!({ "name": "run_js", "arguments": { "code": code, "wait_secs": 60 } })).await)
    }
}

/// The code of a response that must be an error.
pub fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error: {answer}"))
}

/// Runs the same steps with clients of every kind.
pub async fn everywhere(steps: impl AsyncFn(&mut Client)) {
    steps(&mut Client::stdio(&Folders::new(), &[]).await).await;
    let server = Server::start();
    steps(&mut Client::http(&server).await).await;
    steps(&mut Client::modern(&server)).await;
    let server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    let mut sse = Sse::open(&server).await;
    sse.initialize(LEGACY).await;
    steps(&mut Client::Sse(Box::new(sse))).await;
}

/// A stream of events over HTTP.
pub struct Listener {
    events: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    unread: String,
    /// The last event id.
    pub last: Option<String>,
}

impl Listener {
    pub fn new(response: reqwest::Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { events: Box::pin(response.bytes_stream()), unread: String::new(), last: None }
    }

    /// Starts listening in a session or on the connection, and waits for the confirmation.
    pub async fn open(http: &Http, session: Option<&Value>) -> Self {
        let params = session.map_or(json!({}), |session| json!({ "_meta": { LEGACY_KEY: session } }));
        let mut listener = Self::new(http.send(&request("messages/listen", params)).await);
        let first = listener.next().await.expect("an event");
        assert_eq!(first, json!({ "jsonrpc": "2.0", "method": "notifications/messages/listen", "params": {} }));
        listener
    }

    /// The next message. `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.unread.split_once("\n\n") {
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned());
                let (id, data) = (field("id:"), field("data:"));
                self.unread = rest.to_owned();
                if let Some(data) = data {
                    self.last = id.or(self.last.take());
                    return Some(serde_json::from_str(&data).expect("JSON"));
                }
            }
            let bytes = tokio::time::timeout(TIMEOUT, self.events.next()).await.expect("in time")?.ok()?;
            self.unread += std::str::from_utf8(&bytes).expect("text");
        }
    }

    /// The next message of this method.
    pub async fn next_of(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await.expect("another message");
            if message["method"] == method {
                return message["params"].clone();
            }
        }
    }

    /// Waits for an update notification of one resource.
    pub async fn updated(&mut self, uri: &str) {
        while self.next_of(UPDATED).await["uri"] != uri {}
    }
}

pub const UPDATED: &str = "notifications/resources/updated";
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

pub fn head_of(session: &Value) -> String {
    format!("heapstead://sessions/{}/head", session["sessionId"].as_str().expect("an id"))
}
