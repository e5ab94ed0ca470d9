//! Tasks that hosts name by their intent, and the execute sessions they are bound to: a symbol space each, and the heap it lives in.

use super::executions::{heap_key, timestamp, unreadable};
use super::sessions::{self, NewSession, session_id};
use super::{Durability, Metadata, MetadataError, heap_uses};
use heapstead_types::{HeapKey, Principal, SessionId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

#[derive(Debug, Clone)]
pub struct NewLogical {
    pub id: Uuid,
    pub session: NewSession,
    /// Intents of different scopes are different tasks.
    pub scope: String,
    pub intent: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logical {
    pub id: Uuid,
    pub session: SessionId,
    /// The head of its session.
    pub head: Option<HeapKey>,
    /// The process that used it last.
    pub process: String,
    /// What broke its continuity and has not been told yet, as JSON.
    pub untold: Option<String>,
    /// What it is bound to, gone or not.
    pub execute: Option<Execute>,
}

/// A symbol space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execute {
    /// 32 hex digits.
    pub id: String,
    pub reuse_key: String,
    pub prompt_hash: String,
    /// Its symbols, and where they were taken from, as JSON.
    pub symbols: String,
    /// How often it has grown.
    pub revision: u64,
    /// Its heap while another has its place.
    pub head: Option<HeapKey>,
    pub expires_at: Timestamp,
    /// Why it is gone, once it is.
    pub gone: Option<String>,
}

/// What a run changes about its logical session, in the transaction that ends the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    pub logical: Uuid,
    /// The execute session as it is from now on: a new one, one that has grown, or one that is taken up again.
    pub execute: Execute,
    /// Why the one before is gone; none where it goes on or only steps aside.
    pub replaces: Option<String>,
    /// Where the session goes on from, and the bytes of that heap; none leaves that to the run.
    pub head: Option<(HeapKey, u64)>,
    /// Kept until somebody is told, as JSON.
    pub untold: Option<String>,
}

const COLUMNS: &str = "logical_sessions.id, sid, sessions.head, process, untold,
    execute_sessions.id, reuse_key, prompt_hash, symbols, revision, execute_sessions.head, execute_sessions.expires_at, gone";
const TABLES: &str = "logical_sessions JOIN sessions ON sessions.id = logical_sessions.session
    LEFT JOIN execute_sessions ON execute_sessions.id = logical_sessions.execute";

impl Metadata {
    /// The logical session of this intent, made where there is none. None where the owner has as many sessions as it may have.
    pub async fn logical_of_intent(&self, new: NewLogical, sessions_max: Option<u32>) -> Result<Option<Logical>, MetadataError> {
        let (principal, scope, intent) = (new.session.principal.clone(), new.scope.clone(), new.intent.clone());
        let find = move |db: &Connection| {
            let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE logical_sessions.principal = ? AND scope = ? AND intent = ?");
            db.prepare_cached(&sql)?.query_row(params![principal.as_str(), scope, intent], read_logical).optional()
        };
        if let Some(found) = self.read(find.clone()).await? {
            return Ok(Some(found));
        }
        let process = self.process_name().to_owned();
        self.write(Durability::Power, move |db| {
            // Another call may have been first.
            if let Some(found) = find(db)? {
                return Ok(Some(found));
            }
            let Some(session) = sessions::insert(db, &new.session, sessions_max)? else { return Ok(None) };
            db.prepare_cached("INSERT INTO logical_sessions (id, session, principal, scope, intent, process) VALUES (?, ?, ?, ?, ?, ?)")?
                .execute(params![new.id.to_string(), session, new.session.principal.as_str(), new.scope, new.intent, process])?;
            find(db)
        })
        .await
    }

    pub async fn logical(&self, principal: &Principal, id: Uuid) -> Result<Option<Logical>, MetadataError> {
        let principal = principal.clone();
        self.read(move |db| {
            let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE logical_sessions.id = ? AND logical_sessions.principal = ?");
            db.prepare_cached(&sql)?.query_row(params![id.to_string(), principal.as_str()], read_logical).optional()
        })
        .await
    }

    /// The logical session that this session is of, if it is one's.
    pub async fn logical_of_session(&self, id: SessionId) -> Result<Option<Logical>, MetadataError> {
        self.read(move |db| {
            let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE sid = ?");
            db.prepare_cached(&sql)?.query_row([id.to_string()], read_logical).optional()
        })
        .await
    }

    /// Brings a logical session under another scope, where its intent is not taken yet.
    pub async fn move_logical(&self, id: Uuid, scope: String, intent: String) -> Result<(), MetadataError> {
        self.write(Durability::Process, move |db| {
            db.prepare_cached("UPDATE OR IGNORE logical_sessions SET scope = ?, intent = ? WHERE id = ?")?
                .execute(params![scope, intent, id.to_string()])
                .map(drop)
        })
        .await
    }

    /// An execute session that an open may take up again.
    pub async fn reusable(&self, reuse_key: String, now: Timestamp) -> Result<Option<Execute>, MetadataError> {
        self.read(move |db| {
            db.prepare_cached(
                "SELECT id, reuse_key, prompt_hash, symbols, revision, head, expires_at, gone FROM execute_sessions
                 WHERE reuse_key = ? AND gone IS NULL AND expires_at > ? AND head IS NOT NULL ORDER BY expires_at DESC LIMIT 1",
            )?
            .query_row(params![reuse_key, now.as_microsecond()], |row| read_execute(row, 0))
            .optional()
        })
        .await
    }

    /// Notes that a logical session is used here, and what has been told.
    pub async fn use_logical(&self, id: Uuid, expires_at: Timestamp, told: bool) -> Result<(), MetadataError> {
        let process = self.process_name().to_owned();
        self.write(Durability::Process, move |db| {
            db.prepare_cached("UPDATE logical_sessions SET process = ?, untold = CASE WHEN ? THEN NULL ELSE untold END WHERE id = ?")?
                .execute(params![process, told, id.to_string()])?;
            keep_execute(db, id, expires_at)
        })
        .await
    }

    /// Takes the execute session from a logical one. False when it has none that lives.
    pub async fn end_execute(&self, logical: Uuid, why: &'static str) -> Result<bool, MetadataError> {
        self.write(Durability::Power, move |db| {
            let changed = db
                .prepare_cached(
                    "UPDATE execute_sessions SET gone = ?, head = NULL WHERE gone IS NULL
                     AND id = (SELECT execute FROM logical_sessions WHERE id = ?)",
                )?
                .execute(params![why, logical.to_string()])?;
            db.prepare_cached("UPDATE sessions SET head = NULL WHERE id = (SELECT session FROM logical_sessions WHERE id = ?)")?
                .execute([logical.to_string()])?;
            Ok(changed > 0)
        })
        .await
    }

    /// Execute sessions that expired are gone; the heads of their sessions with them.
    pub async fn expire_executes(&self, now: Timestamp) -> Result<(), MetadataError> {
        let any = self
            .read(move |db| {
                db.prepare_cached("SELECT 1 FROM execute_sessions WHERE gone IS NULL AND expires_at <= ?")?.exists([now.as_microsecond()])
            })
            .await?;
        if !any {
            return Ok(());
        }
        self.write(Durability::Process, move |db| {
            let now = now.as_microsecond();
            db.prepare_cached(
                "UPDATE sessions SET head = NULL WHERE id IN (SELECT logical_sessions.session FROM execute_sessions
                 JOIN logical_sessions ON logical_sessions.execute = execute_sessions.id WHERE gone IS NULL AND execute_sessions.expires_at <= ?)",
            )?
            .execute([now])?;
            db.prepare_cached("UPDATE execute_sessions SET gone = 'expired', head = NULL WHERE gone IS NULL AND expires_at <= ?")?
                .execute([now])
                .map(drop)
        })
        .await
    }

    /// The number by which an owner calls a logical session where there is no connection to keep it.
    pub async fn session_ref(&self, principal: &Principal, id: Uuid) -> Result<u64, MetadataError> {
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
            db.prepare_cached(
                "INSERT INTO session_refs (principal, number, logical)
                 VALUES (?1, coalesce((SELECT max(number) + 1 FROM session_refs WHERE principal = ?1), 0), ?2) RETURNING number",
            )?
            .query_row(params![principal.as_str(), id], |row| row.get::<_, i64>(0))
            .map(|number| number as u64)
        })
        .await
    }

    pub async fn referred(&self, principal: &Principal, number: u64) -> Result<Option<Uuid>, MetadataError> {
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT logical FROM session_refs WHERE principal = ? AND number = ?")?
                .query_row(params![principal.as_str(), number as i64], |row| uuid(row, 0))
                .optional()
        })
        .await
    }
}

/// Binds a logical session to an execute session, new or not.
pub fn bind(db: &Connection, principal: &str, process: &str, bind: &Bind, at: Timestamp) -> rusqlite::Result<()> {
    let (logical, execute) = (bind.logical.to_string(), &bind.execute);
    if let Some(why) = &bind.replaces {
        db.prepare_cached(
            "UPDATE execute_sessions SET gone = coalesce(gone, ?), head = NULL
             WHERE id = (SELECT execute FROM logical_sessions WHERE id = ?) AND id <> ?",
        )?
        .execute(params![why, logical, execute.id])?;
    } else {
        // It only steps aside, and takes its heap along.
        db.prepare_cached(
            "UPDATE execute_sessions SET head = (SELECT head FROM sessions WHERE id = (SELECT session FROM logical_sessions WHERE id = ?1))
             WHERE id = (SELECT execute FROM logical_sessions WHERE id = ?1) AND id <> ?2",
        )?
        .execute(params![logical, execute.id])?;
    }
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
        .execute(params![execute.id, process, bind.untold, logical])?;
    if let Some((key, bytes)) = &bind.head {
        heap_uses::note(db, principal, key, *bytes, at)?;
        db.prepare_cached("UPDATE sessions SET head = ? WHERE id = (SELECT session FROM logical_sessions WHERE id = ?)")?
            .execute(params![key.to_string(), logical])?;
    }
    Ok(())
}

/// What a logical session is bound to is used, and kept until then.
pub fn keep(db: &Connection, logical: Uuid, process: &str, kept_until: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE logical_sessions SET process = ? WHERE id = ?")?.execute(params![process, logical.to_string()])?;
    keep_execute(db, logical, kept_until)
}

/// A run told its caller what became of the session.
pub fn told(db: &Connection, logical: Uuid) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE logical_sessions SET untold = NULL WHERE id = ?")?.execute([logical.to_string()]).map(drop)
}

fn keep_execute(db: &Connection, logical: Uuid, expires_at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached(
        "UPDATE execute_sessions SET expires_at = ? WHERE gone IS NULL AND id = (SELECT execute FROM logical_sessions WHERE id = ?)",
    )?
    .execute(params![expires_at.as_microsecond(), logical.to_string()])
    .map(drop)
}

fn read_logical(row: &Row<'_>) -> rusqlite::Result<Logical> {
    let bound = row.get::<_, Option<String>>(5)?.is_some();
    Ok(Logical {
        id: uuid(row, 0)?,
        session: session_id(row, 1)?,
        head: heap_key(row, 2)?,
        process: row.get(3)?,
        untold: row.get(4)?,
        execute: if bound { Some(read_execute(row, 5)?) } else { None },
    })
}

fn read_execute(row: &Row<'_>, from: usize) -> rusqlite::Result<Execute> {
    Ok(Execute {
        id: row.get(from)?,
        reuse_key: row.get(from + 1)?,
        prompt_hash: row.get(from + 2)?,
        symbols: row.get(from + 3)?,
        revision: row.get::<_, i64>(from + 4)? as u64,
        head: heap_key(row, from + 5)?,
        expires_at: timestamp(row, from + 6)?,
        gone: row.get(from + 7)?,
    })
}

fn uuid(row: &Row<'_>, index: usize) -> rusqlite::Result<Uuid> {
    row.get::<_, String>(index)?.parse().map_err(|error| unreadable(index, error))
}
