//! Executions: one row each, from the moment it is accepted. Its end is set once and never again.

use super::logical_sessions::{self, Bind};
use super::session_log::{self, NewLogEntry};
use super::sessions::{self, InSession};
use super::{Durability, Metadata, MetadataError, heap_uses, tags};
use crate::Tags;
use crate::outputs::Extent;
use heapstead_types::{ExecutionId, HeapKey, Principal, SessionName, Status};
use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

/// An execution that was accepted.
#[derive(Debug, Clone)]
pub struct NewExecution {
    pub id: ExecutionId,
    pub principal: Principal,
    pub session: Option<InSession>,
    pub started_at: Timestamp,
    pub input_heap: Option<HeapKey>,
    /// Nobody asked for it: it prepares a session, is in no list, and leaves no record.
    pub internal: bool,
}

/// What became of an execution that wants to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    Begun,
    /// Its session has ended. Nothing was written.
    SessionEnded,
    /// Its owner has as many running as it may have. Nothing was written.
    TooMany,
}

/// How it ended, and everything that has to become true in the same moment.
#[derive(Debug, Clone)]
pub struct ExecutionEnd {
    pub status: Status,
    /// When its code began; where nobody knows, the record goes on saying when it was accepted.
    pub started_at: Option<Timestamp>,
    pub completed_at: Timestamp,
    pub result: Option<String>,
    pub error: Option<String>,
    pub warnings: Vec<String>,
    pub output: Extent,
    /// The heap it left, and the bytes of that heap.
    pub heap: Option<(HeapKey, u64)>,
    /// Replaces the tags of that heap.
    pub tags: Option<Tags>,
    /// Its entry in the log of its session.
    pub log: Option<NewLogEntry>,
    /// The logical session it ran in, and until when what that is bound to is kept.
    pub keeps: Option<(Uuid, Timestamp)>,
    /// What it changes about its logical session, whether it completed or not.
    pub bind: Option<Bind>,
    /// What it found out about the continuity of its session.
    pub continuity: Option<Finding>,
}

impl ExecutionEnd {
    /// An end now, of which nothing else is to be kept.
    pub fn bare(status: Status) -> Self {
        Self {
            status,
            started_at: None,
            completed_at: Timestamp::now(),
            result: None,
            error: None,
            warnings: Vec::new(),
            output: Extent::default(),
            heap: None,
            tags: None,
            log: None,
            keeps: None,
            bind: None,
            continuity: None,
        }
    }
}

/// What a run found out about the continuity of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub json: String,
    /// Somebody waits to be answered with it. Otherwise it is kept until somebody is.
    pub is_told: bool,
}

/// An execution as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub id: ExecutionId,
    pub process: String,
    pub status: Status,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub heap: Option<HeapKey>,
    pub error: Option<String>,
    pub warnings: Vec<String>,
    pub output: Extent,
    /// What it told about the continuity of its session, as JSON.
    pub continuity: Option<String>,
    pub result: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionSummary {
    pub id: ExecutionId,
    pub status: Status,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
}

/// Where a list goes on: before this row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor(pub i64);

#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    pub status: Option<Status>,
    pub session: Option<SessionName>,
    /// All that run, and all that ended since.
    pub ended_since: Option<Timestamp>,
    pub before: Option<Cursor>,
    pub limit: Option<u32>,
}

impl Metadata {
    /// Takes an execution down as running, in this process.
    pub async fn begin_execution(&self, new: NewExecution, running_max: Option<u32>) -> Result<Beginning, MetadataError> {
        let process = self.0.process.name().to_owned();
        self.write(Durability::Process, move |db| begin_execution(db, &new, &process, running_max)).await
    }

    /// Sets the end of a running execution, with its log entry, tags and heap, all in one transaction. False when it had ended already: then
    /// nothing is changed.
    pub async fn end_execution(&self, id: ExecutionId, end: ExecutionEnd) -> Result<bool, MetadataError> {
        let process = self.0.process.name().to_owned();
        self.write(Durability::Power, move |db| end_execution(db, &id, &end, &process)).await
    }

    pub async fn execution(&self, principal: &Principal, id: &ExecutionId) -> Result<Option<Execution>, MetadataError> {
        self.find_execution(principal, id, "result").await
    }

    /// As [`execution`](Self::execution), without the result, which may be megabytes.
    pub async fn execution_without_result(&self, principal: &Principal, id: &ExecutionId) -> Result<Option<Execution>, MetadataError> {
        self.find_execution(principal, id, "NULL").await
    }

    async fn find_execution(&self, principal: &Principal, id: &ExecutionId, result: &str) -> Result<Option<Execution>, MetadataError> {
        let sql = format!(
            "SELECT id, process, status, started_at, completed_at, heap, error, warnings, output_bytes, output_lines, continuity, {result}
             FROM executions WHERE id = ? AND principal = ?"
        );
        let (principal, id) = (principal.clone(), id.clone());
        self.read(move |db| db.prepare_cached(&sql)?.query_row(params![id.as_str(), principal.as_str()], read_execution).optional()).await
    }

    /// Where a list goes on after an execution of this owner.
    pub async fn after_execution(&self, principal: &Principal, id: &ExecutionId) -> Result<Option<Cursor>, MetadataError> {
        let (principal, id) = (principal.clone(), id.clone());
        self.read(move |db| {
            db.prepare_cached("SELECT seq FROM executions WHERE id = ? AND principal = ?")?
                .query_row(params![id.as_str(), principal.as_str()], |row| row.get(0).map(Cursor))
                .optional()
        })
        .await
    }

    /// Newest first, and where to go on when there are more.
    pub async fn executions(
        &self,
        principal: &Principal,
        filter: ExecutionFilter,
    ) -> Result<(Vec<ExecutionSummary>, Option<Cursor>), MetadataError> {
        let principal = principal.clone();
        self.read(move |db| list(db, &principal, &filter)).await
    }

    /// Executions that run in processes that are gone.
    pub async fn orphans(&self) -> Result<Vec<ExecutionId>, MetadataError> {
        let running = self
            .read(|db| {
                db.prepare_cached("SELECT id, process FROM executions WHERE status = 'running'")?
                    .query_map([], |row| Ok((execution_id(row, 0)?, row.get::<_, String>(1)?)))?
                    .collect::<rusqlite::Result<Vec<_>>>()
            })
            .await?;
        Ok(running.into_iter().filter(|(_, process)| !self.lives(process)).map(|(id, _)| id).collect())
    }

    /// Whether the process that runs it lives.
    pub fn lives(&self, process: &str) -> bool {
        self.0.process.is_alive(process)
    }

    pub fn forget_dead_processes(&self) {
        self.0.process.forget_dead();
    }

    /// Forgets executions that ended before; answers with some of them, or none when no more are left.
    pub async fn forget_executions(&self, before: Timestamp) -> Result<Vec<ExecutionId>, MetadataError> {
        self.write(Durability::Process, move |db| {
            db.prepare_cached(
                "DELETE FROM executions WHERE seq IN (SELECT seq FROM executions WHERE completed_at < ? ORDER BY completed_at LIMIT 500) RETURNING id",
            )?
            .query_map([before.as_microsecond()], |row| execution_id(row, 0))?
            .collect()
        })
        .await
    }
}

pub fn begin_execution(db: &Connection, new: &NewExecution, process: &str, running_max: Option<u32>) -> rusqlite::Result<Beginning> {
    if let Some(max) = running_max {
        let running: i64 = db
            .prepare_cached("SELECT count(*) FROM executions WHERE principal = ? AND status = 'running'")?
            .query_row([new.principal.as_str()], |row| row.get(0))?;
        if running >= i64::from(max) {
            return Ok(Beginning::TooMany);
        }
    }
    if let Some(InSession::Opened { id, logical, kept_until }) = &new.session {
        let expires_at = logical.is_none().then_some(*kept_until);
        if !sessions::touch(db, *id, new.started_at, expires_at)? {
            return Ok(Beginning::SessionEnded);
        }
        if let Some(logical) = logical {
            logical_sessions::keep_accepted(db, *logical, new.started_at, *kept_until)?;
        }
    }
    db.prepare_cached(
        "INSERT INTO executions (id, principal, process, session, status, started_at, input_heap, internal) VALUES (?, ?, ?, ?, 'running', ?, ?, ?)",
    )?
    .execute(params![
        new.id.as_str(),
        new.principal.as_str(),
        process,
        new.session.as_ref().map(InSession::name),
        new.started_at.as_microsecond(),
        new.input_heap.map(|key| key.to_string()),
        new.internal,
    ])?;
    if let Some(key) = &new.input_heap {
        heap_uses::note_again(db, new.principal.as_str(), key, new.started_at)?;
    }
    Ok(Beginning::Begun)
}

fn end_execution(db: &Connection, id: &ExecutionId, end: &ExecutionEnd, process: &str) -> rusqlite::Result<bool> {
    let warnings = (!end.warnings.is_empty()).then(|| serde_json::to_string(&end.warnings).unwrap_or_default());
    let found: Option<(String, bool)> = db
        .prepare_cached(
            "UPDATE executions SET status = ?, started_at = coalesce(?, started_at), completed_at = ?, heap = ?, error = ?, warnings = ?, output_bytes = ?, output_lines = ?, continuity = ?, result = ?
             WHERE id = ? AND status = 'running' RETURNING principal, internal",
        )?
        .query_row(
            params![
                end.status.as_str(),
                end.started_at.map(Timestamp::as_microsecond),
                end.completed_at.as_microsecond(),
                end.heap.map(|(key, _)| key.to_string()),
                end.error,
                warnings,
                end.output.bytes as i64,
                end.output.lines as i64,
                end.continuity.as_ref().map(|finding| &finding.json),
                end.result,
                id.as_str(),
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((principal, internal)) = found else { return Ok(false) };
    if let Some(bind) = &end.bind {
        logical_sessions::bind(db, &principal, process, bind, end.completed_at)?;
    }
    if let Some((logical, kept_until)) = end.keeps {
        logical_sessions::keep(db, logical, process, kept_until)?;
        if let Some(finding) = &end.continuity {
            logical_sessions::to_tell(db, logical, (!finding.is_told).then_some(finding.json.as_str()))?;
        }
    }
    if internal {
        db.prepare_cached("DELETE FROM executions WHERE id = ?")?.execute([id.as_str()])?;
    }
    if let Some((key, bytes)) = end.heap {
        heap_uses::note(db, &principal, &key, bytes, end.completed_at)?;
        if let Some(replaced) = &end.tags {
            tags::replace(db, &principal, &key, replaced)?;
        }
    }
    if let Some(entry) = &end.log {
        session_log::append(db, &principal, entry)?;
    }
    Ok(true)
}

fn list(db: &Connection, principal: &Principal, filter: &ExecutionFilter) -> rusqlite::Result<(Vec<ExecutionSummary>, Option<Cursor>)> {
    let mut conditions = vec!["principal = :principal", "seq < :before", "internal = 0"];
    if filter.status.is_some() {
        conditions.push("status = :status");
    }
    if filter.session.is_some() {
        conditions.push("session = :session");
    }
    if filter.ended_since.is_some() {
        conditions.push("(completed_at IS NULL OR completed_at >= :since)");
    }
    let sql = format!(
        "SELECT id, status, started_at, completed_at, seq FROM executions WHERE {} ORDER BY seq DESC LIMIT :limit",
        conditions.join(" AND ")
    );
    let mut statement = db.prepare_cached(&sql)?;
    // One more than asked for tells whether there are more.
    let limit = filter.limit.map_or(-1, |limit| i64::from(limit) + 1);
    let bindings: [(&str, rusqlite::types::Value); 5] = [
        (":principal", principal.as_str().to_owned().into()),
        (":before", filter.before.map_or(i64::MAX, |cursor| cursor.0).into()),
        (":status", filter.status.map(|status| status.as_str().to_owned()).into()),
        (":session", filter.session.as_ref().map(|session| session.as_str().to_owned()).into()),
        (":since", filter.ended_since.map(Timestamp::as_microsecond).into()),
    ];
    for (name, value) in &bindings {
        if let Some(index) = statement.parameter_index(name)? {
            statement.raw_bind_parameter(index, value)?;
        }
    }
    if let Some(index) = statement.parameter_index(":limit")? {
        statement.raw_bind_parameter(index, limit)?;
    }
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let summary = ExecutionSummary {
            id: execution_id(row, 0)?,
            status: status(row, 1)?,
            started_at: timestamp(row, 2)?,
            completed_at: optional_timestamp(row, 3)?,
        };
        found.push((summary, Cursor(row.get(4)?)));
    }
    let more = filter.limit.is_some_and(|limit| found.len() > limit as usize);
    if more {
        found.pop();
    }
    let next = if more { found.last().map(|(_, cursor)| *cursor) } else { None };
    Ok((found.into_iter().map(|(summary, _)| summary).collect(), next))
}

fn read_execution(row: &Row<'_>) -> rusqlite::Result<Execution> {
    let warnings: Option<String> = row.get(7)?;
    Ok(Execution {
        id: execution_id(row, 0)?,
        process: row.get(1)?,
        status: status(row, 2)?,
        started_at: timestamp(row, 3)?,
        completed_at: optional_timestamp(row, 4)?,
        heap: heap_key(row, 5)?,
        error: row.get(6)?,
        warnings: warnings.map(|json| serde_json::from_str(&json).map_err(|error| unreadable(7, error))).transpose()?.unwrap_or_default(),
        output: Extent { bytes: row.get::<_, i64>(8)? as u64, lines: row.get::<_, i64>(9)? as u64 },
        continuity: row.get(10)?,
        result: row.get(11)?,
    })
}

pub fn execution_id(row: &Row<'_>, index: usize) -> rusqlite::Result<ExecutionId> {
    row.get::<_, String>(index)?.parse().map_err(|error| unreadable(index, error))
}

pub fn heap_key(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<HeapKey>> {
    row.get::<_, Option<String>>(index)?.map(|text| text.parse().map_err(|error| unreadable(index, error))).transpose()
}

pub fn timestamp(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    Timestamp::from_microsecond(row.get(index)?).map_err(|error| unreadable(index, error))
}

pub fn optional_timestamp(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    row.get::<_, Option<i64>>(index)?.map(|time| Timestamp::from_microsecond(time).map_err(|error| unreadable(index, error))).transpose()
}

fn status(row: &Row<'_>, index: usize) -> rusqlite::Result<Status> {
    let name: String = row.get(index)?;
    Status::from_name(&name).ok_or_else(|| unreadable(index, format!("`{name}` is not a status")))
}

pub fn unreadable(index: usize, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, why.into())
}
