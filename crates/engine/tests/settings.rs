//! What an operator chooses for all workers: the resolution of clocks, and whether V8 compiles to machine code.

mod common;

use common::{brief, config, end_of, job, production, run, start_with, submit};
use heapstead_engine::{Config, Engine, Event, HeapImage, Kind, Outcome, ZygoteSettings};

async fn engine_with(settings: ZygoteSettings) -> Engine {
    start_with(Config { settings, ..config(production()) }).await
}

/// Every clock that code can read, in microseconds. Each is read often enough to see fine steps.
const CLOCKS: &[(&str, &str)] = &[
    ("performance.now", "performance.now() * 1000"),
    ("performance.timeOrigin", "performance.timeOrigin * 1000"),
    ("performance.toJSON", "performance.toJSON().timeOrigin * 1000"),
    ("Event.timeStamp", "new Event('x').timeStamp * 1000"),
    ("Date.now", "Date.now() * 1000"),
    ("new Date", "new Date().getTime() * 1000"),
    ("Temporal.Now.instant", "typeof Temporal === 'undefined' ? 0 : Number(Temporal.Now.instant().epochNanoseconds) / 1000"),
    ("Temporal.Now.plainTimeISO", "typeof Temporal === 'undefined' ? 0 : microseconds(Temporal.Now.plainTimeISO())"),
    ("Temporal.Now.plainDateTimeISO", "typeof Temporal === 'undefined' ? 0 : microseconds(Temporal.Now.plainDateTimeISO())"),
    ("Temporal.Now.zonedDateTimeISO", "typeof Temporal === 'undefined' ? 0 : microseconds(Temporal.Now.zonedDateTimeISO('Asia/Tokyo'))"),
];
/// Of a time, since its last minute.
const MICROSECONDS: &str =
    "function microseconds(time) { return time.second * 1e6 + time.millisecond * 1e3 + time.microsecond + time.nanosecond / 1e3; }";

/// The number of readings that are not a multiple of `resolution_us`.
fn off_the_grid(clock: &str, resolution_us: u32) -> String {
    // A microsecond is about the precision of a double that counts microseconds since 1970.
    format!(
        "{MICROSECONDS} let off = 0; for (let i = 0; i < 5000; i++) {{ const rest = ({clock}) % {resolution_us}; \
         if (Math.min(rest, {resolution_us} - rest) > 1) off++; }} off"
    )
}

/// A fine clock lets code measure the caches that it shares with other processes.
#[tokio::test(flavor = "multi_thread")]
async fn clocks_advance_in_steps_of_the_resolution() {
    for resolution_us in [100, 5_000] {
        let engine = engine_with(ZygoteSettings { timer_resolution_us: resolution_us, ..ZygoteSettings::default() }).await;
        for (name, clock) in CLOCKS {
            for kind in [Kind::Stateless, Kind::Stateful(None)] {
                let off = brief(&run(&engine, job(off_the_grid(clock, resolution_us), kind)).await);
                assert_eq!(off, "0", "{name} at {resolution_us} µs");
            }
        }
    }
    assert_eq!(ZygoteSettings::default().timer_resolution_us, 100);
    // The test can fail: a fine clock is off the grid most of the time.
    let fine = engine_with(ZygoteSettings { timer_resolution_us: 1, ..ZygoteSettings::default() }).await;
    let off = brief(&run(&fine, job(off_the_grid("performance.now() * 1000", 100), Kind::Stateless)).await);
    assert!(off.parse::<u32>().expect("a number") > 1000, "{off}");
}

/// The text that `console.timeLog` prints has the same resolution.
#[tokio::test(flavor = "multi_thread")]
async fn console_timers_print_steps_of_the_resolution() {
    const CODE: &str = "console.time(); for (let i = 0; i < 2000; i++) console.timeLog()";
    for kind in [Kind::Stateless, Kind::Stateful(None)] {
        let engine = engine_with(ZygoteSettings { timer_resolution_us: 3_000, ..ZygoteSettings::default() }).await;
        let (events, _) = end_of(submit(&engine, job(CODE, kind))).await;
        let printed: String =
            events.iter().map(|event| if let Event::Output(text) = event { String::from_utf8_lossy(text) } else { "".into() }).collect();
        assert!(printed.lines().count() >= 2000, "{printed}");
        for line in printed.lines() {
            let ms: f64 = line.trim_start_matches("default: ").trim_end_matches("ms").parse().unwrap_or_else(|_| panic!("{line}"));
            assert_eq!(ms % 3.0, 0.0, "{line}");
        }
    }
}

/// A new clock has to be coarsened and added to the list above. What waits for a chosen time, or counts in another thread, would be a clock too.
#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_other_clocks() {
    const CODE: &str = "`${[
        Object.getOwnPropertyNames(Performance.prototype), Object.getOwnPropertyNames(performance),
        Object.getOwnPropertyNames(globalThis.Temporal?.Now ?? {}).filter(name => name !== 'timeZoneId' && name !== 'plainDateISO'),
        (() => { try { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1); } catch (error) { return error.name; } })(),
        typeof Atomics.waitAsync, typeof Worker, typeof process, typeof requestAnimationFrame, typeof setInterval].join(' ')}`";
    let engine = engine_with(ZygoteSettings::default()).await;
    for (kind, expected) in [
        (Kind::Stateless, "constructor,now,timeOrigin,toJSON  instant,plainDateTimeISO,zonedDateTimeISO,plainTimeISO TypeError"),
        (Kind::Stateful(None), "constructor,now,timeOrigin,toJSON   ReferenceError"),
    ] {
        let found = brief(&run(&engine, job(CODE, kind)).await);
        assert!(found.starts_with(&format!("\"{expected} undefined undefined undefined undefined ")), "{found}");
    }
}

/// Timers use the same clock: a coarse one delays them, and must neither lose them nor change their order.
#[tokio::test(flavor = "multi_thread")]
async fn timers_fire_in_order_with_a_coarse_clock() {
    const CODE: &str = "const seen = []; const begun = performance.now(); \
        await Promise.all([7, 1, 4, 20].map(ms => new Promise(done => setTimeout(() => { seen.push(ms); done(); }, ms)))); \
        `${seen} ${performance.now() - begun >= 20}`";
    for timer_resolution_us in [1, 100, 7_000, 50_000] {
        let engine = engine_with(ZygoteSettings { timer_resolution_us, ..ZygoteSettings::default() }).await;
        assert_eq!(brief(&run(&engine, job(CODE, Kind::Stateless)).await), "\"1,4,7,20 true\"", "{timer_resolution_us} µs");
    }
}

async fn heap_of(engine: &Engine, code: &str, from: Option<HeapImage>) -> (String, HeapImage) {
    match run(engine, job(code, Kind::Stateful(from))).await {
        Outcome::Completed { result, heap: Some(heap), .. } => (result, heap),
        other => panic!("{code}: {other:?}"),
    }
}

const JITLESS: ZygoteSettings = ZygoteSettings { jitless: true, stateful_jit: true, timer_resolution_us: 100 };

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_without_a_compiler_runs_code_and_chains_of_heaps() {
    let engine = engine_with(JITLESS).await;
    for (code, result) in [
        ("const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2); fib(20)", "6765"),
        ("/(\\d+)-(?<name>\\w+)/.exec('12-ab').groups.name", "\"ab\""),
        ("let x: number = 20; x + 1", "21"),
        ("let sum = 0; for (let i = 0; i < 3e6; i++) sum += i % 7; sum", "8999994"),
        ("typeof WebAssembly", "\"undefined\""),
    ] {
        assert_eq!(brief(&run(&engine, job(code, Kind::Stateless)).await), result, "{code}");
    }
    let (_, first) = heap_of(&engine, "var list = [1, 2, 3]; function last() { return list.at(-1); }", None).await;
    assert_eq!(heap_of(&engine, "last() + 39", Some(first)).await.0, "42");
}

/// The flag is part of the engine id, because V8 does not promise that a snapshot loads under other flags.
#[tokio::test(flavor = "multi_thread")]
async fn heaps_do_not_cross_between_engines_with_and_without_a_compiler() {
    let (compiling, jitless) = (engine_with(ZygoteSettings::default()).await, engine_with(JITLESS).await);
    let (with, without) = (compiling.info(), jitless.info());
    assert_ne!(with.id, without.id);
    assert_eq!(with.check(&with.id), Ok(()));
    for (engine, heap) in [(with, without), (without, with)] {
        let why = engine.check(&heap.id).expect_err("another engine").to_string();
        let expected =
            format!("heap was written by engine {}, this is {}: they run with different V8 flags (`--jitless`)", heap.id, engine.id);
        assert_eq!(why, expected);
    }
}
