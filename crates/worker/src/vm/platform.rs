//! Initialises V8, once per zygote: its flags, its platform and its entropy source.

use super::natives;
use heapstead_types::{EngineId, digest};
use std::sync::OnceLock;

/// The flags affect the format of heaps or the confinement, so all of them are part of the engine id.
const FLAGS: &[&str] = &[
    "--single-threaded",                      // a forked process has one thread, and a confined process can't create another
    "--hash-seed=20261115",                   // the same code on the same heap produces the same bytes
    "--no-flush-bytecode",                    // whether bytecode is kept must not depend on when garbage is collected
    "--no-validate-asm",                      // asm.js modules can't be saved; as plain JavaScript they can
    "--no-js-explicit-resource-management",   // `using` crashes V8 in contexts that are to be saved
    "--no-experimental-wasm-type-reflection", // only standard features
    "--no-sparkplug",                         // a saved error refers to the code of its frames, and baseline code can't be saved
    "--no-enable-lazy-source-positions",      // the positions of a saved error must be in the snapshot
    "--no-short-builtin-calls",               // V8 would read /proc/self/maps for heaps of 2 GB and more
    "--no-expose-gc",
];

/// An operator's choice: V8 generates no machine code, so a worker needs no executable memory. There is no `WebAssembly` then.
const JITLESS: &str = "--jitless";

static IS_JITLESS: OnceLock<bool> = OnceLock::new();

/// Chooses whether V8 generates machine code, before it is initialised.
pub fn set_jitless(jitless: bool) {
    IS_JITLESS.get_or_init(|| jitless);
}

fn chosen_flags() -> impl Iterator<Item = &'static str> {
    let jitless = IS_JITLESS.get().copied().unwrap_or(false);
    FLAGS.iter().copied().chain(jitless.then_some(JITLESS))
}

pub fn initialize() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        v8::V8::set_flags_from_string(&chosen_flags().collect::<Vec<_>>().join(" "));
        v8::V8::set_entropy_source(|buffer: &mut [u8]| entropy(buffer));
        let platform = v8::new_single_threaded_default_platform(false).make_shared();
        v8::cppgc::initialize_process(platform.clone());
        v8::V8::initialize_platform(platform);
        v8::V8::initialize();
        natives::prepare();
    });
}

static IDENTITY_SEED: OnceLock<u64> = OnceLock::new();

/// Seeds V8's own random numbers, which are stored in heaps as identity hashes of objects. `Math.random` and `crypto` are not affected: the base
/// heap implements them.
pub fn seed_identities(seed: u64) {
    IDENTITY_SEED.get_or_init(|| seed);
}

fn entropy(buffer: &mut [u8]) -> bool {
    let Some(seed) = IDENTITY_SEED.get() else { return fill_random(buffer) };
    for (byte, from) in buffer.iter_mut().zip(seed.to_le_bytes().iter().cycle()) {
        *byte = *from;
    }
    true
}

/// Random bytes from the kernel, so that two forks of one process never get the same ones.
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
    id_with(chosen_flags())
}

/// The engine id without the operator's choices. The base heap is made without them, and loads with all of them.
pub fn build_id() -> EngineId {
    id_with(FLAGS.iter().copied())
}

fn id_with(flags: impl Iterator<Item = &'static str>) -> EngineId {
    EngineId {
        v8: v8::V8::get_version().to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        flags: digest(flags),
        natives: natives::count(),
        natives_digest: natives::digest_of_first(natives::count()).unwrap_or(0),
    }
}
