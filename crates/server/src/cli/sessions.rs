//! `heapstead sessions`: lists, shows, forks and ends sessions, prints their logs and rotates the state key.

use super::backend::{Backend, BackendError, Needs};
use super::colours::Colours;
use super::flags::ConfinementOptions;
use super::heaps::{CommonOptions, failed, print_json, text};
use super::screen::Screen;
use super::table::{self, Cell, Table};
use clap::Subcommand;
use heapstead_service::{EndLogical, TurnRange};
use heapstead_types::HeapKey;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io;
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  heapstead sessions ls                        opened sessions, oldest first, then named sessions
  heapstead sessions log SESSION               the runs of a session, with their heaps
  heapstead sessions replay SESSION            runs every turn again with the same inputs, and compares
  heapstead sessions fork SESSION --heap KEY   a new session that continues from an earlier heap
  heapstead sessions end SESSION --url URL     ends a session on a running server
  heapstead sessions rm NAME                   deletes a named session with its log
  heapstead sessions rotate-key                seals session state held by clients with a new key

Exit code: 0 success, 1 failure (with `replay`: a turn differs), 2 invalid input.";

/// Maximum page size of a server.
const PAGE_MAX: u32 = 10_000;
/// Turns that are repeated by one request.
const REPLAY_PART: u64 = 50;
/// Characters of code shown per log line.
const CODE_CHARS: usize = 60;
/// Characters of a heap key shown per line.
const KEY_CHARS: usize = 12;

#[derive(clap::Args)]
pub struct SessionsOptions {
    #[command(subcommand)]
    command: SessionsCommand,
}

#[derive(Subcommand)]
enum SessionsCommand {
    /// List opened sessions, then named sessions
    #[command(after_help = EXAMPLES)]
    Ls(Box<LsOptions>),
    /// Show a session
    #[command(after_help = EXAMPLES)]
    Show(Box<OneOptions>),
    /// Show the log of a session
    #[command(after_help = EXAMPLES)]
    Log(Box<OneOptions>),
    /// Run the turns of a session again with the same clock readings and random numbers, and compare; nothing is stored
    #[command(after_help = EXAMPLES)]
    Replay(Box<ReplayOptions>),
    /// Create a session that continues from a heap of another
    #[command(after_help = EXAMPLES)]
    Fork(Box<ForkOptions>),
    /// End a session, cancel its executions and delete its log
    #[command(after_help = EXAMPLES, visible_alias = "rm")]
    End(Box<EndOptions>),
    /// Rotate the key that seals session state held by clients; state sealed with older keys stays valid
    #[command(after_help = EXAMPLES)]
    RotateKey(Box<KeyOptions>),
}

#[derive(clap::Args)]
struct LsOptions {
    /// Maximum number of sessions, 1 to 10000
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Continue from the cursor of an earlier list
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct OneOptions {
    /// The session: its id, its logical id or, for its log, its name
    #[arg(value_name = "SESSION")]
    session: String,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct ReplayOptions {
    /// The session: its id, its logical id or its name
    #[arg(value_name = "SESSION")]
    session: String,
    /// First turn to repeat
    #[arg(long, value_name = "TURN", default_value_t = 0)]
    from: u64,
    /// Last turn to repeat; default: the last one of the session
    #[arg(long, value_name = "TURN")]
    to: Option<u64>,
    #[command(flatten)]
    confinement: ConfinementOptions,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct EndOptions {
    /// The session: its id, its logical id or its name
    #[arg(value_name = "SESSION")]
    session: String,
    /// Delete a session that was opened with an intent, with its log; otherwise it loses its state and keeps its id
    #[arg(long)]
    forget: bool,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct ForkOptions {
    /// The session: its id or its logical id
    #[arg(value_name = "SESSION")]
    session: String,
    /// Heap to continue from: any heap that a run of the session started from or produced; default: its head
    #[arg(long, value_name = "KEY", value_parser = super::flags::heap_key)]
    heap: Option<HeapKey>,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct KeyOptions {
    #[command(flatten)]
    common: CommonOptions,
}

pub async fn sessions(options: SessionsOptions) -> ExitCode {
    let mut screen = Screen::new();
    let done = match options.command {
        SessionsCommand::Replay(options) => match replay(&mut screen, *options).await {
            Ok(false) => return ExitCode::FAILURE,
            done => done.map(drop),
        },
        SessionsCommand::Ls(options) => ls(&mut screen, *options).await,
        SessionsCommand::Show(options) => show(&mut screen, *options).await,
        SessionsCommand::Log(options) => log(&mut screen, *options).await,
        SessionsCommand::Fork(options) => fork(&mut screen, *options).await,
        SessionsCommand::End(options) => end(&mut screen, *options).await,
        SessionsCommand::RotateKey(options) => rotate_key(&mut screen, *options).await,
    };
    done.map_or_else(|error| failed(&screen, &error), |()| ExitCode::SUCCESS)
}

async fn ls(screen: &mut Screen, options: LsOptions) -> Result<(), BackendError> {
    let backend = Backend::open(&options.common.place, Needs::Database).await?;
    let mut page = backend.sessions(options.limit, options.cursor).await?;
    let is_last = page["next_cursor"].is_null();
    let logs = if is_last { logs(&backend).await? } else { Vec::new() };
    if is_last {
        page["logs"] = logs.clone().into();
    }
    if options.common.json {
        print_json(screen, &page);
        return Ok(());
    }
    let sessions = page["sessions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if sessions.is_empty() && logs.is_empty() {
        screen.aside("there are none");
        return Ok(());
    }
    let mut table = Table::new(
        Colours::of(&io::stdout()),
        ["SESSION", "TURNS", "CHECKPOINT", "TAIL", "LIVE", "MEMORY", "LAST USED (UTC)", "ENDS (UTC)"],
    );
    for session in sessions {
        table.row([
            text(&session["session_id"]).into(),
            session["turns"].to_string().as_str().into(),
            session["checkpoint"].as_str().map_or("-", |key| key.get(..KEY_CHARS).unwrap_or(key)).into(),
            session["tail_turns"].to_string().as_str().into(),
            live(session).into(),
            memory(session).into(),
            table::time(text(&session["last_used_at"])).into(),
            session["expires_at"].as_str().map_or_else(|| "-".to_owned(), table::time).into(),
        ]);
    }
    for name in &logs {
        table.row([name.as_str().into(), "-".into(), "-".into(), "-".into(), "-".into(), "-".into(), "-".into(), "-".into()]);
    }
    screen.output(table.text().as_bytes());
    if let Some(cursor) = page["next_cursor"].as_str() {
        screen.aside(&format!("there are more: `--cursor {cursor}` continues"));
    }
    Ok(())
}

/// Whether a session is live on the server that was asked. Without a server, that is not known.
fn live(session: &Value) -> &'static str {
    match session["live"].as_bool() {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    }
}

/// Memory of a live session, once it was measured.
fn memory(session: &Value) -> String {
    session["memory_bytes"].as_u64().map_or_else(|| "-".to_owned(), table::size)
}

/// Names of sessions that have only a log with completed executions.
async fn logs(backend: &Backend) -> Result<Vec<String>, BackendError> {
    let mut names = backend.session_names().await?;
    let mut cursor = None;
    // A log may have any name, so only the list of opened sessions shows which names are session ids.
    loop {
        let page = backend.sessions(PAGE_MAX, cursor).await?;
        let opened: HashSet<_> = page["sessions"].as_array().into_iter().flatten().map(|session| text(&session["session_id"])).collect();
        names.retain(|name| !opened.contains(name.as_str()));
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return Ok(names);
        }
    }
}

async fn show(screen: &mut Screen, options: OneOptions) -> Result<(), BackendError> {
    let session = Backend::open(&options.common.place, Needs::Database).await?.session(&options.session).await?;
    show_session(screen, &session, options.common.json);
    Ok(())
}

fn show_session(screen: &mut Screen, session: &Value, json: bool) {
    if json {
        return print_json(screen, session);
    }
    let colours = Colours::of(&io::stdout());
    let mut line = |name: &str, value: &str| screen.output(format!("{} {value}\n", colours.dim(&format!("{name:<10}"))).as_bytes());
    line("session", text(&session["session_id"]));
    line("head", session["head"].as_str().unwrap_or("none yet"));
    line("turns", &session["turns"].to_string());
    line("checkpoint", session["checkpoint"].as_str().unwrap_or("none yet"));
    line("tail", &format!("{} turns after the checkpoint", session["tail_turns"]));
    line("live", live(session));
    line("memory", &memory(session));
    line("opened", &format!("{} UTC", table::time(text(&session["created_at"]))));
    line("last used", &format!("{} UTC", table::time(text(&session["last_used_at"]))));
    if let Some(end) = session["expires_at"].as_str() {
        line("ends", &format!("{} UTC", table::time(end)));
    }
}

async fn log(screen: &mut Screen, options: OneOptions) -> Result<(), BackendError> {
    let log = Backend::open(&options.common.place, Needs::Database).await?.session_log(&options.session, None).await?;
    if options.common.json {
        print_json(screen, &log);
        return Ok(());
    }
    let entries = log["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    if entries.is_empty() {
        screen.aside("the session has no completed executions");
        return Ok(());
    }
    let mut table = Table::new(Colours::of(&io::stdout()), ["INDEX", "TIME (UTC)", "HEAP", "CODE"]);
    for entry in entries {
        let code: String =
            text(&entry["code"]).chars().map(|character| if character.is_control() { ' ' } else { character }).take(CODE_CHARS).collect();
        let mark = if entry["undone"] == true { " (undone)" } else { "" };
        table.row([
            format!("{}{mark}", entry["index"]).into(),
            table::time(text(&entry["timestamp"])).into(),
            text(&entry["output_heap"]).into(),
            code.as_str().into(),
        ]);
    }
    screen.output(table.text().as_bytes());
    Ok(())
}

/// Whether every turn was repeated and did the same.
async fn replay(screen: &mut Screen, options: ReplayOptions) -> Result<bool, BackendError> {
    let backend = Backend::open(&options.common.place, Needs::Database).await?;
    let replays = backend.replays(&options.confinement).await?;
    let (mut turns, mut from) = (Vec::new(), Some(options.from));
    // In parts, so that a person sees how far it is.
    while let Some(first) = from {
        let last = first.saturating_add(REPLAY_PART - 1);
        let range = TurnRange { from: Some(first), to: Some(options.to.map_or(last, |to| to.min(last))) };
        let mut report = replays.session(&options.session, range).await?;
        turns.extend(report["turns"].as_array_mut().map(std::mem::take).unwrap_or_default());
        from = report["next_from"].as_u64().filter(|next| options.to.is_none_or(|to| *next <= to));
        if from.is_some() && !options.common.json {
            screen.aside(&format!("{} turns …", turns.len()));
        }
    }
    let identical = turns.iter().all(|turn| turn["outcome"] == "identical");
    if options.common.json {
        print_json(screen, &json!({ "identical": identical, "turns": turns }));
        return Ok(identical);
    }
    let mut table = Table::new(Colours::of(&io::stdout()), ["TURN", "EXECUTION", "REPLAY", ""]);
    for turn in &turns {
        let differs: Vec<_> = turn["differs"].as_array().into_iter().flatten().map(text).collect();
        let details = [differs.join(", "), text(&turn["reason"]).to_owned()];
        let details: Vec<_> = details.iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
        table.row([
            turn["turn"].to_string().as_str().into(),
            text(&turn["execution_id"]).into(),
            outcome_cell(text(&turn["outcome"])),
            details.join(": ").into(),
        ]);
    }
    screen.output(table.text().as_bytes());
    Ok(identical)
}

fn outcome_cell(outcome: &str) -> Cell {
    match outcome {
        "identical" => Cell::painted("identical", Colours::green),
        "differs" => Cell::painted("differs", Colours::red),
        other => other.replace('_', " ").into(),
    }
}

async fn fork(screen: &mut Screen, options: ForkOptions) -> Result<(), BackendError> {
    let session = Backend::open(&options.common.place, Needs::Database).await?.fork_session(&options.session, options.heap).await?;
    show_session(screen, &session, options.common.json);
    Ok(())
}

async fn end(screen: &mut Screen, options: EndOptions) -> Result<(), BackendError> {
    let of_logical = if options.forget { EndLogical::Forget } else { EndLogical::ClearState };
    let answer = Backend::open(&options.common.place, Needs::Database).await?.end_session(&options.session, of_logical).await?;
    match options.common.json {
        true => print_json(screen, &answer),
        false => screen.note(&format!("ended {}", options.session)),
    }
    Ok(())
}

async fn rotate_key(screen: &mut Screen, options: KeyOptions) -> Result<(), BackendError> {
    let answer = Backend::open(&options.common.place, Needs::Database).await?.rotate_state_key().await?;
    match options.common.json {
        true => print_json(screen, &answer),
        false => screen.note("new session state is sealed with a new key from now on"),
    }
    Ok(())
}
