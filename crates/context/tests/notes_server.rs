//! Tests the example server over MCP, as a client would use it.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl Client {
    fn connect(database: &std::path::Path) -> Self {
        let program = std::env::current_exe().expect("this program").with_file_name("../examples/notes_server");
        let mut server =
            Command::new(program).env("CONTEXT_DB", database).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("server");
        let (input, output) = (server.stdin.take(), BufReader::new(server.stdout.take().expect("output")));
        let mut client = Self { server, input, output, requests: 0 };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" } });
        client.ask("initialize", hello);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().expect("open"), "{message}").expect("sent");
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params }));
        let mut line = String::new();
        self.output.read_line(&mut line).expect("answer");
        let answer: Value = serde_json::from_str(&line).expect("json");
        assert_eq!(answer["id"], self.requests, "{answer}");
        answer["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))["structuredContent"].clone()
    }
}

#[test]
fn a_conversation_is_remembered_and_forgotten() {
    let folder = tempfile::tempdir().expect("folder");
    let database = folder.path().join("contexts.db");
    let mut client = Client::connect(&database);
    assert_eq!(client.ask("tools/list", json!({}))["tools"].as_array().map(Vec::len), Some(8));

    client.call("add_note", json!({ "title": "whales", "text": "They are blue." }));
    assert_eq!(client.call("context_check", json!({ "title": "whales" }))["note"], "document_not_fetched_this_session");
    assert_eq!(client.call("read_note", json!({ "title": "whales" }))["text"], "They are blue.");
    let again = client.call("read_note", json!({ "title": "whales" }));
    assert_eq!(
        (&again["note"], &again["document_id"], &again["summary"]),
        (&json!("document_already_fetched_this_session"), &json!("whales"), &json!("They are blue."))
    );
    client.call("add_note", json!({ "title": "whales", "text": "They are large." }));
    assert_eq!(client.call("read_note", json!({ "title": "whales" }))["text"], "They are large.", "it has changed");
    assert_eq!(client.call("search_notes", json!({ "query": "large" }))["titles"], json!(["whales"]));
    assert_eq!(client.call("search_notes", json!({ "query": " large" }))["note"], "already tried, returned 1 results");
    client.call("context_set", json!({ "key": "mood", "value": "calm" }));
    let refused = client.call("context_set", json!({ "key": "k", "value": "x".repeat(20_000) }));
    assert!(refused["error"].as_str().is_some_and(|error| error.contains("custom.k") && error.contains("16384")), "{refused}");

    // Recording is asynchronous, so the call may appear a moment later.
    let mut context = client.call("context_get", json!({}));
    while context["recent_tool_calls"].as_array().map(Vec::len) < Some(7) {
        context = client.call("context_get", json!({}));
    }
    let tools: Vec<&str> =
        context["recent_tool_calls"].as_array().expect("calls").iter().filter_map(|call| call["tool"].as_str()).collect();
    assert_eq!(tools, ["add_note", "read_note", "read_note", "add_note", "read_note", "search_notes", "search_notes"]);
    assert_eq!((&context["schema_version"], &context["custom"]["mood"]), (&json!(1), &json!("calm")));
    let health = client.call("health_check", json!({}));
    assert_eq!(
        (&health["status"], &health["context_store"]["backend"], &health["context_store"]["session_count"]),
        (&json!("healthy"), &json!("sqlite"), &json!(1))
    );

    let cleared = client.call("context_clear", json!({}));
    assert_eq!(
        (&cleared["status"], &cleared["message"]),
        (&json!("cleared"), &json!("Conversation context has been reset. Starting fresh."))
    );
    assert_eq!(client.call("context_get", json!({}))["custom"], json!({}));
    client.call("context_set", json!({ "key": "mood", "value": "calm" }));

    drop(client.input.take());
    assert!(client.server.wait().expect("ended").success());
    let contexts = rusqlite::Connection::open(&database)
        .expect("database")
        .query_row("SELECT count(*) FROM context_records", [], |row| row.get::<_, i64>(0));
    assert_eq!(contexts, Ok(0), "the context goes when its session ends");
}
