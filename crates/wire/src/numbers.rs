//! Numbers that match an answer to its request: of a run on a worker, and of a call within a run.

use std::fmt;
use std::num::NonZeroU64;

/// The number of a run. The server chooses it; on one worker each run has a higher number than the one before. Never 0, which in a frame stands
/// for "no run".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunNumber(NonZeroU64);

impl RunNumber {
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for RunNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The number of a call within its run. The worker counts: 1, 2, 3, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub u64);

impl fmt::Display for CallNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
