//! Resource limits: a second limit behind V8's heap cap, which also holds if native code is exploited.

use super::{ConfineError, Lifetime};
use heapstead_types::limits::{HEAP_MB_MAX, snapshot_mb_max, worker_mb_max};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Descriptors 0 to 3, and the two heaps of a run.
const DESCRIPTORS_MAX: u64 = 16;

/// The limit on a worker's writable private memory, in addition to the memory that it inherits from the zygote.
pub fn data_bytes_max(heap_mb: u32) -> u64 {
    worker_mb_max(heap_mb) << 20
}

/// The longest snapshot this worker may write: its heap, its buffers, and some room. Stored, because a confined worker can't query the limit.
pub fn snapshot_bytes_max() -> u64 {
    SNAPSHOT_BYTES_MAX.load(Relaxed)
}

static SNAPSHOT_BYTES_MAX: AtomicU64 = AtomicU64::new(u64::MAX);

pub fn zygote() -> Result<(), ConfineError> {
    set(Resource::Core, "core files", 0)?;
    set(Resource::Memlock, "locked memory", 0)?;
    set(Resource::Msgqueue, "message queues", 0)?;
    // Only snapshots are written to files, and none is longer than twice the largest cap.
    set(Resource::Fsize, "file size", u64::from(HEAP_MB_MAX) << 21).map(drop)
}

pub fn worker(heap_mb: u32, lifetime: Lifetime) -> Result<(), ConfineError> {
    // The processes of a live worker are counted by the zygote.
    if lifetime == Lifetime::OneRun {
        set(Resource::Nproc, "processes", 0)?;
    }
    set(Resource::Nofile, "open files", DESCRIPTORS_MAX)?;
    SNAPSHOT_BYTES_MAX.store(set(Resource::Fsize, "file size", snapshot_mb_max(heap_mb) << 20)?, Relaxed);
    let inherited = inherited_data_bytes();
    set(Resource::Data, "data", inherited + data_bytes_max(heap_mb)).map(drop)
}

/// Sets a limit, unless it is already lower. Returns the limit in effect.
fn set(resource: Resource, what: &'static str, wanted: u64) -> Result<u64, ConfineError> {
    let value = getrlimit(resource).maximum.map_or(wanted, |already| already.min(wanted));
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) }).map_err(|error| ConfineError::Limit { what, error })?;
    Ok(value)
}

/// The data size of the zygote, which a worker inherits. V8 reserves far more than it uses.
fn inherited_data_bytes() -> u64 {
    INHERITED.load(Relaxed)
}

static INHERITED: AtomicU64 = AtomicU64::new(0);

/// Reads the data size of the zygote once, while it can still open files.
pub fn measure_inherited() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmData:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0);
    INHERITED.store(kilobytes << 10, Relaxed);
}
