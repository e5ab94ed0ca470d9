//! Suggests the next step after a failed run, in terms of the command line.

use heapstead_types::{ErrorCode, limits};

pub fn next_step(error: ErrorCode) -> Option<String> {
    Some(match error {
        ErrorCode::TimedOut => format!("raise the limit with `--execution-timeout SECONDS`, at most {}", limits::TIMEOUT_SECS_MAX),
        ErrorCode::OutOfMemory => format!("raise the cap with `--heap-memory-max MB`, at most {}", limits::HEAP_MB_MAX),
        ErrorCode::HeapNotFound => "check the key and `--directory-path`, or start with a fresh heap: `--on-missing-heap fresh`".into(),
        ErrorCode::HeapDamaged => {
            "the file is left as it is for inspection; continue from another heap with `--heap`, or start fresh without it".into()
        }
        ErrorCode::HeapUnsigned => {
            "name the database of the server that wrote it with `--session-db-path DIR`; or, if you trust it, sign it with `heapstead heaps sign KEY`".into()
        }
        ErrorCode::HeapIncompatible => "use the heapstead that wrote the heap, or start fresh without `--heap`".into(),
        ErrorCode::StorageFailed => "`heapstead doctor` checks the heap folder; `--directory-path DIR` chooses another".into(),
        ErrorCode::WorkerUnavailable => "`heapstead doctor` shows what is missing and how to fix it".into(),
        _ => return None,
    })
}
