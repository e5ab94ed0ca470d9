//! `session_context`: finds or opens the session of an intent, and brings what is asked for into it.

use super::call_turn::CallTurn;
use super::continuity::{Continuity, ExecuteBinding, Wave, WaveMode};
use super::preparation::{Prepared, Wish};
use super::space;
use crate::execution::come_to_turn;
use crate::sessions::{TOUCH_PART, new_session_id, too_many_sessions};
use crate::{Caller, Service, ServiceError};
use heapstead_catalog::Pick;
use heapstead_store::metadata::{Beginning, Execute, Logical, NewLogical, NewSession, Opening};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::atomic::Ordering::Relaxed;
use uuid::Uuid;

pub const INTENT_BYTES_MAX: usize = 512;

#[derive(Debug, Clone)]
pub struct ContextRequest {
    pub intent: String,
    pub picks: Vec<Pick>,
    /// A session that the caller holds the id of, from before it had this connection.
    pub logical: Option<Uuid>,
}

/// The session of an intent, what is new in it, and whether what was known of it still holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionContext {
    /// A UUID: the same for the same intent, for ever.
    pub logical_session_id: String,
    /// A short name for `session` of `run_js`: `s0`, `s1` … of this connection, or of the owner where there is no connection. Callers without a
    /// connection and without credentials get the full id here, since a number could be guessed.
    pub logical_session_ref: String,
    pub execute_binding: ExecuteBinding,
    pub wave: Wave,
    pub continuity: Continuity,
    /// What could not be done as the table says. Absent when there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub warnings: Vec<String>,
}

/// What came of opening the session of an intent.
enum Opened {
    Answered(Box<SessionContext>),
    /// Another call was first.
    Before(Box<Logical>),
}

impl Service {
    pub async fn session_context(&self, caller: &Caller, request: ContextRequest) -> Result<SessionContext, ServiceError> {
        if !(1..=INTENT_BYTES_MAX).contains(&request.intent.len()) {
            let allowed = format!("expected 1 to {INTENT_BYTES_MAX} bytes that stay the same as long as the task does");
            return Err(ServiceError::bad_value("intent", format!("{} bytes long", request.intent.len()), allowed));
        }
        for pick in &request.picks {
            self.running
                .catalogs
                .entity(&pick.catalog, &pick.entity)
                .map_err(|error| ServiceError::BadInput(format!("`seeds`: {error}")))?;
        }
        if self.running.closing.load(Relaxed) {
            return Err(ServiceError::Unavailable("the server is shutting down".into()));
        }
        let scope = space::scope(caller);
        let logical = match self.find_logical(caller, &scope, &request).await? {
            Some(found) => found,
            None => match self.open_intent(caller, scope, &request).await? {
                Opened::Answered(answer) => return Ok(*answer),
                Opened::Before(found) => *found,
            },
        };
        // Most calls change nothing, and those wait for nobody.
        if let Some(answer) = self.unchanged(caller, &logical, &request.picks).await? {
            return Ok(answer);
        }
        // The next one has its turn when this one is told, so that it is not told the same, on whatever server.
        let (_turn, prepared) = self.prepare_in_turn(caller, &logical, request.picks).await?;
        self.answer(caller, &logical, prepared).await
    }

    async fn find_logical(&self, caller: &Caller, scope: &str, request: &ContextRequest) -> Result<Option<Logical>, ServiceError> {
        let metadata = &self.0.metadata;
        // What the client presented on this connection goes before what the connection opened by itself.
        let presented = match caller.scoping().and_then(|connection| connection.taken_up(&request.intent)) {
            Some(id) => metadata.logical(&caller.principal, id).await?,
            None => None,
        };
        let known = match presented {
            Some(found) => Some(found),
            None => metadata.logical_of_intent(&caller.principal, scope, &request.intent).await?,
        };
        let Some(id) = request.logical else { return Ok(known) };
        let held = metadata.logical(&caller.principal, id).await?;
        let held = held.ok_or_else(|| ServiceError::NoSession(id.to_string()))?;
        match (known, caller.scoping()) {
            (Some(known), _) if known.id == id => Ok(Some(known)),
            // An intent that has another session here can only be given the one that was opened with the same intent, on an earlier connection.
            (Some(_), Some(_)) if held.intent != request.intent => Err(of_another_intent(id)),
            // Where it was opened, its intent goes on meaning it; here this one does too from now on.
            (_, Some(connection)) if connection.take_up(&request.intent, id) => Ok(Some(held)),
            (_, Some(_)) => Err(ServiceError::Busy("this connection goes on under as many intents as it may have".into())),
            (None, None) if caller.principal.is_anonymous() => Ok(Some(held)),
            _ => Err(of_another_intent(id)),
        }
    }

    /// The session of an intent that has none: made ready first, and there from the moment it is, so that a call that is refused makes none.
    async fn open_intent(&self, caller: &Caller, scope: String, request: &ContextRequest) -> Result<Opened, ServiceError> {
        let metadata = &self.0.metadata;
        let max = self.policy().quotas.sessions_max;
        // One of many that ask at once does the work.
        let _alone = self.running.turns.accept(space::opening(&caller.principal, &scope, &request.intent)).await;
        if let Some(found) = metadata.logical_of_intent(&caller.principal, &scope, &request.intent).await? {
            return Ok(Opened::Before(Box::new(found)));
        }
        if !metadata.has_room_for_session(&caller.principal, max).await? {
            return Err(too_many_sessions(max));
        }
        let new = NewLogical {
            id: Uuid::new_v4(),
            session: NewSession {
                id: new_session_id(),
                principal: caller.principal.clone(),
                connection: caller.scope().map(str::to_owned),
                head: None,
                at: Timestamp::now(),
                expires_at: None,
            },
            scope,
            intent: request.intent.clone(),
        };
        let logical = Logical {
            id: new.id,
            intent: new.intent.clone(),
            session: new.session.id,
            head: None,
            process: metadata.process_name().to_owned(),
            untold: None,
            execute: None,
        };
        let wish = Wish { picks: request.picks.clone(), ..Wish::default() };
        let prepared = self.prepare(&caller.principal, &logical, &self.running.heaps, wish).await?;
        let first = prepared.bind.clone().ok_or_else(no_symbols)?;
        let mut turn = CallTurn::new(self, &caller.principal);
        turn.turn = Some(self.running.turns.accept(logical.session).await.line_up().my_turn().await);
        match metadata.open_logical(new, first, turn.row(&logical), max).await? {
            Opening::Opened => Ok(Opened::Answered(Box::new(self.answer(caller, &logical, prepared).await?))),
            Opening::Taken(found) => Ok(Opened::Before(found)),
            Opening::TooMany => Err(too_many_sessions(max)),
        }
    }

    /// The answer where there is nothing to do and nothing to tell that has to be taken down.
    async fn unchanged(&self, caller: &Caller, logical: &Logical, picks: &[Pick]) -> Result<Option<SessionContext>, ServiceError> {
        let lives = logical.execute.as_ref().is_some_and(|execute| execute.gone.is_none() && execute.expires_at > Timestamp::now());
        if !lives || logical.untold.is_some() {
            return Ok(None);
        }
        let symbols = logical.execute.as_ref().and_then(space::symbols);
        let known = symbols
            .is_some_and(|symbols| symbols.check(&self.running.catalogs).is_ok() && picks.iter().all(|pick| symbols.find(pick).is_some()));
        if !known || !self.can_restore(logical).await {
            return Ok(None);
        }
        let wish = Wish { picks: picks.to_vec(), ..Wish::default() };
        let prepared = self.prepare(&caller.principal, logical, &self.running.heaps, wish).await?;
        match prepared.told.wave.as_ref().is_some_and(|wave| wave.mode == WaveMode::Noop) {
            true => self.answer(caller, logical, prepared).await.map(Some),
            false => Ok(None),
        }
    }

    /// Whether a use of it has to be taken down: it was used elsewhere, something is now told, or its time moves on by enough to matter.
    fn has_news(&self, logical: &Logical) -> bool {
        let ages =
            |execute: &Execute| self.kept_until(Timestamp::now()).duration_since(execute.expires_at) > self.session_ttl() / TOUCH_PART;
        logical.untold.is_some() || logical.process != self.0.metadata.process_name() || logical.execute.as_ref().is_none_or(ages)
    }

    async fn can_restore(&self, logical: &Logical) -> bool {
        match logical.head {
            None => true,
            Some(head) => self.running.heaps.restore(head).await.is_ok(),
        }
    }

    /// Makes the session ready, after everything that was accepted into it before.
    async fn prepare_in_turn(&self, caller: &Caller, logical: &Logical, picks: Vec<Pick>) -> Result<(CallTurn, Prepared), ServiceError> {
        let accepting = self.running.turns.accept(logical.session).await;
        let mut turn = CallTurn::new(self, &caller.principal);
        match self.0.metadata.begin_execution(turn.row(logical), None).await? {
            Beginning::Begun => {}
            Beginning::SessionEnded | Beginning::TooMany => return Err(ServiceError::NoSession(logical.id.to_string())),
        }
        let in_line = accepting.line_up();
        let (this, principal, id, session) = (self.clone(), caller.principal.clone(), logical.id, logical.session);
        // Whoever asked may leave; what is stored meanwhile is bound all the same.
        let work = tokio::spawn(async move {
            turn.turn = Some(come_to_turn(&this, &turn.live, session, in_line).await?.0);
            let logical = this.0.metadata.logical(&principal, id).await?;
            let logical = logical.ok_or_else(|| ServiceError::NoSession(id.to_string()))?;
            let wish = Wish { picks, ..Wish::default() };
            let prepared = this.prepare(&principal, &logical, &this.running.heaps, wish).await?;
            if let Some(bind) = prepared.bind.clone() {
                let moves = bind.head.is_some();
                this.0.metadata.bind(&principal, bind, Timestamp::now()).await?;
                if moves {
                    this.look_at_heads(vec![session]).await;
                }
            }
            Ok((turn, prepared))
        });
        work.await.unwrap_or_else(|error| Err(ServiceError::Unavailable(error.to_string())))
    }

    async fn answer(&self, caller: &Caller, logical: &Logical, prepared: Prepared) -> Result<SessionContext, ServiceError> {
        let logical_session_ref = match &caller.connection {
            Some(connection) => format!("s{}", connection.number(logical.id)),
            // Strangers share this owner: a number would let one of them reach the session of another.
            None if caller.principal.is_anonymous() => logical.id.to_string(),
            None => format!("s{}", self.0.metadata.session_ref(&caller.principal, logical.id).await?),
        };
        if prepared.bind.is_some() || self.has_news(logical) {
            self.0.metadata.use_logical(logical.id, self.kept_until(Timestamp::now())).await?;
            self.0.expiries.notify_one();
        }
        if !prepared.told.continuity.is_unbroken() {
            self.note_told(logical.id, &prepared.told).await?;
        }
        Ok(SessionContext {
            logical_session_id: logical.id.to_string(),
            logical_session_ref,
            execute_binding: prepared.told.execute_binding.ok_or_else(no_symbols)?,
            wave: prepared.told.wave.ok_or_else(no_symbols)?,
            continuity: prepared.told.continuity,
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
