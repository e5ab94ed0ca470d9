//! Overrides `malloc` and related functions: they call the C library, and if an allocation fails, the run ends with an out-of-memory error.
//! Some libraries inside V8 do not check for failed allocations, and the others abort the process.

use crate::vm;
use std::ffi::{c_int, c_void};

/// Size of a huge page.
const HUGE_BYTES: usize = 2 << 20;
/// Twice the amount that a small run allocates.
const FIRST_BYTES: usize = 4 * HUGE_BYTES;
/// Room for the zygote's own later allocations.
const OWN_BYTES: usize = 32 << 10;
/// Larger allocations get their own mapping and are unmapped when freed. Smaller ones stay with the process, which exits soon.
const MAPPED_BYTES_MIN: usize = 2 * FIRST_BYTES;
const TRIMMED_BYTES_MIN: usize = 4 * FIRST_BYTES;

/// Called once, in the zygote: puts the first allocations of every worker on huge pages. With small pages a worker spends a tenth of its time
/// on page faults. Without huge pages on this machine, workers are only slower.
pub fn use_huge_pages() {
    // SAFETY: one thread; no allocated block is accessed, and the advice covers whole pages inside one of them.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN as c_int);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIMMED_BYTES_MIN as c_int);
        // Freed below, for the zygote's own use: every worker would copy a huge page that the zygote had written to, in small pages.
        let own = libc_own::__libc_malloc(OWN_BYTES);
        // Finds the current end of the allocated memory.
        let end = libc_own::__libc_malloc(FIRST_BYTES);
        libc::free(end);
        // Never freed and never written to: padding, so that the next allocation starts on a huge page.
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
    or_exit(unsafe { libc_own::__libc_malloc(size) })
}

/// # Safety
/// As `calloc(3)`.
pub unsafe fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    or_exit(unsafe { libc_own::__libc_calloc(count, size) })
}

/// # Safety
/// As `realloc(3)`.
pub unsafe fn realloc(data: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    let moved = unsafe { libc_own::__libc_realloc(data, size) };
    // For a size of zero, `realloc` frees the block and returns null.
    if size == 0 { moved } else { or_exit(moved) }
}

/// # Safety
/// As `memalign(3)`.
pub unsafe fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    or_exit(unsafe { libc_own::__libc_memalign(alignment, size) })
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

/// Zeroed memory, or null if the allocation fails: for callers that check.
///
/// # Safety
/// As `calloc(3)`.
pub unsafe fn try_calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { libc_own::__libc_calloc(count, size) }
}

fn or_exit(data: *mut c_void) -> *mut c_void {
    if data.is_null() {
        vm::exit_if_run_in_progress();
    }
    data
}
