//! How much of the stack a run uses. Optimised frames are smaller than interpreted ones, and which functions are optimised depends on what ran
//! in the process before: a run that comes near the limit, or exceeds it, may do something else when it is repeated.
//!
//! ```text
//! top of the run ── used ──► │ painted │ ── used only by deep runs ──► limit          limit of a replay, four times as far
//! ```
//! A run that used more than half of the stack has a gap. Any other run does not reach the limit of a replay, whatever is optimised.

use super::inputs;
use heapstead_wire::Gap;

/// What V8 itself allows by default.
const STACK_BYTES: usize = 984 << 10;
/// Well below the usual limit of 8 MB on the stack of a process.
const REPLAY_STACK_BYTES: usize = 4 * STACK_BYTES;
/// From the top of a run to the paint.
const DEEP_BYTES: usize = STACK_BYTES / 2;
/// Longer than the frames of ordinary functions, so that recursion does not step over it.
const PAINTED_WORDS: usize = 2048;
const PAINT: u64 = 0x6865_6170_7374_6561;

unsafe extern "C" {
    fn heapstead_set_stack_limit(isolate: v8::UnsafeRawIsolatePtr, limit: usize);
}

/// Watches the stack during one run.
pub struct StackWatch {
    painted: *mut u64,
}

impl StackWatch {
    /// Begins a run whose frames are below the caller's.
    #[inline(never)]
    pub fn begin(isolate: &mut v8::Isolate) -> Self {
        let here = std::ptr::from_ref(&isolate).addr();
        let limit = if inputs::is_replay() { REPLAY_STACK_BYTES } else { STACK_BYTES };
        let painted = std::ptr::with_exposed_provenance_mut::<u64>((here - DEEP_BYTES) & !7);
        // SAFETY: the isolate is alive. The words are on this thread's stack, far below every frame, and the kernel maps them when they are touched.
        unsafe {
            heapstead_set_stack_limit(isolate.as_raw_isolate_ptr(), here - limit);
            (0..PAINTED_WORDS).for_each(|index| painted.sub(index).write_volatile(PAINT));
        }
        Self { painted }
    }

    /// Ends the run. Notes a gap if it went deep.
    pub fn end(self) {
        // SAFETY: as above.
        let is_deep = unsafe { (0..PAINTED_WORDS).any(|index| self.painted.sub(index).read_volatile() != PAINT) };
        if is_deep {
            inputs::gap(Gap::Stack);
        }
    }
}
