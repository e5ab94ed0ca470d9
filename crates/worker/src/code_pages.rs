//! Replaces the file mappings of V8's machine code and constants by anonymous memory, so that workers take no page faults on them.
//!
//! The code of the host and of this library is copied to anonymous memory, on huge pages if the machine has them, and remapped in place of the
//! file. So are the parts of the host's constants that V8 has accessed so far, because runs access the same ones. Workers inherit all of it in
//! their page tables, and have less to unmap when they exit. If a step fails, workers are only slower.

use rustix::mm::{Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags};
use std::ffi::c_void;
use std::fs::File;
use std::io::Result;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Size of a huge page.
const HUGE_BYTES: usize = 2 << 20;
const PAGE_BYTES: usize = 4096;
/// Size of an entry in `/proc/self/pagemap`. The highest bit tells whether the page is mapped.
const ENTRY_BYTES: usize = 8;
const IS_MAPPED: u8 = 0x80;

pub fn copy_to_anonymous_memory() {
    let replaced = replace_mappings();
    debug_assert!(replaced.is_ok(), "{replaced:?}");
}

fn replace_mappings() -> Result<()> {
    let host = std::fs::read_link("/proc/self/exe")?;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let pages = File::open("/proc/self/pagemap")?;
    let of_host = maps.lines().filter(|line| line.ends_with(&*host.to_string_lossy()));
    for (protection, range) in of_host.filter_map(range_of) {
        match protection {
            "r-xp" => replace(&range, MprotectFlags::READ | MprotectFlags::EXEC)?,
            "r--p" if has_huge_pages() => {
                for start in range.step_by(HUGE_BYTES) {
                    let part = start..start + HUGE_BYTES;
                    if is_in_use(&pages, &part)? {
                        replace(&part, MprotectFlags::READ)?;
                    }
                }
            }
            _ => {}
        }
    }
    match maps.lines().find(|line| is_of_this_library(line)).and_then(range_of) {
        Some(("r-xp", range)) => replace(&range, MprotectFlags::READ | MprotectFlags::EXEC),
        _ => Ok(()),
    }
}

fn is_of_this_library(line: &str) -> bool {
    let this_code = is_of_this_library as *const () as usize;
    addresses_of(line).is_some_and(|addresses| addresses.contains(&this_code))
}

fn addresses_of(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

/// Protection and address range of a mapping, trimmed to whole huge pages.
fn range_of(line: &str) -> Option<(&str, Range<usize>)> {
    let Range { start, end } = addresses_of(line)?;
    let whole = start.next_multiple_of(HUGE_BYTES)..end / HUGE_BYTES * HUGE_BYTES;
    (!whole.is_empty()).then_some((line.split(' ').nth(1)?, whole))
}

/// Whether the kernel provides huge pages on request. With small pages, copying the constants would cost every fork more than it saves.
fn has_huge_pages() -> bool {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").is_ok_and(|modes| !modes.contains("[never]"))
}

/// Whether this process has accessed any page of the range.
fn is_in_use(pages: &File, range: &Range<usize>) -> Result<bool> {
    let mut entries = [0; HUGE_BYTES / PAGE_BYTES * ENTRY_BYTES];
    pages.read_exact_at(&mut entries, (range.start / PAGE_BYTES * ENTRY_BYTES) as u64)?;
    Ok(entries.chunks(ENTRY_BYTES).any(|entry| entry.last().is_some_and(|highest| highest & IS_MAPPED != 0)))
}

fn replace(range: &Range<usize>, protection: MprotectFlags) -> Result<()> {
    let length = range.len();
    // SAFETY: the copy has the same bytes and, when it is remapped, the same protection. This code itself may be in the range: there is one thread,
    // and the instruction after the system call is the same in the copy.
    unsafe {
        // One huge page more, so that the start can be aligned.
        let room =
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), length + HUGE_BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?;
        let copy = (room as usize).next_multiple_of(HUGE_BYTES) as *mut c_void;
        // Fails if there are no huge pages; small pages work as well.
        let _ = rustix::mm::madvise(copy, length, Advice::LinuxHugepage);
        std::ptr::copy_nonoverlapping(range.start as *const u8, copy.cast(), length);
        rustix::mm::mprotect(copy, length, protection)?;
        rustix::mm::mremap_fixed(copy, length, length, MremapFlags::MAYMOVE, range.start as *mut c_void)?;
        let (before, after) = (copy as usize - room as usize, HUGE_BYTES - (copy as usize - room as usize));
        if before > 0 {
            rustix::mm::munmap(room, before)?;
        }
        if after > 0 {
            rustix::mm::munmap(copy.byte_add(length), after)?;
        }
    }
    Ok(())
}
