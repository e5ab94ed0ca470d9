//! Live workers: turns that are committed or have no effect, snapshots beside them, and processes that end when they should.

mod common;

use common::processes::{self, children_of, freeze, is_alive, kill, wait_for, zygote_of};
use common::{begun, brief, end_of, job, probes, production, run, start, submit};
use heapstead_engine::{Artifacts, Engine, Event, HeapImage, Job, Kind, LiveWorker, Outcome, Recorded, Replay};
use heapstead_types::{BudgetHolder, Failure, Stage};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(2);
const HEAP_MB: u32 = 8;

async fn open(engine: &Engine, heap: Option<&HeapImage>) -> LiveWorker {
    engine.open_live(&BudgetHolder::default(), heap, HEAP_MB).await.unwrap_or_else(|failure| panic!("{failure}"))
}

/// Runs a turn and commits it if it completes. Returns its result or what happened instead.
async fn turn(engine: &Engine, live: &LiveWorker, code: &str) -> String {
    let mut outcome = run(engine, job(code, Kind::Live(live.clone()))).await;
    if let Outcome::Completed { turn, heap, .. } = &mut outcome {
        assert!(heap.is_none(), "no snapshot is taken");
        turn.take().expect("a turn").commit().await.unwrap_or_else(|failure| panic!("{failure}"));
    }
    brief(&outcome)
}

async fn engine() -> (Artifacts, Engine) {
    let parts = production();
    let engine = start(parts.clone()).await;
    assert_eq!(engine.live(), &Ok(()), "this machine has PID namespaces and seccomp user notification");
    (parts, engine)
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_continue_from_committed_turns_only() {
    let (_, engine) = engine().await;
    let live = open(&engine, None).await;
    assert_eq!(turn(&engine, &live, "let n = 1; const kept = [new Error('e'), () => n]; n").await, "1");
    assert_eq!(turn(&engine, &live, "n += 1").await, "2");
    for (code, ends) in [
        ("n += 100; throw new Error('no')", "Error: no"),
        ("n += 100; while (true);", "timed out"),
        ("n += 100; const big = []; while (true) big.push(new Array(1000).fill({}))", "memory"),
        ("n += 100; (", "SyntaxError"),
        ("n += 100; await new Promise(() => {})", "never"),
    ] {
        let outcome = turn(&engine, &live, code).await;
        assert!(outcome.contains(ends), "{code}: {outcome}");
        assert_eq!(turn(&engine, &live, "[n, kept[1](), kept[0].message, typeof big]").await, r#"[2,2,"e","undefined"]"#, "after {code}");
    }
    let mut cancelled = submit(&engine, job("n += 100; console.log(n); while (true);", Kind::Live(live.clone())));
    begun(&mut cancelled).await;
    assert!(cancelled.canceller().cancel().await);
    assert!(matches!(end_of(cancelled).await.1, Outcome::Cancelled));
    // Completed, but nobody commits it.
    assert_eq!(brief(&run(&engine, job("n += 100", Kind::Live(live.clone()))).await), "102");
    assert_eq!(turn(&engine, &live, "n += 1").await, "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_has_the_state_of_the_last_committed_turn() {
    let (_, engine) = engine().await;
    let live = open(&engine, None).await;
    assert!(live.snapshot().await.expect("nothing to write").is_none());
    for n in 1..=3 {
        turn(
            &engine,
            &live,
            "globalThis.n = (globalThis.n ?? 0) + 1; function hot(x) { return x * n } for (let i = 0; i < 1e5; i++) hot(i); n",
        )
        .await;
        let (heap, _) = live.snapshot().await.unwrap_or_else(|failure| panic!("{failure}")).expect("a heap");
        let outcome = run(&engine, job("[n, hot(10)]", Kind::Stateful(Some(heap.clone())))).await;
        assert_eq!(brief(&outcome), format!("[{n},{}]", n * 10));
        // A live worker that starts from it goes on.
        let other = open(&engine, Some(&heap)).await;
        assert_eq!(turn(&engine, &other, "n += 100").await, (n + 100).to_string());
    }
    assert_eq!(turn(&engine, &live, "n").await, "3");
}

/// What can't be saved stays in memory.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_fails_leaves_the_session_as_it_is() {
    const UNSAVEABLE: &str = "let n = 1; globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); kept.byteLength";
    let (_, engine) = engine().await;
    let outcome = run(&engine, job(UNSAVEABLE, Kind::Stateful(None))).await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    let live = open(&engine, None).await;
    assert_eq!(turn(&engine, &live, UNSAVEABLE).await, "8");
    let failure = live.snapshot().await.expect_err("V8 can't save it");
    assert!(matches!(failure, Failure::WorkerCrashed { stage: Stage::Saving, signal: Some(_) }), "{failure}");
    assert_eq!(turn(&engine, &live, "[n += 1, kept.byteLength]").await, "[2,8]");
    turn(&engine, &live, "kept = null").await;
    assert!(live.snapshot().await.expect("it can be saved again").is_some());
}

async fn recorded(engine: &Engine, live: &LiveWorker, code: &str) -> (String, Recorded) {
    let (events, mut outcome) = end_of(submit(engine, job(code, Kind::Live(live.clone())))).await;
    if let Outcome::Completed { turn, .. } = &mut outcome {
        turn.take().expect("a turn").commit().await.expect("committed");
    }
    let recorded = events.into_iter().find_map(|event| match event {
        Event::Recorded(recording) => Some(recording.recorded),
        _ => None,
    });
    (brief(&outcome), recorded.expect("a recording"))
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_repeat_exactly_in_another_live_worker() {
    let (_, engine) = engine().await;
    let codes = [
        "let seen = [Math.random(), Date.now()]; seen",
        "setTimeout(() => seen.push(performance.now()), 3); await new Promise(done => setTimeout(done, 10)); seen",
        "seen.push(crypto.randomUUID()); seen",
        "function* g() { while (true) yield Math.random() } const it = g(); it.next().value",
        "it.next().value + new Date().toISOString()",
    ];
    let live = open(&engine, None).await;
    let mut journal = Vec::new();
    for code in codes {
        journal.push((code, recorded(&engine, &live, code).await));
    }
    let again = open(&engine, None).await;
    for (code, (result, recorded)) in journal {
        let mut outcome = run(&engine, Job { replay: Some(Replay { recorded, form: None }), ..job(code, Kind::Live(again.clone())) }).await;
        assert_eq!(brief(&outcome), result, "{code}");
        if let Outcome::Completed { turn, .. } = &mut outcome {
            turn.take().expect("a turn").commit().await.expect("committed");
        }
    }
    assert_eq!(turn(&engine, &again, "seen").await, turn(&engine, &live, "seen").await);
}

/// After each clone, the base goes through the motions of a run, unless a turn comes first. If that left anything, the state would depend on time,
/// and the standby would not have the state of the base.
#[tokio::test(flavor = "multi_thread")]
async fn the_state_does_not_depend_on_when_it_was_cloned() {
    let (_, engine) = engine().await;
    let live = open(&engine, None).await;
    turn(&engine, &live, "let n = 1; n").await;
    let mut keys = Vec::new();
    for _ in 0..3 {
        keys.push(live.snapshot().await.expect("a snapshot").expect("a turn").0.key());
        // Longer than a clone waits before its warm-up, and the warm-up takes.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let failed = turn(&engine, &live, "n += 1; throw new Error('no')").await;
    assert!(failed.starts_with("Error: no"), "{failed}");
    keys.push(live.snapshot().await.expect("a snapshot").expect("a turn").0.key());
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

/// A session may have one worker after the other, and what a snapshot contains is known by the number of its last run.
#[tokio::test(flavor = "multi_thread")]
async fn snapshots_of_different_workers_are_not_confused() {
    let (_, engine) = engine().await;
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let live = open(&engine, None).await;
        turn(&engine, &live, "1").await;
        numbers.push(live.snapshot().await.expect("a snapshot").expect("a turn").1);
    }
    assert_ne!(numbers[0], numbers[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_family_has_a_base_and_a_standby() {
    let (parts, engine) = engine().await;
    let zygote = zygote_of(processes::this(), &parts.base_heap).expect("a zygote");
    let live = open(&engine, None).await;
    for n in 1..50 {
        let expected = if n % 4 == 0 { "Error: no" } else { "1" };
        assert!(turn(&engine, &live, if n % 4 == 0 { "throw new Error('no')" } else { "1" }).await.starts_with(expected));
        if n % 10 == 0 {
            live.snapshot().await.expect("a snapshot");
        }
    }
    // Processes that were killed may take a moment to end.
    let pids = sorted(wait_for_pair(&live).await.into());
    assert!(wait_for(SOON, || (sorted(children_of(zygote)) == pids).then_some(())).is_some(), "{:?}, not {pids:?}", children_of(zygote));
    drop(live);
    assert!(wait_for(SOON, || children_of(zygote).is_empty().then_some(())).is_some(), "they end with the last handle");
}

/// A clone for each turn cost more than the turn.
#[tokio::test(flavor = "multi_thread")]
async fn short_turns_start_no_process() {
    let (_, engine) = engine().await;
    let live = open(&engine, None).await;
    turn(&engine, &live, "let n = 0").await;
    let (mut pairs, mut n) = (vec![wait_for_pair(&live).await], 0);
    // A busy machine may need so long for ten turns that the standby is replaced after some of them.
    while n < 100 && (pairs.len() < 2 || pairs[pairs.len() - 1] != pairs[pairs.len() - 2]) {
        for _ in 0..10 {
            n += 1;
            assert_eq!(turn(&engine, &live, "n += 1").await, n.to_string());
        }
        pairs.push(wait_for_pair(&live).await);
    }
    let pair = pairs[pairs.len() - 1];
    assert_eq!(pair, pairs[pairs.len() - 2], "ten turns with the same processes: {pairs:?}");
    for n in n + 1..=n + 20 {
        assert_eq!(turn(&engine, &live, "n += 1").await, n.to_string());
    }
    let [base, standby] = wait_for_pair(&live).await;
    assert_eq!(base, pair[0]);
    assert_ne!(standby, pair[1], "one that is far behind is replaced");
    let long = "x".repeat(40_000);
    let codes = [
        "new WeakRef({}).deref(); 1".to_owned(),
        "for (const end = Date.now() + 25; Date.now() < end;); 1".to_owned(),
        format!("/* {long} */ 1"),
        format!("console.log('{long}'); 1"),
    ];
    for code in codes {
        let [_, before] = wait_for_pair(&live).await;
        assert_eq!(turn(&engine, &live, &code).await, "1");
        let [_, after] = wait_for_pair(&live).await;
        assert_ne!(before, after, "it can't, or should not, be repeated: {}", &code[..26]);
    }
}

/// What the standby repeats has to give the state that the base had: also randomness, times, timers, generators and errors.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_turn_returns_to_the_exact_state_of_the_turns_before() {
    let (_, engine) = engine().await;
    let codes = [
        "let seen = [Math.random(), Date.now()]; console.log(seen)",
        "function* g() { while (true) seen.push(yield crypto.randomUUID()) } const it = g(); it.next().value",
        "setTimeout(() => seen.push(performance.now()), 1); await new Promise(done => setTimeout(done, 3)); it.next('a').value",
        "let kept; try { null.x } catch (error) { kept = error }",
        "enum Colour { Red, Green }; class C { #n = Math.random(); get n() { return this.#n } } const c = new C()",
        "it.next(Colour.Green).value",
    ];
    let all = "JSON.stringify([seen, it.next().value.length, kept.stack, c.n, Colour])";
    for turns in 1..=codes.len() {
        let (live, undisturbed) = (open(&engine, None).await, turns == codes.len());
        let mut results = Vec::new();
        for code in &codes[..turns] {
            results.push(turn(&engine, &live, code).await);
        }
        let look = if undisturbed { all } else { "JSON.stringify(seen)" };
        let Outcome::Completed { result: expected, .. } = run(&engine, job(look, Kind::Live(live.clone()))).await else {
            panic!("{results:?}")
        };
        // That turn was not committed, so the standby has taken the place of its process. Then it fails once more.
        let failed = turn(&engine, &live, "seen.length = 0; throw new Error('no')").await;
        assert!(failed.starts_with("Error: no"), "{failed}");
        let Outcome::Completed { result, .. } = run(&engine, job(look, Kind::Live(live.clone()))).await else { panic!("{results:?}") };
        assert_eq!(result, expected, "after {turns} turns: {results:?}");
    }
}

/// The base is in a turn, which may take minutes.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_during_a_turn_has_the_state_before_it() {
    let (_, engine) = engine().await;
    let live = open(&engine, None).await;
    for code in ["let n = 1", "n += 1", "n += 1"] {
        turn(&engine, &live, code).await;
    }
    let mut running = submit(&engine, job("n = 100; console.log(n); while (true);", Kind::Live(live.clone())));
    begun(&mut running).await;
    let (heap, _) = live.snapshot().await.unwrap_or_else(|failure| panic!("{failure}")).expect("a heap");
    assert_eq!(brief(&run(&engine, job("n", Kind::Stateful(Some(heap)))).await), "3");
    running.canceller().cancel().await;
    assert_eq!(turn(&engine, &live, "n += 1").await, "4");
}

fn sorted(mut pids: Vec<i32>) -> Vec<i32> {
    pids.sort_unstable();
    pids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_costs_at_most_the_family() {
    let (parts, engine) = engine().await;
    let live = open(&engine, None).await;
    turn(&engine, &live, "let n = 1").await;
    let [base, standby] = wait_for_pair(&live).await;
    kill(standby);
    wait_for(SOON, || (!is_alive(standby)).then_some(())).expect("dead");
    assert_eq!(turn(&engine, &live, "n += 1").await, "2", "the base is cloned again");
    assert_eq!(turn(&engine, &live, "n += 1").await, "3");
    let [base_now, standby] = wait_for_pair(&live).await;
    assert_eq!(base, base_now);
    kill(base);
    wait_for(SOON, || (!is_alive(base)).then_some(())).expect("dead");
    assert_eq!(turn(&engine, &live, "n += 1").await, "4", "the standby takes its place");
    let [base, standby_now] = wait_for_pair(&live).await;
    assert_eq!(base, standby);
    kill(base);
    kill(standby_now);
    wait_for(SOON, || (!is_alive(base) && !is_alive(standby_now)).then_some(())).expect("dead");
    assert!(!live.is_alive().await);
    assert!(turn(&engine, &live, "n").await.contains("live worker"), "a clear failure");

    // Everything dies with the zygote.
    let live = open(&engine, None).await;
    turn(&engine, &live, "1").await;
    let pids = wait_for_pair(&live).await;
    kill(zygote_of(processes::this(), &parts.base_heap).expect("a zygote"));
    assert!(wait_for(SOON, || pids.iter().all(|pid| !is_alive(*pid)).then_some(())).is_some(), "a clone outlived the zygote");
    let outcome = turn(&engine, &live, "1").await;
    assert!(outcome.contains("live worker"), "{outcome}");
    assert_eq!(turn(&engine, &open(&engine, None).await, "2").await, "2", "the next zygote forks live workers too");
}

/// Story: the answer to the commit of the turn before counted as an answer to the next turn. If the idle process was killed just as that came,
/// the turn failed, and its source was blamed.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_before_it_begins_with_a_turn_is_replaced() {
    let (_, engine) = engine().await;
    let live = open(&engine, None).await;
    for n in 0..2 {
        assert_eq!(turn(&engine, &live, "globalThis.n = (globalThis.n ?? 0) + 1").await, (2 * n + 1).to_string());
        let [base, _] = wait_for_pair(&live).await;
        // It does not read what is sent to it.
        freeze(base);
        let mut running = submit(&engine, job("n += 1", Kind::Live(live.clone())));
        while !matches!(running.next_event().await.expect("an event"), Event::Started { .. }) {}
        kill(base);
        let (_, outcome) = end_of(running).await;
        assert_eq!(brief(&outcome), (2 * n + 2).to_string());
        let Outcome::Completed { turn, .. } = outcome else { panic!("{outcome:?}") };
        turn.expect("a turn").commit().await.expect("committed");
    }
    // Story: no snapshot could be written before the next turn.
    let [base, _] = wait_for_pair(&live).await;
    kill(base);
    wait_for(SOON, || (!is_alive(base)).then_some(())).expect("dead");
    let (heap, _) = live.snapshot().await.unwrap_or_else(|failure| panic!("{failure}")).expect("a heap");
    assert_eq!(brief(&run(&engine, job("n", Kind::Stateful(Some(heap)))).await), "4");
}

/// Story: the log blamed a value on the heap.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_whose_process_is_killed_says_so() {
    let (parts, engine) = engine().await;
    let zygote = zygote_of(processes::this(), &parts.base_heap).expect("a zygote");
    let live = open(&engine, None).await;
    turn(&engine, &live, "const kept = Array.from({ length: 3e4 }, (_, n) => ({ n }))").await;
    // The process may be faster.
    for _ in 0..100 {
        let pair = wait_for_pair(&live).await;
        let writing = tokio::spawn({
            let live = live.clone();
            async move { live.snapshot().await }
        });
        let find = move || children_of(zygote).into_iter().find(|pid| !pair.contains(pid));
        if let Some(pid) = tokio::task::spawn_blocking(move || wait_for(SOON, find)).await.expect("no panic") {
            kill(pid);
        }
        if let Err(failure) = writing.await.expect("no panic") {
            assert!(failure.to_string().starts_with("the worker was killed (signal 9) while it wrote the heap"), "{failure}");
            return;
        }
    }
    panic!("it was never killed in time");
}

async fn wait_for_pair(live: &LiveWorker) -> [i32; 2] {
    for _ in 0..1000 {
        if let [base, standby] = live.pids().await[..] {
            return [base, standby];
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("no standby is made")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_a_turn_names_the_signal() {
    let (_, engine) = engine().await;
    let live = open(&engine, None).await;
    let [process, _] = wait_for_pair(&live).await;
    let mut running = submit(&engine, job("console.log(1); while (true);", Kind::Live(live.clone())));
    begun(&mut running).await;
    kill(process);
    let (_, outcome) = end_of(running).await;
    assert!(matches!(outcome, Outcome::Failed(Failure::WorkerCrashed { signal: Some(libc::SIGKILL) | None, .. })), "{outcome:?}");
    assert_eq!(turn(&engine, &live, "1 + 1").await, "2");
}

/// Story: the turn was reported as a crash of its worker, so that its code seemed to be the reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_dies_with_the_zygote_says_so() {
    let (parts, engine) = engine().await;
    let live = open(&engine, None).await;
    turn(&engine, &live, "1").await;
    let mut running = submit(&engine, job("console.log(1); while (true);", Kind::Live(live)));
    begun(&mut running).await;
    kill(zygote_of(processes::this(), &parts.base_heap).expect("a zygote"));
    let (_, outcome) = end_of(running).await;
    assert!(matches!(outcome, Outcome::Failed(Failure::ZygoteDied)), "{outcome:?}");
}

/// The memory of a session does not grow with its turns.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_turns_take_no_more_memory_than_a_hundred() {
    let (_, engine) = engine().await;
    let live = open(&engine, None).await;
    turn(&engine, &live, "let n = 0; let list = []").await;
    let turns: u64 = if std::env::var_os("HEAPSTEAD_TORTURE").is_some() { 1_000 } else { 300 };
    let mut early = 0;
    for n in 1..=turns {
        let code = if n % 4 == 0 { "n += 1; list.push({ n }); throw new Error('no')" } else { "n += 1; list.push({ n }); list.length" };
        turn(&engine, &live, code).await;
        if n == 100 {
            early = settled_kib(&live).await;
        }
    }
    assert_eq!(turn(&engine, &live, "n").await, (turns - turns / 4).to_string());
    let late = settled_kib(&live).await;
    eprintln!("memory: {early} KiB after 100 turns, {late} KiB after {turns}");
    assert!(late < early + 3072, "{early} KiB after 100 turns, {late} KiB after {turns}");
}

/// The memory once the processes of earlier turns have ended: until then they share pages with the others, which seem to take less.
async fn settled_kib(live: &LiveWorker) -> u64 {
    let mut most = 0;
    for _ in 0..20 {
        wait_for_pair(live).await;
        most = most.max(live.memory_kib().await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    most
}

/// Processes of the zygote that run native code of an attacker, in a live worker.
async fn attacker() -> (i32, Engine) {
    let parts = probes();
    let engine = start(parts.clone()).await;
    (zygote_of(processes::this(), &parts.base_heap).expect("a zygote"), engine)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attempt_to_escape_succeeds_in_a_live_worker() {
    let (_, engine) = attacker().await;
    let names = brief(&run(&engine, job("attempts", Kind::Stateless)).await);
    assert!(names.lines().count() > 50, "{names}");
    let live = open(&engine, None).await;
    for name in names.lines() {
        let code = format!("attempt {name}");
        let in_one_shot = brief(&run(&engine, job(code.clone(), Kind::Stateless)).await);
        assert_eq!(turn(&engine, &live, &code).await, in_one_shot, "{name}");
    }
    assert!(live.is_alive().await, "an attempt costs only its turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_ends_its_family_and_nothing_else() {
    let (zygote, engine) = attacker().await;
    let other = open(&engine, None).await;
    turn(&engine, &other, "nothing").await;
    for code in ["clone without end", "clone once"] {
        let live = open(&engine, None).await;
        let mut most = 0;
        let mut bomb = submit(&engine, job(code, Kind::Live(live.clone())));
        let ended = loop {
            tokio::select! {
                event = bomb.next_event() => if let Some(Event::Ended(outcome)) = event { break outcome },
                () = tokio::time::sleep(Duration::from_millis(1)) => most = most.max(children_of(zygote).len()),
            }
        };
        // The other family has two processes at most, this one eight.
        assert!(most <= 10, "{code}: {most} processes");
        assert!(wait_for(SOON, || (children_of(zygote).len() <= 2).then_some(())).is_some(), "{code}: {:?}", children_of(zygote));
        assert!(!live.is_alive().await, "{code}: {ended:?}");
        assert!(turn(&engine, &live, "commit").await.contains("live worker"));
    }
    assert!(other.is_alive().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_deceives_the_server_ends_its_family() {
    let (zygote, engine) = attacker().await;
    let live = open(&engine, None).await;
    assert!(turn(&engine, &live, "commit").await.contains("`Committed` that was not asked for"), "only the server commits");
    for code in ["pretend", "refuse"] {
        let live = open(&engine, None).await;
        assert_eq!(turn(&engine, &live, code).await, "next time");
        if code == "pretend" {
            let outcome = turn(&engine, &live, "commit").await;
            assert!(outcome.contains("live worker"), "{outcome}");
        }
        drop(live);
    }
    drop(live);
    // The one that does not answer is killed when the wait for its clone ends.
    assert!(
        wait_for(3 * SOON + Duration::from_secs(10), || children_of(zygote).is_empty().then_some(())).is_some(),
        "none survives its session"
    );
}
