//! Why a request was refused. Each error has a stable code; each protocol has one table from these to its own status
//! codes: `server/src/http/problem.rs`, `server/src/mcp/error.rs`.

use heapstead_engine::Refused;
use heapstead_store::outputs::OutputError;
use heapstead_store::{HeapStoreError, RecordsError};
use heapstead_types::{ErrorCode, LimitError};

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The caller's mistake: the text names the parameter, the value and what is allowed.
    #[error("{0}")]
    BadInput(String),
    /// As `BadInput`, for something larger than allowed.
    #[error("{0}")]
    TooLarge(String),
    /// It does not exist or belongs to another owner: the same error for both.
    #[error("{what} `{name}` is not known")]
    NotFound { what: Noun, name: String },
    /// As `NotFound`, for the handle of a logical session.
    #[error("session `{0}` is not known: call `session_context` first, and use the `logical_session_ref` of its result")]
    UnknownHandle(String),
    /// A session of the caller's own, which is remembered as long as its executions are.
    #[error("session `{0}` has ended: it was deleted, or it expired because it was not used. Use another session")]
    SessionEnded(String),
    #[error("this server runs code in sessions only: open one, and name it in the call")]
    SessionRequired,
    #[error("there is no session here: name one with `session`, or with the header X-MCP-Session-Id")]
    NoSession,
    #[error("{0}")]
    Forbidden(String),
    /// The request conflicts with the current state.
    #[error("{text}")]
    Conflict { code: ErrorCode, text: String },
    /// A limit is reached. Retrying may help, as the code says.
    #[error("{text}")]
    Busy { code: ErrorCode, text: String },
    #[error("{0}")]
    Unavailable(String),
}

/// What was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noun {
    Execution,
    Heap,
    /// A heap of the caller's that is not in the given session.
    HeapInSession,
    Session,
    Context,
}

impl Noun {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Execution => "execution",
            Self::Heap => "heap",
            Self::HeapInSession => "heap in this session",
            Self::Session => "session",
            Self::Context => "context",
        }
    }

    fn code(self) -> ErrorCode {
        match self {
            Self::Execution => ErrorCode::ExecutionNotFound,
            Self::Heap | Self::HeapInSession => ErrorCode::HeapNotFound,
            Self::Session => ErrorCode::SessionNotFound,
            Self::Context => ErrorCode::ContextNotFound,
        }
    }
}

impl std::fmt::Display for Noun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much of a name that was not found is repeated.
const NAME_CHARS_MAX: usize = 80;
/// How much of a refused value is repeated.
const VALUE_CHARS_MAX: usize = 200;

impl ServiceError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::BadInput(_) => ErrorCode::InvalidParameter,
            Self::TooLarge(_) => ErrorCode::TooLarge,
            Self::NotFound { what, .. } => what.code(),
            Self::UnknownHandle(_) => ErrorCode::SessionNotFound,
            Self::SessionEnded(_) => ErrorCode::SessionEnded,
            Self::SessionRequired | Self::NoSession => ErrorCode::SessionRequired,
            Self::Forbidden(_) => ErrorCode::Forbidden,
            Self::Conflict { code, .. } | Self::Busy { code, .. } => *code,
            Self::Unavailable(_) => ErrorCode::Unavailable,
        }
    }

    pub fn not_found(what: Noun, name: &str) -> Self {
        Self::NotFound { what, name: name.chars().take(NAME_CHARS_MAX).collect() }
    }

    pub fn unknown_handle(handle: &str) -> Self {
        Self::UnknownHandle(handle.chars().take(NAME_CHARS_MAX).collect())
    }

    pub fn bad_cursor(text: &str) -> Self {
        Self::bad_value("cursor", format!("`{text}`"), "expected a `next_cursor` from an earlier answer")
    }

    /// A value that is not allowed. Long values are cut.
    pub fn bad_value(parameter: &str, value: impl std::fmt::Display, allowed: impl std::fmt::Display) -> Self {
        let value: String = value.to_string().chars().take(VALUE_CHARS_MAX).collect();
        Self::BadInput(format!("`{parameter}` is {value}: {allowed}"))
    }

    pub fn busy(code: ErrorCode, text: impl Into<String>) -> Self {
        Self::Busy { code, text: text.into() }
    }

    pub fn conflict(code: ErrorCode, text: impl Into<String>) -> Self {
        Self::Conflict { code, text: text.into() }
    }

    pub fn shutting_down() -> Self {
        Self::Unavailable("the server is shutting down".into())
    }
}

impl From<LimitError> for ServiceError {
    fn from(error: LimitError) -> Self {
        match error {
            LimitError::CodeTooLong { .. } => Self::TooLarge(error.to_string()),
            LimitError::OutOfRange { .. } | LimitError::CodeEmpty => Self::BadInput(error.to_string()),
        }
    }
}

impl From<Refused> for ServiceError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::QueueFull { .. } | Refused::SourceFull { .. } => Self::busy(ErrorCode::QueueFull, refused.to_string()),
            Refused::TooLarge { heap_mb, worker_mb, memory_mb_max } => {
                let allowed = format!("its worker may use {worker_mb} MB, and on this server one run may use {memory_mb_max} MB");
                Self::bad_value("heap_memory_max_mb", heap_mb, allowed)
            }
        }
    }
}

impl From<RecordsError> for ServiceError {
    fn from(error: RecordsError) -> Self {
        match error {
            RecordsError::OverQuota { .. } => Self::busy(ErrorCode::StorageQuotaExceeded, error.to_string()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<OutputError> for ServiceError {
    fn from(error: OutputError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<HeapStoreError> for ServiceError {
    fn from(error: HeapStoreError) -> Self {
        match error {
            HeapStoreError::NotFound { key } => Self::not_found(Noun::Heap, &key.to_string()),
            HeapStoreError::Damaged { .. } => Self::conflict(ErrorCode::HeapDamaged, error.to_string()),
            HeapStoreError::Unsigned { .. } => Self::conflict(ErrorCode::HeapUnsigned, error.to_string()),
            HeapStoreError::NotAHeap(_) => Self::BadInput(error.to_string()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

/// Runs blocking work on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(ServiceError::Unavailable(error.to_string())))
}
