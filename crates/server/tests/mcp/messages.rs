//! Text, structured content and their limits: the text alone is complete, and no message is too long for a client.

use crate::fixture::{Folders, Server};
use crate::peer::{Http, MODERN, Stdio, request, result};
use serde_json::{Value, json};

/// The message size that clients accept.
const MESSAGE_BYTES_MAX: usize = 900_000;
/// The default of `--max-inline-chars`.
const INLINE_CHARS: usize = 12_000;
const TEXT_ONLY: [&str; 2] = ["2024-11-05", "2025-03-26"];
const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];

async fn connect(server: &Server, version: &str, headers: &[(&'static str, &str)]) -> Http {
    match version {
        MODERN => Http::modern(server, headers),
        version => Http::connect(server, version, headers).await,
    }
}

/// The text of a result, parsed as JSON. Structured content, if there is any, is equal to it.
fn text_of(answer: &Value) -> Value {
    let blocks = answer["content"].as_array().expect("content");
    let texts: Vec<_> = blocks.iter().filter(|block| block["type"] == "text").collect();
    assert_eq!(texts.len(), 1, "one text: {answer}");
    let text: Value = serde_json::from_str(texts[0]["text"].as_str().expect("a text")).expect("the text is JSON");
    if let Some(structured) = answer.get("structuredContent") {
        assert_eq!(&text, structured);
    }
    text
}

fn text_chars(answer: &Value) -> usize {
    answer["content"][0]["text"].as_str().expect("a text").chars().count()
}

/// Calls a tool and checks that no message of the response is too long.
async fn bounded_call(client: &Http, tool: &str, arguments: Value) -> Value {
    bounded(client, "tools/call", json!({ "name": tool, "arguments": arguments })).await
}

async fn bounded(client: &Http, method: &str, params: Value) -> Value {
    let response = client.send(&request(method, params)).await;
    let body = response.text().await.expect("a body");
    let longest = body.lines().map(str::len).max().expect("a line");
    assert!(longest <= MESSAGE_BYTES_MAX, "{method}: a message of {longest} bytes");
    let message = body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line)).rfind(|line| line.starts_with('{'));
    result(serde_json::from_str(message.expect("a message")).expect("JSON"))
}

/// Regression: characters were counted before escaping when cut, and after it when shown. Of 1,000 small objects a model saw 100
/// characters.
#[tokio::test]
async fn a_preview_shows_as_much_as_fits() {
    let server = Server::start();
    for version in VERSIONS {
        let client = connect(&server, version, &[]).await;
        for objects in [50, 500, 1_000, 5_000] {
            let code = format!("Array.from({{ length: {objects} }}, (_, id) => ({{ id, name: `n\\u00e9${{id}}` }}))");
            let answer = client.call("run_js", json!({ "code": code, "wait_secs": 60 })).await;
            let text: Value = serde_json::from_str(answer["content"][0]["text"].as_str().expect("a text")).expect("JSON");
            let id = text["execution_id"].as_str().expect("an id");
            let (_, record) = server.get(&format!("/api/executions/{id}")).await;
            let (shown, whole) = (text["result"].as_str().expect("a result"), record["result"].as_str().expect("a result"));
            assert_eq!(answer["structuredContent"], record, "structured content is whole");
            if objects == 50 {
                assert_eq!(text, record);
                continue;
            }
            let chars = text_chars(&answer);
            assert!((INLINE_CHARS - 100..=INLINE_CHARS).contains(&chars), "{objects} objects: {chars} characters are shown");
            assert!(whole.starts_with(shown));
            assert_eq!(text["truncated"], true);
            assert_eq!((&text["next_result_offset"], &text["result_bytes"]), (&json!(shown.len()), &json!(whole.len())));
            assert!(text["rest"].as_str().is_some_and(|rest| rest.contains("result_offset") && rest.contains(id)), "{}", text["rest"]);
            // Everything except the result and its preview fields equals the record.
            let mut rest = text.clone();
            for part in ["truncated", "result_offset", "next_result_offset", "result_bytes", "rest"] {
                rest.as_object_mut().expect("an object").remove(part);
            }
            rest["result"] = record["result"].clone();
            assert_eq!(rest, record);
        }
    }
}

/// All items of a list, read page by page from the text alone.
async fn walk(client: &Http, tool: &str, mut arguments: Value, items: &str) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let answer = client.call(tool, arguments.clone()).await;
        let page = text_of(&answer);
        let chars = text_chars(&answer);
        assert!(chars <= INLINE_CHARS, "{tool}: {chars} characters");
        let on_page = page[items].as_array().expect("items");
        assert!(!on_page.is_empty(), "a page makes progress");
        all.extend(on_page.iter().cloned());
        match page.get("next_cursor") {
            Some(cursor) => {
                assert!(chars > INLINE_CHARS * 3 / 4, "{tool}: a page is only left early when it is full, not at {chars} characters");
                arguments["cursor"] = cursor.clone();
            }
            None => return all,
        }
    }
}

/// Regression: from 78 entries on, the text of a list was cut in the middle of its JSON.
#[tokio::test]
async fn lists_are_paged_so_that_the_text_is_complete() {
    let server = Server::start();
    let run = |number: usize| server.post("/api/exec", json!({ "code": format!("{number}"), "session": "log", "wait_secs": 60 }));
    for chunk in 0..16 {
        futures_util::future::join_all((0..10).map(|number| run(chunk * 10 + number))).await;
    }
    let tag = |number: usize| {
        let heap = format!("{number:064x}");
        let request = server.client.put(format!("{}/api/heaps/{heap}/tags", server.url));
        request.json(&json!({ "tags": { "kind": "test", "note": "\u{e9}\"\\".repeat(number % 40) } })).send()
    };
    for answer in futures_util::future::join_all((0..200).map(tag)).await {
        assert_eq!(answer.expect("an answer").status(), 200);
    }
    let begin = |number: usize| {
        let name = format!("{number:03} {}", "\u{e9}".repeat(100));
        server.post("/api/exec", json!({ "code": "1", "session": name, "wait_secs": 60 }))
    };
    for chunk in 0..15 {
        futures_util::future::join_all((0..10).map(|number| begin(chunk * 10 + number))).await;
    }
    let (_, sessions) = server.get("/api/sessions").await;
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(151));
    let (_, executions) = server.get("/api/executions").await;
    let (_, entries) = server.get("/api/session-snapshots?session=log").await;
    let (_, heaps) = server.post("/api/heaps/query", json!({ "tags": { "kind": "test" } })).await;
    assert_eq!(executions["executions"].as_array().map(Vec::len), Some(310));
    for version in VERSIONS {
        let client = connect(&server, version, &[("x-mcp-session-id", "log")]).await;
        assert_eq!(json!(walk(&client, "list_executions", json!({}), "executions").await), executions["executions"], "{version}");
        assert_eq!(json!(walk(&client, "list_session_snapshots", json!({}), "entries").await), entries["entries"], "{version}");
        let only_index = walk(&client, "list_session_snapshots", json!({ "fields": "index" }), "entries").await;
        assert_eq!(only_index, (0..160).map(|index| json!({ "index": index })).collect::<Vec<_>>());
        assert_eq!(json!(walk(&client, "list_sessions", json!({}), "sessions").await), sessions["sessions"], "{version}");
        let query = json!({ "tags": { "kind": "test" } });
        assert_eq!(json!(walk(&client, "query_heaps_by_tags", query, "results").await), heaps["results"], "{version}");
    }
    let client = Http::modern(&server, &[]);
    let two = text_of(&client.call("list_executions", json!({ "limit": 2 })).await);
    assert_eq!(two["executions"].as_array().map(Vec::len), Some(2), "`limit` still counts");
}

/// The output as seen by a client that reads only text and passes a cursor back.
async fn follow(client: &Http, id: &str, by_lines: bool, limit: u64) -> String {
    let (mut seen, mut cursor) = (String::new(), u64::from(by_lines));
    loop {
        let arguments = match by_lines {
            true => json!({ "execution_id": id, "line_offset": cursor, "line_limit": limit, "wait_secs": 30 }),
            false => json!({ "execution_id": id, "byte_offset": cursor, "byte_limit": limit, "wait_secs": 30 }),
        };
        let page = text_of(&client.call("get_execution_output", arguments).await);
        assert_eq!(page["start_byte"], json!(seen.len()), "no byte is skipped or repeated");
        seen += page["data"].as_str().expect("data");
        assert_eq!(page["next_byte_offset"], json!(seen.len()));
        cursor = page[if by_lines { "next_line_offset" } else { "next_byte_offset" }].as_u64().expect("a cursor");
        if page["has_more"] == false && page["status"] != "running" {
            return seen;
        }
    }
}

/// Regression: of 1,000 lines of 200 characters, a client that read only the text saw 561, because cursors counted lines that were not
/// shown.
#[tokio::test]
async fn clients_that_read_only_text_see_every_byte_once() {
    let server = Server::start();
    let seed: u32 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand_seed);
    println!("SEED={seed}");
    // REST returns the whole output, which is a better reference than the same generator in two languages.
    let random = format!(
        "let s = {seed}; const next = n => {{ s = (Math.imul(s, 1664525) + 1013904223) >>> 0; return Math.floor(s / 2 ** 32 * n) }};
         const units = ['a', '\\u00e9', '\\u{{1f600}}', '\"', '\\\\', '\\u0001', '<b>'];
         for (let i = 0; i < 60; i++) console.log(units[next(7)].repeat(next(next(4) ? 300 : 9000)));"
    );
    let lines = "for (let i = 0; i < 1000; i++) console.log(String(i).padEnd(200, '.'))".to_owned();
    for code in [lines, random] {
        let begun = server.post("/api/exec", json!({ "code": code, "wait_secs": 60 })).await.1;
        let id = begun["execution_id"].as_str().expect("an id");
        let (_, whole) = server.get(&format!("/api/executions/{id}/output?byte_offset=0&byte_limit=4000000")).await;
        assert_eq!(whole["has_more"], false);
        for version in VERSIONS {
            let client = connect(&server, version, &[]).await;
            for (by_lines, limit) in [(true, 10_000), (true, 7), (false, 4_000_000), (false, 5_000)] {
                let seen = follow(&client, id, by_lines, limit).await;
                assert!(json!(seen) == whole["data"], "{version}, by lines: {by_lines}, limit {limit}: {} bytes", seen.len());
            }
        }
    }
}

fn rand_seed() -> u32 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.subsec_nanos())
}

#[tokio::test]
async fn a_line_longer_than_a_result_is_read_by_bytes() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-03-26", &[]).await;
    let code = "console.log('first'); console.log('x'.repeat(400_000)); console.log('y'.repeat(2_000_000)); console.log('last')";
    let begun = text_of(&client.call("run_js", json!({ "code": code, "wait_secs": 60 })).await);
    let id = begun["execution_id"].as_str().expect("an id");
    let page = |arguments: Value| {
        let mut arguments = arguments;
        arguments["execution_id"] = json!(id);
        bounded_call(&client, "get_execution_output", arguments)
    };
    let first = text_of(&page(json!({})).await);
    assert_eq!((&first["data"], &first["next_line_offset"]), (&json!("first\n"), &json!(2)));
    let second = text_of(&page(json!({ "line_offset": 2 })).await);
    assert_eq!(second["data"].as_str().map(str::len), Some(400_001), "a line is never split while an answer can hold it");
    let third = page(json!({ "line_offset": 3 })).await;
    let error = third["content"][0]["text"].as_str().expect("a text");
    assert_eq!(third["isError"], true);
    assert!(error.contains("line 3") && error.contains("`byte_offset` 400007"), "{error}");
    let (mut offset, mut seen, mut line) = (400_007, 0, 3);
    while line == 3 {
        let part = text_of(&page(json!({ "byte_offset": offset, "byte_limit": 4_000_000 })).await);
        let data = part["data"].as_str().expect("data");
        seen += data.bytes().filter(|byte| *byte == b'y').count();
        offset = part["next_byte_offset"].as_u64().expect("a cursor");
        line = part["next_line_offset"].as_u64().expect("a cursor");
    }
    assert_eq!(seen, 2_000_000);
    assert_eq!(text_of(&page(json!({ "line_offset": 4 })).await)["data"], "last\n");
    // REST has no such limit.
    let (_, whole) = server.get(&format!("/api/executions/{id}/output?line_offset=3&line_limit=1")).await;
    assert_eq!(whole["data"].as_str().map(str::len), Some(2_000_001));
}

/// Regression: a response of more than 1 MiB broke the Python client over HTTP.
#[tokio::test]
async fn no_message_is_longer_than_clients_accept() {
    let server = Server::start();
    let code = "console.log('\"\\u0001'.repeat(600_000)); '\\u00e9\"\\n'.repeat(900_000)";
    for version in VERSIONS {
        let client = connect(&server, version, &[]).await;
        let ran = bounded_call(&client, "run_js", json!({ "code": code, "wait_secs": 60 })).await;
        let text: Value = serde_json::from_str(ran["content"][0]["text"].as_str().expect("a text")).expect("JSON");
        let id = text["execution_id"].as_str().expect("an id");
        let (_, record) = server.get(&format!("/api/executions/{id}")).await;
        let whole = record["result"].as_str().expect("REST has it whole");
        assert!(whole.len() > 4_000_000);
        assert_eq!(ran.get("structuredContent").is_some(), !TEXT_ONLY.contains(&version), "{version} has room for the text alone");
        if let Some(structured) = ran.get("structuredContent") {
            let shown = structured["result"].as_str().expect("a result");
            assert!(shown.len() > 300_000 && whole.starts_with(shown), "{} bytes", shown.len());
            assert_eq!((&structured["truncated"], &structured["next_result_offset"]), (&json!(true), &json!(shown.len())));
        }
        bounded_call(&client, "get_execution", json!({ "execution_id": id })).await;
        bounded_call(&client, "get_execution_output", json!({ "execution_id": id, "byte_offset": 0, "byte_limit": 4_000_000 })).await;
        let uri = format!("heapstead://executions/{id}");
        let contents = bounded(&client, "resources/read", json!({ "uri": uri })).await["contents"][0].clone();
        let read: Value = serde_json::from_str(contents["text"].as_str().expect("a text")).expect("a record");
        assert_eq!((&read["execution_id"], &read["truncated"]), (&json!(id), &json!(true)));
        for (part, expected) in [("result", whole.to_owned()), ("output", "\"\u{1}".repeat(600_000) + "\n")] {
            let (mut next, mut seen, mut pages) = (Some(format!("{uri}/{part}")), String::new(), 0);
            while let Some(uri) = next {
                let contents = bounded(&client, "resources/read", json!({ "uri": uri })).await["contents"][0].clone();
                seen += contents["text"].as_str().expect("a text");
                next = contents["_meta"]["heapstead/next"].as_str().map(str::to_owned);
                pages += 1;
            }
            assert!(seen == expected, "{part}: {} bytes", seen.len());
            assert!(pages > 1);
        }
    }
    let client = Http::connect(&server, "2025-11-25", &[]).await;
    let run = json!({ "name": "run_js", "arguments": { "code": code }, "task": {} });
    let id = result(client.ask("tools/call", run).await)["task"]["taskId"].clone();
    let outcome = bounded(&client, "tasks/result", json!({ "taskId": id })).await;
    assert_eq!(outcome["structuredContent"]["truncated"], true);
}

/// A refused value is repeated only in part, and an error that a task repeats three times is truncated next to its status.
#[tokio::test]
async fn error_messages_are_limited_too() {
    let server = Server::start();
    let long = "A".repeat(2_000_000);
    for version in VERSIONS {
        let client = connect(&server, version, &[]).await;
        let error = |answer: Value| assert!(answer.to_string().len() < 20_000, "{} bytes", answer.to_string().len());
        for seed in [json!({ "catalog": long, "entity": "x" }), json!({ "catalog": "x", "entity": long })] {
            error(bounded_call(&client, "session_context", json!({ "intent": "i", "seeds": [seed] })).await);
        }
        error(client.ask("resources/read", json!({ "uri": "A".repeat(5_000) })).await);
        if version != MODERN {
            error(client.ask("resources/subscribe", json!({ "uri": long })).await);
        }
        error(bounded_call(&client, "get_execution", json!({ "execution_id": long })).await);
    }
    let tasks = Http::modern(&server, &[]).with_capabilities(json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }));
    let begun = tasks.call("run_js", json!({ "code": "throw new Error('\\u0001'.repeat(100_000))" })).await;
    let id = &begun["taskId"];
    let task = loop {
        let task = bounded(&tasks, "tasks/get", json!({ "taskId": id })).await;
        if task["status"] != "working" {
            break task;
        }
    };
    assert!(task["statusMessage"].as_str().is_some_and(|text| text.chars().count() == 1_000), "{}", task["statusMessage"]);
    assert!(task["result"]["structuredContent"]["error"].as_str().is_some_and(|error| error.len() > 60_000));
}

#[tokio::test]
async fn clients_that_read_only_text_read_a_result_in_parts() {
    let server = Server::start();
    for version in VERSIONS {
        let client = connect(&server, version, &[]).await;
        let code = "Array.from({ length: 1500 }, (_, id) => ({ id, name: `\\u00e9 \\u{1f600} ${id}` }))";
        let mut page: Value = {
            let answer = client.call("run_js", json!({ "code": code, "wait_secs": 60 })).await;
            serde_json::from_str(answer["content"][0]["text"].as_str().expect("a text")).expect("JSON")
        };
        let id = page["execution_id"].as_str().expect("an id").to_owned();
        let mut seen = page["result"].as_str().expect("a result").to_owned();
        while page["truncated"] == true {
            let offset = page["next_result_offset"].clone();
            let answer = client.call("get_execution", json!({ "execution_id": id, "result_offset": offset })).await;
            page = text_of(&answer);
            assert!(text_chars(&answer) <= INLINE_CHARS);
            assert_eq!(page["result_offset"], offset);
            seen += page["result"].as_str().expect("a result");
        }
        let (_, record) = server.get(&format!("/api/executions/{id}")).await;
        assert_eq!(json!(seen), record["result"]);
        assert!(page.get("rest").is_none(), "{page}");
        let (_, part) = server.get(&format!("/api/executions/{id}?result_offset=3&result_limit=10")).await;
        assert_eq!(part["result"].as_str(), seen.get(3..13), "REST has parts too");
    }
    let client = Http::modern(&server, &[]);
    for (arguments, named) in
        [(json!({ "result_offset": -1 }), "`result_offset` is -1"), (json!({ "result_limit": 0 }), "`result_limit` is 0")]
    {
        let mut arguments = arguments;
        arguments["execution_id"] = json!("x");
        let refused = client.call("get_execution", arguments).await;
        assert!(refused["content"][0]["text"].as_str().is_some_and(|text| text.contains(named)), "{refused}");
    }
}

#[tokio::test]
async fn long_code_in_a_log_is_truncated_unless_it_is_asked_for() {
    let server = Server::start();
    let long = |bytes: usize| format!("'{}'.length", "x".repeat(bytes));
    for code in [long(50_000), "1".to_owned(), long(2_000_000), "2".to_owned()] {
        let ran = server.post("/api/exec", json!({ "code": code, "session": "log", "wait_secs": 60 })).await.1;
        assert_eq!(ran["status"], "completed");
    }
    for version in VERSIONS {
        let client = connect(&server, version, &[("x-mcp-session-id", "log")]).await;
        let (mut arguments, mut entries) = (json!({}), Vec::new());
        loop {
            let page = text_of(&bounded_call(&client, "list_session_snapshots", arguments.clone()).await);
            entries.extend(page["entries"].as_array().expect("entries").clone());
            let Some(cursor) = page.get("next_cursor") else { break };
            arguments["cursor"] = cursor.clone();
        }
        assert_eq!(entries.len(), 4);
        let lengths: Vec<_> = entries.iter().map(|entry| entry["code"].as_str().expect("code").len()).collect();
        assert_eq!((lengths[0], lengths[1], lengths[3]), (50_009, 1, 1), "{version}");
        assert_eq!(lengths[2], 65_536, "{version}");
        let truncated: Vec<_> = entries.iter().map(|entry| entry.get("truncated").is_some()).collect();
        assert_eq!(truncated, [false, false, true, false]);
    }
    let (_, log) = server.get("/api/session-snapshots?session=log&fields=code").await;
    assert_eq!(log["entries"][2]["code"].as_str().map(str::len), Some(2_000_009), "REST has it whole if it is asked for");
}

/// In stateless mode the rest cannot be read later, so everything that fits into a message is returned.
#[tokio::test]
async fn stateless_output_is_complete_up_to_the_limit() {
    let server = Server::start_with(&Folders::new(), &["--stateless"]);
    let objects =
        |count: usize| format!("for (let id = 0; id < {count}; id++) console.log(JSON.stringify({{ id, name: 'n\\u00e9' + id }}))");
    for version in VERSIONS {
        let client = connect(&server, version, &[]).await;
        for (objects_count, whole) in [(10, true), (1_000, true), (8_000, true), (100_000, false)] {
            let answer = bounded_call(&client, "run_js", json!({ "code": objects(objects_count) })).await;
            let text: Value = serde_json::from_str(answer["content"][0]["text"].as_str().expect("a text")).expect("JSON");
            let expected: String = (0..objects_count).map(|id| format!("{{\"id\":{id},\"name\":\"n\u{e9}{id}\"}}\n")).collect();
            let output = text["output"].as_str().expect("output");
            assert!(expected.starts_with(output));
            assert_eq!(output == expected, whole, "{version}, {objects_count} objects: {} of {} bytes", output.len(), expected.len());
            if let Some(structured) = answer.get("structuredContent").filter(|_| whole) {
                assert_eq!(&text, structured);
            }
            if !whole {
                assert_eq!((&text["truncated"], &text["output_bytes"]), (&json!(true), &json!(expected.len())));
                assert!(text["rest"].as_str().is_some_and(|rest| rest.contains("REST")), "{}", text["rest"]);
            }
        }
    }
    // Other members of the result are added to it.
    let code = "console.log('\\n'.repeat(500_000)); throw new Error('\"'.repeat(100_000))";
    for version in VERSIONS {
        let client = connect(&server, version, &[]).await;
        let answer = bounded_call(&client, "run_js", json!({ "code": code })).await;
        let text: Value = serde_json::from_str(answer["content"][0]["text"].as_str().expect("a text")).expect("JSON");
        assert!(text["error"].as_str().is_some_and(|error| error.len() > 60_000), "{version}");
        assert!(text["output"].as_str().is_some_and(|output| output.len() > 50_000), "{version}");
    }
    // A text-only result has the whole message for itself.
    let client = Http::connect(&server, "2025-03-26", &[]).await;
    let answer = bounded_call(&client, "run_js", json!({ "code": "console.log('x'.repeat(800_000))" })).await;
    assert_eq!(text_of(&answer)["output"].as_str().map(str::len), Some(800_001));
    let (_, answer) = server.post("/api/exec", json!({ "code": "console.log('x'.repeat(2_000_000))" })).await;
    assert_eq!(answer["output"].as_str().map(str::len), Some(2_000_001), "REST stays whole");
}

#[tokio::test]
async fn messages_over_stdio_have_the_same_limit() {
    let mut client = Stdio::connect(&Folders::new(), "2025-11-25", &[]).await;
    let answer =
        client.ask("tools/call", json!({ "name": "run_js", "arguments": { "code": "'x'.repeat(3_000_000)", "wait_secs": 60 } })).await;
    assert!(answer.to_string().len() <= MESSAGE_BYTES_MAX);
    let record = &result(answer)["structuredContent"];
    assert!(record["result"].as_str().is_some_and(|result| result.len() > 800_000), "it is filled");
    assert_eq!(record["truncated"], true);
}

/// Every part at its limit, with characters that are escaped twice.
#[tokio::test]
async fn the_largest_context_fits_in_one_message() {
    let server = Server::start();
    let client = Http::connect(&server, "2025-11-25", &[("x-mcp-session-id", "much")]).await;
    let text = |bytes: usize| "\"\\".repeat(bytes / 2);
    for number in 0..60 {
        let resource = json!({ "resource_id": format!("{number}{}", text(300)), "summary": text(1_000) });
        let search = json!({ "query": format!("{number} {}", text(1_000)), "results": 1 });
        for finding in [resource, search] {
            let recorded = client.call("context_record", finding).await;
            assert_eq!(recorded["isError"], false, "{recorded}");
        }
    }
    let custom: serde_json::Map<_, _> = (0..4).map(|number| (format!("key{number}"), json!(text(7_900)))).collect();
    let set = client.call("context_set", json!({ "custom": custom })).await;
    assert_eq!(set["isError"], false, "{set}");
    for _ in 0..14 {
        client.call("run_js", json!({ "code": format!("throw new Error({})", json!(text(2_000))), "wait_secs": 60 })).await;
    }
    let context = text_of(&bounded_call(&client, "context_get", json!({})).await);
    assert!(context.to_string().len() > 180_000, "{} bytes", context.to_string().len());
}
