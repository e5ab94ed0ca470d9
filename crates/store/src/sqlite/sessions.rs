//! Sessions in SQLite.

use super::columns::{heap_key, optional_timestamp, optional_uuid, principal, session_id, timestamp};
use super::{Durability, Sqlite, retention};
use crate::records::{Head, NewSession, OpenedSession, RecordsError, SessionFilter, SessionRecords, UnusedSession};
use async_trait::async_trait;
use heapstead_types::{Principal, SessionId, SessionName};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

#[async_trait]
impl SessionRecords for Sqlite {
    async fn open_session(&self, new: NewSession, sessions_max: Option<u32>) -> Result<bool, RecordsError> {
        let owner = new.principal.clone();
        self.write_within_quota(Durability::Power, owner, move |db| insert(db, &new, sessions_max).map(|row| row.is_some())).await
    }

    async fn has_room_for_session(&self, principal: &Principal, sessions_max: Option<u32>) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| has_room(db, &principal, sessions_max)).await
    }

    async fn opened_session(&self, principal: &Principal, id: SessionId, now: Timestamp) -> Result<Option<OpenedSession>, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| find(db, &principal, id, now)).await
    }

    async fn opened_sessions(
        &self,
        principal: &Principal,
        filter: SessionFilter,
        now: Timestamp,
    ) -> Result<Option<(Vec<OpenedSession>, bool)>, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            let after = match filter.after {
                None => 0,
                Some(id) => {
                    let row = db
                        .prepare_cached(
                            "SELECT id FROM sessions INDEXED BY sessions_of_owner WHERE sid = ? AND principal = ? AND opened = 1",
                        )?
                        .query_row(params![id.to_string(), principal.as_str()], |row| row.get::<_, i64>(0))
                        .optional()?;
                    let Some(row) = row else { return Ok(None) };
                    row
                }
            };
            let sql = format!(
                "SELECT {COLUMNS}, {BOUND_UNTIL} FROM sessions WHERE principal = :principal AND {LIVES} AND id > :after
                 AND (:connection IS NULL OR connection = :connection) AND (expires_at IS NOT NULL OR {BOUND_UNTIL} IS NOT NULL)
                 ORDER BY id LIMIT :limit"
            );
            let mut statement = db.prepare_cached(&sql)?;
            // One more than the limit shows whether there are more.
            let limit = filter.limit.map_or(-1, |limit| i64::from(limit) + 1);
            let bindings = rusqlite::named_params! {
                ":principal": principal.as_str(), ":now": now.as_microsecond(), ":after": after,
                ":connection": filter.connection, ":limit": limit,
            };
            let mut found = statement.query_map(bindings, read_session)?.collect::<rusqlite::Result<Vec<_>>>()?;
            let more = filter.limit.is_some_and(|limit| found.len() > limit as usize);
            found.truncate(filter.limit.map_or(usize::MAX, |limit| limit as usize));
            Ok(Some((found, more)))
        })
        .await
    }

    async fn named_session(&self, principal: &Principal, name: &SessionName, create: bool) -> Result<Option<SessionId>, RecordsError> {
        let (principal, name) = (principal.clone(), name.clone());
        let (reader, read_name) = (principal.clone(), name.clone());
        let found = self.read(move |db| find_named(db, &reader, &read_name)).await?;
        if found.is_some() || !create {
            return Ok(found);
        }
        let at = Timestamp::now().as_microsecond();
        self.write_within_quota(Durability::Process, principal.clone(), move |db| {
            db.prepare_cached(
                "INSERT INTO sessions (principal, name, sid, next_index, created_at, used_at)
                 VALUES (?1, ?2, lower(hex(randomblob(32))), 0, ?3, ?3) ON CONFLICT (principal, name) DO NOTHING",
            )?
            .execute(params![principal.as_str(), name.as_str(), at])?;
            find_named(db, &principal, &name)
        })
        .await
    }

    async fn name_of_session(&self, principal: &Principal, text: &str) -> Result<Option<SessionName>, RecordsError> {
        let (principal, text) = (principal.clone(), text.to_owned());
        self.read(move |db| {
            let name: Option<String> = db
                .prepare_cached(
                    "SELECT name FROM sessions INDEXED BY sessions_of_owner WHERE principal = ?1 AND sid = ?2 AND opened = 0 AND ended_at IS NULL
                     UNION ALL SELECT name FROM sessions WHERE principal = ?1 AND name = ?2 AND opened = 0 AND ended_at IS NULL LIMIT 1",
                )?
                .query_row(params![principal.as_str(), text], |row| row.get(0))
                .optional()?;
            Ok(name.and_then(|name| name.parse().ok()))
        })
        .await
    }

    async fn was_opened(&self, principal: &Principal, id: SessionId) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT 1 FROM sessions INDEXED BY sessions_of_owner WHERE sid = ? AND principal = ? AND opened = 1")?
                .exists(params![id.to_string(), principal.as_str()])
        })
        .await
    }

    async fn is_session_of_another_owner(&self, principal: &Principal, id: SessionId) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT 1 FROM sessions WHERE sid = ? AND principal <> ?")?
                .exists(params![id.to_string(), principal.as_str()])
        })
        .await
    }

    async fn is_session(&self, id: SessionId) -> Result<bool, RecordsError> {
        self.read(move |db| db.prepare_cached("SELECT 1 FROM sessions WHERE sid = ?")?.exists([id.to_string()])).await
    }

    async fn refresh_session(&self, id: SessionId, at: Timestamp, expires_at: Timestamp) -> Result<(), RecordsError> {
        let expires_at = Some(expires_at);
        self.write(Durability::Process, move |db| refresh(db, id, &Use { at, expires_at, owner: None }).map(drop)).await
    }

    async fn end_session(&self, principal: &Principal, id: SessionId, at: Timestamp) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| {
            db.prepare_cached(
                "UPDATE sessions INDEXED BY sessions_of_owner SET ended_at = ?, head = NULL WHERE sid = ? AND principal = ? AND opened = 1 AND ended_at IS NULL",
            )?
            .execute(params![at.as_microsecond(), id.to_string(), principal.as_str()])
            .map(|changed| changed > 0)
        })
        .await
    }

    async fn expire_session(&self, principal: &Principal, id: SessionId, now: Timestamp) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Process, move |db| {
            db.prepare_cached(
                "UPDATE sessions SET ended_at = ?1, head = NULL WHERE sid = ?2 AND principal = ?3 AND opened = 1 AND ended_at IS NULL
                 AND expires_at <= ?1",
            )?
            .execute(params![now.as_microsecond(), id.to_string(), principal.as_str()])
            .map(|changed| changed > 0)
        })
        .await
    }

    async fn expired_sessions(&self, now: Timestamp) -> Result<Vec<(Principal, SessionId)>, RecordsError> {
        self.read(move |db| {
            db.prepare_cached("SELECT principal, sid FROM sessions WHERE expires_at <= ? AND ended_at IS NULL AND opened = 1 LIMIT 500")?
                .query_map([now.as_microsecond()], |row| Ok((principal(row, 0)?, session_id(row, 1)?)))?
                .collect()
        })
        .await
    }

    async fn next_expiry(&self) -> Result<Option<Timestamp>, RecordsError> {
        self.read(|db| {
            db.prepare_cached(
                "SELECT min(expires_at) FROM (
                 SELECT * FROM (SELECT expires_at FROM sessions WHERE expires_at IS NOT NULL AND ended_at IS NULL ORDER BY expires_at LIMIT 1)
                 UNION ALL SELECT * FROM (SELECT expires_at FROM execute_sessions WHERE gone IS NULL ORDER BY expires_at LIMIT 1))",
            )?
            .query_row([], |row| optional_timestamp(row, 0))
        })
        .await
    }

    async fn delete_sessions(&self, before: Timestamp) -> Result<bool, RecordsError> {
        self.write(Durability::Process, move |db| retention::delete_sessions(db, before)).await
    }

    async fn end_named_session(
        &self,
        principal: &Principal,
        id: SessionId,
        unused_since: Option<Timestamp>,
        at: Timestamp,
    ) -> Result<bool, RecordsError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| retention::end_named(db, &principal, id, unused_since, at)).await
    }

    async fn unused_sessions(&self, since: Timestamp) -> Result<Vec<UnusedSession>, RecordsError> {
        self.read(move |db| retention::unused(db, since)).await
    }

    async fn delete_ended_log(&self, id: SessionId) -> Result<bool, RecordsError> {
        self.write(Durability::Process, move |db| retention::delete_ended_log(db, id)).await
    }

    async fn opened_session_of_logical(
        &self,
        principal: &Principal,
        logical: Uuid,
        now: Timestamp,
    ) -> Result<Option<OpenedSession>, RecordsError> {
        let principal = principal.clone();
        self.read(move |db| {
            let sql = format!(
                "SELECT {COLUMNS}, {BOUND_UNTIL} FROM sessions WHERE id = (SELECT session FROM logical_sessions
                   INDEXED BY logical_sessions_of_owner WHERE id = :logical AND principal = :principal)
                 AND principal = :principal AND {LIVES}"
            );
            let bindings = rusqlite::named_params! {
                ":logical": logical.to_string(), ":principal": principal.as_str(), ":now": now.as_microsecond(),
            };
            db.prepare_cached(&sql)?.query_row(bindings, read_session).optional()
        })
        .await
    }

    async fn heads(&self, sessions: Vec<SessionId>, now: Timestamp) -> Result<Vec<(SessionId, Option<Head>)>, RecordsError> {
        self.read(move |db| {
            let mut statement = db.prepare_cached(&format!(
                "SELECT next_index, head FROM sessions WHERE sid = :id AND opened = 1 AND ended_at IS NULL
                 AND coalesce(expires_at, {BOUND_UNTIL}) > :now"
            ))?;
            let mut found = Vec::with_capacity(sessions.len());
            for id in sessions {
                let head = statement
                    .query_row(rusqlite::named_params! { ":id": id.to_string(), ":now": now.as_microsecond() }, |row| {
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

/// Columns for `read_session`.
const COLUMNS: &str =
    "sid, connection, head, next_index, created_at, used_at, expires_at, (SELECT id FROM logical_sessions WHERE session = sessions.id)";

/// Expiry of the execute session that a logical session is bound to, if there is one.
pub const BOUND_UNTIL: &str = "(SELECT bound.expires_at FROM logical_sessions JOIN execute_sessions AS bound ON bound.id = execute
    WHERE session = sessions.id AND gone IS NULL AND bound.expires_at > :now)";

/// Condition for a session that has neither ended nor expired. A logical session never does.
pub const LIVES: &str = "opened = 1 AND ended_at IS NULL AND (expires_at IS NULL OR expires_at > :now)";

/// Whether an owner may open another session.
fn has_room(db: &Connection, principal: &Principal, sessions_max: Option<u32>) -> rusqlite::Result<bool> {
    let Some(max) = sessions_max else { return Ok(true) };
    let has = db
        .prepare_cached("SELECT sessions FROM owners WHERE principal = ?")?
        .query_row([principal.as_str()], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(has.unwrap_or(0) < i64::from(max))
}

/// Inserts a session. Returns its row id, or none if its owner has the maximum number of sessions.
pub fn insert(db: &Connection, new: &NewSession, sessions_max: Option<u32>) -> rusqlite::Result<Option<i64>> {
    if !has_room(db, &new.principal, sessions_max)? {
        return Ok(None);
    }
    let (id, at) = (new.id.to_string(), new.at.as_microsecond());
    db.prepare_cached(
        "INSERT INTO sessions (sid, name, principal, opened, connection, head, next_index, created_at, used_at, expires_at)
         VALUES (?, ?, ?, 1, ?, ?, 0, ?, ?, ?)",
    )?
    .execute(params![
        id,
        id,
        new.principal.as_str(),
        new.connection,
        new.head.map(|key| key.to_string()),
        at,
        at,
        new.expires_at.map(Timestamp::as_microsecond),
    ])?;
    Ok(Some(db.last_insert_rowid()))
}

fn find_named(db: &Connection, principal: &Principal, name: &SessionName) -> rusqlite::Result<Option<SessionId>> {
    db.prepare_cached("SELECT sid FROM sessions WHERE principal = ? AND name = ? AND opened = 0 AND ended_at IS NULL")?
        .query_row(params![principal.as_str(), name.as_str()], |row| session_id(row, 0))
        .optional()
}

pub fn find(db: &Connection, principal: &Principal, id: SessionId, now: Timestamp) -> rusqlite::Result<Option<OpenedSession>> {
    let sql = format!(
        "SELECT {COLUMNS}, {BOUND_UNTIL} FROM sessions INDEXED BY sessions_of_owner WHERE sid = :id AND principal = :principal AND {LIVES}"
    );
    let bindings = rusqlite::named_params! { ":id": id.to_string(), ":principal": principal.as_str(), ":now": now.as_microsecond() };
    db.prepare_cached(&sql)?.query_row(bindings, read_session).optional()
}

/// What refreshes the TTL of a session.
pub struct Use<'a> {
    pub at: Timestamp,
    /// None for a session without expiry.
    pub expires_at: Option<Timestamp>,
    /// Only a session of this owner.
    pub owner: Option<&'a Principal>,
}

/// Refreshes the TTL. False if the session has ended, or is not the owner's.
pub fn refresh(db: &Connection, id: SessionId, used: &Use<'_>) -> rusqlite::Result<bool> {
    db.prepare_cached(
        "UPDATE sessions SET used_at = ?1, expires_at = ?2 WHERE sid = ?3 AND opened = 1 AND ended_at IS NULL
         AND (?4 IS NULL OR principal = ?4)",
    )?
    .execute(params![
        used.at.as_microsecond(),
        used.expires_at.map(Timestamp::as_microsecond),
        id.to_string(),
        used.owner.map(Principal::as_str),
    ])
    .map(|changed| changed > 0)
}

fn read_session(row: &Row<'_>) -> rusqlite::Result<OpenedSession> {
    Ok(OpenedSession {
        id: session_id(row, 0)?,
        connection: row.get(1)?,
        head: heap_key(row, 2)?,
        sequence: row.get::<_, i64>(3)? as u64,
        created_at: timestamp(row, 4)?,
        used_at: timestamp(row, 5)?,
        expires_at: match optional_timestamp(row, 6)? {
            None => optional_timestamp(row, 8)?,
            ends => ends,
        },
        logical: optional_uuid(row, 7)?,
    })
}
