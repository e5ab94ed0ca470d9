//! Configuration of an engine: its limits, and the paths of its files.

use crate::answers::ANSWERS_MB_MIN;
use crate::cgroup::{self, GroupLimits};
use crate::pool::Pool;
use crate::{Artifacts, Sharing, ZYGOTES_IDLE_MAX};
use heapstead_types::limits::{HEAP_MB_DEFAULT, HEAPS_CACHED_MB_MAX};
use heapstead_wire::ZygoteSettings;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Config {
    pub artifacts: Artifacts,
    pub concurrent_max: usize,
    pub queued_max: usize,
    /// Limit on the memory that all concurrent workers may use at most, which is more than their heap caps.
    pub memory_mb_max: u64,
    /// Memory of live workers, which comes on top.
    pub live_mb_max: u64,
    /// Limit on the source of all queued and running jobs.
    pub source_bytes_max: u64,
    /// Limit on the results that wait to be stored, and the JavaScript that ran; a worker whose answer does not fit waits.
    pub answer_bytes_max: u64,
    /// Whether a part of all these limits is reserved for owners that use little.
    pub sharing: Sharing,
    /// Whether to put workers into a cgroup of their own, where the machine delegates one.
    pub uses_cgroup: bool,
    /// Workers forked ahead of need, so that a run does not wait for the fork.
    pub spares: Spares,
    /// What applies to all workers alike.
    pub settings: ZygoteSettings,
    pub namespaces: Namespaces,
    /// Owners share no zygote, and so no address-space layout.
    pub zygote_per_owner: bool,
    /// How long a zygote may take to fork before it is killed, with all runs in it, and replaced.
    pub fork_timeout: Duration,
}

/// How many workers are forked ahead, and with which heap cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spares {
    pub count: usize,
    pub heap_mb: u32,
}

/// What to do where the kernel, or the container that the server runs in, forbids namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Namespaces {
    /// Run without them. All other layers of confinement are required anyway.
    #[default]
    Auto,
    /// Do not start.
    Required,
}

pub const CONCURRENT_DEFAULT: usize = 64;
pub const QUEUED_DEFAULT: usize = 1000;
/// Sixteen runs of the largest source, or a thousand of 256 KB.
pub const SOURCE_MB_DEFAULT: u64 = 256;
/// One of the longest answers, or eight of the longest results: they are stored within milliseconds.
pub const ANSWERS_MB_DEFAULT: u64 = ANSWERS_MB_MIN;
/// A fork takes a millisecond; only a zygote that is stuck takes this long.
pub const FORK_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

impl Config {
    pub fn new(artifacts: Artifacts) -> Self {
        Self {
            artifacts,
            concurrent_max: CONCURRENT_DEFAULT,
            queued_max: QUEUED_DEFAULT,
            memory_mb_max: memory_mb_of_machine() * 3 / 4,
            live_mb_max: 0,
            source_bytes_max: SOURCE_MB_DEFAULT << 20,
            answer_bytes_max: ANSWERS_MB_DEFAULT << 20,
            sharing: Sharing::OneOwner,
            uses_cgroup: false,
            spares: Spares { count: 2, heap_mb: HEAP_MB_DEFAULT },
            settings: ZygoteSettings::default(),
            namespaces: Namespaces::default(),
            zygote_per_owner: false,
            fork_timeout: FORK_TIMEOUT_DEFAULT,
        }
    }
}

impl Config {
    /// Limits of the cgroup of all workers. Above the memory that is counted, because snapshots that are being written come on top: at most two
    /// thirds. So do the heaps that the server keeps in memory, because the kernel charges them to the workers that wrote them. Never so much
    /// that nothing is left for the server.
    pub(crate) fn group_limits(&self) -> GroupLimits {
        const ZYGOTE_MB: u64 = 256;
        let zygotes = 1 + if self.zygote_per_owner { (self.concurrent_max + ZYGOTES_IDLE_MAX) as u64 } else { 0 };
        let besides_mb = ZYGOTE_MB * zygotes + HEAPS_CACHED_MB_MAX + self.live_mb_max;
        let memory_mb = (self.memory_mb_max.saturating_mul(5) / 3).saturating_add(besides_mb).min(memory_mb_of_machine() * 9 / 10);
        // A worker that has ended stays until it is reaped. While a zygote starts, it is two processes.
        let workers = 2 * (self.concurrent_max as u64 + zygotes * self.spares.count as u64);
        // A process of a live worker takes a megabyte at least.
        GroupLimits { memory_mb, processes: workers + 2 * zygotes + 16 + self.live_mb_max }
    }
}

/// The most memory that one run may use if all may use `memory_mb`.
pub fn run_memory_mb_max(memory_mb: u64, sharing: Sharing) -> u64 {
    Pool::new(memory_mb, sharing, 0).amount_max()
}

/// The memory of the machine, or of the container if that has less.
pub fn memory_mb_of_machine() -> u64 {
    let info = rustix::system::sysinfo();
    let machine_mb = (info.totalram as u64 * u64::from(info.mem_unit)) >> 20;
    cgroup::memory_mb_max().map_or(machine_mb, |container_mb| container_mb.min(machine_mb))
}
