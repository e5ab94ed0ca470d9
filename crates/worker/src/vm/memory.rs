//! The memory cap of a run: a limit on V8's heap, the same limit on array buffers, and what happens when one is reached.

use crate::{Channel, allocator, channel};
use heapstead_types::Failure;
use heapstead_wire::{FromWorker, RunNumber};
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// The run in progress. In statics, because V8's callbacks take no user data.
static EXCEEDED: AtomicBool = AtomicBool::new(false);
static COMPLETED: AtomicBool = AtomicBool::new(false);
static SAVING: AtomicBool = AtomicBool::new(false);
static HEAP_MB: AtomicUsize = AtomicUsize::new(0);
static CHANNEL: AtomicPtr<Channel> = AtomicPtr::new(std::ptr::null_mut());

/// Memory that V8 gets beyond the cap to unwind the stack, once the code is being terminated.
const GRACE_BYTES: usize = 16 << 20;
/// How often the limit is raised by [`GRACE_BYTES`]. After that, the code is in a native that ignores termination, and V8 runs out of memory.
const GRACES_MAX: usize = 2;

/// Whether the run has exceeded its cap and is being terminated.
pub fn exceeded() -> bool {
    EXCEEDED.load(Relaxed)
}

/// Adds the reason to V8's error for a refused buffer, which does not mention the cap.
pub fn explain_refused_buffer(uncaught: String) -> String {
    match uncaught.starts_with("RangeError: Array buffer allocation failed") {
        true => format!("{uncaught}\n{}", cap_failure()),
        false => uncaught,
    }
}

/// Starts a run: if memory runs out from now on, this run fails.
pub fn begin_run(run: RunNumber) {
    let messages = LastMessages {
        ended: encode(&FromWorker::Ended { run, outcome: Err(cap_failure()) }),
        snapshot: encode(&FromWorker::Snapshot { run, outcome: Err(cap_failure()) }),
    };
    // The messages of the previous run are leaked: a few bytes.
    LAST_MESSAGES.store(Box::into_raw(Box::new(messages)), Relaxed);
    COMPLETED.store(false, Relaxed);
}

/// Ends a run: if memory runs out from now on, its snapshot fails.
pub fn complete_run() {
    COMPLETED.store(true, Relaxed);
}

/// Allows V8 to exceed the cap from now on, as far as the snapshot needs it.
pub fn begin_snapshot() {
    SAVING.store(true, Relaxed);
}

/// Checks that the live objects fit into the cap, so that a run with the same cap can restore the heap. Collects garbage only if they may not.
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
    // SAFETY: the isolate lives until the process exits.
    let watched = unsafe { isolate.as_raw_isolate_ptr() };
    isolate.add_near_heap_limit_callback(near_limit, Box::into_raw(Box::new(watched)).cast());
    isolate.set_oom_error_handler(out_of_memory);
}

unsafe extern "C" fn near_limit(data: *mut c_void, current_bytes: usize, initial_bytes: usize) -> usize {
    if SAVING.load(Relaxed) {
        return current_bytes + initial_bytes;
    }
    // SAFETY: `watch` leaked the pointer, and V8 calls this function on the thread of the isolate.
    let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(*data.cast::<v8::UnsafeRawIsolatePtr>()) };
    // V8 also calls this when a buffer was refused and garbage collection freed nothing. The heap itself may be nearly empty then.
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

/// V8 calls this when it has run out of memory and can't continue.
unsafe extern "C" fn out_of_memory(_location: *const c_char, _details: &v8::OomDetails) {
    exit_out_of_memory();
}

/// The messages that report the lack of memory, encoded while there is memory.
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

/// Reports that memory has run out and exits, without allocating.
fn exit_out_of_memory() -> ! {
    exit_if_run_in_progress();
    channel::quit()
}

/// Reports that memory has run out and exits, if this process has a run. Returns otherwise.
pub fn exit_if_run_in_progress() {
    // SAFETY: null, or pointers to the channel of this process and to leaked messages. Both live until the process exits.
    let (channel, messages) = unsafe { (CHANNEL.load(Relaxed).as_ref(), LAST_MESSAGES.load(Relaxed).as_ref()) };
    if let (Some(channel), Some(messages)) = (channel, messages) {
        channel.send_encoded(if COMPLETED.load(Relaxed) { &messages.snapshot } else { &messages.ended });
        channel::quit()
    }
}

/// Why V8 terminated the code: the cap, or an unknown reason.
pub fn stop_failure(during: &str) -> Failure {
    if exceeded() { cap_failure() } else { Failure::NoWorker(format!("V8 stopped the run during {during}")) }
}

pub fn cap_failure() -> Failure {
    Failure::MemoryCap { heap_mb: HEAP_MB.load(Relaxed) as u32 }
}

/// Counts the bytes of array buffers. Their limit is that of the heap.
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
    // SAFETY: for null, V8 throws a RangeError. At least one byte, because null would mean failure.
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
