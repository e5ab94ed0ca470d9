//! Each limit produces the error that the specification describes.

use super::support::{Chain, engine, job, run};
use heapstead_engine::{Kind, Outcome};
use heapstead_types::Failure;

#[tokio::test]
async fn exceeding_the_memory_cap_names_the_cap_and_its_parameter() {
    let engine = engine().await;
    for (heap_mb, code) in [
        (16, "const a = []; for (;;) a.push({})"),
        (64, "let s = 'x'; for (;;) s += s + Math.random(); "),
        (64, "const a = []; for (;;) { try { a.push(new Array(1e5).fill(Math.random())) } catch {} }"),
    ] {
        let mut hungry = job(code, Kind::Stateful(None));
        hungry.limits.heap_mb = heap_mb;
        let (_, outcome) = engine.submit(hungry).expect("accepted").finish().await;
        match outcome {
            Outcome::Failed(failure @ Failure::MemoryCap { .. }) => {
                let text = failure.to_string();
                assert!(text.contains(&format!("cap of {heap_mb} MB")) && text.contains("heap_memory_max_mb"), "{text}");
            }
            // A string may reach V8's own limit on string length first.
            Outcome::Failed(Failure::Exception(text)) if text.contains("Invalid string length") => {}
            other => panic!("{code}\n  ended as {other:?}"),
        }
    }
}

#[tokio::test]
async fn buffers_count_towards_the_cap() {
    let mut chain = Chain::start().await;
    let code =
        "const kept = []; let error; try { for (;;) kept.push(new Uint8Array(8 << 20)) } catch (e) { error = e } [error.name, kept.length]";
    assert_eq!(chain.result(code).await, "[\"RangeError\",7]");
    assert_eq!(chain.result("kept.length = 0; new Uint8Array(32 << 20).length").await, (32 << 20).to_string());
}

#[tokio::test]
async fn a_larger_cap_holds_more() {
    let engine = engine().await;
    let code = "const a = []; for (let i = 0; i < 3e6; i++) a.push({ i }); a.length";
    let (_, outcome) = run(&engine, code, Kind::Stateless).await;
    assert!(matches!(outcome, Outcome::Failed(Failure::MemoryCap { heap_mb: 64 })), "{outcome:?}");
    let mut larger = job(code, Kind::Stateless);
    larger.limits.heap_mb = 512;
    let (_, outcome) = engine.submit(larger).expect("accepted").finish().await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_too_large_result_fails_with_advice() {
    let mut chain = Chain::start().await;
    assert_eq!(chain.failure("'x'.repeat(17 << 20)").await, Failure::ResultTooLarge);
    assert_eq!(chain.failure("let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; a").await, Failure::ResultTooLarge);
    assert_eq!(chain.result("'x'.repeat(8 << 20)").await.len(), (8 << 20) + 2);
}

#[tokio::test]
async fn stack_overflow_is_a_range_error() {
    let mut chain = Chain::start().await;
    assert_eq!(chain.result("(function f(n) { try { return f(n + 1) } catch (e) { return e.name } })(0)").await, "\"RangeError\"");
    let text = chain.failure("(function f() { f() })()").await.to_string();
    assert!(text.starts_with("RangeError: Maximum call stack size exceeded"), "{text}");
}
