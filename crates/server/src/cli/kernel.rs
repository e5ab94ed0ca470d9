//! What this machine's kernel can do of the things that confinement and heaps depend on.
#![allow(unsafe_code, reason = "two of the questions have no safe wrapper")]

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use std::io;

/// The version of Landlock; an error when there is none.
pub fn landlock_abi() -> io::Result<i64> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: asked for its version, the call reads no memory and makes nothing.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, VERSION) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Whether a filter may end a process that makes a system call it must not make.
pub fn seccomp_kills() -> io::Result<()> {
    let action = libc::SECCOMP_RET_KILL_PROCESS;
    // SAFETY: the call reads the action, which lives through it, and changes nothing.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether a process can be held by a descriptor, so that a kill never meets a stranger.
pub fn pidfd() -> Result<(), Errno> {
    pidfd_open(getpid(), PidfdFlags::empty()).map(drop)
}

/// Whether memory can be closed against every further change.
pub fn sealed_memory() -> Result<(), Errno> {
    let memory = memfd_create("probe", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    fcntl_add_seals(&memory, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
}
