//! Crash points for tests: `HEAPSTEAD_CRASH_AT=heap-stored:7` kills the server with SIGKILL when it passes that point for the seventh time.
//! Whatever was acknowledged before has to survive. `HEAPSTEAD_PAUSE_AT=heap-stored:PATH` stops there once, until the test has opened and closed
//! the pipe at this path for writing.

use rustix::process::{Signal, getpid, kill_process};
use std::io::Read;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub const CRASH_VARIABLE: &str = "HEAPSTEAD_CRASH_AT";
pub const PAUSE_VARIABLE: &str = "HEAPSTEAD_PAUSE_AT";

static CRASH: OnceLock<Option<Chosen>> = OnceLock::new();
static PAUSE: OnceLock<Option<Chosen>> = OnceLock::new();

struct Chosen {
    place: String,
    passes_left: AtomicU64,
    /// Of a pause.
    pipe: String,
}

impl Chosen {
    fn crash() -> Option<Self> {
        let value = std::env::var(CRASH_VARIABLE).ok()?;
        let (place, passes) = value.split_once(':')?;
        Some(Self { place: place.to_owned(), passes_left: AtomicU64::new(passes.parse().ok()?), pipe: String::new() })
    }

    fn pause() -> Option<Self> {
        let value = std::env::var(PAUSE_VARIABLE).ok()?;
        let (place, pipe) = value.split_once(':')?;
        Some(Self { place: place.to_owned(), passes_left: AtomicU64::new(1), pipe: pipe.to_owned() })
    }

    fn is_reached(&self, place: &str) -> bool {
        self.place == place && self.passes_left.fetch_sub(1, Relaxed) == 1
    }
}

/// Kills the process, or stops here for a while, if this point is the chosen one and its count is reached.
pub fn pass(place: &str) {
    if let Some(pause) = PAUSE.get_or_init(Chosen::pause).as_ref().filter(|pause| pause.is_reached(place)) {
        // Opening waits for the test to open the other end, reading for it to close it.
        let _ = std::fs::File::open(&pause.pipe).and_then(|mut pipe| pipe.read_to_end(&mut Vec::new()));
    }
    if CRASH.get_or_init(Chosen::crash).as_ref().is_some_and(|crash| crash.is_reached(place)) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
