//! The errors of this crate, by origin: the caller, the record or the store.

use crate::{Document, InvalidSessionId};

/// The caller exceeded a limit or named something that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{parameter}` is {value}: {allowed}")]
pub struct Refused {
    pub parameter: String,
    /// The refused value, shortened if it is long.
    pub value: String,
    pub allowed: String,
}

/// Why stored bytes cannot be read as a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Left unchanged, because a newer version of this crate can read it.
    #[error("the context has schema version {found}, and this server supports versions up to {known}: it is left unchanged")]
    Newer { found: u64, known: u64 },
    #[error("the stored context is damaged: {why}")]
    Damaged { why: String },
}

/// Why a store could not answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The store is temporarily unavailable. This says nothing about what is stored.
    #[error("the context store ({backend}) can't be used now: {why}")]
    Unavailable { backend: &'static str, why: String },
    /// Encrypted under a key that is not in the key file. Left unchanged.
    #[error("the context is encrypted with the key `{key_id}`, which is not in the key file")]
    UnknownKey { key_id: String },
    /// The contexts of the owner would have more bytes than they may. Nothing was changed.
    #[error("the contexts of this owner have {used_bytes} bytes, and may have {bytes_max}")]
    OverQuota { used_bytes: u64, bytes_max: u64 },
    /// Belongs to another tenant. Reported as not found.
    #[error("no such context")]
    ForeignTenant,
    /// Fails authentication for this session: moved, truncated, changed, or an older version replayed.
    #[error("the stored context is refused: {why}")]
    Tampered { why: &'static str, found: Document },
}

/// The errors of [`crate::Contexts`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Always [`Unreadable::Newer`]: damaged records are quarantined and the session continues with a fresh context.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error(transparent)]
    InvalidSessionId(#[from] InvalidSessionId),
    /// A change tried to replace the session id of the record.
    #[error("session_id mismatch: context.session_id does not match key")]
    SessionMismatch,
    /// Another session's context or no context. The error does not say which.
    #[error("no such context")]
    NotFound,
    #[error("the context is {bytes} bytes: at most {max} can be stored")]
    TooLarge { bytes: usize, max: usize },
    #[error("the context was changed concurrently {attempts} times in a row: try again")]
    Contended { attempts: u32 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// Whether the store is unavailable, so that a server continues without the context.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unavailable { .. }))
    }

    /// Whether the owner has as much as it may have.
    pub fn is_over_quota(&self) -> bool {
        matches!(self, Self::Store(StoreError::OverQuota { .. }))
    }
}
