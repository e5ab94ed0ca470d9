//! Frames from a worker to the server.
//!
//! ```text
//! 0       4      5
//! | length | kind | payload … |        length: u32 little-endian, of the payload alone
//! ```
//!
//! | kind | frame | payload |
//! |---|---|---|
//! | 1 | `Output` | UTF-8 text, at most 64 KiB |
//! | 2 | `Evaluating` | the JavaScript that runs, when it is not the source as it was sent; else empty |
//! | 3 | `Completed` | the serialised completion value |
//! | 4 | `Failed` | a kind byte, then text |
//! | 5 | `Saved` | u64 length and SHA-256 of the snapshot that was written |
//! | 6 | `Dropped` | nothing: output past the cap is being dropped |
//! | 7 | `Parsing` | nothing: types are being stripped from the source |

use heapstead_types::{Failure, limits};
use std::borrow::Cow;
use std::io::Write;

pub const OUTPUT_FRAME_BYTES_MAX: usize = 64 << 10;
const HEAD_BYTES: usize = 5;
/// Type stripping may lengthen a source (enums become functions), so what runs may be longer than what was sent.
const JAVASCRIPT_BYTES_MAX: usize = 4 * limits::SOURCE_BYTES_MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    Output(Vec<u8>),
    /// The code begins to run; `Some` when types were stripped from it.
    Evaluating(Option<String>),
    Completed(String),
    Failed(Failure),
    Saved {
        length: u64,
        sha256: [u8; 32],
    },
    Dropped,
    Parsing,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of unknown kind {0}")]
    UnknownKind(u8),
    #[error("a frame of kind {kind} with {length} bytes, at most {max} are allowed")]
    TooLong { kind: u8, length: usize, max: usize },
    #[error("a frame of kind {0} whose payload can't be read")]
    Malformed(u8),
}

const OUTPUT: u8 = 1;
const EVALUATING: u8 = 2;
const COMPLETED: u8 = 3;
const FAILED: u8 = 4;
const SAVED: u8 = 5;
const DROPPED: u8 = 6;
const PARSING: u8 = 7;

fn payload_bytes_max(kind: u8) -> Result<usize, FrameError> {
    match kind {
        OUTPUT => Ok(OUTPUT_FRAME_BYTES_MAX),
        EVALUATING => Ok(JAVASCRIPT_BYTES_MAX),
        COMPLETED => Ok(limits::RESULT_BYTES_MAX),
        FAILED => Ok(limits::ERROR_BYTES_MAX + 1),
        SAVED => Ok(40),
        DROPPED | PARSING => Ok(0),
        _ => Err(FrameError::UnknownKind(kind)),
    }
}

/// The failures a worker itself can report, and the byte that stands for each.
fn failure_byte(failure: &Failure) -> (u8, String) {
    match failure {
        Failure::Exception(text) => (1, text.clone()),
        Failure::Syntax(text) => (2, text.clone()),
        Failure::MemoryCap { heap_mb } => (3, heap_mb.to_string()),
        Failure::NeverSettles => (4, String::new()),
        Failure::ResultTooLarge => (5, String::new()),
        Failure::Unsaveable(text) => (6, text.clone()),
        Failure::NoWorker(text) => (7, text.clone()),
        other => (7, other.to_string()),
    }
}

fn failure_from(byte: u8, text: String) -> Option<Failure> {
    Some(match byte {
        1 => Failure::Exception(text),
        2 => Failure::Syntax(text),
        3 => Failure::MemoryCap { heap_mb: text.parse().ok()? },
        4 => Failure::NeverSettles,
        5 => Failure::ResultTooLarge,
        6 => Failure::Unsaveable(text),
        7 => Failure::NoWorker(text),
        _ => return None,
    })
}

/// What of an error's text is kept at the end: its stack, which is what comes last.
const TAIL_BYTES: usize = limits::ERROR_BYTES_MAX / 4;
/// Room for the words that stand for what was cut.
const CUT_BYTES: usize = 64;

/// `text` with its middle cut where it is too long: the beginning says what went wrong, the end says where.
fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= limits::ERROR_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    let head = &text[..text.floor_char_boundary(limits::ERROR_BYTES_MAX - TAIL_BYTES - CUT_BYTES)];
    let tail = &text[text.ceil_char_boundary(text.len() - TAIL_BYTES)..];
    Cow::Owned(format!("{head}\n… {} bytes cut …\n{tail}", text.len() - head.len() - tail.len()))
}

impl Frame {
    pub fn write_to(&self, writer: &mut impl Write) -> std::io::Result<()> {
        match self {
            Self::Output(text) => write_frame(writer, OUTPUT, &[text]),
            Self::Evaluating(code) => write_frame(writer, EVALUATING, &[code.as_deref().unwrap_or_default().as_bytes()]),
            Self::Completed(result) => write_frame(writer, COMPLETED, &[result.as_bytes()]),
            Self::Failed(failure) => {
                let (byte, text) = failure_byte(failure);
                write_frame(writer, FAILED, &[&[byte], cut(&text).as_bytes()])
            }
            Self::Saved { length, sha256 } => write_frame(writer, SAVED, &[&length.to_le_bytes(), sha256]),
            Self::Dropped => write_frame(writer, DROPPED, &[]),
            Self::Parsing => write_frame(writer, PARSING, &[]),
        }
    }

    /// Writes output without owning it: the hot path of a run that prints.
    pub fn write_output(writer: &mut impl Write, text: &[u8]) -> std::io::Result<()> {
        for chunk in text.chunks(OUTPUT_FRAME_BYTES_MAX) {
            write_frame(writer, OUTPUT, &[chunk])?;
        }
        Ok(())
    }

    fn parse(kind: u8, payload: &[u8]) -> Result<Self, FrameError> {
        let malformed = || FrameError::Malformed(kind);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| malformed());
        Ok(match kind {
            OUTPUT => Self::Output(payload.to_vec()),
            EVALUATING if payload.is_empty() => Self::Evaluating(None),
            EVALUATING => Self::Evaluating(Some(text(payload)?)),
            COMPLETED => Self::Completed(text(payload)?),
            FAILED => {
                let (&byte, rest) = payload.split_first().ok_or_else(malformed)?;
                Self::Failed(failure_from(byte, text(rest)?).ok_or_else(malformed)?)
            }
            SAVED => {
                let (length, sha256) = payload.split_first_chunk::<8>().ok_or_else(malformed)?;
                Self::Saved { length: u64::from_le_bytes(*length), sha256: sha256.try_into().map_err(|_| malformed())? }
            }
            DROPPED => Self::Dropped,
            PARSING => Self::Parsing,
            _ => return Err(FrameError::UnknownKind(kind)),
        })
    }
}

/// One write for a small frame, so that it leaves in one system call.
fn write_frame(writer: &mut impl Write, kind: u8, parts: &[&[u8]]) -> std::io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::with_capacity(HEAD_BYTES + length);
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
    bytes.push(kind);
    for part in parts {
        bytes.extend_from_slice(part);
    }
    writer.write_all(&bytes)
}

/// Cuts a stream of bytes into frames. What it holds is bounded by the largest frame, whatever the other side claims.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    read: usize,
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one yet.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((head, rest)) = self.bytes[self.read..].split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [l0, l1, l2, l3, kind] = *head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let max = payload_bytes_max(kind)?;
        if length > max {
            return Err(FrameError::TooLong { kind, length, max });
        }
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let frame = Frame::parse(kind, payload)?;
        self.read += HEAD_BYTES + length;
        Ok(Some(frame))
    }

    /// Whether a frame was begun and not finished.
    pub fn is_partial(&self) -> bool {
        self.read < self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        vec![
            Frame::Output(b"hello\n".to_vec()),
            Frame::Evaluating(None),
            Frame::Evaluating(Some("let x = 1".into())),
            Frame::Completed("\"é\"".into()),
            Frame::Failed(Failure::Exception("Error: no".into())),
            Frame::Failed(Failure::MemoryCap { heap_mb: 64 }),
            Frame::Failed(Failure::NeverSettles),
            Frame::Saved { length: 440_000, sha256: [7; 32] },
            Frame::Dropped,
            Frame::Parsing,
        ]
    }

    #[test]
    fn frames_survive_any_cutting_of_the_stream() {
        let mut bytes = Vec::new();
        for frame in frames() {
            frame.write_to(&mut bytes).expect("write to memory");
        }
        for chunk in [1, 2, 3, 7, bytes.len()] {
            let mut decoder = Decoder::default();
            let mut seen = Vec::new();
            for part in bytes.chunks(chunk) {
                decoder.push(part);
                while let Some(frame) = decoder.next_frame().expect("valid") {
                    seen.push(frame);
                }
            }
            assert_eq!(seen, frames(), "in chunks of {chunk}");
            assert!(!decoder.is_partial());
        }
    }

    #[test]
    fn a_claimed_length_of_four_gigabytes_is_refused_by_its_head() {
        for (bytes, error) in [
            (&[0xff, 0xff, 0xff, 0xff, 1][..], FrameError::TooLong { kind: 1, length: 0xffff_ffff, max: OUTPUT_FRAME_BYTES_MAX }),
            (&[0, 0, 0, 0, 99][..], FrameError::UnknownKind(99)),
            (&[1, 0, 0, 0, 3, 0xff][..], FrameError::Malformed(3)),
            (&[0, 0, 0, 0, 4][..], FrameError::Malformed(4)),
            (&[1, 0, 0, 0, 5, 0][..], FrameError::Malformed(5)),
        ] {
            let mut decoder = Decoder::default();
            decoder.push(bytes);
            assert_eq!(decoder.next_frame(), Err(error));
        }
    }

    #[test]
    fn an_error_text_is_cut_in_the_middle_at_characters() {
        let mut bytes = Vec::new();
        let long = format!("Error: {}\n    at main.js:1:1", "é".repeat(limits::ERROR_BYTES_MAX));
        Frame::Failed(Failure::Exception(long)).write_to(&mut bytes).expect("write to memory");
        let mut decoder = Decoder::default();
        decoder.push(&bytes);
        let Ok(Some(Frame::Failed(Failure::Exception(text)))) = decoder.next_frame() else { panic!("a failure") };
        assert!(text.len() <= limits::ERROR_BYTES_MAX && text.starts_with("Error: é") && text.ends_with("é\n    at main.js:1:1"));
    }
}
