//! V8's machine code as memory that forks inherit: a file mapping would be paged in anew by every worker.
//!
//! The host's code is copied to anonymous memory, on huge pages where the machine has them, and put in the place of the mapping. Workers then
//! begin with all of it in their page tables. A machine that can't do it only loses the speed.

use rustix::mm::{Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags};
use std::ffi::c_void;
use std::io::Result;
use std::ops::Range;

/// Of a huge page.
const ALIGNMENT: usize = 2 << 20;

pub fn keep_in_memory() {
    let moved = code_of_host().map_or(Ok(()), |code| replace(&code));
    debug_assert!(moved.is_ok(), "{moved:?}");
}

/// Where the executable's code is mapped, cut to whole huge pages.
fn code_of_host() -> Option<Range<usize>> {
    let host = std::fs::read_link("/proc/self/exe").ok()?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains(" r-xp ") && line.ends_with(&*host.to_string_lossy()))?;
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?.next_multiple_of(ALIGNMENT);
    let end = usize::from_str_radix(end, 16).ok()? / ALIGNMENT * ALIGNMENT;
    (start < end).then_some(start..end)
}

fn replace(code: &Range<usize>) -> Result<()> {
    let length = code.len();
    // SAFETY: the copy has the same bytes and, when it takes its place, the same protection; neither this code nor libc lies in the range.
    unsafe {
        // Room to find an aligned start in.
        let room =
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), length + ALIGNMENT, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?;
        let copy = (room as usize).next_multiple_of(ALIGNMENT) as *mut c_void;
        // Refused where there are no huge pages: small ones do, too.
        let _ = rustix::mm::madvise(copy, length, Advice::LinuxHugepage);
        std::ptr::copy_nonoverlapping(code.start as *const u8, copy.cast(), length);
        rustix::mm::mprotect(copy, length, MprotectFlags::READ | MprotectFlags::EXEC)?;
        rustix::mm::mremap_fixed(copy, length, length, MremapFlags::MAYMOVE, code.start as *mut c_void)?;
        let (before, after) = (copy as usize - room as usize, ALIGNMENT - (copy as usize - room as usize));
        if before > 0 {
            rustix::mm::munmap(room, before)?;
        }
        if after > 0 {
            rustix::mm::munmap(copy.byte_add(length), after)?;
        }
    }
    Ok(())
}
