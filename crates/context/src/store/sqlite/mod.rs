//! Contexts in an SQLite database that several processes may share and that may hold other tables too.
//!
//! ```text
//! read    ─► a pooled connection on the calling thread: one prepared SELECT of cached pages is too short for a thread switch
//! replace ─► writer thread: queued writes share a commit, and return when it is committed
//! ```
//! A read updates the time of last use at most once a minute (or once in a thirtieth of the TTL, if that is shorter), so a context may live
//! up to a minute longer than its TTL.

mod backing;
mod statements;
mod writer;

use super::{CONTEXT_BYTES, ContextStore, Pending, Stats, TTL_DEFAULT};
use crate::parsed::Parsed;
use crate::{Access, Clock, Document, SessionId, StoreError, SystemClock, Timestamp};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use writer::Writer;

pub(super) const BACKEND: &str = "sqlite";
/// How long a write waits for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Size of the pool of read connections. More are opened under load and closed afterwards.
const READERS_KEPT: usize = 8;
/// Maximum interval between updates of the time of last use.
const TOUCH_EVERY_MAX: Duration = Duration::from_secs(60);
/// Version 1.
const SCHEMA: &str = include_str!("schema.sql");
/// Changes version 1 to version 2.
const OWNERS: &str = include_str!("owners.sql");
const SCHEMA_KNOWN: i64 = 2;

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It survives a crash of this process.
    #[default]
    Process,
    /// It survives a power cut too.
    Power,
}

#[derive(Clone)]
pub struct SqliteSettings {
    pub ttl: Duration,
    /// Above this number, the next sweep evicts the least recently used, whoever owns them.
    pub sessions_max: Option<usize>,
    pub durability: Durability,
    pub clock: Arc<dyn Clock>,
}

impl Default for SqliteSettings {
    fn default() -> Self {
        Self { ttl: TTL_DEFAULT, sessions_max: None, durability: Durability::Process, clock: Arc::new(SystemClock) }
    }
}

type Connect = dyn Fn() -> rusqlite::Result<Connection> + Send + Sync;

pub struct Sqlite {
    settings: SqliteSettings,
    touch_every_ms: i64,
    connect: Arc<Connect>,
    readers: Arc<Mutex<Vec<Connection>>>,
    writer: Writer,
    /// Cache of recently read records: an unchanged row is neither copied nor parsed again.
    known: Arc<Parsed>,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    idle: AtomicU64,
    lru: AtomicU64,
    quarantined: AtomicU64,
}

impl Sqlite {
    /// Opens a database file. Creates it if it is missing, readable by its owner only.
    pub fn open(path: &Path, settings: SqliteSettings) -> Result<Self, StoreError> {
        make_private(path).map_err(|error| StoreError::Unavailable { backend: BACKEND, why: format!("{}: {error}", path.display()) })?;
        let path = path.to_owned();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::open_with(settings, move || Connection::open_with_flags(&path, flags))
    }

    /// Opens a store over connections that the caller makes to one database. Its other tables are not touched.
    pub fn open_with(
        settings: SqliteSettings,
        connect: impl Fn() -> rusqlite::Result<Connection> + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let synchronous = match settings.durability {
            Durability::Process => "NORMAL",
            Durability::Power => "FULL",
        };
        let connect: Arc<Connect> = Arc::new(move || {
            let connection = connect()?;
            heapstead_sqlite::configure(&connection, BUSY_TIMEOUT, synchronous)?;
            Ok(connection)
        });
        let mut connection = connect().map_err(|error| unavailable(&error))?;
        prepare(&mut connection)?;
        let durability = settings.durability;
        let touch_every = (settings.ttl / 30).min(TOUCH_EVERY_MAX);
        Ok(Self {
            touch_every_ms: touch_every.as_millis() as i64,
            settings,
            connect,
            readers: Arc::default(),
            writer: Writer::start(connection, durability)?,
            known: Arc::default(),
            counters: Arc::default(),
        })
    }

    /// Contexts last used before this time have expired, even if a use within the last interval was not recorded.
    fn dead_before(&self, now: Timestamp) -> i64 {
        let ttl_ms = self.settings.ttl.as_millis().try_into().unwrap_or(i64::MAX);
        now.ms().saturating_sub(ttl_ms).saturating_sub(self.touch_every_ms)
    }

    async fn select(&self, session: &SessionId) -> Result<Option<(Timestamp, Document)>, StoreError> {
        match with_reader(&self.readers, &self.connect, Duration::ZERO, |db| select(db, session, &self.known)) {
            Err(error) if is_busy(&error) => {
                let (readers, connect, session, known) = (self.readers.clone(), self.connect.clone(), *session, self.known.clone());
                let patient = move || with_reader(&readers, &connect, BUSY_TIMEOUT, |db| select(db, &session, &known));
                let read = tokio::task::spawn_blocking(patient).await;
                read.map_err(|error| StoreError::Unavailable { backend: BACKEND, why: error.to_string() })?
            }
            read => read,
        }
        .map_err(|error| unavailable(&error))
    }

    async fn read_document(&self, access: Access<'_>) -> Result<Option<Document>, StoreError> {
        let Some((used_at, document)) = self.select(access.session).await? else { return Ok(None) };
        let now = self.settings.clock.now();
        if used_at.ms() <= self.dead_before(now) {
            return Ok(None);
        }
        if now.ms() - used_at.ms() >= self.touch_every_ms {
            let session = *access.session;
            self.writer.write_if_room(move |db| statements::touch(db, &session, now));
        }
        Ok(Some(document))
    }
}

impl ContextStore for Sqlite {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    fn read<'a>(&'a self, access: Access<'a>) -> Pending<'a, Option<Document>> {
        Box::pin(self.read_document(access))
    }

    fn replace<'a>(&'a self, access: Access<'a>, expected: Option<&'a Document>, new: &'a Document) -> Pending<'a, bool> {
        let now = self.settings.clock.now();
        let (session, dead_before) = (*access.session, self.dead_before(now));
        let (expected, new) = (expected.map(|document| document.bytes().clone()), new.bytes().clone());
        let (owner, bytes_max) = (access.owner.to_owned(), access.owner_bytes_max);
        Box::pin(async move {
            let (replaced, expired) = self
                .writer
                .write(move |db| {
                    let expired = if expected.is_none() { statements::remove_dead(db, &session, dead_before)? } else { 0 };
                    if let Some(bytes_max) = bytes_max
                        && let Some(used_bytes) = over_quota(db, &session, &owner, new.len() as u64, bytes_max)?
                    {
                        return Ok((Err(StoreError::OverQuota { used_bytes, bytes_max }), expired));
                    }
                    let replaced = match &expected {
                        Some(expected) => statements::update(db, &session, &owner, expected, &new, now)?,
                        None => statements::insert(db, &session, &owner, &new, now)?,
                    };
                    Ok((Ok(replaced), expired))
                })
                .await?;
            self.counters.idle.fetch_add(expired, Relaxed);
            replaced
        })
    }

    fn remove<'a>(&'a self, access: Access<'a>) -> Pending<'a, bool> {
        let (session, dead_before) = (*access.session, self.dead_before(self.settings.clock.now()));
        Box::pin(async move {
            let (expired, removed) = self
                .writer
                .write(move |db| Ok((statements::remove_dead(db, &session, dead_before)?, statements::remove(db, &session)?)))
                .await?;
            self.known.forget(&session);
            self.counters.idle.fetch_add(expired, Relaxed);
            Ok(removed)
        })
    }

    fn quarantine<'a>(&'a self, access: Access<'a>, found: &'a Document, why: &'a str) -> Pending<'a, bool> {
        let (session, bytes, why, now) = (*access.session, found.bytes().clone(), why.to_owned(), self.settings.clock.now());
        Box::pin(async move {
            let moved = self.writer.write(move |db| statements::quarantine(db, &session, &bytes, &why, now)).await?;
            self.known.forget(&session);
            self.counters.quarantined.fetch_add(u64::from(moved), Relaxed);
            Ok(moved)
        })
    }

    fn sweep(&self) -> Pending<'_, ()> {
        let now = self.settings.clock.now();
        let (dead_before, sessions_max) = (self.dead_before(now), self.settings.sessions_max);
        Box::pin(async move {
            let (idle, lru) = self.writer.write(move |db| statements::sweep(db, dead_before, sessions_max, now)).await?;
            self.counters.idle.fetch_add(idle, Relaxed);
            self.counters.lru.fetch_add(lru, Relaxed);
            Ok(())
        })
    }

    fn stats(&self) -> Pending<'_, Stats> {
        let dead_before = self.dead_before(self.settings.clock.now());
        Box::pin(async move {
            let (readers, connect) = (self.readers.clone(), self.connect.clone());
            let counted =
                tokio::task::spawn_blocking(move || with_reader(&readers, &connect, BUSY_TIMEOUT, |db| statements::count(db, dead_before)));
            let sessions = counted
                .await
                .map_err(|error| StoreError::Unavailable { backend: BACKEND, why: error.to_string() })?
                .map_err(|error| unavailable(&error))?;
            let mut stats =
                Stats { sessions: Some(sessions), sessions_max: self.settings.sessions_max.map(|max| max as u64), ..Stats::default() };
            stats.evictions.idle = self.counters.idle.load(Relaxed);
            stats.evictions.lru = self.counters.lru.load(Relaxed);
            stats.quarantined = self.counters.quarantined.load(Relaxed);
            Ok(stats)
        })
    }

    /// On the calling thread, like `read`.
    fn owner_bytes<'a>(&'a self, owner: &'a str) -> Pending<'a, Option<u64>> {
        let read = with_reader(&self.readers, &self.connect, BUSY_TIMEOUT, |db| statements::owner_bytes(db, owner));
        Box::pin(async move { read.map(Some).map_err(|error| unavailable(&error)) })
    }

    fn check(&self) -> Pending<'_, ()> {
        let now = self.settings.clock.now();
        Box::pin(async move {
            self.select(&SessionId::from_bytes([0; 32])).await?;
            self.writer.write(move |db| statements::set_state(db, "probe", now.ms())).await
        })
    }
}

/// What an owner has, if a document of this length would be too much. One that is not longer than before is never refused.
fn over_quota(db: &Connection, session: &SessionId, owner: &str, bytes: u64, bytes_max: u64) -> rusqlite::Result<Option<u64>> {
    let (before, after) = (statements::counted_bytes(db, session, owner)?.unwrap_or(0), bytes + CONTEXT_BYTES);
    let used = statements::owner_bytes(db, owner)?;
    Ok((after > before && used.saturating_sub(before) + after > bytes_max).then_some(used))
}

fn select(db: &Connection, session: &SessionId, known: &Parsed) -> rusqlite::Result<Option<(Timestamp, Document)>> {
    statements::select(db, session, |used_at, record| (used_at, known.recall_bytes(session, record)))
}

fn with_reader<T>(
    readers: &Mutex<Vec<Connection>>,
    connect: &Arc<Connect>,
    patience: Duration,
    read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let pooled = readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let is_new = pooled.is_none();
    let connection = pooled.map_or_else(|| connect(), Ok)?;
    // Pooled connections have no busy timeout.
    if is_new || !patience.is_zero() {
        connection.busy_timeout(patience)?;
    }
    let answer = read(&connection);
    if !patience.is_zero() {
        connection.busy_timeout(Duration::ZERO)?;
    }
    let mut readers = readers.lock().unwrap_or_else(PoisonError::into_inner);
    // A failed connection may have lost its file, so it is closed and the next reader opens a new one.
    if readers.len() < READERS_KEPT && answer.is_ok() {
        readers.push(connection);
    }
    answer
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn unavailable(error: &rusqlite::Error) -> StoreError {
    StoreError::Unavailable { backend: BACKEND, why: error.to_string() }
}

#[cfg(unix)]
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Creates or changes the tables if another process has not done so.
fn prepare(connection: &mut Connection) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| unavailable(&error);
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(failed)?;
    if !statements::has_tables(&transaction).map_err(failed)? {
        transaction.execute_batch(SCHEMA).map_err(failed)?;
    }
    if statements::state(&transaction, "schema_version").map_err(failed)? == Some(1) {
        transaction.execute_batch(OWNERS).map_err(failed)?;
    }
    let found = statements::state(&transaction, "schema_version").map_err(failed)?.unwrap_or_default();
    if found != SCHEMA_KNOWN {
        let why = format!("its tables have version {found}, and this server knows version {SCHEMA_KNOWN}: use the version that made them");
        return Err(StoreError::Unavailable { backend: BACKEND, why });
    }
    transaction.commit().map_err(failed)
}
