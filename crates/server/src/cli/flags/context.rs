//! Flags of conversation contexts: the store, the TTL and limits.

use super::FlagError;
use super::values::{between, duration, not_empty};
use heapstead_service::{ContextPlace, ContextSettings};
use std::path::{Path, PathBuf};
use std::time::Duration;

const CONTEXTS: &str = "Conversation context";

/// The context database, in the folder of the metadata database. Not used with Redis.
pub fn context_database(database_folder: &Path) -> PathBuf {
    database_folder.join("context.db")
}

/// Calls that wait to be recorded, at most 4,096 in each of two queues, and 256 records that were parsed last.
const RECORDED_MB: u64 = 96;

#[derive(clap::Args)]
pub struct ContextOptions {
    /// Where conversation contexts are stored
    #[arg(long, value_name = "WHERE", env = "HEAPSTEAD_CONTEXT_STORE", default_value = "sqlite", help_heading = CONTEXTS)]
    context_store: Store,
    /// TTL of an unused context, e.g. 30m, 24h
    #[arg(long, value_name = "TIME", env = "HEAPSTEAD_CONTEXT_TTL", default_value = "30m", value_parser = duration, help_heading = CONTEXTS)]
    context_ttl: Duration,
    /// Maximum number of contexts in memory, 1 to 100000000; the least recently used are evicted
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_CONTEXT_MAX", default_value_t = 10_000, value_parser = between::<1, 100_000_000>, allow_negative_numbers = true, help_heading = CONTEXTS)]
    context_max: u64,
    /// Memory limit for contexts in memory, 1 to 1048576; above it, the oldest fifth is evicted
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_CONTEXT_MEMORY_MB", default_value_t = 512, value_parser = between::<1, { 1 << 20 }>, allow_negative_numbers = true, help_heading = CONTEXTS)]
    context_memory_mb: u64,
    /// Interval at which contexts in memory are written to the database; a crash loses changes since the last write
    #[arg(long, value_name = "TIME", env = "HEAPSTEAD_CONTEXT_FLUSH", default_value = "5m", value_parser = duration, help_heading = CONTEXTS)]
    context_flush: Duration,
    /// Redis server for contexts: redis://HOST:PORT, rediss://… or redis+unix://PATH; if it contains a password, prefer the environment
    /// variable
    #[arg(long, value_name = "URL", env = "HEAPSTEAD_REDIS_URL", hide_env_values = true, value_parser = not_empty, help_heading = CONTEXTS)]
    redis_url: Option<String>,
    /// Encrypt contexts with the keys of this file: one per line, an id and 64 hex digits; the first encrypts, all decrypt
    #[arg(long, value_name = "FILE", env = "HEAPSTEAD_CONTEXT_KEY_FILE", help_heading = CONTEXTS)]
    context_key_file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Store {
    /// In this process, written to the database periodically
    Memory,
    /// In a local database, on every change
    Sqlite,
    /// In Redis, shared by several servers
    Redis,
    /// Contexts are off
    None,
}

impl ContextOptions {
    /// Whether contexts have a database of their own.
    pub fn has_database(&self) -> bool {
        matches!(self.context_store, Store::Memory | Store::Sqlite)
    }

    /// The most memory that contexts take in this process.
    pub fn memory_mb(&self) -> u64 {
        match self.context_store {
            Store::Memory => self.context_memory_mb,
            // Only what is being recorded, and the records that were parsed last.
            Store::Sqlite | Store::Redis => RECORDED_MB,
            Store::None => 0,
        }
    }

    /// `None` if contexts are off.
    pub fn settings(&self, database_folder: &Path) -> Result<Option<ContextSettings>, FlagError> {
        let database = context_database(database_folder);
        let place = match (self.context_store, &self.redis_url) {
            (Store::None, _) => return Ok(None),
            (Store::Redis, None) => return Err(FlagError::NoRedis),
            (Store::Redis, Some(url)) => ContextPlace::Redis { url: url.clone() },
            (_, Some(_)) => return Err(FlagError::RedisUnused),
            (Store::Sqlite, None) => ContextPlace::Sqlite { database },
            (Store::Memory, None) => ContextPlace::Memory {
                database,
                sessions_max: usize::try_from(self.context_max).unwrap_or(usize::MAX),
                memory_bytes_max: usize::try_from(self.context_memory_mb << 20).unwrap_or(usize::MAX),
                flush_every: self.context_flush,
            },
        };
        Ok(Some(ContextSettings { place, ttl: self.context_ttl, key_file: self.context_key_file.clone() }))
    }
}
