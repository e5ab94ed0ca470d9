//! The same code on the same heap gives the same key; randomness differs all the same.

use super::support::{Chain, engine, torture};
use std::collections::HashSet;

#[tokio::test]
async fn the_same_code_on_the_same_heap_gives_the_same_key() {
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

/// Another server, another zygote, other addresses: the same bytes. (Not with a DataView on the heap: V8 leaves addresses in those.)
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
