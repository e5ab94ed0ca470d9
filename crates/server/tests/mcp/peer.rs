//! A minimal MCP client that sends exactly what a test specifies: over Streamable HTTP in both eras, HTTP with SSE, and stdio.

use crate::fixture::{Folders, Server};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::process::Stdio as Pipe;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

pub const MODERN: &str = "2026-07-28";
/// Timeout, far longer than anything takes.
const TIMEOUT: Duration = Duration::from_secs(60);
static IDS: AtomicU64 = AtomicU64::new(1);

pub fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": IDS.fetch_add(1, Relaxed), "method": method, "params": params })
}

pub fn initialize(version: &str) -> Value {
    request("initialize", json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } }))
}

/// Adds the metadata that a request of 2026-07-28 carries.
pub fn modern(mut message: Value, capabilities: Value) -> Value {
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    message
}

/// The result of a response that must not be an error.
pub fn result(answer: Value) -> Value {
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// A client over Streamable HTTP.
#[derive(Clone)]
pub struct Http {
    pub url: String,
    pub client: reqwest::Client,
    pub headers: Vec<(&'static str, String)>,
    /// `None` in the era without connections.
    pub connection: Option<String>,
    version: String,
    capabilities: Value,
}

impl Http {
    /// Connects like clients up to 2025-11-25.
    pub async fn connect(server: &Server, version: &str, headers: &[(&'static str, &str)]) -> Self {
        let mut http = Self::modern(server, headers);
        http.version = version.into();
        let response = http.send(&initialize(version)).await;
        assert_eq!(response.status(), 200);
        http.connection = response.headers().get("mcp-session-id").map(|value| value.to_str().expect("text").to_owned());
        let messages = messages(response).await;
        assert_eq!(result(messages[0].clone())["protocolVersion"], version);
        let initialized = http.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        assert_eq!(initialized.status(), 202);
        http
    }

    /// A client of 2026-07-28, which does not connect.
    pub fn modern(server: &Server, headers: &[(&'static str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let url = format!("{}/mcp", server.url);
        Self { url, client: server.client.clone(), headers, connection: None, version: MODERN.into(), capabilities: json!({}) }
    }

    pub fn with_capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    pub async fn send(&self, message: &Value) -> reqwest::Response {
        let modern_message;
        let is_modern = self.version == MODERN && message["method"] != "initialize" && message.get("id").is_some();
        let message = if is_modern {
            modern_message = modern(message.clone(), self.capabilities.clone());
            &modern_message
        } else {
            message
        };
        let mut post = self.client.post(&self.url).header("accept", "application/json, text/event-stream").json(message);
        if message["method"] != "initialize" {
            post = post.header("mcp-protocol-version", &self.version);
        }
        if is_modern {
            post = post.header("mcp-method", message["method"].as_str().expect("a method"));
            let name = ["name", "uri", "taskId"].into_iter().find_map(|member| message["params"][member].as_str());
            post = name.into_iter().fold(post, |post, name| post.header("mcp-name", name));
        }
        if let Some(connection) = &self.connection {
            post = post.header("mcp-session-id", connection);
        }
        for (name, value) in &self.headers {
            post = post.header(*name, value);
        }
        tokio::time::timeout(TIMEOUT, post.send()).await.expect("in time").expect("an answer")
    }

    /// All messages in response to a request.
    pub async fn all(&self, message: &Value) -> Vec<Value> {
        messages(self.send(message).await).await
    }

    pub async fn ask(&self, method: &str, params: Value) -> Value {
        self.all(&request(method, params)).await.pop().expect("an answer")
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        result(self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await)
    }
}

/// The messages of a response, from JSON or an event stream.
pub async fn messages(response: reqwest::Response) -> Vec<Value> {
    let kind = response.headers().get("content-type").map(|value| value.to_str().expect("text").to_owned()).unwrap_or_default();
    let text = tokio::time::timeout(TIMEOUT, response.text()).await.expect("in time").expect("a body");
    match kind.starts_with("text/event-stream") {
        true => text.lines().filter_map(|line| line.strip_prefix("data: ")).map(|data| serde_json::from_str(data).expect(data)).collect(),
        false => vec![serde_json::from_str(&text).unwrap_or_else(|_| panic!("{kind}: {text}"))],
    }
}

/// A client over stdio, which starts its server.
pub struct Stdio {
    pub child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    /// Notifications received while waiting for a response.
    pub notifications: Vec<Value>,
    _folders: Folders,
}

impl Stdio {
    pub fn start(folders: &Folders, arguments: &[&str]) -> Self {
        let mut command = Command::from(Server::command(folders));
        command.args(arguments).stdin(Pipe::piped()).stdout(Pipe::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the server starts");
        let output = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { input: child.stdin.take(), child, output, notifications: Vec::new(), _folders: folders.clone() }
    }

    pub async fn connect(folders: &Folders, version: &str, arguments: &[&str]) -> Self {
        let mut stdio = Self::start(folders, arguments);
        let answer = stdio.answer(&initialize(version)).await;
        assert_eq!(result(answer)["protocolVersion"], version);
        stdio.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
        stdio
    }

    pub async fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("not closed");
        input.write_all(format!("{line}\n").as_bytes()).await.expect("written");
    }

    /// The next message. `None` when the server has exited.
    pub async fn receive(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(TIMEOUT, self.output.next_line()).await.expect("in time").expect("text")?;
        Some(serde_json::from_str(&line).expect("JSON"))
    }

    pub async fn answer(&mut self, message: &Value) -> Value {
        self.send(&message.to_string()).await;
        self.answer_to(&message["id"].clone()).await
    }

    pub async fn answer_to(&mut self, id: &Value) -> Value {
        loop {
            let received = self.receive().await.expect("an answer");
            if received["id"] == *id {
                return received;
            }
            self.notifications.push(received);
        }
    }

    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.answer(&request(method, params)).await
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        result(self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await)
    }

    /// Disconnects like a client: by closing the pipe.
    pub async fn leave(mut self) -> Option<i32> {
        drop(self.input.take());
        tokio::time::timeout(TIMEOUT, self.child.wait()).await.expect("in time").expect("an end").code()
    }
}

/// A client over HTTP with SSE.
pub struct Sse {
    base: String,
    pub endpoint: String,
    client: reqwest::Client,
    /// The headers it was opened with, which further requests repeat.
    headers: Vec<(String, String)>,
    events: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    unread: String,
}

impl Sse {
    pub async fn open(server: &Server) -> Self {
        Self::open_with(server, &[]).await
    }

    pub async fn open_with(server: &Server, headers: &[(&str, &str)]) -> Self {
        let asked = server.client.get(format!("{}/sse", server.url));
        let asked = headers.iter().fold(asked, |asked, (name, value)| asked.header(*name, *value));
        let response = asked.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let events = Box::pin(response.bytes_stream());
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (base, client) = (server.url.clone(), server.client.clone());
        let mut sse = Self { base, endpoint: String::new(), client, headers, events, unread: String::new() };
        let (event, data) = sse.event().await.expect("an event");
        assert_eq!(event, "endpoint");
        sse.endpoint = data;
        sse
    }

    /// Type and data of the next event. `None` when the stream has ended.
    pub async fn event(&mut self) -> Option<(String, String)> {
        loop {
            if let Some((event, rest)) = self.unread.split_once("\n\n") {
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
                let found = (field("event:"), field("data:"));
                // An event without type and data is a keep-alive.
                let is_event = found != (String::new(), String::new());
                self.unread = rest.to_owned();
                if is_event {
                    return Some(found);
                }
                continue;
            }
            let bytes = tokio::time::timeout(TIMEOUT, self.events.next()).await.expect("in time")?.ok()?;
            self.unread += std::str::from_utf8(&bytes).expect("text");
        }
    }

    pub async fn post(&self, message: &Value, headers: &[(&str, &str)]) -> u16 {
        let post = self.client.post(format!("{}{}", self.base, self.endpoint)).json(message);
        let post = headers.iter().fold(post, |post, (name, value)| post.header(*name, *value));
        post.send().await.expect("an answer").status().as_u16()
    }

    pub async fn initialize(&mut self, version: &str) {
        result(self.answer(&initialize(version)).await);
    }

    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.answer(&request(method, params)).await
    }

    async fn answer(&mut self, message: &Value) -> Value {
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(self.post(message, &headers).await, 202);
        self.answer_to(&message["id"]).await
    }

    pub async fn answer_to(&mut self, id: &Value) -> Value {
        loop {
            let (event, data) = self.event().await.expect("an answer");
            assert_eq!(event, "message");
            let message: Value = serde_json::from_str(&data).expect("JSON");
            if message["id"] == *id {
                return message;
            }
        }
    }
}
