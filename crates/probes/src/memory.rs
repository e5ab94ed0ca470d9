//! How much memory a worker can allocate, in each possible way, and whether memory can be made executable.

use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_GROWSDOWN, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_NONE, PROT_READ, PROT_WRITE};
use std::ffi::{c_long, c_void};
use std::ptr::null_mut;

const STEP_BYTES: usize = 1 << 20;
/// If this many steps succeed, there is no limit.
const STEPS_MAX: usize = 4096;

/// Allocates memory in steps. Returns how many MiB it got.
pub fn take(way: &str) -> String {
    let mut step: Box<dyn FnMut() -> bool> = match way {
        "map" => Box::new(|| map(PROT_READ | PROT_WRITE, MAP_PRIVATE, STEP_BYTES).is_some()),
        "commit" => Box::new(commit(libc::SYS_mprotect)),
        "commit with a key" => Box::new(commit(libc::SYS_pkey_mprotect)),
        "grow" => Box::new(grow()),
        "break" => Box::new(raise_break),
        "allocate" => Box::new(allocate),
        "shared" => Box::new(|| map(PROT_READ | PROT_WRITE, MAP_SHARED, STEP_BYTES).is_some()),
        "stack" => Box::new(|| map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_GROWSDOWN, STEP_BYTES).is_some()),
        _ => return format!("there is no way `{way}` to allocate memory"),
    };
    (0..STEPS_MAX).take_while(|_| step()).count().to_string()
}

/// Makes memory executable, as V8's compilers need it.
pub fn make_executable(way: &str) -> String {
    let protect_by =
        |call| map(PROT_READ | PROT_WRITE, MAP_PRIVATE, STEP_BYTES).is_some_and(|address| protect(call, address, PROT_READ | PROT_EXEC));
    let made = match way {
        "map" => map(PROT_READ | PROT_EXEC, MAP_PRIVATE, STEP_BYTES).is_some(),
        "protect" => protect_by(libc::SYS_mprotect),
        "protect with a key" => protect_by(libc::SYS_pkey_mprotect),
        _ => return format!("there is no way `{way}` to make memory executable"),
    };
    if made { "executable" } else { "refused" }.to_owned()
}

fn map(protection: i32, flags: i32, length: usize) -> Option<*mut c_void> {
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let address = unsafe { libc::mmap(null_mut(), length, protection, flags | MAP_ANONYMOUS, -1, 0) };
    (address != MAP_FAILED).then_some(address)
}

/// Changes the protection of one step at this address, by either of two system calls.
fn protect(call: c_long, address: *mut c_void, protection: i32) -> bool {
    // On any processor, this is no key.
    const NO_KEY: i32 = -1;
    // SAFETY: the callers' own mappings, of at least that length.
    unsafe { libc::syscall(call, address, STEP_BYTES, protection, NO_KEY) == 0 }
}

/// Reserves all address space first, then makes it writable in steps, as V8 does.
fn commit(call: c_long) -> impl FnMut() -> bool {
    let reserved = map(PROT_NONE, MAP_PRIVATE | MAP_NORESERVE, STEPS_MAX * STEP_BYTES).map(|address| address as usize);
    let mut next = 0;
    move || {
        let Some(start) = reserved else { return false };
        let piece = (start + next) as *mut c_void;
        next += STEP_BYTES;
        // Within the reservation, because there are at most STEPS_MAX steps.
        protect(call, piece, PROT_READ | PROT_WRITE)
    }
}

/// Grows one mapping.
fn grow() -> impl FnMut() -> bool {
    let (mut address, mut length) = (map(PROT_READ | PROT_WRITE, MAP_PRIVATE, STEP_BYTES).map(|address| address as usize), STEP_BYTES);
    move || {
        let Some(old) = address else { return false };
        // SAFETY: the mapping is this closure's own.
        let new = unsafe { libc::mremap(old as *mut c_void, length, length + STEP_BYTES, libc::MREMAP_MAYMOVE) };
        length += STEP_BYTES;
        address = (new != MAP_FAILED).then_some(new as usize);
        address.is_some()
    }
}

fn raise_break() -> bool {
    // SAFETY: the C library's allocator tolerates that other code moves the break up.
    unsafe { libc::sbrk(STEP_BYTES as isize) as isize != -1 }
}

/// The C library's allocator, which tries more than one of the others.
fn allocate() -> bool {
    // SAFETY: never used, never freed.
    unsafe { !std::hint::black_box(libc::malloc(STEP_BYTES)).is_null() }
}
