//! Entry points for the fuzz targets (`fuzz/` in the repository).

use crate::HeapLabel;
use crate::blobs::{BlobMetadata, sidecar};

pub use crate::heaps::check_start;
pub use crate::peers::LINE_BYTES_MAX as QUESTION_BYTES_MAX;
pub use sidecar::BYTES_MAX as SIDECAR_BYTES_MAX;

/// The engine and the signature in the metadata of a heap.
pub fn label(metadata: &BlobMetadata) -> Option<HeapLabel> {
    HeapLabel::read(metadata).ok()
}

/// The metadata in a sidecar, and the sidecar that it is written to.
pub fn sidecar(bytes: &[u8]) -> Result<(BlobMetadata, Vec<u8>), String> {
    let metadata = sidecar::decode(bytes)?;
    let encoded = sidecar::encode(&metadata);
    Ok((metadata, encoded))
}
