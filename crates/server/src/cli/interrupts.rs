//! Ctrl-C: cancels the run that is going; a second one, or one when nothing runs, leaves.

use heapstead_engine::Canceller;
use heapstead_types::Failure;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::signal::unix::{SignalKind, signal};

/// What shells expect of a program that was interrupted: 128 and the signal's number.
pub const EXIT_INTERRUPTED: u8 = 130;

/// What an interrupt means while nothing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenIdle {
    Leave,
    /// The line editor reads Ctrl-C as a key, and has the terminal in its own mode.
    GoOn,
}

#[derive(Clone, Default)]
pub struct Interrupts(Arc<Mutex<Going>>);

#[derive(Default)]
enum Going {
    #[default]
    Nothing,
    Run(Canceller),
    /// Cancelled, and not over yet.
    Cancelled,
}

/// Stands for one run; with it goes the right to cancel it.
pub struct Watch<'a>(&'a Interrupts);

impl Interrupts {
    /// Listens from now on. To be called inside the runtime.
    pub fn listen(when_idle: WhenIdle) -> Result<Self, Failure> {
        let interrupts = Self::default();
        let mut signals =
            signal(SignalKind::interrupt()).map_err(|error| Failure::NoWorker(format!("Ctrl-C can't be listened for: {error}")))?;
        let listening = interrupts.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let going = std::mem::replace(&mut *listening.going(), Going::Cancelled);
                match going {
                    Going::Run(canceller) => drop(canceller.cancel().await),
                    Going::Nothing if when_idle == WhenIdle::GoOn => *listening.going() = Going::Nothing,
                    Going::Nothing | Going::Cancelled => std::process::exit(EXIT_INTERRUPTED.into()),
                }
            }
        });
        Ok(interrupts)
    }

    /// From now until the watch is dropped, an interrupt cancels this run.
    pub fn watch(&self, run: Option<Canceller>) -> Watch<'_> {
        *self.going() = run.map_or(Going::Nothing, Going::Run);
        Watch(self)
    }

    fn going(&self) -> MutexGuard<'_, Going> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        *self.0.going() = Going::Nothing;
    }
}
