//! The worker as a shared library: loaded into the V8 host before its own `main`, it takes that `main`'s place.

heapstead_worker::entry!(heapstead_worker::vm::run);
