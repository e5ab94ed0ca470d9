//! Resource limits: the backstop behind V8's own heap cap, and against a worker that no longer obeys.

use super::ConfineError;
use crate::vm::CODE_RANGE_MB;
use heapstead_types::limits::HEAP_MB_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// V8's heap; buffers, as much as the heap again; and what a snapshot needs while it is written: its own bytes, and V8's table of all objects.
const HEAPS_PER_WORKER: u64 = 3;
/// What a worker uses beside heaps: V8's range for machine code, which counts whole, its tables and new space, compilers' zones, the parser's tree.
const DATA_MB_BASE: u64 = CODE_RANGE_MB as u64 + 96;
/// What a snapshot holds beside the heap and its buffers.
const SNAPSHOT_MB_BASE: u64 = 16;
/// Descriptors 0 to 3, and the two heaps that come with a run.
const DESCRIPTORS_MAX: u64 = 16;

/// Writable private memory a worker may have beyond what it was forked with.
pub fn data_bytes_max(heap_mb: u32) -> u64 {
    (HEAPS_PER_WORKER * u64::from(heap_mb) + DATA_MB_BASE) << 20
}

/// The longest snapshot this worker may save: its heap, its buffers, and some room. No system call tells it any more once it is confined.
pub fn snapshot_bytes_max() -> u64 {
    SNAPSHOT_BYTES_MAX.load(Relaxed)
}

static SNAPSHOT_BYTES_MAX: AtomicU64 = AtomicU64::new(u64::MAX);

pub fn zygote() -> Result<(), ConfineError> {
    set(Resource::Core, "core files", 0)?;
    set(Resource::Memlock, "locked memory", 0)?;
    set(Resource::Msgqueue, "message queues", 0)?;
    // A snapshot is the only thing ever written to a file, and no heap is larger than the largest cap, many times over.
    set(Resource::Fsize, "file size", u64::from(HEAP_MB_MAX) << 21).map(drop)
}

pub fn worker(heap_mb: u32) -> Result<(), ConfineError> {
    set(Resource::Nproc, "processes", 0)?;
    set(Resource::Nofile, "open files", DESCRIPTORS_MAX)?;
    SNAPSHOT_BYTES_MAX.store(set(Resource::Fsize, "file size", (2 * u64::from(heap_mb) + SNAPSHOT_MB_BASE) << 20)?, Relaxed);
    let inherited = inherited_data_bytes();
    set(Resource::Data, "data", inherited + data_bytes_max(heap_mb)).map(drop)
}

/// Sets a limit, unless it is lower already. What it is now.
fn set(resource: Resource, what: &'static str, wanted: u64) -> Result<u64, ConfineError> {
    let value = getrlimit(resource).maximum.map_or(wanted, |already| already.min(wanted));
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) }).map_err(|error| ConfineError::Limit { what, error })?;
    Ok(value)
}

/// What the zygote had mapped when it forked; V8 reserves far more than it uses.
fn inherited_data_bytes() -> u64 {
    INHERITED.load(Relaxed)
}

static INHERITED: AtomicU64 = AtomicU64::new(0);

/// Reads it once, in the zygote, before files are out of reach.
pub fn measure_inherited() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmData:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0);
    INHERITED.store(kilobytes << 10, Relaxed);
}
