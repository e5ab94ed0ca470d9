//! A worker that violates the protocol with its server in one way per name. `engine/tests/fake_worker.rs` has the expected outcomes.

use crate::received_run::ReceivedRun;
use crate::socket::{SOCKET, quit, socket, write_all};
use heapstead_types::Failure;
use heapstead_wire::{CALL_BYTES_MAX, CallNumber, FromWorker, OUTPUT_BYTES_MAX, RunNumber, Written};
use heapstead_worker::Channel;
use sha2::{Digest, Sha256};
use std::ptr::{null, null_mut};

const MILLION: usize = 1_000_000;
/// Large enough that hashing takes a while.
const LARGE_MIB: usize = 512;
pub const HEAP: &[u8] = b"the bytes of one heap";

struct Fake<'a> {
    channel: &'a Channel,
    requests: ReceivedRun,
}

type Way = fn(&Fake);

// Kinds of frames, for frames that are not valid messages.
const OPENED: u8 = 11;
const PARSING: u8 = 12;
const STARTED: u8 = 13;
const OUTPUT: u8 = 14;
const OUTPUT_DROPPED: u8 = 15;
const CALL: u8 = 16;
const ENDED: u8 = 17;
const SNAPSHOT: u8 = 19;

#[rustfmt::skip]
const WAYS: &[(&str, Way)] = &[
    ("nothing", |fake| fake.complete()),
    // Not a frame.
    ("garbage", |_| write_all(&[0xff; 4096])),
    ("unknown kind", |_| write_all(&raw(0, 99, &[]))),
    ("kind that only the server sends", |_| write_all(&raw(0, 3, &[]))),
    ("output of 4 GiB", |_| write_all(&raw(u32::MAX, OUTPUT, &[]))),
    ("result of 4 GiB", |_| write_all(&raw(u32::MAX, ENDED, &[]))),
    ("call of 4 GiB", |_| write_all(&raw(u32::MAX, CALL, &[]))),
    ("call of one byte too many", |_| write_all(&raw(CALL_BYTES_MAX as u32 + 11, CALL, &[]))),
    ("end without a status", |_| write_all(&raw(0, ENDED, &[]))),
    ("failure of unknown kind", |_| write_all(&raw(1, ENDED, &[99]))),
    ("result that is not text", |_| write_all(&raw(2, ENDED, &[0, 0xff]))),
    ("call without a kind", |_| write_all(&raw(8, CALL, &[1, 0, 0, 0, 0, 0, 0, 0]))),
    ("heap with a digest of seven bytes", |_| write_all(&raw(8, SNAPSHOT, &[0, 1, 2, 3, 4, 5, 6, 7]))),
    ("result without a run number", |_| write_all(&raw_of(0, 1, ENDED, &[0]))),
    ("opened with a run number", |_| write_all(&raw(0, OPENED, &[]))),
    // Out of order.
    ("start before it is opened", |_| write_all(&raw(0, STARTED, &[]))),
    ("result before it is opened", |_| write_all(&raw(1, ENDED, &[0]))),
    ("opened twice", |fake| { fake.start(); fake.send(FromWorker::Opened) }),
    ("result before the start", |fake| fake.end(Ok("done".into()))),
    ("output before the start", |fake| fake.output("here")),
    ("call before the start", |fake| fake.call(1, 7)),
    ("two starts", |fake| { fake.start(); fake.start() }),
    ("types parsed twice", |fake| for _ in 0..2 { fake.send(FromWorker::Parsing { run: fake.run() }); fake.start() }),
    ("two results", |fake| { fake.complete(); fake.complete() }),
    ("result twice", |fake| { fake.complete(); fake.end(Ok("done".into())) }),
    ("output after the result", |fake| { fake.complete(); fake.output("more") }),
    ("start after the result", |fake| { fake.complete(); fake.start() }),
    ("call after the result", |fake| { fake.complete(); fake.call(1, 7) }),
    ("failure after the result", |fake| { fake.complete(); fake.end(Err(Failure::NeverSettles)) }),
    ("result after the failure", |fake| { fake.end(Err(Failure::NeverSettles)); fake.complete() }),
    ("output after the notice that it is dropped", |fake| { fake.start(); fake.drop_output(); fake.output("more") }),
    ("two notices that output is dropped", |fake| { fake.start(); fake.drop_output(); fake.drop_output() }),
    ("heap without a result", |fake| { fake.start(); fake.write(HEAP); fake.announce(HEAP) }),
    ("heap that was not requested", |fake| { fake.start(); fake.announce(HEAP) }),
    ("commit that was not requested", |fake| { fake.start(); fake.send(FromWorker::Committed { run: fake.run() }) }),
    ("commit of its result", |fake| { fake.complete(); fake.send(FromWorker::Committed { run: fake.run() }) }),
    // With the number of another run.
    ("start of another run", |fake| fake.send(FromWorker::Started { run: other_run() })),
    ("output of another run", |fake| { fake.start(); fake.send(FromWorker::Output { run: other_run(), text: b"here".to_vec() }) }),
    ("call of another run", |fake| { fake.start(); fake.send(FromWorker::Call { run: other_run(), call: CallNumber(1), kind: 7, payload: vec![] }) }),
    ("result of another run", |fake| { fake.start(); fake.send(FromWorker::Ended { run: other_run(), outcome: Ok("done".into()) }) }),
    ("failure of another run", |fake| fake.send(FromWorker::Ended { run: other_run(), outcome: Err(Failure::NeverSettles) })),
    ("result of the highest run", |fake| { fake.start(); write_all(&raw_of(u64::MAX, 1, ENDED, &[0])) }),
    ("heap of another run", |fake| { fake.complete(); fake.send(FromWorker::Snapshot { run: other_run(), outcome: Ok(written(HEAP)) }) }),
    // Calls, which no worker may make yet.
    ("call of unknown kind", |fake| { fake.start(); fake.call(1, 7) }),
    ("call of kind 0", |fake| { fake.start(); fake.call(1, 0) }),
    ("call with a large payload", |fake| {
        fake.start();
        fake.send(FromWorker::Call { run: fake.run(), call: CallNumber(1), kind: 7, payload: vec![7; CALL_BYTES_MAX] })
    }),
    ("call with a number too high", |fake| { fake.start(); fake.call(2, 7) }),
    ("calls without end", |fake| { fake.start(); repeat(&raw(10, CALL, &[1, 0, 0, 0, 0, 0, 0, 0, 7, 0]), usize::MAX) }),
    // Refusals.
    ("refusal", |fake| fake.refuse()),
    ("refusal after the start", |fake| { fake.start(); fake.refuse() }),
    ("refusal after the result", |fake| { fake.complete(); fake.refuse() }),
    // Heaps that differ from what the worker announces.
    ("heap that can't be written", |fake| { fake.complete(); fake.send(FromWorker::Snapshot { run: fake.run(), outcome: Err(Failure::Unsaveable("full".into())) }) }),
    ("wrong digest", |fake| { fake.write(HEAP); fake.complete(); fake.announce(b"the bytes of a heap 2") }),
    ("wrong length", |fake| { fake.write(HEAP); fake.complete(); fake.announce(&HEAP[1..]) }),
    ("heap never written", |fake| { fake.complete(); fake.announce(HEAP) }),
    ("heap that changes", |fake| { fake.save(); loop { fake.write(b"!"); } }),
    ("large heap", |fake| { for _ in 0..LARGE_MIB { fake.write(&[7; 1 << 20]); } fake.complete_and_announce(); sleep_forever() }),
    ("heap without end", |fake| { fake.complete(); while fake.write(&[7; 1 << 20]) {} quit() }),
    // Floods.
    ("a million outputs", |fake| { fake.start(); repeat(&raw(1, OUTPUT, b"x"), MILLION); fake.end(Ok("done".into())) }),
    ("a million empty outputs", |fake| { fake.start(); repeat(&raw(0, OUTPUT, &[]), MILLION); fake.end(Ok("done".into())) }),
    ("a million notices that output is dropped", |fake| { fake.start(); repeat(&raw(0, OUTPUT_DROPPED, &[]), MILLION); fake.end(Ok("done".into())) }),
    ("output without end", |fake| { fake.start(); repeat(&raw(OUTPUT_BYTES_MAX as u32, OUTPUT, &[b'x'; OUTPUT_BYTES_MAX]), usize::MAX) }),
    ("starts without end", |fake| { fake.start(); repeat(&raw(0, STARTED, &[]), usize::MAX) }),
    ("parsing without end", |fake| { fake.start(); repeat(&raw(0, PARSING, &[]), usize::MAX) }),
    // Silence.
    ("silence", |_| sleep_forever()),
    ("silence after it is opened", |fake| { fake.send(FromWorker::Parsing { run: fake.run() }); sleep_forever() }),
    ("silence while it runs", |fake| { fake.start(); fake.output("here"); sleep_forever() }),
    ("silence while it saves", |fake| { fake.start(); fake.output("here"); fake.end(Ok("done".into())); fake.write(&HEAP[..7]); sleep_forever() }),
    ("silence after the result", |fake| { fake.complete(); sleep_forever() }),
    ("silence in the middle of a frame", |_| { write_all(&raw(9, ENDED, b"\0ha")); sleep_forever() }),
    ("close ignored", |fake| { if fake.requests.snapshot.is_some() { fake.save() } else { fake.complete() } sleep_forever() }),
    ("closed socket", |_| { close_socket(); sleep_forever() }),
    ("closed socket after the result", |fake| { fake.complete(); close_socket(); sleep_forever() }),
    // Death.
    ("death after its requests", |_| quit()),
    ("death in the middle of a head", |_| { write_all(&[9, 0, 0]); quit() }),
    ("death in the middle of a frame", |_| { write_all(&raw(9, ENDED, b"\0ha")); quit() }),
    ("death while it parses", |fake| { fake.send(FromWorker::Parsing { run: fake.run() }); quit() }),
    ("death while it runs", |fake| { fake.start(); quit() }),
    ("death after output", |fake| { fake.start(); fake.output("last words"); quit() }),
    ("death after the result", |fake| { fake.complete(); quit() }),
    ("death in the middle of the heap", |fake| { fake.complete(); fake.write(&HEAP[..7]); quit() }),
    ("death before the heap is announced", |fake| { fake.complete(); fake.write(HEAP); quit() }),
    ("death after the heap", |fake| { fake.save(); quit() }),
    ("crash while it runs", |fake| { fake.start(); crash() }),
    ("crash after the result", |fake| { fake.complete(); crash() }),
    ("forbidden call after the result", |fake| { fake.complete(); forbidden() }),
];

pub fn run(channel: &Channel, code: &str) {
    let name = code.lines().next().unwrap_or_default();
    match name {
        "death with its requests unread" => quit(),
        "requests never read" => sleep_forever(),
        _ => {}
    }
    let Some(requests) = ReceivedRun::receive(socket()) else { return };
    let fake = Fake { channel, requests };
    let way = WAYS.iter().find(|(known, _)| *known == name);
    if !name.ends_with("before it is opened") {
        channel.opened();
    }
    match way {
        Some((_, way)) => way(&fake),
        None => {
            fake.start();
            fake.end(Ok(format!("there is no fake `{name}`")));
        }
    }
}

impl Fake<'_> {
    fn run(&self) -> RunNumber {
        self.requests.run
    }

    fn send(&self, message: FromWorker) {
        self.channel.send(&message);
    }

    fn start(&self) {
        self.send(FromWorker::Started { run: self.run() });
    }

    fn output(&self, text: &str) {
        self.send(FromWorker::Output { run: self.run(), text: text.into() });
    }

    fn drop_output(&self) {
        self.send(FromWorker::OutputDropped { run: self.run() });
    }

    fn call(&self, call: u64, kind: u16) {
        self.send(FromWorker::Call { run: self.run(), call: CallNumber(call), kind, payload: b"please".to_vec() });
    }

    fn end(&self, outcome: Result<String, Failure>) {
        self.send(FromWorker::Ended { run: self.run(), outcome });
    }

    fn refuse(&self) {
        self.send(FromWorker::Unfit { why: "refused by the test".into() });
    }

    /// Sends the messages of a run that completes.
    fn complete(&self) {
        self.start();
        self.end(Ok("done".into()));
    }

    /// Writes to the descriptor for the new heap. False if that fails.
    fn write(&self, bytes: &[u8]) -> bool {
        self.requests.snapshot.as_ref().is_some_and(|snapshot| rustix::io::write(snapshot, bytes).is_ok())
    }

    fn announce(&self, heap: &[u8]) {
        self.send(FromWorker::Snapshot { run: self.run(), outcome: Ok(written(heap)) });
    }

    /// Sends all messages with one write, so that they are read together. The digest is wrong.
    fn complete_and_announce(&self) {
        let run = self.run();
        self.start();
        write_all(&encoded(&[
            FromWorker::Output { run, text: b"here".to_vec() },
            FromWorker::Ended { run, outcome: Ok("done".into()) },
            FromWorker::Snapshot { run, outcome: Ok(Written { length: (LARGE_MIB << 20) as u64, sha256: [7; 32] }) },
        ]));
    }

    /// Completes a stateful run and writes its heap.
    fn save(&self) {
        self.write(HEAP);
        self.complete();
        self.announce(HEAP);
    }
}

fn written(heap: &[u8]) -> Written {
    Written { length: heap.len() as u64, sha256: Sha256::digest(heap).into() }
}

/// The bytes of a frame of run 1, which may be invalid.
fn raw(length: u32, kind: u8, payload: &[u8]) -> Vec<u8> {
    raw_of(1, length, kind, payload)
}

fn raw_of(run: u64, length: u32, kind: u8, payload: &[u8]) -> Vec<u8> {
    [&length.to_le_bytes(), &[kind][..], &run.to_le_bytes(), payload].concat()
}

fn encoded(messages: &[FromWorker]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to memory can't fail.
    messages.iter().for_each(|message| drop(message.write_to(&mut bytes)));
    bytes
}

fn other_run() -> RunNumber {
    RunNumber::new(2).unwrap_or(RunNumber::FIRST)
}

/// Writes `bytes` that many times, many per system call.
fn repeat(bytes: &[u8], times: usize) {
    let at_once = (OUTPUT_BYTES_MAX / bytes.len()).max(1);
    let many = bytes.repeat(at_once);
    let mut left = times;
    while left > 0 {
        let now = left.min(at_once);
        write_all(&many[..now * bytes.len()]);
        left -= now;
    }
}

pub fn sleep_forever() -> ! {
    loop {
        // SAFETY: waits forever, for no descriptor.
        unsafe { libc::ppoll(null_mut(), 0, null(), null()) };
    }
}

fn close_socket() {
    // SAFETY: the channel that owns it is never used again.
    unsafe { libc::close(SOCKET) };
}

fn crash() {
    // SAFETY: none. This is meant to kill the process by a signal.
    unsafe { null_mut::<u8>().write_volatile(1) };
}

fn forbidden() {
    // SAFETY: no arguments; the filter ends the process.
    unsafe { libc::getppid() };
}
