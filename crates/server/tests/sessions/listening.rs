//! Notifications: listeners over HTTP and on connections, what they receive and what not, how they end and resume.

use crate::client::{Client, LEGACY, LEGACY_KEY, Listener, MODERN_KEY, UPDATED, code, head_of};
use crate::fixture::{Folders, Server};
use crate::peer::{Http, Sse, Stdio, request, result};
use serde_json::{Value, json};

async fn http(server: &Server) -> Http {
    Http::connect(server, LEGACY, &[]).await
}

async fn create(http: &Http) -> Value {
    result(http.ask("sessions/create", json!({})).await)["session"].clone()
}

async fn in_session(http: &Http, session: &Value, method: &str, mut params: Value) -> Value {
    params["_meta"][LEGACY_KEY] = session.clone();
    http.all(&request(method, params)).await.pop().expect("an answer")
}

async fn run(http: &Http, session: &Value, code: &str) -> Value {
    result(in_session(http, session, "tools/call", json!({ "name": "run_js", "arguments": { "code": code, "wait_secs": 60 } })).await)
}

#[tokio::test]
async fn a_listener_receives_its_sessions_subscriptions_and_its_end() {
    let server = Server::start();
    let http = http(&server).await;
    let (session, other) = (create(&http).await, create(&http).await);
    let message = request("messages/listen", json!({ "_meta": { LEGACY_KEY: session } }));
    let mut listener = Listener::new(http.send(&message).await);
    assert_eq!(listener.next().await.expect("an event")["method"], "notifications/messages/listen");
    let head = head_of(&session);
    result(in_session(&http, &session, "resources/subscribe", json!({ "uri": head })).await);
    // Events of another session are not delivered.
    run(&http, &other, "1").await;
    run(&http, &session, "1").await;
    let mut received = [listener.next().await.expect("a message"), listener.next().await.expect("a message")];
    received.sort_by_key(|message| message["method"].to_string());
    assert_eq!(received[0]["method"], "notifications/message");
    assert_eq!(received[0]["params"]["level"], "info");
    assert_eq!(received[0]["params"]["data"]["message"], "completed");
    assert_eq!(received[1]["params"], json!({ "uri": head }), "nothing but the address: metadata is only updated in answers");
    let read = result(in_session(&http, &session, "resources/read", json!({ "uri": head })).await);
    let read: Value = serde_json::from_str(read["contents"][0]["text"].as_str().expect("text")).expect("JSON");
    assert_eq!(read["runs"], 1);
    result(in_session(&http, &session, "sessions/delete", json!({})).await);
    loop {
        let last = listener.next().await.expect("the answer");
        if last.get("result").is_some() {
            assert_eq!(last, json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} }));
            break;
        }
    }
    assert_eq!(listener.next().await, None);
}

#[tokio::test]
async fn listeners_receive_output_records_warnings_and_failures() {
    let server = Server::start();
    let http = http(&server).await;
    let session = create(&http).await;
    let mut listener = Listener::open(&http, Some(&session)).await;
    let begun = in_session(&http, &session, "tools/call", json!({ "name": "run_js", "arguments": { "code": "for (let i = 0; i < 30; i++) { console.log(i); await new Promise(done => setTimeout(done, 20)) } throw new Error('enough')" } })).await;
    let id = result(begun)["structuredContent"]["execution_id"].as_str().expect("an id").to_owned();
    let (record, output) = (format!("heapstead://executions/{id}"), format!("heapstead://executions/{id}/output"));
    for uri in [&record, &output] {
        result(in_session(&http, &session, "resources/subscribe", json!({ "uri": uri })).await);
    }
    listener.updated(&output).await;
    listener.updated(&record).await;
    let log = listener.next_of("notifications/message").await;
    assert_eq!(log["level"], "error");
    assert_eq!(log["data"]["execution_id"], *id);
    let missing = "0".repeat(64);
    in_session(&http, &session, "tools/call", json!({ "name": "run_js", "arguments": { "code": "1", "heap": missing, "wait_secs": 60 } }))
        .await;
    let log = listener.next_of("notifications/message").await;
    assert_eq!(log["level"], "warning", "{log}");
    // From now on, fewer messages are delivered.
    result(in_session(&http, &session, "logging/setLevel", json!({ "level": "error" })).await);
    assert_eq!(listener.next_of("notifications/message").await["data"]["message"], "completed");
    run(&http, &session, "1").await;
    run(&http, &session, "null.x").await;
    assert_eq!(listener.next_of("notifications/message").await["level"], "error");
}

#[tokio::test]
async fn progress_of_calls_is_sent_to_the_sessions_other_listeners() {
    let server = Server::start();
    let (one, other) = (http(&server).await, http(&server).await);
    let session = create(&one).await;
    let mut listener = Listener::open(&other, Some(&session)).await;
    let in_meta = json!({ "name": "run_js", "arguments": { "code": SLOW, "wait_secs": 60 }, "_meta": { LEGACY_KEY: session, "progressToken": "one" } });
    let by_argument = json!({ "name": "run_js", "arguments": { "code": SLOW, "wait_secs": 60, "session": session["sessionId"] }, "_meta": { "progressToken": "two" } });
    for params in [in_meta, by_argument] {
        let token = params["_meta"]["progressToken"].clone();
        let messages = one.all(&request("tools/call", params)).await;
        assert!(messages.iter().any(|message| message["method"] == "notifications/progress"), "the caller also receives it");
        while listener.next_of("notifications/progress").await["progressToken"] != token {}
    }
}

/// Writes output at intervals.
const SLOW: &str = "for (let i = 0; i < 10; i++) { console.log(i); await new Promise(done => setTimeout(done, 100)) }";

#[tokio::test]
async fn on_stdio_progress_names_its_session_and_is_sent_once() {
    let mut stdio = Stdio::connect(&Folders::new(), LEGACY, &[]).await;
    let session = result(stdio.ask("sessions/create", json!({})).await)["session"].clone();
    stdio.send(&request("messages/listen", json!({ "_meta": { LEGACY_KEY: session } })).to_string()).await;
    stdio.receive().await.expect("a confirmation");
    let run = json!({ "name": "run_js", "arguments": { "code": SLOW, "wait_secs": 60, "session": session["sessionId"] }, "_meta": { "progressToken": 7 } });
    result(stdio.ask("tools/call", run).await);
    let progress: Vec<_> = stdio.notifications.iter().filter(|message| message["method"] == "notifications/progress").collect();
    assert!(!progress.is_empty());
    for notification in &progress {
        assert_eq!(notification["params"]["_meta"], json!({ LEGACY_KEY: { "sessionId": session["sessionId"] } }), "{notification}");
    }
    let mut values: Vec<_> = progress.iter().map(|notification| notification["params"]["progress"].to_string()).collect();
    values.dedup();
    assert_eq!(values.len(), progress.len(), "{progress:?}");
    // Progress outside of sessions names no session.
    let run = json!({ "name": "run_js", "arguments": { "code": SLOW, "wait_secs": 60 }, "_meta": { "progressToken": 8 } });
    result(stdio.ask("tools/call", run).await);
    let notification = stdio.notifications.iter().find(|message| message["params"]["progressToken"] == 8).expect("progress");
    assert!(notification["params"].get("_meta").is_none(), "{notification}");
}

#[tokio::test]
async fn a_resumed_listener_receives_all_events() {
    let server = Server::start();
    let http = http(&server).await;
    let session = create(&http).await;
    let mut listener = Listener::open(&http, Some(&session)).await;
    result(in_session(&http, &session, "resources/subscribe", json!({ "uri": head_of(&session) })).await);
    run(&http, &session, "1").await;
    listener.updated(&head_of(&session)).await;
    let last = listener.last.clone().expect("an id");
    drop(listener);
    for code in ["throw 'a'", "throw 'b'", "throw 'c'"] {
        run(&http, &session, code).await;
    }
    let again = request("messages/listen", json!({ "_meta": { LEGACY_KEY: session } }));
    let post = http.client.post(&http.url).header("accept", "application/json, text/event-stream").json(&again);
    let by_post = post.header("mcp-session-id", session["sessionId"].as_str().expect("an id")).header("last-event-id", &last);
    let by_get = http.client.get(&http.url).header("accept", "text/event-stream").header("last-event-id", &last);
    for (request, again) in [(by_post, true), (by_get, false)] {
        let mut listener = Listener::new(request.send().await.expect("an answer"));
        if again {
            assert_eq!(listener.next().await.expect("an event")["method"], "notifications/messages/listen");
        }
        for thrown in ["a", "b", "c"] {
            let log = listener.next_of("notifications/message").await;
            // The log message of the first run may come after the notification of the head.
            let log = if log["level"] == "info" { listener.next_of("notifications/message").await } else { log };
            assert!(log["data"]["message"].as_str().is_some_and(|text| text.contains(thrown)), "{thrown}: {log}");
        }
    }
    // If the event buffer is gone, every subscription is notified once.
    let mut parts: Vec<_> = last.split('.').collect();
    parts[2] = "1";
    let lost = http.client.get(&http.url).header("accept", "text/event-stream").header("last-event-id", parts.join("."));
    let mut listener = Listener::new(lost.send().await.expect("an answer"));
    listener.updated(&head_of(&session)).await;
    // After the session has ended, a resumed stream contains only the response, also for a session of another owner.
    result(in_session(&http, &session, "sessions/delete", json!({})).await);
    let over = http.client.get(&http.url).header("accept", "text/event-stream").header("last-event-id", parts.join("."));
    let mut listener = Listener::new(over.send().await.expect("an answer"));
    assert_eq!(listener.next().await.expect("the answer")["result"], json!({}));
    assert_eq!(listener.next().await, None);
}

#[tokio::test]
async fn a_listener_resumed_after_the_end_gets_the_rest_and_then_the_response() {
    let server = Server::start();
    let http = http(&server).await;
    let session = create(&http).await;
    let listener = Listener::open(&http, Some(&session)).await;
    let last = listener.last.clone().expect("an id");
    drop(listener);
    run(&http, &session, "throw new Error('undelivered')").await;
    result(in_session(&http, &session, "sessions/delete", json!({})).await);
    let back = http.client.get(&http.url).header("accept", "text/event-stream").header("last-event-id", &last);
    let mut listener = Listener::new(back.send().await.expect("an answer"));
    let notification = listener.next_of("notifications/message").await;
    assert!(notification["data"]["message"].as_str().is_some_and(|text| text.contains("undelivered")), "{notification}");
    loop {
        let message = listener.next().await.expect("the answer");
        if message.get("result").is_some() {
            break;
        }
    }
    assert_eq!(listener.next().await, None);
}

#[tokio::test]
async fn an_expired_logical_session_closes_its_listeners() {
    let folders = Folders::new();
    let server = Server::start_with(&folders, &["--session-ttl", "1s"]);
    let http = http(&server).await;
    result(http.ask("tools/call", json!({ "name": "session_context", "arguments": { "intent": "a task" } })).await);
    let listed = result(http.ask("sessions/list", json!({})).await);
    let mut listener = Listener::open(&http, Some(&json!({ "sessionId": listed["sessions"][0]["sessionId"] }))).await;
    assert_eq!(listener.next().await.expect("the answer")["result"], json!({}));
    assert_eq!(listener.next().await, None);
}

#[tokio::test]
async fn events_outside_sessions_reach_only_the_connection_and_its_global_listeners() {
    let server = Server::start();
    let (one, other) = (http(&server).await, http(&server).await);
    let session = create(&one).await;
    let get = one
        .client
        .get(&one.url)
        .header("accept", "text/event-stream")
        .header("mcp-session-id", one.connection.as_deref().expect("a connection"));
    let mut own = Listener::new(get.send().await.expect("an answer"));
    let (mut global, mut foreign) = (Listener::open(&one, None).await, Listener::open(&other, None).await);
    let mut of_session = Listener::open(&one, Some(&session)).await;
    let begun = result(
        one.ask("tools/call", json!({ "name": "run_js", "arguments": { "code": "await new Promise(done => setTimeout(done, 300))" } }))
            .await,
    );
    let uri = format!("heapstead://executions/{}", begun["structuredContent"]["execution_id"].as_str().expect("an id"));
    result(one.ask("resources/subscribe", json!({ "uri": uri })).await);
    own.updated(&uri).await;
    global.updated(&uri).await;
    // Neither receives events of the session.
    result(in_session(&one, &session, "resources/subscribe", json!({ "uri": head_of(&session) })).await);
    run(&one, &session, "1").await;
    of_session.updated(&head_of(&session)).await;
    let second = result(
        other
            .ask("tools/call", json!({ "name": "run_js", "arguments": { "code": "await new Promise(done => setTimeout(done, 300))" } }))
            .await,
    );
    let uri = format!("heapstead://executions/{}", second["structuredContent"]["execution_id"].as_str().expect("an id"));
    for client in [&one, &other] {
        result(client.ask("resources/subscribe", json!({ "uri": uri })).await);
    }
    for listener in [&mut global, &mut foreign] {
        assert_eq!(listener.next().await.expect("a message")["params"]["uri"], *uri, "the next that it receives");
    }
}

#[tokio::test]
async fn a_client_that_mirrors_its_session_listens_without_a_connection() {
    let server = Server::start();
    let mut http = http(&server).await;
    let session = create(&http).await;
    http.connection = session["sessionId"].as_str().map(str::to_owned);
    let mut listener = Listener::open(&http, Some(&session)).await;
    result(in_session(&http, &session, "resources/subscribe", json!({ "uri": head_of(&session) })).await);
    run(&http, &session, "1").await;
    listener.updated(&head_of(&session)).await;
}

#[tokio::test]
async fn on_stdio_notifications_name_their_session_and_the_request_is_answered_at_its_end() {
    let mut stdio = Stdio::connect(&Folders::new(), LEGACY, &[]).await;
    let session = result(stdio.ask("sessions/create", json!({})).await)["session"].clone();
    let meta = json!({ LEGACY_KEY: session });
    let listen = request("messages/listen", json!({ "_meta": meta }));
    stdio.send(&listen.to_string()).await;
    assert_eq!(stdio.receive().await, Some(json!({ "jsonrpc": "2.0", "method": "notifications/messages/listen", "params": {} })));
    result(stdio.ask("resources/subscribe", json!({ "uri": head_of(&session), "_meta": meta })).await);
    let run = json!({ "name": "run_js", "arguments": { "code": "1", "wait_secs": 60 }, "_meta": meta });
    result(stdio.ask("tools/call", run).await);
    let news = loop {
        match stdio.notifications.pop() {
            Some(message) if message["method"] == UPDATED => break message,
            Some(_) => {}
            None => {
                let received = stdio.receive().await.expect("a message");
                stdio.notifications.push(received);
            }
        }
    };
    assert_eq!(news["params"], json!({ "uri": head_of(&session), "_meta": { LEGACY_KEY: { "sessionId": session["sessionId"] } } }));
    result(stdio.ask("sessions/delete", json!({ "_meta": meta })).await);
    let answer = match stdio.notifications.iter().find(|message| message["id"] == listen["id"]) {
        Some(answer) => answer.clone(),
        None => stdio.answer_to(&listen["id"]).await,
    };
    assert_eq!(result(answer), json!({}));
}

#[tokio::test]
async fn messages_listen_over_sse() {
    let server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    let mut sse = Sse::open(&server).await;
    sse.initialize(LEGACY).await;
    let session = result(sse.ask("sessions/create", json!({})).await)["session"].clone();
    let listen = request("messages/listen", json!({ "_meta": { LEGACY_KEY: session } }));
    assert_eq!(sse.post(&listen, &[]).await, 202);
    let (_, first) = sse.event().await.expect("an event");
    assert!(first.contains("notifications/messages/listen"), "{first}");
    let delete = request("sessions/delete", json!({ "_meta": { LEGACY_KEY: session } }));
    assert_eq!(sse.post(&delete, &[]).await, 202);
    assert_eq!(result(sse.answer_to(&listen["id"]).await), json!({}));
}

#[tokio::test]
async fn subscriptions_listen_receives_the_named_resources_until_its_session_ends() {
    let server = Server::start();
    let http = Http::modern(&server, &[]);
    let mut client = Client::modern(&server);
    let session = client.create().await;
    let filter = json!({ "resourceSubscriptions": [head_of(&session), "heapstead://nothing"] });
    let listen = request("subscriptions/listen", json!({ "notifications": filter, "_meta": { MODERN_KEY: session } }));
    let mut listener = Listener::new(http.send(&listen).await);
    let acknowledged = listener.next_of("notifications/subscriptions/acknowledged").await;
    assert_eq!(acknowledged["notifications"]["resourceSubscriptions"], json!([head_of(&session)]), "{acknowledged}");
    client.run_in(&session, "1").await;
    let news = listener.next_of(UPDATED).await;
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": listen["id"], MODERN_KEY: { "sessionId": session["sessionId"] } });
    assert_eq!(news, json!({ "uri": head_of(&session), "_meta": meta }));
    result(client.ask_in(&session, "sessions/delete", json!({})).await);
    let mut last = listener.next().await.expect("a message");
    while last.get("result").is_none() {
        last = listener.next().await.expect("the answer");
    }
    assert_eq!(last["id"], listen["id"]);
    assert_eq!(code(&client.ask("messages/listen", json!({})).await), -32601, "that one is of the earlier era");
    assert_eq!(code(&client.ask("resources/subscribe", json!({ "uri": "x" })).await), -32601);
}

#[tokio::test]
async fn subscriptions_listen_filters_by_log_level() {
    let server = Server::start();
    let http = Http::modern(&server, &[]);
    let mut client = Client::modern(&server);
    let (session, other) = (client.create().await, client.create().await);
    let listen = |level: Option<&str>| {
        let mut listen = request("subscriptions/listen", json!({ "notifications": {}, "_meta": { MODERN_KEY: session } }));
        if let Some(level) = level {
            listen["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = level.into();
        }
        listen
    };
    let (error, none) = (listen(Some("error")), listen(None));
    let (mut listener, mut without_level) = (Listener::new(http.send(&error).await), Listener::new(http.send(&none).await));
    for listener in [&mut listener, &mut without_level] {
        listener.next_of("notifications/subscriptions/acknowledged").await;
    }
    client.run_in(&other, "throw new Error('of another session')").await;
    client.run_in(&session, "1").await;
    client.run_in(&session, "throw new Error('loud')").await;
    let notification = listener.next().await.expect("a message");
    assert_eq!(
        (&notification["method"], &notification["params"]["level"]),
        (&json!("notifications/message"), &json!("error")),
        "{notification}"
    );
    assert!(notification["params"]["data"]["message"].as_str().is_some_and(|text| text.contains("loud")), "{notification}");
    let meta = &notification["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], error["id"], "{notification}");
    assert_eq!(meta[MODERN_KEY], json!({ "sessionId": session["sessionId"] }), "{notification}");
    let run = json!({ "name": "run_js", "arguments": { "code": SLOW, "wait_secs": 60 }, "_meta": { "progressToken": "mine" } });
    result(client.ask_in(&session, "tools/call", run).await);
    for listener in [&mut listener, &mut without_level] {
        let notification = listener.next().await.expect("a message");
        assert_eq!(
            (&notification["method"], &notification["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("mine")),
            "{notification}"
        );
    }
}

#[tokio::test]
async fn subscriptions_to_missing_resources_are_refused() {
    let server = Server::start();
    let http = http(&server).await;
    let session = create(&http).await;
    let unknown = json!({ "sessionId": "0".repeat(64) });
    for uri in [head_of(&unknown), format!("heapstead://executions/{}", "0".repeat(32)), "heapstead://nothing".into(), "x".into()] {
        let answer = in_session(&http, &session, "resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(code(&answer), -32002, "{uri}: {answer}");
    }
    for (method, params) in [("messages/listen", json!({})), ("resources/subscribe", json!({ "uri": head_of(&session) }))] {
        let answer = in_session(&http, &unknown, method, params).await;
        assert_eq!(code(&answer), -32043, "{method}: {answer}");
    }
    result(in_session(&http, &session, "resources/subscribe", json!({ "uri": head_of(&session) })).await);
    result(in_session(&http, &session, "resources/unsubscribe", json!({ "uri": head_of(&session) })).await);
    let mut listener = Listener::open(&http, Some(&session)).await;
    run(&http, &session, "1").await;
    assert_eq!(listener.next().await.expect("a message")["method"], "notifications/message", "not of the head");
}

#[tokio::test]
async fn an_expired_session_closes_its_listeners() {
    let server = Server::start_with(&Folders::new(), &["--session-ttl", "1s"]);
    let http = http(&server).await;
    let session = create(&http).await;
    let mut listener = Listener::open(&http, Some(&session)).await;
    assert_eq!(listener.next().await.expect("the answer")["result"], json!({}));
    assert_eq!(listener.next().await, None);
}

#[tokio::test]
async fn another_server_on_the_same_database_notifies_of_heads_executions_and_the_end() {
    let folders = Folders::new();
    let (here, there) = (Server::start_with(&folders, &[]), Server::start_with(&folders, &[]));
    let (here, there) = (http(&here).await, http(&there).await);
    let session = create(&here).await;
    let mut listener = Listener::open(&here, Some(&session)).await;
    result(in_session(&here, &session, "resources/subscribe", json!({ "uri": head_of(&session) })).await);
    let begun = result(
        in_session(
            &there,
            &session,
            "tools/call",
            json!({ "name": "run_js", "arguments": { "code": "await new Promise(done => setTimeout(done, 500))" } }),
        )
        .await,
    );
    let uri = format!("heapstead://executions/{}", begun["structuredContent"]["execution_id"].as_str().expect("an id"));
    result(in_session(&here, &session, "resources/subscribe", json!({ "uri": uri })).await);
    let mut waited = vec![head_of(&session), uri];
    while !waited.is_empty() {
        let news = listener.next_of(UPDATED).await;
        waited.retain(|uri| news["uri"] != **uri);
    }
    result(in_session(&there, &session, "sessions/delete", json!({})).await);
    loop {
        let message = listener.next().await.expect("the answer");
        if message.get("result").is_some() {
            break;
        }
    }
}

#[tokio::test]
async fn a_stalled_subscriber_does_not_affect_others() {
    let server = Server::start();
    let http = http(&server).await;
    let session = create(&http).await;
    result(http.ask("resources/subscribe", json!({ "uri": head_of(&session) })).await);
    for _ in 0..200 {
        run(&http, &session, "1").await;
    }
    assert_eq!(run(&http, &session, "2").await["structuredContent"]["result"], "2");
}

#[tokio::test]
async fn a_disconnected_listener_does_not_block_the_server() {
    let mut stdio = Stdio::connect(&Folders::new(), LEGACY, &[]).await;
    let session = result(stdio.ask("sessions/create", json!({})).await)["session"].clone();
    for params in [json!({ "_meta": { LEGACY_KEY: session } }), json!({})] {
        stdio.send(&request("messages/listen", params).to_string()).await;
        stdio.receive().await.expect("a confirmation");
    }
    let left = std::time::Instant::now();
    assert_eq!(stdio.leave().await, Some(0));
    assert!(left.elapsed() < std::time::Duration::from_secs(4), "{:?}", left.elapsed());
}
