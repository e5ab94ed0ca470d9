//! V8 inside a worker: serves the requests of the server, from `Open` to `Close`.

pub mod base_heap;
pub mod bench;
mod clock;
mod evaluation;
mod event_loop;
mod inputs;
mod internals;
mod isolate;
mod machine;
mod memory;
mod natives;
mod normal_form;
mod platform;
mod realm;
mod repl;
mod snapshot;
mod stack;
mod state;

pub use clock::set_resolution_us;
pub use inputs::time_of_day;
pub use internals::enable_stateful_jit;
pub use isolate::CODE_RANGE_MB;
pub use memory::exit_if_run_in_progress;
pub use natives::digests as natives_digests;
pub use platform::{engine_id, initialize, set_jitless};

use crate::{Channel, channel};

/// The runner of production workers: serves requests, then exits.
pub fn run(channel: &Channel) {
    match machine::serve(channel) {
        Ok(()) => channel::quit(),
        Err(why) => channel.unfit_and_quit(why),
    }
}
