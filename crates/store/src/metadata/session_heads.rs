//! How often the heads of sessions have moved: what whoever watches them compares.

use super::{Metadata, MetadataError};
use heapstead_types::SessionId;
use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};

impl Metadata {
    /// For each session how often its head has moved; none when it is over.
    pub async fn head_sequences(&self, sessions: Vec<SessionId>, now: Timestamp) -> Result<Vec<(SessionId, Option<u64>)>, MetadataError> {
        self.read(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT next_index FROM sessions WHERE sid = ? AND opened = 1 AND ended_at IS NULL AND (expires_at IS NULL OR expires_at > ?)",
            )?;
            let mut found = Vec::with_capacity(sessions.len());
            for id in sessions {
                let sequence = statement.query_row(params![id.to_string(), now.as_microsecond()], |row| row.get::<_, i64>(0)).optional()?;
                found.push((id, sequence.map(|sequence| sequence as u64)));
            }
            Ok(found)
        })
        .await
    }
}
