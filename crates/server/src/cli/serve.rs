//! `heapstead serve`, and `heapstead` without a command: the server, on stdio or on ports.

use super::flags::ServeOptions;
use super::screen::Screen;
use super::{EXIT_BAD_INPUT, welcome};
use crate::api::Api;
use crate::auth::{AuthError, Authenticator, Settings};
use crate::edge::{Access, Edge, Mode};
use crate::http::{self, Budgets, Shutdown};
use crate::long_results::LongResults;
use crate::startup::{self, StartupError};
use crate::{mcp, rest};
use axum::Router;
use heapstead_catalog::{CatalogError, Catalogs};
use heapstead_engine::Engine;
use heapstead_service::{ContextStoreError, OpenContexts, Service, ServiceError, Stateless};
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub const EXAMPLES: &str = "\
Examples:
  heapstead                                     serves MCP on standard input and output
  heapstead serve --http-port 8420              MCP on /mcp, REST on /api, documentation on /docs
  heapstead serve --http-port 8420 --stateless  stores nothing
  heapstead serve --config heapstead.toml       reads flags from a file, e.g. http-port = 8420";

/// Time between the signal and the cancellation of runs that have not ended.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Startup(#[from] StartupError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error("can't listen on {address}: {error}. {}", listen_hint(error))]
    Listen { address: String, error: io::Error },
    #[error("the context store can't be opened: {0}")]
    Contexts(#[from] ContextStoreError),
    #[error("a catalog can't be loaded: {0}")]
    Catalog(#[from] CatalogError),
    #[error("signals can't be handled: {0}")]
    Signals(io::Error),
    #[error("`--log` is `{filter}`: {error}")]
    Log { filter: String, error: tracing_subscriber::filter::ParseError },
    #[error(transparent)]
    Serving(io::Error),
}

/// Suggests a fix if a port cannot be used.
pub fn listen_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "The port is in use, perhaps by another Heapstead: use that one, stop it, or choose another port (`--http-port PORT`; with make, `make run PORT=8421`)"
        }
        io::ErrorKind::PermissionDenied => "Ports below 1024 need root: choose a higher one",
        io::ErrorKind::AddrNotAvailable => "`--bind-host` has to be an address of this machine",
        _ => "Choose another port or address",
    }
}

pub async fn serve(options: ServeOptions) -> ExitCode {
    match try_serve(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            Screen::new().error(&error.to_string());
            match error {
                ServeError::Log { .. } | ServeError::Startup(StartupError::Flags(_)) | ServeError::Auth(AuthError::Tokens(_)) => {
                    ExitCode::from(EXIT_BAD_INPUT)
                }
                _ => ExitCode::FAILURE,
            }
        }
    }
}

async fn try_serve(options: ServeOptions) -> Result<(), ServeError> {
    start_log(&options.log)?;
    options.check_limits().map_err(StartupError::Flags)?;
    options.stores.heaps.place().map_err(StartupError::Flags)?;
    options.contexts.settings(&options.stores.database.session_db_path).map_err(StartupError::Flags)?;
    let mut auth_settings = options.auth.settings().map_err(StartupError::Flags)?;
    match options.http_port.or(options.sse_port) {
        Some(_) => options.auth.check_exposure(options.bind_host).map_err(StartupError::Flags)?,
        // Only the process that started the server can call it.
        None => auth_settings = Settings::default(),
    }
    let shutdown_requested = shutdown_signal().map_err(ServeError::Signals)?;
    // Ports first, so that a port in use is reported before anything starts.
    let http = listen(&options, options.http_port).await?;
    let sse = listen(&options, options.sse_port).await?;
    let authenticator = Authenticator::open(&auth_settings).await?;
    let edge = Arc::new(open(&options, authenticator).await?);
    tracing::debug!(authentication = edge.authenticator.is_on(), "all stores are open");
    let mut served = Ok(());
    match (http, sse) {
        (None, None) => {
            let (shutdown, drained) = (Shutdown::new(shutdown_requested), CancellationToken::new());
            let serving = async {
                let served = mcp::stdio::serve(edge.clone(), &shutdown).await;
                // The client that started the server has disconnected, so no other shutdown request will come.
                shutdown.requested.cancel();
                drained.cancel();
                served
            };
            served = tokio::join!(serving, close(&edge, &shutdown, &drained)).0;
        }
        (http, sse) => {
            welcome::show(&options, &http, &sse);
            let shutdown = Shutdown::new(shutdown_requested);
            let http_routes = || mcp::http::router(edge.clone(), &shutdown);
            let sse_routes = || mcp::sse::router(edge.clone(), &shutdown);
            let drained = CancellationToken::new();
            let serving = async {
                tokio::join!(answer(http, http_routes, &edge, &shutdown), answer(sse, sse_routes, &edge, &shutdown));
                drained.cancel();
            };
            tokio::join!(serving, close(&edge, &shutdown, &drained));
        }
    }
    if let Some(service) = edge.service() {
        service.contexts().close().await;
    }
    served.map_err(ServeError::Serving)
}

/// When shutdown is requested, ends everything that runs, and notifies waiting callers.
async fn close(edge: &Edge, shutdown: &Shutdown, drained: &CancellationToken) {
    shutdown.requested.cancelled().await;
    match edge.service() {
        Some(service) => service.close(SHUTDOWN_GRACE).await,
        // Stateless mode: a run ends with its connection.
        None => drop(tokio::time::timeout(SHUTDOWN_GRACE, drained.cancelled()).await),
    }
    shutdown.over.cancel();
}

async fn listen(options: &ServeOptions, port: Option<u16>) -> Result<Option<TcpListener>, ServeError> {
    let Some(port) = port else { return Ok(None) };
    let address = (options.bind_host, port);
    let listener = TcpListener::bind(address).await;
    listener.map(Some).map_err(|error| ServeError::Listen { address: format!("{}:{port}", options.bind_host), error })
}

async fn answer(listener: Option<TcpListener>, mcp: impl Fn() -> Router, edge: &Arc<Edge>, shutdown: &Shutdown) {
    let Some(listener) = listener else { return };
    let routes = http::guarded(rest::router(edge.clone(), shutdown.clone()).merge(mcp()), edge);
    http::serve(listener, routes, edge.budgets.limits.connections_max, shutdown).await;
}

async fn open(options: &ServeOptions, authenticator: Authenticator) -> Result<Edge, ServeError> {
    let contexts = options.contexts.settings(&options.stores.database.session_db_path).map_err(StartupError::Flags)?;
    let engine = start_engine(options).await?;
    let limits = options.limits.limits();
    let (api, mode) = if options.stateless {
        let stateless = Stateless::new(engine, limits, options.capacity.maxima(options.sharing()));
        (Api::stateless(&stateless), Mode::Stateless(Box::new(stateless)))
    } else {
        let heaps = options.stores.heaps.open()?;
        let database = startup::open_database(&options.stores.database.session_db_path)?;
        let catalogs = Catalogs::load(&options.sessions.catalog)?;
        let contexts = match contexts {
            Some(settings) => Some(OpenContexts::open(settings).await?),
            None => None,
        };
        let service = Service::open(engine, heaps, database, options.policy(), catalogs, contexts).await?;
        (Api::stateful(&service), Mode::Stateful(service))
    };
    let budgets = Budgets::new(options.clients.limits());
    Ok(Edge {
        api,
        mode,
        session: options.session_id.clone(),
        inline_chars_max: usize::try_from(options.max_inline_chars).unwrap_or(usize::MAX),
        plasm_names: options.sessions.plasm_names && !options.stateless,
        access: Access { hosts: options.allowed_hosts.clone(), origins: options.allowed_origins.clone() },
        authenticator,
        long_results: LongResults::new(budgets.responses.clone()),
        budgets,
    })
}

async fn start_engine(options: &ServeOptions) -> Result<Engine, StartupError> {
    let mut config = options.confinement.config()?;
    config.concurrent_max = options.capacity.max_concurrent_executions as usize;
    config.queued_max = options.capacity.max_queued as usize;
    config.source_bytes_max = options.capacity.max_source_mb << 20;
    config.answer_bytes_max = options.capacity.max_answer_mb << 20;
    config.memory_mb_max = options.capacity.memory_mb();
    config.live_mb_max = options.live.memory_mb_max();
    config.sharing = options.sharing();
    config.uses_cgroup = true;
    config.zygote_per_owner = options.zygote_per_owner;
    config.spares.heap_mb = options.limits.limits().heap_mb;
    Ok(Engine::start(config).await?)
}

/// Cancelled when shutdown is requested: the first signal requests it, the second kills the process.
fn shutdown_signal() -> io::Result<CancellationToken> {
    let shutdown = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let requested = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        requested.cancel();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(130);
    });
    Ok(shutdown)
}

fn start_log(filter: &str) -> Result<(), ServeError> {
    // The MCP library logs mistakes of clients, which are reported to the clients anyway. Later directives take precedence, so the user can turn it on.
    let filter_with_defaults = format!("rmcp=off,{filter}");
    let parsed = tracing_subscriber::EnvFilter::try_new(filter_with_defaults)
        .map_err(|error| ServeError::Log { filter: filter.to_owned(), error })?;
    tracing_subscriber::fmt().with_env_filter(parsed).with_writer(io::stderr).with_ansi(io::stderr().is_terminal()).init();
    Ok(())
}
