//! V8's machine code and constants as memory that forks inherit: a file mapping would be paged in anew by every worker.
//!
//! The host's code is copied to anonymous memory, on huge pages where the machine has them, and put in the place of the mapping. So are those
//! parts of its constants that V8 has looked at by then, which are the ones that runs look at, too. Workers begin with all of it in their page
//! tables, and have less to take down when they end. A machine that can't do it only loses the speed.

use rustix::mm::{Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags};
use std::ffi::c_void;
use std::fs::File;
use std::io::Result;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Of a huge page.
const HUGE_BYTES: usize = 2 << 20;
const PAGE_BYTES: usize = 4096;
/// Of what `/proc/self/pagemap` says of a page: eight bytes, the highest bit of which tells whether it is mapped.
const ENTRY_BYTES: usize = 8;
const IS_MAPPED: u8 = 0x80;

pub fn keep_in_memory() {
    let moved = move_all();
    debug_assert!(moved.is_ok(), "{moved:?}");
}

fn move_all() -> Result<()> {
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
    Ok(())
}

/// Protection and place of a mapping, cut to whole huge pages.
fn range_of(line: &str) -> Option<(&str, Range<usize>)> {
    let mut words = line.split(' ');
    let (start, end) = words.next()?.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?.next_multiple_of(HUGE_BYTES);
    let end = usize::from_str_radix(end, 16).ok()? / HUGE_BYTES * HUGE_BYTES;
    (start < end).then_some((words.next()?, start..end))
}

/// Whether the kernel gives huge pages on request. With small pages, copying the constants would cost every fork more than it saves.
fn has_huge_pages() -> bool {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").is_ok_and(|modes| !modes.contains("[never]"))
}

/// Whether this process has looked at any page of the range.
fn is_in_use(pages: &File, range: &Range<usize>) -> Result<bool> {
    let mut entries = [0; HUGE_BYTES / PAGE_BYTES * ENTRY_BYTES];
    pages.read_exact_at(&mut entries, (range.start / PAGE_BYTES * ENTRY_BYTES) as u64)?;
    Ok(entries.chunks(ENTRY_BYTES).any(|entry| entry.last().is_some_and(|highest| highest & IS_MAPPED != 0)))
}

fn replace(range: &Range<usize>, protection: MprotectFlags) -> Result<()> {
    let length = range.len();
    // SAFETY: the copy has the same bytes and, when it takes its place, the same protection; neither this code nor libc lies in the range.
    unsafe {
        // Room to find an aligned start in.
        let room =
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), length + HUGE_BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?;
        let copy = (room as usize).next_multiple_of(HUGE_BYTES) as *mut c_void;
        // Refused where there are no huge pages: small ones do, too.
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
