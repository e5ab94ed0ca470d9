//! Measures the noise of the machine: times the same arithmetic repeatedly.

use crate::sample::{Effort, Samples};
use std::hint::black_box;
use std::time::Instant;

/// Ratio of the slowest decile to the fastest: 1.0 on an idle machine.
pub fn measure(effort: Effort) -> f64 {
    let rounds = effort.choose(100, 300);
    let times = (0..rounds)
        .map(|_| {
            let began = Instant::now();
            black_box((0..2_000_000_u64).fold(0_u64, |sum, number| black_box(sum.wrapping_mul(31).wrapping_add(number))));
            began.elapsed()
        })
        .collect::<Vec<_>>();
    let samples = Samples::of(&times);
    samples.quantile(0.9) / samples.quantile(0.1)
}
