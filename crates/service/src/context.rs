//! The context of a conversation as its tools see it: read, set, added to, asked and cleared, and only through its own session.

use crate::sessions::{Target, new_session_id, unknown};
use crate::trespass::Asked;
use crate::{Archive, Caller, Connection, ServiceError, context_store};
use heapstead_context::{Access, Contexts, Error, NewResource, Record, ResourceType, SessionId, check, limits};
use heapstead_types::SessionId as Session;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// How long the end of a session waits for the end of its context.
const END_MAX: Duration = Duration::from_secs(1);
const STAYS: &str = "the context of a session that has ended stays until its time is over";
/// How long a reader waits for calls that ended just before.
const FLUSH_MAX: Duration = Duration::from_millis(500);

/// Where the context of a call is.
pub struct ContextKey {
    pub id: SessionId,
    /// Whether its callers may know that id.
    pub is_shown: bool,
}

impl ContextKey {
    fn of(id: Session) -> Self {
        Self { id: SessionId::from_bytes(*id.as_bytes()), is_shown: true }
    }

    /// Where nothing is, and nothing will be.
    fn of_nobody() -> Self {
        Self { is_shown: false, ..Self::of(new_session_id()) }
    }
}

/// A context as it is shown: without its id where nobody is shown that.
#[derive(Debug, Clone)]
pub struct ShownContext {
    pub record: Arc<Record>,
    pub is_shown: bool,
}

/// Something that a conversation has found, told by a caller.
#[derive(Debug, Clone)]
pub enum NewFinding {
    Resource(NewResource),
    Search { query: String, results: u64 },
}

/// Whether this was done already.
#[derive(Debug, Clone)]
pub enum CheckRequest {
    Resource { id: String, kind: Option<ResourceType>, content_hash: Option<String> },
    Search { query: String },
}

impl CheckRequest {
    /// What could not have been recorded can't have been done either: whoever asks for it has made a mistake.
    fn check_bounds(&self) -> Result<(), ServiceError> {
        let bounded = |name: &str, text: &str, min: usize, max: usize| match (min..=max).contains(&text.len()) {
            true => Ok(()),
            false => Err(ServiceError::bad_value(name, format!("{} bytes long", text.len()), format!("{min} to {max} bytes are allowed"))),
        };
        match self {
            Self::Resource { id, content_hash, .. } => {
                bounded("resource_id", id, 1, limits::RESOURCE_ID_BYTES_MAX)?;
                bounded("content_hash", content_hash.as_deref().unwrap_or_default(), 0, limits::CONTENT_HASH_BYTES_MAX)
            }
            Self::Search { query } => bounded("query", query, 1, limits::QUERY_BYTES_MAX),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    /// None where nobody is shown it.
    pub session_id: Option<String>,
}

impl Archive {
    /// Whether conversations are remembered.
    pub fn keeps_contexts(&self) -> bool {
        self.0.conversations.get().is_some()
    }

    pub async fn context_get(&self, caller: &Caller, session: Option<&str>) -> Result<ShownContext, ServiceError> {
        let (contexts, key) = self.context_of(caller, session, false).await?;
        // Who asks after a call wants to see that call.
        if let Some(conversations) = self.0.conversations.get() {
            let _ = tokio::time::timeout(FLUSH_MAX, conversations.flush()).await;
        }
        let record = contexts.get(access(caller, &key, "context_get")).await?;
        Ok(ShownContext { record, is_shown: key.is_shown })
    }

    /// Preferences and values; `null` removes. All of it, or nothing where something is refused.
    pub async fn context_set(
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
        Ok(contexts.update(access(caller, &key, "context_set"), set).await?)
    }

    pub async fn context_record(&self, caller: &Caller, session: Option<&str>, new: NewFinding) -> Result<(), ServiceError> {
        let (contexts, key) = self.context_of(caller, session, true).await?;
        let now = contexts.clock().now();
        let add = |record: &mut Record| match &new {
            NewFinding::Resource(resource) => record.add_resource(resource.clone(), now),
            NewFinding::Search { query, results } => record.add_search(query, *results, now),
        };
        Ok(contexts.update(access(caller, &key, "context_record"), add).await?)
    }

    pub async fn context_check(&self, caller: &Caller, session: Option<&str>, asked: CheckRequest) -> Result<Value, ServiceError> {
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

    /// Starts afresh: nothing that ended before this comes back.
    pub async fn context_clear(&self, caller: &Caller, session: Option<&str>) -> Result<Cleared, ServiceError> {
        let (contexts, key) = self.context_of(caller, session, true).await?;
        if let Some(conversations) = self.0.conversations.get() {
            let _ = tokio::time::timeout(FLUSH_MAX, conversations.flush()).await;
        }
        contexts.clear(access(caller, &key, "context_clear")).await?;
        Ok(Cleared { session_id: key.is_shown.then(|| key.id.to_string()) })
    }

    /// The session has ended, and its context goes with it: after what was recorded in it, or that would bring it back.
    pub(crate) async fn end_context(&self, session: Session) {
        let id = SessionId::from_bytes(*session.as_bytes());
        let Some(conversations) = self.0.conversations.get() else { return self.end_left_context(&id).await };
        let flush = {
            let kept = self.0.clone();
            async move {
                if let Some(conversations) = kept.conversations.get() {
                    conversations.flush().await
                }
            }
        };
        let contexts = conversations.contexts().clone();
        // A store that hangs must not hold up who ends the session; it is told all the same, when it can be.
        let removed = tokio::spawn(async move {
            flush.await;
            if let Err(error) = contexts.end(Access::new(&id, "end_session")).await {
                tracing::warn!(%error, "{STAYS}");
            }
        });
        let _ = tokio::time::timeout(END_MAX, removed).await;
    }

    /// In a process that keeps no contexts itself.
    async fn end_left_context(&self, session: &SessionId) {
        let Some(database) = self.0.left_contexts.get() else { return };
        if let Err(error) = context_store::remove_from(database, session).await {
            tracing::warn!(%error, "{STAYS}");
        }
    }

    /// The context of a connection that has left.
    pub async fn end_connection(&self, connection: &Connection) {
        self.end_context(connection.context).await;
    }

    /// `make`: a name that is new becomes a session. Where it does not, its context is as empty as that of any other.
    async fn context_of(&self, caller: &Caller, session: Option<&str>, make: bool) -> Result<(Contexts, ContextKey), ServiceError> {
        let conversations = self.0.conversations.get();
        let contexts = conversations.ok_or_else(|| ServiceError::Unavailable("this server keeps no contexts".into()))?.contexts();
        if let Some(asked) = session {
            self.refuse_other(caller, asked).await?;
        }
        let none = "there is no session here: name one with `session`, or with the header X-MCP-Session-Id";
        let target = self.session_of(caller, session).await?;
        let key = match self.context_key(caller, target, make).await? {
            Some(key) => key,
            None if session.is_some() || caller.session.is_some() => ContextKey::of_nobody(),
            None => return Err(ServiceError::SessionRequired(none.into())),
        };
        Ok((contexts.clone(), key))
    }

    /// A call that is sent in a session finds no other's context. Who asks for one is answered as if there were none, and noticed.
    async fn refuse_other(&self, caller: &Caller, asked: &str) -> Result<(), ServiceError> {
        let id = match asked.parse() {
            Ok(id) => Some(id),
            Err(_) => match self.logical_handle(caller, asked).await {
                // The name of a log, whatever it looks like.
                Err(ServiceError::NoSession(_)) if caller.names_sessions => return Ok(()),
                found => found.inspect_err(|_| self.notice(caller, asked))?,
            },
        };
        match (id, caller.within) {
            (Some(id), Some(within)) if within != id => {
                self.0.trespasses.asked(&caller.principal, Asked::Context(id));
                Err(unknown(asked))
            }
            (Some(_), _) => Ok(()),
            (None, _) => check_form(caller, asked),
        }
    }

    /// The id that a context is kept under; none where the call is in no session. `make`: a name that is new becomes a session.
    pub(crate) async fn context_key(&self, caller: &Caller, target: Target, make: bool) -> Result<Option<ContextKey>, ServiceError> {
        Ok(match target {
            Target::Opened(session) => Some(ContextKey::of(session.id)),
            Target::Named(name) => self.0.metadata.named_session(&caller.principal, &name, make).await?.map(ContextKey::of),
            Target::Alone => {
                caller.connection.as_ref().map(|connection| ContextKey { is_shown: false, ..ContextKey::of(connection.context) })
            }
        })
    }
}

/// Where names are not taken, what is neither a handle nor an id is told what an id looks like.
fn check_form(caller: &Caller, asked: &str) -> Result<(), ServiceError> {
    if caller.names_sessions {
        return Ok(());
    }
    asked.parse::<SessionId>().map(drop).map_err(|error| ServiceError::BadInput(error.to_string()))
}

fn access<'a>(caller: &'a Caller, key: &'a ContextKey, tool: &'a str) -> Access<'a> {
    Access::new(&key.id, tool).of_tenant(caller.principal.tenant().unwrap_or_default())
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
            Error::NotFound => Self::NotFound { what: "context", name: "of this session".into() },
            Error::Unreadable(_) | Error::SessionMismatch => Self::WrongState(text),
            Error::Contended { .. } => Self::Busy(text),
            Error::Store(_) => Self::Unavailable(text),
        }
    }
}
