//! Executions in SQLite.

use super::columns::{error_code, execution_id, heap_key, optional_timestamp, server_id, status, timestamp, unreadable};
use super::long_column::LongColumn;
use super::owners::{self, BATCH_BYTES, ROW_BYTES};
use super::turns::{self, Holder};
use super::{Durability, Sqlite, heaps, journal, logical_sessions, session_log, sessions, tags, turn_states};
use crate::outputs::Extent;
use crate::records::{
    Accepted, Cursor, DeletedExecution, EndedExecution, Execution, ExecutionEnd, ExecutionFilter, ExecutionRecords, ExecutionSummary, Head,
    NewExecution, NewTurn, RecordedTurn, RecordsError, RunSession, StateHeap, TextPart, TurnId,
};
use async_trait::async_trait;
use heapstead_types::{ErrorCode, ExecutionId, HeapKey, Principal, ServerId, SessionId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

#[async_trait]
impl ExecutionRecords for Sqlite {
    async fn accept_execution(&self, new: NewExecution, running_max: Option<u32>) -> Result<Accepted, RecordsError> {
        let (server, owner) = (self.server().clone(), new.principal.clone());
        self.write_within_quota(Durability::Process, owner, move |db| accept(db, &new, &server, running_max)).await
    }

    async fn record_turn(
        &self,
        new: NewExecution,
        from: Option<HeapKey>,
        end: ExecutionEnd,
        running_max: Option<u32>,
    ) -> Result<RecordedTurn, RecordsError> {
        let (server, owner) = (self.server().clone(), new.principal.clone());
        self.write_within_quota(Durability::Power, owner, move |db| record_turn(db, &new, from, &end, &server, running_max)).await
    }

    async fn end_execution(&self, id: ExecutionId, end: ExecutionEnd) -> Result<EndedExecution, RecordsError> {
        let server = self.server().clone();
        self.write(Durability::Power, move |db| end_execution(db, &id, &end, &server)).await
    }

    async fn execution(&self, principal: &Principal, id: &ExecutionId) -> Result<Option<Execution>, RecordsError> {
        self.execution_with_part(principal, id, usize::MAX).await
    }

    async fn execution_with_part(
        &self,
        principal: &Principal,
        id: &ExecutionId,
        result_bytes_max: usize,
    ) -> Result<Option<Execution>, RecordsError> {
        let (principal, id) = (principal.clone(), id.clone());
        self.read(move |db| find(db, &principal, &id, result_bytes_max)).await
    }

    async fn result_part(&self, principal: &Principal, id: &ExecutionId, part: TextPart) -> Result<Option<String>, RecordsError> {
        let (principal, id) = (principal.clone(), id.clone());
        self.read(move |db| {
            let row: Option<i64> = db
                .prepare_cached(
                    "SELECT seq FROM executions INDEXED BY executions_of_owner WHERE id = ? AND principal = ? AND result IS NOT NULL",
                )?
                .query_row(params![id.as_str(), principal.as_str()], |row| row.get(0))
                .optional()?;
            row.map(|row| RESULT.part(db, row, part)).transpose()
        })
        .await
    }

    async fn cursor_after(&self, principal: &Principal, id: &ExecutionId) -> Result<Option<Cursor>, RecordsError> {
        let (principal, id) = (principal.clone(), id.clone());
        self.read(move |db| {
            db.prepare_cached("SELECT seq FROM executions INDEXED BY executions_of_owner WHERE id = ? AND principal = ?")?
                .query_row(params![id.as_str(), principal.as_str()], |row| row.get(0).map(Cursor))
                .optional()
        })
        .await
    }

    async fn executions(
        &self,
        principal: &Principal,
        filter: ExecutionFilter,
    ) -> Result<(Vec<ExecutionSummary>, Option<Cursor>), RecordsError> {
        let principal = principal.clone();
        self.read(move |db| list(db, &principal, &filter)).await
    }

    async fn running_executions(&self) -> Result<Vec<(ExecutionId, ServerId)>, RecordsError> {
        self.read(|db| {
            db.prepare_cached("SELECT id, process FROM executions WHERE status = 'running'")?
                .query_map([], |row| Ok((execution_id(row, 0)?, server_id(row, 1)?)))?
                .collect()
        })
        .await
    }

    async fn executions_running_in(&self, session: SessionId) -> Result<Vec<(ExecutionId, ServerId)>, RecordsError> {
        self.read(move |db| {
            db.prepare_cached(
                // Another owner may have a named session with the same text as its name.
                "SELECT id, process FROM executions WHERE session = ?1 AND status = 'running'
                 AND principal = (SELECT principal FROM sessions WHERE sid = ?1)",
            )?
            .query_map([session.to_string()], |row| Ok((execution_id(row, 0)?, server_id(row, 1)?)))?
            .collect()
        })
        .await
    }

    async fn delete_execution(&self, principal: &Principal, id: &ExecutionId) -> Result<DeletedExecution, RecordsError> {
        let (principal, id) = (principal.clone(), id.clone());
        self.write(Durability::Power, move |db| {
            let row = db
                .prepare_cached(&format!(
                    "SELECT seq, {BYTES}, status = 'running' FROM executions INDEXED BY executions_of_owner WHERE id = ? AND principal = ?"
                ))?
                .query_row(params![id.as_str(), principal.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, bool>(2)?)))
                .optional()?;
            match row {
                None => Ok(DeletedExecution::Unknown),
                Some((_, _, true)) => Ok(DeletedExecution::IsRunning),
                Some((row, bytes, false)) => delete(db, row, principal.as_str(), bytes).map(|()| DeletedExecution::Deleted),
            }
        })
        .await
    }

    async fn delete_executions(&self, before: Timestamp) -> Result<Vec<ExecutionId>, RecordsError> {
        self.write(Durability::Process, move |db| {
            let mut ended = db.prepare_cached(&format!(
                "SELECT id, seq, principal, {BYTES} FROM executions WHERE completed_at < ? ORDER BY completed_at LIMIT 500"
            ))?;
            let mut rows = ended.query([before.as_microsecond()])?;
            let (mut deleted, mut freed) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                let bytes: i64 = row.get(3)?;
                deleted.push((execution_id(row, 0)?, row.get(1)?, row.get::<_, String>(2)?, bytes));
                freed += bytes;
                if freed > BATCH_BYTES {
                    break;
                }
            }
            deleted.iter().try_for_each(|(_, row, principal, bytes)| delete(db, *row, principal, *bytes))?;
            Ok(deleted.into_iter().map(|(id, ..)| id).collect())
        })
        .await
    }
}

/// What an execution counts for.
const BYTES: &str = "(512 + output_bytes + coalesce(octet_length(result), 0) + coalesce(octet_length(error), 0)
    + coalesce(octet_length(warnings), 0) + coalesce(octet_length(continuity), 0))";

fn delete(db: &Connection, row: i64, principal: &str, bytes: i64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM executions WHERE seq = ?")?.execute([row])?;
    owners::add_stored(db, principal, -bytes)
}

const RESULT: LongColumn = LongColumn { table: "executions", column: "result" };

fn find(db: &Connection, principal: &Principal, id: &ExecutionId, result_bytes_max: usize) -> rusqlite::Result<Option<Execution>> {
    let bytes_max = i64::try_from(result_bytes_max).unwrap_or(i64::MAX);
    let found = db
        .prepare_cached(
            "SELECT id, process, status, started_at, completed_at, heap, error, warnings, output_bytes, output_lines, continuity, error_code,
             octet_length(result), CASE WHEN octet_length(result) <= ?3 THEN result END, seq,
             (SELECT heap IS NULL AND skipped FROM turn_states WHERE execution_id = executions.id),
             (SELECT heap_error FROM turn_states WHERE execution_id = executions.id AND heap IS NULL AND skipped = 0)
             FROM executions INDEXED BY executions_of_owner WHERE id = ?1 AND principal = ?2",
        )?
        .query_row(params![id.as_str(), principal.as_str(), bytes_max], |row| Ok((read_execution(row)?, row.get(14)?)))
        .optional()?;
    let Some((mut execution, row)) = found else { return Ok(None) };
    if result_bytes_max > 0 && execution.result_bytes > result_bytes_max as u64 {
        execution.result = Some(RESULT.part(db, row, TextPart { offset: 0, bytes_max: result_bytes_max })?);
    }
    Ok(Some(execution))
}

fn accept(db: &Connection, new: &NewExecution, server: &ServerId, running_max: Option<u32>) -> rusqlite::Result<Accepted> {
    if let Some(refused) = refuse(db, new, running_max)? {
        return Ok(refused);
    }
    let accepted = match &new.session {
        Some(RunSession::Opened { id, .. }) => Accepted::InSession { head: take_turn(db, new, *id, server)? },
        Some(RunSession::Named(_)) | None => Accepted::Alone,
    };
    insert_running(db, new, server)?;
    Ok(accepted)
}

/// Refuses an execution, or refreshes the TTL of its session.
fn refuse(db: &Connection, new: &NewExecution, running_max: Option<u32>) -> rusqlite::Result<Option<Accepted>> {
    if let Some(max) = running_max {
        let running: i64 = db
            .prepare_cached("SELECT count(*) FROM executions WHERE principal = ? AND status = 'running'")?
            .query_row([new.principal.as_str()], |row| row.get(0))?;
        if running >= i64::from(max) {
            return Ok(Some(Accepted::TooMany));
        }
    }
    if let Some(RunSession::Opened { id, logical, expires_at }) = &new.session {
        let session_expires_at = logical.is_none().then_some(*expires_at);
        let used = sessions::Use { at: new.started_at, expires_at: session_expires_at, owner: Some(&new.principal) };
        if !sessions::refresh(db, *id, &used)? {
            return Ok(Some(Accepted::SessionEnded));
        }
        if let Some(logical) = logical {
            logical_sessions::refresh(db, *logical, new.started_at, *expires_at)?;
        }
    }
    Ok(None)
}

fn insert_running(db: &Connection, new: &NewExecution, server: &ServerId) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO executions (id, principal, process, session, status, started_at, input_heap) VALUES (?, ?, ?, ?, 'running', ?, ?)",
    )?
    .execute(params![
        new.id.as_str(),
        new.principal.as_str(),
        server.as_str(),
        new.session.as_ref().map(RunSession::name),
        new.started_at.as_microsecond(),
        new.input_heap.map(|key| key.to_string()),
    ])?;
    owners::add_stored(db, new.principal.as_str(), ROW_BYTES)?;
    if let Some(key) = &new.input_heap {
        heaps::note_again(db, new.principal.as_str(), key, new.started_at)?;
    }
    Ok(())
}

/// Takes the turn of a run. Returns the head if the run is first in its session.
fn take_turn(db: &Connection, new: &NewExecution, session: SessionId, server: &ServerId) -> rusqlite::Result<Option<Option<HeapKey>>> {
    let turn = NewTurn { id: TurnId::of_execution(&new.id), session };
    turns::insert(db, &turn, server, Holder::Execution)?;
    if turns::has_others(db, session, &turn.id)? { Ok(None) } else { head(db, session).map(Some) }
}

fn head(db: &Connection, session: SessionId) -> rusqlite::Result<Option<HeapKey>> {
    db.prepare_cached("SELECT head FROM sessions WHERE sid = ?")?.query_row([session.to_string()], |row| heap_key(row, 0))
}

/// As `accept` and `end_execution`, for a run that is first in its session and started from its head: it never has a turn in the table.
fn record_turn(
    db: &Connection,
    new: &NewExecution,
    from: Option<HeapKey>,
    end: &ExecutionEnd,
    server: &ServerId,
    running_max: Option<u32>,
) -> rusqlite::Result<RecordedTurn> {
    if let Some(refused) = refuse(db, new, running_max)? {
        return Ok(RecordedTurn::NotEnded(refused));
    }
    let Some(session) = new.session.as_ref().and_then(RunSession::opened) else { return Err(rusqlite::Error::InvalidQuery) };
    if turns::has_others(db, session, &TurnId::of_execution(&new.id))? || head(db, session)? != from {
        let accepted = Accepted::InSession { head: take_turn(db, new, session, server)? };
        insert_running(db, new, server)?;
        return Ok(RecordedTurn::NotEnded(accepted));
    }
    let bytes: i64 = db
        .prepare_cached(&format!(
            "INSERT INTO executions (id, principal, process, session, input_heap, status, started_at, completed_at, heap, error, error_code,
             warnings, output_bytes, output_lines, continuity, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {BYTES}",
        ))?
        .query_row(
            params![
                new.id.as_str(),
                new.principal.as_str(),
                server.as_str(),
                new.session.as_ref().map(RunSession::name),
                new.input_heap.map(|key| key.to_string()),
                end.status.as_str(),
                end.started_at.unwrap_or(new.started_at).as_microsecond(),
                end.completed_at.as_microsecond(),
                end.heap.as_ref().map(|heap| heap.key.to_string()),
                end.error,
                end.error_code.map(ErrorCode::as_str),
                warnings_column(end),
                end.output.bytes as i64,
                end.output.lines as i64,
                end.continuity.as_ref().map(|report| &report.json),
                end.result,
            ],
            |row| row.get(0),
        )?;
    owners::add_stored(db, new.principal.as_str(), bytes)?;
    Ok(RecordedTurn::Ended { head: apply_end(db, &new.id, new.principal.as_str(), end, server)? })
}

fn warnings_column(end: &ExecutionEnd) -> Option<String> {
    (!end.warnings.is_empty()).then(|| serde_json::to_string(&end.warnings).unwrap_or_default())
}

fn end_execution(db: &Connection, id: &ExecutionId, end: &ExecutionEnd, server: &ServerId) -> rusqlite::Result<EndedExecution> {
    let found: Option<(String, i64)> = db
        .prepare_cached(&format!(
            "UPDATE executions SET status = ?, started_at = coalesce(?, started_at), completed_at = ?, heap = ?, error = ?, error_code = ?,
             warnings = ?, output_bytes = ?, output_lines = ?, continuity = ?, result = ?
             WHERE id = ? AND status = 'running' RETURNING principal, {BYTES}",
        ))?
        .query_row(
            params![
                end.status.as_str(),
                end.started_at.map(Timestamp::as_microsecond),
                end.completed_at.as_microsecond(),
                end.heap.as_ref().map(|heap| heap.key.to_string()),
                end.error,
                end.error_code.map(ErrorCode::as_str),
                warnings_column(end),
                end.output.bytes as i64,
                end.output.lines as i64,
                end.continuity.as_ref().map(|report| &report.json),
                end.result,
                id.as_str(),
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((principal, bytes)) = found else { return Ok(EndedExecution::EndedBefore) };
    owners::add_stored(db, &principal, bytes - ROW_BYTES)?;
    turns::delete(db, &TurnId::of_execution(id))?;
    Ok(EndedExecution::Ended { head: apply_end(db, id, &principal, end, server)? })
}

/// Everything besides the record that changes with the end of an execution. Returns the new head of its session.
fn apply_end(db: &Connection, id: &ExecutionId, principal: &str, end: &ExecutionEnd, server: &ServerId) -> rusqlite::Result<Option<Head>> {
    if let Some(binding) = &end.binding {
        logical_sessions::bind(db, principal, server, binding, end.completed_at)?;
    }
    if let Some((logical, expires_at)) = end.extends {
        logical_sessions::use_logical(db, logical, server, expires_at)?;
        if let Some(report) = &end.continuity {
            logical_sessions::set_notice(db, logical, (!report.is_delivered).then_some(report.json.as_str()))?;
        }
    }
    if let Some(heap) = &end.heap {
        heaps::record(db, principal, heap, end.completed_at)?;
        if let Some(replaced) = &end.tags {
            tags::replace(db, principal, &heap.key, replaced, end.completed_at)?;
        }
    }
    match (end.log.as_ref().and_then(|entry| entry.session.opened()), end.state) {
        (Some(session), Some(state)) => turn_states::insert(db, id, principal, session, state)?,
        // Its heap is stored: those of the turns before it won't be.
        (Some(session), None) => turn_states::skip_pending(db, session)?,
        (None, _) => {}
    }
    if let Some(entry) = &end.journal {
        journal::insert(db, id, principal, entry)?;
    }
    end.log.as_ref().map_or(Ok(None), |entry| session_log::append(db, principal, entry))
}

fn list(db: &Connection, principal: &Principal, filter: &ExecutionFilter) -> rusqlite::Result<(Vec<ExecutionSummary>, Option<Cursor>)> {
    let mut conditions = vec!["principal = :principal", "seq < :before"];
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
    // One more than the limit shows whether there are more.
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
        server: server_id(row, 1)?,
        status: status(row, 2)?,
        started_at: timestamp(row, 3)?,
        completed_at: optional_timestamp(row, 4)?,
        heap: heap_key(row, 5)?,
        error: row.get(6)?,
        warnings: warnings.map(|json| serde_json::from_str(&json).map_err(|error| unreadable(7, error))).transpose()?.unwrap_or_default(),
        output: Extent { bytes: row.get::<_, i64>(8)? as u64, lines: row.get::<_, i64>(9)? as u64 },
        continuity: row.get(10)?,
        error_code: error_code(row, 11)?,
        result_bytes: row.get::<_, Option<i64>>(12)?.unwrap_or(0) as u64,
        result: row.get(13)?,
        state_heap: row.get::<_, Option<bool>>(15)?.map(|is_skipped| match (heap_key(row, 5), is_skipped) {
            (Ok(Some(key)), _) => StateHeap::Stored(key),
            (_, true) => StateHeap::Skipped,
            (_, false) => StateHeap::Pending,
        }),
        heap_error: row.get(16)?,
    })
}
