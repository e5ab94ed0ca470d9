//! Contexts in Redis (6.2 or later), shared by many servers: one key per session, the record as its value, and expiry by Redis.

use super::{ContextStore, Pending, Stats, TTL_DEFAULT};
use crate::{Access, Document, SessionId, StoreError};
use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::{Cmd, FromRedisValue, RedisError, Script, cmd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const BACKEND: &str = "redis";
/// Always followed by exactly the 64 hex digits of the session.
pub const KEY_PREFIX: &str = "mcp:ctx:v1:";
pub const QUARANTINE_PREFIX: &str = "mcp:ctx:quarantine:v1:";
const QUARANTINE_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Keys scanned per step when counting contexts.
const SCAN_STEP: usize = 1000;
/// Steps per call: in a Redis with millions of other keys, the count proceeds a part at a time.
const SCAN_STEPS_MAX: usize = 100;
const SCAN_TIME_MAX: Duration = Duration::from_millis(200);

const REPLACE: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1";

const REMOVE_IF: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])";

#[derive(Debug, Clone)]
pub struct RedisSettings {
    pub ttl: Duration,
    /// Timeout of a connection attempt and of a command. Beyond it, Redis counts as down.
    pub deadline: Duration,
}

impl Default for RedisSettings {
    fn default() -> Self {
        Self { ttl: TTL_DEFAULT, deadline: Duration::from_secs(1) }
    }
}

pub struct Redis {
    /// One shared connection that reconnects when it is lost.
    connection: ConnectionManager,
    ttl_ms: u64,
    replace: Script,
    remove_if: Script,
    quarantined: AtomicU64,
    counting: tokio::sync::Mutex<Counting>,
    /// Result of the last complete scan.
    counted: Mutex<Option<u64>>,
}

/// Progress of a scan. It may take several calls, because `SCAN` visits all keys of the database.
#[derive(Default)]
struct Counting {
    cursor: u64,
    so_far: u64,
}

impl Redis {
    /// Opens `redis://…` or `rediss://…`. Connects on first use, because a server may start before its Redis. Needs a Tokio runtime.
    pub fn open(url: &str, settings: &RedisSettings) -> Result<Self, StoreError> {
        // While Redis is down, every use makes one attempt and fails at once. These attempts also reconnect when Redis is back.
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(settings.deadline))
            .set_response_timeout(Some(settings.deadline));
        let client = ::redis::Client::open(url).map_err(|error| unavailable(&error))?;
        Ok(Self {
            connection: ConnectionManager::new_lazy_with_config(client, config).map_err(|error| unavailable(&error))?,
            ttl_ms: settings.ttl.as_millis().try_into().unwrap_or(u64::MAX >> 2).max(1),
            replace: Script::new(REPLACE),
            remove_if: Script::new(REMOVE_IF),
            quarantined: AtomicU64::new(0),
            counting: tokio::sync::Mutex::default(),
            counted: Mutex::default(),
        })
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        command.query_async(&mut self.connection.clone()).await
    }

    async fn get(&self, session: &SessionId) -> Result<Option<Document>, StoreError> {
        let key = key(session);
        let found = self.ask::<Option<Vec<u8>>>(cmd("GETEX").arg(&key).arg("PX").arg(self.ttl_ms)).await;
        match found {
            Ok(bytes) => Ok(bytes.map(Document::from_bytes)),
            Err(error) if is_wrong_type(&error) => {
                // A list or another type, which this crate never writes.
                let aside = quarantine_key(session);
                self.ask::<()>(cmd("RENAME").arg(&key).arg(&aside)).await.map_err(|error| unavailable(&error))?;
                self.ask::<()>(cmd("PEXPIRE").arg(&aside).arg(QUARANTINE_TTL.as_millis() as u64))
                    .await
                    .map_err(|error| unavailable(&error))?;
                self.quarantined.fetch_add(1, Relaxed);
                tracing::warn!("what Redis held for a session is no context; it was moved aside");
                Ok(None)
            }
            Err(error) => Err(unavailable(&error)),
        }
    }

    async fn set(&self, session: &SessionId, expected: Option<&Document>, new: &Document) -> Result<bool, RedisError> {
        let key = key(session);
        let Some(expected) = expected else {
            let set = cmd("SET").arg(&key).arg(&new.bytes()[..]).arg("NX").arg("PX").arg(self.ttl_ms).take();
            return Ok(self.ask::<Option<String>>(&set).await?.is_some());
        };
        let mut call = self.replace.key(&key);
        call.arg(&expected.bytes()[..]).arg(&new.bytes()[..]).arg(self.ttl_ms);
        call.invoke_async(&mut self.connection.clone()).await
    }

    async fn move_aside(&self, session: &SessionId, found: &Document) -> Result<bool, RedisError> {
        let keep = cmd("SET").arg(quarantine_key(session)).arg(&found.bytes()[..]).arg("PX").arg(QUARANTINE_TTL.as_millis() as u64).take();
        self.ask::<()>(&keep).await?;
        self.remove_if.key(key(session)).arg(&found.bytes()[..]).invoke_async(&mut self.connection.clone()).await
    }

    /// `None` until all keys have been scanned once.
    async fn count(&self) -> Result<Option<u64>, RedisError> {
        // If another call is scanning, do not wait for it.
        if let Ok(mut counting) = self.counting.try_lock()
            && let Some(counted) = self.go_on(&mut counting).await?
        {
            *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = Some(counted);
        }
        Ok(*self.counted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Continues the scan for a bounded number of steps. Returns the count when the scan is complete.
    async fn go_on(&self, counting: &mut Counting) -> Result<Option<u64>, RedisError> {
        let begun = Instant::now();
        for _ in 0..SCAN_STEPS_MAX {
            let scan = cmd("SCAN").arg(counting.cursor).arg("MATCH").arg(format!("{KEY_PREFIX}*")).arg("COUNT").arg(SCAN_STEP).take();
            let (next, keys): (u64, Vec<Vec<u8>>) = match self.ask(&scan).await {
                // Redis is too busy for a scan. The health check finds out whether it is usable at all.
                Err(error) if error.is_timeout() => return Ok(None),
                step => step?,
            };
            counting.cursor = next;
            counting.so_far += keys.len() as u64;
            if next == 0 {
                return Ok(Some(std::mem::take(&mut counting.so_far)));
            }
            if begun.elapsed() >= SCAN_TIME_MAX {
                break;
            }
        }
        Ok(None)
    }
}

impl ContextStore for Redis {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    fn read<'a>(&'a self, access: Access<'a>) -> Pending<'a, Option<Document>> {
        Box::pin(self.get(access.session))
    }

    fn replace<'a>(&'a self, access: Access<'a>, expected: Option<&'a Document>, new: &'a Document) -> Pending<'a, bool> {
        Box::pin(async move { self.set(access.session, expected, new).await.map_err(|error| unavailable(&error)) })
    }

    fn remove<'a>(&'a self, access: Access<'a>) -> Pending<'a, bool> {
        Box::pin(async move {
            let removed: Result<u64, _> = self.ask(cmd("DEL").arg(key(access.session))).await;
            removed.map(|count| count > 0).map_err(|error| unavailable(&error))
        })
    }

    fn quarantine<'a>(&'a self, access: Access<'a>, found: &'a Document, _why: &'a str) -> Pending<'a, bool> {
        Box::pin(async move {
            let moved = self.move_aside(access.session, found).await.map_err(|error| unavailable(&error))?;
            self.quarantined.fetch_add(u64::from(moved), Relaxed);
            Ok(moved)
        })
    }

    /// Redis expires keys itself.
    fn sweep(&self) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn stats(&self) -> Pending<'_, Stats> {
        Box::pin(async move {
            let sessions = self.count().await.map_err(|error| unavailable(&error))?;
            Ok(Stats { sessions, quarantined: self.quarantined.load(Relaxed), ..Stats::default() })
        })
    }

    /// Redis holds no index by owner; its own `maxmemory` bounds it.
    fn owner_bytes<'a>(&'a self, _owner: &'a str) -> Pending<'a, Option<u64>> {
        Box::pin(async { Ok(None) })
    }

    /// A write, because a read-only replica answers `PING` too.
    fn check(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            let probe = cmd("SET").arg("mcp:ctx:probe").arg(1).arg("PX").arg(1000).take();
            self.ask::<()>(&probe).await.map_err(|error| unavailable(&error))
        })
    }
}

fn key(session: &SessionId) -> String {
    format!("{KEY_PREFIX}{session}")
}

fn quarantine_key(session: &SessionId) -> String {
    format!("{QUARANTINE_PREFIX}{session}")
}

fn is_wrong_type(error: &RedisError) -> bool {
    error.code() == Some("WRONGTYPE")
}

fn unavailable(error: &RedisError) -> StoreError {
    StoreError::Unavailable { backend: BACKEND, why: error.to_string() }
}
