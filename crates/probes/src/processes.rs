//! Who is above a worker: it can't ask any more, so it is remembered while the zygote still can.

use std::sync::OnceLock;

#[derive(Debug, Clone, Copy)]
pub struct Above {
    pub zygote: i32,
    pub server: i32,
}

static ABOVE: OnceLock<Above> = OnceLock::new();

pub fn remember() {
    // SAFETY: no arguments, always succeeds.
    ABOVE.get_or_init(|| unsafe { Above { zygote: libc::getpid(), server: libc::getppid() } });
}

pub fn above() -> Above {
    // A pid that nobody has, should it ever be asked for too early.
    ABOVE.get().copied().unwrap_or(Above { zygote: i32::MAX, server: i32::MAX })
}
