//! The `heapstead` binary: hands over to the command that was asked for.
#![deny(unsafe_code)]

mod cli;
mod local;
mod service;

fn main() -> std::process::ExitCode {
    cli::main()
}
