//! A test-only build of the worker: same zygote, same confinement code, same policy, but what runs is chosen to do harm.
//!
//! The code of a run says what to do, in a word or two:
//!
//! | code | what runs | in |
//! |---|---|---|
//! | `call 41` | that system call, every argument all ones | `calls` |
//! | `attempts`, `attempt fork` | the list of native attempts to get out; one of them | `attempts` |
//! | `socket 2` | a socket of that family | `attempts` |
//! | `memory map` | as much memory as can be had that way, in MiB | `memory` |
//! | `heap write` | a change to a heap that was given or sealed | `heap` |
//! | `inside` | what the worker sees of itself | `inside` |
//! | `fake garbage` | a breach of the protocol with the server | `fake_worker` |
//!
//! Two command lines run outside a worker: `outer-layer` (what is left of a process that only the zygote's confinement holds) and a base heap
//! called `fake:…` (a zygote that breaks the protocol).

mod attempts;
mod calls;
mod fake_worker;
mod fake_zygote;
mod heap;
mod inside;
mod memory;
mod one_shot;
mod outer_layer;
mod processes;
mod socket;

use heapstead_wire::{FromWorker, Written};
use heapstead_worker::{Channel, Runner};
use one_shot::OneShot;
use sha2::{Digest, Sha256};

heapstead_worker::entry!(runner());

/// Evaluated in the zygote, before anything of it is confined.
fn runner() -> Runner {
    processes::remember();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["outer-layer"] => outer_layer::report(),
        ["zygote", base_heap] if base_heap.starts_with(fake_zygote::PREFIX) => fake_zygote::serve(&base_heap[fake_zygote::PREFIX.len()..]),
        _ => run,
    }
}

/// Called in the worker, confined as any.
fn run(channel: &Channel) {
    // Looked at without taking it, since one of the fakes dies with its requests unread.
    let code = socket::peek_code();
    if let Some(fake) = code.strip_prefix("fake ") {
        return fake_worker::run(channel, fake);
    }
    let Some(requests) = OneShot::receive(socket::socket()) else { return };
    let OneShot { open, heap, run, code, .. } = &requests;
    let run = *run;
    channel.opened();
    channel.send(&FromWorker::Started { run, javascript: None });
    let said = match code.split_once(' ').unwrap_or((code, "")) {
        ("call", number) => calls::with_all_ones(number),
        ("attempts", _) => attempts::names(),
        ("attempt", name) => attempts::run(name),
        ("socket", family) => attempts::socket(family),
        ("memory", way) => memory::take(way),
        ("heap", way) => heap::change(way, heap.as_ref()),
        ("inside", _) => inside::report(),
        _ => format!("no probe is called `{code}`"),
    };
    channel.send(&FromWorker::Ended { run, outcome: Ok(said) });
    if open.stateful {
        // The result of a stateful run counts only with a heap: an empty one will do.
        channel.send(&FromWorker::Snapshot { run, outcome: Ok(Written { length: 0, sha256: Sha256::digest([]).into() }) });
    }
}
