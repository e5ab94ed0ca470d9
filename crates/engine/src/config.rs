//! What an engine may use.

use crate::Artifacts;

#[derive(Debug, Clone)]
pub struct Config {
    pub artifacts: Artifacts,
    pub concurrent_max: usize,
    pub queued_max: usize,
    /// Over all workers that run at once: the sum of their heap caps.
    pub memory_mb_max: u64,
}

pub const CONCURRENT_DEFAULT: usize = 64;
pub const QUEUED_DEFAULT: usize = 1000;

impl Config {
    pub fn new(artifacts: Artifacts) -> Self {
        Self { artifacts, concurrent_max: CONCURRENT_DEFAULT, queued_max: QUEUED_DEFAULT, memory_mb_max: memory_mb_of_machine() * 3 / 4 }
    }
}

fn memory_mb_of_machine() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64 * u64::from(info.mem_unit)) >> 20
}
