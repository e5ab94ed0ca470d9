//! `run_js` as a task, both as in 2025-11-25 and as the extension of 2026-07-28. In both, the task is the execution.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, Sse, Stdio, request, result};
use serde_json::{Value, json};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn with_extension() -> Value {
    json!({ "extensions": { EXTENSION: {} } })
}

async fn begin_older(client: &Http, code: &str) -> Value {
    let params = json!({ "name": "run_js", "arguments": { "code": code }, "task": { "ttl": 60_000 } });
    result(client.ask("tools/call", params).await)["task"].clone()
}

async fn ended(client: &Http, id: &Value) -> Value {
    client.call("get_execution", json!({ "execution_id": id, "wait_secs": 60 })).await["structuredContent"].clone()
}

#[tokio::test]
async fn a_client_of_2025_11_25_requests_a_task() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let tools = result(client.ask("tools/list", json!({})).await);
    let support =
        |name: &str| tools["tools"].as_array().expect("tools").iter().find(|tool| tool["name"] == name).expect(name)["execution"].clone();
    assert_eq!(support("run_js"), json!({ "taskSupport": "optional" }));
    assert_eq!(support("get_execution"), Value::Null);

    let task = begin_older(&client, "await new Promise((done) => setTimeout(done, 300)); 6 * 7").await;
    assert_eq!(task["status"], "working");
    assert!(task["createdAt"].is_string() && task["lastUpdatedAt"].is_string() && task["pollInterval"].is_u64(), "{task}");
    assert_eq!(task["ttl"], 7 * 24 * 3600 * 1000);
    let id = &task["taskId"];
    // It waits for the end, and returns what the call would have returned.
    let outcome = result(client.ask("tasks/result", json!({ "taskId": id })).await);
    assert_eq!(outcome["structuredContent"]["result"], "42");
    assert_eq!(outcome["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], *id);
    assert_eq!(outcome["structuredContent"], ended(&client, id).await);
    let got = result(client.ask("tasks/get", json!({ "taskId": id })).await);
    assert_eq!((&got["status"], &got["taskId"]), (&json!("completed"), id));

    // Invalid input, other tools and unknown ids are refused.
    for params in
        [json!({ "name": "run_js", "arguments": { "code": "" }, "task": {} }), json!({ "name": "rm", "arguments": {}, "task": {} })]
    {
        assert_eq!(client.ask("tools/call", params).await["error"]["code"], -32602);
    }
    assert_eq!(client.ask("tools/call", json!({ "name": "list_executions", "task": {} })).await["error"]["code"], -32601);
    client.call("session_context", json!({ "intent": "a task" })).await;
    let program = json!({ "logical_session_ref": "s0", "program": "1" });
    let named_otherwise = result(client.ask("tools/call", json!({ "name": "plasm", "arguments": program, "task": {} })).await);
    assert!(named_otherwise["task"]["taskId"].is_string(), "{named_otherwise}");
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(client.ask(method, json!({ "taskId": "nobody" })).await["error"]["code"], -32602, "{method}");
        assert_eq!(client.ask(method, json!({})).await["error"]["code"], -32602, "{method}");
    }
}

#[tokio::test]
async fn every_execution_status_maps_to_a_task_status() {
    let server = Server::start();
    let older = Http::connect(&server, "2025-11-25", &[]).await;
    let newer = Http::modern(&server, &[]).with_capabilities(with_extension());
    for (code, older_status, newer_status) in
        [("1", "completed", "completed"), ("null.x", "failed", "completed"), ("let = ;", "failed", "completed")]
    {
        let id = begin_older(&older, code).await["taskId"].clone();
        let record = ended(&older, &id).await;
        let got = result(older.ask("tasks/get", json!({ "taskId": id })).await);
        assert_eq!(got["status"], older_status);
        assert_eq!(got.get("statusMessage").unwrap_or(&Value::Null), &record["error"], "short errors are whole");
        // The same execution as a newer client sees it: a call that returned an error result has completed.
        let got = result(newer.ask("tasks/get", json!({ "taskId": id })).await);
        assert_eq!(got["status"], newer_status);
        assert_eq!(got["result"]["structuredContent"], record);
        assert_eq!(got["result"]["isError"], code != "1");
    }
    let id = begin_older(&older, "for (;;);").await["taskId"].clone();
    assert_eq!(result(older.ask("tasks/cancel", json!({ "taskId": id })).await)["status"], "cancelled");
    assert_eq!(result(newer.ask("tasks/get", json!({ "taskId": id })).await)["status"], "cancelled");
    assert_eq!(older.ask("tasks/cancel", json!({ "taskId": id })).await["error"]["code"], -32602);
    let listed = result(older.ask("tasks/list", json!({})).await);
    let statuses: Vec<_> = listed["tasks"].as_array().expect("tasks").iter().map(|task| task["status"].clone()).collect();
    assert_eq!(statuses, ["cancelled", "failed", "failed", "completed"]);
}

#[tokio::test]
async fn a_client_with_the_extension_receives_a_task() {
    let server = Server::start();
    let client = Http::modern(&server, &[]).with_capabilities(with_extension());
    let discovered = result(client.ask("server/discover", json!({})).await);
    assert_eq!(discovered["capabilities"]["extensions"], json!({ EXTENSION: {}, "dev.heapstead/sessions": {} }));
    let task = client.call("run_js", json!({ "code": "await new Promise((done) => setTimeout(done, 300)); 'x'" })).await;
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")));
    let id = &task["taskId"];
    ended(&client, id).await;
    let got = result(client.ask("tasks/get", json!({ "taskId": id })).await);
    assert_eq!((&got["status"], &got["result"]["structuredContent"]["result"]), (&json!("completed"), &json!("\"x\"")));
    // A call with `wait_secs` is answered after that time. Invalid input and all other calls are answered immediately.
    let answer = client.call("run_js", json!({ "code": "1", "wait_secs": 60 })).await;
    assert_eq!((&answer["resultType"], &answer["structuredContent"]["result"]), (&json!("complete"), &json!("1")));
    assert_eq!(client.call("run_js", json!({ "code": "" })).await["isError"], true);
    assert_eq!(client.call("list_sessions", json!({})).await["resultType"], "complete");

    let endless = client.call("run_js", json!({ "code": "for (;;);" })).await;
    for _ in 0..2 {
        assert_eq!(result(client.ask("tasks/cancel", json!({ "taskId": endless["taskId"] })).await)["resultType"], "complete");
    }
    assert_eq!(result(client.ask("tasks/get", json!({ "taskId": endless["taskId"] })).await)["status"], "cancelled");
    // A client without the extension does not get a task.
    let plain = Http::modern(&server, &[]);
    assert!(plain.call("run_js", json!({ "code": "1" })).await["structuredContent"]["execution_id"].is_string());
    assert_eq!(plain.ask("tasks/get", json!({ "taskId": id })).await["error"]["code"], -32021);
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(client.ask(method, json!({ "taskId": id })).await["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn tasks_outlive_connections_and_servers() {
    let folders = Folders::new();
    let mut server = Server::start_with(&folders, &[]);
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let done = begin_older(&client, "'kept'").await["taskId"].clone();
    ended(&client, &done).await;
    let running = begin_older(&client, "for (;;);").await["taskId"].clone();
    let again = Http::connect(&server, "2025-11-25", &[]).await;
    assert_eq!(result(again.ask("tasks/get", json!({ "taskId": running })).await)["status"], "working");
    server.kill();
    let server = Server::start_with(&folders, &[]);
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let kept = result(client.ask("tasks/result", json!({ "taskId": done })).await);
    assert_eq!(kept["structuredContent"]["result"], "\"kept\"");
    let lost = result(client.ask("tasks/get", json!({ "taskId": running })).await);
    assert_eq!(lost["status"], "failed");
    assert!(lost["statusMessage"].as_str().is_some_and(|text| text.contains("server restarted")), "{lost}");
}

#[tokio::test]
async fn tasks_are_declared_only_to_clients_that_support_them() {
    let server = Server::start();
    let client = Http::modern(&server, &[]);
    for (version, knows) in [("2025-06-18", false), ("2025-11-25", true)] {
        let answer = client.all(&crate::peer::initialize(version)).await.pop().expect("an answer");
        assert_eq!(answer["result"]["capabilities"].get("tasks").is_some(), knows, "{version}");
        assert!(answer["result"]["capabilities"].get("extensions").is_none());
    }
    let mut stateless = Stdio::start(&Folders::new(), &["--stateless"]);
    let answer = stateless.answer(&crate::peer::initialize("2025-11-25")).await;
    assert_eq!(answer["result"]["capabilities"], json!({ "tools": {} }));
}

/// A client of some version on one of the transports.
enum Client {
    Http(Http),
    Sse(Box<Sse>),
    Stdio(Box<Stdio>),
}

impl Client {
    async fn everywhere(version: &str, arguments: &[&str], [http, sse]: [&Server; 2]) -> [Self; 3] {
        let mut over_sse = Sse::open(sse).await;
        over_sse.initialize(version).await;
        let stdio = Stdio::connect(&Folders::new(), version, arguments).await;
        [Self::Http(Http::connect(http, version, &[]).await), Self::Sse(over_sse.into()), Self::Stdio(stdio.into())]
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        match self {
            Self::Http(client) => client.ask(method, params).await,
            Self::Sse(client) => client.ask(method, params).await,
            Self::Stdio(client) => client.ask(method, params).await,
        }
    }
}

/// Regression: a call with `task` was refused with -32600 by a stateless server, and created a task for clients of versions without tasks.
/// MCP requires a server that has not declared tasks to ignore `task`.
#[tokio::test]
async fn task_is_ignored_if_tasks_are_not_declared() {
    for mode in [&[][..], &["--stateless"]] {
        let stateless = !mode.is_empty();
        let http = Server::start_with(&Folders::new(), mode);
        let sse = Server::start_with(&Folders::new(), &[mode, &["--sse-port", "0"]].concat());
        let with_tasks = ["2025-11-25"].into_iter().filter(|_| stateless);
        for version in ["2024-11-05", "2025-03-26", "2025-06-18"].into_iter().chain(with_tasks) {
            for mut client in Client::everywhere(version, mode, [&http, &sse]).await {
                is_ignored(&mut client, stateless).await.unwrap_or_else(|wrong| panic!("{version} {mode:?}: {wrong}"));
            }
        }
        // In 2026-07-28 the server decides whether to create a task, for clients with the extension; `task` has no meaning there.
        let mut modern = Client::Http(Http::modern(&http, &[]));
        is_ignored(&mut modern, stateless).await.unwrap_or_else(|wrong| panic!("2026-07-28 {mode:?}: {wrong}"));
        let mut stdio = Stdio::start(&Folders::new(), mode);
        let call = request("tools/call", json!({ "name": "run_js", "arguments": { "code": "" }, "task": { "ttl": 60_000 } }));
        let refused = result(stdio.answer(&crate::peer::modern(call, json!({}))).await);
        assert_eq!(refused["isError"], true, "{refused}");
    }
}

async fn is_ignored(client: &mut Client, stateless: bool) -> Result<(), Value> {
    let run = |arguments: Value, task: &Value| json!({ "name": "run_js", "arguments": arguments, "task": task });
    let (arguments, pointer, expected) = match stateless {
        true => (json!({ "code": "console.log(6 * 7)" }), "/structuredContent/output", "42\n"),
        false => (json!({ "code": "6 * 7", "wait_secs": 60 }), "/structuredContent/result", "42"),
    };
    for task in [json!({ "ttl": 60_000 }), json!({}), json!("soon")] {
        let answer = client.ask("tools/call", run(arguments.clone(), &task)).await;
        if answer["result"].pointer(pointer) != Some(&json!(expected)) || answer["result"].get("task").is_some() {
            return Err(answer);
        }
    }
    // Errors in the call are reported as for any call.
    let refused = client.ask("tools/call", run(json!({ "code": "" }), &json!({}))).await;
    let other = client.ask("tools/call", json!({ "name": "health_check", "task": {} })).await;
    let unknown = client.ask("tools/call", json!({ "name": "rm", "task": {} })).await;
    match (&refused["result"]["isError"], &other["result"]["structuredContent"]["status"], &unknown["error"]["code"]) {
        (Value::Bool(true), Value::String(_), code) if *code == -32602 => {}
        _ => return Err(json!([refused, other, unknown])),
    }
    let asked = client.ask("tasks/list", json!({})).await;
    if asked["error"]["code"] == -32601 { Ok(()) } else { Err(asked) }
}
