//! Stable error codes: in records, in problem documents, and after a restart.

use crate::fixture::{Folders, Server};
use serde_json::{Value, json};

#[tokio::test]
async fn a_record_has_the_code_of_its_error() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let mut ended = Vec::new();
    for (code, limits, expected) in [
        ("throw new Error('boo')", json!({}), "exception"),
        ("let let = 1", json!({}), "syntax_error"),
        ("for (;;);", json!({ "execution_timeout_secs": 1 }), "timed_out"),
        ("await new Promise(() => {})", json!({}), "never_settles"),
        ("const a = []; for (;;) a.push(new Array(1e5).fill(0))", json!({ "heap_memory_max_mb": 64 }), "out_of_memory"),
        ("'x'.repeat(17 * 1024 * 1024)", json!({}), "result_too_large"),
    ] {
        let mut body = limits;
        body["code"] = json!(code);
        body["wait_secs"] = json!(60);
        let (_, record) = server.post("/api/exec", body).await;
        assert_eq!(record["error_code"], expected, "{code}: {record}");
        assert!(record["error"].is_string());
        ended.push(record);
    }
    let good = server.run("1").await;
    assert_eq!(good.get("error_code"), None, "{good}");
    let (_, accepted) = server.post("/api/exec", json!({ "code": "for (;;);" })).await;
    let lost = format!("/api/executions/{}", accepted["execution_id"].as_str().expect("an id"));
    server.kill();
    let server = Server::start_with(&folders, &[]);
    assert_eq!(server.get(&lost).await.1["error_code"], "server_lost");
    for record in ended {
        let path = format!("/api/executions/{}", record["execution_id"].as_str().expect("an id"));
        assert_eq!(server.get(&path).await.1, record, "the same after a restart");
    }
}

#[tokio::test]
async fn a_refusal_has_its_code_as_problem_type() {
    let server = Server::start();
    let code = |document: &Value| document["type"].as_str().expect("a type").trim_start_matches("urn:heapstead:error:").to_owned();
    let unknown = "0".repeat(64);
    for (body, expected) in [
        (json!({}), "invalid_parameter"),
        (json!({ "code": "" }), "invalid_parameter"),
        (json!({ "code": "1", "surprise": 1 }), "invalid_parameter"),
        (json!({ "code": "1", "heap": unknown, "on_missing_heap": "fail" }), "heap_not_found"),
    ] {
        let (_, refused) = server.post("/api/exec", body.clone()).await;
        assert_eq!(code(&refused), expected, "{body}");
    }
    for (path, expected) in [
        ("/api/executions/unknown".to_owned(), "execution_not_found"),
        (format!("/api/heaps/{unknown}"), "heap_not_found"),
        (format!("/api/sessions/{unknown}"), "session_not_found"),
        ("/nothing".to_owned(), "not_found"),
    ] {
        assert_eq!(code(&server.get(&path).await.1), expected, "{path}");
    }
    let (_, opened) = server.post("/api/sessions", json!({})).await;
    let session = opened["session_id"].as_str().expect("an id").to_owned();
    server.delete(&format!("/api/sessions/{session}")).await;
    let (_, refused) = server.post("/api/exec", json!({ "code": "1", "session": session })).await;
    assert_eq!(code(&refused), "session_ended");
    let done = server.run("1").await;
    let (_, refused) = server.post(&format!("/api/executions/{}/cancel", done["execution_id"].as_str().expect("an id")), json!({})).await;
    assert_eq!(code(&refused), "execution_ended");
}
