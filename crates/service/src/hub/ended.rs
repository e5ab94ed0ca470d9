//! Rows of sessions that are over: kept for a while, so that whoever was away at the end still hears of it all.

use super::row::{Position, RETURN_WITHIN, Row};
use heapstead_types::SessionId;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// What they may hold together.
const BYTES_MAX: usize = 16 << 20;

/// The first is the one that ended first.
#[derive(Default)]
pub struct Ended {
    rows: VecDeque<(SessionId, Instant, Arc<Row>)>,
    bytes: usize,
}

impl Ended {
    /// Keeps a row, if there is anything in it that somebody might have missed.
    pub fn keep(&mut self, session: SessionId, row: Arc<Row>) {
        let bytes = row.bytes();
        if bytes > 0 {
            self.rows.push_back((session, Instant::now(), row));
            self.bytes += bytes;
        }
        let is_over = |at: &Instant, bytes: usize| bytes > BYTES_MAX || at.elapsed() > RETURN_WITHIN;
        while let Some((_, at, oldest)) = self.rows.front()
            && is_over(at, self.bytes)
        {
            self.bytes -= oldest.bytes();
            self.rows.pop_front();
        }
    }

    pub fn find(&self, session: SessionId, after: Position) -> Option<Arc<Row>> {
        self.rows.iter().find(|(id, _, row)| *id == session && row.number == after.row).map(|(_, _, row)| row.clone())
    }
}
