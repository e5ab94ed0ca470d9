//! Frames from a worker: any stream of bytes, in any chunks, is a sequence of messages that encode to the same bytes, or an error.

use crate::within;
use heapstead_wire::{Decoder, FromWorker, Open, RunNumber, RunSettings, ServerState, ToWorker};
use std::borrow::Cow;

/// Beside the input itself: the decoder's buffer, the payload of a message, what the messages are made of.
const COPIES: usize = 8;
const FIXED_BYTES: usize = 16 << 10;

pub fn run(input: (u8, &[u8])) {
    let (chunk, stream) = (usize::from(input.0) + 1, input.1);
    within(COPIES * stream.len() + FIXED_BYTES, || decode(stream, chunk));
}

fn decode(stream: &[u8], chunk: usize) {
    let (mut decoder, mut order) = (Decoder::default(), asked());
    let mut encoded = Vec::new();
    for piece in stream.chunks(chunk) {
        decoder.push(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => {
                    check(&message, stream, &mut encoded);
                    // The engine kills the worker at the first message that is out of order; the decoder has to bear the rest.
                    let _ = order.accept(&message);
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    assert_eq!(decoder.is_partial(), encoded.len() < stream.len());
}

/// A message encodes to the bytes that it was decoded from.
fn check(message: &FromWorker, stream: &[u8], encoded: &mut Vec<u8>) {
    let start = encoded.len();
    message.write_to(encoded).expect("written to memory");
    assert_eq!(encoded[start..], stream[start..encoded.len()], "{}", message.name());
}

/// What a worker may answer after the requests of a one-shot run.
fn asked() -> ServerState {
    let (mut order, run) = (ServerState::default(), RunNumber::FIRST);
    let settings = Cow::Owned(RunSettings { output_bytes_max: 10, seed: [0; 32], headers: Vec::new() });
    order.sent(&ToWorker::Open(Open { heap_mb: 64, heap_bytes: None, identity_seed: 1, stateful: true }));
    order.sent(&ToWorker::Run { run, settings, replay: None, code: Cow::Borrowed("1") });
    order.sent(&ToWorker::Snapshot { run });
    order.sent(&ToWorker::Close);
    order
}
