//! The server: MCP, REST, authentication and the command line over the service. The binary only calls [`main`].
#![deny(unsafe_code)]

mod api;
mod auth;
mod cli;
mod edge;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod long_results;
mod mcp;
mod metrics;
mod rest;
mod startup;

/// Runs the command that the arguments of the process name.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
