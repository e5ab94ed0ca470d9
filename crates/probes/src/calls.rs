//! System calls by number, and the text of their outcome.

use std::ffi::c_long;

/// Makes a system call with all bits of every argument set: a bad descriptor, a bad address, a bad length, unknown flags. No call that could
/// block or change anything accepts that.
pub fn with_all_ones(number: &str) -> String {
    let Ok(number) = number.parse::<c_long>() else { return format!("`{number}` is not a number") };
    let ones: c_long = -1;
    // SAFETY: with these arguments no call has an effect, except to end this process.
    outcome_of(unsafe { libc::syscall(number, ones, ones, ones, ones, ones, ones) })
}

/// The return value of a call, or the name of its error.
pub fn outcome_of(returned: c_long) -> String {
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
