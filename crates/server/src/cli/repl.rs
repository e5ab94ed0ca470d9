//! `heapstead repl`: every input is one run that continues from the heap of the previous one.

use super::completeness::ended_early;
use super::flags::{ConfinementOptions, DatabaseOptions, HeapStoreOptions, LimitOptions, OriginOptions};
use super::interrupts::{Interrupts, WhenIdle};
use super::lines::{Line, Lines};
use super::screen::Screen;
use super::source;
use crate::startup::{self, StartupError};
use heapstead_engine::Engine;
use heapstead_service::{ExecutionOutcome, FinishedRun, HeapCache, InputHeap, OnMissingHeap, OneShot, OneShotMode, OneShotRequest};
use heapstead_types::{Failure, Limits, limits};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use tokio::runtime::Runtime;

pub const EXAMPLES: &str = "\
Examples:
  heapstead repl                 starts with a fresh heap
  heapstead repl --heap KEY      continues from the heap of an earlier run
  heapstead repl < lines.txt     without a terminal: reads lines, prints results

In the REPL, `.help` lists the commands.";

const HELP: &str = "\
.heap         show the key of the heap that the next line starts from
.undo         go back to the heap before the last line
.load FILE    run a file
.help         this list
.exit         exit, like Ctrl-D

An incomplete line continues on the next one. Ctrl-C cancels a running line, or drops the line being typed.
Top-level `let`, `const`, `class` and `function` declarations persist, and may be declared again.";

const PROMPT: &str = "> ";
const PROMPT_MORE: &str = "... ";
/// Maximum number of `.undo` steps.
const UNDO_MAX: usize = 10_000;

#[derive(clap::Args)]
pub struct ReplOptions {
    #[command(flatten)]
    input: OriginOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    confinement: ConfinementOptions,
    #[command(flatten)]
    heaps: HeapStoreOptions,
    #[command(flatten)]
    database: DatabaseOptions,
}

pub fn repl(runtime: &Runtime, options: ReplOptions) -> ExitCode {
    let on_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut session = match runtime.block_on(Session::open(&options, on_terminal)) {
        Ok(session) => session,
        Err(failure) => {
            let screen = Screen::new();
            screen.error_and_warnings(&FinishedRun::never_began(failure));
            return ExitCode::FAILURE;
        }
    };
    let lines = if on_terminal { Lines::of_terminal().map_err(std::io::Error::other) } else { Ok(Lines::Script) };
    let left = lines.and_then(|mut lines| {
        if on_terminal {
            let v8 = &session.engine.info().id.v8;
            session.screen.aside(&format!(
                "heapstead {}, V8 {v8}. Type JavaScript or TypeScript; .help lists the commands.",
                env!("CARGO_PKG_VERSION")
            ));
        }
        session.read_and_evaluate(runtime, &mut lines)
    });
    match left {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            session.screen.error(&format!("the input can't be read: {error}. The heap so far: {}", session.describe_heap()));
            ExitCode::FAILURE
        }
    }
}

struct Session {
    engine: Engine,
    heaps: HeapCache,
    limits: Limits,
    interrupts: Interrupts,
    screen: Screen,
    /// The heap the next line starts from.
    input: InputHeap,
    /// The heaps earlier lines started from, newest last.
    before: Vec<InputHeap>,
}

/// The meaning of a line typed at the first prompt.
enum Input<'a> {
    Heap,
    Undo,
    Load(&'a str),
    Help,
    Exit,
    Unknown(&'a str),
    Code,
}

impl<'a> Input<'a> {
    fn parse(line: &'a str) -> Self {
        let line = line.trim();
        // `.5` is a number.
        if !line.starts_with('.') || line[1..].starts_with(|first: char| first.is_ascii_digit()) {
            return Self::Code;
        }
        match line.split_once(char::is_whitespace).map_or((line, ""), |(command, rest)| (command, rest.trim())) {
            (".heap", "") => Self::Heap,
            (".undo", "") => Self::Undo,
            (".load", file) => Self::Load(file),
            (".help", "") => Self::Help,
            (".exit", "") => Self::Exit,
            _ => Self::Unknown(line),
        }
    }
}

impl Session {
    async fn open(options: &ReplOptions, on_terminal: bool) -> Result<Self, Failure> {
        let screen = Screen::new();
        let interrupts = Interrupts::listen(if on_terminal { WhenIdle::Ignore } else { WhenIdle::Exit })?;
        let (heaps, keys) = (options.heaps.open()?, options.database.heap_keys()?);
        let config = options.confinement.config().map_err(StartupError::from)?;
        let engine = startup::start_engine(config, || screen.aside("starting the engine …")).await?;
        let heaps = HeapCache::new(heaps, engine.info().clone(), keys);
        Ok(Self { engine, heaps, limits: options.limits.limits(), interrupts, screen, input: options.input.input(), before: Vec::new() })
    }

    /// Reads and evaluates input until its end.
    fn read_and_evaluate(&mut self, runtime: &Runtime, lines: &mut Lines) -> std::io::Result<()> {
        let mut input = String::new();
        // The result of the input so far, if it is incomplete.
        let mut unfinished: Option<FinishedRun> = None;
        loop {
            match lines.next(if input.is_empty() { PROMPT } else { PROMPT_MORE })? {
                Line::End => {
                    if let Some(finished) = unfinished {
                        self.show(&finished);
                    }
                    return Ok(());
                }
                Line::Interrupted => {
                    if input.is_empty() {
                        self.screen.aside("Ctrl-D or .exit exits");
                    }
                    input.clear();
                    unfinished = None;
                }
                Line::Text(line) if input.is_empty() && line.trim().is_empty() => {}
                Line::Text(line) => {
                    if input.is_empty() && !matches!(Input::parse(&line), Input::Code) {
                        lines.remember(&line);
                        if !self.execute_command(runtime, &line) {
                            return Ok(());
                        }
                        continue;
                    }
                    if !input.is_empty() {
                        input.push('\n');
                    }
                    input.push_str(&line);
                    unfinished = runtime.block_on(self.evaluate(&input));
                    if unfinished.is_none() {
                        lines.remember(&input);
                        input.clear();
                    }
                }
            }
        }
    }

    /// Executes a REPL command. Returns false if it ends the session.
    fn execute_command(&mut self, runtime: &Runtime, line: &str) -> bool {
        match Input::parse(line) {
            Input::Heap => self.screen.result(&self.describe_heap()),
            Input::Undo => self.undo(),
            Input::Load("") => self.screen.error(".load needs the name of a file: .load FILE"),
            Input::Load(file) => match source::read_file(Path::new(file)) {
                Ok(code) => {
                    let finished = runtime.block_on(self.run(code));
                    self.show(&finished);
                }
                Err(error) => self.screen.error(&error.to_string()),
            },
            Input::Help => self.screen.result(HELP),
            Input::Exit => return false,
            Input::Unknown(line) => self.screen.error(&format!("`{line}` is not a command: .help lists them")),
            Input::Code => {}
        }
        true
    }

    /// Runs an input and shows its result. If the input is incomplete, returns the result instead, so that the user can continue typing.
    async fn evaluate(&mut self, input: &str) -> Option<FinishedRun> {
        if let Err(error) = limits::code(input) {
            self.screen.error(&error.to_string());
            return None;
        }
        let finished = self.run(input.to_owned()).await;
        if matches!(&finished.end, ExecutionOutcome::Failed(Failure::Syntax(error)) if ended_early(input, error)) {
            return Some(finished);
        }
        self.show(&finished);
        None
    }

    /// Runs code on the heap of the previous line. Only a completed run moves to a new heap.
    async fn run(&mut self, code: String) -> FinishedRun {
        let mode = OneShotMode::Stateful { heaps: self.heaps.clone(), input: self.input };
        let mut run = OneShot::begin(&self.engine, OneShotRequest { code, mode, limits: self.limits }).await;
        let watch = self.interrupts.watch(run.canceller());
        while let Some(bytes) = run.next_output().await {
            self.screen.output(&bytes);
        }
        let finished = run.finish().await;
        drop(watch);
        if let ExecutionOutcome::Completed { heap: Some(key), .. } = finished.end {
            self.before.push(self.input);
            if self.before.len() > UNDO_MAX {
                self.before.remove(0);
            }
            // If a heap of this session is missing, the next line must fail instead of silently starting fresh.
            self.input = InputHeap::Heap { key, on_missing: OnMissingHeap::Fail };
        }
        finished
    }

    fn undo(&mut self) {
        match self.before.pop() {
            Some(input) => {
                self.input = input;
                let heap = self.describe_heap();
                self.screen.aside(&format!("back to {heap}"));
            }
            None => self.screen.error("there is nothing to undo: no line of this session has produced a heap"),
        }
    }

    fn show(&mut self, finished: &FinishedRun) {
        if let ExecutionOutcome::Completed { result, .. } = &finished.end {
            self.screen.result(result);
        }
        self.screen.error_and_warnings(finished);
    }

    fn describe_heap(&self) -> String {
        match self.input {
            InputHeap::Heap { key, .. } => key.to_string(),
            InputHeap::Fresh => "a fresh heap".into(),
        }
    }
}
