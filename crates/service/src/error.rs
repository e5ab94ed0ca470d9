//! Why something was not done, and whose fault that is. Each edge has one table from these to its own codes.

use heapstead_engine::Refused;
use heapstead_store::outputs::OutputError;
use heapstead_store::{HeapStoreError, MetadataError};
use heapstead_types::LimitError;

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The caller's: names the parameter, the value and what is allowed.
    #[error("{0}")]
    BadInput(String),
    /// As `BadInput`, of more than is taken.
    #[error("{0}")]
    TooLarge(String),
    /// Not there, or not the caller's: the same answer for both.
    #[error("{what} `{name}` is not known")]
    NotFound { what: &'static str, name: String },
    /// As `NotFound`, with what helps.
    #[error("session `{0}` is not known here: call `session_context` first, and use the `logical_session_ref` of its answer")]
    NoSession(String),
    /// One of the caller's own, which is remembered for as long as its executions are.
    #[error("session `{0}` has ended: it was deleted, or it expired because nobody used it. Use another session")]
    SessionEnded(String),
    #[error("{0}")]
    SessionRequired(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("{0}")]
    WrongState(String),
    #[error("{0}")]
    Busy(String),
    #[error("{0}")]
    Unavailable(String),
}

impl ServiceError {
    pub fn bad_cursor(text: &str) -> Self {
        Self::bad_value("cursor", format!("`{text}`"), "expected a `next_cursor` from an earlier answer")
    }

    /// A value that is not one of those allowed. Long values are cut: they are the caller's own and it knows them.
    pub fn bad_value(parameter: &str, value: impl std::fmt::Display, allowed: impl std::fmt::Display) -> Self {
        let value: String = value.to_string().chars().take(VALUE_CHARS_MAX).collect();
        Self::BadInput(format!("`{parameter}` is {value}: {allowed}"))
    }
}

/// How much of a refused value is repeated.
const VALUE_CHARS_MAX: usize = 200;

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
            Refused::QueueFull { .. } => Self::Busy(refused.to_string()),
            Refused::TooLarge { heap_mb, memory_mb_max } => {
                Self::bad_value("heap_memory_max_mb", heap_mb, format!("this server has {memory_mb_max} MB for all executions together"))
            }
        }
    }
}

impl From<MetadataError> for ServiceError {
    fn from(error: MetadataError) -> Self {
        Self::Unavailable(error.to_string())
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
            HeapStoreError::NotFound { key } => Self::NotFound { what: "heap", name: key.to_string() },
            HeapStoreError::Damaged { .. } => Self::WrongState(error.to_string()),
            HeapStoreError::NotAHeap(_) => Self::BadInput(error.to_string()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}
