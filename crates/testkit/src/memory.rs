//! Watches how much memory workers use while they run, and computes how much they may use.

use crate::Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// Polling interval: short enough to notice a worker that fills memory as fast as it can, long enough not to slow it down.
const PAUSE: Duration = Duration::from_millis(3);
const MB: u64 = 1 << 20;

/// The maximum anonymous memory of a worker, as a sum of known parts. It must be below the worker's data limit, otherwise it would check
/// nothing.
///
/// | part | MB |
/// |---|---|
/// | memory inherited from the zygote, and its copies after writes | that of the zygote |
/// | V8's heap | the cap |
/// | array buffers | the cap again |
/// | the snapshot it writes, and V8's table of all objects | the cap again |
/// | a heap that was saved with a higher cap than this run's | the length of its snapshot |
/// | new space, machine code, memory of compilers and parser, memory to unwind the stack at the cap: measured, at most 96 | 112 |
pub fn private_bytes_max(heap_mb: u32, snapshot_bytes: u64, zygote_bytes: u64) -> u64 {
    zygote_bytes + 3 * u64::from(heap_mb) * MB + snapshot_bytes + 112 * MB
}

/// Polls the memory of all children of one process in its own thread, until it is stopped.
pub struct MemoryWatch {
    stop: Arc<AtomicBool>,
    peak_bytes: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryWatch {
    pub fn start(parent: Process) -> Self {
        let (stop, peak_bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, peak) = (stop.clone(), peak_bytes.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Relaxed) {
                for worker in parent.children() {
                    peak.fetch_max(worker.anonymous_bytes().unwrap_or(0), Relaxed);
                }
                std::thread::sleep(PAUSE);
            }
        });
        Self { stop, peak_bytes, thread: Some(thread) }
    }

    /// Stops. Returns the peak memory of any one child.
    pub fn finish(mut self) -> u64 {
        self.end();
        self.peak_bytes.load(Relaxed)
    }

    fn end(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.end();
    }
}
