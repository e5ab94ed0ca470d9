//! Other server processes on the same database: which of them are alive ([`Leases`]), and questions that only the server that runs an
//! execution can answer ([`Peers`]). `local.rs` is the implementation for one machine; `tests/peers` is the contract suite.

mod local;
mod question;

pub use local::LocalPeers;
pub use question::{LINE_BYTES_MAX, Question};

use async_trait::async_trait;
use heapstead_types::ServerId;
use std::sync::Arc;

/// A server holds a lease for as long as it lives. Executions and turns of a server without a lease are orphans.
pub trait Leases: Send + Sync {
    /// The id of this server.
    fn server(&self) -> &ServerId;

    /// Whether a server holds its lease. If that can't be determined it counts as alive, so that nothing is taken from it.
    fn is_alive(&self, server: &ServerId) -> bool;

    /// Whether other servers use the same database. A server that died counts until [`remove_dead`](Self::remove_dead).
    fn has_others(&self) -> bool;

    /// Removes what servers without a lease left behind.
    fn remove_dead(&self);
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("server {server} can't be reached: {why}")]
pub struct PeerError {
    pub server: ServerId,
    pub why: String,
}

/// Answers the questions of other servers.
#[async_trait]
pub trait Responder: Send + Sync {
    /// Dropped if the peer stops waiting.
    async fn answer(&self, question: Question) -> bool;
}

#[async_trait]
pub trait Peers: Leases {
    /// Answers questions from now on, until this value is dropped: then questions without an answer fail. A second call replaces the
    /// responder, and questions to the first one fail.
    fn respond(&self, responder: Arc<dyn Responder>) -> Result<(), PeerError>;

    /// Asks another server and waits for its answer. An error means that it can't be reached or has died.
    async fn ask(&self, server: &ServerId, question: &Question) -> Result<bool, PeerError>;
}
