//! The state that a client carries for its session: the last head that it knows, encrypted, so that it can be neither read nor forged.
//!
//! ```text
//! hex of: version (1) │ key id (8) │ sealed (see `heapstead-aead`), with the session's id as associated data: sequence (8) │ head (32 or 0)
//! ```
//! The session's record is authoritative. The state only shows whether a client is behind.

use super::Sessions;
use crate::ServiceError;
use heapstead_aead::AeadKey;
use heapstead_store::records::{Head, OpenedSession, ServerKey};
use heapstead_types::{HeapKey, SessionId};

/// The maximum of the protocol; ours is much smaller.
pub const STATE_BYTES_MAX: usize = 4096;

const VERSION: u8 = 1;
const KEY_ID_BYTES: usize = 8;
const SEQUENCE_BYTES: usize = 8;

impl Sessions<'_> {
    /// The state that a client of this session should carry now.
    pub async fn seal_state(&self, session: &OpenedSession) -> Result<String, ServiceError> {
        let keys = self.0.state_keys.keys().await?;
        let key = keys.last().ok_or_else(|| ServiceError::Unavailable("there is no key to encrypt the session's state with".into()))?;
        seal(key, session.id, &plain(session.head()))
            .ok_or_else(|| ServiceError::Unavailable("the session's state can't be encrypted".into()))
    }

    /// Decrypts the state that a client carries. A state that was not encrypted for this session is refused.
    pub async fn open_state(&self, session: SessionId, text: &str) -> Result<Head, ServiceError> {
        let sealed = Sealed::parse(text).ok_or_else(refused)?;
        let key = match sealed.key_of(&self.0.state_keys.keys().await?) {
            Some(key) => key,
            None => sealed.key_of(&self.0.state_keys.reload().await?).ok_or_else(refused)?,
        };
        open(&key, session, &sealed).ok_or_else(refused)
    }

    /// New states are encrypted with a new key from now on. Older states stay valid.
    pub async fn rotate_state_key(&self) -> Result<(), ServiceError> {
        Ok(self.0.state_keys.rotate().await?)
    }
}

/// The same error for every fault, so that it reveals nothing about the key.
fn refused() -> ServiceError {
    ServiceError::BadInput("`state` is not what this session's last answer said: send it back as it came, or leave it out".into())
}

/// The content of a state before it is encrypted.
pub(crate) fn plain(head: Head) -> Vec<u8> {
    let heap = head.heap.iter().flat_map(HeapKey::digest);
    head.sequence.to_be_bytes().iter().chain(heap).copied().collect()
}

/// A parsed state.
pub(crate) struct Sealed {
    key: i64,
    sealed: Vec<u8>,
}

impl Sealed {
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = hex::decode(text).ok().filter(|bytes| hex::encode(bytes) == text)?;
        let (version, rest) = bytes.split_first()?;
        let (key, rest) = rest.split_first_chunk::<KEY_ID_BYTES>()?;
        (*version == VERSION).then(|| Self { key: i64::from_be_bytes(*key), sealed: rest.to_vec() })
    }

    /// The key that it names.
    pub fn key_of(&self, keys: &[ServerKey]) -> Option<ServerKey> {
        keys.iter().find(|key| key.id == self.key).cloned()
    }
}

pub(crate) fn seal(key: &ServerKey, session: SessionId, plain: &[u8]) -> Option<String> {
    let mut state = vec![VERSION];
    state.extend(key.id.to_be_bytes());
    AeadKey::new(&key.key).ok()?.seal(session.to_string().as_bytes(), plain, &mut state).ok()?;
    Some(hex::encode(state))
}

pub(crate) fn open(key: &ServerKey, session: SessionId, state: &Sealed) -> Option<Head> {
    let plain = AeadKey::new(&key.key).ok()?.open(session.to_string().as_bytes(), &state.sealed).ok()?;
    let (sequence, heap) = plain.split_first_chunk::<SEQUENCE_BYTES>()?;
    let heap = if heap.is_empty() { None } else { Some(HeapKey::from_digest(heap.try_into().ok()?)) };
    Some(Head { sequence: u64::from_be_bytes(*sequence), heap })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapstead_aead::KEY_BYTES;

    fn key(id: i64) -> ServerKey {
        ServerKey { id, key: vec![id as u8; KEY_BYTES] }
    }

    fn session(number: u8) -> SessionId {
        SessionId::from_random([number; 32])
    }

    fn opened(key: &ServerKey, session: SessionId, text: &str) -> Option<Head> {
        Sealed::parse(text).and_then(|sealed| open(key, session, &sealed))
    }

    fn sealed() -> String {
        seal(&key(7), session(1), &[5u64.to_be_bytes().as_slice(), &[9; 32]].concat()).expect("sealed")
    }

    #[test]
    fn what_was_sealed_for_a_session_opens_for_it_and_says_how_far_it_was() {
        let sealed = sealed();
        assert!(sealed.len() <= STATE_BYTES_MAX);
        assert_eq!(Sealed::parse(&sealed).expect("a state").key, 7);
        assert_eq!(opened(&key(7), session(1), &sealed), Some(Head { sequence: 5, heap: Some(HeapKey::from_digest([9; 32])) }));
    }

    #[test]
    fn another_session_or_key_opens_nothing() {
        assert_eq!(opened(&key(7), session(2), &sealed()), None);
        assert_eq!(opened(&key(8), session(1), &sealed()), None);
    }

    #[test]
    fn every_flipped_bit_and_every_lost_end_is_noticed() {
        let sealed = sealed();
        let bytes = hex::decode(&sealed).expect("hex");
        for at in 0..bytes.len() * 8 {
            let mut forged = bytes.clone();
            forged[at / 8] ^= 1 << (at % 8);
            // The key's number is looked up before: another number is another key.
            if (1..=KEY_ID_BYTES).contains(&(at / 8)) {
                assert_ne!(Sealed::parse(&hex::encode(forged)).expect("a state").key, 7);
            } else {
                assert_eq!(opened(&key(7), session(1), &hex::encode(forged)), None, "bit {at}");
            }
        }
        assert_eq!(opened(&key(7), session(1), &sealed.to_uppercase()), None, "sent back as it came");
        for length in 0..sealed.len() {
            assert_eq!(opened(&key(7), session(1), &sealed[..length]), None, "{length} digits");
        }
    }

    fn stores(folder: &std::path::Path) -> crate::Stores {
        use crate::{Policy, Stores};
        use heapstead_store::{Database, HeapStore, Owner};
        let heaps = HeapStore::in_folder(&folder.join("heaps"), Owner::Anyone).expect("heaps");
        let database = Database::open(&folder.join("database"), Owner::Anyone).expect("a database");
        Stores::open(heaps, database, Policy::default())
    }

    #[tokio::test]
    async fn keys_are_made_once_shared_and_rotated_without_refusing_what_older_ones_sealed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (stores(folder.path()), stores(folder.path()));
        let (one, other) = (one.sessions(), other.sessions());
        let caller = crate::Caller::default();
        let session = one.open(&caller).await.expect("a session");
        let old = one.seal_state(&session).await.expect("sealed");
        assert_eq!(other.open_state(session.id, &old).await.ok(), Some(Head { sequence: 0, heap: None }), "by the other process");
        one.rotate_state_key().await.expect("a new key");
        let new = one.seal_state(&session).await.expect("sealed");
        assert_ne!(Sealed::parse(&old).map(|state| state.key), Sealed::parse(&new).map(|state| state.key));
        for state in [&old, &new] {
            for sessions in [&one, &other] {
                assert_eq!(sessions.open_state(session.id, state).await.ok(), Some(Head { sequence: 0, heap: None }));
            }
        }
        let met = other.seal_state(&session).await.expect("sealed");
        assert_eq!(Sealed::parse(&met).map(|state| state.key), Sealed::parse(&new).map(|state| state.key), "once it met the new one");
    }

    #[test]
    fn two_states_of_one_head_differ() {
        assert_ne!(sealed(), sealed());
    }
}
