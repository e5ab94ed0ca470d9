//! Tests of the worker protocol on a production worker, without an engine: requests in order, out of order, and malformed.

mod common;

use common::production;
use heapstead_types::Failure;
use heapstead_wire::control::{self, FromZygote, ToZygote};
use heapstead_wire::{
    CallNumber, Decoder, Derivation, FromWorker, Open, RecordedInputs, RefusedScript, Replay, RunNumber, RunSettings, ScriptForm, ToWorker,
    ZygoteSettings, send_with_descriptors,
};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

const CONTROL: i32 = 3;

/// A production zygote, started as the engine starts it.
struct Zygote {
    child: Child,
    control: OwnedFd,
}

impl Zygote {
    fn start() -> Self {
        let parts = production();
        let (control, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("sockets");
        let descriptor = theirs.as_raw_fd();
        let mut command = Command::new(&parts.host);
        let settings = ZygoteSettings::default().to_word();
        command
            .args(["zygote".as_ref(), parts.base_heap.as_os_str(), settings.as_ref()])
            .env_clear()
            .env("LD_PRELOAD", &parts.worker)
            .env("TZ", "UTC");
        // SAFETY: between fork and exec only async-signal-safe calls are made.
        unsafe {
            command.pre_exec(move || match libc::dup2(descriptor, CONTROL) {
                CONTROL if descriptor != CONTROL || libc::fcntl(CONTROL, libc::F_SETFD, 0) == 0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let zygote = Self { child: command.spawn().expect("the V8 host"), control };
        let ready: Option<(FromZygote, _)> = control::receive(&zygote.control).expect("a message");
        assert!(matches!(ready, Some((FromZygote::Ready { .. }, _))), "{ready:?}");
        zygote
    }

    fn fork(&self) -> Worker {
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("sockets");
        control::send(&self.control, &ToZygote::Fork { worker: 1, heap_mb: 64, live: false }, Some(theirs.as_fd())).expect("send");
        loop {
            // Earlier workers may have exited meanwhile.
            match control::receive(&self.control).expect("a message") {
                Some((FromZygote::Exited { .. }, _)) => {}
                Some((FromZygote::Forked { .. }, _)) => return Worker { socket, decoder: Decoder::default() },
                other => panic!("{other:?}"),
            }
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Worker {
    socket: OwnedFd,
    decoder: Decoder,
}

impl Worker {
    fn send(&self, request: &ToWorker<'_>, descriptor: Option<&File>) {
        let mut bytes = Vec::new();
        request.write_to(&mut bytes).expect("write to memory");
        let descriptors: Vec<_> = descriptor.map(AsFd::as_fd).into_iter().collect();
        assert_eq!(send_with_descriptors(&self.socket, &bytes, &descriptors), Ok(bytes.len()));
    }

    /// Waits for the next message. None if the worker has exited.
    fn next(&mut self) -> Option<FromWorker> {
        loop {
            if let Some(message) = self.decoder.next_message().expect("a message") {
                return Some(message);
            }
            let mut buffer = [0; 4096];
            match rustix::io::read(&self.socket, &mut buffer[..]) {
                Ok(count @ 1..) => self.decoder.push(&buffer[..count]),
                _ => return None,
            }
        }
    }

    /// Sends a request and returns all messages up to the one that answers it, without what a run has read from outside.
    fn ask(&mut self, request: &ToWorker<'_>, descriptor: Option<&File>, is_answer: impl Fn(&FromWorker) -> bool) -> Vec<FromWorker> {
        self.send(request, descriptor);
        let mut all = Vec::new();
        while let Some(message) = self.next() {
            if matches!(message, FromWorker::Inputs { .. }) {
                continue;
            }
            all.push(message);
            if all.last().is_some_and(&is_answer) {
                break;
            }
        }
        all
    }
}

fn number(run: u64) -> RunNumber {
    RunNumber::new(run).expect("not 0")
}

fn open(stateful: bool) -> ToWorker<'static> {
    ToWorker::Open(Open { heap_mb: 64, heap_bytes: None, identity_seed: 0, stateful })
}

fn run(run: u64, code: &str) -> ToWorker<'_> {
    let settings = RunSettings { output_bytes_max: 1 << 20, seed: [7; 32], headers: vec![] };
    ToWorker::Run { run: number(run), settings: Cow::Owned(settings), replay: None, code: Cow::Borrowed(code) }
}

fn is_end(message: &FromWorker) -> bool {
    matches!(message, FromWorker::Ended { .. })
}

fn blank() -> File {
    File::from(memfd_create("heap", MemfdFlags::CLOEXEC).expect("memory"))
}

/// Sends each request after the previous one was answered. The run number is not 1, as for a later run.
#[test]
fn a_worker_answers_each_request_with_the_number_of_its_run() {
    let zygote = Zygote::start();
    let mut worker = zygote.fork();
    let (n, heap) = (number(7), blank());
    let refused = Some(RefusedScript { positions: None });
    let form = ScriptForm::new(&Derivation { is_typescript: true, refused, ..Derivation::default() });
    assert_eq!(worker.ask(&open(true), None, |message| *message == FromWorker::Opened), [FromWorker::Opened]);
    assert_eq!(
        worker.ask(&run(7, "console.log('here'); const x: number = 6 * 7; x"), None, is_end),
        [
            FromWorker::Started { run: n },
            FromWorker::Parsing { run: n },
            FromWorker::Started { run: n },
            FromWorker::Output { run: n, text: b"here\n".to_vec() },
            FromWorker::Javascript { run: n, text: "console.log('here'); const x         = 6 * 7; x".into(), form },
            FromWorker::Ended { run: n, outcome: Ok("42".into()) },
        ]
    );
    assert_eq!(worker.ask(&ToWorker::Commit { run: n }, None, |_| true), [FromWorker::Committed { run: n }]);
    let answer = worker.ask(&ToWorker::Snapshot { run: n }, Some(&heap), |_| true);
    let [FromWorker::Snapshot { run, outcome: Ok(written) }] = answer[..] else { panic!("{answer:?}") };
    let mut payload = vec![0; usize::try_from(written.length).expect("a length")];
    heap.read_exact_at(&mut payload, 0).expect("the snapshot");
    assert_eq!((run, written.sha256), (n, Sha256::digest(&payload).into()));
    worker.send(&ToWorker::Close, None);
    assert_eq!(worker.next(), None, "it has exited");
}

#[test]
fn requests_out_of_order_are_refused_with_a_reason() {
    let zygote = Zygote::start();
    let snapshot = |run| ToWorker::Snapshot { run: number(run) };
    let commit = |run| ToWorker::Commit { run: number(run) };
    let reply = || ToWorker::Reply { run: number(1), call: CallNumber(1), outcome: Ok(vec![]) };
    for (requests, why) in [
        (vec![run(1, "1")], "protocol: the server sent `Run` before `Open`"),
        (vec![reply()], "protocol: the server sent `Reply` before `Open`"),
        (vec![open(true), open(true)], "protocol: the server sent `Open` a second time"),
        (vec![open(true), commit(1)], "protocol: the server sent `Commit` for run 1, which has not completed"),
        (vec![open(true), run(1, "1"), commit(2)], "protocol: the server sent `Commit` for run 2, which has not completed"),
        (vec![open(true), run(1, "1"), snapshot(2)], "protocol: the server sent `Snapshot` for run 2, which has not completed"),
        (vec![open(true), run(1, "1"), snapshot(1), snapshot(1)], "protocol: the server sent `Snapshot` a second time"),
        (vec![open(true), run(1, "1"), reply()], "protocol: the server sent `Reply` that was not asked for"),
        (vec![open(true), run(1, "1"), run(2, "1")], "protocol: the server sent `Run` before `Commit`"),
        (
            vec![open(true), run(1, "1"), commit(1), run(1, "1")],
            "protocol: the server sent `Run` 1, which is not higher than the run before",
        ),
        (vec![open(false), run(1, "1"), commit(1), run(2, "1")], "this worker has served its last run"),
        (vec![open(true), run(1, "1"), snapshot(1), commit(1), run(2, "1")], "this worker has served its last run"),
    ] {
        let (mut worker, heap) = (zygote.fork(), blank());
        for request in &requests {
            worker.send(request, (request.descriptors() > 0).then_some(&heap));
        }
        let mut last = None;
        while let Some(message) = worker.next() {
            last = Some(message);
        }
        assert_eq!(last, Some(FromWorker::Unfit { why: why.into() }), "{requests:?}");
    }
}

#[test]
fn malformed_requests_are_refused_with_a_reason() {
    let zygote = Zygote::start();
    for (bytes, why) in [
        (&[0xff; 13][..], "protocol: a frame of unknown kind 255"),
        (&[0, 0, 0, 0, 14, 1, 0, 0, 0, 0, 0, 0, 0], "protocol: a frame of unknown kind 14"),
        (
            &[0xff, 0xff, 0xff, 0xff, 2, 1, 0, 0, 0, 0, 0, 0, 0],
            "protocol: a frame `Run` with 4294967295 bytes, at most 19136524 are allowed",
        ),
        (&[0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0], "protocol: a frame `Run` without a run number"),
        (&[2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, b'{', b'}'], "protocol: a frame `Open` whose payload can't be read"),
    ] {
        let mut worker = zygote.fork();
        assert_eq!(send_with_descriptors(&worker.socket, bytes, &[]), Ok(bytes.len()));
        assert_eq!(worker.next(), Some(FromWorker::Unfit { why: why.into() }));
        assert_eq!(worker.next(), None, "it has exited");
    }
}

/// If a run fails, its worker exits, even if further requests were sent.
#[test]
fn a_worker_exits_after_a_failed_run() {
    let zygote = Zygote::start();
    let (mut worker, heap) = (zygote.fork(), blank());
    worker.send(&open(true), None);
    worker.send(&run(1, "throw 1"), None);
    worker.send(&ToWorker::Snapshot { run: number(1) }, Some(&heap));
    let mut all = Vec::new();
    while let Some(message) = worker.next() {
        all.push(message);
    }
    assert!(matches!(all.last(), Some(FromWorker::Ended { outcome: Err(Failure::Exception(_)), .. })), "{all:?}");
    assert_eq!(heap.metadata().expect("its length").len(), 0);
}

#[test]
fn a_stateless_run_has_no_snapshot() {
    let zygote = Zygote::start();
    let (mut worker, heap) = (zygote.fork(), blank());
    worker.send(&open(false), None);
    worker.ask(&run(1, "1"), None, is_end);
    let answer = worker.ask(&ToWorker::Snapshot { run: number(1) }, Some(&heap), |_| true);
    assert_eq!(answer, [FromWorker::Snapshot { run: number(1), outcome: Err(Failure::Unsaveable("the run was stateless".into())) }]);
}

/// Turns that depend on each other in all the ways in which state outlives a run.
const TURNS: &[&str] = &[
    "var n = 1; let m = { deep: [1, 2, { three: 3 }] }; const fixed = Symbol('kept'); n",
    "function add(x) { n += x; return n } class Counter { #count = 0; next() { return ++this.#count } static made = 0 } var counter = new Counter(); add(2)",
    "function* walk() { let i = 0; for (;;) { const step = yield i; i += step ?? 1 } } var walking = walk(); walking.next(); walking.next(5).value",
    "var resolve; var pending = new Promise(done => { resolve = done }); pending.then(value => console.log('settled', value)); counter.next()",
    "resolve(Math.random()); await pending; [counter.next(), walking.next(7).value]",
    "setTimeout(() => console.log('timer', n), 5); var id = setTimeout(() => console.log('never'), 1e6); clearTimeout(id); 'timers'",
    "var failed = new Error('kept'); var caught; try { null.x } catch (error) { caught = error } [failed.stack, caught.stack]",
    "const typed: number = 41; enum Kind { A = 'a', B = 'b' } var kinds = Kind; typed + 1",
    "var bytes = new Uint8Array(1000).map((_, i) => i * Math.random()); var map = new Map([[m, bytes], ['at', new Date()]]); map.size",
    "let hot = 0; for (let i = 0; i < 200000; i++) hot += Math.imul(i, n) & 7; hot",
    "async function later() { await null; return failed.message + [...map.keys()].length } await later()",
    "var weak = new WeakMap([[m, 'weak']]); var set = new Set('abc'); [weak.get(m), [...set], fixed.toString(), Object.keys(kinds)]",
    "console.log(crypto.randomUUID(), performance.now() >= 0, Date.now() > 0); [caught.stack, add(1), counter.next(), map.get(m)[10]]",
    "globalThis.fn = new Function('return n'); fn() + (() => m.deep[2].three)()",
    "fn() + counter.next() + walking.next().value + /(?<year>\\d+)/.exec(map.get('at').toISOString()).groups.year",
];

/// What code sees of a turn.
#[derive(Debug, PartialEq)]
struct Seen {
    output: String,
    outcome: Result<String, Failure>,
}

impl Worker {
    /// Runs a turn, with the inputs of an earlier one if they are given. Returns what it shows, and its inputs.
    fn turn(&mut self, n: u64, code: &str, replay: Option<&RecordedInputs>) -> (Seen, RecordedInputs) {
        let request = match run(n, code) {
            ToWorker::Run { run, settings, code, .. } => {
                let replay = replay.map(|inputs| Replay { inputs: Cow::Borrowed(inputs), form: None });
                ToWorker::Run { run, settings, replay, code }
            }
            other => other,
        };
        self.send(&request, None);
        let (mut output, mut inputs) = (Vec::new(), Vec::new());
        loop {
            match self.next().unwrap_or_else(|| panic!("an end of {code}")) {
                FromWorker::Output { text, .. } => output.extend(text),
                FromWorker::Inputs { part, .. } => inputs.extend(part),
                FromWorker::Ended { outcome, .. } => {
                    let output = String::from_utf8(output).expect("UTF-8");
                    let inputs = replay.cloned().or_else(|| RecordedInputs::from_bytes(inputs));
                    return (Seen { output, outcome }, inputs.expect("a recording"));
                }
                _ => {}
            }
        }
    }

    fn snapshot(&mut self, n: u64) -> (File, u64) {
        let heap = blank();
        let answer = self.ask(&ToWorker::Snapshot { run: number(n) }, Some(&heap), |_| true);
        let [FromWorker::Snapshot { outcome: Ok(written), .. }] = answer[..] else { panic!("{answer:?}") };
        (heap, written.length)
    }
}

/// A worker that continues from this heap.
fn on(zygote: &Zygote, heap: Option<&(File, u64)>) -> Worker {
    let mut worker = zygote.fork();
    let request = Open { heap_mb: 64, heap_bytes: heap.map(|(_, bytes)| *bytes), identity_seed: 0, stateful: true };
    worker.ask(&ToWorker::Open(request), heap.map(|(file, _)| file), |message| *message == FromWorker::Opened);
    worker
}

/// Turns in one process, and each in a process of its own on the heap of the one before, show the same, whenever the change is made.
#[test]
fn turns_in_one_worker_and_in_one_worker_each_are_the_same_to_code() {
    let zygote = Zygote::start();
    let mut live = on(&zygote, None);
    let mut expected = Vec::new();
    for (code, n) in TURNS.iter().zip(1..) {
        let (seen, inputs) = live.turn(n, code, None);
        assert!(seen.outcome.is_ok(), "{code}: {seen:?}");
        live.ask(&ToWorker::Commit { run: number(n) }, None, |message| matches!(message, FromWorker::Committed { .. }));
        expected.push((seen, inputs));
    }
    // Every so many turns, the session goes on from a snapshot.
    for every in [1, 2, 3, 7] {
        let (mut worker, mut at) = (on(&zygote, None), 0);
        for ((code, n), (seen, inputs)) in TURNS.iter().zip(1_u64..).zip(&expected) {
            assert_eq!(worker.turn(n, code, Some(inputs)).0, *seen, "turn {n}, a snapshot every {every} turns: {code}");
            at += 1;
            if at % every == 0 {
                let heap = worker.snapshot(n);
                worker = on(&zygote, Some(&heap));
            } else {
                worker.ask(&ToWorker::Commit { run: number(n) }, None, |message| matches!(message, FromWorker::Committed { .. }));
            }
        }
    }
}
