//! Suggests the next step after a failed run, in terms of the command line.

use heapstead_service::ExecutionOutcome;
use heapstead_types::{Failure, limits};

pub fn next_step(end: &ExecutionOutcome) -> Option<String> {
    let failure = match end {
        ExecutionOutcome::Completed { .. } | ExecutionOutcome::Cancelled => return None,
        ExecutionOutcome::TimedOut { .. } => {
            return Some(format!("raise the limit with `--execution-timeout SECONDS`, at most {}", limits::TIMEOUT_SECS_MAX));
        }
        ExecutionOutcome::Failed(failure) => failure,
    };
    Some(match failure {
        Failure::MemoryCap { .. } => format!("raise the cap with `--heap-memory-max MB`, at most {}", limits::HEAP_MB_MAX),
        Failure::HeapNotFound { .. } => {
            "check the key and `--directory-path`, or start with a fresh heap: `--on-missing-heap fresh`".into()
        }
        Failure::HeapDamaged { .. } => {
            "the file is left as it is for inspection; continue from another heap with `--heap`, or start fresh without it".into()
        }
        Failure::HeapUnsigned { .. } => {
            "name the database of the server that wrote it with `--session-db-path DIR`; or, if you trust it, sign it with `heapstead heaps sign KEY`".into()
        }
        Failure::HeapOfAnotherEngine { .. } => "use the heapstead that wrote the heap, or start fresh without `--heap`".into(),
        Failure::Store(_) => "`heapstead doctor` checks the heap folder; `--directory-path DIR` chooses another".into(),
        Failure::NoWorker(_) => "`heapstead doctor` shows what is missing and how to fix it".into(),
        _ => return None,
    })
}
