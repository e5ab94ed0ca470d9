//! A run repeats exactly from what was recorded of it: the JavaScript that ran, its seed and its clock readings.

use super::support::{engine, job};
use heapstead_engine::{Engine, Event, Gap, HeapImage, Javascript, Job, Kind, Outcome, Recorded, Recording, Replay, ScriptForm};
use heapstead_wire::{Derivation, RefusedScript};
use std::time::Duration;

struct Ran {
    output: String,
    /// Result or error.
    text: String,
    heap: Option<HeapImage>,
    recorded: Option<Recorded>,
    /// The code that ran and its form. None if V8 has compiled nothing.
    code: Option<(String, Option<ScriptForm>)>,
}

async fn ran(engine: &Engine, job: Job) -> Ran {
    let source = job.code.to_string();
    let mut execution = engine.submit(job).expect("accepted");
    let (mut output, mut recording) = (Vec::new(), None);
    let outcome = loop {
        match execution.next_event().await.expect("an end") {
            Event::Output(text) => output.extend(text),
            Event::Recorded(recorded) => recording = Some(recorded),
            Event::Started { .. } | Event::OutputDropped => {}
            Event::Ended(outcome) => break outcome,
        }
    };
    let (text, heap) = match outcome {
        Outcome::Completed { result, heap, .. } => (result, heap),
        Outcome::Failed(failure) => (failure.to_string(), None),
        other => panic!("{other:?}"),
    };
    let (recorded, javascript) = recording.map_or((None, None), |Recording { recorded, javascript, .. }| (Some(recorded), javascript));
    let code = javascript.map(|Javascript { text, form }| match form.as_ref().is_some_and(ScriptForm::is_source) {
        true => (source, form),
        false => (text, form),
    });
    Ran { output: String::from_utf8(output).expect("UTF-8"), text, heap, recorded, code }
}

/// Runs the code, then repeats it, from its source and from the JavaScript that ran, and compares everything.
async fn check(engine: &Engine, code: &str, heap: Option<HeapImage>) -> Ran {
    let first = ran(engine, job(code, Kind::Stateful(heap.clone()))).await;
    let recorded = first.recorded.clone().unwrap_or_else(|| panic!("nothing was recorded of {code}: {}", first.text));
    assert!(recorded.inputs.is_complete(), "{code}: {:?}", recorded.inputs.gaps().collect::<Vec<_>>());
    let source = (code.to_owned(), None);
    for (code, form) in [source].into_iter().chain(first.code.clone()) {
        let replay = Some(Replay { recorded: recorded.clone(), form });
        let job = Job { replay, ..job(&code, Kind::Stateful(heap.clone())) };
        let again = ran(engine, job).await;
        assert_eq!((&again.output, &again.text), (&first.output, &first.text), "{code}");
        assert_eq!(again.heap.as_ref().map(HeapImage::key), first.heap.as_ref().map(HeapImage::key), "the heap of {code}");
        assert!(again.recorded.is_none(), "a replay is not recorded");
    }
    first
}

const CODES: &[&str] = &[
    "1 + 1",
    "[Math.random(), Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(100))]]",
    "var kept = Array.from({ length: 1000 }, Math.random); kept.length",
    "[Date.now(), new Date().toISOString(), new Date().getTime(), performance.now(), performance.timeOrigin]",
    "typeof Temporal === 'object' ? [Temporal.Now.instant().toString(), Temporal.Now.plainDateTimeISO().toString()] : 0",
    "const seen = []; const end = performance.now() + 20; while (performance.now() < end) seen.push(Date.now()); console.log(seen.length); new Set(seen).size",
    "const order = []; for (let i = 0; i < 50; i++) setTimeout(() => order.push([i, performance.now()]), Math.random() * 30); await new Promise(done => setTimeout(done, 60)); order",
    "let n = 0; const id = setInterval(() => { console.log(n, performance.now()); if (++n === 5) clearInterval(id) }, 3); await new Promise(done => setTimeout(done, 40)); n",
    "setTimeout(() => console.log('late', Date.now()), 25); setImmediate(() => console.log('soon')); await null; console.time('t'); console.timeEnd('t'); 'end'",
    "await Promise.race([new Promise(done => setTimeout(done, 5, 'a')), new Promise(done => setTimeout(done, 5, 'b'))])",
    "try { await new Promise((_, fail) => AbortSignal.timeout(10).addEventListener('abort', event => fail(event.target.reason))) } catch (error) { `${error.name} ${performance.now()}` }",
    "function hot(x) { return Math.random() < 0.5 ? x : -x } let sum = 0; for (let i = 0; i < 200000; i++) sum += hot(i); sum",
    "console.log(Math.random()); throw new Error(`at ${Date.now()}`)",
    "enum E { A = 1 }\nconsole.log(E.A);\nthrow new Error(`at ${Date.now() as number}`)",
    "const x: number = Math.random(); enum E { A = 'a' } x + E.A + Date.now()",
    "enum E { A = 1, B }\nclass P { constructor(private x: number) {}\n  fail() { return new Error('at ' + this.x) } }\nvar kept: Error = new P(E.B).fail(); console.log(kept.stack); kept",
    "interface I { x: number }\nvar kept: Error = new Error('typed'); console.log(kept.stack)\n//# keepResult",
    "namespace N { export const at = () => new Error('in N') }\nvar kept = N.at(); kept.stack\n//# keepResult",
    "const id = <T,>(x: T): T => x; id<string>(new Error('generic').stack ?? '')",
    "  { at: Date.now(), stack: new Error('literal').stack }",
    // V8 refuses it first as an object literal, which has positions.
    "  { a: Math.random() as number }",
    "\n { a: new Error('typed label').stack as string }\n//# keepResult",
    "{ enum E { A = 'a' } }",
    "[Math.random()]\n//# keepResult",
    "'a marker in the source'\n//# keepResult\n//# keepResult",
    "let s = 0; for (let i = 0; i < 100000; i++) s += Date.now() % 7; s",
    "new Intl.DateTimeFormat('de', { dateStyle: 'full', timeStyle: 'long' }).format() + new Date().toLocaleString('en-GB') + Date.now()",
    "const e = new Error('kept'); var keptError = e; e.stack + new Event('x').timeStamp",
    "structuredClone({ at: new Date(), id: crypto.randomUUID() })",
    "(",
    "await new Promise(() => {})",
    "({ toJSON() { return Date.now() + Math.random() } })",
];

#[tokio::test]
async fn runs_repeat_exactly_on_a_fresh_heap_and_on_their_own() {
    let engine = engine().await;
    for code in CODES {
        let first = check(&engine, code, None).await;
        check(&engine, code, first.heap).await;
    }
}

/// Of completed and of failed runs. Where nothing ran, the source says why.
#[tokio::test]
async fn the_javascript_that_ran_is_recorded() {
    let engine = engine().await;
    for (code, expected) in [
        ("let a: number = 1", Some("let a         = 1")),
        ("let a = 1", Some("let a = 1")),
        ("{ a: 1 }", Some("({ a: 1 })")),
        ("throw 1 as any", Some("throw 1       ")),
        ("await new Promise(() => {})", Some("await new Promise(() => {})")),
        ("let a = ;", None),
    ] {
        let code_that_ran = ran(&engine, job(code, Kind::Stateful(None))).await.code;
        assert_eq!(code_that_ran.as_ref().map(|(text, _)| text.as_str()), expected, "{code}");
    }
}

#[tokio::test]
async fn a_replay_evaluates_the_javascript_that_ran() {
    let engine = engine().await;
    let first = ran(&engine, job("enum E { A = 'a' } const a: string = E.A; a", Kind::Stateful(None))).await;
    let (Some(recorded), Some((javascript, form))) = (first.recorded, first.code) else { panic!("{}", first.text) };
    assert!(!javascript.contains("enum"), "{javascript}");
    let replayed = async |code: &str, form: Option<ScriptForm>| {
        let replay = Some(Replay { recorded: recorded.clone(), form });
        ran(&engine, Job { replay, ..job(code, Kind::Stateful(None)) }).await.text
    };
    assert_eq!(replayed(&javascript, form.clone()).await, "\"a\"");
    assert_eq!(replayed(&javascript.replace("'a'", "'b'").replace("\"a\"", "'b'"), form.clone()).await, "\"b\"");
    for form in [form, Some(ScriptForm::default())] {
        let text = replayed("const a: string = 'a'; a", form).await;
        assert!(text.contains("SyntaxError"), "types were stripped: {text}");
    }
}

/// V8 refuses TypeScript before its types are stripped. That takes a script number, and the positions of an object literal stay on the heap: a
/// replay of the JavaScript that left both out gave another heap.
#[tokio::test]
async fn what_was_refused_before_is_part_of_the_heap() {
    let engine = engine().await;
    for (code, has_positions) in [("var x: number = 1", false), ("  { a: 1 as number }", true)] {
        let first = check(&engine, code, None).await;
        let (Some(recorded), Some((javascript, Some(form)))) = (first.recorded, first.code) else { panic!("{}", first.text) };
        let refused = form.derivation().refused.expect("it was refused");
        assert_eq!(refused.positions.is_some(), has_positions, "{code}");
        let incomplete = if has_positions { vec![None, Some(RefusedScript::default())] } else { vec![None] };
        for refused in incomplete {
            let form = ScriptForm::new(&Derivation { refused, ..form.derivation() });
            let replay = Some(Replay { recorded: recorded.clone(), form });
            let again = ran(&engine, Job { replay, ..job(&javascript, Kind::Stateful(None)) }).await;
            assert_eq!(again.text, first.text);
            assert_ne!(again.heap.map(|heap| heap.key()), first.heap.as_ref().map(HeapImage::key), "{code}");
        }
    }
}

/// `Error.prepareStackTrace` of code was called with the error of a source that V8 had refused before its types were stripped. A replay of the
/// JavaScript has another error there. A promise that it made was taken for that of the run.
#[tokio::test]
async fn code_is_not_called_for_a_source_that_is_refused() {
    let engine = engine().await;
    let hook =
        "var seen = []; Error.prepareStackTrace = (error, sites) => { console.log(error); seen.push(error); return Promise.resolve() }; 0";
    let first = check(&engine, hook, None).await;
    let typed = check(&engine, "const x: number = 6 * 7; [x, seen.length]", first.heap.clone()).await;
    assert_eq!((typed.text.as_str(), typed.output.as_str()), ("[42,0]", ""));
    let refused = check(&engine, "let y = ;", first.heap).await;
    assert_eq!((refused.text.as_str(), refused.output.as_str()), ("SyntaxError: Unexpected token ';'\n    at main.js:1:9", ""));
}

/// What the second run reads differs from what the first one read, so that a replay that ignores the recording would be noticed.
#[tokio::test]
async fn runs_that_are_not_replays_differ() {
    let engine = engine().await;
    let code = "[Date.now(), Math.random(), crypto.randomUUID()].join()";
    let [first, second] = [ran(&engine, job(code, Kind::Stateful(None))).await, ran(&engine, job(code, Kind::Stateful(None))).await];
    assert_ne!(first.text, second.text);
    assert_ne!(first.recorded.map(|recorded| recorded.seed), second.recorded.map(|recorded| recorded.seed));
}

/// ICU reads the clock to fill its caches. In a session that stays in memory they are full, in one that is restored they are empty, so their
/// readings would shift those of the code.
#[tokio::test]
async fn readings_that_fill_caches_of_icu_are_not_recorded() {
    let engine = engine().await;
    let readings = async |code: &str| {
        let recorded = ran(&engine, job(code, Kind::Stateful(None))).await.recorded.expect("recorded");
        let mut replay = heapstead_wire::InputReplay::new(recorded.inputs);
        std::iter::from_fn(|| replay.reading()).count()
    };
    let none = readings("1").await;
    assert_eq!(readings("Date.now()").await, none + 1);
    for calendar in ["gregory", "chinese", "islamic", "japanese", "buddhist"] {
        let code = format!("new Intl.DateTimeFormat('de', {{ calendar: '{calendar}', dateStyle: 'full' }}).format(0)");
        assert_eq!(readings(&code).await, none, "{calendar}");
    }
    assert_eq!(readings("new Intl.DateTimeFormat('de').format()").await, none + 1);
}

#[tokio::test]
async fn a_replay_does_not_wait_for_timers() {
    let engine = engine().await;
    let code = "await new Promise(done => setTimeout(done, 3000)); performance.now() >= 3000";
    let first = ran(&engine, job(code, Kind::Stateful(None))).await;
    let begun = std::time::Instant::now();
    let replay = first.recorded.map(|recorded| Replay { recorded, form: None });
    let again = ran(&engine, Job { replay, ..job(code, Kind::Stateful(None)) }).await;
    assert_eq!((first.text.as_str(), again.text.as_str()), ("true", "true"));
    assert!(begun.elapsed().as_secs_f64() < 2.0, "the replay took {:?}", begun.elapsed());
}

#[tokio::test]
async fn what_is_not_recorded_is_reported() {
    let engine = engine().await;
    let headers = vec![("x-mcp-user".to_owned(), "ann".to_owned())];
    for (code, headers, gaps) in [
        ("new WeakRef({}).deref(); 1", vec![], vec![Gap::WeakRef]),
        ("new WeakRef({}); 1", vec![], vec![]),
        ("console.log('%o', new WeakSet([{}])); 1", vec![], vec![Gap::WeakMembers]),
        ("console.dir(new WeakMap([[{}, 1]]), { showHidden: true }); 1", vec![], vec![Gap::WeakMembers]),
        ("console.log(new WeakSet([{}])); 1", vec![], vec![]),
        ("function down() { try { return 1 + down() } catch { return 1 } } down() > 1000", vec![], vec![Gap::Stack]),
        ("function down(n) { return n && 1 + down(n - 1) } down(1000)", vec![], vec![]),
        ("mcp.headers['x-mcp-user']", headers.clone(), vec![Gap::Headers]),
        ("JSON.stringify(mcp.headers)", headers.clone(), vec![Gap::Headers]),
        ("'x-mcp-user' in mcp.headers", headers.clone(), vec![Gap::Headers]),
        ("typeof mcp", headers.clone(), vec![]),
        ("Object.keys(mcp.headers).length", vec![], vec![]),
    ] {
        let recorded = ran(&engine, Job { headers, ..job(code, Kind::Stateful(None)) }).await.recorded.expect("recorded");
        assert_eq!(recorded.inputs.gaps().collect::<Vec<_>>(), gaps, "{code}");
    }
    assert!(ran(&engine, job("Date.now()", Kind::Stateless)).await.recorded.is_none(), "stateless runs are not recorded");
}

/// A callback that runs would depend on when garbage is collected, which is not recorded. So none does.
#[tokio::test]
async fn callbacks_of_finalization_registries_never_run() {
    let engine = engine().await;
    let code = "var ran = 0; var registry = new FinalizationRegistry(() => { ran += 1 }); \
        for (let i = 0; i < 2e5; i++) registry.register({ i, pad: new Array(20).fill(i) }, i); \
        await new Promise(done => setTimeout(done, 20)); ran";
    let first = check(&engine, code, None).await;
    assert_eq!(first.text, "0");
    let later = "for (let i = 0; i < 2e5; i++) new Array(20).fill(i); await new Promise(done => setTimeout(done, 20)); ran";
    assert_eq!(check(&engine, later, first.heap).await.text, "0");
}

/// The recording was sent before the heap was written. So a run that was stopped while it was saved had an entry in the journal, and its
/// replay differed in its status.
#[tokio::test]
async fn a_run_that_is_stopped_while_it_is_saved_is_not_recorded() {
    let engine = engine().await;
    // Writing this heap takes seconds.
    let code = "globalThis.kept = Array.from({ length: 1e6 }, (_, i) => ({ i, text: 't' + i })); console.log('built'); 1";
    let mut big = job(code, Kind::Stateful(None));
    big.limits.heap_mb = 512;
    let mut execution = engine.submit(big).expect("accepted");
    while !matches!(execution.next_event().await.expect("output"), Event::Output(_)) {}
    // The code has ended: give the worker the time to say so.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(execution.canceller().cancel().await, "the heap is still being written");
    let mut last = execution.next_event().await;
    while let Some(event) = last {
        assert!(!matches!(event, Event::Recorded(..)), "a run that was stopped is recorded");
        if let Event::Ended(outcome) = &event {
            assert!(matches!(outcome, Outcome::Cancelled), "{outcome:?}");
        }
        last = execution.next_event().await;
    }
}

/// Inputs of more than 64 KiB count as an answer. They come in several parts, and the result follows.
#[tokio::test]
async fn a_run_with_long_inputs_repeats_exactly() {
    let engine = engine().await;
    let code = "let last = 0, seen = 0; while (seen < 40000) { const now = performance.now(); if (now !== last) { seen++; last = now } } [seen, last]";
    let first = check(&engine, code, None).await;
    let bytes = first.recorded.map_or(0, |recorded| recorded.inputs.as_bytes().len());
    assert!(bytes > 100_000, "{bytes}");
}
