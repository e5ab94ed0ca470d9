//! Long answers. A page of a session log once answered 503 MB and took 620 MB of memory, because all code was read, converted and encoded
//! before the first byte was sent. Now lists and long texts are sent while they are read, lists are bounded in bytes, and code is cut
//! unless it is asked for.

use crate::fixture::Server;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const MIB: usize = 1 << 20;
/// What reading one answer may add to the memory of the server: buffers, and what the allocator keeps.
const READING_MB_MAX: u64 = 48;

/// A run whose code is a comment of this many bytes.
async fn run_long_code(server: &Server, session: &str, bytes: usize) {
    let record = server.run_with(json!({ "code": format!("/*{}*/ 1", "é".repeat(bytes / 2)), "session": session })).await;
    assert_eq!(record["status"], "completed", "{record}");
}

/// The answer's length, and the most memory that the server had while it was read.
async fn read_whole(server: &Server, path: &str) -> (Vec<u8>, u64) {
    let response = server.client.get(format!("{}{path}", server.url)).send().await.expect("an answer");
    assert_eq!(response.status(), 200, "{path}");
    let (mut body, mut memory_mb, mut chunks) = (Vec::new(), server.memory_mb(), response.bytes_stream());
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk.expect("a complete body"));
        memory_mb = memory_mb.max(server.memory_mb());
    }
    (body, memory_mb)
}

#[tokio::test]
async fn a_log_of_megabytes_is_sent_in_pages_with_little_memory() {
    let server = Server::start();
    const ENTRIES: u64 = 20;
    for _ in 0..ENTRIES {
        run_long_code(&server, "long", 12 * MIB).await;
    }
    let idle_mb = server.memory_mb();
    let (body, peak_mb) = read_whole(&server, "/api/session-snapshots?session=long").await;
    assert!(body.len() < ENTRIES as usize * 70_000, "code is cut: {}", body.len());
    let log: Value = serde_json::from_slice(&body).expect("JSON");
    let entries = log["entries"].as_array().expect("entries");
    assert_eq!((entries.len() as u64, &log["next_cursor"]), (ENTRIES, &Value::Null));
    assert_eq!((&entries[7]["truncated"], entries[7]["code_bytes"].as_u64() > Some(12 * MIB as u64 - 10)), (&json!(true), true));
    assert!(peak_mb < idle_mb + READING_MB_MAX, "{peak_mb} MB, {idle_mb} MB before");
    let (mut indexes, mut cursor) = (BTreeSet::new(), "0".to_owned());
    while indexes.len() < ENTRIES as usize {
        let path = format!("/api/session-snapshots?session=long&fields=index,code&cursor={cursor}");
        let (body, peak_mb) = read_whole(&server, &path).await;
        assert!(peak_mb < idle_mb + READING_MB_MAX, "{peak_mb} MB, {idle_mb} MB before");
        assert!(body.len() < 46 * MIB, "a page is bounded: {} bytes", body.len());
        let page: Value = serde_json::from_slice(&body).expect("JSON");
        for entry in page["entries"].as_array().expect("entries") {
            let code = entry["code"].as_str().expect("code");
            assert!(code.len() > 12 * MIB - 10 && code.starts_with("/*é") && code.ends_with("é*/ 1"), "whole: {} bytes", code.len());
            assert!(entry["truncated"].is_null() && indexes.insert(entry["index"].as_u64()), "{}", entry["index"]);
        }
        cursor = page["next_cursor"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(cursor, "", "the last page has no cursor");
}

#[tokio::test]
async fn a_page_of_a_log_holds_an_entry_however_long() {
    let server = Server::start();
    for bytes in [10, 15 * MIB, 10] {
        run_long_code(&server, "s", bytes).await;
    }
    for (query, lengths) in [("", 3), ("&limit=2", 2), ("&fields=code&limit=1&cursor=1", 1), ("&fields=index", 3), ("&fields=code", 3)] {
        let (_, page) = server.get(&format!("/api/session-snapshots?session=s{query}")).await;
        assert_eq!(page["entries"].as_array().map(Vec::len), Some(lengths), "{query}");
        assert_eq!(page["next_cursor"].is_string(), query.contains("limit"), "{query}");
    }
}

#[tokio::test]
async fn a_long_result_and_a_long_line_are_sent_with_little_memory() {
    let server = Server::start();
    let code = "console.log('ö'.repeat(9 << 20)); console.log('next'); 'ü\\n\"'.repeat(2 << 20)";
    let ran = server.run_with(json!({ "code": code, "heap_memory_max_mb": 512 })).await;
    let expected = serde_json::to_string(&"ü\n\"".repeat(2 << 20)).expect("JSON");
    assert_eq!(ran["result"].as_str().map(str::len), Some(expected.len()), "the answer of the run");
    let path = format!("/api/executions/{}", ran["execution_id"].as_str().expect("an id"));
    let idle_mb = server.memory_mb();
    for _ in 0..3 {
        let (body, peak_mb) = read_whole(&server, &path).await;
        let record: Value = serde_json::from_slice(&body).expect("JSON");
        assert!(record["result"] == expected.as_str() && record["status"] == "completed");
        assert!(peak_mb < idle_mb + READING_MB_MAX, "{peak_mb} MB, {idle_mb} MB before");
        let (body, peak_mb) = read_whole(&server, &format!("{path}/output")).await;
        let page: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((page["data"].as_str().map(str::len), &page["end_line"]), (Some((18 << 20) + 6 - 5), &json!(1)), "the long line alone");
        assert!(peak_mb < idle_mb + READING_MB_MAX, "{peak_mb} MB, {idle_mb} MB before");
    }
    let (_, part) = server.get(&format!("{path}?result_offset=3&result_limit=2000000")).await;
    assert_eq!((part["result"].as_str(), &part["next_result_offset"]), (expected.get(3..2_000_003), &json!(2_000_003)));
    // `"ü\n\"ü…`: the first ü is at 1, an offset inside it moves to its start, and a limit inside one to its end or start.
    for (query, range) in [
        ("result_offset=2", 1..expected.len()),
        ("result_offset=2&result_limit=1", 1..3),
        ("result_offset=3&result_limit=5", 3..7),
        ("result_offset=2&result_limit=1000001", 1..1_000_002),
        ("result_offset=99999999", expected.len()..expected.len()),
    ] {
        let (body, peak_mb) = read_whole(&server, &format!("{path}?{query}")).await;
        let part: Value = serde_json::from_slice(&body).expect("JSON");
        let end = range.end - (0..4).find(|back| expected.is_char_boundary(range.end - back)).expect("a boundary");
        assert!(
            part["result"].as_str() == expected.get(range.start..end),
            "{query}: {} to {}",
            part["result_offset"],
            part["next_result_offset"]
        );
        let said = [&part["result_offset"], &part["next_result_offset"], &part["result_bytes"]];
        assert_eq!(said.map(Value::as_u64), [range.start, end, expected.len()].map(|bytes| Some(bytes as u64)), "{query}");
        assert!(peak_mb < idle_mb + READING_MB_MAX, "{query}: {peak_mb} MB, {idle_mb} MB before");
    }
}

#[tokio::test]
async fn lists_longer_than_a_page_are_whole() {
    let server = Server::start();
    let heap = |number: u32| format!("{number:064x}");
    for number in 0..600 {
        let tags: serde_json::Map<_, _> = (0..8).map(|tag| (format!("t{tag}"), json!("x".repeat(1000)))).collect();
        server.put(&format!("/api/heaps/{}/tags", heap(number)), json!({ "tags": tags })).await;
    }
    for (limit, shown) in [(None, 600), (Some(450), 450), (Some(3), 3)] {
        let (status, found) = server.post("/api/heaps/query", json!({ "tags": {}, "limit": limit })).await;
        let results = found["results"].as_array().expect("results");
        assert_eq!((status, results.len()), (200, shown));
        assert!(results.iter().enumerate().all(|(number, result)| result["heap"] == heap(number as u32)), "in order, each once");
        assert_eq!(found["next_cursor"].as_str(), limit.map(|limit| heap(limit - 1)).as_deref());
    }
}
