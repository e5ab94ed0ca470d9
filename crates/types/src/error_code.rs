//! Stable error codes: the one table behind `error_code` in records, `type` in problem documents, `data.code` in JSON-RPC errors and
//! `_meta.heapstead.code` in refused tool calls.
//!
//! A code never changes its meaning and is never reused. Texts may change, so programs should compare codes.

/// Who has to act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The caller sent something that can't be done.
    Caller,
    /// The code that ran failed.
    Code,
    /// The server, its stores or its limits.
    Server,
}

macro_rules! error_codes {
    ($($variant:ident = $name:literal, $fault:ident, $retry:literal, $meaning:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($variant,)* }

        impl ErrorCode {
            /// In the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As it is sent and stored.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub fn fault(self) -> Fault {
                match self { $(Self::$variant => Fault::$fault,)* }
            }

            /// Whether the same request may succeed later without a change.
            pub fn is_retryable(self) -> bool {
                match self { $(Self::$variant => $retry,)* }
            }

            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

error_codes! {
    // Executions that ended without completing.
    Exception = "exception", Code, false, "The code threw an exception that it did not catch.";
    SyntaxError = "syntax_error", Code, false, "The code could not be parsed.";
    OutOfMemory = "out_of_memory", Code, false, "The run needed more memory than `heap_memory_max_mb`.";
    NeverSettles = "never_settles", Code, false, "The code awaits a promise that nothing can settle.";
    ResultTooLarge = "result_too_large", Code, false, "The completion value is larger than a result may be.";
    HeapUnsaveable = "heap_unsaveable", Code, false, "A value on the heap can't be stored in a snapshot.";
    TimedOut = "timed_out", Code, false, "The run took longer than `execution_timeout_secs`.";
    Cancelled = "cancelled", Caller, false, "The run was cancelled.";
    HeapDamaged = "heap_damaged", Server, false, "The heap failed verification and can't be used.";
    HeapUnsigned = "heap_unsigned", Server, false, "The heap has no valid signature of this server, so it is not restored. The operator can sign it with `heapstead heaps sign`.";
    HeapIncompatible = "heap_incompatible", Server, false, "The heap was written by an engine that this one can't continue from.";
    WorkerCrashed = "worker_crashed", Code, true, "The worker process died. Only this run is affected.";
    WorkerMisbehaved = "worker_misbehaved", Server, true, "The worker process violated the protocol and was killed.";
    ZygoteDied = "zygote_died", Server, true, "The process that forks workers died. A new one was started.";
    WorkerUnavailable = "worker_unavailable", Server, true, "No worker process could be started.";
    StorageFailed = "storage_failed", Server, true, "The heap, the output or the record could not be stored.";
    SessionUnprepared = "session_unprepared", Server, true, "The session could not be prepared for the run.";
    ServerStopped = "server_stopped", Server, true, "The server was shut down before the run ended.";
    ServerLost = "server_lost", Server, true, "The server that ran the execution died before the run ended.";

    // Requests that were refused.
    InvalidParameter = "invalid_parameter", Caller, false, "A parameter is missing, unknown or not allowed. The text names it.";
    InvalidRequest = "invalid_request", Caller, false, "The request itself is malformed: body, header, path or method.";
    MethodNotFound = "method_not_found", Caller, false, "This server has no such MCP method, or not in this protocol version.";
    UnsupportedProtocolVersion = "unsupported_protocol_version", Caller, false, "The server does not support this version of MCP.";
    ClientCapabilityRequired = "client_capability_required", Caller, false, "The method requires an MCP capability that the client did not declare.";
    RequestCancelled = "request_cancelled", Caller, false, "The request was cancelled, or its connection closed, before it was answered.";
    TooLarge = "too_large", Caller, false, "The code or the body is larger than allowed.";
    Unauthenticated = "unauthenticated", Caller, false, "The credentials are missing, expired or not accepted.";
    Forbidden = "forbidden", Caller, false, "The caller is not allowed to do this.";
    ExecutionNotFound = "execution_not_found", Caller, false, "The caller has no execution with this id.";
    HeapNotFound = "heap_not_found", Caller, false, "The caller has no heap with this key.";
    SessionNotFound = "session_not_found", Caller, false, "The caller has no session with this handle.";
    ContextNotFound = "context_not_found", Caller, false, "The session has no conversation context.";
    NotFound = "not_found", Caller, false, "There is nothing at this address.";
    SessionEnded = "session_ended", Caller, false, "The session was deleted or has expired.";
    SessionRequired = "session_required", Caller, false, "The server runs code only in sessions.";
    SessionStale = "session_stale", Caller, false, "The session's state was lost and `on_stale` is `fail`.";
    ExecutionEnded = "execution_ended", Caller, false, "The execution has ended, so it can't be cancelled.";
    ExecutionRunning = "execution_running", Caller, true, "The execution has not ended, so it can't be deleted or repeated.";
    NotRecorded = "not_recorded", Caller, false, "The run can't be repeated, because not everything that it read was recorded or still exists.";
    ReplayDiverged = "replay_diverged", Caller, false, "A run did something else when it was repeated on this engine, so the state can't be rebuilt.";
    HeapInUse = "heap_in_use", Caller, true, "A session, a running execution or a heap that is being stored uses the heap, so it can't be deleted.";
    Conflict = "conflict", Caller, false, "The request conflicts with the current state.";
    QueueFull = "queue_full", Server, true, "The queue of executions is full.";
    TooManyExecutions = "too_many_executions", Caller, true, "The owner has the maximum number of running executions.";
    TooManySessions = "too_many_sessions", Caller, false, "The owner has the maximum number of open sessions.";
    HeapQuotaExceeded = "heap_quota_exceeded", Caller, false, "The owner's heaps would exceed their quota.";
    StorageQuotaExceeded = "storage_quota_exceeded", Caller, false, "The owner has as much stored as allowed.";
    TooManySubscriptions = "too_many_subscriptions", Caller, true, "There are as many listeners or subscriptions as allowed.";
    SubscriberLagged = "subscriber_lagged", Caller, true, "The subscriber read too slowly and missed events.";
    Busy = "busy", Server, true, "The server is doing as much of this as it can at once.";
    Unavailable = "unavailable", Server, true, "A store is down, or the server is shutting down.";
    Internal = "internal", Server, false, "A bug in the server. It is logged.";
}

impl ErrorCode {
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_has_a_name_of_its_own_and_is_found_by_it() {
        let names: HashSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_name(code.as_str()), Some(*code));
            assert!(code.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code}");
            assert!(code.meaning().ends_with('.'), "{code}");
        }
        assert_eq!(ErrorCode::from_name("nonsense"), None);
    }
}
