//! `heapstead usage`: prints how much an owner has stored, and how much it may have.

use super::backend::{Backend, BackendError, Needs};
use super::colours::Colours;
use super::heaps::{CommonOptions, failed, print_json};
use super::screen::Screen;
use serde_json::Value;
use std::io;
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  heapstead usage                  what the owner of the local stores has stored
  heapstead usage --url URL        what you have stored on a running server, and how much you may have

Exit code: 0 success, 1 failure, 2 invalid input.";

#[derive(clap::Args)]
pub struct UsageOptions {
    #[command(flatten)]
    common: CommonOptions,
}

pub async fn usage(options: UsageOptions) -> ExitCode {
    let mut screen = Screen::new();
    match show(&mut screen, &options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&screen, &error),
    }
}

async fn show(screen: &mut Screen, options: &UsageOptions) -> Result<(), BackendError> {
    let usage = Backend::open(&options.common.place, Needs::Database).await?.usage().await?;
    if options.common.json {
        print_json(screen, &usage);
        return Ok(());
    }
    let colours = Colours::of(&io::stdout());
    for (name, used, max) in [
        ("stored", &usage["stored_bytes"], &usage["stored_bytes_max"]),
        ("heaps", &usage["heap_bytes"], &usage["heap_bytes_max"]),
        ("other", &usage["other_bytes"], &Value::Null),
        ("contexts", &usage["context_bytes"], &Value::Null),
    ] {
        let max = max.as_u64().map(|max| format!(" of {} MB", max >> 20)).unwrap_or_default();
        let used = used.as_u64().unwrap_or_default().div_ceil(1 << 20);
        screen.output(format!("{} {used} MB{max}\n", colours.dim(&format!("{name:<10}"))).as_bytes());
    }
    Ok(())
}
