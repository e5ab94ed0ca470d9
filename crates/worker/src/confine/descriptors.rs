//! A worker holds its socket and three descriptors to nothing, so that no stray write of a library can reach a heap.

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
