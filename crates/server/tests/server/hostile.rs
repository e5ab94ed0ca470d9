//! The hostile suite on the running server: each case of `tests/hostile` on a fresh heap, in an opened session, in a live session, and on the
//! heap of its own first run.
//!
//! The suite in `testkit` runs the same cases on the engine, one at a time, and watches its memory. Here several run concurrently, and the
//! checks are on responses and on the server's processes, descriptors and files. The short form runs each case in one of its ways, so that
//! all ways are covered. `HEAPSTEAD_TORTURE=1` runs every case in every way. `HOSTILE=012 cargo test … hostile` selects cases.

use crate::fixture::{Folders, Server};
use futures_util::StreamExt;
use heapstead_testkit::hostile::{Case, Expected, Form, Mode, OUTPUT_BYTES_MAX};
use heapstead_testkit::{ObservedRun, Process};
use heapstead_types::{Failure, Status};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Most looping cases wait for their time limit, so a few in parallel do not disturb each other on two cores.
const CONCURRENT: usize = 5;
/// How long after its time limit a run may end, with parallel runs and its heap stored.
const LATE_MAX: Duration = Duration::from_secs(2);
const OUTPUT_MB: u64 = OUTPUT_BYTES_MAX >> 20;
/// Creates a known state.
const CANARY: &str = "let canary = 41; let log = ['start'];";
/// Shows the state of a live session: its variables, and everything that is global.
const STATE: &str = "JSON.stringify([canary, log, Reflect.ownKeys(globalThis).map(String)])";
const SECRET: &str = "the-headers-of-a-run-are-of-that-run-alone";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Fresh,
    Session,
    Live,
    Second,
    Stateless,
    Chain,
    Many,
}

/// What a run starts from.
#[derive(Clone, Copy)]
enum On<'a> {
    Fresh,
    Heap(&'a str),
    /// The head of an opened session.
    Session(&'a str),
    /// The same, in memory: the turn is acknowledged before its heap is stored.
    Live(&'a str),
}

struct Suite {
    server: Server,
    stateless: Server,
    /// A heap with the known state.
    canary: String,
}

/// One case in one way, and its violations.
struct Trial<'a> {
    suite: &'a Suite,
    case: &'a Case,
    way: Way,
    problems: Vec<String>,
    /// Whether the only violations are late ends, which a busy machine can cause.
    late_only: bool,
}

fn ways(case: &Case, number: usize) -> Vec<Way> {
    let mut ways = Vec::new();
    if case.file.mode != Mode::Stateless {
        ways.extend([Way::Fresh, Way::Session, Way::Live]);
        ways.extend((!case.file.does_not_compile).then_some(Way::Second));
    }
    if case.file.mode != Mode::Stateful {
        ways.push(Way::Stateless);
    }
    if !crate::fixture::torture() {
        ways = vec![ways[number % ways.len()]];
    }
    ways.extend(case.file.chain.is_some().then_some(Way::Chain));
    ways.extend(case.file.many.is_some().then_some(Way::Many));
    ways
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_code_does_not_affect_the_server() {
    let form = if crate::fixture::torture() { Form::Full } else { Form::Small };
    let only = std::env::var("HOSTILE").unwrap_or_default();
    let cases = Case::load_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile"), form).expect("the cases");
    let cases: Vec<_> = cases.iter().filter(|case| case.name.starts_with(&only)).collect();
    assert!(!cases.is_empty(), "no case begins with {only}");
    let mb = OUTPUT_MB.to_string();
    let server = Server::start_with(&Folders::new(), &["--output-max-mb", &mb]);
    let stateless = Server::start_with(&Folders::new(), &["--stateless", "--output-max-mb", &mb]);
    let canary = server.run(CANARY).await["heap"].as_str().expect("a heap").to_owned();
    let suite = Suite { server, stateless, canary };
    let before = suite.processes_and_descriptors();
    let trials = cases.iter().enumerate().flat_map(|(number, case)| ways(case, number).into_iter().map(move |way| (*case, way)));
    let mut trials: Vec<_> =
        futures_util::stream::iter(trials).map(|(case, way)| suite.trial(case, way)).buffer_unordered(CONCURRENT).collect().await;
    let count = trials.len();
    for trial in &mut trials {
        if trial.late_only && !trial.problems.is_empty() {
            *trial = suite.trial(trial.case, trial.way).await;
        }
    }
    let mut problems: Vec<String> = trials.iter().flat_map(Trial::report).collect();
    problems.extend(suite.differences(&before));
    assert!(problems.is_empty(), "{} of {count} trials:\n{}", problems.len(), problems.join("\n"));
}

impl Suite {
    async fn trial<'a>(&'a self, case: &'a Case, way: Way) -> Trial<'a> {
        let mut trial = Trial { suite: self, case, way, problems: Vec::new(), late_only: true };
        match way {
            Way::Fresh => trial.fresh().await,
            Way::Session => trial.session().await,
            Way::Live => trial.live().await,
            Way::Second => trial.second().await,
            Way::Stateless => trial.stateless().await,
            Way::Chain => trial.chain().await,
            Way::Many => trial.many().await,
        }
        let (began, record) = (Instant::now(), self.server.run_with(json!({ "code": "canary + 1", "heap": self.canary })).await);
        if record["result"] != "42" {
            trial.add_violation(format!("the canary: {record}"));
        }
        trial.in_time("the canary", began.elapsed(), LATE_MAX);
        trial
    }

    fn servers(&self) -> [&Server; 2] {
        [&self.server, &self.stateless]
    }

    /// What must not change: the zygotes, and the kinds of open descriptors of servers and zygotes.
    fn processes_and_descriptors(&self) -> Vec<(Process, Vec<String>)> {
        let of = |server: &&Server| {
            let process = Process::of(server.pid()).expect("the server lives");
            let zygotes = process.children().into_iter().filter(|child| child.command_line().iter().any(|word| word == "zygote"));
            std::iter::once(process).chain(zygotes).map(|process| (process, stable_descriptors(process.descriptors()))).collect::<Vec<_>>()
        };
        self.servers().iter().flat_map(of).collect()
    }

    /// Differences that remain after a grace period.
    fn differences(&self, before: &[(Process, Vec<String>)]) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            let now = self.processes_and_descriptors();
            let mut found = Vec::new();
            if now != before {
                found.push(format!("processes and descriptors: before {before:?}, after {now:?}"));
            }
            for (process, _) in &now {
                let workers = process.children();
                found.extend(workers.iter().filter(|worker| worker.is_zombie()).map(|worker| format!("{worker:?} is a zombie")));
                if workers.len() > 2 {
                    found.push(format!("{process:?} has {} children, and at most two wait for work", workers.len()));
                }
            }
            let heaps = std::fs::read_dir(self.server.folders().heaps()).expect("the heaps").flatten();
            found.extend(heaps.map(|entry| entry.path().display().to_string()).filter(|path| path.contains(".writing-")));
            if found.is_empty() || Instant::now() > until {
                return found;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Leaves out descriptors that vary: connections, cached heaps and database readers.
fn stable_descriptors(descriptors: Vec<String>) -> Vec<String> {
    let mut kinds: Vec<_> = descriptors.iter().map(|target| target.split(":[").next().unwrap_or(target).to_owned()).collect();
    kinds.retain(|kind| kind != "socket" && !kind.contains("memfd:") && !kind.contains(".db"));
    kinds.sort();
    kinds
}

impl Trial<'_> {
    fn report(&self) -> impl Iterator<Item = String> {
        let of = format!("{} ({:?})", self.case.name, self.way);
        self.problems.iter().map(move |problem| format!("{of}: {problem}"))
    }

    async fn fresh(&mut self) {
        let record = self.checked("the run", &self.case.code, On::Fresh, &self.case.file.ends).await;
        self.after(&record).await;
    }

    async fn session(&mut self) {
        let server = &self.suite.server;
        let (_, opened) = server.post("/api/sessions", json!({})).await;
        let session = opened["session_id"].as_str().expect("an id");
        let before = server.run_with(json!({ "code": CANARY, "session": session, "durability": "snapshot" })).await;
        let record = self.checked("the run in the session", &self.case.code, On::Session(session), &self.case.file.ends).await;
        // Only a completed run moves the head.
        let head = if record["status"] == "completed" { &record["heap"] } else { &before["heap"] };
        let (_, shown) = server.get(&format!("/api/sessions/{session}")).await;
        let (_, log) = server.get(&format!("/api/session-snapshots?session={session}&fields=output_heap")).await;
        let last = log["entries"].as_array().and_then(|entries| entries.last()).map(|last| &last["output_heap"]);
        if (&shown["head"], last) != (head, Some(head)) {
            self.add_violation(format!("the session is {shown}, and its log {log}; the head should be {head}"));
        }
        self.after(&record).await;
        self.checked("the session afterwards", "canary + log.length", On::Session(session), &Expected::completed("42")).await;
    }

    /// A turn that does not complete leaves the state of the session as it was, byte by byte.
    async fn live(&mut self) {
        let server = &self.suite.server;
        let (_, opened) = server.post("/api/sessions", json!({})).await;
        let id = opened["session_id"].as_str().expect("an id");
        let session = On::Live(id);
        self.checked("the first turn", CANARY, session, &Expected::completed("undefined")).await;
        let (before, _) = self.run("the state", self.body(STATE, session, self.case.limits().heap_mb)).await;
        let (record, seen) = self.run("the turn", self.body(&self.case.code, session, self.case.limits().heap_mb)).await;
        let completed = seen.status == Status::Completed;
        let saveable = !completed || self.case.file.ends.may_complete();
        if saveable {
            self.compare("the turn", seen, &self.case.file.ends);
        }
        if completed {
            let (_, stored) =
                server.get(&format!("/api/executions/{}?materialize=true", record["execution_id"].as_str().expect("an id"))).await;
            if stored["heap"].is_string() != saveable {
                self.add_violation(format!("the heap of the turn, which {} be saved: {stored}", if saveable { "can" } else { "can't" }));
            }
            self.after(&stored).await;
        } else {
            let (after, _) = self.run("the state", self.body(STATE, session, self.case.limits().heap_mb)).await;
            if before["result"] != after["result"] || !before["result"].is_string() {
                self.add_violation(format!("the state of the session was {before}, and is {after}"));
            }
        }
        self.checked("the session afterwards", "canary + log.length", session, &Expected::completed("42")).await;
        // Ends its processes, which would stay in memory.
        let (status, ended) = server.delete(&format!("/api/sessions/{id}")).await;
        if status >= 300 {
            self.add_violation(format!("the session can't be ended: {status}: {ended}"));
        }
    }

    async fn second(&mut self) {
        let (case, file) = (self.case, &self.case.file);
        let saves = Expected::completed("\"saved\"");
        let (first, expected, second) = match &case.prefix {
            Some(prefix) => (prefix.clone(), &saves, case.code.clone()),
            None if file.ends.may_complete() => (case.code.clone(), &file.ends, case.code.clone()),
            None => (case.storing_code(), &saves, case.stored_code()),
        };
        let record = self.checked("the first run", &first, On::Fresh, expected).await;
        let Some(heap) = record["heap"].as_str() else { return };
        let ends = file.second.as_ref().unwrap_or(&file.ends);
        let record = self.checked("the second run", &second, On::Heap(heap), ends).await;
        self.after(&record).await;
    }

    /// Repeats the case on its own heap until it is refused.
    async fn chain(&mut self) {
        let Some(chain) = &self.case.file.chain else { return };
        let mut last = Value::Null;
        for completed in 0..chain.runs_max {
            let on = last["heap"].as_str().map_or(On::Fresh, On::Heap);
            let (record, seen) = self.run("a run of the chain", self.body(&self.case.code, on, self.case.limits().heap_mb)).await;
            if seen.status == Status::Completed {
                last = record;
                continue;
            }
            self.compare("the run that ends the chain", seen, &chain.ends);
            if completed < chain.completes_min {
                self.add_violation(format!("{completed} runs of the chain completed, {} should: {record}", chain.completes_min));
            }
            return self.after(&last).await;
        }
        self.add_violation(format!("{} runs completed, and none was refused", chain.runs_max));
    }

    /// Several concurrent runs with different results.
    async fn many(&mut self) {
        let count = self.case.many_runs();
        let body = self.body(&self.case.code, On::Fresh, self.case.limits().heap_mb);
        let runs = futures_util::stream::iter(0..count).map(|_| self.suite.server.run_with(body.clone()));
        let results: HashSet<String> = runs.buffer_unordered(CONCURRENT).map(|record| record["result"].to_string()).collect().await;
        if results.len() != count {
            self.add_violation(format!("{count} runs gave only {} different results", results.len()));
        }
    }

    async fn stateless(&mut self) {
        let limits = self.case.limits();
        let body = json!({ "code": self.case.code, "heap_memory_max_mb": limits.heap_mb, "execution_timeout_secs": limits.timeout_secs });
        let began = Instant::now();
        let (status, answer) = self.suite.stateless.post("/api/exec", body).await;
        let wall = began.elapsed();
        if status != 200 {
            return self.add_violation(format!("it was answered with {status}: {answer}"));
        }
        let error = answer["error"].as_str();
        let status = match error {
            None => Status::Completed,
            Some(error) if error.contains("took longer than its limit") => Status::TimedOut,
            Some(_) => Status::Failed,
        };
        let output = answer["output"].as_str().unwrap_or_default().to_owned();
        self.compare("the stateless run", seen(status, None, error, output, wall), &self.case.file.ends);
    }

    async fn after(&mut self, record: &Value) {
        let (Some(after), Some(heap)) = (&self.case.file.after, record["heap"].as_str()) else { return };
        let limits = self.case.limits();
        let body = self.body(&after.code, On::Heap(heap), after.heap_mb.unwrap_or(limits.heap_mb));
        let (_, seen) = self.run("the code afterwards", body).await;
        self.compare("the code afterwards", seen, &after.ends);
    }

    async fn checked(&mut self, what: &str, code: &str, on: On<'_>, ends: &Expected) -> Value {
        let (record, seen) = self.run(what, self.body(code, on, self.case.limits().heap_mb)).await;
        self.compare(what, seen, ends);
        record
    }

    fn body(&self, code: &str, on: On<'_>, heap_mb: u32) -> Value {
        let timeout_secs = self.case.limits().timeout_secs;
        let (heap, session, durability) = match on {
            On::Fresh => (None, None, None),
            On::Heap(key) => (Some(key), None, None),
            On::Session(id) => (None, Some(id), Some("snapshot")),
            On::Live(id) => (None, Some(id), Some("journal")),
        };
        json!({ "code": code, "heap": heap, "session": session, "durability": durability, "on_missing_heap": "fail", "heap_memory_max_mb": heap_mb, "execution_timeout_secs": timeout_secs, "wait_secs": 300 })
    }

    /// Runs code and makes the checks that apply to every run.
    async fn run(&mut self, what: &str, body: Value) -> (Value, ObservedRun) {
        let server = &self.suite.server;
        let post = server.client.post(format!("{}/api/exec", server.url)).header("X-MCP-Secret", SECRET).json(&body);
        let response = post.send().await.expect("an answer");
        let answered = response.status();
        let record: Value = response.json().await.expect("JSON");
        if answered != 200 {
            self.add_violation(format!("{what}: it was answered with {answered}: {record}"));
            return (Value::Null, seen(Status::Failed, None, None, String::new(), Duration::ZERO));
        }
        let output = self.output(record["execution_id"].as_str().expect("an id")).await;
        let time = |field: &str| record[field].as_str().and_then(|text| text.parse::<Timestamp>().ok()).expect("a time");
        let wall = Duration::try_from(time("completed_at").duration_since(time("started_at"))).unwrap_or_default();
        self.in_time(what, wall, Duration::from_secs(self.case.limits().timeout_secs.into()) + LATE_MAX);
        if let Some(heap) = record["heap"].as_str() {
            let file = std::fs::read(server.folders().heaps().join(heap)).expect("the heap");
            if file.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
                self.add_violation(format!("{what}: the value of a header is on the heap it produced"));
            }
        }
        let status = record["status"].as_str().and_then(Status::from_name).expect("a status");
        let seen = seen(status, record["result"].as_str(), record["error"].as_str(), output, wall);
        (record, seen)
    }

    async fn output(&self, id: &str) -> String {
        let (mut output, mut offset) = (String::new(), 0);
        loop {
            let path = format!("/api/executions/{id}/output?byte_offset={offset}&byte_limit=4194304");
            let (_, page) = self.suite.server.get(&path).await;
            output += page["data"].as_str().expect("text");
            offset = page["next_byte_offset"].as_u64().expect("a cursor");
            if page["has_more"] == false {
                return output;
            }
        }
    }

    fn compare(&mut self, what: &str, seen: ObservedRun, expected: &Expected) {
        let violations = expected.compare(&seen);
        // A run that hit its time limit before its expected end counts as late too.
        self.late_only &= violations.is_empty() || seen.status == Status::TimedOut;
        self.problems.extend(violations.into_iter().map(|violation| format!("{what}: {violation}")));
        if let Some(within_ms) = expected.within_ms {
            self.in_time(what, seen.wall, Duration::from_millis(within_ms) + LATE_MAX);
        }
    }

    fn in_time(&mut self, what: &str, took: Duration, max: Duration) {
        if took > max {
            self.problems.push(format!("{what}: took {took:?}, at most {max:?} are allowed"));
        }
    }

    fn add_violation(&mut self, text: String) {
        self.late_only = false;
        self.problems.push(text);
    }
}

/// The response in the form that the suite compares. A failure has only its text.
fn seen(status: Status, result: Option<&str>, error: Option<&str>, output: String, wall: Duration) -> ObservedRun {
    let truncated = format!("[output truncated: more than {OUTPUT_MB} MB was written]\n");
    let (output, drops) = match output.strip_suffix(&truncated) {
        // It starts on its own line.
        Some(kept) => (kept.strip_suffix('\n').unwrap_or(kept).to_owned(), 1),
        None => (output, 0),
    };
    let failure = error.filter(|_| status == Status::Failed).map(|error| match error.contains("the worker ") {
        true => Failure::WorkerMisbehaved(error.to_owned()),
        false => Failure::Exception(error.to_owned()),
    });
    ObservedRun {
        status,
        result: result.map(str::to_owned),
        failure,
        heap: None,
        turn: None,
        output: output.into_bytes(),
        drops,
        wall,
        peak_bytes: 0,
    }
}
