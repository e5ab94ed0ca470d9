//! Crash points for tests: `HEAPSTEAD_CRASH_AT=heap-stored:7` kills the server with SIGKILL when it passes that point for the seventh time.
//! Whatever was acknowledged before has to survive.

use rustix::process::{Signal, getpid, kill_process};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub const VARIABLE: &str = "HEAPSTEAD_CRASH_AT";

static CHOSEN: OnceLock<Option<Chosen>> = OnceLock::new();

struct Chosen {
    place: String,
    passes_left: AtomicU64,
}

impl Chosen {
    fn from_environment() -> Option<Self> {
        let value = std::env::var(VARIABLE).ok()?;
        let (place, passes) = value.split_once(':')?;
        Some(Self { place: place.to_owned(), passes_left: AtomicU64::new(passes.parse().ok()?) })
    }
}

/// Kills the process if this point is the chosen one and its count is reached.
pub fn pass(place: &str) {
    let Some(chosen) = CHOSEN.get_or_init(Chosen::from_environment) else { return };
    if chosen.place == place && chosen.passes_left.fetch_sub(1, Relaxed) == 1 {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
