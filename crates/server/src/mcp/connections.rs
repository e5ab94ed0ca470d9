//! The connections of clients before 2026-07-28 over Streamable HTTP. At the maximum, the least recently used one is closed.

use super::CONNECTIONS_MAX;
use super::dialect::{self, Dialect};
use super::json_rpc::{self, Batches};
use axum::http::request::Parts;
use futures_util::Stream;
use heapstead_service::Connection;
use heapstead_types::Principal;
use lru::LruCache;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError, LocalSessionWorker};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Idle connections are closed after this time. Much longer than any call can wait.
const IDLE_MAX: Duration = Duration::from_secs(24 * 3600);

pub struct Connections {
    local: LocalSessionManager,
    /// Open connections in the order of their last use.
    used: Mutex<LruCache<SessionId, Entry>>,
}

/// The state of a connection since `initialize`.
struct Entry {
    batches: Batches,
    /// The principal that opened it. While `None`, no caller may use the connection.
    owner: Option<Principal>,
    connection: Arc<Connection>,
}

impl Connections {
    pub fn new() -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(IDLE_MAX);
        // Clients before 2025-11-25 reject an event without data.
        local.session_config.sse_retry = None;
        Self { local, used: Mutex::new(LruCache::unbounded()) }
    }

    /// Marks a connection as used. Returns the connection to close if there are too many.
    fn touch(&self, id: &SessionId) -> Option<SessionId> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.get_or_insert(id.clone(), || Entry { batches: Batches::Refused, owner: None, connection: Arc::default() });
        if used.len() > CONNECTIONS_MAX { used.pop_lru().map(|(id, _)| id) } else { None }
    }

    /// Whether this connection negotiated a version with batches.
    pub fn batches(&self, id: &str) -> Batches {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).peek(id).map_or(Batches::Refused, |entry| entry.batches)
    }

    /// An open connection of this caller.
    pub fn connection(&self, id: &str, caller: &Principal) -> Option<Arc<Connection>> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.peek(id).filter(|entry| entry.owner.as_ref() == Some(caller)).map(|entry| entry.connection.clone())
    }

    /// Whether this connection exists and belongs to another principal.
    pub fn belongs_to_other(&self, id: &str, caller: &Principal) -> bool {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.peek(id).is_some_and(|entry| entry.owner.as_ref() != Some(caller))
    }

    fn remove(&self, id: &SessionId) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).pop(id);
    }
}

/// The authenticated principal of the HTTP request with this message.
fn owner(message: &ClientJsonRpcMessage) -> Option<Principal> {
    let JsonRpcMessage::Request(request) = message else { return None };
    request.request.extensions().get::<Parts>()?.extensions.get().cloned()
}

type Outcome<T> = Result<T, LocalSessionManagerError>;

impl SessionManager for Connections {
    type Error = LocalSessionManagerError;
    type Transport = Dialect<WorkerTransport<LocalSessionWorker>>;

    async fn create_session(&self) -> Outcome<(SessionId, Self::Transport)> {
        let (id, transport) = self.local.create_session().await?;
        if let Some(oldest) = self.touch(&id) {
            self.local.close_session(&oldest).await?;
        }
        Ok((id, Dialect::new(transport)))
    }

    async fn initialize_session(&self, id: &SessionId, mut message: ClientJsonRpcMessage) -> Outcome<ServerJsonRpcMessage> {
        let owner = owner(&message);
        let connection = self.used.lock().unwrap_or_else(PoisonError::into_inner).peek(id).map(|entry| entry.connection.clone());
        if let (JsonRpcMessage::Request(request), Some(connection)) = (&mut message, connection) {
            request.request.extensions_mut().insert(connection);
        }
        let answer = self.local.initialize_session(id, message).await?;
        if let Some(entry) = self.used.lock().unwrap_or_else(PoisonError::into_inner).get_mut(id) {
            entry.owner = owner;
            if let JsonRpcMessage::Response(response) = &answer
                && let Some(version) = dialect::negotiated_version(&response.result)
                && json_rpc::has_batches(&version)
            {
                entry.batches = Batches::Accepted;
            }
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Outcome<bool> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Outcome<()> {
        self.remove(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.touch(id);
        self.local.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Outcome<()> {
        self.touch(id);
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(&self, id: &SessionId) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.touch(id);
        self.local.create_standalone_stream(id).await
    }

    async fn resume(&self, id: &SessionId, last_event_id: String) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.touch(id);
        self.local.resume(id, last_event_id).await
    }
}
