//! System calls that a worker may make, with arguments that it may not use.

use crate::attempts::Attempt;
use crate::socket::SOCKET;
use libc::{MAP_ANONYMOUS, MAP_FIXED_NOREPLACE, MAP_HUGETLB, MAP_LOCKED, MAP_POPULATE, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE};
use std::ffi::{c_int, c_long, c_void};
use std::ptr::{null, null_mut};

const PAGE_BYTES: usize = 4096;
/// The clock of the CPU time of process 1, as `clock_getcpuclockid` returns it.
const CLOCK_OF_ZYGOTE: c_int = (!1 << 3) | 2;
/// Not in the `libc` crate.
const PROT_GROWSDOWN: c_int = 0x0100_0000;
const MADV_COLLAPSE: c_int = 25;

/// Each is harmless if it succeeds.
#[rustfmt::skip]
pub const ATTEMPTS: &[(&str, Attempt)] = &[
    ("wake a futex that other processes share", || futex(libc::FUTEX_WAKE)),
    ("wait for a futex", || futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG)),
    ("requeue a futex", || futex(libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG)),
    ("lock a futex with priority inheritance", || futex(libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG)),
    ("unlock a futex with priority inheritance", || futex(libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG)),
    ("requeue a futex with priority inheritance", || futex(libc::FUTEX_CMP_REQUEUE_PI | libc::FUTEX_PRIVATE_FLAG)),
    ("change another futex while waking", || futex(libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG)),
    ("let the kernel merge equal pages", || advise(libc::MADV_MERGEABLE)),
    ("poison a page", || advise(libc::MADV_HWPOISON)),
    ("remove a page from a file", || advise(libc::MADV_REMOVE)),
    ("wipe a page on fork", || advise(libc::MADV_WIPEONFORK)),
    ("collapse pages into a huge page", || advise(MADV_COLLAPSE)),
    ("request huge pages", || advise(libc::MADV_HUGEPAGE)),
    ("page out", || advise(libc::MADV_PAGEOUT)),
    ("map huge pages", || map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1)),
    ("map locked memory", || map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1)),
    ("map populated memory", || map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1)),
    ("map memory without replacing", || map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1)),
    ("map a descriptor for writing", || map(PROT_READ | PROT_WRITE, MAP_PRIVATE, SOCKET)),
    ("map a descriptor for executing", || map(PROT_READ | PROT_EXEC, MAP_PRIVATE, SOCKET)),
    ("map memory with an unknown protection", || map(PROT_READ | 8, MAP_PRIVATE | MAP_ANONYMOUS, -1)),
    ("protect the whole stack", || protect_stack(libc::SYS_mprotect)),
    ("protect the whole stack with a key", || protect_stack(libc::SYS_pkey_mprotect)),
    ("move a mapping to a chosen address", move_mapping),
    ("read the CPU time of the zygote", || clock(libc::SYS_clock_gettime)),
    ("query the clock of the zygote", || clock(libc::SYS_clock_getres)),
    ("receive from another descriptor", receive),
];

fn futex(operation: c_int) -> c_long {
    let words = [0_u32; 2];
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: two live words, and a live time.
    unsafe { libc::syscall(libc::SYS_futex, &words[0], operation, 1, &at_once, &words[1], 1) }
}

/// A page of its own memory.
fn page() -> *mut c_void {
    // SAFETY: a new mapping, at an address that the kernel chooses.
    unsafe { libc::mmap(null_mut(), PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) }
}

fn advise(advice: c_int) -> c_long {
    // SAFETY: a fresh page that nothing uses.
    unsafe { libc::syscall(libc::SYS_madvise, page(), PAGE_BYTES, advice) }
}

fn map(protection: c_int, flags: c_int, descriptor: c_int) -> c_long {
    // SAFETY: a new mapping, at an address that the kernel chooses.
    unsafe { libc::syscall(libc::SYS_mmap, null::<u8>(), PAGE_BYTES, protection, flags, descriptor, 0) }
}

fn protect_stack(number: c_long) -> c_long {
    let on_stack = 0_u8;
    let address = (&raw const on_stack as usize) & !(PAGE_BYTES - 1);
    // SAFETY: the stack keeps the protection that it has.
    unsafe { libc::syscall(number, address, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_GROWSDOWN, -1) }
}

fn move_mapping() -> c_long {
    let (from, to) = (page(), page());
    // SAFETY: two fresh pages that nothing uses.
    unsafe { libc::syscall(libc::SYS_mremap, from, PAGE_BYTES, PAGE_BYTES, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, to) }
}

fn clock(number: c_long) -> c_long {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live time.
    unsafe { libc::syscall(number, CLOCK_OF_ZYGOTE, &mut time) }
}

fn receive() -> c_long {
    // SAFETY: zero is a valid message header: no buffer, no control data.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        libc::syscall(libc::SYS_recvmsg, 0, &mut message, libc::MSG_DONTWAIT)
    }
}
