//! Native memory: the C library's own, but a run that gets none ends here, with the reason. Not every library that V8 is built from looks
//! whether it got what it asked for, and those that do abort.

use crate::vm;
use std::ffi::{c_int, c_void};

/// Of a huge page.
const HUGE_BYTES: usize = 2 << 20;
/// What a small run allocates, twice over.
const FIRST_BYTES: usize = 4 * HUGE_BYTES;
const OWN_BYTES: usize = 32 << 10;
/// Larger pieces are mapped one by one and given back at once; smaller ones stay with the process, which ends soon.
const MAPPED_BYTES_MIN: usize = 2 * FIRST_BYTES;
const TRIMMED_BYTES_MIN: usize = 4 * FIRST_BYTES;

/// Sees to it, once, in the zygote, that what a run allocates first lies on huge pages: a worker that touches it page by page spends a tenth
/// of its time in the kernel. A machine that has none only loses the speed.
pub fn use_huge_pages() {
    // SAFETY: one thread; no piece is touched, and the advice covers whole pages inside one of them.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN as c_int);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIMMED_BYTES_MIN as c_int);
        // What the zygote itself goes on with: a huge page that it had touched would be copied by every worker, in small ones.
        let own = libc_own::__libc_malloc(OWN_BYTES);
        // The end of what was allocated so far, for the time being.
        let end = libc_own::__libc_malloc(FIRST_BYTES);
        libc::free(end);
        // Kept for good, and never touched: what is allocated next begins with a huge page.
        let gap = (end as usize + 2 * WORD_BYTES).next_multiple_of(HUGE_BYTES) - end as usize;
        libc_own::__libc_malloc(gap - WORD_BYTES);
        let first = libc_own::__libc_malloc(FIRST_BYTES);
        libc::madvise((first as usize).next_multiple_of(HUGE_BYTES) as *mut c_void, FIRST_BYTES - HUGE_BYTES, libc::MADV_HUGEPAGE);
        libc::free(first);
        libc::free(own);
    }
}

const WORD_BYTES: usize = size_of::<usize>();

/// The C library's allocator, under names that are not interposed.
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

/// Zeroed memory, or null when there is none: for callers that handle that.
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
