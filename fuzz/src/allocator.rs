//! An allocator that counts, so that a target can assert how much memory a parser takes for an input.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE_BYTES: Cell<usize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Calls `parse`. Panics if it held more than `bytes_max` at once, on this thread.
pub fn within<T>(bytes_max: usize, parse: impl FnOnce() -> T) -> T {
    let before = LIVE_BYTES.get();
    PEAK_BYTES.set(before);
    let parsed = parse();
    let held = PEAK_BYTES.get().saturating_sub(before);
    assert!(held <= bytes_max, "the parser held {held} bytes, at most {bytes_max} are allowed for this input");
    parsed
}

fn grown(bytes: usize) {
    // During the exit of a thread the counters are gone.
    let live = LIVE_BYTES.try_with(|live| live.replace(live.get().wrapping_add(bytes)).wrapping_add(bytes));
    if let Ok(live) = live {
        let _ = PEAK_BYTES.try_with(|peak| peak.set(peak.get().max(live)));
    }
}

fn shrunk(bytes: usize) {
    // Saturating: memory may be freed on another thread than the one that allocated it.
    let _ = LIVE_BYTES.try_with(|live| live.set(live.get().saturating_sub(bytes)));
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrunk(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // Both exist while the content is copied.
        grown(bytes);
        shrunk(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}
