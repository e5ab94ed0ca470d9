//! The memory cap of a run: V8's heap, buffers counted beside it, and what happens at the limit.

use crate::{Channel, allocator, channel};
use heapstead_types::Failure;
use heapstead_wire::{FromWorker, RunNumber};
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// The run in progress, as V8's callbacks see it: they get no data of ours.
static EXCEEDED: AtomicBool = AtomicBool::new(false);
static COMPLETED: AtomicBool = AtomicBool::new(false);
static SAVING: AtomicBool = AtomicBool::new(false);
static HEAP_MB: AtomicUsize = AtomicUsize::new(0);
static CHANNEL: AtomicPtr<Channel> = AtomicPtr::new(std::ptr::null_mut());

/// Room for V8 to unwind in once the cap is passed and the code is being stopped.
const GRACE_BYTES: usize = 16 << 20;
/// After this many graces code is in a native that does not stop; V8's own end is next.
const GRACES_MAX: usize = 2;

/// Whether the run passed its cap and is being stopped.
pub fn exceeded() -> bool {
    EXCEEDED.load(Relaxed)
}

/// What V8 says when the allocator refuses a buffer tells nothing of why.
pub fn explained(uncaught: String) -> String {
    match uncaught.starts_with("RangeError: Array buffer allocation failed") {
        true => format!("{uncaught}\n{}", cap_failure()),
        false => uncaught,
    }
}

/// From here on a lack of memory fails this run.
pub fn begin_run(run: RunNumber) {
    let messages = LastMessages {
        ended: encode(&FromWorker::Ended { run, outcome: Err(cap_failure()) }),
        snapshot: encode(&FromWorker::Snapshot { run, outcome: Err(cap_failure()) }),
    };
    // Those of the run before are leaked: a few bytes.
    LAST_MESSAGES.store(Box::into_raw(Box::new(messages)), Relaxed);
    COMPLETED.store(false, Relaxed);
}

/// The run has completed. From here on a lack of memory fails its snapshot.
pub fn complete_run() {
    COMPLETED.store(true, Relaxed);
}

/// From here on V8 may use what the snapshot needs beyond the cap.
pub fn begin_snapshot() {
    SAVING.store(true, Relaxed);
}

/// Whether what is alive on the heap fits its cap, so that a run under the same cap can restore it. Collects only where that is in doubt.
pub fn check_live(isolate: &mut v8::Isolate) -> Result<(), Failure> {
    let cap_bytes = HEAP_MB.load(Relaxed) << 20;
    if isolate.get_heap_statistics().used_heap_size() > cap_bytes / 4 * 3 {
        isolate.low_memory_notification();
    }
    if exceeded() || isolate.get_heap_statistics().used_heap_size() > cap_bytes { Err(cap_failure()) } else { Ok(()) }
}

pub fn watch(isolate: &mut v8::Isolate, channel: &Channel, heap_mb: u32) {
    HEAP_MB.store(heap_mb as usize, Relaxed);
    CHANNEL.store(std::ptr::from_ref(channel).cast_mut(), Relaxed);
    // SAFETY: the isolate lives until the process ends.
    let watched = unsafe { isolate.as_raw_isolate_ptr() };
    isolate.add_near_heap_limit_callback(near_limit, Box::into_raw(Box::new(watched)).cast());
    isolate.set_oom_error_handler(out_of_memory);
}

unsafe extern "C" fn near_limit(data: *mut c_void, current_bytes: usize, initial_bytes: usize) -> usize {
    if SAVING.load(Relaxed) {
        return current_bytes + initial_bytes;
    }
    // SAFETY: `watch` leaked the pointer, and V8 calls on the thread of its isolate.
    let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(*data.cast::<v8::UnsafeRawIsolatePtr>()) };
    // V8 also asks when buffers are refused and collecting brought nothing back; the heap itself may be nearly empty then.
    if isolate.get_heap_statistics().used_heap_size() < current_bytes / 8 * 7 {
        return current_bytes + 1;
    }
    EXCEEDED.store(true, Relaxed);
    isolate.terminate_execution();
    match current_bytes < initial_bytes + GRACES_MAX * GRACE_BYTES {
        true => current_bytes + GRACE_BYTES,
        false => current_bytes,
    }
}

/// V8 can't go on.
unsafe extern "C" fn out_of_memory(_location: *const c_char, _details: &v8::OomDetails) {
    exhausted();
}

/// The message that says so, encoded while there was memory.
struct LastMessages {
    ended: Vec<u8>,
    snapshot: Vec<u8>,
}

/// Null before the first run.
static LAST_MESSAGES: AtomicPtr<LastMessages> = AtomicPtr::new(std::ptr::null_mut());

fn encode(message: &FromWorker) -> Vec<u8> {
    let mut encoded = Vec::new();
    // Writing to memory does not fail.
    let _ = message.write_to(&mut encoded);
    encoded
}

/// No memory can be had any more. Says why and exits, without asking for any.
fn exhausted() -> ! {
    end_if_running();
    channel::quit()
}

/// Ends the run of this process for want of memory; does nothing if there is none.
pub fn end_if_running() {
    // SAFETY: null, or what was stored here: the channel of this process, and messages that were leaked. Both live until the process ends.
    let (channel, messages) = unsafe { (CHANNEL.load(Relaxed).as_ref(), LAST_MESSAGES.load(Relaxed).as_ref()) };
    if let (Some(channel), Some(messages)) = (channel, messages) {
        channel.send_encoded(if COMPLETED.load(Relaxed) { &messages.snapshot } else { &messages.ended });
        channel::quit()
    }
}

/// Why V8 stopped the code: the cap, or something we did not foresee.
pub fn stop_failure(during: &str) -> Failure {
    if exceeded() { cap_failure() } else { Failure::NoWorker(format!("V8 stopped the run during {during}")) }
}

pub fn cap_failure() -> Failure {
    Failure::MemoryCap { heap_mb: HEAP_MB.load(Relaxed) as u32 }
}

/// Bytes in array buffers, bounded by the same number as the heap.
struct Buffers {
    used_bytes: AtomicUsize,
    bytes_max: usize,
}

pub fn buffer_allocator(heap_mb: u32) -> v8::UniqueRef<v8::Allocator> {
    static VTABLE: v8::RustAllocatorVtable<Buffers> =
        v8::RustAllocatorVtable { allocate, allocate_uninitialized: allocate, free, drop: forget };
    let buffers = Box::into_raw(Box::new(Buffers { used_bytes: AtomicUsize::new(0), bytes_max: (heap_mb as usize) << 20 }));
    // SAFETY: the counter is leaked, so it outlives every buffer.
    unsafe { v8::new_rust_allocator(buffers, &VTABLE) }
}

unsafe extern "C" fn allocate(buffers: &Buffers, length: usize) -> *mut c_void {
    let used = buffers.used_bytes.load(Relaxed);
    if length > buffers.bytes_max.saturating_sub(used) {
        return std::ptr::null_mut();
    }
    // SAFETY: V8 makes a RangeError of null. One byte at least, because null would mean failure.
    let data = unsafe { allocator::try_calloc(length.max(1), 1) };
    if !data.is_null() {
        buffers.used_bytes.store(used + length, Relaxed);
    }
    data
}

unsafe extern "C" fn free(buffers: &Buffers, data: *mut c_void, length: usize) {
    buffers.used_bytes.fetch_sub(length, Relaxed);
    // SAFETY: it came from `allocate`.
    unsafe { libc::free(data) };
}

unsafe extern "C" fn forget(_buffers: *const Buffers) {}
