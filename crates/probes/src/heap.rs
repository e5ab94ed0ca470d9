//! Attempts to change a heap that is sealed: the one a run was started from, whose key is its content.

use crate::calls::said;
use libc::{MAP_FAILED, MAP_SHARED, PROT_READ, PROT_WRITE};
use std::ffi::c_long;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;

const PAGE_BYTES: usize = 4096;

pub fn change(way: &str, heap: Option<&OwnedFd>) -> String {
    let Some(heap) = heap.map(AsRawFd::as_raw_fd) else { return "no heap came with the run".into() };
    match way {
        // SAFETY: one live byte.
        "write" => said(unsafe { libc::write(heap, b"x".as_ptr().cast(), 1) } as c_long),
        "map" => said(map(heap, PROT_READ | PROT_WRITE).map_or(-1, |_| 0)),
        "unprotect" => match map(heap, PROT_READ) {
            // SAFETY: the mapping is new and this long.
            Some(address) => said(c_long::from(unsafe { libc::mprotect(address as *mut _, PAGE_BYTES, PROT_READ | PROT_WRITE) })),
            None => said(-1),
        },
        _ => format!("no way to change a heap is called `{way}`"),
    }
}

/// The first page of a heap, shared with whoever else has it.
pub fn map(heap: RawFd, protection: i32) -> Option<usize> {
    // SAFETY: a new mapping, wherever the kernel has room.
    let address = unsafe { libc::mmap(null_mut(), PAGE_BYTES, protection, MAP_SHARED, heap, 0) };
    (address != MAP_FAILED).then_some(address as usize)
}
