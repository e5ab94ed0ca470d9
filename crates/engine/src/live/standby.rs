//! A standby: an earlier clone of the base, and the turns that the base has completed since. If the next turn fails, the standby repeats them and
//! takes the place of the base. Repeating a short turn costs a fraction of a clone, and most turns never have to be repeated.

use super::Process;
use crate::engine::{Job, Recorded};
use heapstead_types::Failure;
use heapstead_wire::{Decoder, FromWorker, Replay, RunNumber, RunSettings, ToWorker};
use std::borrow::Cow;
use std::time::Duration;

/// Bounds of what a standby is behind. With more, it is replaced by a new clone. Together they take less time than anyone notices, when a turn
/// fails, and less memory of the server than the processes of the session.
const TURNS_MAX: usize = 16;
const RUN_TIME_MAX: Duration = Duration::from_millis(20);
pub const BYTES_MAX: usize = 32 << 10;

/// Repeating all of them takes about [`RUN_TIME_MAX`]. On a machine that is overloaded it may take longer.
const TIMEOUT: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 4096;

#[derive(Debug)]
pub struct Standby {
    pub process: Process,
    /// The turns since it was cloned.
    behind: Vec<ShortTurn>,
}

/// A completed turn that can be repeated quickly.
#[derive(Debug)]
pub struct ShortTurn {
    run: RunNumber,
    code: String,
    output_bytes_max: u64,
    recorded: Recorded,
    result: String,
    output: Vec<u8>,
    ran: Duration,
    /// Of all the above.
    bytes: usize,
}

/// The output and the inputs of a turn, gathered while it runs.
#[derive(Debug, Default)]
pub struct Observed {
    output: Vec<u8>,
    recorded: Option<Recorded>,
}

impl Observed {
    /// False if the output is too long.
    pub fn output(&mut self, text: &[u8]) -> bool {
        self.output.extend_from_slice(text);
        self.output.len() <= BYTES_MAX
    }

    pub fn recorded(&mut self, recorded: &Recorded) {
        let is_short = recorded.inputs.as_bytes().len() <= BYTES_MAX;
        self.recorded = (is_short && recorded.inputs.is_complete()).then(|| recorded.clone());
    }
}

impl ShortTurn {
    /// None if the turn is too long, or can't be repeated.
    pub fn new(run: RunNumber, job: &Job, observed: Observed, result: &str, ran: Duration) -> Option<Self> {
        let recorded = observed.recorded?;
        let bytes = job.code.len() + recorded.inputs.as_bytes().len() + result.len() + observed.output.len();
        (bytes <= BYTES_MAX && ran <= RUN_TIME_MAX).then(|| Self {
            run,
            code: job.code.to_string(),
            output_bytes_max: job.limits.output_bytes_max,
            recorded,
            result: result.to_owned(),
            output: observed.output,
            ran,
            bytes,
        })
    }

    fn request(&self) -> ToWorker<'_> {
        let settings = RunSettings { output_bytes_max: self.output_bytes_max, seed: self.recorded.seed, headers: Vec::new() };
        let replay = Some(Replay { inputs: Cow::Borrowed(&self.recorded.inputs), form: None });
        ToWorker::Run { run: self.run, settings: Cow::Owned(settings), replay, code: Cow::Borrowed(&self.code) }
    }
}

impl Standby {
    pub fn new(process: Process) -> Self {
        Self { process, behind: Vec::new() }
    }

    /// Notes that the base has completed a turn. False if this is too far behind then, and of no use any more.
    pub fn note(&mut self, turn: ShortTurn) -> bool {
        self.behind.push(turn);
        let (bytes, ran) = self.behind.iter().fold((0, Duration::ZERO), |(bytes, ran), turn| (bytes + turn.bytes, ran + turn.ran));
        self.behind.len() <= TURNS_MAX && bytes <= BYTES_MAX && ran <= RUN_TIME_MAX
    }

    /// Repeats the turns that the base has completed. If this fails, the process is of no use any more.
    pub async fn catch_up(&mut self) -> Result<(), Failure> {
        let Self { process, behind } = self;
        let repeat = async {
            for turn in std::mem::take(behind) {
                process.repeat(&turn).await?;
            }
            Ok(())
        };
        let too_slow = |_| Failure::NoWorker(format!("the standby of a live worker did not catch up in {} s", TIMEOUT.as_secs()));
        tokio::time::timeout(TIMEOUT, repeat).await.map_err(too_slow)?
    }
}

impl Process {
    async fn repeat(&mut self, turn: &ShortTurn) -> Result<(), Failure> {
        self.send(&[turn.request()], &[]).await?;
        let (mut decoder, mut buffer) = (Decoder::default(), vec![0; READ_BYTES]);
        let (mut output, gone) = (Vec::new(), || Failure::NoWorker("the standby of a live worker has ended".into()));
        let result = loop {
            let misbehaved = |what: String| Failure::WorkerMisbehaved(what);
            match decoder.next_message().map_err(|error| misbehaved(error.to_string()))? {
                Some(message) => {
                    self.state.accept(&message).map_err(|error| misbehaved(error.to_string()))?;
                    match message {
                        FromWorker::Output { text, .. } if output.len() <= BYTES_MAX => output.extend(text),
                        FromWorker::Ended { outcome, .. } => break outcome,
                        _ => {}
                    }
                }
                None => match self.worker.read(&mut buffer).await {
                    Ok(0) | Err(_) => return Err(gone()),
                    Ok(count) => decoder.push(&buffer[..count]),
                },
            }
        };
        if result.as_ref() != Ok(&turn.result) || output != turn.output {
            // The journal has every turn, so the session is resumed from there.
            tracing::error!(run = %turn.run, "a repeated turn of a live worker differs from the turn");
            return Err(Failure::NoWorker("a turn could not be repeated".into()));
        }
        (self.run, self.commit_due) = (Some(turn.run), Some(turn.run));
        Ok(())
    }
}
