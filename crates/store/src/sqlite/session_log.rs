//! Session logs in SQLite.

use super::Sqlite;
use super::columns::{execution_id, heap_key, timestamp};
use super::sessions::LIVES;
use crate::records::{Head, LogEntry, LogRange, NameRange, NewLogEntry, OpenedOn, RecordsError, RunSession, SessionLogRecords};
use async_trait::async_trait;
use heapstead_types::{HeapKey, Principal, SessionId, SessionName};
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
                 AND (opened = 0 OR ((:any OR connection = :connection) AND {LIVES})) AND name > :after ORDER BY name LIMIT :limit"
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

    async fn session_log(&self, principal: &Principal, session: &SessionName, range: LogRange) -> Result<Vec<LogEntry>, RecordsError> {
        let (principal, session) = (principal.clone(), session.clone());
        self.read(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT log.idx, input_heap, output_heap, code, timestamp, execution_id FROM log JOIN sessions ON sessions.id = log.session
                 WHERE sessions.principal = ? AND sessions.name = ? AND log.idx >= ? ORDER BY log.idx LIMIT ?",
            )?;
            let limit = range.limit.map_or(-1, i64::from);
            let mut rows = statement.query(params![principal.as_str(), session.as_str(), range.from as i64, limit])?;
            let (mut entries, mut code_bytes) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                let entry = LogEntry {
                    index: row.get::<_, i64>(0)? as u64,
                    input_heap: heap_key(row, 1)?,
                    output_heap: heap_key(row, 2)?.ok_or(rusqlite::Error::InvalidQuery)?,
                    code: row.get(3)?,
                    timestamp: timestamp(row, 4)?,
                    execution_id: execution_id(row, 5)?,
                };
                code_bytes += entry.code.len();
                entries.push(entry);
                if range.code_bytes_max.is_some_and(|max| code_bytes > max) && entries.len() > 1 {
                    break;
                }
            }
            Ok(entries)
        })
        .await
    }

    async fn log_has_heap(&self, session: SessionId, heap: HeapKey) -> Result<bool, RecordsError> {
        self.read(move |db| {
            db.prepare_cached(
                "SELECT 1 FROM log WHERE output_heap = ?1 AND session = (SELECT id FROM sessions WHERE sid = ?2)
                 UNION ALL SELECT 1 FROM log WHERE input_heap = ?1 AND session = (SELECT id FROM sessions WHERE sid = ?2)",
            )?
            .exists(params![heap.to_string(), session.to_string()])
        })
        .await
    }
}

/// Appends an entry. A named session is created with its first entry; the head of an opened session moves, and is returned.
pub fn append(db: &Connection, principal: &str, entry: &NewLogEntry) -> rusqlite::Result<Option<Head>> {
    let numbered = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let numbered: Option<(i64, i64)> = match &entry.session {
        RunSession::Named(name) => db
            .prepare_cached(
                "INSERT INTO sessions (principal, name, sid, next_index, created_at) VALUES (?, ?, lower(hex(randomblob(32))), 1, ?)
                 ON CONFLICT (principal, name) DO UPDATE SET next_index = next_index + 1 RETURNING id, next_index",
            )?
            .query_row(params![principal, name.as_str(), entry.timestamp.as_microsecond()], numbered)
            .map(Some)?,
        RunSession::Opened { id, .. } => db
            .prepare_cached(
                "UPDATE sessions SET head = ?, next_index = next_index + 1 WHERE sid = ? AND opened = 1 AND ended_at IS NULL
                 RETURNING id, next_index",
            )?
            .query_row(params![entry.output_heap.to_string(), id.to_string()], numbered)
            .optional()?,
    };
    // A session that ended meanwhile has no log any more.
    let Some((session, next)) = numbered else { return Ok(None) };
    db.prepare_cached(
        "INSERT INTO log (session, idx, input_heap, output_heap, code, timestamp, execution_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        session,
        next - 1,
        entry.input_heap.map(|key| key.to_string()),
        entry.output_heap.to_string(),
        entry.code,
        entry.timestamp.as_microsecond(),
        entry.execution_id.as_str(),
    ])?;
    let head = Head { sequence: next as u64, heap: Some(entry.output_heap) };
    Ok(entry.session.opened().map(|_| head))
}
