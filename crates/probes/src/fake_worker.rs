//! A worker that breaks the protocol with its server, one way per name.

use crate::socket::{SOCKET, quit, write_all};
use heapstead_types::Failure;
use heapstead_wire::{Frame, OUTPUT_FRAME_BYTES_MAX};
use heapstead_worker::Session;
use sha2::{Digest, Sha256};
use std::os::fd::OwnedFd;
use std::ptr::{null, null_mut};

const MILLION: usize = 1_000_000;
/// Takes a while to hash.
const LARGE_MIB: usize = 512;
pub const HEAP: &[u8] = b"a heap as good as any";

struct Fake<'a> {
    session: &'a Session,
    descriptors: Vec<OwnedFd>,
}

type Way = fn(&Fake);

#[rustfmt::skip]
const WAYS: &[(&str, Way)] = &[
    ("nothing", |fake| fake.complete()),
    // What is no frame.
    ("garbage", |_| write_all(&[0xff; 4096])),
    ("unknown kind", |_| write_all(&[0, 0, 0, 0, 99])),
    ("output of 4 GiB", |_| write_all(&[0xff, 0xff, 0xff, 0xff, 1])),
    ("result of 4 GiB", |_| write_all(&[0xff, 0xff, 0xff, 0xff, 3])),
    ("failure without a kind", |_| write_all(&[0, 0, 0, 0, 4])),
    ("result that is no text", |_| write_all(&[1, 0, 0, 0, 3, 0xff])),
    ("heap of seven bytes' digest", |_| write_all(&[7, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7])),
    // Frames in the wrong place.
    ("two results", |fake| { fake.complete(); fake.complete() }),
    ("output after the result", |fake| { fake.complete(); fake.session.output("more") }),
    ("evaluation after the result", |fake| { fake.complete(); fake.session.send(&Frame::Evaluating(None)) }),
    ("failure after the result", |fake| { fake.complete(); fake.session.send(&Frame::Failed(Failure::NeverSettles)) }),
    ("result after the failure", |fake| { fake.session.send(&Frame::Failed(Failure::NeverSettles)); fake.complete() }),
    ("heap without a result", |fake| { fake.write(HEAP); fake.announce(HEAP) }),
    ("heap that nobody asked for", |fake| fake.announce(HEAP)),
    // Heaps that are not what they are said to be.
    ("wrong digest", |fake| { fake.write(HEAP); fake.complete(); fake.announce(b"a heap as bad as any!") }),
    ("wrong length", |fake| { fake.write(HEAP); fake.complete(); fake.announce(&HEAP[1..]) }),
    ("heap never written", |fake| { fake.complete(); fake.announce(HEAP) }),
    ("heap that changes", |fake| { fake.save(); loop { fake.write(b"!"); } }),
    ("large heap", |fake| { for _ in 0..LARGE_MIB { fake.write(&[7; 1 << 20]); } fake.complete_and_announce(); sleep_for_ever() }),
    ("heap without end", |fake| { fake.complete(); while fake.write(&[7; 1 << 20]) {} quit() }),
    // Too much.
    ("a million outputs", |fake| { repeat(&[1, 0, 0, 0, 1, b'x'], MILLION); fake.complete() }),
    ("a million empty outputs", |fake| { repeat(&[0, 0, 0, 0, 1], MILLION); fake.complete() }),
    ("a million words that output is dropped", |fake| { repeat(&[0, 0, 0, 0, 6], MILLION); fake.complete() }),
    ("output without end", |_| repeat(&output_frame(), usize::MAX)),
    ("evaluations without end", |_| repeat(&[0, 0, 0, 0, 2], usize::MAX)),
    // Too little.
    ("silence", |_| sleep_for_ever()),
    ("silence while it evaluates", |fake| { fake.session.output("here"); sleep_for_ever() }),
    ("silence while it saves", |fake| { fake.session.output("here"); fake.complete(); fake.write(&HEAP[..7]); sleep_for_ever() }),
    ("silence after the result", |fake| { fake.complete(); sleep_for_ever() }),
    ("silence in the middle of a frame", |_| { write_all(&[9, 0, 0, 0, 3, b'h', b'a']); sleep_for_ever() }),
    ("closed socket", |_| { close_socket(); sleep_for_ever() }),
    ("closed socket after the result", |fake| { fake.complete(); close_socket(); sleep_for_ever() }),
    // Death.
    ("death after the start", |_| quit()),
    ("death in the middle of a head", |_| { write_all(&[9, 0, 0]); quit() }),
    ("death in the middle of a frame", |_| { write_all(&[9, 0, 0, 0, 3, b'h', b'a']); quit() }),
    ("death while it evaluates", |fake| { fake.session.send(&Frame::Evaluating(None)); quit() }),
    ("death after output", |fake| { fake.session.output("last words"); quit() }),
    ("death after the result", |fake| { fake.complete(); quit() }),
    ("death in the middle of the heap", |fake| { fake.complete(); fake.write(&HEAP[..7]); quit() }),
    ("death before the heap is announced", |fake| { fake.complete(); fake.write(HEAP); quit() }),
    ("death after the heap", |fake| { fake.save(); quit() }),
    ("crash while it evaluates", |fake| { fake.session.send(&Frame::Evaluating(None)); crash() }),
    ("crash after the result", |fake| { fake.complete(); crash() }),
    ("forbidden call after the result", |fake| { fake.complete(); forbidden() }),
];

pub fn run(session: &Session, code: &str) {
    let name = code.lines().next().unwrap_or_default();
    match name {
        "death before the start" => quit(),
        "a start never read" => sleep_for_ever(),
        _ => {}
    }
    let Ok((_, _, descriptors)) = session.receive() else { return };
    let fake = Fake { session, descriptors };
    match WAYS.iter().find(|(known, _)| *known == name) {
        Some((_, way)) => way(&fake),
        None => session.send(&Frame::Completed(format!("no fake is called `{name}`"))),
    }
}

impl Fake<'_> {
    fn complete(&self) {
        self.session.send(&Frame::Completed("done".into()));
    }

    /// Writes to the descriptor for the new heap, which is the last one a stateful run gets. False when it can't be written to.
    fn write(&self, bytes: &[u8]) -> bool {
        self.descriptors.last().is_some_and(|snapshot| rustix::io::write(snapshot, bytes).is_ok())
    }

    fn announce(&self, heap: &[u8]) {
        self.session.send(&Frame::Saved { length: heap.len() as u64, sha256: Sha256::digest(heap).into() });
    }

    /// Says all it has to say at once, so that it is read at once; the digest is nobody's.
    fn complete_and_announce(&self) {
        let mut frames = Vec::new();
        for frame in [
            Frame::Output(b"here".to_vec()),
            Frame::Completed("done".into()),
            Frame::Saved { length: (LARGE_MIB << 20) as u64, sha256: [7; 32] },
        ] {
            // Writing to memory can't fail.
            let _ = frame.write_to(&mut frames);
        }
        write_all(&frames);
    }

    /// All that a stateful run does at its end, as it should be.
    fn save(&self) {
        self.write(HEAP);
        self.complete();
        self.announce(HEAP);
    }
}

fn output_frame() -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to memory can't fail.
    let _ = Frame::write_output(&mut bytes, &[b'x'; OUTPUT_FRAME_BYTES_MAX]);
    bytes
}

/// Writes `bytes` that many times, a good number of them at once.
fn repeat(bytes: &[u8], times: usize) {
    let at_once = (OUTPUT_FRAME_BYTES_MAX / bytes.len()).max(1);
    let many = bytes.repeat(at_once);
    let mut left = times;
    while left > 0 {
        let now = left.min(at_once);
        write_all(&many[..now * bytes.len()]);
        left -= now;
    }
}

pub fn sleep_for_ever() -> ! {
    loop {
        // SAFETY: waits for no descriptor, for any length of time.
        unsafe { libc::ppoll(null_mut(), 0, null(), null()) };
    }
}

fn close_socket() {
    // SAFETY: the session that owns it is never used again.
    unsafe { libc::close(SOCKET) };
}

fn crash() {
    // SAFETY: none: this is meant to end the process by a signal.
    unsafe { null_mut::<u8>().write_volatile(1) };
}

fn forbidden() {
    // SAFETY: no arguments; the filter ends the process.
    unsafe { libc::getppid() };
}
