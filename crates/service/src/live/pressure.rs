//! How much memory the machine lacks. Live sessions can be resumed, so they give up theirs before runs fail.

use heapstead_engine::{memory_mb_available, memory_mb_of_machine};

/// What shall be left for runs: a part of the machine's memory, but at most this much.
const RESERVE_PART: u64 = 16;
const RESERVE_MB_MAX: u64 = 1024;

/// 0 if enough is left, or if that is unknown.
pub fn shortage_kib() -> u64 {
    memory_mb_available().map_or(0, |available_mb| shortage_mb(available_mb, memory_mb_of_machine()) << 10)
}

fn shortage_mb(available_mb: u64, machine_mb: u64) -> u64 {
    (machine_mb / RESERVE_PART).min(RESERVE_MB_MAX).saturating_sub(available_mb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_left_for_runs() {
        for (available_mb, machine_mb, shortage) in [(2000, 4096, 0), (256, 4096, 0), (100, 4096, 156), (0, 4096, 256), (0, 1 << 20, 1024)]
        {
            assert_eq!(shortage_mb(available_mb, machine_mb), shortage, "{available_mb} of {machine_mb} MB");
        }
    }
}
