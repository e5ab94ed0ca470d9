//! The worker as a shared library. It is preloaded into the V8 host and replaces the host's `main`.

heapstead_worker::entry!(heapstead_worker::vm::run);
