//! What a call finds when it comes to its turn in a logical session: what is bound lives, or has to be replaced, and may have to grow.

use super::continuity::{Continuity, Reason, Told, Wave, WaveMode};
use super::space;
use crate::heap_access::HeapAccess;
use crate::sessions::too_many_sessions;
use crate::{Caller, RunRequest, Service, ServiceError};
use heapstead_catalog::{EntitySymbols, Pick, PickError, Symbols, script, table, warnings};
use heapstead_engine::{HeapImage, Job, Kind, Lane, Outcome};
use heapstead_store::metadata::{Bind, Execute, InSession, Logical};
use heapstead_types::{Failure, HeapKey, Principal};
use jiff::Timestamp;
use tokio::sync::OwnedRwLockReadGuard;

/// What to do when what a session is bound to is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnStale {
    #[default]
    Recover,
    Fail,
}

/// What a call needs of its session.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    pub picks: Vec<Pick>,
    pub on_stale: OnStale,
    /// The heap to begin with instead of the session's; the inner none is a fresh one.
    pub instead: Option<Option<HeapImage>>,
}

/// A session that is ready for its next run.
pub struct Prepared {
    /// None is a fresh heap.
    pub heap: Option<HeapImage>,
    /// Its key, if it is kept.
    pub key: Option<HeapKey>,
    /// What has to be committed for it to be so.
    pub bind: Option<Bind>,
    pub told: Told,
    pub warnings: Vec<String>,
    /// Held until a record names what was stored.
    pub _storing: Option<OwnedRwLockReadGuard<()>>,
}

#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(
        "the session's state is gone ({}): call `session_context` to open it anew, or leave `on_stale` out to have that done", .0.in_words()
    )]
    Stale(Reason),
    #[error(transparent)]
    Pick(#[from] PickError),
    #[error("the catalogs could not be brought into the session: {0}")]
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
            PrepareError::Exposure(failure) => Self::Unprepared(format!("the catalogs could not be brought into the session: {failure}")),
            other => Self::Unprepared(other.to_string()),
        }
    }
}

impl From<PrepareError> for ServiceError {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Service(error) => error,
            PrepareError::Pick(error) => Self::BadInput(error.to_string()),
            PrepareError::Stale(_) => Self::WrongState(error.to_string()),
            PrepareError::Heap(_) | PrepareError::Exposure(_) => Self::Unavailable(error.to_string()),
        }
    }
}

/// How what is bound was found.
enum Found {
    /// Never bound yet.
    Unbound,
    Lives {
        execute: Execute,
        symbols: Symbols,
        heap: Option<HeapImage>,
    },
    Gone {
        execute: Execute,
        reason: Reason,
    },
}

impl Service {
    /// Looks at a logical session and makes ready what a call needs of it. Nobody else may have a turn in it meanwhile.
    pub(crate) async fn prepare(
        &self,
        principal: &Principal,
        logical: &Logical,
        heaps: &HeapAccess,
        wish: Wish,
    ) -> Result<Prepared, PrepareError> {
        let untold = logical.untold.as_deref().and_then(|json| serde_json::from_str::<Told>(json).ok());
        let work = Work { service: self, principal, logical, heaps };
        let mut prepared = match work.find().await? {
            Found::Lives { execute, symbols, heap } => work.go_on(execute, symbols, heap, wish).await?,
            Found::Gone { reason, .. } if wish.on_stale == OnStale::Fail => return Err(PrepareError::Stale(reason)),
            Found::Gone { execute, reason } => work.recover(&execute, reason, wish).await?,
            Found::Unbound => work.open(wish).await?,
        };
        // What an earlier answer should have told and never did is told now.
        if let Some(untold) = untold {
            let has_table = untold.continuity.new_symbol_space || untold.continuity.stale_binding_recovered;
            prepared.told.continuity = untold.continuity.and_then(std::mem::take(&mut prepared.told.continuity));
            if has_table {
                prepared.told.wave = Some(work.whole_wave(&prepared)?);
            }
        }
        if let Some(bind) = &mut prepared.bind
            && !prepared.told.continuity.is_unbroken()
        {
            bind.untold = Some(serde_json::to_string(&prepared.told).unwrap_or_default());
        }
        Ok(prepared)
    }
}

impl Service {
    /// Refuses a run that would rather not begin than begin anew, where that is known already.
    pub(crate) async fn refuse_stale(&self, caller: &Caller, request: &RunRequest) -> Result<(), ServiceError> {
        let (OnStale::Fail, Some(InSession::Opened { logical: Some(id), .. })) = (request.on_stale, &request.session) else {
            return Ok(());
        };
        let Some(logical) = self.0.metadata.logical(&caller.principal, *id).await? else { return Ok(()) };
        let work = Work { service: self, principal: &caller.principal, logical: &logical, heaps: &self.running.heaps };
        match work.find().await? {
            Found::Gone { reason, .. } => Err(PrepareError::Stale(reason).into()),
            _ => Ok(()),
        }
    }
}

struct Work<'a> {
    service: &'a Service,
    principal: &'a Principal,
    logical: &'a Logical,
    heaps: &'a HeapAccess,
}

impl Work<'_> {
    async fn find(&self) -> Result<Found, PrepareError> {
        let Some(execute) = self.logical.execute.clone() else { return Ok(Found::Unbound) };
        let gone = |execute, reason| Ok(Found::Gone { execute, reason });
        if let Some(why) = &execute.gone {
            let reason = Reason::from_name(why).unwrap_or(Reason::Expired);
            return gone(execute, reason);
        }
        if execute.expires_at <= Timestamp::now() {
            return gone(execute, Reason::Expired);
        }
        let Some(symbols) = space::symbols(&execute).filter(|symbols| symbols.check(self.catalogs()).is_ok()) else {
            return gone(execute, Reason::CatalogChanged);
        };
        let Some(key) = self.logical.head else { return Ok(Found::Lives { execute, symbols, heap: None }) };
        match self.heaps.restore(key).await {
            Ok(heap) => Ok(Found::Lives { execute, symbols, heap: Some(heap) }),
            Err(Failure::HeapNotFound { .. }) => gone(execute, Reason::HeapCollected),
            Err(Failure::HeapDamaged { .. }) => gone(execute, Reason::HeapDamaged),
            Err(Failure::HeapOfAnotherEngine { .. }) => gone(execute, Reason::EngineChanged),
            Err(other) => Err(other.into()),
        }
    }

    fn catalogs(&self) -> &heapstead_catalog::Catalogs {
        &self.service.running.catalogs
    }

    /// With what is there, and what is new if something is.
    async fn go_on(&self, execute: Execute, symbols: Symbols, heap: Option<HeapImage>, wish: Wish) -> Result<Prepared, PrepareError> {
        let exposed = symbols.expose(self.catalogs(), &wish.picks)?;
        let resumed = self.logical.head.is_some() && self.logical.process != self.service.0.metadata.process_name();
        let continuity = Continuity { resumed_from_snapshot: resumed, ..Continuity::default() };
        let mode = match (exposed.is_noop(), exposed.new_catalogs.is_empty()) {
            (true, _) => WaveMode::Noop,
            (false, false) if !symbols.entities().is_empty() => WaveMode::Federate,
            (false, _) => WaveMode::Expand,
        };
        // A heap that the session jumps to may have nothing of the catalogs yet.
        let to_bind = if wish.instead.is_some() { exposed.symbols.entities() } else { &exposed.new };
        let base = wish.instead.unwrap_or(heap);
        if to_bind.is_empty() {
            let told = self.told(&execute, continuity, self.wave(mode, &exposed.new, execute.revision)?);
            return Ok(Prepared { key: self.logical.head, heap: base, bind: None, told, warnings: Vec::new(), _storing: None });
        }
        let now = match mode {
            WaveMode::Noop => execute,
            _ => space::grown(&execute, &exposed.symbols, self.service.kept_until(Timestamp::now())),
        };
        let wave = self.wave(mode, &exposed.new, now.revision)?;
        self.expose(base, to_bind, now, None, continuity, wave).await
    }

    /// A first one, or one that stepped aside and fits again.
    async fn open(&self, wish: Wish) -> Result<Prepared, PrepareError> {
        self.begin(wish.picks, wish.instead.flatten(), WaveMode::Open, None, Continuity::default()).await
    }

    /// A new one in place of one that is gone, with everything that was picked before and is still there.
    async fn recover(&self, lost: &Execute, reason: Reason, wish: Wish) -> Result<Prepared, PrepareError> {
        let max = self.service.policy().quotas.sessions_max;
        // Nobody counts one whose state is gone.
        if lost.gone.is_some() && !self.service.0.metadata.has_room_for_session(self.principal, max).await.map_err(ServiceError::from)? {
            return Err(too_many_sessions(max).into());
        }
        let before = space::symbols(lost).map(|symbols| space::picks(&symbols)).unwrap_or_default();
        let mut picks: Vec<_> = before.into_iter().filter(|pick| self.catalogs().entity(&pick.catalog, &pick.entity).is_ok()).collect();
        picks.extend(wish.picks);
        let continuity = Continuity {
            stale_binding_recovered: true,
            previous_execute: Some(space::binding(lost)),
            reason: Some(reason),
            ..Continuity::default()
        };
        // One whose catalog changed only steps aside: the catalog may change back.
        let replaces = (reason != Reason::CatalogChanged).then(|| reason.as_str().to_owned());
        self.begin(picks, wish.instead.flatten(), WaveMode::Recover, replaces, continuity).await
    }

    async fn begin(
        &self,
        picks: Vec<Pick>,
        base: Option<HeapImage>,
        mode: WaveMode,
        replaces: Option<String>,
        continuity: Continuity,
    ) -> Result<Prepared, PrepareError> {
        let reuse_key = self.service.reuse_key(self.principal, self.logical.id, &picks);
        let kept_until = self.service.kept_until(Timestamp::now());
        if let Some(reused) = self.reusable(&reuse_key).await? {
            return self.take_up(reused, &picks, replaces, continuity).await;
        }
        let exposed = Symbols::default().expose(self.catalogs(), &picks)?;
        let execute = space::opened(&exposed.symbols, reuse_key, kept_until);
        let continuity = Continuity { new_symbol_space: true, discard_cached_plasm_symbols: true, ..continuity };
        let wave = self.wave(mode, &exposed.new, 0)?.after(continuity.notice());
        self.expose(base, &exposed.new, execute, replaces, continuity, wave).await
    }

    async fn reusable(&self, reuse_key: &str) -> Result<Option<(Execute, Symbols, HeapImage)>, PrepareError> {
        let metadata = &self.service.0.metadata;
        let Some(execute) = metadata.reusable(reuse_key.to_owned(), Timestamp::now()).await.map_err(ServiceError::from)? else {
            return Ok(None);
        };
        let symbols = space::symbols(&execute).filter(|symbols| symbols.check(self.catalogs()).is_ok());
        let (Some(symbols), Some(head)) = (symbols, execute.head) else { return Ok(None) };
        Ok(self.heaps.restore(head).await.ok().map(|heap| (execute, symbols, heap)))
    }

    /// One that stepped aside takes its place again. Its client has last seen the one that is lost now, whose symbols may have been others.
    async fn take_up(
        &self,
        (execute, symbols, heap): (Execute, Symbols, HeapImage),
        picks: &[Pick],
        replaces: Option<String>,
        continuity: Continuity,
    ) -> Result<Prepared, PrepareError> {
        let exposed = symbols.expose(self.catalogs(), picks)?;
        let known = self.logical.execute.as_ref().and_then(space::symbols);
        let new_symbol_space = !known.is_some_and(|known| exposed.symbols.entities().starts_with(known.entities()));
        let continuity = Continuity { new_symbol_space, discard_cached_plasm_symbols: new_symbol_space, ..continuity };
        let now = Execute { expires_at: self.service.kept_until(Timestamp::now()), ..execute };
        let now = if exposed.is_noop() { now } else { space::grown(&now, &exposed.symbols, now.expires_at) };
        let wave = self.wave(WaveMode::Recover, exposed.symbols.entities(), now.revision)?.after(continuity.notice());
        self.expose(Some(heap), exposed.symbols.entities(), now, replaces, continuity, wave).await
    }

    /// Brings symbols into a heap and keeps what comes of it.
    async fn expose(
        &self,
        base: Option<HeapImage>,
        to_bind: &[EntitySymbols],
        execute: Execute,
        replaces: Option<String>,
        continuity: Continuity,
        wave: Wave,
    ) -> Result<Prepared, PrepareError> {
        let told = self.told(&execute, continuity, wave);
        let bind = |head| Bind { logical: self.logical.id, execute, replaces, head, untold: None };
        if to_bind.is_empty() {
            // Nothing is in it yet, so there is nothing to keep.
            return Ok(Prepared { heap: base, key: None, bind: Some(bind(None)), told, warnings: Vec::new(), _storing: None });
        }
        let (heap, warned) = self.run_script(base, &script(self.catalogs(), to_bind)?).await?;
        let bytes = heap.length();
        self.service.check_quota(self.principal, bytes).await?;
        let storing = self.service.0.storing.clone().read_owned().await;
        let key = self.heaps.keep(heap.clone()).await?;
        Ok(Prepared {
            heap: Some(heap),
            key: Some(key),
            bind: Some(bind(Some((key, bytes)))),
            told,
            warnings: warned,
            _storing: Some(storing),
        })
    }

    async fn run_script(&self, base: Option<HeapImage>, code: &str) -> Result<(HeapImage, Vec<String>), PrepareError> {
        let limits = self.service.policy().limits;
        let job = Job { code: code.to_owned(), kind: Kind::Stateful(base), limits, headers: Vec::new(), lane: Lane::default() };
        let execution = self.service.engine().submit(job).map_err(ServiceError::from)?;
        match execution.finish().await.1 {
            Outcome::Completed { result, heap: Some(heap), .. } => {
                let warned = warnings(&result).unwrap_or_default();
                Ok((heap, warned.into_iter().map(|warning| warning.text).collect()))
            }
            Outcome::Failed(failure) => Err(PrepareError::Exposure(failure)),
            other => {
                let why = crate::End::from(other).error().unwrap_or_else(|| "it left no heap".into());
                Err(PrepareError::Exposure(Failure::NoWorker(why)))
            }
        }
    }

    fn told(&self, execute: &Execute, continuity: Continuity, wave: Wave) -> Told {
        Told { continuity, execute_binding: Some(space::binding(execute)), wave: Some(wave) }
    }

    fn wave(&self, mode: WaveMode, new: &[EntitySymbols], revision: u64) -> Result<Wave, PrepareError> {
        let domain = match (mode, new.is_empty()) {
            (WaveMode::Noop, _) => "Everything that was asked for is there already, under the symbols that it has.".to_owned(),
            (_, true) => "Nothing of a catalog is in this session yet.".to_owned(),
            (_, false) => table(self.catalogs(), new)?,
        };
        Ok(Wave { mode, domain, revision })
    }

    /// The symbol table as it is now, for whoever was never told.
    fn whole_wave(&self, prepared: &Prepared) -> Result<Wave, PrepareError> {
        let execute = prepared.bind.as_ref().map(|bind| &bind.execute).or(self.logical.execute.as_ref());
        let symbols = execute.and_then(space::symbols).unwrap_or_default();
        let revision = execute.map_or(0, |execute| execute.revision);
        let continuity = &prepared.told.continuity;
        let mode = if continuity.stale_binding_recovered { WaveMode::Recover } else { WaveMode::Open };
        Ok(self.wave(mode, symbols.entities(), revision)?.after(continuity.notice()))
    }
}
