//! The worker's reader for the stream from the server: waits for messages and their descriptors.

use crate::descriptors::{DESCRIPTORS_MAX, receive_with_descriptors};
use crate::frame::{FrameError, HEAD_BYTES, Head};
use crate::to_worker::{KINDS, ToWorker};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::IoSliceMut;

/// Read buffer: large enough for all requests of a one-shot run with code of usual length.
const BUFFER_BYTES: usize = 16 << 10;

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the server closed the socket")]
    Closed,
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("a frame `{0}` without the descriptor that belongs to it")]
    NoDescriptor(&'static str),
    #[error("more than {DESCRIPTORS_MAX} descriptors that belong to no message yet")]
    TooManyDescriptors,
    #[error("the socket can't be read: {0}")]
    Io(#[from] Errno),
}

/// Reads ahead: everything that has arrived is read with one call, so that a worker that dies leaves nothing unread. (If a socket is closed with
/// bytes unread, the server concludes that the worker has not started the run.)
#[derive(Debug)]
pub struct Reader {
    buffer: Box<[u8]>,
    /// The part of the buffer that was received and not yet returned.
    start: usize,
    end: usize,
    /// Descriptors that were received and not yet returned.
    descriptors: VecDeque<OwnedFd>,
}

impl Default for Reader {
    fn default() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0, descriptors: VecDeque::new() }
    }
}

impl Reader {
    /// Whether a message, or the beginning of one, has been read ahead.
    pub fn has_more(&self) -> bool {
        self.start < self.end
    }

    /// Waits for the next message. Returns it with its descriptor, if it has one.
    pub fn next_message(&mut self, socket: impl AsFd) -> Result<(ToWorker<'static>, Option<OwnedFd>), ReadError> {
        let head = self.head(&socket)?;
        let payload = self.payload(&socket, head.length)?;
        let message = ToWorker::parse(&head, payload)?;
        let descriptor = match message.descriptors() {
            0 => None,
            _ => Some(self.descriptors.pop_front().ok_or(ReadError::NoDescriptor(message.name()))?),
        };
        Ok((message, descriptor))
    }

    fn head(&mut self, socket: impl AsFd) -> Result<Head, ReadError> {
        if self.buffer.len() - self.start < HEAD_BYTES || !self.has_more() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        loop {
            if let Some((head, _)) = self.buffer[self.start..self.end].split_first_chunk::<HEAD_BYTES>() {
                let head = Head::parse(head, &KINDS)?;
                self.start += HEAD_BYTES;
                return Ok(head);
            }
            let count = receive(&socket, &mut self.descriptors, &mut [IoSliceMut::new(&mut self.buffer[self.end..])])?;
            self.end += count;
        }
    }

    /// Reads a long payload into its own allocation, and what follows it into the buffer.
    fn payload(&mut self, socket: impl AsFd, length: usize) -> Result<Vec<u8>, ReadError> {
        let buffered = length.min(self.end - self.start);
        let mut payload = vec![0; length];
        payload[..buffered].copy_from_slice(&self.buffer[self.start..self.start + buffered]);
        self.start += buffered;
        let mut filled = buffered;
        while filled < length {
            // Everything in the buffer belongs to the payload.
            (self.start, self.end) = (0, 0);
            let missing = length - filled;
            let mut parts = [IoSliceMut::new(&mut payload[filled..]), IoSliceMut::new(&mut self.buffer)];
            let count = receive(&socket, &mut self.descriptors, &mut parts)?;
            filled += count.min(missing);
            self.end = count.saturating_sub(missing);
        }
        Ok(payload)
    }
}

/// Receives at least one byte.
fn receive(socket: impl AsFd, descriptors: &mut VecDeque<OwnedFd>, parts: &mut [IoSliceMut<'_>]) -> Result<usize, ReadError> {
    let (count, received) = receive_with_descriptors(socket, parts)?;
    descriptors.extend(received);
    if descriptors.len() > DESCRIPTORS_MAX {
        return Err(ReadError::TooManyDescriptors);
    }
    if count == 0 { Err(ReadError::Closed) } else { Ok(count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Open, RunNumber, RunSettings, send_with_descriptors};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::borrow::Cow;

    fn sockets() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("socketpair")
    }

    fn one_shot(code: &str) -> Vec<ToWorker<'_>> {
        let run = RunNumber::FIRST;
        let settings = RunSettings { output_bytes_max: 10, seed: [7; crate::SEED_BYTES], headers: vec![("x-mcp-a".into(), "é".into())] };
        vec![
            ToWorker::Open(Open { heap_mb: 64, heap_bytes: Some(3), identity_seed: 9, stateful: true }),
            ToWorker::Run { run, replay: None, settings: Cow::Owned(settings), code: Cow::Borrowed(code) },
            ToWorker::Snapshot { run },
            ToWorker::Close,
        ]
    }

    fn encode(messages: &[ToWorker<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| message.write_to(&mut bytes).expect("write to memory"));
        bytes
    }

    #[test]
    fn a_run_arrives_complete_with_its_descriptors_in_any_number_of_chunks() {
        for (code_bytes, piece_bytes) in
            [(9, usize::MAX), (9, 1), (9, 7), (BUFFER_BYTES, 1000), (BUFFER_BYTES * 5, 4096), (300_000, usize::MAX)]
        {
            let code = "é".repeat(code_bytes);
            let (near, far) = sockets();
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    let (bytes, mut sent) = (encode(&one_shot(&code)), 0);
                    while sent < bytes.len() {
                        let piece = &bytes[sent..bytes.len().min(sent.saturating_add(piece_bytes))];
                        let descriptors = if sent == 0 { &[near.as_fd(), near.as_fd()][..] } else { &[] };
                        sent += send_with_descriptors(&near, piece, descriptors).expect("send");
                    }
                });
                let mut reader = Reader::default();
                for expected in one_shot(&code) {
                    let (message, descriptor) = reader.next_message(&far).expect("a message");
                    assert_eq!((usize::from(descriptor.is_some()), &message), (expected.descriptors(), &expected));
                }
                assert!(!reader.has_more());
            });
        }
    }

    /// A worker that dies must not look like one that never started.
    #[test]
    fn all_requests_of_a_run_are_read_with_the_first_message() {
        let (near, far) = sockets();
        send_with_descriptors(&near, &encode(&one_shot("1 + 1")), &[near.as_fd(), near.as_fd()]).expect("send");
        let mut reader = Reader::default();
        reader.next_message(&far).expect("Open");
        assert_eq!(rustix::io::ioctl_fionread(&far).expect("bytes to be read"), 0);
    }

    #[test]
    fn errors_say_what_is_wrong_with_a_message() {
        let snapshot = encode(&[ToWorker::Snapshot { run: RunNumber::FIRST }]);
        let long_settings = [&[9, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0][..], &[0xff; 9]].concat();
        for (bytes, error) in [
            (&snapshot[..], "a frame `Snapshot` without the descriptor that belongs to it"),
            (&snapshot[..5], "the server closed the socket"),
            (&[], "the server closed the socket"),
            (&[0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0], "a frame of unknown kind 11"),
            (&[0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0], "a frame `Open` with 4294967295 bytes, at most 4096 are allowed"),
            (&[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], "a frame `Open` whose payload can't be read"),
            (&long_settings, "a frame `Run` whose payload can't be read"),
        ] {
            let (near, far) = sockets();
            send_with_descriptors(&near, bytes, &[]).expect("send");
            drop(near);
            let refused = Reader::default().next_message(&far).expect_err("refused");
            assert_eq!(refused.to_string(), error);
        }
    }

    #[test]
    fn descriptors_without_a_message_are_limited() {
        let (near, far) = sockets();
        let close = encode(&[ToWorker::Close]);
        for _ in 0..2 {
            send_with_descriptors(&near, &close, &[near.as_fd(); 3]).expect("send");
        }
        let mut reader = Reader::default();
        reader.next_message(&far).expect("Close");
        assert!(matches!(reader.next_message(&far), Err(ReadError::TooManyDescriptors)));
    }
}
