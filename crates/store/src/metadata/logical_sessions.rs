//! Tasks that hosts name by their intent, and the execute sessions they are bound to: a symbol space each, and the heap it lives in.

use super::executions::{self, NewExecution, heap_key, timestamp, unreadable};
use super::sessions::{self, NewSession, session_id};
use super::{Durability, Metadata, MetadataError, heap_uses};
use heapstead_types::{ExecutionId, HeapKey, Principal, SessionId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
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
    /// The intent that it was opened with.
    pub intent: String,
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

/// What became of an intent that wants a logical session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    Opened,
    /// It has one. Nothing was written.
    Taken(Box<Logical>),
    /// Its owner has as many sessions as it may have. Nothing was written.
    TooMany,
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
    execute_sessions.id, reuse_key, prompt_hash, symbols, revision, execute_sessions.head, execute_sessions.expires_at, gone, intent";
const TABLES: &str = "logical_sessions JOIN sessions ON sessions.id = logical_sessions.session
    LEFT JOIN execute_sessions ON execute_sessions.id = logical_sessions.execute";

impl Metadata {
    pub async fn logical_of_intent(&self, principal: &Principal, scope: &str, intent: &str) -> Result<Option<Logical>, MetadataError> {
        let (principal, scope, intent) = (principal.clone(), scope.to_owned(), intent.to_owned());
        self.read(move |db| find_intent(db, &principal, &scope, &intent)).await
    }

    /// Makes the logical session of an intent, bound already: one that could not be bound is never there. `turn` has its first turn in it.
    pub async fn open_logical(
        &self,
        new: NewLogical,
        first: Bind,
        turn: NewExecution,
        sessions_max: Option<u32>,
    ) -> Result<Opening, MetadataError> {
        let process = self.process_name().to_owned();
        self.write(Durability::Power, move |db| {
            let principal = &new.session.principal;
            // Another call may have been first.
            if let Some(found) = find_intent(db, principal, &new.scope, &new.intent)? {
                return Ok(Opening::Taken(Box::new(found)));
            }
            let Some(session) = sessions::insert(db, &new.session, sessions_max)? else { return Ok(Opening::TooMany) };
            db.prepare_cached("INSERT INTO logical_sessions (id, session, principal, scope, intent, process) VALUES (?, ?, ?, ?, ?, ?)")?
                .execute(params![new.id.to_string(), session, principal.as_str(), new.scope, new.intent, process])?;
            bind(db, principal.as_str(), &process, &first, new.session.at)?;
            executions::begin_execution(db, &turn, &process, None)?;
            Ok(Opening::Opened)
        })
        .await
    }

    /// Binds a logical session whose turn the caller has.
    pub async fn bind(&self, principal: &Principal, new: Bind, at: Timestamp) -> Result<(), MetadataError> {
        let (principal, process) = (principal.clone(), self.process_name().to_owned());
        self.write(Durability::Power, move |db| bind(db, principal.as_str(), &process, &new, at)).await
    }

    pub async fn logical(&self, principal: &Principal, id: Uuid) -> Result<Option<Logical>, MetadataError> {
        let principal = principal.clone();
        self.read(move |db| {
            let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE logical_sessions.id = ? AND logical_sessions.principal = ?");
            db.prepare_cached(&sql)?.query_row(params![id.to_string(), principal.as_str()], read_logical).optional()
        })
        .await
    }

    /// Whether a logical session has this id that is somebody else's.
    pub async fn is_logical_of_another(&self, principal: &Principal, id: Uuid) -> Result<bool, MetadataError> {
        let principal = principal.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT 1 FROM logical_sessions WHERE id = ? AND principal <> ?")?
                .exists(params![id.to_string(), principal.as_str()])
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

    /// Notes that a logical session is used here.
    pub async fn use_logical(&self, id: Uuid, expires_at: Timestamp) -> Result<(), MetadataError> {
        let process = self.process_name().to_owned();
        self.write(Durability::Process, move |db| keep(db, id, &process, expires_at)).await
    }

    /// A logical session is used, if only to ask for something: what it is bound to is kept until then, unless it has expired.
    pub async fn keep_logical(&self, id: Uuid, now: Timestamp, kept_until: Timestamp) -> Result<(), MetadataError> {
        self.write(Durability::Process, move |db| keep_accepted(db, id, now, kept_until)).await
    }

    /// What is still to be told of a logical session.
    pub async fn untold(&self, id: Uuid) -> Result<Option<String>, MetadataError> {
        self.read(move |db| {
            let found = db
                .prepare_cached("SELECT untold FROM logical_sessions WHERE id = ?")?
                .query_row([id.to_string()], |row| row.get::<_, Option<String>>(0))
                .optional()?;
            Ok(found.flatten())
        })
        .await
    }

    /// The logical session that an execution ran in.
    pub async fn logical_of_run(&self, id: &ExecutionId) -> Result<Option<Uuid>, MetadataError> {
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

    /// Somebody is told this, so nobody else has to be. Whatever else there is to tell by now stays.
    pub async fn told(&self, id: Uuid, untold: String) -> Result<(), MetadataError> {
        self.write(Durability::Process, move |db| {
            db.prepare_cached("UPDATE logical_sessions SET untold = NULL WHERE id = ? AND untold = ?")?
                .execute(params![id.to_string(), untold])
                .map(drop)
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
            count(db, &logical.to_string(), -(changed as i64))?;
            db.prepare_cached("UPDATE sessions SET head = NULL WHERE id = (SELECT session FROM logical_sessions WHERE id = ?)")?
                .execute([logical.to_string()])?;
            Ok(changed > 0)
        })
        .await
    }

    /// Keeps execute sessions that would expire before `soon`, and that something of this process runs in.
    pub async fn keep_running(&self, soon: Timestamp, kept_until: Timestamp) -> Result<(), MetadataError> {
        const RUNNING: &str = "gone IS NULL AND execute_sessions.expires_at <= :soon AND id IN (
            SELECT execute FROM logical_sessions JOIN sessions ON sessions.id = logical_sessions.session
            JOIN executions ON executions.session = sid AND executions.principal = sessions.principal
            WHERE executions.status = 'running' AND executions.process = :process)";
        let (process, soon) = (self.process_name().to_owned(), soon.as_microsecond());
        let runs = process.clone();
        let any = self
            .read(move |db| {
                db.prepare_cached(&format!("SELECT 1 FROM execute_sessions WHERE {RUNNING}"))?
                    .exists(named_params! { ":soon": soon, ":process": runs })
            })
            .await?;
        if !any {
            return Ok(());
        }
        self.write(Durability::Process, move |db| {
            db.prepare_cached(&format!("UPDATE execute_sessions SET expires_at = :until WHERE {RUNNING}"))?
                .execute(named_params! { ":until": kept_until.as_microsecond(), ":soon": soon, ":process": process })
                .map(drop)
        })
        .await
    }

    /// Execute sessions that expired are gone; the heads of their sessions with them. The sessions that were bound to them.
    pub async fn expire_executes(&self, now: Timestamp) -> Result<Vec<SessionId>, MetadataError> {
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
            // A number whose ref the owner already uses as the name of a log is left out: that name goes on meaning the log.
            db.prepare_cached(
                "INSERT INTO session_refs (principal, number, logical)
                 WITH RECURSIVE next (number) AS (
                   SELECT coalesce((SELECT max(number) + 1 FROM session_refs WHERE principal = ?1), 0) UNION ALL
                   SELECT number + 1 FROM next WHERE EXISTS (SELECT 1 FROM sessions WHERE principal = ?1 AND name = 's' || number))
                 SELECT ?1, max(number), ?2 FROM next RETURNING number",
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
    let was_gone = db
        .prepare_cached(
            "SELECT 1 FROM execute_sessions WHERE gone IS NOT NULL AND id = (SELECT execute FROM logical_sessions WHERE id = ?)",
        )?
        .exists([&logical])?;
    if was_gone {
        count(db, &logical, 1)?;
    }
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

/// A run found out what became of the session: what is left to tell of it.
pub fn to_tell(db: &Connection, logical: Uuid, continuity: Option<&str>) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE logical_sessions SET untold = ? WHERE id = ?")?.execute(params![continuity, logical.to_string()]).map(drop)
}

/// A run is accepted: what has not expired by now does not while it waits for its turn.
pub fn keep_accepted(db: &Connection, logical: Uuid, now: Timestamp, kept_until: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached(
        "UPDATE execute_sessions SET expires_at = max(expires_at, ?) WHERE gone IS NULL AND expires_at > ?
         AND id = (SELECT execute FROM logical_sessions WHERE id = ?)",
    )?
    .execute(params![kept_until.as_microsecond(), now.as_microsecond(), logical.to_string()])
    .map(drop)
}

/// A logical session whose execute session is gone is only a record, and no quota counts it.
fn count(db: &Connection, logical: &str, more: i64) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE owners SET sessions = sessions + ? WHERE principal = (SELECT principal FROM logical_sessions WHERE id = ?)")?
        .execute(params![more, logical])
        .map(drop)
}

fn find_intent(db: &Connection, principal: &Principal, scope: &str, intent: &str) -> rusqlite::Result<Option<Logical>> {
    let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE logical_sessions.principal = ? AND scope = ? AND intent = ?");
    db.prepare_cached(&sql)?.query_row(params![principal.as_str(), scope, intent], read_logical).optional()
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
        intent: row.get(13)?,
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
