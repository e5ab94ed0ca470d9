//! Execute sessions as they are stored: symbols, reuse keys, scopes.

use super::continuity::ExecuteBinding;
use super::reuse::Reuse;
use crate::{Caller, Service};
use heapstead_catalog::{Pick, PromptHash, Symbols, primary};
use heapstead_store::records::ExecuteSession;
use heapstead_types::{Principal, SessionId};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The symbols of an execute session; none if they can't be parsed, which counts as lost.
pub fn symbols(execute: &ExecuteSession) -> Option<Symbols> {
    serde_json::from_str(&execute.symbols).ok()
}

pub fn binding(execute: &ExecuteSession) -> ExecuteBinding {
    ExecuteBinding { prompt_hash: execute.prompt_hash.clone(), session_id: execute.id.clone() }
}

/// The entities that are exposed in it.
pub fn picks(symbols: &Symbols) -> Vec<Pick> {
    symbols.entities().iter().map(|exposed| Pick::new(exposed.catalog.as_str(), exposed.entity.as_str())).collect()
}

/// A new one with these symbols.
pub fn opened(symbols: &Symbols, reuse_key: String, expires_at: Timestamp) -> ExecuteSession {
    ExecuteSession {
        id: Uuid::new_v4().simple().to_string(),
        reuse_key,
        prompt_hash: PromptHash::of(symbols).to_string(),
        symbols: text(symbols),
        revision: 0,
        head: None,
        expires_at,
        lost: None,
    }
}

/// The same one, with more symbols.
pub fn grown(execute: &ExecuteSession, symbols: &Symbols, expires_at: Timestamp) -> ExecuteSession {
    ExecuteSession { symbols: text(symbols), revision: execute.revision + 1, expires_at, ..execute.clone() }
}

fn text(symbols: &Symbols) -> String {
    // Names, numbers and hashes, which all have a JSON form.
    serde_json::to_string(symbols).unwrap_or_default()
}

impl Service {
    /// An execute session is reused only if this key is the same.
    pub(super) fn reuse_key(&self, principal: &Principal, logical: Uuid, picks: &[Pick]) -> String {
        let catalog = primary(picks).unwrap_or_default();
        let found = self.catalogs().catalog(catalog);
        Reuse {
            tenant: principal.tenant().unwrap_or(principal.as_str()),
            catalog,
            content: found.as_ref().map_or("", |catalog| catalog.content_hash.as_str()),
            picks,
            principal: self.policy().delegated.then_some(principal.as_str()),
            generation: &self.runtime.generation,
            logical: Some(logical),
        }
        .key()
    }
}

/// Calls that open the session of the same intent take turns under this id. No session has it.
pub fn opening_id(principal: &Principal, scope: &str, intent: &str) -> SessionId {
    let mut hash = Sha256::new();
    for part in [principal.as_str(), scope, intent] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    SessionId::from_random(hash.finalize().into())
}

/// The scope of an intent: its owner, or the connection of an anonymous caller. Without either, the intent has a scope of its own.
pub fn scope(caller: &Caller) -> String {
    match caller.scope() {
        Some(connection) => connection.to_owned(),
        None if caller.principal.is_anonymous() => Uuid::new_v4().simple().to_string(),
        None => String::new(),
    }
}
