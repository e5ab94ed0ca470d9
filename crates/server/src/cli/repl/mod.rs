//! `heapstead repl`: every input is a turn of a session, which can be undone, forked, and resumed after the REPL has ended.

mod input;
mod names;
mod opened;
mod origin;
mod resume;
mod session;

use super::backend::{BackendError, Runner, RunnerOptions};
use super::completeness::ended_early;
use super::flags::{ConfinementOptions, LimitOptions, OriginOptions, WhereOptions};
use super::heaps::{failed, show_error};
use super::interrupts::{Interrupts, WhenIdle};
use super::lines::{Line, Lines};
use super::screen::Screen;
use super::source;
use heapstead_service::ServiceError;
use heapstead_types::{ErrorCode, HeapKey, limits};
use input::{HELP, Input};
use opened::OpenedSession;
use session::{ReplSession, Saved, State, Terminal, Turn};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use tokio::runtime::Runtime;

pub const EXAMPLES: &str = "\
Examples:
  heapstead repl                   opens a session; when it ends, it prints how to resume it
  heapstead repl --session NAME    continues the session NAME, or opens it
  heapstead repl --url URL         in a session of a running server
  heapstead repl --heap KEY        starts from the heap of an earlier run
  heapstead repl < lines.txt       without a terminal: reads lines, prints results

In the REPL, `.help` lists the commands.";

const PROMPT: &str = "> ";
const PROMPT_MORE: &str = "... ";

#[derive(clap::Args)]
pub struct ReplOptions {
    /// Continue this session, or open it: a name, or the id of an opened session; default: a new session with a name of its own
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    #[command(flatten)]
    input: OriginOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    confinement: ConfinementOptions,
    #[command(flatten)]
    place: WhereOptions,
}

pub fn repl(runtime: &Runtime, options: ReplOptions) -> ExitCode {
    let on_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut repl = match runtime.block_on(Repl::open(&options, on_terminal)) {
        Ok(repl) => repl,
        Err(error) => return failed(&Screen::new(), &error),
    };
    let lines = if on_terminal { Lines::of_terminal().map_err(std::io::Error::other) } else { Ok(Lines::Script) };
    let read = lines.and_then(|mut lines| {
        repl.greet(on_terminal);
        repl.read_and_evaluate(runtime, &mut lines)
    });
    let is_deleted = runtime.block_on(repl.session.close());
    let resume = resume::command(&repl.session.opened.name, std::env::args());
    match read {
        Ok(()) => {
            if on_terminal && !is_deleted {
                repl.screen.note(&format!("resume with: {resume}"));
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            repl.screen.error(&format!("the input can't be read: {error}"));
            if !is_deleted {
                repl.screen.next_step(&format!("`{resume}` continues the session"));
            }
            ExitCode::FAILURE
        }
    }
}

struct Repl {
    session: ReplSession,
    interrupts: Interrupts,
    screen: Screen,
}

impl Repl {
    async fn open(options: &ReplOptions, on_terminal: bool) -> Result<Self, BackendError> {
        let when_idle = if on_terminal { WhenIdle::Ignore } else { WhenIdle::Exit };
        let interrupts = Interrupts::listen(when_idle).map_err(|failure| ServiceError::Unavailable(failure.to_string()))?;
        let limits = options.limits.limits();
        let runner = Runner::open(RunnerOptions { place: &options.place, confinement: &options.confinement, limits }).await?;
        let opened = match &options.session {
            Some(name) => OpenedSession::find(&runner, name).await?,
            None => OpenedSession::invent(&runner).await?,
        };
        let session = ReplSession::new(runner, opened, limits, options.input.chosen());
        Ok(Self { session, interrupts, screen: Screen::new() })
    }

    fn greet(&self, on_terminal: bool) {
        let opened = &self.session.opened;
        if on_terminal {
            let v8 = self.session.runner.v8().map(|version| format!(", V8 {version}")).unwrap_or_default();
            let state = match opened.turns {
                0 => "is new".to_owned(),
                1 => "has 1 turn".to_owned(),
                turns => format!("has {turns} turns"),
            };
            self.screen.aside(&format!(
                "heapstead {}{v8}. Type JavaScript or TypeScript; .help lists the commands.\nSession {} {state}.",
                env!("CARGO_PKG_VERSION"),
                opened.name
            ));
        }
        if let Some(lost) = &opened.lost {
            self.screen.warning(lost);
        }
    }

    /// Reads and evaluates input until its end.
    fn read_and_evaluate(&mut self, runtime: &Runtime, lines: &mut Lines) -> std::io::Result<()> {
        let mut input = String::new();
        // The result of the input so far, if it is incomplete.
        let mut unfinished: Option<Turn> = None;
        loop {
            match lines.next(if input.is_empty() { PROMPT } else { PROMPT_MORE })? {
                Line::End => {
                    if let Some(turn) = unfinished {
                        self.show(&turn);
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
                    if input.is_empty() && Input::parse(&line) != Input::Code {
                        lines.remember(&line);
                        if Input::parse(&line) == Input::Exit {
                            return Ok(());
                        }
                        runtime.block_on(self.execute_command(&line));
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

    async fn execute_command(&mut self, line: &str) {
        let done = match Input::parse(line) {
            Input::Undo { turns } => self.undo(turns).await,
            Input::Fork { name } => self.fork(name).await,
            Input::Save(file) => self.save(file).await,
            Input::Load(file) => self.load(file).await,
            Input::Heap => self.session.heap().await.map(|heap| self.screen.result(&described(heap))),
            Input::Help => return self.screen.result(HELP),
            Input::Incomplete(needs) => return self.screen.error(needs),
            Input::Unknown(line) => return self.screen.error(&format!("`{line}` is not a command: .help lists them")),
            Input::Exit | Input::Code => return,
        };
        if let Err(error) = done {
            show_error(&self.screen, &error);
        }
    }

    /// Runs an input and shows its result. If the input is incomplete, returns the result instead, so that the user can continue typing.
    async fn evaluate(&mut self, input: &str) -> Option<Turn> {
        if let Err(error) = limits::code(input) {
            self.screen.error(&error.to_string());
            return None;
        }
        match self.run(input).await {
            Ok(turn) if is_incomplete(input, &turn) => return Some(turn),
            Ok(turn) => self.show(&turn),
            Err(error) => show_error(&self.screen, &error),
        }
        None
    }

    async fn run(&mut self, code: &str) -> Result<Turn, BackendError> {
        self.session.run(code, Terminal { screen: &mut self.screen, interrupts: &self.interrupts }).await
    }

    async fn undo(&mut self, turns: u32) -> Result<(), BackendError> {
        let state = match self.session.undo(turns).await? {
            State::Fresh => described(None),
            State::Heap(key) => described(Some(key)),
            State::Unstored => "a state whose heap can't be stored; the journal leads to it".into(),
        };
        self.screen.aside(&format!("back to {state}"));
        Ok(())
    }

    async fn fork(&mut self, name: Option<&str>) -> Result<(), BackendError> {
        let (origin, is_left_empty) = (self.session.opened.name.clone(), self.session.is_unused());
        let terminal = Terminal { screen: &mut self.screen, interrupts: &self.interrupts };
        match self.session.fork(name, terminal).await? {
            None => {
                let fork = &self.session.opened.name;
                let of = if is_left_empty { String::new() } else { format!(", a fork of {origin}") };
                self.screen.aside(&format!("now in session {fork}{of}"));
            }
            Some(turn) => self.show(&turn),
        }
        Ok(())
    }

    async fn save(&mut self, file: &str) -> Result<(), BackendError> {
        let Saved { turns, missing } = self.session.save(Path::new(file)).await?;
        self.screen.aside(&format!("{file} has the code of {turns} turns"));
        if let Some(error) = missing {
            self.screen.warning(&format!("the code from before the fork is missing: {error}"));
        }
        Ok(())
    }

    async fn load(&mut self, file: &str) -> Result<(), BackendError> {
        match source::read_file(Path::new(file)) {
            Ok(code) => {
                let turn = self.run(&code).await?;
                self.show(&turn);
            }
            Err(error) => self.screen.error(&error.to_string()),
        }
        Ok(())
    }

    fn show(&mut self, turn: &Turn) {
        if let Some(result) = &turn.result {
            self.screen.result(result);
        }
        self.screen.problems(&turn.warnings, turn.error.as_deref(), turn.error_code);
    }
}

fn is_incomplete(input: &str, turn: &Turn) -> bool {
    turn.error_code == Some(ErrorCode::SyntaxError) && turn.error.as_deref().is_some_and(|error| ended_early(input, error))
}

fn described(heap: Option<HeapKey>) -> String {
    heap.map_or_else(|| "a fresh heap".into(), |key| key.to_string())
}
