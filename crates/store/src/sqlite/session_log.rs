//! Session logs in SQLite.

use super::columns::{execution_id, heap_key, is_heap, timestamp};
use super::long_column::LongColumn;
use super::owners::{self, ROW_BYTES};
use super::sessions::LIVES;
use super::{Durability, Sqlite, turn_states};
use crate::records::{
    Head, LastTurn, LogEntry, LogRange, NameRange, NewLogEntry, OpenedOn, RecordsError, RunSession, SessionLogRecords, TextPart,
};
use async_trait::async_trait;
use heapstead_types::{ExecutionId, HeapKey, Principal, SessionId, SessionName};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, named_params, params};

#[async_trait]
impl SessionLogRecords for Sqlite {
    async fn session_names(
        &self,
        principal: &Principal,
        opened: OpenedOn,
        range: NameRange,
        now: Timestamp,
    ) -> Result<Vec<String>, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            // The name of an opened session is its id.
            let sql = format!(
                "SELECT name FROM sessions WHERE principal = :principal AND next_index > 0
                 AND ((opened = 0 AND ended_at IS NULL) OR ((:any OR connection = :connection) AND {LIVES})) AND name > :after ORDER BY name LIMIT :limit"
            );
            let (any, connection) = match opened {
                OpenedOn::Any => (true, None),
                OpenedOn::None => (false, None),
                OpenedOn::Connection(id) => (false, Some(id)),
            };
            let bindings = named_params! {
                ":principal": principal.as_str(), ":any": any, ":connection": connection, ":now": now.as_microsecond(),
                ":after": range.after.unwrap_or_default(), ":limit": range.limit.map_or(-1, i64::from),
            };
            db.prepare_cached(&sql)?.query_map(bindings, |row| row.get(0))?.collect()
        })
        .await
    }

    async fn session_log(
        &self,
        principal: &Principal,
        session: &SessionName,
        range: LogRange,
    ) -> Result<(Vec<LogEntry>, bool), RecordsError> {
        let (principal, session) = (principal.clone(), session.clone());
        self.read(move |db| read_log(db, &principal, &session, range)).await
    }

    async fn logged_code(
        &self,
        principal: &Principal,
        session: &SessionName,
        index: u64,
        part: TextPart,
    ) -> Result<Option<String>, RecordsError> {
        let (principal, session) = (principal.clone(), session.clone());
        self.read(move |db| {
            let row: Option<i64> = db
                .prepare_cached(
                    "SELECT log.rowid FROM log JOIN sessions ON sessions.id = log.session
                     WHERE sessions.principal = ? AND sessions.name = ? AND log.idx = ?",
                )?
                .query_row(params![principal.as_str(), session.as_str(), index as i64], |row| row.get(0))
                .optional()?;
            row.map(|row| CODE.part(db, row, part)).transpose()
        })
        .await
    }

    async fn turn_of(&self, session: SessionId, execution: &ExecutionId) -> Result<Option<u64>, RecordsError> {
        let execution = execution.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT idx FROM log WHERE session = (SELECT id FROM sessions WHERE sid = ?) AND execution_id = ?")?
                .query_row(params![session.to_string(), execution.as_str()], |row| row.get::<_, i64>(0))
                .optional()
                .map(|turn| turn.map(|turn| turn as u64))
        })
        .await
    }

    async fn last_turns(&self, session: SessionId, limit: u32) -> Result<Vec<LastTurn>, RecordsError> {
        self.read(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT idx, CASE WHEN instead_of IS NULL THEN input_heap ELSE nullif(instead_of, '') END, output_heap FROM log
                 WHERE session = (SELECT id FROM sessions WHERE sid = ?) AND undone = 0 ORDER BY idx DESC LIMIT ?",
            )?;
            let read = |row: &rusqlite::Row<'_>| {
                let after = heap_key(row, 2)?.ok_or(rusqlite::Error::InvalidQuery)?;
                Ok(LastTurn { index: row.get::<_, i64>(0)? as u64, before: heap_key(row, 1)?, after })
            };
            statement.query_map(params![session.to_string(), limit], read)?.collect()
        })
        .await
    }

    async fn undo_turns(&self, session: SessionId, from: u64, head: Option<HeapKey>) -> Result<Option<Head>, RecordsError> {
        self.write(Durability::Power, move |db| undo(db, session, from, head)).await
    }

    async fn log_has_heap(&self, session: SessionId, heap: HeapKey) -> Result<bool, RecordsError> {
        self.read(move |db| {
            db.prepare_cached(concat!(
                "SELECT 1 FROM log WHERE output_heap = ?1 AND ",
                is_heap!("output_heap"),
                " AND session = (SELECT id FROM sessions WHERE sid = ?2)
                 UNION ALL SELECT 1 FROM log WHERE input_heap = ?1 AND ",
                is_heap!("input_heap"),
                " AND session = (SELECT id FROM sessions WHERE sid = ?2)
                 UNION ALL SELECT 1 FROM turn_states WHERE heap = ?1 AND session = ?2
                 UNION ALL SELECT 1 FROM turn_states WHERE id = ?1 AND session = ?2",
            ))?
            .exists(params![heap.to_string(), session.to_string()])
        })
        .await
    }
}

const CODE: LongColumn = LongColumn { table: "log", column: "code" };

fn read_log(db: &Connection, principal: &Principal, session: &SessionName, range: LogRange) -> rusqlite::Result<(Vec<LogEntry>, bool)> {
    let mut statement = db.prepare_cached(
        "SELECT log.idx, input_heap, output_heap, octet_length(code), timestamp, log.execution_id, log.rowid, log.undone,
         CASE WHEN before.id IS NULL THEN input_heap ELSE before.heap END, CASE WHEN after.id IS NULL THEN output_heap ELSE after.heap END
         FROM log LEFT JOIN turn_states AS before ON before.id = input_heap LEFT JOIN turn_states AS after ON after.id = output_heap
         JOIN sessions ON sessions.id = log.session
         WHERE sessions.principal = ? AND sessions.name = ? AND log.idx >= ? ORDER BY log.idx LIMIT ?",
    )?;
    // One more than the limit shows whether there are more.
    let limit = range.limit.map_or(-1, |limit| i64::from(limit) + 1);
    // No log has an index that SQLite can't store, so nothing follows such a cursor.
    let from = i64::try_from(range.from).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![principal.as_str(), session.as_str(), from, limit])?;
    let (mut entries, mut bytes_left) = (Vec::new(), range.code_bytes_max.unwrap_or(usize::MAX));
    while let Some(row) = rows.next()? {
        let mut entry = LogEntry {
            index: row.get::<_, i64>(0)? as u64,
            before: heap_key(row, 1)?,
            after: heap_key(row, 2)?.ok_or(rusqlite::Error::InvalidQuery)?,
            input_heap: heap_key(row, 8)?,
            output_heap: heap_key(row, 9)?,
            code: String::new(),
            code_bytes: row.get::<_, i64>(3)? as u64,
            timestamp: timestamp(row, 4)?,
            execution_id: execution_id(row, 5)?,
            is_undone: row.get(7)?,
        };
        let bytes = range.code_bytes_each.unwrap_or(usize::MAX).min(entry.code_bytes as usize);
        if range.limit.is_some_and(|limit| entries.len() >= limit as usize) || (bytes > bytes_left && !entries.is_empty()) {
            return Ok((entries, true));
        }
        if bytes > 0 {
            entry.code = CODE.part(db, row.get(6)?, TextPart { offset: 0, bytes_max: bytes })?;
        }
        bytes_left = bytes_left.saturating_sub(bytes);
        entries.push(entry);
    }
    Ok((entries, false))
}

fn undo(db: &Connection, session: SessionId, from: u64, head: Option<HeapKey>) -> rusqlite::Result<Option<Head>> {
    // A state may have no heap: then this is the one that the turns of the journal start from.
    let checkpoint = match head.filter(HeapKey::is_state) {
        Some(state) => turn_states::tail(db, state)?.checkpoint,
        None => None,
    };
    let moved: Option<(i64, i64)> = db
        .prepare_cached(
            "UPDATE sessions SET head = ?1, checkpoint = ?2 WHERE sid = ?3 AND opened = 1 AND ended_at IS NULL RETURNING id, next_index",
        )?
        .query_row(params![head.map(|key| key.to_string()), checkpoint.map(|key| key.to_string()), session.to_string()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((id, next)) = moved else { return Ok(None) };
    db.prepare_cached("UPDATE log SET undone = 1 WHERE session = ? AND idx >= ? AND undone = 0")?.execute(params![id, from as i64])?;
    Ok(Some(Head { sequence: next as u64, heap: head }))
}

/// Marks turns of a logical session as undone whose head has been moved to a stored heap.
pub fn mark_undone(db: &Connection, logical: &str, from: u64) -> rusqlite::Result<()> {
    const SESSION: &str = "(SELECT session FROM logical_sessions WHERE id = ?)";
    db.prepare_cached(&format!("UPDATE sessions SET checkpoint = NULL WHERE id = {SESSION}"))?.execute([logical])?;
    db.prepare_cached(&format!("UPDATE log SET undone = 1 WHERE session = {SESSION} AND idx >= ? AND undone = 0"))?
        .execute(params![logical, from as i64])
        .map(drop)
}

/// Deletes entries of a session until none are left, or `bytes_left` is used up. Returns whether none are left.
pub fn delete(db: &Connection, session: i64, principal: &str, bytes_left: &mut i64) -> rusqlite::Result<bool> {
    let mut entries = db.prepare_cached("SELECT rowid, octet_length(code) FROM log WHERE session = ? ORDER BY idx")?;
    let mut remove = db.prepare_cached("DELETE FROM log WHERE rowid = ?")?;
    let (mut rows, mut freed, mut found) = (entries.query([session])?, 0, Vec::new());
    let mut is_all = true;
    while let Some(row) = rows.next()? {
        if freed >= *bytes_left {
            is_all = false;
            break;
        }
        found.push(row.get::<_, i64>(0)?);
        freed += ROW_BYTES + row.get::<_, i64>(1)?;
    }
    drop(rows);
    found.iter().try_for_each(|row| remove.execute([row]).map(drop))?;
    *bytes_left -= freed;
    owners::add_stored(db, principal, -freed)?;
    Ok(is_all)
}

/// Appends an entry. A named session is created with its first entry; the head of an opened session moves, and is returned.
pub fn append(db: &Connection, principal: &str, entry: &NewLogEntry) -> rusqlite::Result<Option<Head>> {
    let numbered = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let numbered: Option<(i64, i64)> = match &entry.session {
        RunSession::Named(name) => db
            .prepare_cached(
                "INSERT INTO sessions (principal, name, sid, next_index, created_at, used_at) VALUES (?1, ?2, lower(hex(randomblob(32))), 1, ?3, ?3)
                 ON CONFLICT (principal, name) DO UPDATE SET next_index = next_index + 1, used_at = excluded.used_at RETURNING id, next_index",
            )?
            .query_row(params![principal, name.as_str(), entry.timestamp.as_microsecond()], numbered)
            .map(Some)?,
        RunSession::Opened { id, .. } => {
            let is_tail = entry.output_heap.is_state() && entry.input_heap.is_some_and(|input| input.is_state());
            // The heap that the turns of the journal start from.
            let checkpoint = entry.input_heap.filter(|_| entry.output_heap.is_state()).map(|key| key.to_string());
            db.prepare_cached(
                "UPDATE sessions SET head = ?1, checkpoint = CASE WHEN ?2 THEN checkpoint ELSE ?3 END, next_index = next_index + 1
                 WHERE sid = ?4 AND opened = 1 AND ended_at IS NULL RETURNING id, next_index",
            )?
            .query_row(params![entry.output_heap.to_string(), is_tail, checkpoint, id.to_string()], numbered)
            .optional()?
        }
    };
    // A session that ended meanwhile has no log any more.
    let Some((session, next)) = numbered else { return Ok(None) };
    db.prepare_cached(
        "INSERT INTO log (session, idx, input_heap, instead_of, output_heap, code, timestamp, execution_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        session,
        next - 1,
        entry.input_heap.map(|key| key.to_string()),
        entry.instead_of.map(|head| head.map(|key| key.to_string()).unwrap_or_default()),
        entry.output_heap.to_string(),
        &*entry.code,
        entry.timestamp.as_microsecond(),
        entry.execution_id.as_str(),
    ])?;
    owners::add_stored(db, principal, ROW_BYTES + entry.code.len() as i64)?;
    let head = Head { sequence: next as u64, heap: Some(entry.output_heap) };
    Ok(entry.session.opened().map(|_| head))
}
