//! Tests the statements of docs/language.md, one case per statement, in the page's order.

use super::support::{Chain, engine, job, run};
use heapstead_engine::{Engine, Kind, Outcome};

/// The expected end of code: its result, or the beginning of its failure.
#[derive(Clone, Copy)]
enum Ends {
    With(&'static str),
    Fails(&'static str),
}
use Ends::{Fails, With};

async fn check(engine: &Engine, code: &str, kind: Kind, expected: Ends) {
    let name = if matches!(kind, Kind::Stateless) { "stateless" } else { "stateful" };
    match (expected, run(engine, code, kind).await.1) {
        (With(expected), Outcome::Completed { result, .. }) => assert_eq!(result, expected, "{name}: {code}"),
        (Fails(expected), Outcome::Failed(failure)) => {
            let failure = failure.to_string();
            assert!(failure.contains(expected), "{name}: {code}\n  failed with {failure}");
        }
        (_, other) => panic!("{name}: {code}\n  ended as {other:?}"),
    }
}

async fn check_both(cases: &[(&str, Ends)]) {
    let engine = engine().await;
    for (code, expected) in cases {
        check(&engine, code, Kind::Stateful(None), *expected).await;
        check(&engine, code, Kind::Stateless, *expected).await;
    }
}

#[tokio::test]
async fn a_run() {
    check_both(&[
        ("undeclared = 5; typeof undeclared + (this === globalThis)", With("\"numbertrue\"")),
        ("1 + 1", With("2")),
        ("if (true) { 5 }", With("5")),
        ("let declared = 1", With("undefined")),
        ("{a: 1}", With("{\"a\":1}")),
        ("Promise.resolve(1)", With("Promise { 1 }")),
        ("await Promise.resolve(1)", With("1")),
        ("let a = 1; let a = 2", Fails("SyntaxError")),
        ("const c = 1; c = 2", Fails("TypeError")),
        ("import x from 'y'", Fails("SyntaxError")),
        ("export const x = 1", Fails("SyntaxError")),
        ("import.meta", Fails("SyntaxError")),
        ("return 5", Fails("SyntaxError")),
        ("new.target", Fails("SyntaxError")),
        ("arguments", Fails("ReferenceError")),
        ("AbortSignal.timeout(60000); 1", With("1")),
        ("await new Promise(() => {})", Fails("never")),
        ("throw new Error('in code')", Fails("in code")),
        ("setTimeout(() => { throw new Error('in a timer') }); 1", Fails("in a timer")),
        ("queueMicrotask(() => { throw new Error('in a microtask') }); 1", Fails("in a microtask")),
        ("Promise.reject(new Error('rejected')); 1", Fails("rejected")),
    ])
    .await;
    let mut chain = Chain::start().await;
    chain.result("let a = 1; const b = 2; class C {} function d() { return 4 } var e = 5; 0").await;
    assert_eq!(
        chain.result("let a = 10; const b = 20; class C { x = 1 } function d() { return 40 } var e = 50; [a, b, new C().x, d(), e]").await,
        "[10,20,1,40,50]"
    );
}

#[tokio::test]
async fn private_names_at_the_top_level() {
    let class = "class P { #count = 1; static #made = 2; #method() { return 3 } get #getter() { return 4 } }; const p = new P();";
    let cases = [
        ("p.#count", With("1")),
        ("p.#count = 2; p.#count", With("2")),
        ("P.#made", With("2")),
        ("p.#method()", With("3")),
        ("p.#getter", With("4")),
        ("p?.#count", With("1")),
        ("await p.#count", With("1")),
        ("(() => p.#count)()", Fails("SyntaxError: Private field '#count' must be declared in an enclosing class")),
        ("{ p.#count; }", Fails("SyntaxError")),
        ("eval('p.#count')", Fails("SyntaxError")),
        ("#count in p", Fails("ReferenceError")),
        ("({}).#count", Fails("Error: Cannot read private member #count")),
        ("Array.isArray(new URL('http://h/').#record)", With("true")),
    ];
    let engine = engine().await;
    let mut chain = Chain::on(&engine, None);
    chain.result(class).await;
    for (code, expected) in cases {
        let joined = format!("{class}\n{code}");
        check(&engine, &joined, Kind::Stateful(None), expected).await;
        check(&engine, &joined, Kind::Stateless, expected).await;
        check(&engine, code, Kind::Stateful(chain.heap.clone()), expected).await;
    }
}

#[tokio::test]
async fn typescript() {
    check_both(&[
        ("type T = number; const n: T = 5; n", With("5")),
        ("enum E { A, B } E.B", With("1")),
        ("namespace N { export const x = 6 } N.x", With("6")),
        ("class A { constructor(public x: number) {} } new A(7).x", With("7")),
        ("const n: number = 'not checked'; n", With("\"not checked\"")),
        ("let f = 1, T = 2, x = 3; f<T>(x)", Fails("main.ts")),
        ("null.x", Fails("main.js:1:6")),
        ("const a = <div/>", Fails("SyntaxError")),
        ("function dec() {} @dec class A {}", Fails("SyntaxError")),
        ("class A { accessor y = 2 }", Fails("SyntaxError")),
    ])
    .await;
}

#[tokio::test]
async fn results_and_console() {
    check_both(&[
        ("[1, 'a', { b: null }]", With("[1,\"a\",{\"b\":null}]")),
        ("new Map([['a', 1]])", With("Map(1) { 'a' => 1 }")),
        ("[undefined]", With("[ undefined ]")),
        ("[1,,2]", With("[ 1, <1 empty item>, 2 ]")),
        ("12n", With("12n")),
        ("-0", With("-0")),
        ("NaN", With("NaN")),
        ("Symbol('s')", With("Symbol(s)")),
        ("let c = {a: 1}; c.self = c; c", With("<ref *1> { a: 1, self: [Circular *1] }")),
        ("({ get a() { throw 1 }, toJSON() { throw 2 } })", With("{ a: [Getter], toJSON: [Function: toJSON] }")),
        ("({ [Symbol.for('nodejs.util.inspect.custom')]: () => 'as it says' })", With("as it says")),
        (
            "'log info debug warn error trace dir dirxml table assert count countReset time timeLog timeEnd group groupCollapsed groupEnd clear' \
             .split(' ').filter(name => typeof console[name] !== 'function')",
            With("[]"),
        ),
        (
            "const bad = { toString() { throw new RangeError('mine') } }; \
             ['count', 'countReset', 'time', 'timeLog', 'timeEnd'].map(name => { try { console[name](bad) } catch (e) { return e.message } })",
            With("[\"mine\",\"mine\",\"mine\",\"mine\",\"mine\"]"),
        ),
    ])
    .await;
    let engine = engine().await;
    let printed = |code: &'static str| {
        let engine = engine.clone();
        async move { run(&engine, code, Kind::Stateful(None)).await.0 }
    };
    assert_eq!(printed("console.log('a'); console.error('b'); console.warn('c'); console.clear(); console.log('d')").await, "a\nb\nc\nd\n");
    assert_eq!(
        printed(
            "const bad = { toString() { throw 1 }, valueOf() { throw 2 }, toJSON() { throw 3 } }; console.log('%d %i %f', bad, bad, bad)"
        )
        .await,
        "NaN NaN NaN\n"
    );
    assert_eq!(printed("console.log('%s', { toString() { throw 1 } })").await, "{ toString: [Function: toString] }\n");
    assert_eq!(printed("console.log('%j', { toJSON() { throw 1 } })").await, "{ toJSON: [Function: toJSON] }\n");
    assert!(!printed("console.log('%o', new URL('http://h/'))").await.contains("URLContext"));
}

#[tokio::test]
async fn globals() {
    check_both(&[
        (
            "[setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, queueMicrotask, TextEncoder, TextDecoder, atob, btoa, URL, \
             URLSearchParams, structuredClone, Event, CustomEvent, EventTarget, AbortController, AbortSignal, DOMException, QuotaExceededError, \
             crypto.getRandomValues, crypto.randomUUID, crypto.subtle.digest, performance.now, Intl.NumberFormat].every(f => typeof f === 'function')",
            With("true"),
        ),
        ("Object.keys(mcp.headers)", With("[]")),
        ("[typeof DisposableStack, typeof AsyncDisposableStack, typeof SuppressedError]", With("[\"undefined\",\"undefined\",\"undefined\"]")),
        ("[typeof Symbol.dispose, typeof Symbol.asyncDispose, typeof Iterator.prototype[Symbol.dispose]]", With("[\"symbol\",\"symbol\",\"undefined\"]")),
        ("{ using x = null }", Fails("SyntaxError")),
        ("await using x = null", Fails("SyntaxError")),
        ("[Atomics.pause, Promise.try, RegExp.escape].every(f => typeof f === 'function')", With("true")),
        ("[typeof Atomics.waitAsync, typeof Intl.v8BreakIterator, typeof gc]", With("[\"undefined\",\"undefined\",\"undefined\"]")),
        ("Atomics.wait(new Int32Array(4), 0, 0, 1)", Fails("TypeError")),
        ("%DebugPrint(1)", Fails("SyntaxError")),
    ])
    .await;
    let engine = engine().await;
    let only = "[typeof WebAssembly, typeof SharedArrayBuffer, typeof Temporal, typeof Date.prototype.toTemporalInstant]";
    check(&engine, only, Kind::Stateful(None), With("[\"undefined\",\"undefined\",\"undefined\",\"undefined\"]")).await;
    check(&engine, only, Kind::Stateless, With("[\"object\",\"function\",\"object\",\"function\"]")).await;
    check(&engine, "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)", Kind::Stateless, Fails("TypeError")).await;
}

#[tokio::test]
async fn headers() {
    let engine = engine().await;
    for (code, expected) in [
        ("mcp.headers['x-mcp-user']", "\"alice\""),
        ("mcp.headers['x-mcp-user'] = 1; delete mcp.headers['x-mcp-user']; Object.entries(mcp.headers)", "[[\"x-mcp-user\",\"alice\"]]"),
        ("try { (function () { 'use strict'; mcp.headers.a = 1 })() } catch (e) { e.name }", "\"TypeError\""),
        ("try { Object.freeze(mcp.headers) } catch (e) { e.name }", "\"TypeError\""),
        ("try { structuredClone(mcp.headers) } catch (e) { e.name }", "\"DataCloneError\""),
        ("structuredClone({ ...mcp.headers })", "{\"x-mcp-user\":\"alice\"}"),
    ] {
        for kind in [Kind::Stateful(None), Kind::Stateless] {
            let mut job = job(code, kind);
            job.headers = vec![("x-mcp-user".into(), "alice".into())];
            let Outcome::Completed { result, .. } = engine.submit(job).expect("accepted").finish().await.1 else { panic!("{code}") };
            assert_eq!(result, expected, "{code}");
        }
    }
}

#[tokio::test]
async fn what_does_not_survive() {
    let engine = engine().await;
    for (code, expected) in [
        ("globalThis.b = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); 1", "maxByteLength of 4 GiB or more"),
        (
            "Object.defineProperty(globalThis, 'console', { get() { return 1 }, configurable: false }); 1",
            "`console` was replaced by a property that is not configurable",
        ),
    ] {
        check(&engine, code, Kind::Stateful(None), Fails(expected)).await;
        check(&engine, code, Kind::Stateless, With("1")).await;
    }
    let mut chain = Chain::on(&engine, None);
    chain.result("var weak = new WeakRef({}), first = setTimeout(() => {}, 1), never = new Promise(r => AbortSignal.timeout(60000).addEventListener('abort', r)); var seen = 0; new FinalizationRegistry(() => seen++).register({}, 1); 0").await;
    assert_eq!(chain.result("weak.deref()").await, "undefined");
    assert_eq!(chain.result("[setTimeout(() => {}, 1) > first, seen]").await, "[true,0]");
    assert!(chain.failure("await never").await.to_string().contains("never"));
}

#[tokio::test]
async fn differences_from_node() {
    check_both(&[
        (
            "['require', 'process', 'Buffer', 'global', 'module', 'fetch', 'navigator', 'localStorage', 'Blob', 'File', 'FormData', 'Headers', 'Request', 'Response', \
             'WebSocket', 'EventSource', 'MessageChannel', 'BroadcastChannel', 'Worker', 'URLPattern', 'ReadableStream', 'WritableStream', 'TransformStream', \
             'CompressionStream', 'TextDecoderStream', 'PerformanceObserver', 'PerformanceEntry'].filter(name => name in globalThis)",
            With("[]"),
        ),
        ("await import('fs').catch(e => e.message)", With("\"import('fs') is not available: there are no modules, files or network here\"")),
        ("[typeof setTimeout(() => {}), typeof setInterval(() => {}, 1) === 'number' && clearInterval(2), typeof setImmediate(() => {})]", With("[ 'number', undefined, 'number' ]")),
        ("[new Date().getTimezoneOffset(), Intl.DateTimeFormat().resolvedOptions().timeZone]", With("[0,\"UTC\"]")),
        ("Object.getOwnPropertyNames(Crypto.prototype).concat(Object.getOwnPropertyNames(SubtleCrypto.prototype))", With("[\"constructor\",\"subtle\",\"getRandomValues\",\"randomUUID\",\"constructor\",\"digest\"]")),
        ("Object.getOwnPropertyNames(Performance.prototype)", With("[\"constructor\",\"now\",\"timeOrigin\",\"toJSON\"]")),
        ("[typeof URL.createObjectURL, typeof URL.revokeObjectURL]", With("[\"undefined\",\"undefined\"]")),
        ("new TextDecoder('euc-kr', { fatal: true }).decode(new Uint8Array([0xb0, 0x41]))", With("\"캚\"")),
        ("const d = new TextDecoder('utf-8', { fatal: true }); try { d.decode(new Uint8Array([0xe2, 0xff]), { stream: true }) } catch {} d.decode(new Uint8Array([0x61]))", With("\"a\"")),
        ("const e = structuredClone(new DOMException('m', 'AbortError')); [e instanceof DOMException, e.name, e.message]", With("[false,\"Error\",\"\"]")),
        ("let n = 0; const t = new EventTarget(); t.addEventListener('x', () => n++, 0); t.dispatchEvent(new Event('x')); n", With("1")),
        ("const t = new EventTarget(); t.addEventListener('x', () => { throw new Error('first') }); t.addEventListener('x', () => console.log('second')); t.dispatchEvent(new Event('x'))", Fails("first")),
        ("Error.prepareStackTrace", With("undefined")),
        ("Error.prepareStackTrace = (error, sites) => sites[0].getThis() === undefined && sites[0].getFunction() === undefined; new Error().stack", With("true")),
    ])
    .await;
    let engine = engine().await;
    let code = "const t = new EventTarget(); t.addEventListener('x', () => { throw 1 }); t.addEventListener('x', () => console.log('second')); t.dispatchEvent(new Event('x'))";
    assert_eq!(run(&engine, code, Kind::Stateless).await.0, "second\n");
}
