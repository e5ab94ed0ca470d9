//! Sessions: which one a call belongs to, and opening, listing, forking and ending those that have a head.

use crate::error::ServiceError;
use crate::executions::stop_everywhere;
use crate::hub::Topic;
use crate::live::Stop;
use crate::logical::logical_id;
use crate::record::iso_8601;
use crate::trespass::Asked;
use crate::{Archive, Caller};
use heapstead_store::metadata::{InSession, NewSession, OpenedSession, SessionFilter};
use heapstead_types::{HeapKey, Principal, SessionId, SessionName};
use jiff::{SignedDuration, Timestamp};
use rustix::rand::{GetRandomFlags, getrandom};
use schemars::JsonSchema;
use serde::Serialize;

/// Which session a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// None: nothing but the record remembers it.
    Alone,
    /// One that a client named, which is only a log.
    Named(SessionName),
    Opened(OpenedSession),
}

/// What an argument may name a session by, beside the handle of one that the caller has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Naming {
    /// Nothing else: MCP calls that run code. The log of a connection is found by its name where that looks like a handle.
    Handles,
    /// The name of a log, unless it looks like a handle: MCP calls that only read.
    PlainNames,
    /// Any text is the name of a log: REST and the command line.
    AnyText,
}

/// A session with a head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionView {
    /// 64 hex digits. Whoever of its owner has it can go on in the session: `session` of `run_js` takes it.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// The heap that its next run goes on from; null while nothing has run in it.
    #[schemars(schema_with = "crate::schema::optional_heap_key")]
    pub head: Option<HeapKey>,
    /// How many runs have completed in it.
    pub runs: u64,
    pub created_at: String,
    pub last_used_at: String,
    /// When it ends unless it is used before; null when it does not end by itself.
    pub expires_at: Option<String>,
}

/// Sessions with a head, in the order they were opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionPage {
    pub sessions: Vec<SessionView>,
    /// Pass this as `cursor` for the rest. Absent when there is no rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A use that is this small a part of the lifetime after the last one is not written down.
pub const TOUCH_PART: i32 = 100;
/// A hundred years: the last moment there is can be written down, but not read again.
const FOREVER: SignedDuration = SignedDuration::from_hours(100 * 365 * 24);

impl Archive {
    /// The one place where a call gets its session: the argument first, then what the call says beside it, then the connection. It is used then.
    pub async fn session_of(&self, caller: &Caller, argument: Option<&str>) -> Result<Target, ServiceError> {
        self.used_target(caller, argument, Naming::of(caller)).await
    }

    async fn used_target(&self, caller: &Caller, argument: Option<&str>, naming: Naming) -> Result<Target, ServiceError> {
        let target = self.find_target(caller, argument, naming).await;
        match (&target, argument) {
            (Ok(Target::Opened(session)), _) => drop(self.touch(session).await?),
            // A log may be called what is the id of another owner's session. Whether it is one is looked up later, as it is for a refusal.
            (Ok(Target::Named(_)) | Err(ServiceError::NotFound { .. } | ServiceError::NoSession(_)), Some(asked)) => {
                self.notice(caller, asked)
            }
            _ => {}
        }
        target
    }

    /// As `session_of`, for a call that is over: does not refresh the TTL and is not audited.
    pub(crate) async fn find_session_of(&self, caller: &Caller, argument: Option<&str>) -> Result<Target, ServiceError> {
        self.find_target(caller, argument, Naming::of(caller)).await
    }

    async fn find_target(&self, caller: &Caller, argument: Option<&str>, naming: Naming) -> Result<Target, ServiceError> {
        let named = match argument {
            None => None,
            Some(text) => Some(self.named(caller, text, naming).await?),
        };
        let connection = self.session_of_connection(caller).await;
        let said = [named.as_ref().and_then(Target::id), caller.within, connection.as_ref().ok().and_then(Target::id)];
        check_one(said)?;
        match (named, caller.within) {
            (Some(named), _) => Ok(named),
            (None, Some(within)) => Ok(Target::Opened(self.find_opened(caller, within).await?)),
            (None, None) => connection,
        }
    }

    /// The session that an argument means: one with a head by its handle, else a log by its name. Only what the caller has, or had, is looked at:
    /// what belongs to another owner, live or ended, is a text like any other.
    async fn named(&self, caller: &Caller, text: &str, naming: Naming) -> Result<Target, ServiceError> {
        let found = match self.handle(caller, text).await {
            Ok(Some(id)) => self.find_opened(caller, id).await.map(Target::Opened),
            Ok(None) if naming == Naming::Handles => Err(no_handle(text)),
            Ok(None) => session_name(text).map(Target::Named),
            Err(error) => Err(error),
        };
        let Err(refusal @ (ServiceError::NotFound { .. } | ServiceError::NoSession(_))) = found else { return found };
        // What looks like a handle may be the name of a log, or the id of a session without a head.
        if let Some(name) = self.0.metadata.named_as(&caller.principal, text).await? {
            return Ok(Target::Named(name));
        }
        if let Ok(id) = text.parse()
            && self.0.metadata.was_opened(&caller.principal, id).await?
        {
            return Err(ServiceError::SessionEnded(id.to_string()));
        }
        if naming == Naming::AnyText { session_name(text).map(Target::Named) } else { Err(refusal) }
    }

    /// What a connection calls its session is a name, unless it is the id of one that the caller opened.
    async fn session_of_connection(&self, caller: &Caller) -> Result<Target, ServiceError> {
        let Some(name) = caller.session.clone() else { return Ok(Target::Alone) };
        let Ok(id) = name.as_str().parse() else { return Ok(Target::Named(name)) };
        match self.0.metadata.opened_session(&caller.principal, id, Timestamp::now()).await? {
            Some(session) => Ok(Target::Opened(session)),
            None if self.0.metadata.was_opened(&caller.principal, id).await? => Err(ServiceError::SessionEnded(id.to_string())),
            None => Ok(Target::Named(name)),
        }
    }

    /// The id of the session behind a text that looks like a handle; none when it does not look like one.
    async fn handle(&self, caller: &Caller, text: &str) -> Result<Option<SessionId>, ServiceError> {
        match text.parse() {
            Ok(id) => Ok(Some(id)),
            Err(_) => self.logical_handle(caller, text).await,
        }
    }

    /// The session whose log or executions are asked for. Whatever is not a handle is a name: asking for one makes none.
    pub async fn log_of(&self, caller: &Caller, argument: Option<&str>) -> Result<Option<SessionName>, ServiceError> {
        let naming = Naming::of(caller).max(Naming::PlainNames);
        Ok(self.used_target(caller, argument, naming).await?.log_name())
    }

    /// A session of this caller. Who asks for another's is noticed.
    pub async fn opened(&self, caller: &Caller, id: SessionId) -> Result<OpenedSession, ServiceError> {
        let found = self.find_opened(caller, id).await;
        if let Err(ServiceError::NotFound { .. }) = &found {
            self.0.trespasses.asked(&caller.principal, Asked::Session(id));
        }
        found
    }

    /// A session of this caller that can be gone on in, which is used from now on. Of a task whose state was lost or deleted only the record is left,
    /// to which its intent leads.
    pub async fn enter_session(&self, caller: &Caller, id: SessionId) -> Result<OpenedSession, ServiceError> {
        let mut session = self.opened(caller, id).await?;
        session.expires_at = self.touch(&session).await?;
        match session.expires_at {
            Some(_) => Ok(session),
            None => Err(unknown(&id.to_string())),
        }
    }

    async fn find_opened(&self, caller: &Caller, id: SessionId) -> Result<OpenedSession, ServiceError> {
        let found = self.0.metadata.opened_session(&caller.principal, id, Timestamp::now()).await?;
        found.ok_or_else(|| unknown(&id.to_string()))
    }

    /// Somebody asked for a session by a handle that is not theirs, or nobody's.
    pub(crate) fn notice(&self, caller: &Caller, handle: &str) {
        let asked = handle.parse().map(Asked::Session).ok().or_else(|| logical_id(handle).map(Asked::Logical));
        if let Some(asked) = asked {
            self.0.trespasses.asked(&caller.principal, asked);
        }
    }

    /// Notes that a session is used, and answers when it ends unless it is used again.
    async fn touch(&self, session: &OpenedSession) -> Result<Option<Timestamp>, ServiceError> {
        let Some(expires_at) = session.expires_at else { return Ok(None) };
        let (now, ttl) = (Timestamp::now(), self.session_ttl());
        let later = self.kept_until(now);
        if later.duration_since(expires_at) <= ttl / TOUCH_PART {
            return Ok(Some(expires_at));
        }
        match session.logical {
            Some(logical) => self.0.metadata.keep_logical(logical, now, later).await?,
            None => self.0.metadata.use_session(session.id, now, later).await?,
        }
        Ok(Some(later))
    }

    pub async fn open_session(&self, caller: &Caller) -> Result<OpenedSession, ServiceError> {
        self.open_session_at(caller, None).await
    }

    async fn open_session_at(&self, caller: &Caller, head: Option<HeapKey>) -> Result<OpenedSession, ServiceError> {
        let now = Timestamp::now();
        let new = NewSession {
            id: new_session_id(),
            principal: caller.principal.clone(),
            connection: caller.scope().map(str::to_owned),
            head,
            at: now,
            expires_at: Some(self.kept_until(now)),
        };
        let (id, max) = (new.id, self.0.policy.quotas.sessions_max);
        if !self.0.metadata.open_session(new, max).await? {
            return Err(too_many_sessions(max));
        }
        self.0.expiries.notify_one();
        self.opened(caller, id).await
    }

    pub async fn show_session(&self, caller: &Caller, handle: &str) -> Result<SessionView, ServiceError> {
        Ok(self.found(caller, handle).await?.into())
    }

    /// The caller's own; an anonymous caller's are those of its connection.
    pub async fn opened_sessions(&self, caller: &Caller, cursor: Option<&str>, limit: Option<u32>) -> Result<SessionPage, ServiceError> {
        if caller.principal.is_anonymous() && caller.connection.is_none() {
            cursor.map(session_cursor).transpose()?;
            return Ok(SessionPage { sessions: Vec::new(), next_cursor: None });
        }
        self.sessions_of(&caller.principal, caller.scope(), cursor, limit).await
    }

    /// All of an owner's, or those of one connection.
    pub async fn sessions_of(
        &self,
        principal: &Principal,
        connection: Option<&str>,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<SessionPage, ServiceError> {
        let after = cursor.map(session_cursor).transpose()?;
        let filter = SessionFilter { connection: connection.map(str::to_owned), after, limit };
        let found = self.0.metadata.opened_sessions(principal, filter, Timestamp::now()).await?;
        let (sessions, more) = found.ok_or_else(|| ServiceError::bad_cursor(cursor.unwrap_or_default()))?;
        let next_cursor = sessions.last().filter(|_| more).map(|last| last.id.to_string());
        Ok(SessionPage { sessions: sessions.into_iter().map(Into::into).collect(), next_cursor })
    }

    /// A new session that goes on from a heap of another: its head, or any that a run in it began from or left.
    pub async fn fork_session(&self, caller: &Caller, handle: &str, heap: Option<HeapKey>) -> Result<SessionView, ServiceError> {
        let from = self.found(caller, handle).await?;
        let connection = self.session_of_connection(caller).await.ok();
        check_one([Some(from.id), caller.within, connection.as_ref().and_then(Target::id)])?;
        let head = match heap {
            None => from.head,
            Some(heap) => {
                let unknown = || ServiceError::NotFound { what: "heap in this session", name: heap.to_string() };
                if !self.has_heap(&from, heap).await? {
                    return Err(unknown());
                }
                // A log names what a run was given, too, even where there was no such heap or it was somebody else's.
                match self.heap(caller, heap).await {
                    Ok(_) => Some(heap),
                    Err(ServiceError::NotFound { .. }) => return Err(unknown()),
                    Err(error) => return Err(error),
                }
            }
        };
        Ok(self.open_session_at(caller, head).await?.into())
    }

    async fn has_heap(&self, session: &OpenedSession, heap: HeapKey) -> Result<bool, ServiceError> {
        Ok(session.head == Some(heap) || self.0.metadata.log_has_heap(session.id, heap).await?)
    }

    /// Ends a session: what runs in it is cancelled, and nobody can go on in it; of a logical one the record stays. Its heaps stay until they are
    /// collected.
    pub async fn end_session(&self, caller: &Caller, handle: &str) -> Result<(), ServiceError> {
        let session = self.found(caller, handle).await?;
        let ended = match session.logical {
            Some(logical) => self.clear_logical(logical).await?,
            None => self.0.metadata.end_session(&caller.principal, session.id, Timestamp::now()).await?,
        };
        if !ended {
            return Err(unknown(handle));
        }
        self.stop_session(session.id).await
    }

    /// Cancels what runs in a session that has ended, and tells whoever listens to it.
    pub(crate) async fn stop_session(&self, id: SessionId) -> Result<(), ServiceError> {
        for (execution, process) in self.0.metadata.running_in(id).await? {
            stop_everywhere(self, &execution, &process, Stop::Caller).await;
            self.0.hub.updated(&Topic::Execution(execution));
        }
        self.0.hub.end(id);
        self.end_context(id).await;
        Ok(())
    }

    /// A session that has a head, by whatever handle.
    async fn found(&self, caller: &Caller, handle: &str) -> Result<OpenedSession, ServiceError> {
        match self.handle(caller, handle).await {
            Ok(Some(id)) => self.opened(caller, id).await,
            Ok(None) => Err(unknown(handle)),
            Err(error) => {
                self.notice(caller, handle);
                Err(error)
            }
        }
    }

    pub(crate) fn session_ttl(&self) -> SignedDuration {
        SignedDuration::try_from(self.0.policy.session_ttl).unwrap_or(FOREVER).min(FOREVER)
    }

    /// When a session ends that is used now and not again.
    pub(crate) fn kept_until(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(self.session_ttl()).unwrap_or(Timestamp::MAX)
    }

    /// As a run says where it belongs.
    pub fn in_session(&self, target: Target) -> Option<InSession> {
        match target {
            Target::Alone => None,
            Target::Named(name) => Some(InSession::Named(name)),
            Target::Opened(session) => {
                Some(InSession::Opened { id: session.id, logical: session.logical, kept_until: self.kept_until(Timestamp::now()) })
            }
        }
    }
}

impl From<OpenedSession> for SessionView {
    fn from(session: OpenedSession) -> Self {
        Self {
            session_id: session.id,
            head: session.head,
            runs: session.sequence,
            created_at: iso_8601(session.created_at),
            last_used_at: iso_8601(session.used_at),
            expires_at: session.expires_at.map(iso_8601),
        }
    }
}

fn session_cursor(text: &str) -> Result<SessionId, ServiceError> {
    text.parse().map_err(|_| ServiceError::bad_cursor(text))
}

/// Of the sessions that a call names by its argument, in `_meta` and by its connection, no two may differ.
fn check_one(said: [Option<SessionId>; 3]) -> Result<(), ServiceError> {
    let mut said = said.into_iter().flatten();
    match said.next().and_then(|first| said.find(|other| *other != first).map(|other| (first, other))) {
        None => Ok(()),
        Some((first, other)) => Err(ServiceError::BadInput(format!(
            "the call names two sessions, `{first}` and `{other}`: of `session`, `_meta` and the connection leave one out"
        ))),
    }
}

fn no_handle(text: &str) -> ServiceError {
    let allowed = "expected a session's handle: `s0` and the like from `session_context`, or a full id";
    ServiceError::bad_value("session", format!("`{}`", text.escape_debug()), allowed)
}

pub fn unknown(handle: &str) -> ServiceError {
    ServiceError::NotFound { what: "session", name: handle.chars().take(80).collect() }
}

pub fn too_many_sessions(max: Option<u32>) -> ServiceError {
    ServiceError::Busy(format!("you have {} open sessions, which is as many as an owner may have: end some", max.unwrap_or_default()))
}

pub fn session_name(text: &str) -> Result<SessionName, ServiceError> {
    text.parse().map_err(|error| ServiceError::bad_value("session", format!("`{}`", text.escape_debug()), error))
}

pub fn new_session_id() -> SessionId {
    let mut bits = [0; 32];
    // Linux answers requests of this size whole once it has started up, and there is no later moment to ask at.
    let _ = getrandom(&mut bits, GetRandomFlags::empty());
    SessionId::from_random(bits)
}

impl Naming {
    fn of(caller: &Caller) -> Self {
        if caller.names_sessions { Self::AnyText } else { Self::Handles }
    }
}

impl Target {
    /// Of one with a head.
    fn id(&self) -> Option<SessionId> {
        match self {
            Self::Opened(session) => Some(session.id),
            Self::Named(_) | Self::Alone => None,
        }
    }

    /// As executions and logs call it.
    pub fn log_name(&self) -> Option<SessionName> {
        match self {
            Self::Alone => None,
            Self::Named(name) => Some(name.clone()),
            Self::Opened(session) => session.id.to_string().parse().ok(),
        }
    }
}
