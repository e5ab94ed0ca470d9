//! `heapstead serve`, and `heapstead` alone: the server, on standard input and output or on ports.

use super::options::{HeapStoreOptions, LimitOptions, Missing};
use crate::api::Api;
use crate::edge::{Access, Edge};
use crate::local::{self, LocalError};
use crate::{mcp, rest};
use axum::Router;
use heapstead_engine::{Artifacts, Config, Engine};
use heapstead_service::{Policy, Service, ServiceError, Stateless};
use heapstead_types::SessionName;
use std::io::{self, IsTerminal};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub const EXAMPLES: &str = "\
Examples:
  heapstead                                     speaks MCP on standard input and output
  heapstead serve --http-port 8420              MCP on /mcp, REST on /api, documentation on /docs
  heapstead serve --http-port 8420 --stateless  nothing is kept
  heapstead serve --config heapstead.toml       flags from a file, e.g. http-port = 8420";

/// Between the signal and the end of runs that have not ended by themselves.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
const DAY_SECS: u64 = 24 * 3600;

#[derive(clap::Args)]
pub struct ServeOptions {
    /// Read flags from this TOML file; those given on the command line or as variables count more
    #[arg(long, value_name = "FILE", env = "HEAPSTEAD_CONFIG")]
    pub config: Option<PathBuf>,
    /// Serve MCP on /mcp and REST on /api at this port
    #[arg(long, value_name = "PORT", env = "HEAPSTEAD_HTTP_PORT")]
    http_port: Option<u16>,
    /// Serve the older MCP transport (GET /sse, POST /message) and REST at this port
    #[arg(long, value_name = "PORT", env = "HEAPSTEAD_SSE_PORT")]
    sse_port: Option<u16>,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", env = "HEAPSTEAD_BIND_HOST", default_value = "127.0.0.1")]
    bind_host: IpAddr,
    /// Host names that requests may be addressed to, separated by commas; `*` allows all
    #[arg(long, value_name = "HOSTS", env = "HEAPSTEAD_ALLOWED_HOSTS", value_delimiter = ',', default_value = "localhost,127.0.0.1,[::1]")]
    allowed_hosts: Vec<String>,
    /// Web origins that may call the server, separated by commas; `*` allows all
    #[arg(long, value_name = "ORIGINS", env = "HEAPSTEAD_ALLOWED_ORIGINS", value_delimiter = ',')]
    allowed_origins: Vec<String>,
    /// Keep nothing: only `run_js`, which waits and answers with the output
    #[arg(long, env = "HEAPSTEAD_STATELESS", value_parser = clap::builder::BoolishValueParser::new())]
    stateless: bool,
    #[command(flatten)]
    heaps: HeapStoreOptions,
    /// Folder of the metadata database and of console output
    #[arg(long, value_name = "DIR", env = "HEAPSTEAD_SESSION_DB_PATH", default_value = local::DATABASE_FOLDER_DEFAULT)]
    session_db_path: PathBuf,
    /// Name of the session of connections that name none
    #[arg(long, value_name = "NAME", env = "HEAPSTEAD_SESSION_ID")]
    session_id: Option<SessionName>,
    #[command(flatten)]
    limits: LimitOptions,
    /// Executions that run at once
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_MAX_CONCURRENT_EXECUTIONS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_concurrent_executions: u32,
    /// Executions that wait for their turn; more are refused
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_MAX_QUEUED", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_queued: u32,
    /// Memory caps of all executions that run at once, together; three quarters of the machine's memory by default
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_MAX_MEMORY_MB", value_parser = clap::value_parser!(u64).range(8..))]
    max_memory_mb: Option<u64>,
    /// What to do when the heap a run asks for is not there
    #[arg(long, value_name = "WHAT", env = "HEAPSTEAD_ON_MISSING_HEAP", default_value = "fresh")]
    on_missing_heap: Missing,
    /// Days that executions and their output are kept
    #[arg(long, value_name = "DAYS", env = "HEAPSTEAD_RETAIN_EXECUTIONS", default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=36_500))]
    retain_executions: u64,
    /// Days that a heap is kept to which nothing refers
    #[arg(long, value_name = "DAYS", env = "HEAPSTEAD_RETAIN_HEAPS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=36_500))]
    retain_heaps: u64,
    /// Longer text in an MCP answer is cut; the structured content beside it never is
    #[arg(long, value_name = "CHARS", env = "HEAPSTEAD_MAX_INLINE_CHARS", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..))]
    max_inline_chars: u64,
    /// What to log on standard error: error, warn, info, debug, trace, or a filter such as heapstead=debug
    #[arg(long, value_name = "FILTER", env = "HEAPSTEAD_LOG", default_value = "info")]
    log: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("can't listen on {address}: {error}. Choose another port or stop what uses it")]
    Listen { address: String, error: io::Error },
    #[error("signals can't be handled: {0}")]
    Signals(io::Error),
    #[error("`--log` is `{filter}`: {error}")]
    Log { filter: String, error: tracing_subscriber::filter::ParseError },
    #[error(transparent)]
    Serving(io::Error),
}

pub async fn serve(options: ServeOptions) -> ExitCode {
    match try_serve(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            super::screen::Screen::new().error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

async fn try_serve(options: ServeOptions) -> Result<(), ServeError> {
    start_log(&options.log)?;
    let shutdown = shutdown_signal().map_err(ServeError::Signals)?;
    // Ports first: one that is taken is told before anything is started.
    let http = listen(&options, options.http_port).await?;
    let sse = listen(&options, options.sse_port).await?;
    let edge = Arc::new(open(&options).await?);
    match (http, sse) {
        (None, None) => mcp::stdio::serve(edge.clone(), shutdown).await.map_err(ServeError::Serving)?,
        (http, sse) => {
            welcome(&http, &sse);
            let http_routes = || rest::router(edge.clone()).merge(mcp::http::router(edge.clone(), shutdown.clone()));
            let sse_routes = || rest::router(edge.clone()).merge(mcp::sse::router(edge.clone(), shutdown.clone()));
            tokio::try_join!(answer(http, http_routes, &shutdown), answer(sse, sse_routes, &shutdown)).map_err(ServeError::Serving)?;
        }
    }
    if let Some(service) = &edge.service {
        service.close(SHUTDOWN_GRACE).await;
    }
    Ok(())
}

async fn listen(options: &ServeOptions, port: Option<u16>) -> Result<Option<TcpListener>, ServeError> {
    let Some(port) = port else { return Ok(None) };
    let address = (options.bind_host, port);
    let listener = TcpListener::bind(address).await;
    listener.map(Some).map_err(|error| ServeError::Listen { address: format!("{}:{port}", options.bind_host), error })
}

async fn answer(listener: Option<TcpListener>, routes: impl Fn() -> Router, shutdown: &CancellationToken) -> io::Result<()> {
    let Some(listener) = listener else { return Ok(()) };
    axum::serve(listener, routes()).with_graceful_shutdown(shutdown.clone().cancelled_owned()).await
}

async fn open(options: &ServeOptions) -> Result<Edge, ServeError> {
    let engine = start_engine(options).await?;
    let limits = options.limits.limits();
    let (api, service) = if options.stateless {
        (Api::stateless(&Stateless::new(engine, limits)), None)
    } else {
        let policy = Policy {
            limits,
            on_missing_heap: options.on_missing_heap.into(),
            retain_executions: Duration::from_secs(options.retain_executions * DAY_SECS),
            retain_heaps: Duration::from_secs(options.retain_heaps * DAY_SECS),
        };
        let heaps = options.heaps.open()?;
        let metadata = local::open_metadata(&options.session_db_path)?;
        let service = Service::open(engine, heaps, metadata, policy).await?;
        (Api::stateful(&service), Some(service))
    };
    Ok(Edge {
        api,
        service,
        session: options.session_id.clone(),
        inline_chars_max: usize::try_from(options.max_inline_chars).unwrap_or(usize::MAX),
        access: Access { hosts: options.allowed_hosts.clone(), origins: options.allowed_origins.clone() },
    })
}

async fn start_engine(options: &ServeOptions) -> Result<Engine, LocalError> {
    let mut config = Config::new(Artifacts::find()?);
    config.concurrent_max = options.max_concurrent_executions as usize;
    config.queued_max = options.max_queued as usize;
    config.spares.heap_mb = options.limits.limits().heap_mb;
    if let Some(memory_mb) = options.max_memory_mb {
        config.memory_mb_max = memory_mb;
    }
    Ok(Engine::start(config).await?)
}

/// Done when somebody wants the server to end: the first signal asks, the second kills.
fn shutdown_signal() -> io::Result<CancellationToken> {
    let shutdown = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let asked = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        asked.cancel();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(130);
    });
    Ok(shutdown)
}

fn start_log(filter: &str) -> Result<(), ServeError> {
    let parsed = tracing_subscriber::EnvFilter::try_new(filter).map_err(|error| ServeError::Log { filter: filter.to_owned(), error })?;
    tracing_subscriber::fmt().with_env_filter(parsed).with_writer(io::stderr).with_ansi(io::stderr().is_terminal()).init();
    Ok(())
}

/// Says where the server is and what to do next.
fn welcome(http: &Option<TcpListener>, sse: &Option<TcpListener>) {
    let address = |listener: &TcpListener| listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
    if let Some(address) = http.as_ref().map(address) {
        eprintln!("Heapstead listens on http://{address}\n");
        eprintln!("  Claude Code   claude mcp add --transport http heapstead http://{address}/mcp");
        eprintln!("  Cursor        {{ \"mcpServers\": {{ \"heapstead\": {{ \"url\": \"http://{address}/mcp\" }} }} }}   in ~/.cursor/mcp.json");
        eprintln!("  curl          curl -s http://{address}/api/exec --json '{{\"code\": \"1 + 1\", \"wait_secs\": 10}}'");
        eprintln!("  Documentation http://{address}/docs\n");
    }
    if let Some(address) = sse.as_ref().map(address) {
        eprintln!("Heapstead listens on http://{address}/sse (the older MCP transport)\n");
    }
}
