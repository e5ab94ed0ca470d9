//! Every run of a large collection of programs is repeated from its journal, and is identical. Only what the documentation lists can't be
//! repeated. `SEED=…` replays a failure.

mod collection;

use crate::fixture::{Folders, Random, Server};
use collection::Program;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;

const CONCURRENT: usize = 3;
const TRIES_MAX: usize = 10;

/// Whether an exception may apply to a program and its record.
type Applies = fn(&Program, &Value) -> bool;

/// Why a run was not repeated: what the refusal says, and what must be so then.
const EXCEPTIONS: &[(&str, Applies)] = &[
    ("dereferenced a WeakRef", |program, _| {
        program.code.contains("WeakRef") || program.code.contains("deref") || program.name.contains(" on the heap of ")
    }),
    ("`mcp.headers`", |program, _| program.code.contains("mcp") || program.name.contains(" on the heap of ")),
    ("exceed 1 MiB", |_, _| true),
    ("members of a WeakMap or WeakSet", |program, _| program.code.contains("Weak") || program.name.contains(" on the heap of ")),
    ("more than half of the stack", |_, _| true),
    // Code that was stopped at one of its limits can't say what it had read.
    ("it was stopped", |_, record| record["status"] == "timed_out"),
    ("failure of its worker", |_, record| record["error"].as_str().is_some_and(stopped)),
];

fn stopped(error: &str) -> bool {
    ["memory", "the worker ", "can't be saved", "larger than"].iter().any(|part| error.contains(part))
}

/// A run, and what its replay said.
struct Replayed {
    program: Program,
    record: Value,
    status: u16,
    report: Value,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_run_of_a_collection_is_repeated() {
    let (on_fresh_heaps, on_other_heaps) = if crate::fixture::torture() { (usize::MAX, 9_500) } else { (200, 100) };
    let random = Random::new();
    let server = Server::start_with(&Folders::new(), &["--log", "error"]);
    let begun = Instant::now();
    let mut programs = collection::all();
    let known = programs.len();
    for index in (1..known).rev() {
        programs.swap(index, random.below(index as u64 + 1) as usize);
    }
    let first = replayed(&server, programs.iter().take(on_fresh_heaps).map(|program| (program.clone(), Value::Null)).collect()).await;
    // The same programs again, on heaps that others have left.
    let left: Vec<&Replayed> = first.iter().filter(|replayed| replayed.record["heap"].is_string()).collect();
    let pick = |of: usize| random.below(of as u64) as usize;
    let second = (0..on_other_heaps).map(|_| {
        let (mut program, before) = (programs[pick(known)].clone(), left[pick(left.len())]);
        program.name += &format!(" on the heap of {}", before.program.name);
        if pick(2) == 0 {
            program.code = format!("globalThis.read = [Math.random(), Date.now()]; console.log(read);\n{}", program.code);
        }
        program.leaves_addresses |= before.program.leaves_addresses;
        (program, before.record["heap"].clone())
    });
    let second = replayed(&server, second.collect()).await;

    let (mut outcomes, mut problems) = (BTreeMap::<&str, usize>::new(), Vec::new());
    for replayed in first.iter().chain(&second) {
        match replayed.outcome() {
            Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
            Err(problem) => problems.push(problem),
        }
    }
    let runs = first.len() + second.len();
    println!("{runs} runs of {known} programs were repeated in {:.1?}: {outcomes:?}", begun.elapsed());
    assert!(problems.is_empty(), "SEED={}: {} of {runs}:\n{}", random.seed, problems.len(), problems.join("\n"));
    let identical = outcomes.get("identical").copied().unwrap_or(0);
    assert!(identical * 10 > runs * 8, "SEED={}: only {identical} of {runs} could be repeated: {outcomes:?}", random.seed);
}

async fn replayed(server: &Server, runs: Vec<(Program, Value)>) -> Vec<Replayed> {
    let replayed = futures_util::stream::iter(runs).map(async |(program, heap)| {
        let record = server
            .run_with(json!({ "code": program.code, "heap": heap, "heap_memory_max_mb": program.heap_mb,
                "execution_timeout_secs": program.timeout_secs }))
            .await;
        let id = record["execution_id"].as_str().expect("an id");
        let (mut status, mut report) = server.post(&format!("/api/executions/{id}/replay"), json!({})).await;
        // A replay has the time limit of its run, which a busy machine may exceed.
        for _ in 0..TRIES_MAX {
            if status != 503 {
                break;
            }
            (status, report) = server.post(&format!("/api/executions/{id}/replay"), json!({})).await;
        }
        Replayed { program, record, status, report }
    });
    replayed.buffered(CONCURRENT).collect().await
}

impl Replayed {
    /// `identical`, or the exception that applies.
    fn outcome(&self) -> Result<&'static str, String> {
        let Self { program, record, status, report } = self;
        if *status == 200 && report["identical"] == true && (report["heap"] == report["recorded_heap"] || program.leaves_addresses) {
            return Ok("identical");
        }
        let refusal = report["detail"].as_str().filter(|_| *status == 409).unwrap_or_default();
        let exception = EXCEPTIONS.iter().find(|(text, applies)| refusal.contains(text) && applies(program, record));
        let shown = |text: &dyn ToString| text.to_string().chars().take(600).collect::<String>();
        exception
            .map(|(text, _)| *text)
            .ok_or_else(|| format!("{}: {}\n  ran as {}\n{}", program.name, shown(report), shown(record), shown(&program.code)))
    }
}
