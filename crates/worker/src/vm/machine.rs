//! Serves the requests of the server, from `Open` to `Close`: restores a heap, runs code on it, writes its snapshot.

use super::evaluation::{Program, Restored};
use super::stack::StackWatch;
use super::state::State;
use super::{base_heap, evaluation, inputs, isolate, memory, platform, snapshot};
use crate::confine::{self, Cloned};
use crate::{Channel, Recording, RequestError};
use heapstead_types::Failure;
use heapstead_wire::{FromWorker, Open, OrderError, ReadError, Replay, RunNumber, RunSettings, ToWorker, Written};
use rustix::mm::{MapFlags, ProtFlags};
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A turn that waited for the clone comes sooner, and need not wait for the warm-up too.
const BEFORE_WARM_UP: Duration = Duration::from_millis(3);

/// Serves requests until the server closes the channel. An error says why this worker can't continue.
pub fn serve(channel: &Channel) -> Result<(), String> {
    let mut machine = match receive(channel)? {
        Some((ToWorker::Open(open), heap)) => Machine::open(channel, &open, heap)?,
        _ => return Ok(()),
    };
    channel.opened();
    while let Some((request, descriptor)) = receive(channel)? {
        match request {
            ToWorker::Run { run, settings, replay, code } => machine.run(run, &settings, replay, &code)?,
            // The run was in this process, so its effects are here.
            ToWorker::Commit { run } => channel.send_later(&FromWorker::Committed { run }),
            ToWorker::Snapshot { run } => {
                let outcome = machine.snapshot(descriptor);
                channel.send(&FromWorker::Snapshot { run, outcome });
            }
            ToWorker::Fork => {
                machine.is_live = true;
                // The clone serves only if a turn of this process fails.
                if let Cloned::Original = fork(channel, descriptor)?
                    && !channel.has_request_within(BEFORE_WARM_UP)
                {
                    machine.warm_up();
                }
            }
            // The channel has already refused these two.
            ToWorker::Open(_) | ToWorker::Reply { .. } => return Err(OrderError::NotAsked { name: request.name() }.to_string()),
            ToWorker::Close => return Ok(()),
        }
    }
    Ok(())
}

/// Clones this process: the clone continues on the socket, this one as before.
fn fork(channel: &Channel, socket: Option<OwnedFd>) -> Result<Cloned, String> {
    // Requests that were read ahead would be served twice.
    let (Some(socket), true) = (socket, channel.is_drained()) else { return Err("requests after `Fork`".into()) };
    // The clone says for itself that it is open.
    channel.flush();
    let cloned = confine::clone_self().map_err(|error| format!("the process can't be cloned: {error}"))?;
    if let Cloned::Clone = cloned {
        channel.continue_on(socket);
    }
    Ok(cloned)
}

/// The next request. None if the server has closed the socket.
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
    /// None after a stateless run, and once its snapshot was taken, which consumes it. It is never disposed of, because exiting is faster.
    isolate: Option<ManuallyDrop<v8::OwnedIsolate>>,
    /// None before the first stateful run.
    restored: Option<Restored>,
    /// Whether another run is expected after each one: only processes of live sessions are cloned.
    is_live: bool,
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
        Ok(Self { channel, heap_mb: open.heap_mb, stateful: open.stateful, isolate: Some(isolate), restored: None, is_live: false })
    }

    /// Runs the code. Exits if the run fails.
    fn run(&mut self, run: RunNumber, settings: &RunSettings, replay: Option<Replay<'_>>, code: &str) -> Result<(), String> {
        let Some(isolate) = &mut self.isolate else { return Err("this worker has served its last run".into()) };
        memory::begin_run(run);
        State::install(isolate, self.channel);
        let (inputs, form) = replay.map_or((None, None), |replay| (Some(replay.inputs.into_owned()), replay.form));
        inputs::begin(settings.seed, self.stateful, inputs, !settings.headers.is_empty());
        isolate.set_host_import_module_dynamically_callback(evaluation::refuse_import);
        let program = Program { run, settings, code, form: form.as_deref(), stateful: self.stateful, keeps_repl: self.is_live };
        let mut javascript = None;
        let stack = StackWatch::begin(isolate);
        let executed = evaluation::execute(isolate, self.channel, &program, &mut self.restored, &mut javascript);
        stack.end();
        let recording = inputs::end().map(|inputs| Recording { inputs, javascript });
        match executed {
            Ok(result) => {
                self.channel.completed(run, recording, result);
                memory::complete_run();
                if let (true, Some(restored)) = (self.is_live, &mut self.restored) {
                    restored.prepare(isolate);
                }
                if !self.stateful {
                    // The next run would find what this one has left.
                    self.isolate = None;
                }
                Ok(())
            }
            Err(failure) => {
                // A heap that can't be used fails the run before its code has started.
                let recording = recording.filter(|_| !matches!(failure, Failure::NoWorker(_)));
                self.channel.fail_and_quit(run, recording, failure)
            }
        }
    }

    /// Touches what a run will change while nobody waits: after a clone, each page is copied when it is changed for the first time.
    fn warm_up(&mut self) {
        if let (Some(isolate), Some(restored)) = (&mut self.isolate, &self.restored) {
            restored.warm_up(isolate);
        }
    }

    fn snapshot(&mut self, descriptor: Option<OwnedFd>) -> Result<Written, Failure> {
        if self.is_live {
            // V8 compiles functions for it that a run may not have needed. The bytes must not depend on whether there was time for that before.
            self.warm_up();
        }
        match (self.isolate.take(), self.restored.take(), descriptor) {
            (Some(mut isolate), Some(restored), Some(descriptor)) => {
                let undefined = restored.into_snapshot(&mut isolate);
                snapshot::write(ManuallyDrop::into_inner(isolate), undefined, self.heap_mb, descriptor)
            }
            _ => Err(Failure::Unsaveable("the run was stateless".into())),
        }
    }
}

/// Maps the heap. It stays mapped until the process exits, because V8 keeps pointers to it.
fn map(heap: &OwnedFd, length: u64) -> Option<&'static [u8]> {
    let length = usize::try_from(length).ok()?;
    // SAFETY: a fresh private mapping of a descriptor that is sealed against writing, never unmapped.
    unsafe {
        let address = rustix::mm::mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, heap, 0).ok()?;
        Some(std::slice::from_raw_parts(address.cast(), length))
    }
}
