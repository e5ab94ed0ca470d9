//! Ctrl-C handling: the first cancels the current run; a second one, or one while idle, exits.

use heapstead_engine::Canceller;
use heapstead_types::Failure;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code of an interrupted program by shell convention: 128 plus the signal number.
pub const EXIT_INTERRUPTED: u8 = 130;

/// What an interrupt does while nothing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenIdle {
    Exit,
    /// The line editor reads Ctrl-C as a key and controls the terminal mode.
    Ignore,
}

#[derive(Clone, Default)]
pub struct Interrupts(Arc<Mutex<Activity>>);

#[derive(Default)]
enum Activity {
    #[default]
    Idle,
    Run(Cancellation),
    /// Cancelled, but not yet ended.
    Cancelled,
}

/// How a run is cancelled.
pub enum Cancellation {
    /// By ending its worker.
    Worker(Canceller),
    /// By whoever follows it.
    Request(CancellationToken),
}

/// Guard for one run: while it exists, an interrupt cancels the run.
pub struct Watch<'a>(&'a Interrupts);

impl Interrupts {
    /// Starts listening. Must be called inside the runtime.
    pub fn listen(when_idle: WhenIdle) -> Result<Self, Failure> {
        let interrupts = Self::default();
        let mut signals = signal(SignalKind::interrupt()).map_err(|error| Failure::NoWorker(format!("can't handle Ctrl-C: {error}")))?;
        let listening = interrupts.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let activity = std::mem::replace(&mut *listening.activity(), Activity::Cancelled);
                match activity {
                    Activity::Run(Cancellation::Worker(canceller)) => drop(canceller.cancel().await),
                    Activity::Run(Cancellation::Request(token)) => token.cancel(),
                    Activity::Idle if when_idle == WhenIdle::Ignore => *listening.activity() = Activity::Idle,
                    Activity::Idle | Activity::Cancelled => std::process::exit(EXIT_INTERRUPTED.into()),
                }
            }
        });
        Ok(interrupts)
    }

    /// Until the guard is dropped, an interrupt cancels this run.
    pub fn watch(&self, run: Option<Cancellation>) -> Watch<'_> {
        *self.activity() = run.map_or(Activity::Idle, Activity::Run);
        Watch(self)
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        *self.0.activity() = Activity::Idle;
    }
}
