//! Runs over REST: responses, refusals and end states.

use crate::fixture::{Folders, Server};
use serde_json::{Value, json};

/// Waits for the end of an execution.
async fn ended(server: &Server, id: &Value) -> Value {
    let (status, record) = server.get(&format!("/api/executions/{}?wait_secs=60", id.as_str().expect("an id"))).await;
    assert_eq!(status, 200, "{record}");
    record
}

async fn output(server: &Server, id: &Value) -> String {
    let (status, page) =
        server.get(&format!("/api/executions/{}/output?byte_offset=0&byte_limit=4194304", id.as_str().expect("an id"))).await;
    assert_eq!(status, 200, "{page}");
    page["data"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn a_run_returns_immediately_or_when_it_ends() {
    let server = Server::start();
    let (status, answer) = server.post("/api/exec", json!({ "code": "1 + 1" })).await;
    assert_eq!(status, 202);
    assert_eq!(answer.as_object().map(|answer| answer.len()), Some(1), "{answer}");
    let record = ended(&server, &answer["execution_id"]).await;
    assert_eq!((&record["status"], &record["result"]), (&json!("completed"), &json!("2")));

    let (status, record) = server.post("/api/exec", json!({ "code": "1 + 2", "wait_secs": 60 })).await;
    assert_eq!((status, &record["result"]), (200, &json!("3")));
    assert!(record["execution_id"].is_string(), "{record}");

    let (status, record) =
        server.post("/api/exec", json!({ "code": "await new Promise((done) => setTimeout(done, 60_000))", "wait_secs": 0 })).await;
    assert_eq!((status, &record["status"]), (202, &json!("running")), "a run that has not ended returns 202");
    assert_eq!(
        (&record["completed_at"], &record["result"], &record["heap"], &record["error"]),
        (&Value::Null, &Value::Null, &Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn each_end_state_has_its_record() {
    let server = Server::start();
    let check = |record: &Value, status: &str, error: &str| {
        assert_eq!(record["status"], status, "{record}");
        assert!(record["error"].as_str().expect("an error").contains(error), "{record}");
        assert_eq!((&record["result"], &record["heap"]), (&Value::Null, &Value::Null), "{record}");
        assert!(record["completed_at"].as_str().expect("a time") >= record["started_at"].as_str().expect("a time"), "{record}");
    };
    let completed = server.run("({ a: 1 })").await;
    assert_eq!((&completed["status"], &completed["result"], &completed["error"]), (&json!("completed"), &json!("{\"a\":1}"), &Value::Null));
    assert_eq!(completed["heap"].as_str().map(str::len), Some(64));
    assert_eq!(completed.get("warnings"), None);
    for time in [&completed["started_at"], &completed["completed_at"]] {
        let time = time.as_str().expect("a time");
        assert!(time.len() == 24 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
    }

    check(&server.run("\nthrow new RangeError('too far')").await, "failed", "RangeError: too far\n    at main.js:2:7");
    check(&server.run("let = 1 +").await, "failed", "SyntaxError");
    check(
        &server.run("const a: number[] = []; while (true) a.push(...new Array(10000).fill(a.length))").await,
        "failed",
        "heap_memory_max_mb",
    );
    check(&server.run("await new Promise(() => {})").await, "failed", "settle");
    let timed_out = server.run_with(json!({ "code": "console.log('so far'); for (;;) {}", "execution_timeout_secs": 1 })).await;
    check(&timed_out, "timed_out", "1 s");
    assert_eq!(output(&server, &timed_out["execution_id"]).await, "so far\n", "output written before is kept");
}

#[tokio::test]
async fn a_syntax_error_is_a_failed_execution_with_its_source_position() {
    let server = Server::start();
    let record = server.run("const a: number = 1;\nconst b = = 2;").await;
    assert_eq!(record["status"], "failed");
    let error = record["error"].as_str().expect("an error");
    assert!(error.contains("SyntaxError") && error.contains("2:11"), "{error}");
}

#[tokio::test]
async fn bad_input_is_refused_before_anything_runs() {
    let server = Server::start();
    for (body, expected) in [
        (json!({}), "`code` is missing"),
        (json!({ "code": "" }), "`code` is empty"),
        (json!({ "code": null }), "`code` is missing"),
        (json!({ "code": 5 }), "`code` is 5: expected a string"),
        (json!({ "code": "1", "execution_timeout_secs": 0 }), "`execution_timeout_secs` is 0: expected an integer from 1 to 300"),
        (json!({ "code": "1", "execution_timeout_secs": 301 }), "`execution_timeout_secs` is 301"),
        (json!({ "code": "1", "execution_timeout_secs": 1.5 }), "`execution_timeout_secs` is 1.5"),
        (json!({ "code": "1", "heap_memory_max_mb": 7 }), "`heap_memory_max_mb` is 7: expected an integer from 8 to 4096"),
        (json!({ "code": "1", "heap_memory_max_mb": 4097 }), "`heap_memory_max_mb` is 4097"),
        (json!({ "code": "1", "heap_memory_max_mb": "64" }), "`heap_memory_max_mb` is \"64\""),
        (json!({ "code": "1", "heap": "abc" }), "`heap` is `abc`: expected a heap key, which is 64 lowercase hex digits"),
        (json!({ "code": "1", "heap": "A".repeat(64) }), "`heap` is `AAAA"),
        (json!({ "code": "1", "heap": "../../etc/passwd" }), "`heap` is"),
        (json!({ "code": "1", "tags": { "a": 1 } }), "`tags`: `a` is 1: expected a string"),
        (json!({ "code": "1", "tags": { "": "x" } }), "with names of 1 to 128 characters"),
        (json!({ "code": "1", "session": "" }), "`session` is ``"),
        (json!({ "code": "1", "on_missing_heap": "explode" }), "`on_missing_heap` is \"explode\": allowed are `fresh` and `fail`"),
        (json!({ "code": "1", "wait_secs": 301 }), "`wait_secs` is 301: expected a number from 0 to 300"),
        (json!({ "code": "1", "wait_secs": -1 }), "`wait_secs` is -1"),
        (json!({ "code": "1", "colour": "red" }), "`colour` is not a parameter of run_js: allowed are `code`"),
    ] {
        let (status, problem) = server.post("/api/exec", body).await;
        let detail = problem["detail"].as_str().expect("a detail");
        assert_eq!(status, 400, "{problem}");
        assert!(detail.contains(expected), "{detail}\ndoes not contain\n{expected}");
    }
    let (_, list) = server.get("/api/executions").await;
    assert_eq!(list["executions"], json!([]), "nothing ran");
}

#[tokio::test]
async fn a_run_starts_from_the_heap_it_is_given() {
    let server = Server::start();
    let first = server.run("let n = 1; class Point { x = n }").await;
    let key = first["heap"].as_str().expect("a heap");
    let again = server.run_with(json!({ "code": "n += 1; [n, new Point().x]", "heap": key })).await;
    assert_eq!(again["result"], "[2,2]");
    let from_first = server.run_with(json!({ "code": "n", "heap": key })).await;
    assert_eq!(from_first["result"], "1", "a heap is immutable");
    for fresh in [json!({ "code": "typeof n" }), json!({ "code": "typeof n", "heap": "" }), json!({ "code": "typeof n", "heap": null })] {
        assert_eq!(server.run_with(fresh).await["result"], "\"undefined\"");
    }

    let missing = "0".repeat(64);
    let warned = server.run_with(json!({ "code": "1", "heap": missing })).await;
    assert_eq!(warned["status"], "completed");
    assert!(warned["warnings"][0].as_str().expect("a warning").contains(&missing), "{warned}");
    let recorded = server.get("/api/executions").await.1;
    let (status, refused) = server.post("/api/exec", json!({ "code": "1", "heap": missing, "on_missing_heap": "fail" })).await;
    assert_eq!((status, &refused["detail"]), (404, &json!(format!("heap `{missing}` is not known"))), "{refused}");
    assert_eq!(server.get("/api/executions").await.1, recorded, "a refused run has no record");
}

#[tokio::test]
async fn the_operator_sets_the_default_for_missing_heaps() {
    let server = Server::start_with(&Folders::new(), &["--on-missing-heap", "fail"]);
    let missing = "0".repeat(64);
    assert_eq!(server.post("/api/exec", json!({ "code": "1", "heap": missing })).await.0, 404);
    assert_eq!(server.run_with(json!({ "code": "1", "heap": missing, "on_missing_heap": "fresh" })).await["status"], "completed");
}

#[tokio::test]
async fn a_memory_limit_above_the_total_is_refused() {
    let server = Server::start_with(&Folders::new(), &["--max-memory-mb", "400"]);
    let (status, problem) = server.post("/api/exec", json!({ "code": "1", "heap_memory_max_mb": 200 })).await;
    assert_eq!(status, 400);
    assert_eq!(problem["detail"], "`heap_memory_max_mb` is 200: expected an integer from 8 to 80", "a worker with 80 MB may use 400 MB");
}

/// A call could ask for 4,096 MB and 300 s whatever the operator had set: the flags for defaults were the only ones.
#[tokio::test]
async fn a_call_above_the_limits_of_the_operator_is_refused() {
    let flags = ["--heap-memory-max", "16", "--heap-memory-limit", "32", "--execution-timeout", "5", "--execution-timeout-limit", "10"];
    for mode in [&[][..], &["--stateless"]] {
        let server = Server::start_with(&Folders::new(), &[&flags, mode].concat());
        for (parameter, allowed, refused, text) in [
            ("heap_memory_max_mb", 32, 33, "`heap_memory_max_mb` is 33: expected an integer from 8 to 32"),
            ("execution_timeout_secs", 10, 11, "`execution_timeout_secs` is 11: expected an integer from 1 to 10"),
        ] {
            let (status, problem) = server.post("/api/exec", json!({ "code": "1", parameter: refused })).await;
            assert_eq!((status, problem["detail"].as_str()), (400, Some(text)), "{mode:?}");
            let (status, answer) = server.post("/api/exec", json!({ "code": "1", parameter: allowed })).await;
            assert!([200, 202].contains(&status), "{mode:?}: {answer}");
            let (_, document) = server.get("/api-doc/openapi.json").await;
            let body = &document["paths"]["/api/exec"]["post"]["requestBody"]["content"]["application/json"]["schema"];
            assert_eq!(body["properties"][parameter]["maximum"], allowed, "{mode:?}: clients see the limit: {body}");
        }
    }
}

#[tokio::test]
async fn cancel_ends_an_execution_at_any_stage() {
    let server = Server::start_with(&Folders::new(), &["--max-concurrent-executions", "2"]);
    let codes =
        ["console.log('here'); for (;;) {}", "console.log('here'); await new Promise((done) => setTimeout(done, 60_000))", "queued"];
    for (index, code) in codes.into_iter().enumerate() {
        let (_, answer) = server.post("/api/exec", json!({ "code": code, "execution_timeout_secs": 300 })).await;
        let id = answer["execution_id"].as_str().expect("an id");
        if index < 2 {
            let (_, page) = server.get(&format!("/api/executions/{id}/output?wait_secs=60")).await;
            assert_eq!(page["data"], "here\n", "it runs");
            continue;
        }
        // Both slots are taken, so this run is queued. The health check may queue a run too, to test whether code runs.
        let (_, health) = server.get("/api/health").await;
        assert_eq!(health["engine"]["running"], 2);
        assert!(health["engine"]["queued"].as_u64() >= Some(1), "{health}");
    }
    let (_, list) = server.get("/api/executions?status=running").await;
    let ids: Vec<_> = list["executions"].as_array().expect("a list").iter().map(|entry| entry["execution_id"].clone()).collect();
    assert_eq!(ids.len(), 3);
    for id in &ids {
        let path = format!("/api/executions/{}/cancel", id.as_str().expect("an id"));
        assert_eq!(server.post(&path, json!({})).await, (200, json!({ "ok": true })));
        let record = ended(&server, id).await;
        assert_eq!((&record["status"], &record["error"]), (&json!("cancelled"), &json!("the run was cancelled")));
        let (status, problem) = server.post(&path, json!({})).await;
        assert_eq!((status, &problem["ok"]), (409, &json!(false)), "a status is final");
        assert_eq!(problem["error"], problem["detail"]);
        assert!(problem["error"].as_str().expect("an error").contains("it is cancelled"), "{problem}");
    }
    assert_eq!(output(&server, &ids[2]).await, "here\n", "output written before is kept");
    let (status, problem) = server.post(&format!("/api/executions/{}/cancel", "0".repeat(32)), json!({})).await;
    assert_eq!((status, &problem["ok"]), (404, &json!(false)));
}

#[tokio::test]
async fn the_time_limit_counts_from_the_start_of_the_code() {
    let server = Server::start_with(&Folders::new(), &["--max-concurrent-executions", "1"]);
    let slow = "const end = Date.now() + 2500; while (Date.now() < end);";
    let (_, first) = server.post("/api/exec", json!({ "code": slow })).await;
    let queued = server.run_with(json!({ "code": "1", "execution_timeout_secs": 1 })).await;
    assert_eq!(queued["status"], "completed", "waiting does not count: {queued}");
    assert_eq!(ended(&server, &first["execution_id"]).await["status"], "completed");
}

#[tokio::test]
async fn lists_are_newest_first_and_can_be_filtered() {
    let server = Server::start();
    let mut ids = Vec::new();
    for (code, session) in [("1", Some("a")), ("throw 1", Some("a")), ("2", None), ("3", Some("b"))] {
        ids.push(server.run_with(json!({ "code": code, "session": session })).await["execution_id"].clone());
    }
    ids.reverse();
    let listed = async |query: &str| {
        let (status, list) = server.get(&format!("/api/executions{query}")).await;
        assert_eq!(status, 200, "{list}");
        (
            list["executions"].as_array().expect("a list").iter().map(|entry| entry["execution_id"].clone()).collect::<Vec<_>>(),
            list["next_cursor"].clone(),
        )
    };
    assert_eq!(listed("").await, (ids.clone(), Value::Null));
    assert_eq!(listed("?status=failed").await.0, [ids[2].clone()]);
    assert_eq!(listed("?session=a").await.0, [ids[2].clone(), ids[3].clone()]);
    let (page, cursor) = listed("?limit=3").await;
    assert_eq!(page, ids[..3]);
    assert_eq!(listed(&format!("?limit=3&cursor={}", cursor.as_str().expect("more"))).await, (ids[3..].to_vec(), Value::Null));
    let (_, list) = server.get("/api/executions?limit=1").await;
    let entry = list["executions"][0].as_object().expect("an entry");
    assert_eq!(entry.keys().collect::<Vec<_>>(), ["completed_at", "execution_id", "started_at", "status"]);
    for (query, expected) in [
        ("?status=done", "`status` is \"done\": allowed are `running`"),
        ("?limit=0", "`limit` is 0: expected an integer from 1 to 10000"),
        ("?cursor=x", "`cursor` is `x`"),
        ("?colour=red", "`colour` is not a parameter of list_executions"),
        ("?limit=1&limit=2", "`limit` is given twice"),
        ("?limit=ten", "`limit` is \"ten\": expected an integer"),
        ("?session=%ff", "not UTF-8"),
    ] {
        let (status, problem) = server.get(&format!("/api/executions{query}")).await;
        assert_eq!(status, 400, "{query}");
        assert!(problem["detail"].as_str().expect("a detail").contains(expected), "{problem}");
    }
}

#[tokio::test]
async fn output_can_be_read_during_the_run() {
    let server = Server::start();
    let code = "console.log('one'); await new Promise((done) => setTimeout(done, 60_000))";
    let (_, answer) = server.post("/api/exec", json!({ "code": code })).await;
    let id = answer["execution_id"].as_str().expect("an id");
    let (_, page) = server.get(&format!("/api/executions/{id}/output?wait_secs=60")).await;
    let expected = json!({
        "execution_id": id, "data": "one\n", "start_line": 1, "end_line": 1, "next_line_offset": 2, "total_lines": 1,
        "start_byte": 0, "end_byte": 4, "next_byte_offset": 4, "total_bytes": 4, "has_more": false, "status": "running",
    });
    assert_eq!(page, expected);
    let (_, past) = server.get(&format!("/api/executions/{id}/output?byte_offset=4")).await;
    assert_eq!(
        (&past["data"], &past["next_byte_offset"], &past["start_byte"], &past["end_byte"]),
        (&json!(""), &json!(4), &json!(4), &json!(4))
    );
    for query in [
        "line_offset=0",
        "line_limit=0",
        "line_limit=10001",
        "byte_offset=-1",
        "byte_offset=0&byte_limit=0",
        "byte_offset=0&byte_limit=4194305",
        "wait_secs=301",
    ] {
        let (status, problem) = server.get(&format!("/api/executions/{id}/output?{query}")).await;
        assert_eq!(status, 400, "{query}: {problem}");
        let name = query.rsplit('&').next().and_then(|pair| pair.split('=').next()).expect("a name");
        assert!(problem["detail"].as_str().expect("a detail").starts_with(&format!("`{name}` is ")), "{problem}");
    }
}

#[tokio::test]
async fn output_over_its_limit_is_dropped_with_a_note() {
    let server = Server::start_with(&Folders::new(), &["--output-max-mb", "1"]);
    let record = server.run("for (let i = 0; i < 3000; i++) console.log('x'.repeat(999)); 'done'").await;
    assert_eq!(record["result"], "\"done\"", "the run continues");
    let text = output(&server, &record["execution_id"]).await;
    assert!(text.ends_with("\n[output truncated: more than 1 MB was written]\n"), "{}", &text[text.len() - 100..]);
    assert!(text.len() <= (1 << 20) + 100, "{}", text.len());
}

#[tokio::test]
async fn results_are_complete_and_too_large_ones_fail() {
    let server = Server::start();
    let record = server.run("'é'.repeat(2_000_000)").await;
    assert_eq!(record["result"].as_str().map(str::len), Some(4_000_002));
    let (_, again) = server.get(&format!("/api/executions/{}", record["execution_id"].as_str().expect("an id"))).await;
    assert_eq!(again["result"], record["result"]);
    let too_large = server.run("'x'.repeat(17 << 20)").await;
    assert_eq!(too_large["status"], "failed", "{}", too_large["error"]);
}

#[tokio::test]
async fn code_reads_the_headers_of_its_own_call() {
    let server = Server::start();
    let request = server.client.post(format!("{}/api/exec", server.url)).header("X-MCP-User", "ada").header("X-Other", "no");
    let record: Value = request
        .json(&json!({ "code": "Object.entries(mcp.headers)", "wait_secs": 60 }))
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(record["result"], "[[\"x-mcp-user\",\"ada\"]]");
    let next = server.run_with(json!({ "code": "Object.entries(mcp.headers)", "heap": record["heap"] })).await;
    assert_eq!(next["result"], "[]", "they are never part of a heap");
}

#[tokio::test]
async fn stateless_mode_returns_the_output_and_stores_nothing() {
    let server = Server::start_with(&Folders::new(), &["--stateless"]);
    assert_eq!(
        server.post("/api/exec", json!({ "code": "console.log('a'); console.log('b')" })).await,
        (200, json!({ "output": "a\nb\n" }))
    );
    let (status, failed) = server.post("/api/exec", json!({ "code": "console.log('a'); throw new Error('no')" })).await;
    assert_eq!((status, &failed["output"]), (200, &json!("a\n")));
    assert!(failed["error"].as_str().expect("an error").starts_with("Error: no"), "{failed}");
    let (_, timed_out) = server.post("/api/exec", json!({ "code": "console.log('a'); for (;;) {}", "execution_timeout_secs": 1 })).await;
    assert_eq!(timed_out["output"], "a\n");
    assert!(timed_out["error"].as_str().expect("an error").contains("1 s"), "{timed_out}");
    for name in ["heap", "tags", "session", "wait_secs"] {
        let (status, problem) = server.post("/api/exec", json!({ "code": "1", name: "x" })).await;
        assert_eq!(status, 400);
        assert!(problem["detail"].as_str().expect("a detail").starts_with(&format!("`{name}` is not a parameter of run_js")), "{problem}");
    }
    for path in ["/api/executions", "/api/heaps", "/api/sessions", "/api/session-snapshots"] {
        assert_eq!(server.get(path).await.0, 404, "{path}");
    }
    assert_eq!(server.get("/api/health").await.0, 200);
    assert_eq!(server.terminate(), Some(0));
}

#[tokio::test]
async fn runs_that_wait_for_timers_do_not_delay_others() {
    let server = Server::start();
    let mut ids = Vec::new();
    for _ in 0..50 {
        let (status, answer) = server.post("/api/exec", json!({ "code": "await new Promise((done) => setTimeout(done, 60_000))" })).await;
        assert_eq!(status, 202);
        ids.push(answer["execution_id"].clone());
    }
    assert_eq!(server.run("1").await["status"], "completed");
    let (_, list) = server.get("/api/executions?status=running").await;
    assert_eq!(list["executions"].as_array().map(Vec::len), Some(50), "they all still run");
}
