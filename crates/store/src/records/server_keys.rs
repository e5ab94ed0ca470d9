//! Secret keys that all servers on one database share. The keys of one purpose are a ring: the newest is used, older ones stay valid.

use super::RecordsError;
use async_trait::async_trait;
use jiff::Timestamp;

/// What a key is used for. No key serves two purposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPurpose {
    /// Encrypts the session state that clients carry.
    SessionState,
    /// Signs heaps.
    Heaps,
}

impl KeyPurpose {
    /// As it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionState => "session_state",
            Self::Heaps => "heaps",
        }
    }
}

/// A key and its number; newer keys have higher numbers.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerKey {
    pub id: i64,
    pub key: Vec<u8>,
}

#[async_trait]
pub trait ServerKeyRecords: Send + Sync {
    /// All keys, the newest last.
    async fn server_keys(&self, purpose: KeyPurpose) -> Result<Vec<ServerKey>, RecordsError>;

    /// As `server_keys`, after adding `first` if there is none yet. Two servers that start at once get the same key.
    async fn server_keys_or(&self, purpose: KeyPurpose, first: Vec<u8>, at: Timestamp) -> Result<Vec<ServerKey>, RecordsError>;

    async fn add_server_key(&self, purpose: KeyPurpose, key: Vec<u8>, at: Timestamp) -> Result<(), RecordsError>;
}
