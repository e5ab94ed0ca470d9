//! What of a run, or of an import of catalog entities, goes into the journal.

use heapstead_engine::{Gap, Javascript, RecordedInputs, Recording, RecordingRoom, ScriptForm};
use heapstead_store::records::JournalEntry;
use heapstead_types::{EngineId, HeapKey, Limits, SessionId, SharedText, limits};
use sha2::{Digest, Sha256};

/// Gathered while the run goes on.
#[derive(Debug, Default)]
pub struct RunRecorder {
    output: Sha256,
    input_heap: Option<HeapKey>,
    /// None before the code has started.
    seed: Option<[u8; 32]>,
    inputs: Option<RecordedInputs>,
    /// None if V8 has compiled nothing, or its worker has died.
    javascript: Option<RanJavascript>,
    /// Of the recording, until this is dropped.
    _room: RecordingRoom,
}

/// What was run, and what it has produced.
pub struct RunEnd<'a> {
    /// As it was sent.
    pub source: SharedText,
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

#[derive(Debug, Clone)]
struct RanJavascript {
    /// None if it is the source.
    text: Option<SharedText>,
    form: Option<ScriptForm>,
}

impl From<Javascript> for RanJavascript {
    fn from(Javascript { text, form }: Javascript) -> Self {
        let is_source = form.as_ref().is_some_and(ScriptForm::is_source);
        Self { text: (!is_source).then(|| text.into()), form }
    }
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
        match &self.inputs {
            None => Err("nothing was recorded of it"),
            Some(inputs) => inputs.gaps().next().map_or(Ok(()), |gap| Err(gap.describe())),
        }
    }

    /// As the worker sent it: a replay has the same limit, but not the same quota.
    pub fn output(&mut self, bytes: &[u8]) {
        self.output.update(bytes);
    }

    pub fn recorded(&mut self, recording: Recording) {
        let Recording { recorded, javascript, room } = recording;
        (self.inputs, self.javascript, self._room) = (Some(recorded.inputs), javascript.map(RanJavascript::from), room);
    }

    /// The JavaScript that ran, if it is known, otherwise the source.
    pub fn code(&self, source: &SharedText) -> SharedText {
        self.javascript.as_ref().and_then(|javascript| javascript.text.as_ref()).unwrap_or(source).clone()
    }

    /// What a replay sends to a worker: the JavaScript that ran and its form, or the source if that is not known or too long.
    fn replayable(&mut self, source: SharedText) -> (SharedText, Option<ScriptForm>) {
        let code = self.code(&source);
        match self.javascript.take().and_then(|javascript| javascript.form) {
            Some(form) if code.len() <= limits::SOURCE_BYTES_MAX => (code, Some(form)),
            _ => (source, None),
        }
    }

    /// The entry of a run with this result or error. None if its code never started. A run that did not come to its own end can't be repeated:
    /// it would do something else.
    pub fn entry(&mut self, end: RunEnd<'_>) -> Option<JournalEntry> {
        let seed = self.seed?;
        let inputs = match (end.gap, self.inputs.take()) {
            (None, Some(inputs)) => inputs,
            // A worker that dies has sent nothing.
            (gap, _) => RecordedInputs::missing(gap.unwrap_or(Gap::Lost)),
        };
        let (code, form) = self.replayable(end.source);
        Some(JournalEntry {
            session: end.session,
            is_import: end.is_import,
            code,
            form: form.map(ScriptForm::into_bytes),
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
