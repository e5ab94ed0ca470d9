//! Flags about the contexts of conversations: where they are kept, how long, and how much of them.

use super::FlagError;
use super::values::{between, duration, not_empty};
use heapstead_service::{ContextPlace, ContextSettings};
use std::path::{Path, PathBuf};
use std::time::Duration;

const CONTEXTS: &str = "Conversation context";

/// Where contexts are, in the folder of the metadata database, unless they are in Redis.
pub fn context_database(database_folder: &Path) -> PathBuf {
    database_folder.join("context.db")
}

#[derive(clap::Args)]
pub struct ContextOptions {
    /// Where the contexts of conversations are kept
    #[arg(long, value_name = "WHERE", env = "HEAPSTEAD_CONTEXT_STORE", default_value = "sqlite", help_heading = CONTEXTS)]
    context_store: Store,
    /// How long a context is kept that nobody uses, e.g. 30m, 24h
    #[arg(long, value_name = "TIME", env = "HEAPSTEAD_CONTEXT_TTL", default_value = "30m", value_parser = duration, help_heading = CONTEXTS)]
    context_ttl: Duration,
    /// Contexts held in memory, 1 to 100000000; the least recently used leave
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_CONTEXT_MAX", default_value_t = 10_000, value_parser = between::<1, 100_000_000>, allow_negative_numbers = true, help_heading = CONTEXTS)]
    context_max: u64,
    /// Memory for contexts in memory, 1 to 1048576; past it the oldest fifth leaves
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_CONTEXT_MEMORY_MB", default_value_t = 512, value_parser = between::<1, { 1 << 20 }>, allow_negative_numbers = true, help_heading = CONTEXTS)]
    context_memory_mb: u64,
    /// How often contexts in memory are written to the database, and so what a crash may lose
    #[arg(long, value_name = "TIME", env = "HEAPSTEAD_CONTEXT_FLUSH", default_value = "5m", value_parser = duration, help_heading = CONTEXTS)]
    context_flush: Duration,
    /// The Redis that contexts are kept in: redis://HOST:PORT, rediss://… or redis+unix://PATH; better given as a variable where it holds a password
    #[arg(long, value_name = "URL", env = "HEAPSTEAD_REDIS_URL", hide_env_values = true, value_parser = not_empty, help_heading = CONTEXTS)]
    redis_url: Option<String>,
    /// Encrypt contexts with the keys of this file: one per line, an id and 64 hex digits; the first encrypts, all decrypt
    #[arg(long, value_name = "FILE", env = "HEAPSTEAD_CONTEXT_KEY_FILE", help_heading = CONTEXTS)]
    context_key_file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Store {
    /// In this process, written to the database now and then
    Memory,
    /// In a database of this machine, with every change
    Sqlite,
    /// In Redis, for several servers
    Redis,
    /// Nowhere: conversations are not remembered
    None,
}

impl ContextOptions {
    /// None where conversations are not remembered.
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
