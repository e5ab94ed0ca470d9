//! What of a run, or of an import of catalog entities, goes into the journal.

use heapstead_engine::{Gap, InputsRoom, Recorded, RecordedInputs};
use heapstead_store::records::JournalEntry;
use heapstead_types::{EngineId, HeapKey, Limits, SessionId, SharedText};
use sha2::{Digest, Sha256};

/// Gathered while the run goes on.
#[derive(Debug, Default)]
pub struct RunRecorder {
    output: Sha256,
    input_heap: Option<HeapKey>,
    /// None before the code has started.
    seed: Option<[u8; 32]>,
    recorded: Option<Recorded>,
    /// Of the recorded inputs, until this is dropped.
    _room: InputsRoom,
}

/// What was run, and what it has produced.
pub struct RunEnd<'a> {
    pub code: SharedText,
    pub limits: Limits,
    pub engine: &'a EngineId,
    pub session: Option<SessionId>,
    pub is_import: bool,
    pub heap: Option<HeapKey>,
    /// The result, or the error.
    pub result: &'a str,
    /// Why the run can't be repeated, if it did not come to its own end.
    pub gap: Option<Gap>,
}

impl RunRecorder {
    /// The heap or state that the run starts from, which may be another than it named.
    pub fn starts_from(&mut self, heap: Option<HeapKey>) {
        self.input_heap = heap;
    }

    pub fn started(&mut self, seed: [u8; 32]) {
        self.seed = Some(seed);
    }

    /// Whether the run can be repeated from what was recorded, or why not.
    pub fn is_complete(&self) -> Result<(), &'static str> {
        match &self.recorded {
            None => Err("nothing was recorded of it"),
            Some(recorded) => recorded.inputs.gaps().next().map_or(Ok(()), |gap| Err(gap.describe())),
        }
    }

    /// As the worker sent it: a replay has the same limit, but not the same quota.
    pub fn output(&mut self, bytes: &[u8]) {
        self.output.update(bytes);
    }

    pub fn recorded(&mut self, recorded: Recorded, room: InputsRoom) {
        (self.recorded, self._room) = (Some(recorded), room);
    }

    /// The entry of a run with this result or error. None if its code never started. A run that did not come to its own end can't be repeated:
    /// it would do something else.
    pub fn entry(&mut self, end: RunEnd<'_>) -> Option<JournalEntry> {
        let seed = self.seed?;
        let inputs = match (end.gap, self.recorded.take()) {
            (None, Some(recorded)) => recorded.inputs,
            // A worker that dies has sent nothing.
            (gap, _) => RecordedInputs::missing(gap.unwrap_or(Gap::Lost)),
        };
        Some(JournalEntry {
            session: end.session,
            is_import: end.is_import,
            code: end.code,
            input_heap: self.input_heap,
            output_heap: end.heap,
            limits: end.limits,
            engine: end.engine.clone(),
            seed,
            inputs: inputs.into_bytes(),
            output_sha256: self.output.finalize_reset().into(),
            result_sha256: Sha256::digest(end.result).into(),
        })
    }
}
