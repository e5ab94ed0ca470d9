//! The same code on the same heap produces the same key, although random numbers differ.

use super::support::{Chain, engine, job, torture};
use heapstead_engine::{Engine, HeapImage, Kind, Outcome};
use std::collections::HashSet;

#[tokio::test]
async fn the_same_code_on_the_same_heap_produces_the_same_key() {
    let engine = engine().await;
    let mut parent = Chain::on(&engine, None);
    parent.result("let base = { list: Array.from({ length: 1000 }, (_, i) => ({ i, s: 'item ' + i })) }; 0").await;
    for code in [
        "1",
        "let x = base.list.map(item => item.i * 2); x.length",
        "for (let i = 0; i < 3e6; i++) base.hot = (base.hot | 0) + i; base.hot",
        "const m = new Map(); for (const item of base.list) m.set(item, item.s); m.size",
        "class K { #a = 1; b() { return this.#a } } var k = new K(); await null; k.b()",
        "new Intl.NumberFormat('de').format(1) + JSON.stringify(base.list).length",
    ] {
        let mut keys = HashSet::new();
        for _ in 0..4 {
            let mut child = Chain::on(&engine, parent.heap.clone());
            child.result(code).await;
            keys.insert(child.heap.expect("heap").key());
        }
        assert_eq!(keys.len(), 1, "{code}");
    }
}

/// Regression: the names of a run's headers stayed on its heap, so the key of the same code depended on the headers.
#[tokio::test]
async fn headers_do_not_affect_the_key() {
    let engine = engine().await;
    let many: Vec<(String, String)> = (0..100).map(|index| (format!("x-mcp-{index}"), "v".repeat(index))).collect();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let sets = [vec![], vec![pair("x-mcp-user", "alice")], vec![pair("x-mcp-user", "bob"), pair("x-mcp-tenant", "acme")], many];
    for code in [
        "1",
        "let x = { list: [1, 2, 3] }; x.list.length",
        "mcp.headers; 0",
        "mcp.headers['x-mcp-user']; 'x-mcp-user' in mcp.headers; 0",
        "JSON.stringify(mcp.headers); Object.keys(mcp.headers); Object.entries(mcp.headers); ({ ...mcp.headers }); 0",
        "for (const name in mcp.headers); 0",
        "`${mcp.headers['x-mcp-user']}${Object.getOwnPropertyDescriptor(mcp.headers, 'x-mcp-user')}`; 0",
        "'use strict'; try { mcp.headers.a = 1 } catch {} try { delete mcp.headers['x-mcp-user'] } catch {} 0",
        "globalThis.kept = mcp.headers; 0",
        "globalThis.kept = [mcp.headers, mcp.headers]; try { Object.freeze(mcp.headers) } catch {} 0",
        "var read = () => mcp.headers['x-mcp-user']; for (let i = 0; i < 1e5; i++) read(); 0",
    ] {
        let mut keys = HashSet::new();
        for headers in &sets {
            let heap = heap_of(&engine, code, headers.clone()).await;
            let payload = heap.payload().expect("payload");
            for text in ["x-mcp-tenant", "alice", "acme", "x-mcp-99"] {
                assert!(!payload.windows(text.len()).any(|window| window == text.as_bytes()), "{text} is in the heap of {code}");
            }
            keys.insert(heap.key());
        }
        assert_eq!(keys.len(), 1, "{code}");
    }
}

async fn heap_of(engine: &Engine, code: &str, headers: Vec<(String, String)>) -> HeapImage {
    let mut job = job(code, Kind::Stateful(None));
    job.headers = headers;
    match engine.submit(job).expect("accepted").finish().await.1 {
        Outcome::Completed { heap: Some(heap), .. } => heap,
        other => panic!("{code}\n  ended as {other:?}"),
    }
}

/// The same bytes with another server, another zygote and other addresses. (Not with a DataView on the heap, because V8 stores addresses in
/// those.)
#[tokio::test]
async fn keys_are_the_same_in_every_process() {
    let mut keys = HashSet::new();
    for _ in 0..4 {
        let mut chain = Chain::start().await;
        chain.result("const m = new Map([[{}, 1]]); class A { #x = 1 } let list = [1.5, 'two', Symbol('three'), new A(), new Date(0), /four/, new Uint8Array(3), new Float64Array([1]), new Uint8Array(100), new ArrayBuffer(8)]; list.length").await;
        chain.result("m.size + new Set(list).size").await;
        keys.insert(chain.heap.expect("heap").key());
    }
    assert_eq!(keys.len(), 1);
}

#[tokio::test]
async fn randomness_differs_from_run_to_run() {
    let runs = if torture() { 10_000 } else { 200 };
    let engine = engine().await;
    let mut parent = Chain::on(&engine, None);
    parent.result("Math.random(); 0").await;
    let mut drawn = HashSet::new();
    for _ in 0..runs {
        let mut child = Chain::on(&engine, parent.heap.clone());
        assert!(drawn.insert(child.result("Math.random()").await), "Math.random() repeated itself");
    }
    for _ in 0..20 {
        let mut child = Chain::on(&engine, parent.heap.clone());
        assert!(drawn.insert(child.result("crypto.randomUUID()").await), "crypto.randomUUID() repeated itself");
    }
}
