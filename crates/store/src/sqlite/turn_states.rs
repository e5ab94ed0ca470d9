//! States after turns in SQLite.

use super::columns::{execution_id, heap_key};
use super::{Durability, Sqlite, heaps};
use crate::records::{NewHeap, RecordsError, StateHeap, Tail, TurnState, TurnStateRecords};
use async_trait::async_trait;
use heapstead_types::{ExecutionId, HeapKey, Principal, SessionId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

#[async_trait]
impl TurnStateRecords for Sqlite {
    async fn turn_state(&self, principal: &Principal, id: HeapKey) -> Result<Option<TurnState>, RecordsError> {
        if !id.is_state() {
            return Ok(None);
        }
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT id, execution_id, heap, skipped FROM turn_states WHERE id = ? AND principal = ?")?
                .query_row(params![id.to_string(), principal.as_str()], read_state)
                .optional()
        })
        .await
    }

    async fn stored_heaps(&self, ids: Vec<HeapKey>) -> Result<Vec<Option<HeapKey>>, RecordsError> {
        if !ids.iter().any(HeapKey::is_state) {
            return Ok(ids.into_iter().map(Some).collect());
        }
        self.read(move |db| {
            let mut statement = db.prepare_cached("SELECT heap FROM turn_states WHERE id = ?")?;
            let mut stored =
                |id: &HeapKey| Ok(statement.query_row([id.to_string()], |row| heap_key(row, 0)).optional()?.unwrap_or(Some(*id)));
            ids.iter().map(&mut stored).collect()
        })
        .await
    }

    async fn tails(&self, heads: Vec<HeapKey>) -> Result<Vec<Tail>, RecordsError> {
        if !heads.iter().any(HeapKey::is_state) {
            return Ok(heads.into_iter().map(|head| Tail { checkpoint: Some(head), turns: 0 }).collect());
        }
        self.read(move |db| heads.into_iter().map(|head| tail(db, head)).collect()).await
    }

    async fn turn_state_of(&self, principal: &Principal, execution: &ExecutionId) -> Result<Option<TurnState>, RecordsError> {
        let (principal, execution) = (principal.clone(), execution.clone());
        self.read(move |db| {
            db.prepare_cached("SELECT id, execution_id, heap, skipped FROM turn_states WHERE execution_id = ? AND principal = ?")?
                .query_row(params![execution.as_str(), principal.as_str()], read_state)
                .optional()
        })
        .await
    }

    async fn checkpoint_failed(&self, principal: &Principal, id: HeapKey, why: &str) -> Result<(), RecordsError> {
        let (principal, why) = (principal.clone(), why.to_owned());
        self.write(Durability::Process, move |db| {
            db.prepare_cached(
                "UPDATE turn_states SET heap_error = ?3 FROM (SELECT session, seq FROM turn_states WHERE id = ?1 AND principal = ?2) AS failed
                 WHERE turn_states.session = failed.session AND turn_states.seq <= failed.seq AND heap IS NULL AND skipped = 0",
            )?
            .execute(params![id.to_string(), principal.as_str(), why])
            .map(drop)
        })
        .await
    }

    async fn add_checkpoint(&self, principal: &Principal, id: HeapKey, heap: NewHeap, at: Timestamp) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| add_checkpoint(db, &principal, id, &heap, at)).await
    }
}

fn add_checkpoint(db: &Connection, principal: &Principal, id: HeapKey, heap: &NewHeap, at: Timestamp) -> rusqlite::Result<bool> {
    let key = heap.key.to_string();
    let found: Option<(i64, String, String)> = db
        .prepare_cached("UPDATE turn_states SET heap = ? WHERE id = ? AND principal = ? RETURNING seq, session, execution_id")?
        .query_row(params![key, id.to_string(), principal.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((seq, session, execution)) = found else { return Ok(false) };
    db.prepare_cached("UPDATE turn_states SET skipped = 1 WHERE session = ? AND heap IS NULL AND skipped = 0 AND seq < ?")?
        .execute(params![session, seq])?;
    db.prepare_cached("UPDATE executions SET heap = ? WHERE id = ?")?.execute([&key, &execution])?;
    db.prepare_cached(
        "UPDATE sessions SET checkpoint = ?1 WHERE sid = ?2 AND ended_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM turn_states WHERE session = ?2 AND seq > ?3 AND heap IS NOT NULL)
         AND NOT EXISTS (SELECT 1 FROM log WHERE session = sessions.id AND output_heap = ?4 AND undone = 1)",
    )?
    .execute(params![key, session, seq, id.to_string()])?;
    heaps::record(db, principal.as_str(), heap, at)?;
    Ok(true)
}

/// Goes back from turn to turn, until one starts from a stored heap.
pub fn tail(db: &Connection, head: HeapKey) -> rusqlite::Result<Tail> {
    db.prepare_cached(
        "WITH RECURSIVE back (id, turns) AS (
           SELECT ?, 0
           UNION ALL SELECT input_heap, turns + 1 FROM back JOIN turn_states ON turn_states.id = back.id
             JOIN journal ON journal.execution_id = turn_states.execution_id WHERE heap IS NULL)
         SELECT coalesce(heap, back.id), turns FROM back LEFT JOIN turn_states ON turn_states.id = back.id ORDER BY turns DESC LIMIT 1",
    )?
    .query_row([head.to_string()], |row| {
        Ok(Tail { checkpoint: heap_key(row, 0)?.filter(|key| !key.is_state()), turns: row.get::<_, i64>(1)? as u64 })
    })
}

/// Adds the state after an execution that ends.
pub fn insert(db: &Connection, id: &ExecutionId, principal: &str, session: SessionId, state: HeapKey) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT INTO turn_states (id, principal, session, execution_id) VALUES (?, ?, ?, ?)")?
        .execute(params![state.to_string(), principal, session.to_string(), id.as_str()])
        .map(drop)
}

/// The heap of a later turn is stored.
pub fn skip_pending(db: &Connection, session: SessionId) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE turn_states SET skipped = 1 WHERE session = ? AND heap IS NULL AND skipped = 0")?
        .execute([session.to_string()])
        .map(drop)
}

fn read_state(row: &Row<'_>) -> rusqlite::Result<TurnState> {
    Ok(TurnState {
        id: heap_key(row, 0)?.ok_or(rusqlite::Error::InvalidQuery)?,
        execution: execution_id(row, 1)?,
        heap: state_heap(row, 2)?,
    })
}

/// Two columns: the heap, and whether it is skipped.
pub fn state_heap(row: &Row<'_>, index: usize) -> rusqlite::Result<StateHeap> {
    Ok(match (heap_key(row, index)?, row.get::<_, Option<bool>>(index + 1)?) {
        (Some(key), _) => StateHeap::Stored(key),
        (None, Some(true)) => StateHeap::Skipped,
        (None, _) => StateHeap::Pending,
    })
}
