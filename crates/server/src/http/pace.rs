//! The minimum rate at which a client must send a body or read a response. Only time in which the server waits for the client counts.

use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long the server waits for a client that sends or reads nothing.
    pub stall_max: Duration,
    /// The average rate. A client that was faster does not earn time beyond `stall_max`, so a late stall ends as soon as an early one.
    pub bytes_per_sec_min: u64,
}

/// Slow mobile networks are faster. A body of the maximum size is received within an hour at this rate.
const BYTES_PER_SEC_MIN: u64 = 32 << 10;
/// For request bodies.
pub const SEND_PACE: Pace = Pace { stall_max: Duration::from_secs(10), bytes_per_sec_min: BYTES_PER_SEC_MIN };
/// For responses: a client may pause longer while it processes what it has read.
pub const READ_PACE: Pace = Pace { stall_max: Duration::from_secs(60), bytes_per_sec_min: BYTES_PER_SEC_MIN };

/// How long the server still waits for one client.
#[derive(Debug)]
pub struct WaitAllowance {
    pace: Pace,
    left: Duration,
}

impl WaitAllowance {
    pub fn new(pace: Pace) -> Self {
        Self { pace, left: pace.stall_max }
    }

    pub fn left(&self) -> Duration {
        self.left
    }

    /// The server has waited this long, and then these bytes were transferred.
    pub fn waited(&mut self, waited: Duration, bytes: usize) {
        let earned = Duration::from_secs_f64(bytes as f64 / self.pace.bytes_per_sec_min as f64);
        self.left = (self.left.saturating_sub(waited) + earned).min(self.pace.stall_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { stall_max: Duration::from_secs(10), bytes_per_sec_min: 1000 };

    /// Seconds until a client is cut off that transfers these bytes every second.
    fn lasts(bytes_per_sec: usize) -> Option<u32> {
        let mut allowance = WaitAllowance::new(PACE);
        (1..1000).find(|_| {
            let is_over = allowance.left() < Duration::from_secs(1);
            allowance.waited(Duration::from_secs(1), bytes_per_sec);
            is_over
        })
    }

    #[test]
    fn a_client_below_the_rate_is_cut_off() {
        for (bytes_per_sec, expected) in [(0, Some(11)), (1, Some(11)), (500, Some(20)), (999, None), (1000, None), (1_000_000, None)] {
            match (lasts(bytes_per_sec), expected) {
                (Some(lasted), Some(expected)) => assert!(lasted.abs_diff(expected) <= 1, "{bytes_per_sec}: {lasted}"),
                (lasted, expected) => assert_eq!((bytes_per_sec, lasted), (bytes_per_sec, expected)),
            }
        }
    }

    /// Bytes that came early once extended the deadline of the rest by hours.
    #[test]
    fn a_fast_beginning_does_not_pay_for_a_later_stall() {
        let mut allowance = WaitAllowance::new(PACE);
        allowance.waited(Duration::from_secs(1), 511 << 20);
        assert_eq!(allowance.left(), PACE.stall_max);
    }
}
