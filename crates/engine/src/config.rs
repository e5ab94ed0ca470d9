//! Configuration of an engine: its limits, and the paths of its files.

use crate::Artifacts;
use heapstead_types::limits::HEAP_MB_DEFAULT;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Config {
    pub artifacts: Artifacts,
    pub concurrent_max: usize,
    pub queued_max: usize,
    /// Limit on the sum of the heap caps of all concurrent workers.
    pub memory_mb_max: u64,
    /// Workers forked ahead of need, so that a run does not wait for the fork.
    pub spares: Spares,
    /// How long a zygote may take to fork before it is killed, with all runs in it, and replaced.
    pub fork_timeout: Duration,
}

/// How many workers are forked ahead, and with which heap cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spares {
    pub count: usize,
    pub heap_mb: u32,
}

pub const CONCURRENT_DEFAULT: usize = 64;
pub const QUEUED_DEFAULT: usize = 1000;
/// A fork takes a millisecond; only a zygote that is stuck takes this long.
pub const FORK_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

impl Config {
    pub fn new(artifacts: Artifacts) -> Self {
        Self {
            artifacts,
            concurrent_max: CONCURRENT_DEFAULT,
            queued_max: QUEUED_DEFAULT,
            memory_mb_max: memory_mb_of_machine() * 3 / 4,
            spares: Spares { count: 2, heap_mb: HEAP_MB_DEFAULT },
            fork_timeout: FORK_TIMEOUT_DEFAULT,
        }
    }
}

fn memory_mb_of_machine() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64 * u64::from(info.mem_unit)) >> 20
}
