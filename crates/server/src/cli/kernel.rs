//! Kernel features that confinement and heaps depend on.
#![allow(unsafe_code, reason = "two of the system calls have no safe wrapper")]

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use std::io;

/// The Landlock ABI version, or an error if there is none.
pub fn landlock_abi() -> io::Result<i64> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: the version query reads no memory and creates nothing.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, VERSION) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Whether a seccomp filter may kill a process that makes a forbidden system call.
pub fn seccomp_kills() -> io::Result<()> {
    let action = libc::SECCOMP_RET_KILL_PROCESS;
    // SAFETY: the call reads the action, which outlives it, and changes nothing.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether pidfds work, so that a kill never hits a reused process id.
pub fn pidfd() -> Result<(), Errno> {
    pidfd_open(getpid(), PidfdFlags::empty()).map(drop)
}

/// Whether memory can be sealed against changes.
pub fn sealed_memory() -> Result<(), Errno> {
    let memory = memfd_create("probe", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    fcntl_add_seals(&memory, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
}
