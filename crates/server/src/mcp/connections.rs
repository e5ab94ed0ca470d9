//! The connections that clients of older versions keep over Streamable HTTP: as many as are meant to be, the one unused for longest gives way.

use super::CONNECTIONS_MAX;
use super::dialect::{self, Dialect};
use super::wire::{self, Batches};
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

/// A client that says nothing for so long has forgotten us. Much longer than any call can wait.
const IDLE_MAX: Duration = Duration::from_secs(24 * 3600);

pub struct Connections {
    local: LocalSessionManager,
    /// The least recently used first.
    used: Mutex<LruCache<SessionId, Known>>,
}

/// What a connection said of itself at `initialize`.
struct Known {
    batches: Batches,
    /// The principal that opened it; none until that is known, and then no caller may use it.
    owner: Option<Principal>,
    connection: Arc<Connection>,
}

impl Connections {
    pub fn new() -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(IDLE_MAX);
        // Clients before 2025-11-25 take an event without data for a broken message.
        local.session_config.sse_retry = None;
        Self { local, used: Mutex::new(LruCache::unbounded()) }
    }

    /// Notes that a session is used. Answers with the one that has to go for it.
    fn note(&self, id: &SessionId) -> Option<SessionId> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.get_or_insert(id.clone(), || Known { batches: Batches::Refused, owner: None, connection: Arc::default() });
        if used.len() > CONNECTIONS_MAX { used.pop_lru().map(|(id, _)| id) } else { None }
    }

    /// Whether this connection has agreed on a version with batches.
    pub fn batches(&self, id: &str) -> Batches {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).peek(id).map_or(Batches::Refused, |known| known.batches)
    }

    /// An open connection of this caller.
    pub fn connection(&self, id: &str, caller: &Principal) -> Option<Arc<Connection>> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.peek(id).filter(|known| known.owner.as_ref() == Some(caller)).map(|known| known.connection.clone())
    }

    /// Whether somebody else opened this connection.
    pub fn is_foreign(&self, id: &str, caller: &Principal) -> bool {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.peek(id).is_some_and(|known| known.owner.as_ref() != Some(caller))
    }

    fn forget(&self, id: &SessionId) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).pop(id);
    }
}

/// Whom authentication found behind the request that a message came with.
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
        if let Some(oldest) = self.note(&id) {
            self.local.close_session(&oldest).await?;
        }
        Ok((id, Dialect::new(transport)))
    }

    async fn initialize_session(&self, id: &SessionId, mut message: ClientJsonRpcMessage) -> Outcome<ServerJsonRpcMessage> {
        let owner = owner(&message);
        let connection = self.used.lock().unwrap_or_else(PoisonError::into_inner).peek(id).map(|known| known.connection.clone());
        if let (JsonRpcMessage::Request(request), Some(connection)) = (&mut message, connection) {
            request.request.extensions_mut().insert(connection);
        }
        let answer = self.local.initialize_session(id, message).await?;
        if let Some(known) = self.used.lock().unwrap_or_else(PoisonError::into_inner).get_mut(id) {
            known.owner = owner;
            if let JsonRpcMessage::Response(response) = &answer
                && let Some(version) = dialect::agreed_version(&response.result)
                && wire::has_batches(&version)
            {
                known.batches = Batches::Taken;
            }
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Outcome<bool> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Outcome<()> {
        self.forget(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.note(id);
        self.local.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Outcome<()> {
        self.note(id);
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(&self, id: &SessionId) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.note(id);
        self.local.create_standalone_stream(id).await
    }

    async fn resume(&self, id: &SessionId, last_event_id: String) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.note(id);
        self.local.resume(id, last_event_id).await
    }
}
