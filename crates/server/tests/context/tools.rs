//! Context tools: set, check, clear, and refusals of values over a limit.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, result};
use crate::{calls, context_when, run_in};
use serde_json::{Value, json};

#[tokio::test]
async fn a_session_is_found_by_id_or_name_and_reads_create_none() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &[]);
    let sessions = || {
        let database = rusqlite::Connection::open(folders.database().join("heapstead.db")).expect("the database");
        database.query_row("SELECT count(*) FROM sessions", [], |row| row.get::<_, i64>(0)).expect("a count")
    };
    for path in ["/api/context?session=ghost", "/api/context/check?session=ghost&query=x"] {
        let (status, answer) = server.get(path).await;
        assert_eq!((status, sessions()), (200, 0), "{answer}");
    }
    assert_eq!(server.post("/api/context", json!({ "session": "real", "custom": { "a": 1 } })).await.0, 200);
    let (_, context) = server.get("/api/context?session=real").await;
    let id = context["session_id"].as_str().expect("an id");
    let (status, by_id) = server.get(&format!("/api/context?session={id}")).await;
    assert_eq!((status, &by_id["custom"]), (200, &json!({ "a": 1 })), "{by_id}");
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    assert_eq!(client.call("context_get", json!({ "session": id })).await["structuredContent"]["custom"], json!({ "a": 1 }));
}

#[tokio::test]
async fn preferences_and_values_are_set_and_removed() {
    let server = Server::start();
    let set = async |body: Value| server.post("/api/context", body).await;
    let given = json!({ "session": "a", "user_preferences": { "output_format": "markdown", "max_results": 5 }, "custom": { "n": [1, { "b": null }] } });
    assert_eq!(set(given).await, (200, json!({ "ok": true })));
    assert_eq!(set(json!({ "session": "a", "user_preferences": { "max_results": null }, "custom": { "m": 2 } })).await.0, 200);
    let (_, context) = server.get("/api/context?session=a").await;
    assert_eq!(context["user_preferences"], json!({ "output_format": "markdown" }));
    assert_eq!(context["custom"], json!({ "n": [1, { "b": null }], "m": 2 }));
    let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(set(json!({ "session": "deep", "custom": { "x": deep(32) } })).await.0, 200);
    assert_eq!(server.get("/api/context?session=deep").await.1["custom"]["x"], deep(32));
    for (body, says) in [
        (json!({ "session": "a" }), "both missing"),
        (
            json!({ "session": "a", "user_preferences": { "output_format": "xml" } }),
            "`user_preferences.output_format` is \"xml\": allowed are `json`, `markdown`, `plain`",
        ),
        (json!({ "session": "a", "user_preferences": { "colour": 1 } }), "output_format"),
        (json!({ "session": "a", "custom": { "n": null, "big": "x".repeat(20_000) } }), "16384"),
        (json!({ "session": "a", "custom": { "x": deep(33) } }), "at most 32 levels are allowed"),
        (json!({ "session": "a", "custom": "text" }), "`custom` is \"text\": expected an object"),
        (
            json!({ "session": "a", "user_preferences": [1] }),
            "`user_preferences` is [1]: expected an object of `language`, `max_results`, `output_format`",
        ),
    ] {
        let (status, problem) = set(body).await;
        assert_eq!(status, 400, "{problem}");
        let detail = problem["detail"].as_str().expect("a reason");
        assert!(detail.contains(says) && !detail.contains("are strings"), "{problem}");
    }
    assert_eq!(server.get("/api/context?session=a").await.1["custom"], context["custom"], "a refused call changes nothing");
}

#[tokio::test]
async fn repeated_fetches_and_searches_are_reported() {
    let server = Server::start();
    let check = async |query: &str| server.get(&format!("/api/context/check?session=a&{query}")).await.1;
    assert_eq!(check("resource_id=doc-1").await, json!({ "note": "document_not_fetched_this_session", "document_id": "doc-1" }));
    let resource = json!({ "session": "a", "resource_id": "doc-1", "content_hash": "h1", "summary": "About whales." });
    assert_eq!(server.post("/api/context/record", resource).await.0, 200);
    assert_eq!(server.post("/api/context/record", json!({ "session": "a", "query": "blue whales", "results": 3 })).await.0, 200);
    let known = check("resource_id=doc-1&content_hash=h1").await;
    assert_eq!(
        (&known["note"], &known["document_id"], &known["summary"]),
        (&json!("document_already_fetched_this_session"), &json!("doc-1"), &json!("About whales."))
    );
    assert!(known["fetched_at"].is_string(), "{known}");
    assert_eq!(check("resource_id=doc-1&content_hash=h2").await["note"], "document_changed_since_fetched_this_session");
    assert_eq!(check("query=blue++whales").await["note"], "already tried, returned 3 results");
    assert_eq!(check("query=green+whales").await["note"], "not tried yet");
    for query in ["session=a", "session=a&query=x&resource_id=y"] {
        assert_eq!(server.get(&format!("/api/context/check?{query}")).await.0, 400, "{query}");
    }
}

#[tokio::test]
async fn a_cleared_context_starts_fresh_under_the_same_id() {
    let server = Server::start();
    run_in(&server, "a", "1").await;
    let before = context_when(&server, "a", |context| calls(context) == 1).await;
    let (status, cleared) = server.delete("/api/context?session=a").await;
    let expected = json!({ "status": "cleared", "session_id": before["session_id"], "message": "Conversation context has been reset. Starting fresh." });
    assert_eq!((status, cleared), (200, expected));
    let (_, after) = server.get("/api/context?session=a").await;
    assert_eq!((calls(&after), &after["session_id"]), (0, &before["session_id"]));
    run_in(&server, "a", "2").await;
    context_when(&server, "a", |context| calls(context) == 1).await;
}

#[tokio::test]
async fn without_a_session_or_a_connection_there_is_no_context() {
    let server = Server::start();
    let client = Http::modern(&server, &[]);
    for (tool, arguments) in [("context_get", json!({})), ("context_set", json!({ "custom": { "a": 1 } })), ("context_clear", json!({}))] {
        let answer = client.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!(answer["error"]["code"], -31044, "{tool}: {answer}");
    }
    let listed = result(client.ask("tools/list", json!({})).await);
    for tool in listed["tools"].as_array().expect("tools") {
        let is_required = tool["_meta"]["dev.heapstead/session"]["required"] == true;
        assert_eq!(is_required, tool["name"].as_str().is_some_and(|name| name.starts_with("context_")), "{tool}");
    }
    let (status, problem) = server.get("/api/context").await;
    assert_eq!(status, 400, "{problem}");
}
