//! Frames: the format of messages on the stream socket between server and worker, in both directions.
//!
//! ```text
//! 0        4      5            13
//! | length | kind | run number | payload … |
//! ```
//! `length`: u32, of the payload alone. `run number`: u64, 0 if the message does not belong to a run. All numbers are little-endian.
//!
//! Kinds 1 to 7 are sent to the worker ([`crate::ToWorker`]), kinds 11 to 22 by the worker ([`crate::FromWorker`]): a frame in the wrong
//! direction has an unknown kind. Each kind has its own limit on the payload, which is checked when the head has arrived, before anything is
//! allocated.

use crate::RunNumber;
use std::io::Write;

/// Length, kind and run number.
pub const HEAD_BYTES: usize = 13;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of unknown kind {0}")]
    UnknownKind(u8),
    #[error("a frame `{name}` with {length} bytes, at most {max} are allowed")]
    TooLong { name: &'static str, length: usize, max: usize },
    #[error("a frame `{0}` whose payload can't be read")]
    Malformed(&'static str),
    #[error("a frame `{0}` without a run number")]
    NoRun(&'static str),
    #[error("a frame `{0}` with a run number, which belongs to no run")]
    UnwantedRun(&'static str),
}

/// Properties of one kind of frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub byte: u8,
    /// Its name in error messages.
    pub name: &'static str,
    pub payload_bytes_max: usize,
    /// Whether it belongs to a run, so that its run number is not 0.
    pub of_a_run: bool,
}

/// The first bytes of a frame, validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub kind: &'static Kind,
    pub length: usize,
    run: Option<RunNumber>,
}

impl Head {
    pub fn parse(bytes: &[u8; HEAD_BYTES], kinds: &'static [Kind]) -> Result<Self, FrameError> {
        let [l0, l1, l2, l3, byte, run @ ..] = *bytes;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let kind = kinds.iter().find(|kind| kind.byte == byte).ok_or(FrameError::UnknownKind(byte))?;
        if length > kind.payload_bytes_max {
            return Err(FrameError::TooLong { name: kind.name, length, max: kind.payload_bytes_max });
        }
        let run = RunNumber::new(u64::from_le_bytes(run));
        match (kind.of_a_run, run) {
            (true, None) => Err(FrameError::NoRun(kind.name)),
            (false, Some(_)) => Err(FrameError::UnwantedRun(kind.name)),
            _ => Ok(Self { kind, length, run }),
        }
    }

    /// The run that the frame belongs to.
    pub fn run(&self) -> Result<RunNumber, FrameError> {
        self.run.ok_or(FrameError::NoRun(self.kind.name))
    }

    pub fn malformed(&self) -> FrameError {
        FrameError::Malformed(self.kind.name)
    }

    pub fn text(&self, bytes: Vec<u8>) -> Result<String, FrameError> {
        String::from_utf8(bytes).map_err(|_| self.malformed())
    }
}

/// Writes a frame with one call of the writer, so that it is sent with one system call.
pub(crate) fn write_frame(writer: &mut impl Write, kind: &Kind, run: Option<RunNumber>, parts: &[&[u8]]) -> std::io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    debug_assert!(length <= kind.payload_bytes_max, "{} of {length} bytes", kind.name);
    debug_assert_eq!(run.is_some(), kind.of_a_run, "{}", kind.name);
    let mut bytes = Vec::with_capacity(HEAD_BYTES + length);
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
    bytes.push(kind.byte);
    bytes.extend_from_slice(&run.map_or(0, RunNumber::get).to_le_bytes());
    for part in parts {
        bytes.extend_from_slice(part);
    }
    writer.write_all(&bytes)
}

/// Removes a little-endian number from the start of a payload.
pub(crate) fn take_number<const BYTES: usize>(payload: &mut Vec<u8>) -> Option<[u8; BYTES]> {
    let number = *payload.first_chunk::<BYTES>()?;
    payload.drain(..BYTES);
    Some(number)
}
