//! Attempts to change a sealed heap: the one that the run was started from.

use crate::calls::outcome_of;
use libc::{MAP_FAILED, MAP_SHARED, PROT_READ, PROT_WRITE};
use std::ffi::c_long;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;

const PAGE_BYTES: usize = 4096;

pub fn change(way: &str, heap: Option<&OwnedFd>) -> String {
    let Some(heap) = heap.map(AsRawFd::as_raw_fd) else { return "the run has no heap".into() };
    match way {
        // SAFETY: one live byte.
        "write" => outcome_of(unsafe { libc::write(heap, b"x".as_ptr().cast(), 1) } as c_long),
        "map" => outcome_of(map(heap, PROT_READ | PROT_WRITE).map_or(-1, |_| 0)),
        "unprotect" => match map(heap, PROT_READ) {
            // SAFETY: the mapping is new and has this length.
            Some(address) => outcome_of(c_long::from(unsafe { libc::mprotect(address as *mut _, PAGE_BYTES, PROT_READ | PROT_WRITE) })),
            None => outcome_of(-1),
        },
        _ => format!("there is no way `{way}` to change a heap"),
    }
}

/// Maps the first page of a heap, shared with all other processes that map it.
pub fn map(heap: RawFd, protection: i32) -> Option<usize> {
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let address = unsafe { libc::mmap(null_mut(), PAGE_BYTES, protection, MAP_SHARED, heap, 0) };
    (address != MAP_FAILED).then_some(address as usize)
}
