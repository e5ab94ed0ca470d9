//! A chain of runs through MCP: over Streamable HTTP and over stdio.

use super::connection::Connection;
use super::process::{self, Server};
use crate::fail;
use serde_json::{Value, json};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const VERSION: &str = "2025-11-25";

fn initialize() -> Value {
    let client = json!({ "name": "heapstead-bench", "version": "1" });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": VERSION, "capabilities": {}, "clientInfo": client } })
}

fn call(id: u64, code: &str, heap: &Value) -> Value {
    let arguments = json!({ "code": code, "heap": heap, "wait_secs": 60 });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "run_js", "arguments": arguments } })
}

/// The heap key in a tool result.
fn heap_of(answer: &Value) -> Value {
    match &answer["result"]["structuredContent"] {
        record if record["status"] == "completed" => record["heap"].clone(),
        _ => fail(&format!("a call answered {answer}")),
    }
}

pub struct McpHttp {
    connection: Connection,
    headers: String,
    calls: u64,
    heap: Value,
}

impl McpHttp {
    pub async fn connect(server: &Server) -> Self {
        let accept = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        let mut connection = server.connect().await;
        let answer = connection.ask("POST", "/mcp", accept, initialize().to_string().as_bytes()).await;
        let session = answer.header("mcp-session-id").map(|id| format!("Mcp-Session-Id: {}\r\n", id.trim())).unwrap_or_default();
        let headers = format!("{accept}MCP-Protocol-Version: {VERSION}\r\n{session}");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
        connection.ask("POST", "/mcp", &headers, initialized.as_bytes()).await;
        Self { connection, headers, calls: 0, heap: Value::Null }
    }

    pub async fn run(&mut self, code: &str) {
        self.calls += 1;
        self.heap = heap_of(&self.ask(&call(self.calls, code, &self.heap)).await);
    }

    /// Calls a tool and returns its result.
    pub async fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.calls += 1;
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.ask(&json!({ "jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params })).await;
        match answer["result"]["isError"] == true || answer["result"].is_null() {
            true => fail(&format!("{tool} answered {answer}")),
            false => answer["result"]["structuredContent"].clone(),
        }
    }

    async fn ask(&mut self, message: &Value) -> Value {
        let answer = self.connection.ask("POST", "/mcp", &self.headers, message.to_string().as_bytes()).await;
        // The response is either plain JSON or an event stream whose last event is the response.
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let last = text.lines().filter_map(|line| line.strip_prefix("data:")).rfind(|data| data.contains("result")).unwrap_or(&text);
        serde_json::from_str(last).unwrap_or_else(|error| fail(&format!("/mcp answered {text:?}: {error}")))
    }
}

pub struct McpStdio {
    _child: Child,
    _folder: TempDir,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    calls: u64,
    heap: Value,
}

impl McpStdio {
    pub async fn start() -> Self {
        let folder = process::folder();
        let mut command = Command::from(process::command(&folder));
        command.args(["--log", "error"]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|error| fail(&error.to_string()));
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else { fail("no pipes") };
        let output = BufReader::new(output).lines();
        let mut this = Self { _child: child, _folder: folder, input, output, calls: 0, heap: Value::Null };
        this.send(&initialize()).await;
        this.answer(0).await;
        this.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        this
    }

    pub async fn run(&mut self, code: &str) {
        self.calls += 1;
        self.send(&call(self.calls, code, &self.heap)).await;
        self.heap = heap_of(&self.answer(self.calls).await);
    }

    async fn send(&mut self, message: &Value) {
        if let Err(error) = self.input.write_all(format!("{message}\n").as_bytes()).await {
            fail(&error.to_string());
        }
    }

    async fn answer(&mut self, id: u64) -> Value {
        loop {
            let Ok(Some(line)) = self.output.next_line().await else { fail("the server on standard input and output ended") };
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| fail(&format!("{line:?}: {error}")));
            if message["id"] == id {
                return message;
            }
        }
    }
}
