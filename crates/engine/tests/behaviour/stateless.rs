//! Stateless runs: no heap before or after, and `WebAssembly`.

use super::support::{engine, run};
use heapstead_engine::{Kind, Outcome};

async fn check_stateless(cases: &[(&str, &str)]) {
    let engine = engine().await;
    for (code, expected) in cases {
        match run(&engine, code, Kind::Stateless).await {
            (_, Outcome::Completed { result, heap: None, .. }) => assert_eq!(result, *expected, "{code}"),
            (_, other) => panic!("{code}\n  ended as {other:?}"),
        }
    }
}

#[tokio::test]
async fn stateless_runs_have_webassembly() {
    const ADD: &str =
        "new Uint8Array([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11])";
    check_stateless(&[
        (&format!("new WebAssembly.Instance(new WebAssembly.Module({ADD})).exports.add(3, 4)"), "7"),
        (&format!("(await WebAssembly.instantiate({ADD})).instance.exports.add(20, 22)"), "42"),
        ("new WebAssembly.Memory({ initial: 1 }).buffer.byteLength", "65536"),
        ("typeof SharedArrayBuffer", "\"function\""),
    ])
    .await;
}

#[tokio::test]
async fn stateless_runs_have_the_same_environment_as_stateful_ones() {
    check_stateless(&[
        ("1 + 1", "2"),
        ("let x: number = 1; await null; x", "1"),
        ("new Map([[1, { a: 2 }]])", "Map(1) { 1 => { a: 2 } }"),
        ("new Error('e').stack", "\"Error: e\\n    at main.js:1:1\""),
        ("const f = new Intl.NumberFormat('de'); f.format(1.5)", "\"1,5\""),
        ("Promise.try(() => 1) instanceof Promise", "true"),
        ("typeof left", "\"undefined\""),
        ("globalThis.left = 1", "1"),
        ("typeof left", "\"undefined\""),
    ])
    .await;
}
