//! Event buffers of ended sessions, kept for a while for subscribers that were away at the end.

use super::buffer::{EventBuffer, Position, RETURN_WITHIN};
use heapstead_types::SessionId;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// The session that ended first is first. Their size counts for their owners, like that of other buffers.
#[derive(Default)]
pub struct Ended {
    buffers: VecDeque<(SessionId, Instant, Arc<EventBuffer>)>,
}

impl Ended {
    /// Keeps a buffer, if it has events.
    pub fn keep(&mut self, session: SessionId, buffer: Arc<EventBuffer>) {
        self.remove_old();
        if !buffer.lock().events.is_empty() {
            self.buffers.push_back((session, Instant::now(), buffer));
        }
    }

    pub fn remove_old(&mut self) {
        let is_old = |at: &Instant| at.elapsed() > RETURN_WITHIN;
        while self.buffers.pop_front_if(|(_, at, _)| is_old(at)).is_some() {}
    }

    pub fn find(&self, session: SessionId, after: Position) -> Option<Arc<EventBuffer>> {
        self.buffers.iter().find(|(id, _, buffer)| *id == session && buffer.number == after.buffer).map(|(_, _, buffer)| buffer.clone())
    }
}
