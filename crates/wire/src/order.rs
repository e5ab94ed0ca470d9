//! The order of messages between server and worker: what each side may send next.
//!
//! ```text
//! server → worker     worker → server
//! Open ────────────►  restores the heap ──► Opened
//! Run n ───────────►  runs the code ──────► [Started n] [Parsing n, Started n]   V8 refuses TypeScript, so types are stripped
//!                                           Output n …, OutputDropped n at most once
//!   ◄─────────────────────────────────────  Call n.1, n.2, …                     one number after the other
//! Reply n.c ───────►  continues
//!                                           Inputs n …                           what a stateful run has read from outside
//!                                           [Javascript n] Ended n               once; if the run failed, the worker exits
//! Commit n ────────►  keeps effects of n ─► Committed n
//! Snapshot n ──────►  writes the heap ────► Snapshot n                           written, or why not
//! Fork ────────────►  clones itself; the clone, on its own socket: Opened
//! Close ───────────►  exits
//! ```
//!
//! The worker's states, and the requests it accepts in each ([`WorkerState`]):
//!
//! ```text
//! New ──Open──► Idle ──Run n──► Running n ──completes──► Completed n ──Commit n──► Committed n ──Run m──► Running m …      m > n
//!                                  │ fails                 └─ Snapshot n, once, in either state ────┘
//!                                  ▼
//!                                 exits                  Close is accepted in every state, Fork in Idle and Committed
//! ```
//!
//! - A clone is in the state of the process that was cloned: a run or a snapshot in it leaves that process unchanged.
//! - The server may send requests ahead of the answers. A one-shot run is `Open`, `Run 1`, `Snapshot 1` (if it is stateful), `Close`, in one write.
//! - A run that fails ends its worker, so requests for it that were sent ahead get no answer.
//! - `Committed` and `Snapshot` may come between the messages of a later run: they belong to a run that has ended.
//! - `Unfit` may come at any time, and is the last message: the worker could not be confined, the heap could not be restored, or a request was
//!   out of order, or the worker can't be cloned.
//! - If a message of a worker is out of order or has the wrong run number, the worker is killed and the run fails ([`ServerState`]).
//! - No capability exists yet, so the engine treats a `Call` of any kind as misbehaviour and kills the worker. The server does not send
//!   `Reply` yet, and today's worker refuses it.

use crate::{CallNumber, FromWorker, INPUTS_BYTES_MAX, RunNumber, ToWorker};
use std::collections::VecDeque;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    #[error("`{name}` for run {run}, which is not the run in progress")]
    WrongRun { name: &'static str, run: RunNumber },
    #[error("`{name}` for run {run}, which has ended")]
    AfterEnd { name: &'static str, run: RunNumber },
    #[error("`{name}` for run {run}, which has not completed")]
    NotCompleted { name: &'static str, run: RunNumber },
    #[error("`Run` {run}, which is not higher than the run before")]
    NotHigher { run: RunNumber },
    #[error("`{name}` that was not asked for")]
    NotAsked { name: &'static str },
    #[error("`{name}` before `{missing}`")]
    TooEarly { name: &'static str, missing: &'static str },
    #[error("`{name}` a second time")]
    Repeated { name: &'static str },
    #[error("`Output` after `OutputDropped`")]
    AfterDropped,
    #[error("`{name}` between `Javascript` and `Ended`")]
    AfterJavascript { name: &'static str },
    #[error("`Inputs` of more than {INPUTS_BYTES_MAX} bytes")]
    InputsTooLong,
    #[error("call number {got}, expected {expected}")]
    CallNumber { got: CallNumber, expected: u64 },
}

/// Which requests a worker has accepted. Maintained by the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkerState {
    #[default]
    New,
    Idle,
    Running(RunNumber),
    Completed {
        run: RunNumber,
        committed: bool,
        snapshotted: bool,
    },
}

impl WorkerState {
    /// Checks that a request is in order, and changes the state accordingly.
    pub fn accept(&mut self, request: &ToWorker<'_>) -> Result<(), OrderError> {
        *self = self.after(request)?;
        Ok(())
    }

    /// Notes that the run in progress has completed.
    pub fn complete(&mut self) {
        if let Self::Running(run) = *self {
            *self = Self::Completed { run, committed: false, snapshotted: false };
        }
    }

    /// The run in progress.
    pub fn run(&self) -> Option<RunNumber> {
        match self {
            Self::Running(run) => Some(*run),
            _ => None,
        }
    }

    fn after(self, request: &ToWorker<'_>) -> Result<Self, OrderError> {
        let name = request.name();
        match (self, request) {
            (_, ToWorker::Close) => Ok(self),
            (Self::New, ToWorker::Open(_)) => Ok(Self::Idle),
            (Self::New, _) => Err(OrderError::TooEarly { name, missing: "Open" }),
            (_, ToWorker::Open(_)) => Err(OrderError::Repeated { name }),
            (Self::Idle | Self::Completed { committed: true, snapshotted: false, .. }, ToWorker::Fork { .. }) => Ok(self),
            (Self::Completed { committed: false, .. }, ToWorker::Fork { .. }) => Err(OrderError::TooEarly { name, missing: "Commit" }),
            // A snapshot consumes the heap.
            (_, ToWorker::Fork { .. }) => Err(OrderError::NotAsked { name }),
            (Self::Idle, ToWorker::Run { run, .. }) => Ok(Self::Running(*run)),
            (Self::Completed { committed: false, .. }, ToWorker::Run { .. }) => Err(OrderError::TooEarly { name, missing: "Commit" }),
            (Self::Completed { run: last, .. }, ToWorker::Run { run, .. }) if *run > last => Ok(Self::Running(*run)),
            (Self::Completed { .. }, ToWorker::Run { run, .. }) => Err(OrderError::NotHigher { run: *run }),
            (Self::Running(_), ToWorker::Run { .. }) => Err(OrderError::TooEarly { name, missing: "Ended" }),
            (Self::Completed { run, committed, snapshotted }, ToWorker::Commit { run: asked }) if run == *asked => match committed {
                false => Ok(Self::Completed { run, committed: true, snapshotted }),
                true => Err(OrderError::Repeated { name }),
            },
            (Self::Completed { run, committed, snapshotted }, ToWorker::Snapshot { run: asked }) if run == *asked => match snapshotted {
                false => Ok(Self::Completed { run, committed, snapshotted: true }),
                true => Err(OrderError::Repeated { name }),
            },
            (_, ToWorker::Commit { run } | ToWorker::Snapshot { run }) => Err(OrderError::NotCompleted { name, run: *run }),
            // Today's worker sends no calls.
            (_, ToWorker::Reply { .. }) => Err(OrderError::NotAsked { name }),
        }
    }
}

/// The requests that the server has sent to one worker, and the answers it still expects. Maintained by the server. It grows with the requests,
/// never with the messages of the worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerState {
    open: Open,
    /// Requested runs that have not ended, the one in progress first.
    runs: VecDeque<RunNumber>,
    progress: Progress,
    last_ended: Option<RunNumber>,
    /// Runs with an unanswered request for a commit or a snapshot.
    commits: VecDeque<RunNumber>,
    snapshots: VecDeque<RunNumber>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Open {
    #[default]
    NotAsked,
    Asked,
    Answered,
}

/// The progress of the current run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Progress {
    /// V8 has received the code.
    started: bool,
    /// Types were stripped, which happens once.
    parsed: bool,
    dropped_output: bool,
    calls: u64,
    input_bytes: usize,
    /// The JavaScript that ran was sent. Nothing but the end of the run may follow, because memory is held for both.
    sent_javascript: bool,
}

impl ServerState {
    /// Notes a request that is being sent.
    pub fn sent(&mut self, request: &ToWorker<'_>) {
        match request {
            ToWorker::Open(_) => self.open = Open::Asked,
            ToWorker::Run { run, .. } => self.runs.push_back(*run),
            ToWorker::Commit { run } => self.commits.push_back(*run),
            ToWorker::Snapshot { run } => self.snapshots.push_back(*run),
            ToWorker::Reply { .. } | ToWorker::Close | ToWorker::Fork { .. } => {}
        }
    }

    /// The state of a clone of this worker, which says `Opened` for itself.
    pub fn of_clone(&self) -> Self {
        Self { open: Open::Asked, ..self.clone() }
    }

    /// Checks that a message of the worker is in order, and notes it.
    pub fn accept(&mut self, message: &FromWorker) -> Result<(), OrderError> {
        let name = message.name();
        match (message, self.open) {
            (FromWorker::Unfit { .. }, _) => Ok(()),
            (FromWorker::Opened, Open::Asked) => {
                self.open = Open::Answered;
                Ok(())
            }
            (FromWorker::Opened, Open::NotAsked) => Err(OrderError::NotAsked { name }),
            (FromWorker::Opened, Open::Answered) => Err(OrderError::Repeated { name }),
            (_, Open::NotAsked | Open::Asked) => Err(OrderError::TooEarly { name, missing: "Opened" }),
            (FromWorker::Committed { run }, _) => take(&mut self.commits, &self.runs, name, *run),
            (FromWorker::Snapshot { run, .. }, _) => take(&mut self.snapshots, &self.runs, name, *run),
            _ => self.accept_of_run(message),
        }
    }

    fn accept_of_run(&mut self, message: &FromWorker) -> Result<(), OrderError> {
        let name = message.name();
        let run = message.run().ok_or(OrderError::NotAsked { name })?;
        if self.runs.front() != Some(&run) {
            return Err(match self.last_ended {
                Some(last) if run <= last => OrderError::AfterEnd { name, run },
                _ => OrderError::WrongRun { name, run },
            });
        }
        let progress = &mut self.progress;
        if progress.sent_javascript && !matches!(message, FromWorker::Javascript { .. } | FromWorker::Ended { .. }) {
            return Err(OrderError::AfterJavascript { name });
        }
        match message {
            FromWorker::Parsing { .. } if progress.parsed => Err(OrderError::Repeated { name }),
            FromWorker::Parsing { .. } => {
                (progress.parsed, progress.started) = (true, false);
                Ok(())
            }
            FromWorker::Started { .. } if progress.started => Err(OrderError::Repeated { name }),
            FromWorker::Started { .. } => {
                progress.started = true;
                Ok(())
            }
            // A run may fail before its code has started.
            FromWorker::Inputs { part, .. } => {
                progress.input_bytes += part.len();
                if progress.input_bytes > INPUTS_BYTES_MAX { Err(OrderError::InputsTooLong) } else { Ok(()) }
            }
            FromWorker::Ended { outcome: Err(_), .. } => {
                self.end(run);
                self.commits.retain(|asked| *asked != run);
                self.snapshots.retain(|asked| *asked != run);
                Ok(())
            }
            _ if !progress.started => Err(OrderError::TooEarly { name, missing: "Started" }),
            FromWorker::Javascript { .. } if progress.sent_javascript => Err(OrderError::Repeated { name }),
            FromWorker::Javascript { .. } => {
                progress.sent_javascript = true;
                Ok(())
            }
            FromWorker::Ended { .. } => {
                self.end(run);
                Ok(())
            }
            FromWorker::Output { .. } if progress.dropped_output => Err(OrderError::AfterDropped),
            FromWorker::OutputDropped { .. } if progress.dropped_output => Err(OrderError::Repeated { name }),
            FromWorker::OutputDropped { .. } => {
                progress.dropped_output = true;
                Ok(())
            }
            FromWorker::Call { call, .. } if call.0 != progress.calls + 1 => {
                Err(OrderError::CallNumber { got: *call, expected: progress.calls + 1 })
            }
            FromWorker::Call { call, .. } => {
                progress.calls = call.0;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, run: RunNumber) {
        self.runs.pop_front();
        self.progress = Progress::default();
        self.last_ended = Some(run);
    }
}

/// Accepts the answer to a request about a run that has ended.
fn take(asked: &mut VecDeque<RunNumber>, runs: &VecDeque<RunNumber>, name: &'static str, run: RunNumber) -> Result<(), OrderError> {
    let Some(index) = asked.iter().position(|asked| *asked == run) else { return Err(OrderError::NotAsked { name }) };
    if runs.contains(&run) {
        return Err(OrderError::TooEarly { name, missing: "Ended" });
    }
    asked.remove(index);
    Ok(())
}
