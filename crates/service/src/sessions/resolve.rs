//! Which session a request is in. This is the one place where that is decided; the result is passed on as a value.
//!
//! In order: the `session` argument, the session in `_meta`, the session of the connection. If they name different opened sessions, the request
//! is refused.
//!
//! A request that uses an opened session refreshes its TTL once: when it resolves the session, or, if it runs code, in the transaction that
//! accepts the run. Not refreshed: a session that is only shown or forked, the session of an execution that is read or cancelled by its id, and
//! an expiry that would move by less than a hundredth of the TTL. A logical session has no TTL of its own; the execute session that it is bound
//! to has, and is also refreshed when a run ends and while one runs.

use super::Sessions;
use super::access_audit::Requested;
use super::entered::{EnteredSession, Now};
use super::logical::logical_id;
use crate::error::Noun;
use crate::{Caller, ServiceError};
use heapstead_store::records::OpenedSession;
use heapstead_types::{SessionId, SessionName};
use jiff::Timestamp;

/// The session of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionTarget {
    None,
    /// A named session, which is only a log.
    Named(SessionName),
    Opened(OpenedSession),
}

/// What a `session` argument may be, besides the handle of an opened session of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Naming {
    /// Nothing else: MCP calls that run code. A named session is found if its name looks like a handle.
    Handles,
    /// The name of a session, unless it looks like a handle: MCP calls that only read.
    PlainNames,
    /// Any text is a name: REST and the command line.
    AnyText,
}

impl Naming {
    fn of(caller: &Caller) -> Self {
        if caller.names_sessions { Self::AnyText } else { Self::Handles }
    }
}

impl Sessions<'_> {
    /// The session of a request. Refreshes its TTL, and audits a handle that is not the caller's.
    pub async fn resolve(&self, caller: &Caller, argument: Option<&str>) -> Result<SessionTarget, ServiceError> {
        self.resolve_as(caller, argument, Naming::of(caller)).await
    }

    /// As `resolve`, for a run: accepting it refreshes the TTL. A live session is not read: accepting the run finds out if it has ended.
    pub(crate) async fn resolve_for_run(&self, caller: &Caller, argument: Option<&str>) -> Result<SessionTarget, ServiceError> {
        let id = argument.and_then(|text| text.parse().ok());
        let live = id.and_then(|id| self.0.live.opened(&caller.principal, id, Timestamp::now())).map(SessionTarget::Opened);
        let target = self.find(caller, argument, Naming::of(caller), live).await;
        self.audit_argument(caller, argument, &target);
        target
    }

    /// The name of the session whose log or executions are requested. A text that is not a handle is a name; no session is created for it.
    pub async fn log_name(&self, caller: &Caller, argument: Option<&str>) -> Result<Option<SessionName>, ServiceError> {
        let naming = Naming::of(caller).max(Naming::PlainNames);
        Ok(self.resolve_as(caller, argument, naming).await?.log_name())
    }

    /// The session of a call that has ended. Does not refresh the TTL and is not audited.
    pub(crate) async fn resolve_for_recording(&self, caller: &Caller, argument: Option<&str>) -> Result<SessionTarget, ServiceError> {
        self.find(caller, argument, Naming::of(caller), None).await
    }

    /// Enters the session that a request names in `_meta`, and refreshes its TTL. A logical session without an execute session can't be
    /// entered: it is continued by its intent.
    pub async fn enter(&self, caller: &Caller, id: SessionId) -> Result<EnteredSession, ServiceError> {
        let mut session = self.opened_audited(caller, id).await?;
        session.expires_at = self.refresh(&session).await?;
        let expires_at = session.expires_at;
        self.entered(session, expires_at)
    }

    /// As `enter`, for a request that runs code: accepting the run refreshes the TTL. If no run is accepted, `leave` does.
    pub async fn enter_for_run(&self, caller: &Caller, id: SessionId) -> Result<EnteredSession, ServiceError> {
        let session = self.opened_audited(caller, id).await?;
        self.entered(session, None)
    }

    fn entered(&self, session: OpenedSession, refreshed: Option<Timestamp>) -> Result<EnteredSession, ServiceError> {
        match session.expires_at {
            Some(_) => Ok(EnteredSession::new(session, refreshed)),
            None => Err(session_not_found(&session.id.to_string())),
        }
    }

    /// The session at the end of the request that entered it; none if it has ended.
    pub async fn current(&self, caller: &Caller, entered: &EnteredSession) -> Option<OpenedSession> {
        let mut session = entered.session().clone();
        session.expires_at = entered.refreshed().or(session.expires_at);
        match entered.now() {
            Now::AsEntered => Some(session),
            // The end of a run in a logical session refreshes the TTL once more.
            Now::At(head) if session.logical.is_some() => {
                Some(OpenedSession { expires_at: Some(self.0.policy.expiry(Timestamp::now())), ..session.at(head) })
            }
            Now::At(head) => Some(session.at(head)),
            Now::Unknown => self.opened(caller, session.id).await.ok(),
        }
    }

    async fn resolve_as(&self, caller: &Caller, argument: Option<&str>, naming: Naming) -> Result<SessionTarget, ServiceError> {
        let target = self.find(caller, argument, naming, None).await;
        self.audit_argument(caller, argument, &target);
        if let Ok(SessionTarget::Opened(session)) = &target {
            self.refresh(session).await?;
        }
        target
    }

    /// A named session may have a name that is the id of another owner's session. Whether it is one is checked later, as for a refusal.
    fn audit_argument(&self, caller: &Caller, argument: Option<&str>, target: &Result<SessionTarget, ServiceError>) {
        let is_suspicious =
            matches!(target, Ok(SessionTarget::Named(_)) | Err(ServiceError::NotFound { .. } | ServiceError::UnknownHandle(_)));
        if let (Some(argument), true) = (argument, is_suspicious) {
            self.audit(caller, argument);
        }
    }

    /// `known` is what the argument names, if that need not be read.
    async fn find(
        &self,
        caller: &Caller,
        argument: Option<&str>,
        naming: Naming,
        known: Option<SessionTarget>,
    ) -> Result<SessionTarget, ServiceError> {
        let found = self.find_target(caller, argument, naming, known).await;
        if let (Some(call), Ok(target)) = (&caller.call, &found) {
            call.resolved(argument, target);
        }
        found
    }

    async fn find_target(
        &self,
        caller: &Caller,
        argument: Option<&str>,
        naming: Naming,
        known: Option<SessionTarget>,
    ) -> Result<SessionTarget, ServiceError> {
        let named = match (known, argument) {
            (Some(known), _) => Some(known),
            (None, Some(text)) => Some(self.by_text(caller, text, naming).await?),
            (None, None) => None,
        };
        let of_connection = self.of_connection(caller, named.as_ref()).await;
        check_same([
            named.as_ref().and_then(SessionTarget::id),
            caller.entered_id(),
            of_connection.as_ref().ok().and_then(SessionTarget::id),
        ])?;
        match (named, &caller.entered) {
            (Some(named), _) => Ok(named),
            (None, Some(entered)) => Ok(SessionTarget::Opened(entered.session().clone())),
            (None, None) => of_connection,
        }
    }

    /// The session that an argument means: an opened one by its handle, else a named one. Only sessions that the caller has or had are looked
    /// at: the id of another owner's session is a text like any other.
    async fn by_text(&self, caller: &Caller, text: &str, naming: Naming) -> Result<SessionTarget, ServiceError> {
        let found = match self.by_handle(caller, text).await {
            Ok(Some(session)) => return Ok(SessionTarget::Opened(session)),
            Ok(None) if naming == Naming::Handles => Err(not_a_handle(text)),
            Ok(None) => session_name(text).map(SessionTarget::Named),
            Err(error) => Err(error),
        };
        let Err(refusal @ (ServiceError::NotFound { .. } | ServiceError::UnknownHandle(_))) = found else { return found };
        // A text that looks like a handle may be the name or the id of a named session.
        if let Some(name) = self.0.records.name_of_session(&caller.principal, text).await? {
            return Ok(SessionTarget::Named(name));
        }
        if let Ok(id) = text.parse()
            && self.0.records.was_opened(&caller.principal, id).await?
        {
            return Err(ServiceError::SessionEnded(id.to_string()));
        }
        if naming == Naming::AnyText { session_name(text).map(SessionTarget::Named) } else { Err(refusal) }
    }

    /// The name that a connection gives its session, unless it is the id of a session that the caller opened. `named` is not read again.
    pub(super) async fn of_connection(&self, caller: &Caller, named: Option<&SessionTarget>) -> Result<SessionTarget, ServiceError> {
        let Some(name) = caller.session.clone() else { return Ok(SessionTarget::None) };
        let Ok(id) = name.as_str().parse() else { return Ok(SessionTarget::Named(name)) };
        if let Some(named) = named.filter(|named| named.id() == Some(id)) {
            return Ok(named.clone());
        }
        match self.opened(caller, id).await {
            Ok(session) => Ok(SessionTarget::Opened(session)),
            Err(ServiceError::NotFound { .. }) if self.0.records.was_opened(&caller.principal, id).await? => {
                Err(ServiceError::SessionEnded(id.to_string()))
            }
            Err(ServiceError::NotFound { .. }) => Ok(SessionTarget::Named(name)),
            Err(error) => Err(error),
        }
    }

    /// The opened session with this handle: an id, a logical id, or `s0` and the like. None if the text is not the form of a handle.
    pub(super) async fn by_handle(&self, caller: &Caller, text: &str) -> Result<Option<OpenedSession>, ServiceError> {
        match text.parse() {
            Ok(id) => self.opened(caller, id).await.map(Some),
            Err(_) => self.by_logical_handle(caller, text).await,
        }
    }

    /// As `by_handle`, for operations that need an opened session. Audits a handle that is not the caller's.
    pub(crate) async fn require(&self, caller: &Caller, handle: &str) -> Result<OpenedSession, ServiceError> {
        let found = self.by_handle(caller, handle).await.and_then(|found| found.ok_or_else(|| session_not_found(handle)));
        if let Err(ServiceError::NotFound { .. } | ServiceError::UnknownHandle(_)) = &found {
            self.audit(caller, handle);
        }
        found
    }

    /// An opened session of this caller. The session that the request has entered is not read again.
    async fn opened(&self, caller: &Caller, id: SessionId) -> Result<OpenedSession, ServiceError> {
        if let Some(entered) = caller.entered.as_ref().filter(|entered| entered.id() == id && matches!(entered.now(), Now::AsEntered)) {
            return Ok(entered.session().clone());
        }
        let found = self.0.records.opened_session(&caller.principal, id, Timestamp::now()).await?;
        found.ok_or_else(|| session_not_found(&id.to_string()))
    }

    pub(crate) async fn opened_audited(&self, caller: &Caller, id: SessionId) -> Result<OpenedSession, ServiceError> {
        let found = self.opened(caller, id).await;
        if let Err(ServiceError::NotFound { .. }) = &found {
            self.0.access_audit.add(&caller.principal, Requested::Session(id));
        }
        found
    }

    pub(crate) fn audit(&self, caller: &Caller, handle: &str) {
        let requested = handle.parse().map(Requested::Session).ok().or_else(|| logical_id(handle).map(Requested::Logical));
        if let Some(requested) = requested {
            self.0.access_audit.add(&caller.principal, requested);
        }
    }

    /// A run in this session was refused, so that nothing has refreshed its TTL.
    pub(crate) async fn refresh_after_refusal(&self, caller: &Caller, session: &OpenedSession) {
        // The session that the request has entered is refreshed when the request leaves it.
        if caller.entered_id() == Some(session.id) {
            return;
        }
        if let Err(error) = self.refresh(session).await {
            tracing::warn!(%error, "the TTL of a session can't be refreshed");
        }
    }

    /// Refreshes the TTL of a session. Returns its expiry.
    pub(super) async fn refresh(&self, session: &OpenedSession) -> Result<Option<Timestamp>, ServiceError> {
        let Some(expires_at) = session.expires_at else { return Ok(None) };
        let now = Timestamp::now();
        let Some(later) = self.0.policy.refreshed(expires_at, now) else { return Ok(Some(expires_at)) };
        match session.logical {
            Some(logical) => self.0.records.refresh_logical_session(logical, now, later).await?,
            None => self.0.records.refresh_session(session.id, now, later).await?,
        }
        Ok(Some(later))
    }

    /// The request has ended. Refreshes the TTL of the session that it entered, unless that happened before.
    pub async fn leave(&self, entered: &EnteredSession) {
        if entered.refreshed().is_some() {
            return;
        }
        if let Err(error) = self.refresh(entered.session()).await {
            tracing::warn!(%error, "the TTL of a session can't be refreshed");
        }
    }
}

impl SessionTarget {
    pub fn opened(&self) -> Option<&OpenedSession> {
        match self {
            Self::Opened(session) => Some(session),
            Self::Named(_) | Self::None => None,
        }
    }

    fn id(&self) -> Option<SessionId> {
        self.opened().map(|session| session.id)
    }

    /// Its name in execution records and logs.
    pub fn log_name(&self) -> Option<SessionName> {
        match self {
            Self::None => None,
            Self::Named(name) => Some(name.clone()),
            Self::Opened(session) => session.id.to_string().parse().ok(),
        }
    }
}

/// Refuses a request that names different sessions by its argument, in `_meta` and by its connection.
pub(super) fn check_same(named: [Option<SessionId>; 3]) -> Result<(), ServiceError> {
    let mut named = named.into_iter().flatten();
    match named.next().and_then(|first| named.find(|other| *other != first).map(|other| (first, other))) {
        None => Ok(()),
        Some((first, other)) => Err(ServiceError::BadInput(format!(
            "the call names two sessions, `{first}` and `{other}`: of `session`, `_meta` and the connection leave one out"
        ))),
    }
}

fn not_a_handle(text: &str) -> ServiceError {
    let allowed = "expected a session's handle: `s0` and the like from `session_context`, or a full id";
    ServiceError::bad_value("session", format!("`{}`", text.escape_debug()), allowed)
}

pub fn session_not_found(handle: &str) -> ServiceError {
    ServiceError::not_found(Noun::Session, handle)
}

pub fn session_name(text: &str) -> Result<SessionName, ServiceError> {
    text.parse().map_err(|error| ServiceError::bad_value("session", format!("`{}`", text.escape_debug()), error))
}
