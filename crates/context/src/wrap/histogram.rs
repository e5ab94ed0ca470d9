//! A latency histogram with Prometheus buckets.

use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// From a look-up in memory to a Redis read that is about to time out.
pub const READ_LATENCY_BOUNDS_MS: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 25.0, 100.0, 1000.0];

#[derive(Debug, Default)]
pub struct Buckets {
    /// The last bucket counts durations above all bounds.
    counts: [AtomicU64; READ_LATENCY_BOUNDS_MS.len() + 1],
    sum_ns: AtomicU64,
}

/// A snapshot of the counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// Upper bound in milliseconds, and how many took at most that long (cumulative).
    pub buckets: Vec<(f64, u64)>,
    pub count: u64,
    pub sum_ms: f64,
}

impl Buckets {
    pub fn note(&self, took: Duration) {
        let ms = took.as_secs_f64() * 1000.0;
        let bucket = READ_LATENCY_BOUNDS_MS.partition_point(|bound| *bound < ms);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(took.as_nanos().try_into().unwrap_or(u64::MAX), Relaxed);
    }

    pub fn view(&self) -> Histogram {
        let mut count = 0;
        let mut cumulative = self.counts.iter().map(|bucket| {
            count += bucket.load(Relaxed);
            count
        });
        let buckets = READ_LATENCY_BOUNDS_MS.into_iter().zip(cumulative.by_ref()).collect();
        cumulative.for_each(drop);
        Histogram { buckets, count, sum_ms: self.sum_ns.load(Relaxed) as f64 / 1e6 }
    }
}

impl Histogram {
    /// The upper bound of the bucket that contains this quantile. `None` if there are no samples or it lies above all bounds.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        let wanted = (self.count as f64 * share).ceil().max(1.0) as u64;
        self.buckets.iter().find(|(_, count)| *count >= wanted).map(|(bound, _)| *bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_up_to_their_bound() {
        let buckets = Buckets::default();
        for us in [1, 2, 100, 101, 5_000_000] {
            buckets.note(Duration::from_micros(us));
        }
        let view = buckets.view();
        let at_most = |bound: f64| view.buckets.iter().find(|(known, _)| *known == bound).map(|(_, count)| *count);
        assert_eq!(
            (at_most(0.001), at_most(0.0025), at_most(0.1), at_most(0.25), at_most(1000.0)),
            (Some(1), Some(2), Some(3), Some(4), Some(4))
        );
        assert_eq!((view.count, view.sum_ms.round()), (5, 5000.0));
        assert_eq!((view.quantile_ms(0.5), view.quantile_ms(1.0)), (Some(0.1), None));
    }
}
