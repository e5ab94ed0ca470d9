//! Counts the instructions of one round with callgrind. The count does not depend on the machine or its load.
//!
//! This program runs twice, with more rounds the second time. Only the difference between the two runs counts.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// `arguments` make this program run only the rounds to count. The number of rounds is the last argument.
pub fn of_one_round(arguments: &[&OsStr], rounds_before: u32, rounds: u32) -> Result<f64, String> {
    let (before, after) = (count(arguments, rounds_before)?, count(arguments, rounds_before + rounds)?);
    Ok(after.saturating_sub(before) as f64 / f64::from(rounds))
}

fn count(arguments: &[&OsStr], rounds: u32) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let counted = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let ran = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", counted.path().display()))
        .arg(program)
        .args(arguments)
        .arg(rounds.to_string())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("valgrind can't be run ({error}): install it"))?;
    if !ran.status.success() {
        return Err(format!("valgrind: {}", String::from_utf8_lossy(&ran.stderr).lines().last().unwrap_or_default()));
    }
    let text = std::fs::read_to_string(counted.path()).map_err(|error| error.to_string())?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
    total.and_then(|total| total.split_whitespace().next()?.parse().ok()).ok_or_else(|| "callgrind counted nothing".to_owned())
}
