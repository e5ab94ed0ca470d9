//! Long chains of runs: the last run sees the work of the first, and heap size and memory do not grow without cause.

use super::support::{Chain, engine, torture};

/// Top-level declarations behave as in a browser's console.
#[tokio::test]
async fn declarations_persist_and_may_be_redeclared() {
    let mut chain = Chain::start().await;
    for (code, expected) in [
        ("let a = 1; const b = 2; class C { #p = 3; get p() { return this.#p } }; function f() { return a + b } var v = 5; f()", "3"),
        ("a = 10; f()", "12"),
        ("let a = 100; f()", "102"),
        ("const b = 20; f()", "120"),
        ("class C { p = 'new' }; new C().p", "\"new\""),
        ("function f() { return 'again' } f()", "\"again\""),
        ("const c = await Promise.resolve(new C()); c.p", "\"new\""),
        ("c.p + v", "\"new5\""),
        ("globalThis.v === v", "true"),
    ] {
        assert_eq!(chain.result(code).await, expected, "{code}");
    }
    let error = chain.failure("const k = 1; k = 2").await.to_string();
    assert!(error.contains("Assignment to constant variable"), "{error}");
}

/// Every kind of value that can survive, through 1,000 runs in separate workers (100 in the short form).
#[tokio::test]
async fn the_last_run_of_a_long_chain_sees_the_work_of_the_first() {
    let runs = if torture() { 1000 } else { 100 };
    let mut chain = Chain::start().await;
    assert_eq!(chain.result(include_str!("values/make.js")).await, "\"made\"");
    for _ in 1..runs - 1 {
        chain.result("count += 1").await;
    }
    assert_eq!(chain.result("count").await, (runs - 2).to_string());
    assert_eq!(chain.result(include_str!("values/check.js")).await, "[]");
}

#[tokio::test]
async fn trivial_runs_do_not_grow_the_heap() {
    let runs = if torture() { 1000 } else { 60 };
    for code in ["1 + 1", "{a: 1}", "console.log('x')", "x = 1", "new Error('e').stack", "let t: number = 1; 0"] {
        let mut chain = Chain::start().await;
        chain.result("var x = 0").await;
        chain.output(code).await;
        chain.output(code).await;
        let before = chain.heap_bytes();
        for _ in 0..runs {
            chain.output(code).await;
        }
        let grown = chain.heap_bytes() as i64 - before as i64;
        // A redeclared `let` leaves its old slot in V8's script context table.
        let allowed = if code.contains("let") { 100 * runs } else { 2048 };
        assert!(grown <= allowed, "{code}: {runs} runs added {grown} bytes");
    }
}

/// Memory and descriptors of the server process and the zygote stay constant over many executions.
#[tokio::test]
async fn ten_thousand_executions_leak_nothing() {
    let (warm, runs) = if torture() { (1000, 10_000) } else { (100, 300) };
    let engine = engine().await;
    let zygote = zygote_pid();
    let measure = || (descriptors("self"), descriptors(&zygote), resident_kb("self"), resident_kb(&zygote));
    for _ in 0..warm {
        Chain::on(&engine, None).result("1").await;
    }
    let before = measure();
    for _ in 0..runs {
        Chain::on(&engine, None).result("1").await;
    }
    let after = measure();
    assert!(after.0 <= before.0 + 2 && after.1 <= before.1, "descriptors: {before:?} → {after:?}");
    assert!(after.2 < before.2 + 16_384 && after.3 < before.3 + 4_096, "resident memory: {before:?} → {after:?}");
}

fn zygote_pid() -> String {
    let this = std::process::id().to_string();
    let children =
        std::fs::read_dir("/proc").expect("/proc").filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(|pid| {
            let parent = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            parent.lines().any(|line| line.strip_prefix("PPid:").is_some_and(|parent| parent.trim() == this))
                && command.windows(6).any(|word| word == b"zygote")
        });
    // Other tests of this process have their own zygotes; the newest is ours.
    children.max_by_key(|pid| pid.parse::<u32>().unwrap_or(0)).expect("a zygote")
}

fn descriptors(pid: &str) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

fn resident_kb(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}
