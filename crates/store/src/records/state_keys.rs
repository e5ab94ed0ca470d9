//! Keys that encrypt the session state that clients carry. Keys are never deleted, so that older states can still be decrypted.

use super::RecordsError;
use async_trait::async_trait;
use jiff::Timestamp;

/// A key and its number; newer keys have higher numbers.
#[derive(Clone, PartialEq, Eq)]
pub struct StateKey {
    pub id: i64,
    pub key: Vec<u8>,
}

#[async_trait]
pub trait StateKeyRecords: Send + Sync {
    /// All keys, the newest last.
    async fn state_keys(&self) -> Result<Vec<StateKey>, RecordsError>;

    /// As `state_keys`, after adding `first` if there is none yet. Two servers that start at once get the same key.
    async fn state_keys_or(&self, first: Vec<u8>, at: Timestamp) -> Result<Vec<StateKey>, RecordsError>;

    async fn add_state_key(&self, key: Vec<u8>, at: Timestamp) -> Result<(), RecordsError>;
}
