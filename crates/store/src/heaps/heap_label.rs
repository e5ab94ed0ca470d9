//! What is stored beside a heap: the engine that wrote it, and the signature of the server that stored it. In a folder both are in the
//! sidecar, in S3 in the object's metadata.
//!
//! ```text
//! mac = <id of the key, 16 hex digits>:<HMAC-SHA256, 64 hex digits>, over
//!       "heapstead heap 1\0" │ SHA-256 of the payload, which is the heap's key (32) │ 0, or 1 and the engine's id as text
//! ```
//! A checksum shows that a heap is complete. The signature shows that a worker of a server with the same keys wrote it, or that the operator
//! accepted it: V8 does not check a snapshot, so a crafted one can read and write memory outside its objects.

use super::heap_file::Defect;
use crate::blobs::BlobMetadata;
use crate::records::ServerKey;
use heapstead_types::{EngineId, HeapKey, is_lowercase_hex};
use ring::hmac::{self, HMAC_SHA256};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// Separates these signatures from any other use of the key.
const DOMAIN: &[u8] = b"heapstead heap 1\0";
const KEY_ID_DOMAIN: &[u8] = b"heapstead key id 1\0";
const KEY_ID_BYTES: usize = 8;
const MAC_BYTES: usize = 32;
/// The fields of the metadata.
const ENGINE: &str = "engine";
const MAC: &str = "mac";

/// What is stored beside a heap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeapLabel {
    /// The engine that wrote it, if that is known.
    pub engine: Option<EngineId>,
    pub mac: Option<HeapMac>,
}

/// The signature of a heap. It says nothing until it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapMac {
    /// Derived from the key, so that the keys of two databases are never confused.
    key: String,
    mac: [u8; MAC_BYTES],
}

/// Why a heap is not restored although its file is intact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsigned {
    #[error("it has no signature")]
    Missing,
    #[error("it is signed with key {key}, which this database does not have")]
    UnknownKey { key: String },
    #[error("its signature does not match the heap and its engine")]
    Invalid,
}

/// The keys of a database that sign heaps. The newest signs, all verify.
#[derive(Clone)]
pub struct HeapSigner {
    keys: Vec<(String, hmac::Key)>,
}

impl HeapLabel {
    pub fn unsigned(engine: Option<EngineId>) -> Self {
        Self { engine, mac: None }
    }

    pub(crate) fn read(metadata: &BlobMetadata) -> Result<Self, Defect> {
        let bad = |why: String| Defect::Sidecar { why };
        let engine = metadata.get(ENGINE).map(str::parse).transpose();
        let mac = metadata.get(MAC).map(str::parse).transpose();
        Ok(Self {
            engine: engine.map_err(|error: <EngineId as FromStr>::Err| bad(error.to_string()))?,
            mac: mac.map_err(|error: InvalidMac| bad(error.to_string()))?,
        })
    }

    pub(super) fn metadata(&self) -> Result<BlobMetadata, Defect> {
        let fields = [(ENGINE, self.engine.as_ref().map(ToString::to_string)), (MAC, self.mac.as_ref().map(ToString::to_string))];
        fields
            .into_iter()
            .filter_map(|(field, value)| Some((field, value?)))
            .try_fold(BlobMetadata::default(), |metadata, (field, value)| {
                metadata.with(field, value).map_err(|error| Defect::Sidecar { why: error.to_string() })
            })
    }
}

impl HeapSigner {
    /// The newest key is the last. There is at least one.
    pub fn new(keys: &[ServerKey]) -> Self {
        Self { keys: keys.iter().map(|key| (key_id(&key.key), hmac::Key::new(HMAC_SHA256, &key.key))).collect() }
    }

    /// The label of a heap that this server wrote or accepted, with its signature.
    pub fn label(&self, heap: &HeapKey, engine: Option<EngineId>) -> HeapLabel {
        let mac = self.keys.last().map(|(id, key)| {
            let tag = hmac::sign(key, &message(heap, engine.as_ref()));
            let mut mac = [0; MAC_BYTES];
            mac.copy_from_slice(tag.as_ref());
            HeapMac { key: id.clone(), mac }
        });
        HeapLabel { engine, mac }
    }

    /// Checks that the heap and its engine were signed with one of the keys.
    pub fn check(&self, heap: &HeapKey, label: &HeapLabel) -> Result<(), Unsigned> {
        let Some(mac) = &label.mac else { return Err(Unsigned::Missing) };
        let Some((_, key)) = self.keys.iter().find(|(id, _)| *id == mac.key) else {
            return Err(Unsigned::UnknownKey { key: mac.key.clone() });
        };
        // In constant time.
        hmac::verify(key, &message(heap, label.engine.as_ref()), &mac.mac).map_err(|_| Unsigned::Invalid)
    }

    /// Whether the label is valid and signed with the newest key.
    pub fn is_current(&self, heap: &HeapKey, label: &HeapLabel) -> bool {
        let newest = self.keys.last().map(|(id, _)| id);
        self.check(heap, label).is_ok() && label.mac.as_ref().map(|mac| &mac.key) == newest
    }
}

fn message(heap: &HeapKey, engine: Option<&EngineId>) -> Vec<u8> {
    let engine = engine.map_or(vec![0], |engine| [&[1], engine.to_string().as_bytes()].concat());
    [DOMAIN, heap.digest(), &engine].concat()
}

fn key_id(key: &[u8]) -> String {
    let digest = Sha256::new().chain_update(KEY_ID_DOMAIN).chain_update(key).finalize();
    hex::encode(&digest[..KEY_ID_BYTES])
}

impl fmt::Display for HeapMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, hex::encode(self.mac))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`mac` is not a key id and a signature")]
pub struct InvalidMac;

impl FromStr for HeapMac {
    type Err = InvalidMac;

    fn from_str(text: &str) -> Result<Self, InvalidMac> {
        let (key, mac) = text.split_once(':').ok_or(InvalidMac)?;
        if !is_lowercase_hex(key, KEY_ID_BYTES) || !is_lowercase_hex(mac, MAC_BYTES) {
            return Err(InvalidMac);
        }
        let mac = hex::decode(mac).ok().and_then(|mac| mac.try_into().ok()).ok_or(InvalidMac)?;
        Ok(Self { key: key.to_owned(), mac })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(natives: u32) -> EngineId {
        format!("v8-14.6/x86_64/flags-00000001/natives-{natives}-00000002").parse().expect("an engine id")
    }

    fn signer(keys: &[u8]) -> HeapSigner {
        let keys: Vec<_> = keys.iter().map(|fill| ServerKey { id: 1, key: vec![*fill; 32] }).collect();
        HeapSigner::new(&keys)
    }

    fn heap(fill: u8) -> HeapKey {
        HeapKey::from_digest([fill; 32])
    }

    #[test]
    fn a_signature_is_valid_for_one_heap_and_one_engine() {
        let signer = signer(&[1]);
        for engine_of in [None, Some(engine(1))] {
            let label = signer.label(&heap(1), engine_of.clone());
            assert_eq!(signer.check(&heap(1), &label), Ok(()));
            assert_eq!(signer.check(&heap(2), &label), Err(Unsigned::Invalid), "another heap");
            for other in [None, Some(engine(1)), Some(engine(2))].into_iter().filter(|other| *other != engine_of) {
                let swapped = HeapLabel { engine: other, mac: label.mac.clone() };
                assert_eq!(signer.check(&heap(1), &swapped), Err(Unsigned::Invalid), "another engine");
            }
        }
        assert_eq!(signer.check(&heap(1), &HeapLabel::unsigned(Some(engine(1)))), Err(Unsigned::Missing));
    }

    #[test]
    fn the_newest_key_signs_and_older_ones_stay_valid() {
        let (old, rotated, other) = (signer(&[1]), signer(&[1, 2]), signer(&[3]));
        let (by_old, by_new) = (old.label(&heap(1), None), rotated.label(&heap(1), None));
        assert_eq!(rotated.check(&heap(1), &by_old), Ok(()));
        assert!(old.is_current(&heap(1), &by_old) && !rotated.is_current(&heap(1), &by_old) && rotated.is_current(&heap(1), &by_new));
        assert!(matches!(old.check(&heap(1), &by_new), Err(Unsigned::UnknownKey { .. })), "a key that was added elsewhere");
        assert!(matches!(other.check(&heap(1), &by_old), Err(Unsigned::UnknownKey { .. })), "the keys of another database");
    }

    #[test]
    fn every_flipped_bit_of_a_signature_is_noticed() {
        let signer = signer(&[1]);
        let label = signer.label(&heap(1), Some(engine(1)));
        let good = label.mac.clone().expect("signed");
        for bit in 0..MAC_BYTES * 8 {
            let mut forged = good.clone();
            forged.mac[bit / 8] ^= 1 << (bit % 8);
            let forged = HeapLabel { mac: Some(forged), ..label.clone() };
            assert_eq!(signer.check(&heap(1), &forged), Err(Unsigned::Invalid), "bit {bit}");
        }
    }

    #[test]
    fn a_label_is_read_as_it_was_written() {
        for label in [HeapLabel::default(), HeapLabel::unsigned(Some(engine(1))), signer(&[1]).label(&heap(1), Some(engine(1)))] {
            assert_eq!(HeapLabel::read(&label.metadata().expect("metadata")), Ok(label));
        }
        let good = signer(&[1]).label(&heap(1), None).mac.expect("signed").to_string();
        for bad in ["", ":", &good[1..], &good.to_uppercase(), &good.replace(':', "-"), &format!("{good}0"), &"0".repeat(81)] {
            assert_eq!(bad.parse::<HeapMac>(), Err(InvalidMac), "{bad}");
        }
    }
}
