//! Messages from the server to a worker: requests, and replies to its calls.
//!
//! | kind | message | payload | descriptors |
//! |---|---|---|---|
//! | 1 | `Open` | [`Open`] as JSON, at most 4 KiB | the heap to restore, if `heap_bytes` is set |
//! | 2 | `Run` | u32 length of the settings, u32 length of recorded inputs (0: the run is not a replay), u32 length of the form (0: the code is a source), [`RunSettings`] as JSON (at most 256 KiB), the inputs (`recorded_inputs.rs`), the form (`script_form.rs`), the code as UTF-8 | – |
//! | 3 | `Commit` | empty | – |
//! | 4 | `Snapshot` | empty | where to write the snapshot |
//! | 5 | `Reply` | u64 call number, a status byte, bytes (status 0: the value; 1: UTF-8 text that says why there is none) | – |
//! | 6 | `Close` | empty | – |
//! | 7 | `Fork` | empty | the socket of the new process |
//!
//! Several messages may be sent with one write. Descriptors are attached to the first byte of the write, and are assigned, in order, to the
//! messages that need one. [`crate::Reader`] reads these messages, [`crate::WorkerState`] defines their order.

use crate::frame::{FrameError, Head, Kind, take_number, write_frame};
use crate::{CallNumber, INPUTS_BYTES_MAX, RecordedInputs, RunNumber, SCRIPT_FORM_BYTES_MAX, ScriptForm};
use heapstead_types::limits;
use std::borrow::Cow;
use std::io::Write;

/// Length of the seed of a run.
pub const SEED_BYTES: usize = 32;
const OPEN_BYTES_MAX: usize = 4 << 10;
const RUN_SETTINGS_BYTES_MAX: usize = 256 << 10;
/// The same as for a result, because the code holds both in memory.
const REPLY_BYTES_MAX: usize = limits::RESULT_BYTES_MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToWorker<'a> {
    Open(Open),
    Run {
        run: RunNumber,
        settings: Cow<'a, RunSettings>,
        /// What is recorded of an earlier run, which this one repeats.
        replay: Option<Replay<'a>>,
        code: Cow<'a, str>,
    },
    /// Keep the effects of this run: later runs continue from them.
    Commit {
        run: RunNumber,
    },
    /// Write the heap after this run to the attached descriptor.
    Snapshot {
        run: RunNumber,
    },
    Reply {
        run: RunNumber,
        call: CallNumber,
        outcome: Result<Vec<u8>, String>,
    },
    /// Exit.
    Close,
    /// Clone this process. The clone continues from the same state, with the attached socket instead of this one.
    Fork,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay<'a> {
    pub inputs: Cow<'a, RecordedInputs>,
    /// The code is the JavaScript that ran, in this form. None: it is the source.
    pub form: Option<Cow<'a, ScriptForm>>,
}

/// Settings for the lifetime of a worker.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Open {
    pub heap_mb: u32,
    /// Length of the heap to restore. If omitted, the worker starts from the base heap.
    pub heap_bytes: Option<u64>,
    /// Seed of the identity hashes of new objects. Derived from the heap, so that the same run on the same heap produces the same bytes.
    pub identity_seed: u64,
    /// Whether runs are stateful, so that a snapshot can be taken. V8 must know this when it restores the heap.
    pub stateful: bool,
}

/// Settings of one run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RunSettings {
    pub output_bytes_max: u64,
    /// Of all randomness in the run. No two runs have the same one, except for a run and its replay.
    pub seed: [u8; SEED_BYTES],
    /// `X-MCP-*` headers, for `mcp.headers`.
    pub headers: Vec<(String, String)>,
}

const OPEN: Kind = Kind { byte: 1, name: "Open", payload_bytes_max: OPEN_BYTES_MAX, of_a_run: false };
const RUN: Kind = Kind {
    byte: 2,
    name: "Run",
    payload_bytes_max: 3 * LENGTH_BYTES + RUN_SETTINGS_BYTES_MAX + INPUTS_BYTES_MAX + SCRIPT_FORM_BYTES_MAX + limits::SOURCE_BYTES_MAX,
    of_a_run: true,
};
const COMMIT: Kind = Kind { byte: 3, name: "Commit", payload_bytes_max: 0, of_a_run: true };
const SNAPSHOT: Kind = Kind { byte: 4, name: "Snapshot", payload_bytes_max: 0, of_a_run: true };
const REPLY: Kind = Kind { byte: 5, name: "Reply", payload_bytes_max: 8 + 1 + REPLY_BYTES_MAX, of_a_run: true };
const CLOSE: Kind = Kind { byte: 6, name: "Close", payload_bytes_max: 0, of_a_run: false };
const FORK: Kind = Kind { byte: 7, name: "Fork", payload_bytes_max: 0, of_a_run: false };
pub(crate) static KINDS: [Kind; 7] = [OPEN, RUN, COMMIT, SNAPSHOT, REPLY, CLOSE, FORK];

/// Size of each length field of a run.
const LENGTH_BYTES: usize = 4;

/// Status bytes of a reply.
const REPLY_VALUE: u8 = 0;
const REPLY_REFUSED: u8 = 1;

impl Replay<'_> {
    fn parse(inputs: &[u8], form: &[u8]) -> Option<Replay<'static>> {
        let form = match form {
            [] => None,
            form => Some(Cow::Owned(ScriptForm::from_bytes(form.to_vec())?)),
        };
        Some(Replay { inputs: Cow::Owned(RecordedInputs::from_bytes(inputs.to_vec())?), form })
    }
}

impl ToWorker<'_> {
    /// Its name in error messages.
    pub fn name(&self) -> &'static str {
        self.kind().name
    }

    fn kind(&self) -> &'static Kind {
        match self {
            Self::Open(_) => &OPEN,
            Self::Run { .. } => &RUN,
            Self::Commit { .. } => &COMMIT,
            Self::Snapshot { .. } => &SNAPSHOT,
            Self::Reply { .. } => &REPLY,
            Self::Close => &CLOSE,
            Self::Fork => &FORK,
        }
    }

    /// How many descriptors are attached to it.
    pub fn descriptors(&self) -> usize {
        match self {
            Self::Open(Open { heap_bytes: Some(_), .. }) | Self::Snapshot { .. } | Self::Fork => 1,
            _ => 0,
        }
    }

    pub fn write_to(&self, writer: &mut impl Write) -> std::io::Result<()> {
        let kind = self.kind();
        match self {
            Self::Open(open) => write_frame(writer, kind, None, &[&serde_json::to_vec(open)?]),
            Self::Run { run, settings, replay, code } => {
                let settings = serde_json::to_vec(settings)?;
                let inputs = replay.as_ref().map_or(&[][..], |replay| replay.inputs.as_bytes());
                let form = replay.as_ref().and_then(|replay| replay.form.as_ref()).map_or(&[][..], |form| form.as_bytes());
                let lengths = [settings.len(), inputs.len(), form.len()].map(|length| (length as u32).to_le_bytes());
                write_frame(writer, kind, Some(*run), &[lengths.as_flattened(), &settings, inputs, form, code.as_bytes()])
            }
            Self::Commit { run } | Self::Snapshot { run } => write_frame(writer, kind, Some(*run), &[]),
            Self::Reply { run, call, outcome } => {
                let (status, bytes) = match outcome {
                    Ok(value) => (REPLY_VALUE, value.as_slice()),
                    Err(why) => (REPLY_REFUSED, why.as_bytes()),
                };
                write_frame(writer, kind, Some(*run), &[&call.0.to_le_bytes(), &[status], bytes])
            }
            Self::Close | Self::Fork => write_frame(writer, kind, None, &[]),
        }
    }

    pub(crate) fn parse(head: &Head, mut payload: Vec<u8>) -> Result<ToWorker<'static>, FrameError> {
        let malformed = || head.malformed();
        Ok(match *head.kind {
            OPEN => ToWorker::Open(serde_json::from_slice(&payload).map_err(|_| malformed())?),
            RUN => {
                let mut length = || take_number(&mut payload).map(|length| u32::from_le_bytes(length) as usize).ok_or_else(malformed);
                let (settings_length, inputs_length, form_length) = (length()?, length()?, length()?);
                let form_start = settings_length + inputs_length;
                let code_start = form_start + form_length;
                let code_length = payload.len().checked_sub(code_start).ok_or_else(malformed)?;
                if settings_length > RUN_SETTINGS_BYTES_MAX || code_length > limits::SOURCE_BYTES_MAX {
                    return Err(malformed());
                }
                let settings = serde_json::from_slice(&payload[..settings_length]).map_err(|_| malformed())?;
                let replay = match (&payload[settings_length..form_start], &payload[form_start..code_start]) {
                    ([], []) => None,
                    (inputs, form) => Some(Replay::parse(inputs, form).ok_or_else(malformed)?),
                };
                payload.drain(..code_start);
                ToWorker::Run { run: head.run()?, settings: Cow::Owned(settings), replay, code: Cow::Owned(head.text(payload)?) }
            }
            COMMIT => ToWorker::Commit { run: head.run()? },
            SNAPSHOT => ToWorker::Snapshot { run: head.run()? },
            REPLY => {
                let call = CallNumber(u64::from_le_bytes(take_number(&mut payload).ok_or_else(malformed)?));
                let outcome = match take_number(&mut payload) {
                    Some([REPLY_VALUE]) => Ok(payload),
                    Some([REPLY_REFUSED]) => Err(head.text(payload)?),
                    _ => return Err(malformed()),
                };
                ToWorker::Reply { run: head.run()?, call, outcome }
            }
            FORK => ToWorker::Fork,
            _ => ToWorker::Close,
        })
    }
}
