//! The journal in SQLite.

use super::columns::{execution_id, heap_key, is_heap, optional_session_id as session, unreadable};
use super::owners::ROW_BYTES;
use super::{Durability, Sqlite, heaps, turn_states};
use crate::records::{JournalEntry, JournalLink, JournalRecords, LINKS_MAX, RebuiltHeap, RecordsError};
use async_trait::async_trait;
use heapstead_types::{ExecutionId, HeapKey, Limits, Principal, SessionId};
use rusqlite::{Connection, OptionalExtension, Row, params};

#[async_trait]
impl JournalRecords for Sqlite {
    async fn journal_entry(&self, principal: &Principal, id: &ExecutionId) -> Result<Option<JournalEntry>, RecordsError> {
        let (principal, id) = (principal.clone(), id.clone());
        self.read(move |db| {
            db.prepare_cached(
                "SELECT code, input_heap, heap_mb, timeout_secs, output_bytes_max, engine, seed, inputs, output_sha256, result_sha256,
                 session, output_heap, is_import, form FROM journal WHERE execution_id = ? AND principal = ?",
            )?
            .query_row(params![id.as_str(), principal.as_str()], entry)
            .optional()
        })
        .await
    }

    async fn links(&self, principal: &Principal, heap: HeapKey) -> Result<Vec<JournalLink>, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| links(db, &principal, heap)).await
    }

    async fn import_input(&self, session: SessionId, heap: HeapKey) -> Result<Option<Option<HeapKey>>, RecordsError> {
        self.read(move |db| {
            db.prepare_cached(
                "SELECT input_heap FROM journal WHERE session = ?1 AND ?2 IN (output_heap, rebuilt_heap) AND is_import = 1
                 ORDER BY rowid DESC LIMIT 1",
            )?
            .query_row(params![session.to_string(), heap.to_string()], |row| heap_key(row, 0))
            .optional()
        })
        .await
    }

    async fn add_rebuilt(&self, principal: &Principal, rebuilt: RebuiltHeap) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| {
            let RebuiltHeap { execution, heap, session, at } = &rebuilt;
            let key = heap.key.to_string();
            let is_recorded = "SELECT 1 FROM journal WHERE execution_id = ? AND principal = ?";
            if !db.prepare_cached(is_recorded)?.exists(params![execution.as_str(), principal.as_str()])? {
                return Ok(false);
            }
            if let Some(session) = session {
                let session: Option<i64> = db
                    .prepare_cached(
                        "UPDATE sessions SET head = ? WHERE sid = ? AND principal = ? AND opened = 1 AND ended_at IS NULL RETURNING id",
                    )?
                    .query_row(params![key, session.to_string(), principal.as_str()], |row| row.get(0))
                    .optional()?;
                let Some(session) = session else { return Ok(false) };
                db.prepare_cached("UPDATE log SET output_heap = ? WHERE session = ? AND execution_id = ?")?.execute(params![
                    key,
                    session,
                    execution.as_str()
                ])?;
            }
            db.prepare_cached("UPDATE journal SET rebuilt_heap = ? WHERE execution_id = ?")?.execute(params![key, execution.as_str()])?;
            if let Some(session) = session {
                turn_states::skip_pending(db, *session)?;
            }
            heaps::record(db, principal.as_str(), heap, *at)?;
            Ok(true)
        })
        .await
    }
}

fn producer(db: &Connection, principal: &Principal, heap: HeapKey) -> rusqlite::Result<Option<ExecutionId>> {
    db.prepare_cached(concat!(
        "SELECT execution_id, rowid FROM journal WHERE output_heap = ?1 AND ",
        is_heap!("output_heap"),
        " AND principal = ?2
         UNION ALL SELECT execution_id, rowid FROM journal WHERE rebuilt_heap = ?1 AND principal = ?2
         UNION ALL SELECT execution_id, coalesce(journal.rowid, seq) FROM turn_states LEFT JOIN journal USING (execution_id)
           WHERE heap = ?1 AND turn_states.principal = ?2
         UNION ALL SELECT journal.execution_id, journal.rowid FROM turn_states JOIN journal USING (execution_id)
           WHERE id = ?1 AND turn_states.principal = ?2
         ORDER BY rowid LIMIT 1",
    ))?
    .query_row(params![heap.to_string(), principal.as_str()], |row| execution_id(row, 0))
    .optional()
}

fn links(db: &Connection, principal: &Principal, heap: HeapKey) -> rusqlite::Result<Vec<JournalLink>> {
    let mut link = db.prepare_cached(
        "SELECT journal.execution_id, is_import, input_heap, heap_mb, before.id IS NOT NULL AND before.heap IS NULL
         FROM journal LEFT JOIN turn_states AS before ON before.id = input_heap WHERE journal.execution_id = ? AND journal.principal = ?",
    )?;
    let (mut links, mut wanted) = (Vec::new(), Some(heap));
    while let Some(heap) = wanted.filter(|_| links.len() < LINKS_MAX)
        && let Some(execution) = producer(db, principal, heap)?
    {
        let found = link.query_row(params![execution.as_str(), principal.as_str()], |row| {
            let link = JournalLink {
                execution: execution_id(row, 0)?,
                is_import: row.get(1)?,
                input_heap: heap_key(row, 2)?,
                heap_mb: row.get(3)?,
            };
            Ok((link, row.get::<_, bool>(4)?))
        });
        let Some((link, is_unstored)) = found.optional()? else { break };
        wanted = link.input_heap.filter(|_| is_unstored);
        links.push(link);
    }
    Ok(links)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<JournalEntry> {
    let engine: String = row.get(5)?;
    Ok(JournalEntry {
        session: session(row, 10)?,
        is_import: row.get(12)?,
        code: row.get::<_, String>(0)?.into(),
        form: row.get(13)?,
        input_heap: heap_key(row, 1)?,
        output_heap: heap_key(row, 11)?,
        limits: Limits { heap_mb: row.get(2)?, timeout_secs: row.get(3)?, output_bytes_max: row.get::<_, i64>(4)? as u64 },
        engine: engine.parse().map_err(|error| unreadable(5, error))?,
        seed: row.get(6)?,
        inputs: row.get(7)?,
        output_sha256: row.get(8)?,
        result_sha256: row.get(9)?,
    })
}

/// Adds the entry of an execution that ends, or of an import.
pub fn insert(db: &Connection, id: &ExecutionId, principal: &str, entry: &JournalEntry) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO journal (execution_id, principal, session, input_heap, output_heap, heap_mb, timeout_secs, output_bytes_max, engine,
         seed, output_sha256, result_sha256, bytes, code, form, inputs, is_import) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        id.as_str(),
        principal,
        entry.session.map(|session| session.to_string()),
        entry.input_heap.map(|key| key.to_string()),
        entry.output_heap.map(|key| key.to_string()),
        entry.limits.heap_mb,
        entry.limits.timeout_secs,
        entry.limits.output_bytes_max as i64,
        entry.engine.to_string(),
        entry.seed,
        entry.output_sha256,
        entry.result_sha256,
        ROW_BYTES + (entry.code.len() + entry.form.as_ref().map_or(0, Vec::len) + entry.inputs.len()) as i64,
        &*entry.code,
        entry.form,
        entry.inputs,
        entry.is_import,
    ])
    .map(drop)
}
