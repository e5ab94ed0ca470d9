//! A record in its stored form: bytes that are parsed on demand.

use crate::limits::RECORD_BYTES_MAX;
use crate::{Error, Record, Unreadable, migration};
use bytes::Bytes;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Cheap to clone. Parsed at most once, and only when its record is needed.
#[derive(Clone)]
pub struct Document(Arc<Inner>);

struct Inner {
    bytes: Bytes,
    record: OnceLock<Result<Arc<Record>, Unreadable>>,
    /// The encrypted bytes it was decrypted from, which the underlying store compares.
    sealed: Option<Bytes>,
}

impl Document {
    /// From the bytes of a store.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self::with(bytes.into(), OnceLock::new(), None)
    }

    /// From a record that is to be stored.
    pub fn of(record: Record) -> Result<Self, Error> {
        let bytes = serde_json::to_vec(&record).unwrap_or_default();
        if bytes.is_empty() || bytes.len() > RECORD_BYTES_MAX {
            return Err(Error::TooLarge { bytes: bytes.len(), max: RECORD_BYTES_MAX });
        }
        Ok(Self::with(bytes.into(), OnceLock::from(Ok(Arc::new(record))), None))
    }

    pub(crate) fn opened(bytes: impl Into<Bytes>, sealed: Bytes) -> Self {
        Self::with(bytes.into(), OnceLock::new(), Some(sealed))
    }

    fn with(bytes: Bytes, record: OnceLock<Result<Arc<Record>, Unreadable>>, sealed: Option<Bytes>) -> Self {
        Self(Arc::new(Inner { bytes, record, sealed }))
    }

    /// The JSON of the record or, below encryption, its envelope.
    pub fn bytes(&self) -> &Bytes {
        &self.0.bytes
    }

    /// The record, migrated to the current version.
    pub fn record(&self) -> Result<Arc<Record>, Unreadable> {
        self.0.record.get_or_init(|| migration::read(&self.0.bytes).map(Arc::new)).clone()
    }

    pub(crate) fn is_parsed(&self) -> bool {
        self.0.record.get().is_some()
    }

    /// The encrypted form that the underlying store holds.
    pub(crate) fn as_sealed(&self) -> Self {
        self.0.sealed.clone().map_or_else(|| self.clone(), Self::from_bytes)
    }

    pub(crate) fn sealed(&self) -> Option<&Bytes> {
        self.0.sealed.as_ref()
    }

    /// Memory use: the bytes, and the record if it has been parsed.
    pub fn memory_bytes(&self) -> usize {
        let parsed = self.0.record.get().and_then(|record| record.as_ref().ok()).map_or(0, |record| record.memory_bytes());
        size_of::<Inner>() + self.0.bytes.len() + self.0.sealed.as_ref().map_or(0, Bytes::len) + parsed
    }
}

/// Byte equality.
impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.bytes == other.0.bytes
    }
}

/// Shows no contents, because they must not appear in logs.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} bytes)", self.0.bytes.len())
    }
}
