//! `heapstead reference`, for developers: prints pages of the reference documentation, generated from the code.

mod errors;
mod flags;
mod tools;

use super::screen::Screen;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct ReferenceOptions {
    page: Page,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Page {
    /// Every flag, variable and configuration key
    Flags,
    /// Every operation of the API
    Tools,
    /// Every error code
    Errors,
}

pub async fn reference(options: ReferenceOptions) -> ExitCode {
    let mut screen = Screen::new();
    let page = match options.page {
        Page::Flags => Ok(flags::page()),
        Page::Tools => tools::page().await,
        Page::Errors => Ok(errors::page()),
    };
    match page {
        Ok(page) => screen.output(page.as_bytes()),
        Err(error) => {
            screen.error(&error.to_string());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
