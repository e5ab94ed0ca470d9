//! `heapstead run`: runs code once; the exit code reports how it ended.

use super::EXIT_BAD_INPUT;
use super::flags::{ConfinementOptions, DatabaseOptions, FlagError, HeapStoreOptions, LimitOptions, OriginOptions};
use super::interrupts::{Cancellation, EXIT_INTERRUPTED, Interrupts, WhenIdle};
use super::screen::Screen;
use super::source::{SourceError, SourceOptions};
use crate::startup::{self, StartupError};
use heapstead_engine::Engine;
use heapstead_service::{ExecutionOutcome, ExecutionRecord, FinishedRun, HeapCache, InputHeap, OneShot, OneShotMode, OneShotRequest};
use heapstead_types::{Failure, HeapKey, Limits, Status};
use std::process::ExitCode;
use std::time::Instant;

pub const EXAMPLES: &str = "\
Examples:
  heapstead run -e 'let n = 41'              prints the key of the new heap
  heapstead run -e '++n' --heap KEY          continues from that heap
  heapstead run script.ts                    runs TypeScript
  echo '6 * 7' | heapstead run - --json      prints the whole record as JSON

Output and result go to standard output, everything else to standard error.
Exit code: 0 completed, 1 failed, 2 invalid input, 124 timed out, 130 cancelled.";

/// The exit code that timeout(1) uses.
const EXIT_TIMED_OUT: u8 = 124;

#[derive(clap::Args)]
pub struct RunOptions {
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    input: OriginOptions,
    /// Start without a heap and store none
    #[arg(long, env = "HEAPSTEAD_STATELESS", value_parser = clap::builder::BoolishValueParser::new())]
    stateless: bool,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    confinement: ConfinementOptions,
    #[command(flatten)]
    heaps: HeapStoreOptions,
    #[command(flatten)]
    database: DatabaseOptions,
    /// Print one JSON object: the record of the run and its output
    #[arg(long)]
    json: bool,
}

/// A validated run.
struct Plan {
    code: String,
    limits: Limits,
    confinement: ConfinementOptions,
    /// `None` if stateless.
    state: Option<State>,
}

/// Where heaps are stored, the database with the keys that they are signed with, and the heap to start from.
struct State {
    heaps: HeapStoreOptions,
    database: DatabaseOptions,
    input: InputHeap,
}

/// Why a run is not started.
#[derive(Debug, thiserror::Error)]
enum BadInput {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Flags(#[from] FlagError),
    #[error("`--heap` is {key}: it is not allowed together with `--stateless`, which starts without a heap and stores none")]
    HeapWhenStateless { key: HeapKey },
}

impl RunOptions {
    fn plan(self) -> Result<Plan, BadInput> {
        // Checked here because clap treats a variable set to `false` as a given flag.
        let state = match (self.stateless, self.input.input()) {
            (true, InputHeap::Heap { key, .. }) => return Err(BadInput::HeapWhenStateless { key }),
            (true, InputHeap::Fresh) => None,
            (false, input) => {
                self.heaps.place()?;
                Some(State { heaps: self.heaps, database: self.database, input })
            }
        };
        Ok(Plan { code: self.source.read()?, limits: self.limits.limits(), confinement: self.confinement, state })
    }
}

/// The record as printed by `--json`.
#[derive(serde::Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    record: &'a ExecutionRecord,
    output: &'a str,
}

pub async fn run(options: RunOptions) -> ExitCode {
    let mut screen = Screen::new();
    let json = options.json;
    let plan = match options.plan() {
        Ok(plan) => plan,
        Err(error) => {
            screen.error(&error.to_string());
            return ExitCode::from(EXIT_BAD_INPUT);
        }
    };
    let began = Instant::now();
    let mut output = Vec::new();
    let finished =
        if json { execute(plan, |bytes| output.extend_from_slice(bytes)).await } else { execute(plan, |bytes| screen.output(bytes)).await };
    if json {
        print_record(&mut screen, &finished.record, &output);
    } else {
        show(&mut screen, &finished, began);
    }
    ExitCode::from(exit_code(finished.end.status()))
}

/// Executes the plan and passes output on as it arrives.
async fn execute(plan: Plan, mut output: impl FnMut(&[u8])) -> FinishedRun {
    let (engine, mode, interrupts) = match prepare(&plan.confinement, plan.state).await {
        Ok(prepared) => prepared,
        Err(failure) => return FinishedRun::never_began(failure),
    };
    let mut run = OneShot::begin(&engine, OneShotRequest { code: plan.code, mode, limits: plan.limits }).await;
    let watch = interrupts.watch(run.canceller().map(Cancellation::Worker));
    while let Some(bytes) = run.next_output().await {
        output(&bytes);
    }
    let finished = run.finish().await;
    drop(watch);
    finished
}

async fn prepare(confinement: &ConfinementOptions, state: Option<State>) -> Result<(Engine, OneShotMode, Interrupts), Failure> {
    let interrupts = Interrupts::listen(WhenIdle::Exit)?;
    // The stores are opened first, so that their errors are reported immediately.
    let open = |State { heaps, database, input }| Ok::<_, StartupError>((heaps.open()?, database.heap_keys()?, input));
    let state = state.map(open).transpose()?;
    let config = confinement.config().map_err(StartupError::from)?;
    let engine = startup::start_engine(config, || Screen::new().aside("starting the engine …")).await?;
    let mode = match state {
        None => OneShotMode::Stateless,
        Some((heaps, keys, input)) => OneShotMode::Stateful { heaps: HeapCache::new(heaps, engine.info().clone(), keys), input },
    };
    Ok((engine, mode, interrupts))
}

fn show(screen: &mut Screen, finished: &FinishedRun, began: Instant) {
    if let ExecutionOutcome::Completed { result, .. } = &finished.end {
        // `undefined` is not printed, because code run for its output has no result.
        if result != "undefined" {
            screen.result(result);
        }
    }
    screen.error_and_warnings(finished);
    screen.aside(&format!("{} in {} ms", word(finished.end.status()), began.elapsed().as_millis()));
    if let Some(heap) = &finished.record.heap {
        screen.note(&format!("heap {heap}"));
    }
}

fn print_record(screen: &mut Screen, record: &ExecutionRecord, output: &[u8]) {
    let output = String::from_utf8_lossy(output);
    match serde_json::to_string(&Printed { record, output: &output }) {
        Ok(json) => screen.output(format!("{json}\n").as_bytes()),
        Err(error) => screen.error(&format!("the record has no JSON form: {error}")),
    }
}

pub fn word(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::TimedOut => "timed out",
        Status::Cancelled => "cancelled",
    }
}

pub fn exit_code(status: Status) -> u8 {
    match status {
        Status::Completed => 0,
        Status::Failed | Status::Running => 1,
        Status::TimedOut => EXIT_TIMED_OUT,
        Status::Cancelled => EXIT_INTERRUPTED,
    }
}
