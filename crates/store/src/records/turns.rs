//! Turns: the order in which work happens in an opened session, across all servers. At most the first turn of a session may change its head.
//!
//! A run takes its turn in the transaction that accepts it, and gives it up in the transaction that ends it. A run in a logical session prepares
//! it within that turn; `session_context`, which runs no user code, takes a turn of its own. A turn of a server that has died is removed by the
//! first server that waits for it.

use super::RecordsError;
use async_trait::async_trait;
use heapstead_types::{ExecutionId, HeapKey, ServerId, SessionId};
use std::fmt;
use uuid::Uuid;

/// 32 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TurnId(String);

impl TurnId {
    pub fn new() -> Self {
        Self(Uuid::new_v4().simple().to_string())
    }

    /// The turn of a run has the id of its execution.
    pub fn of_execution(id: &ExecutionId) -> Self {
        Self(id.to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The execution that would have this turn. Whether there is such an execution is not known here.
    pub fn execution(&self) -> Option<ExecutionId> {
        self.0.parse().ok()
    }
}

impl Default for TurnId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for TurnId {
    type Err = heapstead_types::InvalidExecutionId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<ExecutionId>().map(|id| Self::of_execution(&id))
    }
}

/// A turn to take without an execution.
#[derive(Debug, Clone)]
pub struct NewTurn {
    pub id: TurnId,
    pub session: SessionId,
}

/// What a turn sees when it looks at its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub head: Option<HeapKey>,
    /// The unfinished turn directly before this one, and its server. None if this turn is the first.
    pub ahead: Option<(TurnId, ServerId)>,
}

#[async_trait]
pub trait TurnRecords: Send + Sync {
    /// Takes a turn behind all others in the session. False if the session has ended.
    async fn take_turn(&self, new: NewTurn) -> Result<bool, RecordsError>;

    /// The session's head and the turn ahead of this one. None if the session has ended.
    async fn turn(&self, session: SessionId, id: &TurnId) -> Result<Option<Turn>, RecordsError>;

    /// Gives up a turn that no execution has. Idempotent.
    async fn release_turn(&self, id: &TurnId) -> Result<(), RecordsError>;

    /// All turns that no execution has, and their servers.
    async fn turns_without_execution(&self) -> Result<Vec<(TurnId, ServerId)>, RecordsError>;
}
