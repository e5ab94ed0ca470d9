//! The server's decoder for the stream from a worker: splits bytes into messages, regardless of the chunks in which they arrive.

use crate::FromWorker;
use crate::frame::{FrameError, HEAD_BYTES, Head};
use crate::from_worker::{KINDS, OUTPUT_BYTES_MAX};

/// Frames up to this length are copied out of the buffer; longer ones take the buffer over, so that they are in memory once.
const COPIED_BYTES_MAX: usize = OUTPUT_BYTES_MAX;

/// Buffers at most one incomplete frame, whose length was checked, and what was read together with it.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// How many of the bytes have been returned as messages.
    read: usize,
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        // Long frames get exactly the memory that they need, once a part of them has arrived: a length alone costs the worker nothing.
        if let Some((head, _)) = self.bytes.split_first_chunk::<HEAD_BYTES>()
            && let Ok(head) = Head::parse(head, &KINDS)
            && head.length > COPIED_BYTES_MAX
            && self.bytes.len() + bytes.len() >= head.length / 4
        {
            self.bytes.reserve_exact((HEAD_BYTES + head.length).saturating_sub(self.bytes.len()).max(bytes.len()));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete message, if there is one.
    pub fn next_message(&mut self) -> Result<Option<FromWorker>, FrameError> {
        let Some((head, rest)) = self.bytes[self.read..].split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let head = Head::parse(head, &KINDS)?;
        let Some(payload) = rest.get(..head.length) else { return Ok(None) };
        let payload = if head.length <= COPIED_BYTES_MAX {
            let payload = payload.to_vec();
            self.read += HEAD_BYTES + head.length;
            payload
        } else {
            self.bytes.drain(..self.read + HEAD_BYTES);
            self.read = 0;
            let rest = self.bytes.split_off(head.length);
            std::mem::replace(&mut self.bytes, rest)
        };
        FromWorker::parse(&head, payload).map(Some)
    }

    /// How much memory the incomplete frame needs, and the one that has to follow it. None if its head has not arrived or is not valid.
    pub fn awaited_bytes(&self) -> Option<usize> {
        let (head, _) = self.bytes[self.read..].split_first_chunk::<HEAD_BYTES>()?;
        let head = Head::parse(head, &KINDS).ok()?;
        Some(head.length + FromWorker::following_bytes_max(&head))
    }

    /// Whether there is an incomplete frame.
    pub fn is_partial(&self) -> bool {
        self.read < self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_head_is_refused_before_its_payload_arrives() {
        let none = [0; 8];
        let first = 1_u64.to_le_bytes();
        for (length, kind, run, error) in [
            (u32::MAX, 14, first, "a frame `Output` with 4294967295 bytes, at most 65536 are allowed"),
            (1, 12, first, "a frame `Parsing` with 1 bytes, at most 0 are allowed"),
            (0, 99, first, "a frame of unknown kind 99"),
            (0, 2, first, "a frame of unknown kind 2"),
            (0, 17, none, "a frame `Ended` without a run number"),
            (0, 11, first, "a frame `Opened` with a run number, which belongs to no run"),
        ] {
            let mut decoder = Decoder::default();
            decoder.push(&u32::to_le_bytes(length));
            decoder.push(&[kind]);
            decoder.push(&run);
            assert_eq!(decoder.next_message().map_err(|error| error.to_string()), Err(error.to_owned()));
        }
    }

    #[test]
    fn a_long_frame_and_what_follows_it_are_announced_and_read_in_any_chunks() {
        let run = crate::RunNumber::FIRST;
        let text = "é".repeat(COPIED_BYTES_MAX);
        let messages = [
            FromWorker::Opened,
            FromWorker::Javascript { run, text: text.clone(), form: Some(crate::ScriptForm::default()) },
            FromWorker::Ended { run, outcome: Ok(text) },
            FromWorker::Opened,
        ];
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| message.write_to(&mut bytes).expect("write to memory"));
        for chunk_bytes in [1, 1000, 65536, usize::MAX] {
            let (mut decoder, mut decoded, mut awaited) = (Decoder::default(), Vec::new(), Vec::new());
            for chunk in bytes.chunks(chunk_bytes.min(bytes.len())) {
                decoder.push(chunk);
                while let Some(message) = decoder.next_message().expect("valid") {
                    decoded.push(message);
                }
                awaited.extend(decoder.awaited_bytes());
            }
            assert!(decoded == messages, "{chunk_bytes}");
            awaited.dedup();
            let long = 2 * COPIED_BYTES_MAX;
            let expected = [4 + long + 1 + 1 + heapstead_types::limits::RESULT_BYTES_MAX, long + 1];
            assert!(awaited.iter().filter(|bytes| **bytes > 0).eq(expected.iter()) || chunk_bytes > 65536, "{awaited:?}");
        }
    }

    #[test]
    fn a_malformed_payload_is_refused() {
        for (kind, payload, name) in [
            (21, &[][..], "Javascript"),
            (21, &[0, 0, 0, 0, 0xff], "Javascript"),
            (21, &[2, 0, 0, 0, 1], "Javascript"),
            (21, &[1, 0, 0, 0, b'1', 0xff], "Javascript"),
            (16, &[1, 0, 0, 0, 0, 0, 0, 0, 7], "Call"),
            (17, &[], "Ended"),
            (17, &[0, 0xff], "Ended"),
            (17, &[99], "Ended"),
            (17, &[3, b'x'], "Ended"),
            (17, &[3, b'0', b'8'], "Ended"),
            (17, &[4, b'x'], "Ended"),
            (19, &[], "Snapshot"),
            (19, &[0, 1, 2, 3], "Snapshot"),
            (19, &[0; 42], "Snapshot"),
        ] {
            let mut decoder = Decoder::default();
            decoder.push(&(payload.len() as u32).to_le_bytes());
            decoder.push(&[kind, 1, 0, 0, 0, 0, 0, 0, 0]);
            decoder.push(payload);
            assert_eq!(decoder.next_message(), Err(FrameError::Malformed(name)), "{kind}: {payload:?}");
        }
    }
}
