//! Isolates: from nothing (to make the base heap), from a heap that is to be saved again, or from one that is not.

use super::{memory, natives, platform};

fn parameters(heap_mb: u32) -> v8::CreateParams {
    // The inspector, which REPL mode comes with, needs a C++ heap.
    let cpp_heap = v8::cppgc::Heap::create(
        v8::V8::get_current_platform(),
        v8::cppgc::HeapCreateParams { marking_support: v8::cppgc::MarkingType::Atomic, sweeping_support: v8::cppgc::SweepingType::Atomic },
    );
    v8::CreateParams::default()
        .heap_limits(0, (heap_mb as usize) << 20)
        .array_buffer_allocator(memory::buffer_allocator(heap_mb))
        .cpp_heap(cpp_heap)
}

fn ready(mut isolate: v8::OwnedIsolate) -> v8::OwnedIsolate {
    isolate.set_microtasks_policy(v8::MicrotasksPolicy::Explicit);
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
