//! The log of each session: one entry per execution that completed in it, numbered without gaps.

use super::executions::{execution_id, heap_key, timestamp};
use super::sessions::{InSession, LIVES};
use super::{Metadata, MetadataError};
use heapstead_types::{ExecutionId, HeapKey, Principal, SessionId, SessionName};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, named_params, params};

#[derive(Debug, Clone)]
pub struct NewLogEntry {
    pub session: InSession,
    pub input_heap: Option<HeapKey>,
    pub output_heap: HeapKey,
    /// The JavaScript that ran, after type stripping.
    pub code: String,
    pub timestamp: Timestamp,
    pub execution_id: ExecutionId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    pub index: u64,
    pub input_heap: Option<HeapKey>,
    pub output_heap: HeapKey,
    pub code: String,
    pub timestamp: Timestamp,
    pub execution_id: ExecutionId,
}

/// Which opened sessions of an owner are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenedOn {
    Any,
    /// Those that were opened on this connection.
    Connection(String),
    None,
}

impl Metadata {
    /// The sessions that have at least one entry, in order: logs by their name, opened sessions that have not ended by their id.
    pub async fn sessions(
        &self,
        principal: &Principal,
        opened: OpenedOn,
        range: NameRange,
        now: Timestamp,
    ) -> Result<Vec<String>, MetadataError> {
        let principal = principal.clone();
        self.read(move |db| {
            // An opened session has its id as its name.
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

    /// Entries from an index on, in order. None for a session that does not exist.
    pub async fn log(&self, principal: &Principal, session: &SessionName, range: LogRange) -> Result<Vec<LogEntry>, MetadataError> {
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
}

/// Which names of a list are read.
#[derive(Debug, Clone, Default)]
pub struct NameRange {
    /// Those that come after this one.
    pub after: Option<String>,
    pub limit: Option<u32>,
}

/// Which entries of a log are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRange {
    pub from: u64,
    pub limit: Option<u32>,
    /// Reading ends with the entry that passes this, after the second at the earliest: whoever asks sees that there are more.
    pub code_bytes_max: Option<usize>,
}

impl Metadata {
    /// Whether a run in this session began from this heap or left it.
    pub async fn log_has_heap(&self, session: SessionId, heap: HeapKey) -> Result<bool, MetadataError> {
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

/// Adds the next entry. A named session comes into being with its first; the head of an opened one moves.
pub fn append(db: &Connection, principal: &str, entry: &NewLogEntry) -> rusqlite::Result<()> {
    let numbered = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let numbered: Option<(i64, i64)> = match &entry.session {
        InSession::Named(name) => db
            .prepare_cached(
                "INSERT INTO sessions (principal, name, sid, next_index, created_at) VALUES (?, ?, lower(hex(randomblob(32))), 1, ?)
                 ON CONFLICT (principal, name) DO UPDATE SET next_index = next_index + 1 RETURNING id, next_index",
            )?
            .query_row(params![principal, name.as_str(), entry.timestamp.as_microsecond()], numbered)
            .map(Some)?,
        InSession::Opened { id, .. } => db
            .prepare_cached(
                "UPDATE sessions SET head = ?, next_index = next_index + 1 WHERE sid = ? AND opened = 1 AND ended_at IS NULL
                 RETURNING id, next_index",
            )?
            .query_row(params![entry.output_heap.to_string(), id.to_string()], numbered)
            .optional()?,
    };
    // A session that ended meanwhile has no log any more.
    let Some((session, next)) = numbered else { return Ok(()) };
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
    ])
    .map(drop)
}
