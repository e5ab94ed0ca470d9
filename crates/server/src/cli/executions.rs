//! `heapstead executions`: lists executions, shows their records, follows their output, cancels and deletes them.

use super::backend::{Backend, BackendError, ExecutionQuery, Needs};
use super::colours::Colours;
use super::flags::ConfinementOptions;
use super::heaps::{CommonOptions, failed, print_json, text};
use super::run::{exit_code, word};
use super::screen::Screen;
use super::table::{self, Cell, Table};
use clap::Subcommand;
use heapstead_types::Status;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  heapstead executions ls                               executions of the last 24 hours, and running ones
  heapstead executions ls --status failed --limit 10    the last ten failed executions, of any age
  heapstead executions show ID --url URL                the record of an execution on a running server
  heapstead executions output ID --follow               follows the output until the run ends
  heapstead executions cancel ID                        cancels it, whichever local process runs it
  heapstead executions replay ID                        runs it again with the same inputs, and compares
  heapstead executions rm ID                            deletes its record and its output

Exit code: 0 success, 1 failure (with `replay`: it differs), 2 invalid input. With `output --follow`, that of the run:
0 completed, 1 failed, 124 timed out, 130 cancelled.";

/// Bytes of output per request.
const PAGE_BYTES: u64 = 256 << 10;
const NONE_IN_THE_LAST_DAY: &str = "there are none; `--limit 100` also lists executions that ended more than 24 hours ago";
/// How long a server waits for more output per request.
const FOLLOW_WAIT: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub struct ExecutionsOptions {
    #[command(subcommand)]
    command: ExecutionsCommand,
}

#[derive(Subcommand)]
enum ExecutionsCommand {
    /// List executions, newest first
    #[command(after_help = EXAMPLES)]
    Ls(Box<LsOptions>),
    /// Show the record of an execution
    #[command(after_help = EXAMPLES)]
    Show(Box<OneOptions>),
    /// Print the console output of an execution
    #[command(after_help = EXAMPLES)]
    Output(Box<OutputOptions>),
    /// Cancel an execution
    #[command(after_help = EXAMPLES)]
    Cancel(Box<OneOptions>),
    /// Run the code of an execution again with the same clock readings and random numbers, and compare; nothing is stored
    #[command(after_help = EXAMPLES)]
    Replay(Box<ReplayOptions>),
    /// Delete the record and the output of an execution that has ended
    #[command(after_help = EXAMPLES)]
    Rm(Box<OneOptions>),
}

#[derive(clap::Args)]
struct LsOptions {
    /// Filter by status
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<Status>,
    /// Filter by session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Maximum number of executions, 1 to 10000, of any age
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: Option<u32>,
    /// Continue from the cursor of an earlier list
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct OneOptions {
    /// Id of the execution
    #[arg(value_name = "ID")]
    execution: String,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct OutputOptions {
    /// Id of the execution
    #[arg(value_name = "ID")]
    execution: String,
    /// Follow the output until the execution ends
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct ReplayOptions {
    /// Id of the execution
    #[arg(value_name = "ID")]
    execution: String,
    #[command(flatten)]
    confinement: ConfinementOptions,
    #[command(flatten)]
    common: CommonOptions,
}

fn status(text: &str) -> Result<Status, String> {
    Status::from_name(text).ok_or_else(|| format!("allowed are {}", Status::ALL.map(Status::as_str).join(", ")))
}

pub async fn executions(options: ExecutionsOptions) -> ExitCode {
    let mut screen = Screen::new();
    let done = match options.command {
        ExecutionsCommand::Ls(options) => ls(&mut screen, *options).await,
        ExecutionsCommand::Show(options) => show(&mut screen, *options).await,
        ExecutionsCommand::Output(options) => output(&mut screen, *options).await,
        ExecutionsCommand::Cancel(options) => cancel(&mut screen, *options).await,
        ExecutionsCommand::Replay(options) => replay(&mut screen, *options).await,
        ExecutionsCommand::Rm(options) => rm(&mut screen, *options).await,
    };
    done.unwrap_or_else(|error| failed(&screen, &error))
}

async fn ls(screen: &mut Screen, options: LsOptions) -> Result<ExitCode, BackendError> {
    let backend = Backend::open(&options.common.place, Needs::Database).await?;
    let query = ExecutionQuery { status: options.status, session: options.session, limit: options.limit, cursor: options.cursor };
    let page = backend.executions(&query).await?;
    if options.common.json {
        print_json(screen, &page);
        return Ok(ExitCode::SUCCESS);
    }
    let executions = page["executions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if executions.is_empty() {
        screen.aside(if query.is_plain() { NONE_IN_THE_LAST_DAY } else { "there are none" });
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(Colours::of(&io::stdout()), ["EXECUTION", "STATUS", "STARTED (UTC)", "TOOK"]);
    for execution in executions {
        let started_at = text(&execution["started_at"]);
        table.row([
            text(&execution["execution_id"]).into(),
            status_cell(text(&execution["status"])),
            table::time(started_at).into(),
            table::took(started_at, execution["completed_at"].as_str()).into(),
        ]);
    }
    screen.output(table.text().as_bytes());
    if let Some(cursor) = page["next_cursor"].as_str() {
        screen.aside(&format!("there are more: `--cursor {cursor}` continues"));
    }
    Ok(ExitCode::SUCCESS)
}

fn status_cell(name: &str) -> Cell {
    let Some(status) = Status::from_name(name) else { return name.into() };
    let paint = match status {
        Status::Running => Colours::cyan,
        Status::Completed => Colours::green,
        Status::Failed => Colours::red,
        Status::TimedOut | Status::Cancelled => Colours::yellow,
    };
    Cell::painted(word(status), paint)
}

async fn show(screen: &mut Screen, options: OneOptions) -> Result<ExitCode, BackendError> {
    let record = Backend::open(&options.common.place, Needs::Database).await?.execution(&options.execution).await?;
    if options.common.json {
        print_json(screen, &record);
        return Ok(ExitCode::SUCCESS);
    }
    let colours = Colours::of(&io::stdout());
    let mut line = |name: &str, value: &str| screen.output(format!("{} {value}\n", colours.dim(&format!("{name:<10}"))).as_bytes());
    line("execution", text(&record["execution_id"]));
    line("status", &status_cell(text(&record["status"])).text(colours));
    let started_at = text(&record["started_at"]);
    line("started", &format!("{} UTC", table::time(started_at)));
    line("took", &table::took(started_at, record["completed_at"].as_str()));
    for name in ["heap", "error", "result"] {
        if let Some(value) = record[name].as_str() {
            line(name, value);
        }
    }
    for warning in record["warnings"].as_array().into_iter().flatten() {
        line("warning", text(warning));
    }
    Ok(ExitCode::SUCCESS)
}

async fn output(screen: &mut Screen, options: OutputOptions) -> Result<ExitCode, BackendError> {
    let backend = Backend::open(&options.common.place, Needs::Database).await?;
    let wait = if options.follow { FOLLOW_WAIT } else { Duration::ZERO };
    let mut at = 0;
    let status = loop {
        let page = backend.output(&options.execution, at, PAGE_BYTES, wait).await?;
        at = page["next_byte_offset"].as_u64().unwrap_or(at);
        match options.common.json {
            true => print_json(screen, &page),
            false => screen.output(text(&page["data"]).as_bytes()),
        }
        if screen.is_closed() {
            return Ok(ExitCode::SUCCESS);
        }
        let status = Status::from_name(text(&page["status"])).unwrap_or(Status::Failed);
        if page["has_more"] != true && (status.is_terminal() || !options.follow) {
            break status;
        }
    };
    if !options.follow {
        return Ok(ExitCode::SUCCESS);
    }
    if !options.common.json {
        let record = backend.execution(&options.execution).await?;
        if let Some(error) = record["error"].as_str() {
            screen.error(error);
        }
        screen.aside(&format!("{} in {}", word(status), table::took(text(&record["started_at"]), record["completed_at"].as_str())));
    }
    Ok(ExitCode::from(exit_code(status)))
}

async fn cancel(screen: &mut Screen, options: OneOptions) -> Result<ExitCode, BackendError> {
    let answer = Backend::open(&options.common.place, Needs::Database).await?.cancel(&options.execution).await?;
    match options.common.json {
        true => print_json(screen, &answer),
        false => screen.note(&format!("cancelled {}", options.execution)),
    }
    Ok(ExitCode::SUCCESS)
}

async fn replay(screen: &mut Screen, options: ReplayOptions) -> Result<ExitCode, BackendError> {
    let backend = Backend::open(&options.common.place, Needs::Database).await?;
    let report = backend.replays(&options.confinement).await?.execution(&options.execution).await?;
    let is_identical = report["identical"] == true;
    if options.common.json {
        print_json(screen, &report);
    } else if is_identical {
        screen.note(&format!("identical: {} again, with the same result and output", text(&report["status"])));
    } else {
        let differs: Vec<_> = report["differs"].as_array().into_iter().flatten().map(text).collect();
        screen.error(&format!("the replay differs in its {}: it {}", differs.join(" and "), text(&report["status"])));
        if let Some(error) = report["error"].as_str() {
            screen.note(error);
        }
    }
    Ok(ExitCode::from(u8::from(!is_identical)))
}

async fn rm(screen: &mut Screen, options: OneOptions) -> Result<ExitCode, BackendError> {
    let answer = Backend::open(&options.common.place, Needs::Database).await?.delete_execution(&options.execution).await?;
    match options.common.json {
        true => print_json(screen, &answer),
        false => screen.note(&format!("deleted {}", options.execution)),
    }
    Ok(ExitCode::SUCCESS)
}
