//! The context tools: read, set, record, check and clear the context of the caller's own session.

use super::{Contexts, store};
use crate::error::Noun;
use crate::sessions::access_audit::Requested;
use crate::sessions::{SessionTarget, session_not_found};
use crate::{Caller, Connection, ServiceError};
use heapstead_context::{Access, Contexts as ContextRecords, Error, NewResource, Record, Refused, ResourceType, SessionId, check, limits};
use heapstead_store::RecordsError;
use heapstead_types::{ErrorCode, Principal, SessionId as Session};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// How long ending a session waits for the deletion of its context.
const END_MAX: Duration = Duration::from_secs(1);
const STAYS: &str = "the context of a session that has ended stays until its TTL is over";
/// How long a reader waits for calls that have just ended to be recorded.
const FLUSH_MAX: Duration = Duration::from_millis(500);

/// The id of the context of a call.
pub struct ContextKey {
    pub id: SessionId,
    /// Whether the caller may see the id.
    pub is_shown: bool,
}

impl ContextKey {
    fn of(id: Session) -> Self {
        Self { id: SessionId::from_bytes(*id.as_bytes()), is_shown: true }
    }

    /// An id that no context has.
    fn unused() -> Self {
        Self { is_shown: false, ..Self::of(Session::random()) }
    }
}

/// A context as callers see it: without its id if they may not see it.
#[derive(Debug, Clone)]
pub struct ShownContext {
    pub record: Arc<Record>,
    pub is_shown: bool,
}

/// Something that a caller adds to the context.
#[derive(Debug, Clone)]
pub enum NewFinding {
    Resource(NewResource),
    Search { query: String, results: u64 },
}

/// The question whether something was done already.
#[derive(Debug, Clone)]
pub enum CheckRequest {
    Resource { id: String, kind: Option<ResourceType>, content_hash: Option<String> },
    Search { query: String },
}

impl CheckRequest {
    /// Refuses values that could not have been recorded.
    fn check_bounds(&self) -> Result<(), ServiceError> {
        let bounded = |name: &str, text: &str, min: usize, max: usize| match text.chars().count() {
            chars if (min..=max).contains(&chars) => Ok(()),
            chars => {
                Err(ServiceError::bad_value(name, format!("{chars} characters long"), format!("{min} to {max} characters are allowed")))
            }
        };
        match self {
            Self::Resource { id, content_hash, .. } => {
                bounded("resource_id", id, 1, limits::RESOURCE_ID_CHARS_MAX)?;
                bounded("content_hash", content_hash.as_deref().unwrap_or_default(), 0, limits::CONTENT_HASH_CHARS_MAX)
            }
            Self::Search { query } => bounded("query", query, 1, limits::QUERY_CHARS_MAX),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    /// None if the caller may not see it.
    pub session_id: Option<String>,
}

impl Contexts<'_> {
    /// Whether this server records conversations.
    pub fn is_enabled(&self) -> bool {
        self.0.conversations.get().is_some()
    }

    pub async fn get(&self, caller: &Caller, session: Option<&str>) -> Result<ShownContext, ServiceError> {
        let (contexts, key) = self.context_of(caller, session, false).await?;
        // A caller that reads after a call expects to see that call.
        if let Some(conversations) = self.0.conversations.get() {
            let _ = tokio::time::timeout(FLUSH_MAX, conversations.flush()).await;
        }
        let record = contexts.get(access(caller, &key, "context_get")).await?;
        Ok(ShownContext { record, is_shown: key.is_shown })
    }

    /// Sets preferences and values; `null` removes one. If anything is refused, nothing is changed.
    pub async fn set(
        &self,
        caller: &Caller,
        session: Option<&str>,
        preferences: Option<Map<String, Value>>,
        custom: Option<Map<String, Value>>,
    ) -> Result<(), ServiceError> {
        let (contexts, key) = self.context_of(caller, session, true).await?;
        let set = |record: &mut Record| {
            preferences.as_ref().map_or(Ok(()), |given| record.set_preferences(given))?;
            custom.as_ref().map_or(Ok(()), |given| record.set_custom(given))
        };
        self.update(&contexts, access(caller, &key, "context_set"), caller, set).await
    }

    pub async fn add(&self, caller: &Caller, session: Option<&str>, new: NewFinding) -> Result<(), ServiceError> {
        let (contexts, key) = self.context_of(caller, session, true).await?;
        let now = contexts.clock().now();
        let add = |record: &mut Record| match &new {
            NewFinding::Resource(resource) => record.add_resource(resource.clone(), now),
            NewFinding::Search { query, results } => record.add_search(query, *results, now),
        };
        self.update(&contexts, access(caller, &key, "context_record"), caller, add).await
    }

    /// Changes a context on request of the caller, within its quota on everything that it stores.
    async fn update(
        &self,
        contexts: &ContextRecords,
        access: Access<'_>,
        caller: &Caller,
        change: impl FnMut(&mut Record) -> Result<(), Refused>,
    ) -> Result<(), ServiceError> {
        let bytes_max = self.bytes_max_of(&caller.principal).await?;
        match contexts.update(access.within(bytes_max), change).await {
            Err(error) if error.is_over_quota() => {
                let used_bytes = self.0.records.usage(&caller.principal).await?.bytes();
                let bytes_max = self.0.policy.quotas.stored_bytes_max.unwrap_or_default();
                Err(RecordsError::OverQuota { used_bytes, bytes_max }.into())
            }
            updated => Ok(updated?),
        }
    }

    /// How many bytes the contexts of an owner may have: what its quota leaves for them. None if there is no quota.
    pub(crate) async fn bytes_max_of(&self, principal: &Principal) -> Result<Option<u64>, ServiceError> {
        let Some(bytes_max) = self.0.policy.quotas.stored_bytes_max else { return Ok(None) };
        Ok(Some(bytes_max.saturating_sub(self.0.records.usage(principal).await?.here_bytes())))
    }

    pub async fn check(&self, caller: &Caller, session: Option<&str>, asked: CheckRequest) -> Result<Value, ServiceError> {
        asked.check_bounds()?;
        let (contexts, key) = self.context_of(caller, session, false).await?;
        let record = contexts.get(access(caller, &key, "context_check")).await?;
        Ok(match asked {
            CheckRequest::Resource { id, kind, content_hash } => {
                check::resource_note(&record.check_resource(&id, kind, content_hash.as_deref()), &id, kind)
            }
            CheckRequest::Search { query } => check::search_note(record.check_search(&query), &query),
        })
    }

    /// Deletes everything. Calls that ended before are not recorded afterwards.
    pub async fn clear(&self, caller: &Caller, session: Option<&str>) -> Result<Cleared, ServiceError> {
        let (contexts, key) = self.context_of(caller, session, true).await?;
        if let Some(conversations) = self.0.conversations.get() {
            let _ = tokio::time::timeout(FLUSH_MAX, conversations.flush()).await;
        }
        contexts.clear(access(caller, &key, "context_clear")).await?;
        Ok(Cleared { session_id: key.is_shown.then(|| key.id.to_string()) })
    }

    /// Deletes the context of a session that has ended, after pending calls were recorded, which would create it again.
    pub(crate) async fn delete(&self, session: Session) {
        let id = SessionId::from_bytes(*session.as_bytes());
        let Some(conversations) = self.0.conversations.get() else { return self.delete_from_database(&id).await };
        let flush = {
            let stores = self.0.clone();
            async move {
                if let Some(conversations) = stores.conversations.get() {
                    conversations.flush().await
                }
            }
        };
        let contexts = conversations.contexts().clone();
        // A store that hangs must not delay the end of the session; the deletion continues in the background.
        let removed = tokio::spawn(async move {
            flush.await;
            if let Err(error) = contexts.end(Access::new(&id, "end_session")).await {
                tracing::warn!(%error, "{STAYS}");
            }
        });
        let _ = tokio::time::timeout(END_MAX, removed).await;
    }

    /// For a process that records no conversations itself.
    async fn delete_from_database(&self, session: &SessionId) {
        let Some(database) = self.0.context_database.get() else { return };
        if let Err(error) = store::remove_from(database, session).await {
            tracing::warn!(%error, "{STAYS}");
        }
    }

    /// Deletes the context of a connection that was closed.
    pub async fn delete_of_connection(&self, connection: &Connection) {
        self.delete(connection.context).await;
    }

    /// With `create`, a new name becomes a session. Without, its context is empty.
    async fn context_of(&self, caller: &Caller, session: Option<&str>, create: bool) -> Result<(ContextRecords, ContextKey), ServiceError> {
        let conversations = self.0.conversations.get();
        let contexts = conversations.ok_or_else(|| ServiceError::Unavailable("this server keeps no contexts".into()))?.contexts();
        if let Some(asked) = session {
            self.refuse_other(caller, asked).await?;
        }
        let target = self.0.sessions().resolve(caller, session).await?;
        let key = match self.context_key(caller, &target, create).await? {
            Some(key) => key,
            None if session.is_some() || caller.session.is_some() => ContextKey::unused(),
            None => return Err(ServiceError::NoSession),
        };
        Ok((contexts.clone(), key))
    }

    /// A call in a session may only use the context of that session. A request for another is answered as if there were none, and audited.
    async fn refuse_other(&self, caller: &Caller, asked: &str) -> Result<(), ServiceError> {
        let sessions = self.0.sessions();
        let id = match asked.parse() {
            Ok(id) => Some(id),
            Err(_) => match sessions.id_of_logical_handle(caller, asked).await {
                // The name of a session, although it looks like a handle.
                Err(ServiceError::UnknownHandle(_)) if caller.names_sessions => return Ok(()),
                found => found.inspect_err(|_| sessions.audit(caller, asked))?,
            },
        };
        match (id, caller.entered_id()) {
            (Some(id), Some(entered)) if entered != id => {
                self.0.access_audit.add(&caller.principal, Requested::Context(id));
                Err(session_not_found(asked))
            }
            (Some(_), _) => Ok(()),
            (None, _) => check_form(caller, asked),
        }
    }

    /// The id of the context of a session; none if the call is in no session. With `create`, a new name becomes a session.
    pub(crate) async fn context_key(
        &self,
        caller: &Caller,
        target: &SessionTarget,
        create: bool,
    ) -> Result<Option<ContextKey>, ServiceError> {
        Ok(match target {
            SessionTarget::Opened(session) => Some(ContextKey::of(session.id)),
            SessionTarget::Named(name) => self.0.records.named_session(&caller.principal, name, create).await?.map(ContextKey::of),
            SessionTarget::None => {
                caller.connection.as_ref().map(|connection| ContextKey { is_shown: false, ..ContextKey::of(connection.context) })
            }
        })
    }
}

/// If names are not accepted, a text that is not a handle is refused as an invalid id.
fn check_form(caller: &Caller, asked: &str) -> Result<(), ServiceError> {
    if caller.names_sessions {
        return Ok(());
    }
    asked.parse::<SessionId>().map(drop).map_err(|error| ServiceError::BadInput(error.to_string()))
}

fn access<'a>(caller: &'a Caller, key: &'a ContextKey, tool: &'a str) -> Access<'a> {
    Access::new(&key.id, tool).of_tenant(caller.principal.tenant().unwrap_or_default()).of_owner(caller.principal.name())
}

impl Serialize for ShownContext {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serde_json::to_value(&*self.record).map_err(serde::ser::Error::custom)?;
        if !self.is_shown {
            record["session_id"] = Value::Null;
        }
        record.serialize(serializer)
    }
}

impl From<Error> for ServiceError {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Refused(_) | Error::InvalidSessionId(_) | Error::TooLarge { .. } => Self::BadInput(text),
            Error::NotFound => Self::not_found(Noun::Context, "of this session"),
            Error::Unreadable(_) | Error::SessionMismatch => Self::conflict(ErrorCode::Conflict, text),
            Error::Contended { .. } => Self::busy(ErrorCode::Busy, text),
            Error::Store(_) => Self::Unavailable(text),
        }
    }
}
