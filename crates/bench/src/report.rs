//! The table of measurements and their bars.

use crate::sample::{Samples, ratios};
use std::io::Result;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

#[derive(Debug, serde::Serialize)]
pub struct Row {
    pub what: &'static str,
    pub unit: &'static str,
    pub measured: f64,
    /// The first and the last decile of the samples.
    pub spread: (f64, f64),
    pub bar: Bar,
    /// The raw figures behind the value.
    pub detail: String,
    pub met: bool,
}

impl Row {
    pub fn new(what: &'static str, unit: &'static str, bar: Bar, measured: f64, spread: (f64, f64), detail: String) -> Self {
        let met = match bar {
            Bar::AtMost(most) => measured <= most,
            Bar::AtLeast(least) => measured >= least,
        };
        Self { what, unit, measured, spread, bar, detail, met }
    }
}

#[derive(Debug, serde::Serialize)]
pub struct Report {
    /// Noise of the machine: see `noise.rs`.
    noise: f64,
    rows: Vec<Row>,
}

impl Report {
    pub fn new(noise: f64) -> Self {
        Self { noise, rows: Vec::new() }
    }

    pub fn add(&mut self, row: Row) {
        eprintln!("  {}: {:.2}{}", row.what, row.measured, row.unit);
        self.rows.push(row);
    }

    /// Compares two alternatives by the ratios of paired runs.
    pub fn add_pairs(&mut self, what: &'static str, ours: &[Duration], theirs: &[Duration], most: f64) {
        let (ratios, median) = (ratios(ours, theirs), |times| time(Samples::of(times).median()));
        let detail = format!("{} against {}, {} pairs", median(ours), median(theirs), ours.len());
        self.add(Row::new(what, " ×", Bar::AtMost(most), ratios.median(), (ratios.quantile(0.1), ratios.quantile(0.9)), detail));
    }

    pub fn all_met(&self) -> bool {
        self.rows.iter().all(|row| row.met)
    }

    pub fn print(&self) {
        println!("\n{:<58} {:>10}  {:<17} {:<12} {:<7} details", "what", "measured", "p10 – p90", "bar", "");
        for Row { what, unit, measured, spread, bar, detail, met } in &self.rows {
            let bar = match bar {
                Bar::AtMost(most) => format!("≤ {most}{unit}"),
                Bar::AtLeast(least) => format!("≥ {least}{unit}"),
            };
            let met = if *met { "met" } else { "MISSED" };
            println!(
                "{what:<58} {:>10}  {:<17} {bar:<12} {met:<7} {detail}",
                format!("{measured:.2}{unit}"),
                format!("{:.2} – {:.2}", spread.0, spread.1)
            );
        }
        println!("\nnoise: the slowest tenth of a fixed computation took {:.2} × the fastest (1.0: an idle machine)", self.noise);
    }

    pub fn write(&self) -> Result<PathBuf> {
        let folder = std::env::current_exe()?.parent().map(PathBuf::from).unwrap_or_default();
        let file = folder.join("heapstead-bench.json");
        std::fs::write(&file, serde_json::to_vec_pretty(self)?)?;
        Ok(file)
    }
}

/// Formats milliseconds. Values far below one are shown in microseconds.
fn time(ms: f64) -> String {
    if ms < 0.1 { format!("{:.1} µs", ms * 1000.0) } else { format!("{ms:.2} ms") }
}
