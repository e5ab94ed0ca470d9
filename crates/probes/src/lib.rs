//! A test-only build of the worker: the same zygote, confinement code and policy, but it runs native attacks instead of JavaScript.
//!
//! The code of a run selects what it does:
//!
//! | code | what runs | in |
//! |---|---|---|
//! | `call 41` | makes that system call with all bits of every argument set | `calls` |
//! | `attempts`, `attempt fork` | lists the native attempts to escape; makes one of them | `attempts`, `arguments` |
//! | `executable map` | makes memory executable in that way | `memory` |
//! | `socket 2` | creates a socket of that family | `attempts` |
//! | `memory map` | allocates as much memory as possible in that way, in MiB | `memory` |
//! | `heap write` | tries to change a sealed heap | `heap` |
//! | `inside` | reports the worker's descriptors and environment | `inside` |
//! | `layout` | reports where memory is in its address space | `inside` |
//! | `fake garbage` | violates the protocol with the server | `fake_worker` |
//!
//! In a live worker: `attempt …`, and `clone without end`, `clone once`, `commit`, `pretend`, `refuse` (`live`).
//!
//! Four command lines run outside a worker: `outer-layer` (what a process can do that has only the zygote's confinement, without namespaces),
//! `namespaces` (what a process sees that has only them), a base heap named `fake:…` (a zygote that violates the protocol) and one named
//! `earlier-layers:…` (a zygote with fewer layers, which runs JavaScript, for the benchmark of what the others cost).

mod ancestors;
mod arguments;
mod attempts;
mod calls;
mod earlier_layers;
mod fake_worker;
mod fake_zygote;
mod heap;
mod inside;
mod live;
mod memory;
mod namespaces;
mod outer_layer;
mod received_run;
mod socket;

use heapstead_wire::{FromWorker, Written};
use heapstead_worker::{Channel, Runner};
use received_run::ReceivedRun;
use sha2::{Digest, Sha256};

heapstead_worker::entry!(runner());

/// Called in the zygote before it is confined.
fn runner() -> Runner {
    ancestors::record();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["outer-layer"] => outer_layer::report(),
        ["namespaces", key] => namespaces::report(key),
        ["zygote", base_heap, _] if base_heap.starts_with(fake_zygote::PREFIX) => {
            fake_zygote::serve(&base_heap[fake_zygote::PREFIX.len()..])
        }
        ["zygote", base_heap, settings] if base_heap.starts_with(earlier_layers::PREFIX) => {
            earlier_layers::serve(&base_heap[earlier_layers::PREFIX.len()..], settings)
        }
        _ => run,
    }
}

/// Called in the worker once it is confined.
fn run(channel: &Channel) {
    // Peeked, because one of the fakes exits with its requests unread.
    let code = socket::peek_code();
    if let Some(fake) = code.strip_prefix("fake ") {
        return fake_worker::run(channel, fake);
    }
    if code.is_empty() {
        // The requests of a one-shot run come with one write.
        return live::serve(channel);
    }
    let Some(requests) = ReceivedRun::receive(socket::socket()) else { return };
    let ReceivedRun { open, heap, run, code, .. } = &requests;
    let run = *run;
    channel.opened();
    channel.send(&FromWorker::Started { run });
    let result = match code.split_once(' ').unwrap_or((code, "")) {
        ("call", number) => calls::with_all_ones(number),
        ("attempts", _) => attempts::names(),
        ("attempt", name) => attempts::run(name),
        ("socket", family) => attempts::socket(family),
        ("memory", way) => memory::take(way),
        ("executable", way) => memory::make_executable(way),
        ("heap", way) => heap::change(way, heap.as_ref()),
        ("inside", _) => inside::report(),
        ("layout", _) => inside::layout(),
        _ => format!("there is no probe `{code}`"),
    };
    channel.send(&FromWorker::Ended { run, outcome: Ok(result) });
    if open.stateful {
        // A stateful run completes only with a heap. An empty one is enough.
        channel.send(&FromWorker::Snapshot { run, outcome: Ok(Written { length: 0, sha256: Sha256::digest([]).into() }) });
    }
}
