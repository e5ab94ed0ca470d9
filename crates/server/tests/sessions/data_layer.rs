//! Sessions that MCP clients create with `sessions/create` and name in `_meta`: one test per rule, with clients of every kind.

use crate::client::{Client, LEGACY, LEGACY_KEY, MODERN_KEY, code, everywhere};
use crate::fixture::{Folders, Server};
use crate::peer::{Http, Stdio, initialize, modern, request, result};
use serde_json::{Value, json};

const UNKNOWN: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[tokio::test]
async fn the_capability_is_declared_in_both_eras_but_not_in_stateless_mode() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY] {
        let mut stdio = Stdio::start(&Folders::new(), &[]);
        let response = result(stdio.answer(&initialize(version)).await);
        assert_eq!(response["capabilities"]["sessions"], json!({}), "{version}: {response}");
        assert_eq!(response["capabilities"].get("extensions"), None, "{version}: {response}");
    }
    let server = Server::start();
    let response = result(Http::modern(&server, &[]).ask("server/discover", json!({})).await);
    assert_eq!(response["capabilities"]["extensions"]["dev.heapstead/sessions"], json!({}), "{response}");
    assert_eq!(response["capabilities"].get("sessions"), None, "{response}");

    let mut stateless = Stdio::start(&Folders::new(), &["--stateless"]);
    let response = result(stateless.answer(&initialize(LEGACY)).await);
    assert_eq!(response["capabilities"].get("sessions"), None, "{response}");
}

#[tokio::test]
async fn runs_in_a_session_continue_from_one_another() {
    everywhere(async |client| {
        let session = client.create().await;
        assert!(session["state"].as_str().is_some_and(|state| !state.is_empty() && state.len() <= 4096), "{session}");
        assert!(session["expiresAt"].as_str().is_some_and(|at| at.ends_with('Z')), "{session}");
        let first = client.run_in(&session, "let n = 41; n").await;
        assert_eq!(first["structuredContent"]["result"], "41", "{first}");
        let metadata = &first["_meta"][client.key()];
        assert_eq!(metadata["sessionId"], session["sessionId"], "the server never rotates an id: {first}");
        assert_ne!(metadata["state"], session["state"], "the head has moved: {first}");
        assert!(metadata["expiresAt"].is_string());
        let second = client.run_in(metadata, "++n").await;
        assert_eq!(second["structuredContent"]["result"], "42", "{second}");
        // The client's state is current, so the response carries none.
        let newest = second["_meta"][client.key()].clone();
        let plain = result(client.ask_in(&newest, "tools/list", json!({})).await);
        assert_eq!(plain.get("_meta").and_then(|meta| meta.get(client.key())), None);
        // A client with outdated state gets the current one with any response.
        let behind = result(client.ask_in(&session, "tools/list", json!({})).await);
        assert_eq!(behind["_meta"][client.key()]["sessionId"], session["sessionId"]);
        // A client that sends only the id loses nothing.
        let bare = client.run_in(&session["sessionId"], "++n").await;
        assert_eq!(bare["structuredContent"]["result"], "43", "{bare}");
        assert!(bare["_meta"][client.key()]["state"].is_string(), "{bare}");
    })
    .await;
}

#[tokio::test]
async fn a_run_that_does_not_complete_does_not_move_the_head() {
    everywhere(async |client| {
        let session = client.create().await;
        let failed = client.run_in(&session, "throw 1").await;
        assert_eq!(failed["isError"], true);
        assert_eq!(failed.get("_meta").and_then(|meta| meta.get(client.key())), None, "{failed}");
    })
    .await;
}

#[tokio::test]
async fn create_in_a_session_is_refused() {
    everywhere(async |client| {
        let session = client.create().await;
        let refused = client.ask_in(&session, "sessions/create", json!({})).await;
        assert_eq!(code(&refused), -32602, "{refused}");
        assert_ne!(client.create().await["sessionId"], session["sessionId"]);
    })
    .await;
}

#[tokio::test]
async fn a_deleted_session_is_unknown_to_every_request() {
    everywhere(async |client| {
        let session = client.create().await;
        client.run_in(&session, "1").await;
        let mut deleted = result(client.ask_in(&session, "sessions/delete", json!({})).await);
        if client.key() == MODERN_KEY {
            assert_eq!(deleted["resultType"], "complete", "{deleted}");
            deleted.as_object_mut().expect("an object").remove("resultType");
        }
        assert_eq!(deleted, json!({}));
        let run = json!({ "name": "run_js", "arguments": { "code": "1" } });
        for (method, params) in
            [("sessions/delete", json!({})), ("tools/call", run), ("tools/list", json!({})), ("resources/list", json!({}))]
        {
            let answer = client.ask_in(&session, method, params).await;
            assert_eq!(code(&answer), client.code(-32043), "{method}: {answer}");
            assert_eq!(answer["error"]["message"], "Session not found");
            assert_eq!(answer["error"]["data"], json!({ "code": "session_not_found", "sessionId": session["sessionId"] }));
        }
        let answer = client.ask("sessions/resume", json!({ "sessionId": session["sessionId"] })).await;
        assert_eq!(code(&answer), client.code(-32043), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn delete_without_a_session_is_refused() {
    everywhere(async |client| {
        let answer = client.ask("sessions/delete", json!({})).await;
        assert_eq!(code(&answer), client.code(-32044), "{answer}");
        assert_eq!(answer["error"]["message"], "Session required");
    })
    .await;
}

#[tokio::test]
async fn malformed_metadata_and_unknown_ids_have_different_errors() {
    everywhere(async |client| {
        for bad in [
            json!({}),
            json!(null),
            json!("x"),
            json!({ "sessionId": "" }),
            json!({ "sessionId": 5 }),
            json!({ "sessionId": "a b" }),
            json!({ "sessionId": "a\u{7}" }),
            json!({ "sessionId": "x".repeat(5000) }),
            json!({ "sessionId": "é" }),
        ] {
            let key = client.key();
            let answer = client.ask("tools/list", json!({ "_meta": { key: bad } })).await;
            assert_eq!(code(&answer), -32602, "{bad}: {answer}");
        }
        for unknown in [UNKNOWN, "sess-a1b2", &UNKNOWN.to_uppercase().replace('0', "A")] {
            let answer = client.ask_in(&unknown.into(), "tools/list", json!({})).await;
            assert_eq!(code(&answer), client.code(-32043), "{unknown}: {answer}");
            assert_eq!(answer["error"]["data"], json!({ "code": "session_not_found", "sessionId": unknown }));
        }
    })
    .await;
}

#[tokio::test]
async fn requests_of_2026_07_28_may_use_the_old_key() {
    let server = Server::start();
    let mut client = Client::modern(&server);
    let session = client.create().await;
    let call = json!({ "name": "run_js", "arguments": { "code": "1", "wait_secs": 60 }, "_meta": { LEGACY_KEY: session } });
    let answer = result(client.ask("tools/call", call).await);
    assert!(answer["_meta"][MODERN_KEY]["state"].is_string(), "{answer}");
    assert_eq!(answer["_meta"].get(LEGACY_KEY), None, "{answer}");
}

#[tokio::test]
async fn sessions_are_listed_in_pages_and_resumed_with_fresh_state() {
    let mut client = Client::stdio(&Folders::new(), &[]).await;
    let mut made = Vec::new();
    for _ in 0..101 {
        made.push(client.create().await["sessionId"].clone());
    }
    let first = result(client.ask("sessions/list", json!({})).await);
    let second = result(client.ask("sessions/list", json!({ "cursor": first["nextCursor"] })).await);
    assert_eq!(second.get("nextCursor"), None);
    let ids = |page: &Value| {
        page["sessions"].as_array().expect("sessions").iter().map(|session| session["sessionId"].clone()).collect::<Vec<_>>()
    };
    assert_eq!([ids(&first), ids(&second)].concat(), made);
    assert_eq!(code(&client.ask("sessions/list", json!({ "cursor": "x" })).await), -32602);

    client.run_in(&made[0], "let x = 7").await;
    let resumed = result(client.ask("sessions/resume", json!({ "sessionId": made[0] })).await)["session"].clone();
    assert_eq!(resumed["sessionId"], made[0]);
    assert_eq!(client.run_in(&resumed, "x").await["structuredContent"]["result"], "7");
    for bad in [json!({}), json!({ "sessionId": 5 }), json!({ "sessionId": "" })] {
        assert_eq!(code(&client.ask("sessions/resume", bad).await), -32602);
    }
}

#[tokio::test]
async fn an_anonymous_client_sees_the_sessions_of_its_connection_only() {
    let server = Server::start();
    let (mut one, mut other) = (Client::http(&server).await, Client::http(&server).await);
    let session = one.create().await;
    let listed = result(one.ask("sessions/list", json!({})).await);
    assert_eq!(listed["sessions"][0]["sessionId"], session["sessionId"]);
    assert_eq!(result(other.ask("sessions/list", json!({})).await), json!({ "sessions": [] }));
    let modern = result(Client::modern(&server).ask("sessions/list", json!({})).await);
    assert_eq!(modern["sessions"], json!([]));
}

#[tokio::test]
async fn a_stateless_server_has_no_sessions() {
    let mut client = Client::stdio(&Folders::new(), &["--stateless"]).await;
    for method in ["sessions/create", "sessions/delete", "sessions/list", "sessions/resume", "messages/listen"] {
        assert_eq!(code(&client.ask(method, json!({})).await), -32601, "{method}");
    }
    let run = json!({ "name": "run_js", "arguments": { "code": "1" } });
    assert_eq!(code(&client.ask_in(&UNKNOWN.into(), "tools/call", run).await), -32602);
}

#[tokio::test]
async fn a_server_may_require_a_session_for_runs() {
    let server = Server::start_with(&Folders::new(), &["--require-session", "--plasm-names"]);
    for mut client in [Client::http(&server).await, Client::modern(&server)] {
        let run = json!({ "name": "run_js", "arguments": { "code": "1", "wait_secs": 60 } });
        let answer = client.ask("tools/call", run).await;
        assert_eq!(code(&answer), client.code(-32044), "{answer}");
        let tools = result(client.ask("tools/list", json!({})).await);
        for name in ["run_js", "plasm", "plasm_run"] {
            let tool = tools["tools"].as_array().expect("tools").iter().find(|tool| tool["name"] == name).expect(name);
            assert_eq!(tool["_meta"][client.key()], json!({ "required": true }));
            assert!(tool["description"].as_str().is_some_and(|text| text.contains("Requires a session")), "{tool}");
        }
        let session = client.create().await;
        assert_eq!(client.run_in(&session, "1").await["structuredContent"]["result"], "1");
    }
    let (status, refused) = server.post("/api/exec", json!({ "code": "1" })).await;
    assert_eq!(status, 400, "{refused}");
}

#[tokio::test]
async fn a_session_outlives_its_connection_and_its_server() {
    let folders = Folders::new();
    let mut client = Client::stdio(&folders, &[]).await;
    let session = client.create().await;
    let metadata = client.run_in(&session, "let n = 1").await["_meta"][LEGACY_KEY].clone();
    drop(client);
    let mut client = Client::stdio(&folders, &[]).await;
    assert_eq!(client.run_in(&metadata, "n + 1").await["structuredContent"]["result"], "2", "its state is still good");
}

#[tokio::test]
async fn an_argument_that_names_another_session_is_refused() {
    let mut client = Client::stdio(&Folders::new(), &[]).await;
    let (one, other) = (client.create().await, client.create().await);
    let run = |session: &Value| json!({ "name": "run_js", "arguments": { "code": "1", "wait_secs": 60, "session": session["sessionId"] } });
    let answer = result(client.ask_in(&one, "tools/call", run(&other)).await);
    assert_eq!(answer["isError"], true, "{answer}");
    let answer = result(client.ask_in(&one, "tools/call", run(&one)).await);
    assert_eq!(answer["structuredContent"]["result"], "1", "{answer}");
    let fork = |session: &Value| json!({ "name": "session_fork", "arguments": { "session": session["sessionId"] } });
    let answer = result(client.ask_in(&one, "tools/call", fork(&other)).await);
    assert!(
        answer["isError"] == true && answer["content"][0]["text"].as_str().is_some_and(|text| text.contains("two sessions")),
        "{answer}"
    );
    let answer = result(client.ask_in(&one, "tools/call", fork(&one)).await);
    assert!(answer["structuredContent"]["session_id"].is_string(), "{answer}");
    // A URI names a resource to read, not the session of the request.
    result(client.ask_in(&one, "resources/read", json!({ "uri": crate::client::head_of(&other) })).await);
}

#[tokio::test]
async fn a_logical_session_is_listed_resumed_and_deleted_like_any_session() {
    let catalog = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalogs/statistics");
    let mut client = Client::stdio(&Folders::new(), &["--catalog", catalog]).await;
    let context = json!({ "name": "session_context", "arguments": { "intent": "a task" } });
    let opened = result(client.ask("tools/call", context.clone()).await);
    let logical = opened["structuredContent"]["logical_session_id"].clone();
    let listed = result(client.ask("sessions/list", json!({})).await);
    let listed = listed["sessions"][0].clone();
    assert!(listed["expiresAt"].is_string(), "{listed}");
    let session = result(client.ask("sessions/resume", json!({ "sessionId": listed["sessionId"] })).await)["session"].clone();
    assert!(["sessionId", "expiresAt", "state"].iter().all(|member| session[member].is_string()), "{session}");
    let metadata = client.run_in(&session, "let n = 1").await["_meta"][LEGACY_KEY].clone();
    assert!(metadata["expiresAt"].is_string() && metadata["state"] != session["state"], "{metadata}");

    // A head moved without a run is reported too.
    let more =
        json!({ "name": "session_context", "arguments": { "intent": "a task", "seeds": [{ "catalog": "statistics", "entity": "mean" }] } });
    let wave = result(client.ask_in(&metadata, "tools/call", more).await);
    assert_eq!(wave["structuredContent"]["wave"]["mode"], "expand", "{wave}");
    let now = &wave["_meta"][LEGACY_KEY];
    assert!(now["state"].is_string() && now["expiresAt"].is_string(), "{wave}");
    let list = |session: &Value| (session.clone(), "tools/list", json!({}));
    let (behind, method, params) = list(&metadata);
    assert!(result(client.ask_in(&behind, method, params).await)["_meta"][LEGACY_KEY]["state"].is_string(), "it is behind");
    let (current, method, params) = list(now);
    assert_eq!(result(client.ask_in(&current, method, params).await).get("_meta"), None);

    assert_eq!(result(client.ask_in(&session, "sessions/delete", json!({})).await), json!({}));
    assert_eq!(code(&client.ask_in(&session, "sessions/delete", json!({})).await), -32043);
    assert_eq!(code(&client.ask_in(&session, "tools/list", json!({})).await), -32043);
    assert_eq!(code(&client.ask("sessions/resume", json!({ "sessionId": session["sessionId"] })).await), -32043);
    assert_eq!(result(client.ask("sessions/list", json!({})).await), json!({ "sessions": [] }));
    // The intent keeps its id, and a client that continues it is notified.
    let again = result(client.ask("tools/call", context).await)["structuredContent"].clone();
    assert_eq!(again["logical_session_id"], logical);
    assert_eq!(again["continuity"]["reason"], "cleared", "{again}");
    assert_eq!(client.run_in(&session, "typeof n").await["structuredContent"]["result"], "\"undefined\"");
}

#[tokio::test]
async fn concurrent_runs_in_a_session_are_serialised_whatever_state_they_send() {
    let server = Server::start();
    let mut client = Client::modern(&server);
    let session = client.create().await;
    client.run_in(&session, "var n = 0").await;
    let http = Http::modern(&server, &[]);
    let runs: Vec<_> = (0..20)
        .map(|_| {
            let params = json!({ "name": "run_js", "arguments": { "code": "++n", "wait_secs": 60 }, "_meta": { MODERN_KEY: session } });
            let (http, call) = (http.clone(), request("tools/call", params));
            tokio::spawn(async move { http.all(&call).await.pop().expect("an answer") })
        })
        .collect();
    let mut results = Vec::new();
    for run in runs {
        results.push(
            result(run.await.expect("an answer"))["structuredContent"]["result"]
                .as_str()
                .expect("a result")
                .parse::<u32>()
                .expect("a number"),
        );
    }
    results.sort();
    assert_eq!(results, (1..=20).collect::<Vec<_>>());
}

#[tokio::test]
async fn session_metadata_is_accepted_on_any_request_of_both_eras() {
    let server = Server::start();
    let mut client = Client::http(&server).await;
    let session = client.create().await;
    for method in ["ping", "tools/list", "resources/list", "resources/templates/list", "tasks/list", "sessions/list"] {
        assert!(client.ask_in(&session, method, json!({})).await.get("result").is_some(), "{method}");
        assert_eq!(code(&client.ask_in(&UNKNOWN.into(), method, json!({})).await), -32043, "{method}");
    }
    let discover = modern(request("server/discover", json!({ "_meta": { MODERN_KEY: { "sessionId": UNKNOWN } } })), json!({}));
    assert_eq!(code(&Http::modern(&server, &[]).all(&discover).await[0]), -31043);
}

#[tokio::test]
async fn an_expired_session_is_unknown() {
    let server = Server::start_with(&Folders::new(), &["--session-ttl", "1s"]);
    let mut client = Client::modern(&server);
    let session = client.create().await;
    // Listeners are notified of the end.
    let ended = client
        .ask_in(
            &session,
            "tools/call",
            json!({ "name": "run_js", "arguments": { "code": "await new Promise(done => setTimeout(done, 20000))", "wait_secs": 60 } }),
        )
        .await;
    assert_eq!(result(ended)["structuredContent"]["status"], "cancelled");
    assert_eq!(code(&client.ask_in(&session, "tools/list", json!({})).await), -31043);
}
