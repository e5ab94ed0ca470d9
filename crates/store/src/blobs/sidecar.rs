//! Metadata of a blob in a folder: `.meta/<name>.json`, an object of texts such as `{"engine":"v8-…/x86_64/flags-…/natives-…"}`.
//!
//! Fields may be added; a reader ignores values that are not texts. Metadata without any field has no sidecar.

use super::metadata::BlobMetadata;
use serde_json::{Map, Value};

/// A sidecar has a few hundred bytes; this leaves room for what it may contain one day.
pub const BYTES_MAX: usize = 64 << 10;

pub fn encode(metadata: &BlobMetadata) -> Vec<u8> {
    // A map of strings always has a JSON form.
    serde_json::to_vec(metadata.fields()).unwrap_or_default()
}

pub fn decode(bytes: &[u8]) -> Result<BlobMetadata, String> {
    let fields: Map<String, Value> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let texts = fields.into_iter().filter_map(|(key, value)| match value {
        Value::String(text) => Some((key, text)),
        _ => None,
    });
    let metadata = BlobMetadata::stored(texts);
    if metadata.is_empty() { Err("it has no fields".into()) } else { Ok(metadata) }
}
