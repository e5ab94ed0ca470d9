//! The resolution of all clocks that code can read: `performance`, timers, events, `console.time`, and through `gettimeofday` (`entry.rs`) V8's
//! own, `Date` and `Temporal.Now`.
//!
//! A fine clock lets code measure the caches that it shares with other processes. Native code after an exploit reads the processor's clock
//! directly; this is no barrier to it.

use heapstead_wire::TIMER_RESOLUTION_US_DEFAULT;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

const US_PER_MS: f64 = 1000.0;

static RESOLUTION_US: AtomicU32 = AtomicU32::new(TIMER_RESOLUTION_US_DEFAULT);

/// Called in the zygote; workers inherit it. The heaps of earlier builds are affected too, because they call the same natives.
pub fn set_resolution_us(resolution_us: u32) {
    RESOLUTION_US.store(resolution_us.max(1), Relaxed);
}

/// A time in milliseconds.
pub fn ms_of(time: Duration) -> f64 {
    time.as_micros() as f64 / US_PER_MS
}

/// A time, rounded down to the resolution.
pub fn coarsen(time: Duration) -> Duration {
    let resolution_us = u64::from(RESOLUTION_US.load(Relaxed));
    // Fits until the year 586,912.
    Duration::from_micros(time.as_micros() as u64 / resolution_us * resolution_us)
}
