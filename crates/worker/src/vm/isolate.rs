//! Isolates: from nothing (to make the base heap), from a heap that is to be saved again, or from one that is not.

use super::{memory, natives, platform};

/// Where compiled code goes. V8 maps it writable at once, so all of it counts against the limit on data.
pub const CODE_RANGE_MB: u32 = 64;
/// Young objects live beside the cap: three semi-spaces of a third of this each.
const YOUNG_MB_MIN: u32 = 3;
const YOUNG_MB_MAX: u32 = 24;
/// On top of the cap, because a heap that is restored lies less densely than the one that was saved.
const RESTORED_MB: u32 = 4;

fn parameters(heap_mb: u32) -> v8::CreateParams {
    // The inspector, which REPL mode comes with, needs a C++ heap.
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

fn ready(mut isolate: v8::OwnedIsolate) -> v8::OwnedIsolate {
    isolate.set_microtasks_policy(v8::MicrotasksPolicy::Explicit);
    // No other thread could end the wait, and the system call for it is death: an error is better, as in a browser's main thread.
    isolate.set_allow_atomics_wait(false);
    isolate
}

/// An isolate with nothing of ours in it.
pub fn empty(heap_mb: u32) -> v8::OwnedIsolate {
    platform::initialize();
    ready(v8::Isolate::snapshot_creator(Some(natives::external_references()), Some(parameters(heap_mb))))
}

/// An isolate that can be saved again. `WebAssembly` and shared memory don't exist in it.
pub fn saveable(heap: &'static [u8], heap_mb: u32) -> v8::OwnedIsolate {
    ready(v8::Isolate::snapshot_creator_from_existing_snapshot(
        v8::StartupData::from(heap),
        Some(natives::external_references()),
        Some(parameters(heap_mb)),
    ))
}

/// An isolate that ends with its run.
pub fn transient(heap: &'static [u8], heap_mb: u32) -> v8::OwnedIsolate {
    ready(v8::Isolate::new(
        parameters(heap_mb).snapshot_blob(v8::StartupData::from(heap)).external_references(natives::external_references()),
    ))
}
