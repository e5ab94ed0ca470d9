//! `heapstead repl`: every input is one run, on the heap that the one before left.

use super::completeness::ended_early;
use super::flags::{HeapStoreOptions, LimitOptions, OriginOptions};
use super::interrupts::{Interrupts, WhenIdle};
use super::lines::{Line, Lines};
use super::screen::Screen;
use super::source;
use crate::local;
use heapstead_engine::Engine;
use heapstead_service::{End, Finished, HeapAccess, Mode, OnMissingHeap, Origin, Request, Run};
use heapstead_types::{Failure, Limits, limits};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use tokio::runtime::Runtime;

pub const EXAMPLES: &str = "\
Examples:
  heapstead repl                 a fresh heap
  heapstead repl --heap KEY      goes on where a run or another session left off
  heapstead repl < lines.txt     without a terminal: reads lines, prints results

Inside, `.help` lists the commands.";

const HELP: &str = "\
.heap         show the key of the heap the next line begins from
.undo         go back to the heap before the last line
.load FILE    run a file
.help         this list
.exit         leave, as Ctrl-D does

A line that is not finished goes on in the next one. Ctrl-C stops a line that runs, or drops one that is being typed.
What `let`, `const`, `class` and `function` declare at the top lives on, and may be declared again.";

const PROMPT: &str = "> ";
const PROMPT_MORE: &str = "... ";
/// How far back `.undo` reaches.
const UNDO_MAX: usize = 10_000;

#[derive(clap::Args)]
pub struct ReplOptions {
    #[command(flatten)]
    origin: OriginOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    heaps: HeapStoreOptions,
}

pub fn repl(runtime: &Runtime, options: ReplOptions) -> ExitCode {
    let on_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut session = match runtime.block_on(Session::open(&options, on_terminal)) {
        Ok(session) => session,
        Err(failure) => {
            let screen = Screen::new();
            screen.troubles(&Finished::never_began(failure));
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
        session.converse(runtime, &mut lines)
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
    heaps: HeapAccess,
    limits: Limits,
    interrupts: Interrupts,
    screen: Screen,
    /// Where the next line begins.
    origin: Origin,
    /// Where earlier lines began, the latest last.
    before: Vec<Origin>,
}

/// What a line typed at the first prompt asks for.
enum Asked<'a> {
    Heap,
    Undo,
    Load(&'a str),
    Help,
    Exit,
    Unknown(&'a str),
    Code,
}

impl<'a> Asked<'a> {
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
        let interrupts = Interrupts::listen(if on_terminal { WhenIdle::GoOn } else { WhenIdle::Leave })?;
        let heaps = options.heaps.open()?;
        let engine = local::start_engine(|| screen.aside("starting the engine …")).await?;
        let heaps = HeapAccess::new(heaps, engine.info().clone());
        Ok(Self { engine, heaps, limits: options.limits.limits(), interrupts, screen, origin: options.origin.origin(), before: Vec::new() })
    }

    /// Takes input until its end.
    fn converse(&mut self, runtime: &Runtime, lines: &mut Lines) -> std::io::Result<()> {
        let mut input = String::new();
        // What became of the input so far, when it only lacks its end.
        let mut unfinished: Option<Finished> = None;
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
                        self.screen.aside("Ctrl-D or .exit leaves");
                    }
                    input.clear();
                    unfinished = None;
                }
                Line::Text(line) if input.is_empty() && line.trim().is_empty() => {}
                Line::Text(line) => {
                    if input.is_empty() && !matches!(Asked::parse(&line), Asked::Code) {
                        lines.remember(&line);
                        if !self.obey(runtime, &line) {
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

    /// Carries out a command. False when it was the last.
    fn obey(&mut self, runtime: &Runtime, line: &str) -> bool {
        match Asked::parse(line) {
            Asked::Heap => self.screen.result(&self.describe_heap()),
            Asked::Undo => self.undo(),
            Asked::Load("") => self.screen.error(".load needs the name of a file: .load FILE"),
            Asked::Load(file) => match source::read_file(Path::new(file)) {
                Ok(code) => {
                    let finished = runtime.block_on(self.run(code));
                    self.show(&finished);
                }
                Err(error) => self.screen.error(&error.to_string()),
            },
            Asked::Help => self.screen.result(HELP),
            Asked::Exit => return false,
            Asked::Unknown(line) => self.screen.error(&format!("`{line}` is not a command: .help lists them")),
            Asked::Code => {}
        }
        true
    }

    /// Runs an input and shows what came of it, unless all it lacks is its end: then that comes back, for somebody to go on typing.
    async fn evaluate(&mut self, input: &str) -> Option<Finished> {
        if let Err(error) = limits::code(input) {
            self.screen.error(&error.to_string());
            return None;
        }
        let finished = self.run(input.to_owned()).await;
        if matches!(&finished.end, End::Failed(Failure::Syntax(error)) if ended_early(input, error)) {
            return Some(finished);
        }
        self.show(&finished);
        None
    }

    /// Runs code on the heap of the line before. Only a run that completed moves on to a new heap.
    async fn run(&mut self, code: String) -> Finished {
        let mode = Mode::Stateful { heaps: self.heaps.clone(), origin: self.origin };
        let mut run = Run::begin(&self.engine, Request { code, mode, limits: self.limits }).await;
        let watch = self.interrupts.watch(run.canceller());
        while let Some(bytes) = run.next_output().await {
            self.screen.output(&bytes);
        }
        let finished = run.finish().await;
        drop(watch);
        if let End::Completed { heap: Some(key), .. } = finished.end {
            self.before.push(self.origin);
            if self.before.len() > UNDO_MAX {
                self.before.remove(0);
            }
            // A heap that this session made and that has vanished is a loss to be told of, not to be passed over.
            self.origin = Origin::Heap { key, on_missing: OnMissingHeap::Fail };
        }
        finished
    }

    fn undo(&mut self) {
        match self.before.pop() {
            Some(origin) => {
                self.origin = origin;
                let heap = self.describe_heap();
                self.screen.aside(&format!("back to {heap}"));
            }
            None => self.screen.error("there is nothing to undo: no line of this session has left a heap"),
        }
    }

    fn show(&mut self, finished: &Finished) {
        if let End::Completed { result, .. } = &finished.end {
            self.screen.result(result);
        }
        self.screen.troubles(finished);
    }

    fn describe_heap(&self) -> String {
        match self.origin {
            Origin::Heap { key, .. } => key.to_string(),
            Origin::Fresh => "a fresh heap".into(),
        }
    }
}
