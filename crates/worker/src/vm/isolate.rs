//! Creates isolates: empty (to make the base heap), from a heap with a snapshot at the end, or from a heap without one.

use super::{memory, natives, platform};

/// V8's range for machine code. V8 maps all of it writable at the start, so it counts in full towards the data limit.
pub const CODE_RANGE_MB: u32 = 64;
/// The young generation, which does not count towards the cap: three semi-spaces of a third of this size each.
const YOUNG_MB_MIN: u32 = 3;
const YOUNG_MB_MAX: u32 = 24;
/// Added to the cap, because a restored heap is more fragmented than the heap that was saved.
const RESTORED_MB: u32 = 4;

fn parameters(heap_mb: u32) -> v8::CreateParams {
    // REPL mode needs the inspector, which needs a C++ heap.
    let cpp_heap = v8::cppgc::Heap::create(
        v8::V8::get_current_platform(),
        v8::cppgc::HeapCreateParams { marking_support: v8::cppgc::MarkingType::Atomic, sweeping_support: v8::cppgc::SweepingType::Atomic },
    );
    v8::CreateParams::default()
        .set_max_old_generation_size_in_bytes(((heap_mb + RESTORED_MB) as usize) << 20)
        .set_code_range_size_in_bytes((CODE_RANGE_MB as usize) << 20)
        .set_max_young_generation_size_in_bytes(((heap_mb / 4).clamp(YOUNG_MB_MIN, YOUNG_MB_MAX) as usize) << 20)
        .array_buffer_allocator(memory::buffer_allocator(heap_mb))
        .cpp_heap(cpp_heap)
}

fn configured(mut isolate: v8::OwnedIsolate) -> v8::OwnedIsolate {
    isolate.set_microtasks_policy(v8::MicrotasksPolicy::Explicit);
    // No other thread could end the wait, and its system call would kill the worker. So it throws, as on a browser's main thread.
    isolate.set_allow_atomics_wait(false);
    isolate
}

/// An isolate with only V8's built-ins.
pub fn empty(heap_mb: u32) -> v8::OwnedIsolate {
    platform::initialize();
    configured(v8::Isolate::snapshot_creator(Some(natives::external_references()), Some(parameters(heap_mb))))
}

/// An isolate that a snapshot can be taken of. It has no `WebAssembly` and no shared memory.
pub fn saveable(heap: &'static [u8], heap_mb: u32) -> v8::OwnedIsolate {
    configured(v8::Isolate::snapshot_creator_from_existing_snapshot(
        v8::StartupData::from(heap),
        Some(natives::external_references()),
        Some(parameters(heap_mb)),
    ))
}

/// An isolate for a stateless run: no snapshot can be taken of it.
pub fn transient(heap: &'static [u8], heap_mb: u32) -> v8::OwnedIsolate {
    configured(v8::Isolate::new(
        parameters(heap_mb).snapshot_blob(v8::StartupData::from(heap)).external_references(natives::external_references()),
    ))
}
