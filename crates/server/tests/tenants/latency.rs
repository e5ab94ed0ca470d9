//! How long requests took.

use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    pub fn add(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub fn p99(&self) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted.get(sorted.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default()
    }
}

/// The middle one of the values of several rounds.
pub fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}
