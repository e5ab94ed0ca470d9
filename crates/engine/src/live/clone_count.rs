//! Counts the clones of a family: those that the server asked for, and those that the zygote allowed.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

#[derive(Debug, Default)]
pub struct CloneCount {
    asked: AtomicU64,
    allowed: AtomicU64,
}

impl CloneCount {
    /// The server is about to ask a process of the family to clone itself.
    pub fn ask(&self) {
        self.asked.fetch_add(1, SeqCst);
    }

    /// The zygote has allowed a clone. False if nobody asked for it: then a process of the family runs code that is not ours.
    pub fn allow(&self) -> bool {
        self.allowed.fetch_add(1, SeqCst) < self.asked.load(SeqCst)
    }
}
