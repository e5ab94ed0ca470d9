//! A worker keeps its socket and descriptors 0 to 2, which are /dev/null, so that a stray write of a library can't reach a heap.

use super::ConfineError;
use std::os::fd::RawFd;

const LAST_STANDARD: RawFd = 2;

pub fn close_all_but(socket: RawFd) -> Result<(), ConfineError> {
    debug_assert_eq!(socket, LAST_STANDARD + 1);
    // SAFETY: nothing above the socket is used by this process any more.
    match unsafe { libc::close_range((socket + 1) as u32, u32::MAX, 0) } {
        0 => Ok(()),
        _ => Err(ConfineError::Descriptors(std::io::Error::last_os_error())),
    }
}
