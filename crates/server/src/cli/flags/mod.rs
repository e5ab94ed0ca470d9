//! The flags that several commands share and all flags of the server, each with its environment variable.
//!
//! A flag `--http-port` is `HEAPSTEAD_HTTP_PORT` in the environment and `http-port` in the `--config` file. Precedence: command line,
//! environment variable, file, default. Every value is checked here, before anything starts.

mod auth;
mod clients;
mod confinement;
mod context;
mod limits;
mod live;
mod sessions;
mod stores;
mod values;

pub use auth::{AuthOptions, TokenFileOptions};
pub use clients::ClientOptions;
pub use confinement::ConfinementOptions;
pub use context::{ContextOptions, context_database};
pub use limits::{CapacityOptions, LimitOptions};
pub use live::LiveOptions;
pub use sessions::SessionOptions;
pub use stores::{DatabaseOptions, FlagError, HeapPlace, HeapStoreOptions, StoreOptions, WhereOptions};
pub use values::{duration, heap_key};

use crate::auth::Resolution;
use heapstead_engine::Sharing;
use heapstead_service::{InputHeap, OnMissingHeap, Policy};
use heapstead_types::SessionName;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use values::{HeapChoice, between, boolish};

const DAY_SECS: u64 = 24 * 3600;

/// The options of the server.
#[derive(clap::Args)]
pub struct ServeOptions {
    #[command(flatten)]
    config: ConfigOptions,
    /// Serve MCP on /mcp and REST on /api at this port; 0 picks a free port
    #[arg(long, value_name = "PORT", env = "HEAPSTEAD_HTTP_PORT", help_heading = CONNECTIONS)]
    pub http_port: Option<u16>,
    /// Serve the older MCP transport (GET /sse, POST /message) and REST at this port
    #[arg(long, value_name = "PORT", env = "HEAPSTEAD_SSE_PORT", help_heading = CONNECTIONS)]
    pub sse_port: Option<u16>,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", env = "HEAPSTEAD_BIND_HOST", default_value = "127.0.0.1", help_heading = CONNECTIONS)]
    pub bind_host: IpAddr,
    /// Accepted values of the `Host` header, separated by commas; `*` allows all
    #[arg(long, value_name = "HOSTS", env = "HEAPSTEAD_ALLOWED_HOSTS", value_delimiter = ',', default_value = "localhost,127.0.0.1,[::1]", help_heading = CONNECTIONS)]
    pub allowed_hosts: Vec<String>,
    /// Web origins that may call the server, separated by commas; `*` allows all
    #[arg(long, value_name = "ORIGINS", env = "HEAPSTEAD_ALLOWED_ORIGINS", value_delimiter = ',', help_heading = CONNECTIONS)]
    pub allowed_origins: Vec<String>,
    /// Session name for connections that do not name one
    #[arg(long, value_name = "NAME", env = "HEAPSTEAD_SESSION_ID", help_heading = CONNECTIONS)]
    pub session_id: Option<SessionName>,
    /// Maximum characters of text in an MCP result, 1000 or more; longer results are truncated, lists and output are paged
    #[arg(long, value_name = "CHARS", env = "HEAPSTEAD_MAX_INLINE_CHARS", default_value_t = 12_000, value_parser = between::<1000, { i32::MAX as u64 }>, allow_negative_numbers = true, help_heading = CONNECTIONS)]
    pub max_inline_chars: u64,
    #[command(flatten)]
    pub clients: ClientOptions,
    #[command(flatten)]
    pub auth: AuthOptions,
    #[command(flatten)]
    pub limits: LimitOptions,
    #[command(flatten)]
    pub capacity: CapacityOptions,
    /// What to do if the heap of a run does not exist
    #[arg(long, value_name = "WHAT", env = "HEAPSTEAD_ON_MISSING_HEAP", default_value = "fresh", help_heading = RUNS)]
    pub on_missing_heap: Missing,
    /// Store nothing: only `run_js`, which waits for the run and returns its output
    #[arg(long, value_name = "BOOL", env = "HEAPSTEAD_STATELESS", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_parser = boolish, action = clap::ArgAction::Set, help_heading = RUNS)]
    pub stateless: bool,
    #[command(flatten)]
    pub confinement: ConfinementOptions,
    /// Give each owner a zygote of its own, so that stack, heap and libraries of owners are at different addresses (the V8 host itself is always at the same one); each takes about 60 MB, and the first run of an owner waits for its start
    #[arg(long, value_name = "BOOL", env = "HEAPSTEAD_ZYGOTE_PER_OWNER", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_parser = boolish, action = clap::ArgAction::Set, help_heading = confinement::CONFINEMENT)]
    pub zygote_per_owner: bool,
    #[command(flatten)]
    pub sessions: SessionOptions,
    #[command(flatten)]
    pub live: LiveOptions,
    #[command(flatten)]
    pub contexts: ContextOptions,
    #[command(flatten)]
    pub stores: StoreOptions,
    /// Let owners with the permission `heaps:import` import heaps that this server did not write; V8 does not check a heap, so a crafted one can break out of V8, not of its worker
    #[arg(long, value_name = "BOOL", env = "HEAPSTEAD_ALLOW_HEAP_IMPORT", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_parser = boolish, action = clap::ArgAction::Set, help_heading = stores::STORES)]
    allow_heap_import: bool,
    /// Days to keep executions and their output, 1 to 36500
    #[arg(long, value_name = "DAYS", env = "HEAPSTEAD_RETAIN_EXECUTIONS", default_value_t = 7, value_parser = between::<1, 36_500>, allow_negative_numbers = true, help_heading = stores::STORES)]
    retain_executions: u64,
    /// Log filter for standard error: error, warn, info, debug, trace, or a directive such as heapstead=debug
    #[arg(long, value_name = "FILTER", env = "HEAPSTEAD_LOG", default_value = "info")]
    pub log: String,
}

const CONNECTIONS: &str = "Connections";
const RUNS: &str = "Executions";

impl ServeOptions {
    /// Refuses flags that contradict each other, or under which no run could start.
    pub fn check_limits(&self) -> Result<(), FlagError> {
        self.capacity.check(self.limits.limits(), self.sharing())
    }

    /// Whether owners have to be protected from each other. Over stdio, and on loopback without authentication, there is only one.
    pub fn sharing(&self) -> Sharing {
        let has_port = self.http_port.is_some() || self.sse_port.is_some();
        if has_port && self.auth.has_several_owners() { Sharing::SeveralOwners } else { Sharing::OneOwner }
    }

    pub fn policy(&self) -> Policy {
        Policy {
            limits: self.limits.limits(),
            maxima: self.capacity.maxima(self.sharing()),
            on_missing_heap: self.on_missing_heap.into(),
            retain_executions: Duration::from_secs(self.retain_executions * DAY_SECS),
            retain_heaps: self.stores.retain_heaps(),
            session_ttl: self.sessions.session_ttl,
            require_session: self.sessions.require_session,
            retain_sessions: self.sessions.retain_sessions(),
            quotas: self.sessions.quotas(self.auth.is_on()),
            delegated: self.auth.auth_resolution == Resolution::Delegated,
            import_heaps: self.allow_heap_import || self.auth.callers_are_operators(self.bind_host),
            session_durability: self.live.durability(),
            live: self.live.policy(),
        }
    }
}

#[derive(clap::Args)]
pub struct ConfigOptions {
    /// Read flags from this TOML file; the command line and environment variables take precedence
    #[arg(long, value_name = "FILE", env = "HEAPSTEAD_CONFIG")]
    pub config: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct OriginOptions {
    /// Continue from this heap (64 lowercase hex digits; an empty value starts a fresh heap)
    #[arg(long, value_name = "KEY", env = "HEAPSTEAD_HEAP", value_parser = values::heap_choice)]
    heap: Option<HeapChoice>,
    /// What to do if that heap does not exist
    #[arg(long, value_name = "WHAT", env = "HEAPSTEAD_ON_MISSING_HEAP", default_value = "fresh")]
    on_missing_heap: Missing,
}

impl OriginOptions {
    /// None if the flag is not given.
    pub fn chosen(&self) -> Option<InputHeap> {
        self.heap.as_ref().map(|_| self.input())
    }

    pub fn input(&self) -> InputHeap {
        match self.heap {
            None | Some(HeapChoice::Fresh) => InputHeap::Fresh,
            Some(HeapChoice::Key(key)) => InputHeap::Heap { key, on_missing: self.on_missing_heap.into() },
        }
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Missing {
    /// Start with a fresh heap and warn
    Fresh,
    /// Fail without running the code
    Fail,
}

impl From<Missing> for OnMissingHeap {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Fresh => Self::Fresh,
            Missing::Fail => Self::Fail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Serve {
        #[command(flatten)]
        options: ServeOptions,
    }

    #[test]
    fn the_defaults_of_the_flags_are_the_default_policy() {
        assert_eq!(Serve::parse_from(["heapstead", "--max-memory-mb", "100000"]).options.policy(), Policy::default());
    }
}
