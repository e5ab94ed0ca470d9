//! V8, initialised once per zygote: its flags, its platform, its source of randomness.

use super::natives;
use heapstead_types::{EngineId, digest};
use std::sync::OnceLock;

/// Every flag shapes heaps or confinement, so all of them are part of the engine id.
const FLAGS: &[&str] = &[
    "--single-threaded",                      // a forked process has one thread, and a confined one can make no other
    "--hash-seed=20261115",                   // the same code on the same heap gives the same bytes
    "--no-flush-bytecode",                    // what is compiled stays so, whenever a collection happens to run
    "--no-validate-asm",                      // asm.js modules can't be saved; as plain JavaScript they can
    "--no-js-explicit-resource-management",   // `using` crashes V8 in contexts that are to be saved
    "--no-experimental-wasm-type-reflection", // keep to what is standard
    "--no-expose-gc",
];

pub fn initialize() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        v8::V8::set_flags_from_string(&FLAGS.join(" "));
        v8::V8::set_entropy_source(|buffer: &mut [u8]| fill_random(buffer));
        let platform = v8::new_single_threaded_default_platform(false).make_shared();
        v8::cppgc::initialize_process(platform.clone());
        v8::V8::initialize_platform(platform);
        v8::V8::initialize();
    });
}

/// Straight from the kernel, so that two forks of one process never draw the same.
pub fn fill_random(buffer: &mut [u8]) -> bool {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::rand::getrandom(&mut buffer[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

pub fn engine_id() -> EngineId {
    EngineId {
        v8: v8::V8::get_version().to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        flags: digest(FLAGS.iter().copied()),
        natives: natives::count(),
        natives_digest: natives::digest_of_first(natives::count()).unwrap_or(0),
    }
}
