//! Drops all capabilities from every set, regardless of the user that started the process.

use super::ConfineError;

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

const VERSION_3: u32 = 0x2008_0522;
/// Effective, permitted, inheritable: twice 32 bits each.
const NONE: [u32; 6] = [0; 6];

pub fn drop_all() -> Result<(), ConfineError> {
    let failed = || ConfineError::Capabilities(std::io::Error::last_os_error());
    // The bounding set first, because dropping it needs CAP_SETPCAP. A process without any capability has nothing to bound.
    for capability in 0..64 {
        // SAFETY: no pointers.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EINVAL | libc::EPERM) => break,
                _ => return Err(failed()),
            }
        }
    }
    // SAFETY: no pointers.
    if unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) } != 0 {
        return Err(failed());
    }
    let header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: header and data have the layout of version 3.
    match unsafe { libc::syscall(libc::SYS_capset, &header, NONE.as_ptr()) } {
        0 => Ok(()),
        _ => Err(failed()),
    }
}
