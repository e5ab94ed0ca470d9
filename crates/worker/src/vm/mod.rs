//! V8 inside a worker: one execution from start message to snapshot.

pub mod base_heap;
pub mod bench;
mod event_loop;
mod execution;
mod isolate;
mod memory;
mod natives;
mod normal_form;
mod platform;
mod realm;
mod repl;
mod state;

pub use isolate::CODE_RANGE_MB;
pub use memory::end_if_running;
pub use natives::digests as natives_digests;
pub use platform::{engine_id, initialize};
pub use repl::CompileError;

use crate::{Session, session};

/// What a worker does with its one start. An isolate that was snapshotted is used up, and taking one down costs more than the process.
pub fn run(session: &Session) {
    if let Ok((start, code, descriptors)) = session.receive() {
        match execution::execute(session, &start, code, descriptors) {
            Ok(()) => session::quit(),
            Err(failure) => session.fail_and_quit(failure),
        }
    }
}
