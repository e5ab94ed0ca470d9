//! Prepares a logical session for a call that has its turn: checks the execute session, replaces it if it is lost, and imports new entities.
//!
//! An execute session is lost if it has expired, its catalogs have changed, or its head is missing, damaged or of another engine. All entities
//! are then imported again, as they are into a heap that the caller names. A run prepares within its own turn (`executions/driver/mod.rs`).
//! `session_context` takes a turn only if something changes, and prepares the first opening before the session exists (`session_context.rs`).

use super::continuity::{Continuity, Reason, SessionNotice, Wave, WaveMode};
use super::symbol_space;
use crate::executions::{ExecutionOutcome, RunRequest, StartPoint};
use crate::heaps::{HeapCache, HeapReservation};
use crate::sessions::lifecycle::too_many_sessions;
use crate::{Caller, Service, ServiceError};
use heapstead_catalog::{EntitySymbols, Pick, PickError, Symbols, script, table, warnings};
use heapstead_engine::{HeapImage, Job, Kind, Outcome, Slot};
use heapstead_store::records::{Binding, ExecuteSession, LogicalSession, NewHeap, NewHeapEngine};
use heapstead_types::{BudgetHolder, ErrorCode, Failure, HeapKey, Principal};
use jiff::Timestamp;
use std::time::Instant;

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
    /// It can't be restored.
    Lost(Reason),
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
        heap: Option<HeapImage>,
    },
    Lost {
        execute: ExecuteSession,
        reason: Reason,
    },
}

impl Service {
    /// Prepares a logical session. If this changes anything, the caller has to hold the turn. A run has a slot already, which its preparation
    /// uses.
    pub(crate) async fn prepare(
        &self,
        principal: &Principal,
        logical: &LogicalSession,
        slot: Option<&Slot>,
        mut request: PreparationRequest,
    ) -> Result<PreparedSession, PrepareError> {
        let pending = logical.pending_notice.as_deref().and_then(|json| serde_json::from_str::<SessionNotice>(json).ok());
        let work = Preparation { service: self, principal, logical, slot, holder: request.holder.clone() };
        let head = if request.instead.is_some() { KnownHead::NotNeeded } else { std::mem::take(&mut request.head) };
        let mut prepared = match work.check(head).await? {
            Found::Usable { execute, symbols, heap } => work.extend(execute, symbols, heap, request).await?,
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
        let work =
            Preparation { service: self, principal: &caller.principal, logical: &logical, slot: None, holder: caller.budget_holder() };
        // The journal holds a state whose heap is not stored.
        let is_needed = matches!(request.start, StartPoint::Head { .. }) && logical.head.is_none_or(|head| !head.is_state());
        let head = if is_needed { KnownHead::Needed } else { KnownHead::NotNeeded };
        match work.check(head).await? {
            Found::Lost { reason, .. } => Err(PrepareError::Stale(reason).into()),
            Found::Usable { .. } | Found::Unbound => Ok(()),
        }
    }
}

struct Preparation<'a> {
    service: &'a Service,
    principal: &'a Principal,
    logical: &'a LogicalSession,
    /// The slot of the run that is prepared for. None for `session_context`.
    slot: Option<&'a Slot>,
    holder: BudgetHolder,
}

impl Preparation<'_> {
    async fn check(&self, head: KnownHead) -> Result<Found, PrepareError> {
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
        let heap = match (self.logical.head, head) {
            (None, _) | (_, KnownHead::NotNeeded) => return Ok(Found::Usable { execute, symbols, heap: None }),
            (_, KnownHead::Lost(reason)) => return lost(execute, reason),
            (Some(key), KnownHead::Restored(restored, heap)) if restored == key => Ok(heap),
            (Some(key), _) => match self.stored(key).await {
                Ok(key) => self.heaps().restore(key).await,
                Err(ServiceError::Conflict { .. }) => return lost(execute, Reason::HeapCollected),
                Err(error) => return Err(error.into()),
            },
        };
        match heap {
            Ok(heap) => Ok(Found::Usable { execute, symbols, heap: Some(heap) }),
            Err(Failure::HeapNotFound { .. }) => lost(execute, Reason::HeapCollected),
            Err(Failure::HeapDamaged { .. }) => lost(execute, Reason::HeapDamaged),
            Err(Failure::HeapOfAnotherEngine { .. }) => lost(execute, Reason::EngineChanged),
            Err(other) => Err(other.into()),
        }
    }

    /// The stored heap behind a heap or state.
    async fn stored(&self, key: HeapKey) -> Result<HeapKey, ServiceError> {
        let slot = self.slot.map(|slot| (slot, self.service.policy().limits.heap_mb));
        self.service.materialize(self.principal, &self.holder, slot, key).await
    }

    fn heaps(&self) -> HeapCache {
        let time_max = HeapCache::time_max(&self.service.policy().limits);
        self.service.runtime.heaps.for_owner(self.principal).until(Instant::now() + time_max)
    }

    fn catalogs(&self) -> &heapstead_catalog::Catalogs {
        self.service.catalogs()
    }

    /// Uses the bound execute session, and exposes new entities in it.
    async fn extend(
        &self,
        execute: ExecuteSession,
        symbols: Symbols,
        heap: Option<HeapImage>,
        request: PreparationRequest,
    ) -> Result<PreparedSession, PrepareError> {
        let exposed = symbols.expose(self.catalogs(), &request.picks)?;
        let resumed = self.logical.head.is_some() && self.logical.server != *self.service.stores.peers.server();
        let continuity = Continuity { resumed_from_snapshot: resumed, ..Continuity::default() };
        let mode = match (exposed.is_noop(), exposed.new_catalogs.is_empty()) {
            (true, _) => WaveMode::Noop,
            (false, false) if !symbols.entities().is_empty() => WaveMode::Federate,
            (false, _) => WaveMode::Expand,
        };
        // A heap that the caller chose may have none of the entities yet.
        let to_bind = if request.instead.is_some() { exposed.symbols.entities() } else { &exposed.new };
        let key = if request.instead.is_some() { None } else { self.logical.head };
        let base = request.instead.unwrap_or(heap);
        if to_bind.is_empty() {
            let notice = self.notice(&execute, continuity, self.wave(mode, &exposed.new, execute.revision)?);
            return Ok(PreparedSession { key, heap: base, binding: None, notice, warnings: Vec::new(), reservation: None });
        }
        let now = match mode {
            WaveMode::Noop => execute,
            _ => symbol_space::grown(&execute, &exposed.symbols, self.service.policy().expiry(Timestamp::now())),
        };
        let wave = self.wave(mode, &exposed.new, now.revision)?;
        self.expose(base, to_bind, now, None, continuity, wave).await
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
        self.expose(base, &exposed.new, execute, replaces, continuity, wave).await
    }

    async fn reusable(&self, reuse_key: &str) -> Result<Option<(ExecuteSession, Symbols, HeapImage)>, PrepareError> {
        let records = &self.service.stores.records;
        let Some(execute) = records.reusable_execute_session(reuse_key.to_owned(), Timestamp::now()).await.map_err(ServiceError::from)?
        else {
            return Ok(None);
        };
        let symbols = symbol_space::symbols(&execute).filter(|symbols| symbols.check(self.catalogs()).is_ok());
        let (Some(symbols), Some(head)) = (symbols, execute.head) else { return Ok(None) };
        let Ok(head) = self.stored(head).await else { return Ok(None) };
        Ok(self.heaps().restore(head).await.ok().map(|heap| (execute, symbols, heap)))
    }

    /// Binds an execute session again that was set aside. The client knows the symbols of the one that is lost now, which may be different.
    async fn rebind(
        &self,
        (execute, symbols, heap): (ExecuteSession, Symbols, HeapImage),
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
        self.expose(Some(heap), exposed.symbols.entities(), now, replaces, continuity, wave).await
    }

    /// Exposes entities in a heap and stores the result.
    async fn expose(
        &self,
        base: Option<HeapImage>,
        to_bind: &[EntitySymbols],
        execute: ExecuteSession,
        replaces: Option<String>,
        continuity: Continuity,
        wave: Wave,
    ) -> Result<PreparedSession, PrepareError> {
        let notice = self.notice(&execute, continuity, wave);
        let binding = |head| Binding { logical: self.logical.id, execute, replaces, head, pending_notice: None };
        if to_bind.is_empty() {
            // There is nothing in it to store.
            return Ok(PreparedSession {
                heap: base,
                key: None,
                binding: Some(binding(None)),
                notice,
                warnings: Vec::new(),
                reservation: None,
            });
        }
        let (heap, warned) = self.run_script(base, &script(self.catalogs(), to_bind)?).await?;
        let bytes = heap.length();
        let reservation = self.service.heaps().reserve_for(self.principal, heap.key(), bytes).await?;
        let (key, reservation) = self.heaps().store_reserved(heap.clone(), reservation).await?;
        let engine = NewHeapEngine::Produced(self.heaps().engine_id().clone());
        let head = NewHeap { key, bytes, engine, reservation: Some(reservation.id().clone()) };
        Ok(PreparedSession {
            heap: Some(heap),
            key: Some(key),
            binding: Some(binding(Some(head))),
            notice,
            warnings: warned,
            reservation: Some(reservation),
        })
    }

    async fn run_script(&self, base: Option<HeapImage>, code: &str) -> Result<(HeapImage, Vec<String>), PrepareError> {
        let limits = self.service.policy().limits;
        let job = |base| Job {
            code: code.into(),
            kind: Kind::Stateful(base),
            limits,
            headers: Vec::new(),
            replay: None,
            holder: self.holder.clone(),
        };
        let execution = match self.slot {
            Some(slot) => slot.submit_before(job(base)),
            None => {
                let place = self.service.engine().reserve(&self.holder, limits.heap_mb).map_err(ServiceError::from)?;
                // Restored again when it has its slot: what waits holds no heap.
                let key = base.map(|heap| heap.key());
                let slot = place.with_slot().await;
                let base = match key {
                    Some(key) => Some(self.heaps().restore(key).await?),
                    None => None,
                };
                slot.submit(job(base))
            }
        };
        match execution.finish().await.1 {
            Outcome::Completed { result, heap: Some(heap), .. } => {
                let warned = warnings(&result).unwrap_or_default();
                Ok((heap, warned.into_iter().map(|warning| warning.text).collect()))
            }
            Outcome::Failed(failure) => Err(PrepareError::Exposure(failure)),
            other => {
                let why = ExecutionOutcome::from(other).error().unwrap_or_else(|| "it returned no heap".into());
                Err(PrepareError::Exposure(Failure::NoWorker(why)))
            }
        }
    }

    fn notice(&self, execute: &ExecuteSession, continuity: Continuity, wave: Wave) -> SessionNotice {
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
