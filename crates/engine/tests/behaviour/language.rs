//! Completion values, globals and the event loop.

use super::support::{Chain, check_results};
use heapstead_types::Failure;

#[tokio::test]
async fn a_result_is_json_if_possible_and_an_inspection_otherwise() {
    check_results(&[
        ("1+1", "2"),
        ("'é\\u2028\"'", "\"é\u{2028}\\\"\""),
        ("[1,'a',null,true,{b:[]}]", r#"[1,"a",null,true,{"b":[]}]"#),
        ("{a:1}", r#"{"a":1}"#),
        ("{ let a = 1; a + 1 }", "2"),
        ("undefined", "undefined"),
        ("let x = 1", "undefined"),
        ("null", "null"),
        ("-0", "-0"),
        ("NaN", "NaN"),
        ("12n", "12n"),
        ("Symbol('s')", "Symbol(s)"),
        ("(function f() {})", "[Function: f]"),
        ("class A {}; A", "[class A]"),
        ("new Map([['a',1]])", "Map(1) { 'a' => 1 }"),
        ("new Set([1])", "Set(1) { 1 }"),
        ("new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("let c = {a:1}; c.self = c; c", "<ref *1> { a: 1, self: [Circular *1] }"),
        ("Promise.resolve(5)", "Promise { 5 }"),
        ("[1,,2]", "[ 1, <1 empty item>, 2 ]"),
        ("({a: undefined})", "{ a: undefined }"),
        ("({get a() { throw 1 }})", "{ a: [Getter] }"),
        ("({toJSON() { return 'lie' }, v: 1}).v", "1"),
        ("'\\ud800'", "\"\\ud800\""),
    ])
    .await;
}

#[tokio::test]
async fn the_run_ends_when_its_promise_has_settled_and_the_loop_is_empty() {
    let mut chain = Chain::start().await;
    assert_eq!(chain.result("await new Promise(r => setTimeout(() => r(7), 5))").await, "7");
    assert_eq!(chain.output("setTimeout(() => console.log('later'), 10); console.log('now')").await, "now\nlater\n");
    assert_eq!(
        chain.output("setTimeout(() => console.log(2)); setImmediate(() => console.log(3)); queueMicrotask(() => console.log(1))").await,
        "1\n2\n3\n"
    );
    assert_eq!(
        chain.output("let n = 0; const i = setInterval(() => { console.log(++n); if (n === 3) clearInterval(i) }, 1)").await,
        "1\n2\n3\n"
    );
    assert_eq!(chain.failure("await new Promise(() => {})").await, Failure::NeverSettles);
    assert_eq!(chain.result("n").await, "3");
}

#[tokio::test]
async fn web_globals_exist_and_nothing_of_the_machine_does() {
    check_results(&[
        (
            "[setTimeout, setInterval, setImmediate, queueMicrotask, structuredClone, TextEncoder, TextDecoder, URL, URLSearchParams, atob, btoa, \
             AbortController, Event, EventTarget, performance.now, crypto.randomUUID, crypto.getRandomValues, crypto.subtle.digest, Intl.NumberFormat, \
             console.log].every(f => typeof f === 'function')",
            "true",
        ),
        ("[typeof require, typeof process, typeof fetch, typeof Deno, typeof Worker, typeof gc, typeof global].join()", "\"undefined,undefined,undefined,undefined,undefined,undefined,undefined\""),
        ("try { constructor.constructor('return process')() } catch (e) { e.name }", "\"ReferenceError\""),
        ("await import('fs').catch(e => e.message)", "\"import('fs') is not available: there are no modules, files or network here\""),
        ("await import('file:///etc/passwd').catch(e => e.name)", "\"TypeError\""),
        ("[...new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode('abc')))].slice(0, 3)", "[186,120,22]"),
        ("performance.now() < 5000 && Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000", "true"),
        ("Intl.DateTimeFormat().resolvedOptions().timeZone", "\"UTC\""),
    ])
    .await;
}

#[tokio::test]
async fn headers_belong_to_one_run_and_are_read_only() {
    let engine = super::support::engine().await;
    let mut job = super::support::job(
        "mcp.headers['x-mcp-' + 'user'] = 'mallory'; globalThis.kept = mcp.headers; mcp.headers",
        heapstead_engine::Kind::Stateful(None),
    );
    job.headers = vec![("x-mcp-user".into(), "alice".into())];
    let (_, outcome) = engine.submit(job).expect("accepted").finish().await;
    let heapstead_engine::Outcome::Completed { result, heap, .. } = outcome else { panic!("{outcome:?}") };
    assert!(result.contains("alice"), "{result}");
    let payload = heap.as_ref().expect("heap").payload().expect("payload");
    assert!(!payload.windows(5).any(|window| window == b"alice"), "a header's value is in the snapshot");
    assert!(!payload.windows(10).any(|window| window == b"x-mcp-user"), "a header's name is in the snapshot");
    let mut chain = Chain::on(&engine, heap);
    assert_eq!(chain.result("Object.keys(mcp.headers).length").await, "0");
    assert_eq!(chain.result("String(kept['x-mcp-user'])").await, "\"undefined\"");
    assert_eq!(chain.result("[Reflect.ownKeys(kept).length, 'x-mcp-user' in kept]").await, "[0,false]");
}

#[tokio::test]
async fn headers_look_like_a_read_only_plain_object() {
    let engine = super::support::engine().await;
    for (code, expected) in [
        ("mcp.headers", "{ 'x-mcp-a': '1', 'x-mcp-b': '2' }"),
        (
            "[mcp.headers['x-mcp-a'], mcp.headers.nope === undefined, 'x-mcp-b' in mcp.headers, 'nope' in mcp.headers]",
            r#"["1",true,true,false]"#,
        ),
        ("({ ...mcp.headers })", r#"{"x-mcp-a":"1","x-mcp-b":"2"}"#),
        ("JSON.stringify(mcp.headers)", r#""{\"x-mcp-a\":\"1\",\"x-mcp-b\":\"2\"}""#),
        ("Object.entries(mcp.headers)", r#"[["x-mcp-a","1"],["x-mcp-b","2"]]"#),
        ("const seen = []; for (const name in mcp.headers) seen.push(name); seen", r#"["x-mcp-a","x-mcp-b"]"#),
        ("mcp.headers.hasOwnProperty('x-mcp-a') && mcp.headers.toString()", r#""[object Object]""#),
        (
            "Object.getOwnPropertyDescriptor(mcp.headers, 'x-mcp-a')",
            r#"{"value":"1","writable":false,"enumerable":true,"configurable":true}"#,
        ),
        (
            "mcp.headers['x-mcp-a'] = 'x'; delete mcp.headers['x-mcp-b']; Object.keys(mcp.headers).length + mcp.headers['x-mcp-a']",
            r#""21""#,
        ),
        (
            "[() => { 'use strict'; mcp.headers.a = 1 }, () => { 'use strict'; delete mcp.headers['x-mcp-a'] }, () => Object.freeze(mcp.headers), \
             () => Object.setPrototypeOf(mcp.headers, null), () => Object.defineProperty(mcp.headers, 'a', { value: 1 })] \
             .map(f => { try { f() } catch (e) { return e.name } })",
            r#"["TypeError","TypeError","TypeError","TypeError","TypeError"]"#,
        ),
        ("mcp.headers === mcp.headers", "true"),
    ] {
        let mut job = super::support::job(code, heapstead_engine::Kind::Stateful(None));
        job.headers = vec![("x-mcp-a".into(), "1".into()), ("x-mcp-b".into(), "2".into())];
        let (_, outcome) = engine.submit(job).expect("accepted").finish().await;
        let heapstead_engine::Outcome::Completed { result, .. } = outcome else { panic!("{code}\n{outcome:?}") };
        assert_eq!(result, expected, "{code}");
    }
}
