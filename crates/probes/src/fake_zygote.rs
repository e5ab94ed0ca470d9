//! A zygote that violates the protocol with its server in one way per name, and its unconfined workers.

use crate::fake_worker::{HEAP, sleep_forever};
use crate::heap;
use crate::received_run::ReceivedRun;
use crate::socket::{COPIES_MAX, quit, send_with_copies};
use heapstead_wire::control::{self, FromZygote, ToZygote};
use heapstead_wire::{FromWorker, Written};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sha2::{Digest, Sha256};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Prefix of a base heap's name that selects a fake zygote.
pub const PREFIX: &str = "fake:";

const CONTROL: RawFd = 3;
const DESCRIPTORS: usize = 1000;

/// Serves the control socket in the way of this name.
pub fn serve(way: &str) -> ! {
    // SAFETY: the server starts this process with the control socket on this descriptor.
    let control = unsafe { OwnedFd::from_raw_fd(CONTROL) };
    let send = |message: &FromZygote| {
        let _ = control::send(&control, message, None);
    };
    match way {
        "unfit" => {
            send(&FromZygote::Unfit { why: "refused by the test".into() });
            quit()
        }
        "dies at once" => quit(),
        "sends garbage at once" => {
            let _ = rustix::io::write(&control, b"garbage");
        }
        _ => send(&FromZygote::Ready {
            engine: "v8-0/none/flags-0/natives-0-0".into(),
            natives: vec![0],
            layers: Vec::new(),
            stateful_jit: heapstead_wire::control::StatefulJit::Off,
            live: Err("refused by the test".into()),
            cloned: false,
        }),
    }
    while let Ok(Some((ToZygote::Fork { worker, .. }, socket))) = control::receive::<ToZygote>(&control) {
        match (way, socket) {
            ("refuses", _) => send(&FromZygote::NotForked { worker, why: "refused by the test".into() }),
            ("sends no pidfd", _) => send(&FromZygote::Forked { worker }),
            ("sends garbage", _) => {
                let _ = rustix::io::write(&control, b"garbage");
            }
            ("dies", _) => quit(),
            ("never answers", socket) => std::mem::forget(socket),
            ("sends descriptors", Some(socket)) => fork(&control, worker, &socket, send_descriptors),
            ("maps its heap", Some(socket)) => fork(&control, worker, &socket, map_heap),
            _ => quit(),
        }
    }
    quit()
}

/// Forks an unconfined worker that calls `what`, and waits for its exit.
fn fork(control: &OwnedFd, worker: u64, socket: &OwnedFd, what: fn(&OwnedFd)) {
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    let Some(pid) = Pid::from_raw(child) else {
        what(socket);
        quit()
    };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { quit() };
    let _ = control::send(control, &FromZygote::Forked { worker }, Some(pidfd.as_fd()));
    let mut wait_status = 0;
    // SAFETY: waits for the child that was just forked.
    unsafe { libc::waitpid(child, &mut wait_status, 0) };
    let _ = control::send(control, &FromZygote::Exited { worker, wait_status }, None);
}

/// The messages of a run that completes.
fn completed(requests: &ReceivedRun, then: Option<FromWorker>) -> Vec<u8> {
    let run = requests.run;
    let mut bytes = FromWorker::OPENED.to_vec();
    let messages = [FromWorker::Started { run }, FromWorker::Ended { run, outcome: Ok("done".into()) }];
    for message in messages.into_iter().chain(then) {
        // Writing to memory can't fail.
        let _ = message.write_to(&mut bytes);
    }
    bytes
}

/// Sends many descriptors with its result, some attached to each byte, so that no byte can be received without them.
fn send_descriptors(socket: &OwnedFd) {
    let Some(requests) = ReceivedRun::receive(socket) else { return };
    let bytes = completed(&requests, None);
    for byte in &bytes {
        send_with_copies(socket.as_raw_fd(), &[*byte], (DESCRIPTORS / bytes.len() + 1).min(COPIES_MAX));
    }
}

/// Announces the heap it wrote, and keeps a writable mapping of it.
fn map_heap(socket: &OwnedFd) {
    let Some(requests) = ReceivedRun::receive(socket) else { return };
    let Some(heap) = &requests.snapshot else { return };
    if rustix::io::write(heap, HEAP).is_ok() && heap::map(heap.as_raw_fd(), libc::PROT_READ | libc::PROT_WRITE).is_some() {
        let written = Written { length: HEAP.len() as u64, sha256: Sha256::digest(HEAP).into() };
        let bytes = completed(&requests, Some(FromWorker::Snapshot { run: requests.run, outcome: Ok(written) }));
        let _ = rustix::io::write(socket, &bytes);
        sleep_forever()
    }
}
