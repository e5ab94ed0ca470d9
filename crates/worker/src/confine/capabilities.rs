//! Capabilities: all are dropped from every set, regardless of the user that started the process. A few are needed before that.

use super::ConfineError;
use std::io::{Error, Result};

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

const VERSION_3: u32 = 0x2008_0522;
/// Effective, permitted, inheritable: twice 32 bits each.
const NONE: [u32; 6] = [0; 6];

/// Numbers of `linux/capability.h`.
pub const KILL: u32 = 5;
pub const SETGID: u32 = 6;
pub const SETUID: u32 = 7;

/// Whether all of these are in effect.
pub fn has_all(wanted: &[u32]) -> Result<bool> {
    let [effective, ..] = get()?;
    Ok(wanted.iter().all(|capability| effective & (1 << capability) != 0))
}

/// Makes all permitted capabilities effective, after a change of user has made them ineffective.
pub fn raise_all() -> Result<()> {
    let [_, permitted, inheritable, _, permitted_high, inheritable_high] = get()?;
    set(&[permitted, permitted, inheritable, permitted_high, permitted_high, inheritable_high])
}

fn get() -> Result<[u32; 6]> {
    let mut data = NONE;
    let header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: header and data have the layout of version 3.
    match unsafe { libc::syscall(libc::SYS_capget, &header, data.as_mut_ptr()) } {
        0 => Ok(data),
        _ => Err(Error::last_os_error()),
    }
}

fn set(data: &[u32; 6]) -> Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: header and data have the layout of version 3.
    match unsafe { libc::syscall(libc::SYS_capset, &header, data.as_ptr()) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

pub fn drop_all() -> std::result::Result<(), ConfineError> {
    let failed = || ConfineError::Capabilities(Error::last_os_error());
    // The bounding set first, because dropping it needs CAP_SETPCAP. A process without any capability has nothing to bound.
    for capability in 0..64 {
        // SAFETY: no pointers.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            match Error::last_os_error().raw_os_error() {
                Some(libc::EINVAL | libc::EPERM) => break,
                _ => return Err(failed()),
            }
        }
    }
    // SAFETY: no pointers.
    if unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) } != 0 {
        return Err(failed());
    }
    set(&NONE).map_err(ConfineError::Capabilities)
}
