//! Where the heads of sessions are: what whoever watches them compares.

use super::executions::heap_key;
use super::sessions::BOUND_UNTIL;
use super::{Metadata, MetadataError};
use heapstead_types::{HeapKey, SessionId};
use jiff::Timestamp;
use rusqlite::{OptionalExtension, named_params};

/// Runs count up, also where they leave the same heap; what a session draws from catalogs moves it without a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// How many runs have completed.
    pub sequence: u64,
    pub heap: Option<HeapKey>,
}

impl Metadata {
    /// For each session its head; none when it is over.
    pub async fn heads(&self, sessions: Vec<SessionId>, now: Timestamp) -> Result<Vec<(SessionId, Option<Head>)>, MetadataError> {
        self.read(move |db| {
            let mut statement = db.prepare_cached(&format!(
                "SELECT next_index, head FROM sessions WHERE sid = :id AND opened = 1 AND ended_at IS NULL
                 AND coalesce(expires_at, {BOUND_UNTIL}) > :now"
            ))?;
            let mut found = Vec::with_capacity(sessions.len());
            for id in sessions {
                let head = statement
                    .query_row(named_params! { ":id": id.to_string(), ":now": now.as_microsecond() }, |row| {
                        Ok(Head { sequence: row.get::<_, i64>(0)? as u64, heap: heap_key(row, 1)? })
                    })
                    .optional()?;
                found.push((id, head));
            }
            Ok(found)
        })
        .await
    }
}
