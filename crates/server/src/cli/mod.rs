//! The command line: one file per command, and shared code.

mod auth;
mod backend;
mod colours;
mod completeness;
mod config;
mod doctor;
mod executions;
mod flags;
mod heaps;
mod hints;
mod interrupts;
mod kernel;
mod lines;
mod memory_bound;
mod reference;
mod repl;
mod run;
mod screen;
mod serve;
mod sessions;
mod source;
mod table;
mod usage;
mod welcome;

pub use flags::FlagError;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::LazyLock;

/// Runs JavaScript and keeps its state between runs: each run has its own sandboxed V8 and can continue from the heap of an earlier run.
///
/// Without a command, it serves: `heapstead --http-port 8420` means `heapstead serve --http-port 8420`, and `heapstead` alone serves MCP on
/// standard input and output.
#[derive(Parser)]
#[command(name = "heapstead", version, propagate_version = true, subcommand_required = true, after_help = serve::EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve MCP on standard input and output, or MCP and REST on ports
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<flags::ServeOptions>),
    /// Run JavaScript or TypeScript once, from a file, standard input or the command line
    #[command(after_help = run::EXAMPLES)]
    Run(Box<run::RunOptions>),
    /// Type JavaScript or TypeScript line by line; each line continues from the heap of the previous one
    #[command(after_help = repl::EXAMPLES)]
    Repl(Box<repl::ReplOptions>),
    /// List, show, export, import and remove heaps
    #[command(after_help = heaps::EXAMPLES)]
    Heaps(heaps::HeapsOptions),
    /// List, show, follow and cancel executions
    #[command(after_help = executions::EXAMPLES)]
    Executions(executions::ExecutionsOptions),
    /// List, show, fork and end sessions
    #[command(after_help = sessions::EXAMPLES)]
    Sessions(sessions::SessionsOptions),
    /// Show how much is stored, and how much may be
    #[command(after_help = usage::EXAMPLES)]
    Usage(Box<usage::UsageOptions>),
    /// Add, list and revoke the tokens that authenticate clients of a server
    #[command(after_help = auth::EXAMPLES)]
    Auth(auth::AuthOptions),
    /// Check that everything a server with these flags needs is present, and say how to fix what is not
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(Box<doctor::DoctorOptions>),
    /// Print a page of the reference documentation
    #[command(hide = true)]
    Reference(reference::ReferenceOptions),
}

/// The exit code that clap uses for invalid arguments.
const EXIT_BAD_INPUT: u8 = 2;
/// One thread for signals and timers, one for the run.
const THREADS_MIN: usize = 2;

pub fn main() -> ExitCode {
    let command = match parse(std::env::args_os().collect()) {
        Ok(command) => command,
        Err(error) => {
            screen::Screen::new().error(&error.to_string());
            return ExitCode::from(EXIT_BAD_INPUT);
        }
    };
    let cores = std::thread::available_parallelism().map_or(THREADS_MIN, usize::from);
    let threads = if matches!(command, Command::Serve(_)) { cores.max(THREADS_MIN) } else { THREADS_MIN };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no threads can be started: {error}. Check the limits of this account (`ulimit -u`)");
            return ExitCode::FAILURE;
        }
    };
    match command {
        Command::Serve(options) => runtime.block_on(serve::serve(*options)),
        Command::Run(options) => runtime.block_on(run::run(*options)),
        Command::Repl(options) => repl::repl(&runtime, *options),
        Command::Heaps(options) => runtime.block_on(heaps::heaps(options)),
        Command::Executions(options) => runtime.block_on(executions::executions(options)),
        Command::Sessions(options) => runtime.block_on(sessions::sessions(options)),
        Command::Usage(options) => runtime.block_on(usage::usage(*options)),
        Command::Auth(options) => auth::auth(options),
        Command::Doctor(options) => runtime.block_on(doctor::doctor(*options)),
        Command::Reference(options) => runtime.block_on(reference::reference(options)),
    }
}

/// The flags that the text of a `--config` file sets.
pub fn parse_config(text: &str) -> Result<Vec<(String, String)>, String> {
    static COMMAND: LazyLock<clap::Command> = LazyLock::new(Cli::command);
    config::parse("config.toml".as_ref(), text, &COMMAND).map_err(|error| error.to_string())
}

/// Precedence: arguments, environment variables, the `--config` file, defaults. clap reports invalid arguments itself and exits.
fn parse(arguments: Vec<OsString>) -> Result<Command, config::ConfigError> {
    let arguments = with_command(arguments);
    let mut matches = Cli::command().get_matches_from(&arguments);
    if let Some(command) = config::with_file(Cli::command(), &matches)? {
        matches = command.get_matches_from(&arguments);
    }
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    Ok(cli.command)
}

/// Without a command, inserts `serve`.
fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let own = ["-h", "--help", "-V", "--version"];
    let first = arguments.get(1).map(|first| first.to_string_lossy());
    if first.is_none_or(|first| first.starts_with('-') && !own.contains(&&*first)) {
        arguments.insert(1.min(arguments.len()), "serve".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_definitions_are_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_a_command_serve_is_inserted() {
        let with = |arguments: &[&str]| with_command(arguments.iter().map(OsString::from).collect());
        assert_eq!(with(&["heapstead"]), ["heapstead", "serve"]);
        assert_eq!(with(&["heapstead", "--http-port", "1"]), ["heapstead", "serve", "--http-port", "1"]);
        for as_it_is in [&["heapstead", "run"][..], &["heapstead", "--help"], &["heapstead", "-V"], &["heapstead", "fly"]] {
            assert_eq!(with(as_it_is), as_it_is);
        }
    }
}
