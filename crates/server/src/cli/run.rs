//! `heapstead run`: one run, whose exit code tells how it ended.

use super::EXIT_BAD_INPUT;
use super::flags::{FlagError, HeapStoreOptions, LimitOptions, OriginOptions};
use super::interrupts::{EXIT_INTERRUPTED, Interrupts, WhenIdle};
use super::screen::Screen;
use super::source::{SourceError, SourceOptions};
use crate::local::{self, LocalError};
use heapstead_engine::Engine;
use heapstead_service::{End, ExecutionRecord, Finished, HeapAccess, Mode, Origin, Request, Run};
use heapstead_types::{Failure, HeapKey, Limits, Status};
use std::process::ExitCode;
use std::time::Instant;

pub const EXAMPLES: &str = "\
Examples:
  heapstead run -e 'let n = 41'              prints the key of the heap it leaves
  heapstead run -e '++n' --heap KEY          goes on from there
  heapstead run script.ts                    TypeScript works as it is
  echo '6 * 7' | heapstead run - --json      the whole record, for programs

Output and result go to standard output, all else to standard error.
Exit code: 0 completed, 1 failed, 2 bad input, 124 timed out, 130 cancelled.";

/// What timeout(1) uses.
const EXIT_TIMED_OUT: u8 = 124;

#[derive(clap::Args)]
pub struct RunOptions {
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    origin: OriginOptions,
    /// Keep no heap, and begin from none
    #[arg(long, env = "HEAPSTEAD_STATELESS", value_parser = clap::builder::BoolishValueParser::new())]
    stateless: bool,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    heaps: HeapStoreOptions,
    /// Print one JSON object: the record of the run, and its output
    #[arg(long)]
    json: bool,
}

/// What is to be run, once all of it has been found good.
struct Plan {
    code: String,
    limits: Limits,
    /// Where heaps are and where to begin; none when stateless.
    state: Option<(HeapStoreOptions, Origin)>,
}

/// What makes a run not worth starting.
#[derive(Debug, thiserror::Error)]
enum BadInput {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Flags(#[from] FlagError),
    #[error("`--heap` is {key}: it is not allowed together with `--stateless`, which begins from no heap and keeps none")]
    HeapWhenStateless { key: HeapKey },
}

impl RunOptions {
    fn plan(self) -> Result<Plan, BadInput> {
        // Not left to clap, for which a variable that says `false` is a flag that was given.
        let state = match (self.stateless, self.origin.origin()) {
            (true, Origin::Heap { key, .. }) => return Err(BadInput::HeapWhenStateless { key }),
            (true, Origin::Fresh) => None,
            (false, origin) => {
                self.heaps.place()?;
                Some((self.heaps, origin))
            }
        };
        Ok(Plan { code: self.source.read()?, limits: self.limits.limits(), state })
    }
}

/// The record as `--json` prints it.
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

/// From the plan to the end, with output handed over as it comes.
async fn execute(plan: Plan, mut output: impl FnMut(&[u8])) -> Finished {
    let (engine, mode, interrupts) = match prepare(plan.state).await {
        Ok(prepared) => prepared,
        Err(failure) => return Finished::never_began(failure),
    };
    let mut run = Run::begin(&engine, Request { code: plan.code, mode, limits: plan.limits }).await;
    let watch = interrupts.watch(run.canceller());
    while let Some(bytes) = run.next_output().await {
        output(&bytes);
    }
    let finished = run.finish().await;
    drop(watch);
    finished
}

async fn prepare(state: Option<(HeapStoreOptions, Origin)>) -> Result<(Engine, Mode, Interrupts), Failure> {
    let interrupts = Interrupts::listen(WhenIdle::Leave)?;
    // The store first: a bad one is told at once.
    let state = state.map(|(heaps, origin)| Ok::<_, LocalError>((heaps.open()?, origin))).transpose()?;
    let engine = local::start_engine(|| Screen::new().aside("starting the engine …")).await?;
    let mode = match state {
        None => Mode::Stateless,
        Some((heaps, origin)) => Mode::Stateful { heaps: HeapAccess::new(heaps, engine.info().clone()), origin },
    };
    Ok((engine, mode, interrupts))
}

fn show(screen: &mut Screen, finished: &Finished, began: Instant) {
    if let End::Completed { result, .. } = &finished.end {
        // Code that is run for its output has no result to speak of.
        if result != "undefined" {
            screen.result(result);
        }
    }
    screen.troubles(finished);
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
