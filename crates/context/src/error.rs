//! What can go wrong, and whose it is: the caller's, the record's, or the store's.

use crate::{Document, InvalidSessionId};

/// A caller asked for something past a bound, or for something that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{parameter}` is {value}: {allowed}")]
pub struct Refused {
    pub parameter: String,
    /// What it is, shortened where it is long.
    pub value: String,
    pub allowed: String,
}

/// Why the bytes in a store are not a record for us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Left untouched: whoever wrote it can read it.
    #[error("the context has schema version {found}, and this server knows versions up to {known}: it is left as it is")]
    Newer { found: u64, known: u64 },
    #[error("the stored context is damaged: {why}")]
    Damaged { why: String },
}

/// What a store answers when it has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Can't tell now. It may be better in a moment, and nothing is said about what is stored.
    #[error("the context store ({backend}) can't be used now: {why}")]
    Unavailable { backend: &'static str, why: String },
    /// Encrypted under a key that is not in the key file. Left untouched.
    #[error("the context is encrypted with the key `{key_id}`, which is not in the key file")]
    UnknownKey { key_id: String },
    /// It belongs to another tenant, and answers as something that does not exist.
    #[error("no such context")]
    ForeignTenant,
    /// Not what was encrypted for this session: swapped, cut short, changed, or an older one put back.
    #[error("the stored context is refused: {why}")]
    Tampered { why: &'static str, found: Document },
}

/// What [`crate::Contexts`] answers.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Only ever [`Unreadable::Newer`]: what is damaged is put aside, and the session goes on with a fresh context.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error(transparent)]
    InvalidSessionId(#[from] InvalidSessionId),
    /// A change tried to give the record another id.
    #[error("session_id mismatch: context.session_id does not match key")]
    SessionMismatch,
    /// Another session's context, or none at all: nobody is told which.
    #[error("no such context")]
    NotFound,
    #[error("the context is {bytes} bytes: at most {max} can be kept")]
    TooLarge { bytes: usize, max: usize },
    #[error("the context was changed by others {attempts} times in a row: try again")]
    Contended { attempts: u32 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// Whether the store could not be reached, so that a server skips the context and goes on.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unavailable { .. }))
    }
}
