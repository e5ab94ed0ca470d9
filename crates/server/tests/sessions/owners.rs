//! Another owner's session gets the same response as an unknown one, from every method that can name a session.

use crate::client::{LEGACY, LEGACY_KEY, Listener, head_of};
use crate::fixture::{Folders, Server};
use crate::peer::{Http, request, result};
use serde_json::{Value, json};
use std::process::Command;

/// The `Authorization` header of a new token.
fn token(file: &str, owner: &str) -> String {
    let made = Command::new(env!("CARGO_BIN_EXE_heapstead")).args(["auth", "add", owner, "--json", "--auth-tokens", file]).output();
    let made: Value = serde_json::from_slice(&made.expect("it runs").stdout).expect("JSON");
    format!("Bearer {}", made["token"].as_str().expect("a token"))
}

/// The responses to a client that names this session in every possible way.
async fn responses(http: &Http, session: &Value) -> Vec<String> {
    let id = session["sessionId"].as_str().expect("an id");
    let (head, run) = (head_of(session), json!({ "name": "run_js", "arguments": { "code": "1", "wait_secs": 60 } }));
    let mut responses = Vec::new();
    for method in ["sessions/delete", "tools/list", "tools/call", "resources/subscribe", "messages/listen", "logging/setLevel"] {
        let mut params = match method {
            "tools/call" => run.clone(),
            "resources/subscribe" => json!({ "uri": head }),
            "logging/setLevel" => json!({ "level": "info" }),
            _ => json!({}),
        };
        params["_meta"][LEGACY_KEY] = json!({ "sessionId": id, "state": session["state"] });
        responses.push(http.ask(method, params).await);
    }
    responses.push(http.ask("sessions/resume", json!({ "sessionId": id })).await);
    responses.push(http.ask("resources/read", json!({ "uri": head })).await);
    responses.push(http.ask("resources/subscribe", json!({ "uri": head })).await);
    responses.push(http.ask("tools/call", json!({ "name": "session_fork", "arguments": { "session": id } })).await);
    // Resumes a stream of that session from the beginning.
    let event = format!("listen.{id}.1.0.31");
    let get = http.client.get(&http.url).header("accept", "text/event-stream").header("last-event-id", event);
    let get = http.headers.iter().fold(get, |get, (name, value)| get.header(*name, value));
    let mut listener = Listener::new(get.send().await.expect("an answer"));
    while let Some(message) = listener.next().await {
        responses.push(message);
    }
    let plain = |mut answer: Value| {
        answer.as_object_mut().expect("an object").remove("id");
        answer.to_string().replace(id, "ID")
    };
    responses.into_iter().map(plain).collect()
}

#[tokio::test]
async fn a_foreign_session_is_indistinguishable_from_a_missing_one() {
    let folders = Folders::new();
    let file = folders.path().join("tokens.toml").to_str().expect("a name in UTF-8").to_owned();
    let (ann, bob) = (token(&file, "acme/ann"), token(&file, "acme/bob"));
    let server = Server::start_with(&folders, &["--auth-tokens", &file]);
    let ann = Http::connect(&server, LEGACY, &[("authorization", &ann)]).await;
    let bob = Http::connect(&server, LEGACY, &[("authorization", &bob)]).await;
    let session = result(ann.ask("sessions/create", json!({})).await)["session"].clone();
    let run =
        request("tools/call", json!({ "name": "run_js", "arguments": { "code": "1", "wait_secs": 60 }, "_meta": { LEGACY_KEY: session } }));
    result(ann.all(&run).await.pop().expect("an answer"));
    let missing = json!({ "sessionId": "0123456789abcdef".repeat(4), "state": session["state"] });
    let (foreign, unknown) = (responses(&bob, &session).await, responses(&bob, &missing).await);
    assert_eq!(foreign, unknown);
    assert!(foreign[0].contains("-32043"), "{}", foreign[0]);
    assert_eq!(result(bob.ask("sessions/list", json!({})).await), json!({ "sessions": [] }));
    assert_eq!(
        result(ann.ask("sessions/list", json!({})).await)["sessions"][0]["sessionId"],
        session["sessionId"],
        "and it is still there"
    );
}
