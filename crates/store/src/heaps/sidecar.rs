//! What is known about a heap beside its bytes: `.meta/<key>.json`, `{ "engine": "v8-…/x86_64/flags-…/natives-…" }`.
//!
//! Further fields may come; a reader passes over those it does not know.

use super::heap_file::Defect;
use heapstead_types::EngineId;

/// A sidecar is a few hundred bytes; this leaves room for what it may hold one day.
pub const BYTES_MAX: usize = 64 << 10;

#[derive(serde::Serialize, serde::Deserialize)]
struct Sidecar {
    engine: String,
}

pub fn encode(engine: &EngineId) -> Vec<u8> {
    let sidecar = Sidecar { engine: engine.to_string() };
    // A struct of strings always has a JSON form.
    serde_json::to_vec(&sidecar).unwrap_or_default()
}

pub fn decode(bytes: &[u8]) -> Result<EngineId, Defect> {
    let damaged = |why: String| Defect::Sidecar { why };
    let sidecar: Sidecar = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    sidecar.engine.parse().map_err(|error: <EngineId as std::str::FromStr>::Err| damaged(error.to_string()))
}
