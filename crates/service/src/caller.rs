//! Who calls: on whose behalf, in which session, over which connection.

use crate::PageRoom;
use crate::context_recording::Call;
use crate::sessions::new_session_id;
use heapstead_engine::Lane;
use heapstead_types::{Principal, SessionId, SessionName};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

#[derive(Debug, Clone, Default)]
pub struct Caller {
    pub principal: Principal,
    /// None where every call stands alone: REST, and MCP since 2026-07-28.
    pub connection: Option<Arc<Connection>>,
    /// The session that the connection names.
    pub session: Option<SessionName>,
    /// The opened session that the call itself says it belongs to, beside its arguments. It was found before.
    pub within: Option<SessionId>,
    /// Whether any text in an argument names a session, and not only the handle of one.
    pub names_sessions: bool,
    /// `X-MCP-*` headers of the connection, which code reads as `mcp.headers`.
    pub headers: Vec<(String, String)>,
    /// Callers of different lanes take turns when the queue is long.
    pub lane: Lane,
    /// The call itself, where a conversation is to remember it. A run that it begins takes that over.
    pub call: Option<Arc<Call>>,
    /// How much of a list or page one answer may show. None: all of it, as over REST.
    pub room: Option<PageRoom>,
}

/// A connection that stays while its client does, and what it alone knows.
#[derive(Debug)]
pub struct Connection {
    /// Nobody could guess it.
    pub id: String,
    /// Where the context of its conversation is kept when it names no session. Nobody is shown it.
    pub context: SessionId,
    /// The logical sessions that it calls `s0`, `s1` …
    refs: Mutex<Vec<Uuid>>,
    /// Intents under which it goes on in sessions that were opened under another one, or on another connection.
    intents: Mutex<HashMap<String, Uuid>>,
}

/// Each is 512 bytes at most, and a client has no more tasks than this at once.
const INTENTS_MAX: usize = 1_000;

impl Connection {
    pub fn new() -> Self {
        Self { id: Uuid::new_v4().simple().to_string(), context: new_session_id(), refs: Mutex::default(), intents: Mutex::default() }
    }

    /// The number by which this connection calls a logical session from now on.
    pub fn number(&self, logical: Uuid) -> usize {
        let mut refs = self.refs.lock().unwrap_or_else(PoisonError::into_inner);
        refs.iter().position(|known| *known == logical).unwrap_or_else(|| {
            refs.push(logical);
            refs.len() - 1
        })
    }

    /// The session that an intent stands for from now on. False when there are too many.
    pub fn take_up(&self, intent: &str, logical: Uuid) -> bool {
        let mut intents = self.intents.lock().unwrap_or_else(PoisonError::into_inner);
        if intents.len() >= INTENTS_MAX && !intents.contains_key(intent) {
            return false;
        }
        intents.insert(intent.to_owned(), logical);
        true
    }

    pub fn taken_up(&self, intent: &str) -> Option<Uuid> {
        self.intents.lock().unwrap_or_else(PoisonError::into_inner).get(intent).copied()
    }

    pub fn numbered(&self, number: usize) -> Option<Uuid> {
        self.refs.lock().unwrap_or_else(PoisonError::into_inner).get(number).copied()
    }
}

impl Default for Connection {
    fn default() -> Self {
        Self::new()
    }
}

impl Caller {
    /// How many items of a list to read: what was asked for, or what can fit in the answer if that is less.
    pub fn list_limit(&self, asked: Option<u32>, item_chars_min: usize) -> Option<u32> {
        let fitting = self.room.map(|room| room.items_max(item_chars_min));
        asked.into_iter().chain(fitting).min()
    }

    /// How many of these items the answer can show.
    pub fn items_that_fit<T: Serialize>(&self, items: &[T]) -> usize {
        self.room.map_or(items.len(), |room| room.items_that_fit(items))
    }

    /// The connection that intents of this caller belong to.
    pub fn scoping(&self) -> Option<&Connection> {
        self.connection.as_deref().filter(|_| self.principal.is_anonymous())
    }

    /// What opened sessions and intents of this caller belong to beside its owner: anonymous callers share an owner, so each connection is a scope
    /// of its own.
    pub fn scope(&self) -> Option<&str> {
        self.scoping().map(|connection| connection.id.as_str())
    }
}
