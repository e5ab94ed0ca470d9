//! How much memory processes of this server can still take.

use crate::cgroup;
use std::fs::read_to_string;

/// The least of what the machine, the cgroups of this process, and that of its workers have left, in MB. None if the kernel does not say.
pub fn memory_mb_available() -> Option<u64> {
    let machine_mb = kib_available(&read_to_string("/proc/meminfo").ok()?)? >> 10;
    Some(cgroup::memory_mb_left().map_or(machine_mb, |group_mb| group_mb.min(machine_mb)))
}

fn kib_available(meminfo: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_much_is_available() {
        assert_eq!(kib_available("MemTotal:  100 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n"), Some(2048));
        assert_eq!(kib_available("MemTotal:  100 kB\n"), None);
        assert!(memory_mb_available().is_some_and(|available_mb| available_mb > 0));
    }
}
