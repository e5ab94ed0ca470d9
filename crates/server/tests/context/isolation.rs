//! A context belongs to its session, and a session to its owner. Requests for another owner's context get "not found" and are counted.

use crate::common::Place;
use crate::fixture::{Folders, Server};
use crate::metric;
use crate::peer::{Http, result};
use serde_json::{Value, json};

fn token(place: &Place, owner: &str) -> String {
    let file = place.path("tokens.toml").to_str().expect("UTF-8").to_owned();
    let ran = place.ran(["auth", "add", owner, "--json", "--auth-tokens", &file]);
    ran.json()["token"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn another_owners_context_is_not_found_and_the_attempt_is_counted() {
    let place = Place::new();
    let (ann, bob, operator) = (token(&place, "acme/ann"), token(&place, "acme/bob"), token(&place, "operator/prometheus"));
    let file = place.path("tokens.toml").to_str().expect("UTF-8").to_owned();
    let log = place.path("log");
    let server = Server::start_logged(&Folders::new(), &["--auth-tokens", &file], &log);
    let ask = async |who: &str, method: reqwest::Method, path: &str, body: Value| {
        let asked = server.client.request(method.clone(), format!("{}{path}", server.url)).bearer_auth(who);
        let asked = if method == reqwest::Method::POST { asked.json(&body) } else { asked };
        let response = asked.send().await.expect("an answer");
        (response.status().as_u16(), response.text().await.expect("a body"))
    };
    let (get, post, delete) = (reqwest::Method::GET, reqwest::Method::POST, reqwest::Method::DELETE);
    let opened: Value = serde_json::from_str(&ask(&ann, post.clone(), "/api/sessions", json!({})).await.1).expect("JSON");
    let id = opened["session_id"].as_str().expect("an id");
    let secret = json!({ "session": id, "custom": { "secret": "of ann" } });
    assert_eq!(ask(&ann, post.clone(), "/api/context", secret).await.0, 200);
    let never = "0".repeat(64);
    let of = |id: &str| format!("/api/context?session={id}");
    let (status, refusal) = ask(&bob, get.clone(), &of(id), json!({})).await;
    let (unknown_status, unknown) = ask(&bob, get.clone(), &of(&never), json!({})).await;
    assert_eq!((status, unknown_status), (200, 200), "over REST it names an unused log");
    let masked = |answer: &str, id: &str| {
        let mut answer: Value = serde_json::from_str(answer).expect("JSON");
        for fleeting in ["created_at", "last_updated_at"] {
            answer[fleeting].take();
        }
        answer.to_string().replace(id, "ID")
    };
    assert_eq!(masked(&refusal, id), masked(&unknown, &never), "the response does not reveal whether it exists");
    for (method, path, body) in [
        (delete.clone(), of(id), json!({})),
        (post.clone(), "/api/context".to_owned(), json!({ "session": id, "custom": { "secret": "of bob" } })),
        (post.clone(), "/api/context/record".to_owned(), json!({ "session": id, "query": "x" })),
        (get.clone(), format!("/api/context/check?query=x&session={id}"), json!({})),
    ] {
        let (status, answer) = ask(&bob, method, &path, body).await;
        assert!(status == 200 && !answer.contains("of ann"), "{path}: {answer}");
    }
    let hers = ask(&ann, get.clone(), &of(id), json!({})).await.1;
    assert!(hers.contains("of ann") && !hers.contains("of bob"), "{hers}");
    // The same name under two owners denotes two sessions.
    for who in [&ann, &bob] {
        assert_eq!(
            ask(who, post.clone(), "/api/context", json!({ "session": "n", "custom": { "whose": who.as_str()[..8].to_owned() } })).await.0,
            200
        );
    }
    assert_ne!(ask(&ann, get.clone(), &of("n"), json!({})).await.1, ask(&bob, get.clone(), &of("n"), json!({})).await.1);
    // The totals would reveal the activity of others, and this counter whether an id exists.
    assert_eq!(ask(&bob, get.clone(), "/metrics", json!({})).await.0, 403);
    // Recorded calls count once too, and tasks count like any session.
    let violations = async || {
        let page = ask(&operator, get.clone(), "/metrics", json!({})).await.1;
        page.lines().find_map(|line| line.strip_prefix("heapstead_isolation_violations_total ")?.parse::<u32>().ok())
    };
    assert_eq!(violations().await, Some(5));
    let task: Value =
        serde_json::from_str(&ask(&ann, post.clone(), "/api/session-context", json!({ "intent": "x" })).await.1).expect("JSON");
    for (number, foreign) in [(6, json!(id)), (7, task["logical_session_id"].clone())] {
        assert_eq!(ask(&bob, post.clone(), "/api/exec", json!({ "code": "1", "session": foreign })).await.0, 202);
        // A read of a context waits for calls recorded before, so those have been looked up by then.
        assert_eq!(ask(&bob, get.clone(), &of("n"), json!({})).await.0, 200);
        assert_eq!(violations().await, Some(number));
    }
    let metrics = ask(&operator, get.clone(), "/metrics", json!({})).await.1;
    assert!(metrics.contains("\nheapstead_isolation_violations_total 7\n"), "{metrics}");
    assert!(!metrics.contains("acme"), "no label names a tenant");
    let said = std::fs::read_to_string(&log).expect("a log");
    assert!(said.lines().any(|line| line.contains("WARN") && line.contains("isolation violation")), "{said}");
    assert!(!said.contains(id), "{said}");
    let open = server.client.get(format!("{}/metrics", server.url)).send().await.expect("an answer");
    assert_eq!(open.status(), 401);
}

#[tokio::test]
async fn a_call_in_a_session_cannot_read_the_context_of_another_session() {
    let folders = Folders::new();
    let log = folders.path().join("log");
    let server = Server::start_logged(&folders, &[], &log);
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(result(client.ask("sessions/create", json!({})).await)["session"]["sessionId"].clone());
    }
    let within = json!({ "io.modelcontextprotocol/session": { "sessionId": ids[0] } });
    let asked = json!({ "name": "context_get", "arguments": { "session": ids[1] }, "_meta": within });
    let answer = client.ask("tools/call", asked).await;
    assert!(answer["result"]["isError"] == true || answer.get("error").is_some(), "{answer}");
    assert_eq!(metric(&server, "heapstead_isolation_violations_total").await, Some(1.0));
    let said = std::fs::read_to_string(&log).expect("a log");
    let noticed = said.lines().filter(|line| line.contains("WARN") && line.contains("isolation violation")).count();
    assert_eq!(noticed, 1, "{said}");
    // With any handle. A context that does not exist is not a violation.
    let task = client.call("session_context", json!({ "intent": "a task" })).await["structuredContent"].clone();
    for (handle, violations) in [(&task["logical_session_ref"], 2.0), (&task["logical_session_id"], 3.0), (&json!("e".repeat(64)), 3.0)] {
        let asked = json!({ "name": "context_get", "arguments": { "session": handle }, "_meta": within });
        let answer = result(client.ask("tools/call", asked).await);
        assert!(answer["content"][0]["text"].as_str().is_some_and(|text| text.contains("is not known")), "{answer}");
        assert_eq!(metric(&server, "heapstead_isolation_violations_total").await, Some(violations), "{handle}");
    }
    assert!(ids.iter().all(|id| !said.contains(id.as_str().expect("an id"))), "ids only at debug: {said}");
    // A malformed id never reaches a store.
    let wrong = client.call("context_get", json!({ "session": "mcp:ctx:v1:*" })).await;
    let text = wrong["content"][0]["text"].as_str().expect("text");
    assert!(wrong["isError"] == true && text.starts_with("Invalid session ID format: mcp:ctx:v1:*"), "{text}");
}
