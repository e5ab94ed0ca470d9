//! `session_context`: finds or opens the logical session of an intent, and exposes the requested entities in it.

use super::continuity::{Continuity, ExecuteBinding, Wave, WaveMode};
use super::logical_id;
use super::preparation::{KnownHead, PreparationRequest, PreparedSession};
use super::symbol_space;
use crate::executions::PreparationTurn;
use crate::sessions::lifecycle::too_many_sessions;
use crate::{Caller, Service, ServiceError};
use heapstead_catalog::Pick;
use heapstead_store::records::{ExecuteSession, LogicalSession, NewLogicalSession, NewSession, OpenedLogicalSession};
use heapstead_types::{ErrorCode, SessionId};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

pub const INTENT_BYTES_MAX: usize = 512;

#[derive(Debug, Clone, Default)]
pub struct ContextRequest {
    pub intent: String,
    /// Entities to expose, as pairs of catalog and entity.
    pub picks: Vec<Pick>,
    /// The id of a logical session from an earlier connection.
    pub logical_session_id: Option<String>,
}

/// The logical session of an intent, what is new in it, and whether what the client knew of it still holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionContext {
    /// A UUID: always the same for the same intent.
    pub logical_session_id: String,
    /// A short name for `session` of `run_js`: `s0`, `s1` … of this connection, or of the owner if there is no connection. Callers without a
    /// connection and without credentials get the full id, because a number could be guessed.
    pub logical_session_ref: String,
    pub execute_binding: ExecuteBinding,
    pub wave: Wave,
    pub continuity: Continuity,
    /// Entities that could not be exposed as the table says. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub warnings: Vec<String>,
}

/// Result of opening the session of an intent.
enum OpenedIntent {
    Answered(Box<SessionContext>),
    /// Another call opened it first.
    Exists(Box<LogicalSession>),
}

/// Result of looking at a session outside of its turn.
enum Unchanged {
    Answered(Box<SessionContext>),
    /// Something has to change, which needs a turn.
    NeedsTurn,
}

impl Service {
    pub async fn session_context(&self, caller: &Caller, request: ContextRequest) -> Result<SessionContext, ServiceError> {
        if !(1..=INTENT_BYTES_MAX).contains(&request.intent.len()) {
            let allowed = format!("expected 1 to {INTENT_BYTES_MAX} bytes that stay the same as long as the task does");
            return Err(ServiceError::bad_value("intent", format!("{} bytes long", request.intent.len()), allowed));
        }
        for pick in &request.picks {
            let entity = self.catalogs().entity(&pick.catalog, &pick.entity);
            entity.map_err(|error| ServiceError::BadInput(format!("`seeds`: {error}")))?;
        }
        self.refuse_while_closing()?;
        let scope = symbol_space::scope(caller);
        let logical = match self.find_logical(caller, &scope, &request).await? {
            Some(found) => found,
            None => match self.open_intent(caller, scope, &request).await? {
                OpenedIntent::Answered(answer) => return Ok(*answer),
                OpenedIntent::Exists(found) => *found,
            },
        };
        // Most calls change nothing, and those need no turn.
        if let Unchanged::Answered(answer) = self.unchanged(caller, &logical, &request.picks).await? {
            return Ok(*answer);
        }
        // The turn is held until this call has its answer, so that no other call, on any server, receives the same notice.
        let (_turn, prepared) = self.prepare_in_turn(caller, &logical, request.picks).await?;
        if let Some(entered) = &caller.entered {
            entered.may_have_moved();
        }
        self.session_context_of(caller, &logical, prepared).await
    }

    async fn find_logical(&self, caller: &Caller, scope: &str, request: &ContextRequest) -> Result<Option<LogicalSession>, ServiceError> {
        let records = &self.stores.records;
        let presented = request.logical_session_id.as_deref();
        let presented = presented.map(|text| logical_id(text).ok_or_else(|| ServiceError::unknown_handle(text))).transpose()?;
        // A session that the client presented on this connection takes precedence over one that the connection opened.
        let adopted = match caller.scoping_connection().and_then(|connection| connection.adopted(&request.intent)) {
            Some(id) => records.logical_session(&caller.principal, id).await?,
            None => None,
        };
        let known = match adopted {
            Some(found) => Some(found),
            None => records.logical_session_of_intent(&caller.principal, scope, &request.intent).await?,
        };
        let Some(id) = presented else { return Ok(known) };
        let held = records.logical_session(&caller.principal, id).await?;
        let held = held.ok_or_else(|| ServiceError::UnknownHandle(id.to_string()))?;
        match (known, caller.scoping_connection()) {
            (Some(known), _) if known.id == id => Ok(Some(known)),
            // An intent that has another session here can only be given the one that was opened with the same intent on an earlier connection.
            (Some(_), Some(_)) if held.intent != request.intent => Err(of_another_intent(id)),
            // The session keeps its intent on the connection where it was opened; here this intent means it too from now on.
            (_, Some(connection)) if connection.adopt(&request.intent, id) => Ok(Some(held)),
            (_, Some(_)) => Err(ServiceError::busy(
                ErrorCode::TooManySessions,
                "this connection continues as many sessions of other intents as it may have",
            )),
            (None, None) if caller.principal.is_anonymous() => Ok(Some(held)),
            _ => Err(of_another_intent(id)),
        }
    }

    /// Opens the session of an intent. It is prepared first, so that a refused call creates none.
    async fn open_intent(&self, caller: &Caller, scope: String, request: &ContextRequest) -> Result<OpenedIntent, ServiceError> {
        let records = &self.stores.records;
        let max = self.policy().quotas.sessions_max;
        // Of many calls at once, one does the work.
        let opening = symbol_space::opening_id(&caller.principal, &scope, &request.intent);
        let _first = self.stores.turns.accept(opening).await;
        if let Some(found) = records.logical_session_of_intent(&caller.principal, &scope, &request.intent).await? {
            return Ok(OpenedIntent::Exists(Box::new(found)));
        }
        if !records.has_room_for_session(&caller.principal, max).await? {
            return Err(too_many_sessions(max));
        }
        let new = NewLogicalSession {
            id: Uuid::new_v4(),
            session: NewSession {
                id: SessionId::random(),
                principal: caller.principal.clone(),
                connection: caller.scope().map(str::to_owned),
                head: None,
                at: Timestamp::now(),
                expires_at: None,
            },
            scope,
            intent: request.intent.clone(),
        };
        let logical = LogicalSession {
            id: new.id,
            intent: new.intent.clone(),
            session: new.session.id,
            head: None,
            server: self.stores.peers.server().clone(),
            pending_notice: None,
            execute: None,
        };
        let preparation =
            PreparationRequest { picks: request.picks.clone(), holder: caller.budget_holder(), ..PreparationRequest::default() };
        let mut prepared = self.prepare(&caller.principal, &logical, None, preparation).await?;
        let binding = prepared.binding.clone().ok_or_else(no_symbols)?;
        let mut turn = PreparationTurn::new(&self.stores, logical.session);
        let my_turn = self.stores.turns.accept(logical.session).await.line_up().my_turn().await;
        match records.open_logical_session(new, binding, turn.record(my_turn), max).await? {
            OpenedLogicalSession::Opened => {
                prepared.recorded();
                Ok(OpenedIntent::Answered(Box::new(self.session_context_of(caller, &logical, prepared).await?)))
            }
            OpenedLogicalSession::Exists(found) => Ok(OpenedIntent::Exists(found)),
            OpenedLogicalSession::TooMany => Err(too_many_sessions(max)),
        }
    }

    /// The answer if there is nothing to change and no notice to deliver.
    async fn unchanged(&self, caller: &Caller, logical: &LogicalSession, picks: &[Pick]) -> Result<Unchanged, ServiceError> {
        let is_bound = logical.execute.as_ref().is_some_and(|execute| execute.lost.is_none() && execute.expires_at > Timestamp::now());
        let symbols = logical.execute.as_ref().and_then(symbol_space::symbols);
        let has_all =
            symbols.is_some_and(|symbols| symbols.check(self.catalogs()).is_ok() && picks.iter().all(|pick| symbols.find(pick).is_some()));
        if !is_bound || logical.pending_notice.is_some() || !has_all {
            return Ok(Unchanged::NeedsTurn);
        }
        let head = match logical.head {
            None => KnownHead::NotNeeded,
            // The journal holds it.
            Some(head) if head.is_state() => KnownHead::NotNeeded,
            Some(head) => match self.runtime.heaps.for_owner(&caller.principal).restore(head).await {
                Ok(image) => KnownHead::Restored(head, image),
                Err(_) => return Ok(Unchanged::NeedsTurn),
            },
        };
        let request = PreparationRequest { picks: picks.to_vec(), holder: caller.budget_holder(), head, ..PreparationRequest::default() };
        let prepared = self.prepare(&caller.principal, logical, None, request).await?;
        match prepared.notice.wave.as_ref().is_some_and(|wave| wave.mode == WaveMode::Noop) {
            true => Ok(Unchanged::Answered(Box::new(self.session_context_of(caller, logical, prepared).await?))),
            false => Ok(Unchanged::NeedsTurn),
        }
    }

    /// Whether a use has to be recorded: another server used it last, a notice is delivered, or its expiry moves by enough to matter.
    fn has_use_to_record(&self, logical: &LogicalSession) -> bool {
        let is_aging = |execute: &ExecuteSession| self.policy().refreshed(execute.expires_at, Timestamp::now()).is_some();
        logical.pending_notice.is_some() || logical.server != *self.stores.peers.server() || logical.execute.as_ref().is_none_or(is_aging)
    }

    /// Prepares the session after everything accepted into it before.
    async fn prepare_in_turn(
        &self,
        caller: &Caller,
        logical: &LogicalSession,
        picks: Vec<Pick>,
    ) -> Result<(PreparationTurn, PreparedSession), ServiceError> {
        let mut turn = PreparationTurn::new(&self.stores, logical.session);
        let in_line = turn.take().await?.ok_or_else(|| ServiceError::UnknownHandle(logical.id.to_string()))?;
        let (this, principal, id, session) = (self.clone(), caller.principal.clone(), logical.id, logical.session);
        let request = PreparationRequest { picks, holder: caller.budget_holder(), ..PreparationRequest::default() };
        // A task of its own: if the caller leaves, what was stored is bound all the same.
        let work = tokio::spawn(async move {
            turn.wait(in_line).await?;
            let logical = this.stores.records.logical_session(&principal, id).await?;
            let logical = logical.ok_or_else(|| ServiceError::UnknownHandle(id.to_string()))?;
            let mut prepared = this.prepare(&principal, &logical, None, request).await?;
            if let Some(binding) = prepared.binding.clone() {
                let moves_head = binding.head.is_some();
                this.stores.records.bind(&principal, binding, Timestamp::now()).await?;
                prepared.recorded();
                if moves_head {
                    this.events().check_heads(vec![session]).await;
                }
            }
            Ok((turn, prepared))
        });
        work.await.unwrap_or_else(|error| Err(ServiceError::Unavailable(error.to_string())))
    }

    async fn session_context_of(
        &self,
        caller: &Caller,
        logical: &LogicalSession,
        prepared: PreparedSession,
    ) -> Result<SessionContext, ServiceError> {
        let records = &self.stores.records;
        let logical_session_ref = match &caller.connection {
            Some(connection) => match connection.ref_number(logical.id) {
                Some(number) => format!("s{number}"),
                None => logical.id.to_string(),
            },
            // Anonymous callers share an owner: with a number, one could reach the session of another.
            None if caller.principal.is_anonymous() => logical.id.to_string(),
            None => format!("s{}", records.session_ref(&caller.principal, logical.id).await?),
        };
        if prepared.binding.is_some() || self.has_use_to_record(logical) {
            records.use_logical_session(logical.id, self.policy().expiry(Timestamp::now())).await?;
            self.stores.expiries.notify_one();
        }
        if !prepared.notice.continuity.is_unbroken() {
            self.sessions().notice_received(logical.id, &prepared.notice).await?;
        }
        Ok(SessionContext {
            logical_session_id: logical.id.to_string(),
            logical_session_ref,
            execute_binding: prepared.notice.execute_binding.ok_or_else(no_symbols)?,
            wave: prepared.notice.wave.ok_or_else(no_symbols)?,
            continuity: prepared.notice.continuity,
            warnings: prepared.warnings,
        })
    }
}

fn of_another_intent(id: Uuid) -> ServiceError {
    let allowed = "it is the session of another intent: give that one, or leave it out";
    ServiceError::bad_value("logical_session_id", format!("`{id}`"), allowed)
}

fn no_symbols() -> ServiceError {
    ServiceError::Unavailable("the session has no symbol table".into())
}
