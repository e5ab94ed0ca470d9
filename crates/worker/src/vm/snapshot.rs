//! Takes the snapshot of a run: created by V8, normalised, written to the descriptor that came with the request.

use super::normal_form::{self, UndefinedAddress};
use super::state::State;
use super::{internals, memory};
use crate::confine;
use heapstead_types::Failure;
use heapstead_wire::Written;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

/// Writes the snapshot. Consumes the isolate.
pub fn write(mut isolate: v8::OwnedIsolate, undefined: UndefinedAddress, heap_mb: u32, descriptor: OwnedFd) -> Result<Written, Failure> {
    State::remove(&mut isolate);
    memory::begin_snapshot();
    internals::discard_optimised_code(&mut isolate);
    let blob = isolate.create_blob(v8::FunctionCodeHandling::Keep).ok_or_else(|| Failure::Unsaveable("V8 made no snapshot".into()))?;
    if blob.len() as u64 > confine::snapshot_bytes_max() {
        return Err(over_quota(blob.len() as u64, heap_mb));
    }
    // SAFETY: this function owns the blob, and V8 allocated it writable.
    normal_form::normalize(unsafe { std::slice::from_raw_parts_mut(blob.as_ptr().cast_mut(), blob.len()) }, undefined);
    let unwritable = |error: std::io::Error| Failure::Unsaveable(format!("the snapshot of {} bytes can't be written: {error}", blob.len()));
    File::from(descriptor).write_all(&blob).map_err(unwritable)?;
    let written = Written { length: blob.len() as u64, sha256: Sha256::digest(&*blob).into() };
    // The process exits soon, which frees the blob faster.
    std::mem::forget(blob);
    Ok(written)
}

fn over_quota(bytes: u64, heap_mb: u32) -> Failure {
    let (taken_mb, allowed_mb) = (bytes.div_ceil(1 << 20), confine::snapshot_bytes_max() >> 20);
    Failure::Unsaveable(format!(
        "its snapshot takes {taken_mb} MB, and with a cap of {heap_mb} MB it may take {allowed_mb} MB: keep less (buffers count), or raise `heap_memory_max_mb`"
    ))
}
