//! The `heapstead` binary: hands over to the command that was asked for.
#![deny(unsafe_code)]

mod api;
mod auth;
mod cli;
mod edge;
mod http;
mod local;
mod mcp;
mod metrics;
mod rest;

fn main() -> std::process::ExitCode {
    cli::main()
}
