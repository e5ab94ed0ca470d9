//! Sidecars: metadata is a few texts, and survives being written again; no signature in it is valid, because the fuzzer has no key.

use crate::within;
use heapstead_store::HeapSigner;
use heapstead_store::fuzzing::{SIDECAR_BYTES_MAX, label, sidecar};
use heapstead_store::records::ServerKey;
use heapstead_types::HeapKey;

/// A JSON value takes up to this many times its text.
const FACTOR: usize = 64;

pub fn run(bytes: &[u8]) {
    if bytes.len() > SIDECAR_BYTES_MAX {
        return;
    }
    let Ok((metadata, encoded)) = within(FACTOR * bytes.len() + (4 << 10), || sidecar(bytes)) else { return };
    assert!(!metadata.is_empty());
    let (again, _) = sidecar(&encoded).expect("what was written can be read");
    assert_eq!(again, metadata);
    let signer = HeapSigner::new(&[ServerKey { id: 1, key: vec![9; 32] }]);
    assert!(label(&metadata).is_none_or(|label| signer.check(&HeapKey::from_digest([7; 32]), &label).is_err()), "nobody else has the key");
}
