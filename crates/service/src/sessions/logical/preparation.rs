//! Prepares a logical session for a call that has its turn: checks the execute session, replaces it if it is lost, and imports new entities.
//!
//! An execute session is lost if it has expired, its catalogs have changed, or its head is missing or damaged, or can't be rebuilt on this engine
//! (`head.rs`). All entities are then imported again (`import.rs`), as they are into a heap that the caller names. A run prepares within its own
//! turn (`executions/driver/mod.rs`). `session_context` takes a turn only if something changes, and prepares the first opening before the session
//! exists (`session_context.rs`).

use super::continuity::{Continuity, Reason, SessionNotice, Wave, WaveMode};
use super::head::SessionHead;
use super::import::Import;
use super::symbol_space;
use crate::executions::{KnownState, RunRequest, StartPoint};
use crate::heaps::HeapReservation;
use crate::sessions::lifecycle::too_many_sessions;
use crate::{Caller, Service, ServiceError};
use heapstead_catalog::{EntitySymbols, Pick, PickError, Symbols, table};
use heapstead_engine::{HeapImage, Slot};
use heapstead_store::records::{Binding, ExecuteSession, LogicalSession};
use heapstead_types::{BudgetHolder, ErrorCode, Failure, HeapKey, Principal};
use jiff::Timestamp;
use uuid::Uuid;

/// What to do if the execute session of a logical session is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnStale {
    #[default]
    Recover,
    Fail,
}

/// What a call needs from its session.
#[derive(Debug, Clone, Default)]
pub struct PreparationRequest {
    pub picks: Vec<Pick>,
    pub on_stale: OnStale,
    /// The heap that the caller chose instead of the head; the inner none is a fresh one.
    pub instead: Option<Option<HeapImage>>,
    pub head: KnownHead,
    /// Under whom its jobs are scheduled.
    pub holder: BudgetHolder,
}

/// What a call knows and needs of the session's head.
#[derive(Debug, Clone, Default)]
pub enum KnownHead {
    /// It has to be restored.
    #[default]
    Needed,
    /// The caller has restored it. Used if it is still the head.
    Restored(HeapKey, HeapImage),
    /// The caller chose another heap, or the head is in the memory of a live worker.
    NotNeeded,
}

/// A logical session that is ready for its next run.
pub struct PreparedSession {
    /// None for a fresh heap.
    pub heap: Option<HeapImage>,
    /// Its key, if it is stored.
    pub key: Option<HeapKey>,
    /// The change to commit, if there is one.
    pub binding: Option<Binding>,
    pub notice: SessionNotice,
    pub warnings: Vec<String>,
    /// Of the stored heap, until a record names it.
    pub reservation: Option<HeapReservation>,
}

impl PreparedSession {
    /// Of a session that was resumed or rebuilt, with the symbols that it had.
    pub fn without_symbols(key: Option<HeapKey>, continuity: Continuity) -> Self {
        let notice = SessionNotice { continuity, execute_binding: None, wave: None };
        Self { heap: None, key, binding: None, notice, warnings: Vec::new(), reservation: None }
    }

    /// Its binding was committed, and with it the record of its heap.
    pub fn recorded(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            reservation.recorded();
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(
        "the session's state is gone ({}): call `session_context` to recreate it, or omit `on_stale` to have it recreated", .0.in_words()
    )]
    Stale(Reason),
    #[error(transparent)]
    Pick(#[from] PickError),
    #[error("the catalogs could not be imported into the session: {0}")]
    Exposure(Failure),
    #[error(transparent)]
    Heap(#[from] Failure),
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Heap(failure) => failure,
            PrepareError::Exposure(failure) => Self::Unprepared(format!("the catalogs could not be imported into the session: {failure}")),
            PrepareError::Stale(_) => Self::Stale(error.to_string()),
            other => Self::Unprepared(other.to_string()),
        }
    }
}

impl From<PrepareError> for ServiceError {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Service(error) => error,
            PrepareError::Pick(error) => Self::BadInput(error.to_string()),
            PrepareError::Stale(_) => Self::conflict(ErrorCode::SessionStale, error.to_string()),
            PrepareError::Heap(_) | PrepareError::Exposure(_) => Self::Unavailable(error.to_string()),
        }
    }
}

/// The state of the binding.
enum Found {
    /// Not bound yet.
    Unbound,
    Usable {
        execute: ExecuteSession,
        symbols: Symbols,
        head: Box<SessionHead>,
    },
    Lost {
        execute: ExecuteSession,
        reason: Reason,
    },
}

impl Service {
    /// Prepares a logical session. If this changes anything, the caller has to hold the turn. A run has a slot already, with so many MB, which
    /// its preparation uses.
    pub(crate) async fn prepare(
        &self,
        principal: &Principal,
        logical: &LogicalSession,
        slot: Option<(&Slot, u32)>,
        mut request: PreparationRequest,
    ) -> Result<PreparedSession, PrepareError> {
        let pending = logical.pending_notice.as_deref().and_then(|json| serde_json::from_str::<SessionNotice>(json).ok());
        let work = Preparation { service: self, principal, logical, slot, holder: request.holder.clone(), on_stale: request.on_stale };
        let head = if request.instead.is_some() { KnownHead::NotNeeded } else { std::mem::take(&mut request.head) };
        let mut prepared = match work.check(head, Rebuilding::Now).await? {
            Found::Usable { execute, symbols, head } => work.extend(execute, symbols, *head, request).await?,
            Found::Lost { reason, .. } if request.on_stale == OnStale::Fail => return Err(PrepareError::Stale(reason)),
            Found::Lost { execute, reason } => work.recover(&execute, reason, request).await?,
            Found::Unbound => work.open(request).await?,
        };
        // A notice that no caller has received is delivered now.
        if let Some(pending) = pending {
            let has_table = pending.continuity.new_symbol_space || pending.continuity.stale_binding_recovered;
            prepared.notice.continuity = pending.continuity.and_then(std::mem::take(&mut prepared.notice.continuity));
            if has_table {
                prepared.notice.wave = Some(work.whole_wave(&prepared)?);
            }
        }
        if let Some(binding) = &mut prepared.binding
            && !prepared.notice.continuity.is_unbroken()
        {
            binding.pending_notice = Some(serde_json::to_string(&prepared.notice).unwrap_or_default());
        }
        Ok(prepared)
    }
}

impl Service {
    /// Refuses a run with `on_stale: fail` if its session is known to be lost. Its head is restored for that, and again when the run
    /// starts: the run may wait, and what waits holds no heap.
    pub(crate) async fn refuse_stale(&self, caller: &Caller, request: &RunRequest) -> Result<(), ServiceError> {
        let Some(id) = request.session.opened().and_then(|session| session.logical).filter(|_| request.on_stale == OnStale::Fail) else {
            return Ok(());
        };
        let Some(logical) = self.stores.records.logical_session(&caller.principal, id).await? else { return Ok(()) };
        let work = Preparation {
            service: self,
            principal: &caller.principal,
            logical: &logical,
            slot: None,
            holder: caller.budget_holder(),
            on_stale: request.on_stale,
        };
        // The journal holds a state whose heap is not stored.
        let is_needed = matches!(request.start, StartPoint::Head { .. }) && logical.head.is_none_or(|head| !head.is_state());
        let head = if is_needed { KnownHead::Needed } else { KnownHead::NotNeeded };
        match work.check(head, Rebuilding::Later).await? {
            Found::Lost { reason, .. } => Err(PrepareError::Stale(reason).into()),
            Found::Usable { .. } | Found::Unbound => Ok(()),
        }
    }
}

impl Service {
    /// Moves a session back to a state from before an import of entities: all of its entities are imported into that state again. Returns the
    /// new head. The caller has to hold the turn.
    pub(crate) async fn undo_import(
        &self,
        principal: &Principal,
        holder: &BudgetHolder,
        logical: Uuid,
        to: Option<KnownState>,
        undone_from: u64,
    ) -> Result<Option<HeapKey>, ServiceError> {
        let found = self.stores.records.logical_session(principal, logical).await?;
        let logical = found.ok_or_else(|| ServiceError::UnknownHandle(logical.to_string()))?;
        let on_stale = OnStale::Fail;
        let work = Preparation { service: self, principal, logical: &logical, slot: None, holder: holder.clone(), on_stale };
        let (execute, symbols) = match work.check(KnownHead::NotNeeded, Rebuilding::Later).await? {
            Found::Usable { execute, symbols, .. } => (execute, symbols),
            Found::Lost { reason, .. } => return Err(PrepareError::Stale(reason).into()),
            Found::Unbound => return Err(PrepareError::Stale(Reason::Expired).into()),
        };
        let head = SessionHead::behind(to, undone_from);
        let mut prepared = work.extend(execute, symbols, head, PreparationRequest::default()).await?;
        if let Some(binding) = prepared.binding.clone() {
            self.stores.records.bind(principal, binding, Timestamp::now()).await?;
            prepared.recorded();
        }
        Ok(prepared.key)
    }
}

/// When a head that this engine can't load is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rebuilding {
    Now,
    /// By a call that holds the turn.
    Later,
}

pub(super) struct Preparation<'a> {
    pub(super) service: &'a Service,
    pub(super) principal: &'a Principal,
    pub(super) logical: &'a LogicalSession,
    /// The slot of the run that is prepared for, and its cap in MB. None for `session_context`.
    pub(super) slot: Option<(&'a Slot, u32)>,
    pub(super) holder: BudgetHolder,
    pub(super) on_stale: OnStale,
}

impl Preparation<'_> {
    async fn check(&self, head: KnownHead, rebuilding: Rebuilding) -> Result<Found, PrepareError> {
        let Some(execute) = self.logical.execute.clone() else { return Ok(Found::Unbound) };
        let lost = |execute, reason| Ok(Found::Lost { execute, reason });
        if let Some(why) = &execute.lost {
            let reason = Reason::from_name(why).unwrap_or(Reason::Expired);
            return lost(execute, reason);
        }
        if execute.expires_at <= Timestamp::now() {
            return lost(execute, Reason::Expired);
        }
        let Some(symbols) = symbol_space::symbols(&execute).filter(|symbols| symbols.check(self.catalogs()).is_ok()) else {
            return lost(execute, Reason::CatalogChanged);
        };
        let head = match (self.logical.head, head) {
            (None, _) | (_, KnownHead::NotNeeded) => SessionHead::not_loaded(self.logical.head),
            (Some(key), KnownHead::Restored(restored, heap)) if restored == key => SessionHead::loaded(key, heap),
            (Some(key), _) => match self.load_head(key, &symbols, rebuilding).await? {
                Ok(head) => head,
                Err(reason) => return lost(execute, reason),
            },
        };
        Ok(Found::Usable { execute, symbols, head: Box::new(head) })
    }

    pub(super) fn catalogs(&self) -> &heapstead_catalog::Catalogs {
        self.service.catalogs()
    }

    /// Uses the bound execute session, and exposes new entities in it.
    async fn extend(
        &self,
        execute: ExecuteSession,
        symbols: Symbols,
        head: SessionHead,
        request: PreparationRequest,
    ) -> Result<PreparedSession, PrepareError> {
        let exposed = symbols.expose(self.catalogs(), &request.picks)?;
        let resumed = self.logical.head.is_some() && self.logical.server != *self.service.stores.peers.server();
        let continuity = Continuity { resumed_from_snapshot: resumed, ..Continuity::default() }.and_then(head.continuity.clone());
        let mode = match (exposed.is_noop(), exposed.new_catalogs.is_empty()) {
            _ if continuity.stale_binding_recovered => WaveMode::Recover,
            (true, _) => WaveMode::Noop,
            (false, false) if !symbols.entities().is_empty() => WaveMode::Federate,
            (false, _) => WaveMode::Expand,
        };
        // A heap that the caller chose may have none of the entities yet, and a state from before an import not all of them.
        let all = request.instead.is_some() || head.is_behind;
        let to_bind = if all { exposed.symbols.entities() } else { &exposed.new };
        let head = match request.instead {
            Some(heap) => SessionHead::instead(heap),
            None => head,
        };
        let shown = if mode == WaveMode::Recover { exposed.symbols.entities() } else { &exposed.new };
        if to_bind.is_empty() {
            let wave = self.wave(mode, shown, execute.revision)?.after(continuity.notice());
            let notice = self.notice(&execute, continuity, wave);
            let SessionHead { heap, key, warnings, .. } = head;
            return Ok(PreparedSession { key, heap, binding: None, notice, warnings, reservation: None });
        }
        let now = match exposed.is_noop() {
            true => execute,
            false => symbol_space::grown(&execute, &exposed.symbols, self.service.policy().expiry(Timestamp::now())),
        };
        let wave = self.wave(mode, shown, now.revision)?.after(continuity.notice());
        self.expose(Import { into: head, entities: to_bind, execute: now, replaces: None, continuity, wave }).await
    }

    /// Binds a first execute session, or one that was set aside and fits.
    async fn open(&self, request: PreparationRequest) -> Result<PreparedSession, PrepareError> {
        self.begin(request.picks, request.instead.flatten(), WaveMode::Open, None, Continuity::default()).await
    }

    /// Replaces a lost execute session, with all its entities that still exist.
    async fn recover(&self, lost: &ExecuteSession, reason: Reason, request: PreparationRequest) -> Result<PreparedSession, PrepareError> {
        let max = self.service.policy().quotas.sessions_max;
        // A lost execute session does not count towards the quota, so replacing it needs room.
        if lost.lost.is_some()
            && !self.service.stores.records.has_room_for_session(self.principal, max).await.map_err(ServiceError::from)?
        {
            return Err(too_many_sessions(max).into());
        }
        let before = symbol_space::symbols(lost).map(|symbols| symbol_space::picks(&symbols)).unwrap_or_default();
        let mut picks: Vec<_> = before.into_iter().filter(|pick| self.catalogs().entity(&pick.catalog, &pick.entity).is_ok()).collect();
        picks.extend(request.picks);
        let continuity = Continuity {
            stale_binding_recovered: true,
            previous_execute: Some(symbol_space::binding(lost)),
            reason: Some(reason),
            ..Continuity::default()
        };
        // If its catalog changed it is only set aside: the catalog may change back.
        let replaces = (reason != Reason::CatalogChanged).then(|| reason.as_str().to_owned());
        self.begin(picks, request.instead.flatten(), WaveMode::Recover, replaces, continuity).await
    }

    async fn begin(
        &self,
        picks: Vec<Pick>,
        base: Option<HeapImage>,
        mode: WaveMode,
        replaces: Option<String>,
        continuity: Continuity,
    ) -> Result<PreparedSession, PrepareError> {
        let reuse_key = self.service.reuse_key(self.principal, self.logical.id, &picks);
        let expires_at = self.service.policy().expiry(Timestamp::now());
        if let Some(reused) = self.reusable(&reuse_key).await? {
            return self.rebind(reused, &picks, replaces, continuity).await;
        }
        let exposed = Symbols::default().expose(self.catalogs(), &picks)?;
        let execute = symbol_space::opened(&exposed.symbols, reuse_key, expires_at);
        let continuity = Continuity { new_symbol_space: true, discard_cached_plasm_symbols: true, ..continuity };
        let wave = self.wave(mode, &exposed.new, 0)?.after(continuity.notice());
        self.expose(Import { into: SessionHead::instead(base), entities: &exposed.new, execute, replaces, continuity, wave }).await
    }

    async fn reusable(&self, reuse_key: &str) -> Result<Option<(ExecuteSession, Symbols, HeapKey, HeapImage)>, PrepareError> {
        let records = &self.service.stores.records;
        let Some(execute) = records.reusable_execute_session(reuse_key.to_owned(), Timestamp::now()).await.map_err(ServiceError::from)?
        else {
            return Ok(None);
        };
        let symbols = symbol_space::symbols(&execute).filter(|symbols| symbols.check(self.catalogs()).is_ok());
        let (Some(symbols), Some(head)) = (symbols, execute.head) else { return Ok(None) };
        let Ok(stored) = self.stored(head).await else { return Ok(None) };
        Ok(self.heaps().restore(stored).await.ok().map(|heap| (execute, symbols, head, heap)))
    }

    /// Binds an execute session again that was set aside. The client knows the symbols of the one that is lost now, which may be different.
    async fn rebind(
        &self,
        (execute, symbols, key, heap): (ExecuteSession, Symbols, HeapKey, HeapImage),
        picks: &[Pick],
        replaces: Option<String>,
        continuity: Continuity,
    ) -> Result<PreparedSession, PrepareError> {
        let exposed = symbols.expose(self.catalogs(), picks)?;
        let known = self.logical.execute.as_ref().and_then(symbol_space::symbols);
        let new_symbol_space = !known.is_some_and(|known| exposed.symbols.entities().starts_with(known.entities()));
        let continuity = Continuity { new_symbol_space, discard_cached_plasm_symbols: new_symbol_space, ..continuity };
        let now = ExecuteSession { expires_at: self.service.policy().expiry(Timestamp::now()), ..execute };
        let now = if exposed.is_noop() { now } else { symbol_space::grown(&now, &exposed.symbols, now.expires_at) };
        let wave = self.wave(WaveMode::Recover, exposed.symbols.entities(), now.revision)?.after(continuity.notice());
        let into = SessionHead::loaded(key, heap);
        self.expose(Import { into, entities: exposed.symbols.entities(), execute: now, replaces, continuity, wave }).await
    }

    pub(super) fn notice(&self, execute: &ExecuteSession, continuity: Continuity, wave: Wave) -> SessionNotice {
        SessionNotice { continuity, execute_binding: Some(symbol_space::binding(execute)), wave: Some(wave) }
    }

    fn wave(&self, mode: WaveMode, new: &[EntitySymbols], revision: u64) -> Result<Wave, PrepareError> {
        let domain = match (mode, new.is_empty()) {
            (WaveMode::Noop, _) => "All requested entities are in the session already, under their existing symbols.".to_owned(),
            (_, true) => "No catalog entities are in this session yet.".to_owned(),
            (_, false) => table(self.catalogs(), new)?,
        };
        Ok(Wave { mode, domain, revision })
    }

    /// The whole symbol table, for a client that did not receive it.
    fn whole_wave(&self, prepared: &PreparedSession) -> Result<Wave, PrepareError> {
        let execute = prepared.binding.as_ref().map(|binding| &binding.execute).or(self.logical.execute.as_ref());
        let symbols = execute.and_then(symbol_space::symbols).unwrap_or_default();
        let revision = execute.map_or(0, |execute| execute.revision);
        let continuity = &prepared.notice.continuity;
        let mode = if continuity.stale_binding_recovered { WaveMode::Recover } else { WaveMode::Open };
        Ok(self.wave(mode, symbols.entities(), revision)?.after(continuity.notice()))
    }
}
