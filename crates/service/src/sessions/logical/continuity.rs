//! Continuity: what happened to a session's symbols and state since its client last received them.

use heapstead_types::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether what the client knows of a session still holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Continuity {
    /// The execute session was lost, and another one was bound.
    pub stale_binding_recovered: bool,
    /// A new symbol table was bound: symbols from earlier answers are void.
    pub new_symbol_space: bool,
    /// The execute session that was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_execute: Option<ExecuteBinding>,
    /// The same as `new_symbol_space`.
    pub discard_cached_plasm_symbols: bool,
    /// The state was restored from the snapshot. Symbols are unchanged.
    pub resumed_from_snapshot: bool,
    /// Why the execute session was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// With the reason `replay_diverged`: the first turn that did something else when it was repeated. The session continues from the state
    /// before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
}

impl Continuity {
    /// The state was not in memory any more, and is what it was.
    pub const RESUMED: Self = Self {
        stale_binding_recovered: false,
        new_symbol_space: false,
        previous_execute: None,
        discard_cached_plasm_symbols: false,
        resumed_from_snapshot: true,
        reason: None,
        turn: None,
    };

    /// Nothing has changed.
    pub fn is_unbroken(&self) -> bool {
        *self == Self::default()
    }

    /// The combined notice for a client that has not received this one when something else happens.
    pub fn and_then(self, later: Self) -> Self {
        let stale_binding_recovered = self.stale_binding_recovered || later.stale_binding_recovered;
        let new_symbol_space = self.new_symbol_space || later.new_symbol_space;
        Self {
            stale_binding_recovered,
            new_symbol_space,
            // The client knows the one that was lost first.
            previous_execute: self.previous_execute.or(later.previous_execute),
            discard_cached_plasm_symbols: new_symbol_space,
            resumed_from_snapshot: (self.resumed_from_snapshot || later.resumed_from_snapshot)
                && !stale_binding_recovered
                && !new_symbol_space,
            reason: self.reason.or(later.reason),
            turn: self.turn.or(later.turn),
        }
    }

    /// The notice at the beginning of the first answer after a loss.
    pub fn notice(&self) -> Option<String> {
        let reason = self.reason.filter(|_| self.stale_binding_recovered)?;
        let why = reason.in_words();
        if reason == Reason::ReplayDiverged {
            let turn = self.turn.unwrap_or_default();
            return Some(format!(
                "NOTICE: the session's state had to be rebuilt ({why}). Turn {turn} did something else than before, so the session continues from the \
                 state before that turn: what its variables held since then is gone."
            ));
        }
        Some(match self.new_symbol_space {
            true => format!(
                "NOTICE: the prior in-memory session was missing or expired ({why}), and another one took its place. Everything its variables held is \
                 gone, and all earlier e#, m# and p# symbols of this conversation are void. Read only the table in this answer."
            ),
            false => format!(
                "NOTICE: the prior in-memory session was missing or expired ({why}), and an earlier one took its place again. Everything its variables \
                 held since then is gone. The e#, m# and p# symbols are what they were; the table in this answer has all of them."
            ),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecuteBinding {
    /// 64 hex digits: hash of the symbol table with which it was opened.
    pub prompt_hash: String,
    /// 32 hex digits.
    pub session_id: String,
}

/// Why an execute session was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Expired,
    HeapCollected,
    HeapDamaged,
    EngineChanged,
    CatalogChanged,
    Cleared,
    ReplayDiverged,
}

impl Reason {
    const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::Expired, "expired", "it was not used within its TTL"),
        (Self::HeapCollected, "heap_collected", "its heap is no longer in the store"),
        (Self::HeapDamaged, "heap_damaged", "its heap is damaged"),
        (Self::EngineChanged, "engine_changed", "its heap was written by a different engine"),
        (Self::CatalogChanged, "catalog_changed", "a catalog that it uses has changed"),
        (Self::Cleared, "cleared", "it was ended on request"),
        (Self::ReplayDiverged, "replay_diverged", "the server's engine has changed, and not every turn could be repeated on it"),
    ];

    /// Why the state of a logical session is lost, if this failure means that it is.
    pub fn of(failure: &Failure) -> Option<Self> {
        match failure {
            Failure::HeapNotFound { .. } | Failure::StateLost => Some(Self::HeapCollected),
            Failure::HeapDamaged { .. } => Some(Self::HeapDamaged),
            Failure::HeapOfAnotherEngine { .. } => Some(Self::EngineChanged),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(reason, ..)| *reason == self).map_or("", |(_, name, _)| name)
    }

    pub fn in_words(self) -> &'static str {
        Self::ALL.iter().find(|(reason, ..)| *reason == self).map_or("", |(.., words)| words)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(reason, ..)| *reason)
    }
}

/// What a call exposed in the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wave {
    pub mode: WaveMode,
    /// Tab-separated table of what is new and how to call it, or a short text if nothing is.
    pub domain: String,
    /// How often the symbol table has grown.
    pub revision: u64,
}

impl Wave {
    /// With a notice before the table.
    pub fn after(mut self, notice: Option<String>) -> Self {
        if let Some(notice) = notice {
            self.domain = format!("{notice}\n\n{}", self.domain);
        }
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaveMode {
    /// A first symbol table.
    Open,
    /// More of a catalog that the session has already.
    Expand,
    /// Entities of another catalog.
    Federate,
    /// Nothing new.
    Noop,
    /// Another symbol table replaces one that was lost.
    Recover,
}

/// What the record of a run reports about its logical session, if there is something to report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionNotice {
    pub continuity: Continuity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute_binding: Option<ExecuteBinding>,
    /// The new symbol table, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<Wave>,
}
