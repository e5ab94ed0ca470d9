//! Watches how much memory workers use while they run, and says how much may be explained.

use crate::Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks: often enough to see a worker that fills memory as fast as it can, seldom enough not to slow it.
const PAUSE: Duration = Duration::from_millis(3);
const MB: u64 = 1 << 20;

/// The most anonymous memory a worker may be seen with, all of it explained. Kept below what the worker's limit on data lets through, or it
/// would check nothing.
///
/// | part | MB |
/// |---|---|
/// | what it was forked with, and copies of it as it writes there | the zygote's own |
/// | V8's heap | the cap |
/// | array buffers | the cap again |
/// | the snapshot it writes, and V8's table of all objects meanwhile | the cap again |
/// | a heap that was saved under a higher cap than this run's | the length of its snapshot |
/// | new space, machine code, compilers' zones, the parser's tree, room to unwind in at the cap: measured, at most 96 | 112 |
pub fn private_bytes_max(heap_mb: u32, snapshot_bytes: u64, zygote_bytes: u64) -> u64 {
    zygote_bytes + 3 * u64::from(heap_mb) * MB + snapshot_bytes + 112 * MB
}

/// Looks at all children of one process until it is stopped, in a thread of its own.
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

    /// The most that any one child was seen with.
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
