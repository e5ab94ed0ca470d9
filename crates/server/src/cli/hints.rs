//! The next step after an end that was not the wanted one, in terms of the command line.

use heapstead_service::End;
use heapstead_types::{Failure, limits};

pub fn next_step(end: &End) -> Option<String> {
    let failure = match end {
        End::Completed { .. } | End::Cancelled => return None,
        End::TimedOut { .. } => {
            return Some(format!("raise the limit with `--execution-timeout SECONDS`, at most {}", limits::TIMEOUT_SECS_MAX));
        }
        End::Failed(failure) => failure,
    };
    Some(match failure {
        Failure::MemoryCap { .. } => format!("raise the cap with `--heap-memory-max MB`, at most {}", limits::HEAP_MB_MAX),
        Failure::HeapNotFound { .. } => "check the key and `--directory-path`, or begin fresh with `--on-missing-heap fresh`".into(),
        Failure::HeapDamaged { .. } => {
            "the file is left as it is for inspection; go on from another heap with `--heap`, or begin fresh without it".into()
        }
        Failure::HeapOfAnotherEngine { .. } => "use the heapstead that wrote the heap, or begin fresh without `--heap`".into(),
        Failure::Store(_) => "`heapstead doctor` checks the heap folder; `--directory-path DIR` chooses another".into(),
        Failure::NoWorker(_) => "`heapstead doctor` tells what is missing, and how to get it".into(),
        _ => return None,
    })
}
