//! The caller of a request: on whose behalf, in which session, over which connection.

use crate::PageRoom;
use crate::contexts::Call;
use crate::sessions::EnteredSession;
use heapstead_types::{BudgetHolder, Permissions, Principal, SessionId, SessionName};
use serde::Serialize;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

#[derive(Debug, Clone, Default)]
pub struct Caller {
    pub principal: Principal,
    pub permissions: Permissions,
    /// The remote address of its connection. None in this process and over stdio.
    pub address: Option<IpAddr>,
    /// None for stateless requests: REST, and MCP since 2026-07-28.
    pub connection: Option<Arc<Connection>>,
    /// The session that the connection or its headers name.
    pub session: Option<SessionName>,
    /// The opened session that the request itself names in `_meta`, resolved and authorised.
    pub entered: Option<EnteredSession>,
    /// Whether an argument may name a session by any text. Otherwise only handles of opened sessions are accepted.
    pub names_sessions: bool,
    /// `X-MCP-*` headers, which code reads as `mcp.headers`.
    pub headers: Vec<(String, String)>,
    /// The call to record in the conversation context. A run that it starts takes it over.
    pub call: Option<Arc<Call>>,
    /// How much of a list or page one answer may show. None means everything, as over REST.
    pub room: Option<PageRoom>,
}

/// A connection that lasts for several requests.
#[derive(Debug)]
pub struct Connection {
    /// Random, so that it can't be guessed.
    pub id: String,
    /// The id of its conversation context if it names no session. Never shown to clients.
    pub context: SessionId,
    /// The logical sessions that it calls `s0`, `s1` …
    refs: Mutex<Vec<Uuid>>,
    /// Intents under which it continues logical sessions that were opened under another intent or on another connection.
    intents: Mutex<HashMap<String, Uuid>>,
}

/// No client has more tasks at once.
const INTENTS_MAX: usize = 250;
/// Logical sessions with a short name on one connection.
const REFS_MAX: usize = 1_000;
/// An intent has at most 512 bytes, and its entry in a map takes some more.
const INTENT_BYTES_MAX: usize = 512 + 128;
/// What requests can add to a `Connection`.
pub const CONNECTION_STATE_BYTES_MAX: usize = INTENTS_MAX * INTENT_BYTES_MAX + REFS_MAX * size_of::<Uuid>();

impl Connection {
    pub fn new() -> Self {
        Self { id: Uuid::new_v4().simple().to_string(), context: SessionId::random(), refs: Mutex::default(), intents: Mutex::default() }
    }

    /// The number N of the short name `sN` for a logical session. Assigned on first use; none if there are too many.
    pub fn ref_number(&self, logical: Uuid) -> Option<usize> {
        let mut refs = self.refs.lock().unwrap_or_else(PoisonError::into_inner);
        let known = refs.iter().position(|known| *known == logical);
        known.or_else(|| {
            let number = refs.len();
            (number < REFS_MAX).then(|| {
                refs.push(logical);
                number
            })
        })
    }

    pub fn logical_by_ref(&self, number: usize) -> Option<Uuid> {
        self.refs.lock().unwrap_or_else(PoisonError::into_inner).get(number).copied()
    }

    /// Assigns a logical session to an intent on this connection. False if there are too many.
    pub fn adopt(&self, intent: &str, logical: Uuid) -> bool {
        let mut intents = self.intents.lock().unwrap_or_else(PoisonError::into_inner);
        if intents.len() >= INTENTS_MAX && !intents.contains_key(intent) {
            return false;
        }
        intents.insert(intent.to_owned(), logical);
        true
    }

    pub fn adopted(&self, intent: &str) -> Option<Uuid> {
        self.intents.lock().unwrap_or_else(PoisonError::into_inner).get(intent).copied()
    }
}

impl Default for Connection {
    fn default() -> Self {
        Self::new()
    }
}

impl Caller {
    /// Who it shares a budget with.
    pub fn budget_holder(&self) -> BudgetHolder {
        BudgetHolder::new(&self.principal, self.address)
    }

    /// The id of the session that the request names in `_meta`.
    pub fn entered_id(&self) -> Option<SessionId> {
        self.entered.as_ref().map(EnteredSession::id)
    }

    /// How many items of a list to read: the requested number, or how many can fit in the answer if that is less.
    pub fn list_limit(&self, requested: Option<u32>, item_chars_min: usize) -> Option<u32> {
        let fitting = self.room.map(|room| room.items_max(item_chars_min));
        requested.into_iter().chain(fitting).min()
    }

    /// How many of these items the answer can show.
    pub fn items_that_fit<T: Serialize>(&self, items: &[T]) -> usize {
        self.room.map_or(items.len(), |room| room.items_that_fit(items))
    }

    /// The connection that scopes this caller's intents and opened sessions: anonymous callers share an owner, so each of their connections
    /// is a scope of its own.
    pub fn scoping_connection(&self) -> Option<&Connection> {
        self.connection.as_deref().filter(|_| self.principal.is_anonymous())
    }

    pub fn scope(&self) -> Option<&str> {
        self.scoping_connection().map(|connection| connection.id.as_str())
    }
}
