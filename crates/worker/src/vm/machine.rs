//! A worker's V8 from `Open` to `Close`: an isolate on a heap, the run it makes, and the snapshot of it.

use super::execution::Program;
use super::normal_form::Unset;
use super::state::State;
use super::{base_heap, execution, isolate, memory, platform, snapshot};
use crate::{Channel, RequestError};
use heapstead_types::Failure;
use heapstead_wire::{FromWorker, Open, OrderError, ReadError, RunNumber, RunSettings, ToWorker, Written};
use rustix::mm::{MapFlags, ProtFlags};
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;

/// Serves the requests of the server until it closes the channel. An error says why this worker can't go on.
pub fn serve(channel: &Channel) -> Result<(), String> {
    let mut machine = match receive(channel)? {
        Some((ToWorker::Open(open), heap)) => Machine::open(channel, &open, heap)?,
        _ => return Ok(()),
    };
    channel.opened();
    while let Some((request, descriptor)) = receive(channel)? {
        match request {
            ToWorker::Run { run, settings, code } => machine.run(run, &settings, &code)?,
            // There is one process, so what the run did is kept already.
            ToWorker::Commit { run } => channel.send(&FromWorker::Committed { run }),
            ToWorker::Snapshot { run } => {
                let outcome = machine.snapshot(descriptor);
                channel.send(&FromWorker::Snapshot { run, outcome });
            }
            // The channel has refused these two already.
            ToWorker::Open(_) | ToWorker::Reply { .. } => return Err(OrderError::NotAsked { name: request.name() }.to_string()),
            ToWorker::Close => return Ok(()),
        }
    }
    Ok(())
}

/// The next request; none when the server is gone.
fn receive(channel: &Channel) -> Result<Option<(ToWorker<'static>, Option<OwnedFd>)>, String> {
    match channel.receive() {
        Ok(request) => Ok(Some(request)),
        Err(RequestError::Read(ReadError::Closed)) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

struct Machine<'a> {
    channel: &'a Channel,
    heap_mb: u32,
    stateful: bool,
    state: MachineState,
}

/// An isolate makes one run, and a snapshot uses it up. It is never taken down, which would cost more than the end of the process.
enum MachineState {
    Fresh(ManuallyDrop<v8::OwnedIsolate>),
    HasRun(ManuallyDrop<v8::OwnedIsolate>, Unset),
    UsedUp,
}

impl<'a> Machine<'a> {
    fn open(channel: &'a Channel, open: &Open, heap: Option<OwnedFd>) -> Result<Self, String> {
        let heap = match (open.heap_bytes, heap) {
            (Some(length), Some(heap)) => map(&heap, length).ok_or("the heap can't be mapped")?,
            _ => base_heap::loaded(),
        };
        platform::seed_identities(open.identity_seed);
        let mut isolate = ManuallyDrop::new(match open.stateful {
            true => isolate::saveable(heap, open.heap_mb),
            false => isolate::transient(heap, open.heap_mb),
        });
        memory::watch(&mut isolate, channel, open.heap_mb);
        Ok(Self { channel, heap_mb: open.heap_mb, stateful: open.stateful, state: MachineState::Fresh(isolate) })
    }

    /// Makes a run. One that fails is the end of this process.
    fn run(&mut self, run: RunNumber, settings: &RunSettings, code: &str) -> Result<(), String> {
        let MachineState::Fresh(mut isolate) = std::mem::replace(&mut self.state, MachineState::UsedUp) else {
            return Err("this worker has made its run already".into());
        };
        memory::begin_run(run);
        State::install(&mut isolate, self.channel);
        isolate.set_host_import_module_dynamically_callback(execution::refuse_import);
        let program = Program { run, settings, code, stateful: self.stateful };
        match execution::execute(&mut isolate, self.channel, &program) {
            Ok((result, unset)) => {
                self.channel.completed(run, result);
                memory::complete_run();
                self.state = MachineState::HasRun(isolate, unset);
                Ok(())
            }
            Err(failure) => self.channel.fail_and_quit(run, failure),
        }
    }

    fn snapshot(&mut self, descriptor: Option<OwnedFd>) -> Result<Written, Failure> {
        match (std::mem::replace(&mut self.state, MachineState::UsedUp), descriptor) {
            (MachineState::HasRun(isolate, unset), Some(descriptor)) if self.stateful => {
                snapshot::write(ManuallyDrop::into_inner(isolate), unset, self.heap_mb, descriptor)
            }
            _ => Err(Failure::Unsaveable("the run was stateless".into())),
        }
    }
}

/// The heap as memory. It stays mapped until the process ends, as V8 wants it.
fn map(heap: &OwnedFd, length: u64) -> Option<&'static [u8]> {
    let length = usize::try_from(length).ok()?;
    // SAFETY: a fresh private mapping of a descriptor that is sealed against writing, never unmapped.
    unsafe {
        let address = rustix::mm::mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, heap, 0).ok()?;
        Some(std::slice::from_raw_parts(address.cast(), length))
    }
}
