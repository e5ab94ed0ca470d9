//! Messages from a worker to the server: answers to requests, output of a run, and calls.
//!
//! | kind | message | payload |
//! |---|---|---|
//! | 11 | `Opened` | empty |
//! | 12 | `Parsing` | empty |
//! | 13 | `Started` | empty |
//! | 14 | `Output` | UTF-8 text, at most 64 KiB |
//! | 15 | `OutputDropped` | empty |
//! | 16 | `Call` | u64 call number, u16 kind, bytes that the kind defines |
//! | 17 | `Ended` | a status byte, then text: 0 and the serialised completion value, or a failure (see `failure_codec.rs`) |
//! | 18 | `Committed` | empty |
//! | 19 | `Snapshot` | a status byte: 0, then u64 length and SHA-256 of what was written; or a failure |
//! | 20 | `Unfit` | UTF-8 text: why this worker can't serve; it belongs to no run |
//! | 21 | `Javascript` | u32 length of the form, the JavaScript that ran (empty if it is the source), its form (`script_form.rs`; empty if that is too long). Sent of a stateful run that is no replay, if V8 compiled its code. `Ended` follows at once: the server has room for both, or reads neither |
//! | 22 | `Inputs` | a part of the inputs of a stateful run, at most 64 KiB (`recorded_inputs.rs`); all parts come before the end of the run |
//!
//! [`crate::Decoder`] reads these messages, [`crate::ServerState`] says which may come when.

use crate::failure_codec;
use crate::frame::{FrameError, HEAD_BYTES, Head, Kind, take_number, write_frame};
use crate::{CallNumber, RecordedInputs, RunNumber, SCRIPT_FORM_BYTES_MAX, ScriptForm};
use heapstead_types::{Failure, limits};
use std::borrow::Cow;
use std::io::Write;

pub const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// The same as for a reply.
pub const CALL_BYTES_MAX: usize = limits::RESULT_BYTES_MAX;
/// Type stripping may lengthen a source (enums become functions), so the code that runs may be longer than the code that was sent.
const JAVASCRIPT_BYTES_MAX: usize = 4 * limits::SOURCE_BYTES_MAX;
const FORM_LENGTH_BYTES: usize = 4;
/// `Javascript` and `Ended` of one run: what a worker may send at once beside its output.
pub const ANSWER_BYTES_MAX: usize = JAVASCRIPT.payload_bytes_max + ENDED.payload_bytes_max;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromWorker {
    /// The heap is restored.
    Opened,
    /// Types are being stripped from the source.
    Parsing {
        run: RunNumber,
    },
    /// V8 starts the code.
    Started {
        run: RunNumber,
    },
    Output {
        run: RunNumber,
        text: Vec<u8>,
    },
    /// Output reached its cap: the rest is dropped.
    OutputDropped {
        run: RunNumber,
    },
    /// The code calls a capability, and waits for the reply with the same number.
    Call {
        run: RunNumber,
        call: CallNumber,
        kind: u16,
        payload: Vec<u8>,
    },
    /// The next part of what the run has read from outside.
    Inputs {
        run: RunNumber,
        part: Vec<u8>,
    },
    /// The code that completed, if it differs from the source.
    Javascript {
        run: RunNumber,
        /// Empty if the form says that it is the source.
        text: String,
        /// None if it is too long.
        form: Option<ScriptForm>,
    },
    /// The serialised completion value, or the failure.
    Ended {
        run: RunNumber,
        outcome: Result<String, Failure>,
    },
    Committed {
        run: RunNumber,
    },
    Snapshot {
        run: RunNumber,
        outcome: Result<Written, Failure>,
    },
    /// The worker could not be confined, could not restore the heap, or received a message that it can't accept. It exits.
    Unfit {
        why: String,
    },
}

/// Length and hash of a snapshot, as reported by its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub length: u64,
    pub sha256: [u8; 32],
}

const OPENED: Kind = Kind { byte: 11, name: "Opened", payload_bytes_max: 0, of_a_run: false };
const PARSING: Kind = Kind { byte: 12, name: "Parsing", payload_bytes_max: 0, of_a_run: true };
const STARTED: Kind = Kind { byte: 13, name: "Started", payload_bytes_max: 0, of_a_run: true };
const OUTPUT: Kind = Kind { byte: 14, name: "Output", payload_bytes_max: OUTPUT_BYTES_MAX, of_a_run: true };
const OUTPUT_DROPPED: Kind = Kind { byte: 15, name: "OutputDropped", payload_bytes_max: 0, of_a_run: true };
const CALL: Kind = Kind { byte: 16, name: "Call", payload_bytes_max: 8 + 2 + CALL_BYTES_MAX, of_a_run: true };
const ENDED: Kind = Kind { byte: 17, name: "Ended", payload_bytes_max: 1 + limits::RESULT_BYTES_MAX, of_a_run: true };
const COMMITTED: Kind = Kind { byte: 18, name: "Committed", payload_bytes_max: 0, of_a_run: true };
const SNAPSHOT: Kind = Kind { byte: 19, name: "Snapshot", payload_bytes_max: 1 + limits::ERROR_BYTES_MAX, of_a_run: true };
const UNFIT: Kind = Kind { byte: 20, name: "Unfit", payload_bytes_max: limits::ERROR_BYTES_MAX, of_a_run: false };
const JAVASCRIPT: Kind = Kind {
    byte: 21,
    name: "Javascript",
    payload_bytes_max: FORM_LENGTH_BYTES + JAVASCRIPT_BYTES_MAX + SCRIPT_FORM_BYTES_MAX,
    of_a_run: true,
};
const INPUTS: Kind = Kind { byte: 22, name: "Inputs", payload_bytes_max: OUTPUT_BYTES_MAX, of_a_run: true };
pub(crate) static KINDS: [Kind; 12] =
    [OPENED, PARSING, STARTED, OUTPUT, OUTPUT_DROPPED, CALL, ENDED, COMMITTED, SNAPSHOT, UNFIT, JAVASCRIPT, INPUTS];

/// Status byte of a completed run and of a written snapshot. Any other byte is the kind of a failure.
const SUCCESS: u8 = 0;

impl FromWorker {
    /// The frame `Opened`, for a worker that has run out of memory.
    pub const OPENED: [u8; HEAD_BYTES] = [0, 0, 0, 0, OPENED.byte, 0, 0, 0, 0, 0, 0, 0, 0];

    /// Its name in error messages.
    pub fn name(&self) -> &'static str {
        self.kind().name
    }

    fn kind(&self) -> &'static Kind {
        match self {
            Self::Opened => &OPENED,
            Self::Parsing { .. } => &PARSING,
            Self::Started { .. } => &STARTED,
            Self::Output { .. } => &OUTPUT,
            Self::OutputDropped { .. } => &OUTPUT_DROPPED,
            Self::Call { .. } => &CALL,
            Self::Inputs { .. } => &INPUTS,
            Self::Javascript { .. } => &JAVASCRIPT,
            Self::Ended { .. } => &ENDED,
            Self::Committed { .. } => &COMMITTED,
            Self::Snapshot { .. } => &SNAPSHOT,
            Self::Unfit { .. } => &UNFIT,
        }
    }

    /// The run it belongs to.
    pub fn run(&self) -> Option<RunNumber> {
        match self {
            Self::Opened | Self::Unfit { .. } => None,
            Self::Parsing { run }
            | Self::Started { run }
            | Self::Output { run, .. }
            | Self::OutputDropped { run }
            | Self::Call { run, .. }
            | Self::Inputs { run, .. }
            | Self::Javascript { run, .. }
            | Self::Ended { run, .. }
            | Self::Committed { run }
            | Self::Snapshot { run, .. } => Some(*run),
        }
    }

    pub fn write_to(&self, writer: &mut impl Write) -> std::io::Result<()> {
        let (kind, run) = (self.kind(), self.run());
        match self {
            Self::Opened | Self::Parsing { .. } | Self::Started { .. } | Self::OutputDropped { .. } | Self::Committed { .. } => {
                write_frame(writer, kind, run, &[])
            }
            Self::Javascript { text, form, .. } => {
                let form = form.as_ref().map_or(&[][..], ScriptForm::as_bytes);
                write_frame(writer, kind, run, &[&(form.len() as u32).to_le_bytes(), text.as_bytes(), form])
            }
            Self::Output { text, .. } => write_frame(writer, kind, run, &[text]),
            Self::Inputs { part, .. } => write_frame(writer, kind, run, &[part]),
            Self::Call { call, kind: call_kind, payload, .. } => {
                write_frame(writer, kind, run, &[&call.0.to_le_bytes(), &call_kind.to_le_bytes(), payload])
            }
            Self::Ended { outcome: Ok(result), .. } => write_frame(writer, kind, run, &[&[SUCCESS], result.as_bytes()]),
            Self::Snapshot { outcome: Ok(Written { length, sha256 }), .. } => {
                write_frame(writer, kind, run, &[&[SUCCESS], &length.to_le_bytes(), sha256])
            }
            Self::Ended { outcome: Err(failure), .. } | Self::Snapshot { outcome: Err(failure), .. } => {
                let (byte, text) = failure_codec::encode(failure);
                write_frame(writer, kind, run, &[&[byte], text.as_bytes()])
            }
            Self::Unfit { why } => write_frame(writer, kind, run, &[failure_codec::shorten(Cow::Borrowed(why)).as_bytes()]),
        }
    }

    /// Writes borrowed output, in as many frames as needed: the hot path of a run that prints.
    pub fn write_output(writer: &mut impl Write, run: RunNumber, text: &[u8]) -> std::io::Result<()> {
        for chunk in text.chunks(OUTPUT_BYTES_MAX) {
            write_frame(writer, &OUTPUT, Some(run), &[chunk])?;
        }
        Ok(())
    }

    /// Writes the inputs of a run, in as many frames as needed.
    pub fn write_inputs(writer: &mut impl Write, run: RunNumber, inputs: &RecordedInputs) -> std::io::Result<()> {
        for part in inputs.as_bytes().chunks(OUTPUT_BYTES_MAX) {
            write_frame(writer, &INPUTS, Some(run), &[part])?;
        }
        Ok(())
    }

    /// How long the frame that has to follow this one can be, if memory is held for both. None is held for short JavaScript.
    pub(crate) fn following_bytes_max(head: &Head) -> usize {
        if *head.kind == JAVASCRIPT && head.length > OUTPUT_BYTES_MAX { ENDED.payload_bytes_max } else { 0 }
    }

    pub(crate) fn parse(head: &Head, mut payload: Vec<u8>) -> Result<Self, FrameError> {
        let malformed = || head.malformed();
        Ok(match *head.kind {
            OPENED => Self::Opened,
            PARSING => Self::Parsing { run: head.run()? },
            STARTED => Self::Started { run: head.run()? },
            JAVASCRIPT => {
                let form_length = u32::from_le_bytes(take_number(&mut payload).ok_or_else(malformed)?) as usize;
                // The form is the last, so that the JavaScript, which may be long, stays where it is.
                let form_start = payload.len().checked_sub(form_length).ok_or_else(malformed)?;
                let form = match payload.split_off(form_start) {
                    form if form.is_empty() => None,
                    form => Some(ScriptForm::from_bytes(form).ok_or_else(malformed)?),
                };
                Self::Javascript { run: head.run()?, text: head.text(payload)?, form }
            }
            OUTPUT => Self::Output { run: head.run()?, text: payload },
            INPUTS => Self::Inputs { run: head.run()?, part: payload },
            OUTPUT_DROPPED => Self::OutputDropped { run: head.run()? },
            CALL => {
                let call = CallNumber(u64::from_le_bytes(take_number(&mut payload).ok_or_else(malformed)?));
                let kind = u16::from_le_bytes(take_number(&mut payload).ok_or_else(malformed)?);
                Self::Call { run: head.run()?, call, kind, payload }
            }
            ENDED => {
                let [status] = take_number(&mut payload).ok_or_else(malformed)?;
                let text = head.text(payload)?;
                let outcome = if status == SUCCESS { Ok(text) } else { Err(failure_codec::decode(status, text).ok_or_else(malformed)?) };
                Self::Ended { run: head.run()?, outcome }
            }
            COMMITTED => Self::Committed { run: head.run()? },
            SNAPSHOT => {
                let [status] = take_number(&mut payload).ok_or_else(malformed)?;
                let outcome = if status == SUCCESS {
                    let length = u64::from_le_bytes(take_number(&mut payload).ok_or_else(malformed)?);
                    Ok(Written { length, sha256: payload.try_into().map_err(|_| malformed())? })
                } else {
                    Err(failure_codec::decode(status, head.text(payload)?).ok_or_else(malformed)?)
                };
                Self::Snapshot { run: head.run()?, outcome }
            }
            _ => Self::Unfit { why: head.text(payload)? },
        })
    }
}
