//! Event buffers of ended sessions, kept for a while for subscribers that were away at the end.

use super::buffer::{EventBuffer, Position, RETURN_WITHIN};
use heapstead_types::SessionId;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Their total size.
const BYTES_MAX: usize = 16 << 20;

/// The session that ended first is first.
#[derive(Default)]
pub struct Ended {
    buffers: VecDeque<(SessionId, Instant, Arc<EventBuffer>)>,
    bytes: usize,
}

impl Ended {
    /// Keeps a buffer, if it has events.
    pub fn keep(&mut self, session: SessionId, buffer: Arc<EventBuffer>) {
        let bytes = buffer.bytes();
        if bytes > 0 {
            self.buffers.push_back((session, Instant::now(), buffer));
            self.bytes += bytes;
        }
        let is_over = |at: &Instant, bytes: usize| bytes > BYTES_MAX || at.elapsed() > RETURN_WITHIN;
        while let Some((_, at, oldest)) = self.buffers.front()
            && is_over(at, self.bytes)
        {
            self.bytes -= oldest.bytes();
            self.buffers.pop_front();
        }
    }

    pub fn find(&self, session: SessionId, after: Position) -> Option<Arc<EventBuffer>> {
        self.buffers.iter().find(|(id, _, buffer)| *id == session && buffer.number == after.buffer).map(|(_, _, buffer)| buffer.clone())
    }
}
