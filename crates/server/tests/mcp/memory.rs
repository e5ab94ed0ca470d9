//! The memory of connections: six `initialize` of 40 MB once cost 250 MB for as long as their connections were open.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, Sse, Stdio, initialize, request, result};
use futures_util::future::join_all;
use serde_json::{Value, json};

/// As in `mcp/connection_memory.rs`: what a connection holds after `initialize`.
const OPENED_KIB_MAX: u64 = 128 + 2 * 64;
const INITIALIZE_BYTES_MAX: usize = 64 << 10;

/// An `initialize` of this length.
fn initialize_of(bytes: usize) -> Value {
    let mut message = initialize("2025-11-25");
    // Many small objects take a hundred times the memory of their text.
    message["params"]["capabilities"]["experimental"] = json!({ "x": { "y": vec![json!({ "": 0 }); 1_000] } });
    let title = "x".repeat(bytes - message.to_string().len() - r#","title":"""#.len());
    message["params"]["clientInfo"]["title"] = title.into();
    message
}

#[tokio::test]
async fn an_initialize_that_is_too_long_is_refused_on_every_transport() {
    let server = Server::start();
    let http = Http::modern(&server, &[]);
    assert_eq!(http.send(&initialize_of(INITIALIZE_BYTES_MAX)).await.status(), 200);
    for bytes in [INITIALIZE_BYTES_MAX + 1, 8 << 20] {
        let refused = http.send(&initialize_of(bytes)).await;
        assert_eq!((refused.status().as_u16(), refused.headers().get("mcp-session-id")), (413, None));
        let refused: Value = refused.json().await.expect("JSON");
        assert_eq!(refused["error"]["data"]["code"], "too_large", "{refused}");
        assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("at most 65536")), "{refused}");
    }

    let server = Server::start_with(&Folders::new(), &["--sse-port", "0"]);
    let mut sse = Sse::open(&server).await;
    let post = server.client.post(format!("{}{}", server.url, sse.endpoint)).json(&initialize_of(INITIALIZE_BYTES_MAX + 1));
    assert_eq!(post.send().await.expect("an answer").status(), 413);
    sse.initialize("2024-11-05").await;

    let mut stdio = Stdio::start(&Folders::new(), &[]);
    stdio.send(&initialize_of(INITIALIZE_BYTES_MAX + 1).to_string()).await;
    let refused = stdio.receive().await.expect("a refusal");
    assert_eq!(refused["error"]["data"]["code"], "too_large", "{refused}");
    result(stdio.answer(&initialize_of(INITIALIZE_BYTES_MAX)).await);
    result(stdio.ask("tools/list", json!({})).await);
}

#[tokio::test]
async fn connections_with_the_largest_initialize_and_headers_stay_within_their_memory() {
    let server = Server::start();
    let header = "x".repeat(4_000);
    let names = ["x-mcp-a", "x-mcp-b", "x-mcp-c", "x-mcp-d", "x-mcp-e", "x-mcp-f", "x-mcp-g", "x-mcp-h", "x-mcp-i", "x-mcp-j", "x-mcp-k"];
    let headers = names.map(|name| (name, header.as_str()));
    let connect = async || {
        let mut http = Http::modern(&server, &headers);
        let opened = http.send(&initialize_of(INITIALIZE_BYTES_MAX)).await;
        assert_eq!(opened.status(), 200);
        http.connection = opened.headers().get("mcp-session-id").map(|value| value.to_str().expect("text").to_owned());
        http
    };
    // Buffers that are reused, whatever the number of connections.
    join_all((0..20).map(|_| connect())).await;
    let (before, count) = (server.memory_mb(), 500);
    for _ in 0..count / 20 {
        join_all((0..20).map(|_| connect())).await;
    }
    let grown = server.memory_mb() - before;
    println!("{count} connections: {grown} MB");
    assert!(grown <= (count * OPENED_KIB_MAX) >> 10, "{count} connections: {grown} MB more than {before} MB");
}

/// They are repeated in notifications and kept while a request waits.
#[tokio::test]
async fn long_ids_and_tokens_and_large_metadata_are_refused() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let long = "x".repeat(1025);
    for (name, pointer, value) in [
        ("`id`", "/id", json!(long)),
        ("`progressToken`", "/params/_meta/progressToken", json!(long)),
        ("`_meta`", "/params/_meta/x", json!(vec![0; 300])),
    ] {
        let mut message = request("ping", json!({ "_meta": { "x": 1, "progressToken": 1 } }));
        *message.pointer_mut(pointer).expect("a member") = value;
        let refused = client.send(&message).await;
        assert_eq!(refused.status(), 400, "{name}");
        let refused: Value = refused.json().await.expect("JSON");
        assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains(name)), "{refused}");
    }
    let mut longest = request("ping", json!({ "_meta": { "progressToken": &long[1..] } }));
    longest["id"] = json!(long[1..]);
    assert_eq!(client.send(&longest).await.status(), 200);
}

/// All of a result was read, copied several times and measured to show a part of it: 40 calls took 1.4 GB, and others waited for seconds.
#[tokio::test]
async fn a_result_of_megabytes_takes_the_memory_of_a_message() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let ran = server.run_with(json!({ "code": "'x'.repeat(16_000_000)", "heap_memory_max_mb": 256 })).await;
    let before_mb = server.peak_memory_mb();
    let id = ran["execution_id"].as_str().expect("an id");
    let resource = format!("heapstead://executions/{id}");
    for (method, params, named) in [
        ("tools/call", json!({ "name": "get_execution", "arguments": { "execution_id": id } }), "\"result_bytes\":16000002"),
        (
            "tools/call",
            json!({ "name": "get_execution", "arguments": { "execution_id": id, "result_offset": 9 } }),
            "\"result_bytes\":16000002",
        ),
        ("tasks/result", json!({ "taskId": id }), "\"result_bytes\":16000002"),
        ("resources/read", json!({ "uri": resource }), "\\\"result_bytes\\\":16000002"),
        ("resources/read", json!({ "uri": format!("{resource}/result") }), "/result?byte_offset="),
    ] {
        let calls: Vec<_> = (0..40).map(|_| request(method, params.clone())).collect();
        for part in join_all(calls.iter().map(async |call| client.send(call).await.text().await.expect("a text"))).await {
            assert!(part.contains(named) && part.len() < 1_000_000, "{method}: {} bytes: {:.400}", part.len(), part);
        }
        let peak_mb = server.peak_memory_mb();
        assert!(peak_mb < before_mb + 200, "{method} {params}: {before_mb} MB, then {peak_mb} MB");
    }
}
