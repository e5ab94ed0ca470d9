//! Native memory: the C library's own, but a run that gets none ends here, with the reason. Not every library that V8 is built from looks
//! whether it got what it asked for, and those that do abort.

use crate::vm;
use std::ffi::{c_int, c_void};

/// The C library's allocator, by the names that nobody takes over.
mod libc_own {
    use super::c_void;

    unsafe extern "C" {
        pub fn __libc_malloc(size: usize) -> *mut c_void;
        pub fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
        pub fn __libc_realloc(data: *mut c_void, size: usize) -> *mut c_void;
        pub fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    }
}

/// # Safety
/// As `malloc(3)`.
pub unsafe fn malloc(size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    or_end(unsafe { libc_own::__libc_malloc(size) })
}

/// # Safety
/// As `calloc(3)`.
pub unsafe fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    or_end(unsafe { libc_own::__libc_calloc(count, size) })
}

/// # Safety
/// As `realloc(3)`.
pub unsafe fn realloc(data: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    let moved = unsafe { libc_own::__libc_realloc(data, size) };
    // Nothing at all is what somebody gets who asks for nothing.
    if size == 0 { moved } else { or_end(moved) }
}

/// # Safety
/// As `memalign(3)`.
pub unsafe fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    or_end(unsafe { libc_own::__libc_memalign(alignment, size) })
}

/// # Safety
/// As `posix_memalign(3)`.
pub unsafe fn posix_memalign(result: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    // SAFETY: the caller's contract.
    let data = unsafe { memalign(alignment, size) };
    if data.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's contract.
    unsafe { *result = data };
    0
}

/// Zeroed memory for whoever can do without: null when there is none.
///
/// # Safety
/// As `calloc(3)`.
pub unsafe fn try_calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { libc_own::__libc_calloc(count, size) }
}

fn or_end(data: *mut c_void) -> *mut c_void {
    if data.is_null() {
        vm::end_if_running();
    }
    data
}
