//! Names of sessions: refs of connections, full ids, and the alternative tool names.

use crate::fixture::{Folders, Server};
use crate::owner::{catalogs, context};
use crate::peer::{Http, Stdio, result};
use serde_json::{Value, json};

const VERSION: &str = "2025-11-25";

fn start(arguments: &[&str]) -> Server {
    let catalog = catalogs().join("statistics");
    Server::start_with(&Folders::new(), &[&["--catalog", catalog.to_str().expect("a path")], arguments].concat())
}

fn body(result: &Value) -> &Value {
    &result["structuredContent"]
}

#[tokio::test]
async fn refs_s0_and_s1_are_private_to_their_connection() {
    let server = start(&[]);
    let one = Http::connect(&server, VERSION, &[]).await;
    let first = one.call("session_context", context("a", &[("statistics", "mean")])).await;
    let second = one.call("session_context", context("b", &[])).await;
    assert_eq!((&body(&first)["logical_session_ref"], &body(&second)["logical_session_ref"]), (&json!("s0"), &json!("s1")));
    assert_eq!(body(&one.call("session_context", context("a", &[])).await)["logical_session_ref"], "s0");
    assert_eq!(first["_meta"]["plasm"]["continuity"], body(&first)["continuity"], "also in `_meta`: {first}");

    let ran = one.call("run_js", json!({ "code": "let x = e1([2, 4]); x", "session": "s0", "wait_secs": 60 })).await;
    assert_eq!(body(&ran)["result"], "3", "{ran}");

    // Another anonymous connection has its own sessions, even for the same intent.
    let two = Http::connect(&server, VERSION, &[]).await;
    let unknown = two.call("run_js", json!({ "code": "1", "session": "s0", "wait_secs": 60 })).await;
    assert_eq!(unknown["isError"], true, "{unknown}");
    assert!(unknown["content"][0]["text"].as_str().expect("a text").contains("session_context"), "{unknown}");
    let same_intent = two.call("session_context", context("a", &[])).await;
    assert_ne!(body(&same_intent)["logical_session_id"], body(&first)["logical_session_id"]);

    // A client that holds the id can continue, and gets a ref for it.
    let id = body(&first)["logical_session_id"].clone();
    let held = two.call("run_js", json!({ "code": "x", "session": id, "wait_secs": 60 })).await;
    assert_eq!(body(&held)["result"], "3", "{held}");
    let back = two.call("session_context", json!({ "intent": "c", "logical_session_id": id })).await;
    assert_eq!((&body(&back)["logical_session_id"], &body(&back)["logical_session_ref"]), (&id, &json!("s1")), "{back}");
    assert_eq!(
        body(&two.call("session_context", context("c", &[])).await)["logical_session_id"],
        id,
        "the intent denotes this session now"
    );
}

#[tokio::test]
async fn over_stdio_an_intent_outlives_the_process() {
    let folders = Folders::new();
    let mut ids = Vec::new();
    for code in ["let x = 1; x", "++x"] {
        let mut client = Stdio::connect(&folders, VERSION, &[]).await;
        let opened = client.call("session_context", context("a task", &[])).await;
        ids.push(body(&opened)["logical_session_id"].clone());
        let ran = client.call("run_js", json!({ "code": code, "session": body(&opened)["logical_session_ref"], "wait_secs": 60 })).await;
        assert_eq!(body(&ran)["result"], json!(ids.len().to_string()), "{ran}");
        client.leave().await;
    }
    assert_eq!(ids[0], ids[1]);
}

/// Regression: the ref was missing there, so a host that reads it could not continue.
#[tokio::test]
async fn an_anonymous_caller_without_a_connection_gets_an_unguessable_ref() {
    let server = start(&["--insecure-no-auth"]);
    let (status, over_rest) = server.post("/api/session-context", context("a task", &[])).await;
    assert_eq!(status, 200);
    let modern = Http::modern(&server, &[]);
    let over_mcp = body(&modern.call("session_context", context("a task", &[])).await).clone();
    assert_ne!(over_rest["logical_session_id"], over_mcp["logical_session_id"], "sessions are not shared by accident");
    for opened in [&over_rest, &over_mcp] {
        assert_eq!(opened["logical_session_ref"], opened["logical_session_id"], "{opened}");
        let run = |code: &str| json!({ "code": code, "session": opened["logical_session_ref"], "wait_secs": 60 });
        assert_eq!(server.post("/api/exec", run("let x = 5; x")).await.1["result"], "5");
        assert_eq!(body(&modern.call("run_js", run("++x")).await)["result"], "6");
    }
    // A number does not resolve: over REST it names a log like any other text, elsewhere it is refused.
    let refused = modern.call("run_js", json!({ "code": "x", "session": "s0", "wait_secs": 60 })).await;
    assert_eq!(refused["isError"], true, "{refused}");
    let log = server.run_with(json!({ "code": "typeof x", "session": "s0" })).await;
    assert_eq!(log["result"], "\"undefined\"", "{log}");
}

/// A client that reconnects may open its intent before it presents its session id. Regression: the id was then refused as belonging to
/// another intent.
#[tokio::test]
async fn a_session_presented_after_its_intent_was_reopened_is_continued() {
    let server = start(&["--insecure-no-auth"]);
    let before = Http::connect(&server, VERSION, &[]).await;
    let old = body(&before.call("session_context", context("a task", &[])).await)["logical_session_id"].clone();
    before.call("run_js", json!({ "code": "let kept = 7", "session": "s0", "wait_secs": 60 })).await;

    let client = Http::connect(&server, VERSION, &[]).await;
    let new = body(&client.call("session_context", context("a task", &[])).await)["logical_session_id"].clone();
    assert_ne!(new, old, "an intent of an anonymous client belongs to its connection");
    let presented = client.call("session_context", json!({ "intent": "a task", "logical_session_id": old })).await;
    assert_eq!(body(&presented)["logical_session_id"], old, "{presented}");
    let reference = body(&presented)["logical_session_ref"].clone();
    let ran = client.call("run_js", json!({ "code": "kept", "session": reference, "wait_secs": 60 })).await;
    assert_eq!(body(&ran)["result"], "7", "{ran}");
    // From now on the intent denotes the presented session, until another one is presented.
    assert_eq!(body(&client.call("session_context", context("a task", &[])).await)["logical_session_id"], old);
    let back = client.call("session_context", json!({ "intent": "a task", "logical_session_id": new })).await;
    assert_eq!(body(&back)["logical_session_id"], new, "{back}");
    assert_eq!(body(&client.call("session_context", context("a task", &[])).await)["logical_session_id"], new);
}

/// Regression: opened sessions were not listed to anyone, whatever ran in them.
#[tokio::test]
async fn opened_sessions_are_listed_to_their_owner() {
    let server = start(&["--insecure-no-auth"]);
    let (one, two) = (Http::connect(&server, VERSION, &[]).await, Http::connect(&server, VERSION, &[]).await);
    let list = async |client: &Http| body(&client.call("list_sessions", json!({})).await)["sessions"].clone();
    let made = result(one.ask("sessions/create", json!({})).await)["session"]["sessionId"].clone();
    one.call("session_context", context("a task", &[])).await;
    assert_eq!(list(&one).await, json!([]), "nothing has run in them");
    for session in [&made, &json!("s0")] {
        one.call("run_js", json!({ "code": "1", "session": session, "wait_secs": 60 })).await;
    }
    let listed = list(&one).await;
    let names: Vec<_> = listed.as_array().expect("sessions").iter().map(|name| name.as_str().expect("a name")).collect();
    assert!(names.len() == 2 && names.is_sorted() && listed.as_array().is_some_and(|all| all.contains(&made)), "{listed}");
    for session in names {
        let log = one.call("list_session_snapshots", json!({ "session": session })).await;
        assert_eq!(body(&log)["entries"][0]["code"], "1", "a listed session has a readable log: {log}");
        let more = one.call("run_js", json!({ "code": "2", "session": session, "wait_secs": 60 })).await;
        assert_eq!(body(&more)["status"], "completed", "and continued: {more}");
    }
    // Without credentials, sessions belong to the connection.
    assert_eq!((list(&two).await, list(&Http::modern(&server, &[])).await), (json!([]), json!([])));
    assert_eq!(server.get("/api/sessions").await.1, json!({ "sessions": [] }));
    let deleted = json!({ "_meta": { "io.modelcontextprotocol/session": { "sessionId": made } } });
    result(one.ask("sessions/delete", deleted).await);
    assert!(list(&one).await.as_array().is_some_and(|left| left.len() == 1 && !left.contains(&made)), "an ended session is not listed");
}

#[tokio::test]
async fn alternative_tool_names_are_accepted_and_listed_only_on_request() {
    let server = start(&[]);
    let client = Http::connect(&server, VERSION, &[]).await;
    let names = async |client: &Http| {
        let listed = result(client.ask("tools/list", json!({})).await);
        listed["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert!(!names(&client).await.iter().any(|name| name.starts_with("plasm")));
    let opened = client.call("plasm_context", json!({ "intent": "a", "seeds": [{ "api": "statistics", "entity": "mean" }] })).await;
    assert_eq!(body(&opened)["wave"]["mode"], "open", "{opened}");
    let same = client.call("session_context", context("a", &[])).await;
    assert_eq!(body(&same)["logical_session_id"], body(&opened)["logical_session_id"]);
    let more = client.call("plasm_context", json!({ "intent": "a", "seeds": [{ "entry_id": "statistics", "entity": "median" }] })).await;
    assert_eq!(body(&more)["wave"]["mode"], "expand", "{more}");
    for tool in ["plasm", "plasm_run"] {
        let ran = client.call(tool, json!({ "logical_session_ref": "s0", "program": "e1([1, 3])", "wait_secs": 60 })).await;
        assert_eq!(body(&ran)["result"], "2", "{tool}: {ran}");
    }
    for seeds in [json!({ "intent": "a", "seeds": [] }), json!({ "intent": "a" })] {
        assert_eq!(client.call("plasm_context", seeds).await["isError"], true);
    }
    for (tool, arguments, text) in [
        ("plasm", json!({ "logical_session_ref": "s0", "program": " " }), "`program` is empty: expected JavaScript or TypeScript source"),
        ("plasm_run", json!({ "logical_session_ref": "s0", "program": 1 }), "`program` is 1: expected a string"),
        ("plasm_context", json!({ "intent": "a", "seeds": [{ "api": 1, "entity": "mean" }] }), "`0.api` is 1: expected a string"),
    ] {
        let refused = client.call(tool, arguments).await;
        let said = refused["content"][0]["text"].as_str().unwrap_or_default();
        assert!(said.contains(text), "an error names the parameter that the client sent: {refused}");
    }

    let listing = start(&["--plasm-names"]);
    let client = Http::connect(&listing, VERSION, &[]).await;
    let listed = names(&client).await;
    for name in ["plasm_context", "plasm", "plasm_run", "session_context", "run_js"] {
        assert!(listed.iter().any(|known| known == name), "{name}: {listed:?}");
    }
}

#[tokio::test]
async fn two_names_of_different_sessions_in_one_call_are_refused() {
    let server = start(&[]);
    let client = Http::connect(&server, VERSION, &[]).await;
    let made = result(client.ask("sessions/create", json!({})).await)["session"]["sessionId"].clone();
    client.call("session_context", context("a", &[])).await;
    let call = json!({
        "name": "run_js", "arguments": { "code": "1", "session": "s0", "wait_secs": 60 },
        "_meta": { "io.modelcontextprotocol/session": { "sessionId": made } },
    });
    let refused = result(client.ask("tools/call", call).await);
    assert_eq!(refused["isError"], true, "{refused}");
    let same = json!({
        "name": "run_js", "arguments": { "code": "1", "session": made, "wait_secs": 60 },
        "_meta": { "io.modelcontextprotocol/session": { "sessionId": made } },
    });
    assert_eq!(result(client.ask("tools/call", same).await)["isError"], false);
}

/// Regression: continuing a session under its id removed it from its intent.
#[tokio::test]
async fn an_intent_keeps_its_session_when_another_client_continues_it() {
    let server = start(&[]);
    let (one, two) = (Http::connect(&server, VERSION, &[]).await, Http::connect(&server, VERSION, &[]).await);
    let id = async |client: &Http, arguments: Value| body(&client.call("session_context", arguments).await)["logical_session_id"].clone();
    let first = id(&one, context("x", &[])).await;
    let held = |intent: &str| json!({ "intent": intent, "logical_session_id": first });
    assert_eq!(id(&two, held("x")).await, first);
    assert_eq!(id(&one, held("y")).await, first, "under another intent, too");
    for (client, intent) in [(&one, "x"), (&one, "y"), (&two, "x")] {
        assert_eq!(id(client, context(intent, &[])).await, first, "{intent}");
    }
    let other = id(&two, context("y", &[])).await;
    assert_ne!(other, first, "each connection has its own intents");
    let refused = two.call("session_context", held("y")).await;
    assert!(refused["content"][0]["text"].as_str().is_some_and(|text| text.contains("of another intent")), "{refused}");
    assert_eq!(id(&two, context("y", &[])).await, other, "an intent that has its own session keeps it");
}

/// A wave moves the head without a run.
#[tokio::test]
async fn subscribers_of_the_head_are_notified_of_a_wave() {
    const UPDATED: &str = "notifications/resources/updated";
    let catalog = catalogs().join("statistics");
    let mut client = Stdio::connect(&Folders::new(), VERSION, &["--catalog", catalog.to_str().expect("a path")]).await;
    client.call("session_context", context("a task", &[("statistics", "mean")])).await;
    let sessions = result(client.ask("sessions/list", json!({})).await);
    let uri = format!("heapstead://sessions/{}/head", sessions["sessions"][0]["sessionId"].as_str().expect("an id"));
    result(client.ask("resources/subscribe", json!({ "uri": uri })).await);
    client.call("session_context", context("a task", &[("statistics", "mean")])).await;
    client.call("session_context", context("a task", &[("statistics", "median")])).await;
    while client.notifications.iter().all(|received| received["method"] != UPDATED) {
        let received = client.receive().await.expect("a message");
        client.notifications.push(received);
    }
    let updates: Vec<_> = client.notifications.iter().filter(|received| received["method"] == UPDATED).collect();
    assert_eq!((updates.len(), &updates[0]["params"]["uri"]), (1, &json!(uri)), "one notification, for the head: {updates:?}");
}
