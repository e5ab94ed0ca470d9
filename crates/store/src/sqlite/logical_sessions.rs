//! Logical sessions and their execute sessions in SQLite.

use super::columns::{heap_key, server_id, session_id, timestamp, uuid};
use super::turns::{self, Holder};
use super::{Durability, Sqlite, heaps, journal, retention, session_log, sessions};
use crate::records::{
    Binding, ExecuteSession, LogicalSession, LogicalSessionRecords, NewLogicalSession, NewTurn, OpenedLogicalSession, RecordsError,
};
use async_trait::async_trait;
use heapstead_types::{ExecutionId, Principal, ServerId, SessionId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use uuid::Uuid;

#[async_trait]
impl LogicalSessionRecords for Sqlite {
    async fn logical_session_of_intent(
        &self,
        principal: &Principal,
        scope: &str,
        intent: &str,
    ) -> Result<Option<LogicalSession>, RecordsError> {
        let (principal, scope, intent) = (principal.clone(), scope.to_owned(), intent.to_owned());
        self.read(move |db| find_intent(db, &principal, &scope, &intent)).await
    }

    async fn open_logical_session(
        &self,
        new: NewLogicalSession,
        binding: Binding,
        turn: NewTurn,
        sessions_max: Option<u32>,
    ) -> Result<OpenedLogicalSession, RecordsError> {
        let (server, owner) = (self.server().clone(), new.session.principal.clone());
        self.write_within_quota(Durability::Power, owner, move |db| {
            let principal = &new.session.principal;
            // Another call may have opened it meanwhile.
            if let Some(found) = find_intent(db, principal, &new.scope, &new.intent)? {
                return Ok(OpenedLogicalSession::Exists(Box::new(found)));
            }
            let Some(session) = sessions::insert(db, &new.session, sessions_max)? else { return Ok(OpenedLogicalSession::TooMany) };
            db.prepare_cached("INSERT INTO logical_sessions (id, session, principal, scope, intent, process) VALUES (?, ?, ?, ?, ?, ?)")?
                .execute(params![new.id.to_string(), session, principal.as_str(), new.scope, new.intent, server.as_str()])?;
            bind(db, principal.as_str(), &server, &binding, new.session.at)?;
            turns::insert(db, &turn, &server, Holder::Preparation)?;
            Ok(OpenedLogicalSession::Opened)
        })
        .await
    }

    async fn bind(&self, principal: &Principal, binding: Binding, at: Timestamp) -> Result<(), RecordsError> {
        let (principal, server) = (principal.clone(), self.server().clone());
        self.write(Durability::Power, move |db| bind(db, principal.as_str(), &server, &binding, at)).await
    }

    async fn logical_session(&self, principal: &Principal, id: Uuid) -> Result<Option<LogicalSession>, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            let sql = format!(
                "SELECT {COLUMNS} FROM logical_sessions INDEXED BY logical_sessions_of_owner {JOINS}
                 WHERE logical_sessions.id = ? AND logical_sessions.principal = ?"
            );
            db.prepare_cached(&sql)?.query_row(params![id.to_string(), principal.as_str()], read_logical_session).optional()
        })
        .await
    }

    async fn is_logical_session_of_another_owner(&self, principal: &Principal, id: Uuid) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT 1 FROM logical_sessions WHERE id = ? AND principal <> ?")?
                .exists(params![id.to_string(), principal.as_str()])
        })
        .await
    }

    async fn reusable_execute_session(&self, reuse_key: String, now: Timestamp) -> Result<Option<ExecuteSession>, RecordsError> {
        self.read(move |db| {
            db.prepare_cached(
                "SELECT id, reuse_key, prompt_hash, symbols, revision, head, expires_at, gone FROM execute_sessions
                 WHERE reuse_key = ? AND gone IS NULL AND expires_at > ? AND head IS NOT NULL ORDER BY expires_at DESC LIMIT 1",
            )?
            .query_row(params![reuse_key, now.as_microsecond()], |row| read_execute_session(row, 0))
            .optional()
        })
        .await
    }

    async fn use_logical_session(&self, id: Uuid, expires_at: Timestamp) -> Result<(), RecordsError> {
        let server = self.server().clone();
        self.write(Durability::Process, move |db| use_logical(db, id, &server, expires_at)).await
    }

    async fn refresh_logical_session(&self, id: Uuid, now: Timestamp, expires_at: Timestamp) -> Result<(), RecordsError> {
        self.write(Durability::Process, move |db| refresh(db, id, now, expires_at)).await
    }

    async fn pending_notice(&self, id: Uuid) -> Result<Option<String>, RecordsError> {
        self.read(move |db| {
            let found = db
                .prepare_cached("SELECT untold FROM logical_sessions WHERE id = ?")?
                .query_row([id.to_string()], |row| row.get::<_, Option<String>>(0))
                .optional()?;
            Ok(found.flatten())
        })
        .await
    }

    async fn logical_session_of_execution(&self, id: &ExecutionId) -> Result<Option<Uuid>, RecordsError> {
        let id = id.clone();
        self.read(move |db| {
            db.prepare_cached(
                "SELECT logical_sessions.id FROM executions
                 JOIN sessions ON sid = executions.session AND sessions.principal = executions.principal
                 JOIN logical_sessions ON logical_sessions.session = sessions.id WHERE executions.id = ?",
            )?
            .query_row([id.as_str()], |row| uuid(row, 0))
            .optional()
        })
        .await
    }

    async fn clear_notice(&self, id: Uuid, notice: String) -> Result<(), RecordsError> {
        self.write(Durability::Process, move |db| {
            db.prepare_cached("UPDATE logical_sessions SET untold = NULL WHERE id = ? AND untold = ?")?
                .execute(params![id.to_string(), notice])
                .map(drop)
        })
        .await
    }

    async fn lose_execute_session(&self, logical: Uuid, why: &'static str) -> Result<bool, RecordsError> {
        self.write(Durability::Power, move |db| {
            let changed = db
                .prepare_cached(
                    "UPDATE execute_sessions SET gone = ?, head = NULL WHERE gone IS NULL
                     AND id = (SELECT execute FROM logical_sessions WHERE id = ?)",
                )?
                .execute(params![why, logical.to_string()])?;
            count(db, &logical.to_string(), -(changed as i64))?;
            db.prepare_cached("UPDATE sessions SET head = NULL WHERE id = (SELECT session FROM logical_sessions WHERE id = ?)")?
                .execute([logical.to_string()])?;
            Ok(changed > 0)
        })
        .await
    }

    async fn extend_running_execute_sessions(&self, soon: Timestamp, expires_at: Timestamp) -> Result<(), RecordsError> {
        const RUNNING: &str = "gone IS NULL AND execute_sessions.expires_at <= :soon AND id IN (
            SELECT execute FROM logical_sessions JOIN sessions ON sessions.id = logical_sessions.session
            JOIN turns ON turns.session = sid WHERE turns.process = :server)";
        let (server, soon) = (self.server().clone(), soon.as_microsecond());
        let reader = server.clone();
        let any = self
            .read(move |db| {
                db.prepare_cached(&format!("SELECT 1 FROM execute_sessions WHERE {RUNNING}"))?
                    .exists(named_params! { ":soon": soon, ":server": reader.as_str() })
            })
            .await?;
        if !any {
            return Ok(());
        }
        self.write(Durability::Process, move |db| {
            db.prepare_cached(&format!("UPDATE execute_sessions SET expires_at = :until WHERE {RUNNING}"))?
                .execute(named_params! { ":until": expires_at.as_microsecond(), ":soon": soon, ":server": server.as_str() })
                .map(drop)
        })
        .await
    }

    async fn expire_execute_sessions(&self, now: Timestamp) -> Result<Vec<SessionId>, RecordsError> {
        let any = self
            .read(move |db| {
                db.prepare_cached("SELECT 1 FROM execute_sessions WHERE gone IS NULL AND expires_at <= ?")?.exists([now.as_microsecond()])
            })
            .await?;
        if !any {
            return Ok(Vec::new());
        }
        self.write(Durability::Process, move |db| {
            let now = now.as_microsecond();
            let bound: Vec<_> = db
                .prepare_cached(
                    "SELECT sid FROM execute_sessions JOIN logical_sessions ON logical_sessions.execute = execute_sessions.id
                     JOIN sessions ON sessions.id = logical_sessions.session WHERE gone IS NULL AND execute_sessions.expires_at <= ?",
                )?
                .query_map([now], |row| session_id(row, 0))?
                .collect::<rusqlite::Result<_>>()?;
            db.prepare_cached(
                "UPDATE sessions SET head = NULL WHERE id IN (SELECT logical_sessions.session FROM execute_sessions
                 JOIN logical_sessions ON logical_sessions.execute = execute_sessions.id WHERE gone IS NULL AND execute_sessions.expires_at <= ?)",
            )?
            .execute([now])?;
            db.prepare_cached(
                "UPDATE owners SET sessions = sessions - expired.number FROM (SELECT principal AS owner, count(*) AS number
                 FROM execute_sessions JOIN logical_sessions ON logical_sessions.execute = execute_sessions.id
                 WHERE gone IS NULL AND expires_at <= ? GROUP BY principal) AS expired WHERE owners.principal = expired.owner",
            )?
            .execute([now])?;
            db.prepare_cached("UPDATE execute_sessions SET gone = 'expired', head = NULL WHERE gone IS NULL AND expires_at <= ?")?
                .execute([now])?;
            Ok(bound)
        })
        .await
    }

    async fn forget_logical_session(
        &self,
        principal: &Principal,
        id: Uuid,
        unused_since: Option<Timestamp>,
        at: Timestamp,
    ) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| retention::forget_logical(db, &principal, id, unused_since, at)).await
    }

    async fn delete_execute_sessions(&self, before: Timestamp) -> Result<bool, RecordsError> {
        self.write(Durability::Process, move |db| retention::delete_execute_sessions(db, before)).await
    }

    async fn session_ref(&self, principal: &Principal, id: Uuid) -> Result<u64, RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Process, move |db| {
            let id = id.to_string();
            let known = db
                .prepare_cached("SELECT number FROM session_refs WHERE principal = ? AND logical = ?")?
                .query_row(params![principal.as_str(), id], |row| row.get::<_, i64>(0))
                .optional()?;
            if let Some(number) = known {
                return Ok(number as u64);
            }
            // Skips numbers whose `sN` the owner already uses as the name of a session: that name keeps its meaning.
            db.prepare_cached(
                "INSERT INTO session_refs (principal, number, logical)
                 WITH RECURSIVE next (number) AS (
                   SELECT max(coalesce((SELECT max(number) + 1 FROM session_refs WHERE principal = ?1), 0),
                       coalesce((SELECT next_ref FROM owners WHERE principal = ?1), 0)) UNION ALL
                   SELECT number + 1 FROM next WHERE EXISTS (SELECT 1 FROM sessions WHERE principal = ?1 AND name = 's' || number))
                 SELECT ?1, max(next.number), logical_sessions.id FROM next JOIN logical_sessions
                   ON logical_sessions.id = ?2 AND principal = ?1 GROUP BY logical_sessions.id RETURNING number",
            )?
            .query_row(params![principal.as_str(), id], |row| row.get::<_, i64>(0))
            .map(|number| number as u64)
        })
        .await
    }

    async fn logical_session_by_ref(&self, principal: &Principal, number: u64) -> Result<Option<Uuid>, RecordsError> {
        let (principal, Ok(number)) = (principal.clone(), i64::try_from(number)) else { return Ok(None) };
        self.read(move |db| {
            db.prepare_cached("SELECT logical FROM session_refs WHERE principal = ? AND number = ?")?
                .query_row(params![principal.as_str(), number], |row| uuid(row, 0))
                .optional()
        })
        .await
    }
}

const COLUMNS: &str = "logical_sessions.id, sid, sessions.head, process, untold,
    execute_sessions.id, reuse_key, prompt_hash, symbols, revision, execute_sessions.head, execute_sessions.expires_at, gone, intent";

const JOINS: &str = "JOIN sessions ON sessions.id = logical_sessions.session
    LEFT JOIN execute_sessions ON execute_sessions.id = logical_sessions.execute";

/// Binds a logical session of this owner to an execute session, new or not. An error if the owner has no such session.
pub fn bind(db: &Connection, principal: &str, server: &ServerId, binding: &Binding, at: Timestamp) -> rusqlite::Result<()> {
    let (logical, execute) = (binding.logical.to_string(), &binding.execute);
    let (bound, is_lost): (Option<String>, bool) = db
        .prepare_cached(
            "SELECT execute, gone IS NOT NULL FROM logical_sessions LEFT JOIN execute_sessions ON execute_sessions.id = execute
             WHERE logical_sessions.id = ? AND principal = ?",
        )?
        .query_row(params![logical, principal], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let is_same = bound.as_deref() == Some(&execute.id);
    if let Some(heap) = &binding.head {
        heaps::record(db, principal, heap, at)?;
    }
    if let Some(import) = &binding.import {
        journal::insert(db, &import.id, principal, &import.entry)?;
    }
    if is_same && is_lost {
        // It was lost while this change was prepared, for example because its session was ended. It stays lost.
        return Ok(());
    }
    if is_lost {
        count(db, &logical, 1)?;
    }
    if let Some(why) = &binding.replaces {
        db.prepare_cached(
            "UPDATE execute_sessions SET gone = coalesce(gone, ?), head = NULL
             WHERE id = (SELECT execute FROM logical_sessions WHERE id = ?) AND id <> ?",
        )?
        .execute(params![why, logical, execute.id])?;
    } else {
        // It is set aside, with its heap.
        db.prepare_cached(
            "UPDATE execute_sessions SET head = (SELECT head FROM sessions WHERE id = (SELECT session FROM logical_sessions WHERE id = ?1))
             WHERE id = (SELECT execute FROM logical_sessions WHERE id = ?1) AND id <> ?2",
        )?
        .execute(params![logical, execute.id])?;
    }
    let head = match &binding.head {
        Some(heap) => Some(Some(heap.key.to_string())),
        None if bound.is_none() || is_same => None,
        // The head is the heap of the previous execute session. A reused one has its own, a new one none.
        None => Some(
            db.prepare_cached("SELECT head FROM execute_sessions WHERE id = ?")?
                .query_row([&execute.id], |row| row.get(0))
                .optional()?
                .flatten(),
        ),
    };
    db.prepare_cached(
        "INSERT INTO execute_sessions (id, logical, reuse_key, prompt_hash, symbols, revision, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET symbols = excluded.symbols, revision = excluded.revision, expires_at = excluded.expires_at,
         head = NULL, gone = NULL",
    )?
    .execute(params![
        execute.id,
        logical,
        execute.reuse_key,
        execute.prompt_hash,
        execute.symbols,
        execute.revision as i64,
        execute.expires_at.as_microsecond(),
    ])?;
    db.prepare_cached("UPDATE logical_sessions SET execute = ?, process = ?, untold = coalesce(?, untold) WHERE id = ?")?
        .execute(params![execute.id, server.as_str(), binding.pending_notice, logical])?;
    if let Some(head) = head {
        db.prepare_cached("UPDATE sessions SET head = ? WHERE id = (SELECT session FROM logical_sessions WHERE id = ?)")?
            .execute(params![head, logical])?;
    }
    if let Some(from) = binding.undone_from {
        session_log::mark_undone(db, &logical, from)?;
    }
    Ok(())
}

/// Records the server that uses a logical session, and refreshes the TTL of its execute session.
pub fn use_logical(db: &Connection, logical: Uuid, server: &ServerId, expires_at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE logical_sessions SET process = ? WHERE id = ?")?.execute(params![server.as_str(), logical.to_string()])?;
    db.prepare_cached(
        "UPDATE execute_sessions SET expires_at = ? WHERE gone IS NULL AND id = (SELECT execute FROM logical_sessions WHERE id = ?)",
    )?
    .execute(params![expires_at.as_microsecond(), logical.to_string()])
    .map(drop)
}

/// Replaces the pending notice.
pub fn set_notice(db: &Connection, logical: Uuid, notice: Option<&str>) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE logical_sessions SET untold = ? WHERE id = ?")?.execute(params![notice, logical.to_string()]).map(drop)
}

/// Refreshes the TTL of the execute session unless it has expired: an accepted run keeps it while it waits for its turn.
pub fn refresh(db: &Connection, logical: Uuid, now: Timestamp, expires_at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached(
        "UPDATE execute_sessions SET expires_at = max(expires_at, ?) WHERE gone IS NULL AND expires_at > ?
         AND id = (SELECT execute FROM logical_sessions WHERE id = ?)",
    )?
    .execute(params![expires_at.as_microsecond(), now.as_microsecond(), logical.to_string()])
    .map(drop)
}

/// Adjusts the owner's session count. A logical session without an execute session does not count towards the quota.
fn count(db: &Connection, logical: &str, more: i64) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE owners SET sessions = sessions + ? WHERE principal = (SELECT principal FROM logical_sessions WHERE id = ?)")?
        .execute(params![more, logical])
        .map(drop)
}

fn find_intent(db: &Connection, principal: &Principal, scope: &str, intent: &str) -> rusqlite::Result<Option<LogicalSession>> {
    let sql = format!("SELECT {COLUMNS} FROM logical_sessions {JOINS} WHERE logical_sessions.principal = ? AND scope = ? AND intent = ?");
    db.prepare_cached(&sql)?.query_row(params![principal.as_str(), scope, intent], read_logical_session).optional()
}

fn read_logical_session(row: &Row<'_>) -> rusqlite::Result<LogicalSession> {
    let is_bound = row.get::<_, Option<String>>(5)?.is_some();
    Ok(LogicalSession {
        id: uuid(row, 0)?,
        intent: row.get(13)?,
        session: session_id(row, 1)?,
        head: heap_key(row, 2)?,
        server: server_id(row, 3)?,
        pending_notice: row.get(4)?,
        execute: if is_bound { Some(read_execute_session(row, 5)?) } else { None },
    })
}

fn read_execute_session(row: &Row<'_>, from: usize) -> rusqlite::Result<ExecuteSession> {
    Ok(ExecuteSession {
        id: row.get(from)?,
        reuse_key: row.get(from + 1)?,
        prompt_hash: row.get(from + 2)?,
        symbols: row.get(from + 3)?,
        revision: row.get::<_, i64>(from + 4)? as u64,
        head: heap_key(row, from + 5)?,
        expires_at: timestamp(row, from + 6)?,
        lost: row.get(from + 7)?,
    })
}
