//! Flags of sessions, catalogs and quotas per owner.

use super::DAY_SECS;
use super::values::{between, boolish, duration};
use heapstead_service::Quotas;
use std::path::PathBuf;
use std::time::Duration;

const SESSIONS: &str = "Sessions";
/// What an owner may have stored by default, on a server with authentication.
const STORED_MB_DEFAULT: u64 = 10_240;

#[derive(clap::Args)]
pub struct SessionOptions {
    /// TTL of an unused session, e.g. 30m, 24h, 7d
    #[arg(long, value_name = "TIME", env = "HEAPSTEAD_SESSION_TTL", default_value = "24h", value_parser = duration, help_heading = SESSIONS)]
    pub session_ttl: Duration,
    /// Refuse to run code outside of a session
    #[arg(long, value_name = "BOOL", env = "HEAPSTEAD_REQUIRE_SESSION", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_parser = boolish, action = clap::ArgAction::Set, help_heading = SESSIONS)]
    pub require_session: bool,
    /// Folder of a catalog whose exports sessions can use; repeat the flag for several catalogs
    #[arg(long, value_name = "DIR", env = "HEAPSTEAD_CATALOG", value_delimiter = ',', help_heading = SESSIONS)]
    pub catalog: Vec<PathBuf>,
    /// Also list the tools `plasm_context` and `plasm`, aliases of `session_context` and `run_js`
    #[arg(long, value_name = "BOOL", env = "HEAPSTEAD_PLASM_NAMES", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_parser = boolish, action = clap::ArgAction::Set, help_heading = SESSIONS)]
    pub plasm_names: bool,
    /// Maximum number of open sessions per owner, 1 to 1000000000; default: no limit
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_MAX_SESSIONS_PER_OWNER", value_parser = between::<1, 1_000_000_000>, allow_negative_numbers = true, help_heading = SESSIONS)]
    max_sessions_per_owner: Option<u64>,
    /// Days to keep a named session, or one that was opened with an intent, that is not used, 1 to 36500
    #[arg(long, value_name = "DAYS", env = "HEAPSTEAD_RETAIN_SESSIONS", default_value_t = 90, value_parser = between::<1, 36_500>, allow_negative_numbers = true, help_heading = SESSIONS)]
    retain_sessions: u64,
    /// Maximum total size of everything stored per owner, heaps included, 1 to 1073741824; default: 10240 with authentication, else no limit
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_MAX_STORED_MB_PER_OWNER", value_parser = between::<1, { 1 << 30 }>, allow_negative_numbers = true, help_heading = SESSIONS)]
    max_stored_mb_per_owner: Option<u64>,
    /// Maximum total size of the heaps per owner, 1 to 1073741824; default: no limit but that of `--max-stored-mb-per-owner`
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_MAX_HEAP_MB_PER_OWNER", value_parser = between::<1, { 1 << 30 }>, allow_negative_numbers = true, help_heading = SESSIONS)]
    max_heap_mb_per_owner: Option<u64>,
    /// Maximum number of running and queued executions per owner, 1 to 1000000; default: no limit
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_MAX_RUNNING_PER_OWNER", value_parser = between::<1, 1_000_000>, allow_negative_numbers = true, help_heading = SESSIONS)]
    max_running_per_owner: Option<u64>,
}

impl SessionOptions {
    pub fn retain_sessions(&self) -> Duration {
        Duration::from_secs(self.retain_sessions * DAY_SECS)
    }

    /// Owners that are told apart have a quota on storage, so that none can fill the disk. A single owner may use all of it.
    pub fn quotas(&self, are_owners_known: bool) -> Quotas {
        let count = |max: Option<u64>| max.map(|max| u32::try_from(max).unwrap_or(u32::MAX));
        Quotas {
            sessions_max: count(self.max_sessions_per_owner),
            stored_bytes_max: self.max_stored_mb_per_owner.or(are_owners_known.then_some(STORED_MB_DEFAULT)).map(|mb| mb << 20),
            heap_bytes_max: self.max_heap_mb_per_owner.map(|mb| mb << 20),
            running_max: count(self.max_running_per_owner),
        }
    }
}
