//! What code reads from outside: the clock and randomness. In a stateful run the readings are recorded, so that the run can be repeated exactly;
//! a replay reads what was recorded.
//!
//! There is one clock: `Date` and `Temporal.Now` (through `gettimeofday`, `entry.rs`) are the time at which the run began plus the time since
//! then, which `performance.now`, timers and events read too. So within a run no clock goes backwards.

use super::clock::{coarsen, ms_of};
use super::internals::is_icu_clock;
use super::platform::fill_random;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use heapstead_wire::{Gap, InputRecorder, InputReplay, RecordedInputs, SEED_BYTES};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Of the clock of a replay that reads more than was recorded.
const STEP_US: u64 = 1_000;

/// Of the run in progress. The process has one thread; the lock is never waited for.
static CURRENT: Mutex<Option<RunInputs>> = Mutex::new(None);

struct RunInputs {
    began: Instant,
    began_at: Duration,
    source: Source,
    random: ChaCha20Rng,
    has_headers: bool,
}

enum Source {
    /// Not recorded: a stateless run.
    Clock,
    Recorded(InputRecorder),
    /// With the last reading. If the replay reads more than the run did, which it does only if it differs elsewhere too, the clock goes on from
    /// there in steps, so that timers become due.
    Replayed(InputReplay, u64),
}

/// Begins a run.
pub fn begin(seed: [u8; SEED_BYTES], stateful: bool, replay: Option<RecordedInputs>, has_headers: bool) {
    let now = coarse_time_of_day();
    let (began_at, source) = match replay {
        Some(inputs) => {
            let replay = InputReplay::new(inputs);
            (Duration::from_micros(replay.began_at_us()), Source::Replayed(replay, 0))
        }
        None if stateful => (now, Source::Recorded(InputRecorder::new(now.as_micros() as u64))),
        None => (now, Source::Clock),
    };
    let inputs = RunInputs { began: Instant::now(), began_at, source, random: ChaCha20Rng::from_seed(seed), has_headers };
    if let Some(mut current) = current() {
        *current = Some(inputs);
    }
}

/// Ends the run. Returns what it has read, if that was recorded.
pub fn end() -> Option<RecordedInputs> {
    match current()?.take()?.source {
        Source::Recorded(recorder) => Some(recorder.finish()),
        Source::Clock | Source::Replayed(..) => None,
    }
}

/// Milliseconds since the run began, coarsened.
pub fn elapsed_ms() -> f64 {
    current().and_then(|mut current| current.as_mut().map(RunInputs::elapsed)).map_or(0.0, ms_of)
}

/// When the run began, in milliseconds since 1970, coarsened.
pub fn began_at_ms() -> f64 {
    current().and_then(|current| current.as_ref().map(|inputs| inputs.began_at)).map_or(0.0, ms_of)
}

/// The time since 1970, coarsened: of the run in progress, or of the machine. `caller` is the address that asks for it.
pub fn time_of_day(caller: usize) -> Duration {
    if is_icu_clock(caller) {
        return coarse_time_of_day();
    }
    let of_run = current().and_then(|mut current| current.as_mut().map(|inputs| inputs.began_at + inputs.elapsed()));
    of_run.unwrap_or_else(coarse_time_of_day)
}

/// Fills a buffer with random bytes: of the run in progress, or of the kernel. False if there are none.
pub fn random(buffer: &mut [u8]) -> bool {
    if let Some(mut current) = current()
        && let Some(inputs) = current.as_mut()
    {
        inputs.random.fill_bytes(buffer);
        return true;
    }
    fill_random(buffer)
}

/// Notes that code reads something that is not recorded.
pub fn gap(gap: Gap) {
    let Some(mut current) = current() else { return };
    let Some(inputs) = current.as_mut() else { return };
    // Without headers there is nothing to read that a replay would not read, too.
    if let Source::Recorded(recorder) = &mut inputs.source
        && (gap != Gap::Headers || inputs.has_headers)
    {
        recorder.gap(gap);
    }
}

/// Whether the run is a replay, which does not wait for timers: its clock says that they are due.
pub fn is_replay() -> bool {
    current().is_some_and(|current| matches!(&*current, Some(RunInputs { source: Source::Replayed(..), .. })))
}

impl RunInputs {
    fn elapsed(&mut self) -> Duration {
        let now = coarsen(self.began.elapsed());
        match &mut self.source {
            Source::Clock => now,
            Source::Recorded(recorder) => {
                recorder.reading(now.as_micros() as u64);
                now
            }
            Source::Replayed(replay, last_us) => {
                *last_us = replay.reading().unwrap_or(*last_us + STEP_US);
                Duration::from_micros(*last_us)
            }
        }
    }
}

fn coarse_time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(Duration::ZERO, coarsen)
}

/// None only within a call of this file, which calls nothing that reads the clock.
fn current() -> Option<MutexGuard<'static, Option<RunInputs>>> {
    match CURRENT.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
