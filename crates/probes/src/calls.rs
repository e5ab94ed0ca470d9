//! System calls by number, and how their outcome is written.

use std::ffi::c_long;

/// Makes a system call with every argument all ones: a bad descriptor, a bad address, a bad length, unknown flags. Nothing that could wait or
/// change anything accepts that.
pub fn with_all_ones(number: &str) -> String {
    let Ok(number) = number.parse::<c_long>() else { return format!("`{number}` is no number") };
    let ones: c_long = -1;
    // SAFETY: no call can do anything with these arguments, but end this process.
    said(unsafe { libc::syscall(number, ones, ones, ones, ones, ones, ones) })
}

/// What a call returned, or the name of its error.
pub fn said(returned: c_long) -> String {
    if returned != -1 {
        return returned.to_string();
    }
    let error = std::io::Error::last_os_error();
    let name = match error.raw_os_error() {
        Some(libc::EPERM) => "EPERM",
        Some(libc::EACCES) => "EACCES",
        Some(libc::ENOMEM) => "ENOMEM",
        Some(libc::EBADF) => "EBADF",
        Some(libc::EFBIG) => "EFBIG",
        Some(libc::EINVAL) => "EINVAL",
        _ => return error.to_string(),
    };
    name.to_owned()
}
