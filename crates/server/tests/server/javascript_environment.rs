//! The environment of code on the running server: each rule of that section of SPECIFICATION.md, on fresh and on restored heaps.
//!
//! The engine's own tests cover the details; these show that the server does not change them.

use crate::fixture::{Folders, Server};
use serde_json::{Value, json};

/// The result of code that must complete.
async fn result(server: &Server, code: &str) -> String {
    let record = server.run(code).await;
    record["result"].as_str().unwrap_or_else(|| panic!("{code}: {record}")).to_owned()
}

async fn error(server: &Server, code: &str, heap: &Value) -> String {
    let record = server.run_with(json!({ "code": code, "heap": heap })).await;
    assert_eq!(record["status"], "failed", "{code}: {record}");
    record["error"].as_str().expect("an error").to_owned()
}

async fn output(server: &Server, record: &Value) -> String {
    let id = record["execution_id"].as_str().expect("an id");
    server.get(&format!("/api/executions/{id}/output?line_limit=1000")).await.1["data"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn completion_values_are_json_or_a_readable_inspection() {
    let server = Server::start();
    for (code, expected) in [
        ("1+1", "2"),
        ("'é\"'", "\"é\\\"\""),
        ("[1,'a',null,true,{b:[]}]", r#"[1,"a",null,true,{"b":[]}]"#),
        ("new Map([['a', 1]])", "Map(1) { 'a' => 1 }"),
        ("(function f() {})", "[Function: f]"),
        ("12n", "12n"),
        ("undefined", "undefined"),
        ("-0", "-0"),
        ("let c = { a: 1 }; c.self = c; c", "<ref *1> { a: 1, self: [Circular *1] }"),
        ("await Promise.resolve(7)", "7"),
        ("await new Promise(done => setTimeout(() => done('later'), 5))", "\"later\""),
        (
            "const n: number = 2; interface A { x: number } enum E { One = 1, Two } [n, E.Two, ({ x: 1 } satisfies A).x as number]",
            "[2,2,1]",
        ),
        (
            "class P { constructor(private x: number, public y = 2) {} sum<T extends number>(z: T) { return this.x + this.y + z } } new P(1).sum(3)",
            "6",
        ),
    ] {
        assert_eq!(result(&server, code).await, expected, "{code}");
    }
}

#[tokio::test]
async fn a_promise_that_can_never_settle_fails_immediately() {
    let server = Server::start();
    let began = std::time::Instant::now();
    let message = error(&server, "await new Promise(() => {})", &Value::Null).await;
    assert!(message.contains("can never settle"), "{message}");
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "the limit is 30 s: {:?}", began.elapsed());
}

#[tokio::test]
async fn declarations_persist_and_may_be_redeclared() {
    let server = Server::start();
    let mut heap = Value::Null;
    for (code, expected) in [
        ("let a = 1; const b = 2; class C { n() { return a + b } } function f() { return new C().n() } f()", "3"),
        ("a = 10; f()", "12"),
        ("let a = 5; const b = 6; f()", "11"),
        ("class C { n() { return 'again' } } function f() { return new C().n() } f()", "\"again\""),
    ] {
        let record = server.run_with(json!({ "code": code, "heap": heap })).await;
        assert_eq!(record["result"], expected, "{code}: {record}");
        heap = record["heap"].clone();
    }
    // Errors, their line numbers and the console are the same on a restored heap.
    let thrower = "\n\n  throw new RangeError('mine')";
    for heap in [&Value::Null, &heap] {
        let message = error(&server, thrower, heap).await;
        assert!(message.contains("RangeError: mine") && message.contains("main.js:3:9"), "{message}");
        let message = error(&server, "let x: number = 1;\nlet y: string = missing", heap).await;
        assert!(message.contains("ReferenceError: missing is not defined") && message.contains("main.ts:2:17"), "{message}");
        let message = error(&server, "let a = 1;\nlet b = ;", heap).await;
        assert!(message.contains("SyntaxError") && message.contains("2:9"), "{message}");
        let record =
            server.run_with(json!({ "code": "console.log('%s is %d', 'n', 4, { a: [1] }); console.error('e')", "heap": heap })).await;
        assert_eq!(output(&server, &record).await, "n is 4 { a: [ 1 ] }\ne\n");
    }
}

#[tokio::test]
async fn console_output_matches_node() {
    let server = Server::start();
    let code = "console.info('i'); console.debug('d'); console.warn('w'); console.dir({ a: 1 }); console.assert(1 > 2, 'no'); console.count(); \
        console.count(); console.group('g'); console.log('in'); console.groupEnd(); console.table([{ a: 1 }]); console.log('%j', { a: 1 }); \
        console.log(new Map([['k', new Set([1])]])); console.time('t'); console.timeEnd('t'); console.trace('here')";
    let record = server.run(code).await;
    let written = output(&server, &record).await;
    let expected = "i\nd\nw\n{ a: 1 }\nAssertion failed: no\ndefault: 1\ndefault: 2\ng\n  in\n┌─────────┬───┐\n│ (index) │ a │\n├─────────┼───┤\n│ 0       │ 1 │\n└─────────┴───┘\n{\"a\":1}\nMap(1) { 'k' => Set(1) { 1 } }\nt: ";
    assert!(written.starts_with(expected), "{written}");
    assert!(written.contains("Trace: here\n"), "{written}");
}

#[tokio::test]
async fn web_apis_exist_and_system_apis_do_not() {
    let server = Server::start();
    let there = "[setTimeout, setInterval, setImmediate, queueMicrotask, structuredClone, TextEncoder, TextDecoder, URL, URLSearchParams, atob, btoa, \
        AbortController, Event, EventTarget, performance.now, crypto.randomUUID, crypto.getRandomValues, crypto.subtle.digest, \
        Intl.NumberFormat].every(f => typeof f === 'function')";
    assert_eq!(result(&server, there).await, "true");
    let absent = "[typeof require, typeof process, typeof fetch, typeof Worker, typeof Deno].every(t => t === 'undefined')";
    assert_eq!(result(&server, absent).await, "true");
    assert_eq!(result(&server, "await import('file:///etc/passwd').catch(e => e.name)").await, "\"TypeError\"");
    // Two runs on the same heap draw different random numbers.
    let heap = server.run("var drawn = 1").await["heap"].clone();
    let draw = json!({ "code": "[Math.random(), crypto.randomUUID()].join()", "heap": heap });
    assert_ne!(server.run_with(draw.clone()).await["result"], server.run_with(draw).await["result"]);
}

#[tokio::test]
async fn headers_belong_to_one_run_and_are_read_only() {
    let server = Server::start();
    let post = |body: Value, header: bool| {
        let request = server.client.post(format!("{}/api/exec", server.url)).json(&body);
        let request = if header { request.header("X-MCP-User", "alice-the-secret") } else { request };
        async move { request.send().await.expect("an answer").json::<Value>().await.expect("JSON") }
    };
    let code = "mcp.headers['x-mcp-user'] = 'mallory'; var kept = mcp.headers; mcp.headers['x-mcp-user']";
    let record = post(json!({ "code": code, "wait_secs": 60 }), true).await;
    assert_eq!(record["result"], "\"alice-the-secret\"", "{record}");
    let file = std::fs::read(server.folders().heaps().join(record["heap"].as_str().expect("a heap"))).expect("the heap");
    assert!(!file.windows(16).any(|window| window == b"alice-the-secret"), "a header is on the heap");
    let later = post(
        json!({ "code": "[Object.keys(mcp.headers).length, String(kept['x-mcp-user'])]", "heap": record["heap"], "wait_secs": 60 }),
        false,
    )
    .await;
    assert_eq!(later["result"], "[0,\"undefined\"]", "{later}");
}

#[tokio::test]
async fn a_value_that_cannot_be_stored_fails_only_that_run() {
    let server = Server::start();
    let heap = server.run("var kept = 1").await["heap"].clone();
    for code in ["var f = new Intl.NumberFormat('de')", "var r = new FinalizationRegistry(() => {}); r.register({}, 1)"] {
        let record = server.run_with(json!({ "code": code, "heap": heap })).await;
        match record["status"].as_str() {
            Some("completed") => {}
            Some("failed") => assert!(record["error"].as_str().is_some_and(|error| error.contains("can't be saved")), "{record}"),
            _ => panic!("{record}"),
        }
        assert_eq!(server.run_with(json!({ "code": "kept", "heap": heap })).await["result"], "1");
    }
}

#[tokio::test]
async fn the_memory_limit_error_says_how_to_raise_it() {
    let server = Server::start_with(&Folders::new(), &["--heap-memory-max", "32"]);
    let hoards = "console.log('begins'); const all = []; for (;;) all.push(new Array(1e4).fill(all.length))";
    for (asked, cap) in [(Value::Null, 32), (json!(16), 16)] {
        let record = server.run_with(json!({ "code": hoards, "heap_memory_max_mb": asked })).await;
        assert_eq!((&record["status"], &record["heap"], &record["result"]), (&json!("failed"), &Value::Null, &Value::Null), "{record}");
        let expected = format!(
            "the run needed more memory than its cap of {cap} MB: keep less on the heap, or raise `heap_memory_max_mb`, up to the maximum of the server"
        );
        assert_eq!(record["error"], expected);
        assert_eq!(output(&server, &record).await, "begins\n", "output written before is kept");
    }
    let fits =
        json!({ "code": "const all = Array.from({ length: 100 }, () => new Array(1e5).fill(1.5)); all.length", "heap_memory_max_mb": 512 });
    assert_eq!(server.run_with(fits).await["result"], "100");
}
