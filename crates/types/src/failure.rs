//! Every reason why an execution can fail, with its text and error code.

use crate::{EngineMismatch, ErrorCode, HeapKey, limits};

/// Ends a process from outside.
const SIGKILL: i32 = 9;

/// The stage a worker had reached when it died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Starting,
    Running,
    Saving,
}

/// Why an execution `failed`. Each text says what happened and what an agent can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    // Caused by the code.
    #[error("{0}")]
    Exception(String),
    #[error("{0}")]
    Syntax(String),
    #[error(
        "the run needed more memory than its cap of {heap_mb} MB: keep less on the heap, or raise `heap_memory_max_mb`, up to the maximum of the server"
    )]
    MemoryCap { heap_mb: u32 },
    #[error(
        "the code awaits a promise that can never settle: nothing is pending that could resolve it (no timer is left, and there is no I/O)"
    )]
    NeverSettles,
    #[error("the result is larger than {max} MiB: return a part of it, or keep it in a variable and print what you need", max = limits::RESULT_BYTES_MAX >> 20)]
    ResultTooLarge,
    #[error("the heap can't be saved: {0}")]
    Unsaveable(String),

    // Caused by the heap.
    #[error("heap {key} is damaged: {why}")]
    HeapDamaged { key: HeapKey, why: String },
    #[error("heap {key} can't be used: {mismatch}")]
    HeapOfAnotherEngine { key: HeapKey, mismatch: EngineMismatch },
    #[error(
        "heap {key} is not restored: {why}. Only heaps that this server wrote, or that its operator accepted, are restored: the operator can accept this one with `heapstead heaps sign {key}`"
    )]
    HeapUnsigned { key: HeapKey, why: String },
    #[error("heap {key} was not found")]
    HeapNotFound { key: HeapKey },
    #[error("the state of the session is lost: its heap is not stored, and its journal is gone. Open another session")]
    StateLost,

    // Caused by the server.
    #[error("{}", crash_text(*.stage, *.signal))]
    WorkerCrashed { stage: Stage, signal: Option<i32> },
    #[error("the worker broke the protocol: {0}")]
    WorkerMisbehaved(String),
    #[error("the process that starts workers died and was replaced; this run is lost: run the code again")]
    ZygoteDied,
    #[error("no worker could be started: {0}")]
    NoWorker(String),
    #[error("storage: {0}")]
    Store(String),
    #[error("storage: {0}")]
    HeapQuota(String),
    #[error("{0}")]
    Unprepared(String),
    /// The state of the session is lost, and the caller wants no other.
    #[error("{0}")]
    Stale(String),
    #[error("the server was shut down before the run ended: run the code again")]
    ServerStopped,
}

impl Failure {
    /// Whether the worker was killed: from outside, or because the machine has no memory left.
    pub fn is_kill(&self) -> bool {
        matches!(self, Self::WorkerCrashed { signal: Some(SIGKILL), .. })
    }

    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Exception(_) => ErrorCode::Exception,
            Self::Syntax(_) => ErrorCode::SyntaxError,
            Self::MemoryCap { .. } => ErrorCode::OutOfMemory,
            Self::NeverSettles => ErrorCode::NeverSettles,
            Self::ResultTooLarge => ErrorCode::ResultTooLarge,
            // Not by anything on the heap.
            _ if self.is_kill() => ErrorCode::WorkerCrashed,
            Self::Unsaveable(_) | Self::WorkerCrashed { stage: Stage::Saving, .. } => ErrorCode::HeapUnsaveable,
            Self::HeapDamaged { .. } => ErrorCode::HeapDamaged,
            Self::HeapOfAnotherEngine { .. } => ErrorCode::HeapIncompatible,
            Self::HeapUnsigned { .. } => ErrorCode::HeapUnsigned,
            Self::HeapNotFound { .. } => ErrorCode::HeapNotFound,
            Self::WorkerCrashed { .. } => ErrorCode::WorkerCrashed,
            Self::WorkerMisbehaved(_) => ErrorCode::WorkerMisbehaved,
            Self::ZygoteDied => ErrorCode::ZygoteDied,
            Self::NoWorker(_) => ErrorCode::WorkerUnavailable,
            Self::Store(_) => ErrorCode::StorageFailed,
            Self::HeapQuota(_) => ErrorCode::HeapQuotaExceeded,
            Self::StateLost | Self::Unprepared(_) => ErrorCode::SessionUnprepared,
            Self::Stale(_) => ErrorCode::SessionStale,
            Self::ServerStopped => ErrorCode::ServerStopped,
        }
    }
}

fn crash_text(stage: Stage, signal: Option<i32>) -> String {
    let how = match signal {
        Some(signal) => format!("signal {signal}"),
        None => "no message".to_owned(),
    };
    match stage {
        // V8 does not end a process like that.
        Stage::Starting | Stage::Saving if signal == Some(SIGKILL) => {
            let when = if stage == Stage::Starting { "before the code began" } else { "while it wrote the heap" };
            format!("the worker was killed ({how}) {when}, by the system if memory is short, or by an operator: try again")
        }
        Stage::Starting => format!(
            "the worker crashed ({how}) before the code began: the source is probably nested too deeply to parse, or the heap can't be restored"
        ),
        Stage::Running => format!(
            "the worker crashed ({how}) while the code ran, which most often means that native code ran out of memory; only this run is affected"
        ),
        Stage::Saving => format!(
            "the heap can't be saved: V8 crashed while it wrote the snapshot ({how}). A value on the heap can't be kept in a snapshot, such as a resizable ArrayBuffer with a maxByteLength of 4 GiB or more; set the variable that holds it to null before the run ends"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Story: of a process that something else had killed, the text blamed the source or the heap.
    #[test]
    fn a_worker_that_was_killed_is_not_blamed_on_its_code() {
        for (stage, when) in [(Stage::Starting, "before the code began"), (Stage::Saving, "while it wrote the heap")] {
            let killed = Failure::WorkerCrashed { stage, signal: Some(9) };
            assert!(killed.to_string().starts_with(&format!("the worker was killed (signal 9) {when}")), "{killed}");
            assert_eq!(killed.code(), ErrorCode::WorkerCrashed);
        }
        let crashed = Failure::WorkerCrashed { stage: Stage::Saving, signal: Some(5) };
        assert_eq!(crashed.code(), ErrorCode::HeapUnsaveable, "{crashed}");
    }
}
