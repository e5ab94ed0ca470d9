//! Errors say what happened, where in the author's source, and what to do.

use super::support::{Chain, engine};

/// Runs each piece of code on its own heap. The text of the failure must contain every part.
async fn check_errors(cases: &[(&str, &[&str])]) {
    let engine = engine().await;
    for (code, parts) in cases {
        let text = Chain::on(&engine, None).failure(code).await.to_string();
        for part in *parts {
            assert!(text.contains(part), "{code}\n  gave {text:?}\n  without {part:?}");
        }
    }
}

#[tokio::test]
async fn uncaught_errors_have_a_stack() {
    check_errors(&[
        ("throw new Error('boom')", &["Error: boom", "at main.js:1:7"]),
        ("function f() {\n  null.x\n}\nf()", &["TypeError: Cannot read properties of null (reading 'x')", "at f (main.js:2:8)", "at main.js:4:1"]),
        ("await null;\n  throw new RangeError('r')", &["RangeError: r", "at main.js:2:9"]),
        ("setTimeout(() => { throw new Error('in timer') }, 1)", &["Error: in timer", "main.js:1:26"]),
        ("queueMicrotask(() => { throw new Error('in microtask') })", &["Error: in microtask", "main.js:1:30"]),
        ("Promise.reject(new Error('unhandled')); await new Promise(r => setTimeout(r, 5))", &["Error: unhandled"]),
        ("new EventTarget().addEventListener; const t = new EventTarget(); t.addEventListener('x', () => { throw new Error('in listener') }); t.dispatchEvent(new Event('x'))", &["Error: in listener"]),
        ("throw new Error('outer', { cause: new TypeError('inner') })", &["Error: outer", "[cause]: TypeError: inner"]),
        ("throw null", &["Uncaught null"]),
        ("throw { a: 1 }", &["Uncaught { a: 1 }"]),
        ("Promise.reject(undefined); 1", &["Uncaught undefined"]),
    ])
    .await;
}

#[tokio::test]
async fn a_rejection_that_is_handled_in_time_is_not_an_error() {
    let mut chain = Chain::start().await;
    assert_eq!(
        chain
            .result(
                "const p = Promise.reject(1); p.catch(() => {}); const q = Promise.reject(2); await null; try { await q } catch (e) { e }"
            )
            .await,
        "2"
    );
}

#[tokio::test]
async fn syntax_errors_name_line_and_column() {
    check_errors(&[
        ("let a = ;", &["SyntaxError: Unexpected token ';'", "at main.js:1:9"]),
        ("\n\n  foo(", &["SyntaxError", "at main.js:3"]),
        ("let x: number = ;", &["SyntaxError", "at main.js:1:17"]),
        ("const s = 'unfinished", &["SyntaxError: Invalid or unexpected token", "at main.js:1:11"]),
        ("%DebugPrint(1)", &["SyntaxError: Unexpected token '%'", "at main.js:1:1"]),
    ])
    .await;
}

#[tokio::test]
async fn errors_work_the_same_in_a_restored_heap() {
    let mut chain = Chain::start().await;
    chain.result("function outer() {\n  return inner()\n}\nfunction inner() {\n  throw new Error('deep')\n}\nclass Thing { method() {\n  outer()\n} }").await;
    let text = chain.failure("\nnew Thing().method()").await.to_string();
    for part in ["Error: deep", "at inner (main.js:5:9)", "at outer (main.js:2:10)", "at Thing.method (main.js:8:3)", "at main.js:2:13"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Regression: an error saved before its stack was read crashed the later run that read it, and had no positions, because it referred to
/// baseline code, which is not saved.
#[tokio::test]
async fn errors_saved_before_their_stack_was_read_still_have_it() {
    let mut chain = Chain::start().await;
    chain.result("var kept = []; function make(i) {\n  return new Error('kept ' + i) }\nfor (let i = 0; i < 5000; i++) kept[i % 10] = make(i); 0").await;
    chain.result("function long() { for (let i = 0; ; i++) if (i === 1e6) return new Error('long') }\nvar late = long(); 0").await;
    assert_eq!(chain.result("kept[3].stack").await, r#""Error: kept 4993\n    at make (main.js:2:10)\n    at main.js:3:47""#);
    assert_eq!(chain.result("late.stack").await, r#""Error: long\n    at long (main.js:1:64)\n    at main.js:2:12""#);
    assert!(chain.result("kept").await.contains("Error: kept 4990\n"));
}

#[tokio::test]
async fn stacks_reveal_no_path_of_the_machine() {
    let mut chain = Chain::start().await;
    for code in [
        "structuredClone(() => 1)",
        "new URL('nope')",
        "new Intl.NumberFormat('x_')",
        "crypto.getRandomValues(1)",
        "setTimeout(1)",
        "JSON.parse('{')",
        "(function f() { f() })()",
    ] {
        let text = chain.failure(code).await.to_string();
        for hidden in ["heapstead:", "/", "node:", "0x"] {
            assert!(!text.contains(hidden), "{code}\n  shows {hidden:?}: {text}");
        }
    }
}
