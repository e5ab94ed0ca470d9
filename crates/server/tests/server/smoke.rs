//! Smoke test: the server starts, runs code and exits.

use crate::fixture::Server;

#[tokio::test]
async fn a_run_continues_from_the_heap_of_another() {
    let server = Server::start();
    let first = server.run("let n = 41").await;
    assert_eq!(first["status"], "completed", "{first}");
    let second = server.run_with(serde_json::json!({ "code": "++n", "heap": first["heap"] })).await;
    assert_eq!(second["result"], "42", "{second}");
    assert_eq!(server.terminate(), Some(0));
}
