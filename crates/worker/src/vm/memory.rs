//! The memory cap of a run: V8's heap, buffers counted beside it, and what happens at the limit.

use crate::{Session, allocator, session};
use heapstead_types::Failure;
use heapstead_wire::Frame;
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The one run of this process, as V8's callbacks see it: they get no data of ours.
static EXCEEDED: AtomicBool = AtomicBool::new(false);
static SAVING: AtomicBool = AtomicBool::new(false);
static HEAP_MB: AtomicUsize = AtomicUsize::new(0);
static SESSION: AtomicUsize = AtomicUsize::new(0);

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

/// From here on V8 may use what the snapshot needs beyond the cap.
pub fn begin_saving() {
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

pub fn watch(isolate: &mut v8::Isolate, session: &Session, heap_mb: u32) {
    HEAP_MB.store(heap_mb as usize, Relaxed);
    LAST_WORDS.get_or_init(|| {
        let mut frame = Vec::new();
        // Writing to memory does not fail.
        let _ = Frame::Failed(cap_failure()).write_to(&mut frame);
        frame
    });
    SESSION.store(std::ptr::from_ref(session) as usize, Relaxed);
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

/// The frame that says so, made while there was memory.
static LAST_WORDS: OnceLock<Vec<u8>> = OnceLock::new();

/// No memory is to be had any more. Say why and go, without asking for any.
fn exhausted() -> ! {
    end_if_running();
    session::quit()
}

/// Ends the run of this process for want of memory; does nothing where there is none.
pub fn end_if_running() {
    // SAFETY: null, or what `watch` stored: the session of this process, which lives until the process ends.
    let session = unsafe { (SESSION.load(Relaxed) as *const Session).as_ref() };
    if let (Some(session), Some(frame)) = (session, LAST_WORDS.get()) {
        session.send_bytes(frame);
        session::quit()
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
