//! The pids of a worker's ancestors. A confined worker can't query them.

use std::sync::OnceLock;

#[derive(Debug, Clone, Copy)]
pub struct Ancestors {
    pub zygote: i32,
    pub server: i32,
}

/// The first process of its PID namespace.
const ZYGOTE: i32 = 1;

static ANCESTORS: OnceLock<Ancestors> = OnceLock::new();

pub fn record() {
    // SAFETY: no arguments, always succeeds.
    ANCESTORS.get_or_init(|| unsafe { Ancestors { zygote: ZYGOTE, server: libc::getppid() } });
}

pub fn ancestors() -> Ancestors {
    // A pid that no process has, if they were not recorded.
    ANCESTORS.get().copied().unwrap_or(Ancestors { zygote: i32::MAX, server: i32::MAX })
}
