//! Sessions that were opened: each has a head, the heap that its next run goes on from, and ends when it is deleted or idle for too long.

use super::executions::{execution_id, heap_key, optional_timestamp, timestamp};
use super::{Durability, Head, Metadata, MetadataError};
use heapstead_types::{ExecutionId, HeapKey, Principal, SessionId, SessionName};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

/// Where a run belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InSession {
    /// A session that is only a log.
    Named(SessionName),
    /// One with a head. Being used keeps it, or what its logical session is bound to, until then.
    Opened { id: SessionId, logical: Option<Uuid>, kept_until: Timestamp },
}

impl InSession {
    /// The session with a head.
    pub fn opened(&self) -> Option<SessionId> {
        match self {
            Self::Named(_) => None,
            Self::Opened { id, .. } => Some(*id),
        }
    }

    /// As executions and logs call it.
    pub fn name(&self) -> String {
        match self {
            Self::Named(name) => name.as_str().to_owned(),
            Self::Opened { id, .. } => id.to_string(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: SessionId,
    pub principal: Principal,
    /// What an anonymous caller opened it on.
    pub connection: Option<String>,
    pub head: Option<HeapKey>,
    pub at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    pub id: SessionId,
    pub connection: Option<String>,
    pub head: Option<HeapKey>,
    /// How often the head has moved.
    pub sequence: u64,
    pub created_at: Timestamp,
    pub used_at: Timestamp,
    /// When it ends, or what its logical session is bound to; none where that is gone.
    pub expires_at: Option<Timestamp>,
    /// The logical session that it is of, if it is one's.
    pub logical: Option<Uuid>,
}

impl OpenedSession {
    /// Where its head is: what whoever watches it, or carries its state, compares.
    pub fn head(&self) -> Head {
        Head { sequence: self.sequence, heap: self.head }
    }
}

/// What a run of an opened session finds when it comes to its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub head: Option<HeapKey>,
    /// A run that was accepted before and has not ended, and the process it runs in.
    pub before: Option<(ExecutionId, String)>,
}

/// A page of sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// Only those that were opened on this connection.
    pub connection: Option<String>,
    /// Goes on after this one, if it is the owner's.
    pub after: Option<SessionId>,
    pub limit: Option<u32>,
}

/// What is read of a session.
const COLUMNS: &str =
    "sid, connection, head, next_index, created_at, used_at, expires_at, (SELECT id FROM logical_sessions WHERE session = sessions.id)";
/// Until when a logical session is bound, while it is.
pub const BOUND_UNTIL: &str = "(SELECT bound.expires_at FROM logical_sessions JOIN execute_sessions AS bound ON bound.id = execute
    WHERE session = sessions.id AND gone IS NULL AND bound.expires_at > :now)";
/// Lives, for whoever it belongs to. A logical session does for ever.
pub const LIVES: &str = "opened = 1 AND ended_at IS NULL AND (expires_at IS NULL OR expires_at > :now)";

impl Metadata {
    /// Opens a session. False, and nothing is done, where its owner has `sessions_max` already.
    pub async fn open_session(&self, new: NewSession, sessions_max: Option<u32>) -> Result<bool, MetadataError> {
        self.write(Durability::Power, move |db| insert(db, &new, sessions_max).map(|row| row.is_some())).await
    }

    /// Whether an owner may have one more session.
    pub async fn has_room_for_session(&self, principal: &Principal, sessions_max: Option<u32>) -> Result<bool, MetadataError> {
        let principal = principal.clone();
        self.read(move |db| has_room(db, &principal, sessions_max)).await
    }

    /// A session of this owner that has neither ended nor expired.
    pub async fn opened_session(
        &self,
        principal: &Principal,
        id: SessionId,
        now: Timestamp,
    ) -> Result<Option<OpenedSession>, MetadataError> {
        let principal = principal.clone();
        self.read(move |db| find(db, &principal, id, now)).await
    }

    /// Sessions of this owner that can be gone on in, in the order they were opened, and whether there are more. None where the one to go on after is not the owner's.
    pub async fn opened_sessions(
        &self,
        principal: &Principal,
        filter: SessionFilter,
        now: Timestamp,
    ) -> Result<Option<(Vec<OpenedSession>, bool)>, MetadataError> {
        let principal = principal.clone();
        self.read(move |db| {
            let after = match filter.after {
                None => 0,
                Some(id) => {
                    let row = db
                        .prepare_cached("SELECT id FROM sessions WHERE sid = ? AND principal = ? AND opened = 1")?
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
            // One more than asked for tells whether there are more.
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

    /// The session that an owner gave this name. `make`: one that is new comes into being, with nothing in its log.
    pub async fn named_session(&self, principal: &Principal, name: &SessionName, make: bool) -> Result<Option<SessionId>, MetadataError> {
        let (principal, name) = (principal.clone(), name.clone());
        let (reader, read_name) = (principal.clone(), name.clone());
        let found = self.read(move |db| find_named(db, &reader, &read_name)).await?;
        if found.is_some() || !make {
            return Ok(found);
        }
        let at = Timestamp::now().as_microsecond();
        self.write(Durability::Process, move |db| {
            db.prepare_cached(
                "INSERT INTO sessions (principal, name, sid, next_index, created_at) VALUES (?, ?, lower(hex(randomblob(32))), 0, ?)
                 ON CONFLICT (principal, name) DO NOTHING",
            )?
            .execute(params![principal.as_str(), name.as_str(), at])?;
            find_named(db, &principal, &name)
        })
        .await
    }

    /// The session without a head that has this id, or was called this.
    pub async fn named_as(&self, principal: &Principal, text: &str) -> Result<Option<SessionName>, MetadataError> {
        let (principal, text) = (principal.clone(), text.to_owned());
        self.read(move |db| {
            let name: Option<String> = db
                .prepare_cached("SELECT name FROM sessions WHERE principal = ?1 AND opened = 0 AND (sid = ?2 OR name = ?2)")?
                .query_row(params![principal.as_str(), text], |row| row.get(0))
                .optional()?;
            Ok(name.and_then(|name| name.parse().ok()))
        })
        .await
    }

    /// Whether this owner opened a session of this id, which may have ended since.
    pub async fn was_opened(&self, principal: &Principal, id: SessionId) -> Result<bool, MetadataError> {
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT 1 FROM sessions WHERE sid = ? AND principal = ? AND opened = 1")?
                .exists(params![id.to_string(), principal.as_str()])
        })
        .await
    }

    /// Whether a session has this id that is somebody else's.
    pub async fn is_of_another(&self, principal: &Principal, id: SessionId) -> Result<bool, MetadataError> {
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT 1 FROM sessions WHERE sid = ? AND principal <> ?")?
                .exists(params![id.to_string(), principal.as_str()])
        })
        .await
    }

    /// Whether anybody has, or had, a session of this id.
    pub async fn is_session(&self, id: SessionId) -> Result<bool, MetadataError> {
        self.read(move |db| db.prepare_cached("SELECT 1 FROM sessions WHERE sid = ?")?.exists([id.to_string()])).await
    }

    /// Keeps a session until then.
    pub async fn use_session(&self, id: SessionId, at: Timestamp, expires_at: Timestamp) -> Result<(), MetadataError> {
        self.write(Durability::Process, move |db| touch(db, id, at, Some(expires_at)).map(drop)).await
    }

    /// Ends a session. False when there was none, or it had ended already.
    pub async fn end_session(&self, principal: &Principal, id: SessionId, at: Timestamp) -> Result<bool, MetadataError> {
        let principal = principal.clone();
        self.write(Durability::Power, move |db| {
            db.prepare_cached(
                "UPDATE sessions SET ended_at = ?, head = NULL WHERE sid = ? AND principal = ? AND opened = 1 AND ended_at IS NULL",
            )?
            .execute(params![at.as_microsecond(), id.to_string(), principal.as_str()])
            .map(|changed| changed > 0)
        })
        .await
    }

    /// Ends a session that has expired. False when it was used again, or has ended.
    pub async fn expire_session(&self, principal: &Principal, id: SessionId, now: Timestamp) -> Result<bool, MetadataError> {
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

    /// Some sessions that have expired and not ended yet.
    pub async fn expired_sessions(&self, now: Timestamp) -> Result<Vec<(Principal, SessionId)>, MetadataError> {
        self.read(move |db| {
            db.prepare_cached("SELECT principal, sid FROM sessions WHERE expires_at <= ? AND ended_at IS NULL AND opened = 1 LIMIT 500")?
                .query_map([now.as_microsecond()], |row| Ok((principal(row, 0)?, session_id(row, 1)?)))?
                .collect()
        })
        .await
    }

    /// When the next session, or what a logical one is bound to, expires.
    pub async fn next_expiry(&self) -> Result<Option<Timestamp>, MetadataError> {
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

    /// Forgets sessions that ended before, with their logs. Until then the row of an ended session is what its id is recognised by.
    pub async fn forget_sessions(&self, before: Timestamp) -> Result<(), MetadataError> {
        self.write(Durability::Process, move |db| {
            let before = before.as_microsecond();
            db.prepare_cached("DELETE FROM log WHERE session IN (SELECT id FROM sessions WHERE ended_at < ?)")?.execute([before])?;
            db.prepare_cached("DELETE FROM sessions WHERE ended_at < ? AND id NOT IN (SELECT session FROM logical_sessions)")?
                .execute([before])
                .map(drop)
        })
        .await
    }

    /// The session's head, and who is before this run. None when the session has ended.
    pub async fn turn(&self, id: SessionId, execution: &ExecutionId) -> Result<Option<Turn>, MetadataError> {
        let execution = execution.clone();
        self.read(move |db| {
            let name = id.to_string();
            let head = db
                .prepare_cached("SELECT head FROM sessions WHERE sid = ? AND opened = 1 AND ended_at IS NULL")?
                .query_row([&name], |row| heap_key(row, 0))
                .optional()?;
            let Some(head) = head else { return Ok(None) };
            let before = db
                .prepare_cached(
                    // Somebody else may have given a log of theirs this name.
                    "SELECT id, process FROM executions WHERE session = ?1 AND status = 'running'
                     AND principal = (SELECT principal FROM sessions WHERE sid = ?1)
                     AND seq < (SELECT seq FROM executions WHERE id = ?2) ORDER BY seq DESC LIMIT 1",
                )?
                .query_row(params![name, execution.as_str()], |row| Ok((execution_id(row, 0)?, row.get(1)?)))
                .optional()?;
            Ok(Some(Turn { head, before }))
        })
        .await
    }

    /// Executions that run in a session, and the processes they run in.
    pub async fn running_in(&self, id: SessionId) -> Result<Vec<(ExecutionId, String)>, MetadataError> {
        self.read(move |db| {
            db.prepare_cached(
                "SELECT id, process FROM executions WHERE session = ?1 AND status = 'running'
                 AND principal = (SELECT principal FROM sessions WHERE sid = ?1)",
            )?
            .query_map([id.to_string()], |row| Ok((execution_id(row, 0)?, row.get(1)?)))?
            .collect()
        })
        .await
    }
}

/// Whether an owner may have one more.
fn has_room(db: &Connection, principal: &Principal, sessions_max: Option<u32>) -> rusqlite::Result<bool> {
    let Some(max) = sessions_max else { return Ok(true) };
    let has = db
        .prepare_cached("SELECT sessions FROM owners WHERE principal = ?")?
        .query_row([principal.as_str()], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(has.unwrap_or(0) < i64::from(max))
}

/// Adds a session; its row, or none where its owner has as many as it may have.
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
    db.prepare_cached("SELECT sid FROM sessions WHERE principal = ? AND name = ? AND opened = 0")?
        .query_row(params![principal.as_str(), name.as_str()], |row| session_id(row, 0))
        .optional()
}

pub fn find(db: &Connection, principal: &Principal, id: SessionId, now: Timestamp) -> rusqlite::Result<Option<OpenedSession>> {
    let sql = format!("SELECT {COLUMNS}, {BOUND_UNTIL} FROM sessions WHERE sid = :id AND principal = :principal AND {LIVES}");
    let bindings = rusqlite::named_params! { ":id": id.to_string(), ":principal": principal.as_str(), ":now": now.as_microsecond() };
    db.prepare_cached(&sql)?.query_row(bindings, read_session).optional()
}

/// Notes a use. False when the session has ended. One that does not expire goes on not expiring.
pub fn touch(db: &Connection, id: SessionId, at: Timestamp, expires_at: Option<Timestamp>) -> rusqlite::Result<bool> {
    db.prepare_cached("UPDATE sessions SET used_at = ?, expires_at = ? WHERE sid = ? AND opened = 1 AND ended_at IS NULL")?
        .execute(params![at.as_microsecond(), expires_at.map(Timestamp::as_microsecond), id.to_string()])
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
        logical: row
            .get::<_, Option<String>>(7)?
            .map(|id| id.parse().map_err(|error| super::executions::unreadable(7, error)))
            .transpose()?,
    })
}

pub fn session_id(row: &Row<'_>, index: usize) -> rusqlite::Result<SessionId> {
    row.get::<_, String>(index)?.parse().map_err(|error| super::executions::unreadable(index, error))
}

/// As it is stored.
pub fn principal(row: &Row<'_>, index: usize) -> rusqlite::Result<Principal> {
    let text: String = row.get(index)?;
    if text.is_empty() { Ok(Principal::anonymous()) } else { text.parse().map_err(|error| super::executions::unreadable(index, error)) }
}
