//! The connections of clients before 2026-07-28 over Streamable HTTP: rmcp serves them, `ConnectionTable` decides which exist and for whom.
//!
//! ```text
//! initialize ─► rmcp creates the connection ─► handshake ─► table (may remove another one, which rmcp then closes)
//! request ────► table: open, and of this owner? ─► rmcp
//! ```
//! A connection that rmcp has and the table has not, because it is being opened or closed, can't be used.

use super::REPLAYED_MAX;
use super::connection_table::{ConnectionTable, OpenConnection};
use super::dialect::{self, Dialect};
use super::json_rpc::{self, Batches};
use crate::http;
use axum::http::Extensions;
use axum::http::request::Parts;
use futures_util::Stream;
use heapstead_service::Connection;
use heapstead_types::{BudgetHolder, Principal};
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError, LocalSessionWorker};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Idle connections are closed after this time. Much longer than any call can wait.
const IDLE_MAX: Duration = Duration::from_secs(24 * 3600);
/// From the creation of a connection to its `initialize`, which is the same HTTP request.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(10);

pub struct Connections {
    local: Arc<LocalSessionManager>,
    table: Mutex<ConnectionTable>,
}

impl Connections {
    pub fn at_most(connections_max: usize) -> Self {
        let mut local = LocalSessionManager::default();
        let config = &mut local.session_config;
        config.keep_alive = Some(IDLE_MAX);
        config.init_timeout = Some(INITIALIZE_TIMEOUT);
        config.channel_capacity = REPLAYED_MAX;
        // Nothing can be resumed after the end of a request: only cancelled requests would be kept.
        config.completed_cache_ttl = Duration::ZERO;
        // Clients before 2025-11-25 reject an event without data.
        config.sse_retry = None;
        Self { local: Arc::new(local), table: Mutex::new(ConnectionTable::new(connections_max)) }
    }

    fn table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An open connection of this caller.
    pub fn find(&self, id: &str, caller: &Principal) -> Option<OpenConnection> {
        self.table().find(id, caller).cloned()
    }

    /// Marks a connection as used.
    fn touch(&self, id: &SessionId) -> Outcome<()> {
        if self.table().touch(id) { Ok(()) } else { Err(LocalSessionManagerError::SessionNotFound(id.clone())) }
    }

    fn opened(&self, id: &SessionId, holder: BudgetHolder, open: OpenConnection) {
        let Some(removed) = self.table().insert(id.clone(), holder, open) else { return };
        let local = self.local.clone();
        // A task of its own, so that it is closed even if the client of this request disconnects.
        tokio::spawn(async move {
            if let Err(error) = local.close_session(&removed).await {
                tracing::debug!(%error, "a connection that made room for another one had ended");
            }
        });
    }
}

/// The principal of the HTTP request with this message, and under whom its connection is counted.
fn opener(message: &ClientJsonRpcMessage) -> Option<(Principal, BudgetHolder)> {
    let JsonRpcMessage::Request(request) = message else { return None };
    let extensions: &Extensions = &request.request.extensions().get::<Parts>()?.extensions;
    Some((http::principal(extensions).ok()?.clone(), http::budget_holder(extensions).ok()?))
}

type Outcome<T> = Result<T, LocalSessionManagerError>;

impl SessionManager for Connections {
    type Error = LocalSessionManagerError;
    type Transport = Dialect<WorkerTransport<LocalSessionWorker>>;

    async fn create_session(&self) -> Outcome<(SessionId, Self::Transport)> {
        let (id, transport) = self.local.create_session().await?;
        Ok((id, Dialect::new(transport)))
    }

    async fn initialize_session(&self, id: &SessionId, mut message: ClientJsonRpcMessage) -> Outcome<ServerJsonRpcMessage> {
        let (owner, holder) = opener(&message).ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.clone()))?;
        let connection = Arc::<Connection>::default();
        if let JsonRpcMessage::Request(request) = &mut message {
            request.request.extensions_mut().insert(connection.clone());
        }
        let answer = self.local.initialize_session(id, message).await?;
        if let JsonRpcMessage::Response(response) = &answer {
            let has_batches = dialect::negotiated_version(&response.result).is_some_and(|version| json_rpc::has_batches(&version));
            let batches = if has_batches { Batches::Accepted } else { Batches::Refused };
            self.opened(id, holder, OpenConnection { batches, owner, connection });
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Outcome<bool> {
        Ok(self.table().touch(id))
    }

    async fn close_session(&self, id: &SessionId) -> Outcome<()> {
        self.table().remove(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.touch(id)?;
        self.local.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Outcome<()> {
        self.touch(id)?;
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(&self, id: &SessionId) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.touch(id)?;
        self.local.create_standalone_stream(id).await
    }

    async fn resume(&self, id: &SessionId, last_event_id: String) -> Outcome<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        self.touch(id)?;
        self.local.resume(id, last_event_id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ann() -> Principal {
        "acme/ann".parse().expect("an owner")
    }

    /// Creates a connection in rmcp, and enters it into the table.
    async fn open(connections: &Connections) -> (SessionId, <Connections as SessionManager>::Transport) {
        let (id, transport) = connections.create_session().await.expect("a connection");
        let open = OpenConnection { batches: Batches::Refused, owner: ann(), connection: Arc::default() };
        connections.opened(&id, BudgetHolder::from(&ann()), open);
        (id, transport)
    }

    /// Every way in which a request can reach a connection.
    async fn check_refused(connections: &Connections, id: &SessionId) {
        let message = |message| serde_json::from_value(message).expect("a message");
        let ping = message(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
        let initialized = message(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert!(!connections.has_session(id).await.expect("an answer"));
        assert!(connections.find(id, &ann()).is_none());
        assert!(connections.create_stream(id, ping).await.is_err());
        assert!(connections.accept_message(id, initialized).await.is_err());
        assert!(connections.create_standalone_stream(id).await.is_err());
        assert!(connections.resume(id, "0".into()).await.is_err());
        assert!(connections.find(id, &ann()).is_none(), "using it did not open it again");
    }

    /// A connection that was in rmcp but not in the table, because it was being closed, could once be used by anybody who knew its id.
    #[tokio::test]
    async fn a_connection_that_only_the_library_knows_can_not_be_used() {
        let connections = Connections::at_most(10);
        let (opening, _transport) = connections.create_session().await.expect("a connection");
        check_refused(&connections, &opening).await;
        let (closing, _transport) = open(&connections).await;
        assert!(connections.has_session(&closing).await.expect("an answer"));
        connections.table().remove(&closing);
        assert!(connections.local.has_session(&closing).await.expect("an answer"), "rmcp has not closed it yet");
        check_refused(&connections, &closing).await;
    }

    #[tokio::test]
    async fn a_connection_that_makes_room_for_another_is_closed() {
        let connections = Connections::at_most(2);
        let (first, _first) = open(&connections).await;
        let (second, _second) = open(&connections).await;
        check_refused(&connections, &first).await;
        assert!(connections.has_session(&second).await.expect("an answer"));
        while connections.local.has_session(&first).await.expect("an answer") {
            tokio::task::yield_now().await;
        }
    }
}
