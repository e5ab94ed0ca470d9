//! A long result is shown as a preview with a link to the whole and the number of characters cut.

use crate::fixture::{Folders, Server};
use crate::owner::{catalogs, context};
use crate::peer::{Http, result};
use serde_json::{Value, json};

#[tokio::test]
async fn a_truncated_result_is_linked_and_counted() {
    let server = Server::start_with(&Folders::new(), &["--max-inline-chars", "1000"]);
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let ran = client.call("run_js", json!({ "code": "'x'.repeat(50_000)", "wait_secs": 60 })).await;
    let cut = &ran["_meta"]["plasm"]["cut"];
    let whole = ran["structuredContent"].to_string().chars().count() as u64;
    assert_eq!(cut["chars"], json!(whole), "{cut}");
    assert_eq!(cut["shown_chars"].as_u64().expect("a count") + cut["cut_chars"].as_u64().expect("a count"), whole);
    assert!(ran["content"][0]["text"].as_str().expect("a preview").chars().count() <= 1000);
    let blocks = ran["content"].as_array().expect("content");
    let link = blocks.iter().find(|block| block["type"] == "resource_link").expect("a link");
    let read = result(client.ask("resources/read", json!({ "uri": link["uri"] })).await);
    assert_eq!(read["contents"][0]["text"].as_str().map(str::len), Some(50_002));
    let id = ran["structuredContent"]["execution_id"].as_str().expect("an id");
    let (_, record) = server.get(&format!("/api/executions/{id}")).await;
    assert_eq!(record["result"].as_str().map(str::len), Some(50_002), "REST returns the whole result");

    let short = client.call("run_js", json!({ "code": "1", "wait_secs": 60 })).await;
    assert_eq!(short.get("_meta").and_then(|meta| meta.get("plasm")), None, "{short}");
}

#[tokio::test]
async fn a_task_returns_what_the_call_would_have_returned() {
    let server = Server::start_with(&Folders::new(), &["--max-inline-chars", "1000"]);
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let run = json!({ "name": "run_js", "arguments": { "code": "'x'.repeat(50_000)" }, "task": {} });
    let id = result(client.ask("tools/call", run).await)["task"]["taskId"].clone();
    let outcome = result(client.ask("tasks/result", json!({ "taskId": id })).await);
    assert!(outcome["_meta"]["plasm"]["cut"]["cut_chars"].is_u64(), "{}", outcome["_meta"]);
    assert_eq!(outcome["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id);
}

#[tokio::test]
async fn a_symbol_table_is_never_truncated() {
    let catalog = catalogs().join("statistics");
    let flags = ["--catalog", catalog.to_str().expect("a path"), "--max-inline-chars", "1000"];
    let server = Server::start_with(&Folders::new(), &flags);
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let seeds = ["mean", "median", "variance", "quantile"].map(|entity| ("statistics", entity));
    let opened = client.call("session_context", context("all of it", &seeds)).await;
    let text = opened["content"][0]["text"].as_str().expect("a text");
    assert!(text.chars().count() > 1000);
    assert_eq!(serde_json::from_str::<Value>(text).ok().as_ref(), Some(&opened["structuredContent"]));
}
