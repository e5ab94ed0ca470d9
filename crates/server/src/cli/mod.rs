//! The command line: one file per command, and what they share.

mod colours;
mod completeness;
mod doctor;
mod hints;
mod interrupts;
mod kernel;
mod lines;
mod options;
mod repl;
mod run;
mod screen;
mod serve;
mod source;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Keeps JavaScript alive between runs: each run gets a confined V8 of its own, and goes on from the heap that an earlier one left.
#[derive(Parser)]
#[command(name = "heapstead", version, propagate_version = true, args_conflicts_with_subcommands = true, after_help = serve::EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::ServeOptions,
}

#[derive(Subcommand)]
enum Command {
    /// Serve MCP on standard input and output, or MCP and REST on ports
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<serve::ServeOptions>),
    /// Run JavaScript or TypeScript once, from a file, standard input or the command line
    #[command(after_help = run::EXAMPLES)]
    Run(run::RunOptions),
    /// Type JavaScript or TypeScript line by line; every line goes on from the heap of the one before
    #[command(after_help = repl::EXAMPLES)]
    Repl(repl::ReplOptions),
    /// Check that everything the engine needs is there, and say how to get what is not
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorOptions),
}

/// One thread for signals and timers, one for the run: a command runs one thing at a time.
const THREADS: usize = 2;

pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no threads can be started: {error}. Check the limits of this account (`ulimit -u`)");
            return ExitCode::FAILURE;
        }
    };
    match cli.command.unwrap_or_else(|| Command::Serve(Box::new(cli.serve))) {
        Command::Serve(options) => runtime.block_on(serve::serve(*options)),
        Command::Run(options) => runtime.block_on(run::run(options)),
        Command::Repl(options) => repl::repl(&runtime, options),
        Command::Doctor(options) => runtime.block_on(doctor::doctor(options)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_fit_together() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
