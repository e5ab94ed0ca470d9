//! Samples, medians and their spread.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    Short,
    Full,
}

impl Effort {
    pub fn choose<T>(self, short: T, full: T) -> T {
        match self {
            Self::Short => short,
            Self::Full => full,
        }
    }
}

/// Values in ascending order.
#[derive(Debug, Clone)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub fn of(durations: &[Duration]) -> Self {
        Self::new(durations.iter().map(|duration| duration.as_secs_f64() * 1000.0).collect())
    }

    pub fn quantile(&self, at: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * at).round() as usize).copied().unwrap_or(f64::NAN)
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Ratios of pairs measured back to back, so that a slow machine slows both sides.
pub fn ratios(ours: &[Duration], theirs: &[Duration]) -> Samples {
    Samples::new(ours.iter().zip(theirs).map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64()).collect())
}
